//! `red`'s parameters in `tc`'s notation, and what `tc` derives from them.

use alloc::format;
use core::fmt;

use sojourn_core::{Bytes, Param, ParamKind, Rate, SpecError, Words};

use crate::codel;
use crate::notation::{TcRate, TcSize, flag, param, read_params, size};

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Bytes that may wait.
    pub limit: Bytes,
    /// Average below which nothing is signalled.
    pub min: Bytes,
    /// Average at which the probability is `probability`, and above which all is signalled.
    pub max: Bytes,
    /// Length of an average packet.
    pub avpkt: u32,
    /// Packets that may come at once without a signal; sets the weight of the average.
    pub burst: u32,
    pub probability: f64,
    /// For the average's decay through idle times.
    pub bandwidth: Rate,
    pub ecn: bool,
    /// Drop above `max` even what could be marked.
    pub harddrop: bool,
    /// Never drop early what can't be marked.
    pub nodrop: bool,
    pub adaptive: bool,
}

/// What `tc` computes for the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Derived {
    /// The average's weight is 2 to the minus this.
    pub(super) wlog: u32,
    /// Idle microseconds for each cell of the decay table are 2 to this.
    pub(super) scell_log: u32,
    /// The logarithm, natural as `tc` takes it, of what a tick of 64 ns leaves of the average.
    pub(super) decay_per_tick: f64,
}

const TICKS_PER_SECOND: f64 = 15_625_000.0;

/// Shifts of the average from here on leave nothing; the table ends there.
const DECAY_MOST: f64 = 31.0;

/// Bits of the kernel's thresholds with their fraction.
const THRESHOLD_BITS: u32 = 32;

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut spec = Spec::default();
        let bytes = |words: &mut Words<'_>, word| size(words, word, u64::from(u32::MAX));
        read_params(words, "red", PARAMS, |word, words| {
            match word {
                "limit" => spec.limit = Some(bytes(words, word)?),
                "min" => spec.min = Some(bytes(words, word)?),
                "max" => spec.max = Some(bytes(words, word)?),
                "avpkt" => spec.avpkt = Some(bytes(words, word)?.as_u64() as u32),
                "burst" => spec.burst = Some(words.count(word, 1, u64::from(u32::MAX))? as u32),
                "probability" => spec.probability = Some(words.number(word, 0.0, 1.0)?),
                "bandwidth" => spec.bandwidth = Some(words.parse(word, Rate::parse_tc)?),
                "ecn" => spec.ecn = true,
                "harddrop" => spec.harddrop = true,
                "nodrop" => spec.nodrop = true,
                "adaptive" | "adaptative" => spec.adaptive = true,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        spec.complete()
    }

    /// `None` where no value serves.
    fn try_derive(&self) -> Option<Derived> {
        let wlog = self.wlog()?;
        let weight = 1.0 / f64::from(1u32 << wlog);
        let bytes_per_second = self.bandwidth.as_bytes_per_sec() as f64;
        let packet_ticks = TICKS_PER_SECOND * f64::from(self.avpkt) / bytes_per_second;
        let decay_per_tick = -libm::log(1.0 - weight) / packet_ticks;
        let longest = DECAY_MOST / decay_per_tick;
        let scell_log = (0u32..32).find(|log| longest / f64::from(1u32 << log) < 512.0)?;
        Some(Derived { wlog, scell_log, decay_per_tick })
    }

    pub(super) fn derived(&self) -> Derived {
        self.try_derive().expect("a configuration is checked when it is made")
    }

    /// Floyd and Jacobson 1993, section 6: the smallest weight with which `burst` arrivals leave
    /// the average below `min`.
    fn wlog(&self) -> Option<u32> {
        let burst = f64::from(self.burst);
        let wanted = burst + 1.0 - self.min.as_u64() as f64 / f64::from(self.avpkt);
        if wanted < 1.0 {
            return None;
        }
        (1u32..32).find(|log| {
            let weight = 1.0 / f64::from(1u32 << log);
            wanted <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
        })
    }
}

/// The words in the order in which they were written.
#[derive(Default)]
struct Spec {
    limit: Option<Bytes>,
    min: Option<Bytes>,
    max: Option<Bytes>,
    avpkt: Option<u32>,
    burst: Option<u32>,
    probability: Option<f64>,
    bandwidth: Option<Rate>,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    adaptive: bool,
}

impl Spec {
    fn complete(self) -> Result<Config, SpecError> {
        let missing = |name: &str| SpecError::new(format!("red needs '{name}'"));
        let limit = self.limit.ok_or_else(|| missing("limit"))?;
        let avpkt = self.avpkt.ok_or_else(|| missing("avpkt"))?;
        let default_max = || match self.min {
            Some(min) => Bytes::new(min.as_u64().saturating_mul(3)),
            None => Bytes::new(limit.as_u64() / 4),
        };
        let max = self.max.unwrap_or_else(default_max);
        let min = self.min.unwrap_or(Bytes::new(max.as_u64() / 3));
        let burst = self.burst.unwrap_or_else(|| {
            ((2 * min.as_u64() + max.as_u64()) / (3 * u64::from(avpkt))).max(1) as u32
        });
        let config = Config {
            limit,
            min,
            max,
            avpkt,
            burst,
            probability: self.probability.unwrap_or(0.02),
            bandwidth: self.bandwidth.unwrap_or(Rate::from_bps(10_000_000)),
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: self.nodrop,
            adaptive: self.adaptive,
        };
        if config.min == Bytes::ZERO || config.min >= config.max {
            return Err(SpecError::new(format!(
                "red's min is {} bytes and max {}",
                min.as_u64(),
                max.as_u64()
            ))
            .allow(["0 < min < max"]));
        }
        if config.nodrop && !config.ecn {
            return Err(SpecError::new("red's 'nodrop' needs 'ecn'"));
        }
        if config.bandwidth.as_bytes_per_sec() == 0 {
            return Err(SpecError::new("red's bandwidth is zero"));
        }
        let Some(wlog) = config.wlog() else {
            return Err(SpecError::new(format!(
                "red's burst {burst} is too small for min {} and avpkt {avpkt}",
                min.as_u64()
            ))
            .allow([format!("{} or more", min.as_u64().div_ceil(u64::from(avpkt)))]));
        };
        let bits = u64::BITS - config.max.as_u64().leading_zeros();
        if bits + wlog >= THRESHOLD_BITS {
            return Err(SpecError::new(format!(
                "red's burst {burst} makes the average too slow for thresholds this large"
            ))
            .allow(["a smaller burst or smaller thresholds"]));
        }
        if config.try_derive().is_none() {
            return Err(SpecError::new("red's idle times can't be tabulated")
                .allow(["a larger bandwidth or smaller avpkt"]));
        }
        Ok(config)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, min, max, .. } = self;
        write!(f, "limit {} min {} max {}", TcSize(*limit), TcSize(*min), TcSize(*max))?;
        for (flag, word) in [
            (self.ecn, " ecn"),
            (self.harddrop, " harddrop"),
            (self.adaptive, " adaptive"),
            (self.nodrop, " nodrop"),
        ] {
            if flag {
                f.write_str(word)?;
            }
        }
        write!(
            f,
            " avpkt {} burst {} probability {} bandwidth {}",
            self.avpkt,
            self.burst,
            self.probability,
            TcRate(self.bandwidth)
        )
    }
}

pub const PARAMS: &[Param] = &[
    param("limit", ParamKind::Size, "", "bytes that may wait; must be given"),
    param(
        "min",
        ParamKind::Size,
        "",
        "average in bytes below which nothing is signalled; by default a third of 'max'",
    ),
    param(
        "max",
        ParamKind::Size,
        "",
        "average above which all is signalled; by default three times 'min', else a quarter of 'limit'",
    ),
    param("avpkt", ParamKind::Size, "", "bytes of an average packet; must be given"),
    param(
        "burst",
        ParamKind::Count,
        "",
        "packets of a burst that is let pass; by default (2 min + max) / (3 avpkt)",
    ),
    param("probability", ParamKind::Number, "0.02", "probability of a signal at 'max'"),
    param(
        "bandwidth",
        ParamKind::Rate,
        "10mbit",
        "rate by which the average decays while nothing waits",
    ),
    codel::ECN,
    flag("harddrop", "", "drop above 'max' even what could be marked"),
    flag("nodrop", "", "with 'ecn': let early pass what can't be marked"),
    flag("adaptive", "", "adapt the probability, every 500 ms, to keep the average in the middle"),
    flag("adaptative", "", "the same, in the spelling tc began with"),
];
