//! What is no mistake, but seldom meant.

use sojourn_scenario::{Flow, Scenario};

/// Shapers that hold no queue, because something on the way is no faster.
pub(super) fn notices(scenario: &Scenario) -> Vec<String> {
    let mut notices = Vec::new();
    for flow in &scenario.flows {
        for notice in [&flow.forward, &flow.reverse].into_iter().flat_map(|route| {
            let links: Vec<usize> = route.iter().map(|port| port.index()).collect();
            idle_shapers(scenario, flow, &links)
        }) {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }
    notices
}

fn idle_shapers(scenario: &Scenario, flow: &Flow, route: &[usize]) -> Vec<String> {
    let rate = |link: usize| scenario.links[link].rate.mean();
    let slowest = route.iter().filter_map(|link| Some((rate(*link)?, *link))).min();
    let Some((least, slowest)) = slowest.filter(|(rate, _)| !rate.is_unlimited()) else {
        return Vec::new();
    };
    let idle = route.iter().filter_map(|link| {
        let shaped = scenario.links[*link].queue.shaped_rate().filter(|shaped| *shaped >= least)?;
        let (own, other) = (&scenario.links[*link].name, &scenario.links[slowest].name);
        Some(match *link == slowest {
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
