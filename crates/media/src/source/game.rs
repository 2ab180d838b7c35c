//! Cloud games: frames down at a steady beat.
//!
//! The game renders at the display's beat, so intervals vary only by how long a frame takes to
//! encode. Sizes are noisy; a cut or a sudden turn makes a frame larger. Encoders of games refresh
//! the picture bit by bit, so there are no periodic key frames, but one may be asked for.
//! The coefficients that were measured of real services are not public in a form that we could
//! read, so all shares are parameters.

use alloc::boxed::Box;

use sojourn_core::param::{number, time, whole};
use sojourn_core::{Span, Time};

use super::noise::laplace;
use super::statistical::bytes;
use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of cloud games.
    pub struct Config: "game", "The picture of a cloud game: frames at a steady beat, with intra refresh" {
        scale_b: f64 = "0.15", number(0.0, 1.0), "Scale of the Laplacian noise of frame sizes, as a share of the mean; as RFC 8593's";
        cut_every: Span = "5s", time(Span::from_millis(1), Span::from_secs(100_000)), "Time between frames that are larger because all moves, on average; exponentially distributed";
        cut: f64 = "3", number(1.0, 100.0), "Size of such a frame, in mean frames; the next ones are smaller until the mean holds again";
        key: f64 = "5", number(1.0, 100.0), "Size of a key frame, in mean frames, likewise";
        recover: u32 = "30", whole(1, 10_000), "Frames over which the bytes of a larger one are saved again";
        encoding: Span = "4ms", time(Span::ZERO, Span::from_secs(1)), "How long a frame takes to encode at least";
        encoding_jitter: Span = "1ms", time(Span::ZERO, Span::from_secs(1)), "How much longer it takes on average; exponentially distributed";
        height: u32 = "1080", whole(1, 8640), "Lines of the picture";
    }
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        Box::new(Game {
            frames: 0,
            next_cut: setup.start,
            last_encoded: setup.start,
            debt: 0.0,
            config: self.clone(),
            setup,
        })
    }
}

#[derive(Debug)]
struct Game {
    config: Config,
    setup: Setup,
    frames: u64,
    next_cut: Time,
    last_encoded: Time,
    /// Bytes that larger frames took and that later ones save.
    debt: f64,
}

impl Source for Game {
    fn next_capture(&self) -> Time {
        let seconds = self.frames as f64 / self.setup.frames_per_second;
        self.setup.start + Span::from_secs_f64(seconds)
    }

    fn capture(&mut self, wanted: &Wanted) -> Option<Frame> {
        let now = self.next_capture();
        let Self { config, setup, .. } = self;
        let rate = wanted.rate.max(setup.min_rate).min(setup.max_rate);
        let mean = rate.as_bps() as f64 / 8.0 / setup.frames_per_second;
        let random = &mut setup.random;
        let is_key = wanted.key || self.frames == 0;
        let is_cut = now >= self.next_cut;
        if is_cut {
            let wait = random.exponential(config.cut_every.as_secs_f64());
            self.next_cut = now + Span::from_secs_f64(wait);
        }
        let larger = match (is_key, is_cut) {
            (true, _) => config.key,
            (false, true) => config.cut,
            (false, false) => 1.0,
        };
        let noise = 1.0 + laplace(random, config.scale_b);
        // A frame saves no more than half of itself.
        let saved = (self.debt / f64::from(config.recover)).min(mean / 2.0);
        let saved = if larger > 1.0 { 0.0 } else { saved };
        self.debt += (larger - 1.0) * mean - saved;
        self.frames += 1;
        let work = random.exponential(config.encoding_jitter.as_secs_f64());
        let encoded = now + config.encoding + Span::from_secs_f64(work);
        self.last_encoded = encoded.max(self.last_encoded);
        Some(Frame {
            captured: now,
            encoded: self.last_encoded,
            size: bytes((mean * larger - saved) * noise),
            is_key,
            layer: 0,
            height: config.height as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Params, Purpose, Rate, StreamAddress, Words};

    use super::*;

    fn source(words: &str) -> Box<dyn Source> {
        Config::parse(&mut Words::new(words)).expect("well written").build(Setup {
            start: Time::from_nanos(1000),
            frames_per_second: 60.0,
            min_rate: Rate::from_bps(5_000_000),
            max_rate: Rate::from_bps(35_000_000),
            random: StreamAddress { seed: 5, run: 0 }.stream(1, Purpose::Application),
        })
    }

    fn wanted(mbps: u64) -> Wanted {
        Wanted { rate: Rate::from_bps(mbps * 1_000_000), key: false }
    }

    #[test]
    fn an_hour_has_the_rate_that_was_asked_for_and_never_loses_the_beat() {
        let mut source = source("");
        let frames: Vec<Frame> =
            (0..216_000).map(|_| source.capture(&wanted(35)).expect("a frame")).collect();
        let rate = frames.iter().map(|frame| f64::from(frame.size)).sum::<f64>() * 8.0 / 3600.0;
        assert!((rate / 35e6 - 1.0).abs() < 0.005, "{rate}");
        assert_eq!(frames[215_940].captured.as_nanos(), 3_599_000_001_000);
        let cuts = frames.iter().filter(|frame| f64::from(frame.size) > 2.2 * 72_917.0).count();
        assert!((600..900).contains(&cuts), "{cuts}");
        assert!(frames.windows(2).all(|pair| pair[0].encoded <= pair[1].encoded));
    }

    #[test]
    fn the_next_frame_has_the_new_target() {
        let mut source = source("scale_b=0 cut=1 key=1");
        let size = |source: &mut dyn Source, mbps| source.capture(&wanted(mbps)).map(|f| f.size);
        assert_eq!(size(&mut *source, 24), Some(50_000));
        assert_eq!(size(&mut *source, 12), Some(25_000));
        assert_eq!(size(&mut *source, 99), Some(72_917));
    }

    #[test]
    fn a_key_frame_is_paid_for_by_the_next_ones() {
        let mut source = source("scale_b=0 cut=1 key=5 recover=10");
        let first = source.capture(&wanted(24)).expect("a frame");
        assert_eq!((first.size, first.is_key), (250_000, true));
        assert_eq!(source.capture(&wanted(24)).map(|f| (f.size, f.is_key)), Some((30_000, false)));
    }
}
