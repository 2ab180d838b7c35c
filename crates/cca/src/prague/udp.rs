//! Prague as the library udp_prague has it (L4STeam/udp_prague, `prague_cc.cpp`, revision 9a5c6d8),
//! for bulk transfer.
//!
//! Window and rate describe one state. The window is kept and the rate derived, except on paths so
//! short that the round-trip time says nothing; there the rate is kept. There is no slow start:
//! after enough virtual round-trip times without marks the increase grows with the rate, by a
//! millisecond of queue in each.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{Rate, Span, Time};

use crate::dctcp::OrReno;
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, EcnFeedback, EcnRequest, Quantum,
    Setup, Undo,
};

sojourn_core::params! {
    /// The library's constants and its constructor's arguments.
    pub struct Config: "prague-udp", "Prague, as the library udp_prague has it" {
        pub(crate) ref_rtt: Span = "25ms", "Least virtual round-trip time";
        pub(crate) min_step: u32 = "7", "Virtual round-trip times without marks before the increase grows, at least";
        pub(crate) rate_step: Rate = "15.36mbit", "One more of them for each of this rate";
        pub(crate) queue_growth: Span = "1ms", "Growth of the queue aimed at then, in each";
        pub(crate) burst_time: Span = "250us", "Longest burst";
        pub(crate) rate_offset: u32 = "3", "Percent paced faster in the first half of a virtual round-trip time, and slower in the second";
        pub(crate) rate_mode_rtt: Span = "2ms", "Round-trip time up to which the rate leads";
        pub(crate) init_rate: Rate = "100kbit", "First rate";
        pub(crate) min_rate: Rate = "100kbit", "Least rate";
        pub(crate) max_rate: Rate = "100gbit", "Largest rate";
        pub(crate) min_window: u32 = "2", "Least window, in segments";
    }
}

const PROB_SHIFT: u32 = 20;
const MAX_PROB: i64 = 1 << PROB_SHIFT;
const ALPHA_SHIFT: u32 = 4;

impl Algorithm for Config {
    type Controller = OrReno<PragueUdp>;

    /// Prague if the ends agreed on accurate feedback, otherwise Reno.
    fn build(&self, setup: Setup) -> OrReno<PragueUdp> {
        match setup.ecn {
            EcnFeedback::Accurate => OrReno::Scalable(PragueUdp::new(self.clone(), setup)),
            EcnFeedback::Off | EcnFeedback::Classic => OrReno::reno(setup),
        }
    }

    fn ecn_request(&self) -> EcnRequest {
        EcnRequest::L4s
    }

    fn phases(&self) -> Vec<&'static str> {
        // The first two are Reno's, without accurate feedback.
        vec!["slow_start", "avoidance", "window", "window:growth", "rate", "rate:growth"]
    }
}

/// The response to congestion that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first acknowledgement will set the window.
    Init,
    CongestionAvoidance,
    /// Cut for loss.
    InLoss(Cut),
    /// Cut for marks.
    InCwr(Cut),
}

/// A cut is over when everything sent before it has been reported on, and a virtual round-trip time
/// has passed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    at: Time,
    packets_sent: u64,
}

/// Which of window and rate is kept; the other is derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    Window,
    Rate,
}

/// How much a loss took.
#[derive(Clone, Copy, Debug)]
enum LostShare {
    Window(f64),
    Rate(f64),
}

/// The controller. Windows are bytes, rates bytes per second.
#[derive(Clone, Debug)]
pub struct PragueUdp {
    config: Config,
    packet_size: f64,
    state: State,
    leader: Leader,
    fractional_window: f64,
    pacing_rate: f64,
    /// The rate that is paced in the present half of a virtual round-trip time.
    paced_rate: f64,
    packet_window: u32,
    packet_burst: u32,
    /// Moving average of the mark rate, in 2⁻²⁰.
    alpha: i64,
    alpha_ts: Time,
    alpha_packets_received: u64,
    alpha_packets_ce: u64,
    alpha_packets_sent: u64,
    /// Virtual round-trip times until the increase grows with the rate.
    rtts_to_growth: i64,
    lost_share: Option<LostShare>,
    lost_rtts_to_growth: i64,
    srtt: Span,
    packets_received: u64,
    packets_ce: u64,
    packets_lost: u64,
}

impl PragueUdp {
    pub fn new(config: Config, setup: Setup) -> Self {
        let init_rate = bytes(config.init_rate);
        let packet_size = f64::from(setup.mss.max(1));
        let mut prague = Self {
            packet_size,
            state: State::Init,
            leader: Leader::Window,
            fractional_window: f64::from(setup.initial_cwnd) * packet_size,
            pacing_rate: init_rate,
            paced_rate: init_rate,
            packet_window: setup.initial_cwnd.max(config.min_window),
            packet_burst: 1,
            alpha: 0,
            alpha_ts: setup.now,
            alpha_packets_received: 0,
            alpha_packets_ce: 0,
            alpha_packets_sent: 0,
            rtts_to_growth: 0,
            lost_share: None,
            lost_rtts_to_growth: 0,
            srtt: setup.handshake_rtt.unwrap_or_default(),
            packets_received: 0,
            packets_ce: 0,
            packets_lost: 0,
            config,
        };
        prague.rtts_to_growth = prague.steps_to_growth();
        prague
    }

    fn vrtt(&self) -> Span {
        self.srtt.max(self.config.ref_rtt)
    }

    fn steps_to_growth(&self) -> i64 {
        let steps = self.pacing_rate / bytes(self.config.rate_step);
        steps as i64 + i64::from(self.config.min_step)
    }

    /// The round-trip time in seconds, at least a microsecond.
    fn srtt_secs(&self) -> f64 {
        self.srtt.max(Span::from_micros(1)).as_secs_f64()
    }

    /// Chooses the leader; the rate stays as it is.
    fn choose_leader(&mut self) {
        let pacing_interval = self.packet_size / self.pacing_rate;
        if self.srtt <= self.config.rate_mode_rtt || self.srtt_secs() <= pacing_interval {
            self.leader = Leader::Rate;
        } else {
            if self.leader == Leader::Rate {
                self.fractional_window = self.srtt_secs() * self.pacing_rate;
            }
            self.leader = Leader::Window;
        }
    }

    fn is_over(&self, cut: Cut, now: Time, heard_of: u64) -> bool {
        heard_of > cut.packets_sent && now.since(cut.at) >= self.vrtt()
    }

    fn update_alpha(&mut self, now: Time, heard_of: u64, sent: u64) {
        let cut = Cut { at: self.alpha_ts, packets_sent: self.alpha_packets_sent };
        let received = self.packets_received - self.alpha_packets_received;
        if !self.is_over(cut, now, heard_of) || received == 0 {
            return;
        }
        let marked = (self.packets_ce - self.alpha_packets_ce).min(received);
        let prob = ((marked << PROB_SHIFT) / received) as i64;
        self.alpha = (self.alpha + ((prob - self.alpha) >> ALPHA_SHIFT)).min(MAX_PROB);
        self.alpha_packets_sent = sent;
        self.alpha_packets_ce = self.packets_ce;
        self.alpha_packets_received = self.packets_received;
        self.alpha_ts = now;
        self.rtts_to_growth = (self.rtts_to_growth - 1).max(0);
    }

    fn reduce_for_loss(&mut self, now: Time, sent: u64) {
        // The virtual round-trip times after which a flow with the reference round-trip time would
        // be back at the bottleneck.
        let ratio = self.config.ref_rtt.as_secs_f64() / self.vrtt().as_secs_f64();
        let segments = self.pacing_rate / 2.0 / self.packet_size;
        let steps = (segments * ratio * self.config.ref_rtt.as_secs_f64()) as i64;
        self.lost_rtts_to_growth =
            (self.lost_rtts_to_growth + steps - self.rtts_to_growth).min(steps);
        self.rtts_to_growth = steps;
        self.lost_share = Some(match self.leader {
            Leader::Window => {
                self.fractional_window /= 2.0;
                LostShare::Window(self.fractional_window)
            }
            Leader::Rate => {
                self.pacing_rate /= 2.0;
                LostShare::Rate(self.pacing_rate)
            }
        });
        self.state = State::InLoss(Cut { at: now, packets_sent: sent });
    }

    fn increase(&mut self, acks: f64) {
        let growth = self.pacing_rate * self.config.queue_growth.as_secs_f64();
        let increment = if self.rtts_to_growth > 0 || growth < self.packet_size {
            self.packet_size
        } else {
            growth
        };
        let vrtt = self.vrtt().as_secs_f64();
        match self.leader {
            Leader::Window => {
                let ratio = self.srtt_secs() / vrtt;
                self.fractional_window +=
                    acks * self.packet_size * ratio * ratio / self.fractional_window * increment;
            }
            Leader::Rate => {
                let window = self.pacing_rate * vrtt / self.packet_size;
                self.pacing_rate += acks * increment / vrtt / window;
            }
        }
    }

    fn reduce_for_marks(&mut self, now: Time, sent: u64) {
        self.rtts_to_growth = self.steps_to_growth();
        let kept = 1.0 - self.alpha as f64 / (2 * MAX_PROB) as f64;
        match self.leader {
            Leader::Window => self.fractional_window *= kept,
            Leader::Rate => self.pacing_rate *= kept,
        }
        self.state = State::InCwr(Cut { at: now, packets_sent: sent });
    }

    /// Derives the window or the rate from the leader.
    fn align(&mut self, now: Time) {
        if self.leader == Leader::Window {
            self.pacing_rate = self.fractional_window / self.srtt_secs();
        }
        let (least, most) = (bytes(self.config.min_rate), bytes(self.config.max_rate));
        self.pacing_rate = self.pacing_rate.min(most).max(least);
        self.fractional_window = (self.pacing_rate * self.srtt_secs()).max(1e-6);
        let offset = 1.0 + f64::from(self.config.rate_offset) / 100.0;
        let burst = self.pacing_rate * self.config.burst_time.as_secs_f64() / self.packet_size;
        self.packet_burst = (burst as u32).clamp(1, 1 << 16);
        let window = self.fractional_window * offset / self.packet_size + 1.0;
        self.packet_window = (window as u32).max(self.config.min_window);
        let is_second_half = now.since(self.alpha_ts) >= self.vrtt() / 2;
        self.paced_rate =
            if is_second_half { self.pacing_rate / offset } else { self.pacing_rate * offset };
    }
}

fn bytes(rate: Rate) -> f64 {
    (rate.as_bytes_per_sec() as f64).max(1.0)
}

#[cfg(test)]
impl PragueUdp {
    /// Bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.pacing_rate
    }
}

impl Controller for PragueUdp {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt.unwrap_or(self.srtt);
        if self.state == State::Init {
            self.fractional_window = self.srtt_secs() * self.pacing_rate;
            self.state = State::CongestionAvoidance;
        }
        self.choose_leader();
        let now = ack.now;
        let heard_of = ack.total_delivered + ack.total_lost;
        let sent = heard_of + u64::from(ack.in_flight);
        let (marks, has_loss) = (ack.ce, ack.total_lost > self.packets_lost);
        self.packets_received = ack.total_delivered;
        self.packets_ce += u64::from(marks);
        self.packets_lost = ack.total_lost;

        self.update_alpha(now, heard_of, sent);
        if let State::InLoss(cut) = self.state
            && self.is_over(cut, now, heard_of)
        {
            self.state = State::CongestionAvoidance;
        }
        if has_loss && !matches!(self.state, State::InLoss(_)) {
            self.reduce_for_loss(now, sent);
        }
        let acks = ack.delivered.saturating_sub(marks);
        if acks > 0 && !matches!(self.state, State::InLoss(_)) {
            self.increase(f64::from(acks));
        }
        if let State::InCwr(cut) = self.state
            && self.is_over(cut, now, heard_of)
        {
            self.state = State::CongestionAvoidance;
        }
        if marks > 0 && self.state == State::CongestionAvoidance {
            self.reduce_for_marks(now, sent);
        }
        self.align(now);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        // Losses and marks get their response when the acknowledgement that reports them is
        // processed.
        if congestion.kind != CongestionKind::Timeout {
            return;
        }
        self.state = State::Init;
        self.leader = Leader::Window;
        self.alpha = 0;
        self.alpha_ts = congestion.now;
        self.pacing_rate = bytes(self.config.init_rate);
        self.paced_rate = self.pacing_rate;
        self.fractional_window = self.packet_size;
        self.packet_burst = 1;
        self.packet_window = self.config.min_window;
        self.rtts_to_growth = self.steps_to_growth();
        (self.lost_share, self.lost_rtts_to_growth) = (None, 0);
    }

    fn on_undo(&mut self, undo: &Undo) {
        match self.lost_share.take() {
            Some(LostShare::Window(lost)) => {
                self.leader = Leader::Window;
                self.fractional_window += lost;
            }
            Some(LostShare::Rate(lost)) => {
                self.leader = Leader::Rate;
                self.pacing_rate += lost;
            }
            None => return,
        }
        self.rtts_to_growth = (self.rtts_to_growth - self.lost_rtts_to_growth).max(0);
        self.lost_rtts_to_growth = 0;
        self.state = State::CongestionAvoidance;
        self.align(undo.now);
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.packet_window
    }

    fn ssthresh(&self) -> Option<u32> {
        None
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bytes_per_sec(self.paced_rate as u64))
    }

    fn send_quantum(&self) -> Quantum {
        Quantum::Segments(self.packet_burst)
    }

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
        match (self.leader, self.rtts_to_growth) {
            (Leader::Window, 0) => "window:growth",
            (Leader::Window, _) => "window",
            (Leader::Rate, 0) => "rate:growth",
            (Leader::Rate, _) => "rate",
        }
    }
}
