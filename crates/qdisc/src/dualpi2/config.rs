//! `dualpi2`'s parameters in `tc`'s notation, and how `tc` derives them from round-trip times.

use alloc::format;
use core::fmt;
use core::str::FromStr;

use sojourn_core::{Bytes, Param, ParamKind, Span, SpecError, Words};

use crate::DEVICE_MTU;
use crate::notation::{TcSize, flag, packets, param, read_params, size, span};
use crate::pie;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub limit: u32,
    /// `None` derives it from `limit`.
    pub memlimit: Option<Bytes>,
    pub target: Span,
    pub tupdate: Span,
    pub alpha: Gain,
    pub beta: Gain,
    pub l4s_ect: L4sEct,
    /// k: L's probability for C's square root.
    pub coupling_factor: u32,
    pub overload: Overload,
    pub step_threshold: StepThreshold,
    /// The step marks packets only that found this many before them in L.
    pub min_qlen_step: u32,
    pub drop_at: DropAt,
    pub split_gso: bool,
    pub classic_protection_percent: u32,
}

/// A gain of the controller, in 256ths per second of delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gain(pub u32);

/// Which of the capable packets go to the L queue, besides those already marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L4sEct {
    /// ECT(1) (RFC 9331).
    Ect1,
    Any,
}

/// What is done when L would have to be marked with a probability above one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// Drop from L as from C.
    Drop,
    /// Mark all, and let the queue overflow.
    Overflow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    Time(Span),
    Packets(u32),
}

/// Where the controller acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropAt {
    Enqueue,
    Dequeue,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limit: 10_000,
            memlimit: None,
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: Gain(41),
            beta: Gain(819),
            l4s_ect: L4sEct::Ect1,
            coupling_factor: 2,
            overload: Overload::Drop,
            step_threshold: StepThreshold::Time(Span::from_millis(1)),
            min_qlen_step: 0,
            drop_at: DropAt::Dequeue,
            split_gso: true,
            classic_protection_percent: 10,
        }
    }
}

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self::default();
        let mut round_trips = RoundTrips::default();
        read_params(words, "dualpi2", PARAMS, |word, words| {
            match word {
                "limit" => config.limit = packets(words, word)?,
                "memlimit" => config.memlimit = Some(size(words, word, u64::from(u32::MAX))?),
                "target" => config.target = round_trips.given(word, span(words, word, Span::ZERO)?),
                "tupdate" => {
                    let least = Span::from_micros(1);
                    config.tupdate = round_trips.given(word, span(words, word, least)?);
                }
                "alpha" => config.alpha = round_trips.given(word, words.parse(word, str::parse)?),
                "beta" => config.beta = round_trips.given(word, words.parse(word, str::parse)?),
                "max_rtt" => round_trips.max = Some(span(words, word, Span::from_micros(1))?),
                "typical_rtt" => {
                    round_trips.typical = Some(span(words, word, Span::from_micros(1))?);
                }
                "coupling_factor" => config.coupling_factor = words.count(word, 0, 255)? as u32,
                "step_thresh" => config.step_threshold = words.parse(word, str::parse)?,
                "min_qlen_step" => config.min_qlen_step = words.parse(word, packets_or_none)?,
                "classic_protection" => {
                    config.classic_protection_percent = words.parse(word, percent)?;
                }
                _ => return Ok(config.accept_flag(word)),
            }
            Ok(true)
        })?;
        round_trips.apply(&mut config)?;
        Ok(config)
    }

    fn accept_flag(&mut self, word: &str) -> bool {
        match word {
            "l4s_ect" => self.l4s_ect = L4sEct::Ect1,
            "any_ect" => self.l4s_ect = L4sEct::Any,
            "drop_on_overload" => self.overload = Overload::Drop,
            "overflow" => self.overload = Overload::Overflow,
            "drop_enqueue" => self.drop_at = DropAt::Enqueue,
            "drop_dequeue" => self.drop_at = DropAt::Dequeue,
            "split_gso" => self.split_gso = true,
            "no_split_gso" => self.split_gso = false,
            _ => return false,
        }
        true
    }

    /// Memory that may be held, as Linux charges it: two full packets for each that may wait.
    pub(super) fn memory_limit(&self) -> u64 {
        let derived = u64::from(self.limit) * u64::from(DEVICE_MTU) * 2;
        self.memlimit.map_or(derived.min(u64::from(u32::MAX)), Bytes::as_u64)
    }
}

/// `max_rtt` and `typical_rtt`, from which `tc` derives what the controller needs.
#[derive(Default)]
struct RoundTrips<'a> {
    max: Option<Span>,
    typical: Option<Span>,
    /// A parameter that would be derived but was given.
    given: Option<&'a str>,
}

/// The largest round-trip time for a typical one, where only one is given.
const MAX_TO_TYPICAL: u64 = 6;

impl<'a> RoundTrips<'a> {
    fn given<T>(&mut self, name: &'a str, value: T) -> T {
        self.given = Some(name);
        value
    }

    /// RFC 9332 appendix A.1: target the typical round-trip time,
    /// alpha = 0.1 · tupdate / max_rtt² and beta = 0.3 / max_rtt.
    fn apply(self, config: &mut Config) -> Result<(), SpecError> {
        let (max, typical) = match (self.max, self.typical) {
            (None, None) => return Ok(()),
            (Some(max), Some(typical)) => (max, typical),
            (Some(max), None) => (max, whole_micros(max / MAX_TO_TYPICAL)),
            (None, Some(typical)) => (typical * MAX_TO_TYPICAL, typical),
        };
        if let Some(name) = self.given {
            return Err(SpecError::new(format!(
                "'max_rtt' and 'typical_rtt' set target, tupdate, alpha and beta; so '{name}' has no place"
            )));
        }
        if typical > max {
            return Err(SpecError::new(format!("typical_rtt {typical} is above max_rtt {max}")));
        }
        config.target = typical;
        config.tupdate = typical.min(whole_micros(max / 3)).max(Span::from_micros(1));
        let seconds = max.as_secs_f64();
        let alpha = 0.1 * config.tupdate.as_secs_f64() / (seconds * seconds);
        let beta = 0.3 / seconds;
        config.alpha = Gain::from_hertz(alpha).map_err(|error| error.within("alpha of max_rtt"))?;
        config.beta = Gain::from_hertz(beta).map_err(|error| error.within("beta of max_rtt"))?;
        if config.alpha.0 == 0 || config.beta.0 == 0 {
            return Err(SpecError::new(format!("max_rtt {max} is so large that a gain is zero")));
        }
        Ok(())
    }
}

/// `tc` counts times in whole microseconds, one at least.
fn whole_micros(span: Span) -> Span {
    Span::from_micros(span.as_micros().max(1))
}

impl Gain {
    const UNITS: f64 = 256.0;

    /// Largest gain that `tc` takes.
    const MOST: f64 = 256.0;

    /// Rounded down to whole 256ths.
    fn from_hertz(gain: f64) -> Result<Self, SpecError> {
        if (0.0..=Self::MOST).contains(&gain) {
            // A few parts in 10^12 keep decimal fractions from falling below what they stand for.
            Ok(Self((gain * Self::UNITS * (1.0 + 4e-12)) as u32))
        } else {
            Err(SpecError::new(format!("{gain} is out of range"))
                .allow([format!("0 to {}", Self::MOST)]))
        }
    }

    /// The kernel's form: per nanosecond, in fractions of 2^32 with six bits more, of which it
    /// keeps the whole part.
    pub(super) fn scaled(self) -> u32 {
        (((u64::from(self.0) * u64::from(u32::MAX)) >> 2) / 1_000_000_000) as u32
    }

    /// What `tc` shows: the kernel's form turned back, which the roundings leave one 256th short.
    pub fn shown_by_tc(self) -> f64 {
        let units = ((u64::from(self.scaled()) * 1_000_000_000) << 2) / u64::from(u32::MAX);
        units as f64 / Self::UNITS
    }
}

impl FromStr for Gain {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let gain: f64 =
            text.parse().map_err(|_| SpecError::new(format!("'{text}' is not a number")))?;
        Self::from_hertz(gain)
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(self.0) / Self::UNITS).fmt(f)
    }
}

impl FromStr for StepThreshold {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        for unit in ["packets", "packet", "pkt", "p"] {
            if let Some(Ok(count)) = text.strip_suffix(unit).map(str::parse) {
                return Ok(Self::Packets(count));
            }
        }
        let most = Span::from_micros(u64::from(u32::MAX));
        match Span::parse_tc(text) {
            Ok(span) if span <= most => Ok(Self::Time(span)),
            _ => Err(SpecError::new(format!("'{text}' is no threshold"))
                .allow(["a time such as 1ms", "a number of packets such as 5pkt"])),
        }
    }
}

impl fmt::Display for StepThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(span) => span.fmt(f),
            Self::Packets(count) => write!(f, "{count}pkt"),
        }
    }
}

fn packets_or_none(text: &str) -> Result<u32, SpecError> {
    let count = ["packets", "packet", "pkt", "p"].iter().find_map(|unit| text.strip_suffix(unit));
    count
        .unwrap_or(text)
        .parse()
        .map_err(|_| SpecError::new(format!("'{text}' is not a number of packets")))
}

fn percent(text: &str) -> Result<u32, SpecError> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(SpecError::new(format!("'{text}' is no percentage"))
            .allow(["a whole number from 0 to 100"])),
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}p", self.limit)?;
        if let Some(memlimit) = self.memlimit {
            write!(f, " memlimit {}", TcSize(memlimit))?;
        }
        let Self { target, tupdate, alpha, beta, .. } = self;
        write!(f, " target {target} tupdate {tupdate} alpha {alpha} beta {beta}")?;
        f.write_str(match self.l4s_ect {
            L4sEct::Ect1 => " l4s_ect",
            L4sEct::Any => " any_ect",
        })?;
        write!(f, " coupling_factor {}", self.coupling_factor)?;
        f.write_str(match self.overload {
            Overload::Drop => " drop_on_overload",
            Overload::Overflow => " overflow",
        })?;
        write!(f, " step_thresh {} min_qlen_step {}p", self.step_threshold, self.min_qlen_step)?;
        f.write_str(match self.drop_at {
            DropAt::Enqueue => " drop_enqueue",
            DropAt::Dequeue => " drop_dequeue",
        })?;
        f.write_str(if self.split_gso { " split_gso" } else { " no_split_gso" })?;
        write!(f, " classic_protection {}%", self.classic_protection_percent)
    }
}

pub const PARAMS: &[Param] = &[
    param("limit", ParamKind::Count, "10000", "packets that may wait in both queues"),
    param(
        "memlimit",
        ParamKind::Size,
        "",
        "memory that may be held; by default two full packets for each of 'limit'",
    ),
    pie::TARGET,
    param("tupdate", ParamKind::Span, "16ms", "time between updates of the probability"),
    param(
        "alpha",
        ParamKind::Number,
        "0.16015625",
        "weight of the distance from target, in hertz, 0 to 256 in steps of 1/256",
    ),
    param("beta", ParamKind::Number, "3.19921875", "weight of the trend of the delay, likewise"),
    param(
        "max_rtt",
        ParamKind::Span,
        "",
        "largest round-trip time; sets target, tupdate, alpha and beta",
    ),
    param(
        "typical_rtt",
        ParamKind::Span,
        "",
        "typical round-trip time, likewise; by default a sixth of 'max_rtt'",
    ),
    flag("l4s_ect", "on", "ECT(1) goes to the L queue"),
    flag("any_ect", "", "ECT(0) goes to the L queue too"),
    param(
        "coupling_factor",
        ParamKind::Count,
        "2",
        "L's probability for the square root of C's, 0 to 255",
    ),
    flag("drop_on_overload", "on", "drop from both queues when marking all is not enough"),
    flag("overflow", "", "mark all and let the queue overflow instead"),
    param(
        "step_thresh",
        ParamKind::Choice,
        "1ms",
        "a time, or packets as in 5pkt, above which L is marked",
    ),
    param(
        "min_qlen_step",
        ParamKind::Count,
        "0",
        "the step marks packets that found as many before them in L",
    ),
    flag("drop_enqueue", "", "the controller acts on arrivals"),
    flag("drop_dequeue", "on", "the controller acts on departures"),
    flag("split_gso", "on", "cut super packets into their segments"),
    flag("no_split_gso", "", "queue super packets whole"),
    param(
        "classic_protection",
        ParamKind::Share,
        "10%",
        "share of C while both queues wait, in whole percent",
    ),
];
