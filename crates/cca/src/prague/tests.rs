//! Tests of all three Pragues, side by side where they agree.

use proptest::prelude::*;
use sojourn_core::{Params, Words};

use super::linux::PragueLinux;
use super::udp::PragueUdp;
use super::*;
use crate::Cca;
use crate::dctcp::harness::{Link, Marking, accurate};
use crate::testing::{congestion, ops, plain_ack, play, setup};

const SECOND: Span = Span::from_secs(1);
const MS: Span = Span::from_millis(1);

fn draft(text: &str) -> Prague {
    let config = Config::parse(&mut Words::new(text)).expect("a good spec");
    Prague::new(config, accurate(MS * 25))
}

fn kernel(text: &str) -> PragueLinux {
    let config = linux::Config::parse(&mut Words::new(text)).expect("a good spec");
    PragueLinux::new(config, accurate(MS * 25))
}

fn library(text: &str) -> PragueUdp {
    let config = udp::Config::parse(&mut Words::new(text)).expect("a good spec");
    PragueUdp::new(config, accurate(MS * 25))
}

/// Acknowledges rounds of one acknowledgement each.
struct Rounds<C> {
    cc: C,
    now: Time,
    rtt: Span,
    snd_una: u32,
    delivered: u64,
    ce: u64,
    lost: u64,
    state: RecoveryState,
}

impl<C: Controller> Rounds<C> {
    fn new(cc: C, rtt: Span) -> Self {
        Self {
            cc,
            now: Time::ZERO + SECOND,
            rtt,
            snd_una: 0,
            delivered: 0,
            ce: 0,
            lost: 0,
            state: RecoveryState::Open,
        }
    }

    /// A round trip later, `delivered` segments are acknowledged, `ce` of them marked.
    fn feed(&mut self, delivered: u32, ce: u32) {
        self.now += self.rtt;
        self.acknowledge(delivered, ce);
    }

    fn acknowledge(&mut self, delivered: u32, ce: u32) {
        self.snd_una += delivered;
        self.delivered += u64::from(delivered);
        self.ce += u64::from(ce);
        let is_disturbing = ce > 0 && self.state == RecoveryState::Open;
        if is_disturbing {
            self.cc.on_congestion(&self.congestion(CongestionKind::Ecn));
        }
        self.cc.on_ack(&Ack {
            ce,
            ece: ce > 0,
            total_delivered: self.delivered,
            total_delivered_ce: self.ce,
            total_lost: self.lost,
            srtt: Some(self.rtt),
            state: if is_disturbing { RecoveryState::Cwr } else { self.state },
            in_flight: 0,
            snd_nxt: self.snd_una + 1,
            ..plain_ack(self.now, delivered, self.snd_una)
        });
    }

    fn congestion(&self, kind: CongestionKind) -> Congestion {
        Congestion { now: self.now, snd_nxt: self.snd_una + 1, ..congestion(kind) }
    }

    fn congest(&mut self, kind: CongestionKind, state: RecoveryState) {
        self.cc.on_congestion(&self.congestion(kind));
        self.state = state;
    }

    fn recover(&mut self) {
        self.state = RecoveryState::Open;
        self.cc.on_recovered(self.now);
    }
}

/// In congestion avoidance at a window of `cwnd`, with the given average mark rate.
fn draft_at(text: &str, rtt: Span, cwnd: f64, alpha: f64) -> Rounds<Prague> {
    let mut rounds = Rounds::new(draft(text), rtt);
    rounds.cc.cwnd = cwnd;
    rounds.cc.ssthresh = cwnd;
    rounds.feed(0, 0);
    rounds.cc.alpha = Some(alpha);
    // No update of alpha during the test.
    rounds.cc.alpha_end = Some(1_000_000);
    rounds
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} for {expected}");
}

// Steady state

/// Marks per virtual round-trip time at which `controller` settles, if each segment is marked with
/// probability `p` and nothing else limits.
fn marks_per_round<C: Controller>(controller: C, rtt: Span, p: f64) -> f64 {
    let mut link = Link::new(Rate::UNLIMITED, Marking::Random(p));
    link.add(controller, rtt, Time::ZERO);
    // In this time 500 rounds pass.
    link.run(SECOND * 20);
    link.measure();
    link.run(SECOND * 40);
    link.throughput(0) * link.mark_rate(0) * rtt.max(MS * 25).as_secs_f64()
}

/// A window of 2 / p has two marks per round trip. A cut waits for the first mark after a round,
/// which at random takes p⁻¹ segments more: with x marks per round, x / 2 = 1 + 1 / x, so x = 1 +
/// √3.
#[test]
fn it_settles_at_two_marks_per_virtual_round_trip_and_what_the_next_mark_waits_for() {
    let expected = 1.0 + 3.0_f64.sqrt();
    for (rtt, p) in [(5, 0.01), (10, 0.01), (25, 0.01), (25, 0.05)] {
        // Only unmarked segments increase the window.
        let expected = expected * (1.0 - p);
        let marks = marks_per_round(draft(""), MS * rtt, p);
        assert!((marks / expected - 1.0).abs() < 0.07, "draft at {rtt} ms, {p}: {marks}");
        // The kernel cuts only at the end of a real round, which may come late.
        let late = if rtt == 10 { 0.15 } else { 0.07 };
        let marks = marks_per_round(kernel(""), MS * rtt, p);
        assert!((marks / expected - 1.0).abs() < late, "kernel at {rtt} ms, {p}: {marks}");
        let marks = marks_per_round(library(""), MS * rtt, p);
        assert!((marks / expected - 1.0).abs() < 0.1, "library at {rtt} ms, {p}: {marks}");
    }
}

/// Where marks come at even distances and exactly two fit a round, no cut has to wait.
#[test]
fn evenly_spaced_marks_keep_the_window_between_2_and_2_73_over_p() {
    fn marks<C: Controller>(controller: C) -> f64 {
        let mut link = Link::new(Rate::UNLIMITED, Marking::Every(50));
        link.add(controller, MS * 25, Time::ZERO);
        link.run(SECOND * 20);
        link.measure();
        link.run(SECOND * 40);
        link.throughput(0) * 0.025 / 50.0
    }
    for marks in [marks(draft("")), marks(kernel("")), marks(library(""))] {
        assert!((1.9..2.73).contains(&marks), "{marks}");
    }
}

/// RFC 9331 section 4.3: at the same mark rate, flows below 25 ms have equal rates.
#[test]
fn short_round_trip_times_have_no_advantage() {
    let rate = |rtt: u64, which: usize| {
        let mut link = Link::new(Rate::UNLIMITED, Marking::Random(0.02));
        let cc: Box<dyn Controller> = match which {
            0 => Box::new(draft("")),
            1 => Box::new(kernel("")),
            _ => Box::new(library("")),
        };
        link.add(Cca::External(cc), MS * rtt, Time::ZERO);
        link.run(SECOND * 20);
        link.measure();
        link.run(SECOND * 40);
        link.throughput(0)
    };
    for which in 0..3 {
        let (short, long) = (rate(5, which), rate(20, which));
        // The kernel cuts only at the end of a real round, which at 20 ms may come late.
        let least = if which == 1 { 0.8 } else { 0.9 };
        assert!((least..1.1).contains(&(short / long)), "{which}: {short} and {long}");
    }
}

/// Before the 500th round shares still depend on the round-trip time.
#[test]
fn in_the_first_rounds_the_real_round_trip_time_counts() {
    let rate = |rtt: u64| {
        let mut link = Link::new(Rate::UNLIMITED, Marking::Random(0.02));
        link.add(kernel("prague_rtt_transition=1000000"), MS * rtt, Time::ZERO);
        link.run(SECOND * 20);
        link.measure();
        link.run(SECOND * 20);
        link.throughput(0)
    };
    assert_near(rate(5) / rate(20), 4.0, 0.4);
}

/// Two flows, the second five seconds late, over a link that marks at a step of 40 segments.
fn shares<C: Controller>(make: impl Fn() -> C, rtts: [u64; 2]) -> (f64, f64, f64) {
    let mut link = Link::new(Rate::from_bps(120_000_000), Marking::Step(40));
    link.add(make(), MS * rtts[0], Time::ZERO);
    link.run(SECOND * 5);
    link.add(make(), MS * rtts[1], link.now);
    link.run(SECOND * 20);
    link.measure();
    link.run(SECOND * 15);
    (link.throughput(0), link.throughput(1), link.most_queue)
}

#[test]
fn two_flows_share_a_step_marking_link_with_a_queue_at_the_step() {
    for rtts in [[10, 10], [5, 20]] {
        for (a, b, queue) in
            [shares(|| draft(""), rtts), shares(|| kernel(""), rtts), shares(|| library(""), rtts)]
        {
            assert!((a / b - 1.0).abs() < 0.15, "{a} and {b} at {rtts:?}");
            assert!(a + b > 9_950.0, "{a} and {b} at {rtts:?}");
            assert!(queue < 46.0, "{queue} at {rtts:?}");
        }
    }
}

// The draft

/// Section 2.3.2.
#[test]
fn the_first_mark_ends_slow_start_with_half_of_the_window() {
    let mut rounds = Rounds::new(draft(""), MS * 25);
    rounds.feed(10, 0);
    rounds.feed(20, 0);
    assert_eq!((rounds.cc.cwnd(), rounds.cc.phase(), rounds.cc.alpha), (40, "slow_start", None));
    rounds.feed(1, 1);
    assert_eq!(
        (rounds.cc.cwnd(), rounds.cc.ssthresh(), rounds.cc.alpha),
        (20, Some(20), Some(1.0))
    );
    assert_eq!(rounds.cc.phase(), "avoidance");
}

/// Section 2.3.2.
#[test]
fn alpha_moves_a_sixteenth_of_the_way_once_per_virtual_round_trip() {
    let mut rounds = Rounds::new(draft(""), MS * 10);
    rounds.feed(1, 1);
    let alpha = |rounds: &Rounds<Prague>| rounds.cc.alpha.expect("there was a mark");
    rounds.feed(50, 0);
    rounds.feed(25, 0);
    assert_eq!(alpha(&rounds), 1.0, "20 ms");
    rounds.feed(25, 20);
    assert_near(alpha(&rounds), 1.0 + (0.2 - 1.0) / 16.0, 1e-12);
}

/// Section 2.4.2.
#[test]
fn the_window_is_cut_once_per_virtual_round_trip() {
    let mut rounds = draft_at("", MS * 10, 100.0, 0.5);
    rounds.feed(1, 1);
    assert_near(rounds.cc.cwnd, 75.0, 1e-9);
    rounds.feed(1, 1);
    rounds.feed(1, 1);
    assert_near(rounds.cc.cwnd, 75.0, 1e-9);
    rounds.cc.alpha = Some(0.2);
    rounds.feed(1, 1);
    assert_near(rounds.cc.cwnd, 75.0 * 0.9, 1e-9);
}

/// Section 2.4.3.
#[test]
fn unmarked_segments_increase_the_window_right_after_a_cut() {
    let mut rounds = draft_at("", MS * 25, 100.0, 0.5);
    rounds.acknowledge(51, 1);
    assert_near(rounds.cc.cwnd, 75.0 + 50.0 / 75.0, 1e-9);
    rounds.acknowledge(4, 4);
    assert_near(rounds.cc.cwnd, 75.0 + 50.0 / 75.0, 1e-9);
}

/// Section 2.4.4.
#[test]
fn after_enough_rounds_the_increase_is_scaled_by_the_square_of_the_ratio() {
    for (rtt, scale) in [(5, 0.04), (10, 0.16), (25, 1.0), (50, 1.0)] {
        let mut rounds = draft_at("rtt_rounds=3", MS * rtt, 100.0, 0.5);
        for _ in 0..3 {
            rounds.feed(1, 0);
        }
        assert_eq!(rounds.cc.phase(), "avoidance:rtt_independent");
        let before = rounds.cc.cwnd;
        rounds.feed(100, 0);
        assert_near(rounds.cc.cwnd - before, scale * 100.0 / before, 1e-9);
    }
}

/// Section 2.4.1.
#[test]
fn loss_halves_and_a_cut_for_marks_just_before_counts_towards_it() {
    let mut rounds = draft_at("", MS * 25, 100.0, 0.4);
    rounds.congest(CongestionKind::Loss, RecoveryState::Recovery);
    assert_near(rounds.cc.cwnd, 50.0, 1e-9);
    assert!(rounds.cc.uses_prr());
    rounds.feed(20, 5);
    assert_near(rounds.cc.cwnd, 50.0, 1e-9);
    rounds.recover();
    assert!(!rounds.cc.uses_prr());

    let mut rounds = draft_at("", MS * 25, 100.0, 0.4);
    rounds.acknowledge(1, 1);
    assert_near(rounds.cc.cwnd, 80.0, 1e-9);
    let loss =
        Congestion { prior_state: RecoveryState::Cwr, ..rounds.congestion(CongestionKind::Loss) };
    rounds.cc.on_congestion(&loss);
    assert_near(rounds.cc.cwnd, 50.0, 1e-9);
}

#[test]
fn loss_in_a_flight_that_was_marked_is_answered_also_when_only_the_state_tells() {
    let mut rounds = draft_at("", MS * 25, 100.0, 0.0);
    rounds.acknowledge(1, 1);
    rounds.state = RecoveryState::Recovery;
    rounds.feed(1, 0);
    assert_near(rounds.cc.cwnd, 50.0, 1e-9);
    rounds.feed(1, 0);
    assert_near(rounds.cc.cwnd, 50.0, 1e-9);
}

#[test]
fn a_timeout_leads_through_slow_start_to_half_of_the_window() {
    let mut rounds = draft_at("", MS * 25, 100.0, 0.4);
    rounds.congest(CongestionKind::Timeout, RecoveryState::Loss);
    assert_eq!((rounds.cc.cwnd(), rounds.cc.ssthresh()), (1, Some(50)));
    rounds.feed(20, 0);
    assert_eq!(rounds.cc.cwnd(), 21);
    rounds.cc.on_undo(&Undo { now: rounds.now });
    assert_eq!((rounds.cc.cwnd(), rounds.cc.ssthresh()), (100, Some(100)));
}

/// Section 2.5: packets of 1500 bytes.
#[test]
fn it_paces_a_window_per_round_trip_and_two_in_early_slow_start() {
    let mut rounds = Rounds::new(draft(""), MS * 25);
    let rate = |rounds: &Rounds<Prague>| rounds.cc.pacing_rate().expect("there is an RTT");
    assert_eq!(rate(&rounds).as_bytes_per_sec(), 2 * 10 * 1_500 * 40);
    rounds.feed(1, 1);
    assert_eq!(rounds.cc.cwnd(), 5);
    assert_eq!(rate(&rounds).as_bytes_per_sec(), 5 * 1_500 * 40);
    assert_eq!(rounds.cc.send_quantum(), Quantum::Segments(1));
    let mut rounds = draft_at("", MS * 25, 2_000.0, 0.4);
    rounds.feed(0, 0);
    // 250 µs of 120 MB/s are 20 packets.
    assert_eq!(rounds.cc.send_quantum(), Quantum::Segments(20));
}

// The kernel module

fn kernel_at(text: &str, rtt: Span, cwnd: u32, alpha: f64) -> Rounds<PragueLinux> {
    let mut rounds = Rounds::new(kernel(text), rtt);
    rounds.cc.put(cwnd, alpha);
    rounds
}

#[test]
fn the_kernel_cuts_by_a_segment_per_acknowledgement() {
    let mut rounds = Rounds::new(kernel(""), MS * 25);
    rounds.feed(10, 0);
    assert_eq!((rounds.cc.cwnd(), rounds.cc.alpha()), (20, 1.0));
    rounds.acknowledge(1, 1);
    assert_eq!((rounds.cc.cwnd(), rounds.cc.ssthresh()), (19, Some(19)));
    rounds.state = RecoveryState::Cwr;
    for left in (10..19).rev() {
        rounds.acknowledge(1, 1);
        assert_eq!(rounds.cc.cwnd(), left);
    }
    rounds.acknowledge(1, 1);
    assert_eq!(rounds.cc.cwnd(), 10);
}

#[test]
fn the_kernels_alpha_is_one_until_the_first_mark_and_not_moved_before() {
    let mut rounds = Rounds::new(kernel(""), MS * 25);
    for _ in 0..20 {
        rounds.feed(5, 0);
    }
    assert_eq!(rounds.cc.alpha(), 1.0);
    rounds.feed(10, 1);
    assert_near(rounds.cc.alpha(), 1.0 + (0.1 - 1.0) / 16.0, 1e-5);
}

#[test]
fn the_kernel_times_alpha_and_cuts_by_25_ms_only_after_500_rounds() {
    let mut rounds = kernel_at("prague_rtt_transition=4", MS * 10, 100, 0.25);
    rounds.feed(10, 0);
    rounds.feed(10, 5);
    let first = rounds.cc.alpha();
    rounds.feed(10, 5);
    assert_ne!(rounds.cc.alpha(), first, "once per round");
    rounds.feed(10, 5);
    assert_eq!(rounds.cc.phase(), "avoidance:rtt_independent");
    let (alpha, carry) = (rounds.cc.alpha(), rounds.cc.window());
    rounds.feed(10, 5);
    rounds.feed(10, 5);
    assert_eq!(rounds.cc.alpha(), alpha, "20 ms");
    assert!(rounds.cc.window() > carry, "increase only");
    rounds.feed(10, 5);
    assert_ne!(rounds.cc.alpha(), alpha);
    assert!(rounds.cc.window() < carry);
}

#[test]
fn the_kernels_increase_is_a_segment_per_round_or_its_square_share() {
    let mut rounds = kernel_at("", MS * 10, 100, 0.5);
    rounds.feed(100, 0);
    assert_eq!(rounds.cc.window(), 101.0);
    let mut rounds = kernel_at("prague_rtt_transition=1", MS * 10, 100, 0.5);
    rounds.feed(1, 0);
    let before = rounds.cc.window();
    rounds.feed(100, 0);
    // In units of 128 µs: 78 of 195.
    assert_near(rounds.cc.window() - before, (78.0 / 195.0) * (78.0 / 195.0), 1e-4);
}

#[test]
fn the_kernel_halves_for_loss_by_a_segment_per_acknowledgement_and_does_not_increase() {
    let mut rounds = kernel_at("", MS * 25, 100, 0.1);
    rounds.congest(CongestionKind::Loss, RecoveryState::Recovery);
    assert!(!rounds.cc.uses_prr());
    assert_eq!(rounds.cc.cwnd(), 100);
    for _ in 0..60 {
        rounds.acknowledge(1, 0);
    }
    assert_eq!((rounds.cc.cwnd(), rounds.cc.ssthresh()), (50, Some(50)));
    rounds.recover();
    rounds.acknowledge(50, 0);
    assert_eq!(rounds.cc.cwnd(), 51);
}

/// The carry still holds the halving when the window is one, so slow start ends at two.
#[test]
fn after_a_timeout_the_kernel_grows_from_two_segments_by_one_a_round() {
    let mut rounds = kernel_at("", MS * 25, 100, 0.1);
    rounds.congest(CongestionKind::Timeout, RecoveryState::Loss);
    assert_eq!(rounds.cc.cwnd(), 1);
    rounds.feed(1, 0);
    assert_eq!((rounds.cc.cwnd(), rounds.cc.ssthresh()), (2, Some(2)));
    rounds.recover();
    for cwnd in 3..=6 {
        rounds.feed(cwnd - 1, 0);
        assert_eq!(rounds.cc.cwnd(), cwnd);
    }
}

#[test]
fn a_loss_taken_back_late_gives_the_kernel_its_window_back_and_one_taken_back_early_costs_it() {
    let undone_after = |acks| {
        let mut rounds = kernel_at("", MS * 25, 100, 0.125);
        rounds.congest(CongestionKind::Loss, RecoveryState::Recovery);
        for _ in 0..acks {
            rounds.acknowledge(1, 0);
        }
        rounds.cc.on_undo(&Undo { now: rounds.now });
        rounds.recover();
        assert_eq!(rounds.cc.cwnd(), 100);
        for _ in 0..100 {
            rounds.acknowledge(1, 1);
            rounds.state = RecoveryState::Cwr;
        }
        rounds.cc.cwnd()
    };
    // The first mark takes six more, and a quarter.
    assert_eq!(undone_after(50), 94);
    assert_eq!(undone_after(5), 4);
}

#[test]
fn the_kernel_paces_like_the_draft_in_bursts_of_at_least_two() {
    let mut rounds = kernel_at("", MS * 25, 2_000, 0.1);
    rounds.feed(0, 0);
    let rate = rounds.cc.pacing_rate().expect("there is an RTT");
    assert_eq!(rate.as_bytes_per_sec(), 2_000 * 1_500 * 40);
    // 120 MB/s over 2¹² are 29 296 bytes.
    assert_eq!(rounds.cc.send_quantum(), Quantum::Segments(19));
    assert_eq!(kernel("").send_quantum(), Quantum::Segments(2));
    let early = kernel("").pacing_rate().expect("there was a handshake");
    assert_eq!(early.as_bytes_per_sec(), 2 * 10 * 1_500 * 40);
}

// The library

#[test]
fn the_librarys_alpha_starts_at_zero_so_that_the_first_mark_takes_nothing() {
    let mut rounds = Rounds::new(library("init_rate=100mbit"), MS * 25);
    rounds.feed(100, 0);
    let before = rounds.cc.rate();
    rounds.acknowledge(1, 1);
    assert_eq!(rounds.cc.rate(), before);
}

#[test]
fn the_library_starts_at_100_kbit_and_grows_faster_after_seven_unmarked_rounds() {
    let mut rounds = Rounds::new(library(""), MS * 25);
    assert_near(rounds.cc.rate(), 12_500.0, 1e-9);
    for _ in 0..6 {
        rounds.feed(2, 0);
    }
    assert!(!rounds.cc.phase().ends_with(":growth"));
    rounds.feed(2, 0);
    assert!(rounds.cc.phase().ends_with(":growth"));
    let mut rounds = Rounds::new(library("init_rate=153.6mbit"), MS * 25);
    for _ in 0..16 {
        rounds.feed(300, 0);
    }
    assert_eq!(rounds.cc.phase(), "window", "seven rounds and one for each 15.36 Mbit/s");
    let before = rounds.cc.rate();
    rounds.feed(300, 0);
    assert_eq!(rounds.cc.phase(), "window:growth");
    rounds.feed(300, 0);
    // A millisecond of 25 per round, against one segment.
    assert!(rounds.cc.rate() > before * 1.04, "{} {before}", rounds.cc.rate());
}

#[test]
fn the_rate_leads_up_to_2_ms_and_goes_on_from_there() {
    let mut rounds = Rounds::new(library("init_rate=100mbit"), MS * 25);
    rounds.feed(100, 0);
    assert_eq!(rounds.cc.phase(), "window");
    let before = rounds.cc.rate();
    rounds.rtt = MS * 2;
    rounds.feed(1, 0);
    assert_eq!(rounds.cc.phase(), "rate");
    assert_near(rounds.cc.rate() / before, 1.0, 0.01);
    rounds.rtt = MS * 30;
    rounds.feed(1, 0);
    assert_eq!(rounds.cc.phase(), "window");
    assert_near(rounds.cc.rate() / before, 1.0, 0.01);
}

#[test]
fn the_library_paces_3_percent_faster_then_3_percent_slower() {
    let mut rounds = Rounds::new(library("init_rate=100mbit"), MS * 5);
    let mut ratios = Vec::new();
    for _ in 0..200 {
        rounds.feed(40, 0);
        let paced = rounds.cc.pacing_rate().expect("always").as_bytes_per_sec() as f64;
        ratios.push(paced / rounds.cc.rate());
    }
    let faster = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    assert!((80..=140).contains(&faster), "{faster}");
    let is_offset = |ratio: &f64| (ratio - 1.03).abs() < 1e-4 || (ratio - 1.0 / 1.03).abs() < 1e-4;
    assert!(ratios.iter().all(is_offset));
}

#[test]
fn the_library_halves_for_loss_once_a_round_and_takes_it_back() {
    let mut rounds = Rounds::new(library("init_rate=100mbit"), MS * 25);
    rounds.feed(100, 0);
    let before = rounds.cc.rate();
    rounds.lost += 1;
    rounds.acknowledge(1, 0);
    assert_near(rounds.cc.rate() / before, 0.5, 1e-6);
    rounds.lost += 1;
    rounds.acknowledge(1, 0);
    assert_near(rounds.cc.rate() / before, 0.5, 1e-6);
    rounds.cc.on_undo(&Undo { now: rounds.now });
    assert_near(rounds.cc.rate() / before, 1.0, 1e-6);
}

#[test]
fn a_timeout_resets_the_library() {
    let mut rounds = Rounds::new(library("init_rate=100kbit"), MS * 25);
    for _ in 0..100 {
        rounds.feed(100, 0);
    }
    rounds.congest(CongestionKind::Timeout, RecoveryState::Loss);
    assert_near(rounds.cc.rate(), 12_500.0, 1e-9);
    assert_eq!(rounds.cc.cwnd(), 2);
}

// Fallback, robustness and parsing

/// RFC 9331 section 4.2.
#[test]
fn without_accurate_feedback_it_is_reno() {
    for text in ["prague", "prague-linux", "prague-udp"] {
        let config = crate::Config::parse(text).expect("a name");
        assert_eq!(config.ecn_request(), crate::EcnRequest::L4s);
        for ecn in [EcnFeedback::Off, EcnFeedback::Classic] {
            let mut cc = config.build(Setup { ecn, ..setup() });
            cc.on_ack(&plain_ack(Time::ZERO, 30, 30));
            assert_eq!((cc.cwnd(), cc.pacing_rate()), (40, None));
            cc.on_congestion(&congestion(CongestionKind::Ecn));
            assert_eq!((cc.cwnd(), cc.ssthresh()), (20, Some(20)), "{text} {ecn:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_operation_breaks_it(ops in ops(), initial_cwnd in 1_u32..100_000, rtt_ms in 0_u64..100) {
        let setup = Setup { initial_cwnd, ..accurate(MS * rtt_ms) };
        for text in [
            "prague rtt_rounds=3",
            "prague-linux prague_rtt_transition=3",
            "prague-udp",
        ] {
            let cc = crate::Config::parse(text).expect("a good spec").build(setup.clone());
            play(cc, &setup, &ops, |_| {});
        }
    }
}
