use proptest::prelude::*;
use sojourn_core::{Bytes, DropReason, Params, Rate, Span, Words};

use super::*;
use crate::Config as AnyConfig;
use crate::testing::{Bench, packet, text_reads_back};

fn config(text: &str) -> Config {
    Written::parse(&mut Words::new(text))
        .and_then(Config::try_from)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// As `tc` shows them (the kernel's own tests of `overhead` and `linklayer`).
#[test]
fn the_bucket_is_reckoned_on_the_link() {
    for (text, shown) in [
        ("rate 1mbit burst 1500 limit 4kb", 1500),
        ("rate 1mbit burst 1500 limit 4kb overhead 300", 1800),
        ("rate 1mbit burst 1500 limit 4kb linklayer atm", 1696),
        ("rate 1mbit burst 1500 limit 4kb mpu 2000", 2000),
    ] {
        assert_eq!(config(text).burst_shown_by_tc(), Bytes::new(shown), "{text}");
    }
}

#[test]
fn latency_stands_for_a_limit() {
    let plain = config("rate 1mbit burst 5kb latency 50ms");
    assert_eq!(plain.limit, Bytes::new(6250 + 5120));
    // The peak allows less: 2 Mbit/s for 50 ms and a packet would be 14.5 kB.
    let peak = config("rate 1mbit burst 20kb latency 50ms peakrate 2mbit mtu 2000");
    assert_eq!(peak.limit, Bytes::new(12_500 + 2000));
}

#[test]
fn a_full_bucket_goes_at_once_and_the_rest_at_the_rate() {
    let mut bench = Bench::new("tbf rate 8mbit burst 15140 limit 1mb");
    for id in 0..110 {
        bench.offer(packet(id));
    }
    let mut times = Vec::new();
    while bench.take().is_some() {
        times.push(bench.now.as_nanos());
    }
    assert_eq!(times[9], 0, "ten packets fill the bucket");
    assert!(times[10] > 0);
    let expected = 100 * 1_514_000;
    assert!(times[109].abs_diff(expected) < 200, "{}", times[109]);
}

#[test]
fn idle_time_fills_the_bucket_and_no_more() {
    let mut bench = Bench::new("tbf rate 8mbit burst 4542 limit 1mb");
    for _ in 0..3 {
        for id in 0..6 {
            bench.offer(packet(id));
        }
        let begun = bench.now;
        let at_once = (0..6).filter(|_| bench.take().is_some() && bench.now == begun).count();
        assert_eq!(at_once, 3);
        bench.wait(Span::from_secs(10));
    }
}

#[test]
fn the_time_it_names_is_exact() {
    let mut bench = Bench::new("tbf rate 3mbit burst 1514 limit 1mb");
    for id in 0..50 {
        bench.offer(packet(id));
    }
    bench.take();
    for _ in 0..20 {
        let Dequeue::NotBefore(time) = bench.qdisc.dequeue(bench.now, &mut bench.record) else {
            panic!("the bucket is empty")
        };
        bench.now = Time::from_nanos(time.as_nanos() - 1);
        let early = bench.qdisc.dequeue(bench.now, &mut bench.record);
        assert!(matches!(early, Dequeue::NotBefore(again) if again == time));
        bench.now = time;
        assert!(matches!(bench.qdisc.dequeue(time, &mut bench.record), Dequeue::Packet(..)));
    }
}

#[test]
fn a_burst_does_not_exceed_the_peak_rate() {
    let mut bench = Bench::new("tbf rate 1mbit burst 15140 limit 1mb peakrate 10mbit mtu 1514");
    for id in 0..30 {
        bench.offer(packet(id));
    }
    let mut times = Vec::new();
    while bench.take().is_some() {
        times.push(bench.now);
    }
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_micros()).collect();
    assert!(gaps[..9].iter().all(|gap| (1211..=1212).contains(gap)), "{gaps:?}");
    assert!(gaps[15..].iter().all(|gap| (12_111..=12_113).contains(gap)), "{gaps:?}");
}

#[test]
fn what_the_bucket_can_never_hold_is_refused_or_cut() {
    let mut bench = Bench::new("tbf rate 1mbit burst 1000 limit 1mb");
    bench.offer(packet(0));
    bench.offer(packet(1).ip_len(986));
    assert_eq!(bench.dropped_ids(DropReason::Full), [0]);
    let mut bench = Bench::new("tbf rate 1mbit burst 2000 limit 1mb");
    bench.offer(packet(0).segments(3));
    assert_eq!(bench.qdisc.backlog().packets, 3);
    let mut bench = Bench::new("tbf rate 1mbit burst 5000 limit 1mb");
    bench.offer(packet(0).segments(3));
    assert_eq!(bench.qdisc.backlog().packets, 1);
}

#[test]
fn the_limit_is_in_bytes() {
    let mut bench = Bench::new("tbf rate 1mbit burst 1514 limit 4000");
    for id in 0..4 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), [2, 3]);
}

proptest! {
    /// The bound of the token bucket: no window of time t sees more than rate · t + burst.
    #[test]
    fn no_window_sees_more_than_the_rate_and_a_burst(
        kbits in 64u64..100_000,
        burst in 1514u64..40_000,
        arrivals in prop::collection::vec((0u64..20_000_000, 20u32..=1500, 1u32..10), 1..60),
    ) {
        let mut bench = Bench::new(&format!("tbf rate {kbits}kbit burst {burst} limit 1mb"));
        let rate = Rate::from_bps(kbits * 1000);
        let mut left = Vec::new();
        for (wait, ip_len, count) in arrivals {
            bench.wait(Span::from_nanos(wait));
            for id in 0..count {
                bench.offer(packet(id).ip_len(ip_len));
            }
            while let Dequeue::Packet(packet, _) = bench.qdisc.dequeue(bench.now, &mut bench.record) {
                left.push((bench.now, u64::from(packet.wire_len())));
            }
        }
        while let Some(packet) = bench.take() {
            left.push((bench.now, u64::from(packet.wire_len())));
        }
        for (index, (begin, _)) in left.iter().enumerate() {
            let mut bytes = 0;
            let mut rounded = Span::ZERO;
            for (end, len) in &left[index..] {
                bytes += len;
                // Every packet's time is cut to whole nanoseconds.
                rounded += Span::from_nanos(1);
                let most = rate.bytes_in(end.since(*begin) + rounded) + burst + 1;
                prop_assert!(bytes <= most, "{bytes} of {most}");
            }
        }
    }
}

#[test]
fn tc_shows_latency_where_it_is_exact() {
    assert_eq!(
        text_reads_back("tbf rate 1mbit burst 5kb latency 50ms"),
        "tbf rate 1Mbit burst 5Kb lat 50ms"
    );
    assert_eq!(
        text_reads_back("tbf rate 1mbit buffer 5kb limit 2000"),
        "tbf rate 1Mbit burst 5Kb limit 2000b"
    );
    assert_eq!(
        text_reads_back(
            "tbf rate 1mbit burst 5kb limit 10kb peakrate 2mbit minburst 1514 overhead 30 mpu 64 linklayer adsl"
        ),
        "tbf rate 1Mbit burst 5Kb peakrate 2Mbit mtu 1514b limit 10Kb overhead 30 mpu 64 \
         linklayer atm"
    );
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("tbf burst 5kb limit 10kb", "needs 'rate'"),
        ("tbf rate 1mbit limit 10kb", "needs 'burst' (allowed: "),
        ("tbf rate 1mbit burst 5kb", "'limit' or 'latency'"),
        ("tbf rate 1mbit burst 5kb limit 10kb latency 5ms", "not both"),
        ("tbf rate 1mbit burst 5kb limit 10kb peakrate 2mbit", "needs 'mtu' (allowed: "),
        ("tbf rate 1mbit burst 5kb limit 10kb mtu 1514", "needs 'peakrate'"),
        (
            "tbf rate 2mbit burst 5kb limit 10kb peakrate 1mbit mtu 1514",
            "a peakrate above the rate",
        ),
        ("tbf rate 0 burst 5kb limit 10kb", "a rate from 8bit"),
        ("tbf rate 1mbps burst 5kb limit 10kb", "bytes per second"),
        ("tbf rate 1gbit burst 5kb latency 1000s", "too long"),
        ("tbf rate 1mbit burst 5kb limit 10kb linklayer atn", "did you mean 'atm'?"),
        ("tbf rate 1mbit burts 5kb", "did you mean 'burst'?"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
