//! Worlds built in code, and the digest of a run of each, of packets or of fluid. Together they use every kind of
//! arithmetic that 32-bit words or another compiler could change: windows and rates of several
//! controllers, control laws with square roots and powers, random losses and sizes, rates that
//! wander, a radio's air, a call's filters, time series.

use std::sync::Arc;

use sojourn_core::{HostId, PortId, Rate, Span, SpecError, StreamAddress, Time};
use sojourn_host::apps::{ArrivalsConfig, PingConfig, SizesSpec};
use sojourn_host::tcp;
use sojourn_link::{JitterConfig, LossConfig, RateSpec};
use sojourn_media::call::{CallConfig, CallSpec};
use sojourn_media::{control, source};
use sojourn_metrics::{Collector, FlowShape, LinkShape, Shape};
use sojourn_scenario::{App, ExternalApp, Flow, Host, Link, Scenario, Traffic, Until};
use sojourn_wifi::RadioConfig;
use sojourn_wifi::mac::aggregation::Limits;
use sojourn_wifi::medium::{Config, Radio, Station};
use sojourn_wifi::phy::Mode;
use sojourn_wifi::queueing::{DriverConfig, Order, QueueConfig};

pub const SCENARIOS: usize = 7;

/// From here on no packet is simulated.
const FIRST_FLUID: usize = 5;

/// What happened in a run of a scenario, as one number.
///
/// # Errors
/// There is no such scenario, or its run breaks an invariant.
pub fn digest(scenario: usize) -> Result<u64, String> {
    let is_fluid = scenario >= FIRST_FLUID;
    let (scenario, flows) = match scenario {
        0 => home_router(),
        1 => radio(),
        2 => web(),
        3 => cell(),
        4 => call(),
        5 => home_router(),
        6 => steps(),
        _ => return Err(format!("there are {SCENARIOS} scenarios")),
    }
    .map_err(|error| error.to_string())?;
    let scenario = scenario.checked().map_err(|error| error.to_string())?;
    let mut collector = Collector::new(Shape {
        flows,
        links: scenario.ports().into_iter().map(|port| LinkShape { name: port.name }).collect(),
        duration: scenario.duration,
        warmup: scenario.warmup,
        step: scenario.step,
    });
    let address = StreamAddress { seed: 1, run: 1 };
    if is_fluid {
        let options = sojourn_fluid::Options::default();
        sojourn_fluid::run(&scenario, address, &options, &mut collector)?;
        return Ok(collector.finish(Time::ZERO + scenario.duration).digest);
    }
    let outcome = sojourn_sim::run(&scenario, address, &mut collector)
        .map_err(|violation| format!("an invariant was broken: {violation}"))?;
    Ok(collector.finish(outcome.end).digest)
}

/// [`digest`] for WebAssembly; on failure it returns a number that no run has.
#[unsafe(no_mangle)]
pub extern "C" fn digest_of(scenario: u32) -> u64 {
    digest(scenario as usize).unwrap_or(0)
}

type World = (Scenario, Vec<FlowShape>);

/// CUBIC, BBRv3 and a ping through FQ-CoDel, with a loss now and then.
fn home_router() -> Result<World, SpecError> {
    let down = Link {
        loss: LossConfig::parse("random 0.1%")?,
        ..line("down", "fq_codel limit 500", "20Mbps", 10)?
    };
    let links = vec![down, line("up", "cake bandwidth 5mbit", "5Mbps", 10)?];
    let ping = Flow::new("ping", App::Ping(PingConfig::default()), &[0], &[1]);
    let flows = vec![bulk("cubic", "cubic")?, bulk("bbr3", "bbr3")?, ping];
    let shapes = vec![FlowShape::tcp("cubic"), FlowShape::tcp("bbr3"), FlowShape::ping("ping")];
    Ok((scenario(links, flows), shapes))
}

/// Prague, BBRv1 and Reno over a rate that wanders, with jitter, through DualPI2.
fn radio() -> Result<World, SpecError> {
    let down = Link {
        loss: LossConfig::parse("random 0.01%")?,
        jitter: JitterConfig::parse("uniform 2ms")?,
        ..line("down", "dualpi2", "brownian max 30mbit", 15)?
    };
    let links = vec![down, line("up", "pie", "10Mbps", 15)?];
    let flows = vec![bulk("prague", "prague")?, bulk("bbr", "bbr")?, bulk("reno", "reno")?];
    let shapes = ["prague", "bbr", "reno"].map(FlowShape::tcp).into();
    Ok((scenario(links, flows), shapes))
}

/// Prague, BBRv1 and CUBIC over a rate in steps, through DualPI2.
fn steps() -> Result<World, SpecError> {
    let down = line("down", "dualpi2", "steps 20mbit 1s 5mbit 1s", 15)?;
    let links = vec![down, line("up", "pie", "10Mbps", 15)?];
    let flows = vec![bulk("prague", "prague")?, bulk("bbr", "bbr")?, bulk("cubic", "cubic")?];
    let shapes = ["prague", "bbr", "cubic"].map(FlowShape::tcp).into();
    Ok((scenario(links, flows), shapes))
}

/// Transfers of random sizes that come and go, through CAKE.
fn web() -> Result<World, SpecError> {
    let links = vec![
        line("down", "cake bandwidth 20mbit", "25Mbps", 8)?,
        line("up", "pfifo limit 100", "25Mbps", 8)?,
    ];
    let sizes = SizesSpec::parse("lognormal mean 30kB sigma 1.5 max 1MB")?.complete(None)?;
    let arrivals = ArrivalsConfig { per_second: 40.0, sizes, most: 1000, transfers: None };
    let app = App::Tcp {
        traffic: Traffic::Arrivals(arrivals),
        cca: sojourn_cca::Config::parse("cubic")?,
        transport: tcp::Config::default(),
    };
    let flows = vec![Flow::new("web", app, &[0], &[1])];
    Ok((scenario(links, flows), vec![FlowShape::arrivals("web")]))
}

/// Two stations of a cell, of which one is slow, behind a wire: CUBIC to the one, BBRv3 from the other.
fn cell() -> Result<World, SpecError> {
    let queue = DriverConfig {
        limit: 500,
        order: Order::OldestFirst,
        upper: Some(sojourn_qdisc::Config::parse("fq_codel")?),
    };
    let station = |mode: &str| -> Result<Station, SpecError> {
        let radio = Radio::new(Mode::parse(mode)?);
        Ok(Station { down: radio, up: radio, queue: queue.clone(), weight: Station::WEIGHT })
    };
    let stations = vec![station("he mcs 9")?, station("ht mcs 0")?];
    let names = ["near", "far"].map(Into::into).into();
    let config = Config::new(stations, Limits::HE, QueueConfig::mac80211());
    let links = vec![
        line("wire-down", "pfifo limit 1000", "1Gbps", 5)?,
        line("wire-up", "pfifo limit 1000", "1Gbps", 5)?,
    ];
    let down = Flow {
        forward: vec![PortId(0), PortId(2)],
        reverse: vec![PortId(3), PortId(1)],
        ..bulk("down", "cubic")?
    };
    let up = Flow {
        src: HostId(2),
        dst: HostId(0),
        forward: vec![PortId(5), PortId(1)],
        reverse: vec![PortId(0), PortId(4)],
        ..bulk("up", "bbr3")?
    };
    let mut world = scenario(links, vec![down, up]);
    world.hosts.push(Host { name: "far".into() });
    world.carriers = vec![RadioConfig::new("wifi", names, config)?.into()];
    Ok((world, ["down", "up"].map(FlowShape::tcp).into()))
}

/// A call with Google's controller beside CUBIC.
fn call() -> Result<World, SpecError> {
    let links = vec![
        line("down", "pfifo limit 100", "4Mbps", 10)?,
        line("up", "pfifo limit 100", "4Mbps", 10)?,
    ];
    let spec = CallSpec { max_rate: Rate::from_bps(2_500_000), ..CallSpec::default() };
    let source = source::kinds().parse("statistical")?;
    let control = control::kinds().parse("gcc")?;
    let app = App::External(ExternalApp(Arc::new(CallConfig::new(spec, source, control, None)?)));
    let flows = vec![Flow::new("call", app, &[0], &[1]), bulk("cubic", "cubic")?];
    Ok((scenario(links, flows), vec![FlowShape::udp("call"), FlowShape::tcp("cubic")]))
}

fn scenario(links: Vec<Link>, flows: Vec<Flow>) -> Scenario {
    Scenario {
        duration: Span::from_secs(10),
        until: Until::Duration,
        warmup: Span::from_secs(1),
        step: Span::from_millis(100),
        hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
        links,
        carriers: Vec::new(),
        changes: Vec::new(),
        flows,
    }
}

fn line(name: &str, queue: &str, rate: &str, delay: u64) -> Result<Link, SpecError> {
    let rate = RateSpec::parse(rate)?.complete(None)?;
    let queue = sojourn_qdisc::Config::parse(queue)?;
    Ok(Link::new(name, queue, rate, Span::from_millis(delay)))
}

fn bulk(name: &str, cca: &str) -> Result<Flow, SpecError> {
    let app = App::bulk(sojourn_cca::Config::parse(cca)?, tcp::Config::default());
    Ok(Flow::new(name, app, &[0], &[1]))
}
