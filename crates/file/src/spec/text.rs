//! Values that a study writes as text: quantities with a unit, and the notation of `tc`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use sojourn_core::{Bytes, ETHERNET_HEADER, Framing, Params, Rate, Span, SpecError, Words};
use sojourn_link::{FixedSpec, RateSpec};
use sojourn_wifi::mac::edca::WrittenParameters;
use sojourn_wifi::ofdma::Ofdma;
use sojourn_wifi::phy::Mode;
use sojourn_wifi::rate::{ControlSpec, Fading, Place, Presence, SignalConfig};

use super::{Buffer, QueueSpec, WhenSpec};

/// What can be read from text.
pub trait Notation: Sized {
    /// Its name in the schema: `time`.
    const NAME: &'static str;
    /// How an error describes it: `a time such as 20ms`.
    const WANTED: &'static str;
    const EXAMPLES: &'static [&'static str];

    /// # Errors
    /// What is wrong with the text, and what is allowed.
    fn read(text: &str) -> Result<Self, SpecError>;
}

/// A value and the text from which it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Text<T> {
    pub text: String,
    pub value: T,
}

impl<T: Clone + Default> Text<T> {
    pub fn value_or_default(text: &Option<Self>) -> T {
        text.as_ref().map(|text| text.value.clone()).unwrap_or_default()
    }
}

impl<'de, T: Notation> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Notation> Visitor<'_> for TextVisitor<T> {
    type Value = Text<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, in quotes", T::WANTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
        let value = T::read(text).map_err(E::custom)?;
        Ok(Text { text: text.to_owned(), value })
    }
}

impl<T: Notation> JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": T::NAME, "examples": T::EXAMPLES })
    }
}

/// OFDMA of a radio, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct OfdmaSpec(pub Option<Ofdma>);

/// The mode of an RTS and CTS before every frame, or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProtectionSpec(pub Option<Mode>);

/// From which size on frames are sent behind an RTS, or none are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtsThreshold(pub Option<Bytes>);

/// An engine by its name. Which there are, the registry knows that a file is read with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineName;

/// A carrier by its name, likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierName;

macro_rules! notation {
    ($type:ty, $name:literal, $wanted:literal, $examples:expr, $read:expr) => {
        impl Notation for $type {
            const NAME: &'static str = $name;
            const WANTED: &'static str = $wanted;
            const EXAMPLES: &'static [&'static str] = &$examples;

            fn read(text: &str) -> Result<Self, SpecError> {
                $read(text)
            }
        }
    };
}

/// Longer than any run, and far below times whose sums could overflow.
const MAX_SPAN: Span = Span::from_secs(10_000_000);

/// A rate as a link knows it, or what a closed form gives: `model ofdma.scheduled packets=7`.
fn link_rate(text: &str) -> Result<RateSpec, SpecError> {
    match text.trim_start().strip_prefix("model ") {
        Some(formula) => modelled(formula.trim()),
        None => RateSpec::parse(text),
    }
}

/// The payload of IP packets that a closed form gives; the link counts no header of Ethernet.
fn modelled(formula: &str) -> Result<RateSpec, SpecError> {
    let (name, params) = formula.split_once(char::is_whitespace).unwrap_or((formula, ""));
    let (name, output) = match name.split_once('.') {
        Some((name, output)) => (name, Some(output)),
        None => (name, None),
    };
    let answer = sojourn_model::formulas().parse(&format!("{name} {params}"))?;
    let (output, value) = answer.output(output)?;
    let rates = || answer.outputs.iter().filter(|output| output.unit == "Mbit/s");
    if output.unit != "Mbit/s" {
        let problem = format!("'{}' of '{name}' is no rate", output.name);
        return Err(SpecError::new(problem).allow(rates().map(|output| output.name)));
    }
    let bits = (value * 1e6).round();
    if !(1.0..1e15).contains(&bits) {
        let problem = format!("'{formula}' gives {value} Mbit/s, which is no rate of a link");
        return Err(SpecError::new(problem).allow(["more than 1 bit/s"]));
    }
    let framing = Framing::on_ethernet(-(ETHERNET_HEADER as i32));
    Ok(RateSpec::Fixed(FixedSpec { rate: Rate::from_bps(bits as u64), framing }))
}

fn span(text: &str) -> Result<Span, SpecError> {
    match text.parse()? {
        span if span <= MAX_SPAN => Ok(span),
        _ => {
            Err(SpecError::new(format!("'{text}' is too long"))
                .allow([format!("at most {MAX_SPAN}")]))
        }
    }
}

notation!(Span, "time", "a time such as 20ms", ["20ms", "1.5s"], span);
notation!(Rate, "rate", "a rate such as 10Mbps", ["10Mbps", "500kbit"], str::parse);
notation!(Bytes, "size", "a size such as 7.5MB", ["7.5MB", "58kB"], str::parse);
notation!(
    QueueSpec,
    "queue",
    "a queue as tc writes it, such as fq_codel limit 1000",
    [
        "pfifo limit 50",
        "pfifo limit 0.5bdp",
        "fq_codel limit 1000 target 5ms",
        "cake bandwidth 10mbit"
    ],
    QueueSpec::parse
);
notation!(
    Buffer,
    "size of a queue",
    "a size of a queue, such as 50ms, 0.5bdp, 64kB or 100 (packets)",
    ["50ms", "0.5bdp", "64kB", "100"],
    Buffer::parse
);
notation!(
    WhenSpec,
    "moment",
    "what a change waits for, such as sender enters PROBE_BW:UP",
    ["sender enters PROBE_BW:UP"],
    WhenSpec::parse
);
notation!(EngineName, "engine", "an engine such as sim", ["sim"], |_text| Ok(EngineName));
notation!(
    CarrierName,
    "carrier",
    "a carrier such as switch",
    ["switch", "switch buffer 1MB alpha 1"],
    |_text| Ok(CarrierName)
);
notation!(
    sojourn_link::RateSpec,
    "link rate",
    "the rate of a link, such as 10Mbps",
    [
        "10Mbps",
        "htb rate 10mbit",
        "trace capacity.csv",
        "blockage short-blockages",
        "model ofdma.scheduled"
    ],
    link_rate
);
notation!(
    Mode,
    "radio mode",
    "a mode of a radio, such as ht mcs 15 sgi",
    ["ht mcs 15 sgi", "he mcs 11 nss 2 width 80MHz gi 0.8us", "ofdm 54"],
    Mode::parse
);
notation!(
    WrittenParameters,
    "access parameters",
    "parameters of an access category, such as cw 15 1023 aifsn 3",
    ["cw 15 1023 aifsn 3", "cw 7 15 aifsn 2 txop 4096us"],
    WrittenParameters::parse
);
notation!(
    OfdmaSpec,
    "OFDMA",
    "on or off, such as on proportional-fair",
    ["on", "off", "on uplink off in-turn", "on proportional-fair random_units 2"],
    |text| Ofdma::parse_switched(text).map(OfdmaSpec)
);
notation!(
    ProtectionSpec,
    "radio mode",
    "off, or a mode of a radio, such as ofdm 24",
    ["off", "dsss 11", "ofdm 24"],
    |text: &str| match text.trim() {
        "off" => Ok(ProtectionSpec(None)),
        mode => Mode::parse(mode).map(|mode| ProtectionSpec(Some(mode))),
    }
);
notation!(
    RtsThreshold,
    "size",
    "never, or a size such as 500B",
    ["never", "500B"],
    |text: &str| match text.trim() {
        "never" => Ok(RtsThreshold(None)),
        size => size.parse().map(|size| RtsThreshold(Some(size))),
    }
);
notation!(
    SignalConfig,
    "signal",
    "a signal, such as power 20 exponent 3.5",
    ["power 20 exponent 3.5"],
    |text| SignalConfig::parse(&mut Words::new(text))
);
notation!(
    Fading,
    "fading",
    "a fading, such as depth 15 clear 2s faded 100ms",
    ["depth 15 clear 2s faded 100ms"],
    |text| Fading::parse(&mut Words::new(text))
);
notation!(
    ControlSpec,
    "rate control",
    "who chooses rates, such as minstrel",
    ["fixed", "ideal", "minstrel", "minstrel interval 100ms", "trace rates.txt"],
    ControlSpec::parse
);
notation!(
    Vec<Place>,
    "distance",
    "a distance such as 8m",
    ["8m", "8m at 0s 40m at 30s"],
    Place::parse_all
);
notation!(
    Vec<Presence>,
    "times",
    "times such as 0s to 20s",
    ["0s to 20s", "0s to 20s 40s to end"],
    Presence::parse_all
);
notation!(
    sojourn_link::LossConfig,
    "loss",
    "a loss process, such as 1%",
    ["1%", "gemodel 1% 10% 70% 0.1%", "steps 0% 10s 5% 2s"],
    sojourn_link::LossConfig::parse
);
notation!(
    sojourn_link::JitterConfig,
    "jitter",
    "a jitter, such as normal 1ms",
    ["normal 1ms", "uniform 2ms", "steps 0ms 10s 80ms 5s"],
    sojourn_link::JitterConfig::parse
);
notation!(
    sojourn_link::ReorderConfig,
    "reordering",
    "a share of the packets that overtake others, such as 25%",
    ["1%", "25% 50% gap 5"],
    sojourn_link::ReorderConfig::parse
);
notation!(
    sojourn_link::PolicerConfig,
    "policer",
    "a policer as tc writes it, such as rate 8mbit burst 64kb",
    ["rate 8mbit burst 64kb"],
    sojourn_link::PolicerConfig::parse
);
