//! What changes in the world when a sender enters a phase of its congestion controller.

use std::collections::BTreeMap;

use sojourn_core::{
    Event, FlowId, Observer, PortId, Rate, Span, StreamAddress, Time, Who, is_phase,
};
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::{Config as Transport, SendBuffer};
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Change, Flow, Link, Scenario, Traffic, What, When};

use crate::two_hosts;

/// What the tests ask about, in order of time.
#[derive(Default)]
struct Log {
    phases: Vec<(Time, &'static str)>,
    /// When packets of each flow left its sender, and when they came out of the queue.
    sent: BTreeMap<u32, Vec<Time>>,
    arrived: Vec<(Time, Span)>,
    lost: Vec<Time>,
    keeps_all: bool,
    all: Vec<String>,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match (who, event) {
            (_, Event::Phase { to, .. }) => self.phases.push((now, to)),
            (Who::Flow(flow), Event::Sent { packet }) if packet.wire_len > 1_000 => {
                self.sent.entry(flow.0).or_default().push(now);
            }
            (Who::Flow(FlowId(0)), Event::Arrived { packet }) if packet.wire_len > 1_000 => {
                self.arrived.push((now, now.since(packet.sent)));
            }
            (_, Event::Dropped { .. }) => self.lost.push(now),
            _ => {}
        }
        if self.keeps_all {
            self.all.push(format!("{now} {who:?} {event:?}"));
        }
    }

    fn needs_order(&self) -> bool {
        true
    }
}

impl Log {
    /// When the sender entered `phase` for the n-th time.
    fn entry(&self, phase: &str, n: usize) -> Time {
        let mut before = "";
        let mut entries = self.phases.iter().filter(|(_, to)| {
            let enters = is_phase(to, phase) && !is_phase(before, phase);
            before = to;
            enters
        });
        entries.nth(n - 1).expect("it was entered").0
    }
}

fn bulk(cca: &str) -> App {
    let cca = sojourn_cca::Config::parse(cca).expect("a controller");
    App::Tcp { traffic: Traffic::Bulk(BulkConfig::default()), cca, transport: Transport::default() }
}

fn when(phase: &str, occurrence: u32, after_ms: u64) -> When {
    let after = Span::from_millis(after_ms);
    When { flow: FlowId(0), phase: phase.into(), occurrence, after }
}

/// Two flows over 50 Mbit/s, 20 ms and 400 packets of queue.
fn world(cca: &str, changes: Vec<Change>) -> Scenario {
    let link = |name: &str| {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 400").expect("a discipline");
        let rate = RateConfig::fixed(Rate::from_bps(50_000_000)).expect("a positive rate");
        Link::new(name, queue, rate, Span::from_millis(10))
    };
    Scenario {
        changes,
        ..two_hosts(
            Span::from_secs(12),
            vec![link("queue"), link("reverse")],
            vec![Flow::new("watched", bulk(cca), &[0], &[1])],
        )
    }
}

fn run(scenario: Scenario) -> Log {
    run_into(Log::default(), scenario)
}

/// Every event of a run.
fn events(scenario: Scenario) -> Vec<String> {
    run_into(Log { keeps_all: true, ..Log::default() }, scenario).all
}

fn run_into(mut log: Log, scenario: Scenario) -> Log {
    let scenario = scenario.checked().expect("a sound world");
    sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    log
}

fn between(times: impl IntoIterator<Item = Time>, from: Time, length: Span) -> usize {
    times.into_iter().filter(|at| *at >= from && *at < from + length).count()
}

const SECOND: Span = Span::from_secs(1);

#[test]
fn a_watched_sender_does_what_one_does_that_nobody_watches() {
    for (cca, phase) in [("cubic", "slow_start"), ("bbr3", "DRAIN")] {
        let never = Change { when: when(phase, 99, 0), what: What::Stop(FlowId(0)) };
        assert_eq!(events(world(cca, vec![never])), events(world(cca, Vec::new())), "{cca}");
    }
}

#[test]
fn a_link_is_slower_from_the_phase_on_and_not_before() {
    let slow = What::Rate(PortId(0), Rate::from_bps(10_000_000));
    let log = run(world("bbr3", vec![Change { when: when("DRAIN", 1, 0), what: slow }]));
    let at = log.entry("DRAIN", 1);
    let arrivals = || log.arrived.iter().map(|(at, _)| *at);
    // 50 Mbit/s are 4128 packets of 1514 bytes a second, 10 Mbit/s are 825.
    let per_100_ms = Span::from_millis(100);
    let before = between(arrivals(), at - Span::from_millis(50), Span::from_millis(50));
    // What left the queue before is still on the line for 10 ms.
    let after = between(arrivals(), at + Span::from_millis(20), per_100_ms);
    assert!((205..=207).contains(&before), "{before}");
    assert!((82..=83).contains(&after), "{after}");
    let later = between(arrivals(), at + SECOND * 9, SECOND);
    assert!((800..=826).contains(&later), "it stays so: {later}");
}

#[test]
fn a_change_comes_after_its_delay_at_the_occurrence_that_is_meant() {
    let change = Change {
        when: when("PROBE_BW:UP", 2, 30),
        what: What::Loss(PortId(0), LossConfig::parse("30%").expect("a loss")),
    };
    let log = run(world("bbr3", vec![change]));
    let at = log.entry("PROBE_BW:UP", 2) + Span::from_millis(30);
    let drops = |from: Time, to: Time| log.lost.iter().filter(|t| **t >= from && **t < to).count();
    let undisturbed = run(world("bbr3", Vec::new()));
    let before = undisturbed.lost.iter().filter(|t| **t < at).count();
    assert_eq!(drops(Time::ZERO, at), before, "nothing is lost on the medium before");
    assert!(drops(at, at + Span::from_millis(20)) > 10, "and every third packet after");
}

#[test]
fn a_longer_way_delays_and_a_shorter_one_lets_nothing_overtake() {
    let delays = [("DRAIN", 60), ("PROBE_RTT", 2)];
    let changes = delays.map(|(phase, ms)| Change {
        when: when(phase, 1, 0),
        what: What::Delay(PortId(0), Span::from_millis(ms)),
    });
    let log = run(world("bbr3", changes.into()));
    let (longer, shorter) = (log.entry("DRAIN", 1), log.entry("PROBE_RTT", 1));
    let least = |from: Time, to: Time| {
        let owd = log.arrived.iter().filter(|(at, _)| *at >= from && *at < to).map(|(_, owd)| *owd);
        owd.min().expect("something arrives").as_millis()
    };
    assert_eq!(least(Time::ZERO, longer), 10);
    assert_eq!(least(longer + Span::from_millis(100), shorter), 60);
    assert_eq!(least(shorter + SECOND, shorter + SECOND * 2), 2);
    let sent_at: Vec<Time> = log.arrived.iter().map(|(at, owd)| *at - *owd).collect();
    assert!(sent_at.is_sorted(), "they arrive in the order in which they were sent");
}

#[test]
fn an_application_pauses_slows_down_and_stops() {
    let changes = [
        (when("DRAIN", 1, 1_000), What::Pause(FlowId(0), SECOND)),
        (when("DRAIN", 1, 3_000), What::Write(FlowId(0), Rate::from_bps(8_000_000))),
        (when("DRAIN", 1, 5_000), What::Write(FlowId(0), Rate::UNLIMITED)),
        (when("DRAIN", 1, 7_000), What::Stop(FlowId(0))),
    ];
    let changes = changes.map(|(when, what)| Change { when, what });
    let mut scenario = world("bbr3", changes.into());
    // Without a limit nothing is written that does not leave, so the sender is as silent as its application.
    let App::Tcp { transport, .. } = &mut scenario.flows[0].app else { unreachable!() };
    transport.send_buffer = SendBuffer::UNLIMITED;
    let log = run(scenario);
    let drain = log.entry("DRAIN", 1);
    let sent = |second: u64| {
        let times = log.sent[&0].iter().copied();
        between(
            times,
            drain + SECOND * second + Span::from_micros(1),
            SECOND - Span::from_micros(1),
        )
    };
    assert!(sent(0) > 3_000, "{}", sent(0));
    assert_eq!(sent(1), 0, "it pauses");
    assert!(sent(2) > 2_000, "and is back at once: {}", sent(2));
    // 8 Mbit/s are 690 segments of 1448 bytes a second.
    assert!((680..=700).contains(&sent(4)), "{}", sent(4));
    assert!(sent(6) > 3_000, "{}", sent(6));
    assert_eq!((sent(7), sent(8)), (0, 0), "it has stopped");
}

#[test]
fn a_flow_starts_when_another_enters_a_phase() {
    let start = Change { when: when("PROBE_BW:CRUISE", 1, 500), what: What::Start(FlowId(1)) };
    let mut scenario = world("bbr3", vec![start]);
    scenario.flows.push(Flow::new("late", bulk("cubic"), &[0], &[1]));
    let log = run(scenario);
    let start = log.entry("PROBE_BW:CRUISE", 1) + Span::from_millis(500);
    // Its data leave after the round trip of the handshake.
    let first = log.sent[&1][0];
    assert!(first >= start + Span::from_millis(20), "{first} {start}");
    assert!(first < start + Span::from_millis(40), "{first} {start}");
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let slow = What::Rate(PortId(0), Rate::from_bps(1_000_000));
    let error = |change: Change| world("bbr3", vec![change]).checked().unwrap_err().to_string();
    let wrong = error(Change { when: when("PROBE_BW:CRUSE", 1, 0), what: slow.clone() });
    assert!(
        wrong.contains("did you mean 'PROBE_BW:CRUISE'") && wrong.contains("STARTUP"),
        "{wrong}"
    );
    let wrong = error(Change { when: when("DRAIN", 0, 0), what: slow.clone() });
    assert!(wrong.contains("occurrence is 0"), "{wrong}");
    let far = When { flow: FlowId(7), ..when("DRAIN", 1, 0) };
    assert!(error(Change { when: far, what: slow }).contains("flow 7 is not there"));
    let drain = || when("DRAIN", 1, 0);
    for (what, said) in [
        (What::Rate(PortId(5), Rate::from_bps(1)), "port 5 is no link"),
        (What::Rate(PortId(0), Rate::UNLIMITED), "unlimited"),
        (What::Rate(PortId(0), Rate::ZERO), "0"),
        (What::Start(FlowId(0)), "waits for itself"),
        (What::Pause(FlowId(0), Span::from_secs(100_000_000)), "is too long"),
        (What::Write(FlowId(0), Rate::ZERO), "0"),
        (What::Stop(FlowId(3)), "flow 3 is not there"),
    ] {
        let wrong = error(Change { when: drain(), what: what.clone() });
        assert!(wrong.contains(said), "{what:?}: {wrong}");
    }
}

/// A study names phases before any controller is built, so the lists must be complete.
#[test]
fn every_phase_that_a_controller_enters_is_in_its_list() {
    for kind in sojourn_cca::algorithms() {
        for ecn in [false, true] {
            let mut scenario = world(kind.name, Vec::new());
            let queue = if ecn { "dualpi2" } else { "pfifo limit 40" };
            scenario.links[0].queue = sojourn_qdisc::Config::parse(queue).expect("a discipline");
            let App::Tcp { cca, .. } = &scenario.flows[0].app else { panic!("it is TCP") };
            let listed = cca.phases();
            assert!(listed.len() >= 2, "{}", kind.name);
            let log = run(scenario);
            for (_, phase) in &log.phases {
                assert!(listed.contains(phase), "{} enters {phase}", kind.name);
            }
            assert!(!log.phases.is_empty(), "{} enters something", kind.name);
        }
    }
}
