//! A link for tests of controllers: a rate, an endless queue, a delay each way, losses and marks, and reports at a steady pace.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_core::{Ecn, Purpose, Rate, Span, Stream, StreamAddress, Time};

use super::{Controller, Feedback, Outstanding, ReceiverReport, Report, Sent, Setup};

const PACKET: u32 = 1200;
/// Size of every packet in bits.
pub(super) const PACKET_BITS: f64 = 8.0 * PACKET as f64;

pub(super) struct World {
    pub(super) control: Box<dyn Controller>,
    pub(super) rate: f64,
    pub(super) delay: Span,
    /// With n, every n-th packet is lost, or marked; 0 for none.
    pub(super) loss_every: u64,
    pub(super) mark_every: u64,
    /// Packets are marked when they wait longer than this; seconds.
    pub(super) step: Option<f64>,
    /// Between reports.
    pub(super) interval: Span,
    /// How much frames differ from their mean size.
    pub(super) noise: f64,
    random: Stream,
}

/// What was measured in the last third of a run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Bits a second that arrive, and the mean target.
    pub(super) rate: f64,
    pub(super) target: f64,
    /// The mean rate by delay.
    pub(super) by_delay: f64,
    /// Seconds of waiting, a packet's own time not counted, on average and at most in the whole run.
    pub(super) queue: f64,
    pub(super) peak: f64,
    /// Marks in a round trip.
    pub(super) marks: f64,
    /// Mean target of each second.
    pub(super) seconds: Vec<f64>,
}

impl World {
    /// A controller as `words` say, from 150 kbit/s to `max`, over a link of `rate` bit/s and 100 ms of round trip.
    pub(super) fn new(words: &str, rate: f64, max: u64) -> Self {
        let config = super::kinds().parse(words).expect("well written");
        let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Controller);
        let control = config.build(Setup {
            now: Time::ZERO,
            start_rate: None,
            min_rate: Rate::from_bps(150_000),
            max_rate: Rate::from_bps(max),
            mtu: PACKET,
            frames_per_second: 30.0,
            random: random.clone(),
        });
        Self {
            control,
            rate,
            delay: Span::from_millis(50),
            loss_every: 0,
            mark_every: 0,
            step: None,
            interval: config.feedback_interval(),
            noise: 0.1,
            random,
        }
    }

    pub(super) fn run(mut self, seconds: u64) -> Seen {
        let mut seen = Seen::default();
        let from = Time::ZERO + Span::from_secs(seconds - seconds / 3);
        let (mut now, mut free, mut number) = (Time::ZERO, Time::ZERO, 0_u64);
        let mut under_way: Vec<Report> = Vec::new();
        let mut on_way_back: Vec<(Time, Vec<Report>)> = Vec::new();
        let (mut in_flight, mut next_send, mut next_report) = (0_u64, now, now + self.interval);
        let (mut next_frame, mut backlog) = (now, 0.0_f64);
        let (mut counted, mut waited, mut marked, mut steps) = (0.0, 0.0, 0.0, 0.0);
        let (mut lost, mut expected, mut report_at) = (0_u64, 0_u64, now + Span::from_secs(1));
        let tick = Span::from_micros(500);
        while now < Time::ZERO + Span::from_secs(seconds) {
            let outputs = self.control.outputs();
            let target = outputs.target.as_bps() as f64;
            let second = (now.as_nanos() / 1_000_000_000) as usize;
            seen.seconds.resize(second + 1, 0.0);
            seen.seconds[second] += target * tick.as_secs_f64();
            if now >= from {
                (seen.target, steps) = (seen.target + target, steps + 1.0);
                seen.by_delay += self.control.estimates().delay_based.unwrap_or(0.0);
            }
            if now >= next_frame {
                // Frames vary in size, because equal ones would repeat the same pattern of waits for ever.
                let size = target / 240.0 * self.random.uniform(1.0 - self.noise, 1.0 + self.noise);
                self.control.on_frame(now, size as u32);
                backlog += size;
                next_frame += Span::from_nanos(33_333_333);
            }
            let has_room =
                outputs.window.is_none_or(|window| in_flight + u64::from(PACKET) <= window);
            while now >= next_send && backlog >= f64::from(PACKET) && has_room {
                backlog -= f64::from(PACKET);
                let packet = Sent { number, at: now, size: PACKET, ..Sent::default() };
                let queue_delay = Span::from_secs_f64(backlog * 8.0 / target);
                self.control.on_sent(
                    &packet,
                    &Outstanding { in_flight, queued: backlog as u64, queue_delay },
                );
                in_flight += u64::from(PACKET);
                number += 1;
                let wait = free.since(now).as_secs_f64();
                free = free.max(now) + Span::from_secs_f64(PACKET_BITS / self.rate);
                let every = |every: u64| every > 0 && number.is_multiple_of(every);
                let is_lost = every(self.loss_every);
                let is_marked = every(self.mark_every) || self.step.is_some_and(|step| wait > step);
                let at = free + self.delay;
                under_way.push(Report {
                    packet,
                    // A loss is reported when the packet would have arrived.
                    arrived: Some(at),
                    ecn: if is_marked { Ecn::Ce } else { Ecn::Ect1 },
                });
                if is_lost {
                    under_way.last_mut().expect("just pushed").packet.probe = Some(u32::MAX);
                }
                seen.peak = seen.peak.max(wait);
                if now >= from {
                    (counted, waited) = (counted + 1.0, waited + wait);
                    marked += if is_marked { 1.0 } else { 0.0 };
                }
                next_send = match outputs.pacing {
                    Some(pacing) => {
                        next_send.max(now)
                            + Span::from_secs_f64(PACKET_BITS / pacing.as_bps() as f64)
                    }
                    None => now,
                };
                if outputs.window.is_some() {
                    break;
                }
            }
            if now >= next_report {
                next_report += self.interval;
                let split = under_way.partition_point(|report| report.arrived <= Some(now));
                let mut told: Vec<Report> = under_way.drain(..split).collect();
                for report in &mut told {
                    if report.packet.probe.take().is_some() {
                        report.arrived = None;
                        lost += 1;
                    }
                    expected += 1;
                }
                on_way_back.push((now + self.delay, told));
            }
            if on_way_back.first().is_some_and(|(at, _)| *at <= now) {
                let (_, told) = on_way_back.remove(0);
                let prior_in_flight = in_flight;
                in_flight -= told.len() as u64 * u64::from(PACKET);
                let held = Some(Span::ZERO);
                let feedback = Feedback { now, reports: &told, prior_in_flight, in_flight, held };
                if !told.is_empty() {
                    self.control.on_feedback(&feedback);
                }
            }
            if now >= report_at {
                report_at += Span::from_secs(1);
                self.control.on_receiver_report(&ReceiverReport {
                    now,
                    fraction_lost: lost as f64 / expected.max(1) as f64,
                    cumulative_lost: 0,
                    expected,
                    jitter: Span::ZERO,
                    rtt: Some(self.delay * 2),
                });
                (lost, expected) = (0, 0);
            }
            now += tick;
        }
        seen.rate = counted * PACKET_BITS / (seconds / 3) as f64;
        seen.target /= steps;
        seen.by_delay /= steps;
        seen.queue = waited / counted;
        let rtt = (self.delay * 2).as_secs_f64() + seen.queue;
        seen.marks = marked / (seconds / 3) as f64 * rtt;
        seen
    }
}
