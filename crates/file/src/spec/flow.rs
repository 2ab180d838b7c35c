//! Flows: an application, its transport, and where it runs.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use sojourn_core::{Param, Params, Span};
use sojourn_host::{apps, tcp};
use sojourn_link::RateSpec;
use sojourn_media::call::CallSpec;

use super::{OneOrMany, Settings, Text};

/// An application with its two ends. Beside these keys it has those of its `app`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct FlowSpec {
    /// How factors, claims and results refer to it: letters, digits, `-` and `_`.
    pub name: String,
    /// What it does: see the applications.
    #[schemars(with = "String")]
    pub app: AppName,
    /// This many flows of this kind, named NAME.1, NAME.2 …; together they are the group NAME. With 0 there
    /// are none.
    #[schemars(range(min = 0, max = 100000), extend("default" = 1))]
    #[serde(default, deserialize_with = "count")]
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
    /// fewest: NAME or `reverse_`NAME of a link, NAME.PORT of a carrier. A text with blanks between the
    /// names means the same as a list of them, and can be a factor's value.
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
    /// From here on the application writes nothing more; what it has written is still sent. arrivals, page, requests: nothing
    /// else begins, and what has begun goes on to its end. rpm: the test ends.
    #[schemars(extend("default" = "end of the run"))]
    pub stop: Option<Text<Span>>,
    /// Differentiated services code point, 0 to 63.
    #[schemars(range(min = 0, max = 63), extend("default" = 0))]
    pub dscp: Option<u8>,
    /// bulk, on_off: what the receiving application reads a second, as a rate in steps: `2Mbps`, `steps
    /// 10Mbps 5s 0 3s` (nothing for 3 s), `trace FILE`. What it has not read closes the receive window.
    #[schemars(extend("default" = "all at once"))]
    pub reads: Option<Text<RateSpec>>,

    /// What the application and its transport have as keys.
    #[serde(flatten)]
    #[schemars(skip)]
    pub settings: Settings,
}

impl FlowSpec {
    /// The keys that every flow has, whatever its application.
    pub(crate) const KEYS: [&'static str; 17] = [
        "name",
        "app",
        "count",
        "direction",
        "src",
        "dst",
        "hop",
        "route",
        "reverse_route",
        "rtt",
        "delay",
        "reverse_delay",
        "start",
        "start_jitter",
        "stop",
        "dscp",
        "reads",
    ];
}

/// The built-in applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppKind {
    Bulk,
    OnOff,
    Ping,
    Udp,
    Frames,
    Arrivals,
    Page,
    Requests,
    Rpm,
    Call,
    Exec,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    #[default]
    Down,
    Up,
}

sojourn_core::params! {
    /// What runs above TCP beside the application.
    pub struct Control: "tcp", "congestion control" {
        pub cca: String = Param::of::<String>("cca", "cubic", "congestion control, with its parameters")
            .such_as(&["cubic", "bbr3 probe_rtt_interval=10s"]);
    }
}

impl AppKind {
    pub const ALL: [Self; 11] = [
        Self::Bulk,
        Self::OnOff,
        Self::Arrivals,
        Self::Page,
        Self::Requests,
        Self::Rpm,
        Self::Ping,
        Self::Udp,
        Self::Frames,
        Self::Call,
        Self::Exec,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|app| app.name() == name)
    }

    pub const fn name(self) -> &'static str {
        self.about().name
    }

    pub const fn doc(self) -> &'static str {
        self.about().doc
    }

    /// What the flow has as keys for it alone.
    pub const fn own_params(self) -> &'static [Param] {
        self.about().params
    }

    pub const fn is_tcp(self) -> bool {
        matches!(
            self,
            Self::Bulk | Self::OnOff | Self::Arrivals | Self::Page | Self::Requests | Self::Rpm
        )
    }

    /// The keys that this application has beside those that all have.
    pub fn params(self) -> impl Iterator<Item = &'static Param> {
        let shared: [&[Param]; 2] = if self.is_tcp() { TCP } else { [&[], &[]] };
        self.own_params().iter().chain(shared.into_iter().flatten())
    }

    /// The names of those keys.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        self.params().map(|param| param.name)
    }

    const fn about(self) -> About {
        match self {
            Self::Bulk => About::of::<apps::BulkConfig>(),
            Self::OnOff => About::of::<apps::OnOffConfig>(),
            Self::Ping => About::of::<apps::PingConfig>(),
            Self::Udp => About::of::<apps::UdpSpec>(),
            Self::Frames => About::of::<apps::FramesSpec>(),
            Self::Arrivals => About::of::<apps::ArrivalsSpec>(),
            Self::Page => About::of::<apps::PageConfig>(),
            Self::Requests => About::of::<apps::RequestsConfig>(),
            Self::Rpm => About::of::<apps::RpmConfig>(),
            Self::Call => About::of::<CallSpec>(),
            Self::Exec => About::of::<apps::ExecSpec>(),
        }
    }
}

/// What every flow over TCP has as keys.
pub const TCP: [&[Param]; 2] = [Control::PARAMS, tcp::Config::PARAMS];

struct About {
    name: &'static str,
    doc: &'static str,
    params: &'static [Param],
}

impl About {
    const fn of<P: Params>() -> Self {
        Self { name: P::NAME, doc: P::DOC, params: P::PARAMS }
    }
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Count;

    impl Visitor<'_> for Count {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number from 0 to 100000")
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<u32, E> {
            let wrong = || E::invalid_value(de::Unexpected::Signed(number), &self);
            u32::try_from(number).map_err(|_| wrong())
        }
    }

    deserializer.deserialize_u32(Count).map(Some)
}
