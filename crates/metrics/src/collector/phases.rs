//! Time in each phase of a congestion controller.

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use crate::outcome::PhaseTime;

#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    /// `None` until a phase is known.
    current: Option<&'static str>,
    since: Time,
    /// The last time at which a sample had a phase.
    seen: Option<Time>,
    is_started: bool,
    times: Vec<PhaseTime>,
}

impl Phases {
    /// The first segment is sent; the first phase began then, whichever it is.
    #[cold]
    pub(super) fn start(&mut self, now: Time) {
        if !self.is_started {
            self.is_started = true;
            self.since = self.since.max(now);
        }
    }

    pub(super) fn on_change(&mut self, now: Time, from: &'static str, to: &'static str) {
        let spent = now.since(self.since);
        self.at(from).time += spent;
        self.at(to).entries += 1;
        self.current = Some(to);
        self.since = now;
        self.seen = self.seen.map(|_| now);
    }

    /// A sample shows the phase of a controller that may never change it.
    pub(super) fn on_sample(&mut self, now: Time, phase: &'static str) {
        if !phase.is_empty() {
            self.current = self.current.or(Some(phase));
            self.seen = Some(now);
        }
    }

    pub(super) fn end_warmup(&mut self, warmup: Time) {
        self.times.clear();
        self.since = self.since.max(warmup);
    }

    /// A flow that ended has had its last sample then, and its last phase ends with it.
    pub(super) fn finish(mut self, end: Time) -> Vec<PhaseTime> {
        if let Some(current) = self.current {
            let end = self.seen.map_or(end, |seen| seen.min(end));
            let spent = end.since(self.since);
            self.at(current).time += spent;
        }
        self.times
    }

    /// Nearly always it is the very same text, and then its letters need not be compared.
    #[inline]
    fn at(&mut self, phase: &'static str) -> &mut PhaseTime {
        let same = self.times.iter().position(|time| core::ptr::eq(time.phase, phase));
        let at = same.unwrap_or_else(|| self.find_or_add(phase));
        &mut self.times[at]
    }

    #[cold]
    #[inline(never)]
    fn find_or_add(&mut self, phase: &'static str) -> usize {
        let equal = self.times.iter().position(|time| time.phase == phase);
        equal.unwrap_or_else(|| {
            self.times.push(PhaseTime { phase, time: Span::ZERO, entries: 0 });
            self.times.len() - 1
        })
    }
}
