//! From what a user wrote to a checked [`Scenario`].

mod arrivals;
mod call;
mod carriers;
mod changes;
mod flows;
mod gateway;
mod notices;
mod radios;
mod routes;
mod shape;
mod shapes;
mod sources;
mod traces;

#[cfg(test)]
mod tests;

pub use traces::Traces;

use std::sync::Arc;

use sources::Sources;

use sojourn_core::{Span, SpecError};
use sojourn_scenario::{App, Checked, Scenario, Until};

use crate::document::Document;
use crate::engine::NamedEngine;
use crate::error::StudyError;
use crate::plan::{PlannedFlow, PlannedQueue};
use crate::registry::Registry;
use crate::spec::{ScenarioSpec, WrongSetting as WrongKey};

/// A scenario, and the flows and queues that the plan lists for it.
#[derive(Clone, Debug)]
pub struct World {
    pub scenario: Checked,
    /// `None` where the scenario names none.
    pub engine: Option<Arc<dyn NamedEngine>>,
    pub flows: Vec<PlannedFlow>,
    pub queues: Vec<PlannedQueue>,
    /// Settings that are valid but probably not intended, each as a sentence.
    pub notices: Vec<String>,
}

/// A mistake, and the key below `scenario` that caused it.
struct Wrong {
    key: String,
    problem: SpecError,
    /// True if the key itself should not be there; false if its value is wrong.
    is_key: bool,
}

impl Wrong {
    fn new(key: impl Into<String>, problem: SpecError) -> Self {
        Self { key: key.into(), problem, is_key: false }
    }
}

/// Builds the world that `spec` describes. `document` is the file from which it was read;
/// `registry` has the kinds that it may name.
///
/// # Errors
/// A shape that is missing, double or broken, a flow that leads nowhere, a key that its
/// application does not have, a trace that cannot be read.
pub fn build(
    spec: &ScenarioSpec,
    document: &Document,
    registry: &Registry,
    traces: &mut Traces,
) -> Result<World, StudyError> {
    assemble(spec, &mut Sources { document, registry, traces }).map_err(|wrong| {
        let key = match &wrong.key[..] {
            "" => "scenario".to_owned(),
            key => format!("scenario.{key}"),
        };
        match wrong.is_key {
            true => document.error(document.locate_key(&key), key, wrong.problem),
            false => document.error_at_key(&key, wrong.problem),
        }
    })
}

fn assemble(spec: &ScenarioSpec, sources: &mut Sources<'_>) -> Result<World, Wrong> {
    if spec.duration.value.is_zero() {
        let problem = SpecError::new("a run takes time").allow(["more than 0s"]);
        return Err(Wrong::new("duration", problem));
    }
    let mut shape = shapes::build(spec, sources)?;
    if spec.flow.is_empty() {
        let problem = SpecError::new("no flow is defined").allow(["[[scenario.flow]]"]);
        return Err(Wrong::new("flow", problem));
    }
    let (flows, planned) = flows::build(spec, &mut shape, sources)?;
    let mut scenario = Scenario {
        duration: spec.duration.value,
        until: spec.until.map_or(Until::Duration, Until::from),
        warmup: spec.warmup.as_ref().map_or(Span::ZERO, |warmup| warmup.value),
        step: Span::ZERO,
        hosts: shape.hosts,
        links: shape.links,
        carriers: shape.carriers,
        changes: Vec::new(),
        flows,
    };
    scenario.step = spec.step.as_ref().map_or_else(|| scenario.usual_step(), |step| step.value);
    changes::build(&spec.change, &planned, &shape.queues, &mut scenario)?;
    let key = key_of(&scenario);
    let scenario = scenario.checked().map_err(|problem| Wrong::new(key, problem))?;
    let wrong = |problem| Wrong::new("engine", problem);
    let engine = match &spec.engine {
        Some(engine) => Some(sources.registry.engine(&engine.text).map_err(wrong)?),
        None => None,
    };
    engine.iter().try_for_each(|engine| engine.check(&scenario)).map_err(wrong)?;
    let canonical = engine.as_ref().and_then(|engine| engine.canonical());
    let name = canonical.as_deref().and_then(|text| text.split(' ').next());
    check_needs(&scenario, name).map_err(wrong)?;
    let notices = notices::notices(spec, &scenario);
    Ok(World { scenario, engine, flows: planned, queues: shape.queues, notices })
}

/// Refuses applications that only another engine can run than the one of that name, which has none if it is the usual one.
fn check_needs(scenario: &Scenario, name: Option<&str>) -> Result<(), SpecError> {
    for flow in &scenario.flows {
        let App::External(app) = &flow.app else { continue };
        let Some(engine) = app.0.needs_engine() else { continue };
        if name == Some(engine) {
            continue;
        }
        let problem = format!("flow '{}' can't be simulated", flow.name);
        return Err(SpecError::new(problem).allow([format!("engine = \"{engine}\"")]));
    }
    Ok(())
}

/// The key to blame if the scenario as a whole is refused.
fn key_of(scenario: &Scenario) -> &'static str {
    if scenario.duration > scenario.longest() {
        "duration"
    } else if scenario.warmup >= scenario.duration {
        "warmup"
    } else if scenario.step.is_zero()
        || scenario.step > scenario.duration
        || scenario.has_too_many_rows()
    {
        "step"
    } else if scenario.check_until().is_err() {
        "until"
    } else {
        "flow"
    }
}
