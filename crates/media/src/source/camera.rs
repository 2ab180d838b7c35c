//! A camera in a browser, with an encoder at constant rate as libvpx's for VP8.
//!
//! What the target pays for and frames have not used lies in a buffer. The less there is, the smaller frames become; if there is more than the best
//! level, they become a little larger. A call therefore begins with frames of half of what the target allows, and a target that rises is reached in seconds.
//!
//! While the buffer is at its best level or above, no frame is coarser than frames were in the mean so far. So when the target falls, the encoder goes on
//! at a higher rate until the buffer is down to what is best for the lower target. If it is nearly empty, pictures are left out.
//!
//! After a cut the picture is unlike the one before, and its frame is larger: little larger where frames are large anyway, because they are fine.
//!
//! A frame can be no coarser than the encoder makes them, so it has a least size. Where the target pays for less, the buffer is used up and pictures are left
//! out until it is filled again. When frames have been that coarse for some seconds, the picture gets fewer lines, and more again when they are fine.

use alloc::boxed::Box;

use sojourn_core::param::{Switch, number, size, time, whole};
use sojourn_core::{Bytes, Span, Time};

use super::noise::Corrected;
use super::statistical::bytes;
use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of a camera. The buffer's are those that libwebrtc gives to libvpx.
    pub struct Config: "camera", "A browser's camera: frames of an even pace, by an encoder at constant rate as libvpx's" {
        begins: Span = "40ms", time(Span::ZERO, Span::from_secs(100)), "How long after the start of the call the first picture comes; probes of the network leave before it";
        buffer_first: Span = "500ms", time(Span::ZERO, Span::from_secs(100)), "What the encoder's buffer holds at first, as time at the target; half of it is the size of the first frame";
        buffer_best: Span = "600ms", time(Span::from_millis(1), Span::from_secs(100)), "The level that the encoder aims at";
        buffer_most: Span = "1s", time(Span::from_millis(1), Span::from_secs(100)), "The largest level";
        under: f64 = "1", number(0.0, 1.0), "Of how large a part of the best level a lack counts; half of that part is taken off each frame";
        over: f64 = "0.15", number(0.0, 10.0), "Of how large a part of it an excess counts; half of that part is added to each frame";
        coarser: f64 = "4", number(1.0, 1000.0), "By what factor a frame may be smaller than the one before when a quarter of the best level is left";
        leave_out: f64 = "0.3", number(0.0, 1.0), "Below two thirds of this part of the best level pictures are left out, every other one at first; 0: none are";
        key: f64 = "3.75", number(0.0, 100.0), "Size in mean frames of a key frame that is asked for";
        cut_first: Span = "0s", time(Span::ZERO, Span::from_secs(100)), "How long after the start of the call the first cut comes";
        cut_every: Span = "0s", time(Span::ZERO, Span::from_secs(1_000_000)), "After this time the next one, as where a film is shown again and again; 0: there are no cuts";
        cut: Bytes = "12kB", size(1, 100_000_000), "The least size of the first frame after a cut at a target of 1 Mbit/s; it grows with the root of the target";
        least: Bytes = "1260B", size(0, 100_000_000), "Size of the coarsest frame that has all lines and comes right after the picture before; 0: frames may be of any size";
        scale: bool as Switch = "on", "The picture gets three quarters and then half of the lines when frames are coarse, and more when they are fine";
        scale_b: f64 = "0.15", number(0.0, 1.0), "Scale of the Laplacian noise of frame sizes, as a share of the mean frame";
        correct: f64 = "0.2", number(0.0, 1.0), "Part of what noise has made too large so far that the next frame saves";
        encoding: Span = "0ms", time(Span::ZERO, Span::from_secs(1)), "How long the encoder works on a frame";
        height: u32 = "360", whole(1, 8640), "Lines of the picture";
    }
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        Box::new(Camera {
            next: setup.start + self.begins,
            cut: match self.cut_every {
                Span::ZERO => Time::NEVER,
                _ => setup.start + self.cut_first,
            },
            encoder: Encoder::new(self.clone()),
            noise: Corrected::new(self.scale_b, self.correct),
            interval: 1.0 / setup.frames_per_second,
            setup,
        })
    }
}

#[derive(Debug)]
struct Camera {
    setup: Setup,
    encoder: Encoder,
    noise: Corrected,
    /// Between pictures, in seconds.
    interval: f64,
    next: Time,
    /// When the next cut comes.
    cut: Time,
}

impl Source for Camera {
    fn next_capture(&self) -> Time {
        self.next
    }

    fn capture(&mut self, wanted: &Wanted) -> Option<Frame> {
        let now = self.next;
        let Self { setup, encoder, noise, interval, cut, .. } = self;
        self.next = now + Span::from_secs_f64(*interval).max(Span::from_nanos(1));
        let rate = wanted.rate.max(setup.min_rate).min(setup.max_rate).as_bps() as f64 / 8.0;
        let is_cut = *cut <= now;
        let made = encoder.frame(rate, rate * *interval, wanted.key, is_cut);
        let lines = if encoder.config.scale { encoder.scaler.lines(now, setup.start) } else { 1.0 };
        let (mean, is_key) = made?;
        let config = &encoder.config;
        // If the picture was left out, the next one is as unlike the last that was encoded.
        if is_cut {
            *cut += config.cut_every;
        }
        let size = match is_key {
            true => mean,
            false => noise.around(mean, &mut setup.random),
        };
        Some(Frame {
            captured: now,
            encoded: now + config.encoding,
            size: bytes(size),
            is_key,
            layer: 0,
            height: (f64::from(config.height) * lines) as u16,
        })
    }
}

/// How large the encoder makes frames, noise apart.
#[derive(Debug)]
struct Encoder {
    config: Config,
    /// Bytes in the buffer.
    level: f64,
    /// Of the frames so far: their number, the sum of the logarithms of their sizes, and the size of the last one. Key frames are not among them.
    frames: u32,
    logs: f64,
    last: f64,
    has_begun: bool,
    /// Of how many pictures after an encoded one all are left out, and how many of these are still to come.
    thinning: u32,
    to_leave_out: u32,
    /// Pictures since the last one that was encoded.
    gap: u32,
    scaler: Scaler,
}

/// How many lines the picture has.
///
/// As libwebrtc's `QualityScaler`, which looks at the mean quantizer of the frames of some seconds, and at how many were left out. Frames of measured calls had
/// VP8's quantizer of 95, at which it takes lines away, at 1.22 times the size of the coarsest, and 29, at which it gives them back, at 5.9 times.
#[derive(Debug, Default)]
struct Scaler {
    /// Which of `LINES`.
    step: usize,
    /// Of the present seconds: pictures, those that were left out, and the sum of sizes over the size of the coarsest frame.
    pictures: u32,
    left_out: u32,
    fineness: f64,
    /// How many times it has looked.
    looks: u64,
}

/// The share of lines, and how large the coarsest frame is then: measured at 360, 270 and 180 lines.
const LINES: [(f64, f64); 3] = [(1.0, 1.0), (0.75, 0.57), (0.5, 0.335)];
const LOOKS: Span = Span::from_secs(5);
const COARSE: f64 = 1.22;
const FINE: f64 = 5.9;
/// With so large a share left out the picture has too many lines.
const TOO_MANY_LEFT_OUT: f64 = 0.6;

impl Scaler {
    /// Takes a picture that was encoded at so many times the size of the coarsest frame.
    fn take(&mut self, fineness: f64) {
        self.pictures += 1;
        self.fineness += fineness;
    }

    fn leave_out(&mut self) {
        self.pictures += 1;
        self.left_out += 1;
    }

    /// The share of lines from `now` on.
    fn lines(&mut self, now: Time, start: Time) -> f64 {
        if now.since(start) >= LOOKS * (self.looks + 1) {
            let encoded = f64::from(self.pictures - self.left_out);
            let missing = f64::from(self.left_out) / f64::from(self.pictures.max(1));
            if missing >= TOO_MANY_LEFT_OUT || self.fineness < COARSE * encoded {
                self.step = (self.step + 1).min(LINES.len() - 1);
            } else if self.fineness > FINE * encoded {
                self.step = self.step.saturating_sub(1);
            }
            *self = Self { step: self.step, looks: self.looks + 1, ..Self::default() };
        }
        LINES[self.step].0
    }
}

/// The target for which the size of a cut's frame is given, in bytes a second.
const CUT_AT: f64 = 125_000.0;
/// So many frames pass before the encoder knows how coarse frames are in the mean.
const LEARNING: u32 = 150;
/// The part of the best level at which frames may become coarser by the whole factor.
const LOWEST: f64 = 0.25;
/// The shares of the mark at which more pictures are left out: one of two, two of three, three of four.
const MARKS: [f64; 3] = [2.0 / 3.0, 0.25, 0.125];
/// How much larger the others are then.
const LARGER: [f64; 4] = [1.0, 1.5, 1.25, 1.25];

impl Encoder {
    fn new(config: Config) -> Self {
        Self {
            config,
            level: 0.0,
            frames: 0,
            logs: 0.0,
            last: 0.0,
            has_begun: false,
            thinning: 0,
            to_leave_out: 0,
            gap: 0,
            scaler: Scaler::default(),
        }
    }

    /// The size of the next frame for `rate` bytes a second, which are `share` for each picture, and whether it is a key frame; `None` if
    /// the picture is left out. After a `cut` it has a least size.
    fn frame(&mut self, rate: f64, share: f64, key: bool, cut: bool) -> Option<(f64, bool)> {
        let config = &self.config;
        let best = rate * config.buffer_best.as_secs_f64();
        if !self.has_begun {
            self.has_begun = true;
            self.level = rate * config.buffer_first.as_secs_f64();
            let size = self.level / 2.0;
            self.level += share - size;
            return Some((size, true));
        }
        self.level = self.level.min(rate * config.buffer_most.as_secs_f64());
        self.thin(config.leave_out * best);
        self.gap += 1;
        let is_used_up = self.level < 0.0 && self.config.leave_out > 0.0;
        if !key && (is_used_up || self.to_leave_out > 0) {
            self.to_leave_out = self.to_leave_out.saturating_sub(1);
            self.level += share;
            self.scaler.leave_out();
            return None;
        }
        self.to_leave_out = self.thinning;
        let coarsest = self.coarsest();
        self.gap = 0;
        if key {
            let size = (self.config.key * share).max(coarsest);
            self.level += share - size;
            return Some((size, true));
        }
        let mut size = self.size(share, best).max(coarsest);
        if coarsest > 0.0 {
            self.scaler.take(size / coarsest);
        }
        if cut {
            size = size.max(self.config.cut.as_u64() as f64 * libm::sqrt(rate / CUT_AT));
        }
        self.level += share - size;
        self.last = size;
        self.frames += 1;
        self.logs += libm::log(size.max(1.0));
        Some((size, false))
    }

    /// The size of a frame that is as coarse as can be: the longer ago the picture before, the less it is like this one. Measured frames had 1.3,
    /// 1.6, 1.7 and 1.9 times the size after 2, 3, 5 and 10 pictures.
    fn coarsest(&self) -> f64 {
        let least = self.config.least.as_u64() as f64;
        least * LINES[self.scaler.step].1 * libm::cbrt(f64::from(self.gap))
    }

    fn size(&self, share: f64, best: f64) -> f64 {
        let config = &self.config;
        let lack = 1.0 - self.level / best;
        let fitting = share * (1.0 - lack.clamp(-config.over, config.under) / 2.0);
        let fitting = fitting * LARGER[self.thinning as usize];
        if self.frames < LEARNING {
            return fitting;
        }
        let usual = libm::exp(self.logs / f64::from(self.frames));
        let opened = (lack / (1.0 - LOWEST)).clamp(0.0, 1.0);
        fitting.max(usual.min(self.last) * libm::pow(config.coarser, -opened))
    }

    /// Finds how many pictures are left out, one step at a time.
    fn thin(&mut self, mark: f64) {
        if self.level > mark {
            self.thinning = self.thinning.saturating_sub(1);
        }
        let below = MARKS.iter().filter(|part| self.level < *part * mark).count() as u32;
        self.thinning = match below {
            0 => self.thinning.min(1),
            _ => below.min(self.thinning + 1).max(self.thinning),
        };
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, Rate, StreamAddress};

    use super::super::kinds;
    use super::*;

    fn source(words: &str) -> Box<dyn Source> {
        kinds().parse(words).expect("well written").build(Setup {
            start: Time::ZERO,
            frames_per_second: 30.0,
            min_rate: Rate::from_bps(30_000),
            max_rate: Rate::from_bps(5_000_000),
            random: StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Application),
        })
    }

    fn at(kbps: u64) -> Wanted {
        Wanted { rate: Rate::from_bps(kbps * 1000), key: false }
    }

    /// Sizes of frames at this target, zero for a picture that is left out.
    fn sizes(source: &mut dyn Source, kbps: u64, count: usize) -> Vec<u32> {
        (0..count).map(|_| source.capture(&at(kbps)).map_or(0, |frame| frame.size)).collect()
    }

    fn kbps(sizes: &[u32]) -> f64 {
        sizes.iter().map(|size| f64::from(*size)).sum::<f64>() * 8e-3 * 30.0 / sizes.len() as f64
    }

    /// Half of 500 ms at 300 kbit/s are 9375 bytes; what is left is 53 % less than the best.
    #[test]
    fn a_call_begins_with_a_key_frame_of_a_quarter_of_a_second_and_small_frames_behind_it() {
        let mut source = source("camera scale_b=0 least=0B");
        assert_eq!(source.next_capture(), Time::ZERO + Span::from_millis(40));
        let key = source.capture(&at(300)).expect("a frame");
        assert_eq!((key.size, key.is_key), (9375, true));
        let next = source.capture(&at(300)).expect("a frame");
        assert_eq!((next.size, next.is_key), (920, false));
        assert_eq!(next.captured.since(key.captured).as_millis(), 33);
    }

    /// With a lack of x of the best level, 600 ms, frames lack x/2, so x falls with a time constant of 1.2 s: from 0.53, where the second after
    /// the key frame lacks a mean of 0.36, and the fourth 0.03.
    #[test]
    fn the_target_is_reached_in_seconds() {
        let mut source = source("camera scale_b=0 least=0B");
        let sizes = sizes(&mut *source, 300, 121);
        let second = |n: usize| kbps(&sizes[1 + 30 * n..31 + 30 * n]) / 300.0;
        assert!((second(0) - 0.82).abs() < 0.01, "{}", second(0));
        assert!((second(3) - 0.985).abs() < 0.005, "{}", second(3));
    }

    /// At ten times the rate the buffer holds a twentieth of the best: pictures are left out, and none later.
    #[test]
    fn pictures_are_left_out_while_the_buffer_is_nearly_empty() {
        let mut source = source("camera scale_b=0");
        sizes(&mut *source, 300, 3);
        let after = sizes(&mut *source, 3000, 40);
        let left_out = |sizes: &[u32]| sizes.iter().filter(|size| **size == 0).count();
        assert_eq!(left_out(&after[..10]), 4, "{after:?}");
        assert_eq!(left_out(&after[10..]), 0);
        let mut steady = self::source("camera scale_b=0 leave_out=0");
        sizes(&mut *steady, 300, 3);
        assert_eq!(left_out(&sizes(&mut *steady, 3000, 40)), 0);
    }

    /// The buffer holds 120 kbit more than is best for a rate that is 200 kbit/s lower: that keeps the old rate for 0.6 s.
    #[test]
    fn after_a_fall_frames_keep_their_size_until_the_buffer_is_down() {
        let mut source = source("camera scale_b=0");
        sizes(&mut *source, 1000, 600);
        let after = sizes(&mut *source, 800, 90);
        let held = after.iter().filter(|size| **size > 4000).count();
        assert!((18..=24).contains(&held), "{held}: {after:?}");
        let third = kbps(&after[60..]);
        assert!((740.0..800.0).contains(&third), "{third}");
    }

    /// The buffer has no room for more than a second at the new rate, so little is kept for it.
    #[test]
    fn a_deep_fall_is_followed_sooner() {
        let mut source = source("camera scale_b=0");
        sizes(&mut *source, 2500, 600);
        let after = sizes(&mut *source, 600, 30);
        let held = after.iter().filter(|size| **size > 9000).count();
        assert!((2..=6).contains(&held), "{held}: {after:?}");
    }

    #[test]
    fn a_key_frame_that_is_asked_for_has_so_many_mean_frames() {
        let mut source = source("camera scale_b=0");
        sizes(&mut *source, 1000, 600);
        let key = source.capture(&Wanted { key: true, ..at(1000) }).expect("a frame");
        assert_eq!((key.size, key.is_key), (15_625, true));
    }

    /// Cuts come at 1 s and 3 s, and pictures from 40 ms on: the first ones after them are the 30th and the 90th of them, counted from 0.
    #[test]
    fn a_picture_after_a_cut_has_a_larger_frame_which_the_next_ones_save() {
        let words = "camera scale_b=0 cut_first=1s cut_every=2s cut=12kB";
        let mut cut = source(words);
        let mut even = source("camera scale_b=0");
        let (cut, even) = (sizes(&mut *cut, 1000, 100), sizes(&mut *even, 1000, 100));
        assert_eq!((cut[29], cut[89]), (12_000, 12_000));
        assert_eq!(cut[..29], even[..29]);
        assert!(cut[30..89].iter().zip(&even[30..89]).all(|(cut, even)| cut < even));
        let quarter = sizes(&mut *source(words), 250, 30);
        assert_eq!(quarter[29], 6_000);
        // 4 kB at 1 Mbit/s are 8.9 at 5 Mbit/s, less than a frame has there.
        let large = sizes(&mut *source("camera scale_b=0 cut_every=2s cut=4kB"), 5000, 200);
        assert_eq!(large, sizes(&mut *source("camera scale_b=0"), 5000, 200));
    }

    /// Where nothing but noise varies, what is made in a second varies by 1.6 %; measured ones (Chromium, VP8) by 0.7 to 1.9 %.
    #[test]
    fn seconds_are_steady() {
        let mut source = source("camera");
        let sizes = sizes(&mut *source, 1000, 30 * 120);
        let seconds: Vec<f64> = sizes[30 * 20..].chunks(30).map(kbps).collect();
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let square = seconds.iter().map(|second| (second - mean) * (second - mean)).sum::<f64>();
        let spread = libm::sqrt(square / seconds.len() as f64) / mean;
        assert!((mean / 1000.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((0.01..0.02).contains(&spread), "{spread}");
    }

    /// How many of so many pictures come, their mean size, and the lines of the last.
    fn shown(source: &mut dyn Source, kbps: u64, count: usize) -> (usize, f64, u16) {
        let frames: Vec<_> = (0..count).filter_map(|_| source.capture(&at(kbps))).collect();
        let bytes: f64 = frames.iter().map(|frame| f64::from(frame.size)).sum();
        (frames.len(), bytes / frames.len() as f64, frames.last().map_or(0, |frame| frame.height))
    }

    /// 80 kbit/s are 10 kB a second. Measured ones had 5 frames of some 2.2 kB then, with all lines.
    #[test]
    fn where_the_target_pays_for_less_than_coarse_frames_few_of_them_come() {
        let mut source = source("camera scale_b=0 scale=off");
        shown(&mut *source, 80, 150);
        let (frames, mean, lines) = shown(&mut *source, 80, 300);
        assert!((40..60).contains(&frames) && (1900.0..2500.0).contains(&mean), "{frames} {mean}");
        assert_eq!(lines, 360);
    }

    /// At 200 kbit/s the measured picture had 270 lines after 6 s and 180 after 14, with all frames, and kept them at 250.
    #[test]
    fn coarse_frames_cost_lines_which_come_back_when_they_are_fine() {
        let mut source = source("camera scale_b=0");
        let mut lines = |kbps, count| shown(&mut *source, kbps, count).2;
        assert_eq!([lines(200, 100), lines(200, 100), lines(200, 200)], [360, 270, 180]);
        assert_eq!(shown(&mut *source, 200, 300).0, 300);
        let mut lines = |kbps, count| shown(&mut *source, kbps, count).2;
        assert_eq!([lines(250, 600), lines(3000, 100), lines(3000, 150)], [180, 270, 360]);
    }
}
