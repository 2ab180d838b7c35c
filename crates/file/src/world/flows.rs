//! Flows: which hosts, which way, which application.

use std::collections::BTreeSet;
use std::sync::Arc;

use sojourn_core::{Framing, HostId, PortId, Span, SpecError};
use sojourn_host::apps::{Exec, FramesSpec, PageConfig, UdpSpec};
use sojourn_host::tcp::Reading;
use sojourn_link::{OnEnd, RateConfig, Serving};
use sojourn_scenario::{App, ExternalApp, Flow, Narrow, Traffic};

use super::routes::Graph;
use super::shape::{Shape, Ways, check_name, taken};
use super::shapes;
use super::{Sources, Wrong, WrongKey, arrivals, call};
use crate::plan::PlannedFlow;
use crate::registry::Registry;
use crate::spec::{
    AppKind, AppName, Control, Direction, FlowSpec, OneOrMany, ScenarioSpec, Text, blamed,
};

const MAX_COUNT: u32 = 100_000;
/// The most flows of a scenario, of all kinds together.
const MAX_FLOWS: usize = 100_000;

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
        check_keys(flow).map_err(|(key, error)| Wrong { is_key: true, ..under(key, error) })?;
        let count = flow.count.unwrap_or(1);
        if count > MAX_COUNT {
            let problem = SpecError::new(format!("{count} is out of range"));
            return Err(under("count", problem.allow([format!("0 to {MAX_COUNT}")])));
        }
        if flows.len() + count as usize > MAX_FLOWS {
            let problem = SpecError::new("the flows are too many in all");
            return Err(under("count", problem.allow([format!("at most {MAX_FLOWS}")])));
        }
        let template =
            one(flow, index, spec, shape, sources).map_err(|(key, error)| under(key, error))?;
        let narrow = Narrow::of(shape.links.len(), &shape.carriers);
        template.check_lengths(&narrow).map_err(|(key, error)| under(key, error))?;
        let base_rtt = delay_of(shape, &template.forward)
            + delay_of(shape, &template.reverse)
            + template.forward_delay
            + template.reverse_delay;
        let cca = match flow.app.is_tcp() {
            true => Some(control(flow).map_err(|(key, error)| under(key, error))?.cca),
            false => None,
        };
        for number in 1..=count {
            let name = match flow.count {
                None => flow.name.clone(),
                Some(_) => format!("{}.{number}", flow.name),
            };
            planned.push(PlannedFlow {
                name: name.clone(),
                group: flow.name.clone(),
                app: flow.app.text().to_owned(),
                cca: cca.clone(),
                base_rtt_ms: base_rtt.as_millis_f64(),
                bytes: transfer(&template.app),
                is_up: matches!(flow.direction, Some(Direction::Up)),
            });
            flows.push(Flow { name, ..template.clone() });
        }
    }
    Ok((flows, planned))
}

/// Bytes that the application transfers, if they are limited.
fn transfer(app: &App) -> Option<u64> {
    match app {
        App::Tcp { traffic: Traffic::Bulk(config), .. } => config.bytes,
        App::External(app) => app.0.transfer(),
        App::Tcp { .. } | App::Ping(_) | App::Udp(_) => None,
    }
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
        let when = if stop == start { "when" } else { "before" };
        let problem = SpecError::new(format!("stops at {stop}, {when} it starts"));
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
    let reads = reads(flow, index, sources).map_err(|error| ("reads", error))?;
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
        reads,
    })
}

/// How fast the receiving application reads; `None` if it reads at once.
fn reads(
    flow: &FlowSpec,
    index: usize,
    sources: &mut Sources<'_>,
) -> Result<Option<Reading>, SpecError> {
    let Some(written) = &flow.reads else { return Ok(None) };
    if !matches!(flow.app, AppName::BuiltIn(AppKind::Bulk | AppKind::OnOff)) {
        let problem = SpecError::new(format!("'{}' does not have it", flow.app.text()));
        return Err(problem.allow(["bulk", "on_off"]));
    }
    let key = format!("flow.{index}.reads");
    let completed =
        sources.traces.complete(written, &key, sources.document).map_err(|wrong| wrong.problem)?;
    let forever = Span::from_secs(1);
    match completed {
        RateConfig::Unlimited => Ok(None),
        RateConfig::Fixed { rate, framing } if framing == Framing::default() => {
            Reading::new(vec![(rate, forever)], false).map(Some)
        }
        RateConfig::Trace { trace, serving }
            if serving == (Serving { on_end: serving.on_end, ..Serving::default() }) =>
        {
            let steps = trace.steps().map(|step| (step.rate, step.duration)).collect();
            Reading::new(steps, serving.on_end == OnEnd::Wrap).map(Some)
        }
        _ => Err(SpecError::new(format!("an application does not read as '{}'", written.text))
            .allow(["a rate", "steps", "trace FILE", "rfc8867"])),
    }
}

/// A flow's hosts, and its ways there and back.
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
                let missing = || (key, SpecError::new("is missing").allow(graph.nodes()));
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

/// The way through the queues of these names, of which one text may hold several.
fn route(
    names: &[String],
    shape: &Shape,
    graph: &Graph,
    from: usize,
    to: usize,
) -> Result<Vec<PortId>, SpecError> {
    let names: Vec<&str> = names.iter().flat_map(|names| names.split_whitespace()).collect();
    let ports: Vec<PortId> = names.iter().map(|name| shape.port(name)).collect::<Result<_, _>>()?;
    // The nodes at which a packet may be after the ports so far.
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
    let settings = &flow.settings;
    Ok(match kind {
        AppKind::Bulk => over_tcp(flow, Traffic::Bulk(settings.read()?), registry)?,
        AppKind::OnOff => over_tcp(flow, Traffic::OnOff(settings.read()?), registry)?,
        AppKind::Page => {
            let config: PageConfig = settings.read()?;
            config.check_objects().map_err(blamed)?;
            over_tcp(flow, Traffic::Page(config), registry)?
        }
        AppKind::Requests => over_tcp(flow, Traffic::Requests(settings.read()?), registry)?,
        AppKind::Rpm => over_tcp(flow, Traffic::Rpm(settings.read()?), registry)?,
        AppKind::Ping => App::Ping(settings.read()?),
        AppKind::Udp => App::Udp(settings.read::<UdpSpec>()?.try_into().map_err(blamed)?),
        AppKind::Frames => App::Udp(settings.read::<FramesSpec>()?.try_into().map_err(blamed)?),
        AppKind::Arrivals => {
            let config = arrivals::config(settings.read()?, index, shape, forward, sources)?;
            over_tcp(flow, Traffic::Arrivals(config), registry)?
        }
        AppKind::Call => {
            App::External(ExternalApp(Arc::new(call::config(settings.read()?, index, sources)?)))
        }
        AppKind::Exec => {
            let key = format!("scenario.flow.{index}.app");
            let folder = sources.document.folder(sources.document.locate(&key));
            let exec = Exec::new(settings.read()?, folder.display().to_string());
            let exec = exec.map_err(|error| (error.parameter().unwrap_or("app"), error))?;
            App::External(ExternalApp(Arc::new(exec)))
        }
    })
}

fn over_tcp(flow: &FlowSpec, traffic: Traffic, registry: &Registry) -> Result<App, WrongKey> {
    let cca = registry.controller(&control(flow)?.cca).map_err(|error| ("cca", error))?;
    Ok(App::Tcp { traffic, cca, transport: flow.settings.read()? })
}

fn control(flow: &FlowSpec) -> Result<Control, WrongKey> {
    flow.settings.read()
}

fn span_or(span: &Option<Text<Span>>, default: Span) -> Span {
    span.as_ref().map_or(default, |span| span.value)
}

/// Refuses keys that only other applications have, or none.
fn check_keys(flow: &FlowSpec) -> Result<(), (&str, SpecError)> {
    let app = &flow.app;
    for key in flow.settings.keys() {
        if !AppKind::ALL.iter().any(|app| app.keys().any(|known| known == key)) {
            let mut known = FlowSpec::KEYS.to_vec();
            if let AppName::BuiltIn(app) = app {
                known.extend(app.keys());
            }
            let known = || known.iter().copied();
            return Err((key, SpecError::new("unknown key").near(key, known()).allow(known())));
        }
        let problem =
            || SpecError::new(format!("has no meaning for the application '{}'", app.text()));
        match app {
            AppName::BuiltIn(app) if app.keys().any(|own| own == key) => {}
            AppName::BuiltIn(app) => {
                return Err((key, problem().near(key, app.keys()).allow(app.keys())));
            }
            AppName::Other(text) => {
                let name = text.split(' ').next().unwrap_or_default();
                let allowed = format!("parameters after its name: app = \"{name} …\"");
                return Err((key, problem().allow([allowed])));
            }
        }
    }
    Ok(())
}
