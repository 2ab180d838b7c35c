//! The model of "TCP BBR Performance over Wi-Fi 6: AQM Impacts and Cross-Layer Insights", sections 3.2
//! to 3.4, as printed: equations (9) to (14) in [`bbr3`], (15) to (24) in [`queues`].
//!
//! It is here to be compared with the corrected form: nothing is added that keeps a queue above zero or
//! below its limit, and nothing takes time but the round trip itself, as no equation has a delay. Where
//! the paper leaves a symbol undefined, the files say what it is taken to be.

mod bbr3;
mod queues;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{Span, SpecError};
use sojourn_scenario::Scenario;

use crate::cca::Shown;
use crate::curves::{
    ACKED, CAME, Curves, Drops, FLIGHT, IN, LOST, OF_FLOW, OF_HOP, OUT, RECEIVED, REFUSED, SENT,
    SENT_AT, Sending, Sparse,
};
use crate::engine::Work;
use crate::published::{self, Knows, Published};
use crate::scherrer;
use crate::world::World;

use bbr3::{Bbr3, Seen};
use queues::Queues;

/// Packets in a queue beyond which nothing is described any more.
const MOST: f64 = 1e9;

const KNOWS: Knows = Knows {
    whose: "\"TCP BBR Performance over Wi-Fi 6\", as printed,",
    controls: &["bbr3"],
    queues: &["pfifo", "bfifo", "fq_codel", "cake"],
};

/// # Errors
/// The paper has no such flow, queue or link; names it.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SpecError> {
    published::check(scenario, &KNOWS)
}

#[derive(Clone, Debug)]
struct Flow {
    control: Bbr3,
    /// τ_min.
    delay: f64,
    rate: f64,
    rtt: f64,
    row: [f64; OF_FLOW],
    hop: [f64; OF_HOP],
}

pub(crate) struct Model<'a> {
    world: &'a World,
    queues: Queues,
    flows: Vec<Flow>,
    rates: Vec<f64>,
    step: f64,
    steps: u64,
    now: f64,
}

impl<'a> Model<'a> {
    /// `scenario` has been checked, and `world` made from it.
    pub(crate) fn new(scenario: &Scenario, world: &'a World, step: Span) -> Self {
        let link = &world.links[0];
        let capacity = link.capacity.mean() / link.packet;
        let queues = Queues::new(link, capacity);
        let count = world.flows.len();
        let flows: Vec<Flow> = scenario
            .flows
            .iter()
            .enumerate()
            .map(|(place, flow)| {
                let delay = scherrer::delays(scenario, flow, link.port).0 / 1000.0;
                // w̄: what Θ_i has in flight in a round trip.
                let base = queues.theta[place] * delay;
                Flow {
                    control: Bbr3::new(place, count, base, delay),
                    delay,
                    rate: queues.theta[place],
                    rtt: delay,
                    row: [0.0; OF_FLOW],
                    hop: [0.0; OF_HOP],
                }
            })
            .collect();
        let rates = flows.iter().map(|flow| flow.rate).collect();
        Self { world, queues, flows, rates, step: step.as_secs_f64(), steps: 0, now: 0.0 }
    }
}

impl Published for Model<'_> {
    /// One step of Euler's method.
    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        self.now = self.steps as f64 * self.step;
        let packet = self.world.links[0].packet;
        for (place, flow) in self.flows.iter_mut().enumerate() {
            flow.rtt = self.queues.rtt(place, flow.delay);
            let loss = self.queues.loss[place];
            let seen = Seen { now: self.now, rate: flow.rate, rtt: flow.rtt, loss };
            flow.rate = flow.control.advance(&seen, self.step);
            self.rates[place] = flow.rate;
            let count = |rate: f64| (rate * self.step * packet).max(0.0);
            let received = count(self.queues.received(place, flow.rate));
            flow.row[SENT] += count(flow.rate);
            flow.row[ACKED] += received;
            flow.row[RECEIVED] += received;
            flow.row[LOST] += count(flow.rate * loss);
            flow.row[FLIGHT] = (flow.rate * flow.rtt * packet).max(0.0);
            flow.row[SENT_AT] = self.now - flow.rtt.max(0.0);
            flow.hop[IN] += received;
            flow.hop[REFUSED] += count(flow.rate * loss);
            flow.hop[OUT] += received;
            flow.hop[CAME] = self.now - self.queues.sojourn(place).max(0.0);
        }
        self.queues.advance(&self.rates, self.step);
        let wild = |held: &f64| held.is_nan() || held.abs() >= MOST;
        if self.queues.held.iter().any(wild) || self.rates.iter().any(|rate| !rate.is_finite()) {
            let which = if self.rates.iter().all(|rate| rate.is_finite()) { "16" } else { "12" };
            return Err(format!("equation ({which}) as printed diverges at {:.6} s", self.now));
        }
        Ok(())
    }

    fn round_to(&mut self, moment: f64) {
        if (self.now - moment).abs() < self.step / 2.0 {
            self.now = moment;
        }
    }

    fn work(&self) -> Work {
        Work { steps: self.steps, retries: 0, rows: 0, columns: 0 }
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
        let theta = self.queues.theta[flow];
        let flow = &self.flows[flow];
        Some(Sending {
            window: flow.control.window * packet,
            pacing: None,
            rtt: flow.rtt.max(0.0),
            least_rtt: flow.delay,
            bw: theta * packet,
            phase: flow.control.phase(self.now),
            shown: Shown {
                min_rtt: Some(flow.delay),
                inflight_longterm: Some(flow.control.high * packet),
                ..Shown::default()
            },
        })
    }

    fn backlog(&self, _: usize) -> f64 {
        // A queue may be below zero, as nothing printed keeps it from that; it is shown as none.
        self.queues.held.iter().map(|held| held.max(0.0)).sum::<f64>() * self.world.links[0].packet
    }

    fn sojourn(&self, _: usize) -> f64 {
        let all = 0..self.flows.len();
        all.map(|flow| self.queues.sojourn(flow)).fold(0.0, f64::max)
    }

    fn sparse(&self, _: usize) -> Sparse {
        Sparse { came_at: self.now, ..Sparse::default() }
    }

    fn drops(&self, flow: usize, _: usize) -> Drops {
        let refused = self.flows[flow].hop[REFUSED];
        let is_fifo = matches!(self.world.links[0].queue, sojourn_qdisc::Config::Fifo(_));
        let tail = if is_fifo { [refused, 0.0, 0.0] } else { [0.0, refused, 0.0] };
        Drops { tail, ..Drops::default() }
    }
}
