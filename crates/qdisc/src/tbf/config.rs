//! `tbf`'s parameters in `tc`'s notation.

use alloc::format;
use core::fmt;
use core::str::FromStr;

use sojourn_core::{Bytes, Param, ParamKind, Rate, Span, SpecError, Words};

use super::rate::{Framing, LinkLayer};
use crate::notation::{TcRate, TcSize, param, read_params, size, span};

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
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut spec = Spec::default();
        read_params(words, "tbf", PARAMS, |word, words| {
            match word {
                "rate" => spec.rate = Some(words.parse(word, positive_rate)?),
                "burst" | "buffer" | "maxburst" => {
                    spec.burst = Some(size(words, word, BYTES_MOST)?);
                }
                "limit" => spec.limit = Some(size(words, word, BYTES_MOST)?),
                "latency" | "lat" => spec.latency = Some(span(words, word, Span::ZERO)?),
                "peakrate" => spec.peakrate = Some(words.parse(word, positive_rate)?),
                "mtu" | "minburst" => spec.mtu = Some(size(words, word, BYTES_MOST)?),
                "overhead" => spec.framing.overhead = words.count(word, 0, 65_535)? as u32,
                "mpu" => spec.framing.mpu = words.count(word, 0, 65_535)? as u32,
                "linklayer" => spec.framing.link_layer = words.parse(word, str::parse)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        spec.complete()
    }

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

/// The words in the order in which they were written.
#[derive(Default)]
struct Spec {
    rate: Option<Rate>,
    burst: Option<Bytes>,
    limit: Option<Bytes>,
    latency: Option<Span>,
    peakrate: Option<Rate>,
    mtu: Option<Bytes>,
    framing: Framing,
}

impl Spec {
    fn complete(self) -> Result<Config, SpecError> {
        let missing = |name: &str| SpecError::new(format!("tbf needs '{name}'"));
        let rate = self.rate.ok_or_else(|| missing("rate"))?;
        let burst = self.burst.ok_or_else(|| missing("burst"))?;
        let peak = match (self.peakrate, self.mtu) {
            (Some(peakrate), Some(mtu)) if peakrate > rate => Some(Peak { rate: peakrate, mtu }),
            (Some(peakrate), Some(_)) => {
                return Err(SpecError::new(format!(
                    "tbf's peakrate {} is not above its rate {}",
                    TcRate(peakrate),
                    TcRate(rate)
                )));
            }
            (Some(_), None) => return Err(SpecError::new("tbf's 'peakrate' needs 'mtu'")),
            (None, Some(_)) => return Err(SpecError::new("tbf's 'mtu' needs 'peakrate'")),
            (None, None) => None,
        };
        let limit = match (self.limit, self.latency) {
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
        Ok(Config { rate, burst, limit, peak, framing: self.framing })
    }
}

fn positive_rate(text: &str) -> Result<Rate, SpecError> {
    let rate = Rate::parse_tc(text)?;
    if rate.as_bytes_per_sec() == 0 {
        return Err(
            SpecError::new(format!("'{text}' is no rate to shape to")).allow(["8bit or more"])
        );
    }
    Ok(rate)
}

impl FromStr for LinkLayer {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text {
            "ethernet" => Ok(Self::Ethernet),
            "atm" | "adsl" => Ok(Self::Atm),
            _ => Err(SpecError::new(format!("unknown link layer '{text}'"))
                .near(text, ["ethernet", "atm", "adsl"])
                .allow(["ethernet", "atm", "adsl"])),
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate {} burst {}", TcRate(self.rate), TcSize(self.burst))?;
        if let Some(peak) = &self.peak {
            write!(f, " peakrate {} mtu {}", TcRate(peak.rate), TcSize(peak.mtu))?;
        }
        match self.latency() {
            Some(latency) => write!(f, " lat {latency}")?,
            None => write!(f, " limit {}", TcSize(self.limit))?,
        }
        let Framing { overhead, mpu, link_layer } = self.framing;
        if overhead > 0 {
            write!(f, " overhead {overhead}")?;
        }
        if mpu > 0 {
            write!(f, " mpu {mpu}")?;
        }
        match link_layer {
            LinkLayer::Ethernet => Ok(()),
            LinkLayer::Atm => f.write_str(" linklayer atm"),
        }
    }
}

pub const PARAMS: &[Param] = &[
    param("rate", ParamKind::Rate, "", "rate that is kept over time; must be given"),
    param(
        "burst",
        ParamKind::Size,
        "",
        "bytes that may pass at once, at least a packet's; must be given",
    ),
    param("buffer", ParamKind::Size, "", "another word for 'burst'"),
    param("maxburst", ParamKind::Size, "", "another word for 'burst'"),
    param("limit", ParamKind::Size, "", "bytes that may wait; this or 'latency' must be given"),
    param("latency", ParamKind::Span, "", "time for which a packet may wait, in place of 'limit'"),
    param("lat", ParamKind::Span, "", "the same, as tc prints it"),
    param("peakrate", ParamKind::Rate, "", "rate that a burst does not exceed; needs 'mtu'"),
    param(
        "mtu",
        ParamKind::Size,
        "",
        "bytes that may pass at once even at 'peakrate', at least a packet's",
    ),
    param("minburst", ParamKind::Size, "", "another word for 'mtu'"),
    param("overhead", ParamKind::Count, "0", "bytes that the link adds to a packet"),
    param("mpu", ParamKind::Count, "0", "smallest length on the link, overhead included"),
    param("linklayer", ParamKind::Choice, "ethernet", "ethernet, or atm (adsl): 48 bytes take 53"),
];
