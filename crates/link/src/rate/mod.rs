//! The rate of a link as users write it: `10Mbps`, `htb rate 10mbit burst 1600`,
//! `trace mobility.csv playback witest-2020`, `mahimahi att-lte.up`, `blockage mobility-and-blockages`,
//! `steps 10mbit 5s 0 500ms 10mbit 5s`, `rfc8867 5.1`, `brownian max 12mbit`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use sojourn_core::framing::PARAMS as FRAMING;
use sojourn_core::{
    Bytes, Framing, FramingWords, Param, ParamKind, Rate, Span, SpecError, Stream, Words,
};

use crate::blockage::{self, Blockage};
use crate::brownian::{self, Brownian};
use crate::trace::{Format, MAX_RATE, Rfc8867, WITEST_STEP_OVERHEAD};
use crate::{
    Fixed, Model, OnEnd, Opportunities, OpportunitySize, Playback, Schedule, ShapedTrace, Step,
    TokenBucket, Trace, TraceDriven, Transmitter,
};

#[cfg(test)]
mod tests;

/// A rate as the user wrote it. If it names a trace, [`RateSpec::complete`] needs the trace's text.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    Unlimited,
    Fixed { rate: Rate, framing: Framing },
    Htb { rate: Rate, burst: Bytes, cburst: Bytes, quantum: u32, overhead: u32 },
    Trace { path: String, reading: Reading, playback: Playback, serving: Serving },
    Mahimahi { path: String, size: OpportunitySize },
    Steps { trace: Trace, serving: Serving },
    Rfc8867 { case: Rfc8867, serving: Serving },
    Blockage { process: Blockage, serving: Serving },
    Brownian { process: Brownian },
}

/// How a link serves capacity that changes in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    pub on_end: OnEnd,
    pub shaper: Shaper,
    /// What the medium makes of a packet.
    pub framing: Framing,
}

/// How the capacity is imposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shaper {
    /// The link itself serialises packets at that capacity.
    #[default]
    None,
    /// A class of Linux's `htb` in front of a fast wire; a script changes the class's rate.
    Htb,
}

/// How to read the file of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// With `None` the format is detected.
    pub format: Option<Format>,
    /// The name of the rate, in a format where rates have names.
    pub column: Option<String>,
}

impl Reading {
    /// # Errors
    /// What [`Trace::parse_as`] refuses.
    pub fn read(&self, text: &str) -> Result<Trace, SpecError> {
        let format = self.format.unwrap_or_else(|| Format::detect(text));
        Trace::parse_as(format, self.column.as_deref(), text)
    }
}

/// What the medium makes of a packet. The words are `cake`'s, and only one means something else when it
/// stands alone.
const FIXED_PARAMS: &[Param] = &{
    let mut params = [FRAMING[0]; FRAMING.len()];
    let mut at = 0;
    while at < params.len() {
        params[at] = FRAMING[at];
        at += 1;
    }
    params[1].default = "0";
    params[1].doc = "Bytes added to each packet, -64 to 256: alone, to its length on Ethernet (IP and 14); beside \
                     another word of framing, to that of the IP packet, as cake counts";
    params
};

const FRAMED: Param = Param {
    doc: "Bytes added to each packet, or any other word of framing, as for a fixed rate",
    ..FIXED_PARAMS[1]
};

const END: Param = Param::new(
    "end",
    ParamKind::Choice,
    "wrap",
    "What follows the end: 'wrap' begins again, 'hold' keeps the last rate",
);

const SHAPER: Param = Param::new(
    "shaper",
    ParamKind::Choice,
    "none",
    "What imposes the capacity: 'none' is a link that takes that long for a packet, 'htb' a class \
          of Linux's htb in front of a fast wire, where a packet leaves at once and the next one waits",
);

const HTB_PARAMS: &[Param] = &[
    Param::new("rate", ParamKind::Rate, "", "Rate of the class"),
    Param::new(
        "ceil",
        ParamKind::Rate,
        "rate",
        "Must equal the rate: a single class has nobody to borrow from",
    ),
    Param::new(
        "burst",
        ParamKind::Size,
        "1600",
        "Bytes that leave at once after idleness; tc derives rate/HZ + mtu with HZ = 10^9",
    ),
    Param::new(
        "cburst",
        ParamKind::Size,
        "1600",
        "The same at the ceil; the smaller of both counts, so raise both",
    ),
    Param::new(
        "mtu",
        ParamKind::Size,
        "1600",
        "What the bursts are derived from if they are not given",
    ),
    Param::new(
        "quantum",
        ParamKind::Size,
        "rate/10",
        "Bytes of a turn among siblings, derived and cut as Linux does; a single class has none",
    ),
    Param::new(
        "r2q",
        ParamKind::Count,
        "10",
        "What the rate in bytes is divided by to derive the quantum",
    ),
    Param::new(
        "overhead",
        ParamKind::Count,
        "0",
        "Bytes added to each packet of the queue, 0 to 65535",
    ),
];

const TRACE_PARAMS: &[Param] = &[
    Param::new(
        "format",
        ParamKind::Choice,
        "",
        "'steps', 'samples', 'csv' or 'gym'; seen from the first lines if left out",
    ),
    Param::new(
        "column",
        ParamKind::Choice,
        "",
        "What to take as the rate: a column of csv, 'uplink' or 'downlink' of gym",
    ),
    Param::new(
        "playback",
        ParamKind::Choice,
        "nominal",
        "'nominal', or 'witest-2020' as that testbed's script played it",
    ),
    Param::new("step_overhead", ParamKind::Span, "16ms", "With witest-2020: added to every step"),
    Param { doc: "As for blockage; 'hold' is the default of witest-2020", ..END },
    Param { doc: "As for blockage; 'htb' is the default of witest-2020", ..SHAPER },
    FRAMED,
];

const MAHIMAHI_PARAMS: &[Param] = &[Param::new(
    "opportunity",
    ParamKind::Choice,
    "1504",
    "Bytes of an opportunity: 1504 counts a TUN header as mm-link does, 1500 IP alone",
)];

const STEPS_PARAMS: &[Param] = &[
    Param { doc: "As for blockage; 'hold' lets the last rate stay", ..END },
    SHAPER_AS_THERE,
    FRAMED,
];

const SHAPER_AS_THERE: Param = Param { doc: "As for blockage", ..SHAPER };

const RFC8867_PARAMS: &[Param] = &[
    Param::new(
        "backward",
        ParamKind::Flag,
        "",
        "The direction of the feedback, where the test case limits it: 5.3",
    ),
    rfc8867_link("A-B"),
    rfc8867_link("B-C"),
    rfc8867_link("C-D"),
    Param::new(
        "reference",
        ParamKind::Rate,
        "the test case's",
        "The reference capacity, of which the schedule is a multiple",
    ),
    SHAPER_AS_THERE,
    FRAMED,
];

const fn rfc8867_link(name: &'static str) -> Param {
    Param::new(name, ParamKind::Flag, "", "The link that is meant, in 6.3")
}

const BLOCKAGE_PARAMS: &[Param] = &[
    Param::new("duration", ParamKind::Span, "120s", "Length of the trace that is drawn"),
    Param::new("nooutages", ParamKind::Flag, "", "The lowest capacity is 385 Mbit/s, not zero"),
    END,
    SHAPER,
    FRAMED,
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
        doc: "A file of rates over time, in any format of 'sojourn trace': trace FILE; of opportunities it is played as by mahimahi FILE",
        params: TRACE_PARAMS,
    },
    Model {
        name: "mahimahi",
        doc: "A file of delivery opportunities in milliseconds: mahimahi FILE",
        params: MAHIMAHI_PARAMS,
    },
    Model {
        name: "steps",
        doc: "Rates and how long each lasts, 0 for an outage: steps 10mbit 5s 0 500ms 10mbit 5s",
        params: STEPS_PARAMS,
    },
    Model {
        name: "rfc8867",
        doc: "The capacity of a test case of RFC 8867, by its section: rfc8867 5.1; holds its last rate",
        params: RFC8867_PARAMS,
    },
    Model {
        name: "blockage",
        doc: "A synthetic 60 GHz link (802.11ad): static, short-blockages, long-blockages, \
              mobility-and-blockages",
        params: BLOCKAGE_PARAMS,
    },
    Model {
        name: "brownian",
        doc: "A synthetic cellular link: Poisson opportunities of 1500 bytes, their rate a Brownian motion",
        params: brownian::PARAMS,
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
                Some(surplus) => Err(sojourn_core::param::unknown_param("unlimited", surplus, &[])),
            },
            "fixed" => {
                let rate = words.parse("fixed", positive_rate)?;
                parse_fixed(rate, &mut words)
            }
            "htb" => parse_htb(&mut words),
            "trace" => parse_trace(rest),
            "mahimahi" => parse_mahimahi(rest),
            "steps" => parse_steps(&mut words),
            "rfc8867" => parse_rfc8867(&mut words),
            "blockage" => parse_blockage(&mut words),
            "brownian" => Ok(Self::Brownian { process: Brownian::parse(&mut words)? }),
            _ if name.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                // The unit may be a word of its own: '10 Mbps'.
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

    /// Checks and completes it; `text` is the content of the file of [`RateSpec::path`].
    ///
    /// # Errors
    /// The text is missing, or is no trace of this kind; names its line. The caller names the file.
    pub fn complete(&self, text: Option<&str>) -> Result<RateConfig, SpecError> {
        let content = || text.ok_or_else(|| SpecError::new("the trace has not been read"));
        Ok(match self {
            Self::Unlimited => RateConfig::Unlimited,
            Self::Fixed { rate, framing } => RateConfig::Fixed { rate: *rate, framing: *framing },
            Self::Htb { rate, burst, cburst, quantum: _, overhead } => RateConfig::Htb {
                rate: *rate,
                // Both buckets fill at one rate and pay the same, so the smaller one decides.
                burst: *burst.min(cburst),
                overhead: *overhead,
            },
            Self::Trace { reading, playback: Playback::Nominal, serving, .. }
                if *reading == Reading::default()
                    && *serving == Serving::default()
                    && Format::detect(content()?) == Format::Mahimahi =>
            {
                RateConfig::Mahimahi {
                    schedule: Arc::new(Schedule::parse(content()?)?),
                    size: OpportunitySize::default(),
                }
            }
            Self::Trace { reading, playback, serving, .. } => RateConfig::Trace {
                trace: Arc::new(playback.apply(&reading.read(content()?)?)?),
                serving: *serving,
            },
            Self::Mahimahi { size, .. } => RateConfig::Mahimahi {
                schedule: Arc::new(Schedule::parse(content()?)?),
                size: *size,
            },
            Self::Blockage { process, serving } => {
                RateConfig::Blockage { process: *process, serving: *serving }
            }
            Self::Steps { trace, serving } => {
                RateConfig::Trace { trace: Arc::new(trace.clone()), serving: *serving }
            }
            Self::Rfc8867 { case, serving } => RateConfig::Trace {
                trace: Arc::new(case.trace()),
                serving: Serving { on_end: OnEnd::Hold, ..*serving },
            },
            Self::Brownian { process } => RateConfig::Brownian { process: *process },
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
    let mut framing = FramingWords::default();
    while let Some(word) = words.next() {
        if !framing.accept(word, words)? {
            return Err(sojourn_core::param::unknown_param("a fixed rate", word, FIXED_PARAMS));
        }
    }
    let framing = framing.of_link()?;
    // 'unlimited' after 'fixed' is no rate at which packets could be serialised.
    if rate.is_unlimited() {
        return Ok(RateSpec::Unlimited);
    }
    Ok(RateSpec::Fixed { rate, framing })
}

fn parse_htb(words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let tc_rate = |text: &str| in_range(text, Rate::parse_tc(text)?);
    let (mut rate, mut ceil, mut burst, mut cburst, mut overhead) = (None, None, None, None, 0);
    let (mut mtu, mut quantum, mut r2q) =
        (TokenBucket::DEFAULT_MTU, None, TokenBucket::DEFAULT_R2Q);
    while let Some(word) = words.next() {
        match word {
            "rate" => rate = Some(words.parse("rate", tc_rate)?),
            "ceil" => ceil = Some(words.parse("ceil", tc_rate)?),
            "burst" | "buffer" | "maxburst" => burst = Some(words.parse("burst", parse_burst)?),
            "cburst" | "cbuffer" | "cmaxburst" => {
                cburst = Some(words.parse("cburst", parse_burst)?);
            }
            "mtu" => mtu = words.parse("mtu", parse_burst)?,
            "quantum" => {
                quantum = Some(match words.parse("quantum", parse_burst)?.as_u64() as u32 {
                    0 => {
                        return Err(SpecError::new("quantum: '0' is out of range")
                            .allow(["a size from 1 up, or none to derive it"]));
                    }
                    quantum => quantum,
                });
            }
            "r2q" => r2q = words.count("r2q", 1, u32::MAX.into())? as u32,
            "overhead" => overhead = words.count("overhead", 0, 65_535)? as u32,
            _ => return Err(sojourn_core::param::unknown_param("htb", word, HTB_PARAMS)),
        }
    }
    let rate = rate.ok_or_else(|| SpecError::new("htb needs a rate").allow(["htb rate 10mbit"]))?;
    if let Some(ceil) = ceil.filter(|ceil| *ceil != rate) {
        return Err(SpecError::new(format!("htb: ceil {ceil} differs from rate {rate}"))
            .allow([format!("ceil {rate}: a single class has nobody to borrow from")]));
    }
    let derived = TokenBucket::default_burst(rate, mtu);
    Ok(RateSpec::Htb {
        rate,
        burst: burst.unwrap_or(derived),
        cburst: cburst.unwrap_or(derived),
        quantum: quantum.unwrap_or_else(|| TokenBucket::default_quantum(rate, r2q)),
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
    let (mut witest, mut step_overhead) = (false, None);
    let (mut on_end, mut shaper, mut framing) = (None, None, FramingWords::default());
    let mut reading = Reading::default();
    while let Some(word) = words.next() {
        match word {
            "format" => reading.format = Some(words.parse("format", parse_format)?),
            "column" => reading.column = Some(words.value("column")?.to_owned()),
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
            "shaper" => shaper = Some(words.parse("shaper", parse_shaper)?),
            _ if framing.accept(word, &mut words)? => {}
            _ => return Err(sojourn_core::param::unknown_param("trace", word, TRACE_PARAMS)),
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
    let framing = framing.of_link()?;
    let usual = match witest {
        true => Serving { on_end: OnEnd::Hold, shaper: Shaper::Htb, framing },
        false => Serving { framing, ..Serving::default() },
    };
    let serving = Serving {
        on_end: on_end.unwrap_or(usual.on_end),
        shaper: shaper.unwrap_or(usual.shaper),
        framing,
    };
    Ok(RateSpec::Trace { path, reading, playback, serving })
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
            _ => return Err(sojourn_core::param::unknown_param("mahimahi", word, MAHIMAHI_PARAMS)),
        }
    }
    Ok(RateSpec::Mahimahi { path, size })
}

fn parse_format(text: &str) -> Result<Format, SpecError> {
    match Format::parse(text)? {
        Format::Mahimahi => {
            Err(SpecError::new("opportunities are no rates").allow(["'mahimahi FILE' instead"]))
        }
        format => Ok(format),
    }
}

fn parse_steps(words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let (mut steps, mut serving) = (Vec::new(), Serving::default());
    let mut framing = FramingWords::default();
    let within = |error: SpecError| error.within("steps");
    while let Some(word) = words.next() {
        match word {
            "end" => serving.on_end = words.parse("end", parse_end)?,
            "shaper" => serving.shaper = words.parse("shaper", parse_shaper)?,
            _ if framing.accept(word, words)? => {}
            _ if word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                let rate = match word {
                    "0" => Rate::ZERO,
                    _ => word.parse().map_err(within)?,
                };
                let duration = words.parse(word, str::parse).map_err(within)?;
                steps.push(Step { rate, duration });
            }
            _ => return Err(sojourn_core::param::unknown_param("steps", word, STEPS_PARAMS)),
        }
    }
    serving.framing = framing.of_link()?;
    let trace = Trace::new(steps).map_err(within)?;
    Ok(RateSpec::Steps { trace, serving })
}

fn parse_rfc8867(words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let (mut serving, mut framing) = (Serving::default(), FramingWords::default());
    let case = Rfc8867::parse(words, |word, words| match word {
        "shaper" => {
            serving.shaper = words.parse("shaper", parse_shaper)?;
            Ok(())
        }
        _ if framing.accept(word, words)? => Ok(()),
        _ => Err(sojourn_core::param::unknown_param("rfc8867", word, RFC8867_PARAMS)),
    })?;
    serving.framing = framing.of_link()?;
    Ok(RateSpec::Rfc8867 { case, serving })
}

fn parse_blockage(words: &mut Words<'_>) -> Result<RateSpec, SpecError> {
    let preset = words.parse("blockage", blockage::Preset::parse)?;
    let mut process = Blockage::new(preset);
    let (mut serving, mut framing) = (Serving::default(), FramingWords::default());
    while let Some(word) = words.next() {
        match word {
            "duration" => {
                process = words.parse("duration", |text| process.lasting(text.parse()?))?;
            }
            "nooutages" => process = process.without_outages(),
            "end" => serving.on_end = words.parse("end", parse_end)?,
            "shaper" => serving.shaper = words.parse("shaper", parse_shaper)?,
            _ if framing.accept(word, words)? => {}
            _ => return Err(sojourn_core::param::unknown_param("blockage", word, BLOCKAGE_PARAMS)),
        }
    }
    serving.framing = framing.of_link()?;
    Ok(RateSpec::Blockage { process, serving })
}

fn parse_end(text: &str) -> Result<OnEnd, SpecError> {
    match text {
        "wrap" => Ok(OnEnd::Wrap),
        "hold" => Ok(OnEnd::Hold),
        _ => Err(unknown_choice(text, &["wrap", "hold"])),
    }
}

fn parse_shaper(text: &str) -> Result<Shaper, SpecError> {
    match text {
        "none" => Ok(Shaper::None),
        "htb" => Ok(Shaper::Htb),
        _ => Err(unknown_choice(text, &["none", "htb"])),
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
            Self::Fixed { rate, framing } => write!(f, "{rate}{}", Framed(*framing)),
            Self::Htb { rate, burst, cburst, quantum, overhead } => {
                let (burst, cburst) = (burst.as_u64(), cburst.as_u64());
                write!(
                    f,
                    "htb rate {rate} burst {burst} cburst {cburst} quantum {quantum} overhead {overhead}"
                )
            }
            Self::Trace { path, reading, playback, serving } => {
                write!(f, "trace {}{reading} playback {playback}{serving}", Quoted(path))
            }
            Self::Steps { trace, serving } => {
                f.write_str("steps")?;
                for Step { rate, duration } in trace.steps() {
                    write!(f, " {rate} {duration}")?;
                }
                write!(f, "{serving}")
            }
            Self::Rfc8867 { case, serving } => {
                write!(f, "rfc8867 {case} shaper {}{}", serving.shaper, Framed(serving.framing))
            }
            Self::Brownian { process } => write!(f, "brownian {process}"),
            Self::Mahimahi { path, size } => {
                write!(f, "mahimahi {} opportunity {}", Quoted(path), size.bytes())
            }
            Self::Blockage { process, serving } => write!(f, "blockage {process}{serving}"),
        }
    }
}

impl fmt::Display for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on_end, shaper, framing } = self;
        write!(f, " end {on_end} shaper {shaper}{}", Framed(*framing))
    }
}

impl fmt::Display for Shaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Htb => "htb",
        })
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(format) = self.format {
            write!(f, " format {format}")?;
        }
        if let Some(column) = &self.column {
            write!(f, " column {column}")?;
        }
        Ok(())
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

/// As a link has it: an overhead over Ethernet stands alone.
struct Framed(Framing);

impl fmt::Display for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let framing = self.0;
        if framing == Framing::default() {
            Ok(())
        } else if framing == Framing::on_ethernet(framing.overhead) {
            write!(f, " overhead {}", framing.overhead)
        } else {
            write!(f, " {framing}")
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
    Fixed { rate: Rate, framing: Framing },
    Htb { rate: Rate, burst: Bytes, overhead: u32 },
    Trace { trace: Arc<Trace>, serving: Serving },
    Mahimahi { schedule: Arc<Schedule>, size: OpportunitySize },
    Blockage { process: Blockage, serving: Serving },
    Brownian { process: Brownian },
}

impl Serving {
    fn build(self, trace: Arc<Trace>) -> Transmitter {
        let Self { on_end, shaper, framing } = self;
        match shaper {
            Shaper::None => Transmitter::Trace(TraceDriven::new(trace, on_end, framing)),
            Shaper::Htb => Transmitter::Shaped(ShapedTrace::new(trace, on_end, framing)),
        }
    }
}

impl RateConfig {
    /// A fixed rate in bits of the wire packet (IP and 14 bytes).
    ///
    /// # Errors
    /// The rate is zero or above 10 Tbit/s.
    pub fn fixed(rate: Rate) -> Result<Self, SpecError> {
        let rate = in_range(&rate.to_string(), rate)?;
        Ok(if rate.is_unlimited() {
            Self::Unlimited
        } else {
            Self::Fixed { rate, framing: Framing::default() }
        })
    }

    /// The transmitter of one run. `random` is only drawn from by synthetic links.
    pub fn build(&self, random: &mut Stream) -> Transmitter {
        match self {
            Self::Unlimited => Transmitter::Unlimited,
            Self::Fixed { rate, framing } => Transmitter::Fixed(Fixed::new(*rate, *framing)),
            Self::Htb { rate, burst, overhead } => {
                Transmitter::TokenBucket(TokenBucket::new(*rate, *burst, *overhead))
            }
            Self::Trace { trace, serving } => serving.build(Arc::clone(trace)),
            Self::Mahimahi { schedule, size } => {
                Transmitter::Opportunities(Opportunities::new(Arc::clone(schedule), *size))
            }
            Self::Blockage { process, serving } => {
                serving.build(Arc::new(process.generate(random)))
            }
            Self::Brownian { process } => {
                let schedule = Arc::new(process.generate(random));
                Transmitter::Opportunities(Opportunities::new(schedule, OpportunitySize::Ip1500))
            }
        }
    }

    /// The text that represents it in a run's identity. It contains the whole content of a file,
    /// because a path does not identify what was read.
    pub fn canonical(&self) -> String {
        match self {
            Self::Unlimited => "unlimited".to_owned(),
            Self::Fixed { rate, framing } => format!("{rate}{}", Framed(*framing)),
            Self::Htb { rate, burst, overhead } => {
                format!("htb rate {rate} burst {} overhead {overhead}", burst.as_u64())
            }
            Self::Trace { trace, serving } => {
                let mut text = String::from("steps");
                for Step { rate, duration } in trace.steps() {
                    // Writing to a string does not fail.
                    let _ = write!(text, " {rate} {duration}");
                }
                text + &serving.to_string()
            }
            Self::Mahimahi { schedule, size } => {
                let schedule = schedule.to_string().replace('\n', " ");
                format!("mahimahi opportunity {} at {}", size.bytes(), schedule.trim_end())
            }
            Self::Blockage { process, serving } => format!("blockage {process}{serving}"),
            Self::Brownian { process } => format!("brownian {process}"),
        }
    }

    /// No packet is serialised faster than this. Unlimited for token buckets and for opportunities,
    /// whose bytes leave at once.
    pub fn peak(&self) -> Rate {
        match self {
            Self::Unlimited | Self::Htb { .. } | Self::Mahimahi { .. } | Self::Brownian { .. } => {
                Rate::UNLIMITED
            }
            Self::Trace { serving, .. } | Self::Blockage { serving, .. }
                if serving.shaper != Shaper::None =>
            {
                Rate::UNLIMITED
            }
            Self::Fixed { rate, .. } => *rate,
            Self::Trace { trace, .. } => trace.info().max,
            Self::Blockage { process, .. } => process.peak(),
        }
    }

    /// The mean rate, for the size of buffers in bandwidth-delay products; `None` for a synthetic
    /// link that has not been drawn.
    pub fn mean(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => Some(Rate::UNLIMITED),
            Self::Fixed { rate, .. } | Self::Htb { rate, .. } => Some(*rate),
            Self::Trace { trace, .. } => Some(trace.mean()),
            Self::Mahimahi { schedule, size } => Some(schedule.mean(size.bytes())),
            Self::Blockage { .. } | Self::Brownian { .. } => None,
        }
    }
}
