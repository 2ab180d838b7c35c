//! `cake`'s parameters in `tc`'s notation.

use alloc::format;
use core::fmt;

use sojourn_core::{Bytes, Param, ParamKind, Rate, Span, SpecError, Words};

use super::{AckFilter, Cells, Framing, Isolation, Priority};
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

/// Link encapsulations by name: the overhead each adds and the cells it implies. They add up,
/// with each other and with `overhead`.
const LINK_PRESETS: [(&str, i32, Cells); 10] = [
    ("ipoa-vcmux", 8, Cells::Atm),
    ("ipoa-llcsnap", 16, Cells::Atm),
    ("bridged-vcmux", 24, Cells::Atm),
    ("bridged-llcsnap", 32, Cells::Atm),
    ("pppoa-vcmux", 10, Cells::Atm),
    ("pppoa-llc", 14, Cells::Atm),
    ("pppoe-vcmux", 32, Cells::Atm),
    ("pppoe-llcsnap", 40, Cells::Atm),
    ("pppoe-ptm", 30, Cells::Ptm),
    ("bridged-ptm", 22, Cells::Ptm),
];

const OVERHEAD_LEAST: i32 = -64;
const OVERHEAD_MOST: i32 = 256;

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
        let mut link = Link::default();
        read_params(words, "cake", PARAMS, |word, words| {
            let is_known = config.accept_policy(word, words)? || link.accept(word, words)?;
            if !is_known {
                refuse_left_out(word)?;
            }
            Ok(is_known)
        })?;
        config.framing = link.framing()?;
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

/// The words about the link, as they come.
#[derive(Default)]
struct Link {
    framing: Framing,
    is_raw: bool,
}

impl Link {
    fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        match word {
            "noatm" => self.framing.cells = Cells::None,
            "atm" => self.framing.cells = Cells::Atm,
            "ptm" => self.framing.cells = Cells::Ptm,
            "raw" => {
                self.framing.cells = Cells::None;
                self.framing.overhead = 0;
                self.is_raw = true;
            }
            "conservative" => {
                self.framing.cells = Cells::Atm;
                self.set_overhead(48);
            }
            "ethernet" => {
                self.add_overhead(38);
                self.framing.mpu = 84;
            }
            "ether-vlan" => self.add_overhead(4),
            "docsis" => {
                self.framing.cells = Cells::None;
                self.add_overhead(18);
                self.framing.mpu = 64;
            }
            "overhead" => {
                let overhead = words.parse(word, overhead)?;
                self.set_overhead(overhead);
            }
            "mpu" => self.framing.mpu = words.count(word, 0, OVERHEAD_MOST as u64)? as u32,
            _ => {
                let Some((_, overhead, cells)) =
                    LINK_PRESETS.into_iter().find(|(name, _, _)| *name == word)
                else {
                    return Ok(false);
                };
                self.framing.cells = cells;
                self.add_overhead(overhead);
            }
        }
        Ok(true)
    }

    fn set_overhead(&mut self, overhead: i32) {
        self.framing.overhead = overhead;
        self.framing.from_ip = true;
    }

    fn add_overhead(&mut self, overhead: i32) {
        self.set_overhead(self.framing.overhead.saturating_add(overhead));
    }

    /// `raw` holds wherever it stands.
    fn framing(mut self) -> Result<Framing, SpecError> {
        let overhead = self.framing.overhead;
        if !(OVERHEAD_LEAST..=OVERHEAD_MOST).contains(&overhead) {
            return Err(SpecError::new(format!("the overheads add up to {overhead} bytes"))
                .allow([format!("{OVERHEAD_LEAST} to {OVERHEAD_MOST} bytes")]));
        }
        self.framing.from_ip &= !self.is_raw;
        Ok(self.framing)
    }
}

fn bandwidth(text: &str) -> Result<Rate, SpecError> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(Rate::UNLIMITED);
    }
    Rate::parse_tc(text).map(|rate| if rate == Rate::ZERO { Rate::UNLIMITED } else { rate })
}

fn overhead(text: &str) -> Result<i32, SpecError> {
    match text.parse::<i32>() {
        Ok(overhead) if (OVERHEAD_LEAST..=OVERHEAD_MOST).contains(&overhead) => Ok(overhead),
        _ => Err(SpecError::new(format!("'{text}' is out of range"))
            .allow([format!("{OVERHEAD_LEAST} to {OVERHEAD_MOST} bytes")])),
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

pub const PARAMS: &[Param] = &[
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
    flag("raw", "on", "count packets as they are, Ethernet header included"),
    param("overhead", ParamKind::Count, "", "bytes that the link adds to an IP packet, -64 to 256"),
    param("mpu", ParamKind::Count, "", "smallest length on the link, overhead included"),
    flag("noatm", "on", "the link has no cells"),
    flag("atm", "", "the link cuts packets into ATM cells: 48 bytes take 53"),
    flag("ptm", "", "the link codes 64 bytes in 65"),
    flag("conservative", "", "atm overhead 48: more than any link needs"),
    flag("ethernet", "", "overhead 38 more, mpu 84"),
    flag("ether-vlan", "", "overhead 4 more; may be repeated"),
    flag("docsis", "", "overhead 18 more, mpu 64, noatm"),
    flag("pppoe-ptm", "", "overhead 30 more, ptm"),
    flag("bridged-ptm", "", "overhead 22 more, ptm"),
    flag("pppoe-llcsnap", "", "overhead 40 more, atm"),
    flag("pppoe-vcmux", "", "overhead 32 more, atm"),
    flag("pppoa-llc", "", "overhead 14 more, atm"),
    flag("pppoa-vcmux", "", "overhead 10 more, atm"),
    flag("bridged-llcsnap", "", "overhead 32 more, atm"),
    flag("bridged-vcmux", "", "overhead 24 more, atm"),
    flag("ipoa-llcsnap", "", "overhead 16 more, atm"),
    flag("ipoa-vcmux", "", "overhead 8 more, atm"),
    param(
        "memlimit",
        ParamKind::Size,
        "",
        "memory that may be held; by default four bandwidth-delay products, at least 4Mb",
    ),
];
