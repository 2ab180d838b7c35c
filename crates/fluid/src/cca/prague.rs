//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP's law, with an increase that
//! does not depend on the round-trip time, and an average taken over a virtual one.

use super::slow_start::Window;
use super::{Setup, Told};

/// Section 2.4.3: the weight of the latest mark share.
const G: f64 = 1.0 / 16.0;
/// Section 2.4.4: the least virtual round-trip time.
const RTT_VIRT_MIN: f64 = 25e-3;
/// Section 2.4.4: rounds after slow start before the increase is scaled.
const RTT_ROUNDS: u32 = 500;

#[derive(Clone, Debug)]
pub(crate) struct Prague {
    pub(super) window: Window,
    alpha: Option<f64>,
    updated: f64,
    acked: f64,
    marked: f64,
    round_ends: f64,
    rounds: u32,
}

impl Prague {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            window: Window::new(setup),
            alpha: None,
            updated: setup.now,
            acked: 0.0,
            marked: 0.0,
            round_ends: setup.initial_window,
            rounds: 0,
        }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        self.window.follow(told);
        self.acked += told.acked;
        self.marked += told.marked;
        if self.alpha.is_none() && told.marked > 0.0 {
            self.alpha = Some(1.0);
        }
        if told.losses > 0 {
            self.window.cut(told, 0.5);
        } else if told.marks > 0 {
            self.window.cut(told, 1.0 - self.alpha.unwrap_or(1.0) / 2.0);
        } else if self.window.may_grow(told) {
            let rest = self.window.slow_start(told.acked);
            let slowed = told.rtt / told.rtt.max(RTT_VIRT_MIN);
            let rate = if self.rounds >= RTT_ROUNDS { slowed * slowed } else { 1.0 };
            self.window.increase(rest, rate);
        }
        if told.delivered >= self.round_ends {
            self.round_ends = told.sent;
            if !self.window.is_slow_start() {
                self.rounds = self.rounds.saturating_add(1);
            }
        }
        let virtual_rtt = told.rtt.max(RTT_VIRT_MIN);
        if told.now - self.updated >= virtual_rtt && self.acked > 0.0 {
            if let Some(alpha) = &mut self.alpha {
                *alpha += G * ((self.marked / self.acked).min(1.0) - *alpha);
            }
            self.updated = told.now;
            self.acked = 0.0;
            self.marked = 0.0;
        }
    }
}
