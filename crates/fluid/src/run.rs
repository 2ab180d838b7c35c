//! One run: steps as long as their error allows, reported one by one.

use alloc::string::String;

use sojourn_core::{Observer, Span, StreamAddress};
use sojourn_scenario::Checked;

use crate::engine::{Engine, Work};
use crate::report::Report;
use crate::world::World;

/// How the equations are integrated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Steps of this length; otherwise their length follows from the error.
    pub step: Option<Span>,
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
) -> Result<Work, String> {
    let world = World::new(scenario, address);
    let mut engine = Engine::new(&world, address);
    let mut report = Report::new(scenario, &world);
    let end = scenario.duration.as_secs_f64();
    let mut step = engine.shortest;
    while engine.now < end {
        let until = engine.next_stop(report.next_stop(), end);
        let length = options.step.map_or(step, Span::as_secs_f64);
        let is_cut = until - engine.now <= length;
        let mut length = length.min(until - engine.now);
        loop {
            let error = engine.attempt(length);
            let shorter = engine.shortest.min(length);
            let is_fine = error <= 1.0 || options.step.is_some() || length <= shorter;
            if is_fine {
                let factor = (0.9 / libm::sqrt(error.max(1e-4))).clamp(0.5, 2.0);
                let next = (length * factor).clamp(engine.shortest, engine.longest);
                step = if is_cut && next < step { step.min(next * 2.0) } else { next };
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
    Ok(engine.work)
}
