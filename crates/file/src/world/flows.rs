//! Flows: which hosts, which way, which application.

use std::collections::BTreeSet;

use sojourn_core::{HostId, PortId, Span, SpecError};
use sojourn_host::apps::{PingConfig, UdpConfig};
use sojourn_host::tcp::{self, ReceiveBuffer};
use sojourn_scenario::{App, Flow, Traffic};

use super::routes::Graph;
use super::shape::{Shape, Ways, check_name, taken};
use super::shapes;
use super::{Sources, Wrong, WrongKey, arrivals};
use crate::document::{Document, Table, Value};
use crate::plan::PlannedFlow;
use crate::registry::Registry;
use crate::spec::{
    AppKind, AppName, Direction, FlowSpec, KEYS_BY_APP, OneOrMany, ScenarioSpec, Text,
};

const MAX_COUNT: u32 = 10_000;
/// The most flows of a scenario, of all kinds together.
const MAX_FLOWS: usize = 100_000;

/// Payload of a datagram if `size` is left out: as much as a TCP segment carries.
const DEFAULT_DATAGRAM: u64 = 1448;
/// Bytes of IPv4 and UDP headers.
const UDP_HEADER: u32 = 28;
/// Bytes of IPv4 and ICMP headers.
const ICMP_HEADER: u64 = 28;
/// The congestion control if `cca` is left out.
const DEFAULT_CCA: &str = "cubic";
const DEFAULT_PING: u64 = 56;

pub(super) fn build(
    spec: &ScenarioSpec,
    shape: &mut Shape,
    sources: &mut Sources<'_>,
) -> Result<(Vec<Flow>, Vec<PlannedFlow>), Wrong> {
    let mut flows = Vec::new();
    let mut planned: Vec<PlannedFlow> = Vec::new();
    let mut groups = BTreeSet::new();
    for (index, flow) in spec.flow.iter().enumerate() {
        let under = |key: &str, problem| Wrong::new(format!("flow.{index}.{key}"), problem);
        check_name(&flow.name).map_err(|error| under("name", error))?;
        if !groups.insert(&flow.name) {
            return Err(under("name", taken("flow", &flow.name)));
        }
        check_keys(&flow.app, written_keys(sources.document, index))
            .map_err(|(key, e)| under(&key, e))?;
        let count = flow.count.unwrap_or(1);
        if !(1..=MAX_COUNT).contains(&count) {
            let problem = SpecError::new(format!("{count} is out of range"));
            return Err(under("count", problem.allow([format!("1 to {MAX_COUNT}")])));
        }
        if flows.len() + count as usize > MAX_FLOWS {
            let problem = SpecError::new("the flows are too many in all");
            return Err(under("count", problem.allow([format!("at most {MAX_FLOWS}")])));
        }
        let template =
            one(flow, index, spec, shape, sources).map_err(|(key, error)| under(key, error))?;
        let base_rtt = delay_of(shape, &template.forward)
            + delay_of(shape, &template.reverse)
            + template.forward_delay
            + template.reverse_delay;
        for number in 1..=count {
            let name = match flow.count {
                None => flow.name.clone(),
                Some(_) => format!("{}.{number}", flow.name),
            };
            planned.push(PlannedFlow {
                name: name.clone(),
                group: flow.name.clone(),
                app: flow.app.text().to_owned(),
                cca: flow
                    .app
                    .is_tcp()
                    .then(|| flow.cca.as_ref().map_or(DEFAULT_CCA, |cca| &cca.text).to_owned()),
                base_rtt_ms: base_rtt.as_millis_f64(),
            });
            flows.push(Flow { name, ..template.clone() });
        }
    }
    Ok((flows, planned))
}

/// Propagation on a route.
fn delay_of(shape: &Shape, route: &[PortId]) -> Span {
    route.iter().fold(Span::ZERO, |sum, port| sum + shape.delay(*port))
}

/// `index` is the place of the flow in the file.
fn one(
    flow: &FlowSpec,
    index: usize,
    spec: &ScenarioSpec,
    shape: &mut Shape,
    sources: &mut Sources<'_>,
) -> Result<Flow, WrongKey> {
    let (src, dst, forward, reverse) = ends(flow, shape)?;
    let of_links = delay_of(shape, &forward) + delay_of(shape, &reverse);
    let (forward_delay, reverse_delay) = own_delay(flow, of_links)?;
    let start = span_or(&flow.start, Span::ZERO);
    let start_jitter = span_or(&flow.start_jitter, Span::ZERO);
    let stop = flow.stop.as_ref().map(|stop| stop.value);
    let duration = spec.duration.value;
    if start >= duration && !duration.is_zero() {
        let problem = SpecError::new(format!("starts at {start} when the run is over"));
        return Err(("start", problem.allow([format!("less than {duration}")])));
    }
    if let Some(stop) = stop.filter(|stop| *stop <= start) {
        let problem = SpecError::new(format!("stops at {stop}, before it starts"));
        return Err(("stop", problem.allow([format!("more than {start}")])));
    }
    let last = duration.min(stop.unwrap_or(Span::MAX));
    if start + start_jitter > last {
        let problem =
            format!("may start at {}, later than it ends at {last}", start + start_jitter);
        let problem = SpecError::new(problem).allow([format!("0s to {}", last - start)]);
        return Err(("start_jitter", problem));
    }
    let dscp = flow.dscp.unwrap_or(0);
    if dscp > 63 {
        return Err(("dscp", SpecError::new(format!("{dscp} is out of range")).allow(["0 to 63"])));
    }
    Ok(Flow {
        name: String::new(),
        app: app(flow, index, shape, &forward, sources)?,
        src,
        dst,
        forward,
        reverse,
        forward_delay,
        reverse_delay,
        start,
        start_jitter,
        stop,
        dscp,
    })
}

/// Hosts and ways.
fn ends(
    flow: &FlowSpec,
    shape: &mut Shape,
) -> Result<(HostId, HostId, Vec<PortId>, Vec<PortId>), WrongKey> {
    match &shape.ways {
        Ways::Sides { down, up, hops } => {
            for (key, route) in [("route", &flow.route), ("reverse_route", &flow.reverse_route)] {
                if route.is_some() {
                    let problem = SpecError::new("only between free nodes there are several ways");
                    return Err((key, problem.allow(["[[scenario.node]]"])));
                }
            }
            let (down, up) = match (flow.hop, *hops) {
                (None, _) => (down.clone(), up.clone()),
                (Some(hop), Some(hops)) if (1..=hops).contains(&hop) => shapes::row(hop - 1..hop),
                (Some(hop), Some(hops)) => {
                    let problem = SpecError::new(format!("there is no bottleneck {hop}"));
                    return Err(("hop", problem.allow([format!("1 to {hops}")])));
                }
                (Some(_), None) => {
                    let problem = SpecError::new("only a parking lot has several hops");
                    return Err(("hop", problem.allow(["[scenario.parking_lot]"])));
                }
            };
            let (names, ways) = match flow.direction.unwrap_or_default() {
                Direction::Down => (["server", "client"], (down, up)),
                Direction::Up => (["client", "server"], (up, down)),
            };
            let src = flow.src.as_deref().unwrap_or(names[0]);
            let dst = flow.dst.as_deref().unwrap_or(names[1]);
            if src == dst {
                let problem = SpecError::new(format!("'{src}' is both ends"));
                return Err(("dst", problem.allow(["another name than src"])));
            }
            let src = shape.host(src).map_err(|error| ("src", error))?;
            let dst = shape.host(dst).map_err(|error| ("dst", error))?;
            Ok((src, dst, ways.0, ways.1))
        }
        Ways::Shortest(graph) => {
            for (key, is_there) in
                [("hop", flow.hop.is_some()), ("direction", flow.direction.is_some())]
            {
                if is_there {
                    let problem = "has no meaning between free nodes; src and dst say the way";
                    return Err((key, SpecError::new(problem).allow(["src", "dst"])));
                }
            }
            let node = |key: &'static str, name: &Option<String>| {
                let missing = || {
                    let problem = SpecError::new(format!("'{key}' is missing"));
                    (key, problem.allow(graph.nodes()))
                };
                graph.node(name.as_deref().ok_or_else(missing)?).map_err(|error| (key, error))
            };
            let (src, dst) = (node("src", &flow.src)?, node("dst", &flow.dst)?);
            if src == dst {
                let problem = SpecError::new("is the same as src");
                let others = graph.nodes().iter().filter(|name| Some(*name) != flow.src.as_ref());
                return Err(("dst", problem.allow(others)));
            }
            let way = |key: &'static str, written: &Option<OneOrMany>, from, to| match written {
                Some(OneOrMany(names)) => {
                    route(names, shape, graph, from, to).map_err(|e| (key, e))
                }
                None => graph.way(from, to).map_err(|error| ("dst", error)),
            };
            let forward = way("route", &flow.route, src, dst)?;
            let reverse = way("reverse_route", &flow.reverse_route, dst, src)?;
            Ok((HostId(src as u16), HostId(dst as u16), forward, reverse))
        }
    }
}

/// The way through the queues of these names.
fn route(
    names: &[String],
    shape: &Shape,
    graph: &Graph,
    from: usize,
    to: usize,
) -> Result<Vec<PortId>, SpecError> {
    let ports: Vec<PortId> = names.iter().map(|name| shape.port(name)).collect::<Result<_, _>>()?;
    // Where a packet may be.
    let mut nodes = vec![from];
    for (name, port) in names.iter().zip(&ports) {
        let mut behind: Vec<usize> =
            nodes.iter().flat_map(|node| graph.behind(*node, *port)).collect();
        behind.sort_unstable();
        behind.dedup();
        if behind.is_empty() {
            let here = nodes.iter().flat_map(|node| graph.ports_of(*node));
            let here = here.map(|port| &shape.queues[port.index()].name);
            let problem = format!("'{name}' does not begin at {}", graph.names(&nodes));
            return Err(SpecError::new(problem).allow(here));
        }
        nodes = behind;
    }
    if nodes.contains(&to) {
        return Ok(ports);
    }
    let wanted = &graph.nodes()[to];
    Err(SpecError::new(format!("the route ends at {}", graph.names(&nodes)))
        .allow([format!("queues that lead to '{wanted}'")]))
}

/// Propagation beyond that of the links.
fn own_delay(flow: &FlowSpec, of_links: Span) -> Result<(Span, Span), WrongKey> {
    let Some(rtt) = &flow.rtt else {
        return Ok((span_or(&flow.delay, Span::ZERO), span_or(&flow.reverse_delay, Span::ZERO)));
    };
    if flow.delay.is_some() || flow.reverse_delay.is_some() {
        let problem = SpecError::new("rtt and delay say the same; one of them must go");
        return Err(("rtt", problem.allow(["rtt", "delay and reverse_delay"])));
    }
    if rtt.value < of_links {
        let problem = format!("{} is less than the {of_links} of the links", rtt.value);
        return Err(("rtt", SpecError::new(problem).allow([format!("{of_links} or more")])));
    }
    let own = rtt.value - of_links;
    Ok((own / 2, own - own / 2))
}

fn app(
    flow: &FlowSpec,
    index: usize,
    shape: &Shape,
    forward: &[PortId],
    sources: &mut Sources<'_>,
) -> Result<App, WrongKey> {
    let kind = match &flow.app {
        AppName::BuiltIn(kind) => *kind,
        AppName::Other(text) => {
            let app = sources.registry.application(text).map_err(|error| ("app", error))?;
            return Ok(App::External(app));
        }
    };
    let registry = sources.registry;
    Ok(match kind {
        AppKind::Bulk => {
            let bytes = flow.bytes.as_ref().map(|bytes| bytes.value.as_u64());
            if bytes == Some(0) {
                let problem = SpecError::new("nothing is to be transferred");
                return Err(("bytes", problem.allow(["1B or more"])));
            }
            let traffic = match &flow.rate {
                Some(rate) => Traffic::Paced { rate: rate.value, bytes },
                None => Traffic::Bulk { bytes },
            };
            over_tcp(flow, traffic, registry)?
        }
        AppKind::OnOff => {
            let positive = |key: &'static str, span: &Option<Text<Span>>| match span {
                Some(span) if span.value.is_zero() => {
                    Err((key, SpecError::new("is zero").allow(["more than 0s"])))
                }
                Some(span) => Ok(span.value),
                None => Err((
                    key,
                    SpecError::new(format!("on_off needs '{key}'"))
                        .allow([format!("{key} = \"1s\"")]),
                )),
            };
            let (on, off) = (positive("on", &flow.on)?, positive("off", &flow.off)?);
            {
                let random = flow.random.unwrap_or(false);
                over_tcp(flow, Traffic::OnOff { on, off, random }, registry)?
            }
        }
        AppKind::Ping => {
            let interval = span_or(&flow.interval, PingConfig::default().interval);
            if interval < Span::from_micros(1) {
                let problem = SpecError::new(format!("{interval} is too short"));
                return Err(("interval", problem.allow(["1us or more"])));
            }
            let payload = size(flow, DEFAULT_PING, 0..=65_507)?;
            App::Ping(PingConfig { interval, ip_len: (payload + ICMP_HEADER) as u32 })
        }
        AppKind::Udp => {
            let size = size(flow, DEFAULT_DATAGRAM, 1..=65_507)?;
            let missing =
                || ("rate", SpecError::new("udp needs 'rate'").allow(["rate = \"1Mbps\""]));
            let rate = flow.rate.as_ref().ok_or_else(missing)?.value;
            let interval = rate.time_for(size);
            if rate.as_bps() == 0 || interval < Span::from_nanos(10) {
                let problem = SpecError::new(format!("{rate} is out of range"));
                return Err(("rate", problem.allow(["more than 0, at most a datagram in 10ns"])));
            }
            App::Udp(UdpConfig { interval, frame: size as u32, datagrams: 1, header: UDP_HEADER })
        }
        AppKind::Frames => frames(flow)?,
        AppKind::Arrivals => {
            let config = arrivals::config(flow, index, shape, forward, sources)?;
            over_tcp(flow, Traffic::Arrivals(config), registry)?
        }
    })
}

fn frames(flow: &FlowSpec) -> Result<App, WrongKey> {
    let missing = |key: &'static str, example: &str| {
        (key, SpecError::new(format!("frames needs '{key}'")).allow([example]))
    };
    let per_second = flow
        .frames_per_second
        .ok_or_else(|| missing("frames_per_second", "frames_per_second = 60"))?;
    if !(0.001..=1e6).contains(&per_second) {
        let problem = SpecError::new(format!("{per_second} is out of range"));
        return Err(("frames_per_second", problem.allow(["0.001 to 1000000"])));
    }
    if flow.size.is_none() {
        return Err(missing("size", "size = \"20kB\""));
    }
    let frame = size(flow, 0, 1..=60_000_000)?;
    let datagrams = match flow.datagrams {
        None => frame.div_ceil(DEFAULT_DATAGRAM),
        Some(datagrams) => u64::from(datagrams),
    };
    // Every datagram has at least one byte and fits an IP packet.
    if datagrams == 0 || datagrams > frame || frame.div_ceil(datagrams) > 65_507 {
        let problem = format!("a frame of {frame} bytes cannot be cut into {datagrams} datagrams");
        let allowed = format!("{} to {frame}", frame.div_ceil(65_507));
        return Err(("datagrams", SpecError::new(problem).allow([allowed])));
    }
    Ok(App::Udp(UdpConfig {
        interval: Span::from_secs_f64(1.0 / per_second),
        frame: frame as u32,
        datagrams: datagrams as u32,
        header: UDP_HEADER,
    }))
}

fn size(
    flow: &FlowSpec,
    default: u64,
    allowed: std::ops::RangeInclusive<u64>,
) -> Result<u64, WrongKey> {
    let size = flow.size.as_ref().map_or(default, |size| size.value.as_u64());
    if allowed.contains(&size) {
        return Ok(size);
    }
    let problem = SpecError::new(format!("{size} bytes are out of range"));
    Err(("size", problem.allow([format!("{}B to {}B", allowed.start(), allowed.end())])))
}

fn over_tcp(flow: &FlowSpec, traffic: Traffic, registry: &Registry) -> Result<App, WrongKey> {
    let cca = flow.cca.as_ref().map_or(DEFAULT_CCA, |cca| &cca.text);
    let cca = registry.controller(cca).map_err(|error| ("cca", error))?;
    let linux = tcp::Config::default();
    let receive_buffer = match (&flow.receive_window, &flow.receive_buffer) {
        (Some(_), Some(_)) => {
            let problem = "receive_window and receive_buffer say the same; one of them must go";
            let problem = SpecError::new(problem).allow(["receive_window", "receive_buffer"]);
            return Err(("receive_window", problem));
        }
        (Some(window), None) => {
            ReceiveBuffer::Window(sized("receive_window", window.value.as_u64())?)
        }
        (None, Some(buffer)) => {
            ReceiveBuffer::Locked(sized("receive_buffer", buffer.value.as_u64())?)
        }
        (None, None) => linux.receive_buffer,
    };
    let number =
        |key: &'static str, given: Option<u32>, default: u32, least: u32, most: u32| match given
            .unwrap_or(default)
        {
            number if (least..=most).contains(&number) => Ok(number),
            number => Err((
                key,
                SpecError::new(format!("{number} is out of range"))
                    .allow([format!("{least} to {most}")]),
            )),
        };
    let transport = tcp::Config {
        mss: number("mss", flow.mss, linux.mss, 64, 65_000)?,
        initial_cwnd: number("initial_cwnd", flow.initial_cwnd, linux.initial_cwnd, 1, 10_000)?,
        receive_buffer,
        send_buffer: match &flow.send_buffer {
            Some(buffer) if buffer.value.as_u64() == 0 => 0,
            Some(buffer) => sized("send_buffer", buffer.value.as_u64())?,
            None => linux.send_buffer,
        },
        ecn: flow.ecn.map(Into::into),
        receiver_ecn: flow.receiver_ecn.map_or(linux.receiver_ecn, Into::into),
        ecn_option: flow.ecn_option.unwrap_or(linux.ecn_option),
        joined_marks_once: flow.joined_marks_once.unwrap_or(linux.joined_marks_once),
        offload: flow.offload.unwrap_or(linux.offload),
        offload_segments: number(
            "offload_segments",
            flow.offload_segments,
            u32::from(linux.offload_segments),
            1,
            u32::from(u16::MAX),
        )? as u16,
        tso_rtt_log: number("tso_rtt_log", flow.tso_rtt_log, linux.tso_rtt_log, 0, 31)?,
        deferral: span_or(&flow.deferral, linux.deferral),
        buffer_bound: flow.buffer_bound.unwrap_or(linux.buffer_bound),
        pace_always: flow.pacing.unwrap_or(linux.pace_always),
        pacing_slack: span_or(&flow.pacing_slack, linux.pacing_slack),
        tick: span_or(&flow.tick, linux.tick),
        rto_min: span_or(&flow.rto_min, linux.rto_min),
        delayed_ack: span_or(&flow.delayed_ack, linux.delayed_ack),
        quick_ack: flow.quick_ack.unwrap_or(linux.quick_ack),
        slow_start_after_idle: flow.slow_start_after_idle.unwrap_or(linux.slow_start_after_idle),
        ..linux
    };
    for (key, span, most) in [
        ("tick", transport.tick, Span::from_secs(1)),
        ("rto_min", transport.rto_min, Span::from_secs(120)),
        ("delayed_ack", transport.delayed_ack, Span::from_secs(1)),
        ("deferral", transport.deferral, Span::from_secs(1)),
        ("pacing_slack", transport.pacing_slack, Span::from_millis(100)),
    ] {
        if span > most {
            let problem = SpecError::new(format!("{span} is out of range"));
            return Err((key, problem.allow([format!("at most {most}")])));
        }
    }
    Ok(App::Tcp { traffic, cca, transport })
}

/// Checks a buffer or window that a connection can work with.
fn sized(key: &'static str, bytes: u64) -> Result<u64, WrongKey> {
    // At least two small segments; at most far below sizes whose sums could overflow.
    if (2_304..=1 << 40).contains(&bytes) {
        return Ok(bytes);
    }
    let problem = SpecError::new(format!("{bytes} bytes are out of range"));
    Err((key, problem.allow(["2304B to 1024GiB"])))
}

fn span_or(span: &Option<Text<Span>>, default: Span) -> Span {
    span.as_ref().map_or(default, |span| span.value)
}

/// The keys that a flow has in the file.
fn written_keys(document: &Document, index: usize) -> impl Iterator<Item = &str> {
    fn table(value: &Value) -> Option<&Table> {
        match value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
    let scenario = document.root.node("scenario").and_then(|node| table(&node.value));
    let flows = scenario.and_then(|scenario| match &scenario.node("flow")?.value {
        Value::Array(items) => Some(items),
        _ => None,
    });
    let flow = flows.and_then(|flows| table(&flows.get(index)?.value));
    flow.into_iter().flat_map(|table| table.entries.iter().map(|entry| &entry.key[..]))
}

/// Refuses keys that only other applications have.
fn check_keys<'a>(
    app: &AppName,
    written: impl Iterator<Item = &'a str>,
) -> Result<(), (String, SpecError)> {
    for key in written {
        let Some((_, apps)) = KEYS_BY_APP.iter().find(|(name, _)| *name == key) else {
            continue;
        };
        let problem =
            || SpecError::new(format!("has no meaning for the application '{}'", app.text()));
        match app {
            AppName::BuiltIn(app) if apps.contains(app) => {}
            AppName::BuiltIn(app) => {
                let problem = problem().near(key, app.keys()).allow(app.keys());
                return Err((key.to_owned(), problem));
            }
            AppName::Other(text) => {
                let name = text.split(' ').next().unwrap_or_default();
                let allowed = format!("parameters after its name: app = \"{name} …\"");
                return Err((key.to_owned(), problem().allow([allowed])));
            }
        }
    }
    Ok(())
}
