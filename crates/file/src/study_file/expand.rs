//! From a base and its factors to scenarios. Every value that is written is checked, whether a
//! scenario uses it or not.

use sojourn_core::SpecError;

use super::{StudyScenario, scenario_table, set_scenario_table};
use crate::document::{Document, Table};
use crate::error::StudyError;
use crate::factors::{Combination, Factors};
use crate::registry::Registry;
use crate::spec::ScenarioSpec;
use crate::world::{self, Traces};

/// The most flows of all scenarios together, for memory.
const MAX_FLOWS: usize = 500_000;

/// Builds a scenario for each combination. Afterwards the document has the base again.
pub(super) fn expand(
    document: &mut Document,
    registry: &Registry,
    factors: &Factors,
    combinations: &[Combination<'_>],
) -> Result<Vec<StudyScenario>, StudyError> {
    let mut builder = Builder { document, registry, factors, traces: Traces::default() };
    let mut scenarios = Vec::with_capacity(combinations.len());
    let mut flows = 0;
    // If there is none, reading the study has failed already.
    let Some(base) = scenario_table(builder.document).cloned() else { return Ok(scenarios) };
    for combination in combinations {
        let scenario = builder.scenario(&base, combination)?;
        flows += scenario.flows.len();
        if flows > MAX_FLOWS {
            let problem = SpecError::new("the scenarios have too many flows in all")
                .allow([format!("at most {MAX_FLOWS}")]);
            return Err(builder.document.error_at_key("factors", problem));
        }
        scenarios.push(scenario);
    }
    if let Some(first) = combinations.first() {
        builder.check_base(&base, first)?;
    }
    builder.check_untaken(&base, combinations)?;
    set_scenario_table(builder.document, base);
    Ok(scenarios)
}

struct Builder<'a> {
    document: &'a mut Document,
    registry: &'a Registry,
    factors: &'a Factors,
    traces: Traces,
}

impl Builder<'_> {
    fn scenario(
        &mut self,
        base: &Table,
        combination: &Combination<'_>,
    ) -> Result<StudyScenario, StudyError> {
        let table = self.factors.apply(self.document, base, combination)?;
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
        set_scenario_table(self.document, scenario);
        let spec = read_scenario(self.document)?;
        world::build(&spec, self.document, self.registry, &mut self.traces)
    }

    /// Checks values of the base that factors replace, which are in no scenario. Such a value is a
    /// mistake if it is one both in the base and in the first scenario. If it is one in the base alone,
    /// it only does not fit other values that are replaced as well.
    fn check_base(&mut self, base: &Table, first: &Combination<'_>) -> Result<(), StudyError> {
        let scenario = self.factors.apply(self.document, base, first)?;
        let mut table = base.clone();
        for _ in 0..self.factors.count() {
            let Err(error) = self.world(table.clone()) else { return Ok(()) };
            let Some(factor) = self.factors.replacing(self.document, base, error.place()) else {
                return Ok(());
            };
            let mut alone = scenario.clone();
            self.factors.copy(self.document, factor, &mut alone, base)?;
            match self.world(alone) {
                Err(again) if again.place() == error.place() => return Err(again),
                _ => self.factors.copy(self.document, factor, &mut table, &scenario)?,
            }
        }
        Ok(())
    }

    /// Checks a value whose combinations are all left out.
    fn check_untaken(
        &mut self,
        base: &Table,
        combinations: &[Combination<'_>],
    ) -> Result<(), StudyError> {
        for (at, combination) in self.factors.untaken(combinations) {
            match self.scenario(base, &combination) {
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
