//! Random cells built in code, with flows over a wire and the air: each is refused with a reason, or runs to its
//! end and keeps every invariant. After each step of the time series the engine checks that idle time,
//! exchanges and collisions are all of the time, that no byte is lost without a reason, and that no
//! aggregate is ready in a cell where nobody has anything to send.

use std::num::NonZeroU8;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sojourn_core::{HostId, NoObserver, Rate, Span, SpecError, StreamAddress, Time};
use sojourn_host::apps::{PingConfig, UdpConfig};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::RateConfig;
use sojourn_scenario::{App, CarrierConfig, Checked, Flow, Host, Link, Scenario, Until};
use sojourn_sim::Engine;
use sojourn_wifi::RadioConfig;
use sojourn_wifi::mac::aggregation::Limits;
use sojourn_wifi::mac::edca::Parameters;
use sojourn_wifi::medium::{Config, LostBlockAck, Radio, Station};
use sojourn_wifi::ofdma::Ofdma;
use sojourn_wifi::phy::Mode;
use sojourn_wifi::queueing::{DriverConfig, FqConfig, Order, QueueConfig, QueueKind, Schedule};
use sojourn_wifi::rate::{Control, MinstrelConfig, Rates};

const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 1 };

/// Usual values, now and then replaced by zero, one or the largest.
fn odd(usual: std::ops::Range<u32>) -> impl Strategy<Value = u32> {
    prop_oneof![400 => usual, 1 => Just(0), 1 => Just(1), 1 => Just(u32::MAX)]
}

fn odd16(usual: std::ops::Range<u32>) -> impl Strategy<Value = u16> {
    odd(usual).prop_map(|number| u16::try_from(number).unwrap_or(u16::MAX))
}

fn odd8(usual: std::ops::Range<u32>) -> impl Strategy<Value = u8> {
    odd(usual).prop_map(|number| u8::try_from(number).unwrap_or(u8::MAX))
}

fn micros(usual: std::ops::Range<u32>) -> impl Strategy<Value = Span> {
    odd(usual).prop_map(|us| Span::from_micros(u64::from(us)))
}

fn mode() -> impl Strategy<Value = Mode> {
    let modes = [
        "dsss 1",
        "ofdm 6",
        "ofdm 54",
        "ht mcs 0 sgi",
        "ht mcs 7",
        "ht mcs 15 sgi",
        "he mcs 0",
        "he mcs 11",
        "he mcs 9 nss 2 width 80MHz",
        "he mcs 7 gi 3.2us",
    ];
    prop::sample::select(modes.map(|text| Mode::parse(text).expect("a mode")).to_vec())
}

fn discipline() -> impl Strategy<Value = Option<sojourn_qdisc::Config>> {
    let queues = [
        "pfifo limit 30",
        "fq_codel limit 60",
        "cake bandwidth 20mbit",
        "tbf rate 5mbit burst 10kb limit 100kb",
    ];
    let read = |text| sojourn_qdisc::Config::parse(text).expect("a discipline");
    prop::option::of(prop::sample::select(queues.map(read).to_vec()))
}

fn driver() -> impl Strategy<Value = DriverConfig> {
    let orders = vec![Order::RoundRobin, Order::OldestFirst, Order::LosesTurns];
    (odd(2..200), prop::sample::select(orders), discipline())
        .prop_map(|(limit, order, upper)| DriverConfig { limit, order, upper })
}

fn queueing() -> impl Strategy<Value = QueueConfig> {
    let schedules = vec![Schedule::RoundRobin, Schedule::PAPER, Schedule::LINUX];
    let managed = (
        prop::sample::select(schedules),
        odd(1..100),
        odd(10..9000),
        odd(100..3000),
        any::<bool>(),
    )
        .prop_map(|(schedule, flows, limit, quantum, is_linux)| {
            let usual =
                if is_linux { QueueConfig::mac80211() } else { QueueConfig::in_mac(schedule) };
            let queues = FqConfig { flows, limit, quantum, ..FqConfig::paper(schedule) };
            QueueConfig { kind: QueueKind::Managed(queues), ..usual }
        });
    prop_oneof![
        driver().prop_map(QueueConfig::from),
        discipline().prop_map(|upper| match upper {
            Some(upper) => QueueConfig::below(upper),
            None => QueueConfig::mac80211(),
        }),
        managed,
    ]
}

fn radio() -> impl Strategy<Value = Radio> {
    let error = prop_oneof![50 => Just(0.0), 30 => 0.0..0.7, 1 => Just(1.0), 1 => Just(f64::NAN)];
    (mode(), error, any::<bool>()).prop_map(|(mode, error, falls_back)| Radio {
        error,
        fallback: falls_back.then_some(mode),
        ..Radio::new(mode)
    })
}

fn station() -> impl Strategy<Value = Station> {
    let modes = (radio(), radio(), prop::bool::weighted(0.8));
    let weight = prop_oneof![3 => Just(Station::WEIGHT), 1 => 0..=u16::MAX];
    (modes, driver(), weight).prop_map(|((down, up, is_alike), queue, weight)| Station {
        down,
        up: if is_alike { down } else { up },
        queue,
        weight,
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    let usual = vec![Limits::HT, Limits::HE, Limits::NONE];
    let odd_ones = (odd(1..70_000), odd16(1..300), odd16(1..300), odd(0..9_000), micros(200..5485));
    prop_oneof![
        3 => prop::sample::select(usual),
        1 => odd_ones.prop_map(|(ampdu_octets, window, mpdus, amsdu_octets, ppdu_time)| {
            Limits { ampdu_octets, window, mpdus, amsdu_octets, ppdu_time }
        }),
    ]
}

fn access() -> impl Strategy<Value = [Parameters; 4]> {
    let window = |most: u32| (0..=most).prop_map(|bits| (1u16 << bits) - 1);
    let aifsn = prop_oneof![1 => 0u8..1, 60 => 1u8..16];
    let odd_one = (window(6), window(10), aifsn, micros(0..8000)).prop_map(
        |(cw_min, cw_max, aifsn, txop_limit)| Parameters {
            txop_limit,
            ..Parameters::new(cw_min, cw_max, aifsn)
        },
    );
    (prop::bool::weighted(0.7), odd_one).prop_map(|(is_usual, odd_one)| {
        let [bk, be, vi, vo] = Parameters::EDCA;
        if is_usual { [bk, be, vi, vo] } else { [bk, odd_one, vi, vo] }
    })
}

fn ofdma() -> impl Strategy<Value = Option<Ofdma>> {
    let words = [
        "on",
        "on uplink off",
        "on downlink off random_units 2",
        "on proportional-fair mixed-units in-turn",
        "on mu_rts on aggregated",
        "on stations 0 random_units 4",
        "on mu_edca_time 8192us mu_aifsn 7 gi-3.2us",
    ];
    let read = |text| Ofdma::parse_switched(text).expect("OFDMA");
    prop_oneof![2 => Just(None), 1 => prop::sample::select(words.map(read).to_vec())]
}

fn rates(station: u16) -> impl Strategy<Value = Option<Rates>> {
    let controls =
        vec![Control::Fixed, Control::Ideal, Control::Minstrel(MinstrelConfig::default())];
    let rates = (0.0..200.0, prop::sample::select(controls));
    prop::option::weighted(
        0.3,
        rates.prop_map(move |(metres, control)| Rates::at(station, metres, control)),
    )
}

fn cell() -> impl Strategy<Value = Config> {
    let stations = prop::collection::vec(station(), 0..5);
    // OFDMA needs stations of one width, which chance seldom gives.
    let uniform = (station(), 1usize..5).prop_map(|(station, count)| vec![station; count]);
    let stations = prop_oneof![stations, uniform];
    let protection = (odd(0..3000), any::<bool>(), any::<bool>(), any::<bool>());
    let parts = (limits(), queueing(), (access(), access()), ofdma(), (rates(0), rates(1)));
    (stations, parts, protection, odd8(1..12)).prop_map(
        |(stations, (limits, queue, access, ofdma, rates), protection, retries)| {
            let mut cell = Config::new(stations, limits, queue);
            (cell.access_point, cell.station) = access;
            (cell.retry_limit, cell.ofdma) = (NonZeroU8::new(retries), ofdma);
            cell.rates = [rates.0, rates.1].into_iter().flatten().collect();
            let (threshold, requests, cf_end, detects) = protection;
            cell.rts_threshold = threshold;
            cell.lost_block_ack =
                if requests { LostBlockAck::Request } else { LostBlockAck::Repeat };
            (cell.cf_end, cell.collisions_are_detected) = (cf_end, detects);
            cell
        },
    )
}

#[derive(Clone, Copy, Debug)]
struct Load {
    what: u32,
    station: u16,
    is_up: bool,
    dscp: u8,
    start: Span,
    stop: Span,
}

fn load() -> impl Strategy<Value = Load> {
    let dscps = vec![0, 8, 40, 46];
    (0u32..5, 0u16..4, any::<bool>(), prop::sample::select(dscps), 0u64..100, 100u64..300).prop_map(
        |(what, station, is_up, dscp, start, stop)| Load {
            what,
            station,
            is_up,
            dscp,
            start: Span::from_millis(start),
            stop: Span::from_millis(stop),
        },
    )
}

fn app(what: u32) -> App {
    let udp = |us, frame, datagrams| {
        let interval = Span::from_micros(us);
        App::Udp(UdpConfig { interval, frame, datagrams, header: 28 })
    };
    let bulk = |cca| {
        let cca = sojourn_cca::Config::parse(cca).expect("a controller");
        App::bulk(cca, Transport::default())
    };
    match what {
        0 => bulk("cubic"),
        1 => bulk("bbr3"),
        2 => udp(300, 1472, 1),
        3 => udp(20_000, 30_000, 25),
        _ => App::Ping(PingConfig { interval: Span::from_millis(10), size: 56 }),
    }
}

fn world(cell: Config, loads: &[Load]) -> Result<Checked, SpecError> {
    let stations = cell.stations.len() as u16;
    let names = (0..stations).map(|number| format!("sta{number}")).collect();
    let radio = RadioConfig::new("wifi", names, cell)?;
    let rate = RateConfig::fixed(Rate::from_bps(1_000_000_000)).expect("a positive rate");
    let queue = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
    let wire = |name| Link::new(name, queue.clone(), rate.clone(), Span::from_millis(3));
    let mut flows = Vec::new();
    for (number, load) in loads.iter().enumerate() {
        let station = load.station % stations;
        let down = [0, 2 + 2 * station];
        let up = [3 + 2 * station, 1];
        let (forward, reverse) = if load.is_up { (up, down) } else { (down, up) };
        let mut flow = Flow::new(&format!("flow {number}"), app(load.what), &forward, &reverse);
        let (server, host) = (HostId(0), HostId(1 + station));
        (flow.src, flow.dst) = if load.is_up { (host, server) } else { (server, host) };
        (flow.start, flow.stop, flow.dscp) = (load.start, Some(load.stop), load.dscp);
        flows.push(flow);
    }
    let names = (0..=stations).map(|number| Host { name: format!("host {number}") });
    Scenario {
        duration: Span::from_millis(500),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(10),
        hosts: names.collect(),
        links: vec![wire("down"), wire("up")],
        carriers: vec![CarrierConfig::from(radio)],
        changes: Vec::new(),
        flows,
    }
    .checked()
}

/// More events than any of these cells needs in half a second.
const STEPS: u32 = 1_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_cell_is_refused_with_a_reason_or_runs_to_its_end(
        cell in cell(),
        loads in prop::collection::vec(load(), 1..7),
    ) {
        let world = match world(cell, &loads) {
            Ok(world) => world,
            Err(reason) => {
                prop_assert!(!reason.to_string().is_empty());
                return Ok(());
            }
        };
        let mut nobody = NoObserver;
        let mut engine = Engine::new(&world, ADDRESS, &mut nobody);
        let mut steps = 0;
        while engine.step().map_err(|violation| TestCaseError::fail(violation.to_string()))? {
            steps += 1;
            prop_assert!(steps < STEPS, "{} after {STEPS} events", engine.now());
        }
        prop_assert_eq!(engine.now(), Time::ZERO + world.duration);
        let outcome = engine.outcome();
        let used = outcome.queue_details.iter().flatten().filter(|(name, _)| *name == "exchanges_us");
        // A frame on the air when the run ends may end later.
        let used: u64 = used.map(|(_, us)| us).sum();
        prop_assert!(used <= world.duration.as_micros() + 20_000, "{used} us of the air");
    }
}

#[test]
fn of_random_cells_most_are_sound_and_some_are_not() {
    let mut runner = TestRunner::deterministic();
    let is_sound = |_: u32| {
        let cell = cell().new_tree(&mut runner).expect("a cell").current();
        let load = load().new_tree(&mut runner).expect("a flow").current();
        world(cell, &[load]).is_ok()
    };
    let sound = (0..300).map(is_sound).filter(|is_sound| *is_sound).count();
    assert!((100..280).contains(&sound), "{sound} of 300");
}
