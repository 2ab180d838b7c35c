//! Notices: settings that are valid but that the user has probably not intended.

use sojourn_core::PortId;
use sojourn_scenario::{Flow, Scenario};

/// A notice for each shaper that never holds a queue, because something on the way is no faster.
pub(super) fn notices(scenario: &Scenario) -> Vec<String> {
    let mut notices = Vec::new();
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
