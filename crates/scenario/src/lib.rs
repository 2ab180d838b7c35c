//! One world, fully specified: hosts, links, flows, duration. Checked and complete; every engine
//! is given the same [`Scenario`], and what a user wrote becomes one in the study room.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{HostId, PortId, Span, SpecError};
pub use sojourn_wire::Link;

/// Everything a run needs beside a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub duration: Span,
    /// Metrics count from here on, unless they say that they are of the whole run.
    pub warmup: Span,
    /// Step of the time series.
    pub step: Span,
    pub hosts: Vec<Host>,
    pub links: Vec<Link>,
    pub flows: Vec<Flow>,
}

/// An end system; its position in [`Scenario::hosts`] is its address.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    pub name: String,
}

/// An application with its two hosts and the way between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    pub name: String,
    pub app: App,
    pub src: HostId,
    pub dst: HostId,
    /// The route from source to destination, and back.
    pub forward: Vec<PortId>,
    pub reverse: Vec<PortId>,
    /// Propagation that only this flow has, after the last link of each direction.
    pub forward_delay: Span,
    pub reverse_delay: Span,
    pub start: Span,
    /// Start is moved by a random time below this, so that flows are not in step.
    pub start_jitter: Span,
    /// The application offers nothing any more from here on.
    pub stop: Option<Span>,
    pub dscp: u8,
}

impl Flow {
    /// From the first host to the second from the start on, with no propagation of its own; the
    /// routes as numbers of ports.
    pub fn new(name: &str, app: App, forward: &[u16], reverse: &[u16]) -> Self {
        Self {
            name: name.into(),
            app,
            src: HostId(0),
            dst: HostId(1),
            forward: forward.iter().copied().map(PortId).collect(),
            reverse: reverse.iter().copied().map(PortId).collect(),
            forward_delay: Span::ZERO,
            reverse_delay: Span::ZERO,
            start: Span::ZERO,
            start_jitter: Span::ZERO,
            stop: None,
            dscp: 0,
        }
    }
}

/// What a flow does.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one per flow")]
pub enum App {
    Tcp { traffic: Traffic, cca: sojourn_cca::Config, transport: sojourn_host::tcp::Config },
    Ping(sojourn_host::apps::PingConfig),
    Udp(sojourn_host::apps::UdpConfig),
}

impl App {
    /// Sends all the time.
    pub fn bulk(cca: sojourn_cca::Config, transport: sojourn_host::tcp::Config) -> Self {
        Self::Tcp { traffic: Traffic::Bulk { bytes: None }, cca, transport }
    }
}

/// What an application gives its TCP connection to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// As much as fits, or so many bytes.
    Bulk { bytes: Option<u64> },
    /// As much as fits for `on`, then nothing for `off`, again and again. With `random` the
    /// lengths are exponential with these means.
    OnOff { on: Span, off: Span, random: bool },
    /// Transfers that arrive at random, each over a connection of its own.
    Arrivals(sojourn_host::apps::ArrivalsConfig),
}

impl Scenario {
    /// The longest that so many links and flows can run: an engine keeps a moment and one of their
    /// parts, of which a flow has four, in one word. A thousand flows can run for some weeks.
    pub fn longest(&self) -> Span {
        let parts = 1 + self.links.len() + 4 * self.flows.len();
        let bits = usize::BITS - parts.leading_zeros();
        Span::from_secs((u64::MAX >> bits) / 1_000_000_000 - 1)
    }

    /// What can be wrong with the whole although every part is right.
    ///
    /// # Errors
    /// A run that is too long, a flow over a link or host that is not there, a warm-up that is not
    /// shorter than the run, two flows or links of one name, no flows at all.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.duration.is_zero() {
            return Err(SpecError::new("duration is zero").allow(["more than 0s"]));
        }
        if self.duration > self.longest() {
            let things = self.links.len() + self.flows.len();
            let problem = format!("{} is too long for {things} links and flows", self.duration);
            return Err(SpecError::new(problem).allow([format!("at most {}", self.longest())]));
        }
        if self.warmup >= self.duration {
            return Err(SpecError::new(format!(
                "warmup {} is not shorter than duration {}",
                self.warmup, self.duration
            ))
            .allow([format!("less than {}", self.duration)]));
        }
        if self.step.is_zero() || self.step > self.duration {
            return Err(SpecError::new(format!("step is {}", self.step))
                .allow([format!("more than 0s, at most the duration {}", self.duration)]));
        }
        if self.flows.is_empty() {
            return Err(SpecError::new("no flow is defined"));
        }
        unique("flow", self.flows.iter().map(|flow| flow.name.as_str()))?;
        unique("link", self.links.iter().map(|link| link.name.as_str()))?;
        unique("host", self.hosts.iter().map(|host| host.name.as_str()))?;
        for flow in &self.flows {
            let at = |problem: String| SpecError::new(format!("flow '{}': {problem}", flow.name));
            for link in flow.forward.iter().chain(&flow.reverse) {
                if link.index() >= self.links.len() {
                    return Err(at(format!("port {} is not there", link.0)));
                }
            }
            if flow.src.max(flow.dst).index() >= self.hosts.len() {
                return Err(at("a host is not there".into()));
            }
            if flow.start >= self.duration {
                return Err(at(format!("starts at {} when the run is over", flow.start)));
            }
            if flow.stop.is_some_and(|stop| stop <= flow.start) {
                return Err(at("stops before it starts".into()));
            }
        }
        Ok(())
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), SpecError> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(SpecError::new(format!("two {what}s are named '{}'", pair[0]))),
        None => Ok(()),
    }
}
