//! The modes of control frames (section 10.6.6).

use crate::phy::Mode;

/// The mode of Ack, BlockAck, CTS and RTS for data in `mode`: the highest rate of the basic set,
/// the mandatory rates 6, 12 and 24 Mbit/s, that is not above the non-HT reference rate of the data
/// (section 10.6.6.5.2).
///
/// What answers DSSS is sent as it.
pub fn control_mode(mode: &Mode) -> Mode {
    let Some(modulation) = mode.modulation() else { return *mode };
    let reference = modulation.reference_rate();
    let mbps = [24, 12].into_iter().find(|mbps| *mbps <= reference).unwrap_or(6);
    Mode::non_ht(mbps).expect("the mandatory rates are in the table")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{GuardInterval, Width};

    #[test]
    fn responses_are_at_the_mandatory_rate_below_the_reference_rate() {
        let mbps = |mode: Mode| control_mode(&mode).rate().as_bps() / 1_000_000;
        let ht = |mcs| Mode::ht(mcs, Width::Mhz20, GuardInterval::Ns800).unwrap();
        assert_eq!([0, 1, 2, 3, 7, 8, 15].map(|mcs| mbps(ht(mcs))), [6, 12, 12, 24, 24, 6, 24]);
        let ofdm = [6, 9, 12, 18, 24, 54].map(|rate| mbps(Mode::non_ht(rate).unwrap()));
        assert_eq!(ofdm, [6, 6, 12, 12, 24, 24]);
    }
}
