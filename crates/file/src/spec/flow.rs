//! Flows: an application, its transport, and where it runs.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use sojourn_core::{Bytes, Rate, Span};
use sojourn_host::apps::SizesSpec;
use sojourn_host::tcp;

use super::text::Control;
use super::{OneOrMany, Text};

/// An application with its two ends. Which keys it has depends on `app`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// How factors, claims and results refer to it: letters, digits, `-` and `_`.
    pub name: String,
    /// `bulk`: as much as fits, or `bytes`, over TCP. `on_off`: as much as fits for `on`, nothing
    /// for `off`, again and again, over TCP. `ping`: echo requests. `udp`: datagrams at a constant
    /// rate. `frames`: groups of datagrams, as a video sender makes. `arrivals`: transfers that
    /// arrive at random, each over a TCP connection of its own.
    #[schemars(with = "AppKind")]
    pub app: AppName,
    /// This many flows of this kind, named NAME.1, NAME.2 …; together they are the group NAME.
    #[schemars(range(min = 1, max = 10000), extend("default" = 1))]
    pub count: Option<u32>,
    /// `down`: data crosses the forward direction of the shape. `up`: the reverse direction.
    #[schemars(extend("default" = "down"))]
    pub direction: Option<Direction>,
    /// Host that sends the data. In a path or parking lot any name will do; with `direction`
    /// `down` it is on the near side.
    #[schemars(extend("default" = "server, or client with direction up"))]
    pub src: Option<String>,
    /// Host that receives the data.
    #[schemars(extend("default" = "client, or server with direction up"))]
    pub dst: Option<String>,
    /// In a parking lot, the only bottleneck that this flow crosses, from 1.
    #[schemars(extend("default" = "all of them"))]
    pub hop: Option<u32>,
    /// Between free nodes, the queues that data crosses in their order, instead of the way with the
    /// fewest: NAME or `reverse_`NAME of a link, NAME.PORT of a carrier.
    #[schemars(extend("default" = "the way with the fewest"))]
    pub route: Option<OneOrMany>,
    /// The same for what goes back to the sender.
    #[schemars(extend("default" = "the way with the fewest"))]
    pub reverse_route: Option<OneOrMany>,
    /// Propagation there and back in all, where it is more than that of the links. Half of the
    /// difference is added each way.
    #[schemars(extend("default" = "that of the links"))]
    pub rtt: Option<Text<Span>>,
    /// Propagation of this flow beyond that of the links, towards the receiver.
    #[schemars(extend("default" = "0s"))]
    pub delay: Option<Text<Span>>,
    /// Propagation of this flow beyond that of the links, back to the sender.
    #[schemars(extend("default" = "0s"))]
    pub reverse_delay: Option<Text<Span>>,
    /// When the application starts.
    #[schemars(extend("default" = "0s"))]
    pub start: Option<Text<Span>>,
    /// The start is later by a random time below this. Without it, and without anything else that
    /// is random, all seeds give the same run.
    #[schemars(extend("default" = "0s"))]
    pub start_jitter: Option<Text<Span>>,
    /// From here on the application offers nothing more.
    #[schemars(extend("default" = "end of the run"))]
    pub stop: Option<Text<Span>>,
    /// Differentiated services code point, 0 to 63.
    #[schemars(range(min = 0, max = 63), extend("default" = 0))]
    pub dscp: Option<u8>,

    /// bulk: how much to transfer.
    #[schemars(extend("default" = "no end"))]
    pub bytes: Option<Text<Bytes>>,
    /// on_off: how long it sends.
    pub on: Option<Text<Span>>,
    /// on_off: how long it is silent.
    pub off: Option<Text<Span>>,
    /// on_off: times are exponentially distributed, with `on` and `off` as means.
    #[schemars(extend("default" = false))]
    pub random: Option<bool>,
    /// ping: time between requests.
    #[schemars(extend("default" = "100ms"))]
    pub interval: Option<Text<Span>>,
    /// ping: payload as `ping -s` counts it, default 56 B. udp: payload of a datagram, default
    /// 1448 B. frames: payload of a frame.
    pub size: Option<Text<Bytes>>,
    /// udp: payload a second. bulk: what the application writes a second, as `iperf3 -b` does: whole
    /// segments every 10 ms, or less often if a segment takes longer.
    #[schemars(extend("default" = "bulk: as much as fits"))]
    pub rate: Option<Text<Rate>>,
    /// frames: frames a second.
    pub frames_per_second: Option<f64>,
    /// frames: datagrams that a frame is cut into.
    #[schemars(range(min = 1, max = 1000), extend("default" = "as few as fit 1448 B each"))]
    pub datagrams: Option<u32>,

    /// arrivals: mean number of transfers a second, as a Poisson process. Either this or `load`.
    pub arrivals_per_second: Option<f64>,
    /// arrivals: mean payload offered, as a rate, or as a share (`20%`) of what the narrowest link
    /// of the way carries on average.
    pub load: Option<String>,
    /// arrivals: how large transfers are, as a distribution.
    pub sizes: Option<Text<SizesSpec>>,
    /// arrivals: connections that may be open at once; a transfer that arrives beyond that is
    /// refused and counted.
    #[schemars(range(min = 1, max = 65536), extend("default" = 1000))]
    pub max_connections: Option<u32>,
    /// arrivals: how many transfers arrive in all, including those that are refused.
    #[schemars(range(min = 1), extend("default" = "no end"))]
    pub transfers: Option<u64>,

    /// TCP: congestion control, with its parameters.
    #[schemars(extend("default" = "cubic"))]
    pub cca: Option<Text<Control>>,
    /// TCP: what the sender asks for in the handshake. `off`: no ECN (`tcp_ecn=2`). `classic`: one
    /// echo a round trip (`tcp_ecn=1`, RFC 3168). `accecn`: counters of marks (`tcp_ecn=3`, RFC
    /// 9768), or as much of `classic` as the receiver supports.
    #[schemars(extend("default" = "what cca asks for: prague and bbr2 with ecn=ect1 accecn, dctcp and bbr2 with ecn=on classic, else off"))]
    pub ecn: Option<EcnOffer>,
    /// TCP: what the receiver agrees to. `dctcp`: `classic`, echoing mark by mark (RFC 8257 section
    /// 3.2), which `accecn` does too where only classic ECN is asked for and `cca` wants it.
    #[schemars(extend("default" = "accecn"))]
    pub receiver_ecn: Option<EcnSupport>,
    /// TCP: with `accecn`, an option reports marked bytes as well (`tcp_ecn_option`).
    #[schemars(extend("default" = tcp::Config::default().ecn_option))]
    pub ecn_option: Option<bool>,
    /// TCP: with `accecn`, the receiver counts a marked packet that its card joined from several
    /// segments as one mark, and not by its segments (RFC 9768 section 3.2.2 wants each counted).
    #[schemars(extend("default" = tcp::Config::default().joined_marks_once))]
    pub joined_marks_once: Option<bool>,
    /// TCP: a receive window that never changes. Either this or `receive_buffer`.
    #[schemars(extend("default" = "tuned automatically, as tcp_rmem 4096 131072 6291456"))]
    pub receive_window: Option<Text<Bytes>>,
    /// TCP: what the application asks for with `SO_RCVBUF`, which ends auto-tuning.
    pub receive_buffer: Option<Text<Bytes>>,
    /// TCP: most memory for unacknowledged data; `0` is unlimited.
    #[schemars(extend("default" = Bytes::new(tcp::Config::default().send_buffer).to_string()))]
    pub send_buffer: Option<Text<Bytes>>,
    /// TCP: segmentation is offloaded, so that a burst crosses the network as one packet.
    #[schemars(extend("default" = tcp::Config::default().offload))]
    pub offload: Option<bool>,
    /// TCP: most segments that cross as one packet with `offload`; a longer burst is cut, as where a
    /// network card joins what it received only until it is polled.
    #[schemars(range(min = 1, max = 65535), extend("default" = "the burst"))]
    pub offload_segments: Option<u32>,
    /// TCP: bursts are larger the nearer the receiver, by 64 KiB halved every 2 to this power
    /// microseconds (`tcp_tso_rtt_log`); `0` is what Linux before 5.18 did.
    #[schemars(range(min = 0, max = 31), extend("default" = tcp::Config::default().tso_rtt_log))]
    pub tso_rtt_log: Option<u32>,
    /// TCP: a short burst waits for an acknowledgement that is due within this time and half a
    /// round trip; at most `1s`, which is what Linux before 6.13 did.
    #[schemars(extend("default" = tcp::Config::default().deferral.to_string()))]
    pub deferral: Option<Text<Span>>,
    /// TCP: bursts end where a buffer of 64 KiB of the send queue ends, as the kernel fills them.
    #[schemars(extend("default" = tcp::Config::default().buffer_bound))]
    pub buffer_bound: Option<bool>,
    /// TCP: paces even a congestion control that has no pacing rate of its own, as the `fq`
    /// discipline at the sender would.
    #[schemars(extend("default" = tcp::Config::default().pace_always))]
    pub pacing: Option<bool>,
    /// TCP: how late the pacing timer may run, evenly distributed, at most `100ms`: it is a soft
    /// interrupt, which waits for a sleeping or busy processor.
    #[schemars(extend("default" = tcp::Config::default().pacing_slack.to_string()))]
    pub pacing_slack: Option<Text<Span>>,
    /// TCP: payload of a full segment in bytes.
    #[schemars(range(min = 64, max = 65000), extend("default" = tcp::Config::default().mss))]
    pub mss: Option<u32>,
    /// TCP: initial window in segments.
    #[schemars(range(min = 1, max = 10000), extend("default" = tcp::Config::default().initial_cwnd))]
    pub initial_cwnd: Option<u32>,
    /// TCP: the receiver acknowledges every segment at once.
    #[schemars(extend("default" = tcp::Config::default().quick_ack))]
    pub quick_ack: Option<bool>,
    /// TCP: longest delay of an acknowledgement.
    #[schemars(extend("default" = tcp::Config::default().delayed_ack.to_string()))]
    pub delayed_ack: Option<Text<Span>>,
    /// TCP: smallest retransmission timeout (`tcp_rto_min_us`).
    #[schemars(extend("default" = tcp::Config::default().rto_min.to_string()))]
    pub rto_min: Option<Text<Span>>,
    /// TCP: coarseness of kernel timers; `0s` is exact.
    #[schemars(extend("default" = tcp::Config::default().tick.to_string()))]
    pub tick: Option<Text<Span>>,
    /// TCP: the window is reduced after idleness (`tcp_slow_start_after_idle`).
    #[schemars(extend("default" = tcp::Config::default().slow_start_after_idle))]
    pub slow_start_after_idle: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppKind {
    Bulk,
    OnOff,
    Ping,
    Udp,
    Frames,
    Arrivals,
}

/// What a flow has as `app`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppName {
    BuiltIn(AppKind),
    /// The name of one that a program registered, with its parameters; or of none.
    Other(String),
}

impl AppName {
    /// As it is written.
    pub fn text(&self) -> &str {
        match self {
            Self::BuiltIn(app) => app.name(),
            Self::Other(text) => text,
        }
    }

    pub const fn is_tcp(&self) -> bool {
        matches!(self, Self::BuiltIn(app) if app.is_tcp())
    }
}

impl<'de> Deserialize<'de> for AppName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AppVisitor)
    }
}

struct AppVisitor;

impl Visitor<'_> for AppVisitor {
    type Value = AppName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an application, in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<AppName, E> {
        Ok(AppKind::named(text).map_or_else(|| AppName::Other(text.to_owned()), AppName::BuiltIn))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EcnOffer {
    Off,
    Classic,
    Accecn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EcnSupport {
    Off,
    Classic,
    Dctcp,
    Accecn,
}

impl From<EcnOffer> for tcp::EcnOffer {
    fn from(offer: EcnOffer) -> Self {
        match offer {
            EcnOffer::Off => Self::Off,
            EcnOffer::Classic => Self::Classic,
            EcnOffer::Accecn => Self::Accurate,
        }
    }
}

impl From<EcnSupport> for tcp::EcnSupport {
    fn from(support: EcnSupport) -> Self {
        match support {
            EcnSupport::Off => Self::Off,
            EcnSupport::Classic => Self::Classic,
            EcnSupport::Dctcp => Self::MarkByMark,
            EcnSupport::Accecn => Self::Accurate,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    #[default]
    Down,
    Up,
}

impl AppKind {
    pub const ALL: [Self; 6] =
        [Self::Bulk, Self::OnOff, Self::Arrivals, Self::Ping, Self::Udp, Self::Frames];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|app| app.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::OnOff => "on_off",
            Self::Ping => "ping",
            Self::Udp => "udp",
            Self::Frames => "frames",
            Self::Arrivals => "arrivals",
        }
    }

    pub const fn doc(self) -> &'static str {
        match self {
            Self::Bulk => "as much as fits, or a number of bytes, over TCP",
            Self::OnOff => "as much as fits for a while, then nothing for a while, over TCP",
            Self::Ping => "ICMP echo requests at a steady pace",
            Self::Udp => "datagrams at a constant rate",
            Self::Frames => "groups of datagrams at a steady pace, as a video sender makes",
            Self::Arrivals => {
                "transfers that arrive at random (Poisson), each over a TCP connection of its own"
            }
        }
    }

    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::Bulk | Self::OnOff | Self::Arrivals)
    }

    /// The keys that this application has beside those that all have.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        KEYS_BY_APP.iter().filter(move |(_, apps)| apps.contains(&self)).map(|(key, _)| *key)
    }
}

const TCP: &[AppKind] = &[AppKind::Bulk, AppKind::OnOff, AppKind::Arrivals];

/// The keys that not every application has, and which ones do.
pub const KEYS_BY_APP: &[(&str, &[AppKind])] = &[
    ("bytes", &[AppKind::Bulk]),
    ("on", &[AppKind::OnOff]),
    ("off", &[AppKind::OnOff]),
    ("random", &[AppKind::OnOff]),
    ("interval", &[AppKind::Ping]),
    ("size", &[AppKind::Ping, AppKind::Udp, AppKind::Frames]),
    ("rate", &[AppKind::Bulk, AppKind::Udp]),
    ("frames_per_second", &[AppKind::Frames]),
    ("datagrams", &[AppKind::Frames]),
    ("arrivals_per_second", &[AppKind::Arrivals]),
    ("load", &[AppKind::Arrivals]),
    ("sizes", &[AppKind::Arrivals]),
    ("max_connections", &[AppKind::Arrivals]),
    ("transfers", &[AppKind::Arrivals]),
    ("cca", TCP),
    ("ecn", TCP),
    ("receiver_ecn", TCP),
    ("ecn_option", TCP),
    ("joined_marks_once", TCP),
    ("receive_window", TCP),
    ("receive_buffer", TCP),
    ("send_buffer", TCP),
    ("offload", TCP),
    ("offload_segments", TCP),
    ("tso_rtt_log", TCP),
    ("deferral", TCP),
    ("buffer_bound", TCP),
    ("pacing", TCP),
    ("pacing_slack", TCP),
    ("mss", TCP),
    ("initial_cwnd", TCP),
    ("quick_ack", TCP),
    ("delayed_ack", TCP),
    ("rto_min", TCP),
    ("tick", TCP),
    ("slow_start_after_idle", TCP),
];
