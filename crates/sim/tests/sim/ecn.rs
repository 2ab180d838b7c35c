//! ECN from end to end: queues mark, receivers report, controllers respond.

use sojourn_core::{
    Direction, Ecn, EcnMode, Event, FlowSample, Observer, PortId, Rate, Span, StreamAddress, Time,
    Who,
};
use sojourn_host::tcp::{Config as Transport, EcnOffer, EcnSupport};
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Flow, Host, Link, Scenario, Until};

struct World {
    cca: &'static str,
    queue: &'static str,
    mbps: u64,
    rtt: Span,
    seconds: u64,
    back: &'static str,
    back_mbps: u64,
    back_loss: &'static str,
    loss: &'static str,
    transport: Transport,
}

impl Default for World {
    fn default() -> Self {
        Self {
            cca: "prague",
            queue: "dualpi2",
            mbps: 50,
            rtt: Span::from_millis(10),
            seconds: 30,
            back: "pfifo limit 1000",
            back_mbps: 100,
            back_loss: "none",
            loss: "none",
            transport: Transport::default(),
        }
    }
}

/// What was seen on the way and at the ends, from the warm-up on unless it says otherwise.
#[derive(Default)]
struct Seen {
    warmup: Time,
    end: Time,
    /// Of the whole run: new and repeated data segments by codepoint as sent, and marked ones as they
    /// arrived.
    sent: [u64; 4],
    repeated: [u64; 4],
    arrived_marked: u64,
    delivered_bytes: u64,
    before: Option<FlowSample>,
    last: FlowSample,
    sojourns_ms: Vec<f64>,
    srtt_ms: Vec<f64>,
}

impl Seen {
    fn mbps(&self) -> f64 {
        self.delivered_bytes as f64 * 8e-6 / self.end.since(self.warmup).as_secs_f64()
    }

    fn marks(&self) -> u64 {
        self.last.delivered_ce - self.before.map_or(0, |before| before.delivered_ce)
    }

    fn segments(&self) -> u64 {
        self.last.delivered - self.before.map_or(0, |before| before.delivered)
    }

    fn seconds(&self) -> f64 {
        self.end.since(self.warmup).as_secs_f64()
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

impl Observer for Seen {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let counts = now >= self.warmup;
        match (who, event) {
            (Who::Flow(_), Event::Sent { packet }) => {
                if let sojourn_core::Body::Segment(segment) = packet.body {
                    let by =
                        if segment.retransmission { &mut self.repeated } else { &mut self.sent };
                    by[packet.ecn as usize] += u64::from(packet.segments);
                }
            }
            (Who::Flow(_), Event::Arrived { packet })
                if packet.direction == Direction::Forward && packet.ecn == Ecn::Ce =>
            {
                self.arrived_marked += u64::from(packet.segments);
            }
            (Who::Port(PortId(0)), Event::Dequeued { sojourn, .. }) if counts => {
                self.sojourns_ms.push(sojourn.as_millis_f64());
            }
            (Who::Flow(_), Event::Delivered { bytes }) if counts => self.delivered_bytes += bytes,
            (Who::Flow(_), Event::FlowSample(sample)) => {
                if counts {
                    self.before.get_or_insert(self.last);
                    self.srtt_ms.push(sample.srtt.as_millis_f64());
                }
                self.last = **sample;
            }
            _ => {}
        }
    }
}

fn scenario(world: &World) -> Scenario {
    let link = |name, queue, mbps: u64, loss| Link {
        loss: LossConfig::parse(loss).expect("a loss"),
        ..Link::new(
            name,
            sojourn_qdisc::Config::parse(queue).expect("a queue"),
            RateConfig::fixed(Rate::from_bps(mbps * 1_000_000)).expect("a rate"),
            world.rtt / 2,
        )
    };
    let cca = sojourn_cca::Config::parse(world.cca).expect("a controller");
    Scenario {
        duration: Span::from_secs(world.seconds),
        until: Until::Duration,
        warmup: Span::from_secs(world.seconds / 3),
        step: Span::from_millis(20),
        hosts: ["a", "b"].map(|name| Host { name: name.into() }).into(),
        links: vec![
            link("there", world.queue, world.mbps, world.loss),
            link("back", world.back, world.back_mbps, world.back_loss),
        ],
        carriers: Vec::new(),
        changes: Vec::new(),
        flows: vec![Flow::new("flow", App::bulk(cca, world.transport.clone()), &[0], &[1])],
    }
}

fn run(world: &World) -> Seen {
    let scenario = scenario(world).checked().expect("a scenario");
    let mut seen = Seen {
        warmup: Time::ZERO + scenario.warmup,
        end: Time::ZERO + scenario.duration,
        ..Seen::default()
    };
    sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 0 }, &mut seen).expect("invariants");
    seen
}

/// Marks that arrived and that the sender does not know of yet.
fn unheard(seen: &Seen) -> i64 {
    seen.arrived_marked as i64 - seen.last.delivered_ce as i64
}

fn accurate() -> Transport {
    Transport { ecn: Some(EcnOffer::Accurate), ..Transport::default() }
}

#[test]
fn senders_count_what_queues_mark() {
    for cca in ["prague", "prague-linux", "prague-udp", "dctcp", "cubic", "bbr2 ecn=on"] {
        for queue in ["dualpi2", "fq_codel ce_threshold 1ms", "pie ecn"] {
            for (ecn_option, offload) in [(true, false), (true, true), (false, false)] {
                // Sixteen times the BDP; more would let slow start lose thousands of segments.
                let receive_window = Some(1_000_000.into());
                let transport = Transport { ecn_option, offload, receive_window, ..accurate() };
                let seen = run(&World { cca, queue, transport, seconds: 3, ..World::default() });
                let unheard = unheard(&seen);
                // The last round trip is under way. Where segments are lost, three SACK blocks
                // leave no room for the option, and many segments at once may then count a round
                // of the field too much.
                let has_losses = seen.repeated != [0; 4] || !ecn_option;
                let surplus = if has_losses { seen.arrived_marked as i64 / 20 + 8 } else { 0 };
                assert!((-surplus..=60).contains(&unheard), "{cca} {queue}: {unheard}");
            }
        }
    }
}

/// With filters that keep acknowledgements whose counter differs, with a queue that overflows, and
/// with losses, the option reports what the field does not.
/// What `ss` calls `ecn` and `ecnseen`: acknowledgements bear ECT where feedback is accurate, and
/// not with RFC 3168's (section 6.1.4).
#[test]
fn a_sender_tells_what_was_agreed_on() {
    let told = |cca, transport| {
        let last = run(&World { cca, seconds: 2, transport, ..World::default() }).last;
        (last.ecn, last.ecn_seen)
    };
    let classic = Transport { ecn: Some(EcnOffer::Classic), ..Transport::default() };
    assert_eq!(told("prague", accurate()), (EcnMode::AccEcn, true));
    assert_eq!(told("cubic", classic), (EcnMode::Rfc3168, false));
    assert_eq!(told("cubic", Transport::default()), (EcnMode::Disabled, false));
}

#[test]
fn thinned_acknowledgements_hide_no_marks() {
    for (back, back_mbps, back_loss) in [
        ("cake bandwidth 1mbit ack-filter", 100, "none"),
        ("cake bandwidth 300kbit ack-filter", 100, "none"),
        ("cake bandwidth 1mbit ack-filter-aggressive", 100, "none"),
        ("pfifo limit 20", 1, "none"),
        ("pfifo limit 1000", 100, "20%"),
        ("pfifo limit 1000", 100, "60%"),
    ] {
        for cca in ["prague", "dctcp"] {
            for offload in [false, true] {
                let transport = Transport { offload, ..accurate() };
                let queue = "fq ce_threshold 5ms";
                let world =
                    World { cca, queue, back, back_mbps, back_loss, transport, ..World::default() };
                let seen = run(&World { seconds: 6, ..world });
                assert!(seen.arrived_marked > 100, "{cca} {back} {back_loss}");
                let unheard = unheard(&seen);
                assert!((0..=60).contains(&unheard), "{cca} {back} {back_loss}: {unheard}");
            }
        }
    }
}

/// Without the option the sender assumes the worst where the field could have wrapped (RFC 9768
/// section 3.2.2.5.2): it may count too many marks, not too few.
#[test]
fn without_the_option_lost_acknowledgements_count_as_marks() {
    let transport = Transport { ecn_option: false, ..accurate() };
    let queue = "fq ce_threshold 5ms";
    let seen = run(&World { queue, transport, back_loss: "20%", ..World::default() });
    assert!(unheard(&seen) < -100, "{}", unheard(&seen));
    assert!(seen.mbps() > 47.0, "{}", seen.mbps());
}

/// Marks per virtual round trip at which cuts and growth balance if each segment is marked with
/// probability `p`: x / 2 = (1 − p)(1 + 1 / x).
fn prague_balance(p: f64) -> f64 {
    let q = 1.0 - p;
    q + (q * q + 2.0 * q).sqrt()
}

/// RFC 9331 section 4.1 aims at two; because a cut waits for the first mark after a round, it is
/// 2.73 for small p. The queue's controller marks at random, without the step.
#[test]
fn prague_settles_at_the_marks_per_round_trip_that_it_aims_at() {
    for cca in ["prague", "prague-linux", "prague-udp"] {
        for mbps in [20, 50] {
            let queue = "dualpi2 step_thresh 1s";
            let seen = run(&World { cca, queue, mbps, seconds: 60, ..World::default() });
            assert!(seen.mbps() > 0.955 * mbps as f64, "{cca}: {}", seen.mbps());
            assert_eq!(seen.repeated, [0; 4]);
            let p = seen.marks() as f64 / seen.segments() as f64;
            let virtual_rtt = median(&seen.srtt_ms).max(25.0) / 1e3;
            let marks = seen.marks() as f64 / seen.seconds() * virtual_rtt;
            let expected = prague_balance(p);
            assert!((marks / expected - 1.0).abs() < 0.07, "{cca} {mbps}: {marks} {expected}");
        }
    }
}

/// DCTCP cuts W α / 2 when marks come and grows by a segment a round trip when none do, for 1 / x of
/// one: x = √2 marks per round trip. Cuts are rounded down to whole segments, and below x = 2 they
/// are less than one on average.
#[test]
fn dctcp_settles_between_the_balance_of_real_and_of_whole_segments() {
    for ecn in [EcnOffer::Classic, EcnOffer::Accurate] {
        for mbps in [10, 20] {
            let transport = Transport { ecn: Some(ecn), ..Transport::default() };
            let world =
                World { cca: "dctcp", queue: "dualpi2", mbps, transport, ..World::default() };
            let seen = run(&World { seconds: 60, ..world });
            let marks = seen.marks() as f64 / seen.seconds() * median(&seen.srtt_ms) / 1e3;
            assert!((1.42..2.0).contains(&marks), "{ecn:?} {mbps}: {marks}");
            assert!(unheard(&seen) <= 10, "mark by mark is exact here: {}", unheard(&seen));
        }
    }
}

/// The queue stays at the threshold from which everything is marked, and the link is busy. (Of 50
/// Mbit/s, 48.3 can be payload.)
#[test]
fn scalable_controllers_hold_a_queue_at_its_threshold() {
    for (cca, queue, threshold, least) in [
        ("prague", "fq ce_threshold 5ms", 5.0, 47.7),
        ("prague-linux", "fq ce_threshold 5ms", 5.0, 47.7),
        ("prague-udp", "fq ce_threshold 5ms", 5.0, 47.7),
        ("prague", "dualpi2", 1.0, 47.5),
        ("prague-linux", "dualpi2", 1.0, 47.5),
        ("dctcp", "codel ce_threshold 5ms", 5.0, 47.7),
        ("dctcp", "codel ce_threshold 1ms", 1.0, 47.2),
        ("dctcp", "red limit 1000000 min 30000 max 30001 avpkt 1500 burst 20 ecn", 5.0, 47.7),
    ] {
        let seen = run(&World { cca, queue, ..World::default() });
        let sojourn = median(&seen.sojourns_ms);
        assert!((0.45 * threshold..threshold).contains(&sojourn), "{cca} {queue}: {sojourn}");
        assert!(seen.mbps() > least, "{cca} {queue}: {}", seen.mbps());
        assert_eq!(seen.repeated, [0; 4], "{cca} {queue}");
    }
}

/// RFC 9331 section 4.2, RFC 8257 section 3.1: without the feedback they behave as Reno, to the
/// byte.
#[test]
fn without_their_feedback_scalable_controllers_are_reno() {
    use EcnOffer as A;
    use EcnSupport as B;
    let seen = |cca, ecn, receiver_ecn| {
        let transport = Transport { ecn, receiver_ecn, ..Transport::default() };
        run(&World { cca, transport, seconds: 6, ..World::default() })
    };
    let classic = seen("reno", Some(A::Classic), B::Classic);
    let off = seen("reno", Some(A::Off), B::Off);
    assert!(classic.marks() > 0 && off.marks() == 0);
    for (cca, ecn, receiver_ecn, reno) in [
        ("prague", None, B::Classic, &classic),
        ("prague-linux", None, B::Classic, &classic),
        ("prague-udp", None, B::Classic, &classic),
        ("prague", Some(A::Classic), B::Accurate, &classic),
        ("prague", None, B::Off, &off),
        ("prague-linux", Some(A::Off), B::Accurate, &off),
        ("dctcp", None, B::Off, &off),
        ("dctcp", Some(A::Off), B::MarkByMark, &off),
    ] {
        let seen = seen(cca, ecn, receiver_ecn);
        assert_eq!(seen.delivered_bytes, reno.delivered_bytes, "{cca} {ecn:?} {receiver_ecn:?}");
        assert_eq!(seen.sent, reno.sent);
        assert_eq!(seen.sent[Ecn::Ect1 as usize], 0);
    }
}

/// Losses besides marks: with accurate feedback repeated segments carry ECT(1), with classic
/// feedback they are not ECN-capable.
#[test]
fn repeated_data_bears_ect_with_accurate_feedback_only() {
    for (ecn, ect) in [(EcnOffer::Accurate, Ecn::Ect1), (EcnOffer::Classic, Ecn::NotEct)] {
        let transport = Transport { ecn: Some(ecn), ..Transport::default() };
        let queue = "dualpi2 limit 60";
        let back = "dualpi2";
        let seen = run(&World { queue, back, mbps: 5, transport, loss: "1%", ..World::default() });
        let repeated: u64 = seen.repeated.iter().sum();
        assert!(repeated > 100, "{repeated}");
        assert_eq!(seen.repeated[ect as usize], repeated);
        assert!(seen.marks() > 0);
    }
}

/// The BBRs respond to marks only if that is switched on, and use the same counts.
#[test]
fn bbr_hears_of_marks() {
    for ecn in [EcnOffer::Classic, EcnOffer::Accurate] {
        let seen = |cca| {
            let transport = Transport { ecn: Some(ecn), ..Transport::default() };
            let rtt = Span::from_millis(4);
            run(&World { cca, rtt, transport, queue: "fq ce_threshold 1ms", ..World::default() })
        };
        let (deaf, hears) = (seen("bbr2"), seen("bbr2 ecn=on"));
        assert!(hears.mbps() < 0.99 * deaf.mbps(), "{ecn:?}: {} {}", hears.mbps(), deaf.mbps());
        assert!((0..=10).contains(&unheard(&hears)), "{}", unheard(&hears));
    }
}
