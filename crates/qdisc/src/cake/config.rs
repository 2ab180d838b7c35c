//! `cake`'s parameters in `tc`'s notation.

use alloc::format;
use core::fmt::{self, Display};

use sojourn_core::param::{Form, Keyword, Maybe};
use sojourn_core::{Bytes, Framing, FramingWords, Param, ParamKind, Rate, Span, SpecError, Words};

use super::ack_filter::AckFilterWord;
use super::isolation::IsolationWord;
use super::priority::PriorityWord;
use super::{AckFilter, Isolation, Priority};
use crate::DEVICE_MTU;
use crate::built_in;
use crate::notation::{Lapse, SOME, Size, Speed};

/// The largest buffer if none is configured, in full packets (`sch->limit`).
const LIMIT_PACKETS: u64 = 10_240;

/// The smallest buffer of a shaped CAKE if none is configured.
const BUFFER_LEAST: u64 = 4 << 20;

sojourn_core::params! {
    /// `cake`'s parameters.
    pub struct Config:
        "cake", "CAKE: shaper, tins, host and flow isolation, COBALT, as Linux has it",
        refuse refuse_left_out
    {
        pub bandwidth: Rate as Bandwidth = "unlimited", "";
        pub priority: Priority as PriorityWord = "diffserv3", "";
        pub isolation: Isolation as IsolationWord = "triple-isolate", "";
        pub nat: Nat as NatWord = "nonat", "";
        /// Clear code points after they were used.
        pub wash: bool as Wash = "nowash", "";
        /// The bottleneck lies before this queue: charge the shaper for what is dropped.
        pub ingress: bool as Ingress = Param::of::<Ingress>("ingress", "egress", "").quiet();
        pub ack_filter: AckFilter as AckFilterWord = "no-ack-filter", "";
        /// Cut super packets into their segments.
        pub split_gso: bool as SplitGso = "split-gso", "";
        pub rtt: Span as RoundTrip = "100ms", SOME, "";
        pub link: FramingWords = "raw", "";
        /// Without it, bandwidth and `rtt` say how much.
        pub memlimit: Option<Bytes> as Maybe<Size> = "",
            "memory that may be held; by default four bandwidth-delay products, at least 4Mb";
    }
}

built_in::written_as_it_is!(Config, shapes to bandwidth);

impl Config {
    /// Standing delay that is acceptable: a twentieth of the round-trip time.
    pub fn target(&self) -> Span {
        Span::from_micros((self.rtt.as_micros() / 20).max(1))
    }

    /// Bytes of memory that may be held: four times the bandwidth-delay product, at least 4 MiB and at most 10240 full
    /// packets. A limit that the user sets is not changed.
    pub fn buffer_limit(&self) -> u64 {
        let most = LIMIT_PACKETS * u64::from(DEVICE_MTU);
        if let Some(limit) = self.memlimit {
            return limit.as_u64();
        }
        if self.bandwidth.is_unlimited() {
            return most;
        }
        let quadruple =
            4 * u128::from(self.bandwidth.as_bytes_per_sec()) * u128::from(self.rtt.as_micros())
                / 1_000_000;
        u64::try_from(quadruple).unwrap_or(u64::MAX).clamp(BUFFER_LEAST, most)
    }

    /// Overheads that add up to too much are refused by the check.
    pub(super) fn framing(&self) -> Framing {
        self.link.framing().unwrap_or_default()
    }
}

/// Which addresses hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nat {
    /// Those in the packet: the only choice here.
    Off,
}

sojourn_core::keywords! {
    NatWord for Nat {
        "nonat" = Nat::Off, "hosts are those of the packet; 'nat' is left out";
    }
}

sojourn_core::keywords! {
    Wash for bool {
        "wash" = true, "clear the code point once the tin is chosen";
        "nowash" = false, "keep the code point";
    }
}

sojourn_core::keywords! {
    Ingress for bool {
        "ingress" = true, "charge the shaper for dropped packets, which came over the bottleneck";
        "egress" = false, "charge the shaper for sent packets only";
    }
}

sojourn_core::keywords! {
    SplitGso for bool {
        "split-gso" = true, "cut super packets into their segments";
        "no-split-gso" = false, "queue super packets whole";
    }
}

/// A rate, or none.
#[derive(Clone, Copy, Debug)]
struct Bandwidth;

impl Form for Bandwidth {
    type Value = Rate;
    const KIND: ParamKind = ParamKind::Rate;
    const KEYWORDS: &'static [Keyword] = &[
        Keyword { word: "bandwidth", kind: ParamKind::Rate, doc: "rate of the shaper" },
        Keyword::flag("unlimited", "no shaper"),
    ];

    fn read(text: &str, param: &Param) -> Result<Rate, SpecError> {
        if text.eq_ignore_ascii_case("unlimited") {
            return Ok(Rate::UNLIMITED);
        }
        let rate = Speed::read(text, param)?;
        Ok(if rate == Rate::ZERO { Rate::UNLIMITED } else { rate })
    }

    fn take(words: &mut Words<'_>, word: &str, param: &Param) -> Result<Rate, SpecError> {
        match word {
            "unlimited" => Ok(Rate::UNLIMITED),
            _ => Self::read(words.value(word)?, param),
        }
    }

    fn show(value: &Rate, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if value.is_unlimited() { f.write_str("unlimited") } else { Speed::show(value, f) }
    }
}

/// A time, or the name of one.
#[derive(Clone, Copy, Debug)]
struct RoundTrip;

impl Form for RoundTrip {
    type Value = Span;
    const KIND: ParamKind = ParamKind::Span;
    const KEYWORDS: &'static [Keyword] = &[
        Keyword {
            word: "rtt",
            kind: ParamKind::Span,
            doc: "round-trip time to tune for: the interval, and twenty times the target",
        },
        Keyword::flag("datacentre", "rtt 100us"),
        Keyword::flag("lan", "rtt 1ms"),
        Keyword::flag("metro", "rtt 10ms"),
        Keyword::flag("regional", "rtt 30ms"),
        Keyword::flag("internet", "rtt 100ms"),
        Keyword::flag("oceanic", "rtt 300ms"),
        Keyword::flag("satellite", "rtt 1s"),
        Keyword::flag("interplanetary", "rtt 3600s"),
    ];

    fn read(text: &str, param: &Param) -> Result<Span, SpecError> {
        Lapse::read(text, param)
    }

    fn take(words: &mut Words<'_>, word: &str, param: &Param) -> Result<Span, SpecError> {
        // What a preset does is what its description says.
        let preset = Self::KEYWORDS.iter().find(|preset| preset.word == word);
        match preset.and_then(|preset| preset.doc.strip_prefix("rtt ")) {
            Some(rtt) => Self::read(rtt, param),
            None => Self::read(words.value(word)?, param),
        }
    }

    fn check(value: &Span, param: &Param) -> Result<(), SpecError> {
        Lapse::check(value, param)
    }

    fn show(value: &Span, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value.fmt(f)
    }
}

/// Says why a word that `tc` knows is not known here.
fn refuse_left_out(word: &str) -> Result<(), SpecError> {
    let why = match word {
        "nat" => "there is no address translation to look through",
        "fwmark" => "there is no firewall to set marks",
        "autorate-ingress" => "its rate estimate is not modelled; give a bandwidth",
        _ => return Ok(()),
    };
    Err(SpecError::new(format!("cake's '{word}' is left out: {why}")))
}
