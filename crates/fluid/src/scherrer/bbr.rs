//! BBRv1, by the paper's letters: estimates, ProbeRTT, and pulses of a period of eight round trips.

use super::shapes::{positive, sharp, since, smooth};
use super::{Seen, Shared};

/// Milliseconds between ProbeRTTs, and of one.
const PROBE_INTERVAL: f64 = 10_000.0;
const PROBE_LASTS: f64 = 200.0;
/// Packets in flight in ProbeRTT.
const PROBE_WINDOW: f64 = 4.0;
/// Round trips of a period of ProbeBW, and of those the ones in which flows probe.
const PERIOD: f64 = 8.0;
const PHASES: usize = 6;
const GAIN: f64 = 0.25;
/// Milliseconds at the ends of a period in which estimates are taken over.
const EDGE: f64 = 10.0;
/// How fast x_max follows.
const FOLLOW: f64 = 5.0;

/// What both versions of BBR estimate.
#[derive(Clone, Debug)]
pub(super) struct Estimates {
    /// x_max, x_btl and x_pcg: the largest delivery rate of the period, the estimate, and the pacing rate.
    pub(super) largest: f64,
    pub(super) bottleneck: f64,
    pub(super) pacing: f64,
    /// τ_min, and ten seconds of it.
    pub(super) least_rtt: f64,
    long_ago: LongAgo,
    /// m_prt and t_prt.
    pub(super) probes: f64,
    pub(super) until_probe: f64,
    /// v: in flight.
    pub(super) in_flight: f64,
    /// When the period began.
    pub(super) began: f64,
}

/// Estimates as old as the base round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old {
    pub(super) least_rtt: f64,
    pub(super) probes: f64,
    pub(super) until_probe: f64,
}

impl Estimates {
    pub(super) fn new(bottleneck: f64, delay: f64, until_probe: f64, in_flight: f64) -> Self {
        Self {
            largest: bottleneck,
            bottleneck,
            pacing: bottleneck,
            least_rtt: delay,
            long_ago: LongAgo::new(delay),
            probes: 0.0,
            until_probe,
            in_flight,
            began: 0.0,
        }
    }

    pub(super) fn is_probing(&self) -> bool {
        self.probes > 0.5
    }

    /// m_prt and t_prt: whether ProbeRTT is on, and when that changes next.
    pub(super) fn probe_rtt(&mut self, shared: &Shared, seen: &Seen, old: &Old) {
        let is_due = since(-old.until_probe);
        let is_stale = since(self.least_rtt - self.long_ago.at(seen.now));
        let begins = is_stale * (1.0 - old.probes);
        self.probes += shared.step * is_due * (begins - self.probes);
        let next = PROBE_INTERVAL - (PROBE_INTERVAL - PROBE_LASTS) * begins;
        self.until_probe += shared.step * (is_due * (next - self.until_probe) - 1.0);
    }

    /// x_max rises to what is delivered, and falls to nothing when a period begins.
    pub(super) fn follow(&mut self, shared: &Shared, seen: &Seen, in_period: f64) {
        if !self.is_probing() {
            let up = FOLLOW * positive(seen.delivery - self.largest);
            self.largest += shared.step * (up - sharp(EDGE - in_period) * self.largest);
        }
    }

    /// τ_min, and the start of the next period, at the end of a step.
    pub(super) fn end(&mut self, shared: &Shared, seen: &Seen, period: f64) {
        self.least_rtt -= shared.step * positive(self.least_rtt - seen.old_rtt);
        self.long_ago.note(seen.now, self.least_rtt);
        if seen.now - self.began >= period {
            self.began = seen.now;
        }
    }
}

/// A value as it was ten seconds ago, kept each millisecond.
#[derive(Clone, Debug)]
struct LongAgo {
    values: alloc::collections::VecDeque<f64>,
    next: f64,
}

impl LongAgo {
    fn new(value: f64) -> Self {
        Self { values: [value].into(), next: 1.0 }
    }

    fn note(&mut self, now: f64, value: f64) {
        if now >= self.next {
            self.values.push_back(value);
            self.next += 1.0;
        }
    }

    fn at(&mut self, now: f64) -> f64 {
        let oldest = now - PROBE_INTERVAL;
        while self.values.len() > 1 && self.next - self.values.len() as f64 + 1.0 <= oldest {
            self.values.pop_front();
        }
        self.values[0]
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bbr {
    pub(super) model: Estimates,
}

impl Bbr {
    pub(super) fn new(bottleneck: f64, delay: f64) -> Self {
        Self { model: Estimates::new(bottleneck, delay, PROBE_INTERVAL, bottleneck * delay) }
    }

    pub(super) fn phase(&self) -> &'static str {
        if self.model.is_probing() { "probe_rtt" } else { "probe_bw" }
    }

    /// Window and rate.
    pub(super) fn advance(
        &mut self,
        shared: &Shared,
        place: usize,
        seen: &Seen,
        old: &Old,
        rate: f64,
    ) -> (f64, f64) {
        let model = &mut self.model;
        let trip = old.least_rtt;
        let in_period = seen.now - model.began;
        let period = PERIOD * trip;
        model.probe_rtt(shared, seen, old);
        let probes = model.is_probing();
        let bdp = model.bottleneck * trip;
        let window = if probes { PROBE_WINDOW } else { 2.0 * libm::ceil(bdp) };
        model.follow(shared, seen, in_period);
        if !probes {
            // x_btl is taken over at the end of a period.
            let taken = sharp(in_period - period + EDGE);
            model.bottleneck += shared.step * taken * (model.largest - model.bottleneck);
        }
        let filled = if probes { window - model.in_flight } else { rate - seen.delivery };
        model.in_flight = (model.in_flight + shared.step * filled).max(0.0);
        // Flow i probes in the phase i mod 6, and drains in the next.
        let phase = (place % PHASES) as f64;
        let pulse = |phase: f64| {
            smooth(in_period - phase * trip) * smooth((phase + 1.0) * trip - in_period)
        };
        let gain = 1.0 + GAIN * pulse(phase) - GAIN * pulse(phase + 1.0);
        model.pacing = model.bottleneck * gain;
        let rate = if probes {
            model.in_flight / seen.rtt
        } else {
            (window / seen.old_rtt).min(model.pacing)
        };
        model.end(shared, seen, period);
        (window, rate)
    }
}
