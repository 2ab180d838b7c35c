//! `tbf`'s parameters in `tc`'s notation.

use alloc::format;
use core::fmt;

use sojourn_core::param::{Bounds, Maybe, Needed, Style, whole};
use sojourn_core::{Bytes, Param, Params, Rate, Span, SpecError};

use super::rate::{Framing, LinkLayer};
use crate::built_in::BuiltIn;
use crate::notation::{Lapse, ShownRate, Size, Speed, at_least};

sojourn_core::params! {
    /// `tbf` as it is written.
    pub struct Written: "tbf", "TBF: token bucket shaper over a FIFO, as Linux has it" {
        rate: Rate as Needed<Speed> = "", BYTE, "rate that is kept over time";
        burst: Bytes as Needed<Size> = Param::of::<Needed<Size>>(
            "burst", "", "bytes that may pass at once, at least a packet's",
        ).or(&["buffer", "maxburst"]);
        peakrate: Option<Rate> as Maybe<Speed> = "", BYTE,
            "rate that a burst does not exceed; needs 'mtu'";
        mtu: Option<Bytes> as Maybe<Size> = Param::of::<Size>(
            "mtu", "", "bytes that may pass at once even at 'peakrate', at least a packet's",
        ).or(&["minburst"]);
        lat: Option<Span> as Maybe<Lapse> = Param::of::<Lapse>(
            "lat", "", "time for which a packet may wait; this or 'limit' must be given",
        ).or(&["latency"]);
        limit: Option<Bytes> as Maybe<Size> = "", "bytes that may wait, in place of 'lat'";
        overhead: u32 = LENGTH.named("overhead").saying("bytes that the link adds to a packet");
        mpu: u32 = LENGTH.named("mpu").saying("smallest length on the link, overhead included");
        linklayer: LinkLayer = Param::of::<LinkLayer>(
            "linklayer", "ethernet", "ethernet, or atm (adsl): 48 bytes take 53",
        ).quiet();
    }
}

/// What a byte a second takes.
const BYTE: Bounds = at_least(Rate::from_bps(8));
const LENGTH: Param = Param::of::<u32>("", "0", "").within(whole(0, 65_535)).quiet();

sojourn_core::choice!(LinkLayer {
    "ethernet" = LinkLayer::Ethernet,
    "atm" = LinkLayer::Atm,
    "adsl" = LinkLayer::Atm,
});

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub rate: Rate,
    /// Bytes that may pass at once.
    pub burst: Bytes,
    /// Bytes that may wait.
    pub limit: Bytes,
    pub peak: Option<Peak>,
    pub framing: Framing,
}

/// A bound on the rate of a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    pub rate: Rate,
    /// Bytes that may pass at once at any rate; the longest packet.
    pub mtu: Bytes,
}

const BYTES_MOST: u64 = u32::MAX as u64;

impl Config {
    /// The bucket in bytes on the link, framing included, which is what `tc` shows as the burst.
    pub fn burst_shown_by_tc(&self) -> Bytes {
        Bytes::new(self.framing.length(self.burst.as_u64() as u32))
    }

    /// `latency` that stands for the same limit, if there is one.
    fn latency(&self) -> Option<Span> {
        let waiting = self.limit.as_u64().checked_sub(self.burst.as_u64())?;
        let micros = u128::from(waiting) * 1_000_000;
        let micros = micros.div_ceil(u128::from(self.rate.as_bytes_per_sec()));
        let latency = Span::from_micros(u32::try_from(micros).ok()?.into());
        let is_exact = limit_of(latency, self.rate, self.burst) == Some(self.limit);
        (is_exact && self.peak.is_none()).then_some(latency)
    }
}

/// Bytes that wait for `latency`, and the burst.
fn limit_of(latency: Span, rate: Rate, burst: Bytes) -> Option<Bytes> {
    let bytes = u128::from(rate.as_bytes_per_sec()) * u128::from(latency.as_micros()) / 1_000_000;
    let limit = bytes + u128::from(burst.as_u64());
    u32::try_from(limit).ok().filter(|limit| *limit > 0).map(|limit| Bytes::new(limit.into()))
}

impl TryFrom<Written> for Config {
    type Error = SpecError;

    fn try_from(written: Written) -> Result<Self, SpecError> {
        let Written { rate, burst, peakrate, mtu, lat, limit, .. } = written;
        let Written { overhead, mpu, linklayer, .. } = written;
        let framing = Framing { overhead, mpu, link_layer: linklayer };
        let peak = match (peakrate, mtu) {
            (Some(peakrate), Some(mtu)) if peakrate > rate => Some(Peak { rate: peakrate, mtu }),
            (Some(peakrate), Some(_)) => {
                return Err(SpecError::new(format!(
                    "tbf's peakrate {} is not above its rate {}",
                    ShownRate(peakrate),
                    ShownRate(rate)
                ))
                .allow(["a peakrate above the rate"]));
            }
            (Some(_), None) => {
                return Err(SpecError::new("tbf's 'peakrate' needs 'mtu'")
                    .allow(["peakrate RATE mtu BYTES"]));
            }
            (None, Some(_)) => {
                return Err(SpecError::new("tbf's 'mtu' needs 'peakrate'")
                    .allow(["peakrate RATE mtu BYTES"]));
            }
            (None, None) => None,
        };
        let limit = match (limit, lat) {
            (Some(limit), None) => limit,
            (None, Some(latency)) => {
                let limits = [(rate, burst)]
                    .into_iter()
                    .chain(peak.as_ref().map(|peak| (peak.rate, peak.mtu)))
                    .map(|(rate, burst)| limit_of(latency, rate, burst));
                let too_long = || {
                    SpecError::new(format!("tbf's latency {latency} makes the queue too long"))
                        .allow([format!("up to {BYTES_MOST} bytes at the rate given")])
                };
                limits.flatten().min().ok_or_else(too_long)?
            }
            (Some(_), Some(_)) => {
                return Err(SpecError::new("tbf takes 'limit' or 'latency', not both"));
            }
            (None, None) => return Err(SpecError::new("tbf needs 'limit' or 'latency'")),
        };
        Ok(Self { rate, burst, limit, peak, framing })
    }
}

impl BuiltIn for Config {
    fn name(&self) -> &'static str {
        Written::NAME
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Framing { overhead, mpu, link_layer } = self.framing;
        let lat = self.latency();
        let written = Written {
            rate: self.rate,
            burst: self.burst,
            peakrate: self.peak.as_ref().map(|peak| peak.rate),
            mtu: self.peak.as_ref().map(|peak| peak.mtu),
            lat,
            limit: lat.is_none().then_some(self.limit),
            overhead,
            mpu,
            linklayer: link_layer,
        };
        written.write(Style::Blank, f)
    }

    fn shaped_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}
