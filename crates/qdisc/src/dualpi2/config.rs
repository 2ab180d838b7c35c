//! `dualpi2`'s parameters in `tc`'s notation, and how `tc` derives them from round-trip times.

use alloc::format;
use core::fmt::{self, Display};

use sojourn_core::param::{Bounds, Form, Maybe, Style, number, whole};
use sojourn_core::{Bytes, Param, ParamKind, Params, Span, SpecError};

use crate::DEVICE_MTU;
use crate::built_in::BuiltIn;
use crate::notation::{Lapse, Packets, Percent, SOME, Size};
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
    /// k: L's probability divided by the square root of C's.
    pub coupling_factor: u32,
    pub overload: Overload,
    pub step_threshold: StepThreshold,
    /// The step marks only packets that found at least this many before them in L.
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

sojourn_core::params! {
    /// `dualpi2` as it is written.
    pub struct Written:
        "dualpi2", "DualPI2 (RFC 9332): the coupled dual queue for L4S, as Linux has it"
    {
        limit: u32 as Packets = "10000", "packets that may wait in both queues";
        memlimit: Option<Bytes> as Maybe<Size> = "",
            "memory that may be held; by default two full packets for each of 'limit'";
        target: Option<Span> as Maybe<Lapse> = pie::TARGET;
        tupdate: Option<Span> as Maybe<Lapse> = TUPDATE;
        alpha: Option<Gain> as Maybe<Gain> = ALPHA;
        beta: Option<Gain> as Maybe<Gain> = BETA;
        max_rtt: Option<Span> as Maybe<Lapse> = "", SOME,
            "largest round-trip time; sets target, tupdate, alpha and beta";
        typical_rtt: Option<Span> as Maybe<Lapse> = "", SOME,
            "typical round-trip time, likewise; by default a sixth of 'max_rtt'";
        l4s_ect: L4sEct as L4sEctWord = "l4s_ect", "";
        coupling_factor: u32 = "2", whole(0, 255), "k: L's probability divided by the square root of C's";
        overload: Overload as OverloadWord = "drop_on_overload", "";
        step_thresh: StepThreshold = "1ms", "a time, or packets as in 5pkt, above which L is marked";
        min_qlen_step: u32 as Before = "0",
            "the step marks only packets that found at least this many before them in L";
        drop_at: DropAt as DropAtWord = "drop_dequeue", "";
        split_gso: bool as SplitGso = "split_gso", "";
        classic_protection: u32 as Percent = "10%",
            "share of C while both queues wait, in whole percent";
    }
}

const TUPDATE: Param = pie::TUPDATE.by_default("16ms");
const ALPHA: Param = Param::of::<Gain>(
    "alpha",
    "0.16015625",
    "weight of the distance from target, in hertz, in steps of 1/256",
);
const BETA: Param =
    Param::of::<Gain>("beta", "3.19921875", "weight of the trend of the delay, likewise");

sojourn_core::keywords! {
    L4sEctWord for L4sEct {
        "l4s_ect" = L4sEct::Ect1, "ECT(1) goes to the L queue";
        "any_ect" = L4sEct::Any, "ECT(0) goes to the L queue too";
    }
}

sojourn_core::keywords! {
    OverloadWord for Overload {
        "drop_on_overload" = Overload::Drop, "drop from both queues when marking all is not enough";
        "overflow" = Overload::Overflow, "mark all and let the queue overflow instead";
    }
}

sojourn_core::keywords! {
    DropAtWord for DropAt {
        "drop_enqueue" = DropAt::Enqueue, "the controller acts on arrivals";
        "drop_dequeue" = DropAt::Dequeue, "the controller acts on departures";
    }
}

sojourn_core::keywords! {
    SplitGso for bool {
        "split_gso" = true, "cut super packets into their segments";
        "no_split_gso" = false, "queue super packets whole";
    }
}

impl TryFrom<Written> for Config {
    type Error = SpecError;

    fn try_from(written: Written) -> Result<Self, SpecError> {
        let (target, tupdate, alpha, beta) = controller(&written)?;
        Ok(Self {
            limit: written.limit,
            memlimit: written.memlimit,
            target,
            tupdate,
            alpha,
            beta,
            l4s_ect: written.l4s_ect,
            coupling_factor: written.coupling_factor,
            overload: written.overload,
            step_threshold: written.step_thresh,
            min_qlen_step: written.min_qlen_step,
            drop_at: written.drop_at,
            split_gso: written.split_gso,
            classic_protection_percent: written.classic_protection,
        })
    }
}

impl BuiltIn for Config {
    fn name(&self) -> &'static str {
        Written::NAME
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = Written {
            limit: self.limit,
            memlimit: self.memlimit,
            target: Some(self.target),
            tupdate: Some(self.tupdate),
            alpha: Some(self.alpha),
            beta: Some(self.beta),
            max_rtt: None,
            typical_rtt: None,
            l4s_ect: self.l4s_ect,
            coupling_factor: self.coupling_factor,
            overload: self.overload,
            step_thresh: self.step_threshold,
            min_qlen_step: self.min_qlen_step,
            drop_at: self.drop_at,
            split_gso: self.split_gso,
            classic_protection: self.classic_protection_percent,
        };
        written.write(Style::Blank, f)
    }
}

impl Config {
    /// Memory that may be held, as Linux charges it: two full packets for each that may wait.
    pub(super) fn memory_limit(&self) -> u64 {
        let derived = u64::from(self.limit) * u64::from(DEVICE_MTU) * 2;
        self.memlimit.map_or(derived.min(u64::from(u32::MAX)), Bytes::as_u64)
    }
}

/// The largest round-trip time for a typical one, where only one is given.
const MAX_TO_TYPICAL: u64 = 6;

/// Target, tupdate, alpha and beta, as given or as `tc` derives them from round-trip times (RFC 9332
/// appendix A.1): target the typical round-trip time, alpha = 0.1 · tupdate / max_rtt² and
/// beta = 0.3 / max_rtt.
fn controller(written: &Written) -> Result<(Span, Span, Gain, Gain), SpecError> {
    let Written { target, tupdate, alpha, beta, max_rtt, typical_rtt, .. } = *written;
    let (max, typical) = match (max_rtt, typical_rtt) {
        (None, None) => {
            return Ok((
                target.unwrap_or_else(|| Lapse::by_default(&pie::TARGET)),
                tupdate.unwrap_or_else(|| Lapse::by_default(&TUPDATE)),
                alpha.unwrap_or_else(|| Gain::by_default(&ALPHA)),
                beta.unwrap_or_else(|| Gain::by_default(&BETA)),
            ));
        }
        (Some(max), Some(typical)) => (max, typical),
        (Some(max), None) => (max, whole_micros(max / MAX_TO_TYPICAL)),
        (None, Some(typical)) => (typical * MAX_TO_TYPICAL, typical),
    };
    let given = [
        ("target", target.is_some()),
        ("tupdate", tupdate.is_some()),
        ("alpha", alpha.is_some()),
        ("beta", beta.is_some()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(SpecError::new(format!(
            "'max_rtt' and 'typical_rtt' set target, tupdate, alpha and beta; so '{name}' has no place"
        )));
    }
    if typical > max {
        return Err(SpecError::new(format!("typical_rtt {typical} is above max_rtt {max}")));
    }
    let tupdate = typical.min(whole_micros(max / 3)).max(Span::from_micros(1));
    let seconds = max.as_secs_f64();
    let alpha = 0.1 * tupdate.as_secs_f64() / (seconds * seconds);
    let beta = 0.3 / seconds;
    let alpha = Gain::from_hertz(alpha).map_err(|error| error.within("alpha of max_rtt"))?;
    let beta = Gain::from_hertz(beta).map_err(|error| error.within("beta of max_rtt"))?;
    if alpha.0 == 0 || beta.0 == 0 {
        return Err(SpecError::new(format!("max_rtt {max} is so large that a gain is zero")));
    }
    Ok((typical, tupdate, alpha, beta))
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

impl Form for Gain {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Number;
    const BOUNDS: Bounds = number(0.0, Self::MOST);

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        Self::from_hertz(f64::read(text, param)?).map_err(|error| error.within(param.name))
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(value.0) / Self::UNITS).fmt(f)
    }
}

/// `packets`, or one of its shorter forms.
fn counted(text: &str) -> Option<&str> {
    ["packets", "packet", "pkt", "p"].iter().find_map(|unit| text.strip_suffix(unit))
}

impl Form for StepThreshold {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;
    const EXAMPLES: &'static [&'static str] = &["1ms", "5pkt"];

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        if let Some(Ok(count)) = counted(text).map(str::parse) {
            return Ok(Self::Packets(count));
        }
        Span::parse_tc(text)
            .and_then(|span| Lapse::check(&span, &param.within(Lapse::BOUNDS)).map(|()| span))
            .map(Self::Time)
            .map_err(|_| {
                SpecError::new(format!("'{}' is '{text}'", param.name))
                    .allow(["a time such as 1ms", "a number of packets such as 5pkt"])
            })
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match value {
            Self::Time(span) => span.fmt(f),
            Self::Packets(count) => write!(f, "{count}pkt"),
        }
    }
}

/// A number of packets that may be zero.
#[derive(Clone, Copy, Debug)]
struct Before;

impl Form for Before {
    type Value = u32;
    const KIND: ParamKind = ParamKind::Count;
    const BOUNDS: Bounds = whole(0, u32::MAX as i64);

    fn read(text: &str, param: &Param) -> Result<u32, SpecError> {
        u32::read(counted(text).unwrap_or(text), param)
    }

    fn show(value: &u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{value}p")
    }
}
