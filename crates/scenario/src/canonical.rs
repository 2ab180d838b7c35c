//! One written form of a scenario, which names its runs: two scenarios are the same if this text
//! is.
//!
//! It has a line for each host, link, carrier and flow in their order. A value that users can write
//! is written as they write it. A parameter is written if it differs from its default, so that a
//! new parameter renames no run. Names of fields and types in the code do not occur in it.

use alloc::string::String;
use core::fmt::{self, Write};

use sojourn_core::Params;
use sojourn_core::param::Style;
use sojourn_link::RateConfig;
use sojourn_wire::{PortShape, Quoted, Sharing};

use crate::{App, CarrierConfig, Change, Flow, Scenario, Traffic, Until, What, When};

impl Scenario {
    /// The text that represents it in a run's identity.
    pub fn canonical(&self) -> String {
        self.canonical_with(&mut RateConfig::canonical)
    }

    /// The same, with rates of links as `rate` writes them, which knows those that many scenarios share.
    pub fn canonical_with(&self, rate: &mut dyn FnMut(&RateConfig) -> String) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_canonical(&mut text, rate);
        text
    }

    fn write_canonical(
        &self,
        f: &mut String,
        rate: &mut dyn FnMut(&RateConfig) -> String,
    ) -> fmt::Result {
        let Self { duration, until, warmup, step, .. } = self;
        write!(f, "scenario duration={duration} warmup={warmup} step={step}")?;
        if *until != Until::Duration {
            write!(f, " until=[{}]", until.name())?;
        }
        f.write_char('\n')?;
        self.hosts.iter().try_for_each(|host| writeln!(f, "host {}", Quoted(&host.name)))?;
        self.links.iter().try_for_each(|link| writeln!(f, "{}", link.canonical_with(rate)))?;
        self.carriers.iter().try_for_each(|carrier| write_carrier(f, carrier))?;
        self.flows.iter().try_for_each(|flow| write_flow(f, flow))?;
        self.changes.iter().try_for_each(|change| write_change(f, change))
    }
}

fn write_carrier(f: &mut String, carrier: &CarrierConfig) -> fmt::Result {
    match carrier {
        CarrierConfig::Switch(switch) => {
            let (ports, Sharing { buffer, alpha }) = (switch.ports(), switch.sharing());
            writeln!(f, "switch ports={} buffer={buffer} alpha={alpha}", ports.len())?;
            ports.iter().try_for_each(|port| writeln!(f, "{}", port.canonical()))
        }
        CarrierConfig::External(carrier) => {
            writeln!(f, "carrier [{}]", carrier.0.canonical())?;
            carrier.0.ports().iter().try_for_each(|port| {
                let PortShape { name, delay, rate, mean } = port;
                write!(f, "port {} delay={delay} rate={rate}", Quoted(name))?;
                match mean {
                    Some(mean) if mean != rate => writeln!(f, " mean={mean}"),
                    Some(_) => writeln!(f),
                    None => writeln!(f, " mean=unknown"),
                }
            })
        }
    }
}

fn write_flow(f: &mut String, flow: &Flow) -> fmt::Result {
    write!(f, "flow {} src={} dst={}", Quoted(&flow.name), flow.src.0, flow.dst.0)?;
    for (way, ports) in [("forward", &flow.forward), ("reverse", &flow.reverse)] {
        write!(f, " {way}=[")?;
        for (place, port) in ports.iter().enumerate() {
            write!(f, "{}{}", if place == 0 { "" } else { " " }, port.0)?;
        }
        f.write_char(']')?;
    }
    write!(f, " forward_delay={} reverse_delay={}", flow.forward_delay, flow.reverse_delay)?;
    write!(f, " start={} start_jitter={}", flow.start, flow.start_jitter)?;
    if let Some(stop) = flow.stop {
        write!(f, " stop={stop}")?;
    }
    if let Some(reads) = &flow.reads {
        write!(f, " reads=[{reads}]")?;
    }
    write!(f, " dscp={} app=[", flow.dscp)?;
    write_app(f, &flow.app)?;
    f.write_str("]\n")
}

fn write_change(f: &mut String, Change { when, what }: &Change) -> fmt::Result {
    let When { flow, phase, occurrence, after } = when;
    write!(f, "change flow={} enters={} time={occurrence}", flow.0, Quoted(phase))?;
    write!(f, " after={after} ")?;
    match what {
        What::Rate(port, rate) => writeln!(f, "port={} rate={rate}", port.0),
        What::Loss(port, loss) => writeln!(f, "port={} loss=[{loss}]", port.0),
        What::Delay(port, delay) => writeln!(f, "port={} delay={delay}", port.0),
        What::Start(flow) => writeln!(f, "flow={} start", flow.0),
        What::Stop(flow) => writeln!(f, "flow={} stop", flow.0),
        What::Pause(flow, length) => writeln!(f, "flow={} pause={length}", flow.0),
        What::Write(flow, rate) => writeln!(f, "flow={} rate={rate}", flow.0),
    }
}

fn write_app(f: &mut String, app: &App) -> fmt::Result {
    match app {
        App::Tcp { traffic, cca, transport } => {
            match traffic {
                Traffic::Bulk(config) => f.write_str(&config.written(Style::Canonical))?,
                Traffic::OnOff(config) => f.write_str(&config.written(Style::Equals))?,
                Traffic::Arrivals(config) => write!(f, "{config}")?,
                Traffic::Page(config) => f.write_str(&config.written(Style::Canonical))?,
                Traffic::Requests(config) => f.write_str(&config.written(Style::Canonical))?,
                Traffic::Rpm(config) => f.write_str(&config.written(Style::Canonical))?,
            }
            let transport = transport.values(Style::Canonical);
            write!(f, " cca=[{}] tcp=[{transport}]", cca.canonical())
        }
        App::Ping(config) => write!(f, "{config}"),
        App::Udp(config) => write!(f, "{config}"),
        App::External(app) => write!(f, "external [{}]", app.0.canonical()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use sojourn_core::{Bytes, Rate, Span};
    use sojourn_host::apps::{
        ArrivalsConfig, BulkConfig, OnOffConfig, PingConfig, SizesSpec, UdpConfig,
    };
    use sojourn_host::tcp;
    use sojourn_link::{
        JitterConfig, LossConfig, PolicerConfig, RateConfig, RateSpec, ReorderConfig,
    };

    use super::*;
    use crate::{Host, Link};

    fn world() -> Scenario {
        let rate = |text: &str| {
            let spec = RateSpec::parse(text).expect("a good rate");
            spec.complete(None).expect("it needs no file")
        };
        let queue = |text: &str| sojourn_qdisc::Config::parse(text).expect("a good queue");
        let cca = |text: &str| sojourn_cca::Config::parse(text).expect("a good control");
        let plain = Link::new(
            "there",
            queue("fq_codel limit 1000 noecn"),
            RateConfig::fixed(Rate::from_bps(10_000_000)).expect("a good rate"),
            Span::from_micros(10_500),
        );
        let lossy = Link {
            entry_loss: LossConfig::parse("1%").expect("a good loss"),
            loss: LossConfig::parse("gemodel 1% 10% 70% 0.1%").expect("a good loss"),
            jitter: JitterConfig::parse("uniform 3ms").expect("a good jitter"),
            policer: PolicerConfig::parse("rate 8mbit burst 64kb").expect("a good policer"),
            reorder: ReorderConfig::parse("25%").expect("a good reordering"),
            ..Link::new(
                "back \"again\"",
                queue("pfifo limit 50"),
                rate("steps 10mbit 5s 0 500ms end hold shaper htb"),
                Span::ZERO,
            )
        };
        let transport = tcp::Config {
            mss: 1_000,
            ecn: Some(tcp::EcnOffer::Classic),
            receive_window: Some(65_536.into()),
            pacing: true,
            rto_min: Span::from_millis(50),
            ..tcp::Config::default()
        };
        let bulk = App::bulk(cca("bbr min_cwnd=5 cwnd_gain=2"), tcp::Config::default());
        let on_off = App::Tcp {
            traffic: Traffic::OnOff(OnOffConfig {
                on: Span::from_secs(1),
                off: Span::from_millis(1_500),
                random: true,
            }),
            cca: cca("cubic"),
            transport,
        };
        let paced = App::Tcp {
            traffic: Traffic::Bulk(BulkConfig {
                rate: Some(Rate::from_bps(2_000_000)),
                bytes: Some(1_000),
            }),
            cca: cca("cubic"),
            transport: tcp::Config::default(),
        };
        let sizes = match SizesSpec::parse("lognormal mean 100kB sigma 1.5") {
            Ok(SizesSpec::Known(sizes)) => sizes,
            other => panic!("{other:?}"),
        };
        let arrivals = App::Tcp {
            traffic: Traffic::Arrivals(ArrivalsConfig {
                per_second: 0.1,
                sizes,
                most: 1_000,
                transfers: None,
            }),
            cca: cca("reno"),
            transport: tcp::Config::default(),
        };
        let udp = UdpConfig {
            interval: Span::from_nanos(16_666_667),
            frame: Bytes::new(20_000).as_u64() as u32,
            datagrams: 14,
            header: 28,
        };
        Scenario {
            duration: Span::from_secs(60),
            until: Until::Duration,
            warmup: Span::from_secs(5),
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links: [plain, lossy].into(),
            carriers: Vec::new(),
            flows: [
                Flow { stop: Some(Span::from_secs(9)), ..Flow::new("a", bulk, &[0], &[1]) },
                Flow { dscp: 46, ..Flow::new("b", on_off, &[0, 1], &[1, 0]) },
                Flow::new("c", arrivals, &[0], &[1]),
                Flow::new("d", App::Ping(PingConfig::default()), &[0], &[1]),
                Flow::new("e", App::Udp(udp), &[0], &[1]),
                Flow::new("f", paced, &[0], &[1]),
            ]
            .into(),
            changes: Vec::new(),
        }
    }

    /// This text names the runs in every result folder. Renaming something in the code must not
    /// change it; a change belongs in the changelog.
    #[test]
    fn the_canonical_text_is_this() {
        assert_eq!(world().canonical(), include_str!("canonical.txt"));
    }

    #[test]
    fn what_is_given_as_its_default_is_the_same_world() {
        let mut other = world();
        let App::Tcp { cca, .. } = &mut other.flows[0].app else { panic!("it is a bulk flow") };
        *cca = sojourn_cca::Config::parse("bbr min_cwnd=5").expect("a good control");
        assert_eq!(other.canonical(), world().canonical());
        other.flows[0].dscp = 1;
        assert_ne!(other.canonical(), world().canonical());
    }

    #[test]
    fn what_ends_a_run_is_part_of_it_only_if_given() {
        let other = Scenario { until: Until::TransfersDone, ..world() };
        assert_eq!(
            other.canonical().lines().next(),
            Some("scenario duration=60s warmup=5s step=100ms until=[transfers done]")
        );
        let mut limited = world();
        let App::Tcp { traffic: Traffic::Arrivals(config), .. } = &mut limited.flows[2].app else {
            panic!("it is arrivals");
        };
        config.transfers = Some(7);
        assert!(limited.canonical().contains("] transfers=7 cca="), "{}", limited.canonical());
    }
}
