//! DCTCP (RFC 8257). The fluid of Alizadeh, Javanmard and Prabhakar (SIGMETRICS 2011, equations 2
//! and 3) is ẇ = 1/τ − (w·α/2τ)·p, α̇ = (g/τ)(p − α). RFC 8257 averages once a window and cuts once a
//! window, which is done here at the end of each. Between two cuts the window grows with all that is not marked, also
//! right after a cut; only losses, which are Reno's (section 3.5), hold it until they are repaired.

use super::slow_start::Window;
use super::{Setup, Told};

/// Section 3.3: the weight g of a window's mark share.
const G: f64 = 1.0 / 16.0;

#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    pub(super) window: Window,
    /// Average share of marked bytes.
    alpha: f64,
    /// Marks are answered again when what had been sent at the last answer is accounted for.
    answered: f64,
    round_ends: f64,
    acked: f64,
    marked: f64,
}

impl Dctcp {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            window: Window::new(setup),
            alpha: 1.0,
            answered: 0.0,
            round_ends: setup.initial_window,
            acked: 0.0,
            marked: 0.0,
        }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        self.window.follow(told);
        self.acked += told.acked;
        self.marked += told.marked;
        if told.losses > 0 {
            self.window.cut(told, 0.5);
        } else if told.marks > 0
            && !self.window.is_recovering()
            && told.sent - told.in_flight >= self.answered
        {
            // Section 3.3, equation 4.
            self.window.lower(1.0 - self.alpha / 2.0);
            self.answered = told.sent;
        }
        if self.window.may_grow(told) {
            let rest = self.window.slow_start(told.acked - told.marked);
            self.window.increase(rest, 1.0);
        }
        if told.delivered >= self.round_ends && self.acked > 0.0 {
            // Section 3.3, equations 1 to 3.
            self.alpha += G * ((self.marked / self.acked).min(1.0) - self.alpha);
            self.round_ends = told.sent;
            self.acked = 0.0;
            self.marked = 0.0;
        }
    }
}
