//! When frames are shown: after the mean delay of frames, and time for its variation, for decoding and
//! for showing. As in libwebrtc, the delay moves slowly to its target.

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
    last_captured: Option<Time>,
    last_shown: Time,
}

/// The delay changes by at most this share of the time that passes.
const FASTEST_CHANGE: f64 = 0.1;
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
            last_captured: None,
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

    /// When the next frame to be decoded is shown, and when to decode it for that.
    pub(crate) fn schedule(&mut self, now: Time, captured: Time) -> (Time, Time) {
        let target = self.target();
        let passed = self.last_captured.map_or(Span::ZERO, |last| captured.since(last));
        self.last_captured = Some(captured);
        if self.current.is_zero() {
            self.current = target;
        } else {
            let most = Span::from_secs_f64(FASTEST_CHANGE * passed.as_secs_f64());
            self.current = target.max(self.current.saturating_sub(most)).min(self.current + most);
        }
        let expected = captured + Span::from_secs_f64(self.mean.max(0.0) / 1e3);
        let shown = expected + self.current.max(self.least);
        let decode = shown - (self.decoding + self.showing).min(shown.since(Time::ZERO));
        let decode = decode.max(now);
        let shown = shown.max(decode + self.decoding).max(self.last_shown);
        self.last_shown = shown;
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

    #[test]
    fn a_steady_stream_is_shown_with_a_steady_delay() {
        let mut timing = timing();
        for n in 0..100 {
            let captured = ms(1000 + 40 * n);
            timing.on_arrival(captured, captured + Span::from_millis(50));
            let now = captured + Span::from_millis(50);
            timing.set_jitter(Span::from_millis(12));
            let (decode, shown) = timing.schedule(now, captured);
            assert_eq!(shown.since(captured), Span::from_millis(50 + 12 + 15));
            assert_eq!(decode.since(now), Span::from_millis(12));
        }
    }

    #[test]
    fn the_delay_grows_by_a_tenth_of_the_time() {
        let mut timing = timing();
        for n in 0..50 {
            let captured = ms(1000 + 40 * n);
            timing.on_arrival(captured, captured);
            let jitter = if n == 0 { 10 } else { 110 };
            timing.set_jitter(Span::from_millis(jitter));
            let shown = timing.schedule(captured, captured).1;
            let expected = 25 + (4 * n).min(100);
            assert_eq!(shown.since(captured).as_millis(), expected);
        }
    }

    /// Down it goes by a tenth of the time.
    #[test]
    fn frames_wait_for_the_voice_at_once() {
        let mut timing = timing();
        for n in 0..50 {
            let captured = ms(1000 + 40 * n);
            timing.on_arrival(captured, captured);
            timing.set_jitter(Span::from_millis(10));
            timing.wait_for_voice(Span::from_millis(if (10..30).contains(&n) { 105 } else { 0 }));
            let shown = timing.schedule(captured, captured).1.since(captured).as_millis();
            let expected = match n {
                0..10 => 25,
                10..30 => 105,
                _ => (25 + 4 * 20 - 4 * (n - 29)).max(25),
            };
            assert_eq!(shown, expected, "{n}");
        }
    }

    #[test]
    fn a_late_frame_is_decoded_at_once() {
        let mut timing = timing();
        timing.on_arrival(ms(1000), ms(1010));
        timing.schedule(ms(1010), ms(1000));
        let (decode, shown) = timing.schedule(ms(1500), ms(1040));
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
