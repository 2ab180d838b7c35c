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
use core::fmt;

use sojourn_core::{DropReason, Param, ParamKind, Queued, Span, SpecError, Stream, Time, Words};

use crate::built_in::{BuiltIn, Written};
use crate::codel;
use crate::notation::{flag, packets, param, read_params, span};
use crate::ring::Ring;
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink, mark_if_capable};

pub const PARAMS: &[Param] = &[
    param("limit", ParamKind::Count, "1000", "packets that may wait; more are dropped on arrival"),
    TARGET,
    TUPDATE,
    ALPHA,
    BETA,
    flag("ecn", "", "mark instead of dropping while the probability is at most 10 %"),
    codel::NOECN,
    BYTEMODE,
    NOBYTEMODE,
    DQ_RATE_ESTIMATOR,
    NO_DQ_RATE_ESTIMATOR,
];

pub(crate) const TARGET: Param =
    param("target", ParamKind::Span, "15ms", "delay that the controller steers to");
pub(crate) const TUPDATE: Param =
    param("tupdate", ParamKind::Span, "15ms", "time between updates of the drop probability");
pub(crate) const ALPHA: Param = param(
    "alpha",
    ParamKind::Count,
    "2",
    "weight of the distance from target, in sixteenths per second, 0 to 32",
);
pub(crate) const BETA: Param = param(
    "beta",
    ParamKind::Count,
    "20",
    "weight of the trend of the delay, in sixteenths per second, 0 to 32",
);
pub(crate) const BYTEMODE: Param =
    flag("bytemode", "", "scale the probability by the packet's length");
pub(crate) const NOBYTEMODE: Param =
    flag("nobytemode", "on", "the same probability for every packet");
pub(crate) const DQ_RATE_ESTIMATOR: Param =
    flag("dq_rate_estimator", "", "estimate the delay from the backlog and the departure rate");
pub(crate) const NO_DQ_RATE_ESTIMATOR: Param =
    flag("no_dq_rate_estimator", "on", "measure the delay by each packet's time of arrival");

/// `pie`'s parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub limit: u32,
    pub law: LawConfig,
}

/// The parameters of PIE's controller, wherever it is used.
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

/// Largest `alpha` and `beta` that `tc` takes.
const GAIN_MOST: u64 = 32;

impl LawConfig {
    pub(crate) const DEFAULT: Self = Self {
        target: Span::from_millis(15),
        tupdate: Span::from_millis(15),
        alpha: 2,
        beta: 20,
        ecn: false,
        bytemode: false,
        dq_rate_estimator: false,
    };

    /// Reads the parameter `word`, if it is one of the controller's.
    pub(crate) fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        match word {
            "target" => self.target = span(words, word, Span::ZERO)?,
            "tupdate" => self.tupdate = span(words, word, Span::from_micros(1))?,
            "alpha" => self.alpha = words.count(word, 0, GAIN_MOST)? as u32,
            "beta" => self.beta = words.count(word, 0, GAIN_MOST)? as u32,
            "ecn" => self.ecn = true,
            "noecn" => self.ecn = false,
            "bytemode" => self.bytemode = true,
            "nobytemode" => self.bytemode = false,
            "dq_rate_estimator" => self.dq_rate_estimator = true,
            "no_dq_rate_estimator" => self.dq_rate_estimator = false,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn fmt_gains(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, tupdate, alpha, beta, .. } = self;
        write!(f, "target {target} tupdate {tupdate} alpha {alpha} beta {beta}")
    }

    pub(crate) fn fmt_flags(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, word) in [
            (self.ecn, " ecn"),
            (self.bytemode, " bytemode"),
            (self.dq_rate_estimator, " dq_rate_estimator"),
        ] {
            if flag {
                f.write_str(word)?;
            }
        }
        Ok(())
    }
}

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self { limit: 1000, law: LawConfig::DEFAULT };
        read_params(words, "pie", PARAMS, |word, words| {
            match word {
                "limit" => config.limit = packets(words, word)?,
                _ => return config.law.accept(word, words),
            }
            Ok(true)
        })?;
        Ok(config)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}p ", self.limit)?;
        self.law.fmt_gains(f)?;
        self.law.fmt_flags(f)
    }
}

impl Written for Config {
    const NAME: &'static str = "pie";
    const DOC: &'static str = "PIE (RFC 8033), as Linux has it";
    const PARAMS: &'static [Param] = PARAMS;

    fn read(words: &mut Words<'_>) -> Result<Self, SpecError> {
        Self::parse(words)
    }
}

impl BuiltIn for Config {
    fn name(&self) -> &'static str {
        Self::NAME
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
        let law = Law::new(&config.law, ECN_PROB_PERCENT);
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
