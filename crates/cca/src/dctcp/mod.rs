//! Data Center TCP (RFC 8257), with the integer arithmetic of Linux 6.18.
//!
//! The share of marked segments of each window feeds a moving average, alpha; when marks report
//! congestion, the window shrinks by alpha / 2, once per window. Growth, loss, timeouts and idling
//! are Reno's, and so is the code of the window ([`crate::reno`]). Without ECN it behaves as Reno.

#[cfg(test)]
pub(crate) mod harness;
mod or_reno;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::Time;
use sojourn_core::param::{Flag, whole};

use crate::reno::window::{Window, is_after, left_to_window};
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, EcnFeedback, EcnRequest, RecoveryState,
    Restart, Setup,
};
pub use or_reno::OrReno;

sojourn_core::params! {
    /// The parameters of DCTCP, by the names of the kernel module's.
    pub struct Config: "dctcp", "Data Center TCP (RFC 8257), with the kernel's integer arithmetic" {
        pub(crate) dctcp_shift_g: u32 = "4", whole(1, 10), "Weight of a window's mark rate in its moving average, as a power: g = 1/16";
        pub(crate) dctcp_alpha_on_init: u32 = "1024", whole(0, MAX_ALPHA as i64), "Average mark rate assumed at the start, in 1/1024";
        pub(crate) dctcp_clamp_alpha_on_loss: bool as Flag = "", "A timeout sets the average to one, as Linux could be told to before 5.1";
    }
}

/// A moving average of one.
const MAX_ALPHA: u32 = 1 << ALPHA_BITS;
const ALPHA_BITS: u32 = 10;
const MIN_CWND: u32 = 2;

impl Algorithm for Config {
    type Controller = OrReno<Dctcp>;

    /// DCTCP if the ends agreed on ECN, otherwise Reno.
    fn build(&self, setup: Setup) -> OrReno<Dctcp> {
        match setup.ecn {
            EcnFeedback::Off => OrReno::reno(setup),
            EcnFeedback::Classic | EcnFeedback::Accurate => {
                OrReno::Scalable(Dctcp::new(self.clone(), setup))
            }
        }
    }

    fn ecn_request(&self) -> EcnRequest {
        EcnRequest::MarkByMark
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["slow_start", "avoidance"]
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Dctcp {
    config: Config,
    window: Window,
    /// In 1/1024.
    alpha: u32,
    /// The window of observation ends when this is acknowledged.
    next_seq: Option<u32>,
    old_delivered: u64,
    old_delivered_ce: u64,
    /// The controller has already responded to the loss that is being repaired.
    is_loss_answered: bool,
}

impl Dctcp {
    pub fn new(config: Config, setup: Setup) -> Self {
        Self {
            alpha: config.dctcp_alpha_on_init,
            config,
            window: Window::new(setup.initial_cwnd),
            next_seq: None,
            old_delivered: 0,
            old_delivered_ce: 0,
            is_loss_answered: false,
        }
    }

    /// RFC 8257 section 3.3, steps 3 to 8: alpha = (1 − g) alpha + g M, once per window.
    fn update_alpha(&mut self, ack: &Ack) {
        if self.next_seq.is_some_and(|next_seq| is_after(next_seq, ack.snd_una)) {
            return;
        }
        let delivered = ack.total_delivered - self.old_delivered;
        let delivered_ce = ack.total_delivered_ce.saturating_sub(self.old_delivered_ce);
        let shift_g = self.config.dctcp_shift_g;
        // An alpha too small for the shift to lower is set to zero, or it would stay for ever.
        let decay = match self.alpha >> shift_g {
            0 => self.alpha,
            decay => decay,
        };
        let growth = (delivered_ce << (ALPHA_BITS - shift_g)) / delivered.max(1);
        self.alpha = (self.alpha - decay).saturating_add(growth as u32).min(MAX_ALPHA);
        self.next_seq = Some(ack.snd_nxt);
        self.old_delivered = ack.total_delivered;
        self.old_delivered_ce = ack.total_delivered_ce;
    }

    /// A loss during a reduction for marks causes another reduction, which can't be undone.
    fn halve_again(&mut self, congestion: &Congestion) {
        let congestion = Congestion { kind: CongestionKind::Ecn, ..*congestion };
        let halved = self.halved();
        self.window.reduce(&congestion, Some(halved));
    }

    fn halved(&self) -> u32 {
        (self.window.cwnd() / 2).max(MIN_CWND)
    }

    /// RFC 8257 section 3.3, step 9: cwnd (1 − alpha / 2).
    fn reduced(&self) -> u32 {
        let cwnd = self.window.cwnd();
        let decrease = (u64::from(cwnd) * u64::from(self.alpha)) >> (ALPHA_BITS + 1);
        (cwnd - decrease as u32).max(MIN_CWND)
    }
}

impl Controller for Dctcp {
    left_to_window!();

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.update_alpha(ack);
        match ack.state {
            RecoveryState::Recovery if !self.is_loss_answered => {
                self.is_loss_answered = true;
                self.halve_again(&Congestion {
                    now: ack.now,
                    kind: CongestionKind::Loss,
                    in_flight: ack.in_flight,
                    snd_nxt: ack.snd_nxt,
                    prior_state: RecoveryState::Cwr,
                });
            }
            RecoveryState::Recovery | RecoveryState::Loss => {}
            _ => self.is_loss_answered = false,
        }
        if self.window.may_grow(ack)
            && let Some(rest) = self.window.slow_start(ack.delivered)
        {
            self.window.increase_every(self.window.cwnd(), rest);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let reduces = self.window.reduces_on(congestion);
        match congestion.kind {
            CongestionKind::Ecn => {
                let reduced = self.reduced();
                self.window.reduce(congestion, reduces.then_some(reduced));
            }
            CongestionKind::Loss => {
                self.is_loss_answered = true;
                if congestion.prior_state == RecoveryState::Cwr {
                    self.halve_again(congestion);
                } else {
                    let halved = self.halved();
                    self.window.reduce(congestion, reduces.then_some(halved));
                }
            }
            CongestionKind::Timeout => {
                let halved = self.halved();
                self.window.reduce(congestion, reduces.then_some(halved));
                if self.config.dctcp_clamp_alpha_on_loss {
                    self.alpha = MAX_ALPHA;
                }
            }
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        self.is_loss_answered = false;
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
    }

    fn reads_rate(&self) -> bool {
        false
    }

    fn heeds_losses(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        if self.window.is_slow_start() { "slow_start" } else { "avoidance" }
    }
}
