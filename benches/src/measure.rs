//! One run, and what it cost.

use sojourn_core::{Span, StreamAddress, Time};
use sojourn_metrics::{Collector, FlowShape, LinkShape, RunMetrics, Shape};
use sojourn_scenario::{App, Checked};

use crate::{World, Yardstick};

/// What a run delivered and what that took.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Full segments or datagrams that reached the receiving applications in order; packets of a call that arrived.
    pub segments: u64,
    pub goodput_mbps: f64,
    pub retransmits: u64,
    pub processor_s: f64,
    /// Turns of the event loop; steps of equations.
    pub wakes: u64,
    /// Largest resident memory of this process so far, its program text included.
    pub peak_mib: f64,
    /// Of the time series, which grows with the length of a run.
    pub series_mib: f64,
    pub digest: u64,
}

/// Runs a yardstick for so long and measures it.
///
/// # Errors
/// The system does not tell what the process has used (`/proc`).
pub fn measure(yardstick: &Yardstick, duration: Span) -> std::io::Result<Figures> {
    let scenario = &yardstick.scenario(duration);
    let before = processor_time()?;
    let (metrics, wakes) = run(yardstick, scenario);
    let processor_s = processor_time()? - before;
    Ok(Figures {
        segments: segments(&metrics, scenario),
        goodput_mbps: metrics.totals.goodput_sum_mbps,
        retransmits: metrics.totals.retransmits,
        processor_s,
        wakes,
        peak_mib: peak_memory()?,
        series_mib: series_mib(&metrics),
        digest: metrics.digest,
    })
}

/// Runs a yardstick for so long and nothing else that would be counted; returns the delivered segments.
pub fn count(yardstick: &Yardstick, duration: Span) -> u64 {
    let scenario = &yardstick.scenario(duration);
    segments(&run(yardstick, scenario).0, scenario)
}

fn run(yardstick: &Yardstick, scenario: &Checked) -> (RunMetrics, u64) {
    let mut collector = Collector::new(shape(scenario));
    let address = StreamAddress { seed: 1, run: 0 };
    if let World::Fluid { .. } = yardstick.world {
        let options = sojourn_fluid::Options::default();
        let ran = sojourn_fluid::run(scenario, address, &options, &mut collector)
            .unwrap_or_else(|problem| panic!("equations fail: {problem}"));
        return (collector.finish(Time::ZERO + scenario.duration), ran.work.steps);
    }
    let outcome = sojourn_sim::run(scenario, address, &mut collector)
        .unwrap_or_else(|violation| panic!("an invariant was broken: {violation}"));
    (collector.finish(outcome.end), outcome.wakes)
}

fn shape(scenario: &Checked) -> Shape {
    Shape {
        flows: scenario
            .flows
            .iter()
            .map(|flow| match flow.app {
                App::Tcp { .. } => FlowShape::tcp(&flow.name),
                _ => FlowShape::udp(&flow.name),
            })
            .collect(),
        links: scenario.ports().into_iter().map(|port| LinkShape { name: port.name }).collect(),
        duration: scenario.duration,
        warmup: scenario.warmup,
        step: scenario.step,
    }
}

fn segments(metrics: &RunMetrics, scenario: &Checked) -> u64 {
    let delivered = metrics.flows.iter().zip(&scenario.flows).map(|(flow, config)| {
        let payload = match &config.app {
            App::Tcp { transport, .. } => transport.mss,
            App::Udp(stream) => stream.frame / stream.datagrams,
            // Packets of media come in all sizes.
            App::External(_) => return flow.whole.arrived_packets,
            _ => return 0,
        };
        flow.whole.delivered_bytes / u64::from(payload)
    });
    delivered.sum()
}

fn series_mib(metrics: &RunMetrics) -> f64 {
    let series = &metrics.series;
    let of_flow = sojourn_metrics::FLOW_COLUMNS.len() * size_of::<f32>();
    let of_link = sojourn_metrics::LINK_COLUMNS.len() * size_of::<f32>();
    let row = size_of::<f64>() + series.flows.len() * of_flow + series.links.len() * of_link;
    (series.t_s.len() * row) as f64 / MIB
}

const MIB: f64 = (1 << 20) as f64;

/// Processor time of this thread in seconds, to the nanosecond.
fn processor_time() -> std::io::Result<f64> {
    // The kernel updates the figure when the thread gives the processor up.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    ns.map(|ns| ns as f64 * 1e-9).ok_or_else(|| std::io::Error::other("schedstat is not a number"))
}

fn peak_memory() -> std::io::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|word| word.trim().parse::<u64>().ok());
    kib.map(|kib| kib as f64 / 1024.0).ok_or_else(|| std::io::Error::other("status has no VmHWM"))
}
