//! The trace-driven model of RFC 8593 section 6: frame sizes of a real encoder at several rates.
//!
//! The files are the user's, one for each rate of a ladder, all of the same sequence. Between two
//! rates of the ladder, sizes are interpolated; outside it, the nearest rate's are scaled. After the
//! last frame it goes on behind the first ones, which a real encoder spends on its start; a request
//! for a key frame goes back to the very first.

mod ladder;
mod sizes;
#[cfg(test)]
mod tests;

pub(super) use ladder::{Ladder, LadderForm, Player};

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sojourn_core::param::{Needed, number, size, time, whole};
use sojourn_core::{Bytes, Span, SpecError, Time};

use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of RFC 8593 section 6.
    pub struct Config: "frame-trace", "Frame sizes from the user's files, by the trace-driven model of RFC 8593 section 6" {
        pub(crate) files: Ladder as Needed<LadderForm> = "", "A file of frame sizes for each rate of the ladder, in rising order: RATE:FILE,RATE:FILE,…";
        pub(crate) fps: f64 = "30", number(0.1, 1000.0), "Frames a second of the files' sequence";
        pub(crate) skip: u32 = "20", whole(0, 1_000_000), "Frames that are left out when the sequence begins again";
        pub(crate) least: Bytes = "10B", size(1, 1_000_000), "Smaller frames are made as large";
        pub(crate) most: Bytes = "1000000B", size(1, 10_000_000), "Larger frames are made as small";
        pub(crate) encoding: Span = "0ms", time(Span::ZERO, Span::from_secs(1)), "How long the encoder works on a frame";
        pub(crate) height: u32 = "720", whole(1, 8640), "Lines of the picture";
    }
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        Box::new(FrameTrace {
            next: setup.start,
            interval: Span::from_secs_f64(1.0 / setup.frames_per_second),
            player: Player::new(self, setup.frames_per_second),
            setup,
            config: self.clone(),
        })
    }

    fn files(&self) -> Vec<&str> {
        self.files.files()
    }

    fn read(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        let (least, most) = (self.least, self.most);
        if least > most {
            let problem = SpecError::new(format!("{least} is more than 'most', {most}"));
            return Err(problem.allow([format!("{most} or less")]).about("least"));
        }
        self.files.read(name, text, self.skip)
    }

    fn fingerprint(&self) -> Option<u64> {
        Some(self.files.fingerprint())
    }
}

#[derive(Debug)]
struct FrameTrace {
    config: Config,
    setup: Setup,
    player: Player,
    interval: Span,
    next: Time,
}

impl Source for FrameTrace {
    fn next_capture(&self) -> Time {
        self.next
    }

    fn capture(&mut self, wanted: &Wanted) -> Option<Frame> {
        let now = self.next;
        self.next = now + self.interval;
        let rate = wanted.rate.max(self.setup.min_rate).min(self.setup.max_rate);
        let (size, is_key) = self.player.frame(rate, wanted.key);
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
