//! Jitter and delay variation of a packet stream.

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

/// Interarrival jitter, RFC 3550 section 6.4.1: J += (|D| − J)/16 for every packet but the first,
/// D the difference of two packets' transit times in order of arrival. In nanoseconds; the
/// clocks' offset cancels. Packets of one video frame share a timestamp in RTP, so there J holds
/// the frame's serialisation time too; here every packet has its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    /// In nanoseconds: 64 bits hold what clocks that agree to centuries can differ by.
    last_transit: Option<i64>,
    /// `None` before the second packet.
    value: Option<f64>,
}

impl Jitter {
    pub fn on_packet(&mut self, sent: Time, arrived: Time) {
        let transit = arrived.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        if let Some(last) = self.last_transit.replace(transit) {
            let d = transit.abs_diff(last) as f64;
            let j = self.value.unwrap_or(0.0);
            self.value = Some(j + (d - j) / 16.0);
        }
    }

    /// J in nanoseconds; `None` before two packets arrived.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

/// J after all of these (sent, arrived), in order of arrival, in nanoseconds.
pub fn jitter(packets: &[(Time, Time)]) -> Option<f64> {
    let mut jitter = Jitter::default();
    packets.iter().for_each(|(sent, arrived)| jitter.on_packet(*sent, *arrived));
    jitter.value()
}

/// Inter-packet delay variation, RFC 3393 and RFC 5481 section 4.1: the one-way delay of a packet
/// minus that of the packet before it, in nanoseconds. Lost packets (`None`) have no delay, so
/// neither they nor their successors have a variation.
pub fn ipdv(delays: &[Option<Span>]) -> Vec<i64> {
    delays
        .windows(2)
        .filter_map(|pair| match pair {
            [Some(before), Some(this)] => Some(this.as_nanos() as i64 - before.as_nanos() as i64),
            _ => None,
        })
        .collect()
}

/// Packet delay variation, RFC 5481 section 4.2: every delay minus the smallest one.
pub fn pdv(delays: &[Span]) -> Vec<Span> {
    let least = delays.iter().min().copied().unwrap_or_default();
    delays.iter().map(|delay| *delay - least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn jitter_takes_a_sixteenth_of_each_difference() {
        // Transits 10, 26, 10 ms: |D| = 16, 16; J = 1, then 1 + 15/16.
        let packets = [(at(0), at(10)), (at(20), at(46)), (at(40), at(50))];
        assert_eq!(jitter(&packets[..1]), None);
        assert_eq!(jitter(&packets[..2]), Some(1e6));
        assert_eq!(jitter(&packets), Some(1.9375e6));
    }

    #[test]
    fn jitter_settles_at_a_constant_difference() {
        let packets: Vec<_> =
            (0..500).map(|n| (at(20 * n), at(20 * n + if n % 2 == 0 { 5 } else { 9 }))).collect();
        assert!((jitter(&packets).expect("packets") - 4e6).abs() < 1.0);
    }

    #[test]
    fn ipdv_skips_losses_and_keeps_the_sign() {
        let ms = |ms| Some(Span::from_millis(ms));
        assert_eq!(ipdv(&[ms(5), ms(8), None, ms(9), ms(7)]), [3_000_000, -2_000_000]);
    }

    #[test]
    fn pdv_counts_from_the_least_delay() {
        let delays = [7, 5, 9].map(Span::from_millis);
        assert_eq!(pdv(&delays), [2, 0, 4].map(Span::from_millis));
        assert_eq!(pdv(&[]), []);
    }
}
