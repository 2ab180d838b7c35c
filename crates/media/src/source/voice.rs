//! Audio: Opus and G.711, with silence suppressed or not.
//!
//! Talk spurts and pauses are exponentially distributed with the means of ITU-T P.59, 1.004 s and
//! 1.587 s. In a pause, Opus with DTX sends a frame of comfort noise every 400 ms, and so do we for
//! G.711 (RFC 3389). Targets don't matter: libwebrtc's audio keeps its rate, too, unless told
//! otherwise.

use alloc::boxed::Box;

use sojourn_core::param::{Switch, number, size, time};
use sojourn_core::{Bytes, Rate, Span, Time};

use super::noise::laplace;
use super::{Frame, Setup, Source, SourceModel, Voice, Wanted};

sojourn_core::params! {
    /// The parameters of Opus.
    pub struct Opus: "opus", "A voice in Opus (RFC 6716, RFC 7587)" {
        rate: Rate = "32kbit", sojourn_core::param::rate(Rate::from_bps(6_000), Rate::from_bps(510_000)), "Bits a second while someone talks; libwebrtc's for one channel";
        frame: Span = "20ms", time(Span::from_micros(2500), Span::from_millis(120)), "Length of a frame";
        vbr: bool as Switch = "on", "Frames have the size that they need; off: all have the same (CBR)";
        scale: f64 = "0.1", number(0.0, 1.0), "Scale of the Laplacian noise of sizes with 'vbr', as a share of the mean";
        dtx: bool as Switch = "off", "Pauses are not sent";
        talk: Span = "1004ms", time(Span::from_millis(1), Span::from_secs(100_000)), "How long a talk spurt is with 'dtx', on average";
        pause: Span = "1587ms", time(Span::from_millis(1), Span::from_secs(100_000)), "How long a pause is with 'dtx', on average";
    }
}

sojourn_core::params! {
    /// The parameters of G.711.
    pub struct G711: "g711", "A voice in G.711: 64 kbit/s, every frame of the same size" {
        frame: Span = "20ms", time(Span::from_millis(1), Span::from_millis(120)), "Length of a frame";
        silence: bool as Switch = "off", "Pauses are not sent (RFC 3389)";
        noise: Bytes = "1B", size(1, 11), "Bytes of a frame of comfort noise: its level, and its spectrum if there is more";
        talk: Span = "1004ms", time(Span::from_millis(1), Span::from_secs(100_000)), "How long a talk spurt is with 'silence', on average";
        pause: Span = "1587ms", time(Span::from_millis(1), Span::from_secs(100_000)), "How long a pause is with 'silence', on average";
    }
}

impl Opus {
    /// Whether frames differ in size.
    fn varies(&self) -> bool {
        self.vbr && self.scale > 0.0
    }
}

impl SourceModel for Opus {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        let bytes = self.rate.as_bps() as f64 / 8.0 * self.frame.as_secs_f64();
        let scale = if self.varies() { self.scale } else { 0.0 };
        // RFC 6716 section 3.1: a frame without content has one byte or two.
        let pauses = self.dtx.then_some(Pauses { talk: self.talk, pause: self.pause, noise: 2 });
        Box::new(Talker::new(setup, self.frame, bytes, scale, pauses))
    }

    fn voice(&self) -> Option<Voice> {
        Some(Voice { rate: self.rate, frame: self.frame, varies: self.varies() })
    }

    fn is_audio(&self) -> bool {
        true
    }
}

impl SourceModel for G711 {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        let noise = self.noise.as_u64() as u32;
        let pauses = self.silence.then_some(Pauses { talk: self.talk, pause: self.pause, noise });
        Box::new(Talker::new(setup, self.frame, 8000.0 * self.frame.as_secs_f64(), 0.0, pauses))
    }

    fn voice(&self) -> Option<Voice> {
        Some(Voice { rate: Rate::from_bps(64_000), frame: self.frame, varies: false })
    }

    fn is_audio(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug)]
struct Pauses {
    talk: Span,
    pause: Span,
    /// Bytes of a frame of comfort noise.
    noise: u32,
}

/// How often comfort noise is renewed.
pub(crate) const NOISE_EVERY: Span = Span::from_millis(400);

#[derive(Debug)]
struct Talker {
    setup: Setup,
    frame: Span,
    bytes: f64,
    scale: f64,
    pauses: Option<Pauses>,
    frames: u64,
    is_talking: bool,
    /// When the talk spurt or the pause ends.
    until: Time,
    noise_at: Time,
}

impl Talker {
    fn new(setup: Setup, frame: Span, bytes: f64, scale: f64, pauses: Option<Pauses>) -> Self {
        let start = setup.start;
        let until = if pauses.is_some() { start } else { Time::NEVER };
        let is_talking = pauses.is_none();
        Self { frame, bytes, scale, pauses, frames: 0, is_talking, until, noise_at: start, setup }
    }

    /// The next talk spurt or pause.
    fn turn(&mut self, pauses: Pauses) {
        self.is_talking = !self.is_talking;
        let mean = if self.is_talking { pauses.talk } else { pauses.pause };
        self.noise_at = self.until;
        let lasts = self.setup.random.exponential(mean.as_secs_f64());
        self.until += Span::from_secs_f64(lasts).max(Span::from_nanos(1));
    }
}

impl Source for Talker {
    /// A frame is complete when all of it was spoken.
    fn next_capture(&self) -> Time {
        self.setup.start + self.frame * (self.frames + 1)
    }

    fn capture(&mut self, _wanted: &Wanted) -> Option<Frame> {
        let now = self.next_capture();
        self.frames += 1;
        let frame =
            |size| Frame { captured: now, encoded: now, size, is_key: true, layer: 0, height: 0 };
        let Some(pauses) = self.pauses else {
            return Some(frame(self.spoken()));
        };
        while self.until <= now {
            self.turn(pauses);
        }
        if self.is_talking {
            return Some(frame(self.spoken()));
        }
        (self.noise_at <= now).then(|| {
            self.noise_at = now + NOISE_EVERY;
            frame(pauses.noise)
        })
    }
}

impl Talker {
    fn spoken(&mut self) -> u32 {
        let size = self.bytes * (1.0 + laplace(&mut self.setup.random, self.scale));
        ((size + 0.5) as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, StreamAddress, Words};

    use super::*;

    fn hour<S: SourceModel>(words: &str, frame: Span) -> Vec<Option<Frame>> {
        let config = S::parse(&mut Words::new(words)).expect("well written");
        assert!(config.is_audio());
        let mut source = config.build(Setup {
            start: Time::ZERO,
            frames_per_second: 60.0,
            min_rate: Rate::ZERO,
            max_rate: Rate::UNLIMITED,
            random: StreamAddress { seed: 5, run: 0 }.stream(1, Purpose::Application),
        });
        let wanted = Wanted { rate: Rate::ZERO, key: false };
        let count = Span::from_secs(3600).as_nanos() / frame.as_nanos();
        (0..count).map(|_| source.capture(&wanted)).collect()
    }

    fn kbps(frames: &[Option<Frame>]) -> f64 {
        frames.iter().flatten().map(|frame| f64::from(frame.size)).sum::<f64>() / 450_000.0
    }

    const MS20: Span = Span::from_millis(20);

    #[test]
    fn g711_is_160_bytes_every_20_ms() {
        let frames = hour::<G711>("", MS20);
        assert!(frames.iter().all(|frame| frame.is_some_and(|frame| frame.size == 160)));
        assert_eq!(frames[49].map(|frame| frame.captured), Some(Time::ZERO + Span::from_secs(1)));
        assert!((kbps(&frames) - 64.0).abs() < 1e-9);
        assert!(
            hour::<G711>("frame=30ms", Span::from_millis(30))[0].is_some_and(|f| f.size == 240)
        );
    }

    #[test]
    fn opus_keeps_its_rate_with_all_frames_alike_or_as_large_as_they_need() {
        let alike = hour::<Opus>("vbr=off", MS20);
        assert!(alike.iter().all(|frame| frame.is_some_and(|frame| frame.size == 80)));
        let needed = hour::<Opus>("", MS20);
        assert!((kbps(&needed) - 32.0).abs() < 0.1, "{}", kbps(&needed));
        let off = needed.iter().flatten().map(|frame| (f64::from(frame.size) - 80.0).abs());
        let scale = off.sum::<f64>() / needed.len() as f64 / 80.0;
        assert!((scale - 0.1).abs() < 0.002, "{scale}");
    }

    /// ITU-T P.59: 38.53 % of the time is talk.
    #[test]
    fn pauses_that_are_not_sent_leave_the_share_of_talk() {
        for frames in [hour::<Opus>("vbr=off dtx=on", MS20), hour::<G711>("silence=on", MS20)] {
            let talk = frames.iter().flatten().filter(|frame| frame.size > 11).count();
            let share = talk as f64 / frames.len() as f64;
            assert!((share - 0.3875).abs() < 0.02, "{share}");
            let noise = frames.iter().flatten().filter(|frame| frame.size <= 11).count();
            // A frame at a pause's beginning and one for every 400 ms of it.
            let pauses = 3600.0 / 2.591;
            let expected = pauses * (1.0 / (1.0 - libm::exp(-400.0 / 1587.0)));
            assert!((noise as f64 / expected - 1.0).abs() < 0.06, "{noise} {expected}");
        }
    }
}
