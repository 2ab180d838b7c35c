//! `fq`'s parameters in `tc`'s notation.

use alloc::format;
use core::fmt;

use sojourn_core::{Param, ParamKind, Rate, Span, SpecError, Words};

use crate::DEVICE_MTU;
use crate::codel;
use crate::notation::{TcRate, flag, packets, param, read_params, size, span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait, all flows together.
    pub limit: u32,
    /// Packets that may wait of one flow.
    pub flow_limit: u32,
    /// Of the table in which flows are looked up.
    pub buckets: u32,
    /// Bits of a packet's hash that make its flow.
    pub orphan_mask: u32,
    /// Hold flows to `maxrate`.
    pub pacing: bool,
    /// Bytes of credit for a round.
    pub quantum: u32,
    /// Bytes of credit for a flow never seen before.
    pub initial_quantum: u32,
    pub maxrate: Rate,
    /// Up to this rate a flow is paced packet by packet.
    pub low_rate_threshold: Rate,
    /// Rest after which a flow has its credit back.
    pub refill_delay: Span,
    /// Mark every packet that waited longer.
    pub ce_threshold: Option<Span>,
}

const BUCKETS_MOST: u64 = 256 * 1024;

impl Default for Config {
    fn default() -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            buckets: 1024,
            orphan_mask: 1023,
            pacing: true,
            quantum: 2 * DEVICE_MTU,
            initial_quantum: 10 * DEVICE_MTU,
            maxrate: Rate::UNLIMITED,
            low_rate_threshold: Rate::from_bps(550_000),
            refill_delay: Span::from_millis(40),
            ce_threshold: None,
        }
    }
}

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self::default();
        let bytes = |words: &mut Words<'_>, word: &str| {
            size(words, word, i32::MAX as u64).map(|size| size.as_u64() as u32)
        };
        read_params(words, "fq", PARAMS, |word, words| {
            match word {
                "limit" => config.limit = packets(words, word)?,
                "flow_limit" => config.flow_limit = packets(words, word)?,
                "buckets" => config.buckets = words.count(word, 1, BUCKETS_MOST)? as u32,
                "orphan_mask" => {
                    config.orphan_mask = words.count(word, 0, u64::from(u32::MAX))? as u32;
                }
                "pacing" => config.pacing = true,
                "nopacing" => config.pacing = false,
                "quantum" => config.quantum = bytes(words, word)?,
                "initial_quantum" => config.initial_quantum = bytes(words, word)?,
                "maxrate" => config.maxrate = words.parse(word, positive_rate)?,
                "low_rate_threshold" => {
                    config.low_rate_threshold = words.parse(word, Rate::parse_tc)?;
                }
                "refill_delay" => config.refill_delay = span(words, word, Span::ZERO)?,
                "ce_threshold" => config.ce_threshold = Some(span(words, word, Span::ZERO)?),
                _ => return refuse_left_out(word).map(|()| false),
            }
            Ok(true)
        })?;
        Ok(config)
    }
}

fn positive_rate(text: &str) -> Result<Rate, SpecError> {
    match Rate::parse_tc(text)? {
        Rate::ZERO => Err(SpecError::new("a rate of zero lets nothing pass")),
        rate => Ok(rate),
    }
}

/// Says why a word that `tc` knows is not known here.
fn refuse_left_out(word: &str) -> Result<(), SpecError> {
    let why = match word {
        "horizon" | "horizon_cap" | "horizon_drop" | "offload_horizon" | "timer_slack" => {
            "no socket sets departure times here"
        }
        "bands" | "priomap" | "weights" => "packets carry no priority",
        "defrate" => "the kernel ignores it",
        _ => return Ok(()),
    };
    Err(SpecError::new(format!("fq's '{word}' is left out: {why}")))
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limit {}p flow_limit {}p buckets {} orphan_mask {}",
            self.limit, self.flow_limit, self.buckets, self.orphan_mask
        )?;
        if !self.pacing {
            f.write_str(" nopacing")?;
        }
        write!(f, " quantum {}b initial_quantum {}b", self.quantum, self.initial_quantum)?;
        if !self.maxrate.is_unlimited() {
            write!(f, " maxrate {}", TcRate(self.maxrate))?;
        }
        write!(f, " low_rate_threshold {}", TcRate(self.low_rate_threshold))?;
        write!(f, " refill_delay {}", self.refill_delay)?;
        match self.ce_threshold {
            Some(threshold) => write!(f, " ce_threshold {threshold}"),
            None => Ok(()),
        }
    }
}

pub const PARAMS: &[Param] = &[
    param("limit", ParamKind::Count, "10000", "packets that may wait, all flows together"),
    param("flow_limit", ParamKind::Count, "100", "packets that may wait of one flow"),
    param("buckets", ParamKind::Count, "1024", "of the table in which flows are looked up"),
    param("orphan_mask", ParamKind::Count, "1023", "bits of a packet's hash that make its flow"),
    flag("pacing", "on", "hold flows to 'maxrate'"),
    flag("nopacing", "", "ignore 'maxrate'"),
    param("quantum", ParamKind::Size, "3028", "bytes that a flow may send a round"),
    param("initial_quantum", ParamKind::Size, "15140", "bytes that a flow's first round allows"),
    param("maxrate", ParamKind::Rate, "", "rate that no flow exceeds"),
    param(
        "low_rate_threshold",
        ParamKind::Rate,
        "550kbit",
        "up to this rate flows are paced packet by packet, above it by quanta",
    ),
    param("refill_delay", ParamKind::Span, "40ms", "rest after which a flow has a quantum again"),
    codel::CE_THRESHOLD,
];
