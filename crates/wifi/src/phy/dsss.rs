//! Direct sequence spread spectrum, the rates of 802.11 and 802.11b (clauses 15 and 16).

use sojourn_core::{Span, SpecError};

use super::{Format, GuardInterval, HeLtf, Mode, Modulation, Width, impossible};

/// The long preamble of 144 µs and the header of 48 µs, both at 1 Mbit/s (sections 15.2.2 and 16.2.2.2).
pub(super) const PREAMBLE: Span = Span::from_micros(192);
/// Frames last whole microseconds (section 16.3.4).
const MICROSECOND: Span = Span::from_micros(1);

/// As a study writes them, and half bits in a microsecond.
pub(super) const RATES: [(&str, u32); 4] = [("1", 2), ("2", 4), ("5.5", 11), ("11", 22)];

impl Mode {
    /// The mode of clause 15 or 16 with this rate in Mbit/s: `1`, `2`, `5.5` or `11`.
    ///
    /// # Errors
    /// Another rate.
    pub fn dsss(mbps: &str) -> Result<Self, SpecError> {
        let index = RATES.iter().position(|(rate, _)| *rate == mbps).ok_or_else(|| {
            let rates = RATES.map(|(rate, _)| rate);
            impossible(format_args!("DSSS rate of {mbps} Mbit/s"), &rates)
        })?;
        let half_bits = RATES[index].1;
        Ok(Self {
            format: Format::Dsss,
            mcs: index as u8,
            streams: 1,
            width: Width::Mhz20,
            guard: GuardInterval::Ns800,
            ltf: HeLtf::default(),
            ru: None,
            modulation: Modulation::new(half_bits.div_ceil(2).min(2), 1, 1),
            per_octet: 16,
            data_bits: half_bits,
            other_bits: 0,
            preamble: PREAMBLE,
            symbol: MICROSECOND,
            grid: MICROSECOND,
        })
    }
}
