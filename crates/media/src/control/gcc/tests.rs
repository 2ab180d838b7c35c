//! libwebrtc's own acceptance numbers, on a link in this file: a rate, a delay, a queue without an
//! end, random loss, and feedback every 50 ms.

use alloc::collections::VecDeque;

use sojourn_core::{Ecn, Purpose, StreamAddress};

use super::*;
use crate::control::Purpose as Use;
use crate::control::Report;

struct Link {
    rate: f64,
    delay: Span,
    loss: f64,
}

struct Call {
    gcc: Box<dyn Controller>,
    link: Link,
    now: Time,
    free: Time,
    under_way: VecDeque<(Time, Report)>,
    number: u64,
    /// When the next packet may leave, of probes and of media.
    next: Time,
    probe: Option<(Probe, u64)>,
    feedback_at: Time,
    on_way_back: VecDeque<(Time, Vec<Report>)>,
    random: sojourn_core::Stream,
    reported_at: Time,
    /// The share of the target rate that media uses.
    used: f64,
    /// Whether reports on packets come, beside receiver reports.
    has_feedback: bool,
    /// What the next receiver report says: packets, and the lost ones among them.
    expected: u64,
    lost: u64,
}

const PACKET: u32 = 1200;

impl Call {
    fn new(link: Link, start: u64, max: u64) -> Self {
        let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Controller);
        let gcc = Config::default().build(Setup {
            now: Time::ZERO,
            start_rate: Some(Rate::from_bps(start)),
            min_rate: Rate::ZERO,
            max_rate: Rate::from_bps(max),
            mtu: PACKET,
            frames_per_second: 30.0,
            random: random.clone(),
        });
        Self {
            gcc,
            link,
            now: Time::ZERO,
            free: Time::ZERO,
            under_way: VecDeque::new(),
            number: 0,
            next: Time::ZERO,
            probe: None,
            feedback_at: Time::ZERO,
            on_way_back: VecDeque::new(),
            random,
            reported_at: Time::ZERO,
            used: 1.0,
            has_feedback: true,
            expected: 0,
            lost: 0,
        }
    }

    fn target(&self) -> f64 {
        self.gcc.outputs().target.as_bps() as f64 / 1e3
    }

    fn send(&mut self) {
        let probe = self.probe.map(|(probe, _)| probe.id);
        let packet =
            Sent { number: self.number, at: self.now, size: PACKET, purpose: Use::Video, probe };
        self.number += 1;
        self.gcc.on_sent(&packet, &Outstanding::default());
        self.free =
            self.free.max(self.now) + Span::from_secs_f64(f64::from(PACKET) * 8.0 / self.link.rate);
        let at = self.free + self.link.delay;
        let arrived = (!self.random.chance(self.link.loss)).then_some(at);
        self.under_way.push_back((at, Report { packet, arrived, ecn: Ecn::NotEct }));
    }

    /// Runs for so many seconds, a millisecond at a time.
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 1000 {
            self.now += Span::from_millis(1);
            if self.probe.is_none() {
                self.probe = self.gcc.poll_probe().map(|probe| (probe, 0));
            }
            while self.next <= self.now {
                let rate = match &mut self.probe {
                    Some((probe, bytes)) => {
                        *bytes += u64::from(PACKET);
                        probe.rate.as_bps() as f64
                    }
                    None => self.gcc.outputs().target.as_bps() as f64 * self.used,
                };
                self.send();
                self.next = self.next.max(self.now - Span::from_millis(1))
                    + Span::from_secs_f64(f64::from(PACKET) * 8.0 / rate);
                let is_over = |(probe, bytes): &(Probe, u64)| {
                    *bytes >= probe.min_bytes.max(u64::from(probe.min_packets * PACKET))
                };
                self.probe = self.probe.take().filter(|probe| !is_over(probe));
            }
            if self.feedback_at <= self.now {
                self.feedback_at = self.now + Span::from_millis(50);
                let mut reports = Vec::new();
                while self.under_way.front().is_some_and(|(at, _)| *at <= self.now) {
                    reports.extend(self.under_way.pop_front().map(|(_, report)| report));
                }
                self.on_way_back.push_back((self.now + self.link.delay, reports));
            }
            while self.on_way_back.front().is_some_and(|(at, _)| *at <= self.now) {
                let Some((_, reports)) = self.on_way_back.pop_front() else { break };
                let now = self.now;
                self.expected += reports.len() as u64;
                self.lost +=
                    reports.iter().filter(|report| report.arrived.is_none()).count() as u64;
                if now.since(self.reported_at) >= Span::from_secs(1)
                    && let Some(last) = reports.last()
                {
                    self.reported_at = now;
                    self.gcc.on_receiver_report(&ReceiverReport {
                        now,
                        fraction_lost: self.lost as f64 / self.expected as f64,
                        cumulative_lost: 0,
                        expected: self.expected,
                        jitter: Span::ZERO,
                        rtt: Some(now.since(last.packet.at)),
                    });
                    (self.expected, self.lost) = (0, 0);
                }
                if !reports.is_empty() && self.has_feedback {
                    self.gcc.on_feedback(&Feedback {
                        now,
                        reports: &reports,
                        prior_in_flight: 0,
                        in_flight: 0,
                        held: None,
                    });
                }
            }
        }
    }
}

fn link(kbps: f64, delay_ms: u64, loss: f64) -> Link {
    Link { rate: kbps * 1e3, delay: Span::from_millis(delay_ms), loss }
}

/// `goog_cc_network_control_unittest`: 500 kbit/s and 100 ms for 25 s, then 800 kbit/s for 20 s, then
/// 100 kbit/s and 200 ms for 50 s.
#[test]
fn the_target_follows_a_link_that_changes() {
    let mut call = Call::new(link(500.0, 100, 0.0), 300_000, 1_500_000);
    call.run(25);
    assert!((350.0..=550.0).contains(&call.target()), "{}", call.target());
    call.link.rate = 800e3;
    call.run(20);
    assert!((600.0..=900.0).contains(&call.target()), "{}", call.target());
    call.link = link(100.0, 200, 0.0);
    call.run(50);
    assert!((65.0..=115.0).contains(&call.target()), "{}", call.target());
}

/// The same file: 2 Mbit/s, 200 ms, 10 % loss, 120 s.
#[test]
fn ten_percent_of_loss_do_not_end_a_call() {
    let mut call = Call::new(link(2000.0, 200, 0.1), 300_000, 5_000_000);
    call.run(120);
    assert!(call.target() > 100.0, "{}", call.target());
}

/// `delay_based_bwe_unittest_helper`: from 1000 to 500 kbit/s, the estimate is there in half a second.
#[test]
fn a_halved_link_is_found_out_within_a_second() {
    let mut call = Call::new(link(1000.0, 20, 0.0), 300_000, 1_500_000);
    call.run(30);
    assert!(call.target() > 700.0, "{}", call.target());
    call.link.rate = 500e3;
    call.run(1);
    assert!(call.target() <= 500.0, "{}", call.target());
}

/// A complaint about estimators: one whose application sends three quarters must not decay.
#[test]
fn an_application_that_sends_less_keeps_its_estimate() {
    let mut call = Call::new(link(3000.0, 20, 0.0), 300_000, 2_000_000);
    call.run(10);
    call.used = 0.75;
    call.run(60);
    assert!(call.target() > 1900.0, "{}", call.target());
}

/// The same file: a receiver that allows 250 kbit/s for a second, of a link of 2 Mbit/s and 50 ms, and then 10 Mbit/s.
#[test]
fn a_receivers_limit_holds_at_once_and_leaves_no_trace() {
    let mut call = Call::new(link(2000.0, 50, 0.0), 1_000_000, 5_000_000);
    call.run(10);
    call.gcc.on_remb(call.now, Rate::from_bps(250_000));
    call.run(1);
    assert!((245.0..=255.0).contains(&call.target()), "{}", call.target());
    call.gcc.on_remb(call.now, Rate::from_bps(10_000_000));
    call.run(10);
    assert!(call.target() > 1500.0, "{}", call.target());
}

/// The same file: without reports on packets, 1 Mbit/s and 100 ms for 20 s, then 15 % of loss for 20 s.
#[test]
fn receiver_reports_alone_raise_and_lower_the_target() {
    let mut call = Call::new(link(1000.0, 100, 0.0), 300_000, 1_500_000);
    call.has_feedback = false;
    call.run(20);
    assert!(call.target() >= 500.0, "{}", call.target());
    call.link.loss = 0.15;
    call.run(20);
    assert!(call.target() <= 300.0, "{}", call.target());
}
