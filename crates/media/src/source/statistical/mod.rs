//! The statistical model of a live video encoder of RFC 8593 section 5.
//!
//! Frames come every t0 = 1/FPS and have B0 = R_v/8/FPS bytes, both with Laplacian noise. The
//! encoder takes a new target only when it has not taken one within tau_v. A target that differs
//! much, like a request for a key frame, begins a transient: one frame of K_B bytes, then K_d - 1
//! frames so much smaller that the mean over all K_d is that of the target.

mod encoder;
#[cfg(test)]
mod tests;

pub(super) use encoder::{Encoder, Transient};

use alloc::boxed::Box;

use sojourn_core::param::{number, size, time, whole};
use sojourn_core::{Bytes, Span, Time};

use super::noise::{Corrected, laplace};
use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of RFC 8593, figure 2. FPS, R_min and R_max are the application's.
    pub struct Config: "statistical", "A live video encoder by the statistical model of RFC 8593 section 5" {
        pub(crate) tau_v: Span = "200ms", time(Span::ZERO, Span::from_secs(10)), "tau_v: for so long after it took a target, the encoder takes no other";
        pub(crate) k_d: u32 = "8", whole(2, 1000), "K_d: frames of a transient";
        pub(crate) k_b: Bytes = "13500B", size(1, 1_000_000), "K_B: bytes of the first frame of a transient, and of a key frame; 13.5 kB is a 720p30 H.264 one";
        pub(crate) key: f64 = "0", number(0.0, 100.0), "Size of a key frame in mean frames, which begins no transient, as of encoders that do not look ahead; 0: K_B";
        pub(crate) scale_t: f64 = "0.15", number(0.0, 1.0), "SCALE_t: scale of the Laplacian noise of frame intervals, as a share of t0";
        pub(crate) scale_b: f64 = "0.15", number(0.0, 1.0), "SCALE_B: scale of the Laplacian noise of frame sizes, as a share of B0";
        pub(crate) change: f64 = "0.1", number(0.0, 1000.0), "A target that differs by more than this share begins a transient; 0.1 is the hybrid model's (section 7)";
        pub(crate) correct: f64 = "0", number(0.0, 1.0), "Part of the bytes above the target so far that the next frame saves, as an encoder at constant rate does; 0 is the RFC's";
        pub(crate) encoding: Span = "0ms", time(Span::ZERO, Span::from_secs(1)), "How long the encoder works on a frame";
        pub(crate) height: u32 = "720", whole(1, 8640), "Lines of the picture";
    }
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        Box::new(Statistical {
            next: setup.start,
            encoder: Encoder::new(self.tau_v, &setup),
            transient: Transient::new(self.k_d, self.k_b, self.change),
            has_begun: false,
            interval: 1.0 / setup.frames_per_second,
            noise: Corrected::new(self.scale_b, self.correct),
            config: self.clone(),
            setup,
        })
    }
}

#[derive(Debug)]
struct Statistical {
    config: Config,
    setup: Setup,
    encoder: Encoder,
    transient: Transient,
    has_begun: bool,
    /// t0, in seconds.
    interval: f64,
    noise: Corrected,
    next: Time,
}

impl Source for Statistical {
    fn next_capture(&self) -> Time {
        self.next
    }

    fn capture(&mut self, wanted: &Wanted) -> Option<Frame> {
        let now = self.next;
        let Self { config, setup, encoder, transient, interval, noise, .. } = self;
        let change = encoder.aim(now, wanted.rate);
        let mean = encoder.bytes_per_second() * *interval;
        let random = &mut setup.random;
        let has_begun = core::mem::replace(&mut self.has_begun, true);
        let frame = match config.key > 0.0 && (wanted.key || !has_begun) {
            true => Some((config.key * mean, true)),
            false => transient.frame(wanted.key, change, mean),
        };
        let (size, is_key) = match frame {
            Some(frame) => frame,
            None => (noise.around(mean, random), false),
        };
        let wait = *interval * (1.0 + laplace(random, config.scale_t));
        self.next = now + Span::from_secs_f64(wait).max(Span::from_nanos(1));
        Some(Frame {
            captured: now,
            encoded: now + config.encoding,
            size: bytes(size),
            is_key,
            layer: 0,
            height: config.height as u16,
        })
    }
}

/// A frame's size. An encoder writes at least a header, of ten bytes as in section 6.2.
pub(super) fn bytes(size: f64) -> u32 {
    (size + 0.5).clamp(LEAST, MOST) as u32
}

const LEAST: f64 = 10.0;
const MOST: f64 = 1_000_000.0;
