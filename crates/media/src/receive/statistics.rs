//! What a receiver reports of a stream (RFC 3550 section 6.4.1 and appendix A.3, A.8).

use sojourn_core::{Span, Time};

use crate::rtcp::{Block, ntp_middle};
use crate::rtp::VIDEO_CLOCK;

#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics {
    /// One more than the highest sequence number; zero before the first packet.
    expected: u32,
    received: u64,
    expected_before: u64,
    received_before: u64,
    /// In ticks of 90 kHz.
    jitter: f64,
    last: Option<(Time, Time)>,
    report: Option<(u32, Time)>,
}

impl Statistics {
    pub(crate) fn on_packet(&mut self, now: Time, sequence: u32, captured: Time) {
        self.received += 1;
        self.expected = self.expected.max(sequence + 1);
        if let Some((last_captured, last_now)) = self.last.replace((captured, now)) {
            // 63 bits hold three centuries, and convert faster than 64.
            let nanos = |at: Time| at.as_nanos() as i64 as f64;
            let ticks =
                |from: Time, to: Time| (nanos(to) - nanos(from)) / 1e9 * f64::from(VIDEO_CLOCK);
            let d = ticks(last_now, now) - ticks(last_captured, captured);
            self.jitter += (libm::fabs(d) - self.jitter) / 16.0;
        }
    }

    /// When the newest packet's content was captured, and when it came.
    pub(crate) fn newest(&self) -> Option<(Time, Time)> {
        self.last
    }

    /// A sender report that says `sent`.
    pub(crate) fn on_sender_report(&mut self, now: Time, sent: u32) {
        self.report = Some((sent, now));
    }

    pub(crate) fn block(&mut self, now: Time) -> Option<Block> {
        let highest_sequence = self.expected.checked_sub(1)?;
        let expected = u64::from(self.expected);
        let lost = expected as i64 - self.received as i64;
        let new = expected - self.expected_before;
        let arrived = self.received - self.received_before;
        (self.expected_before, self.received_before) = (expected, self.received);
        let missing = new.saturating_sub(arrived);
        let fraction = (missing << 8).checked_div(new).unwrap_or(0).min(255);
        let since = |at: Time| ntp_middle(now).wrapping_sub(ntp_middle(at));
        Some(Block {
            fraction_lost: fraction as u8,
            cumulative_lost: lost as i32,
            highest_sequence,
            jitter: self.jitter as u32,
            last_report: self.report.map_or(0, |(sent, _)| sent),
            since_last_report: self.report.map_or(0, |(_, at)| since(at)),
        })
    }
}

/// A jitter in ticks as a time.
pub(crate) fn jitter_of(ticks: u32) -> Span {
    Span::from_secs_f64(f64::from(ticks) / f64::from(VIDEO_CLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_lost_is_64_of_256_and_the_next_report_begins_anew() {
        let mut statistics = Statistics::default();
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        for n in (0..8).filter(|n| n % 4 != 1) {
            statistics.on_packet(ms(u64::from(n)), n, Time::ZERO);
        }
        let block = statistics.block(ms(10)).expect("packets came");
        assert_eq!((block.fraction_lost, block.cumulative_lost), (64, 2));
        statistics.on_packet(ms(11), 8, Time::ZERO);
        let block = statistics.block(ms(20)).expect("packets came");
        assert_eq!((block.fraction_lost, block.cumulative_lost), (0, 2));
    }
}
