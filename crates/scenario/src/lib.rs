//! One world, fully specified: hosts, links, flows, duration. Every engine takes the same
//! [`Scenario`], and the file room turns what a user wrote into one.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod canonical;
mod change;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Deref, Range};

pub use change::{Change, ChangePart, What, When};
use sojourn_core::{HostId, Params, PortId, Span, SpecError};
pub use sojourn_host::ExternalApp;
use sojourn_host::apps::{
    ArrivalsConfig, BulkConfig, OnOffConfig, PageConfig, PingConfig, RequestsConfig, RpmConfig,
    UdpConfig,
};
pub use sojourn_wire::{CarrierConfig, ExternalCarrier, Link, PortShape};

/// Everything a run needs beside a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The longest that a run lasts.
    pub duration: Span,
    pub until: Until,
    /// Metrics count from here on, except those that say *whole run*.
    pub warmup: Span,
    /// Step of the time series.
    pub step: Span,
    pub hosts: Vec<Host>,
    /// Each is one port; their positions are the first [`PortId`]s.
    pub links: Vec<Link>,
    /// Carriers that are no links. Their ports follow those of the links.
    pub carriers: Vec<CarrierConfig>,
    pub flows: Vec<Flow>,
    /// Those of one moment come in this order.
    pub changes: Vec<Change>,
}

/// What ends a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// It has lasted as long as it may.
    #[default]
    Duration,
    /// Every transfer has ended, or it has lasted as long as it may.
    TransfersDone,
}

impl Until {
    pub const ALL: [Self; 2] = [Self::Duration, Self::TransfersDone];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::TransfersDone => "transfers done",
        }
    }
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
    /// Propagation that only this flow has, after the last port of each direction.
    pub forward_delay: Span,
    pub reverse_delay: Span,
    pub start: Span,
    /// The start is later by a random time below this, so that flows are not in step.
    pub start_jitter: Span,
    /// The application offers no more from here on.
    pub stop: Option<Span>,
    pub dscp: u8,
    /// How the application reads what arrives; `None` at once.
    pub reads: Option<sojourn_host::tcp::Reading>,
}

impl Flow {
    /// A flow from the first host to the second from the start on, with no propagation of its own;
    /// the routes are numbers of ports.
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
            reads: None,
        }
    }
}

/// What a flow does.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one per flow")]
pub enum App {
    Tcp {
        traffic: Traffic,
        cca: sojourn_cca::Config,
        transport: sojourn_host::tcp::Config,
    },
    Ping(PingConfig),
    Udp(UdpConfig),
    /// One from outside of this workspace.
    External(ExternalApp),
}

impl App {
    /// An application that always sends.
    pub fn bulk(cca: sojourn_cca::Config, transport: sojourn_host::tcp::Config) -> Self {
        Self::Tcp { traffic: Traffic::Bulk(BulkConfig::default()), cca, transport }
    }

    fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Tcp { traffic, cca, transport } => {
                traffic.check()?;
                cca.check()?;
                transport.check()
            }
            Self::Ping(config) => config.check(),
            Self::Udp(config) => config.check(),
            Self::External(app) => app.0.check(),
        }
    }
}

/// How an application feeds its TCP connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    Bulk(BulkConfig),
    OnOff(OnOffConfig),
    /// Transfers that arrive at random, each over a connection of its own.
    Arrivals(ArrivalsConfig),
    /// Pages, each over several connections of its own.
    Page(PageConfig),
    /// Requests, each after the answer to the one before, over connections that stay open.
    Requests(RequestsConfig),
    /// A test of responsiveness, over connections that it adds.
    Rpm(RpmConfig),
}

/// What a flow offers that can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A number of bytes, or a number of transfers.
    Transfers,
    /// Transfers that arrive for as long as the run lasts.
    TransfersForEver,
    /// Nothing: it sends until it is stopped.
    Nothing,
}

impl Flow {
    /// What the flow offers to a run that waits for its transfers to be done.
    pub fn offer(&self, duration: Span) -> Offer {
        let App::Tcp { traffic, .. } = &self.app else { return Offer::Nothing };
        match traffic {
            Traffic::Bulk(config) if config.bytes.is_some() => Offer::Transfers,
            Traffic::Arrivals(config)
                if config.transfers.is_some() || self.stop.is_some_and(|stop| stop < duration) =>
            {
                Offer::Transfers
            }
            Traffic::Page(config)
                if config.pages.is_some() || self.stop.is_some_and(|stop| stop < duration) =>
            {
                Offer::Transfers
            }
            Traffic::Requests(config)
                if config.requests.is_some() || self.stop.is_some_and(|stop| stop < duration) =>
            {
                Offer::Transfers
            }
            // It ends by itself.
            Traffic::Rpm(_) => Offer::Transfers,
            Traffic::Arrivals(_) | Traffic::Page(_) | Traffic::Requests(_) => {
                Offer::TransfersForEver
            }
            Traffic::Bulk(_) | Traffic::OnOff(_) => Offer::Nothing,
        }
    }
}

/// Bytes of the IPv4 and ICMP headers of a ping.
const ICMP_HEADERS: u32 = 28;

/// Ports that do not carry packets of every length.
#[derive(Clone, Debug)]
pub struct Narrow {
    ports: Range<usize>,
    /// Bytes of the longest IP packet.
    longest: u32,
}

impl Narrow {
    /// Those of carriers, whose ports follow those of `links` links.
    pub fn of(links: usize, carriers: &[CarrierConfig]) -> Vec<Self> {
        let mut first = links;
        let narrow = |carrier: &CarrierConfig| {
            let ports = first..first + carrier.port_count();
            first = ports.end;
            carrier.longest_packet().map(|longest| Self { ports, longest })
        };
        carriers.iter().filter_map(narrow).collect()
    }
}

impl Flow {
    /// Refuses packets that are too long for a port of the flow's route. Of an application from outside nothing is known.
    ///
    /// # Errors
    /// The key that makes packets as long as they are, and what is allowed.
    pub fn check_lengths(&self, narrow: &[Narrow]) -> Result<(), (&'static str, SpecError)> {
        let (key, payload, headers) = match &self.app {
            App::Tcp { transport, .. } => ("mss", transport.mss, transport.header),
            App::Udp(config) => ("size", config.frame.div_ceil(config.datagrams), config.header),
            App::Ping(config) => ("size", config.size as u32, ICMP_HEADERS),
            App::External(_) => return Ok(()),
        };
        // Acknowledgements are short.
        let back = if matches!(self.app, App::Ping(_)) { &self.reverse[..] } else { &[] };
        let mut route = self.forward.iter().chain(back);
        let limit = route.find_map(|port| {
            narrow.iter().find(|narrow| narrow.ports.contains(&port.index())).map(|one| one.longest)
        });
        match limit.filter(|longest| payload.saturating_add(headers) > *longest) {
            None => Ok(()),
            Some(longest) => Err((
                key,
                SpecError::new(format!(
                    "{payload} bytes are an IP packet of {}, and a carrier on its way carries no longer ones than {longest}",
                    payload.saturating_add(headers)
                ))
                .allow([format!("at most {} bytes", longest.saturating_sub(headers))]),
            )),
        }
    }
}

impl Traffic {
    fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Bulk(config) => config.check(),
            Self::OnOff(config) => config.check(),
            Self::Arrivals(config) => config.check(),
            Self::Page(config) => config.check_objects(),
            Self::Requests(config) => config.check(),
            Self::Rpm(config) => config.check(),
        }
    }
}

/// A scenario that has been checked, which every engine takes. It can't be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked(Scenario);

impl Checked {
    /// The scenario, to be changed and checked again.
    pub fn into_inner(self) -> Scenario {
        self.0
    }
}

impl Deref for Checked {
    type Target = Scenario;

    fn deref(&self) -> &Scenario {
        &self.0
    }
}

/// Far below times whose sums could overflow.
const MAX_SPAN: Span = Span::from_secs(10_000_000);

impl Scenario {
    /// The scenario as a checked one, if nothing is wrong with it.
    ///
    /// # Errors
    /// As [`Scenario::check`].
    pub fn checked(self) -> Result<Checked, SpecError> {
        self.check()?;
        Ok(Checked(self))
    }

    /// Whether its flows send packets of several segments.
    pub fn has_offload(&self) -> bool {
        self.flows.iter().any(|flow| match &flow.app {
            App::Tcp { transport, .. } => transport.offload,
            App::External(app) => app.0.offloads(),
            App::Ping(_) | App::Udp(_) => false,
        })
    }

    /// Every port in the order of [`PortId`]: the links, then the ports of the other carriers.
    pub fn ports(&self) -> Vec<PortShape> {
        let others = self.carriers.iter().flat_map(CarrierConfig::ports);
        self.links.iter().map(PortShape::of).chain(others).collect()
    }

    /// How many ports there are.
    pub fn port_count(&self) -> usize {
        self.links.len() + self.carriers.iter().map(CarrierConfig::port_count).sum::<usize>()
    }

    /// What `port` is made of, if it is a queue and a line.
    pub fn link(&self, port: PortId) -> Option<&Link> {
        let mut first = self.links.len();
        if port.index() < first {
            return self.links.get(port.index());
        }
        for carrier in &self.carriers {
            let ports = carrier.port_count();
            if port.index() < first + ports {
                return carrier.links()?.get(port.index() - first);
            }
            first += ports;
        }
        None
    }

    /// The longest run for this many ports and flows. An engine keeps a time and a component in one
    /// word, and a flow has four components. A thousand flows can run for some weeks.
    pub fn longest(&self) -> Span {
        self.longest_with(self.port_count())
    }

    fn longest_with(&self, ports: usize) -> Span {
        let parts = 1 + ports as u64 + 4 * self.flows.len() as u64;
        let bits = u64::BITS - parts.leading_zeros();
        Span::from_secs(((u64::MAX >> bits) / 1_000_000_000).saturating_sub(1)).min(MAX_SPAN)
    }

    /// Checks each part, and the whole, which may be wrong although every part is right.
    ///
    /// # Errors
    /// A run that is too long, a flow over a port or host that is not there, a warm-up that is not
    /// shorter than the run, two flows or ports of one name, no flows at all, a value out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let ports = self.ports();
        self.check_times(ports.len())?;
        self.check_until()?;
        if self.flows.is_empty() {
            return Err(SpecError::new("no flow is defined"));
        }
        for (what, count) in [("port", ports.len()), ("host", self.hosts.len())] {
            if count > usize::from(u16::MAX) {
                return Err(SpecError::new(format!("{count} {what}s are too many"))
                    .allow([format!("at most {}", u16::MAX)]));
            }
        }
        unique("flow", self.flows.iter().map(|flow| flow.name.as_str()))?;
        unique("link", ports.iter().map(|port| port.name.as_str()))?;
        unique("host", self.hosts.iter().map(|host| host.name.as_str()))?;
        for port in &ports {
            short("delay", port.delay).map_err(|e| e.within(&format!("link '{}'", port.name)))?;
        }
        for link in &self.links {
            link.check()?;
        }
        for carrier in &self.carriers {
            carrier.check()?;
        }
        let narrow = Narrow::of(self.links.len(), &self.carriers);
        for flow in &self.flows {
            self.check_flow(flow, &ports)
                .and_then(|()| {
                    flow.check_lengths(&narrow).map_err(|(key, error)| error.within(key))
                })
                .map_err(|error| error.within(&format!("flow '{}'", flow.name)))?;
        }
        for (index, change) in self.changes.iter().enumerate() {
            self.check_change(change)
                .map_err(|(_, error)| error.within(&format!("change {}", index + 1)))?;
        }
        Ok(())
    }

    fn check_times(&self, ports: usize) -> Result<(), SpecError> {
        if self.duration.is_zero() {
            return Err(SpecError::new("duration is zero").allow(["more than 0s"]));
        }
        let longest = self.longest_with(ports);
        if self.duration > longest {
            let things = ports + self.flows.len();
            let problem = format!("{} is too long for {things} links and flows", self.duration);
            return Err(SpecError::new(problem).allow([format!("at most {longest}")]));
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
        if self.has_too_many_rows() {
            let things = (ports + self.flows.len()) as u64;
            let nanos = self.duration.as_nanos() / (MAX_ROWS / things).max(1);
            let problem = format!(
                "{} cuts {} of {things} flows and queues into too many rows",
                self.step, self.duration
            );
            let least = Span::from_millis(nanos.div_ceil(1_000_000));
            return Err(SpecError::new(problem).allow([format!("{least} or more")]));
        }
        Ok(())
    }

    /// A run that lasts until its transfers are done has some, and all of them can end.
    ///
    /// # Errors
    /// It has none, or a flow whose transfers come for as long as the run lasts.
    pub fn check_until(&self) -> Result<(), SpecError> {
        if self.until != Until::TransfersDone {
            return Ok(());
        }
        let offers = || self.flows.iter().map(|flow| (flow, flow.offer(self.duration)));
        if let Some((flow, _)) = offers().find(|(_, offer)| *offer == Offer::TransfersForEver) {
            let problem = format!(
                "the transfers of flow '{}' come for as long as the run lasts, so they are never done",
                flow.name
            );
            return Err(SpecError::new(problem).allow([
                "for that flow 'transfers', 'pages' or 'requests', or a 'stop' before the duration",
            ]));
        }
        if !offers().any(|(_, offer)| offer == Offer::Transfers) {
            return Err(SpecError::new("no flow has a transfer that could be done").allow([
                "a bulk flow with 'bytes'",
                "arrivals with 'transfers' or 'stop'",
                "pages with 'pages' or 'stop'",
                "requests with 'requests' or 'stop'",
            ]));
        }
        Ok(())
    }

    /// The step of a time series for which none is given: 100 ms, or ten times as long, or a hundred times, and so on,
    /// until flows have at most 10 000 rows a second and the run no more rows than are allowed. It is never longer than the run.
    pub fn usual_step(&self) -> Span {
        let mut step = Span::from_millis(100);
        let rows = |step: Span| self.flows.len() as u64 * 1_000_000_000 / step.as_nanos();
        while step < self.duration
            && (rows(step) > MAX_USUAL_ROWS || self.has_too_many_rows_at(step))
        {
            step = step * 10;
        }
        step.min(self.duration)
    }

    /// Whether the step cuts the run into more rows of time series than fit in memory.
    pub fn has_too_many_rows(&self) -> bool {
        self.has_too_many_rows_at(self.step)
    }

    fn has_too_many_rows_at(&self, step: Span) -> bool {
        let steps = self.duration.as_nanos() / step.as_nanos().max(1);
        let things = (self.port_count() + self.flows.len()) as u64;
        steps.saturating_mul(things) > MAX_ROWS
    }

    fn check_flow(&self, flow: &Flow, ports: &[PortShape]) -> Result<(), SpecError> {
        let mut both = flow.forward.iter().chain(&flow.reverse);
        if let Some(port) = both.find(|port| port.index() >= ports.len()) {
            return Err(SpecError::new(format!("port {} is not there", port.0)));
        }
        for route in [&flow.forward, &flow.reverse] {
            if route.len() > MAX_ROUTE {
                let problem = SpecError::new(format!("a route of {} ports", route.len()));
                return Err(problem.allow([format!("at most {MAX_ROUTE}")]));
            }
        }
        if flow.src.max(flow.dst).index() >= self.hosts.len() {
            return Err(SpecError::new("a host is not there"));
        }
        if flow.start >= self.duration {
            let problem = format!("starts at {} when the run is over", flow.start);
            return Err(SpecError::new(problem));
        }
        short("start_jitter", flow.start_jitter)?;
        short("forward_delay", flow.forward_delay)?;
        short("reverse_delay", flow.reverse_delay)?;
        if flow.stop.is_some_and(|stop| stop <= flow.start) {
            return Err(SpecError::new("stops no later than it starts"));
        }
        if flow.dscp > 63 {
            return Err(SpecError::new(format!("dscp {}", flow.dscp)).allow(["0 to 63"]));
        }
        if flow.reads.is_some() && flow.lone_connection().is_none() {
            return Err(SpecError::new("only a lone TCP connection is read at a rate"));
        }
        let takes_no_time = |id: &PortId| {
            let port = &ports[id.index()];
            port.delay.is_zero() && port.rate.is_unlimited()
        };
        if matches!(flow.app, App::Tcp { .. })
            && (flow.forward_delay + flow.reverse_delay).is_zero()
            && flow.forward.iter().chain(&flow.reverse).all(takes_no_time)
        {
            // A window would cross for ever at one moment.
            return Err(SpecError::new("a round trip takes no time").allow(["a delay or a rate"]));
        }
        flow.app.check()
    }
}

/// The most rows of time series, counted as steps of all flows and queues of a run: more would not
/// fit in memory.
const MAX_ROWS: u64 = 10_000_000;

/// The most rows of all flows a second, unless the step is given. Of ten thousand flows at 1 Gbit/s a row of 100 ms has less than one segment.
const MAX_USUAL_ROWS: u64 = 10_000;

/// Longer than any real route.
const MAX_ROUTE: usize = 10_000;

fn short(what: &str, span: Span) -> Result<(), SpecError> {
    if span > MAX_SPAN {
        let problem = SpecError::new(format!("{what} {span} is too long"));
        return Err(problem.allow([format!("at most {MAX_SPAN}")]));
    }
    Ok(())
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), SpecError> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(SpecError::new(format!("two {what}s are named '{}'", pair[0]))),
        None => Ok(()),
    }
}
