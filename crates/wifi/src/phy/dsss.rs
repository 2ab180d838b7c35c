//! Direct sequence spread spectrum, the first two rates of 802.11 (clause 15).

use sojourn_core::{Span, SpecError};

use super::{Format, GuardInterval, Mode, Modulation, Width, impossible};

/// The long preamble of 144 µs and the header of 48 µs, both at 1 Mbit/s (section 15.2.2).
const PREAMBLE: Span = Span::from_micros(192);
const SYMBOL: Span = Span::from_micros(1);

impl Mode {
    /// The clause 15 mode of `mbps`.
    ///
    /// # Errors
    /// Another rate than 1 or 2.
    pub fn dsss(mbps: u32) -> Result<Self, SpecError> {
        if !(1..=2).contains(&mbps) {
            return Err(impossible(format_args!("DSSS rate of {mbps} Mbit/s"), &["1", "2"]));
        }
        Ok(Self {
            format: Format::Dsss,
            mcs: mbps as u8 - 1,
            streams: 1,
            width: Width::Mhz20,
            guard: GuardInterval::Ns800,
            ru: None,
            modulation: Modulation::new(mbps, 1, 1),
            data_bits: mbps,
            other_bits: 0,
            preamble: PREAMBLE,
            symbol: SYMBOL,
            grid: SYMBOL,
        })
    }
}
