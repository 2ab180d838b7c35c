//! Models as others published them: which worlds they know, and how they are integrated.

use alloc::format;
use alloc::string::String;

use sojourn_core::{PortId, SpecError};
use sojourn_host::apps::BulkConfig;
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Flow, Link, Scenario, Traffic};

use crate::curves::Curves;
use crate::engine::Work;

/// A model that is integrated with fixed steps, as its authors do.
pub(crate) trait Published: Curves {
    /// # Errors
    /// The equations diverge; says where and when.
    fn step(&mut self) -> Result<(), String>;

    /// A step that ends at `moment` but for rounding ends at it.
    fn round_to(&mut self, moment: f64);

    fn work(&self) -> Work;
}

/// What a model has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knows {
    /// As in "the model of …".
    pub(crate) whose: &'static str,
    pub(crate) controls: &'static [&'static str],
    pub(crate) queues: &'static [&'static str],
}

/// One bottleneck of a fixed rate, and flows that send from the beginning to the end.
///
/// # Errors
/// Names what the model does not have.
pub(crate) fn check(scenario: &Scenario, knows: &Knows) -> Result<(), SpecError> {
    let mut bottleneck = None;
    for flow in &scenario.flows {
        let place = check_flow(scenario, flow, knows)
            .map_err(|error| error.within(&format!("flow '{}'", flow.name)))?;
        if *bottleneck.get_or_insert(place) != place {
            return Err(knows.refuse("a second bottleneck", &["one link with a rate"]));
        }
    }
    let Some(place) = bottleneck else {
        return Err(knows.refuse("worlds without flows", &["flows with app = \"bulk\""]));
    };
    let link = &scenario.links[place];
    check_link(link, knows).map_err(|error| error.within(&format!("link '{}'", link.name)))
}

fn check_link(link: &Link, knows: &Knows) -> Result<(), SpecError> {
    if !matches!(link.rate, RateConfig::Fixed { .. }) {
        return Err(knows.refuse("rates that change", &["a fixed rate"]));
    }
    if link.loss != LossConfig::None {
        return Err(knows.refuse("loss on the medium", &["loss = \"none\""]));
    }
    let name = link.queue.name();
    if !knows.queues.contains(&name) {
        return Err(knows.refuse(&format!("queue '{name}'"), knows.queues));
    }
    Ok(())
}

/// The place of the only link with a rate.
fn check_flow(scenario: &Scenario, flow: &Flow, knows: &Knows) -> Result<usize, SpecError> {
    let App::Tcp { traffic: Traffic::Bulk(BulkConfig { rate: None, .. }), cca, .. } = &flow.app
    else {
        return Err(
            knows.refuse("applications but bulk transfers", &["app = \"bulk\" without a rate"])
        );
    };
    let name = cca.name();
    if !knows.controls.contains(&name) {
        return Err(knows.refuse(&format!("'{name}'"), knows.controls));
    }
    if !flow.start.is_zero() || !flow.start_jitter.is_zero() || flow.stop.is_some() {
        let allowed = &["flows without 'start' and 'stop'"];
        return Err(knows.refuse("beginnings and ends of flows", allowed));
    }
    let has_rate = |id: &&PortId| scenario.links[id.index()].rate != RateConfig::Unlimited;
    let mut limited = flow.forward.iter().filter(has_rate);
    match (limited.next(), limited.next()) {
        (Some(id), None) => Ok(id.index()),
        (Some(_), Some(_)) => Err(knows.refuse("a second bottleneck", &["one link with a rate"])),
        (None, _) => Err(knows.refuse("ways without a bottleneck", &["one link with a rate"])),
    }
}

impl Knows {
    fn refuse(&self, what: &str, allowed: &[&'static str]) -> SpecError {
        let problem = format!("the model of {} has no {what}", self.whose);
        SpecError::new(problem).allow(allowed.iter().copied())
    }
}
