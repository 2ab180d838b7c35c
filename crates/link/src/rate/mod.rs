//! The rate of a link as users write it: `10Mbps`, `htb rate 10mbit burst 1600`,
//! `trace mobility.csv playback witest-2020`, `mahimahi att-lte.up`, `blockage mobility-and-blockages`.

use std::fmt;
use std::sync::Arc;

use sojourn_core::{Bytes, Param, ParamKind, Rate, Span, SpecError, Stream, Words, words};

use crate::blockage::{self, Blockage};
use crate::trace::{MAX_RATE, WITEST_STEP_OVERHEAD};
use crate::{
    Fixed, Model, OnEnd, Opportunities, OpportunitySize, Playback, Schedule, TokenBucket, Trace,
    TraceDriven, Transmitter,
};

#[cfg(test)]
mod tests;

/// What a user wrote. A trace is only named: [`RateSpec::complete`] wants its text.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    Unlimited,
    Fixed { rate: Rate, overhead: i32 },
    Htb { rate: Rate, burst: Bytes, cburst: Bytes, overhead: u32 },
    Trace { path: String, playback: Playback, on_end: OnEnd, overhead: i32 },
    Mahimahi { path: String, size: OpportunitySize },
    Blockage { process: Blockage, on_end: OnEnd, overhead: i32 },
}

const OVERHEAD: Param = Param {
    name: "overhead",
    kind: ParamKind::Count,
    default: "0",
    doc: "Bytes added to each wire packet (IP and 14), -64 to 256",
};

const END: Param = Param {
    name: "end",
    kind: ParamKind::Choice,
    default: "wrap",
    doc: "What follows the end: 'wrap' begins again, 'hold' keeps the last rate",
};

const FIXED_PARAMS: &[Param] = &[OVERHEAD];

const HTB_PARAMS: &[Param] = &[
    Param { name: "rate", kind: ParamKind::Rate, default: "", doc: "Rate of the class" },
    Param {
        name: "ceil",
        kind: ParamKind::Rate,
        default: "rate",
        doc: "Must equal the rate: a single class has nobody to borrow from",
    },
    Param {
        name: "burst",
        kind: ParamKind::Size,
        default: "1600",
        doc: "Bytes that leave at once after idleness; tc derives rate/HZ + 1600 with HZ = 10^9",
    },
    Param {
        name: "cburst",
        kind: ParamKind::Size,
        default: "1600",
        doc: "The same at the ceil; the smaller of both counts, so raise both",
    },
    Param {
        name: "overhead",
        kind: ParamKind::Count,
        default: "0",
        doc: "Bytes added to each packet of the queue, 0 to 65535",
    },
];

const TRACE_PARAMS: &[Param] = &[
    Param {
        name: "playback",
        kind: ParamKind::Choice,
        default: "nominal",
        doc: "'nominal', or 'witest-2020' as that testbed's script played it",
    },
    Param {
        name: "step_overhead",
        kind: ParamKind::Span,
        default: "16ms",
        doc: "With witest-2020: added to every step",
    },
    Param { doc: "As for blockage; 'hold' is the default of witest-2020", ..END },
    OVERHEAD,
];

const MAHIMAHI_PARAMS: &[Param] = &[Param {
    name: "opportunity",
    kind: ParamKind::Choice,
    default: "1504",
    doc: "Bytes of an opportunity: 1504 counts a TUN header as mm-link does, 1500 IP alone",
}];

const BLOCKAGE_PARAMS: &[Param] = &[
    Param {
        name: "duration",
        kind: ParamKind::Span,
        default: "120s",
        doc: "Length of the trace that is drawn",
    },
    Param {
        name: "nooutages",
        kind: ParamKind::Flag,
        default: "",
        doc: "The lowest capacity is 385 Mbit/s, not zero",
    },
    END,
    OVERHEAD,
];

/// The names by which [`RateSpec::parse`] knows them.
pub(crate) const MODELS: &[Model] = &[
    Model {
        name: "fixed",
        doc: "A rate such as 10Mbps or 10mbit, alone or after this word",
        params: FIXED_PARAMS,
    },
    Model { name: "unlimited", doc: "No serialisation delay", params: &[] },
    Model { name: "htb", doc: "A single class of Linux's htb", params: HTB_PARAMS },
    Model {
        name: "trace",
        doc: "A file of rate_mbps,interval_s lines: trace FILE",
        params: TRACE_PARAMS,
    },
    Model {
        name: "mahimahi",
        doc: "A file of delivery opportunities in milliseconds: mahimahi FILE",
        params: MAHIMAHI_PARAMS,
    },
    Model {
        name: "blockage",
        doc: "A synthetic 60 GHz link (802.11ad): static, short-blockages, long-blockages, \
              mobility-and-blockages",
        params: BLOCKAGE_PARAMS,
    },
];

impl RateSpec {
    /// Reads a rate as users write it. A path with blanks stands in double quotes.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut words = Words::new(rest);
        match name {
            "" => Err(SpecError::new("no rate is given").allow(forms())),
            "unlimited" => match words.next() {
                None => Ok(Self::Unlimited),
                Some(surplus) => Err(words::unknown_param("unlimited", surplus, &[])),
            },
            "fixed" => {
                let rate = words.parse("fixed", positive_rate)?;
                parse_fixed(rate, &mut words)
            }
            "htb" => parse_htb(&mut words),
            "trace" => parse_trace(rest),
            "mahimahi" => parse_mahimahi(rest),
            "blockage" => parse_blockage(&mut words),
            _ if name.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                // The unit may stand apart: '10 Mbps'.
                let (rate, mut words) = match positive_rate(name) {
                    Ok(rate) => (rate, words),
                    Err(error) => {
                        let unit = words.next().ok_or_else(|| error.clone())?;
                        let joined = positive_rate(&format!("{name}{unit}"));
                        (joined.map_err(|_| error)?, words)
                    }
                };
                parse_fixed(rate, &mut words)
            }
            _ => Err(SpecError::new(format!("unknown rate '{name}'"))
                .near(name, MODELS.iter().map(|model| model.name))
                .allow(forms())),
        }
    }

    /// The file that [`RateSpec::complete`] needs the text of.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Trace { path, .. } | Self::Mahimahi { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Checks and completes it; `text` is what the file of [`RateSpec::path`] holds.
    ///
    /// # Errors
    /// The text is missing, or is no trace of this kind; names the file and its line.
    pub fn complete(&self, text: Option<&str>) -> Result<RateConfig, SpecError> {
        self.complete_with(text).map_err(|error| match self.path() {
            Some(path) => error.within(path),
            None => error,
        })
    }

    fn complete_with(&self, text: Option<&str>) -> Result<RateConfig, SpecError> {
        let content = || text.ok_or_else(|| SpecError::new("the trace has not been read"));
        Ok(match self {
            Self::Unlimited => RateConfig::Unlimited,
            Self::Fixed { rate, overhead } => {
                RateConfig::Fixed { rate: *rate, overhead: *overhead }
            }
            Self::Htb { rate, burst, cburst, overhead } => RateConfig::Htb {
                rate: *rate,
                // Both buckets fill at one rate and pay the same, so the smaller one decides.
                burst: *burst.min(cburst),
                overhead: *overhead,
            },
            Self::Trace { playback, on_end, overhead, .. } => RateConfig::Trace {
                trace: Arc::new(playback.apply(&Trace::parse(content()?)?)?),
                on_end: *on_end,
                overhead: *overhead,
            },
            Self::Mahimahi { size, .. } => RateConfig::Mahimahi {
                schedule: Arc::new(Schedule::parse(content()?)?),
                size: *size,
            },
            Self::Blockage { process, on_end, overhead } => {
                RateConfig::Blockage { process: *process, on_end: *on_end, overhead: *overhead }
            }
        })
    }
}

fn forms() -> impl Iterator<Item = &'static str> {
    ["10Mbps"].into_iter().chain(MODELS.iter().map(|model| model.name))
}

fn positive_rate(text: &str) -> Result<Rate, SpecError> {
    // Both notations of bits are read; the bytes of tc's `bps` are nobody's first guess here.
    in_range(text, text.parse()?)
}

fn in_range(text: &str, rate: Rate) -> Result<Rate, SpecError> {
    if rate == Rate::ZERO || (rate > MAX_RATE && !rate.is_unlimited()) {
        return Err(SpecError::new(format!("rate '{text}' is out of range"))
            .allow([format!("a rate above 0 and up to {MAX_RATE}")]));
    }
    Ok(rate)
}

fn parse_fixed(rate: Rate, words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let mut overhead = 0;
    while let Some(word) = words.next() {
        match word {
            "overhead" => overhead = parse_overhead(words)?,
            _ => return Err(words::unknown_param("a fixed rate", word, FIXED_PARAMS)),
        }
    }
    // 'unlimited' after 'fixed' is no rate that could be serialised at.
    if rate.is_unlimited() {
        return Ok(RateSpec::Unlimited);
    }
    Ok(RateSpec::Fixed { rate, overhead })
}

fn parse_overhead(words: &mut Words<'_>) -> Result<i32, SpecError> {
    words.parse("overhead", |text| match text.parse() {
        Ok(overhead) if (-64..=256).contains(&overhead) => Ok(overhead),
        _ => Err(SpecError::new(format!("'{text}' is out of range"))
            .allow(["a whole number from -64 to 256"])),
    })
}

fn parse_htb(words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let tc_rate = |text: &str| in_range(text, Rate::parse_tc(text)?);
    let (mut rate, mut ceil, mut burst, mut cburst, mut overhead) = (None, None, None, None, 0);
    while let Some(word) = words.next() {
        match word {
            "rate" => rate = Some(words.parse("rate", tc_rate)?),
            "ceil" => ceil = Some(words.parse("ceil", tc_rate)?),
            "burst" | "buffer" | "maxburst" => burst = Some(words.parse("burst", parse_burst)?),
            "cburst" | "cbuffer" | "cmaxburst" => {
                cburst = Some(words.parse("cburst", parse_burst)?);
            }
            "overhead" => overhead = words.count("overhead", 0, 65_535)? as u32,
            _ => return Err(words::unknown_param("htb", word, HTB_PARAMS)),
        }
    }
    let rate = rate.ok_or_else(|| SpecError::new("htb needs a rate").allow(["htb rate 10mbit"]))?;
    if let Some(ceil) = ceil.filter(|ceil| *ceil != rate) {
        return Err(SpecError::new(format!("htb: ceil {ceil} differs from rate {rate}"))
            .allow([format!("ceil {rate}: a single class has nobody to borrow from")]));
    }
    let derived = TokenBucket::default_burst(rate);
    Ok(RateSpec::Htb {
        rate,
        burst: burst.unwrap_or(derived),
        cburst: cburst.unwrap_or(derived),
        overhead,
    })
}

fn parse_burst(text: &str) -> Result<Bytes, SpecError> {
    const MOST: Bytes = Bytes::new(u32::MAX as u64);
    match Bytes::parse_tc(text)? {
        burst if burst <= MOST => Ok(burst),
        _ => Err(SpecError::new(format!("'{text}' is too large")).allow(["a size below 4g"])),
    }
}

fn parse_trace(rest: &str) -> Result<RateSpec, SpecError> {
    let (path, rest) = split_path("trace", rest)?;
    let mut words = Words::new(rest);
    let (mut witest, mut step_overhead, mut on_end, mut overhead) = (false, None, None, 0);
    while let Some(word) = words.next() {
        match word {
            "playback" => {
                witest = words.parse("playback", |text| match text {
                    "nominal" => Ok(false),
                    "witest-2020" => Ok(true),
                    _ => Err(unknown_choice(text, &["nominal", "witest-2020"])),
                })?;
            }
            "step_overhead" => {
                step_overhead = Some(words.parse("step_overhead", |text| {
                    let span: Span = text.parse()?;
                    if span > Span::from_secs(10) {
                        return Err(SpecError::new(format!("'{text}' is too large"))
                            .allow(["a time from 0 to 10s"]));
                    }
                    Ok(span)
                })?);
            }
            "end" => on_end = Some(words.parse("end", parse_end)?),
            "overhead" => overhead = parse_overhead(&mut words)?,
            _ => return Err(words::unknown_param("trace", word, TRACE_PARAMS)),
        }
    }
    let playback = match (witest, step_overhead) {
        (true, span) => {
            Playback::Witest2020 { step_overhead: span.unwrap_or(WITEST_STEP_OVERHEAD) }
        }
        (false, None) => Playback::Nominal,
        (false, Some(_)) => {
            return Err(SpecError::new("trace: 'step_overhead' belongs to playback witest-2020"));
        }
    };
    let on_end = on_end.unwrap_or(if witest { OnEnd::Hold } else { OnEnd::Wrap });
    Ok(RateSpec::Trace { path, playback, on_end, overhead })
}

fn parse_mahimahi(rest: &str) -> Result<RateSpec, SpecError> {
    let (path, rest) = split_path("mahimahi", rest)?;
    let mut words = Words::new(rest);
    let mut size = OpportunitySize::default();
    while let Some(word) = words.next() {
        match word {
            "opportunity" => {
                size = words.parse("opportunity", |text| match text {
                    "1500" => Ok(OpportunitySize::Ip1500),
                    "1504" => Ok(OpportunitySize::Tun1504),
                    _ => Err(unknown_choice(text, &["1500", "1504"])),
                })?;
            }
            _ => return Err(words::unknown_param("mahimahi", word, MAHIMAHI_PARAMS)),
        }
    }
    Ok(RateSpec::Mahimahi { path, size })
}

fn parse_blockage(words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let preset = words.parse("blockage", blockage::Preset::parse)?;
    let mut process = Blockage::new(preset);
    let (mut on_end, mut overhead) = (OnEnd::default(), 0);
    while let Some(word) = words.next() {
        match word {
            "duration" => {
                process = words.parse("duration", |text| process.lasting(text.parse()?))?;
            }
            "nooutages" => process = process.without_outages(),
            "end" => on_end = words.parse("end", parse_end)?,
            "overhead" => overhead = parse_overhead(words)?,
            _ => return Err(words::unknown_param("blockage", word, BLOCKAGE_PARAMS)),
        }
    }
    Ok(RateSpec::Blockage { process, on_end, overhead })
}

fn parse_end(text: &str) -> Result<OnEnd, SpecError> {
    match text {
        "wrap" => Ok(OnEnd::Wrap),
        "hold" => Ok(OnEnd::Hold),
        _ => Err(unknown_choice(text, &["wrap", "hold"])),
    }
}

fn unknown_choice(text: &str, choices: &[&'static str]) -> SpecError {
    SpecError::new(format!("unknown '{text}'"))
        .near(text, choices.iter().copied())
        .allow(choices.iter().copied())
}

/// Cuts a path from the text after `name`: up to a blank, or between double quotes.
fn split_path<'a>(name: &str, rest: &'a str) -> Result<(String, &'a str), SpecError> {
    let rest = rest.trim_start();
    let (path, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or_else(|| {
            SpecError::new(format!("{name}: the quotation mark before the path is not closed"))
        })?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    if path.is_empty() {
        return Err(SpecError::new(format!("'{name}' needs the path of a file")));
    }
    if path.contains('"') {
        return Err(SpecError::new(format!("{name}: a path may not hold a quotation mark")));
    }
    Ok((path.to_owned(), rest))
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Fixed { rate, overhead } => write!(f, "{rate}{}", Overhead(*overhead)),
            Self::Htb { rate, burst, cburst, overhead } => {
                let (burst, cburst) = (burst.as_u64(), cburst.as_u64());
                write!(f, "htb rate {rate} burst {burst} cburst {cburst} overhead {overhead}")
            }
            Self::Trace { path, playback, on_end, overhead } => write!(
                f,
                "trace {} playback {playback} end {on_end}{}",
                Quoted(path),
                Overhead(*overhead)
            ),
            Self::Mahimahi { path, size } => {
                write!(f, "mahimahi {} opportunity {}", Quoted(path), size.bytes())
            }
            Self::Blockage { process, on_end, overhead } => {
                write!(f, "blockage {process} end {on_end}{}", Overhead(*overhead))
            }
        }
    }
}

impl fmt::Display for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrap => "wrap",
            Self::Hold => "hold",
        })
    }
}

struct Overhead(i32);

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            overhead => write!(f, " overhead {overhead}"),
        }
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(char::is_whitespace) {
            write!(f, "\"{}\"", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}

/// A rate, checked and complete; traces are shared by the runs that use them.
#[derive(Clone, Debug, PartialEq)]
pub enum RateConfig {
    Unlimited,
    Fixed { rate: Rate, overhead: i32 },
    Htb { rate: Rate, burst: Bytes, overhead: u32 },
    Trace { trace: Arc<Trace>, on_end: OnEnd, overhead: i32 },
    Mahimahi { schedule: Arc<Schedule>, size: OpportunitySize },
    Blockage { process: Blockage, on_end: OnEnd, overhead: i32 },
}

impl RateConfig {
    /// A fixed rate in bits of the wire packet (IP and 14 bytes).
    ///
    /// # Errors
    /// The rate is zero or above 10 Tbit/s.
    pub fn fixed(rate: Rate) -> Result<Self, SpecError> {
        let rate = in_range(&rate.to_string(), rate)?;
        Ok(if rate.is_unlimited() { Self::Unlimited } else { Self::Fixed { rate, overhead: 0 } })
    }

    /// The transmitter of one run. `random` is only drawn from by a blockage process.
    pub fn build(&self, random: &mut Stream) -> Transmitter {
        match self {
            Self::Unlimited => Transmitter::Unlimited,
            Self::Fixed { rate, overhead } => Transmitter::Fixed(Fixed::new(*rate, *overhead)),
            Self::Htb { rate, burst, overhead } => {
                Transmitter::TokenBucket(TokenBucket::new(*rate, *burst, *overhead))
            }
            Self::Trace { trace, on_end, overhead } => {
                Transmitter::Trace(TraceDriven::new(Arc::clone(trace), *on_end, *overhead))
            }
            Self::Mahimahi { schedule, size } => {
                Transmitter::Opportunities(Opportunities::new(Arc::clone(schedule), *size))
            }
            Self::Blockage { process, on_end, overhead } => {
                let trace = Arc::new(process.generate(random));
                Transmitter::Trace(TraceDriven::new(trace, *on_end, *overhead))
            }
        }
    }

    /// No packet is serialised faster than this. Unlimited for a token bucket and for
    /// opportunities, whose bytes leave at once.
    pub fn peak(&self) -> Rate {
        match self {
            Self::Unlimited | Self::Htb { .. } | Self::Mahimahi { .. } => Rate::UNLIMITED,
            Self::Fixed { rate, .. } => *rate,
            Self::Trace { trace, .. } => trace.info().max,
            Self::Blockage { process, .. } => process.peak(),
        }
    }

    /// The mean rate, for the size of buffers in bandwidth-delay products; none while a blockage
    /// process is not drawn.
    pub fn mean(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => Some(Rate::UNLIMITED),
            Self::Fixed { rate, .. } | Self::Htb { rate, .. } => Some(*rate),
            Self::Trace { trace, .. } => Some(trace.info().mean),
            Self::Mahimahi { schedule, size } => Some(schedule.mean(size.bytes())),
            Self::Blockage { .. } => None,
        }
    }
}
