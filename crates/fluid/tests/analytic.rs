//! Equilibria that follow on paper, and what a run must never do.

mod collect;
mod path;

use proptest::prelude::*;
use sojourn_core::{Rate, Span};
use sojourn_fluid::Options;
use sojourn_host::apps::UdpConfig;
use sojourn_link::{RateConfig, RateSpec, Serving, Step, Trace};
use sojourn_metrics::RunMetrics;
use sojourn_qdisc::Config as Queue;
use sojourn_scenario::{App, Checked, Host};

use path::scenario;

/// Bytes of a packet on the wire.
const PACKET: f64 = 1514.0;

fn run(scenario: &Checked) -> RunMetrics {
    collect::run(scenario, 1, &Options::default()).0
}

/// Mean queue in packets, of the link there.
fn queue(run: &RunMetrics) -> f64 {
    run.links[0].value("queue_mean_pkts").expect("a queue")
}

#[test]
fn a_lone_reno_in_a_deep_enough_buffer_fills_the_link() {
    // One bandwidth-delay product of buffer: halving leaves exactly a full pipe.
    let bdp = 20e6 / 8.0 * 0.05 / PACKET;
    let full = run(&scenario(&["reno"], 20, 50, &format!("pfifo limit {}", bdp.ceil()), 90));
    let utilisation = full.links[0].value("utilisation").expect("used");
    assert!(utilisation > 0.99, "{utilisation}");
    // A small buffer: the window goes to and fro between BDP + B and half of it, and the link is used
    // to the mean of min(w, BDP)/BDP over a sawtooth whose time is proportional to its window.
    let short = run(&scenario(&["reno"], 20, 50, "pfifo limit 10", 90));
    let utilisation = short.links[0].value("utilisation").expect("used");
    assert!((0.75..0.87).contains(&utilisation), "{utilisation}");
}

/// Goodput of one flow on a link without a queue that loses this share, in windows of payload.
fn mean_window(cca: &str, loss: &str, rtt_ms: u64, seconds: u64) -> f64 {
    let mut world = scenario(&[cca], 10_000, rtt_ms, "pfifo", seconds).into_inner();
    world.links[0].loss = sojourn_link::LossConfig::parse(loss).expect("a loss");
    let run = run(&world.checked().expect("a scenario"));
    let goodput = run.flows[0].value("goodput_mbps").expect("known");
    goodput * 1e6 / 8.0 / 1448.0 * rtt_ms as f64 / 1e3
}

/// Mathis et al. 1997: w = √(3/2p), for losses at even distances that are so rare that a round of recovery
/// does not count.
#[test]
fn reno_keeps_the_square_root_law() {
    for (loss, p) in [("0.002%", 2e-5), ("0.001%", 1e-5f64)] {
        let expected = (1.5 / p).sqrt();
        let window = mean_window("reno", loss, 50, 900);
        assert!((window / expected - 1.0).abs() < 0.01, "{window} for {expected} at {loss}");
    }
}

/// RFC 9438 section 5.1, whose equation takes every epoch to end at its plateau. By the RFC's own rules, with one
/// loss every 1/p packets, windows are up to a tenth off it: they chase a target that is a round trip ahead,
/// and fast convergence lowers the plateau.
#[test]
fn cubic_keeps_its_response_function_within_a_tenth() {
    for (loss, p) in [("0.002%", 2e-5f64), ("0.001%", 1e-5)] {
        let expected = libm::pow(0.4 * 3.7 / (4.0 * 0.3), 0.25) * libm::pow(0.05 / p, 0.75);
        let window = mean_window("cubic", loss, 50, 900);
        assert!((window / expected - 1.0).abs() < 0.1, "{window} for {expected} at {loss}");
    }
}

/// Above 20 % of losses a probe of 1.25 finds no more than there was, but a packet a round trip always stays.
#[test]
fn bbr_sends_a_packet_a_round_trip_at_whatever_loss() {
    for (cca, loss) in [("bbr", "30%"), ("bbr", "50%"), ("bbr3", "50%")] {
        let mut world = scenario(&[cca], 20, 40, "pfifo limit 66", 60).into_inner();
        world.links[0].loss = sojourn_link::LossConfig::parse(loss).expect("a loss");
        let run = run(&world.checked().expect("a scenario"));
        let value = |metric: &str| run.flows[0].value(metric).expect("known");
        let goodput = value("goodput_mbps") * 1e6 / 8.0 / 1448.0 * 0.04;
        assert!((0.3..4.0).contains(&goodput), "{cca} {loss}: {goodput} packets a round trip");
        assert!(value("inflight_mean_pkts") >= 0.8, "{cca} {loss}");
    }
}

#[test]
fn a_flow_of_which_everything_is_lost_knows_no_round_trip() {
    let mut world = scenario(&["cubic"], 20, 40, "pfifo", 9).into_inner();
    world.links[0].loss = sojourn_link::LossConfig::parse("100%").expect("a loss");
    let run = run(&world.checked().expect("a scenario"));
    for metric in ["srtt_mean_ms", "rtt_mean_ms"] {
        assert_eq!(run.flows[0].value(metric), None, "{metric}");
    }
}

/// At 20 Mbit/s a packet takes 0.6 ms, so after a turn of C's a third of L's packets are above the step at 1 ms: Prague has
/// 0.37 of the link beside CUBIC as packets.
#[test]
fn packets_of_cubic_let_the_step_of_dualpi2_mark_prague() {
    let run = run(&scenario(&["cubic", "prague"], 20, 40, "dualpi2", 60));
    let goodput = |flow: usize| run.flows[flow].value("goodput_mbps").expect("known");
    let share = goodput(1) / (goodput(0) + goodput(1));
    assert!((0.3..0.52).contains(&share), "{share}");
}

/// A packet of 1500 bytes of IP is 1540 with an overhead of 40, in 33 cells of 53 bytes.
#[test]
fn frames_around_packets_take_their_part_of_the_rate() {
    let goodput = |rate: Option<&str>, queue: &str| {
        let mut world = scenario(&["cubic"], 20, 40, queue, 15).into_inner();
        if let Some(rate) = rate {
            let rate = RateSpec::parse(rate).and_then(|spec| spec.complete(None));
            world.links[0].rate = rate.expect("a rate");
        }
        let run = run(&world.checked().expect("a scenario"));
        run.flows[0].value("goodput_mbps").expect("known")
    };
    let expected = 10.0 * 1448.0 / (33.0 * 53.0);
    for (rate, queue) in [
        (Some("10Mbps atm overhead 40"), "pfifo limit 100"),
        (None, "cake bandwidth 10mbit atm overhead 40"),
    ] {
        let goodput = goodput(rate, queue);
        // CAKE keeps the link a little less busy.
        assert!((0.94..1.01).contains(&(goodput / expected)), "{queue}: {goodput} for {expected}");
    }
}

/// At 1 Mbit/s COBALT lets four full packets wait, 48 ms, where its target alone is 18 ms.
#[test]
fn cake_lets_a_few_packets_wait_however_long_they_take() {
    let run = run(&scenario(&["cubic"], 20, 40, "cake bandwidth 1mbit", 60));
    let wait = run.links[0].value("sojourn_p50_ms").expect("known");
    assert!((36.0..75.0).contains(&wait), "{wait}");
}

/// Of two packets the receiver acknowledges the second one at once, and the first with it.
#[test]
fn of_a_window_half_a_packet_waits_for_its_acknowledgement() {
    let goodput = |quick_ack: bool| {
        let mut world = scenario(&["reno"], 100, 50, "pfifo", 30).into_inner();
        let App::Tcp { transport, .. } = &mut world.flows[0].app else { panic!("it is TCP") };
        transport.quick_ack = quick_ack;
        // 100 segments, of 153/256 of the memory, and one that is held.
        transport.most_receive_buffer = 245_000;
        let run = run(&world.checked().expect("a scenario"));
        run.flows[0].value("goodput_mbps").expect("known")
    };
    let ratio = goodput(false) / goodput(true);
    assert!((ratio - 99.5 / 100.0).abs() < 2e-4, "{ratio}");
}

#[test]
fn cake_shares_by_hosts_and_then_by_flows() {
    let shares = |world: &Checked| {
        let run = run(world);
        run.flows.iter().map(|flow| flow.share.expect("a share")).collect::<Vec<f64>>()
    };
    // Two of the three flows come from one host.
    let mut world = scenario(&["bbr", "bbr", "bbr"], 30, 40, "cake", 60).into_inner();
    world.hosts.push(Host { name: "other".into() });
    world.flows[2].src = sojourn_core::HostId(2);
    world.links[0].queue = Queue::parse("cake bandwidth 20mbit dual-srchost").expect("a queue");
    let shares = shares(&world.checked().expect("a scenario"));
    for (share, expected) in shares.iter().zip([0.25, 0.25, 0.5]) {
        assert!((share / expected - 1.0).abs() < 0.01, "{shares:?}");
    }
}

/// CUBIC beside streams of 100 Mbit/s each on a link of 20.
fn flooded(queue: &str, streams: usize, seconds: u64) -> Checked {
    let mut world = scenario(&["cubic"], 20, 40, queue, seconds).into_inner();
    let mut stream = world.flows[0].clone();
    stream.app = App::Udp(UdpConfig {
        interval: Span::from_micros(80),
        frame: 1000,
        datagrams: 1,
        header: 28,
    });
    for number in 0..streams {
        stream.name = format!("flood{number}");
        world.flows.push(stream.clone());
    }
    world.checked().expect("a scenario")
}

#[test]
fn of_ten_streams_no_more_wait_than_may() {
    let value = |run: &RunMetrics| run.links[0].value("queue_max_pkts").expect("a queue");
    for queue in ["fq_codel limit 20", "fq_codel memory_limit 40kb", "cake memlimit 40kb"] {
        let longest = value(&run(&flooded(queue, 10, 10)));
        assert!((19.0..=22.0).contains(&longest), "{longest} in {queue}");
    }
}

#[test]
fn what_is_long_past_is_forgotten_beside_a_stream() {
    let rows = |seconds| {
        collect::run(&flooded("pfifo limit 100", 1, seconds), 1, &Options::default()).1.rows
    };
    let [short, long] = [20, 60].map(rows);
    assert!(long < 2 * short, "{long} rows of 60 s, {short} of 20");
}

#[test]
fn what_does_not_respond_fills_fq_codel_and_is_stopped_by_cake() {
    let flood = |queue: &str| run(&flooded(queue, 1, 30));
    let value = |run: &RunMetrics, flow: usize, metric: &str| {
        run.flows[flow].value(metric).expect("it has")
    };
    // 1042 bytes on the wire take 1088 + 880 of memory.
    let fits = 400_000.0 / 1968.0;
    let codel = flood("fq_codel memory_limit 400kb");
    let cake = flood("cake memlimit 400kb");
    for run in [&codel, &cake] {
        let [cubic, stream] = [0, 1].map(|flow| value(run, flow, "goodput_mbps"));
        assert!((8.7..9.7).contains(&cubic) && (9.2..10.4).contains(&stream), "{cubic} {stream}");
    }
    // The memory is full, a little of it with CUBIC's packets.
    let full = queue(&codel);
    assert!((full / fits - 1.0).abs() < 0.05, "{full} for {fits}");
    // BLUE drops four packets of five before long, and CAKE's buffer is empty most of the time.
    let short = queue(&cake);
    assert!(short < 0.5 * fits, "{short} for {fits}");
}

#[test]
fn what_is_sent_is_delivered_lost_or_under_way() {
    let run = run(&scenario(&["cubic", "bbr3"], 30, 30, "pfifo limit 60", 20));
    for flow in &run.flows {
        let last = flow.last.expect("a sample");
        let sum =
            last.delivered + last.lost_total.expect("a fluid knows") + u64::from(last.unacked);
        let sent = last.bytes_sent as f64 / 1448.0;
        assert!((sum as f64 - sent).abs() <= 3.0, "{sum} of {sent}");
    }
    let there = &run.links[0];
    let utilisation = there.value("utilisation").expect("used");
    assert!((0.9..1.0 + 1e-6).contains(&utilisation), "{utilisation}");
}

#[test]
fn the_same_seed_gives_the_same_digest_and_another_one_another() {
    let scenario = scenario(&["bbr", "cubic"], 20, 40, "pfifo limit 60", 10);
    let digest = |seed| collect::run(&scenario, seed, &Options::default()).0.digest;
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

#[test]
fn fixed_steps_come_to_the_same_shares() {
    let scenario = scenario(&["reno", "reno"], 20, 40, "pfifo limit 60", 60);
    let free = run(&scenario);
    let options = Options { step: Some(Span::from_micros(500)), ..Options::default() };
    let fixed = collect::run(&scenario, 1, &options).0;
    let share = |run: &RunMetrics| run.flows[0].share.expect("a share");
    assert!((share(&free) - share(&fixed)).abs() < 0.1, "{} {}", share(&free), share(&fixed));
    assert!((queue(&free) / queue(&fixed) - 1.0).abs() < 0.1);
}

/// Worlds without randomness of their own, in which a difference is the integration's.
#[test]
fn finer_steps_come_to_the_same() {
    for (ccas, limit) in [(["reno", "reno"], 120), (["cubic", "bbr"], 60), (["bbr", "bbr"], 200)] {
        let scenario = scenario(&ccas, 20, 40, &format!("pfifo limit {limit}"), 90);
        let [usual, fine] = [1.0, 4.0].map(|fineness| {
            let options = Options { fineness, ..Options::default() };
            collect::run(&scenario, 1, &options).0
        });
        let share = |run: &RunMetrics| run.flows[0].share.expect("a share");
        let (by, queues) = ((share(&usual) - share(&fine)).abs(), queue(&usual) / queue(&fine));
        eprintln!(
            "{ccas:?}: {} {} {} {}",
            share(&usual),
            share(&fine),
            queue(&usual),
            queue(&fine)
        );
        assert!(by < 0.05 && (queues - 1.0).abs() < 0.05, "{ccas:?}: {by} {queues}");
    }
}

/// The gap that a cut leaves in what a flow sends comes round every round trip, however long the steps are.
#[test]
fn a_gap_comes_round_with_long_steps_as_with_short_ones() {
    let limit = (20e6 / 8.0 * 0.04 / PACKET).floor();
    let world = scenario(&["reno", "cubic"], 20, 40, &format!("pfifo limit {limit}"), 60);
    let mut world = world.into_inner();
    world.flows[1].start = Span::from_millis(300);
    let world = world.checked().expect("a scenario");
    // Usual steps are mostly of 5 ms.
    let [usual, short] = [None, Some(Span::from_micros(500))].map(|step| {
        let options = Options { step, ..Options::default() };
        let share = |seed| collect::run(&world, seed, &options).0.flows[0].share.expect("a share");
        (1..=8).map(share).sum::<f64>() / 8.0
    });
    assert!((usual - short).abs() < 0.03, "{usual} {short}");
}

/// The bound is of work, which is the same on every machine: 9 s of ten flows.
#[test]
fn nine_seconds_of_ten_flows_take_few_steps_and_little_memory() {
    for cca in ["bbr", "bbr2", "bbr3", "cubic", "reno"] {
        let scenario = scenario(&[cca; 10], 100, 35, "pfifo limit 290", 9);
        let (_, work) = collect::run(&scenario, 1, &Options::default());
        let tries = work.steps + work.retries;
        let bytes = work.rows * work.columns * 8;
        assert!(tries < 6_000, "{cca}: {tries} steps");
        assert!(bytes <= 1 << 20, "{cca}: {bytes} bytes");
    }
}

/// A round trip takes at most 70 ms, a step at least 0.36 ms unless something is due sooner.
#[test]
fn the_past_that_is_kept_is_what_delays_reach() {
    for cca in ["bbr", "bbr2", "bbr3", "cubic", "reno"] {
        let scenario = scenario(&[cca; 100], 100, 35, "pfifo limit 290", 3);
        let (_, work) = collect::run(&scenario, 1, &Options::default());
        assert!(work.rows < 700, "{cca}: {} rows of {} steps", work.rows, work.steps);
    }
}

/// A queue of twelve seconds is gone within a tenth of one, and what comes back was sent before that.
#[test]
fn the_past_is_kept_for_what_has_waited_in_a_queue_that_is_gone() {
    let world = scenario(&["reno", "cubic"], 1, 40, "pfifo limit 1000", 60);
    let mut world = world.into_inner();
    let step = |mbps: u64, seconds| Step {
        rate: Rate::from_bps(mbps * 1_000_000),
        duration: Span::from_secs(seconds),
    };
    let trace = Trace::new([step(1, 40), step(1000, 20)]).expect("a trace").into();
    world.links[0].rate = RateConfig::Trace { trace, serving: Serving::default() };
    let world = world.checked().expect("a scenario");
    let (run, _) = collect::run(&world, 1, &Options::default());
    assert!(run.flows.iter().all(|flow| flow.value("goodput_total_mbps") > Some(1.0)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_world_gives_numbers_that_are_none(
        ccas in prop::collection::vec(
            prop::sample::select(vec!["reno", "cubic", "bbr", "bbr2", "bbr3", "dctcp", "prague"]), 1..5),
        queue in prop::sample::select(vec![
            "pfifo limit 1", "pfifo limit 40", "bfifo limit 100000", "codel", "fq_codel", "pie ecn",
            "cake bandwidth 3mbit", "dualpi2", "red limit 400000 avpkt 1000 ecn",
        ]),
        mbps in 1u64..200,
        rtt_ms in 1u64..300,
        seed in any::<u64>(),
    ) {
        let scenario = scenario(&ccas, mbps, rtt_ms, queue, 3);
        let (run, _) = collect::run(&scenario, seed, &Options::default());
        let utilisation = run.links[0].value("utilisation");
        prop_assert!(utilisation.is_some_and(|share| (0.0..1.000_001).contains(&share)), "{utilisation:?}");
        for flow in &run.flows {
            let goodput = flow.value("goodput_total_mbps").expect("always known");
            prop_assert!(goodput.is_finite() && goodput <= mbps as f64 * 1.001, "{goodput}");
        }
    }
}
