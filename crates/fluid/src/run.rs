//! One run: steps as long as their error allows, reported one by one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{Observer, Span, SpecError, StreamAddress};
use sojourn_scenario::{Checked, Scenario};

use crate::engine::{Engine, Work};
use crate::printed;
use crate::published::Published;
use crate::report::{AtQueue, Report};
use crate::scherrer;
use crate::world::{self, World};

/// How the equations are integrated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Steps of this length; otherwise their length follows from the error, or is the authors'.
    pub step: Option<Span>,
    pub form: Form,
    /// By how much smaller the error of a step may be than usual, and how much shorter steps may get.
    pub fineness: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { step: None, form: Form::default(), fineness: 1.0 }
    }
}

/// Whose equations they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// This project's, with the papers' equations corrected.
    #[default]
    Corrected,
    /// Those of Scherrer et al. (IMC 2022), as their authors' program has them.
    Scherrer,
    /// Equations (9) to (24) of "TCP BBR Performance over Wi-Fi 6", with their defects.
    AsPrinted,
}

/// What a run gives beside its events.
#[derive(Clone, Debug)]
pub struct Ran {
    pub work: Work,
    pub queues: Vec<AtQueue>,
}

/// Refuses what the equations can't say.
///
/// # Errors
/// Names the flow or link, and the reason.
pub fn check(scenario: &Scenario, options: &Options) -> Result<(), SpecError> {
    world::check(scenario)?;
    match options.form {
        Form::Corrected => {}
        Form::Scherrer => scherrer::check(scenario)?,
        Form::AsPrinted => printed::check(scenario)?,
    }
    check_step(scenario, options)
}

/// Refuses fixed steps that are so long that what they send would come back within them.
fn check_step(scenario: &Scenario, options: &Options) -> Result<(), SpecError> {
    let usual = match options.form {
        Form::Corrected => None,
        Form::Scherrer | Form::AsPrinted => Some(scherrer::STEP),
    };
    let Some(step) = options.step.or(usual) else { return Ok(()) };
    let Some(shortest) = world::shortest_rtt(scenario) else { return Ok(()) };
    let most = Span::from_micros((shortest / 2.0 * 1e6) as u64);
    if step <= most {
        return Ok(());
    }
    let problem = format!(
        "steps of {step} are too long for the shortest round trip, {}: equations look back for what came back of it",
        in_ms(shortest)
    );
    let most = in_ms(most.as_secs_f64());
    Err(SpecError::new(problem).allow([format!("steps of at most {most}, half of it")]))
}

/// To the microsecond, but in the unit of round trips.
fn in_ms(seconds: f64) -> String {
    format!("{}ms", libm::floor(seconds * 1e6 + 1e-3) / 1e3)
}

/// Computes one run.
///
/// # Errors
/// The equations diverge, which names the flow and the time.
pub fn run(
    scenario: &Checked,
    address: StreamAddress,
    options: &Options,
    observer: &mut impl Observer,
) -> Result<Ran, String> {
    let world = World::new(scenario, address);
    match options.form {
        Form::Corrected => corrected(scenario, address, &world, options, observer),
        Form::Scherrer => {
            let step = options.step.unwrap_or(scherrer::STEP);
            published(scenario, scherrer::Model::new(scenario, &world, address, step), observer)
        }
        Form::AsPrinted => {
            let step = options.step.unwrap_or(scherrer::STEP);
            published(scenario, printed::Model::new(scenario, &world, step), observer)
        }
    }
}

fn corrected(
    scenario: &Checked,
    address: StreamAddress,
    world: &World,
    options: &Options,
    observer: &mut impl Observer,
) -> Result<Ran, String> {
    let mut engine = Engine::new(world, address);
    engine.refine(options.fineness);
    let mut report = Report::new(scenario, world, engine.longest * REPORTS);
    let end = scenario.duration.as_secs_f64();
    let mut step = engine.shortest;
    while engine.now < end {
        let until = engine.next_stop(report.next_stop(), end);
        let length = options.step.map_or(step, Span::as_secs_f64);
        let is_cut = until - engine.now <= length;
        let mut length = length.min(until - engine.now);
        let whole = length;
        if options.step.is_none() {
            length = engine.until_kink(length);
        }
        let is_kink = length < whole;
        loop {
            let shorter = engine.shortest.min(length);
            let is_last = options.step.is_some() || length <= shorter;
            let most = if is_last { f64::INFINITY } else { 1.0 };
            let error = engine.attempt(length, most);
            if error <= most {
                let factor = (0.9 / libm::sqrt(error.max(1e-4))).clamp(0.5, 2.0);
                let next = (length * factor).clamp(engine.shortest, engine.longest);
                step = if is_kink && error < 1.0 {
                    step
                } else if is_cut && next < step {
                    step.min(next * 2.0)
                } else {
                    next
                };
                break;
            }
            engine.work.retries += 1;
            length = (length / 2.0).max(shorter);
        }
        let now = if engine.now + length >= until { until } else { engine.now + length };
        engine.accept(now)?;
        report.on_step(&engine, scenario, observer);
    }
    report.finish(&engine, scenario, observer);
    Ok(Ran { work: engine.work, queues: report.queues(&engine) })
}

fn published(
    scenario: &Checked,
    mut model: impl Published,
    observer: &mut impl Observer,
) -> Result<Ran, String> {
    let mut report = Report::new(scenario, model.world(), 0.0);
    let end = scenario.duration.as_secs_f64();
    let mut told = 0.0;
    while model.now() < end {
        model.step()?;
        let stop = report.next_stop().min(end);
        model.round_to(stop);
        if model.now() >= stop || model.now() - told >= REPORT_EVERY {
            report.on_step(&model, scenario, observer);
            told = model.now();
        }
    }
    report.finish(&model, scenario, observer);
    Ok(Ran { work: model.work(), queues: report.queues(&model) })
}

/// Parts of the longest step between two looks at what flows did.
const REPORTS: f64 = 1.0;
/// Seconds between two looks at a model of much shorter steps.
const REPORT_EVERY: f64 = 1e-3;
