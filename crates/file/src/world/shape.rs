//! How links hang together, which hosts there are, and the way of a flow.

use sojourn_core::{HostId, PortId, Span, SpecError};
use sojourn_scenario::{CarrierConfig, Host, Link};

use super::routes::Graph;
use super::{Traces, Wrong};
use crate::document::Document;
use crate::plan::PlannedQueue;
use crate::spec::LineParts;

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

impl Shape {
    /// Two sides without links yet, and how data goes down and up.
    pub(super) fn sides((down, up): (Vec<PortId>, Vec<PortId>), hops: Option<u32>) -> Self {
        // Always there, and first, so that other hosts do not change their addresses.
        let hosts = ["server", "client"].map(|name| Host { name: name.into() }).into();
        let ways = Ways::Sides { down, up, hops };
        Self { hosts, links: Vec::new(), carriers: Vec::new(), queues: Vec::new(), ways }
    }

    /// Free nodes, of which there are none yet.
    pub(super) fn nodes() -> Self {
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
    pub(super) fn add_line(
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
                policer: parts_of.policer,
                entry_loss: parts_of.entry_loss.clone(),
                loss: parts_of.loss.clone(),
                jitter: parts_of.jitter.clone(),
                reorder: parts_of.reorder,
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
