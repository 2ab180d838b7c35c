//! From what a user wrote to a checked [`Scenario`].

mod arrivals;
mod flows;
mod gateway;
mod notices;
mod routes;
mod shapes;
mod traces;

#[cfg(test)]
mod tests;

pub use traces::Traces;

use sojourn_core::{Span, SpecError};
use sojourn_scenario::Scenario;

use crate::document::Document;
use crate::error::StudyError;
use crate::plan::{PlannedFlow, PlannedQueue};
use crate::spec::ScenarioSpec;

/// Where `step` is left out.
pub const DEFAULT_STEP: Span = Span::from_millis(100);

/// More rows of time series than anybody can look at, and than fit in memory: steps of all flows
/// and queues of a run.
const MAX_ROWS: u64 = 10_000_000;

/// A scenario, and what the plan tells of it.
#[derive(Clone, Debug)]
pub struct World {
    pub scenario: Scenario,
    pub flows: Vec<PlannedFlow>,
    pub queues: Vec<PlannedQueue>,
    /// What is no mistake, but seldom meant.
    pub notices: Vec<String>,
}

/// A mistake, and the key below `scenario` that is to blame.
struct Wrong {
    key: String,
    problem: SpecError,
}

/// A key of a flow, and what is wrong with it.
type WrongKey = (&'static str, SpecError);

impl Wrong {
    fn new(key: impl Into<String>, problem: SpecError) -> Self {
        Self { key: key.into(), problem }
    }
}

/// Builds the world that `spec` describes; `document` is the file that it was read from.
///
/// # Errors
/// A shape that is missing, double or broken, a flow that leads nowhere, a key that its
/// application does not have, a trace that cannot be read.
pub fn build(
    spec: &ScenarioSpec,
    document: &Document,
    traces: &mut Traces,
) -> Result<World, StudyError> {
    assemble(spec, document, traces).map_err(|wrong| {
        let key = match &wrong.key[..] {
            "" => "scenario".to_owned(),
            key => format!("scenario.{key}"),
        };
        document.error_at_key(&key, wrong.problem)
    })
}

fn assemble(spec: &ScenarioSpec, document: &Document, traces: &mut Traces) -> Result<World, Wrong> {
    if spec.duration.value.is_zero() {
        let problem = SpecError::new("a run takes time").allow(["more than 0s"]);
        return Err(Wrong::new("duration", problem));
    }
    let mut shape = shapes::build(spec, document, traces)?;
    if spec.flow.is_empty() {
        let problem = SpecError::new("no flow is defined").allow(["[[scenario.flow]]"]);
        return Err(Wrong::new("flow", problem));
    }
    let (flows, planned) = flows::build(spec, document, &mut shape, traces)?;
    let scenario = Scenario {
        duration: spec.duration.value,
        warmup: spec.warmup.as_ref().map_or(Span::ZERO, |warmup| warmup.value),
        step: spec.step.as_ref().map_or(DEFAULT_STEP, |step| step.value),
        hosts: shape.hosts,
        links: shape.links,
        flows,
    };
    let things = (scenario.flows.len() + scenario.links.len()) as u64;
    let (duration, step) = (scenario.duration.as_nanos(), scenario.step.as_nanos());
    if step > 0 && (duration / step).saturating_mul(things) > MAX_ROWS {
        let least = Span::from_millis((duration / (MAX_ROWS / things).max(1)).div_ceil(1_000_000));
        let problem = format!(
            "{} cuts {} of {things} flows and queues into too many rows",
            scenario.step, scenario.duration
        );
        let problem = SpecError::new(problem).allow([format!("{least} or more")]);
        return Err(Wrong::new("step", problem));
    }
    scenario.check().map_err(|problem| Wrong::new(key_of(&scenario), problem))?;
    let notices = notices::notices(&scenario);
    Ok(World { scenario, flows: planned, queues: shape.queues, notices })
}

/// Which key is to blame when the whole does not fit together.
fn key_of(scenario: &Scenario) -> &'static str {
    if scenario.duration > scenario.longest() {
        "duration"
    } else if scenario.warmup >= scenario.duration {
        "warmup"
    } else if scenario.step.is_zero() || scenario.step > scenario.duration {
        "step"
    } else {
        "flow"
    }
}
