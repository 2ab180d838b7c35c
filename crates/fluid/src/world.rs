//! From a scenario to what the fluid computes, and what it can't say.

use alloc::format;
use alloc::vec::Vec;

use sojourn_core::{
    Direction, ETHERNET_HEADER, Framing, PortId, Purpose, Rate, Span, SpecError, StreamAddress,
    truesize_of,
};
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::{self, EcnOffer, EcnSupport};
use sojourn_link::{JitterConfig, LossConfig, PolicerConfig, RateConfig, ReorderConfig, Step};
use sojourn_qdisc::{Config as Queue, fifo};
use sojourn_scenario::{App, Flow, Link, Scenario, Traffic, Until};

use crate::buffers;
use crate::capacity::Capacity;
use crate::cca;
use crate::framing::{is_even, payload_share};
use crate::queue::{self, Member};

/// What is computed.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) flows: Vec<Stream>,
    pub(crate) links: Vec<Bottleneck>,
}

/// A flow of fluid.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Its position in the scenario.
    pub(crate) id: usize,
    pub(crate) source: Source,
    pub(crate) begins: f64,
    pub(crate) ends: f64,
    /// Queues on the way, each with the delay from the point before it.
    pub(crate) hops: Vec<Hop>,
    /// From the last queue to the receiver, and from there back to the sender.
    pub(crate) to_receiver: f64,
    pub(crate) to_sender: f64,
    /// Links with queues that acknowledgements cross.
    pub(crate) way_back: Vec<usize>,
    /// What a ping crosses, there and back, each with the delay from the one before it.
    pub(crate) crossings: Vec<Crossing>,
    pub(crate) member: Member,
    /// Bytes of a packet on the wire, of its IP packet, and of its payload.
    pub(crate) packet: f64,
    pub(crate) wire: u32,
    pub(crate) payload: u32,
}

impl Stream {
    /// Without queues.
    pub(crate) fn base_rtt(&self) -> f64 {
        self.hops.iter().map(|hop| hop.before).sum::<f64>() + self.to_receiver + self.to_sender
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) link: usize,
    pub(crate) before: f64,
}

/// A link as a ping meets it: it waits where the others do, and adds nothing.
#[derive(Clone, Debug)]
pub(crate) struct Crossing {
    /// Its position in the scenario.
    pub(crate) port: usize,
    pub(crate) direction: Direction,
    pub(crate) before: f64,
    /// It has a queue, as data crosses it.
    pub(crate) link: Option<usize>,
    /// Nothing gets through while this is none; without it everything does.
    pub(crate) capacity: Option<Capacity>,
    /// So many pings may wait while nothing gets through.
    pub(crate) room: usize,
    /// This share is lost on the medium.
    pub(crate) loss: f64,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per flow")]
pub(crate) enum Source {
    Tcp {
        cca: sojourn_cca::Config,
        has_ecn: bool,
        initial_window: f64,
        /// Bytes on the wire that buffers at both ends allow in flight.
        most: f64,
        /// Bytes a second that the application writes.
        rate: f64,
        /// Bytes that the receiver has and has not yet acknowledged, on average.
        held: f64,
    },
    /// Bytes a second.
    Udp(f64),
    /// Seconds between requests.
    Ping(f64),
}

/// A link with a queue. Links without a rate are delays only.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    /// Its position in the scenario.
    pub(crate) port: usize,
    pub(crate) capacity: Capacity,
    pub(crate) members: Vec<Member>,
    pub(crate) queue: sojourn_qdisc::Config,
    /// The largest packet that comes.
    pub(crate) packet: f64,
    /// Others that come are smaller.
    pub(crate) has_smaller: bool,
    /// Of the packets that leave, this share is lost on the medium.
    pub(crate) loss: f64,
}

/// Refuses what a fluid can't say.
///
/// # Errors
/// Names the flow or link, and the reason.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SpecError> {
    if scenario.until != Until::Duration {
        let problem = "a fluid has no transfers that end, so 'until' can't be 'transfers done'";
        return Err(SpecError::new(problem).allow(["until = \"duration\""]));
    }
    if !scenario.changes.is_empty() {
        let problem = "the fluid engine has no 'change' that waits for a phase of a sender";
        return Err(SpecError::new(problem).allow(["engine = \"sim\"", "a rate in steps"]));
    }
    for (place, link) in scenario.links.iter().enumerate() {
        if !scenario.flows.iter().any(|flow| crosses(flow, place)) {
            continue;
        }
        check_link(link)
            .and_then(|()| {
                check_loss(link, scenario.flows.iter().any(|flow| sends_over(flow, place)))
            })
            .map_err(|error| error.within(&format!("link '{}'", link.name)))?;
    }
    for flow in &scenario.flows {
        check_way(scenario, flow)?;
        check_flow(flow).map_err(|error| error.within(&format!("flow '{}'", flow.name)))?;
    }
    for (place, link) in scenario.links.iter().enumerate() {
        let data: Vec<&Flow> =
            scenario.flows.iter().filter(|flow| sends_over(flow, place)).collect();
        check_frames(link, &data)
            .and_then(|()| check_tins(link, &data))
            .map_err(|error| error.within(&format!("link '{}'", link.name)))?;
    }
    Ok(())
}

fn crosses(flow: &Flow, place: usize) -> bool {
    flow.forward.iter().chain(&flow.reverse).any(|id| id.index() == place)
}

/// Refuses a way over a radio.
fn check_way(scenario: &Scenario, flow: &Flow) -> Result<(), SpecError> {
    let ports = scenario.carriers.iter().flat_map(|carrier| carrier.ports());
    for (at, port) in ports.enumerate() {
        if crosses(flow, scenario.links.len() + at) {
            let name = &port.name;
            let problem = format!("link '{name}' is a radio, and the fluid engine has no stations");
            return Err(SpecError::new(problem).allow(["links with a rate", "engine = \"sim\""]));
        }
    }
    Ok(())
}

fn check_link(link: &Link) -> Result<(), SpecError> {
    let refuse = |what: &str| Err(SpecError::new(format!("the fluid engine has no {what}")));
    match &link.rate {
        RateConfig::Blockage(_) => return refuse("synthetic blockages; export a trace of one"),
        RateConfig::Brownian(_) => return refuse("rates that walk at random"),
        _ => {}
    }
    if link.policer != PolicerConfig::None {
        return refuse("policers: what they drop depends on bursts");
    }
    if link.entry_loss != LossConfig::None {
        return refuse("loss before the queue");
    }
    if loss_share(&link.loss).is_none() {
        return refuse("bursts of loss: only independent loss has a mean rate");
    }
    if link.jitter != JitterConfig::None {
        return refuse("jitter: the packets of a fluid have no delays of their own");
    }
    if link.reorder != ReorderConfig::None {
        return refuse("reordering");
    }
    queue::check(&link.queue)
}

/// Refuses loss that data would have where there is no queue, which nothing here takes.
fn check_loss(link: &Link, has_data: bool) -> Result<(), SpecError> {
    if has_data && link.rate == RateConfig::Unlimited && link.loss != LossConfig::None {
        let problem = "the fluid engine has no loss on a link without a rate, which has no queue";
        return Err(SpecError::new(problem).allow(["loss on a link with a rate"]));
    }
    Ok(())
}

/// Refuses frames around packets of several sizes, which take other parts of the rate than of the queue.
fn check_frames(link: &Link, data: &[&Flow]) -> Result<(), SpecError> {
    let sizes: Vec<u32> = data.iter().map(|flow| wire(&flow.app)).collect();
    let of = [("link", framing(&link.rate)), ("queue", queue::framing(&link.queue))];
    for (whose, framing) in of {
        let is_other = |size: &&u32| !is_even(framing, sizes[0], **size);
        if let Some(size) = sizes.iter().find(is_other) {
            let problem = format!(
                "the fluid engine has no framing of packets of several sizes, and the {whose} frames those of {} and {size} bytes",
                sizes[0]
            );
            let allowed = ["packets of one size", "a rate without overhead", "engine = \"sim\""];
            return Err(SpecError::new(problem).allow(allowed));
        }
    }
    Ok(())
}

/// Refuses data in several tins of a queue.
fn check_tins(link: &Link, data: &[&Flow]) -> Result<(), SpecError> {
    let tin = |flow: &Flow| queue::tin_of(&link.queue, flow.dscp);
    let Some(first) = data.first() else { return Ok(()) };
    let Some(other) = data.iter().find(|flow| tin(flow) != tin(first)) else { return Ok(()) };
    let problem = format!(
        "the fluid model of '{}' has no tins, and flows '{}' and '{}' fall into different ones",
        link.queue.name(),
        first.name,
        other.name
    );
    Err(SpecError::new(problem).allow(["'besteffort'", "flows with the same 'dscp'"]))
}

/// The share of independent loss.
fn loss_share(loss: &LossConfig) -> Option<f64> {
    match loss {
        LossConfig::None => Some(0.0),
        LossConfig::Random(random) if random.rho.is_none_or(|rho| rho.share() <= 0.0) => {
            Some(random.p.share())
        }
        _ => None,
    }
}

fn check_flow(flow: &Flow) -> Result<(), SpecError> {
    let refuse = |what: &str| Err(SpecError::new(format!("the fluid engine has no {what}")));
    if flow.reads.is_some() {
        return refuse("applications that read at a rate");
    }
    match &flow.app {
        App::Tcp { traffic: Traffic::Bulk(BulkConfig { bytes: Some(_), .. }), .. } => {
            refuse("transfers of a limited size: when the last packet arrives is no rate")
        }
        App::Tcp { traffic: Traffic::Bulk(_), cca, transport } => {
            if transport.receive_window.is_some() || transport.receive_buffer.is_some() {
                return refuse("receive windows that an application sets");
            }
            buffers::check(transport)?;
            cca::check(cca)
        }
        App::Tcp { traffic: Traffic::OnOff(_), .. } => refuse("senders that pause"),
        App::Tcp { traffic: Traffic::Arrivals(_), .. } => {
            refuse("transfers that arrive at random, each over a connection of its own")
        }
        App::Tcp { traffic: Traffic::Page(_), .. } => refuse("pages"),
        App::Tcp { traffic: Traffic::Requests(_), .. } => refuse("requests"),
        App::Tcp { traffic: Traffic::Rpm(_), .. } => refuse("tests of responsiveness"),
        App::Ping(_) => Ok(()),
        App::Udp(udp) if udp.datagrams == 1 => Ok(()),
        App::Udp(_) => refuse("frames: bursts of datagrams have no rate"),
        App::External(_) => refuse("calls, or applications from outside"),
    }
}

/// Whether the link at this place has a limited rate and carries data. Of others a fluid knows nothing:
/// acknowledgements and pings take no room.
pub fn has_queue(scenario: &Scenario, place: usize) -> bool {
    let has_data = scenario.flows.iter().any(|flow| sends_over(flow, place));
    scenario.links[place].rate != RateConfig::Unlimited && has_data
}

/// Whether the flow's data crosses the link at this place.
fn sends_over(flow: &Flow, place: usize) -> bool {
    !matches!(flow.app, App::Ping(_)) && flow.forward.iter().any(|id| id.index() == place)
}

/// The shortest round trip of a TCP flow without queues, in seconds; `scenario` has been checked.
pub(crate) fn shortest_rtt(scenario: &Scenario) -> Option<f64> {
    let world = World::new(scenario, StreamAddress { seed: 0, run: 0 });
    let tcp = world.flows.iter().filter(|flow| matches!(flow.source, Source::Tcp { .. }));
    tcp.map(Stream::base_rtt).min_by(f64::total_cmp)
}

impl World {
    /// `scenario` has been checked.
    pub(crate) fn new(scenario: &Scenario, address: StreamAddress) -> Self {
        let mut flows: Vec<Stream> =
            scenario.flows.iter().enumerate().map(|(id, flow)| stream(flow, id, address)).collect();
        let mut links: Vec<Bottleneck> = Vec::new();
        for (port, link) in scenario.links.iter().enumerate() {
            if !has_queue(scenario, port) {
                continue;
            }
            let through = |flow: &&Flow| flow.forward.iter().any(|id| id.index() == port);
            let packet = scenario
                .flows
                .iter()
                .zip(&flows)
                .filter(|(flow, _)| through(flow) && !matches!(flow.app, App::Ping(_)))
                .map(|(_, stream)| stream.packet)
                .fold(0.0, f64::max);
            let factor = payload_share(framing(&link.rate), packet as u32);
            let Some(capacity) = Capacity::of(&link.rate, factor) else { continue };
            links.push(Bottleneck {
                port,
                capacity,
                members: Vec::new(),
                queue: link.queue.clone(),
                packet,
                has_smaller: false,
                loss: loss_share(&link.loss).unwrap_or(0.0),
            });
        }
        for (flow, stream) in scenario.flows.iter().zip(&mut flows) {
            route(scenario, flow, stream, &mut links);
        }
        for link in &mut links {
            link.has_smaller = link.members.iter().any(|member| member.packet < link.packet);
        }
        Self { flows, links }
    }
}

fn framing(rate: &RateConfig) -> Framing {
    match rate {
        RateConfig::Fixed { framing, .. } => *framing,
        RateConfig::Htb(class) => Framing::on_ethernet(class.overhead as i32),
        RateConfig::Trace { serving, .. } => serving.framing,
        _ => Framing::default(),
    }
}

fn stream(flow: &Flow, id: usize, address: StreamAddress) -> Stream {
    let jitter = flow.start_jitter.as_nanos();
    let moved = match jitter {
        0 => 0,
        bound => address.stream_named(&flow.name, Purpose::Start).below(bound),
    };
    let begins = (flow.start + Span::from_nanos(moved)).as_secs_f64();
    let ends = flow.stop.map_or(f64::INFINITY, Span::as_secs_f64);
    let wire = wire(&flow.app);
    let (source, payload) = match &flow.app {
        App::Tcp { traffic, cca, transport } => {
            let rate = match traffic {
                Traffic::Bulk(BulkConfig { rate: Some(rate), .. }) => {
                    rate.as_bps() as f64 / 8.0 * f64::from(wire) / f64::from(transport.mss)
                }
                _ => f64::INFINITY,
            };
            let initial_window = f64::from(transport.initial_cwnd) * f64::from(wire);
            let most =
                buffers::most_in_flight(transport) * f64::from(wire) / f64::from(transport.mss);
            let has_ecn = has_ecn(cca, transport);
            let cca = cca.clone();
            // One acknowledgement stands for two packets, so every second one waits for it.
            let held = if transport.quick_ack { 0.0 } else { f64::from(wire) / 2.0 };
            (Source::Tcp { cca, has_ecn, initial_window, most, rate, held }, transport.mss)
        }
        App::Udp(udp) => (Source::Udp(f64::from(wire) / udp.interval.as_secs_f64()), udp.frame),
        App::Ping(ping) => (Source::Ping(ping.interval.as_secs_f64()), ping.size as u32),
        App::External(_) => (Source::Ping(f64::INFINITY), 0),
    };
    let held = match source {
        Source::Tcp { held, .. } => held,
        Source::Udp(_) | Source::Ping(_) => 0.0,
    };
    let is_l4s = matches!(&flow.app, App::Tcp { cca, .. } if cca.name() == "prague");
    let is_capable = matches!(&source, Source::Tcp { has_ecn: true, .. });
    Stream {
        id,
        source,
        begins,
        ends,
        hops: Vec::new(),
        to_receiver: 0.0,
        to_sender: 0.0,
        way_back: Vec::new(),
        crossings: Vec::new(),
        member: Member {
            packet: f64::from(wire),
            memory: f64::from(truesize_of(wire)),
            round: 0.0,
            burst: if held > 0.0 { 2.0 } else { 1.0 },
            is_capable,
            is_l4s: is_l4s && is_capable,
            dscp: flow.dscp,
            source: flow.src.0,
            destination: flow.dst.0,
        },
        packet: f64::from(wire),
        wire,
        payload,
    }
}

/// Bytes of a packet on Ethernet.
fn wire(app: &App) -> u32 {
    match app {
        App::Tcp { transport, .. } => transport.mss + transport.header + ETHERNET_HEADER,
        App::Udp(udp) => udp.frame + udp.header + ETHERNET_HEADER,
        App::Ping(ping) => ping.size as u32 + 42,
        App::External(_) => ETHERNET_HEADER,
    }
}

/// What both ends agree on.
fn has_ecn(cca: &sojourn_cca::Config, transport: &tcp::Config) -> bool {
    let asks = match transport.ecn {
        Some(offer) => offer != EcnOffer::Off,
        None => matches!(cca.name(), "dctcp" | "prague"),
    };
    let is_enough = match cca.name() {
        "prague" => transport.receiver_ecn == EcnSupport::Accurate,
        _ => transport.receiver_ecn != EcnSupport::Off,
    };
    asks && is_enough
}

/// Joins delays between queues. A packet also takes the time that a link needs to send it.
fn route(scenario: &Scenario, flow: &Flow, stream: &mut Stream, links: &mut [Bottleneck]) {
    if matches!(stream.source, Source::Ping(_)) {
        return route_ping(scenario, flow, stream, links);
    }
    let mut delay = 0.0;
    let mut hops = Vec::new();
    for id in &flow.forward {
        let link = &scenario.links[id.index()];
        if let Some(at) = position(links, *id) {
            hops.push(Hop { link: at, before: delay });
            delay = 0.0;
        }
        delay += sending(link, f64::from(stream.wire)) + link.delay.as_secs_f64();
    }
    stream.to_receiver = delay + flow.forward_delay.as_secs_f64();
    let mut delay = flow.reverse_delay.as_secs_f64();
    for id in &flow.reverse {
        let link = &scenario.links[id.index()];
        if let Some(at) = position(links, *id) {
            stream.way_back.push(at);
        }
        delay += sending(link, f64::from(ACK)) + link.delay.as_secs_f64();
    }
    stream.to_sender = delay;
    stream.hops = hops;
    let loses_all = |id: &PortId| loss_share(&scenario.links[id.index()].loss) == Some(1.0);
    let is_tcp = matches!(stream.source, Source::Tcp { .. });
    if is_tcp && flow.forward.iter().chain(&flow.reverse).any(loses_all) {
        // Its handshake never ends.
        stream.begins = f64::INFINITY;
    }
    stream.member.round = stream.base_rtt();
    for (at, hop) in stream.hops.iter().enumerate() {
        // The first queue parts what comes at once.
        let burst = if at == 0 { stream.member.burst } else { 1.0 };
        links[hop.link].members.push(Member { burst, ..stream.member });
    }
}

fn route_ping(scenario: &Scenario, flow: &Flow, stream: &mut Stream, links: &[Bottleneck]) {
    let wire = f64::from(stream.wire);
    let mut delay = 0.0;
    let mut cross = |id: &PortId, direction, delay: &mut f64| {
        let link = &scenario.links[id.index()];
        let room = match &link.queue {
            Queue::Fifo(fifo::Config::Packets(packets)) => *packets as usize,
            Queue::Fifo(fifo::Config::Bytes(bytes)) => (bytes.as_u64() as f64 / wire) as usize,
            _ => usize::MAX,
        };
        stream.crossings.push(Crossing {
            port: id.index(),
            direction,
            before: core::mem::take(delay),
            link: position(links, *id),
            capacity: Capacity::of(&link.rate, 1.0),
            room,
            loss: loss_share(&link.loss).unwrap_or(0.0),
        });
        *delay = sending(link, wire) + link.delay.as_secs_f64();
    };
    flow.forward.iter().for_each(|id| cross(id, Direction::Forward, &mut delay));
    delay += (flow.forward_delay + flow.reverse_delay).as_secs_f64();
    flow.reverse.iter().for_each(|id| cross(id, Direction::Reverse, &mut delay));
    stream.to_sender = delay;
}

/// IP and Ethernet bytes of an acknowledgement.
const ACK: u32 = 66;

fn position(links: &[Bottleneck], id: PortId) -> Option<usize> {
    links.iter().position(|link| link.port == id.index())
}

fn sending(link: &Link, bytes: f64) -> f64 {
    if let RateConfig::Trace { trace, .. } = &link.rate {
        return bytes / trace_rate(trace.steps());
    }
    let rate = link.rate.mean().unwrap_or(Rate::UNLIMITED);
    // A token bucket sends at once what it has tokens for.
    if rate.is_unlimited() || rate == Rate::ZERO || matches!(link.rate, RateConfig::Htb(_)) {
        return 0.0;
    }
    bytes * 8.0 / rate.as_bps() as f64
}

/// Bytes a second over the time in which it sends at all; without end if it never does.
fn trace_rate(steps: impl Iterator<Item = Step>) -> f64 {
    let (mut bytes, mut time) = (0.0, 0.0);
    for step in steps.filter(|step| step.rate != Rate::ZERO) {
        let seconds = step.duration.as_secs_f64();
        bytes += step.rate.as_bps() as f64 / 8.0 * seconds;
        time += seconds;
    }
    if time > 0.0 { bytes / time } else { f64::INFINITY }
}
