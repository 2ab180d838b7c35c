//! A measured cell with TCP: a server behind a wire, through the engine.

use std::collections::BTreeMap;

use serde_json::Value;
use sojourn_core::{Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::tcp::{Config as Transport, EcnOffer, SendBuffer};
use sojourn_link::RateConfig;
use sojourn_scenario::{App, Flow, Host, Link, Scenario, Until};
use sojourn_sim::{Engine, Outcome};
use sojourn_wifi::medium::{Config, LinkCounts};
use sojourn_wifi::{Port, RadioConfig};

use super::cell::{Arrived, difference, members, results, traffic};

/// The wire towards the access point and the one back are the first two ports.
const WIRE: [u16; 2] = [0, 1];
const RADIO: u16 = 2;

pub(super) fn run(setup: &Value, config: &Config, seed: u64) -> BTreeMap<String, f64> {
    let seconds = |key: &str| Span::from_secs_f64(setup[key].as_f64().expect("seconds"));
    let (from, to) =
        (Time::ZERO + seconds("measured_from_s"), Time::ZERO + seconds("measured_to_s"));
    let stations = config.stations.len() as u16;
    let ways = ways(setup, config.stations.len());
    let scenario = scenario(setup, config, &ways).checked().expect("a sound world");
    let ports = ways.iter().map(Way::port).collect();
    let mut watch = Watch { from, bulk: vec![0; 2 * usize::from(stations)], ports };
    let mut engine = Engine::new(&scenario, StreamAddress { seed, run: 0 }, &mut watch);
    let mut count_until = |time: Time| {
        engine.run_until(time).expect("invariants hold");
        counts(&engine.outcome(), stations)
    };
    let (before, after) = (count_until(from), count_until(to));
    let counts: Vec<LinkCounts> =
        after.iter().zip(&before).map(|(after, before)| difference(*after, *before)).collect();
    let attempts = counts.iter().map(|counts| counts.attempts).sum();
    let collided = counts.iter().map(|counts| counts.collided).sum();
    let arrived = Arrived::of(watch.bulk);
    let has_bulk = vec![true; 2 * usize::from(stations)];
    results(&arrived, &counts, &has_bulk, attempts, collided, to.since(from).as_secs_f64())
}

/// Of a flow.
struct Way {
    station: u16,
    is_up: bool,
}

impl Way {
    fn port(&self) -> Port {
        if self.is_up { Port::up(self.station) } else { Port::down(self.station) }
    }
}

fn ways(setup: &Value, stations: usize) -> Vec<Way> {
    let all = traffic(setup).flat_map(|flow| {
        let is_up = flow["direction"].as_str().is_some_and(|way| way.starts_with("up"));
        members(flow, stations).map(move |station| Way { station: station as u16, is_up })
    });
    all.collect()
}

fn scenario(setup: &Value, config: &Config, ways: &[Way]) -> Scenario {
    let wire = |name| {
        let mbps = setup["wire"]["mbps"].as_u64().expect("a rate");
        let rate = RateConfig::fixed(Rate::from_bps(mbps * 1_000_000)).expect("a positive rate");
        let queue = sojourn_qdisc::Config::parse("pfifo limit 100000").expect("a discipline");
        let ms = setup["wire"]["one_way_ms"].as_f64().expect("a delay");
        Link::new(name, queue, rate, Span::from_secs_f64(ms / 1000.0))
    };
    let names: Vec<String> = (0..config.stations.len()).map(|s| format!("sta{s}")).collect();
    let start = Span::from_secs_f64(setup["start_of_traffic_s"].as_f64().expect("seconds"));
    let flows = ways.iter().map(|Way { station, is_up }| {
        let station = *station;
        let (down, up) = (RADIO + Port::down(station).index(), RADIO + Port::up(station).index());
        let (there, back) = ([WIRE[0], down], [up, WIRE[1]]);
        let (forward, reverse) = if *is_up { (back, there) } else { (there, back) };
        let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
        let name = format!("flow{station}{}", if *is_up { "up" } else { "" });
        // Ten milliseconds apart.
        let start = start + Span::from_millis(10) * u64::from(station);
        Flow { start, ..Flow::new(&name, App::bulk(cca, transport(setup)), &forward, &reverse) }
    });
    let flows = flows.collect();
    let radio = RadioConfig::new("wifi", names, config.clone()).expect("a cell");
    Scenario {
        duration: Span::from_secs_f64(setup["measured_to_s"].as_f64().expect("seconds")),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: ["server", "station"].map(|name| Host { name: name.into() }).into(),
        links: vec![wire("to the access point"), wire("to the server")],
        carriers: vec![radio.into()],
        changes: Vec::new(),
        flows,
    }
}

fn transport(setup: &Value) -> Transport {
    let tcp = &setup["tcp"];
    let number = |key: &str| tcp[key].as_u64().expect("a number");
    let buffer = number("buffers_octets");
    Transport {
        initial_cwnd: number("initial_window_segments") as u32,
        receive_window: Some(buffer.into()),
        // It holds no more than the window, in bytes.
        send_buffer: SendBuffer::UNLIMITED,
        ecn: Some(EcnOffer::Off),
        rto_min: Span::from_millis(number("min_rto_ms")),
        delayed_ack: Span::from_millis(200),
        ..Transport::default()
    }
}

/// What the ports of the radio counted.
fn counts(outcome: &Outcome, stations: u16) -> Vec<LinkCounts> {
    (0..2 * stations)
        .map(|port| {
            let details = &outcome.queue_details[usize::from(RADIO + port)];
            let value = |name: &str| {
                details.iter().find(|(own, _)| *own == name).expect("the radio counts it").1
            };
            LinkCounts {
                airtime: Span::from_micros(value("airtime_us")),
                attempts: value("attempts"),
                collided: value("collided"),
                ppdus: value("ppdus"),
                mpdus: value("mpdus"),
                ..LinkCounts::default()
            }
        })
        .collect()
}

/// Stream octets that reached the applications in the window, by port.
struct Watch {
    from: Time,
    bulk: Vec<u64>,
    /// Of each flow.
    ports: Vec<Port>,
}

impl Observer for Watch {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let (Who::Flow(flow), Event::Delivered { bytes }) = (who, event) else { return };
        if now >= self.from {
            self.bulk[usize::from(self.ports[flow.index()].index())] += bytes;
        }
    }
}
