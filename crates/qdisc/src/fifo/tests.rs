use sojourn_core::{DropReason, Span};

use crate::testing::{Bench, packet, text_reads_back};
use crate::{Config, Qdisc};

#[test]
fn pfifo_holds_exactly_its_limit_of_waiting_packets() {
    let mut bench = Bench::new("pfifo limit 50");
    for id in 0..60 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.qdisc.backlog().packets, 50);
    assert_eq!(bench.dropped_ids(DropReason::Full), (50..60).collect::<Vec<_>>());
    assert_eq!(bench.take().map(|packet| packet.id), Some(0));
}

#[test]
fn fifty_full_packets_at_10_mbit_take_60_6_ms() {
    let mut bench = Bench::new("pfifo limit 50");
    for id in 0..50 {
        bench.offer(packet(id));
    }
    let bytes = bench.qdisc.backlog().bytes;
    let wait = sojourn_core::Rate::from_bps(10_000_000).time_for(bytes);
    assert_eq!(wait, Span::from_micros(60_560));
}

#[test]
fn bfifo_counts_bytes_and_lets_a_small_packet_fill_the_rest() {
    let mut bench = Bench::new("bfifo limit 3100");
    bench.offer(packet(0));
    bench.offer(packet(1));
    bench.offer(packet(2));
    bench.offer(packet(3).ip_len(40));
    assert_eq!(bench.dropped_ids(DropReason::Full), [2]);
    assert_eq!(bench.qdisc.backlog().bytes, 2 * 1514 + 54);
}

#[test]
fn sojourn_is_the_time_since_arrival() {
    let mut bench = Bench::new("pfifo");
    bench.offer(packet(0));
    bench.wait(Span::from_millis(7));
    assert_eq!(bench.qdisc.oldest(), Some(sojourn_core::Time::ZERO));
    assert_eq!(bench.take_with_wait().map(|(_, wait)| wait), Some(Span::from_millis(7)));
}

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(text_reads_back("pfifo"), "pfifo limit 1000p");
    assert_eq!(text_reads_back("bfifo"), "bfifo limit 1514000b");
    assert_eq!(text_reads_back("bfifo limit 7.5mb"), "bfifo limit 7864320b");
}

#[test]
fn bad_limits_say_what_is_allowed() {
    for text in ["pfifo limit 0", "pfifo limit -1", "pfifo limit", "bfifo limit 0", "pfifo limt 5"]
    {
        assert!(Config::parse(text).is_err(), "{text}");
    }
    let error = Config::parse("pfifo limt 5").unwrap_err().to_string();
    assert!(error.contains("did you mean 'limit'?"), "{error}");
}
