//! NewReno (RFC 5681), counted in segments as Linux counts it.
//!
//! Source: RFC 5681 sections 3.1, 3.2 and 4.1, RFC 2861; the accounting is that of Linux 6.18.
//! The window itself is in [`window`], which CUBIC as in Linux shares.

pub(crate) mod window;

#[cfg(test)]
mod tests;

use core::fmt;

use sojourn_core::words::unknown_param;
use sojourn_core::{Param, SpecError, Words};

use crate::{Ack, Congestion, Controller, Restart, Setup};
use window::{Window, left_to_window};

/// Reno has nothing to set.
pub const PARAMS: &[Param] = &[];

/// Checked parameters: none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {}

impl Config {
    /// Reads parameters up to the end of `words`.
    ///
    /// # Errors
    /// Any word at all.
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        match words.next() {
            Some(word) => Err(unknown_param("reno", word, PARAMS)),
            None => Ok(Self {}),
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reno")
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

    fn phase(&self) -> &'static str {
        if self.window.is_slow_start() { "slow_start" } else { "avoidance" }
    }
}
