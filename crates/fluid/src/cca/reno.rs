//! Reno (RFC 5681). The fluid of Misra, Gong and Towsley (SIGCOMM 2000, equation 2) is
//! ẇ = 1/τ − (w/2)·(rate of signals); here acknowledgements make the growth, which is 1/τ when one
//! window comes back per round trip, and a signal halves the window at its moment, once a flight.

use super::slow_start::Window;
use super::{Setup, Told};

/// The share of the window that is kept (RFC 5681 equation 4).
const KEPT: f64 = 0.5;

#[derive(Clone, Debug)]
pub(crate) struct Reno {
    pub(super) window: Window,
}

impl Reno {
    pub(super) fn new(setup: Setup) -> Self {
        Self { window: Window::new(setup) }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        self.window.follow(told);
        if told.losses + told.marks > 0 {
            self.window.cut(told, KEPT);
        } else if self.window.may_grow(told) {
            let rest = self.window.slow_start(told.acked);
            self.window.increase(rest, 1.0);
        }
    }
}
