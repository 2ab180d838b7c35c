//! A run of the engine and the metrics of it.

use sojourn_core::{StreamAddress, Time};
use sojourn_fluid::{Options, Work};
use sojourn_metrics::{Collector, FlowShape, LinkShape, RunMetrics, Shape};
use sojourn_scenario::{App, Checked, Flow};

pub(crate) fn run(scenario: &Checked, seed: u64, options: &Options) -> (RunMetrics, Work) {
    let mut collector = Collector::new(Shape {
        flows: scenario.flows.iter().map(shape).collect(),
        links: scenario.links.iter().map(|link| LinkShape { name: link.name.clone() }).collect(),
        duration: scenario.duration,
        warmup: scenario.warmup,
        step: scenario.step,
    })
    .expecting_all_drops();
    let address = StreamAddress { seed, run: 0 };
    let ran = sojourn_fluid::run(scenario, address, options, &mut collector).expect("a run");
    let mut metrics = collector.finish(Time::ZERO + scenario.duration);
    for queue in &ran.queues {
        metrics.links[queue.port].queue_mean_pkts = Some(queue.packets);
        metrics.links[queue.port].drop_share = queue.drop_share;
    }
    (metrics, ran.work)
}

fn shape(flow: &Flow) -> FlowShape {
    match flow.app {
        App::Udp(_) => FlowShape::udp(&*flow.name),
        App::Ping(_) => FlowShape::ping(&*flow.name),
        _ => FlowShape::tcp(&*flow.name),
    }
}
