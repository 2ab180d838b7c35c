//! A congestion control: keeps a few packets of its own in the queue, and no more.

use sojourn_cca::{Ack, Algorithm, Congestion, Controller, Setup, Undo};
use sojourn_core::Span;

sojourn_core::params! {
    /// Its parameters, with defaults and what they do.
    pub struct Patient: "patient", "Keeps a few packets of its own in the queue, and no more" {
        held: u32 = "4", "packets to keep in the queue";
    }
}

impl Algorithm for Patient {
    type Controller = State;

    fn build(&self, setup: Setup) -> State {
        let cwnd = setup.initial_cwnd;
        State { held: self.held, cwnd, round_ends: 0, least: None, ssthresh: None, before: cwnd }
    }
}

/// One connection's.
pub struct State {
    held: u32,
    cwnd: u32,
    /// The segment whose acknowledgement ends the round.
    round_ends: u32,
    /// The smallest round-trip time of this round.
    least: Option<Span>,
    ssthresh: Option<u32>,
    /// The window before it was last halved.
    before: u32,
}

impl State {
    /// Packets of this connection that wait: what exceeds the empty path's share of the window.
    fn waiting(&self, rtt: Span, base: Span) -> u32 {
        let queued = u64::from(self.cwnd) * rtt.saturating_sub(base).as_nanos();
        (queued / rtt.as_nanos().max(1)) as u32
    }
}

impl Controller for State {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
        if ack.snd_una < self.round_ends || ack.state.is_reducing() {
            return;
        }
        self.round_ends = ack.snd_nxt;
        let (Some(rtt), Some(base)) = (self.least.take(), ack.min_rtt) else { return };
        let waiting = self.waiting(rtt, base);
        if waiting > self.held {
            self.ssthresh = Some(self.cwnd);
            self.cwnd = (self.cwnd - (waiting - self.held).min(self.cwnd / 8)).max(2);
        } else if self.ssthresh.is_none() && ack.is_cwnd_limited {
            self.cwnd += self.cwnd / 2;
        } else if waiting < self.held && ack.is_cwnd_limited {
            self.cwnd += 1;
        }
    }

    fn on_congestion(&mut self, _: &Congestion) {
        self.before = self.cwnd;
        self.cwnd = (self.cwnd / 2).max(2);
        self.ssthresh = Some(self.cwnd);
    }

    fn on_undo(&mut self, _: &Undo) {
        self.cwnd = self.cwnd.max(self.before);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }

    fn phase(&self) -> &'static str {
        if self.ssthresh.is_none() { "searching" } else { "holding" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The suite that the built-in ones pass.
    #[test]
    fn patient_is_a_congestion_control() {
        let mut kinds = sojourn_cca::kinds();
        kinds.add(sojourn_cca::external::<Patient>()).expect("its name is free");
        let patient = kinds.parse("patient").expect("it is registered");
        assert_eq!(sojourn_cca::suite::check(&patient), Ok(()));
    }
}
