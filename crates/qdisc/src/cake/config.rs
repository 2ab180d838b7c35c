//! `cake`'s parameters in `tc`'s notation.

use alloc::format;
use core::fmt;

use sojourn_core::framing::PARAMS as FRAMING;
use sojourn_core::param::joined;
use sojourn_core::{Bytes, Framing, FramingWords, Param, ParamKind, Rate, Span, SpecError, Words};

use super::{AckFilter, Isolation, Priority};
use crate::notation::{TcRate, TcSize, flag, param, read_params, size, span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub bandwidth: Rate,
    pub priority: Priority,
    pub isolation: Isolation,
    /// Clear code points after they were used.
    pub wash: bool,
    /// The bottleneck lies before this queue: charge the shaper for what is dropped.
    pub is_ingress: bool,
    pub ack_filter: AckFilter,
    /// Cut super packets into their segments.
    pub split_gso: bool,
    pub rtt: Span,
    pub framing: Framing,
    /// `None` derives it from bandwidth and `rtt`.
    pub memlimit: Option<Bytes>,
}

/// Round-trip times by name.
const RTT_PRESETS: [(&str, Span); 8] = [
    ("datacentre", Span::from_micros(100)),
    ("lan", Span::from_millis(1)),
    ("metro", Span::from_millis(10)),
    ("regional", Span::from_millis(30)),
    ("internet", Span::from_millis(100)),
    ("oceanic", Span::from_millis(300)),
    ("satellite", Span::from_secs(1)),
    ("interplanetary", Span::from_secs(3600)),
];

impl Default for Config {
    fn default() -> Self {
        Self {
            bandwidth: Rate::UNLIMITED,
            priority: Priority::default(),
            isolation: Isolation::default(),
            wash: false,
            is_ingress: false,
            ack_filter: AckFilter::default(),
            split_gso: true,
            rtt: Span::from_millis(100),
            framing: Framing::default(),
            memlimit: None,
        }
    }
}

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self::default();
        let mut framing = FramingWords::default();
        read_params(words, "cake", PARAMS, |word, words| {
            let is_known = config.accept_policy(word, words)? || framing.accept(word, words)?;
            if !is_known {
                refuse_left_out(word)?;
            }
            Ok(is_known)
        })?;
        config.framing = framing.framing()?;
        Ok(config)
    }

    /// Standing delay that is acceptable: a twentieth of the round-trip time.
    pub fn target(&self) -> Span {
        Span::from_micros((self.rtt.as_micros() / 20).max(1))
    }

    fn accept_policy(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        match word {
            "bandwidth" => self.bandwidth = words.parse(word, bandwidth)?,
            "unlimited" => self.bandwidth = Rate::UNLIMITED,
            "wash" => self.wash = true,
            "nowash" => self.wash = false,
            "ingress" => self.is_ingress = true,
            "egress" => self.is_ingress = false,
            "ack-filter" => self.ack_filter = AckFilter::Filter,
            "ack-filter-aggressive" => self.ack_filter = AckFilter::Aggressive,
            "no-ack-filter" => self.ack_filter = AckFilter::Off,
            "split-gso" => self.split_gso = true,
            "no-split-gso" => self.split_gso = false,
            "rtt" => self.rtt = span(words, word, Span::from_micros(1))?,
            "memlimit" => self.memlimit = Some(size(words, word, u64::from(u32::MAX))?),
            // The default, and the only choice here.
            "nonat" => {}
            _ => return Ok(self.accept_named(word)),
        }
        Ok(true)
    }

    fn accept_named(&mut self, word: &str) -> bool {
        if let Some(priority) = Priority::ALL.into_iter().find(|choice| choice.name() == word) {
            self.priority = priority;
        } else if let Some(isolation) =
            Isolation::ALL.into_iter().find(|choice| choice.name() == word)
        {
            self.isolation = isolation;
        } else if let Some((_, rtt)) = RTT_PRESETS.into_iter().find(|(name, _)| *name == word) {
            self.rtt = rtt;
        } else {
            return false;
        }
        true
    }
}

fn bandwidth(text: &str) -> Result<Rate, SpecError> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(Rate::UNLIMITED);
    }
    Rate::parse_tc(text).map(|rate| if rate == Rate::ZERO { Rate::UNLIMITED } else { rate })
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

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bandwidth.is_unlimited() {
            f.write_str("bandwidth unlimited")?;
        } else {
            write!(f, "bandwidth {}", TcRate(self.bandwidth))?;
        }
        write!(f, " {} {} nonat", self.priority, self.isolation)?;
        f.write_str(if self.wash { " wash" } else { " nowash" })?;
        if self.is_ingress {
            f.write_str(" ingress")?;
        }
        write!(f, " {}", self.ack_filter)?;
        f.write_str(if self.split_gso { " split-gso" } else { " no-split-gso" })?;
        write!(f, " rtt {} {}", self.rtt, self.framing)?;
        match self.memlimit {
            Some(limit) => write!(f, " memlimit {}", TcSize(limit)),
            None => Ok(()),
        }
    }
}

pub const PARAMS: &[Param] = &joined::<{ OWN.len() + FRAMING.len() }>(OWN, FRAMING);

const OWN: &[Param] = &[
    param("bandwidth", ParamKind::Rate, "unlimited", "rate of the shaper"),
    flag("unlimited", "on", "no shaper"),
    flag("besteffort", "", "one tin"),
    flag("diffserv3", "on", "tins for bulk, best effort and voice"),
    flag("diffserv4", "", "tins for bulk, best effort, video and voice"),
    flag("diffserv8", "", "eight tins"),
    flag("precedence", "", "a tin for each class selector; obsolete"),
    flag("flowblind", "", "one queue for all flows"),
    flag("srchost", "", "a queue for each source host"),
    flag("dsthost", "", "a queue for each destination host"),
    flag("hosts", "", "a queue for each pair of hosts"),
    flag("flows", "", "a queue for each flow"),
    flag("dual-srchost", "", "flows share evenly within source hosts, and these with each other"),
    flag(
        "dual-dsthost",
        "",
        "flows share evenly within destination hosts, and these with each other",
    ),
    flag("triple-isolate", "on", "as both dual modes at once"),
    flag("nonat", "on", "hosts are those of the packet; 'nat' is left out"),
    flag("wash", "", "clear the code point once the tin is chosen"),
    flag("nowash", "on", "keep the code point"),
    flag("ingress", "", "charge the shaper for dropped packets, which came over the bottleneck"),
    flag("egress", "on", "charge the shaper for sent packets only"),
    flag("ack-filter", "", "drop an acknowledgement that two newer ones supersede"),
    flag("ack-filter-aggressive", "", "drop an acknowledgement that a newer one supersedes"),
    flag("no-ack-filter", "on", "keep acknowledgements"),
    flag("split-gso", "on", "cut super packets into their segments"),
    flag("no-split-gso", "", "queue super packets whole"),
    param(
        "rtt",
        ParamKind::Span,
        "100ms",
        "round-trip time to tune for: the interval, and twenty times the target",
    ),
    flag("datacentre", "", "rtt 100us"),
    flag("lan", "", "rtt 1ms"),
    flag("metro", "", "rtt 10ms"),
    flag("regional", "", "rtt 30ms"),
    flag("internet", "on", "rtt 100ms"),
    flag("oceanic", "", "rtt 300ms"),
    flag("satellite", "", "rtt 1s"),
    flag("interplanetary", "", "rtt 3600s"),
    param(
        "memlimit",
        ParamKind::Size,
        "",
        "memory that may be held; by default four bandwidth-delay products, at least 4Mb",
    ),
];
