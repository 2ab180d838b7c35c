//! One run: from a scenario and a seed to rows and series.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sojourn_core::{StreamAddress, Time};
use sojourn_file::StudyScenario;
use sojourn_metrics::{
    Distribution, FlowMetrics, FlowSeries, LinkSeries, RunMetrics, Scope, Series as Measurements,
};

use crate::engine::{self, Measured};
use crate::metrics::values;
use crate::results::{
    Bucket, CompletingPacket, Delays, FLOW_PLACES, Freeze, Kind, LINK_PLACES, LostPacket, Piece,
    Plan, RepairStep, Row, RunResult, SeriesRows, Values,
};
use crate::shape::shape;
use crate::study::Study;

/// Why a part from outside cannot go on: what it unwinds with, by `std::panic::resume_unwind`, because no
/// method of a congestion control or a queue can fail. The run ends with this text.
#[derive(Clone, Debug)]
pub struct Fault(pub String);

/// Computes a run of the study, by its position in the plan. If it panics, other runs can go on.
///
/// # Errors
/// The run broke an invariant of the model, or its engine could not compute it.
pub fn compute(study: &Study, plan: &Plan, run: u32) -> Result<RunResult, String> {
    attempt(study, planned(plan, run)?, None).and_then(whole)
}

/// The same, but the time series of a long run is handed on in pieces while it goes on; the result has
/// the rest.
pub(super) fn compute_in_pieces(
    study: &Study,
    plan: &Plan,
    run: u32,
    keep: &dyn Fn(&Piece),
) -> Result<Computed, String> {
    attempt(study, planned(plan, run)?, Some(keep))
}

fn planned(plan: &Plan, run: u32) -> Result<Named, String> {
    let planned = plan.runs.get(run as usize).ok_or("the plan has no such run")?;
    Ok(Named { run, scenario: planned.scenario, seed: planned.seed })
}

/// Computes a scenario of the study, by its position, with any seed; it counts as run 0.
///
/// # Errors
/// As [`compute`].
pub fn simulate(study: &Study, scenario: u32, seed: u64) -> Result<RunResult, String> {
    attempt(study, Named { run: 0, scenario, seed }, None).and_then(whole)
}

/// A run that has ended.
pub(super) struct Computed {
    pub(super) result: RunResult,
    /// When it was stopped, if that was before its time.
    pub(super) stopped_at: Option<Time>,
}

fn whole(computed: Computed) -> Result<RunResult, String> {
    match computed.stopped_at {
        None => Ok(computed.result),
        Some(_) => Err(ENDED.to_owned()),
    }
}

const ENDED: &str = "stopped before its end";

fn attempt(study: &Study, named: Named, keep: Option<&dyn Fn(&Piece)>) -> Result<Computed, String> {
    let scenario = study.scenarios.get(named.scenario as usize);
    let scenario = scenario.ok_or("the study has no such scenario")?;
    catch_unwind(AssertUnwindSafe(|| execute(&scenario, study.address(named.seed), named, keep)))
        .unwrap_or_else(|panic| match panic.downcast::<Fault>() {
            Ok(fault) => Err(fault.0),
            Err(panic) if panic.is::<engine::Ended>() => Err(ENDED.to_owned()),
            Err(panic) => Err(format!("the model panicked: {}", panic_text(&*panic))),
        })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
}

/// Which run it is.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// Position in the plan.
    run: u32,
    scenario: u32,
    seed: u64,
}

/// Computes the run with the engine of its scenario.
fn execute(
    scenario: &StudyScenario,
    address: StreamAddress,
    named: Named,
    keep: Option<&dyn Fn(&Piece)>,
) -> Result<Computed, String> {
    let mut pieces = 0;
    engine::begin(named.run);
    let Measured { metrics, end_states, is_stopped, troubles } = match keep {
        None => engine::run(scenario, address, None)?,
        Some(keep) => {
            let names = shape(&scenario.scenario);
            let flows: Vec<&str> = names.flows.iter().map(|flow| &flow.name[..]).collect();
            let links: Vec<&str> = names.links.iter().map(|link| &link.name[..]).collect();
            let mut hand_on = |rows: Measurements| {
                let rows = series(&rows, named.run, flows.iter().copied(), links.iter().copied());
                keep(&Piece::new(named.run, pieces, rows));
                pieces += 1;
            };
            engine::run(scenario, address, Some(&mut hand_on))?
        }
    };
    let mut rows = rows(&metrics, named);
    // The first row is that of the run as a whole.
    for (row, end_state) in rows.iter_mut().zip([troubles.join("\n")].into_iter().chain(end_states))
    {
        row.end_state = end_state;
    }
    let result = RunResult {
        run: named.run,
        pieces,
        rows,
        series: series(
            &metrics.series,
            named.run,
            metrics.flows.iter().map(|flow| &flow.name[..]),
            metrics.links.iter().map(|link| &link.name[..]),
        ),
        delays: delays(&metrics, named.run),
    };
    Ok(Computed { result, stopped_at: is_stopped.then_some(metrics.end) })
}

/// For every flow, then for every queue.
fn delays(metrics: &RunMetrics, run: u32) -> Vec<Delays> {
    let of = |kind: Kind, name: &str, (metric, distribution): (&str, &Distribution)| Delays {
        run,
        kind,
        name: name.to_owned(),
        metric: metric.to_owned(),
        buckets: distribution
            .buckets()
            .map(|(low_ns, high_ns, samples)| Bucket { low_ns, high_ns, samples })
            .collect(),
    };
    let is_there = |(_, distribution): &(&str, &Distribution)| !distribution.is_empty();
    let flows = metrics.flows.iter().flat_map(|flow| {
        let delays = flow.delays().into_iter().chain(flow.open()).filter(is_there);
        delays.map(|delay| of(Kind::Flow, &flow.name, delay))
    });
    let links = metrics.links.iter().flat_map(|link| {
        let delays = link.delays().into_iter().filter(is_there);
        delays.map(|delay| of(Kind::Queue, &link.name, delay))
    });
    flows.chain(links).collect()
}

fn freezes(metrics: &RunMetrics, flow: &FlowMetrics) -> Vec<Freeze> {
    let lost = |lost: &sojourn_metrics::LostPacket| LostPacket {
        sequence: lost.sequence,
        frame: lost.frame,
        is_repair: lost.is_repair,
        sent_s: lost.sent.as_secs_f64(),
        lost_s: lost.lost.as_secs_f64(),
        queue: metrics.links[lost.place.index()].name.clone(),
        why: lost.why.name().to_owned(),
    };
    let step = |step: &sojourn_metrics::RepairStep| RepairStep {
        sequence: step.sequence,
        at_s: step.at.as_secs_f64(),
        is_copy: step.is_copy,
    };
    let freeze = |freeze: &sojourn_metrics::Freeze| Freeze {
        from_s: freeze.from.as_secs_f64(),
        to_s: freeze.to.as_secs_f64(),
        after_frame: freeze.after,
        frame: freeze.frame,
        captured_s: freeze.captured.as_secs_f64(),
        sent_s: freeze.sent.map(|at| at.as_secs_f64()),
        received_s: freeze.received.map(|at| at.as_secs_f64()),
        last: freeze.last.map(|last| CompletingPacket {
            sequence: last.sequence,
            is_repair: last.is_repair,
            sent_s: last.sent.as_secs_f64(),
            arrived_s: last.arrived.as_secs_f64(),
        }),
        never_shown: freeze.never_shown,
        lost: freeze.lost.iter().map(lost).collect(),
        lost_packets: freeze.lost_packets,
        repairs: freeze.repairs.iter().map(step).collect(),
    };
    flow.media.freezes.iter().map(freeze).collect()
}

fn rows(metrics: &RunMetrics, named: Named) -> Vec<Row> {
    let digest = format!("{:016x}", metrics.digest);
    let row = |kind: Kind, name: &str, values: Values| Row {
        run: named.run,
        scenario: named.scenario,
        seed: named.seed,
        kind,
        name: name.to_owned(),
        digest: digest.clone(),
        end_state: String::new(),
        freezes: Vec::new(),
        values,
    };
    let mut rows = vec![row(Kind::Run, "", values(Scope::Run, |metric| metric.of_run(metrics)))];
    for flow in &metrics.flows {
        let of_flow = values(Scope::Flow, |metric| metric.of_flow(flow));
        let freezes = freezes(metrics, flow);
        rows.push(Row { freezes, ..row(Kind::Flow, &flow.name, of_flow) });
    }
    for link in &metrics.links {
        let of_link = values(Scope::Link, |metric| metric.of_link(link));
        rows.push(row(Kind::Queue, &link.name, of_link));
    }
    rows
}

/// As the tables have it.
fn series<'a>(
    all: &Measurements,
    run: u32,
    flows: impl Iterator<Item = &'a str>,
    links: impl Iterator<Item = &'a str>,
) -> Vec<SeriesRows> {
    let phases = |numbers: &[f32]| {
        let is_same = |a: &f32, b: &f32| a == b || a.is_nan() && b.is_nan();
        let name = |number: f32| match number.is_nan() {
            true => String::new(),
            // The position was found in this list.
            false => all.phases[number as usize].to_owned(),
        };
        numbers.chunk_by(is_same).map(|alike| (name(alike[0]), alike.len())).collect()
    };
    let of_flow = |(name, columns): (&str, &FlowSeries)| {
        let named = (run, Kind::Flow, name);
        SeriesRows::measured(named, &all.t_s, phases(&columns.phase), &FLOW_PLACES, columns)
    };
    let of_link = |(name, columns): (&str, &LinkSeries)| {
        let (named, phases) = ((run, Kind::Queue, name), vec![(String::new(), all.t_s.len())]);
        SeriesRows::measured(named, &all.t_s, phases, &LINK_PLACES, columns)
    };
    let flows = flows.zip(&all.flows).map(of_flow);
    flows.chain(links.zip(&all.links).map(of_link)).collect()
}
