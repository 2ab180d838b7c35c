//! Prague as the kernel module has it (L4STeam/linux, `net/ipv4/tcp_prague.c`, version 0.6, with its
//! default settings: RTT independence "rate", no fallback for classic ECN queues).
//!
//! The window is whole segments and a carry, `cwnd_cnt`. Increases and reductions change the carry;
//! each acknowledgement moves at most one segment from the carry to the window, also after a loss.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::whole;
use sojourn_core::{Rate, Span, Time};

use super::episodes::Episodes;
use super::paced_bytes;
use crate::dctcp::OrReno;
use crate::reno::window::is_after;
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, EcnFeedback, EcnRequest, Quantum,
    RecoveryState, Setup, Undo,
};

sojourn_core::params! {
    /// The parameters of the kernel module.
    pub struct Config: "prague-linux", "Prague, as the kernel module tcp_prague 0.6 has it" {
        pub(crate) prague_rtt_target: Span = "25ms", "Round-trip time as which a shorter one counts; 0s for no such rule";
        pub(crate) prague_rtt_transition: u32 = "500", "Rounds after slow start before that rule holds";
        pub(crate) prague_shift_g: u32 = "4", whole(1, 10), "Weight of a round's mark rate in its moving average, as a power: g = 1/16";
        pub(crate) prague_burst_shift: u32 = "12", whole(1, 31), "Longest burst, as a negative power of two of a second: 244 µs";
        pub(crate) min_tso_segs: u32 = "2", "Least burst, in segments";
    }
}

const MIN_CWND: u32 = 2;
const ALPHA_BITS: u32 = 20;
const MAX_ALPHA: u64 = 1 << ALPHA_BITS;
/// One segment, in units of the carry.
const CWND_UNIT: u32 = ALPHA_BITS;
const ONE_CWND: i64 = 1 << CWND_UNIT;
/// Round-trip times are compared in units of 2⁷ µs.
const RTT_UNIT: u32 = 7;
const NO_THRESHOLD: u32 = u32::MAX;

impl Algorithm for Config {
    type Controller = OrReno<PragueLinux>;

    /// Prague if the ends agreed on accurate feedback, otherwise Reno.
    fn build(&self, setup: Setup) -> OrReno<PragueLinux> {
        match setup.ecn {
            EcnFeedback::Accurate => OrReno::Scalable(PragueLinux::new(self.clone(), setup)),
            EcnFeedback::Off | EcnFeedback::Classic => OrReno::reno(setup),
        }
    }

    fn ecn_request(&self) -> EcnRequest {
        EcnRequest::L4s
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["slow_start", "avoidance", "avoidance:rtt_independent"]
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct PragueLinux {
    config: Config,
    mtu: u32,
    cwnd: u32,
    ssthresh: u32,
    cwnd_cnt: i64,
    /// Window, carry and threshold before the last loss.
    loss_cwnd: u32,
    loss_cwnd_cnt: i64,
    prior_ssthresh: Option<u32>,
    episodes: Episodes,
    /// From a loss until the connection is undisturbed again.
    in_loss: bool,
    is_loss_answered: bool,
    /// The congestion estimate, divided by its weight so that no remainder is lost.
    upscaled_alpha: u64,
    alpha_stamp: Time,
    cwr_stamp: Time,
    saw_ce: bool,
    /// Increase of `cwnd_cnt` for a window's worth of unmarked segments.
    ai_ack_increase: u64,
    srtt: Option<Span>,
    /// Rounds since slow start.
    round: u32,
    next_seq: Option<u32>,
    old_delivered: u64,
    old_delivered_ce: u64,
    bytes_per_sec: Option<u64>,
    max_tso_burst: u32,
}

impl PragueLinux {
    pub fn new(config: Config, setup: Setup) -> Self {
        let mut prague = Self {
            mtu: setup.mtu.max(1),
            cwnd: setup.initial_cwnd.max(1),
            ssthresh: NO_THRESHOLD,
            cwnd_cnt: 0,
            loss_cwnd: 0,
            loss_cwnd_cnt: 0,
            prior_ssthresh: None,
            episodes: Episodes::default(),
            in_loss: false,
            is_loss_answered: false,
            upscaled_alpha: MAX_ALPHA << config.prague_shift_g,
            alpha_stamp: setup.now,
            cwr_stamp: Time::ZERO,
            saw_ce: false,
            ai_ack_increase: ONE_CWND as u64,
            srtt: setup.handshake_rtt,
            round: 0,
            next_seq: None,
            old_delivered: 0,
            old_delivered_ce: 0,
            bytes_per_sec: None,
            max_tso_burst: 1,
            config,
        };
        prague.update_pacing_rate(0);
        prague
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn is_rtt_independent(&self) -> bool {
        !self.config.prague_rtt_target.is_zero()
            && !self.is_slow_start()
            && self.round >= self.config.prague_rtt_transition
    }

    /// The target as the kernel rounds it.
    fn target_rtt(&self) -> u64 {
        (self.config.prague_rtt_target.as_micros() >> RTT_UNIT).max(1)
    }

    fn has_target_elapsed(&self, now: Time, since: Time) -> bool {
        now.since(since).as_micros() >= self.target_rtt() << RTT_UNIT
    }

    /// Unmarked segments add to the carry in every state but loss; then the window follows the
    /// carry.
    fn update_cwnd(&mut self, ack: &Ack) {
        self.saw_ce |= ack.ce > 0;
        let mut acked = ack.delivered.saturating_sub(ack.ce);
        if acked > 0 && !self.in_loss && ack.is_cwnd_limited {
            if self.is_slow_start() {
                let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
                acked -= grown - self.cwnd;
                self.cwnd = grown;
                if acked == 0 {
                    self.scale_increase();
                    return;
                }
            }
            let cwnd = u64::from(self.cwnd);
            let increase = (u64::from(acked) * self.ai_ack_increase + (cwnd >> 1)) / cwnd;
            self.cwnd_cnt += increase.max(u64::from(acked)) as i64;
        }
        if self.cwnd_cnt <= -ONE_CWND {
            self.cwnd_cnt += ONE_CWND;
            self.cwnd -= 1;
            if self.cwnd < MIN_CWND {
                self.cwnd = MIN_CWND;
                self.cwnd_cnt = 0;
            }
            self.ssthresh = self.cwnd;
            self.scale_increase();
        } else if self.cwnd_cnt >= ONE_CWND {
            self.cwnd_cnt -= ONE_CWND;
            self.cwnd = self.cwnd.saturating_add(1);
            self.scale_increase();
        }
    }

    /// If the round-trip time is shorter than the target, the window grows only as fast as with the
    /// target, in segments and in rate.
    fn scale_increase(&mut self) {
        let target = self.target_rtt();
        let rtt = self.srtt.map_or(0, |srtt| srtt.as_micros() >> RTT_UNIT);
        let is_scaled = !self.config.prague_rtt_target.is_zero()
            && self.round >= self.config.prague_rtt_transition
            && rtt > 0
            && rtt < target;
        self.ai_ack_increase = if is_scaled {
            let divisor = target * target;
            ((rtt << CWND_UNIT) * rtt + (divisor >> 1)) / divisor
        } else {
            ONE_CWND as u64
        };
    }

    /// Once per round, and once per target round-trip time where that is longer.
    fn update_alpha(&mut self, ack: &Ack) {
        let is_round = self.next_seq.is_none_or(|next_seq| !is_after(next_seq, ack.snd_una));
        if !is_round
            || (self.is_rtt_independent() && !self.has_target_elapsed(ack.now, self.alpha_stamp))
        {
            return;
        }
        // Before the first mark nothing shows that a queue on the path marks.
        if self.saw_ce {
            let shift_g = self.config.prague_shift_g;
            let delivered = ack.total_delivered - self.old_delivered;
            let ce = ack.total_delivered_ce.saturating_sub(self.old_delivered_ce);
            let rate = if ce == 0 { 0 } else { (ce << ALPHA_BITS) / delivered.max(1) };
            let alpha = self.upscaled_alpha - (self.upscaled_alpha >> shift_g) + rate;
            self.upscaled_alpha = alpha.min(MAX_ALPHA << shift_g);
            self.alpha_stamp = ack.now;
        }
        self.next_seq = Some(ack.snd_nxt);
        self.old_delivered = ack.total_delivered;
        self.old_delivered_ce = ack.total_delivered_ce;
        if !self.is_slow_start() {
            self.round = self.round.saturating_add(1);
        }
        self.scale_increase();
    }

    fn enter_cwr(&mut self, now: Time) {
        if self.is_rtt_independent() && !self.has_target_elapsed(now, self.cwr_stamp) {
            return;
        }
        self.cwr_stamp = now;
        let alpha = self.upscaled_alpha >> self.config.prague_shift_g;
        // A share and a segment have the same unit. The added 1 rounds to nearest, which avoids a
        // bias.
        self.cwnd_cnt -= ((alpha * u64::from(self.cwnd) + 1) >> 1) as i64;
    }

    fn enter_loss(&mut self) {
        self.loss_cwnd = self.cwnd;
        self.loss_cwnd_cnt = self.cwnd_cnt;
        self.cwnd_cnt -= (i64::from(self.cwnd) << (CWND_UNIT - 1)) + (self.cwnd_cnt >> 1);
        self.in_loss = true;
        self.is_loss_answered = true;
        self.scale_increase();
    }

    fn remembered_ssthresh(&self) -> u32 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }

    fn update_pacing_rate(&mut self, in_flight: u32) {
        let Some(srtt) = self.srtt else { return };
        let is_early = self.cwnd < self.ssthresh / 2;
        let window = self.cwnd.max(in_flight);
        let bytes_per_sec = paced_bytes(self.mtu, window, srtt) << u32::from(is_early);
        let burst = (bytes_per_sec >> self.config.prague_burst_shift) / u64::from(self.mtu);
        self.max_tso_burst = (burst.min(1 << 16) as u32).max(1);
        self.bytes_per_sec = Some(bytes_per_sec.max(1));
    }
}

#[cfg(test)]
impl PragueLinux {
    /// Puts the controller into congestion avoidance, with the given window and average.
    pub(super) fn put(&mut self, cwnd: u32, alpha: f64) {
        (self.cwnd, self.ssthresh) = (cwnd, cwnd);
        let scale = (MAX_ALPHA << self.config.prague_shift_g) as f64;
        self.upscaled_alpha = (alpha * scale) as u64;
    }

    pub(super) fn alpha(&self) -> f64 {
        self.upscaled_alpha as f64 / (MAX_ALPHA << self.config.prague_shift_g) as f64
    }

    /// Segments, with the carry.
    pub(super) fn window(&self) -> f64 {
        f64::from(self.cwnd) + self.cwnd_cnt as f64 / ONE_CWND as f64
    }
}

impl Controller for PragueLinux {
    fn on_ack(&mut self, ack: &Ack) {
        self.episodes.on_ack(ack);
        self.srtt = ack.srtt.or(self.srtt);
        match ack.state {
            RecoveryState::Open => (self.in_loss, self.is_loss_answered) = (false, false),
            RecoveryState::Recovery if !self.is_loss_answered => {
                self.prior_ssthresh = None;
                self.enter_loss();
            }
            _ => {}
        }
        self.update_cwnd(ack);
        self.update_alpha(ack);
        self.update_pacing_rate(ack.in_flight);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let is_new = self.episodes.begin(congestion);
        match congestion.kind {
            CongestionKind::Ecn => {
                self.prior_ssthresh = None;
                self.enter_cwr(congestion.now);
            }
            CongestionKind::Loss => {
                if congestion.prior_state != RecoveryState::Recovery {
                    let may_undo = congestion.prior_state != RecoveryState::Cwr;
                    self.prior_ssthresh = may_undo.then(|| self.remembered_ssthresh());
                    self.enter_loss();
                }
            }
            CongestionKind::Timeout => {
                if is_new {
                    let is_reducing = congestion.prior_state.is_reducing();
                    let kept = if is_reducing { self.ssthresh } else { self.remembered_ssthresh() };
                    self.prior_ssthresh = Some(kept);
                    self.enter_loss();
                }
                self.cwnd = congestion.in_flight.saturating_add(1);
            }
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        self.is_loss_answered = false;
    }

    fn on_undo(&mut self, _undo: &Undo) {
        if let Some(prior_ssthresh) = self.prior_ssthresh.take() {
            // The undo doubles what of the halving is still in the carry.
            self.cwnd_cnt += self.cwnd_cnt - self.loss_cwnd_cnt;
            self.cwnd = self.cwnd.max(self.loss_cwnd);
            self.ssthresh = self.ssthresh.max(prior_ssthresh);
        }
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        (self.ssthresh != NO_THRESHOLD).then_some(self.ssthresh)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.bytes_per_sec.map(Rate::from_bytes_per_sec)
    }

    fn send_quantum(&self) -> Quantum {
        Quantum::Segments(self.max_tso_burst.max(self.config.min_tso_segs))
    }

    /// A module that has its own `cong_control` also does its own reductions.
    fn uses_prr(&self) -> bool {
        false
    }

    fn reads_rate(&self) -> bool {
        false
    }

    fn heeds_losses(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        match (self.is_slow_start(), self.is_rtt_independent()) {
            (true, _) => "slow_start",
            (false, false) => "avoidance",
            (false, true) => "avoidance:rtt_independent",
        }
    }
}
