//! How links are connected, which hosts there are, and the way of a flow.

use sojourn_core::{HostId, PortId, Rate, Span, SpecError};
use sojourn_scenario::{CarrierConfig, Host, Link, PortShape};

use super::routes::Graph;
use super::{Sources, Wrong};
use crate::plan::PlannedQueue;
use crate::spec::LineParts;

/// Links, hosts, and how flows find their way.
pub(super) struct Shape {
    pub(super) hosts: Vec<Host>,
    pub(super) links: Vec<Link>,
    pub(super) carriers: Vec<CarrierConfig>,
    /// The ports of all carriers, in the order of their [`PortId`]s.
    pub(super) carrier_ports: Vec<PortShape>,
    /// The queue of every port.
    pub(super) queues: Vec<PlannedQueue>,
    pub(super) ways: Ways,
}

pub(super) enum Ways {
    /// Down from the near side to the far side, or up. A parking lot also has the number of its
    /// hops; a flow may cross any one of them alone.
    Sides { down: Vec<PortId>, up: Vec<PortId>, hops: Option<u32> },
    /// Free nodes: a flow takes the way with the fewest ports.
    Shortest(Graph),
}

impl Shape {
    /// Two sides, and the links that data crosses down and up.
    pub(super) fn sides((down, up): (Vec<PortId>, Vec<PortId>), hops: Option<u32>) -> Self {
        // These two are always there and come first, so that their addresses do not depend on other hosts.
        let hosts = ["server", "client"].map(|name| Host { name: name.into() }).into();
        Self::new(hosts, Ways::Sides { down, up, hops })
    }

    /// An empty topology of free nodes.
    pub(super) fn nodes() -> Self {
        Self::new(Vec::new(), Ways::Shortest(Graph::default()))
    }

    fn new(hosts: Vec<Host>, ways: Ways) -> Self {
        Self {
            hosts,
            links: Vec::new(),
            carriers: Vec::new(),
            carrier_ports: Vec::new(),
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
    pub(super) fn add_line(
        &mut self,
        said_of: &str,
        name: &str,
        key: &str,
        parts: u32,
        line: &LineParts<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<(), Wrong> {
        let (delay, reverse_delay) =
            delays(line).map_err(|error| Wrong::new(key, error.within_link(said_of)))?;
        let rtt = delay + reverse_delay;
        let directions = [
            (name.to_owned(), &line.forward, delay),
            (reverse(name), &line.reverse, reverse_delay),
        ];
        for (name, direction, delay) in directions {
            let link = sources.link(name, key, direction, delay / u64::from(parts), rtt)?;
            self.add_link(link, direction.queue.text.clone(), direction.rate.text.clone());
        }
        Ok(())
    }

    /// How many ports there are: those of links, then those of carriers.
    pub(super) fn ports(&self) -> usize {
        self.links.len() + self.carrier_ports.len()
    }

    pub(super) fn delay(&self, port: PortId) -> Span {
        match self.links.get(port.index()) {
            Some(link) => link.delay,
            None => self.carrier_ports[port.index() - self.links.len()].delay,
        }
    }

    /// The mean rate of `port`; `None` if it is drawn for each run.
    pub(super) fn mean_rate(&self, port: PortId) -> Option<Rate> {
        match self.links.get(port.index()) {
            Some(link) => link.rate.mean(),
            None => self.carrier_ports[port.index() - self.links.len()].mean,
        }
    }

    /// The port whose queue is called `name`.
    pub(super) fn port(&self, name: &str) -> Result<PortId, SpecError> {
        let names = || self.queues.iter().map(|queue| &queue.name[..]);
        match names().position(|known| known == name) {
            Some(position) => Ok(PortId(position as u16)),
            None => Err(SpecError::new(format!("no queue is named '{name}'"))
                .near(name, names())
                .allow(names())),
        }
    }

    /// The address of a host; a host is made when it is first named.
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

/// The queue of the other direction.
pub(super) fn reverse(name: &str) -> String {
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
