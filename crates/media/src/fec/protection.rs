//! How much parity a frame gets: what the losses of the last ten seconds and the round trip call for.
//!
//! The rules are libwebrtc's where both parity and repetitions are in use; its table of 6 450 numbers is a line here.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use super::generator::Amount;

/// What decides how much parity a frame gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProtectionConfig {
    /// The share of parity in all packets, for each unit of loss.
    pub(crate) per_loss: f64,
    /// The least share while anything is lost, and the largest.
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// With a shorter round trip only key frames are protected.
    pub(crate) rtt: Span,
    pub(crate) frames_per_second: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Protection {
    config: ProtectionConfig,
    /// Losses that were reported; those that a later one exceeds are forgotten.
    losses: VecDeque<(Time, f64)>,
    rtt: Span,
    /// Lines of the picture.
    height: u16,
}

/// The largest loss in this time counts.
const REMEMBERED: Span = Span::from_secs(10);
/// A key frame gets so many times the share of others.
const KEY: f64 = 2.0;
/// Parity over this many frames at most.
const MOST_FRAMES: f64 = 6.0;
/// With a longer round trip small frames are protected, too.
const SLOW: Span = Span::from_millis(200);
/// A mean frame of more bytes than this has two packets or more, by libwebrtc's estimate.
const TWO_PACKETS: f64 = 730.0;

impl Protection {
    pub(crate) fn new(config: ProtectionConfig) -> Self {
        Self { config, losses: VecDeque::new(), rtt: Span::ZERO, height: 0 }
    }

    /// A share of packets was reported lost, and the round trip is `rtt`.
    pub(crate) fn on_report(&mut self, now: Time, lost: f64, rtt: Span) {
        self.rtt = rtt;
        while self.losses.pop_back_if(|(_, before)| *before <= lost).is_some() {}
        self.losses.push_back((now, lost));
    }

    pub(crate) fn on_frame(&mut self, height: u16) {
        self.height = height;
    }

    /// How much parity a frame gets now, if frames have `bytes` in the mean.
    pub(crate) fn amount(&mut self, now: Time, is_key: bool, bytes: f64) -> Amount {
        while self.losses.len() > 1
            && self.losses.pop_front_if(|(at, _)| now.since(*at) > REMEMBERED).is_some()
        {}
        let ProtectionConfig { per_loss, least, most, rtt, frames_per_second } = self.config;
        let loss = self.losses.front().map_or(0.0, |(_, loss)| *loss);
        let too_small = match self.height {
            0..=288 => 400.0,
            289..=480 => 700.0,
            _ => 1000.0,
        };
        // Losses are reported in steps of 1/256.
        let share = match loss * 255.0 {
            steps if steps < 1.0 || (bytes < too_small && self.rtt < SLOW) => 0.0,
            _ => {
                let least = if bytes > TWO_PACKETS { least } else { 0.0 };
                let share = (per_loss * loss).max(least).min(most);
                match is_key {
                    true => (KEY * share).max(loss).min(most),
                    false if self.rtt < rtt => 0.0,
                    false => share,
                }
            }
        };
        let frames =
            (2.0 * frames_per_second * self.rtt.as_secs_f64() + 0.5).clamp(1.0, MOST_FRAMES);
        Amount { per_packet: share / (1.0 - share), frames: frames as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection() -> Protection {
        let mut protection = Protection::new(ProtectionConfig {
            per_loss: 4.0,
            least: 0.2,
            most: 0.5,
            rtt: Span::from_millis(20),
            frames_per_second: 30.0,
        });
        protection.on_frame(360);
        protection
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    /// The share of parity in all packets, in percent.
    fn share(protection: &mut Protection, now: Time, is_key: bool, bytes: f64) -> f64 {
        let per_packet = protection.amount(now, is_key, bytes).per_packet;
        libm::round(100.0 * per_packet / (1.0 + per_packet))
    }

    #[test]
    fn without_losses_nothing_is_protected() {
        let mut protection = protection();
        assert_eq!(share(&mut protection, at(0), true, 4000.0), 0.0);
        protection.on_report(at(0), 0.0, Span::from_millis(100));
        assert_eq!(share(&mut protection, at(1), false, 4000.0), 0.0);
    }

    /// Four times the loss, at least a fifth and at most half; for key frames twice as much.
    #[test]
    fn the_share_follows_the_largest_loss_of_ten_seconds() {
        let mut protection = protection();
        let rtt = Span::from_millis(100);
        protection.on_report(at(0), 0.1, rtt);
        protection.on_report(at(1), 0.01, rtt);
        assert_eq!(share(&mut protection, at(2), false, 4000.0), 40.0);
        assert_eq!(share(&mut protection, at(2), true, 4000.0), 50.0);
        assert_eq!(share(&mut protection, at(11), false, 4000.0), 20.0);
        assert_eq!(share(&mut protection, at(11), true, 4000.0), 40.0);
        // Frames of one packet have no least share.
        assert_eq!(share(&mut protection, at(11), false, 720.0), 4.0);
    }

    #[test]
    fn where_a_repetition_comes_soon_only_key_frames_are_protected() {
        let mut protection = protection();
        protection.on_report(at(0), 0.05, Span::from_millis(19));
        assert_eq!(share(&mut protection, at(0), false, 4000.0), 0.0);
        assert_eq!(share(&mut protection, at(0), true, 4000.0), 40.0);
    }

    #[test]
    fn small_frames_are_not_protected_unless_the_round_trip_is_long() {
        let mut protection = protection();
        protection.on_report(at(0), 0.05, Span::from_millis(100));
        assert_eq!(share(&mut protection, at(0), true, 699.0), 0.0);
        protection.on_report(at(0), 0.05, Span::from_millis(200));
        assert_eq!(share(&mut protection, at(0), false, 699.0), 20.0);
    }

    /// Twice the frames of a round trip, six at most.
    #[test]
    fn parity_covers_as_many_frames_as_two_round_trips_have() {
        for (ms, frames) in [(0, 1), (20, 1), (40, 2), (60, 4), (200, 6)] {
            let mut protection = protection();
            protection.on_report(at(0), 0.05, Span::from_millis(ms));
            assert_eq!(protection.amount(at(0), false, 4000.0).frames, frames, "{ms} ms");
        }
    }
}
