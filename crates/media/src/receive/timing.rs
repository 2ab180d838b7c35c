//! When frames are shown: after the mean delay of frames, and time for its variation, for decoding and
//! for showing. As in libwebrtc, frames wait only as long as others were late, and at most that long.

use sojourn_core::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Timing {
    decoding: Span,
    showing: Span,
    /// What the call and lip sync ask for at least, each of which holds.
    own_least: Span,
    least: Span,
    /// Mean delay from capture to arrival in milliseconds, and how many frames it is of.
    mean: f64,
    frames: f64,
    /// Sums of how far frames were late or early; a large sum is an alarm that the path has changed.
    late: f64,
    early: f64,
    jitter: Span,
    current: Span,
    last_shown: Time,
}

/// The most that a frame may count as late or early; what exceeds the drift adds to the alarm's sums.
/// Milliseconds.
const MOST_OFF: f64 = 77.8;
const DRIFT: f64 = 73.3;
const ALARM: f64 = 667.0;
/// The mean weighs a new frame as if it were of at most this many frames.
const MOST_FRAMES: f64 = 1000.0;

impl Timing {
    pub(crate) fn new(decoding: Span, showing: Span, least: Span) -> Self {
        Self {
            decoding,
            showing,
            own_least: least,
            least,
            mean: 0.0,
            frames: 0.0,
            late: 0.0,
            early: 0.0,
            jitter: Span::ZERO,
            current: Span::ZERO,
            last_shown: Time::ZERO,
        }
    }

    /// How long a frame should wait from its usual arrival until it is shown.
    pub(crate) fn target(&self) -> Span {
        (self.jitter + self.decoding + self.showing).max(self.least)
    }

    pub(crate) fn on_arrival(&mut self, captured: Time, arrived: Time) {
        let delay = arrived.since(captured).as_millis_f64();
        if self.frames > 0.0 {
            let off = (delay - self.mean).clamp(-MOST_OFF, MOST_OFF);
            self.late = (self.late + off - DRIFT).max(0.0);
            self.early = (self.early + off + DRIFT).min(0.0);
            if self.late > ALARM || self.early < -ALARM {
                // The path has changed: the mean of earlier frames counts little.
                (self.late, self.early) = (0.0, 0.0);
                self.frames = 1.0;
            }
        }
        self.frames = (self.frames + 1.0).min(MOST_FRAMES);
        self.mean += (delay - self.mean) / self.frames;
    }

    /// How long frames wait for late ones.
    pub(crate) fn set_jitter(&mut self, jitter: Span) {
        self.jitter = jitter;
    }

    /// Frames wait for so long at least, because the voice is later. This holds at once, unlike what varying delays ask for.
    pub(crate) fn wait_for_voice(&mut self, least: Span) {
        self.least = self.own_least.max(least);
    }

    /// When the next frame to be decoded is shown, and when to decode it for that. What it waits for grows by what a frame is
    /// late, unless that was for a repair, and up to the target.
    pub(crate) fn schedule(
        &mut self,
        now: Time,
        captured: Time,
        was_repaired: bool,
    ) -> (Time, Time) {
        let expected = captured + Span::from_secs_f64(self.mean.max(0.0) / 1e3);
        let shown = expected + self.current.max(self.least);
        let in_time = shown - (self.decoding + self.showing).min(shown.since(Time::ZERO));
        let decode = in_time.max(now);
        let shown = shown.max(decode + self.decoding).max(self.last_shown);
        self.last_shown = shown;
        if self.current.is_zero() {
            self.current = self.jitter;
        }
        if !was_repaired && decode >= in_time {
            self.current = (self.current + decode.since(in_time)).min(self.target());
        }
        (decode, shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn timing() -> Timing {
        Timing::new(Span::from_millis(5), Span::from_millis(10), Span::ZERO)
    }

    /// Where the first frame was late by what decoding and showing take, less what its wait already had.
    #[test]
    fn a_steady_stream_is_shown_with_a_steady_delay() {
        let mut timing = timing();
        for n in 0..100 {
            let captured = ms(1000 + 40 * n);
            timing.on_arrival(captured, captured + Span::from_millis(50));
            let now = captured + Span::from_millis(50);
            timing.set_jitter(Span::from_millis(12));
            let (decode, shown) = timing.schedule(now, captured, false);
            let (waits, takes) = if n == 0 { (0, 5) } else { (12, 12 + 15) };
            assert_eq!(decode.since(now), Span::from_millis(waits), "{n}");
            assert_eq!(shown.since(now), Span::from_millis(takes), "{n}");
        }
    }

    /// Every tenth frame comes 60 ms late: what frames wait grows by that, but not beyond the target, and not for a repair.
    #[test]
    fn the_wait_grows_by_what_a_frame_is_late_up_to_the_target() {
        for (jitter, was_repaired, expected) in [(200, false, 60), (30, false, 30), (200, true, 0)]
        {
            let mut timing = timing();
            let mut waits = 0;
            for n in 0..100 {
                let captured = ms(1000 + 40 * n);
                let is_late = n % 10 == 5;
                if !is_late {
                    timing.on_arrival(captured, captured);
                }
                timing.set_jitter(Span::from_millis(if n == 0 { 0 } else { jitter }));
                let now = captured + Span::from_millis(if is_late { 60 } else { 0 });
                let decode = timing.schedule(now, captured, is_late && was_repaired).0;
                waits = decode.since(now).as_millis();
            }
            assert_eq!(waits, expected, "{jitter}");
        }
    }

    #[test]
    fn frames_wait_for_the_voice_at_once_and_no_longer_than_it_needs() {
        let mut timing = timing();
        for n in 0..50 {
            let captured = ms(1000 + 40 * n);
            timing.on_arrival(captured, captured);
            timing.set_jitter(Span::from_millis(10));
            timing.wait_for_voice(Span::from_millis(if (10..30).contains(&n) { 105 } else { 0 }));
            let shown = timing.schedule(captured, captured, false).1.since(captured).as_millis();
            let expected = match n {
                0 => 5,
                10..30 => 105,
                // No sooner than the one before.
                30 => 65,
                _ => 25,
            };
            assert_eq!(shown, expected, "{n}");
        }
    }

    #[test]
    fn a_late_frame_is_decoded_at_once() {
        let mut timing = timing();
        timing.on_arrival(ms(1000), ms(1010));
        timing.schedule(ms(1010), ms(1000), false);
        let (decode, shown) = timing.schedule(ms(1500), ms(1040), false);
        assert_eq!((decode, shown), (ms(1500), ms(1505)));
    }

    #[test]
    fn another_path_is_found_out() {
        let mut timing = timing();
        for n in 0..500 {
            timing.on_arrival(ms(40 * n), ms(40 * n + 20));
        }
        for n in 500..1000 {
            timing.on_arrival(ms(40 * n), ms(40 * n + 300));
        }
        assert!((timing.mean - 300.0).abs() < 10.0, "{}", timing.mean);
    }
}
