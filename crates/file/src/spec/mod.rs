//! The study file as a user writes it. The doc comments here are the reference: the JSON Schema
//! and `docs/study.md` are made from them.

mod carrier;
mod change;
mod flow;
mod gateway;
mod line;
mod list;
mod queue;
mod radio;
mod retries;
mod settings;
mod text;
mod truth;
mod when;

pub use carrier::{CarrierSpec, PortSpec};
pub use change::ChangeSpec;
pub use flow::{AppKind, AppName, Control, Direction, FlowSpec, TCP};
pub use gateway::GatewaySpec;
pub use line::{DirectionParts, LineParts, LinkSpec, ParkingLotSpec, PathSpec};
pub use list::{OneOrMany, Plain, Seeds, Selection};
pub use queue::{Buffer, QueueSpec};
pub use radio::{Access, LostBlockAck, Queueing, RADIO, RadioSpec, StationSpec};
pub use retries::Retries;
pub(crate) use settings::blamed;
pub use settings::{Settings, WrongSetting};
pub use text::{Notation, OfdmaSpec, ProtectionSpec, RtsThreshold, Text};
pub use truth::Truth;
pub use when::WhenSpec;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sojourn_core::Span;

/// Version of the study format that this code reads.
pub const SCHEMA: u32 = 1;

/// A question: scenarios, how often each is repeated, figures and claims.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Sojourn study")]
pub struct StudySpec {
    /// Version of this format.
    #[schemars(range(min = 1, max = 1))]
    pub schema: u32,
    /// What the study is about, in a line.
    pub title: String,
    /// The paper or page that the question comes from.
    pub source: Option<String>,
    /// What the study wants to know, in a sentence or two.
    pub question: Option<String>,
    /// Another study file, from this file's folder, whose keys count where this one has none.
    /// Tables are joined key by key; lists are replaced as a whole.
    #[allow(dead_code)]
    #[schemars(with = "Option<String>")]
    extends: Option<IgnoredAny>,
    /// The world: links, queues and flows. Factors vary it.
    pub scenario: ScenarioSpec,
    /// What the study varies. A key is an address, its value the list or range of values to take;
    /// every value of one factor is combined with every value of the others.
    #[allow(dead_code)]
    #[schemars(with = "Option<FactorsSchema>")]
    factors: Option<IgnoredAny>,
    /// In a study that a run has written: factors whose values the command line replaced. Claims
    /// may then name values that the study no longer has.
    #[allow(dead_code)]
    #[schemars(with = "Option<Vec<String>>")]
    overridden: Option<IgnoredAny>,
    /// In a study that a run has written: flows and queues that the command line took away, and that views
    /// or claims name.
    #[allow(dead_code)]
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>")]
    removed: Option<IgnoredAny>,
    /// Runs last at most this long; warm-up, starts and stops shrink in proportion. Traces, steps, changes and the
    /// times of stations stay as they are; `check` names those. `--shorten` sets it.
    pub shorten: Option<Text<Span>>,
    /// How often each scenario is run.
    #[serde(default)]
    pub repeat: RepeatSpec,
    /// Figures of the report, by name.
    #[serde(default)]
    pub views: BTreeMap<String, ViewSpec>,
    /// Sentences with bounds, checked after the runs.
    #[serde(default)]
    pub claim: Vec<ClaimSpec>,
}

/// One world. It has one shape: `path`, `gateway`, `parking_lot`, or `node`, `link`,
/// `carrier` and `radio`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSpec {
    /// What is tested, in words. It changes nothing; as one of several factors that change together
    /// it names each of their combinations in claims, figures and results.
    #[allow(dead_code)]
    #[schemars(with = "Option<String>")]
    case: Option<IgnoredAny>,
    /// The engine that computes it, with its parameters.
    #[schemars(extend("default" = "sim"))]
    pub engine: Option<Text<text::EngineName>>,
    /// Flows as flent's tests of these names start them, beside those of this file; a flow of the same name
    /// in the file takes the place of one. `rrul`, `rrul_be`, `tcp_nup n=4`, `tcp_ndown n=4`, `rtt_fair rtt1=20ms
    /// rtt2=50ms rtt3=100ms rtt4=200ms`, `http`. Without `duration` and `warmup` they are flent's, 70 s and 5 s; the
    /// load begins at 5 s and ends 5 s before the end. `rpm limit=20s`, which is none of flent's, is a test of
    /// responsiveness each way, and lasts twice its limit.
    #[allow(dead_code)]
    #[schemars(with = "Option<String>")]
    workload: Option<IgnoredAny>,
    /// How long a run lasts, in virtual time; with `until`, the longest that it lasts. Required, unless `workload` has one.
    #[schemars(with = "Option<Text<Span>>")]
    pub duration: Text<Span>,
    /// What ends a run. `transfers done`: the end of the last transfer, or `duration`, whichever
    /// comes first. Transfers are those of bulk flows with `bytes`, of arrivals, which then need
    /// `transfers` or `stop`, pages, which need `pages` or `stop`, and requests, which need `requests` or
    /// `stop`; other flows are not waited for. A transfer that never ends keeps the
    /// run going to `duration`, and counts as open.
    #[schemars(extend("default" = "duration"))]
    pub until: Option<Until>,
    /// Metrics count from here on.
    #[schemars(extend("default" = "0s"))]
    pub warmup: Option<Text<Span>>,
    /// Step of the time series. Without it: 100 ms, or 1 s, 10 s and so on where flows would have more than 10 000 rows a second
    /// (more than 1 000 flows at 100 ms) or a run more than ten million; at most the duration.
    #[schemars(extend("default" = "100ms"))]
    pub step: Option<Text<Span>>,
    /// Servers, one bottleneck, clients. Both directions have a queue.
    pub path: Option<PathSpec>,
    /// A home behind an access line: router, modem, provider.
    pub gateway: Option<GatewaySpec>,
    /// Several bottlenecks in a row.
    pub parking_lot: Option<ParkingLotSpec>,
    /// An end system or router of a free topology.
    #[serde(default)]
    pub node: Vec<NodeSpec>,
    /// A link of a free topology, in both directions. Flows take the way with the fewest links and
    /// ports of carriers; among equals, the one whose links come first in the file.
    #[serde(default)]
    pub link: Vec<LinkSpec>,
    /// What joins several nodes of a free topology: a switch, or a medium that they share.
    #[serde(default)]
    pub carrier: Vec<CarrierSpec>,
    /// A radio cell of a free topology. Its stations are nodes.
    #[serde(default)]
    pub radio: Vec<RadioSpec>,
    /// An application with its two ends.
    #[serde(default)]
    pub flow: Vec<FlowSpec>,
    /// What changes when a sender enters a phase of its congestion control.
    #[serde(default)]
    pub change: Vec<ChangeSpec>,
}

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Until {
    #[serde(rename = "duration")]
    Duration,
    #[serde(rename = "transfers done")]
    TransfersDone,
}

impl From<Until> for sojourn_scenario::Until {
    fn from(until: Until) -> Self {
        match until {
            Until::Duration => Self::Duration,
            Until::TransfersDone => Self::TransfersDone,
        }
    }
}

/// A place where links end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// How links and flows refer to it.
    pub name: String,
}

/// Runs with different seeds differ in everything random: start times, losses, blockages, hashes, a
/// controller's random choices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatSpec {
    /// How many seeds (then 1, 2, 3 …), or which.
    #[schemars(extend("default" = 1))]
    pub seeds: Seeds,
    /// Root of every random stream of the study.
    #[schemars(extend("default" = 1))]
    pub study_seed: u64,
}

impl Default for RepeatSpec {
    fn default() -> Self {
        Self { seeds: Seeds::Count(1), study_seed: 1 }
    }
}

/// A figure of the report.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewSpec {
    /// `bars`: a bar for each value of `x`. `boxes`: quartiles and ends of the runs instead. `series`: over time. `cdf`: the distribution of a metric
    /// over runs, or of all samples of a delay (`rtt`, `sojourn`). `scatter`: a point per flow, `y`
    /// against `x`. `heatmap`: `y` over two factors, `x` and `split`. `line`: `y` against the numbers
    /// of a factor, with a band for the 95 % interval. `verdicts`: which claim holds for which value
    /// of `x`, or without `x` what each claim came to; it has no `y`. `harm`: how much worse `y` of a flow is than in its solo run, with what `x` names
    /// beside it and for each value of `split`. `table`: numbers, a column for each `y`, with one for each value
    /// of `split` or else for each flow; a row for each combination of the other factors, `x` first.
    #[schemars(with = "ViewKindSchema")]
    pub kind: ViewKind,
    /// Above the figure.
    pub title: Option<String>,
    /// Below the figure: what to see in it.
    pub caption: Option<String>,
    /// A factor, or a metric in a `scatter`.
    pub x: Option<String>,
    /// One or more metrics, or columns of the time series.
    #[serde(default)]
    pub y: OneOrMany,
    /// A factor or `flow`: a colour or a panel each.
    pub split: Option<String>,
    /// `line`: the axes that are logarithmic, `x`, `y` or both; chosen by the values if left out.
    pub log: Option<OneOrMany>,
    /// `harm`: the solo runs, by a factor's value: `solo = { "flow.other.count" = 0 }`.
    #[serde(default)]
    pub solo: Selection,
    /// Flows, groups or queues shown; all if left out.
    #[serde(default)]
    pub of: OneOrMany,
    /// Shows only scenarios in which each factor has the given value, or one of them.
    #[serde(default, rename = "where")]
    pub filter: Selection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewKind {
    /// A bar for each value of a factor.
    Bars,
    /// A box for each value of a factor: how runs spread.
    Boxes,
    /// Over time.
    Series,
    /// Distribution over runs.
    Cdf,
    /// A metric against another.
    Scatter,
    /// Two factors and a colour.
    Heatmap,
    /// A metric against the numbers of a factor.
    Line,
    /// Claims against a factor.
    Verdicts,
    /// Who hurts whom.
    Harm,
    /// Numbers.
    Table,
}

/// A sentence with bounds, and where it was said.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSpec {
    /// Short, and unique in the study.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Section, figure or table.
    pub source: Option<String>,
    /// Counts only in scenarios in which each factor has the given value, or one of them.
    #[serde(default, rename = "where")]
    pub filter: Selection,
    /// Expressions over metrics that must all hold.
    #[serde(default)]
    pub expect: OneOrMany,
    /// Why this claim is untestable here. It then needs no `expect`.
    pub untestable: Option<String>,
    /// What the study's author says of the outcome.
    pub note: Option<String>,
}

/// Addresses in the scenario, each with the values that it takes; and beside them:
#[derive(JsonSchema)]
#[allow(dead_code)]
struct FactorsSchema {
    /// Factors that change together: the first values of all of them, then the second values …
    zip: Option<Vec<BTreeMap<String, serde_json::Value>>>,
    /// Combinations that are left out: a combination that has all values of an entry.
    except: Option<Vec<Selection>>,
    #[schemars(flatten)]
    factors: BTreeMap<String, FactorSchema>,
}

/// The values of a factor.
#[derive(JsonSchema)]
#[allow(dead_code)]
#[schemars(untagged)]
enum FactorSchema {
    /// A list of values.
    List(Vec<Plain>),
    /// From one value to another.
    Range {
        /// First value.
        from: Plain,
        /// Last value.
        to: Plain,
        /// Distance of one value from the next. Either this or `count`.
        step: Option<Plain>,
        /// How many values.
        count: Option<u32>,
        /// With `count`: equal distances (`linear`, the default) or equal ratios (`log`).
        scale: Option<String>,
    },
    /// The first part of an address; the rest is inside.
    Inside(BTreeMap<String, serde_json::Value>),
}

#[derive(JsonSchema)]
#[allow(dead_code)]
#[schemars(rename_all = "snake_case")]
enum ViewKindSchema {
    Bars,
    Boxes,
    Series,
    Cdf,
    Scatter,
    Heatmap,
    Line,
    Verdicts,
    Harm,
    Table,
}
