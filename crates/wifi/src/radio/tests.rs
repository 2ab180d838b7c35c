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
    let wire_len = 14 + 4 * 1500;
    let packet = Packet {
        flow: FlowId(0),
        connection: 0,
        direction: Direction::Forward,
        ecn: Ecn::NotEct,
        dscp: 0,
        segments: 4,
        wire_len,
        hop: 0,
        src: HostId(0),
        dst: HostId(1),
        sent: Time::ZERO,
        body: Body::Datagram { number: 0, frame: 0, last: true },
    };
    radio.offer(Time::ZERO, PortId(0), packet, &mut NoObserver);
    let mut arrived = 0;
    while !radio.next_wake().is_never() {
        let now = radio.next_wake();
        radio.on_wake(now, &mut NoObserver);
        while radio.poll_deliver(now).is_some() {
            arrived += 1;
        }
    }
    assert_eq!((arrived, radio.counts(PortId(0)).mpdus), (4, 4));
    assert_eq!(radio.books(PortId(0)).offered, u64::from(wire_len));
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
