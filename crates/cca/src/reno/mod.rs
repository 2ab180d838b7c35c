//! NewReno (RFC 5681), counted in segments as Linux counts it.
//!
//! Source: RFC 5681 sections 3.1, 3.2 and 4.1, RFC 2861; the accounting is that of Linux 6.18.
//! The window itself is in `window`, which `cubic-linux` shares.

pub(crate) mod window;

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use crate::{Ack, Algorithm, Congestion, Controller, Restart, Setup};
use window::{Window, left_to_window};

sojourn_core::params! {
    /// Reno has no parameters.
    pub struct Config: "reno", "NewReno (RFC 5681), counting as Linux does" {}
}

impl Algorithm for Config {
    type Controller = Reno;

    fn build(&self, setup: Setup) -> Reno {
        Reno::new(self.clone(), setup)
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["slow_start", "avoidance"]
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
}

impl Reno {
    pub fn new(_config: Config, setup: Setup) -> Self {
        Self { window: Window::new(setup.initial_cwnd) }
    }
}

impl Controller for Reno {
    left_to_window!();

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.may_grow(ack) {
            return;
        }
        if let Some(rest) = self.window.slow_start(ack.delivered) {
            self.window.increase_every(self.window.cwnd(), rest);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        // RFC 5681 equation 4, with the window in place of the flight size as Linux has it.
        let halved = (self.window.cwnd() / 2).max(2);
        let ssthresh = self.window.reduces_on(congestion).then_some(halved);
        self.window.reduce(congestion, ssthresh);
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
