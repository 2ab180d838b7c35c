//! What changes when a sender enters a phase.

use std::collections::BTreeSet;

use sojourn_core::{FlowId, Framing, Rate, Span, SpecError};
use sojourn_link::{FixedSpec, RateSpec};
use sojourn_scenario::{Change, ChangePart, Scenario, What, When};

use super::Wrong;
use super::shape::{check_name, taken};
use crate::plan::{PlannedFlow, PlannedQueue};
use crate::spec::{ChangeSpec, Text, Truth};

/// The most changes of a scenario.
const MOST: usize = 1_000;

const OF_QUEUES: [&str; 3] = ["rate", "loss", "delay"];
const OF_FLOWS: [&str; 4] = ["rate", "start", "stop", "pause"];

/// Adds the changes of `specs` to `scenario`, which is complete otherwise.
pub(super) fn build(
    specs: &[ChangeSpec],
    flows: &[PlannedFlow],
    queues: &[PlannedQueue],
    scenario: &mut Scenario,
) -> Result<(), Wrong> {
    if specs.len() > MOST {
        let problem = SpecError::new(format!("{} changes are too many", specs.len()));
        return Err(Wrong::new("change", problem.allow([format!("at most {MOST}")])));
    }
    let mut names = BTreeSet::new();
    let mut keys = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let wrong = |key: &str, problem| Wrong::new(format!("change.{index}.{key}"), problem);
        check_name(&spec.name).map_err(|error| wrong("name", error))?;
        if !names.insert(&spec.name) {
            return Err(wrong("name", taken("change", &spec.name)));
        }
        let when = when(spec, flows).map_err(|error| wrong("when", error))?;
        let what = what(spec, flows, queues).map_err(|(key, error)| wrong(key, error))?;
        for (key, what) in what {
            keys.push((index, key));
            scenario.changes.push(Change { when: when.clone(), what });
        }
    }
    for ((index, key), change) in keys.into_iter().zip(&scenario.changes) {
        scenario.check_change(change).map_err(|(part, problem)| {
            let key = match part {
                ChangePart::When => "when",
                ChangePart::Occurrence => "occurrence",
                ChangePart::After => "after",
                ChangePart::What => key,
            };
            Wrong::new(format!("change.{index}.{key}"), problem)
        })?;
    }
    Ok(())
}

fn when(spec: &ChangeSpec, flows: &[PlannedFlow]) -> Result<When, SpecError> {
    let waits = &spec.when.value;
    let names = || flows.iter().map(|flow| flow.name.as_str());
    let Some(flow) = names().position(|name| name == waits.flow) else {
        let problem = SpecError::new(format!("no flow is named '{}'", waits.flow));
        return Err(problem.near(&waits.flow, names()).allow(names()));
    };
    Ok(When {
        flow: FlowId(flow as u32),
        phase: waits.phase.clone(),
        occurrence: spec.occurrence.unwrap_or(1),
        after: spec.after.as_ref().map_or(Span::ZERO, |after| after.value),
    })
}

/// What changes, each with the key that says so.
fn what(
    spec: &ChangeSpec,
    flows: &[PlannedFlow],
    queues: &[PlannedQueue],
) -> Result<Vec<(&'static str, What)>, (&'static str, SpecError)> {
    let mut whats = Vec::new();
    let given = given(spec);
    let allowed: &[&str] = match (&spec.queue, &spec.flow) {
        (Some(_), None) => &OF_QUEUES,
        (None, Some(_)) => &OF_FLOWS,
        (Some(_), Some(_)) => {
            let problem = SpecError::new("a change is of a queue or of a flow, not of both");
            return Err(("flow", problem.allow(["two changes"])));
        }
        (None, None) => {
            let problem = SpecError::new("it does not say what changes");
            return Err(("name", problem.allow(["queue", "flow"])));
        }
    };
    if let Some(key) = given.iter().find(|key| !allowed.contains(*key)) {
        let of = if spec.queue.is_some() { "a queue" } else { "a flow" };
        let problem = SpecError::new(format!("has no meaning for {of}"));
        return Err((key, problem.allow(allowed.iter().copied())));
    }
    if given.is_empty() {
        let key = if spec.queue.is_some() { "queue" } else { "flow" };
        return Err((key, SpecError::new("nothing of it changes").allow(allowed.iter().copied())));
    }
    if let Some(name) = &spec.queue {
        let names = || queues.iter().map(|queue| queue.name.as_str());
        let port = names().position(|known| known == name).ok_or_else(|| {
            let problem = SpecError::new(format!("no queue is named '{name}'"));
            ("queue", problem.near(name, names()).allow(names()))
        })?;
        let port = sojourn_core::PortId(port as u16);
        if let Some(rate) = &spec.rate {
            whats.push(("rate", What::Rate(port, plain(rate).map_err(|error| ("rate", error))?)));
        }
        if let Some(loss) = &spec.loss {
            whats.push(("loss", What::Loss(port, loss.value.clone())));
        }
        if let Some(delay) = &spec.delay {
            whats.push(("delay", What::Delay(port, delay.value)));
        }
        return Ok(whats);
    }
    let name = spec.flow.as_deref().unwrap_or_default();
    let of_name = |flow: &PlannedFlow| flow.name == name || flow.group == name;
    if !flows.iter().any(of_name) {
        let names = || flows.iter().flat_map(|flow| [flow.name.as_str(), flow.group.as_str()]);
        let problem = SpecError::new(format!("no flow is named '{name}'"));
        let known: BTreeSet<&str> = names().collect();
        return Err(("flow", problem.near(name, names()).allow(known)));
    }
    let of_name = flows.iter().zip((0..).map(FlowId)).filter(|(flow, _)| of_name(flow));
    for (_, flow) in of_name {
        if let Some(rate) = &spec.rate {
            whats.push(("rate", What::Write(flow, plain(rate).map_err(|error| ("rate", error))?)));
        }
        if spec.start == Some(Truth(true)) {
            whats.push(("start", What::Start(flow)));
        }
        if spec.stop == Some(Truth(true)) {
            whats.push(("stop", What::Stop(flow)));
        }
        if let Some(pause) = &spec.pause {
            whats.push(("pause", What::Pause(flow, pause.value)));
        }
    }
    Ok(whats)
}

/// The written keys that ask for a change.
fn given(spec: &ChangeSpec) -> Vec<&'static str> {
    let all = [
        ("rate", spec.rate.is_some()),
        ("loss", spec.loss.is_some()),
        ("delay", spec.delay.is_some()),
        ("start", spec.start == Some(Truth(true))),
        ("stop", spec.stop == Some(Truth(true))),
        ("pause", spec.pause.is_some()),
    ];
    all.into_iter().filter_map(|(key, is_there)| is_there.then_some(key)).collect()
}

/// A rate that is one value.
fn plain(rate: &Text<RateSpec>) -> Result<Rate, SpecError> {
    match &rate.value {
        RateSpec::Unlimited => Ok(Rate::UNLIMITED),
        RateSpec::Fixed(FixedSpec { rate, framing }) if *framing == Framing::default() => Ok(*rate),
        _ => Err(SpecError::new(format!("'{}' is not one rate", rate.text))
            .allow(["a rate such as '90mbit'; the framing stays"])),
    }
}
