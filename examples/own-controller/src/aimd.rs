//! Additive increase, multiplicative decrease, with the two constants as parameters.
//!
//! The transport finds losses, paces, repairs and lowers the window gradually (PRR); a controller
//! says how large the window is.

use sojourn_cca::{Ack, Algorithm, Congestion, CongestionKind, Controller, Setup, Undo};
use sojourn_core::param::whole;

sojourn_core::params! {
    /// What users may write behind the name, with defaults, bounds and what it does.
    pub struct Aimd: "aimd", "Adds to the window every round trip, and keeps a part of it when packets are lost" {
        add: u32 = "1", whole(1, 1_000), "segments that a round trip adds";
        keep: u32 = "50", whole(1, 99), "per cent of the window that a loss leaves";
    }
}

impl Algorithm for Aimd {
    type Controller = State;

    /// A connection begins.
    fn build(&self, setup: Setup) -> State {
        let cwnd = setup.initial_cwnd;
        State { add: self.add, keep: self.keep, cwnd, ssthresh: None, acked: 0, before: cwnd }
    }
}

/// One connection's window, in segments.
pub struct State {
    add: u32,
    keep: u32,
    cwnd: u32,
    /// Below it the window doubles every round trip; none before the first loss.
    ssthresh: Option<u32>,
    /// Acknowledged since the window last grew by addition.
    acked: u32,
    /// The window before it was last lowered.
    before: u32,
}

impl Controller for State {
    fn on_ack(&mut self, ack: &Ack) {
        // A window that was not full says nothing of the path, and PRR has it during recovery.
        if !ack.is_cwnd_limited || ack.state.is_reducing() {
            return;
        }
        if self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh) {
            self.cwnd += ack.delivered;
            return;
        }
        self.acked += ack.delivered * self.add;
        self.cwnd += self.acked / self.cwnd;
        self.acked %= self.cwnd;
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.before = self.cwnd;
        let kept = (u64::from(self.cwnd) * u64::from(self.keep) / 100).max(2) as u32;
        self.ssthresh = Some(kept);
        self.cwnd = match congestion.kind {
            CongestionKind::Timeout => 1,
            CongestionKind::Loss | CongestionKind::Ecn => kept,
        };
    }

    /// The loss was none.
    fn on_undo(&mut self, _: &Undo) {
        self.cwnd = self.cwnd.max(self.before);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }

    /// What `ss`, the report and claims call its state.
    fn phase(&self) -> &'static str {
        match self.ssthresh {
            Some(ssthresh) if self.cwnd >= ssthresh => "adding",
            _ => "doubling",
        }
    }
}
