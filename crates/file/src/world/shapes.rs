//! The shapes that a scenario can have, by its keys.

use std::ops::Range;

use sojourn_core::{PortId, SpecError};
use sojourn_scenario::Host;

use super::routes::Graph;
use super::shape::{Shape, Ways, check_name, reverse, taken};
use super::{Sources, Wrong, carriers, gateway, radios};
use crate::spec::ScenarioSpec;

const MAX_HOPS: u32 = 64;

/// The largest network in which ways are searched.
const MAX_NODES: usize = 1_000;
const MAX_LINKS: usize = 5_000;

pub(super) fn build(spec: &ScenarioSpec, sources: &mut Sources<'_>) -> Result<Shape, Wrong> {
    let is_free = !spec.node.is_empty()
        || !spec.link.is_empty()
        || !spec.carrier.is_empty()
        || !spec.radio.is_empty();
    match (&spec.path, &spec.gateway, &spec.parking_lot, is_free) {
        (Some(path), None, None, false) => {
            let mut shape = Shape::sides(row(0..1), None);
            shape.add_line("", "queue", "path", 1, &path.line(), sources)?;
            Ok(shape)
        }
        (None, Some(gateway), None, false) => gateway::build(gateway, sources),
        (None, None, Some(lot), false) => {
            if !(1..=MAX_HOPS).contains(&lot.hops) {
                return Err(Wrong::new(
                    "parking_lot.hops",
                    SpecError::new(format!("{} is out of range", lot.hops))
                        .allow([format!("1 to {MAX_HOPS}")]),
                ));
            }
            let mut shape = Shape::sides(row(0..lot.hops), Some(lot.hops));
            for hop in 1..=lot.hops {
                let name = format!("queue{hop}");
                shape.add_line("", &name, "parking_lot", lot.hops, &lot.line(), sources)?;
            }
            Ok(shape)
        }
        (None, None, None, true) => free(spec, sources),
        (None, None, None, false) => Err(Wrong::new(
            "",
            SpecError::new("no link is defined").allow([
                "[scenario.path]",
                "[scenario.gateway]",
                "[scenario.parking_lot]",
                "[[scenario.link]]",
                "[[scenario.carrier]]",
                "[[scenario.radio]]",
            ]),
        )),
        _ => Err(Wrong::new(
            "",
            SpecError::new("several shapes are defined")
                .allow(["one of path, gateway, parking_lot, or node, link, carrier and radio"]),
        )),
    }
}

fn free(spec: &ScenarioSpec, sources: &mut Sources<'_>) -> Result<Shape, Wrong> {
    let mut graph = Graph::default();
    let mut shape = Shape::nodes();
    for (key, count, most) in [
        ("node", spec.node.len(), MAX_NODES),
        ("link", spec.link.len(), MAX_LINKS),
        ("carrier", spec.carrier.len(), MAX_NODES),
        ("radio", spec.radio.len(), MAX_NODES),
    ] {
        if count > most {
            let problem = SpecError::new(format!("{count} {key}s are too many"));
            return Err(Wrong::new(key, problem.allow([format!("at most {most}")])));
        }
    }
    for (index, node) in spec.node.iter().enumerate() {
        let wrong = |problem| Wrong::new(format!("node.{index}.name"), problem);
        check_name(&node.name).map_err(wrong)?;
        if graph.node(&node.name).is_ok() {
            return Err(wrong(taken("node", &node.name)));
        }
        graph.add_node(&node.name);
        shape.hosts.push(Host { name: node.name.clone() });
    }
    radios::add_nodes(spec, &mut shape, &mut graph)?;
    for (index, link) in spec.link.iter().enumerate() {
        let key = format!("link.{index}");
        let wrong = |problem| Wrong::new(format!("{key}.name"), problem);
        check_name(&link.name).map_err(wrong)?;
        for name in [link.name.clone(), reverse(&link.name)] {
            if shape.links.iter().any(|other| other.name == name) {
                return Err(wrong(taken("queue", &name)));
            }
        }
        let node = |end: &str, name: &str| {
            graph.node(name).map_err(|error| Wrong::new(format!("{key}.{end}"), error))
        };
        let (from, to) = (node("from", &link.from)?, node("to", &link.to)?);
        if from == to {
            let problem = format!("link '{}' ends where it begins", link.name);
            let allowed =
                spec.node.iter().map(|node| &node.name).filter(|name| **name != link.from);
            let problem = SpecError::new(problem).allow(allowed);
            return Err(Wrong::new(format!("{key}.to"), problem));
        }
        let forward = shape.links.len() as u16;
        shape.add_line(&link.name, &link.name, &key, 1, &link.line(), sources)?;
        graph.add_edge(from, to, PortId(forward));
        graph.add_edge(to, from, PortId(forward + 1));
    }
    carriers::build(spec, &mut shape, &mut graph, sources)?;
    radios::build(spec, &mut shape, &mut graph, sources)?;
    shape.ways = Ways::Shortest(graph);
    Ok(shape)
}

/// Down and up through `hops`; the links of hop `i` are `2 i` down and `2 i + 1` up.
pub(super) fn row(hops: Range<u32>) -> (Vec<PortId>, Vec<PortId>) {
    let down = hops.clone().map(|hop| PortId(2 * hop as u16)).collect();
    (down, hops.rev().map(|hop| PortId(2 * hop as u16 + 1)).collect())
}
