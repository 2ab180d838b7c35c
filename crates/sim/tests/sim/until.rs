//! Runs that last until their transfers are done.

use sojourn_core::{Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::apps::{ArrivalsConfig, BulkConfig, SizesSpec};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::RateConfig;
use sojourn_scenario::{App, Flow, Link, Scenario, Traffic, Until};
use sojourn_sim::Outcome;

use crate::two_hosts;

const DURATION: Span = Span::from_secs(20);

/// Every event with its time, and when transfers came and ended.
#[derive(Default)]
struct Log {
    events: Vec<(Time, String)>,
    opened: usize,
    completed: Vec<Time>,
    delivered: u64,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match event {
            Event::Opened { .. } | Event::Refused { .. } => self.opened += 1,
            Event::Completed { .. } => self.completed.push(now),
            Event::Delivered { bytes } => self.delivered += bytes,
            // Of a run that ends elsewhere there is one sample more.
            Event::FlowSample(_) | Event::QueueSample(_) => return,
            _ => {}
        }
        self.events.push((now, format!("{who:?} {event:?}")));
    }

    fn needs_order(&self) -> bool {
        true
    }
}

fn tcp(traffic: Traffic) -> App {
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    App::Tcp { traffic, cca, transport: Transport::default() }
}

fn bulk(bytes: Option<u64>) -> App {
    tcp(Traffic::Bulk(BulkConfig { rate: None, bytes }))
}

fn arrivals(transfers: Option<u64>, most: u32) -> App {
    let sizes = SizesSpec::parse("60kB").and_then(|sizes| sizes.complete(None)).expect("a size");
    tcp(Traffic::Arrivals(ArrivalsConfig { per_second: 20.0, sizes, most, transfers }))
}

fn scenario(until: Until, flows: Vec<Flow>) -> Scenario {
    let link = |name: &str| {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 100").expect("a discipline");
        let rate = RateConfig::fixed(Rate::from_bps(20_000_000)).expect("a positive rate");
        Link::new(name, queue, rate, Span::from_millis(10))
    };
    Scenario { until, ..two_hosts(DURATION, vec![link("queue"), link("reverse")], flows) }
}

fn flow(name: &str, app: App) -> Flow {
    Flow::new(name, app, &[0], &[1])
}

fn run(until: Until, flows: Vec<Flow>) -> (Log, Outcome) {
    let scenario = scenario(until, flows).checked().expect("a sound world");
    let mut log = Log::default();
    let outcome = sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    (log, outcome)
}

#[test]
fn a_run_ends_with_its_last_transfer_and_is_the_longer_run_up_to_there() {
    let flows = || {
        vec![
            flow("short", bulk(Some(500_000))),
            flow("endless", bulk(None)),
            Flow { start: Span::from_millis(300), ..flow("long", bulk(Some(2_000_000))) },
            flow("web", arrivals(Some(12), 1000)),
        ]
    };
    let (log, outcome) = run(Until::TransfersDone, flows());
    assert_eq!((log.opened, log.completed.len()), (12, 14));
    assert_eq!(log.completed.last(), Some(&outcome.end));
    assert!(outcome.end > Time::ZERO + Span::from_secs(1), "{}", outcome.end);
    assert!(outcome.end < Time::ZERO + DURATION / 2, "{}", outcome.end);

    let (longer, _) = run(Until::Duration, flows());
    let up_to_there: Vec<_> =
        longer.events.iter().take_while(|(at, _)| *at <= outcome.end).collect();
    assert!(log.events.iter().eq(up_to_there), "the same packets at the same times");
}

#[test]
fn a_transfer_that_never_ends_keeps_the_run_going_to_its_duration() {
    // Its application stops long before it has written all.
    for rate in [Some(Rate::from_bps(1_000_000)), None] {
        let cut = tcp(Traffic::Bulk(BulkConfig { rate, bytes: Some(100_000_000) }));
        let stops = Flow { stop: Some(Span::from_secs(1)), ..flow("stops", cut) };
        let flows = vec![flow("ends", bulk(Some(100_000))), stops];
        let (log, outcome) = run(Until::TransfersDone, flows);
        assert_eq!((log.completed.len(), outcome.end), (1, Time::ZERO + DURATION), "{rate:?}");
    }
}

/// The connection stands after 20 ms.
#[test]
fn what_a_transfer_has_written_before_its_stop_is_delivered() {
    let until = |bytes, ms| {
        let stop = Some(Span::from_millis(ms));
        run(Until::Duration, vec![Flow { stop, ..flow("one", bulk(Some(bytes))) }]).0
    };
    let nothing = until(20_000, 10);
    assert_eq!((nothing.delivered, nothing.completed.len()), (0, 0));
    let all = until(20_000, 21);
    assert_eq!((all.delivered, all.completed.len()), (20_000, 1), "it fits the send buffer");
    assert!(all.completed[0] > Time::ZERO + Span::from_millis(40));
    let part = until(100_000_000, 1_000);
    // In a second 2.4 MB leave, and a queue and a send buffer are full.
    assert!((2_200_000..4_000_000).contains(&part.delivered), "{}", part.delivered);
    assert_eq!(part.completed.len(), 0);
}

#[test]
fn arrivals_that_stop_are_done_when_the_last_one_is() {
    let stop = Span::from_millis(700);
    let (log, outcome) = run(
        Until::TransfersDone,
        vec![Flow { stop: Some(stop), ..flow("web", arrivals(None, 1000)) }],
    );
    assert!(log.opened > 5, "{} came", log.opened);
    assert_eq!(log.completed.len(), log.opened);
    // Nothing is left to wait for when the last of them is done, were it before the stop.
    assert_eq!(log.completed.iter().max(), Some(&outcome.end));
}

#[test]
fn a_transfer_that_is_refused_is_one_of_those_that_came() {
    let (log, outcome) = run(Until::TransfersDone, vec![flow("web", arrivals(Some(30), 1))]);
    assert_eq!(log.opened, 30);
    assert!(log.completed.len() < 30, "{} were refused", 30 - log.completed.len());
    assert!(outcome.end < Time::ZERO + DURATION);
}

#[test]
fn nothing_to_wait_for_is_refused_and_so_is_what_never_ends() {
    let refused = |flows| {
        let refused = scenario(Until::TransfersDone, flows).checked();
        refused.expect_err("it makes no sense").to_string()
    };
    let nothing = refused(vec![flow("endless", bulk(None))]);
    assert!(nothing.starts_with("no flow has a transfer that could be done"), "{nothing}");
    let for_ever = refused(vec![flow("one", bulk(Some(1))), flow("web", arrivals(None, 10))]);
    assert!(for_ever.starts_with("the transfers of flow 'web' come for as long"), "{for_ever}");
    let mut late = flow("web", arrivals(None, 10));
    late.stop = Some(DURATION);
    assert!(refused(vec![late]).contains("flow 'web'"));
}
