//! A path fails for a while and recovers: nothing is lost, only late. Linux then sends a tail loss
//! probe (RFC 8985 section 7), has retransmission timeouts that back off (RFC 6298 section 5.5),
//! and undoes everything when the late packets arrive after all (RFC 3522, RFC 5682).

use sojourn_core::{
    Body, Direction, Event, FlowSample, Observer, Packet, Rate, Span, StreamAddress, Time, Who,
};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{RateConfig, RateSpec};
use sojourn_scenario::{App, Flow, Link, Scenario};
use sojourn_sim::Outcome;

use crate::two_hosts;

const RATE: Rate = Rate::from_bps(100_000_000);

/// One way; the round trip takes twice this.
const DELAY: Span = Span::from_millis(10);

/// When the link fails: long after slow start.
const DIES: Span = Span::from_secs(5);

/// Keeps the queue short before the outage, whatever the controller does: 1.2 BDP.
const WINDOW: u64 = 300_000;

/// What one flow did over a link that failed for a while.
#[derive(Default)]
struct Log {
    /// Every data packet that left the sender.
    sent: Vec<Sending>,
    /// When data packets reached the receiver.
    arrived: Vec<Time>,
    /// When acknowledgements reached the sender.
    acked: Vec<Time>,
    samples: Vec<(Time, FlowSample)>,
    delivered: u64,
    dropped: u64,
}

struct Sending {
    at: Time,
    /// Payload bytes; Linux paces these without headers.
    payload: u64,
    /// The first segment, and whether it was sent before.
    first: u32,
    repeats: bool,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let body = |packet: &Packet| match (packet.direction, &packet.body) {
            (Direction::Forward, Body::Segment(body)) => Some(*body),
            _ => None,
        };
        match (who, event) {
            (Who::Flow(_), Event::Sent { packet }) => {
                if let Some(body) = body(packet) {
                    self.sent.push(Sending {
                        at: now,
                        payload: u64::from(body.payload),
                        first: body.first,
                        repeats: body.retransmission,
                    });
                }
            }
            (Who::Flow(_), Event::Arrived { packet }) => match packet.body {
                Body::Segment(_) => self.arrived.push(now),
                Body::Ack(_) => self.acked.push(now),
                _ => {}
            },
            (_, Event::Dropped { .. }) => self.dropped += 1,
            (_, Event::Delivered { bytes }) => self.delivered += bytes,
            (_, Event::FlowSample(sample)) => self.samples.push((now, **sample)),
            _ => {}
        }
    }
}

impl Log {
    fn sent_between(&self, from: Time, until: Time) -> impl Iterator<Item = &Sending> {
        self.sent.iter().filter(move |sending| (from..until).contains(&sending.at))
    }

    /// The last sample up to `at`.
    fn sample(&self, at: Time) -> &FlowSample {
        let index = self.samples.partition_point(|(time, _)| *time <= at);
        &self.samples[index - 1].1
    }
}

fn link(name: &str, rate: RateConfig) -> Link {
    let queue = sojourn_qdisc::Config::parse("pfifo limit 100000").expect("a shipped discipline");
    Link::new(name, queue, rate, DELAY)
}

fn run(cca: &str, outage: Span) -> (Log, Outcome) {
    let controller = sojourn_cca::Config::parse(cca).expect("a shipped controller");
    let receive_window = Some(WINDOW.into());
    let app = App::bulk(controller, Transport { receive_window, ..Transport::default() });
    let rate = format!("steps {RATE} {DIES} 0 {outage} {RATE} 60s end hold");
    let rate = RateSpec::parse(&rate).expect("a good rate").complete(None).expect("no file");
    let scenario = Scenario {
        step: STEP,
        ..two_hosts(
            DIES + outage + Span::from_secs(3),
            vec![link("queue", rate), link("reverse", RateConfig::Unlimited)],
            vec![Flow::new("bulk", app, &[0], &[1])],
        )
    };
    let scenario = scenario.checked().expect("a sound scenario");
    let mut log = Log::default();
    let outcome = sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{cca}, {outage}: {violation}"));
    (log, outcome)
}

const CONTROLLERS: [&str; 4] = ["reno", "cubic", "bbr", "bbr3"];

/// Short outages, as radio links have.
fn outages() -> [Span; 5] {
    [100, 400, 1000, 2000, 4000].map(Span::from_millis)
}

/// Samples are taken so often.
const STEP: Span = Span::from_millis(1);

/// Coarseness of timers: they are set in jiffies of a millisecond, a probe waits two jiffies more, and waits of 63 jiffies and more end at multiples
/// of eight, of 504 and more at multiples of sixty-four.
fn coarseness(wait: Span) -> Span {
    let far = if wait < Span::from_millis(500) { 8 } else { 64 };
    Span::from_millis(5 + far)
}

fn assert_near(what: &str, found: Time, expected: Time) {
    let slack = coarseness(Span::ZERO);
    assert!(
        found.since(expected) <= slack && expected.since(found) <= slack,
        "{what} at {found} instead of {expected}"
    );
}

#[test]
fn a_probe_comes_first_and_then_timeouts_that_double() {
    for cca in CONTROLLERS {
        for outage in outages() {
            let (log, outcome) = run(cca, outage);
            let dies = Time::ZERO + DIES;
            let returns = dies + outage;
            // What was on its way when the link failed still causes acknowledgements.
            let last_ack = *log.acked.iter().rfind(|at| **at < returns).expect("there are some");
            // The last one may be delayed, by 40 ms.
            assert!(last_ack < dies + DELAY * 2 + Span::from_millis(42), "{last_ack}");
            let before = log.sample(last_ack + STEP);
            // Who is paced goes on until the window is full.
            let mut last = last_ack;
            let mut sent: Vec<_> =
                log.sent_between(last_ack + Span::from_micros(1), returns).collect();
            sent.retain(|sending| {
                let is_paced = !sending.repeats && sending.at.since(last) < before.srtt / 2;
                last = if is_paced { sending.at } else { last };
                !is_paced
            });

            // RFC 8985 section 7.2: two round trips after the last acknowledgement or new data; section 7.3:
            // the timeout counts anew from the probe.
            let probe = last + before.srtt * 2;
            let mut slack = coarseness(before.srtt * 2);
            let mut expected = vec![(probe, slack)];
            let (mut timeout, mut rto) = (probe + before.rto, before.rto);
            while timeout < returns {
                slack += coarseness(rto);
                expected.push((timeout, slack));
                // RFC 6298 section 5.5.
                rto = rto * 2;
                timeout += rto;
            }
            // Rounding adds up; the last timeout may miss the outage by it.
            let context = format!("{cca} over {outage}");
            if expected.last().is_some_and(|(at, slack)| *at + *slack >= returns)
                && sent.len() < expected.len()
            {
                expected.pop();
            }
            assert_eq!(sent.len(), expected.len(), "{context}");
            for (index, (sending, (at, slack))) in sent.iter().zip(&expected).enumerate() {
                let off = sending.at.since(*at).max(at.since(sending.at));
                assert!(
                    off <= *slack,
                    "{context}: sending {index} at {} instead of {at}",
                    sending.at
                );
            }
            // Every timeout repeats the first outstanding segment.
            for sending in sent.iter().skip(1) {
                assert!(sending.repeats && sending.first == sent[1].first, "{context}");
            }
            let sample = outcome.flows[0].expect("a TCP flow");
            assert_eq!(sample.timeouts_total, sent.len().saturating_sub(1) as u64, "{context}");
        }
    }
}

#[test]
fn nothing_is_lost_and_next_to_nothing_repeated() {
    for cca in CONTROLLERS {
        for outage in outages() {
            let (log, outcome) = run(cca, outage);
            let context = format!("{cca} over {outage}");
            let sample = outcome.flows[0].expect("a TCP flow");
            assert_eq!(log.dropped, 0, "{context}");
            // The probe, and one segment for each timeout: no go-back-N, and nothing that RACK would
            // deem lost because of a repetition (RFC 8985 section 6.2 step 2).
            let most = sample.timeouts_total + 1;
            assert!(sample.retrans_total <= most, "{context}: {sample:?}");
            assert_eq!(
                sample.retrans_total,
                log.sent.iter().filter(|sending| sending.repeats).count() as u64,
                "{context}"
            );
            // In order and complete: what was delivered is acknowledged, except for the window that
            // is on its way at the end.
            let missing = log.delivered - sample.bytes_acked;
            assert!(missing <= WINDOW, "{context}: {missing}");
        }
    }
}

#[test]
fn the_queue_leaves_at_the_exact_rate_from_the_moment_of_return() {
    for outage in outages() {
        let (log, _) = run("cubic", outage);
        let returns = Time::ZERO + DIES + outage;
        let queued = WINDOW / 1448 - 20;
        let spacing = RATE.time_for(1514);
        let mut at = log.arrived.iter().skip_while(|at| **at < returns);
        let first = *at.next().expect("it returns");
        // The packet that was under way when the link failed is finished first.
        assert!(first <= returns + DELAY + spacing, "{first}");
        for number in 1..=queued {
            let exact = first + spacing * number;
            assert_eq!(at.next(), Some(&exact), "packet {number} after {outage}");
        }
    }
}

#[test]
fn a_timeout_that_was_not_needed_is_taken_back() {
    for cca in CONTROLLERS {
        for outage in outages() {
            let (log, outcome) = run(cca, outage);
            let context = format!("{cca} over {outage}");
            let sample = outcome.flows[0].expect("a TCP flow");
            if sample.timeouts_total == 0 {
                continue;
            }
            // One episode, however many timeouts there were.
            assert_eq!(sample.spurious_total, Some(1), "{context}");
            let before = log.sample(Time::ZERO + DIES);
            let returns = Time::ZERO + DIES + outage;
            // The first acknowledgement of late data shows that they were late (its echo is older
            // than the retransmission), one round trip of propagation after the return. A
            // model-based window follows the new samples, and bbr3 may be in ProbeRTT then.
            let (wait, least) = match cca {
                "reno" | "cubic" => (Span::from_millis(5), before.cwnd),
                "bbr" => (Span::from_millis(5), before.cwnd * 9 / 10),
                _ => (Span::from_millis(500), before.cwnd * 9 / 10),
            };
            let from = returns + DELAY * 2;
            let while_back = log.samples.iter().filter(|(at, _)| (from..=from + wait).contains(at));
            let cwnd = while_back.map(|(_, sample)| sample.cwnd).max().expect("each millisecond");
            assert!(cwnd >= least, "{context}: {cwnd} of {}", before.cwnd);
            // The last second runs at full rate again.
            let tail = Time::ZERO + DIES + outage + Span::from_secs(2);
            let bytes = log.arrived.iter().filter(|at| **at >= tail).count() as f64 * 1514.0;
            let share = bytes * 8.0 / RATE.as_bps() as f64;
            assert!(share > 0.95, "{context}: {share}");
        }
    }
}

#[test]
fn a_paced_sender_returns_without_a_burst_above_its_pacing() {
    for cca in ["bbr", "bbr3"] {
        for outage in outages() {
            let (log, _) = run(cca, outage);
            let returns = Time::ZERO + DIES + outage;
            // A bucket that fills at the pacing rate of the moment and holds a quantum or two:
            // never more than a millisecond's worth at 100 Mbit/s and ten segments.
            let depth = 12_500.0 + 10.0 * 1448.0;
            let (mut tokens, mut before) = (depth, returns);
            for sending in log.sent.iter().filter(|sending| sending.at >= returns) {
                // Sampled each millisecond; the larger of the rates before and after counts.
                let rates = [sending.at, sending.at + Span::from_millis(1)]
                    .map(|at| log.sample(at).pacing_rate.expect("it paces").as_bps());
                let rate = rates[0].max(rates[1]) as f64 / 8.0;
                tokens = (tokens + rate * sending.at.since(before).as_secs_f64()).min(depth);
                tokens -= sending.payload as f64;
                before = sending.at;
                assert!(tokens >= 0.0, "{cca} over {outage}: a burst at {}", sending.at);
            }
        }
    }
}

#[test]
fn a_probe_repeats_the_last_segment_when_the_receive_window_is_full() {
    // RFC 8985 section 7.3: a new segment is preferred, but here the window allows none.
    let outage = Span::from_millis(400);
    let (log, _) = run("cubic", outage);
    let returns = Time::ZERO + DIES + outage;
    let last_ack = *log.acked.iter().rfind(|at| **at < returns).expect("some");
    let probe = log.sent_between(last_ack + Span::from_micros(1), returns).next().expect("a probe");
    let highest = log.sent.iter().filter(|s| s.at < probe.at).map(|s| s.first).max();
    assert!(probe.repeats);
    assert_eq!(Some(probe.first), highest);
    assert_near("the probe", probe.at, last_ack + log.sample(last_ack + STEP).srtt * 2);
}
