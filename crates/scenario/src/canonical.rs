//! One written form of a scenario, which names its runs: two scenarios are the same if this text
//! is.
//!
//! It has a line for each host, link, carrier and flow in their order. A value that users can write
//! is written as they write it. A parameter is written if it differs from its default, so that a
//! new parameter renames no run. Names of fields and types in the code do not occur in it.

use alloc::string::String;
use core::fmt::{self, Display, Write};

use sojourn_host::apps::ArrivalsConfig;
use sojourn_host::tcp::{EcnOffer, EcnSupport, ReceiveBuffer};
use sojourn_wire::{PortShape, Quoted, Sharing};

use crate::{App, CarrierConfig, Flow, Scenario, Traffic, Until};

impl Scenario {
    /// The text that represents it in a run's identity.
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_canonical(&mut text);
        text
    }

    fn write_canonical(&self, f: &mut String) -> fmt::Result {
        let Self { duration, until, warmup, step, .. } = self;
        write!(f, "scenario duration={duration} warmup={warmup} step={step}")?;
        if *until != Until::Duration {
            write!(f, " until=[{}]", until.name())?;
        }
        f.write_char('\n')?;
        self.hosts.iter().try_for_each(|host| writeln!(f, "host {}", Quoted(&host.name)))?;
        self.links.iter().try_for_each(|link| writeln!(f, "{}", link.canonical()))?;
        self.carriers.iter().try_for_each(|carrier| write_carrier(f, carrier))?;
        self.flows.iter().try_for_each(|flow| write_flow(f, flow))
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
    write!(f, " dscp={} app=[", flow.dscp)?;
    write_app(f, &flow.app)?;
    f.write_str("]\n")
}

fn write_app(f: &mut String, app: &App) -> fmt::Result {
    match app {
        App::Tcp { traffic, cca, transport } => {
            match traffic {
                Traffic::Bulk { bytes: None } => write!(f, "bulk")?,
                Traffic::Bulk { bytes: Some(bytes) } => write!(f, "bulk bytes={bytes}")?,
                Traffic::Paced { rate, bytes } => {
                    write!(f, "bulk rate={rate}")?;
                    if let Some(bytes) = bytes {
                        write!(f, " bytes={bytes}")?;
                    }
                }
                Traffic::OnOff { on, off, random } => {
                    write!(f, "on_off on={on} off={off} random={random}")?;
                }
                Traffic::Arrivals(config) => {
                    let ArrivalsConfig { per_second, sizes, most, transfers } = config;
                    write!(
                        f,
                        "arrivals per_second={per_second} max_connections={most} sizes=[{sizes}]"
                    )?;
                    if let Some(transfers) = transfers {
                        write!(f, " transfers={transfers}")?;
                    }
                }
            }
            write!(f, " cca=[{}] tcp=[", cca.canonical())?;
            write_tcp(f, transport)?;
            f.write_char(']')
        }
        App::Ping(config) => {
            write!(f, "ping interval={} ip_len={}", config.interval, config.ip_len)
        }
        App::External(app) => write!(f, "external [{}]", app.0.canonical()),
        App::Udp(config) => write!(
            f,
            "udp interval={} frame={} datagrams={} header={}",
            config.interval, config.frame, config.datagrams, config.header
        ),
    }
}

/// The keys are those of a study file, as far as it has one.
fn write_tcp(f: &mut String, config: &sojourn_host::tcp::Config) -> fmt::Result {
    // Destructured by name, so that a new field can't be forgotten here.
    let sojourn_host::tcp::Config {
        mss,
        header,
        initial_cwnd,
        receive_buffer,
        send_buffer,
        ecn,
        receiver_ecn,
        ecn_option,
        joined_marks_once,
        offload,
        offload_segments,
        gso_max_size,
        tso_rtt_log,
        deferral,
        buffer_bound,
        pace_always,
        pacing_slack,
        tick,
        rto_min,
        delayed_ack,
        quick_ack,
        address_resolution,
        slow_start_after_idle,
    } = config;
    let usual = sojourn_host::tcp::Config::default();
    let mut keys = Keys { text: f, is_first: true };
    keys.unless(mss, &usual.mss, "mss")?;
    keys.unless(header, &usual.header, "header")?;
    keys.unless(initial_cwnd, &usual.initial_cwnd, "initial_cwnd")?;
    if *receive_buffer != usual.receive_buffer {
        match receive_buffer {
            ReceiveBuffer::Window(bytes) => keys.write("receive_window", bytes)?,
            ReceiveBuffer::Locked(bytes) => keys.write("receive_buffer", bytes)?,
            ReceiveBuffer::Auto { initial, most } => {
                keys.write("initial_receive_buffer", initial)?;
                keys.write("most_receive_buffer", most)?;
            }
        }
    }
    keys.unless(send_buffer, &usual.send_buffer, "send_buffer")?;
    if let Some(ecn) = ecn {
        let word = match ecn {
            EcnOffer::Off => "off",
            EcnOffer::Classic => "classic",
            EcnOffer::Accurate => "accecn",
        };
        keys.write("ecn", &word)?;
    }
    if *receiver_ecn != usual.receiver_ecn {
        let word = match receiver_ecn {
            EcnSupport::Off => "off",
            EcnSupport::Classic => "classic",
            EcnSupport::MarkByMark => "dctcp",
            EcnSupport::Accurate => "accecn",
        };
        keys.write("receiver_ecn", &word)?;
    }
    keys.unless(ecn_option, &usual.ecn_option, "ecn_option")?;
    keys.unless(joined_marks_once, &usual.joined_marks_once, "joined_marks_once")?;
    keys.unless(offload, &usual.offload, "offload")?;
    keys.unless(offload_segments, &usual.offload_segments, "offload_segments")?;
    keys.unless(gso_max_size, &usual.gso_max_size, "gso_max_size")?;
    keys.unless(tso_rtt_log, &usual.tso_rtt_log, "tso_rtt_log")?;
    keys.unless(deferral, &usual.deferral, "deferral")?;
    keys.unless(buffer_bound, &usual.buffer_bound, "buffer_bound")?;
    keys.unless(pace_always, &usual.pace_always, "pacing")?;
    keys.unless(pacing_slack, &usual.pacing_slack, "pacing_slack")?;
    keys.unless(tick, &usual.tick, "tick")?;
    keys.unless(rto_min, &usual.rto_min, "rto_min")?;
    keys.unless(delayed_ack, &usual.delayed_ack, "delayed_ack")?;
    keys.unless(quick_ack, &usual.quick_ack, "quick_ack")?;
    keys.unless(address_resolution, &usual.address_resolution, "address_resolution")?;
    keys.unless(slow_start_after_idle, &usual.slow_start_after_idle, "slow_start_after_idle")
}

struct Keys<'a> {
    text: &'a mut String,
    is_first: bool,
}

impl Keys<'_> {
    fn unless<T: Display + PartialEq>(&mut self, value: &T, usual: &T, key: &str) -> fmt::Result {
        if value == usual { Ok(()) } else { self.write(key, value) }
    }

    fn write(&mut self, key: &str, value: &dyn Display) -> fmt::Result {
        if !self.is_first {
            self.text.write_char(' ')?;
        }
        self.is_first = false;
        write!(self.text, "{key}={value}")
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use sojourn_core::{Bytes, Rate, Span};
    use sojourn_host::apps::{PingConfig, SizesSpec, UdpConfig};
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
            ecn: Some(EcnOffer::Classic),
            receive_buffer: ReceiveBuffer::Window(65_536),
            pace_always: true,
            rto_min: Span::from_millis(50),
            ..tcp::Config::default()
        };
        let bulk = App::bulk(cca("bbr min_cwnd=5 cwnd_gain=2"), tcp::Config::default());
        let on_off = App::Tcp {
            traffic: Traffic::OnOff {
                on: Span::from_secs(1),
                off: Span::from_millis(1_500),
                random: true,
            },
            cca: cca("cubic"),
            transport,
        };
        let paced = App::Tcp {
            traffic: Traffic::Paced { rate: Rate::from_bps(2_000_000), bytes: Some(1_000) },
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
