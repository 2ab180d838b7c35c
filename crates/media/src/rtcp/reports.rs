//! Sender and receiver reports (RFC 3550 section 6.4).

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use super::{RECEIVER, RECEIVER_REPORT, SENDER_REPORT, begin, finish, put_u32, rtt_of, u32_at};

/// A sender report without report blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport {
    /// The synchronisation source of the stream that it is of.
    pub source: u32,
    /// When it was sent, in 1/65536 s: the middle of an NTP timestamp.
    pub sent: u32,
    /// The same moment as an RTP timestamp of the stream.
    pub timestamp: u32,
    pub packets: u32,
    pub octets: u32,
}

impl SenderReport {
    pub fn write(&self) -> Vec<u8> {
        let mut message = begin(0, SENDER_REPORT);
        put_u32(&mut message, self.source);
        put_u32(&mut message, self.sent >> 16);
        put_u32(&mut message, self.sent << 16);
        put_u32(&mut message, self.timestamp);
        put_u32(&mut message, self.packets);
        put_u32(&mut message, self.octets);
        finish(message)
    }

    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let sent = u32_at(body, 4)? << 16 | u32_at(body, 8)? >> 16;
        Some(Self {
            source: u32_at(body, 0)?,
            sent,
            timestamp: u32_at(body, 12)?,
            packets: u32_at(body, 16)?,
            octets: u32_at(body, 20)?,
        })
    }
}

/// The middle 32 bits of an NTP timestamp: units of 1/65536 s.
pub fn ntp_middle(now: Time) -> u32 {
    ((u128::from(now.as_nanos()) << 16) / 1_000_000_000) as u32
}

/// What a receiver reports of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The stream's synchronisation source.
    pub source: u32,
    /// In 1/256.
    pub fraction_lost: u8,
    /// 24 bits, signed.
    pub cumulative_lost: i32,
    pub highest_sequence: u32,
    /// In ticks of the stream's clock.
    pub jitter: u32,
    /// The time in the newest sender report, and how long ago that came, in 1/65536 s; both zero
    /// before the first one.
    pub last_report: u32,
    pub since_last_report: u32,
}

impl Block {
    /// The round-trip time at the arrival of the report; `None` before the first sender report.
    pub fn rtt(&self, now: Time) -> Option<Span> {
        if self.last_report == 0 {
            return None;
        }
        Some(rtt_of(now, self.last_report, self.since_last_report))
    }
}

/// A receiver report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverReport {
    pub blocks: Vec<Block>,
}

impl ReceiverReport {
    pub fn write(&self) -> Vec<u8> {
        let mut message = begin(self.blocks.len() as u8, RECEIVER_REPORT);
        put_u32(&mut message, RECEIVER);
        for block in &self.blocks {
            put_u32(&mut message, block.source);
            let lost = block.cumulative_lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
            put_u32(&mut message, u32::from(block.fraction_lost) << 24 | lost);
            put_u32(&mut message, block.highest_sequence);
            put_u32(&mut message, block.jitter);
            put_u32(&mut message, block.last_report);
            put_u32(&mut message, block.since_last_report);
        }
        finish(message)
    }

    pub(super) fn read(body: &[u8], count: u8) -> Option<Self> {
        let block = |at: usize| {
            let lost = u32_at(body, at + 4)?;
            Some(Block {
                source: u32_at(body, at)?,
                fraction_lost: (lost >> 24) as u8,
                cumulative_lost: (lost << 8) as i32 >> 8,
                highest_sequence: u32_at(body, at + 8)?,
                jitter: u32_at(body, at + 12)?,
                last_report: u32_at(body, at + 16)?,
                since_last_report: u32_at(body, at + 20)?,
            })
        };
        let blocks: Option<_> = (0..usize::from(count)).map(|n| block(4 + 24 * n)).collect();
        Some(Self { blocks: blocks? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_as_long_as_the_rfc_draws_them_and_read_as_written() {
        let now = Time::from_nanos(1_234_567_890);
        let sent = ntp_middle(now);
        let sender = SenderReport { source: 4, sent, timestamp: 7, packets: 9, octets: 1000 };
        let bytes = sender.write();
        assert_eq!(bytes.len(), 28);
        assert_eq!(SenderReport::read(&bytes[4..]), Some(sender));
        let block = Block {
            source: 4,
            fraction_lost: 25,
            cumulative_lost: -3,
            highest_sequence: 70_000,
            jitter: 90,
            last_report: 1,
            since_last_report: 2,
        };
        let report = ReceiverReport { blocks: alloc::vec![block] };
        let bytes = report.write();
        assert_eq!(bytes.len(), 32);
        assert_eq!(ReceiverReport::read(&bytes[4..], 1), Some(report));
    }

    /// The example of RFC 3550 section 6.4.1: the report came back at b710:8000, LSR is b705:2000 and
    /// DLSR 0005:4000, so 6.125 s have passed.
    #[test]
    fn the_round_trip_is_what_the_rfcs_example_computes() {
        let block =
            Block { last_report: 0xb705_2000, since_last_report: 0x0005_4000, ..Block::default() };
        let now = Time::from_nanos(0xb710_8000_u64 * 1_000_000_000 / 65_536 + 1);
        let rtt = block.rtt(now).expect("a sender report came");
        assert!((rtt.as_secs_f64() - 6.125).abs() < 1e-4, "{rtt}");
        assert_eq!(Block::default().rtt(now), None);
    }
}
