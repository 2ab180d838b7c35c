//! Random worlds built in code: each is refused with a reason, or runs to its end, keeps every
//! invariant and does not stall. Some of their parts are as a crate outside would write them.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sojourn_core::{
    Bytes, Event, FlowId, Framing, HostId, NoObserver, Observer, PortId, Rate, Span, SpecError,
    StreamAddress, Time, Who,
};
use sojourn_host::apps::{
    ArrivalsConfig, BulkConfig, OnOffConfig, PageConfig, PingConfig, RequestsConfig, RpmConfig,
    SizesSpec, UdpConfig,
};
use sojourn_host::tcp::{Config as Transport, Reading, SendBuffer, Windows};
use sojourn_link::{
    HtbClass, JitterConfig, LossConfig, PolicerConfig, RateConfig, RateSpec, ReorderConfig, jitter,
    loss,
};
use sojourn_scenario::{
    App, CarrierConfig, Change, Flow, Host, Link, Scenario, Traffic, Until, What, When,
};
use sojourn_sim::{Engine, run};
use sojourn_wire::{Sharing, SwitchConfig};

use crate::{outside, windows};

const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 1 };

/// Zero, small, large and the largest values are frequent.
fn odd(usual: std::ops::Range<u64>) -> impl Strategy<Value = u64> {
    prop_oneof![
        250 => usual,
        1 => Just(0),
        1 => Just(1),
        1 => Just(u64::from(u32::MAX)),
        1 => Just(u64::MAX),
    ]
}

fn odd32(usual: std::ops::Range<u64>) -> impl Strategy<Value = u32> {
    odd(usual).prop_map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn micros(usual: std::ops::Range<u64>) -> impl Strategy<Value = Span> {
    odd(usual).prop_map(|us| Span::from_nanos(us.saturating_mul(1000)))
}

fn link(name: String) -> impl Strategy<Value = Link> {
    let queues = [
        "pfifo limit 5",
        "bfifo limit 9000",
        "codel",
        "fq_codel",
        "cake bandwidth 5mbit",
        "pie",
        "fq_pie",
        "dualpi2",
        "red limit 400000 min 30000 max 90000 avpkt 1000 ecn",
        "fq",
        "tbf rate 5mbit burst 10kb limit 100kb",
    ];
    let rates = [
        "64kbit",
        "1mbit",
        "50Mbps",
        "10Gbps overhead 20",
        "unlimited",
        "steps 10mbit 950ms 0 50ms",
        "htb rate 3mbit",
        "blockage mobility-and-blockages nooutages",
        "brownian",
    ];
    let losses =
        ["none", "random 2%", "gemodel 1% 10% 70% 0.1%", "periodic 50", "steps 0% 1s 9% 1s"];
    let jitters = ["none", "normal 1ms", "uniform 3ms", "steps 0ms 1s 20ms 1s"];
    let policers = ["none", "rate 8mbit burst 64kb"];
    let reorderings = ["none", "5% 20% gap 3"];
    (
        prop::sample::select(queues.to_vec()),
        rate(rates.map(read_rate).to_vec()),
        micros(0..20_000),
        loss(losses.map(read(LossConfig::parse)).to_vec()),
        loss(losses.map(read(LossConfig::parse)).to_vec()),
        jitter(jitters.map(read(JitterConfig::parse)).to_vec()),
        prop::sample::select(policers.map(read(PolicerConfig::parse)).to_vec()),
        prop::sample::select(reorderings.map(read(ReorderConfig::parse)).to_vec()),
    )
        .prop_map(move |(queue, rate, delay, entry_loss, loss, jitter, policer, reorder)| {
            let queue = sojourn_qdisc::Config::parse(queue).expect("a discipline");
            Link {
                entry_loss,
                loss,
                jitter,
                policer,
                reorder,
                ..Link::new(&name, queue, rate, delay)
            }
        })
}

fn read<T>(parse: fn(&str) -> Result<T, SpecError>) -> impl Fn(&str) -> T {
    move |text| parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn read_rate(text: &str) -> RateConfig {
    read(RateSpec::parse)(text).complete(None).expect("no file")
}

/// Now and then one that code alone can build, and that a scenario must refuse.
fn rate(good: Vec<RateConfig>) -> impl Strategy<Value = RateConfig> {
    let (burst, framing) = (Bytes::new(1600), Framing::on_ethernet(-65));
    let bad = vec![
        RateConfig::Fixed { rate: Rate::ZERO, framing: Framing::default() },
        RateConfig::Fixed { rate: Rate::from_bps(u64::MAX - 1), framing: Framing::default() },
        RateConfig::Fixed { rate: Rate::from_bps(1_000_000), framing },
        RateConfig::Htb(HtbClass { rate: Rate::ZERO, burst, overhead: 0 }),
    ];
    prop_oneof![250 => prop::sample::select(good), 1 => prop::sample::select(bad)]
}

/// Likewise.
fn loss(good: Vec<LossConfig>) -> impl Strategy<Value = LossConfig> {
    let bad = LossConfig::Periodic(loss::Periodic { n: 0 });
    prop_oneof![250 => prop::sample::select(good), 1 => Just(bad)]
}

/// Likewise.
fn jitter(good: Vec<JitterConfig>) -> impl Strategy<Value = JitterConfig> {
    let bad = JitterConfig::Normal(jitter::Normal { std: Span::from_secs(1_000_000) });
    prop_oneof![250 => prop::sample::select(good), 1 => Just(bad)]
}

fn transport() -> impl Strategy<Value = Transport> {
    let usual = Transport::default();
    let tuned = (usual.initial_receive_buffer, usual.most_receive_buffer);
    let buffer = prop_oneof![
        odd(3_000..100_000).prop_map(move |window| (Some(Windows::from(window)), None, tuned)),
        prop::collection::vec((3_000u64..100_000, 1u64..200), 1..4).prop_map(move |steps| (
            Some(windows(&steps)),
            None,
            tuned
        )),
        odd(3_000..100_000).prop_map(move |buffer| (None, Some(buffer), tuned)),
        (odd(3_000..100_000), odd(100_000..1_000_000)).prop_map(|tuned| (None, None, tuned)),
    ];
    (
        odd32(64..9000),
        odd32(20..80),
        odd32(1..50),
        buffer,
        prop_oneof![
            4 => odd(0..1_000_000).prop_map(SendBuffer::Bytes),
            1 => Just(SendBuffer::Auto),
        ],
        any::<bool>(),
        odd32(0..12),
        micros(0..10_000),
        micros(0..50_000),
    )
        .prop_map(
            |(mss, header, initial_cwnd, buffer, send_buffer, offload, log, tick, ack)| {
                let (receive_window, receive_buffer, tuned) = buffer;
                Transport {
                    mss,
                    header,
                    initial_cwnd,
                    receive_window,
                    receive_buffer,
                    initial_receive_buffer: tuned.0,
                    most_receive_buffer: tuned.1,
                    send_buffer,
                    offload,
                    tso_rtt_log: log,
                    tick,
                    delayed_ack: ack,
                    ..Transport::default()
                }
            },
        )
}

fn traffic() -> impl Strategy<Value = Traffic> {
    prop_oneof![
        4 => prop::option::of(odd(1..200_000))
            .prop_map(|bytes| Traffic::Bulk(BulkConfig { rate: None, bytes })),
        2 => (micros(1..300_000), micros(1..300_000), any::<bool>())
            .prop_map(|(on, off, random)| Traffic::OnOff(OnOffConfig { on, off, random })),
        1 => (
            prop_oneof![1 => Just(0.0), 1 => Just(-1.0), 1 => Just(f64::NAN), 60 => 0.1..50.0],
            odd32(1..40),
            prop::option::of(odd(1..20)),
        )
            .prop_map(|(per_second, most, transfers)| {
                let sizes = SizesSpec::parse("lognormal mean 20kB sigma 1.5 max 1MB");
                let sizes = sizes.and_then(|sizes| sizes.complete(None)).expect("sizes");
                Traffic::Arrivals(ArrivalsConfig { per_second, sizes, most, transfers })
            }),
        1 => (
            (1u64..100_000, 1u32..4, 1u32..4, 1u64..2_000),
            (micros(0..50_000), any::<bool>(), micros(0..20_000), prop_oneof![1 => Just(None), 3 => (1u32..30).prop_map(Some)]),
        )
            .prop_map(|((bytes, connections, streams, request_size), rest)| {
                let (think, random, server_delay, requests) = rest;
                Traffic::Requests(RequestsConfig {
                    bytes,
                    connections,
                    streams,
                    request_size,
                    think,
                    random,
                    server_delay,
                    requests,
                })
            }),
        1 => (100u64..200_000, 1u32..10, micros(0..100_000)).prop_map(|(bytes, requests, pause)| {
            Traffic::Page(PageConfig {
                bytes,
                requests,
                connections: 4,
                request_size: 300,
                lookup: true,
                pause,
                pages: Some(7),
            })
        }),
        1 => (10u64..100, 1u32..4, 0.0..1.0, any::<bool>()).prop_map(
            |(ms, initial, tolerance, tls)| {
                let usual = RpmConfig::default();
                let interval = Span::from_millis(ms);
                Traffic::Rpm(RpmConfig { interval, initial, tolerance, tls, ..usual })
            }
        ),
    ]
}

fn app() -> impl Strategy<Value = App> {
    let ccas = [
        "reno",
        "cubic",
        "cubic-linux",
        "bbr",
        "bbr2",
        "bbr3",
        "bbr3-linux",
        "dctcp",
        "prague",
        "prague-linux",
        "prague-udp",
    ];
    let tcp = (traffic().boxed(), prop::sample::select(ccas.to_vec()), transport().boxed());
    prop_oneof![
        4 => tcp.prop_map(|(traffic, cca, transport)| {
            let cca = sojourn_cca::Config::parse(cca).expect("a controller");
            App::Tcp { traffic, cca, transport }
        }),
        1 => (micros(100..100_000), odd(0..1472))
            .prop_map(|(interval, size)| App::Ping(PingConfig { interval, size })),
        1 => (micros(100..50_000), odd32(1..60_000), odd32(1..60), odd32(20..60)).prop_map(
            |(interval, frame, datagrams, header)| {
                App::Udp(UdpConfig { interval, frame, datagrams, header })
            }
        ),
        1 => prop_oneof![1 => Just(0), 9 => 100u64..50_000].prop_map(|us| outside::ask(Span::from_micros(us))),
    ]
}

/// Rates, often none, and for how long.
fn reading() -> impl Strategy<Value = Reading> {
    let rate = prop_oneof![1 => Just(0), 1 => 0u64..20_000_000].prop_map(Rate::from_bps);
    let step = (rate, 1u64..100).prop_map(|(rate, ms)| (rate, Span::from_millis(ms)));
    (prop::collection::vec(step, 1..4), any::<bool>())
        .prop_map(|(steps, wraps)| Reading::new(steps, wraps).expect("steps"))
}

fn has_reader(app: &App) -> bool {
    matches!(app, App::Tcp { traffic: Traffic::Bulk(_) | Traffic::OnOff(_), .. })
}

/// Something happens when a flow enters a phase, of its own control's by number.
fn change() -> impl Strategy<Value = (Change, usize)> {
    let flow = || prop_oneof![60 => 0u32..3, 1 => 3u32..5].prop_map(FlowId);
    let rate = || prop_oneof![20 => 100_000u64..20_000_000, 1 => Just(0)].prop_map(Rate::from_bps);
    let port = || prop_oneof![60 => 0u16..3, 1 => 3u16..9].prop_map(PortId);
    let loss = read(LossConfig::parse);
    let what = prop_oneof![
        (port(), rate()).prop_map(|(port, rate)| What::Rate(port, rate)),
        (port(), prop::sample::select(vec![loss("0%"), loss("5%"), loss("100%")]))
            .prop_map(|(port, loss)| What::Loss(port, loss)),
        (port(), micros(0..100_000)).prop_map(|(port, delay)| What::Delay(port, delay)),
        flow().prop_map(What::Start),
        flow().prop_map(What::Stop),
        (flow(), micros(0..200_000)).prop_map(|(flow, length)| What::Pause(flow, length)),
        (flow(), rate()).prop_map(|(flow, rate)| What::Write(flow, rate)),
    ];
    let occurrence = prop_oneof![20 => 1u32..4, 1 => Just(0)];
    (flow(), 0usize..20, occurrence, micros(0..100_000), what).prop_map(
        |(flow, number, occurrence, after, what)| {
            let when = When { flow, phase: "?".into(), occurrence, after };
            (Change { when, what }, number)
        },
    )
}

/// Leaves out the changes that a scenario would refuse, so that most worlds with changes are sound.
fn with_sound(mut world: Scenario, changes: Vec<(Change, usize)>) -> Scenario {
    for (mut change, number) in changes {
        let flow = world.flows.get(change.when.flow.0 as usize);
        let phases = match flow.map(|flow| &flow.app) {
            Some(App::Tcp { cca, .. }) => cca.phases(),
            _ => Vec::new(),
        };
        if let Some(phase) = phases.get(number % phases.len().max(1)) {
            change.when.phase = (*phase).into();
        }
        let is_sound = world.check_change(&change).is_ok();
        world.changes.extend(is_sound.then_some(change));
    }
    world
}

/// A world in which things change as its senders enter phases.
fn changing_world() -> impl Strategy<Value = Scenario> {
    (world().boxed(), prop::collection::vec(change(), 1..12))
        .prop_map(|(world, changes)| with_sound(world, changes))
}

fn flow(number: usize) -> impl Strategy<Value = Flow> {
    let route = || prop::collection::vec(prop_oneof![60 => 0u16..6, 1 => 6u16..9], 0..4);
    (
        app().boxed(),
        route(),
        route(),
        (micros(0..20_000), micros(0..20_000)),
        (micros(0..500_000), micros(0..100_000), prop::option::of(micros(1..900_000))),
        prop_oneof![50 => 0u8..64, 1 => 64u8..],
        prop_oneof![50 => 0u16..3, 1 => 3u16..9],
        prop_oneof![3 => Just(None), 1 => reading().prop_map(Some)],
    )
        .prop_map(move |(app, forward, reverse, delays, times, dscp, dst, reads)| Flow {
            // Only an application with a connection of its own has a reader.
            reads: reads.filter(|_| has_reader(&app)),
            forward_delay: delays.0,
            reverse_delay: delays.1,
            start: times.0,
            start_jitter: times.1,
            stop: times.2,
            dscp,
            dst: HostId(dst),
            ..Flow::new(&format!("flow {number}"), app, &forward, &reverse)
        })
}

fn world() -> impl Strategy<Value = Scenario> {
    let links = (link("a".into()).boxed(), link("b".into()).boxed(), link("c".into()).boxed());
    let links = links.prop_map(<[Link; 3]>::from).boxed();
    let switch =
        (link("s1".into()).boxed(), link("s2".into()).boxed(), odd(2_000..200_000), 0.01..130.0)
            .prop_map(|(a, b, buffer, alpha)| {
                let sharing = Sharing { buffer: Bytes::new(buffer), alpha };
                SwitchConfig::new(vec![a, b], sharing).ok()
            });
    // Mostly a sound one or none, so that many worlds are sound.
    let tube = prop_oneof![
        9 => link("tube".into()).prop_map(|link| link.check().is_ok().then_some(link)),
        1 => link("tube".into()).prop_map(Some),
    ];
    let flows = (flow(0).boxed(), flow(1).boxed(), flow(2).boxed());
    let flows = flows.prop_map(<[Flow; 3]>::from).boxed();
    let until = prop_oneof![3 => Just(Until::Duration), 1 => Just(Until::TransfersDone)];
    let duration = (micros(200_000..1_000_000), until);
    (links, (switch, tube), flows, duration, micros(0..200_000), micros(10_000..200_000)).prop_map(
        |(links, (switch, tube), flows, (duration, until), warmup, step)| Scenario {
            duration,
            until,
            warmup,
            step,
            hosts: ["x", "y", "z"].map(|name| Host { name: name.into() }).into(),
            links: links.into(),
            carriers: switch
                .into_iter()
                .map(CarrierConfig::Switch)
                .chain(tube.map(outside::tube))
                .collect(),
            flows: flows.into(),
            changes: Vec::new(),
        },
    )
}

/// A run with the longest duration or the highest rates has shown enough after this many steps.
const STEPS: u32 = 100_000;

/// Whether the run comes to its end in this many steps.
fn ends(engine: &mut Engine<'_, NoObserver>) -> Result<bool, String> {
    for _ in 0..STEPS {
        if !engine.step().map_err(|violation| violation.to_string())? {
            return Ok(true);
        }
    }
    Ok(false)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_world_is_refused_with_a_reason_or_runs_to_its_end(world in world()) {
        let end = Time::ZERO + world.duration;
        match world.checked() {
            Err(reason) => prop_assert!(!reason.to_string().is_empty()),
            Ok(world) => {
                let mut nobody = NoObserver;
                let mut engine = Engine::new(&world, ADDRESS, &mut nobody);
                let before = engine.now();
                let is_over = ends(&mut engine).map_err(TestCaseError::fail)?;
                prop_assert!(engine.now() > before && engine.now() <= end);
                prop_assert!(engine.end() <= end);
                prop_assert!(!is_over || engine.now() == engine.end());
            }
        }
    }

    #[test]
    fn a_world_that_changes_runs_to_its_end_too(world in changing_world()) {
        let end = Time::ZERO + world.duration;
        let Ok(world) = world.checked() else { return Ok(()) };
        let mut nobody = NoObserver;
        let mut engine = Engine::new(&world, ADDRESS, &mut nobody);
        let is_over = ends(&mut engine).map_err(TestCaseError::fail)?;
        prop_assert!(engine.now() <= end && engine.end() <= end);
        prop_assert!(!is_over || engine.now() == engine.end());
    }

    /// Inspecting it changes nothing.
    #[test]
    fn a_run_in_pieces_is_the_run_in_one(world in world(), pieces in 1u64..20) {
        let Ok(world) = world.checked() else { return Ok(()) };
        let mut nobody = NoObserver;
        prop_assume!(ends(&mut Engine::new(&world, ADDRESS, &mut nobody)).unwrap_or(false));
        let whole = run(&world, ADDRESS, &mut NoObserver);
        let whole = whole.map_err(|v| TestCaseError::fail(v.to_string()))?;
        let mut engine = Engine::new(&world, ADDRESS, &mut nobody);
        for piece in 1..=pieces {
            let until = Time::ZERO + world.duration * piece / pieces;
            engine.run_until(until).map_err(|v| TestCaseError::fail(v.to_string()))?;
            prop_assert!(engine.now() >= until.min(engine.end()));
        }
        while engine.step().map_err(|v| TestCaseError::fail(v.to_string()))? {}
        prop_assert_eq!(format!("{:?}", engine.outcome()), format!("{whole:?}"));
    }
}

#[test]
fn of_random_worlds_many_are_sound_and_many_are_not() {
    let mut runner = TestRunner::deterministic();
    let is_sound = |_: u32| {
        let tree = world().new_tree(&mut runner).expect("a world");
        tree.current().checked().is_ok()
    };
    let sound = (0..300).map(is_sound).filter(|is_sound| *is_sound).count();
    assert!((60..240).contains(&sound), "{sound} of 300");
}

#[test]
fn of_worlds_that_change_many_are_sound() {
    let mut runner = TestRunner::deterministic();
    let is_sound = |_: u32| {
        let world = changing_world().new_tree(&mut runner).expect("a world").current();
        !world.changes.is_empty() && world.checked().is_ok()
    };
    let sound = (0..300).map(is_sound).filter(|is_sound| *is_sound).count();
    assert!(sound > 20, "{sound} of 300");
}

/// Worlds that would hang or panic if nothing refused them.
#[test]
fn known_bad_values_are_refused() {
    let rate = RateConfig::fixed(Rate::from_bps(10_000_000)).expect("a positive rate");
    let queue = sojourn_qdisc::Config::parse("pfifo limit 50").expect("a discipline");
    let world = |app| Scenario {
        duration: Span::from_secs(1),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: ["x", "y"].map(|name| Host { name: name.into() }).into(),
        links: vec![Link::new("a", queue.clone(), rate.clone(), Span::ZERO)],
        carriers: Vec::new(),
        changes: Vec::new(),
        flows: vec![Flow::new("flow", app, &[0], &[0])],
    };
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    let udp = UdpConfig { interval: Span::from_millis(1), frame: 1000, datagrams: 1, header: 28 };
    for (app, named) in [
        (App::Ping(PingConfig { interval: Span::ZERO, size: 56 }), "interval"),
        (App::Udp(UdpConfig { datagrams: 0, ..udp }), "datagrams"),
        (App::Udp(UdpConfig { interval: Span::ZERO, ..udp }), "interval"),
        (App::bulk(cca, Transport { mss: 0, ..Transport::default() }), "mss"),
    ] {
        let error = world(app).checked().expect_err(named).to_string();
        assert!(error.contains("flow 'flow'") && error.contains(named), "{error}");
    }
    let mut lost = world(App::Udp(udp));
    lost.flows[0].forward = vec![PortId(1)];
    assert!(lost.checked().is_err());
}

/// Every event, in words.
#[derive(Default)]
struct Story(Vec<String>);

impl Observer for Story {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        self.0.push(format!("{now} {who:?} {event:?}"));
    }
}

/// Where no window limits, BBR-n+ is BBRv3: every event of a run is the same, whatever is lost or marked.
#[test]
fn without_a_window_that_limits_bbr_n_plus_is_bbr3_byte_for_byte() {
    let tell = |cca: &str, queue: &str, loss: &str| {
        let rate = RateConfig::fixed(Rate::from_bps(20_000_000)).expect("a positive rate");
        let queue = sojourn_qdisc::Config::parse(queue).expect("a discipline");
        let link = |name| Link {
            loss: LossConfig::parse(loss).expect("a share"),
            ..Link::new(name, queue.clone(), rate.clone(), Span::from_millis(15))
        };
        let unlimited = Transport {
            receive_window: Some((1 << 40).into()),
            send_buffer: SendBuffer::UNLIMITED,
            ..Transport::default()
        };
        let cca = sojourn_cca::Config::parse(cca).expect("a controller");
        let app = || App::bulk(cca.clone(), unlimited.clone());
        let world = Scenario {
            duration: Span::from_secs(15),
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["x", "y"].map(|name| Host { name: name.into() }).into(),
            links: vec![link("there"), link("back")],
            carriers: Vec::new(),
            changes: Vec::new(),
            flows: vec![
                Flow::new("first", app(), &[0], &[1]),
                Flow { start: Span::from_secs(4), ..Flow::new("second", app(), &[0], &[1]) },
            ],
        };
        let mut story = Story::default();
        run(&world.checked().expect("a sound world"), ADDRESS, &mut story).expect("a good run");
        story.0
    };
    for queue in ["pfifo limit 40", "fq_codel", "codel", "dualpi2"] {
        for loss in ["0%", "0.5%", "4%"] {
            let [n_plus, bbr3] = ["bbr-n+", "bbr3"].map(|cca| tell(cca, queue, loss));
            let differs = n_plus.iter().zip(&bbr3).find(|(a, b)| a != b);
            assert_eq!((differs, n_plus.len()), (None, bbr3.len()), "{queue}, {loss}");
        }
    }
}

/// An application whose ends are behind boxes, over a carrier behind a box, beside built-in parts.
#[test]
fn parts_from_outside_live_in_the_same_world_twice() {
    let rate = RateConfig::fixed(Rate::from_bps(5_000_000)).expect("a positive rate");
    let queue = sojourn_qdisc::Config::parse("fq_codel").expect("a discipline");
    let link = |name| Link::new(name, queue.clone(), rate.clone(), Span::from_millis(5));
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    let world = Scenario {
        duration: Span::from_secs(2),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: ["x", "y"].map(|name| Host { name: name.into() }).into(),
        links: vec![link("there"), link("back")],
        carriers: vec![outside::tube(link("tube"))],
        changes: Vec::new(),
        flows: vec![
            Flow::new("asks", outside::ask(Span::from_millis(3)), &[0, 2], &[1]),
            Flow::new("bulk", App::bulk(cca, Transport::default()), &[0, 2], &[1]),
        ],
    };
    let world = world.checked().expect("a sound world");
    let tell = || {
        let mut story = Story::default();
        run(&world, ADDRESS, &mut story).expect("invariants hold");
        story.0
    };
    let (first, second) = (tell(), tell());
    let answered = first.iter().filter(|event| event.contains("Ping")).count();
    assert!(answered > 500, "{answered} of 667");
    let differs = first.iter().zip(&second).find(|(a, b)| a != b);
    assert_eq!((differs, first.len()), (None, second.len()));
}
