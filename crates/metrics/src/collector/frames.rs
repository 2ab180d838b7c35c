//! Application frames made of datagrams: which arrive complete, when, and how long the picture
//! stands still in between.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use crate::delays::Row;
use crate::histogram::Histogram;
use crate::outcome::{FrameMetrics, STALL_THRESHOLDS_MS, Stall};
use crate::qoe::{FreezeDetector, FreezeRule, Freezes};

use super::recent::RecentLosses;

/// The most frames that may be under way, so that an outage without reported drops does not take
/// unbounded memory.
const MAX_PENDING: usize = 1 << 16;

/// Where nobody tells of drops, an incomplete frame that is this far behind the newest complete one is given up.
const REORDERING: u32 = 64;

#[derive(Clone, Debug)]
pub(super) struct Frames {
    /// Frames under way, numbered from `first`.
    pending: VecDeque<Pending>,
    first: u32,
    complete: u64,
    lost: u64,
    recent: RecentLosses,
    /// Each datagram that is lost is told of.
    pub(super) is_told: bool,
    delay: Histogram,
    delays_in_row: Row,
    gap: Histogram,
    /// Sum of squared gaps, in square seconds.
    squares: f64,
    last_complete: Option<Time>,
    /// When there was last something to show: a datagram left, or a frame of a call was captured.
    last_offered: Time,
    stalls: [Stall; STALL_THRESHOLDS_MS.len()],
    libwebrtc: FreezeDetector,
    w3c: FreezeDetector,
    /// Of a call: frames that were encoded since the last one shown.
    unseen: VecDeque<Unseen>,
    /// Such frames that `unseen` has no place for, all older than those.
    more_unseen: u64,
    /// Of a call: the longest that a frame took from its capture until it was shown.
    longest: Span,
    /// Counts at the end of the warm-up: freezes by the two rules, and pauses.
    before: (Freezes, Freezes, Freezes),
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    sent: Time,
    parts: u32,
    arrived: u32,
    /// The last datagram has been sent.
    is_closed: bool,
    is_lost: bool,
}

/// A frame of a call that is not shown yet.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    captured: Time,
    /// A packet of it was dropped. A repair may make up for it.
    is_hit: bool,
}

impl Pending {
    fn is_complete(&self) -> bool {
        self.is_closed && self.arrived == self.parts
    }

    /// Whether it is complete or never will be; `behind` is how far it is behind the newest complete one.
    fn is_over(&self, behind: u32, is_told: bool) -> bool {
        self.is_complete() || (self.is_lost && self.is_closed) || (!is_told && behind > REORDERING)
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            first: 0,
            complete: 0,
            lost: 0,
            recent: RecentLosses::default(),
            is_told: false,
            delay: Histogram::new(),
            delays_in_row: Row::default(),
            gap: Histogram::new(),
            squares: 0.0,
            last_complete: None,
            last_offered: Time::ZERO,
            stalls: Default::default(),
            libwebrtc: FreezeDetector::new(FreezeRule::Libwebrtc),
            w3c: FreezeDetector::new(FreezeRule::W3c),
            unseen: VecDeque::new(),
            more_unseen: 0,
            longest: Span::ZERO,
            before: Default::default(),
        }
    }
}

impl Frames {
    pub(super) fn on_sent(&mut self, now: Time, frame: u32, last: bool) {
        self.last_offered = now;
        if self.pending.is_empty() {
            self.first = frame;
        }
        let Some(at) = self.position(frame) else { return };
        let begun = Pending { sent: now, parts: 0, arrived: 0, is_closed: false, is_lost: false };
        while self.pending.len() <= at {
            if self.pending.len() == MAX_PENDING {
                self.give_up_first();
                return self.on_sent(now, frame, last);
            }
            // The usual case: the frame's first datagram, and often its only one.
            if self.pending.len() == at {
                self.pending.push_back(Pending { parts: 1, is_closed: last, ..begun });
                return;
            }
            self.pending.push_back(begun);
        }
        let pending = &mut self.pending[at];
        pending.parts += 1;
        pending.is_closed |= last;
    }

    pub(super) fn on_arrived(&mut self, now: Time, frame: u32) {
        let Some(at) = self.position(frame).filter(|at| *at < self.pending.len()) else { return };
        let pending = &mut self.pending[at];
        pending.arrived += 1;
        if pending.is_complete() {
            let delay = now.since(pending.sent);
            self.on_complete(now, delay);
            self.settle(Some(frame));
        }
    }

    pub(super) fn on_dropped(&mut self, frame: u32) {
        if let Some(at) = self.position(frame)
            && let Some(pending) = self.pending.get_mut(at)
        {
            pending.is_lost = true;
            self.settle(None);
        }
    }

    /// A frame of a call was encoded. Such frames are not followed packet by packet here; the call's receiver tells what
    /// becomes of them.
    pub(super) fn on_encoded(&mut self, captured: Time) {
        self.on_offered(captured);
        if self.unseen.len() == MAX_PENDING {
            self.unseen.pop_front();
            self.more_unseen += 1;
        }
        self.unseen.push_back(Unseen { captured, is_hit: false });
    }

    /// A picture of a call was captured, and may not have been encoded.
    pub(super) fn on_offered(&mut self, captured: Time) {
        self.last_offered = captured;
    }

    /// A frame of a call is shown. Returns whether the wait for it was a freeze by libwebrtc's rule, or a pause.
    pub(super) fn on_shown(&mut self, now: Time, captured: Time) -> bool {
        if self.unseen.front().is_some_and(|first| captured < first.captured) {
            self.more_unseen = self.more_unseen.saturating_sub(1);
        } else {
            self.more_unseen = 0;
            while self.unseen.pop_front_if(|frame| frame.captured <= captured).is_some() {}
        }
        let delay = now.since(captured);
        self.longest = self.longest.max(delay);
        self.on_complete(now, delay)
    }

    /// A packet of a call's frame was dropped.
    pub(super) fn on_part_dropped(&mut self, captured: Time) {
        if let Ok(at) = self.unseen.binary_search_by_key(&captured, |frame| frame.captured) {
            self.unseen[at].is_hit = true;
        }
    }

    /// A call's receiver will not show the last frame before the one that was captured at `next`, or that one if there is none
    /// before it.
    pub(super) fn on_given_up(&mut self, next: Time) {
        self.lost += 1;
        let place = self.unseen.partition_point(|frame| frame.captured < next).saturating_sub(1);
        if self.unseen.get(place).is_some_and(|frame| frame.captured <= next) {
            self.unseen.remove(place);
        }
    }

    /// Median and largest delay of the frames that became complete since the last call.
    pub(super) fn delays_in_row(&mut self) -> Option<[f64; 2]> {
        self.delays_in_row.close([0.5, 1.0])
    }

    pub(super) fn end_warmup(&mut self) {
        (self.unseen, self.more_unseen) = Default::default();
        self.delays_in_row.clear();
        self.complete = 0;
        self.lost = 0;
        self.delay.clear();
        self.gap.clear();
        self.squares = 0.0;
        self.stalls = Default::default();
        self.before = (self.libwebrtc.found(), self.w3c.found(), self.w3c.pauses());
    }

    /// The time up to which the picture stands still at the end, if that is a freeze or a pause.
    pub(super) fn frozen_until(&self) -> Option<Time> {
        let stands = self.last_complete.is_some_and(|last| self.last_offered > last);
        (stands && self.libwebrtc.clone().on_frame(self.last_offered).is_some())
            .then_some(self.last_offered)
    }

    pub(super) fn finish(mut self, end: Time) -> FrameMetrics {
        let overtaken = match self.is_told {
            true => 0,
            false => self.pending.iter().rposition(Pending::is_complete).unwrap_or(0),
        };
        for (at, frame) in self.pending.iter().enumerate() {
            if !frame.is_complete() && (frame.is_lost || at < overtaken) {
                self.lost += 1;
                self.recent.on_lost(frame.sent);
            }
        }
        self.give_up_unseen(end);
        // A gap that no frame ended is a stall or a freeze too, as long as there was something to show.
        let mut open = 0.0;
        if let Some(last) = self.last_complete
            && self.last_offered > last
        {
            open = self.last_offered.since(last).as_secs_f64();
            self.stall(self.last_offered.since(last));
            self.libwebrtc.on_frame(self.last_offered);
            self.w3c.on_frame(self.last_offered);
        }
        let (gap, libwebrtc, w3c) =
            (self.gap.distribution(), self.libwebrtc.found(), self.w3c.found());
        let squares = self.squares + open * open;
        FrameMetrics {
            complete: self.complete,
            lost: self.lost,
            undecided: self.recent.undecided(end),
            harmonic_fps: (squares > 0.0).then(|| (gap.sum() as f64 / 1e9 + open) / squares),
            delay: self.delay.distribution(),
            gap,
            stalls: self.stalls,
            freezes: libwebrtc - self.before.0,
            freezes_w3c: w3c - self.before.1,
            pauses: self.w3c.pauses() - self.before.2,
        }
    }

    /// Of a call's frames that were not shown, those are lost of which a packet was dropped, and those that have waited longer
    /// than any that was shown.
    fn give_up_unseen(&mut self, end: Time) {
        self.lost += self.more_unseen;
        for frame in &self.unseen {
            if frame.is_hit || end.since(frame.captured) > self.longest {
                self.lost += 1;
                self.recent.on_lost(frame.captured);
            }
        }
    }

    fn on_complete(&mut self, now: Time, delay: Span) -> bool {
        self.complete += 1;
        self.delay.record(delay.as_nanos());
        self.delays_in_row.record(delay.as_nanos());
        self.recent.on_arrived(delay);
        if let Some(last) = self.last_complete {
            let gap = now.since(last);
            self.gap.record(gap.as_nanos());
            self.squares += gap.as_secs_f64() * gap.as_secs_f64();
            self.stall(gap);
        }
        self.w3c.on_frame(now);
        self.last_complete = Some(now);
        self.libwebrtc.on_frame(now).is_some()
    }

    fn stall(&mut self, gap: Span) {
        for (stall, threshold) in self.stalls.iter_mut().zip(STALL_THRESHOLDS_MS) {
            let threshold = Span::from_millis(threshold);
            if gap > threshold {
                stall.count += 1;
                stall.whole += gap;
                stall.excess += gap - threshold;
            }
        }
    }

    /// Removes from the front the frames that are complete or never will be.
    #[inline]
    fn settle(&mut self, newest_complete: Option<u32>) {
        // Usually the first is still under way.
        let behind = newest_complete.map_or(0, |newest| newest.saturating_sub(self.first));
        if self.pending.front().is_some_and(|front| front.is_over(behind, self.is_told)) {
            self.remove_over(newest_complete);
        }
    }

    #[inline(never)]
    fn remove_over(&mut self, newest_complete: Option<u32>) {
        let Self { pending, first, lost, recent, is_told, .. } = self;
        let before = *first;
        for frame in pending.iter() {
            let behind = newest_complete.map_or(0, |newest| newest.saturating_sub(*first));
            if !frame.is_over(behind, *is_told) {
                break;
            }
            if !frame.is_complete() {
                *lost += 1;
                recent.on_lost(frame.sent);
            }
            *first += 1;
        }
        pending.drain(..(*first - before) as usize);
    }

    fn give_up_first(&mut self) {
        let Some(frame) = self.pending.pop_front() else { return };
        self.first += 1;
        self.lost += 1;
        self.recent.on_lost(frame.sent);
    }

    /// The position of a frame among those under way; `None` if it has been removed.
    fn position(&self, frame: u32) -> Option<usize> {
        frame.checked_sub(self.first).map(|at| at as usize)
    }
}
