//! The content of a result folder, as plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sojourn_file::plan::{Factor, PlannedFlow, PlannedQueue};
use sojourn_file::spec::ViewKind;

use super::buckets::{self, Bucket};
use super::step_values::StepValues;
use super::values::Values;
use crate::digest::Digest;

/// Everything in a result folder except the time series, which are read run by run with
/// [`Results::reader`].
#[derive(Clone, Debug)]
pub struct Results {
    pub folder: PathBuf,
    /// `study.toml` as run.
    pub study: String,
    pub plan: Plan,
    pub table: Table,
    /// `None` when the folder was interrupted before claims were checked.
    pub claims: Option<ClaimReport>,
    pub machine: Option<Machine>,
    /// Positions in [`Plan::runs`] of runs without a result.
    pub missing: Vec<u32>,
}

/// `plan.json`: what was to be run. Positions are indices into the lists here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the study format.
    pub schema: u32,
    pub title: String,
    pub source: Option<String>,
    pub question: Option<String>,
    /// Path of the study as the user gave it.
    pub path: String,
    /// The options that changed the study, each as name, blank and value, as given: `--set
    /// path.rate=40mbps`, `--seeds 3`, `--shorten 10s`.
    pub overrides: Vec<String>,
    /// A name for this list of runs: 32 hexadecimal digits.
    pub digest: String,
    /// Version of the models, a part of every run's identity.
    pub model: String,
    /// Root of every random stream; with a run's seed it addresses that run's streams.
    pub study_seed: u64,
    pub seeds: Vec<u64>,
    pub factors: Vec<Factor>,
    /// Lists of a hundred thousand may be shared: by clones of the plan, and their parts by scenarios.
    #[serde(deserialize_with = "interned")]
    pub scenarios: Arc<Vec<PlannedScenario>>,
    pub runs: Arc<Vec<PlannedRun>>,
    pub views: Vec<View>,
    /// The metric columns of `runs.parquet`, with their meaning.
    pub metrics: Vec<MetricColumn>,
}

impl Plan {
    /// Whether all that engines, applications and queues of the two say is the same, but for the digest of a file that they name, such as
    /// a kernel that was built anew.
    pub fn differs_in_digests(&self, other: &Self) -> bool {
        let texts = |plan: &Self| -> Vec<String> {
            let scenarios = plan.scenarios.iter();
            let of = |scenario: &PlannedScenario| {
                let flows = scenario.flows.iter().map(|flow| flow.app.to_string());
                let queues = scenario.queues.iter().map(|queue| queue.queue.to_string());
                let engine = scenario.engine.iter().map(|engine| engine.to_string());
                engine.chain(flows).chain(queues).collect::<Vec<_>>()
            };
            scenarios.flat_map(of).collect()
        };
        let without = |texts: &[String]| -> Vec<String> {
            let is_digest = |word: &&str| word.len() == 16 && u64::from_str_radix(word, 16).is_ok();
            let cut = |text: &String| {
                let words = text.split([' ', '=']).filter(|word| !is_digest(word));
                words.collect::<Vec<_>>().join(" ")
            };
            texts.iter().map(cut).collect()
        };
        let (own, others) = (texts(self), texts(other));
        own != others && without(&own) == without(&others)
    }

    /// Whether each factor named in `filter` has one of the values wanted.
    pub fn is_selected(&self, scenario: &PlannedScenario, filter: &[Where]) -> bool {
        filter.iter().all(|wanted| {
            let factor = self.factors.iter().position(|factor| factor.name == wanted.factor);
            let has = |factor: usize| {
                wanted.values.iter().any(|value| **value == *scenario.factors[factor])
            };
            factor.is_some_and(has)
        })
    }

    /// The value that `other` always has if `factor` has `value`; `None` if they do not change
    /// together, or `other` has several.
    pub fn companion(&self, factor: usize, value: &str, other: usize) -> Option<&str> {
        if !self.factors[factor].together.contains(&other) {
            return None;
        }
        let scenarios = self.scenarios.iter().map(|scenario| &scenario.factors);
        let mut values = scenarios.filter(|own| *own[factor] == *value).map(|own| &own[other][..]);
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// The values that distinguish a scenario from the others: `path.queue = fq_codel, flow.bbr.cca
    /// = bbr3`.
    pub fn label(&self, scenario: u32) -> String {
        let values = &self.scenarios[scenario as usize].factors;
        let parts = self.factors.iter().zip(values).filter(|(factor, _)| factor.values.len() > 1);
        parts
            .map(|(factor, value)| format!("{} = {value}", factor.name))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedScenario {
    /// A value for each of [`Plan::factors`].
    pub factors: Vec<Arc<str>>,
    /// With [`PlannedScenario::until`], the longest that a run lasts.
    pub duration_s: f64,
    /// What ends a run, if it is not its duration: `transfers done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Arc<str>>,
    /// The engine with its version and parameters, if it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Arc<str>>,
    pub warmup_s: f64,
    pub step_s: f64,
    pub flows: Arc<[PlannedFlow]>,
    pub queues: Arc<[PlannedQueue]>,
}

/// Parts that many scenarios have in common, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Common {
    texts: BTreeSet<Arc<str>>,
    flows: BTreeMap<u64, Arc<[PlannedFlow]>>,
    queues: BTreeMap<u64, Arc<[PlannedQueue]>>,
}

impl Common {
    pub(crate) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    pub(crate) fn flows(&mut self, flows: &[PlannedFlow]) -> Arc<[PlannedFlow]> {
        let hash = |hasher: &mut DefaultHasher, flow: &PlannedFlow| {
            let PlannedFlow { name, group, app, cca, base_rtt_ms, bytes, is_up } = flow;
            (name, group, app, cca, base_rtt_ms.to_bits(), bytes, is_up).hash(hasher);
        };
        common(&mut self.flows, flows, hash)
    }

    pub(crate) fn queues(&mut self, queues: &[PlannedQueue]) -> Arc<[PlannedQueue]> {
        let hash = |hasher: &mut DefaultHasher, queue: &PlannedQueue| {
            let PlannedQueue { name, queue, rate } = queue;
            (name, queue, rate).hash(hasher);
        };
        common(&mut self.queues, queues, hash)
    }

    fn scenario(&mut self, scenario: PlannedScenario) -> PlannedScenario {
        PlannedScenario {
            factors: scenario.factors.iter().map(|value| self.text(value)).collect(),
            until: scenario.until.map(|until| self.text(&until)),
            engine: scenario.engine.map(|engine| self.text(&engine)),
            flows: self.flows(&scenario.flows),
            queues: self.queues(&scenario.queues),
            ..scenario
        }
    }
}

/// A list that is known already, or else is from now on; of two with one hash only the first.
fn common<T: Clone + PartialEq>(
    known: &mut BTreeMap<u64, Arc<[T]>>,
    list: &[T],
    hash: impl Fn(&mut DefaultHasher, &T),
) -> Arc<[T]> {
    let mut hasher = DefaultHasher::new();
    list.iter().for_each(|item| hash(&mut hasher, item));
    let place = known.entry(hasher.finish()).or_insert_with(|| list.into());
    if **place == *list { Arc::clone(place) } else { list.into() }
}

/// Reads scenarios one after another, and keeps what they have in common once.
fn interned<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<PlannedScenario>>, D::Error> {
    struct All;
    impl<'de> Visitor<'de> for All {
        type Value = Vec<PlannedScenario>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of scenarios")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let (mut common, mut all) = (Common::default(), Vec::new());
            while let Some(scenario) = list.next_element()? {
                all.push(common.scenario(scenario));
            }
            Ok(all)
        }
    }
    from.deserialize_seq(All).map(Arc::new)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Of scenario, seed and model version.
    pub id: Digest,
    pub scenario: u32,
    pub seed: u64,
}

/// A named figure of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub name: String,
    pub kind: ViewKind,
    pub title: Option<String>,
    pub caption: Option<String>,
    /// A factor or a metric; with `None` the kind of the view decides.
    pub x: Option<String>,
    /// Metrics, or columns of the time series for [`ViewKind::Series`].
    pub y: Vec<String>,
    /// A factor, or `flow`: a colour or panel each.
    pub split: Option<String>,
    /// Logarithmic axes of a [`ViewKind::Line`]; with `None` the values decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<Axis>>,
    /// Of a [`ViewKind::Harm`]: which scenarios are solo runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub solo: Vec<Where>,
    /// Flows, groups or queues shown; empty is all.
    pub of: Vec<String>,
    pub filter: Vec<Where>,
}

/// An axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    X,
    Y,
}

/// Selects scenarios: the factor has one of the values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Where {
    pub factor: String,
    pub values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricColumn {
    /// With its unit as suffix: `goodput_mbps`.
    pub name: String,
    /// Empty for a plain number.
    pub unit: String,
    pub doc: String,
}

/// `runs.parquet` in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the metric columns.
    pub metrics: Vec<String>,
    /// In order of run, kind and name of appearance.
    pub rows: Vec<Row>,
}

/// One row: a flow, a queue or the whole of a run, with its metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Position in [`Plan::runs`].
    pub run: u32,
    /// Position in [`Plan::scenarios`].
    pub scenario: u32,
    pub seed: u64,
    pub kind: Kind,
    /// Of the flow or queue; empty for the run as a whole.
    pub name: String,
    /// Of everything that happened in the run: 16 hexadecimal digits.
    pub digest: String,
    /// What `ss -ti` or `tc -s qdisc` would have printed at the end; may be empty.
    pub end_state: String,
    /// Of a call: when its picture stood still, and which packets made it so. The first few of a run.
    pub freezes: Vec<Freeze>,
    /// A value for each of [`Table::metrics`]; `None` if the metric does not apply or could not be
    /// measured.
    pub values: Values,
}

impl Row {
    /// The same with no other texts than its name, and those metrics only that are wanted.
    pub(crate) fn only(self, is_wanted: &[bool]) -> Self {
        let of = |(is_wanted, value): (&bool, Option<f64>)| value.filter(|_| *is_wanted);
        Self {
            values: is_wanted.iter().zip(self.values.iter()).map(of).collect(),
            digest: String::new(),
            end_state: String::new(),
            freezes: Vec::new(),
            ..self
        }
    }
}

/// A time in which the picture of a call stood still, by libwebrtc's rule. Times are seconds since the run
/// began; frames are counted from 0 in the order in which they are encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Freeze {
    /// When the frame before was shown, and when the one that ended it was.
    pub from_s: f64,
    pub to_s: f64,
    pub after_frame: u32,
    pub frame: u32,
    /// Of the frame that ended it: when it was captured, when its last packet had left for the first time, and
    /// when all its packets were there.
    pub captured_s: f64,
    pub sent_s: Option<f64>,
    pub received_s: Option<f64>,
    /// The packet of that frame that came last.
    pub last: Option<CompletingPacket>,
    /// Frames between the two that were never shown.
    pub never_shown: u32,
    /// Packets of that frame, and of those before it that had not been shown, that were lost; the first few.
    pub lost: Vec<LostPacket>,
    /// How many there are in all.
    pub lost_packets: u32,
    /// What was done about those that are named, in order of time; the first steps. Older folders have none.
    #[serde(default)]
    pub repairs: Vec<RepairStep>,
}

impl Freeze {
    /// It is so long that it counts as a pause.
    pub fn is_pause(&self) -> bool {
        self.to_s - self.from_s > sojourn_metrics::qoe::LONGEST_FREEZE.as_secs_f64()
    }
}

/// The receiver of a call asks for a packet, or a copy of it leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepairStep {
    pub sequence: u32,
    pub at_s: f64,
    pub is_copy: bool,
}

/// The packet with which a frame was complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletingPacket {
    /// In its RTP stream; of a repetition, that of the packet that it repeats.
    pub sequence: u32,
    pub is_repair: bool,
    pub sent_s: f64,
    pub arrived_s: f64,
}

/// A packet of a call's video that was lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostPacket {
    /// In its RTP stream; of a repetition, that of the packet that it repeats.
    pub sequence: u32,
    pub frame: u32,
    pub is_repair: bool,
    pub sent_s: f64,
    pub lost_s: f64,
    /// The queue at which it was lost, and why: `full`, `aqm`, `medium`.
    pub queue: String,
    pub why: String,
}

impl Table {
    /// The value of a metric in a row of this table.
    pub fn value(&self, row: &Row, metric: &str) -> Option<f64> {
        let column = self.metrics.iter().position(|name| name == metric)?;
        row.values.get(column)
    }

    /// The rows of a run.
    pub fn run(&self, run: u32) -> &[Row] {
        let start = self.rows.partition_point(|row| row.run < run);
        let end = self.rows.partition_point(|row| row.run <= run);
        &self.rows[start..end]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Run,
    Flow,
    Queue,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Run, Self::Flow, Self::Queue];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Flow => "flow",
            Self::Queue => "queue",
        }
    }
}

/// Time series of one flow or queue of one run, at the step of its scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub run: u32,
    pub kind: Kind,
    pub name: String,
    /// End of each step, in seconds since the run began.
    pub t_s: Vec<f64>,
    pub columns: Vec<SeriesColumn>,
    /// Phase of the congestion controller at each step; empty where there is none.
    pub phase: Vec<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SeriesColumn {
    /// With its unit as suffix: `cwnd_bytes`.
    pub name: String,
    /// As long as [`Series::t_s`].
    pub values: StepValues,
}

impl Series {
    pub fn column(&self, name: &str) -> Option<&StepValues> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }
}

/// All that was measured of a delay in one run, after the warm-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    pub run: u32,
    pub kind: Kind,
    pub name: String,
    /// The word with which the names of its quantiles begin: `rtt` in `rtt_p95_ms`.
    pub metric: String,
    /// In ascending order.
    #[serde(with = "buckets")]
    pub buckets: Vec<Bucket>,
}

impl Delays {
    pub fn samples(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.samples).sum()
    }
}

/// `claims.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimReport {
    pub claims: Vec<ClaimResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    pub id: String,
    pub text: String,
    /// Section or figure.
    pub source: Option<String>,
    /// What the study's author says of the outcome.
    pub note: Option<String>,
    pub verdict: Verdict,
    /// Why it could not be tested.
    pub reason: Option<String>,
    /// One for each expression and scenario.
    pub checks: Vec<Check>,
}

impl ClaimResult {
    /// The check that tells most: the one that is farthest off or, if all hold, the one nearest to failing.
    /// `None` if the claim could not be tested.
    pub fn telling(&self) -> Option<&Check> {
        let of = |verdict| self.checks.iter().filter(move |check| check.verdict == verdict);
        // By how much, as a share; what is compared with zero has none.
        let by = |distance: &Option<Miss>| {
            let share = distance.as_ref().and_then(|distance| distance.share);
            share.unwrap_or(f64::MAX)
        };
        match self.verdict {
            Verdict::Fails => of(Verdict::Fails).reduce(|worst, check| {
                if by(&check.miss) > by(&worst.miss) { check } else { worst }
            }),
            Verdict::Holds => of(Verdict::Holds).reduce(|least, check| {
                if by(&check.room) < by(&least.room) { check } else { least }
            }),
            Verdict::Untestable => None,
        }
    }

    /// Why it could not be tested, or which samples values of it lack: those of `shown` or, if that
    /// lacks none, of another check.
    pub fn remark<'a>(&'a self, shown: Option<&'a Check>) -> Option<Remark<'a>> {
        if let Some(reason) = &self.reason {
            return Some(Remark { reason, elsewhere: None });
        }
        let check = shown.into_iter().chain(&self.checks).find(|check| check.reason.is_some())?;
        let is_elsewhere = shown.is_none_or(|shown| shown.label != check.label);
        let elsewhere = Some(check).filter(|check| is_elsewhere && !check.label.is_empty());
        Some(Remark { reason: check.reason.as_deref()?, elsewhere })
    }
}

/// What is said of a claim beside one of its checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remark<'a> {
    pub reason: &'a str,
    /// The check it is about, if that is in other scenarios.
    pub elsewhere: Option<&'a Check>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Holds,
    Fails,
    Untestable,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Untestable => "untestable",
        }
    }

    /// As tables for people have it.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Holds => "✓ held",
            Self::Fails => "✗ not held",
            Self::Untestable => "? untestable",
        }
    }

    /// Where it stands in lists that have first what does not hold.
    pub const fn place(self) -> u8 {
        match self {
            Self::Fails => 0,
            Self::Untestable => 1,
            Self::Holds => 2,
        }
    }
}

/// An expression of a claim in one scenario, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub expression: String,
    /// Position in [`Plan::scenarios`].
    pub scenario: u32,
    /// The factor values that distinguish this scenario from others: `path.queue = fq_codel`.
    pub label: String,
    pub verdict: Verdict,
    /// Why it could not be tested; otherwise how many samples its values have, if some are missing.
    pub reason: Option<String>,
    /// Left side of the comparison.
    pub value: Option<Estimate>,
    /// Right side, if it is not a constant.
    pub bound: Option<Estimate>,
    /// What the left side had to be: `6..8 Mbit/s`, `<= 30 ms`.
    pub wanted: String,
    /// How far off; `None` when it holds.
    pub miss: Option<Miss>,
    /// How far from failing; `None` when it fails. Folders of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Miss>,
}

/// A mean over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    /// Half the width of the 95 % interval (Student's t); `None` with a single seed.
    pub half_width: Option<f64>,
    pub seeds: u32,
    /// Empty for a plain number.
    pub unit: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// Distance from the nearest value at which the verdict changes, in `unit`.
    pub by: f64,
    pub unit: String,
    /// The same as a share of that value; `None` where it is zero.
    pub share: Option<f64>,
}

impl Miss {
    /// `by` as it was printed with its unit. Percentages are points apart: "off by 58 % (1165 %)" leaves open
    /// which of the two is a share of which.
    pub fn in_points(&self, printed: String) -> String {
        match self.unit == "%" {
            true => printed.replace('%', "points"),
            false => printed,
        }
    }
}

/// A run that ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// Position in [`Plan::runs`].
    pub run: u32,
    pub problem: String,
}

/// Why runs ended without a result, and which did for that reason, in the order of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause<'a> {
    pub problem: &'a str,
    pub runs: Vec<u32>,
}

impl Cause<'_> {
    /// The different causes, that of the earliest run first.
    pub fn all(failed: &[FailedRun]) -> Vec<Cause<'_>> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut causes: Vec<Cause<'_>> = Vec::new();
        for FailedRun { run, problem } in failed {
            let place = *places.entry(problem).or_insert(causes.len());
            match causes.get_mut(place) {
                Some(cause) => cause.runs.push(*run),
                None => causes.push(Cause { problem, runs: vec![*run] }),
            }
        }
        causes
    }
}

/// `machine.json`: the machine that made the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub sojourn: String,
    pub model: String,
    pub os: String,
    pub arch: String,
    pub cores: usize,
    pub jobs: usize,
    /// Guest kernels that took part: path, release and digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// The command as given.
    pub command: Vec<String>,
    /// Seconds that the last start took.
    pub wall_s: f64,
    /// Runs that the last start found done already.
    pub resumed: usize,
    pub failed: Vec<FailedRun>,
}
