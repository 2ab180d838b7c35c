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
use core::fmt;

use sojourn_core::{DropReason, Param, ParamKind, Queued, Span, SpecError, Stream, Time, Words};

use crate::built_in::{BuiltIn, Written};
use crate::notation::{flag, packets, param, read_params, span};
use crate::ring::Ring;
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink};

pub const PARAMS: &[Param] = &[
    param("limit", ParamKind::Count, "1000", "packets that may wait; more are dropped on arrival"),
    TARGET,
    INTERVAL,
    ECN,
    NOECN,
    CE_THRESHOLD,
    param(
        "mode",
        ParamKind::Choice,
        "linux",
        "linux: the kernel's clock, arithmetic and guard; rfc: RFC 8289 to the letter",
    ),
];

pub(crate) const TARGET: Param =
    param("target", ParamKind::Span, "5ms", "standing delay that is acceptable");
pub(crate) const INTERVAL: Param = param(
    "interval",
    ParamKind::Span,
    "100ms",
    "how long the delay must stay above target, about the worst round-trip time",
);
pub(crate) const ECN: Param = flag("ecn", "", "mark instead of dropping");
pub(crate) const NOECN: Param = flag("noecn", "on", "drop only");
pub(crate) const CE_THRESHOLD: Param =
    param("ce_threshold", ParamKind::Span, "", "mark every packet that waited longer than this");

/// `codel`'s parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub limit: u32,
    pub law: LawConfig,
}

/// The parameters of CoDel's control law, wherever it is used.
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

impl LawConfig {
    pub(crate) const fn new(ecn: bool) -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn,
            ce_threshold: None,
            ce_threshold_selector: None,
            mode: Mode::Linux,
        }
    }

    /// Reads the parameter `word`, if it is one of the law's.
    pub(crate) fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        match word {
            "target" => self.target = span(words, word, Span::ZERO)?,
            "interval" => self.interval = span(words, word, Span::from_micros(1))?,
            "ecn" => self.ecn = true,
            "noecn" => self.ecn = false,
            "ce_threshold" => self.ce_threshold = Some(span(words, word, Span::ZERO)?),
            "mode" => self.mode = words.parse(word, str::parse)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What `tc` prints between the limits and the rest.
    pub(crate) fn fmt_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target {} interval {}", self.target, self.interval)?;
        match self.ce_threshold {
            Some(threshold) => write!(f, " ce_threshold {threshold}"),
            None => Ok(()),
        }
    }
}

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self { limit: 1000, law: LawConfig::new(false) };
        read_params(words, "codel", PARAMS, |word, words| {
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
        self.law.fmt_times(f)?;
        if self.law.ecn {
            f.write_str(" ecn")?;
        }
        self.law.mode.fmt_unless_default(f)
    }
}

impl Written for Config {
    const NAME: &'static str = "codel";
    const DOC: &'static str = "CoDel (RFC 8289), as Linux has it or to the letter";
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
            law: Law::new(&config.law),
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
