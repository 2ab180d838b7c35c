use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{Body, Direction, Ecn, FlowId, HostId, NoObserver, Packet};
use sojourn_wire::{CarrierModel, suite};

use super::*;
use crate::mac::aggregation::Limits;
use crate::medium::{Config, LostBlockAck, Radio as Link, Station};
use crate::phy::Mode;
use crate::queueing::{DriverConfig, Order, QueueConfig, Schedule};

const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 1 };
const BUFFER: DriverConfig = DriverConfig { limit: 40, order: Order::RoundRobin, upper: None };

fn radio(modes: &[&str], error: f64, queue: QueueConfig, limits: Limits) -> RadioConfig {
    let station = |mode: &&str| {
        let link = Link { error, ..Link::new(Mode::parse(mode).expect("a mode")) };
        Station { down: link, up: link, queue: BUFFER, weight: Station::WEIGHT }
    };
    let mut cell = Config::new(modes.iter().map(station).collect(), limits, queue);
    cell.lost_block_ack = LostBlockAck::Request;
    let names = (0..modes.len()).map(|number| alloc::format!("sta{number}")).collect();
    RadioConfig::new("wifi", names, cell).expect("a cell")
}

fn queues() -> [QueueConfig; 6] {
    let below = |text| QueueConfig::below(sojourn_qdisc::Config::parse(text).expect("a queue"));
    [
        BUFFER.into(),
        below("pfifo limit 60"),
        below("cake bandwidth 30mbit"),
        QueueConfig::in_mac(Schedule::RoundRobin),
        QueueConfig::in_mac(Schedule::PAPER),
        QueueConfig::mac80211(),
    ]
}

#[test]
fn a_radio_is_a_carrier() {
    let ports: Vec<PortId> = (4..10).map(PortId).collect();
    for queue in queues() {
        for (error, limits) in [(0.0, Limits::HT), (0.3, Limits::HT), (0.6, Limits::NONE)] {
            let modes = ["ht mcs 15 sgi", "ht mcs 7", "ht mcs 0"];
            let config = radio(&modes, error, queue.clone(), limits);
            suite::check(&|| CarrierModel::build(&config, PortId(4), ADDRESS), &ports);
        }
    }
}

#[test]
fn a_packet_of_several_segments_is_sent_as_so_many() {
    let config = radio(&["ht mcs 7"], 0.0, BUFFER.into(), Limits::HT);
    let mut radio: Radio<Packet> = config.build(PortId(0), ADDRESS);
    radio.offer(Time::ZERO, PortId(0), packet(4), &mut NoObserver);
    let (arrived, _) = run(&mut radio);
    assert_eq!((arrived, radio.counts(PortId(0)).mpdus), (4, 4));
    assert_eq!(radio.books(PortId(0)).offered, u64::from(packet(4).wire_len));
}

fn packet(segments: u16) -> Packet {
    Packet {
        flow: FlowId(0),
        connection: 0,
        direction: Direction::Forward,
        ecn: Ecn::NotEct,
        dscp: 0,
        segments,
        wire_len: 14 + u32::from(segments) * 1500,
        hop: 0,
        src: HostId(0),
        dst: HostId(1),
        sent: Time::ZERO,
        body: Body::Datagram { number: 0, frame: 0, last: true },
    }
}

/// Until nobody has anything to send: how many packets came out, and when that was.
fn run(radio: &mut Radio<Packet>) -> (u32, Time) {
    let (mut arrived, mut now) = (0, Time::ZERO);
    while !radio.next_wake().is_never() {
        now = radio.next_wake();
        radio.on_wake(now, &mut NoObserver);
        while radio.poll_deliver(now).is_some() {
            arrived += 1;
        }
    }
    (arrived, now)
}

/// Ten stations send frames of equal length, so a collision of two keeps the medium busy once and is counted for both.
#[test]
fn the_utilisation_of_a_port_counts_its_frames_that_collide() {
    let config = radio(&["ofdm 6"; 10], 0.0, BUFFER.into(), Limits::NONE);
    let mut radio: Radio<Packet> = config.build(PortId(0), ADDRESS);
    let up = || (0..10).map(|station| PortId(2 * station + 1));
    for _ in 0..20 {
        up().for_each(|port| radio.offer(Time::ZERO, port, packet(1), &mut NoObserver));
    }
    let (_, now) = run(&mut radio);
    let (air, whole) = (radio.air(), now.since(Time::ZERO).as_secs_f64());
    let utilisation = up().map(|port| {
        let sample = radio.sample(now, port);
        sample.medium_bytes as f64 / sample.capacity_bytes.expect("a limit")
    });
    let utilisation: f64 = utilisation.sum();
    let part = |span: Span| span.as_secs_f64() / whole;
    let (exchanges, collisions) = (part(air.exchanges), part(air.collisions));
    assert!(collisions > 0.1, "{air:?}");
    let least = exchanges + 2.0 * collisions - 0.001;
    assert!((least..exchanges + 4.0 * collisions).contains(&utilisation), "{utilisation} {air:?}");
    let of = |name: &str| radio.details(PortId(1)).iter().find(|of| of.0 == name).map(|of| of.1);
    let counts = radio.counts(PortId(1));
    assert_eq!(of("collisions_us"), Some(counts.collisions.as_micros()));
    assert_eq!(of("cell_idle_us"), Some(air.idle.as_micros()));
    assert_eq!(of("cell_exchanges_us"), Some(air.exchanges.as_micros()));
    assert_eq!(of("cell_collisions_us"), Some(air.collisions.as_micros()));
}

#[test]
fn two_radios_are_written_alike_only_if_they_are() {
    let plain = radio(&["ht mcs 7"], 0.0, BUFFER.into(), Limits::HT);
    let others = [
        radio(&["ht mcs 7", "ht mcs 7"], 0.0, BUFFER.into(), Limits::HT),
        radio(&["ht mcs 7 sgi"], 0.0, BUFFER.into(), Limits::HT),
        radio(&["ht mcs 7"], 0.1, BUFFER.into(), Limits::HT),
        radio(&["ht mcs 7"], 0.0, QueueConfig::mac80211(), Limits::HT),
        radio(&["ht mcs 7"], 0.0, QueueConfig::in_mac(Schedule::PAPER), Limits::HT),
        radio(&["ht mcs 7"], 0.0, BUFFER.into(), Limits::NONE),
    ];
    let mut texts: Vec<String> = others.iter().map(CarrierModel::canonical).collect();
    texts.push(plain.canonical());
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), 7, "{texts:#?}");
    assert_eq!(plain.canonical(), plain.clone().canonical());
}

#[test]
fn names_that_do_not_fit_the_stations_are_refused() {
    let cell = radio(&["ht mcs 7", "ht mcs 7"], 0.0, BUFFER.into(), Limits::HT).cell().clone();
    let new = |names: &[&str]| {
        RadioConfig::new("wifi", names.iter().map(|name| (*name).into()).collect(), cell.clone())
    };
    assert!(new(&["a", "b"]).is_ok());
    assert!(new(&["a"]).unwrap_err().problem().contains("1 names for 2 stations"));
    assert!(new(&["a", "a"]).unwrap_err().problem().contains("'a'"));
}
