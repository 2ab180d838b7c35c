//! From a base and its factors to scenarios. Every value that is written is checked, whether a
//! scenario uses it or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use sojourn_core::{Span, SpecError};

use super::{StudyScenario, scenario_table, set_scenario_table};
use crate::document::{Document, Table, Value};
use crate::error::StudyError;
use crate::factors::{Combination, Factors};
use crate::registry::Registry;
use crate::spec::ScenarioSpec;
use crate::world::{self, Traces};

/// The most flows of all scenarios together: the plan lists them for each.
const MAX_FLOWS: usize = 2_000_000;

/// Builds the scenarios of a study, any of them at any time.
#[derive(Debug)]
pub(super) struct Builder {
    /// Its scenario is the one that was built last.
    document: Document,
    base: Table,
    registry: Registry,
    factors: Arc<Factors>,
    /// By number, one for each scenario.
    combinations: Vec<u32>,
    shorten: Option<Span>,
    traces: Traces,
}

impl Builder {
    pub(super) fn new(
        document: &Document,
        registry: &Registry,
        factors: Arc<Factors>,
        combinations: Vec<u32>,
    ) -> Self {
        Self {
            // If it has none, reading the study has failed already.
            base: scenario_table(document).cloned().unwrap_or_default(),
            document: document.clone(),
            registry: registry.clone(),
            factors,
            combinations,
            shorten: None,
            traces: Traces::default(),
        }
    }

    pub(super) fn shortened(self, shorten: Option<Span>) -> Self {
        Self { shorten, ..self }
    }

    pub(super) fn count(&self) -> usize {
        self.combinations.len()
    }

    /// The scenario at a position below [`Builder::count`].
    pub(super) fn scenario(&mut self, position: usize) -> Result<StudyScenario, StudyError> {
        let factors = Arc::clone(&self.factors);
        let mut scenario = self.combined(&factors.combination(self.combinations[position]))?;
        if let Some(duration) = self.shorten {
            let whole = scenario.scenario.duration;
            let shortened = scenario.shorten(duration);
            shortened.map_err(|problem| self.document.error_at_key("shorten", problem))?;
            let kept = scenario_table(&self.document).map(timed).unwrap_or_default();
            if duration < whole && !kept.is_empty() {
                let keys = kept.into_iter().collect::<Vec<_>>().join(", ");
                scenario.notices.push(format!(
                    "runs last {duration} in place of {whole}; the times in {keys} stay as they are"
                ));
            }
        }
        Ok(scenario)
    }

    /// Builds every scenario once, and what is written without being in one.
    pub(super) fn check(&mut self, each: &mut dyn FnMut(&StudyScenario)) -> Result<(), StudyError> {
        let mut flows = 0;
        for position in 0..self.count() {
            let scenario = self.scenario(position)?;
            flows += scenario.flows.len();
            if flows > MAX_FLOWS {
                let problem = SpecError::new("the scenarios have too many flows in all")
                    .allow([format!("at most {MAX_FLOWS}")]);
                return Err(self.document.error_at_key("factors", problem));
            }
            each(&scenario);
        }
        let factors = Arc::clone(&self.factors);
        if let Some(first) = self.combinations.first() {
            self.check_base(&factors.combination(*first))?;
        }
        self.check_untaken(&factors)
    }

    fn combined(&mut self, combination: &Combination<'_>) -> Result<StudyScenario, StudyError> {
        let table = self.factors.apply(&self.document, &self.base, combination)?;
        let world = self.world(table)?;
        Ok(StudyScenario {
            factors: combination.values.iter().map(|value| (*value).to_owned()).collect(),
            scenario: world.scenario,
            engine: world.engine,
            flows: world.flows,
            queues: world.queues,
            notices: world.notices,
        })
    }

    fn world(&mut self, scenario: Table) -> Result<world::World, StudyError> {
        set_scenario_table(&mut self.document, scenario);
        let spec = read_scenario(&self.document)?;
        world::build(&spec, &self.document, &self.registry, &mut self.traces)
    }

    /// Checks values of the base that factors replace, which are in no scenario. Such a value is a
    /// mistake if it is one both in the base and in the first scenario. If it is one in the base alone,
    /// it only does not fit other values that are replaced as well.
    fn check_base(&mut self, first: &Combination<'_>) -> Result<(), StudyError> {
        let base = &self.base.clone();
        let scenario = self.factors.apply(&self.document, base, first)?;
        let mut table = base.clone();
        for _ in 0..self.factors.count() {
            let Err(error) = self.world(table.clone()) else { return Ok(()) };
            let Some(factor) = self.factors.replacing(&self.document, base, error.place()) else {
                return Ok(());
            };
            let mut alone = scenario.clone();
            self.factors.copy(&self.document, factor, &mut alone, base)?;
            match self.world(alone) {
                Err(again) if again.place() == error.place() => return Err(again),
                _ => self.factors.copy(&self.document, factor, &mut table, &scenario)?,
            }
        }
        Ok(())
    }

    /// Checks a value whose combinations are all left out.
    fn check_untaken(&mut self, factors: &Factors) -> Result<(), StudyError> {
        for (at, combination) in factors.untaken(&self.combinations) {
            match self.combined(&combination) {
                Err(error) if *error.place() == self.document.place(at) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn read_scenario(document: &Document) -> Result<ScenarioSpec, StudyError> {
    let Some(node) = document.root.node("scenario") else {
        return Err(document.error_at_key("scenario", SpecError::new("is missing")));
    };
    node.to().map_err(|fault| {
        let at = fault.at.unwrap_or(node.at);
        document.error(at, fault.key("scenario"), fault.problem)
    })
}

/// Keys with times that a shortened run keeps: traces, steps, changes, and when a station is where.
fn timed(scenario: &Table) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (key, _, node) in scenario.flat() {
        match &node.value {
            Value::String(text) if has_times(&key, text) => {
                found.insert(key);
            }
            Value::Array(items) if key == "change" && !items.is_empty() => {
                found.insert(key);
            }
            Value::Array(items) => {
                let tables = items.iter().filter_map(|item| match &item.value {
                    Value::Table(table) => Some(table),
                    _ => None,
                });
                found.extend(tables.flat_map(timed).map(|inner| format!("{key}.{inner}")));
            }
            _ => {}
        }
    }
    found
}

/// Whether a value says when something is so.
fn has_times(key: &str, text: &str) -> bool {
    const RATES: [&str; 4] = ["trace", "mahimahi", "steps", "rfc8867"];
    let own = key.rsplit('.').next().unwrap_or(key);
    let first = text.split_whitespace().next().unwrap_or_default();
    match own {
        "present" => first != "always",
        "distance" => text.contains(" at "),
        "rate_control" => first == "trace",
        "loss" | "reverse_loss" => first == "steps",
        _ => own.ends_with("rate") && RATES.contains(&first),
    }
}
