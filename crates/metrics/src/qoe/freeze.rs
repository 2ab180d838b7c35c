//! Freezes of video, by the two rules in use.
//!
//! A frame's gap g is a freeze when g ≥ max(3·avg, avg + 150 ms), avg over 30 frames:
//! - [`FreezeRule::W3c`]: W3C `webrtc-stats`, `freezeCount`: avg is of the frames before this one;
//! - [`FreezeRule::Libwebrtc`]: as `VideoQualityObserver` behaves: the gap joins the 30 first, and
//!   the average is rounded down to milliseconds, as gaps are; at least 5 gaps must be known.
//!
//! A freeze counts with its whole length, and only once a frame ended it. A gap of more than 5 s is a pause (W3C `pauseCount`), which
//! is no freeze and leaves the average alone, as in libwebrtc.

use core::ops::Sub;

use sojourn_core::{Span, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeRule {
    W3c,
    Libwebrtc,
}

/// What the wait for a frame was, if it was longer than usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    Freeze,
    Pause,
}

/// Freezes or pauses found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freezes {
    pub count: u64,
    pub total: Span,
}

impl Freezes {
    fn add(&mut self, gap: Span) {
        self.count += 1;
        self.total += gap;
    }
}

impl Sub for Freezes {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self { count: self.count - earlier.count, total: self.total - earlier.total }
    }
}

/// Told of every frame shown, in order.
#[derive(Clone, Debug)]
pub struct FreezeDetector {
    rule: FreezeRule,
    last: Option<Time>,
    /// The last gaps, in the unit of the rule; a ring once it is full.
    gaps: [u64; WINDOW],
    known: usize,
    next: usize,
    sum: u64,
    found: Freezes,
    pauses: Freezes,
}

/// A longer gap is a pause.
pub const LONGEST_FREEZE: Span = Span::from_secs(5);
/// Frames that the average is over.
const WINDOW: usize = 30;
const LIBWEBRTC_LEAST_GAPS: usize = 5;
const INCREASE: Span = Span::from_millis(150);

impl FreezeDetector {
    pub fn new(rule: FreezeRule) -> Self {
        let (found, pauses) = Default::default();
        Self { rule, last: None, gaps: [0; WINDOW], known: 0, next: 0, sum: 0, found, pauses }
    }

    /// A frame is shown at `now`; returns whether the wait for it was a freeze or a pause.
    pub fn on_frame(&mut self, now: Time) -> Option<Standstill> {
        let gap = now.since(self.last.replace(now)?);
        if gap > LONGEST_FREEZE {
            self.pauses.add(gap);
            return Some(Standstill::Pause);
        }
        let last = now - gap;
        let is_freeze = match self.rule {
            FreezeRule::W3c => {
                let average = self.average();
                self.remember(gap.as_nanos());
                average
                    .is_some_and(|avg| gap.as_nanos() >= (3 * avg).max(avg + INCREASE.as_nanos()))
            }
            FreezeRule::Libwebrtc => {
                let gap = now.as_nanos() / NANOS_PER_MILLI - last.as_nanos() / NANOS_PER_MILLI;
                self.remember(gap);
                self.known >= LIBWEBRTC_LEAST_GAPS
                    && self
                        .average()
                        .is_some_and(|avg| gap >= (3 * avg).max(avg + INCREASE.as_millis()))
            }
        };
        if is_freeze {
            self.found.add(gap);
        }
        is_freeze.then_some(Standstill::Freeze)
    }

    pub fn pauses(&self) -> Freezes {
        self.pauses
    }

    pub fn found(&self) -> Freezes {
        self.found
    }

    fn average(&self) -> Option<u64> {
        (self.known > 0).then(|| self.sum / self.known as u64)
    }

    fn remember(&mut self, gap: u64) {
        self.sum = self.sum + gap - self.gaps[self.next];
        self.gaps[self.next] = gap;
        self.next = (self.next + 1) % WINDOW;
        self.known = (self.known + 1).min(WINDOW);
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The freezes among frames shown at these times.
pub fn freezes(rule: FreezeRule, shown: impl IntoIterator<Item = Time>) -> Freezes {
    let mut detector = FreezeDetector::new(rule);
    for now in shown {
        detector.on_frame(now);
    }
    detector.found()
}

/// libwebrtc's harmonic frame rate, Σ gap / Σ gap², in frames a second: long gaps weigh more.
/// `None` without a gap.
pub fn harmonic_fps(gaps: &[Span]) -> Option<f64> {
    let seconds = || gaps.iter().map(|gap| gap.as_secs_f64());
    let squares: f64 = seconds().map(|gap| gap * gap).sum();
    (squares > 0.0).then(|| seconds().sum::<f64>() / squares)
}

/// Stall time with other flows over stall time without them, which some papers call harm factor. It
/// has no upper bound; [`stats::harm`](crate::stats::harm) is 1 − 1/ratio. `None` if there was no
/// stall without them.
pub fn stall_ratio(alone: Span, beside: Span) -> Option<f64> {
    (!alone.is_zero()).then(|| beside.as_secs_f64() / alone.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixty gaps of one length, then `gap`, then sixty more.
    fn steady_then(fps: u64, gap: Span) -> Vec<Time> {
        let frame = Span::from_nanos(1_000_000_000 / fps);
        let mut now = Time::ZERO;
        let mut shown = vec![now];
        for at in 0..121 {
            now += if at == 60 { gap } else { frame };
            shown.push(now);
        }
        shown
    }

    /// The smallest gap in a steady stream that is a freeze, in milliseconds.
    fn threshold(rule: FreezeRule, fps: u64) -> u64 {
        let is_freeze = |ms| freezes(rule, steady_then(fps, Span::from_millis(ms))).count > 0;
        (1..1000).find(|ms| is_freeze(*ms)).expect("a second is a freeze")
    }

    #[test]
    fn libwebrtc_thresholds_of_steady_streams() {
        // g ≥ ⌊(29·f + g)/30⌋ + 150 ms, or three times that average at 10 frames a second.
        assert!((171..=172).contains(&threshold(FreezeRule::Libwebrtc, 60)));
        assert!((187..=189).contains(&threshold(FreezeRule::Libwebrtc, 30)));
        assert!((320..=323).contains(&threshold(FreezeRule::Libwebrtc, 10)));
    }

    #[test]
    fn w3c_thresholds_leave_the_gap_out_of_the_average() {
        assert_eq!(threshold(FreezeRule::W3c, 60), 167);
        assert_eq!(threshold(FreezeRule::W3c, 30), 184);
        assert_eq!(threshold(FreezeRule::W3c, 10), 300);
    }

    #[test]
    fn a_freeze_counts_whole() {
        let shown = steady_then(60, Span::from_millis(400));
        for rule in [FreezeRule::W3c, FreezeRule::Libwebrtc] {
            let found = freezes(rule, shown.clone());
            assert_eq!(found, Freezes { count: 1, total: Span::from_millis(400) });
        }
    }

    /// Behind a pause the average is what it was.
    #[test]
    fn more_than_five_seconds_are_a_pause_and_no_freeze() {
        for rule in [FreezeRule::W3c, FreezeRule::Libwebrtc] {
            for (gap, freezes, pauses) in [(5000, 1, 0), (5001, 0, 1)] {
                let mut detector = FreezeDetector::new(rule);
                for now in steady_then(30, Span::from_millis(gap)) {
                    detector.on_frame(now);
                }
                assert_eq!((detector.found().count, detector.pauses().count), (freezes, pauses));
            }
            let mut detector = FreezeDetector::new(rule);
            let mut shown = steady_then(30, Span::from_secs(60));
            shown.push(*shown.last().expect("frames") + Span::from_millis(200));
            let found = shown.iter().filter_map(|now| detector.on_frame(*now));
            assert!(found.eq([Standstill::Pause, Standstill::Freeze]));
            assert_eq!(detector.pauses().total, Span::from_secs(60));
        }
    }

    #[test]
    fn swings_of_80_ms_at_60_frames_are_no_freeze() {
        let mut now = Time::ZERO;
        let shown: Vec<Time> = (0..600)
            .map(|frame| {
                now += Span::from_millis(if frame % 20 == 0 { 80 } else { 13 });
                now
            })
            .collect();
        assert_eq!(freezes(FreezeRule::Libwebrtc, shown), Freezes::default());
    }

    #[test]
    fn libwebrtc_knows_nothing_before_five_gaps() {
        let shown = [0u64, 10, 20, 30, 1030];
        let times =
            |ms: &[u64]| ms.iter().map(|ms| Time::from_nanos(ms * 1_000_000)).collect::<Vec<_>>();
        assert_eq!(freezes(FreezeRule::Libwebrtc, times(&shown)).count, 0);
        let longer = [0u64, 10, 20, 30, 40, 1040];
        assert_eq!(freezes(FreezeRule::Libwebrtc, times(&longer)).count, 1);
        assert_eq!(freezes(FreezeRule::W3c, times(&shown)).count, 1);
    }

    #[test]
    fn harmonic_rate_of_a_steady_stream_is_its_rate() {
        let steady = [Span::from_millis(20); 50];
        assert!((harmonic_fps(&steady).expect("gaps") - 50.0).abs() < 1e-9);
        // One gap of a second beside fifty of 20 ms: 2 s over 1.02 s².
        let mut stalled = steady.to_vec();
        stalled.push(Span::from_secs(1));
        assert!((harmonic_fps(&stalled).expect("gaps") - 2.0 / 1.02).abs() < 1e-9);
        assert_eq!(harmonic_fps(&[]), None);
    }

    #[test]
    fn stall_ratio_and_harm_convert() {
        let ratio = stall_ratio(Span::from_secs(10), Span::from_secs(12)).expect("stalled alone");
        let harm = crate::stats::harm(10.0, 12.0, crate::stats::Better::Less);
        assert!((harm - (1.0 - 1.0 / ratio)).abs() < 1e-12);
        assert!((harm - 0.166_666_667).abs() < 1e-9);
        assert_eq!(stall_ratio(Span::ZERO, Span::from_secs(1)), None);
    }
}
