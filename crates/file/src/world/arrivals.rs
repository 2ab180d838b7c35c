//! Transfers that arrive at random: how often, and how large.

use std::ops::RangeInclusive;

use sojourn_core::{PortId, Rate, SpecError, words};
use sojourn_host::apps::{ArrivalsConfig, ArrivalsSpec, Sizes};

use super::shape::Shape;
use super::{Sources, WrongKey};

/// Builds the arrivals of a flow; `index` is its position in the file, `forward` its way.
pub(super) fn config(
    spec: ArrivalsSpec,
    index: usize,
    shape: &Shape,
    forward: &[PortId],
    sources: &mut Sources<'_>,
) -> Result<ArrivalsConfig, WrongKey> {
    let key = format!("scenario.flow.{index}.sizes");
    let sizes = sources.traces.sizes(&spec.sizes, &key, sources.document);
    let sizes = sizes.map_err(|error| ("sizes", error))?;
    let (key, per_second) = match (spec.arrivals_per_second, &spec.load) {
        (Some(per_second), None) => ("arrivals_per_second", per_second),
        (None, Some(load)) => ("load", per_second(load, &sizes, shape, forward)?),
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
    let config =
        ArrivalsConfig { per_second, sizes, most: spec.max_connections, transfers: spec.transfers };
    match config.check() {
        Ok(()) => Ok(config),
        Err(_) if key == "load" && !RATES.contains(&per_second) => {
            let load = spec.load.as_deref().unwrap_or_default();
            let problem = format!("'{load}' makes {per_second} transfers a second");
            let allowed = format!("{} to {} transfers a second", RATES.start(), RATES.end());
            Err((key, SpecError::new(problem).allow([allowed])))
        }
        Err(error) => Err((key, error)),
    }
}

/// The transfers a second that `arrivals_per_second` may be.
const RATES: RangeInclusive<f64> = 1e-6..=1e6;

/// How many transfers a second make up `load`. `load` is a rate of payload, or a share of the rate of
/// the way's slowest link.
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
            let share = words::share(load).map_err(|_| {
                let problem = SpecError::new(format!("'{load}' is out of range"));
                (
                    "load",
                    problem
                        .allow(["a share of the link from 0% to 100%, or a rate such as 300Mbps"]),
                )
            })?;
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
