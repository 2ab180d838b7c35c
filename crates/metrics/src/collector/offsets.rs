//! How far apart a call's voice and video are played.

use sojourn_core::Span;

use crate::histogram::Histogram;
use crate::outcome::AvOffset;

/// ITU-R BT.1359-1: viewers notice sound that is earlier than the picture by more than the first, or later by more
/// than the second.
const NOTICED_EARLY: Span = Span::from_millis(45);
const NOTICED_LATE: Span = Span::from_millis(125);

/// By how much frames were later than the sound heard when they were shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    sound_early: Histogram,
    sound_late: Histogram,
    either: Histogram,
    noticed: u64,
    /// Milliseconds, and how many, since the row began.
    sum_in_row: f64,
    in_row: u32,
}

impl Offsets {
    /// A frame is shown so long after it was captured, while sound is heard that is so old.
    pub(super) fn on_frame(&mut self, video: Span, sound: Span) {
        let is_early = video >= sound;
        let (apart, side, noticed) = match is_early {
            true => (video - sound, &mut self.sound_early, NOTICED_EARLY),
            false => (sound - video, &mut self.sound_late, NOTICED_LATE),
        };
        side.record(apart.as_nanos());
        self.either.record(apart.as_nanos());
        self.noticed += u64::from(apart > noticed);
        self.sum_in_row += if is_early { apart.as_millis_f64() } else { -apart.as_millis_f64() };
        self.in_row += 1;
    }

    /// The mean of the row that ends, in milliseconds; not-a-number without any.
    pub(super) fn close_row(&mut self) -> f32 {
        let mean = (self.sum_in_row / f64::from(self.in_row)) as f32;
        (self.sum_in_row, self.in_row) = (0.0, 0);
        mean
    }

    pub(super) fn end_warmup(&mut self) {
        self.sound_early.clear();
        self.sound_late.clear();
        self.either.clear();
        self.noticed = 0;
    }

    pub(super) fn finish(&self) -> AvOffset {
        AvOffset {
            sound_early: self.sound_early.distribution(),
            sound_late: self.sound_late.distribution(),
            either: self.either.distribution(),
            noticed: self.noticed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Video's delay less the sound's, for each frame.
    fn of(differences: &[i64]) -> Offsets {
        let mut offsets = Offsets::default();
        for difference in differences {
            let video = Span::from_millis((500 + difference) as u64);
            offsets.on_frame(video, Span::from_millis(500));
        }
        offsets
    }

    fn median_ms(differences: &[i64]) -> Option<f64> {
        of(differences).finish().median().map(|ns| ns / 1e6)
    }

    #[test]
    fn the_median_has_the_sign_of_the_sound_that_is_early() {
        let near = |differences: &[i64], expected: f64| {
            let median = median_ms(differences).expect("there are frames");
            assert!((median - expected).abs() <= expected.abs() / 256.0 + 0.2, "{median}");
        };
        assert_eq!(median_ms(&[]), None);
        near(&[30], 30.0);
        near(&[-30], -30.0);
        near(&[-300, 10, 20], 10.0);
        near(&[-300, -200, -100, 50, 60], -100.0);
        near(&[-100, 50], -25.0);
        near(&[-400, -300, -200, 50], -250.0);
        near(&[-400, 50, 150, 200], 100.0);
    }

    /// ITU-R BT.1359-1, considering g: "about +45 ms to -125 ms", positive where sound is advanced.
    #[test]
    fn viewers_notice_early_sound_sooner_than_late_sound() {
        let offset = of(&[45, 46, -125, -126]).finish();
        assert_eq!((offset.noticed, offset.noticed_share()), (2, Some(0.5)));
        assert_eq!(AvOffset::default().noticed_share(), None);
    }

    #[test]
    fn a_row_has_the_mean_of_its_own_frames() {
        let mut offsets = of(&[100, -40]);
        assert_eq!(offsets.close_row(), 30.0);
        assert!(offsets.close_row().is_nan());
    }
}
