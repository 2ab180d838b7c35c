//! What a cloud game's player does: small packets up, as long as a hand moves.
//!
//! A hand moves for a while and rests for a while, both exponentially distributed. While it moves,
//! its device is polled at a steady beat; while it rests, a packet keeps the path alive now and then.
//! Targets don't matter to it. Packets go out unpaced, as those of audio do.

use alloc::boxed::Box;

use sojourn_core::param::{number, size, time};
use sojourn_core::{Bytes, Span, Time};

use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of a player's input.
    pub struct Config: "game-input", "What a cloud game's player does, as small packets at the beat of the device" {
        beat: f64 = "125", number(1.0, 8000.0), "Packets a second while the hand moves: 60 to 125 are common, 1000 is a fast mouse";
        packet: Bytes = "48B", size(1, 1200), "Bytes of a packet's payload";
        moves: Span = "4s", time(Span::from_millis(1), Span::from_secs(100_000)), "How long the hand moves, on average";
        rests: Span = "1s", time(Span::ZERO, Span::from_secs(100_000)), "How long it rests, on average; 0s for never";
        idle: Span = "100ms", time(Span::from_millis(1), Span::from_secs(100)), "Time between packets while it rests";
    }
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        let mut input = Input {
            next: setup.start,
            until: setup.start,
            is_moving: false,
            config: self.clone(),
            setup,
        };
        input.turn();
        Box::new(input)
    }

    fn is_audio(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Input {
    config: Config,
    setup: Setup,
    next: Time,
    /// When the hand stops or begins to move.
    until: Time,
    is_moving: bool,
}

impl Input {
    fn turn(&mut self) {
        let Config { moves, rests, .. } = self.config;
        self.is_moving = !self.is_moving || rests.is_zero();
        let mean = if self.is_moving { moves } else { rests };
        let lasts = self.setup.random.exponential(mean.as_secs_f64());
        self.until += Span::from_secs_f64(lasts).max(Span::from_nanos(1));
    }
}

impl Source for Input {
    fn next_capture(&self) -> Time {
        self.next
    }

    fn capture(&mut self, _wanted: &Wanted) -> Option<Frame> {
        let now = self.next;
        while self.until <= now {
            self.turn();
        }
        let beat = now + Span::from_secs_f64(1.0 / self.config.beat);
        self.next = if self.is_moving {
            beat
        } else {
            // When the hand moves again, the next packet goes out with the next beat.
            (now + self.config.idle).min(self.until.max(beat))
        };
        let size = self.config.packet.as_u64() as u32;
        Some(Frame { captured: now, encoded: now, size, is_key: true, layer: 0, height: 0 })
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Params, Purpose, Rate, StreamAddress, Words};

    use super::*;

    fn gaps(words: &str, count: usize) -> Vec<f64> {
        let mut source =
            Config::parse(&mut Words::new(words)).expect("well written").build(Setup {
                start: Time::ZERO,
                frames_per_second: 60.0,
                min_rate: Rate::ZERO,
                max_rate: Rate::UNLIMITED,
                random: StreamAddress { seed: 5, run: 0 }.stream(1, Purpose::Application),
            });
        let wanted = Wanted { rate: Rate::ZERO, key: false };
        let mut gap = || {
            let frame = source.capture(&wanted).expect("a packet");
            assert_eq!((frame.size, frame.encoded), (48, frame.captured));
            source.next_capture().since(frame.captured).as_secs_f64()
        };
        (0..count).map(|_| gap()).collect()
    }

    #[test]
    fn a_hand_that_never_rests_keeps_the_beat() {
        assert!(gaps("rests=0s", 10_000).iter().all(|gap| (gap - 0.008).abs() < 1e-9));
    }

    #[test]
    fn a_hand_that_rests_a_fifth_of_the_time_sends_that_much_less() {
        let gaps = gaps("", 1_000_000);
        let rate = gaps.len() as f64 / gaps.iter().sum::<f64>();
        // 4 s of 125 a second, then 1 s of at least 10 and a little more where a rest is cut short.
        assert!((100.0..105.0).contains(&rate), "{rate}");
        assert!(gaps.iter().all(|gap| (0.008 - 1e-9..=0.1).contains(gap)));
    }
}
