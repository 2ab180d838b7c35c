use sojourn_core::{DropReason, Ecn, Rate, Span};

use super::*;
use crate::Config as AnyConfig;
use crate::testing::{Bench, packet, stream, text_reads_back};

const RATE: Rate = Rate::from_bps(10_000_000);

fn config(text: &str) -> Config {
    match AnyConfig::parse(&format!("dualpi2 {text}")) {
        Ok(AnyConfig::DualPi2(config)) => config,
        other => panic!("{text}: {other:?}"),
    }
}

/// The kernel's printed values (its own tests of `typical_rtt` and `max_rtt`).
#[test]
fn gains_are_derived_and_rounded_as_tc_and_the_kernel_do() {
    for (text, target, tupdate, alpha, beta) in [
        ("", 15, 16, "0.156250", "3.195312"),
        ("typical_rtt 20ms max_rtt 200ms", 20, 20, "0.042969", "1.496094"),
        ("max_rtt 300ms", 50, 50, "0.050781", "0.996094"),
    ] {
        let config = config(text);
        assert_eq!(config.target, Span::from_millis(target), "{text}");
        assert_eq!(config.tupdate, Span::from_millis(tupdate), "{text}");
        assert_eq!(format!("{:.6}", config.alpha.shown_by_tc()), alpha, "{text}");
        assert_eq!(format!("{:.6}", config.beta.shown_by_tc()), beta, "{text}");
    }
    // Exact arithmetic would give 12/256 and 384/256.
    let exact = config("typical_rtt 20ms max_rtt 200ms");
    assert_eq!((exact.alpha, exact.beta), (Gain(12), Gain(384)));
    let typical = config("typical_rtt 50ms");
    assert_eq!((typical.target, typical.beta), (Span::from_millis(50), Gain(256)));
}

/// RFC 9332 appendix A.1.
#[test]
fn the_probability_follows_the_distance_from_target_and_the_trend() {
    let mut controller = Controller::new(&config(""));
    let share = |controller: &Controller| f64::from(controller.prob) / 4_294_967_296.0;
    controller.update(Span::from_millis(30));
    // 0.16 · 15 ms + 3.2 · 30 ms
    assert!((share(&controller) - 0.0984).abs() < 0.0002, "{}", share(&controller));
    controller.update(Span::from_millis(30));
    assert!((share(&controller) - 0.1008).abs() < 0.0002, "{}", share(&controller));
    controller.update(Span::ZERO);
    assert!((share(&controller) - 0.0024).abs() < 0.0002, "{}", share(&controller));
    controller.update(Span::ZERO);
    assert!(share(&controller) < 1e-5, "{}", share(&controller));
}

/// Marks and drops of 100 000 packets, in shares.
fn verdicts(controller: &Controller, queue: Queue, ecn: Ecn) -> (f64, f64) {
    let mut random = stream(5);
    let (mut marks, mut drops) = (0, 0);
    for _ in 0..100_000 {
        let verdict = match queue {
            Queue::C => controller.judge_classic(ecn, &mut random),
            Queue::L => controller.judge_l4s(ecn, &mut random),
        };
        marks += u32::from(verdict == Verdict::Mark);
        drops += u32::from(verdict == Verdict::Drop);
    }
    (f64::from(marks) / 1e5, f64::from(drops) / 1e5)
}

/// RFC 9332 section 2.1: p_C is p' squared, p_CL is k times p'.
#[test]
fn the_queues_are_coupled_by_a_square_and_a_factor() {
    let mut controller = Controller::new(&config(""));
    controller.prob = 1 << 30;
    let near = |(marks, drops): (f64, f64), expected: (f64, f64)| {
        assert!((marks - expected.0).abs() < 0.005 && (drops - expected.1).abs() < 0.005);
    };
    near(verdicts(&controller, Queue::C, Ecn::Ect0), (0.0625, 0.0));
    near(verdicts(&controller, Queue::C, Ecn::NotEct), (0.0, 0.0625));
    near(verdicts(&controller, Queue::L, Ecn::Ect1), (0.5, 0.0));
    near(verdicts(&controller, Queue::L, Ecn::NotEct), (0.0, 0.5));
}

/// RFC 9332 section 2.5.1.1.
#[test]
fn beyond_marking_all_of_l_both_queues_drop_alike() {
    let mut controller = Controller::new(&config(""));
    controller.prob = 3 << 30;
    let (marks, drops) = verdicts(&controller, Queue::L, Ecn::Ect1);
    assert!((drops - 0.5625).abs() < 0.01 && (marks - 0.4375).abs() < 0.01, "{marks} {drops}");
    let (marks, drops) = verdicts(&controller, Queue::C, Ecn::Ect0);
    assert!((drops - 0.5625).abs() < 0.01 && marks == 0.0, "{marks} {drops}");
}

#[test]
fn overflow_caps_the_probability_where_all_of_l_is_marked() {
    let mut controller = Controller::new(&config("overflow"));
    for _ in 0..1000 {
        controller.update(Span::from_secs(1));
    }
    assert_eq!(controller.prob, u32::MAX / 2);
    assert_eq!(verdicts(&controller, Queue::L, Ecn::Ect1), (1.0, 0.0));
    let mut controller = Controller::new(&config("drop_on_overload"));
    for _ in 0..1000 {
        controller.update(Span::from_secs(1));
    }
    assert_eq!(controller.prob, u32::MAX);
}

/// RFC 9331 section 5.1.
#[test]
fn ect1_and_ce_go_to_the_l_queue() {
    let in_l = |text: &str| {
        let mut bench = Bench::new(text);
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            bench.offer(packet(0).ecn(ecn));
        }
        (bench.detail("pkts_in_c"), bench.detail("pkts_in_l"))
    };
    assert_eq!(in_l("dualpi2"), (2, 2));
    assert_eq!(in_l("dualpi2 any_ect"), (1, 3));
}

#[test]
fn while_both_wait_c_gets_its_protected_share() {
    for (percent, share) in [(10, 0.1), (50, 0.5), (0, 0.0), (100, 1.0)] {
        // No controller in the way.
        let mut bench = Bench::new(&format!(
            "dualpi2 classic_protection {percent}% alpha 0 beta 0 step_thresh 10s"
        ));
        for _ in 0..2000 {
            bench.offer(packet(1).ecn(Ecn::Ect1).ip_len(700));
            bench.offer(packet(2));
        }
        let left = bench.drain(RATE, Span::from_millis(700), |_| {});
        let bytes = |id| {
            let of_queue = left.iter().filter(|packet| packet.id == id);
            of_queue.map(|packet| f64::from(packet.wire_len())).sum::<f64>()
        };
        let classic = bytes(2) / (bytes(1) + bytes(2));
        assert!((classic - share).abs() < 0.01, "{percent}: {classic}");
    }
}

#[test]
fn a_packet_alone_goes_first_whatever_the_credit() {
    let mut bench = Bench::new("dualpi2");
    for id in 0..10 {
        bench.offer(packet(id));
    }
    bench.offer(packet(100).ecn(Ecn::Ect1));
    assert_eq!(bench.take().map(|packet| packet.id), Some(100));
    assert_eq!(bench.take().map(|packet| packet.id), Some(0));
}

#[test]
fn the_step_marks_what_waited_longer_than_a_millisecond() {
    let mut bench = Bench::new("dualpi2");
    bench.offer(packet(1).ecn(Ecn::Ect1));
    bench.wait(Span::from_millis(1));
    assert_eq!(bench.take().map(|packet| packet.ecn), Some(Ecn::Ect1));
    bench.offer(packet(2).ecn(Ecn::Ect1));
    bench.offer(packet(3));
    bench.wait(Span::from_nanos(1_000_001));
    assert_eq!(bench.take().map(|packet| packet.ecn), Some(Ecn::Ce));
    assert_eq!(bench.take().map(|packet| packet.ecn), Some(Ecn::NotEct));
    assert_eq!(bench.detail("step_mark"), 1);
}

#[test]
fn the_step_may_count_packets_and_spare_the_first() {
    let marks = |text: &str| {
        let mut bench = Bench::new(text);
        for id in 0..10 {
            bench.offer(packet(id).ecn(Ecn::Ect1));
        }
        bench.drain(RATE, Span::from_secs(1), |_| {});
        bench.record.marked.iter().map(|(_, id)| *id).collect::<Vec<_>>()
    };
    // Marked when more than five remain behind.
    assert_eq!(marks("dualpi2 alpha 0 beta 0 step_thresh 5pkt"), [0, 1, 2, 3]);
    // Of those that waited a millisecond, the first five had found less than five.
    assert_eq!(marks("dualpi2 alpha 0 beta 0 min_qlen_step 5"), [5, 6, 7, 8, 9]);
}

#[test]
fn below_two_full_packets_the_controller_leaves_the_queue_alone() {
    let mut bench = Bench::new("dualpi2 alpha 256 beta 256 target 0 tupdate 1ms");
    for id in 0..4 {
        bench.offer(packet(id));
    }
    bench.wait(Span::from_secs(10));
    assert_eq!(bench.take().map(|packet| packet.id), Some(2), "0 and 1 were dropped");
    assert_eq!(bench.take().map(|packet| packet.id), Some(3));
}

#[test]
fn a_deaf_overload_is_held_at_target() {
    for drop_at in ["drop_dequeue", "drop_enqueue"] {
        let mut bench = Bench::new(&format!("dualpi2 {drop_at}"));
        let mut next = Time::ZERO;
        let mut load = |bench: &mut Bench| {
            let now = bench.now;
            while next <= now {
                bench.now = next;
                bench.offer(packet(0));
                next += Rate::from_bps(11_000_000).time_for(1514);
            }
            bench.now = now;
        };
        bench.drain(RATE, Span::from_secs(10), &mut load);
        let mut waits = Vec::new();
        let end = bench.now + Span::from_secs(20);
        while bench.now < end {
            load(&mut bench);
            let (_, wait) = bench.take_with_wait().expect("an overloaded queue holds packets");
            waits.push(wait.as_millis_f64());
            bench.now += RATE.time_for(1514);
        }
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean - 15.0).abs() < 1.5, "{drop_at}: {mean}");
        // p_C of one in eleven is a p' of 0.3.
        let prob = bench.detail("prob_ppm") as f64 / 1e6;
        assert!((prob - 0.3015).abs() < 0.06, "{drop_at}: {prob}");
    }
}

#[test]
fn updates_made_up_for_see_the_head_grow_older() {
    let mut late = Bench::new("dualpi2");
    let mut punctual = Bench::new("dualpi2");
    for bench in [&mut late, &mut punctual] {
        bench.offer(packet(0));
        bench.offer(packet(1));
        bench.offer(packet(2).ecn(Ecn::Ect1));
    }
    for _ in 0..100 {
        punctual.wait(Span::from_millis(1));
        punctual.offer(packet(9));
    }
    late.wait(Span::from_millis(100));
    late.offer(packet(9));
    assert_eq!(late.detail("prob_ppm"), punctual.detail("prob_ppm"));
    // Six updates; the last saw a head of 96 ms: 3.2 · 96 ms and 0.16 · (16 + … + 96 − 6 · 15) ms.
    assert!((late.detail("prob_ppm") as f64 - 346_400.0).abs() < 1000.0);
}

#[test]
fn super_packets_are_cut_unless_told_otherwise() {
    let mut bench = Bench::new("dualpi2");
    bench.offer(packet(0).segments(3));
    assert_eq!(bench.qdisc.backlog().packets, 3);
    let mut bench = Bench::new("dualpi2 no_split_gso");
    bench.offer(packet(0).segments(3));
    assert_eq!(bench.qdisc.backlog().packets, 1);
}

#[test]
fn packets_and_memory_are_limited() {
    let mut bench = Bench::new("dualpi2 limit 3");
    for id in 0..5 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), [3, 4]);
    // 2432 bytes each.
    let mut bench = Bench::new("dualpi2 memlimit 7296");
    for id in 0..5 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), [3, 4]);
    assert_eq!(Bench::new("dualpi2").detail("memory_limit"), 30_280_000);
}

#[test]
fn every_parameter_is_shown_and_reads_back() {
    assert_eq!(
        text_reads_back("dualpi2"),
        "dualpi2 limit 10000p target 15ms tupdate 16ms alpha 0.16015625 beta 3.19921875 l4s_ect \
         coupling_factor 2 drop_on_overload step_thresh 1ms min_qlen_step 0p drop_dequeue \
         split_gso classic_protection 10%"
    );
    assert_eq!(
        text_reads_back(
            "dualpi2 limit 50 memlimit 1mb max_rtt 300ms any_ect coupling_factor 3 overflow \
             step_thresh 5pkt min_qlen_step 2 drop_enqueue no_split_gso classic_protection 25"
        ),
        "dualpi2 limit 50p memlimit 1Mb target 50ms tupdate 50ms alpha 0.0546875 beta 1 any_ect \
         coupling_factor 3 overflow step_thresh 5pkt min_qlen_step 2p drop_enqueue no_split_gso \
         classic_protection 25%"
    );
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("dualpi2 alpha 300", "0 to 256"),
        ("dualpi2 alpha x", "a number from 0 to 256"),
        ("dualpi2 max_rtt 100ms alpha 1", "'alpha' has no place"),
        ("dualpi2 max_rtt 10ms typical_rtt 20ms", "above max_rtt"),
        ("dualpi2 max_rtt 1000s", "a gain is zero"),
        ("dualpi2 max_rtt 100us", "out of range"),
        ("dualpi2 classic_protection 101%", "0 to 100"),
        ("dualpi2 step_thresh many", "5pkt"),
        ("dualpi2 coupling_factr 2", "did you mean 'coupling_factor'?"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
