//! Sources of frames: encoders, traces of encoders, microphones, games.
//!
//! One kind, one folder or file: its `Config`, made by `params!`, implements [`SourceModel`];
//! `registry.rs` has a line for it.

mod camera;
mod frame_trace;
mod game;
mod hybrid;
mod noise;
mod registry;
mod screen;
mod statistical;
mod voice;

pub use registry::{Config, external, kinds, models};
pub(crate) use voice::NOISE_EVERY;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_core::{Params, Rate, Span, SpecError, Stream, Time};

/// A source, given by its parameters. A crate outside this one implements it to register one with
/// [`external`].
pub trait SourceModel: Params + Send + Sync + 'static {
    fn build(&self, setup: Setup) -> Box<dyn Source>;

    /// The files that its parameters name, as written. Each is given to [`SourceModel::read`]
    /// before the source is built.
    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Takes in the text of the file `name`.
    ///
    /// # Errors
    /// It isn't what this source reads; the line that is wrong, and what is allowed.
    fn read(&mut self, _name: &str, _text: &str) -> Result<(), SpecError> {
        Ok(())
    }

    /// A hash of the files' contents; it becomes part of a run's identity.
    fn fingerprint(&self) -> Option<u64> {
        None
    }

    /// The rate and the length of frames of a voice; `None` for anything else.
    fn voice(&self) -> Option<Voice> {
        None
    }

    /// Whether it makes audio. Its packets then have audio's headers and priority.
    fn is_audio(&self) -> bool {
        false
    }
}

/// What a codec for voices makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voice {
    /// Payload a second while someone talks.
    pub rate: Rate,
    /// The sound in a packet.
    pub frame: Span,
    /// Whether frames differ in size.
    pub varies: bool,
}

/// What a source learns when it is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The moment its first frame may be captured.
    pub start: Time,
    pub frames_per_second: f64,
    /// The application's limits for the payload of the stream.
    pub min_rate: Rate,
    pub max_rate: Rate,
    pub random: Stream,
}

/// What the sender asks of a source when it captures a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Payload a second, headers not counted.
    pub rate: Rate,
    /// The receiver cannot decode without a key frame.
    pub key: bool,
}

/// One frame of video or audio, as it leaves its encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub captured: Time,
    /// When the encoder is done with it; not before it is captured.
    pub encoded: Time,
    /// Bytes of payload.
    pub size: u32,
    /// It can be decoded without another frame.
    pub is_key: bool,
    /// Its temporal layer: a frame needs only frames of the same or lower layers.
    pub layer: u8,
    /// Lines of the picture; 0 for audio.
    pub height: u16,
}

/// What makes the frames of one stream.
pub trait Source: Send {
    /// When the next frame is captured; [`Time::NEVER`] after the last.
    fn next_capture(&self) -> Time;

    /// The frame that is captured now, at [`Source::next_capture`]; `None` if the encoder drops it.
    fn capture(&mut self, wanted: &Wanted) -> Option<Frame>;
}
