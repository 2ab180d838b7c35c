//! Pacing rate, send quantum and congestion window, section 5.6.

use sojourn_core::Span;

use super::bandwidth::Bandwidth;
use super::{Bbr3, INFINITY, State};
use crate::Ack;

/// A quantum lasts this long,
const QUANTUM: Span = Span::from_millis(1);
/// but has at most this many bytes
const MAX_QUANTUM: u32 = 64 * 1024;
/// and at least this many segments.
const MIN_QUANTUM: u32 = 2;
/// The offload budget has a quantum in the sending host, one in its offloading engine and one in
/// the receiving host.
const QUANTA_IN_HOSTS: u32 = 3;

impl Bbr3 {
    pub(crate) fn update_control_parameters(&mut self, ack: &Ack) {
        if !self.has_seen_rtt && ack.srtt.is_some() {
            self.init_pacing_rate(ack.srtt);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain);
        self.set_cwnd(ack);
    }

    /// Spreads the initial window over the first known round-trip time.
    pub(super) fn init_pacing_rate(&mut self, srtt: Option<Span>) {
        self.has_seen_rtt = srtt.is_some();
        let interval = srtt.unwrap_or(Span::from_millis(1)).max(Span::from_micros(1));
        let nominal = Bandwidth::of(self.initial_cwnd, interval);
        self.pacing_rate = nominal.times(self.config.startup_pacing_gain);
        self.set_send_quantum();
    }

    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let margin = f64::from(100 - self.config.pacing_margin.0) / 100.0;
        let rate = self.bw.times(gain).times(margin);
        if self.full_bw.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
            self.set_send_quantum();
        }
    }

    /// `BDPMultiple`, in whole segments, rounded up.
    pub(super) fn bdp_multiple(&self, bw: Bandwidth, gain: f64) -> u32 {
        match self.min_rtt.min_rtt {
            Some(min_rtt) => ceil(bw.volume_in(min_rtt) * gain),
            None => self.initial_cwnd,
        }
    }

    pub(super) fn inflight(&self, bw: Bandwidth, gain: f64) -> u32 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    pub(super) fn set_send_quantum(&mut self) {
        let quantum = self.pacing_rate.volume_in(QUANTUM) as u32;
        self.send_quantum = quantum.min(MAX_QUANTUM / self.smss).max(MIN_QUANTUM);
    }

    fn quantization_budget(&self, inflight_cap: u32) -> u32 {
        let offload_budget = QUANTA_IN_HOSTS * self.send_quantum;
        let cap = inflight_cap.max(offload_budget).max(self.config.min_pipe_cwnd);
        if self.state == State::ProbeBwUp { cap.saturating_add(2) } else { cap }
    }

    fn max_inflight(&self) -> u32 {
        let cap = self.bdp_multiple(self.bw, self.cwnd_gain);
        self.quantization_budget(cap.saturating_add(self.extra_acked.value()))
    }

    fn set_cwnd(&mut self, ack: &Ack) {
        let max_inflight = self.max_inflight();
        let grown = self.cwnd.saturating_add(ack.delivered);
        if self.full_bw.reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < u64::from(self.initial_cwnd) {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.config.min_pipe_cwnd);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    pub(super) fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.long_term.inflight,
            State::Startup | State::Drain => INFINITY,
        };
        let cap = cap.min(self.short_term.inflight).max(self.config.min_pipe_cwnd);
        self.cwnd = self.cwnd.min(cap);
    }
}

/// The least whole number that is not below `volume`; `volume` must not be negative.
fn ceil(volume: f64) -> u32 {
    let whole = volume as u32;
    whole.saturating_add(u32::from(f64::from(whole) < volume))
}
