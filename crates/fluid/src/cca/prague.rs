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
    /// When the window was last cut, and how much marks took.
    last_cut: Option<(f64, f64)>,
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
            last_cut: None,
            updated: setup.now,
            acked: 0.0,
            marked: 0.0,
            round_ends: setup.initial_window,
            rounds: 0,
        }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        self.window.follow(told);
        let virtual_rtt = told.rtt.max(RTT_VIRT_MIN);
        let last_cut = self.last_cut.filter(|(at, _)| told.now - at < virtual_rtt);
        if told.losses > 0 {
            self.halve(told, last_cut);
        } else if told.marks > 0 && last_cut.is_none() && !self.window.is_recovering() {
            self.decrease(told.now);
        }
        // Section 2.4.3: by what is not marked, even right after a decrease.
        if self.window.may_grow(told) {
            let rest = self.window.slow_start(told.acked - told.marked);
            let slowed = told.rtt / virtual_rtt;
            let rate = if self.rounds >= RTT_ROUNDS { slowed * slowed } else { 1.0 };
            self.window.increase(rest, rate);
        }
        self.average(told, virtual_rtt);
        if told.delivered >= self.round_ends {
            self.round_ends = told.sent;
            if !self.window.is_slow_start() {
                self.rounds = self.rounds.saturating_add(1);
            }
        }
    }

    /// Section 2.4.2: then no more for a virtual round-trip time.
    fn decrease(&mut self, now: f64) {
        let before = self.window.cwnd;
        self.window.lower(1.0 - self.alpha.unwrap_or(1.0) / 2.0);
        self.last_cut = Some((now, (before - self.window.cwnd).max(0.0)));
    }

    /// Section 2.4.1: as Reno, less what marks took within the last virtual round-trip time.
    fn halve(&mut self, told: &Told, last_cut: Option<(f64, f64)>) {
        let credit = last_cut.map_or(0.0, |(_, cut)| cut / self.window.cwnd);
        if self.window.cut(told, (0.5 + 0.5 * credit).min(1.0)) {
            self.last_cut = Some((told.now, 0.0));
        }
    }

    /// Section 2.3.2: once a virtual round-trip time. The first mark sets the average to one.
    fn average(&mut self, told: &Told, virtual_rtt: f64) {
        self.acked += told.acked;
        self.marked += told.marked;
        match &mut self.alpha {
            Some(_) if told.now - self.updated < virtual_rtt || self.acked <= 0.0 => return,
            Some(alpha) => *alpha += G * ((self.marked / self.acked).min(1.0) - *alpha),
            None => self.alpha = (self.marked > 0.0).then_some(1.0),
        }
        self.updated = told.now;
        (self.acked, self.marked) = (0.0, 0.0);
    }
}
