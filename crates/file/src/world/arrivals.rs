//! Transfers that arrive at random: how often, and how large.

use sojourn_core::{PortId, Rate, SpecError, words};
use sojourn_host::apps::arrivals::MOST_TRANSFERS;
use sojourn_host::apps::{ArrivalsConfig, Sizes};

use super::shape::Shape;
use super::{Sources, WrongKey};
use crate::spec::FlowSpec;

const DEFAULT_MOST: u32 = 1_000;
const MAX_MOST: u32 = 65_536;
const MAX_PER_SECOND: f64 = 1e6;

/// `index` is the position of the flow in the file, and `forward` its way.
pub(super) fn config(
    flow: &FlowSpec,
    index: usize,
    shape: &Shape,
    forward: &[PortId],
    sources: &mut Sources<'_>,
) -> Result<ArrivalsConfig, WrongKey> {
    let missing = || {
        let problem = SpecError::new("arrivals needs 'sizes'");
        ("sizes", problem.allow(["such as \"100kB\" or \"lognormal mean 60kB sigma 1.5\""]))
    };
    let written = flow.sizes.as_ref().ok_or_else(missing)?;
    let key = format!("scenario.flow.{index}.sizes");
    let sizes = sources.traces.sizes(&written.value, &key, sources.document);
    let sizes = sizes.map_err(|error| ("sizes", error))?;
    let per_second = match (flow.arrivals_per_second, &flow.load) {
        (Some(per_second), None) => per_second,
        (None, Some(load)) => per_second(load, &sizes, shape, forward)?,
        (None, None) => {
            let problem = SpecError::new("arrivals needs 'arrivals_per_second' or 'load'");
            let allowed = ["arrivals_per_second = 10", "load = \"20%\""];
            return Err(("app", problem.allow(allowed)));
        }
        (Some(_), Some(_)) => {
            let problem = "arrivals_per_second and load say the same; one of them must go";
            let problem = SpecError::new(problem).allow(["arrivals_per_second", "load"]);
            return Err(("load", problem));
        }
    };
    if !(1e-6..=MAX_PER_SECOND).contains(&per_second) {
        let key = if flow.load.is_some() { "load" } else { "arrivals_per_second" };
        let problem = SpecError::new(format!("{per_second} transfers a second are out of range"));
        return Err((key, problem.allow(["0.000001 to 1000000"])));
    }
    let most = flow.max_connections.unwrap_or(DEFAULT_MOST);
    if !(1..=MAX_MOST).contains(&most) {
        let problem = SpecError::new(format!("{most} is out of range"));
        return Err(("max_connections", problem.allow([format!("1 to {MAX_MOST}")])));
    }
    if let Some(transfers) = flow.transfers.filter(|count| !(1..=MOST_TRANSFERS).contains(count)) {
        let problem = SpecError::new(format!("{transfers} is out of range"));
        return Err(("transfers", problem.allow([format!("1 to {MOST_TRANSFERS}")])));
    }
    Ok(ArrivalsConfig { per_second, sizes, most, transfers: flow.transfers })
}

/// Transfers a second that bring `load` on average. `load` is payload a second, or that as a share
/// of the way's narrowest link.
fn per_second(
    load: &str,
    sizes: &Sizes,
    shape: &Shape,
    forward: &[PortId],
) -> Result<f64, WrongKey> {
    let rate = match load.trim().strip_suffix('%') {
        None => load.parse::<Rate>().map_err(|error| {
            ("load", error.allow(["a rate such as 300Mbps, or a share of the link such as 20%"]))
        })?,
        Some(_) => {
            let share = words::share(load).map_err(|error| ("load", error))?;
            let means = forward.iter().map(|port| shape.mean_rate(*port));
            let narrowest = means.min().flatten().filter(|rate| !rate.is_unlimited());
            let capacity = narrowest.ok_or_else(|| {
                let problem = "a share of a capacity that is unlimited, or drawn for each run";
                ("load", SpecError::new(problem).allow(["a rate such as 300Mbps"]))
            })?;
            Rate::from_bps((capacity.as_bps() as f64 * share) as u64)
        }
    };
    if rate.is_unlimited() {
        return Err((
            "load",
            SpecError::new("an unlimited load").allow(["a rate such as 300Mbps"]),
        ));
    }
    Ok(rate.as_bps() as f64 / (8.0 * sizes.mean()))
}
