//! The hybrid model of RFC 8593 section 7: steady frames come from files, as in the trace-driven
//! model, and a large change of the target makes the statistical model's transient.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_core::param::{Needed, number, size, time, whole};
use sojourn_core::{Bytes, Span, SpecError, Time};

use super::frame_trace::{self, Ladder, LadderForm, Player};
use super::noise::laplace;
use super::statistical::{Encoder, Transient, bytes};
use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of both models.
    pub struct Config: "hybrid", "Frame sizes from files with transients of the statistical model, by RFC 8593 section 7" {
        pub(crate) files: Ladder as Needed<LadderForm> = "", "A file of frame sizes for each rate of the ladder, in rising order: RATE:FILE,RATE:FILE,…";
        pub(crate) fps: f64 = "30", number(0.1, 1000.0), "Frames a second of the files' sequence";
        pub(crate) skip: u32 = "20", whole(0, 1_000_000), "Frames that are left out when the sequence begins again";
        pub(crate) least: Bytes = "10B", size(1, 1_000_000), "Smaller frames are made as large";
        pub(crate) most: Bytes = "1000000B", size(1, 10_000_000), "Larger frames are made as small";
        pub(crate) change: f64 = "0.1", number(0.0, 1000.0), "A target that differs by more than this share begins a transient";
        pub(crate) tau_v: Span = "200ms", time(Span::ZERO, Span::from_secs(10)), "tau_v: for so long after it took a target, the encoder takes no other";
        pub(crate) k_d: u32 = "8", whole(2, 1000), "K_d: frames of a transient";
        pub(crate) k_b: Bytes = "13500B", size(1, 1_000_000), "K_B: bytes of the first frame of a transient";
        pub(crate) scale_t: f64 = "0.15", number(0.0, 1.0), "SCALE_t: scale of the Laplacian noise of frame intervals, as a share of t0";
        pub(crate) encoding: Span = "0ms", time(Span::ZERO, Span::from_secs(1)), "How long the encoder works on a frame";
        pub(crate) height: u32 = "720", whole(1, 8640), "Lines of the picture";
    }
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        let trace = frame_trace::Config {
            files: self.files.clone(),
            fps: self.fps,
            skip: self.skip,
            least: self.least,
            most: self.most,
            encoding: self.encoding,
            height: self.height,
        };
        Box::new(Hybrid {
            next: setup.start,
            player: Player::new(&trace, setup.frames_per_second),
            encoder: Encoder::new(self.tau_v, &setup),
            transient: Transient::new(self.k_d, self.k_b, self.change),
            is_first: true,
            config: self.clone(),
            setup,
        })
    }

    fn files(&self) -> Vec<&str> {
        self.files.files()
    }

    fn read(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        self.files.read(name, text, self.skip)
    }

    fn fingerprint(&self) -> Option<u64> {
        Some(self.files.fingerprint())
    }
}

#[derive(Debug)]
struct Hybrid {
    config: Config,
    setup: Setup,
    player: Player,
    encoder: Encoder,
    transient: Transient,
    is_first: bool,
    next: Time,
}

impl Source for Hybrid {
    fn next_capture(&self) -> Time {
        self.next
    }

    fn capture(&mut self, wanted: &Wanted) -> Option<Frame> {
        let now = self.next;
        let interval = 1.0 / self.setup.frames_per_second;
        let noise = laplace(&mut self.setup.random, self.config.scale_t);
        self.next = now + Span::from_secs_f64(interval * (1.0 + noise)).max(Span::from_nanos(1));
        let change = self.encoder.aim(now, wanted.rate);
        // A key frame comes from the files: a request goes back to their first frame.
        let (traced, is_key) = self.player.frame(self.encoder.rate(), wanted.key);
        let is_change = !core::mem::take(&mut self.is_first) && !wanted.key;
        let change = if is_change { change } else { 0.0 };
        let mean = self.encoder.bytes_per_second() * interval;
        let size = match self.transient.frame(false, change, mean) {
            Some((size, _)) if !is_key => bytes(size),
            _ => traced,
        };
        Some(Frame {
            captured: now,
            encoded: now + self.config.encoding,
            size,
            is_key,
            layer: 0,
            height: self.config.height as u16,
        })
    }
}
