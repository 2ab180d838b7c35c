//! `red`'s parameters in `tc`'s notation, and what `tc` derives from them.

use alloc::format;
use core::fmt;

use sojourn_core::param::{Flag, Maybe, Needed, Style, TcSize, number, whole};
use sojourn_core::{Bytes, Param, Params, Rate, SpecError};

use crate::built_in::BuiltIn;
use crate::notation::{Size, Speed, at_most};

sojourn_core::params! {
    /// `red` as it is written.
    pub struct Written: "red", "RED: random early detection, also adaptive, as Linux has it" {
        limit: Bytes as Needed<Size> = "", "bytes that may wait";
        min: Option<Bytes> as Maybe<Size> = "",
            "average in bytes below which nothing is signalled; by default a third of 'max'";
        max: Option<Bytes> as Maybe<Size> = "",
            "average above which all is signalled; by default three times 'min', else a quarter of \
             'limit'";
        ecn: bool as Flag = "", "mark instead of dropping";
        harddrop: bool as Flag = "", "drop above 'max' even what could be marked";
        adaptive: bool as Flag = Param::of::<Flag>(
            "adaptive", "",
            "adapt the probability, every 500 ms, to keep the average in the middle",
        ).or(&["adaptative"]);
        nodrop: bool as Flag = "", "with 'ecn': let early pass what can't be marked";
        avpkt: Bytes as Needed<TcSize> = "", at_most(u32::MAX), "bytes of an average packet";
        burst: Option<u32> as Maybe<u32> = "", whole(1, u32::MAX as i64),
            "packets of a burst that is let pass; by default (2 min + max) / (3 avpkt)";
        probability: f64 = "0.02", number(0.0, 1.0), "probability of a signal at 'max'";
        bandwidth: Rate as Speed = "10mbit", "rate by which the average decays while nothing waits";
    }
}

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

    /// What an arrival weighs in the average.
    pub fn weight(&self) -> f64 {
        1.0 / f64::from(1u32 << self.derived().wlog)
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

impl TryFrom<Written> for Config {
    type Error = SpecError;

    fn try_from(written: Written) -> Result<Self, SpecError> {
        let Written { limit, avpkt, probability, bandwidth, .. } = written;
        let Written { ecn, harddrop, nodrop, adaptive, .. } = written;
        let avpkt = avpkt.as_u64() as u32;
        let default_max = || match written.min {
            Some(min) => Bytes::new(min.as_u64().saturating_mul(3)),
            None => Bytes::new(limit.as_u64() / 4),
        };
        let max = written.max.unwrap_or_else(default_max);
        let min = written.min.unwrap_or(Bytes::new(max.as_u64() / 3));
        let burst = written.burst.unwrap_or_else(|| {
            ((2 * min.as_u64() + max.as_u64()) / (3 * u64::from(avpkt))).max(1) as u32
        });
        let config = Self {
            limit,
            min,
            max,
            avpkt,
            burst,
            probability,
            bandwidth,
            ecn,
            harddrop,
            nodrop,
            adaptive,
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

impl BuiltIn for Config {
    fn name(&self) -> &'static str {
        Written::NAME
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, min, max, avpkt, burst, probability, bandwidth, .. } = *self;
        let Self { ecn, harddrop, nodrop, adaptive, .. } = *self;
        let written = Written {
            limit,
            min: Some(min),
            max: Some(max),
            ecn,
            harddrop,
            adaptive,
            nodrop,
            avpkt: Bytes::new(avpkt.into()),
            burst: Some(burst),
            probability,
            bandwidth,
        };
        written.write(Style::Blank, f)
    }
}
