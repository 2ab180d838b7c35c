//! Shapes: how links hang together, and which hosts there are.

use std::ops::Range;

use sojourn_core::{HostId, PortId, Span, SpecError};
use sojourn_scenario::{CarrierConfig, Host, Link};

use super::routes::Graph;
use super::{Traces, Wrong, gateway};
use crate::document::Document;
use crate::plan::PlannedQueue;
use crate::spec::{LineParts, ScenarioSpec};

const MAX_HOPS: u32 = 64;

/// Larger networks than ways are sought in.
const MAX_NODES: usize = 1_000;
const MAX_LINKS: usize = 5_000;

/// Links, hosts, and what decides the way of a flow.
pub(super) struct Shape {
    pub(super) hosts: Vec<Host>,
    pub(super) links: Vec<Link>,
    pub(super) carriers: Vec<CarrierConfig>,
    pub(super) queues: Vec<PlannedQueue>,
    pub(super) ways: Ways,
}

pub(super) enum Ways {
    /// Down from the near side to the far side, or up. Of a parking lot also the number of its hops,
    /// any one of which a flow may cross alone.
    Sides { down: Vec<PortId>, up: Vec<PortId>, hops: Option<u32> },
    /// The fewest links from node to node.
    Shortest(Graph),
}

pub(super) fn build(
    spec: &ScenarioSpec,
    document: &Document,
    traces: &mut Traces,
) -> Result<Shape, Wrong> {
    let is_free = !spec.node.is_empty() || !spec.link.is_empty();
    match (&spec.path, &spec.gateway, &spec.parking_lot, is_free) {
        (Some(path), None, None, false) => {
            let mut shape = Shape::sides(row(0..1), None);
            shape.add_line("", "queue", "path", 1, &path.line(), document, traces)?;
            Ok(shape)
        }
        (None, Some(gateway), None, false) => gateway::build(gateway, document, traces),
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
                shape.add_line(
                    "",
                    &name,
                    "parking_lot",
                    lot.hops,
                    &lot.line(),
                    document,
                    traces,
                )?;
            }
            Ok(shape)
        }
        (None, None, None, true) => free(spec, document, traces),
        (None, None, None, false) => Err(Wrong::new(
            "",
            SpecError::new("no link is defined").allow([
                "[scenario.path]",
                "[scenario.gateway]",
                "[scenario.parking_lot]",
                "[[scenario.link]]",
            ]),
        )),
        _ => Err(Wrong::new(
            "",
            SpecError::new("several shapes are defined")
                .allow(["one of path, gateway, parking_lot, or node and link"]),
        )),
    }
}

fn free(spec: &ScenarioSpec, document: &Document, traces: &mut Traces) -> Result<Shape, Wrong> {
    let mut graph = Graph::default();
    let mut shape = Shape::nodes();
    for (key, count, most) in
        [("node", spec.node.len(), MAX_NODES), ("link", spec.link.len(), MAX_LINKS)]
    {
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
        shape.add_line(&link.name, &link.name, &key, 1, &link.line(), document, traces)?;
        graph.add_edge(from, to, PortId(forward));
        graph.add_edge(to, from, PortId(forward + 1));
    }
    shape.ways = Ways::Shortest(graph);
    Ok(shape)
}

impl Shape {
    /// Two sides without links yet, and how data goes down and up.
    pub(super) fn sides((down, up): (Vec<PortId>, Vec<PortId>), hops: Option<u32>) -> Self {
        // Always there, and first, so that other hosts do not change their addresses.
        let hosts = ["server", "client"].map(|name| Host { name: name.into() }).into();
        let ways = Ways::Sides { down, up, hops };
        Self { hosts, links: Vec::new(), carriers: Vec::new(), queues: Vec::new(), ways }
    }

    /// Free nodes, of which there are none yet.
    fn nodes() -> Self {
        let ways = Ways::Shortest(Graph::default());
        Self {
            hosts: Vec::new(),
            links: Vec::new(),
            carriers: Vec::new(),
            queues: Vec::new(),
            ways,
        }
    }

    /// Adds one direction of a line.
    pub(super) fn add_link(&mut self, link: Link, queue: String, rate: String) {
        self.queues.push(PlannedQueue { name: link.name.clone(), queue, rate });
        self.links.push(link);
    }

    /// Adds both directions of a line whose queue is called `name`; its delay is shared among
    /// `parts` such lines.
    #[expect(clippy::too_many_arguments, reason = "one call of each kind, right above")]
    fn add_line(
        &mut self,
        said_of: &str,
        name: &str,
        key: &str,
        parts: u32,
        line: &LineParts<'_>,
        document: &Document,
        traces: &mut Traces,
    ) -> Result<(), Wrong> {
        let (delay, reverse_delay) =
            delays(line).map_err(|error| Wrong::new(key, error.within_link(said_of)))?;
        let rtt = delay + reverse_delay;
        let directions = [
            (name.to_owned(), &line.forward, delay),
            (reverse(name), &line.reverse, reverse_delay),
        ];
        for (name, parts_of, delay) in directions {
            let rate_key = format!("{key}.{}", parts_of.rate_key);
            let rate = traces.complete(parts_of.rate, &rate_key, document)?;
            let queue = parts_of.queue.value.complete(parts_of.buffer, rate.mean(), rtt);
            let queue_key = format!("{key}.{}", parts_of.queue_key);
            let link = Link {
                name,
                queue: queue.map_err(|problem| Wrong::new(queue_key, problem))?,
                rate,
                delay: delay / u64::from(parts),
                entry_loss: parts_of.entry_loss,
                loss: parts_of.loss,
                jitter: parts_of.jitter,
            };
            self.add_link(link, parts_of.queue.text.clone(), parts_of.rate.text.clone());
        }
        Ok(())
    }

    /// The address of a host in a row, which is made when it is first named.
    pub(super) fn host(&mut self, name: &str) -> Result<HostId, SpecError> {
        check_name(name)?;
        let known = self.hosts.iter().position(|host| host.name == name);
        let index = known.unwrap_or_else(|| {
            self.hosts.push(Host { name: name.to_owned() });
            self.hosts.len() - 1
        });
        u16::try_from(index)
            .map(HostId)
            .map_err(|_| SpecError::new("too many hosts").allow([format!("at most {}", u16::MAX)]))
    }
}

trait WithinLink {
    fn within_link(self, name: &str) -> Self;
}

impl WithinLink for SpecError {
    fn within_link(self, name: &str) -> Self {
        if name.is_empty() { self } else { self.within(&format!("link '{name}'")) }
    }
}

/// Propagation of each direction.
fn delays(line: &LineParts<'_>) -> Result<(Span, Span), SpecError> {
    match (line.rtt, line.delay, line.reverse_delay) {
        (Some(rtt), None, None) => {
            let half = rtt.value / 2;
            Ok((half, rtt.value - half))
        }
        (None, Some(delay), reverse) => {
            Ok((delay.value, reverse.map_or(delay.value, |reverse| reverse.value)))
        }
        (None, None, _) => Err(SpecError::new("propagation is missing")
            .allow(["rtt, such as \"20ms\"", "delay, one way"])),
        (Some(_), ..) => Err(SpecError::new("rtt and delay say the same; one of them must go")
            .allow(["rtt", "delay, with or without reverse_delay"])),
    }
}

/// Down and up through `hops`; the links of hop `i` are `2 i` down and `2 i + 1` up.
pub(super) fn row(hops: Range<u32>) -> (Vec<PortId>, Vec<PortId>) {
    let down = hops.clone().map(|hop| PortId(2 * hop as u16)).collect();
    (down, hops.rev().map(|hop| PortId(2 * hop as u16 + 1)).collect())
}

/// The queue of the other direction.
fn reverse(name: &str) -> String {
    format!("reverse_{name}")
}

pub(super) fn taken(what: &str, name: &str) -> SpecError {
    SpecError::new(format!("another {what} is named '{name}' already")).allow(["every name once"])
}

/// Names of flows, hosts and links: what can stand in an address and in a claim.
pub(super) fn check_name(name: &str) -> Result<(), SpecError> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts && name.chars().all(is_good) && name.len() <= 64 {
        return Ok(());
    }
    Err(SpecError::new(format!("'{name}' is no name"))
        .allow(["a letter, then letters, digits, '-' and '_', 64 at most"]))
}
