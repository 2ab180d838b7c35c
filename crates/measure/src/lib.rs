//! A run and its numbers.
//!
//! Engines are compiled for their observer, so that an event costs no call. The collector of metrics observes nearly all
//! runs, and engines are compiled together with it here, to be fast. So `study`, which has the runs done, may be compiled
//! to be small. No function here is inlined there.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::string::String;

use sojourn_core::{Event, Observer, StreamAddress, Time, Who};
use sojourn_fluid::{Options, Ran};
use sojourn_metrics::{Collector, RunMetrics};
use sojourn_scenario::Checked;
use sojourn_sim::{Outcome, Violation};

/// Is called after each sample that the collector was told of, and may take rows of the time series from it.
pub type AtSample<'a> = &'a mut dyn FnMut(Time, &mut Collector);

/// Simulates the packets of `scenario` to its end and tells `collector` of every event.
///
/// # Errors
/// A [`Violation`] if the run broke an invariant: then the model is wrong, not the scenario.
#[inline(never)]
pub fn simulate(
    scenario: &Checked,
    address: StreamAddress,
    collector: Collector,
    at_sample: AtSample<'_>,
) -> Result<(RunMetrics, Outcome), Violation> {
    let mut observer = Sampled { collector, at_sample };
    let outcome = sojourn_sim::run(scenario, address, &mut observer)?;
    Ok((observer.collector.finish(outcome.end), outcome))
}

/// Solves the equations of `scenario` to its end and tells `collector` of every event.
///
/// # Errors
/// As [`sojourn_fluid::run`].
#[inline(never)]
pub fn solve(
    scenario: &Checked,
    address: StreamAddress,
    options: &Options,
    collector: Collector,
    at_sample: AtSample<'_>,
) -> Result<(RunMetrics, Ran), String> {
    let mut observer = Sampled { collector, at_sample };
    let ran = sojourn_fluid::run(scenario, address, options, &mut observer)?;
    Ok((observer.collector.finish(Time::ZERO + scenario.duration), ran))
}

struct Sampled<'a> {
    collector: Collector,
    at_sample: AtSample<'a>,
}

impl Observer for Sampled<'_> {
    /// Always inlined, so that the events of packets have nothing to do with samples.
    #[inline(always)]
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        self.collector.record(now, who, event);
        if let Event::FlowSample(_) | Event::QueueSample(_) = event {
            (self.at_sample)(now, &mut self.collector);
        }
    }
}
