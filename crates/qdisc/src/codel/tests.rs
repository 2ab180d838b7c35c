use sojourn_core::{DropReason, Ecn, Rate, Span, Time};

use super::*;
use crate::testing::{Bench, packet, text_reads_back};
use crate::{Config, Qdisc};

fn at_ms(ms: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(ms / 1e3)
}

/// A queue whose packets have all waited longer than target, served every 10 us from 1 s on;
/// gives the times in ms between the first drops.
fn drop_spacing(text: &str, drops: usize) -> (f64, Vec<f64>) {
    let mut bench = Bench::new(text);
    for id in 0..90_000 {
        bench.offer(packet(id));
    }
    bench.now = at_ms(1000.0);
    while bench.record.dropped.len() <= drops {
        bench.take().expect("the queue is long enough");
        bench.wait(Span::from_micros(10));
    }
    let ms: Vec<f64> = bench.drop_times().iter().map(|time| time.as_secs_f64() * 1e3).collect();
    (ms[0], ms.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

fn assert_close(measured: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(measured.len(), expected.len());
    for (measured, expected) in measured.iter().zip(expected) {
        assert!((measured - expected).abs() <= tolerance, "{measured} ms, not {expected} ms");
    }
}

#[test]
fn the_kernel_spaces_its_drops_by_one_newton_step_each() {
    let (first, spacing) = drop_spacing("codel limit 100000", 10);
    assert!((first - 1100.0).abs() < 0.05, "{first}");
    let expected = [100.0, 50.0, 56.2, 48.8, 44.2, 40.4, 37.5, 35.2, 33.2, 31.5];
    assert_close(&spacing, &expected, 0.07);
}

#[test]
fn the_rfc_spaces_its_drops_by_the_exact_square_root() {
    let (first, spacing) = drop_spacing("codel limit 100000 mode rfc", 10);
    assert!((first - 1100.0).abs() < 0.02, "{first}");
    let expected: Vec<f64> = (1..=10).map(|count| 100.0 / f64::from(count).sqrt()).collect();
    assert_close(&spacing, &expected, 0.011);
}

#[test]
fn delay_below_target_never_drops() {
    let mut bench = Bench::new("codel");
    for _ in 0..1000 {
        bench.offer(packet(0));
        bench.offer(packet(1));
        bench.offer(packet(2));
        bench.wait(Span::from_micros(4998));
        while bench.take().is_some() {}
    }
    assert!(bench.record.dropped.is_empty());
}

/// Drops when `left` full packets are left behind each head, all of them late.
fn drops_with_backlog_behind_the_head(text: &str, left: u32) -> usize {
    let mut bench = Bench::new(text);
    for id in 0..left {
        bench.offer(packet(id));
    }
    for id in 0..100 {
        bench.offer(packet(id));
        bench.wait(Span::from_millis(10));
        bench.take();
        while bench.qdisc.backlog().packets < left {
            bench.offer(packet(1000));
        }
    }
    bench.record.dropped.len()
}

#[test]
fn a_backlog_of_one_full_packet_behind_the_head_never_drops() {
    for text in ["codel", "codel mode rfc"] {
        assert_eq!(drops_with_backlog_behind_the_head(text, 1), 0, "{text}");
        assert!(drops_with_backlog_behind_the_head(text, 2) > 5, "{text}");
    }
}

#[test]
fn the_kernel_waits_strictly_longer_than_an_interval_and_the_rfc_does_not() {
    for (text, drops) in [("codel", 0), ("codel mode rfc", 1)] {
        let mut bench = Bench::new(&format!("{text} interval 1024us target 0ms"));
        for id in 0..10 {
            bench.offer(packet(id));
        }
        bench.now = Time::from_nanos(1_024_000);
        bench.take();
        // 1000 kernel ticks of 1024 ns, and the RFC's interval, to the nanosecond.
        bench.wait(Span::from_micros(1024));
        bench.take();
        assert_eq!(bench.record.dropped.len(), drops, "{text}");
        bench.wait(Span::from_nanos(1024));
        bench.take();
        assert!(!bench.record.dropped.is_empty(), "{text}");
    }
}

fn law_and_late_queue(mode: Mode, packets: u32) -> (Bench, String) {
    let name = match mode {
        Mode::Linux => "codel limit 100000",
        Mode::Rfc => "codel limit 100000 mode rfc",
    };
    let mut bench = Bench::new(name);
    for id in 0..packets {
        bench.offer(packet(id));
    }
    bench.now = at_ms(1000.0);
    (bench, name.to_owned())
}

/// Leaves the dropping state by a pause without delay.
fn empty(bench: &mut Bench) {
    while bench.take().is_some() {}
}

#[test]
fn re_entry_within_16_intervals_resumes_the_drop_rate() {
    for mode in [Mode::Linux, Mode::Rfc] {
        for (pause, expected) in [(Span::from_millis(1200), 9), (Span::from_millis(1700), 1)] {
            let (mut bench, name) = law_and_late_queue(mode, 90_000);
            while bench.record.dropped.len() < 10 {
                bench.take();
                bench.wait(Span::from_micros(10));
            }
            assert_eq!(bench.detail("count"), 10, "{name}");
            assert_eq!(bench.detail("lastcount"), 1, "{name}");
            // drop_next is 31.5 ms ahead, and the pause counts from there.
            empty(&mut bench);
            bench.wait(pause);
            let drops = bench.record.dropped.len();
            for id in 0..50_000 {
                bench.offer(packet(id));
            }
            bench.wait(Span::from_millis(10));
            while bench.record.dropped.len() == drops {
                bench.take().expect("long enough");
                bench.wait(Span::from_micros(10));
            }
            assert_eq!(bench.detail("count"), expected, "{name} after {pause}");
        }
    }
}

#[test]
fn an_empty_queue_forgets_how_long_it_was_above_target() {
    for text in ["codel", "codel mode rfc"] {
        let mut bench = Bench::new(text);
        for id in 0..4 {
            bench.offer(packet(id));
        }
        bench.wait(Span::from_millis(50));
        empty(&mut bench);
        bench.wait(Span::from_millis(200));
        for id in 0..4 {
            bench.offer(packet(id));
        }
        bench.wait(Span::from_millis(50));
        bench.take();
        assert!(bench.record.dropped.is_empty(), "{text}");
    }
}

#[test]
fn one_packet_is_marked_a_dequeue_and_none_dropped() {
    let mut bench = Bench::new("codel limit 100000 ecn");
    for id in 0..50_000 {
        bench.offer(packet(id).ecn(Ecn::Ect0));
    }
    bench.now = at_ms(1000.0);
    for _ in 0..40_000 {
        bench.take();
        bench.wait(Span::from_micros(20));
    }
    assert!(bench.record.dropped.is_empty());
    assert_eq!(bench.detail("ecn_mark"), bench.record.marked.len() as u64);
    // The schedule that drops have: 200 √n − 146 = 700 ms after the first one gives n = 18.
    assert!((18..=20).contains(&bench.record.marked.len()), "{}", bench.record.marked.len());
    let mut times: Vec<Time> = bench.record.marked.iter().map(|(time, _)| *time).collect();
    times.dedup();
    assert_eq!(times.len(), bench.record.marked.len(), "one mark a dequeue");
}

#[test]
fn packets_that_cannot_be_marked_are_dropped_with_ecn_on() {
    let mut bench = Bench::new("codel limit 100000 ecn");
    for id in 0..20_000 {
        bench.offer(packet(id));
    }
    bench.now = at_ms(1000.0);
    for _ in 0..15_000 {
        bench.take();
        bench.wait(Span::from_micros(20));
    }
    assert!(!bench.dropped_ids(DropReason::Aqm).is_empty());
    assert!(bench.record.marked.is_empty());
}

#[test]
fn ce_threshold_marks_whatever_waited_longer() {
    let mut bench = Bench::new("codel ce_threshold 1ms");
    for (wait_us, marked) in [(900, false), (998, false), (1002, true)] {
        bench.offer(packet(0).ecn(Ecn::Ect1));
        bench.wait(Span::from_micros(wait_us));
        let packet = bench.take().expect("queued");
        assert_eq!(packet.ecn == Ecn::Ce, marked, "{wait_us} us");
    }
    bench.offer(packet(1));
    bench.wait(Span::from_millis(2));
    assert_eq!(bench.take().expect("queued").ecn, Ecn::NotEct);
}

#[test]
fn a_standing_queue_of_a_deaf_sender_is_cut_back_but_not_emptied() {
    let mut bench = Bench::new("codel");
    let rate = Rate::from_bps(10_000_000);
    let mut id = 0;
    // One packet comes for each that leaves, and 50 to begin with.
    for _ in 0..50 {
        bench.offer(packet(0));
    }
    bench.drain(rate, Span::from_secs(3), |bench| {
        id += 1;
        bench.offer(packet(id));
    });
    let backlog = bench.qdisc.backlog().packets;
    assert!((1..10).contains(&backlog), "{backlog}");
    assert!(bench.record.dropped.len() > 40);
}

#[test]
fn the_limit_counts_waiting_packets() {
    let mut bench = Bench::new("codel limit 10");
    for id in 0..12 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), [10, 11]);
    assert_eq!(bench.detail("drop_overlimit"), 2);
}

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(text_reads_back("codel"), "codel limit 1000p target 5ms interval 100ms");
    assert_eq!(
        text_reads_back("codel limit 50 target 2ms interval 20ms ecn ce_threshold 1ms mode rfc"),
        "codel limit 50p target 2ms interval 20ms ce_threshold 1ms ecn mode rfc"
    );
    // A bare number is microseconds.
    assert_eq!(text_reads_back("codel target 5000"), text_reads_back("codel"));
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("codel taget 5ms", "did you mean 'target'?"),
        ("codel mode kernel", "linux, rfc"),
        ("codel interval 0", "1us"),
        ("codel target -1ms", "negative"),
        ("codel limit", "needs a value"),
        ("codell", "did you mean 'codel'?"),
    ] {
        let error = Config::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
