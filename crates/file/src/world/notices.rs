//! Notices: settings that are valid but that the user has probably not intended.

use sojourn_core::{PortId, Span};
use sojourn_scenario::{Flow, Scenario};

use crate::spec::{ScenarioSpec, Text};

/// A notice for each shaper that never holds a queue, because something on the way is no faster, and for
/// each change that would come after the end.
pub(super) fn notices(spec: &ScenarioSpec, scenario: &Scenario) -> Vec<String> {
    let mut notices = late_changes(spec, scenario);
    notices.extend(late_stations(spec, scenario));
    for flow in &scenario.flows {
        for notice in [&flow.forward, &flow.reverse]
            .into_iter()
            .flat_map(|route| idle_shapers(scenario, flow, route))
        {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }
    notices
}

/// What waits for a sender can't come before that sender starts.
fn late_changes(spec: &ScenarioSpec, scenario: &Scenario) -> Vec<String> {
    let Scenario { duration, .. } = *scenario;
    let late = spec.change.iter().filter_map(|change| {
        let flow = scenario.flows.iter().find(|flow| flow.name == change.when.value.flow)?;
        let after = change.after.as_ref().map_or(Span::ZERO, |after| after.value);
        (flow.start + after >= duration).then(|| {
            let name = &change.name;
            match flow.start.is_zero() {
                true => format!("change '{name}' never comes: its 'after' is {after} of {duration}"),
                false => format!(
                    "change '{name}' never comes: flow '{}' starts at {}, and 'after' is {after}, of {duration}",
                    flow.name, flow.start
                ),
            }
        })
    });
    late.collect()
}

/// Times of stations that begin after the end.
fn late_stations(spec: &ScenarioSpec, scenario: &Scenario) -> Vec<String> {
    let Scenario { duration, .. } = *scenario;
    let stations = spec.radio.iter().flat_map(|radio| &radio.station);
    let late = stations.filter_map(|station| {
        let present = Text::value_or_default(&station.present);
        let late = present.iter().find(|there| there.from >= duration)?;
        let what = match present.first() == Some(late) {
            true => "is never there",
            false => "is not there again",
        };
        Some(format!(
            "station '{}' {what}: its 'present' has a time from {} on, and the run ends at {duration}",
            station.name, late.from
        ))
    });
    late.collect()
}

fn idle_shapers(scenario: &Scenario, flow: &Flow, route: &[PortId]) -> Vec<String> {
    let links = || route.iter().filter_map(|port| Some((*port, scenario.link(*port)?)));
    let rates = links().filter_map(|(port, link)| Some((link.rate.mean()?, port, link)));
    let slowest = rates.min_by_key(|(rate, port, _)| (*rate, *port));
    let Some((least, _, slowest)) = slowest.filter(|(rate, ..)| !rate.is_unlimited()) else {
        return Vec::new();
    };
    let idle = links().filter_map(|(_, link)| {
        let shaped = link.queue.shaped_rate().filter(|shaped| *shaped >= least)?;
        let (own, other) = (&link.name, &slowest.name);
        Some(match own == other {
            true => format!(
                "queue '{own}' shapes at {shaped}, and its link sends {least}: the shaper never holds a \
                 packet back, and the queue stands right on the link, which no modem or card \
                 with a buffer of its own allows; shape below the link, or put a modem behind the \
                 router ([scenario.gateway])"
            ),
            false => format!(
                "queue '{own}' shapes at {shaped}, but '{other}' on the way of flow '{}' sends no more \
                 than {least}: packets wait in '{other}', whatever '{own}' is; shape below {least}",
                flow.name
            ),
        })
    });
    idle.collect()
}
