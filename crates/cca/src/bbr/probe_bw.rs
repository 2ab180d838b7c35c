//! The gain cycle: one phase above the bandwidth, one below, six at it; each about a round-trip time.

use super::{Bbr, Mode};
use crate::Ack;
use crate::fixed::Gain;

const CYCLE_LENGTH: usize = 8;

impl Bbr {
    /// Starts the cycle in any phase except the one below the bandwidth.
    pub(super) fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        let offset = self.random.below(CYCLE_LENGTH as u64 - 1) as usize;
        self.cycle_index = CYCLE_LENGTH - 1 - offset;
        self.advance_cycle_phase();
    }

    pub(super) fn update_cycle_phase(&mut self, ack: &Ack) {
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(ack) {
            self.advance_cycle_phase();
        }
    }

    pub(super) fn cycle_gain(&self) -> Gain {
        match self.cycle_index {
            _ if self.policer.bw().is_some() => Gain::ONE,
            0 => self.config.probe_up_pacing_gain,
            1 => self.config.probe_down_pacing_gain,
            _ => Gain::ONE,
        }
    }

    pub(super) fn is_probing_up(&self) -> bool {
        self.mode == Mode::ProbeBw && self.cycle_index == 0
    }

    pub(super) fn cycle_name(&self) -> &'static str {
        match self.cycle_index {
            _ if self.policer.bw().is_some() => POLICED,
            0 => name_of_up(self.config.probe_up_pacing_gain),
            1 => name_of_down(self.config.probe_down_pacing_gain),
            _ => CRUISE,
        }
    }

    fn is_next_cycle_phase(&self, ack: &Ack) -> bool {
        let elapsed = self.delivered_time.since(self.cycle_start);
        let is_full_length = self.min_rtt.is_some_and(|rtt| elapsed.as_micros() > rtt.as_micros());
        if self.pacing_gain == Gain::ONE {
            return is_full_length;
        }
        let bw = self.bw.value();
        let in_net = self.in_net_at_departure(ack, ack.prior_in_flight);
        if self.pacing_gain > Gain::ONE {
            // The phase lasts until as much is in flight as the gain wants, or losses show that it
            // can't be.
            is_full_length && (ack.lost > 0 || in_net >= self.inflight(bw, self.pacing_gain))
        } else {
            is_full_length || in_net <= self.inflight(bw, Gain::ONE)
        }
    }

    fn advance_cycle_phase(&mut self) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE_LENGTH;
        self.cycle_start = self.delivered_time;
    }
}

const POLICED: &str = "PROBE_BW:POLICED";
const CRUISE: &str = "PROBE_BW:1";

fn name_of_up(gain: Gain) -> &'static str {
    if gain.parts() == 320 { "PROBE_BW:1.25" } else { "PROBE_BW:UP" }
}

fn name_of_down(gain: Gain) -> &'static str {
    if gain.parts() == 192 { "PROBE_BW:0.75" } else { "PROBE_BW:DOWN" }
}

/// What the phases are called: behind a policer, with the gain above one, with that below one, with
/// one.
pub(super) fn cycle_names(up: Gain, down: Gain) -> [&'static str; 4] {
    [POLICED, name_of_up(up), name_of_down(down), CRUISE]
}
