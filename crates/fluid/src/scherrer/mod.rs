//! The model of S. Scherrer, M. Legner, A. Perrig and S. Schmid, "Model-Based Insights on the
//! Performance, Fairness, and Stability of BBR", IMC 2022, with the constants and the integration of
//! the program that its authors published: Euler's method with steps of 10 µs, all flows at their
//! fair share from the beginning.
//!
//! It is here to be compared with. Where it departs from the congestion controls it models,
//! `docs/models/fluid.md` says so. Times are milliseconds and amounts packets, as the authors have
//! them.

mod bbr;
mod bbr2;
mod cubic;
mod draws;
mod past;
mod reno;
pub(crate) mod shapes;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_cca::Config as Cca;
use sojourn_core::{Span, SpecError, StreamAddress};
use sojourn_link::RateConfig;
use sojourn_qdisc::{Config as Qdisc, fifo};
use sojourn_scenario::{App, Flow as ScenarioFlow, Scenario};

use crate::cca::Shown;
use crate::curves::{
    ACKED, CAME, Curves, Drops, FLIGHT, IN, LOST, OF_FLOW, OF_HOP, OUT, RECEIVED, REFUSED, SENT,
    SENT_AT, Sending, Sparse,
};
use crate::engine::Work;
use crate::published::{self, Knows, Published};
use crate::world::World;

use bbr::{Bbr, Estimates};
use bbr2::Bbr2;
use cubic::Cubic;
use draws::Draws;
use past::Past;

/// The authors' step.
pub(crate) const STEP: Span = Span::from_micros(10);

/// How abruptly the smooth form of drop-tail loses.
const ABRUPTNESS: f64 = 100.0;

/// Beside BBRv2, a BBR has begun its period at least so many round trips ago, and up to a second more.
const BEGAN_ROUNDS: f64 = 10.0;
const BEGAN_SPREAD: f64 = 1000.0;

const KNOWS: Knows = Knows {
    whose: "Scherrer et al.",
    controls: &["reno", "cubic", "bbr", "bbr2"],
    queues: &["pfifo", "bfifo", "red"],
};

/// # Errors
/// The published model has no such flow, queue or link; names it.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SpecError> {
    published::check(scenario, &KNOWS)?;
    let is_none = |queue: &Qdisc| matches!(queue, Qdisc::Fifo(fifo::Config::Packets(0)));
    if let Some(link) = scenario
        .links
        .iter()
        .find(|link| link.rate != RateConfig::Unlimited && is_none(&link.queue))
    {
        let problem =
            format!("link '{}': the model of Scherrer et al. has no queue of 0 packets", link.name);
        return Err(SpecError::new(problem).allow(["a limit of at least 1"]));
    }
    Ok(())
}

/// Everything but a flow's own equations.
#[derive(Clone, Debug)]
struct Shared {
    /// Δ.
    step: f64,
    flows: usize,
    /// C, packets a millisecond.
    capacity: f64,
    /// B, packets.
    buffer: f64,
    /// B in the bandwidth-delay products of the link's own delay.
    buffer_bdp: f64,
}

/// A flow and its delays: D, there and back without a queue, and D⁰, of that before the queue.
#[derive(Clone, Debug)]
struct Flow {
    place: usize,
    delay: f64,
    before: f64,
    window: f64,
    rate: f64,
    /// x_dlv, what comes back.
    delivery: f64,
    rtt: f64,
    control: Control,
    row: [f64; OF_FLOW],
    hop: [f64; OF_HOP],
}

#[derive(Clone, Debug)]
enum Control {
    Reno,
    Cubic(Cubic),
    Bbr(Bbr),
    Bbr2(Bbr2),
}

impl Control {
    fn model(&self) -> Option<&Estimates> {
        match self {
            Self::Reno | Self::Cubic(_) => None,
            Self::Bbr(bbr) => Some(&bbr.model),
            Self::Bbr2(bbr) => Some(&bbr.model),
        }
    }

    fn model_mut(&mut self) -> Option<&mut Estimates> {
        match self {
            Self::Reno | Self::Cubic(_) => None,
            Self::Bbr(bbr) => Some(&mut bbr.model),
            Self::Bbr2(bbr) => Some(&mut bbr.model),
        }
    }

    fn phase(&self) -> &'static str {
        match self {
            Self::Reno | Self::Cubic(_) => "congestion_avoidance",
            Self::Bbr(bbr) => bbr.phase(),
            Self::Bbr2(bbr) => bbr.phase(),
        }
    }
}

/// What a flow sees of the past in a step.
#[derive(Clone, Copy, Debug)]
struct Seen {
    now: f64,
    /// Now, and as old as the base round trip.
    rtt: f64,
    old_rtt: f64,
    /// x, when what is acknowledged now was sent; p and its smooth form, when that came to the link.
    sent: f64,
    loss: f64,
    smooth_loss: f64,
    /// w, two base round trips ago.
    old_window: f64,
    delivery: f64,
    delay: f64,
}

/// Columns of the past, and of each flow in it.
const QUEUE: usize = 0;
const ARRIVED: usize = 1;
const LOSS: usize = 2;
const SMOOTH_LOSS: usize = 3;
const OF_ALL: usize = 4;
const RATE: usize = 0;
const WINDOW: usize = 1;
const RTT: usize = 2;
/// Estimates of a BBR: its least round-trip time, whether ProbeRTT is on, and until when.
const LEAST_RTT: usize = 3;
const PROBES: usize = 4;
const UNTIL_PROBE: usize = 5;
const OF_EACH: usize = 6;

pub(crate) struct Model<'a> {
    world: &'a World,
    shared: Shared,
    has_red: bool,
    queue: f64,
    loss: f64,
    smooth_loss: f64,
    arrived: f64,
    flows: Vec<Flow>,
    past: Past,
    new: Vec<f64>,
    steps: u64,
    /// Seconds.
    now: f64,
}

impl<'a> Model<'a> {
    /// `scenario` has been checked, and `world` made from it.
    pub(crate) fn new(
        scenario: &Scenario,
        world: &'a World,
        address: StreamAddress,
        step: Span,
    ) -> Self {
        let step = milliseconds(step);
        let bottleneck = &world.links[0];
        let link = &scenario.links[bottleneck.port];
        let capacity = bottleneck.capacity.mean() / bottleneck.packet / 1000.0;
        let buffer = match &link.queue {
            Qdisc::Fifo(fifo::Config::Packets(packets)) => f64::from(*packets),
            Qdisc::Fifo(fifo::Config::Bytes(bytes)) => bytes.as_u64() as f64 / bottleneck.packet,
            Qdisc::Red(red) => red.limit.as_u64() as f64 / bottleneck.packet,
            _ => f64::INFINITY,
        };
        let of_link = libm::ceil(capacity * milliseconds(link.delay)).max(1.0);
        let flows = scenario.flows.len();
        let shared = Shared { step, flows, capacity, buffer, buffer_bdp: buffer / of_link };
        let delays = scenario.flows.iter().map(|flow| delays(scenario, flow, bottleneck.port));
        let delays: Vec<(f64, f64)> = delays.collect();
        let is_bbr2 = |flow: &ScenarioFlow| matches!(&flow.app, App::Tcp { cca: Cca::Bbr2(_), .. });
        let has_bbr2 = scenario.flows.iter().any(is_bbr2);
        // The first number of each flow was its delay before the bottleneck, which the scenario has.
        let mut draws = Draws::new(address.seed.wrapping_add(address.run));
        for _ in &delays {
            draws.unit();
        }
        let flows: Vec<Flow> = scenario
            .flows
            .iter()
            .zip(&delays)
            .enumerate()
            .map(|(place, (flow, (delay, before)))| {
                let window = delay * capacity / shared.flows as f64;
                // The authors divide by the round trip of the first flow.
                let estimate = window / delays[0].0;
                let App::Tcp { cca, .. } = &flow.app else { unreachable!("checked") };
                let (window, control) = match cca {
                    Cca::Cubic(_) => (window, Control::Cubic(Cubic::new(window))),
                    Cca::Bbr(_) => (estimate * delay, Control::Bbr(Bbr::new(estimate, *delay))),
                    Cca::Bbr2(_) => {
                        let bbr = Bbr2::new(window, estimate, *delay, shared.buffer_bdp);
                        (window, Control::Bbr2(bbr))
                    }
                    _ => (window, Control::Reno),
                };
                let mut control = control;
                let part = draws.unit();
                if let (true, Some(model)) = (has_bbr2, control.model_mut()) {
                    model.began = -BEGAN_ROUNDS * delay - BEGAN_SPREAD * part;
                }
                let rate = window / delay;
                Flow {
                    place,
                    delay: *delay,
                    before: *before,
                    window,
                    rate,
                    delivery: rate,
                    rtt: *delay,
                    control,
                    row: [0.0; OF_FLOW],
                    hop: [0.0; OF_HOP],
                }
            })
            .collect();
        let longest = flows.iter().map(|flow| flow.delay).fold(0.0, f64::max);
        let kept = (2.0 * longest + buffer / capacity) / step;
        let arrived = flows.iter().map(|flow| flow.rate).sum();
        let mut model = Self {
            world,
            shared,
            has_red: matches!(link.queue, Qdisc::Red(_)),
            queue: 0.0,
            loss: 0.0,
            smooth_loss: 0.0,
            arrived,
            new: vec![0.0; OF_ALL + OF_EACH * flows.len()],
            past: Past::new(OF_ALL + OF_EACH * flows.len(), kept as usize + 2),
            flows,
            steps: 0,
            now: 0.0,
        };
        model.keep();
        model
    }

    /// p: RED by its idealised line, drop-tail at once and smoothly.
    fn lose(&mut self) {
        let Shared { capacity, buffer, .. } = self.shared;
        if self.has_red {
            self.loss = (self.queue / buffer).clamp(0.0, 1.0);
            self.smooth_loss = self.loss;
            return;
        }
        let excess = if self.arrived > capacity { 1.0 - capacity / self.arrived } else { 0.0 };
        self.loss = if self.queue >= buffer { excess } else { 0.0 };
        self.smooth_loss = excess * libm::pow(self.queue / buffer, ABRUPTNESS);
    }

    fn keep(&mut self) {
        self.new[QUEUE] = self.queue;
        self.new[ARRIVED] = self.arrived;
        self.new[LOSS] = self.loss;
        self.new[SMOOTH_LOSS] = self.smooth_loss;
        for flow in &self.flows {
            let row = &mut self.new[OF_ALL + OF_EACH * flow.place..][..OF_EACH];
            row[RATE] = flow.rate;
            row[WINDOW] = flow.window;
            row[RTT] = flow.rtt;
            let Some(model) = flow.control.model() else { continue };
            row[LEAST_RTT] = model.least_rtt;
            row[PROBES] = model.probes;
            row[UNTIL_PROBE] = model.until_probe;
        }
        self.past.push(&self.new);
    }
}

/// D and D⁰ of a flow.
pub(crate) fn delays(scenario: &Scenario, flow: &ScenarioFlow, port: usize) -> (f64, f64) {
    let delay = |id: &sojourn_core::PortId| scenario.links[id.index()].delay;
    let sum = |total: Span, one: Span| total + one;
    let before = flow.forward.iter().take_while(|id| id.index() != port).map(delay);
    let before = before.fold(Span::ZERO, sum);
    let way = flow.forward.iter().chain(&flow.reverse).map(delay).fold(Span::ZERO, sum);
    // Added before they are divided, so that they are rounded once.
    (milliseconds(way + flow.forward_delay + flow.reverse_delay), milliseconds(before))
}

fn milliseconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

impl Published for Model<'_> {
    /// One step of Euler's method.
    fn step(&mut self) -> Result<(), String> {
        let step = self.shared.step;
        self.steps += 1;
        let now = self.steps as f64 * step;
        self.now = now / 1000.0;
        let past = &self.past;
        let ago = |time: f64| (time / step) as usize;
        let comes = |flow: &Flow| {
            let before = libm::round(flow.before / step) as usize;
            past.ago(before.max(1), OF_ALL + OF_EACH * flow.place + RATE)
        };
        let arrived: f64 = self.flows.iter().map(comes).sum();
        // y and q.
        let grown = self.queue + ((1.0 - self.loss) * arrived - self.shared.capacity) * step;
        let is_busy = arrived >= self.shared.capacity || self.queue > 0.0;
        self.queue = grown.clamp(0.0, self.shared.buffer);
        self.arrived = arrived;
        for flow in &mut self.flows {
            let of = OF_ALL + OF_EACH * flow.place;
            let came = past.ago((libm::round(flow.before / step) as usize).max(1), of + RATE);
            flow.rtt = flow.delay + self.queue / self.shared.capacity;
            let trip = ago(flow.delay);
            let old_rtt = past.ago(trip, of + RTT);
            let back = ago(old_rtt - flow.before);
            let sent = past.ago(ago(old_rtt), of + RATE);
            let old_arrived = past.ago(back, ARRIVED);
            let waited = past.ago(ago(flow.delay - flow.before), QUEUE) > 0.0;
            // x_dlv.
            let delivery = if old_arrived >= self.shared.capacity || waited {
                sent / old_arrived * self.shared.capacity
            } else {
                sent
            };
            let seen = Seen {
                now,
                rtt: flow.rtt,
                old_rtt,
                sent,
                loss: past.ago(back, LOSS),
                smooth_loss: past.ago(back, SMOOTH_LOSS),
                old_window: past.ago(ago(2.0 * flow.delay), of + WINDOW),
                delivery,
                delay: flow.delay,
            };
            let old = bbr::Old {
                least_rtt: past.ago(trip, of + LEAST_RTT),
                probes: past.ago(trip, of + PROBES),
                until_probe: past.ago(trip, of + UNTIL_PROBE),
            };
            let rate = flow.rate;
            (flow.window, flow.rate) = match &mut flow.control {
                Control::Reno => reno::advance(&self.shared, &seen, flow.window),
                Control::Cubic(cubic) => cubic.advance(&self.shared, &seen),
                Control::Bbr(bbr) => bbr.advance(&self.shared, flow.place, &seen, &old, rate),
                Control::Bbr2(bbr) => bbr.advance(&self.shared, flow.place, &seen, &old, rate),
            };
            flow.delivery = delivery;
            if !(flow.rate.is_finite() && flow.window.is_finite()) {
                let name = flow.place;
                return Err(format!("the equations diverge at {:.6} s (flow {name})", self.now));
            }
            let packet = self.world.links[0].packet;
            let count = |rate: f64| rate * step * packet;
            let out = if is_busy { came / arrived * self.shared.capacity } else { came };
            flow.row[SENT] += count(rate);
            flow.row[ACKED] += count(delivery);
            flow.row[LOST] += count(sent * seen.smooth_loss);
            flow.row[RECEIVED] += count(out);
            flow.row[FLIGHT] = rate * flow.rtt * packet;
            flow.row[SENT_AT] = self.now - flow.rtt / 1000.0;
            flow.hop[IN] += count(came * (1.0 - self.smooth_loss));
            flow.hop[REFUSED] += count(came * self.smooth_loss);
            flow.hop[OUT] += count(out);
            flow.hop[CAME] = self.now - self.queue / self.shared.capacity / 1000.0;
        }
        self.lose();
        self.keep();
        Ok(())
    }

    fn round_to(&mut self, moment: f64) {
        if (self.now - moment).abs() < self.shared.step / 2000.0 {
            self.now = moment;
        }
    }

    fn work(&self) -> Work {
        Work { steps: self.steps, retries: 0, rows: self.past.rows(), columns: self.new.len() }
    }
}

impl Curves for Model<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn of_flow(&self, flow: usize) -> &[f64] {
        &self.flows[flow].row
    }

    fn of_hop(&self, flow: usize, _: usize) -> &[f64] {
        &self.flows[flow].hop
    }

    fn sender(&self, flow: usize) -> Option<Sending> {
        let packet = self.world.links[0].packet;
        let flow = &self.flows[flow];
        let model = flow.control.model();
        let bytes = |rate: f64| rate * packet * 1000.0;
        let high = match &flow.control {
            Control::Bbr2(bbr) => Some(bbr.high * packet),
            _ => None,
        };
        let shown = Shown {
            bw: model.map(|model| bytes(model.bottleneck)),
            min_rtt: model.map(|model| model.least_rtt / 1000.0),
            inflight_longterm: high,
            ..Shown::default()
        };
        Some(Sending {
            window: flow.window * packet,
            pacing: model.map(|model| bytes(model.pacing)),
            rtt: flow.rtt / 1000.0,
            least_rtt: model.map_or(flow.delay, |model| model.least_rtt) / 1000.0,
            bw: bytes(flow.delivery),
            phase: flow.control.phase(),
            shown,
        })
    }

    fn backlog(&self, _: usize) -> f64 {
        self.queue * self.world.links[0].packet
    }

    fn sojourn(&self, _: usize) -> f64 {
        self.queue / self.shared.capacity / 1000.0
    }

    fn sparse(&self, _: usize) -> Sparse {
        Sparse { came_at: self.now, ..Sparse::default() }
    }

    fn drops(&self, flow: usize, _: usize) -> Drops {
        let refused = self.flows[flow].hop[REFUSED];
        let tail = if self.has_red { [0.0, refused, 0.0] } else { [refused, 0.0, 0.0] };
        Drops { tail, ..Drops::default() }
    }
}
