//! CUBIC as the Linux kernel computes it: whole segments, a clock of 1024 ticks a second, and
//! HyStart as of 2008 rather than HyStart++.
//!
//! Written from the behaviour and the constants of Linux 6.18.

mod config;
mod growth;
mod hystart;
mod jiffies;

#[cfg(test)]
pub(super) use growth::cube_root;

pub use config::Config;

use sojourn_core::Span;

use crate::reno::window::{Window, left_to_window};
use crate::{Ack, Congestion, CongestionKind, Controller, Restart, Setup};
use growth::Growth;
use hystart::HyStart;
use jiffies::Jiffies;

/// The controller.
#[derive(Clone, Debug)]
pub struct CubicLinux {
    config: Config,
    window: Window,
    jiffies: Jiffies,
    growth: Growth,
    hystart: HyStart,
    /// Smallest round-trip time since the start or the last timeout.
    delay_min: Option<Span>,
    mss: u32,
}

impl CubicLinux {
    pub fn new(config: Config, setup: Setup) -> Self {
        Self {
            window: Window::new(setup.initial_cwnd),
            jiffies: Jiffies::new(setup.tick, setup.tick_phase),
            growth: Growth::new(&config),
            hystart: HyStart::new(setup.now, setup.is_paced),
            delay_min: None,
            mss: setup.mss,
            config,
        }
    }

    #[cfg(test)]
    pub(super) fn growth_every(&self) -> u32 {
        self.growth.every()
    }

    #[cfg(test)]
    pub(super) fn delay_min(&self) -> Option<Span> {
        self.delay_min
    }

    fn sample_delay(&mut self, ack: &Ack, rtt: Span) {
        // Right after a recovery the round-trip time includes the queue that the loss left behind.
        let now = self.jiffies.at(ack.now);
        if self.growth.epoch_start().is_some_and(|start| now.since(start) < Span::from_secs(1)) {
            return;
        }
        let rtt = rtt.max(Span::from_micros(1));
        let delay_min = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(delay_min);
        if self.config.hystart
            && self.window.is_slow_start()
            && !self.hystart.is_over()
            && self.hystart.is_over_after(
                &self.config,
                ack,
                self.window.cwnd(),
                self.mss,
                rtt,
                delay_min,
            )
        {
            self.window.leave_slow_start();
        }
    }
}

impl Controller for CubicLinux {
    left_to_window!();

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample_delay(ack, rtt);
        }
        if !self.window.may_grow(ack) {
            return;
        }
        let Some(rest) = self.window.slow_start(ack.delivered) else {
            return;
        };
        let now = self.jiffies.at(ack.now);
        let delay = self.delay_min.unwrap_or(Span::ZERO);
        let every =
            self.growth.acks_per_segment(&self.jiffies, now, self.window.cwnd(), rest, delay);
        self.window.increase_every(every, rest);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let ssthresh =
            self.window.reduces_on(congestion).then(|| self.growth.reduced(self.window.cwnd()));
        self.window.reduce(congestion, ssthresh);
        if congestion.kind == CongestionKind::Timeout {
            self.growth.forget();
            self.delay_min = None;
            self.hystart.restart(congestion.now, congestion.snd_nxt);
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        let now = self.jiffies.at(restart.now);
        let idle_since = self.jiffies.at(restart.now - restart.idle);
        self.growth.skip_idle(now, now.since(idle_since));
    }

    fn reads_rate(&self) -> bool {
        false
    }

    fn heeds_losses(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        if self.window.is_slow_start() {
            "slow_start"
        } else {
            self.growth.phase(self.window.cwnd())
        }
    }
}
