//! CoDel, controlled delay (RFC 8289), as Linux has it (`sch_codel`, `codel_impl.h`) or to the
//! letter of the RFC's pseudocode.
//!
//! The control law is in `law.rs` and serves FlowQueue-CoDel too.

mod law;
#[cfg(test)]
mod tests;

pub(crate) use law::{Head, Look};
pub use law::{Law, Mode, Selector, Source, State, Stats};

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::Maybe;
use sojourn_core::{DropReason, Param, Queued, Span, Stream, Time};

use crate::built_in;
use crate::notation::{Lapse, Packets, SOME};
use crate::ring::Ring;
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink};

sojourn_core::params! {
    /// `codel`'s parameters.
    pub struct Config: "codel", "CoDel (RFC 8289), as Linux has it or to the letter" {
        pub limit: u32 as Packets = "1000", "packets that may wait; more are dropped on arrival";
        pub target: Span as Lapse = TARGET;
        pub interval: Span as Lapse = INTERVAL;
        pub ce_threshold: Option<Span> as Maybe<Lapse> = CE_THRESHOLD;
        pub ecn: bool as Marking = ECN.by_default("noecn").quiet();
        pub mode: Mode = Param::of::<Mode>(
            "mode", "linux",
            "linux: the kernel's clock, arithmetic and guard; rfc: RFC 8289 to the letter",
        ).quiet();
    }
}

pub(crate) const TARGET: Param =
    Param::of::<Lapse>("target", "5ms", "standing delay that is acceptable");
pub(crate) const INTERVAL: Param = Param::of::<Lapse>(
    "interval",
    "100ms",
    "how long the delay must stay above target, about the worst round-trip time",
)
.within(SOME);
pub(crate) const ECN: Param = Param::of::<Marking>("ecn", "", "");
pub(crate) const CE_THRESHOLD: Param =
    Param::of::<Lapse>("ce_threshold", "", "mark every packet that waited longer than this");

sojourn_core::keywords! {
    /// Whether an AQM marks.
    pub(crate) Marking for bool {
        "ecn" = true, "mark instead of dropping";
        "noecn" = false, "drop only";
    }
}

built_in::written_as_it_is!(Config);

/// What CoDel's control law is told, wherever it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawConfig {
    pub target: Span,
    pub interval: Span,
    pub ecn: bool,
    /// Mark every packet that waited longer.
    pub ce_threshold: Option<Span>,
    /// Which packets `ce_threshold` marks; all by default.
    pub ce_threshold_selector: Option<Selector>,
    pub mode: Mode,
}

impl Config {
    pub(crate) fn law(&self) -> LawConfig {
        let Self { target, interval, ecn, ce_threshold, mode, .. } = *self;
        LawConfig { target, interval, ecn, ce_threshold, ce_threshold_selector: None, mode }
    }
}

#[derive(Debug)]
pub struct Codel<P> {
    limit: u32,
    law: Law,
    state: State,
    stats: Stats,
    drop_overlimit: u64,
    ring: Ring<P>,
}

impl<P: Queued> Source<P> for Ring<P> {
    #[inline]
    fn head(&self) -> Option<(&P, Time)> {
        self.head()
    }

    fn head_mut(&mut self) -> Option<&mut P> {
        self.head_mut()
    }

    #[inline]
    fn pop(&mut self) -> Option<P> {
        self.pop().map(|(_, packet)| packet)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.backlog().bytes
    }
}

impl<P: Queued> Codel<P> {
    pub fn new(config: &Config, _random: Stream) -> Self {
        Self {
            limit: config.limit,
            law: Law::new(&config.law()),
            state: State::default(),
            stats: Stats::default(),
            drop_overlimit: 0,
            ring: Ring::new(),
        }
    }
}

impl<P: Queued + Send> Qdisc<P> for Codel<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, packet: P, _: &mut dyn Sink<P>) -> Enqueue<P> {
        if self.ring.backlog().packets >= self.limit {
            self.drop_overlimit += 1;
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        self.ring.push(now, packet);
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        let Self { law, state, ring, stats, .. } = self;
        let Some(wait) = law.judge(state, ring, now, stats, sink) else { return Dequeue::Empty };
        match ring.pop() {
            Some((_, packet)) => Dequeue::Packet(packet, wait),
            None => Dequeue::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.ring.backlog()
    }

    fn oldest(&self) -> Option<Time> {
        self.ring.oldest()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("count", u64::from(self.state.count)),
            ("lastcount", u64::from(self.state.lastcount)),
            ("ldelay", self.law.to_nanos(self.state.ldelay)),
            ("dropping", u64::from(self.state.dropping)),
            ("maxpacket", u64::from(self.stats.maxpacket)),
            ("ecn_mark", self.stats.ecn_mark),
            ("ce_mark", self.stats.ce_mark),
            ("drop_overlimit", self.drop_overlimit),
        ]
    }
}
