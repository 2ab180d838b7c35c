//! Carriers of a free topology, and the nodes that they join.

use sojourn_core::{PortId, Span, SpecError};
use sojourn_wire::{Leads, Port, PortShape, Site};

use super::routes::Graph;
use super::shape::{Shape, check_name, taken};
use super::{Sources, Wrong};
use crate::plan::PlannedQueue;
use crate::spec::{CarrierSpec, PortSpec, ScenarioSpec};

/// The most ports of all carriers together.
const MAX_PORTS: usize = 5_000;

/// Adds the carriers of `spec`, whose ports follow those of the links, and where they lead.
pub(super) fn build(
    spec: &ScenarioSpec,
    shape: &mut Shape,
    graph: &mut Graph,
    sources: &mut Sources<'_>,
) -> Result<(), Wrong> {
    for (index, carrier) in spec.carrier.iter().enumerate() {
        let key = format!("carrier.{index}");
        let wrong = |problem| Wrong::new(format!("{key}.name"), problem);
        check_name(&carrier.name).map_err(wrong)?;
        if spec.carrier[..index].iter().any(|other| other.name == carrier.name) {
            return Err(wrong(taken("carrier", &carrier.name)));
        }
        add(carrier, &key, shape, graph, sources)?;
    }
    Ok(())
}

fn add(
    spec: &CarrierSpec,
    key: &str,
    shape: &mut Shape,
    graph: &mut Graph,
    sources: &mut Sources<'_>,
) -> Result<(), Wrong> {
    let (nodes, places) = nodes(spec, key, graph)?;
    let mut ports = Vec::with_capacity(spec.port.len());
    let mut planned = Vec::with_capacity(spec.port.len());
    for (index, port) in spec.port.iter().enumerate() {
        let key = format!("{key}.port.{index}");
        let wrong = |problem| Wrong::new(format!("{key}.name"), problem);
        check_name(&port.name).map_err(wrong)?;
        if spec.port[..index].iter().any(|other| other.name == port.name) {
            return Err(wrong(taken("port", &port.name)));
        }
        let name = format!("{}.{}", spec.name, port.name);
        let delay = port.delay.as_ref().map_or(Span::ZERO, |delay| delay.value);
        let parts = port.parts();
        let rtt = delay + delay;
        let link = sources.link(name.clone(), &key, &parts, delay, rtt)?;
        let (queue, rate) = (port.queue.text.clone(), port.rate.text.clone());
        planned.push(PlannedQueue { name, queue, rate });
        ports.push(Port { link, leads: leads(port, &key, &nodes)? });
    }
    let wrong = |problem| Wrong::new(format!("{key}.kind"), problem);
    let kind = sources.registry.carrier(&spec.kind.text).map_err(wrong)?;
    let joined = kind.join(Site { name: &spec.name, nodes: &nodes, ports });
    let joined = joined.map_err(|problem| wrong(problem.within(&spec.name)))?;
    let own = joined.carrier.ports();
    if shape.carrier_ports.len() + own.len() > MAX_PORTS {
        let problem = SpecError::new("the carriers have too many ports in all");
        return Err(wrong(problem.allow([format!("at most {MAX_PORTS}")])));
    }
    for (leads, port) in joined.leads.iter().zip(shape.ports()..) {
        for (from, to) in
            leads.from.iter().flat_map(|from| leads.to.iter().map(move |to| (from, to)))
        {
            graph.add_edge(places[*from], places[*to], PortId(port as u16));
        }
    }
    let made = own.iter().map(|port| match planned.iter().find(|known| known.name == port.name) {
        Some(planned) => planned.clone(),
        None => planned_of(port, &spec.kind.text),
    });
    shape.queues.extend(made);
    shape.carrier_ports.extend(own);
    shape.carriers.push(joined.carrier);
    Ok(())
}

/// A port that the carrier made by itself.
fn planned_of(port: &PortShape, kind: &str) -> PlannedQueue {
    PlannedQueue { name: port.name.clone(), queue: kind.to_owned(), rate: port.rate.to_string() }
}

/// The nodes that a carrier joins, each once and in the order of the file: names, and positions in
/// `graph`.
fn nodes(spec: &CarrierSpec, key: &str, graph: &Graph) -> Result<(Vec<String>, Vec<usize>), Wrong> {
    let listed = spec.nodes.iter().enumerate();
    let listed = listed.map(|(index, name)| (format!("{key}.nodes.{index}"), name));
    let of_ports = spec.port.iter().enumerate().flat_map(|(index, port)| {
        let key = format!("{key}.port.{index}");
        let from = port.from.iter().flat_map(|from| &from.0);
        let from_key = format!("{key}.from");
        std::iter::once((format!("{key}.to"), &port.to))
            .chain(from.map(move |name| (from_key.clone(), name)))
    });
    let (mut nodes, mut places) = (Vec::new(), Vec::new());
    for (key, name) in listed.chain(of_ports) {
        let place = graph.node(name).map_err(|problem| Wrong::new(key, problem))?;
        if !places.contains(&place) {
            nodes.push(name.clone());
            places.push(place);
        }
    }
    Ok((nodes, places))
}

/// Where a port leads, as positions in `nodes`, which contains every node that the port names.
fn leads(port: &PortSpec, key: &str, nodes: &[String]) -> Result<Leads, Wrong> {
    let is_written = |name: &String| port.from.as_ref().is_none_or(|from| from.0.contains(name));
    let is_other = |name: &String| *name != port.to;
    if let Some(from) = &port.from
        && from.0.contains(&port.to)
    {
        let problem = SpecError::new(format!("port '{}' ends where it begins", port.name));
        let others = nodes.iter().filter(|name| is_other(name));
        return Err(Wrong::new(format!("{key}.from"), problem.allow(others)));
    }
    let from = nodes.iter().enumerate();
    let from = from.filter(|(_, name)| is_written(name) && is_other(name));
    Ok(Leads {
        from: from.map(|(position, _)| position).collect(),
        to: nodes.iter().position(|name| *name == port.to).into_iter().collect(),
    })
}
