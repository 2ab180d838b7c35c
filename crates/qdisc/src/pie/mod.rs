//! PIE, proportional integral controller enhanced (RFC 8033), as Linux has it (`sch_pie`).
//!
//! The controller is in `law.rs` and serves FlowQueue-PIE too. It has no timer: updates that were
//! due since the last call are computed at the next one.

mod law;
#[cfg(test)]
mod tests;

pub(crate) use law::{Law, State};

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{Bounds, whole};
use sojourn_core::{DropReason, Param, Queued, Span, Stream, Time};

use crate::built_in;
use crate::notation::{Lapse, Packets, SOME};
use crate::ring::Ring;
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink, mark_if_capable};

sojourn_core::params! {
    /// `pie`'s parameters.
    pub struct Config: "pie", "PIE (RFC 8033), as Linux has it" {
        pub limit: u32 as Packets = "1000", "packets that may wait; more are dropped on arrival";
        pub target: Span as Lapse = TARGET;
        pub tupdate: Span as Lapse = TUPDATE;
        pub alpha: u32 = ALPHA;
        pub beta: u32 = BETA;
        pub ecn: bool as Marking = Param::of::<Marking>("ecn", "noecn", "").quiet();
        pub bytemode: bool as ByteMode = BYTEMODE;
        pub dq_rate_estimator: bool as RateEstimator = DQ_RATE_ESTIMATOR;
    }
}

pub(crate) const TARGET: Param =
    Param::of::<Lapse>("target", "15ms", "delay that the controller steers to");
pub(crate) const TUPDATE: Param =
    Param::of::<Lapse>("tupdate", "15ms", "time between updates of the drop probability")
        .within(SOME);
pub(crate) const ALPHA: Param =
    Param::of::<u32>("alpha", "2", "weight of the distance from target, in sixteenths per second")
        .within(GAINS);
pub(crate) const BETA: Param =
    Param::of::<u32>("beta", "20", "weight of the trend of the delay, in sixteenths per second")
        .within(GAINS);
pub(crate) const BYTEMODE: Param = Param::of::<ByteMode>("bytemode", "nobytemode", "").quiet();
pub(crate) const DQ_RATE_ESTIMATOR: Param =
    Param::of::<RateEstimator>("dq_rate_estimator", "no_dq_rate_estimator", "").quiet();

/// What `tc` takes.
const GAINS: Bounds = whole(0, 32);

sojourn_core::keywords! {
    Marking for bool {
        "ecn" = true, "mark instead of dropping while the probability is at most 10 %";
        "noecn" = false, "drop only";
    }
}

sojourn_core::keywords! {
    pub(crate) ByteMode for bool {
        "bytemode" = true, "scale the probability by the packet's length";
        "nobytemode" = false, "the same probability for every packet";
    }
}

sojourn_core::keywords! {
    pub(crate) RateEstimator for bool {
        "dq_rate_estimator" = true, "estimate the delay from the backlog and the departure rate";
        "no_dq_rate_estimator" = false, "measure the delay by each packet's time of arrival";
    }
}

built_in::written_as_it_is!(Config);

/// What PIE's controller is told, wherever it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawConfig {
    pub target: Span,
    pub tupdate: Span,
    /// In sixteenths per second of delay.
    pub alpha: u32,
    pub beta: u32,
    pub ecn: bool,
    pub bytemode: bool,
    pub dq_rate_estimator: bool,
}

impl Config {
    pub(crate) fn law(&self) -> LawConfig {
        let Self { target, tupdate, alpha, beta, ecn, bytemode, dq_rate_estimator, .. } = *self;
        LawConfig { target, tupdate, alpha, beta, ecn, bytemode, dq_rate_estimator }
    }
}

#[derive(Debug)]
pub struct Pie<P> {
    limit: u32,
    law: Law,
    state: State,
    ring: Ring<P>,
    random: Stream,
    stats: Stats,
}

#[derive(Debug, Default)]
struct Stats {
    packets_in: u64,
    overlimit: u64,
    dropped: u64,
    maxq: u32,
    ecn_mark: u64,
}

/// Up to this probability `pie` marks instead of dropping (RFC 8033 section 5.1).
const ECN_PROB_PERCENT: u64 = 10;

impl<P: Queued> Pie<P> {
    pub fn new(config: &Config, random: Stream) -> Self {
        let law = Law::new(&config.law(), ECN_PROB_PERCENT);
        Self {
            limit: config.limit,
            state: law.fresh_state(),
            law,
            ring: Ring::new(),
            random,
            stats: Stats::default(),
        }
    }
}

impl<P: Queued + Send> Qdisc<P> for Pie<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let Self { law, state, ring, random, stats, .. } = self;
        let backlog = ring.backlog();
        law.catch_up(state, backlog.bytes, now);
        let refused = if backlog.packets >= self.limit {
            stats.overlimit += 1;
            Some(DropReason::Full)
        } else if !law.drop_early(state, backlog.bytes, packet.wire_len(), random) {
            None
        } else if law.may_mark(state) && mark_if_capable(now, &mut packet, sink) {
            stats.ecn_mark += 1;
            None
        } else {
            Some(DropReason::Aqm)
        };
        if let Some(why) = refused {
            stats.dropped += 1;
            state.has_dropped();
            return Enqueue::Dropped(packet, why);
        }
        stats.packets_in += 1;
        stats.maxq = stats.maxq.max(backlog.packets);
        ring.push(now, packet);
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<P>) -> Dequeue<P> {
        self.law.catch_up(&mut self.state, self.ring.backlog().bytes, now);
        let Some((arrived, packet)) = self.ring.pop() else { return Dequeue::Empty };
        let backlog = self.ring.backlog().bytes;
        self.law.on_departure(&mut self.state, arrived, packet.wire_len(), backlog, now);
        Dequeue::Packet(packet, now.since(arrived))
    }

    fn backlog(&self) -> Backlog {
        self.ring.backlog()
    }

    fn oldest(&self) -> Option<Time> {
        self.ring.oldest()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("prob_ppm", self.state.prob_ppm()),
            ("delay", self.state.delay().as_nanos()),
            ("pkts_in", self.stats.packets_in),
            ("overlimit", self.stats.overlimit),
            ("dropped", self.stats.dropped),
            ("maxq", u64::from(self.stats.maxq)),
            ("ecn_mark", self.stats.ecn_mark),
        ]
    }
}
