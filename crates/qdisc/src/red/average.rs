//! The moving average of the backlog, over arrivals and idle times (Floyd and Jacobson 1993,
//! sections 4 and 11).

use alloc::boxed::Box;

use sojourn_core::Time;

use super::Config;

#[derive(Debug)]
pub(super) struct Average {
    wlog: u32,
    scell_log: u32,
    /// By how many bits an idle time shifts the average.
    stab: Box<[u8; STAB]>,
    /// In bytes, with `wlog` bits of fraction.
    qavg: u64,
    idle_since: Option<Time>,
}

const STAB: usize = 256;

/// A larger shift leaves nothing.
const SHIFT_MOST: u8 = 31;

impl Average {
    pub(super) fn new(config: &Config) -> Self {
        let derived = config.derived();
        let mut stab = Box::new([0; STAB]);
        for (cell, shift) in (0u64..).zip(stab.iter_mut()) {
            let exact = (cell << derived.scell_log) as f64 * derived.decay_per_tick;
            *shift = (exact as u8).min(SHIFT_MOST);
        }
        stab[STAB - 1] = SHIFT_MOST;
        Self { wlog: derived.wlog, scell_log: derived.scell_log, stab, qavg: 0, idle_since: None }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.qavg >> self.wlog
    }

    /// With `wlog` bits of fraction.
    #[inline]
    pub(super) fn scaled(&self) -> u64 {
        self.qavg
    }

    /// Updates the average for an arrival that finds `backlog` bytes.
    #[inline]
    pub(super) fn observe(&mut self, now: Time, backlog: u64) {
        if self.idle_since.is_some() {
            self.qavg = self.decayed(now);
            self.idle_since = None;
        } else {
            self.qavg = (self.qavg + backlog).saturating_sub(self.qavg >> self.wlog);
        }
    }

    /// The queue is empty from now on.
    #[inline]
    pub(super) fn rest(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// The average at `now`, lowered for idle time. `tc` makes the table for ticks of 64 ns and the
    /// kernel looks it up by microseconds, so it is lowered by a sixteenth of what was intended.
    pub(super) fn decayed(&self, now: Time) -> u64 {
        let Some(since) = self.idle_since else { return self.qavg };
        let most = (STAB as u64 - 1) << self.scell_log;
        let idle = now.since(since).as_micros().min(most);
        match self.stab[(idle >> self.scell_log) as usize % STAB] {
            0 => {
                let lost = (self.qavg * idle) >> self.scell_log;
                let half = self.qavg >> 1;
                if lost < half { self.qavg - lost } else { half }
            }
            shift => self.qavg >> shift,
        }
    }
}
