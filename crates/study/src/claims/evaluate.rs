//! Checking claims against results.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sojourn_core::is_phase;
use sojourn_metrics::{sample_columns, stats, survival_columns};

use super::Claim;
use super::over_time::{OverTime, What};
use super::resolve::{Expectation, Term, Test, Tolerance, Value};
use super::syntax::{Pool, Relation};
use super::units::Unit;
use crate::confidence;
use crate::results::{
    Check, ClaimReport, ClaimResult, Estimate, Kind, Miss, Plan, PlannedFlow, PlannedScenario, Row,
    Series, Verdict,
};

/// The metrics that a check of claims reads.
pub(crate) fn metrics(claims: &[Claim]) -> BTreeSet<&'static str> {
    let expectations = claims.iter().flat_map(|claim| &claim.expect);
    let metrics = expectations.flat_map(Expectation::values).map(|value| value.metric);
    let mut all = BTreeSet::new();
    for metric in metrics {
        let counts = [sample_columns(metric), survival_columns(metric)];
        all.extend(counts.into_iter().flatten().flat_map(|(a, b)| [a, b]));
        all.extend(refused_column(metric));
        all.insert(metric);
    }
    all
}

/// The metric that says how many of its samples are missing because transfers were refused.
fn refused_column(metric: &str) -> Option<&'static str> {
    is_of(metric, &["fct", "slowdown"]).then_some("transfers_refused")
}

/// Whether a metric is of one of these families.
fn is_of(metric: &str, families: &[&str]) -> bool {
    families.iter().any(|family| metric.starts_with(family))
}

/// Takes in the runs of a study, and checks its claims when all are there. Of a run it keeps a number for each
/// value that claims speak of.
pub(crate) struct Checker<'a> {
    claims: &'a [Claim],
    plan: &'a Plan,
    /// For each run, whether it has a result.
    is_there: Vec<bool>,
    /// Values that are the same in all that is kept of them are here once.
    columns: Vec<ValueColumn<'a>>,
    /// Every phase that some controller was in.
    phases: BTreeSet<String>,
}

/// A value of claims in each run.
struct ValueColumn<'a> {
    value: &'a Value,
    /// Its place among the plan's metrics.
    metric: Option<usize>,
    /// Where samples are counted: those that are known, and all.
    samples: Option<(usize, usize)>,
    /// Where transfers are counted that were refused.
    refused: Option<usize>,
    /// Where transfers are counted that began.
    begun: Option<usize>,
    /// Of its flows or queues together; not a number where there is none.
    pooled: Vec<f64>,
    /// Runs in which too few transfers ended to know it.
    out_of_reach: BTreeSet<u32>,
    /// As long as `pooled` if it is known of any run.
    covered: Vec<Option<Covered>>,
    /// Runs in which all that Jain's index is asked of is zero.
    all_zero: BTreeSet<u32>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(claims: &'a [Claim], plan: &'a Plan) -> Self {
        let mut columns: Vec<ValueColumn<'_>> = Vec::new();
        for value in claims.iter().flat_map(|claim| &claim.expect).flat_map(Expectation::values) {
            if !columns.iter().any(|column| column.value.is_as(value)) {
                let place =
                    |metric: &str| plan.metrics.iter().position(|column| column.name == metric);
                columns.push(ValueColumn {
                    value,
                    metric: place(value.metric),
                    samples: sample_columns(value.metric)
                        .and_then(|(known, all)| Some((place(known)?, place(all)?))),
                    refused: refused_column(value.metric).and_then(place),
                    begun: survival_columns(value.metric).and_then(|(_, begun)| place(begun)),
                    pooled: vec![f64::NAN; plan.runs.len()],
                    out_of_reach: BTreeSet::new(),
                    covered: Vec::new(),
                    all_zero: BTreeSet::new(),
                });
            }
        }
        let is_there = vec![false; plan.runs.len()];
        Self { claims, plan, is_there, columns, phases: BTreeSet::new() }
    }

    /// Takes in the rows of a run, whose values are of the plan's metrics.
    pub(crate) fn add_rows(&mut self, rows: &[Row]) {
        let Some(first) = rows.first() else { return };
        let Some(scenario) = self.plan.scenarios.get(first.scenario as usize) else { return };
        self.is_there[first.run as usize] = true;
        let columns = self.columns.iter_mut().filter(|column| column.value.over_time.is_none());
        columns.for_each(|column| column.add_rows(rows, &scenario.flows));
    }

    /// Whether it needs rows, if only to know which runs are there.
    pub(crate) fn needs_rows(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Whether it needs the runs' time series.
    pub(crate) fn needs_series(&self) -> bool {
        self.columns.iter().any(|column| column.value.over_time.is_some())
    }

    /// Takes in the time series of a run.
    pub(crate) fn add_series(&mut self, run: u32, all: &[Series]) {
        for series in all {
            let mut last = "";
            for phase in &series.phase {
                if &phase[..] != last {
                    self.phases.insert(phase.to_string());
                    last = phase;
                }
            }
        }
        let scenario = self.plan.runs[run as usize].scenario as usize;
        let flows = &self.plan.scenarios[scenario].flows;
        for column in &mut self.columns {
            let ValueColumn { value, pooled, all_zero, .. } = column;
            if let Some(over_time) = &value.over_time {
                let meant = all.iter().filter(|own| value.is_of(own.kind, &own.name, flows));
                let found: Vec<f64> = meant.filter_map(|own| over_time.of(own)).collect();
                pooled[run as usize] = value.pooled(&found);
                if value.is_of_zeros(&found) {
                    all_zero.insert(run);
                }
            }
        }
    }

    /// Checks every claim in every scenario that it covers.
    pub(crate) fn check(&self) -> ClaimReport {
        let results = Results::new(self);
        ClaimReport { claims: self.claims.iter().map(|claim| results.claim(claim)).collect() }
    }
}

impl ValueColumn<'_> {
    fn add_rows(&mut self, rows: &[Row], flows: &[PlannedFlow]) {
        let value = self.value;
        let is_meant = |row: &&Row| value.is_of(row.kind, &row.name, flows);
        let meant: Vec<&Row> = rows.iter().filter(is_meant).collect();
        let Some(run) = meant.first().map(|row| row.run) else { return };
        let of = |metric: usize| meant.iter().filter_map(move |row| row.values.get(metric));
        let found: Vec<f64> = self.metric.into_iter().flat_map(of).collect();
        if let Some(begun) = self.begun
            && found.len() < of(begun).filter(|begun| *begun > 0.0).count()
        {
            self.out_of_reach.insert(run);
            return;
        }
        let sum = |metric| of(metric).reduce(|sum, count| sum + count);
        let refused = self.refused.and_then(sum).unwrap_or_default();
        let samples = self.samples.and_then(|(n, of)| {
            Some(Covered { known: sum(n)?, all: sum(of)?, refused, of_flows: false })
        });
        // Where samples are not counted, flows are, if some of them lack the metric.
        let flows = || {
            let (known, all) = (found.len() as f64, meant.len() as f64);
            let covered = Covered { known, all, refused: 0.0, of_flows: true };
            (known > 0.0 && known < all).then_some(covered)
        };
        if let Some(covered) = samples.or_else(flows) {
            self.covered.resize(self.pooled.len(), None);
            self.covered[run as usize] = Some(covered);
        }
        self.pooled[run as usize] = value.pooled(&found);
        if value.is_of_zeros(&found) {
            self.all_zero.insert(run);
        }
    }
}

struct Results<'a> {
    plan: &'a Plan,
    of: &'a Checker<'a>,
    /// Runs in ascending order of scenario and seed.
    runs: Vec<u32>,
    /// Scenarios by the values of their factors.
    places: OnceCell<BTreeMap<&'a [Arc<str>], u32>>,
    /// What [`Plan::companion`] said, by what it was asked.
    companions: RefCell<BTreeMap<Asked, Option<&'a str>>>,
}

/// A factor, its value, and the factor whose value is asked for.
type Asked = (usize, String, usize);

/// How many samples or flows the values of a check have, and how many they would have if none were
/// missing; by metric, by what the metric is measured on, and by run, because an expression may name one
/// value several times.
#[derive(Default)]
struct Coverage(BTreeMap<(&'static str, String), BTreeMap<u32, Covered>>);

#[derive(Clone, Copy, Default)]
struct Covered {
    known: f64,
    all: f64,
    /// Transfers of any size among those that are missing.
    refused: f64,
    /// The counts are of flows with and without the metric, not of samples with and without a value.
    of_flows: bool,
}

impl Covered {
    /// `10 of 20 samples`.
    fn describe(self) -> String {
        let what = if self.of_flows { "flows" } else { "samples" };
        format!("{} of {} {what}", self.known, self.all)
    }

    /// What became of all, if none has a value of the metric.
    fn none(self, metric: &str) -> String {
        let became = match () {
            () if self.known > 0.0 || self.of_flows => {
                return format!("{} have a value", self.describe());
            }
            () if self.refused > 0.0 => "transfers had ended; some were refused",
            () if is_of(metric, &["completion", "fct", "slowdown"]) => "transfers had ended",
            () if is_of(metric, &["frame"]) => "frames became complete",
            () if is_of(metric, &["ping"]) => "pings came back",
            () if is_of(metric, &["owd", "ipdv", "pdv"]) => "packets arrived",
            () => return format!("{} have a value", self.describe()),
        };
        format!("0 of {} {became}", self.all)
    }

    /// What became of those that have no value of the metric.
    fn others(self, metric: &str) -> String {
        let became = match () {
            () if self.of_flows => "the other flows have no value",
            () if self.refused > 0.0 => return self.refused(metric),
            () if is_of(metric, &["completion", "fct", "slowdown"]) => "the others had not ended",
            () if is_of(metric, &["frame"]) => "the other frames never became complete",
            () if is_of(metric, &["ping", "owd", "ipdv", "pdv"]) => {
                "the others were lost, or under way at the end"
            }
            () => "the others have no value",
        };
        became.to_owned()
    }

    /// The same of transfers of which some were refused.
    fn refused(self, metric: &str) -> String {
        let open = self.all - self.known - self.refused;
        match () {
            // Those that were refused are not counted by size.
            () if is_of(metric, &["fct_small", "fct_medium", "fct_large"]) => {
                "the others had not ended or were refused".to_owned()
            }
            () if open > 0.0 => {
                format!("of the others {open} had not ended and {} were refused", self.refused)
            }
            () => "the others were refused".to_owned(),
        }
    }
}

impl Coverage {
    fn add(&mut self, value: &Value, run: u32, covered: Covered) {
        self.0.entry((value.metric, value.of.clone())).or_default().insert(run, covered);
    }

    /// Names the values that lack samples; `None` if none does.
    fn note(&self) -> Option<String> {
        let sum = |runs: &BTreeMap<u32, Covered>| {
            runs.values().fold(Covered::default(), |sum, covered| Covered {
                known: sum.known + covered.known,
                all: sum.all + covered.all,
                refused: sum.refused + covered.refused,
                of_flows: covered.of_flows,
            })
        };
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|(named, runs)| (named, sum(runs)))
            .filter(|(_, covered)| covered.known < covered.all)
            .map(|((metric, of), covered)| {
                let (counted, others) = (covered.describe(), covered.others(metric));
                format!("'{metric}' of '{of}' is over {counted}: {others}")
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
enum Absent {
    Run,
    Scenario(String),
    Value(String),
}

impl<'a> Results<'a> {
    fn new(of: &'a Checker<'a>) -> Self {
        let plan = of.plan;
        let mut runs: Vec<u32> = (0..plan.runs.len() as u32).collect();
        runs.sort_by_key(|run| place(plan, *run));
        Self { plan, of, runs, places: OnceCell::new(), companions: RefCell::default() }
    }

    fn claim(&self, claim: &Claim) -> ClaimResult {
        let mut result = ClaimResult {
            id: claim.id.clone(),
            text: claim.text.clone(),
            source: claim.source.clone(),
            note: claim.note.clone(),
            verdict: Verdict::Untestable,
            reason: claim.untestable.clone(),
            checks: Vec::new(),
        };
        if claim.untestable.is_some() {
            return result;
        }
        let scenarios: Vec<u32> = (0..self.plan.scenarios.len() as u32)
            .filter(|index| {
                let scenario = &self.plan.scenarios[*index as usize];
                self.plan.is_selected(scenario, &claim.filter)
            })
            .collect();
        if scenarios.is_empty() {
            result.reason =
                Some("no scenario of this study is one that the claim speaks of".into());
            return result;
        }
        for expectation in &claim.expect {
            result.checks.extend(self.expectation(expectation, &scenarios));
        }
        let has = |verdict| result.checks.iter().any(|check| check.verdict == verdict);
        result.verdict = if has(Verdict::Fails) {
            Verdict::Fails
        } else if has(Verdict::Untestable) {
            result.reason = why_open(&result.checks);
            Verdict::Untestable
        } else {
            Verdict::Holds
        };
        result
    }

    /// A check for each scenario; scenarios that differ only in factors that the expression itself
    /// sets have one check together.
    fn expectation(&self, expectation: &Expectation, scenarios: &[u32]) -> Vec<Check> {
        let values = expectation.values();
        let is_set =
            |factor: usize| values.iter().all(|value| self.chosen(value, factor).is_some());
        let free: Vec<usize> =
            (0..self.plan.factors.len()).filter(|factor| !is_set(*factor)).collect();
        let mut seen: BTreeSet<Vec<&str>> = BTreeSet::new();
        let mut checks = Vec::new();
        for scenario in scenarios {
            let factors = &self.plan.scenarios[*scenario as usize].factors;
            let place: Vec<&str> = free.iter().map(|factor| &factors[*factor][..]).collect();
            if !seen.insert(place) {
                continue;
            }
            let label: Vec<String> = free
                .iter()
                .filter(|factor| self.plan.factors[**factor].values.len() > 1)
                .map(|factor| format!("{} = {}", self.plan.factors[*factor].name, factors[*factor]))
                .collect();
            checks.push(self.check(expectation, *scenario, label.join(", ")));
        }
        checks
    }

    fn check(&self, expectation: &Expectation, scenario: u32, label: String) -> Check {
        let unit = expectation.unit;
        let mut check = Check {
            expression: expectation.text.clone(),
            scenario,
            label,
            verdict: Verdict::Untestable,
            reason: None,
            value: None,
            bound: None,
            wanted: wanted(&expectation.test, unit),
            miss: None,
            room: None,
        };
        let mut coverage = Coverage::default();
        let left = match self.over_seeds(&expectation.left, scenario, &mut coverage) {
            Ok(left) => left,
            Err(reason) => return Check { reason: Some(reason), ..check },
        };
        let value = mean(&left);
        check.value = Some(estimate(&left, unit));
        let (holds, nearest) = match &expectation.test {
            Test::Within { low, high } => {
                ((*low..=*high).contains(&value), nearest(value, *low, *high))
            }
            Test::Compare { relation, right, .. } => {
                match self.bound(right, scenario, unit, &mut check, &mut coverage) {
                    Ok(bound) => (relation.holds(value, bound), bound),
                    Err(reason) => return Check { reason: Some(reason), ..check },
                }
            }
            Test::Near { right, tolerance, .. } => {
                match self.bound(right, scenario, unit, &mut check, &mut coverage) {
                    Ok(centre) => {
                        let by = tolerance.around(centre);
                        let (low, high) = (centre - by, centre + by);
                        ((low..=high).contains(&value), nearest(value, low, high))
                    }
                    Err(reason) => return Check { reason: Some(reason), ..check },
                }
            }
        };
        // Division by zero gives no finite number.
        if !value.is_finite() || !nearest.is_finite() {
            let reason = Some("a quantity was divided by zero".into());
            // No number describes the outcome.
            return Check { reason, value: None, bound: None, ..check };
        }
        check.verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        check.reason = coverage.note();
        let distance = Some(Miss {
            by: (value - nearest).abs() / unit.scale,
            unit: unit.name.to_owned(),
            share: (nearest != 0.0).then(|| ((value - nearest) / nearest).abs()),
        });
        if holds {
            check.room = distance;
        } else {
            check.miss = distance;
        }
        check
    }

    /// What a value is compared with. If it is not the same in every run, the check shows it.
    fn bound(
        &self,
        right: &Term,
        scenario: u32,
        unit: Unit,
        check: &mut Check,
        coverage: &mut Coverage,
    ) -> Result<f64, String> {
        if let Some(constant) = right.constant() {
            return Ok(constant);
        }
        let right = self.over_seeds(right, scenario, coverage)?;
        check.bound = Some(estimate(&right, unit));
        Ok(mean(&right))
    }

    /// A value for each seed.
    fn over_seeds(
        &self,
        term: &Term,
        scenario: u32,
        coverage: &mut Coverage,
    ) -> Result<Vec<f64>, String> {
        let seeds = &self.plan.seeds;
        let mut values = Vec::with_capacity(seeds.len());
        let mut absent = 0;
        for seed in seeds {
            match self.value(term, scenario, *seed, coverage) {
                Ok(value) => values.push(value),
                Err(Absent::Run) => absent += 1,
                Err(Absent::Scenario(reason)) => return Err(reason),
                Err(Absent::Value(reason)) if seeds.len() > 1 => {
                    return Err(format!("{reason} with seed {seed}"));
                }
                Err(Absent::Value(reason)) => return Err(reason),
            }
        }
        match absent {
            0 => Ok(values),
            _ => Err(format!("{absent} of {} runs have no result", seeds.len())),
        }
    }

    fn value(
        &self,
        term: &Term,
        scenario: u32,
        seed: u64,
        coverage: &mut Coverage,
    ) -> Result<f64, Absent> {
        match term {
            Term::Number(number) => Ok(*number),
            Term::Model(values) => Ok(values[scenario as usize]),
            Term::Negative(inner) => Ok(-self.value(inner, scenario, seed, coverage)?),
            Term::Binary(operator, left, right) => Ok(operator.apply(
                self.value(left, scenario, seed, coverage)?,
                self.value(right, scenario, seed, coverage)?,
            )),
            Term::Value(value) => self.metric(value, scenario, seed, coverage),
            Term::Harm(better, both) => {
                let [alone, beside] = &**both;
                let alone = self.metric(alone, scenario, seed, coverage)?;
                Ok(stats::harm(alone, self.metric(beside, scenario, seed, coverage)?, *better))
            }
        }
    }

    fn metric(
        &self,
        value: &Value,
        scenario: u32,
        seed: u64,
        coverage: &mut Coverage,
    ) -> Result<f64, Absent> {
        let scenario = self.elsewhere(value, scenario)?;
        let is_there = |run: &u32| self.of.is_there[*run as usize];
        let run = self.run(scenario, seed).filter(is_there).ok_or(Absent::Run)?;
        let columns = &self.of.columns;
        let column = columns.iter().find(|column| column.value.is_as(value));
        let Some(column) = column else { unreachable!("every value of a claim has a column") };
        if column.out_of_reach.contains(&run) {
            return Err(Absent::Value(format!(
                "'{}' of '{}' is out of reach, as too few transfers ended",
                value.metric, value.of
            )));
        }
        let covered = column.covered.get(run as usize).copied().flatten();
        if let Some(covered) = covered {
            coverage.add(value, run, covered);
        }
        if let Some(over_time) = &value.over_time {
            self.of.known_phase(over_time)?;
        }
        let pooled = column.pooled[run as usize];
        if !pooled.is_nan() {
            let scale = if value.pool == Pool::Jain { 1.0 } else { value.scale };
            return Ok(pooled * scale);
        }
        let (metric, of) = (value.metric, &value.of[..]);
        if column.all_zero.contains(&run) {
            let reason =
                format!("Jain's index is not defined, as '{metric}' of all of '{of}' is 0");
            return Err(Absent::Value(reason));
        }
        let known = covered.map_or(String::new(), |covered| match covered.all > 0.0 {
            true => format!(": {}", covered.none(metric)),
            false if metric.starts_with("fct") || metric.starts_with("slowdown") => {
                ": no transfer began after the warm-up".to_owned()
            }
            false => ": it has no samples".to_owned(),
        });
        Err(Absent::Value(match of {
            _ if value.over_time.is_some() => {
                format!("'{metric}' of '{of}' has no value in that time")
            }
            "" => format!("'{metric}' was not measured{known}"),
            of => format!("'{metric}' of '{of}' was not measured{known}"),
        }))
    }

    /// The run of a scenario with a seed.
    fn run(&self, scenario: u32, seed: u64) -> Option<u32> {
        let of = (scenario, seed);
        let at = self.runs.partition_point(|run| place(self.plan, *run) < of);
        self.runs.get(at).copied().filter(|run| place(self.plan, *run) == of)
    }

    /// The value of a factor in the scenario that `value` names, if it names the factor or one that
    /// changes together with it.
    fn chosen<'b>(&'b self, value: &'b Value, factor: usize) -> Option<&'b str> {
        let itself = value.elsewhere.iter().find(|(set, _)| *set == factor);
        itself.map(|(_, chosen)| &chosen[..]).or_else(|| {
            let mut others = value.elsewhere.iter();
            others.find_map(|(set, chosen)| self.companion(*set, chosen, factor))
        })
    }

    /// As [`Plan::companion`], which looks through all scenarios.
    fn companion(&self, factor: usize, value: &str, other: usize) -> Option<&str> {
        if !self.plan.factors[factor].together.contains(&other) {
            return None;
        }
        let asked = (factor, value.to_owned(), other);
        *self
            .companions
            .borrow_mut()
            .entry(asked)
            .or_insert_with(|| self.plan.companion(factor, value, other))
    }

    /// The scenario from which a value is taken.
    fn elsewhere(&self, value: &Value, scenario: u32) -> Result<u32, Absent> {
        if value.elsewhere.is_empty() {
            return Ok(scenario);
        }
        let mut factors = self.plan.scenarios[scenario as usize].factors.clone();
        for (factor, own) in factors.iter_mut().enumerate() {
            if let Some(chosen) = self.chosen(value, factor) {
                *own = chosen.into();
            }
        }
        let places = self.places.get_or_init(|| {
            let scenarios = self.plan.scenarios.iter().enumerate();
            let place =
                |(at, scenario): (usize, &'a PlannedScenario)| (&scenario.factors[..], at as u32);
            // Of two that are alike the first.
            scenarios.rev().map(place).collect()
        });
        places.get(&factors[..]).copied().ok_or_else(|| {
            let there: Vec<String> = value
                .elsewhere
                .iter()
                .map(|(factor, value)| format!("{} = {value}", self.plan.factors[*factor].name))
                .collect();
            Absent::Scenario(format!("the study has no scenario with {}", there.join(", ")))
        })
    }
}

/// Why a claim of which no check fails does not hold: in how many scenarios it could be tested, if in
/// any, and what the first of the others lacks.
fn why_open(checks: &[Check]) -> Option<String> {
    let open = || checks.iter().filter(|check| check.verdict == Verdict::Untestable);
    let reason = open().find_map(|check| check.reason.clone())?;
    let untested: BTreeSet<u32> = open().map(|check| check.scenario).collect();
    let all: BTreeSet<u32> = checks.iter().map(|check| check.scenario).collect();
    let held = all.len() - untested.len();
    let plural = if held == 1 { "" } else { "s" };
    Some(match (held, checks.len() - open().count()) {
        (_, 0) => reason,
        (0, held) => {
            let all = checks.len();
            format!("{held} of {all} bounds held, the others are untestable: {reason}")
        }
        _ => format!("held in {held} scenario{plural}, untestable in {}: {reason}", untested.len()),
    })
}

/// The scenario and the seed of a run.
fn place(plan: &Plan, run: u32) -> (u32, u64) {
    let run = &plan.runs[run as usize];
    (run.scenario, run.seed)
}

impl Checker<'_> {
    /// # Errors
    /// The value is of a phase in which no controller ever was.
    fn known_phase(&self, over_time: &OverTime) -> Result<(), Absent> {
        let (What::Phase(_, wanted) | What::Entry(_, wanted)) = &over_time.what else {
            return Ok(());
        };
        if self.phases.iter().any(|phase| is_phase(phase, wanted)) {
            return Ok(());
        }
        let known: Vec<&str> = self.phases.iter().map(String::as_str).collect();
        let known = known.join(", ");
        Err(Absent::Scenario(format!(
            "no flow of the study ever is in a phase '{wanted}'; there are {known}"
        )))
    }
}

impl Value {
    /// Whether it is measured on the flow, queue or run of this kind and name.
    fn is_of(&self, kind: Kind, name: &str, flows: &[PlannedFlow]) -> bool {
        let is_in_group = || flows.iter().any(|flow| flow.name == name && flow.group == self.of);
        kind == self.kind
            && (kind == Kind::Run || name == self.of || (kind == Kind::Flow && is_in_group()))
    }

    /// Whether it is the same number in every run. Units may differ, and from which scenario it is taken.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let of = |value: &Self| (value.metric, value.kind, value.pool);
        of(self) == of(other) && self.of == other.of && self.over_time == other.over_time
    }

    /// Whether it is Jain's index of zeros, which is not defined.
    fn is_of_zeros(&self, found: &[f64]) -> bool {
        self.pool == Pool::Jain && !found.is_empty() && found.iter().all(|value| *value == 0.0)
    }

    /// What its flows or queues have together; not a number if that is none.
    fn pooled(&self, found: &[f64]) -> f64 {
        self.pool.of(found).filter(|pooled| pooled.is_finite()).unwrap_or(f64::NAN)
    }
}

impl Relation {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

impl Pool {
    /// `None` without values.
    fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Sum => (!values.is_empty()).then(|| values.iter().sum()),
            Self::Min => values.iter().copied().reduce(f64::min),
            Self::Max => values.iter().copied().reduce(f64::max),
            Self::Mean => stats::mean(values),
            Self::Median => stats::quantile(values, 0.5),
            Self::Jain => stats::jain(values),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

fn estimate(values: &[f64], unit: Unit) -> Estimate {
    let shown: Vec<f64> = values.iter().map(|value| value / unit.scale).collect();
    Estimate {
        mean: mean(&shown),
        half_width: confidence::USUAL.mean_interval(&shown).map(|interval| interval.half_width()),
        seeds: shown.len() as u32,
        unit: unit.name.to_owned(),
    }
}

/// The end of a range that is nearer.
fn nearest(value: f64, low: f64, high: f64) -> f64 {
    if (value - low).abs() < (high - value).abs() { low } else { high }
}

fn wanted(test: &Test, unit: Unit) -> String {
    let with_unit = |text: String| match unit.name {
        "" => text,
        "%" => format!("{text}%"),
        name => format!("{text} {name}"),
    };
    let shown = |number: f64| number / unit.scale;
    match test {
        Test::Within { low, high } => {
            with_unit(format!("{}..{}", round(shown(*low)), round(shown(*high))))
        }
        Test::Compare { relation, right, right_text } => match right.constant() {
            Some(number) => with_unit(format!("{} {}", relation.symbol(), round(shown(number)))),
            None => format!("{} {right_text}", relation.symbol()),
        },
        Test::Near { right, right_text, tolerance } => match right.constant() {
            Some(centre) => {
                let by = tolerance.around(centre);
                with_unit(format!("{}..{}", round(shown(centre - by)), round(shown(centre + by))))
            }
            None => {
                let by = match tolerance {
                    Tolerance::By(by) => format!("{}{}", round(shown(*by)), unit.name),
                    Tolerance::Share(share) => format!("{}%", round(100.0 * share)),
                };
                format!("±{by} {right_text}")
            }
        },
    }
}

/// Removes the rounding error that converting a written number to seconds and bits has added.
fn round(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}
