//! From a place to a signal-to-noise ratio, and from that to lost frames.
//!
//! Sensitivities are those that the standard requires at 20 MHz for an error rate of 10 % of frames of
//! 4096 octets (tables 17-18, 19-23 and 27-51), with the noise figure of 10 dB and the margin of 5 dB
//! that they allow for: 4 dB for BPSK with rate 1/2, up to 34 dB for 1024-QAM with rate 5/6. Those of DSSS
//! stand beside its rates.

use alloc::format;

use sojourn_core::param::{number, time};
use sojourn_core::{Span, SpecError, Stream, Time};

use crate::phy::Mode;

sojourn_core::params! {
    /// A transmitter, the way its signal weakens with distance, and a receiver.
    pub struct SignalConfig: "signal", "signal strength by log distance, and what part of the frames it lets through" {
        pub power: f64 = "20", number(-30.0, 60.0), "transmit power and antenna gains, dBm";
        pub loss: f64 = "46.7", number(0.0, 120.0), "path loss at 1 m, dB; 46.7 is free space at 5.18 GHz";
        pub exponent: f64 = "3", number(1.0, 8.0), "path loss exponent beyond 1 m; 2 is free space, 3 to 4 indoors";
        pub noise_figure: f64 = "7", number(0.0, 30.0), "noise of the receiver above thermal noise, dB";
        pub slope: f64 = "1", number(0.1, 10.0), "signal that makes frame errors ten times rarer, dB";
    }
}

/// Where a station is at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub at: Span,
    /// From the access point.
    pub metres: f64,
}

/// From when until when a station is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    pub from: Span,
    pub to: Span,
}

sojourn_core::params! {
    /// A signal that is weaker at times, each for an exponentially distributed time.
    pub struct Fading: "fading", "a signal that is weaker at times" {
        pub depth: f64 = "10", number(0.0, 200.0), "how much weaker the signal is while it fades, dB";
        pub clear: Span = "1s", time(Span::from_micros(1), Span::from_secs(1_000_000)), "mean time between two fades";
        pub faded: Span = "100ms", time(Span::from_micros(1), Span::from_secs(1_000_000)), "mean length of a fade";
    }
}

/// Signal-to-noise ratio at a distance, in dB, over the width of `mode`, for each of its streams.
pub fn snr_at(config: &SignalConfig, metres: f64, mode: &Mode) -> f64 {
    // Thermal noise of 1 Hz at 290 K.
    const THERMAL_DBM: f64 = -174.0;
    let hertz = f64::from(mode.width().mhz()) * 1e6;
    let loss = config.loss + 10.0 * config.exponent * libm::log10(metres.max(1.0));
    let noise = THERMAL_DBM + 10.0 * libm::log10(hertz) + config.noise_figure;
    config.power - loss - noise - 10.0 * libm::log10(f64::from(mode.streams()))
}

/// Probability that an MPDU is lost. Errors are independent: the probability that it arrives falls
/// exponentially with its length.
pub fn error_rate(config: &SignalConfig, snr: f64, mode: &Mode, octets: u32) -> f64 {
    // −ln 0.9: one in ten of 4096 octets at the required ratio.
    const AT_SENSITIVITY: f64 = 0.105_360_515_657_826_3;
    let short = mode.required_snr() - snr;
    let exponent = AT_SENSITIVITY * f64::from(octets) / 4096.0
        * libm::pow(10.0, (short / config.slope).min(100.0));
    1.0 - libm::exp(-exponent)
}

/// Distance at a time: that of the first place before, of the last after, and in between in
/// proportion.
pub(super) fn metres_at(places: &[Place], now: Time) -> f64 {
    let now = now.since(Time::ZERO);
    let next = places.partition_point(|place| place.at <= now);
    match (next.checked_sub(1).map(|before| places[before]), places.get(next)) {
        (Some(before), Some(after)) => {
            let part = (now - before.at).as_secs_f64() / (after.at - before.at).as_secs_f64();
            before.metres + part * (after.metres - before.metres)
        }
        (Some(place), None) => place.metres,
        (None, place) => place.map_or(0.0, |place| place.metres),
    }
}

pub(super) fn check_places(places: &[Place]) -> Result<(), SpecError> {
    for place in places {
        if !(0.0..=1e6).contains(&place.metres) {
            return Err(SpecError::new(format!(
                "a station {} m away at {}",
                place.metres, place.at
            ))
            .allow(["0 to 1000000 m"]));
        }
    }
    if let Some(pair) = places.windows(2).find(|pair| pair[1].at <= pair[0].at) {
        return Err(SpecError::new(format!(
            "a place at {} after one at {}",
            pair[1].at, pair[0].at
        ))
        .allow(["places in the order of their times"]));
    }
    Ok(())
}

pub(super) fn check_presence(present: &[Presence]) -> Result<(), SpecError> {
    let mut end = None;
    for time in present {
        if time.to <= time.from || end.is_some_and(|end| time.from < end) {
            return Err(SpecError::new(format!(
                "a station is there from {} to {}",
                time.from, time.to
            ))
            .allow(["times that end after they begin, one after the other"]));
        }
        end = Some(time.to);
    }
    Ok(())
}

/// The two states of a fading signal.
#[derive(Clone, Debug)]
pub(super) struct Fade {
    config: Fading,
    is_faded: bool,
    until: Time,
    random: Stream,
}

impl Fade {
    pub(super) fn new(config: Fading, random: Stream) -> Self {
        let mut fade = Self { config, is_faded: true, until: Time::ZERO, random };
        fade.at(Time::ZERO);
        fade
    }

    /// What is taken from the signal at `now`, in dB; times do not go back.
    pub(super) fn at(&mut self, now: Time) -> f64 {
        while self.until <= now {
            self.is_faded = !self.is_faded;
            let mean = if self.is_faded { self.config.faded } else { self.config.clear };
            let length = self.random.exponential(mean.as_secs_f64());
            self.until += Span::from_secs_f64(length).max(Span::from_nanos(1));
        }
        if self.is_faded { self.config.depth } else { 0.0 }
    }
}
