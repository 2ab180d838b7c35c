//! When STARTUP waits for a receiver, when it ends because of one, and when it begins again.

use sojourn_core::Span;

use super::rounds::Round;
use crate::bbr3::Bbr3;
use crate::forms::{Factor, Ratio};
use crate::{Ack, Setup};

sojourn_core::params! {
    /// When STARTUP ends because of the receiver.
    pub(super) struct Rules: "bbr-n+", "BBR-n+: BBR version 3 with a startup exit that knows the receive window (a reconstruction)" {
        pub(super) mode: Mode = "hold", "While the receiver is the limit, STARTUP counts the round towards the plateau as BBR version 3 does (`off`), waits as long as the receive window grows (`hold`), or ends (`immediate`)";
        pub(super) rwnd_round_share: Ratio = "0.5", "Share of a round's segments, sent while the receiver was the limit, that makes the round a receiver-limited one";
        pub(super) rwnd_rtt_factor: f64 as Factor = "1.25", "A round whose least round-trip time is this much longer than the path's shows a queue, so the network may be the limit";
        pub(super) rwnd_loss_thresh: Ratio = "0.02", "A round with more loss than this shows that the network may be the limit";
        pub(super) rwnd_growth: f64 as Factor = "1.25", "Growth of the receive window that is worth waiting for, and worth another STARTUP";
        pub(super) rwnd_rounds: u32 = "3", "Receiver-limited rounds without that growth after which STARTUP ends";
        pub(super) rwnd_headroom: f64 as Factor = "2", "Window while STARTUP waits, times the receive window";
        pub(super) rearm_rounds: u32 = "10", "Least rounds from one STARTUP to the next";
    }
}

/// What STARTUP does while the receiver is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Counts the round towards the plateau of bandwidth, as BBR version 3 does.
    Off,
    /// Waits as long as the receive window grows, then ends; begins again when the window has grown
    /// later.
    Hold,
    /// Ends after the first round that the receiver limited.
    Immediate,
}

sojourn_core::choice! { Mode { "off" = Mode::Off, "hold" = Mode::Hold, "immediate" = Mode::Immediate } }

/// Signals and state of the smart exit.
#[derive(Clone, Debug)]
pub(super) struct SmartExit {
    rules: Rules,
    smss: u64,
    initial_cwnd: u32,
    round: Round,
    /// Receive windows are in segments. The newest,
    rwnd: u32,
    /// the last one of the round before,
    rwnd_before: u32,
    /// the one that growth is measured from,
    rwnd_base: u32,
    /// and for how many rounds in a row the receiver has been the limit without growth.
    flat_rounds: u32,
    /// The round before was limited by the receiver, and showed no queue.
    is_waiting: bool,
    /// The receive window at which STARTUP ended because of it.
    rwnd_at_exit: Option<u32>,
    last_startup_round: u64,
}

impl SmartExit {
    pub(super) fn new(rules: Rules, setup: &Setup) -> Self {
        Self {
            rules,
            smss: u64::from(setup.mss.max(1)),
            initial_cwnd: setup.initial_cwnd,
            round: Round::default(),
            rwnd: u32::MAX,
            rwnd_before: u32::MAX,
            rwnd_base: 0,
            flat_rounds: 0,
            is_waiting: false,
            rwnd_at_exit: None,
            last_startup_round: 0,
        }
    }

    /// If a round ends now, it does not count towards the plateau of bandwidth.
    pub(super) fn holds_plateau(&self, path_rtt: Option<Span>) -> bool {
        self.rules.mode == Mode::Hold && self.is_limited_without_queue(path_rtt)
    }

    /// To be called between BBR's model and its control parameters.
    pub(super) fn follow(&mut self, ack: &Ack, bbr: &mut Bbr3) {
        if self.rules.mode == Mode::Off {
            return;
        }
        let rwnd = u32::try_from(ack.receive_window / self.smss).unwrap_or(u32::MAX);
        if bbr.is_round_start() {
            self.end_round(ack, bbr);
        }
        self.round.count(ack);
        self.rwnd = rwnd;
        self.begin_again(bbr);
    }

    /// While STARTUP waits, a window that opens at once must not let a burst out.
    pub(super) fn bound_burst(&self, bbr: &mut Bbr3) {
        if self.is_waiting && self.rules.mode == Mode::Hold {
            let bound = self.rules.rwnd_headroom * f64::from(self.rwnd_before);
            bbr.bound_startup((bound as u32).max(self.initial_cwnd));
        }
    }

    fn end_round(&mut self, ack: &Ack, bbr: &mut Bbr3) {
        let rwnd = self.rwnd;
        let is_limited = self.round.is_receiver_limited(self.rules.rwnd_round_share.0);
        self.is_waiting = is_limited && self.is_limited_without_queue(bbr.min_rtt());
        self.round = Round::default();
        self.rwnd_before = rwnd;
        if !is_limited || f64::from(rwnd) >= self.rules.rwnd_growth * f64::from(self.rwnd_base) {
            self.rwnd_base = rwnd;
            self.flat_rounds = 0;
        } else {
            self.flat_rounds += 1;
        }
        let is_over = match self.rules.mode {
            Mode::Off => false,
            Mode::Hold => self.flat_rounds >= self.rules.rwnd_rounds,
            Mode::Immediate => is_limited,
        };
        if is_over && bbr.is_in_startup() {
            bbr.leave_startup(ack);
            self.rwnd_at_exit = (self.rules.mode == Mode::Hold).then_some(rwnd);
        }
    }

    /// Begins another STARTUP if the receiver ended the last one and its window has grown, unless
    /// losses have shown how much the network bears.
    fn begin_again(&mut self, bbr: &mut Bbr3) {
        let Some(at_exit) = self.rwnd_at_exit else { return };
        let rwnd = self.rwnd;
        let round = bbr.round();
        if f64::from(rwnd) >= self.rules.rwnd_growth * f64::from(at_exit)
            && round >= self.last_startup_round + u64::from(self.rules.rearm_rounds)
            && bbr.may_begin_again()
        {
            bbr.begin_startup_again();
            self.last_startup_round = round;
            self.rwnd_at_exit = None;
            self.rwnd_base = rwnd;
            self.flat_rounds = 0;
        }
    }

    fn is_limited_without_queue(&self, path_rtt: Option<Span>) -> bool {
        let rules = &self.rules;
        self.round.is_receiver_limited(rules.rwnd_round_share.0)
            && self.round.shows_no_queue(path_rtt, rules.rwnd_rtt_factor, rules.rwnd_loss_thresh.0)
    }
}
