//! A-MPDU and A-MSDU (sections 10.12 and 10.11): how much fits into one PPDU.

use sojourn_core::{Span, Time};

use super::frames::{self, FCS, LLC_SNAP};
use crate::phy::{Format, Mode, PPDU_MAX_TIME, Progress};

/// What bounds an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of an A-MPDU; zero for no aggregation.
    pub ampdu_octets: u32,
    /// Frames of the block ack window, up to 64 in HT and 256 in HE.
    pub window: u16,
    /// Frames of one A-MPDU.
    pub mpdus: u16,
    /// Octets of an A-MSDU; zero for none.
    pub amsdu_octets: u32,
    pub ppdu_time: Span,
}

impl Limits {
    /// The largest that HT allows: 65 535 octets and a window of 64 frames.
    pub const HT: Self = Self {
        ampdu_octets: 65_535,
        window: 64,
        mpdus: 64,
        amsdu_octets: 0,
        ppdu_time: PPDU_MAX_TIME,
    };
    /// The same of HE.
    pub const HE: Self = Self { ampdu_octets: 6_500_631, window: 256, mpdus: 256, ..Self::HT };
    /// One MSDU at a time, each acknowledged.
    pub const NONE: Self = Self { ampdu_octets: 0, window: 1, mpdus: 1, ..Self::HT };

    pub fn is_aggregating(&self) -> bool {
        self.ampdu_octets > 0
    }

    /// Octets of the longest A-MSDU that all stations of these modes may send (section 9.2.4.7, table 9-25).
    pub fn longest_amsdu(&self, modes: impl Iterator<Item = Mode>) -> u32 {
        let formats = modes.map(|mode| mode.format()).filter(|format| *format > Format::NonHt);
        formats.map(|format| format.longest_amsdu(self.is_aggregating())).min().unwrap_or(0)
    }

    /// How many frames may have a sequence number without being acknowledged.
    pub(crate) fn window(&self) -> u32 {
        if self.is_aggregating() { u32::from(self.window) } else { 1 }
    }
}

/// Octets of the MSDU of an IP packet.
#[inline]
pub(crate) fn msdu_octets(ip_octets: u32) -> u32 {
    ip_octets + LLC_SNAP
}

/// Octets of the MPDU around a body.
#[inline]
pub(crate) fn mpdu_octets(body: u32, is_qos: bool) -> u32 {
    body + FCS + if is_qos { frames::QOS_DATA_HEADER } else { frames::DATA_HEADER }
}

/// Octets of an MPDU that are around its only packet.
#[inline]
pub(crate) fn around_packet(is_qos: bool) -> u32 {
    mpdu_octets(msdu_octets(0), is_qos)
}

/// A PSDU that grows by MPDUs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Psdu {
    pub(crate) mpdus: u32,
    /// With every subframe padded.
    padded: u32,
    last: u32,
}

impl Psdu {
    /// Octets if another MPDU joins.
    #[inline]
    pub(crate) fn octets_with(&self, mpdu: u32) -> u32 {
        self.padded + frames::MPDU_DELIMITER + mpdu
    }

    #[inline]
    pub(crate) fn add(&mut self, mpdu: u32) {
        self.mpdus += 1;
        self.padded += frames::subframe(mpdu);
        self.last = mpdu;
    }

    /// A control frame joins it, which is none of its data frames.
    pub(crate) fn add_control(&mut self, octets: u32) {
        self.padded += frames::subframe(octets);
        self.last = octets;
    }

    /// The last MPDU becomes `mpdu` octets long.
    pub(crate) fn replace_last(&mut self, mpdu: u32) {
        self.padded -= frames::subframe(self.last);
        self.padded += frames::subframe(mpdu);
        self.last = mpdu;
    }

    /// Octets if the last MPDU were `mpdu` octets long.
    pub(crate) fn octets_with_last(&self, mpdu: u32) -> u32 {
        self.padded - frames::subframe(self.last) + frames::MPDU_DELIMITER + mpdu
    }

    /// Octets on the air: an MPDU alone has a delimiter only in HE, whose PSDUs are A-MPDUs always.
    #[inline]
    pub(crate) fn octets(&self, mode: &Mode) -> u32 {
        match self.mpdus {
            1 if is_bare(mode) => self.last,
            _ => self.padded - frames::subframe(self.last) + frames::MPDU_DELIMITER + self.last,
        }
    }
}

/// A PSDU that is decoded MPDU by MPDU, while it is on the air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoding {
    progress: Progress,
    /// With every subframe padded.
    padded: u32,
    /// Of the next MPDU: the first has none where an MPDU alone is sent without.
    delimiter: u32,
}

impl Decoding {
    /// Of a PPDU that begins at `start`.
    pub(crate) fn new(mode: &Mode, start: Time) -> Self {
        let delimiter = if is_bare(mode) { 0 } else { frames::MPDU_DELIMITER };
        Self { progress: mode.progress(start), padded: 0, delimiter }
    }

    /// When the next MPDU has been received: when the PPDU would end behind it.
    #[inline]
    pub(crate) fn next(&mut self, mpdu: u32) -> Time {
        let octets = self.padded + self.delimiter + mpdu;
        self.padded += frames::subframe(mpdu);
        self.delimiter = frames::MPDU_DELIMITER;
        self.progress.end(octets)
    }
}

/// Whether an MPDU alone is sent without a delimiter.
#[inline]
fn is_bare(mode: &Mode) -> bool {
    matches!(mode.format(), Format::Dsss | Format::NonHt | Format::HtMixed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{GuardInterval, HeLtf, Width};

    #[test]
    fn an_aggregate_of_full_packets_has_its_measured_length() {
        let mpdu = mpdu_octets(msdu_octets(1500), true);
        assert_eq!(mpdu, 1538);
        let mut psdu = Psdu::default();
        let ht = Mode::ht(15, Width::Mhz20, GuardInterval::Ns800).unwrap();
        let mut decoding = Decoding::new(&ht, Time::ZERO);
        for _ in 0..42 {
            psdu.add(mpdu);
            assert_eq!(decoding.next(mpdu), Time::ZERO + ht.txtime(psdu.octets(&ht)));
        }
        assert_eq!(psdu.octets(&ht), 64_846);
        assert_eq!(psdu.octets_with(mpdu), 66_390);
    }

    #[test]
    fn a_single_frame_has_a_delimiter_in_he_only() {
        let mut psdu = Psdu::default();
        psdu.add(366);
        let ht = Mode::ht(15, Width::Mhz20, GuardInterval::Ns800).unwrap();
        let he = Mode::he_su(5, 1, Width::Mhz20, GuardInterval::Ns800, HeLtf::EightMicros).unwrap();
        assert_eq!((psdu.octets(&ht), psdu.octets(&he)), (366, 370));
    }

    #[test]
    fn two_packets_in_an_a_msdu_have_its_measured_length() {
        let body = frames::msdu_subframe(1508) + frames::MSDU_SUBFRAME_HEADER + 1508;
        let mut psdu = Psdu::default();
        for _ in 0..21 {
            psdu.add(mpdu_octets(body, true));
        }
        let ht = Mode::ht(15, Width::Mhz20, GuardInterval::Ns800).unwrap();
        assert_eq!(psdu.octets(&ht), 64_680);
    }
}
