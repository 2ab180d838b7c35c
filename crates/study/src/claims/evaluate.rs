//! Checking claims against results.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sojourn_core::is_phase;
use sojourn_metrics::{sample_columns, stats, survival_columns};

use super::Claim;
use super::over_time::{OverTime, ReadSeries, What};
use super::resolve::{Expectation, Term, Test, Tolerance, Value};
use super::syntax::{Pool, Relation};
use super::units::Unit;
use crate::results::{
    Check, ClaimReport, ClaimResult, Estimate, Kind, Miss, Plan, PlannedFlow, PlannedScenario,
    ResultsError, Row, Table, Verdict,
};

const CONFIDENCE: f64 = 0.95;

/// Checks every claim in every scenario that it covers. Time series are read only if a claim needs
/// them, each run's once.
///
/// # Errors
/// Time series cannot be read.
pub fn check(
    claims: &[Claim],
    plan: &Plan,
    table: &Table,
    series: &mut ReadSeries<'_>,
) -> Result<ClaimReport, ResultsError> {
    let over_time = Values::read(claims, plan, series)?;
    let results = Results::new(plan, table, over_time);
    Ok(ClaimReport { claims: claims.iter().map(|claim| results.claim(claim)).collect() })
}

/// The metrics that a check of claims reads.
pub(crate) fn metrics(claims: &[Claim]) -> BTreeSet<&'static str> {
    let expectations = claims.iter().flat_map(|claim| &claim.expect);
    let metrics = expectations.flat_map(Expectation::values).map(|value| value.metric);
    let mut all = BTreeSet::new();
    for metric in metrics {
        let counts = [sample_columns(metric), survival_columns(metric)];
        all.extend(counts.into_iter().flatten().flat_map(|(a, b)| [a, b]));
        all.insert(metric);
    }
    all
}

/// The rows that a check of claims reads. Of a run that is there, one is always among them.
pub(crate) struct Needed<'a> {
    plan: &'a Plan,
    values: Vec<&'a Value>,
}

impl<'a> Needed<'a> {
    pub(crate) fn of(claims: &'a [Claim], plan: &'a Plan) -> Self {
        let expectations = claims.iter().flat_map(|claim| &claim.expect);
        let mut values: Vec<&Value> = expectations.flat_map(Expectation::values).collect();
        // What comes from time series is not in rows.
        values.retain(|value| value.over_time.is_none());
        values.sort_unstable_by_key(|value| (value.kind, &value.of));
        values.dedup_by_key(|value| (value.kind, &value.of));
        Self { plan, values }
    }

    pub(crate) fn has(&self, row: &Row) -> bool {
        let scenario = self.plan.scenarios.get(row.scenario as usize);
        let flows = scenario.map_or(&[][..], |scenario| &scenario.flows);
        row.kind == Kind::Run
            || self.values.iter().any(|value| value.is_of(row.kind, &row.name, flows))
    }
}

struct Results<'a> {
    plan: &'a Plan,
    table: &'a Table,
    over_time: Values<'a>,
    /// Runs by scenario and seed, in ascending order.
    runs: Vec<(u32, u64, u32)>,
    /// Scenarios by the values of their factors.
    places: OnceCell<BTreeMap<&'a [Arc<str>], u32>>,
    /// What [`Plan::companion`] said, by what it was asked.
    companions: RefCell<BTreeMap<Asked, Option<&'a str>>>,
}

/// A factor, its value, and the factor whose value is asked for.
type Asked = (usize, String, usize);

/// How many samples or flows the values of a check have, and how many they would have if none were
/// missing, over all seeds; by metric and by what the metric is measured on.
#[derive(Default)]
struct Coverage(BTreeMap<(&'static str, String), Covered>);

#[derive(Clone, Copy, Default)]
struct Covered {
    known: f64,
    all: f64,
    /// The counts are of flows with and without the metric, not of samples with and without a value.
    of_flows: bool,
}

impl Covered {
    /// `10 of 20 samples`.
    fn describe(self) -> String {
        let what = if self.of_flows { "flows" } else { "samples" };
        format!("{} of {} {what}", self.known, self.all)
    }
}

impl Coverage {
    fn add(&mut self, value: &Value, covered: Covered) {
        let sum = self.0.entry((value.metric, value.of.clone())).or_default();
        sum.known += covered.known;
        sum.all += covered.all;
        sum.of_flows = covered.of_flows;
    }

    /// Names the values that lack samples; `None` if none does.
    fn note(&self) -> Option<String> {
        let parts: Vec<String> = self
            .0
            .iter()
            .filter(|(_, covered)| covered.known < covered.all)
            .map(|((metric, of), covered)| {
                format!(
                    "'{metric}' of '{of}' is of {}, the others have no value",
                    covered.describe()
                )
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
    fn new(plan: &'a Plan, table: &'a Table, over_time: Values<'a>) -> Self {
        let runs = plan.runs.iter().zip(0..).map(|(run, at)| (run.scenario, run.seed, at));
        let mut runs: Vec<(u32, u64, u32)> = runs.collect();
        runs.sort_unstable();
        let (places, companions) = (OnceCell::new(), RefCell::default());
        Self { plan, table, over_time, runs, places, companions }
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
        } else if has(Verdict::Holds) {
            Verdict::Holds
        } else {
            result.reason = result.checks.iter().find_map(|check| check.reason.clone());
            Verdict::Untestable
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
        let run = self.run(scenario, seed);
        if value.over_time.is_some() {
            return self.over_time.value(value, run.ok_or(Absent::Run)?);
        }
        let rows = run.map(|run| self.table.run(run)).filter(|rows| !rows.is_empty());
        let rows = rows.ok_or(Absent::Run)?;
        let flows = &self.plan.scenarios[scenario as usize].flows;
        let is_meant = |row: &&Row| value.is_of(row.kind, &row.name, flows);
        let mut found = Vec::new();
        let meant: Vec<&Row> = rows.iter().filter(is_meant).collect();
        for row in &meant {
            found.extend(self.table.value(row, value.metric));
        }
        if let Some((_, begun)) = survival_columns(value.metric) {
            let has_begun =
                |row: &&&Row| self.table.value(row, begun).is_some_and(|begun| begun > 0.0);
            if found.len() < meant.iter().filter(has_begun).count() {
                return Err(Absent::Value(format!(
                    "'{}' of '{}' is out of reach, as too few transfers ended",
                    value.metric, value.of
                )));
            }
        }
        let covered = self.covered(value, &meant, found.len());
        if let Some(covered) = covered {
            coverage.add(value, covered);
        }
        let pooled = value.pool.of(&found).filter(|pooled| pooled.is_finite());
        pooled
            .map(|pooled| match value.pool {
                Pool::Jain => pooled,
                _ => pooled * value.scale,
            })
            .ok_or_else(|| {
                let known = covered.map_or(String::new(), |covered| {
                    format!(": {} have a value", covered.describe())
                });
                Absent::Value(match &value.of[..] {
                    "" => format!("'{}' was not measured{known}", value.metric),
                    of => format!("'{}' of '{of}' was not measured{known}", value.metric),
                })
            })
    }

    /// The run of a scenario with a seed.
    fn run(&self, scenario: u32, seed: u64) -> Option<u32> {
        let place = self.runs.partition_point(|own| (own.0, own.1) < (scenario, seed));
        let own = self.runs.get(place).filter(|own| (own.0, own.1) == (scenario, seed));
        own.map(|(_, _, run)| *run)
    }

    /// How many samples a value has, and of how many. Where samples are not counted, flows are; `None` if
    /// none of these lacks the metric.
    fn covered(&self, value: &Value, rows: &[&Row], found: usize) -> Option<Covered> {
        let sum = |column: &str| {
            let counts: Vec<f64> =
                rows.iter().filter_map(|row| self.table.value(row, column)).collect();
            (!counts.is_empty()).then(|| counts.iter().sum::<f64>())
        };
        if let Some((n, of)) = sample_columns(value.metric)
            && let (Some(known), Some(all)) = (sum(n), sum(of))
        {
            return Some(Covered { known, all, of_flows: false });
        }
        (found > 0 && found < rows.len()).then_some(Covered {
            known: found as f64,
            all: rows.len() as f64,
            of_flows: true,
        })
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

impl Value {
    /// Whether it is measured on the flow, queue or run of this kind and name.
    fn is_of(&self, kind: Kind, name: &str, flows: &[PlannedFlow]) -> bool {
        let is_in_group = || flows.iter().any(|flow| flow.name == name && flow.group == self.of);
        kind == self.kind
            && (kind == Kind::Run || name == self.of || (kind == Kind::Flow && is_in_group()))
    }
}

/// What claims read from time series, for each run.
struct Values<'a> {
    of: Vec<OfRuns<'a>>,
    /// Every phase that some controller was in.
    phases: BTreeSet<String>,
}

/// A value of a claim: for each run, the values of the flows or queues that it is about; `None` for a
/// run without results.
struct OfRuns<'a> {
    value: &'a Value,
    over_time: &'a OverTime,
    found: Vec<Option<Vec<f64>>>,
}

impl<'a> Values<'a> {
    fn read(
        claims: &'a [Claim],
        plan: &Plan,
        series: &mut ReadSeries<'_>,
    ) -> Result<Self, ResultsError> {
        let expectations = claims.iter().flat_map(|claim| &claim.expect);
        let values = expectations.flat_map(Expectation::values);
        let mut of: Vec<OfRuns<'_>> = values
            .filter_map(|value| {
                let over_time = value.over_time.as_ref()?;
                Some(OfRuns { value, over_time, found: Vec::with_capacity(plan.runs.len()) })
            })
            .collect();
        let mut phases = BTreeSet::new();
        if of.is_empty() {
            return Ok(Self { of, phases });
        }
        for (run, planned) in plan.runs.iter().enumerate() {
            let all = series(run as u32)?;
            for series in &all {
                let mut last = "";
                for phase in &series.phase {
                    if phase != last {
                        phases.insert(phase.clone());
                        last = phase;
                    }
                }
            }
            let flows = &plan.scenarios[planned.scenario as usize].flows;
            for one in &mut of {
                let meant = all.iter().filter(|own| one.value.is_of(own.kind, &own.name, flows));
                let found = meant.filter_map(|own| one.over_time.of(own)).collect();
                one.found.push((!all.is_empty()).then_some(found));
            }
        }
        Ok(Self { of, phases })
    }

    fn value(&self, value: &Value, run: u32) -> Result<f64, Absent> {
        let one = self.of.iter().find(|one| std::ptr::eq(one.value, value)).ok_or(Absent::Run)?;
        let found = one.found[run as usize].as_ref().ok_or(Absent::Run)?;
        if let What::Phase(_, wanted) | What::Entry(_, wanted) = &one.over_time.what
            && !self.phases.iter().any(|phase| is_phase(phase, wanted))
        {
            let known: Vec<&str> = self.phases.iter().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(Absent::Scenario(format!(
                "no flow of the study ever is in a phase '{wanted}'; there are {known}"
            )));
        }
        let pooled = value.pool.of(found).filter(|pooled| pooled.is_finite());
        let scale = if value.pool == Pool::Jain { 1.0 } else { value.scale };
        pooled.map(|pooled| pooled * scale).ok_or_else(|| {
            let of = &value.of;
            Absent::Value(format!("'{}' of '{of}' has no value in that time", value.metric))
        })
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
        half_width: stats::mean_interval(&shown, CONFIDENCE).map(|interval| interval.half_width()),
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
