//! What a receiver reports of a stream (RFC 3550 section 6.4.1 and appendix A.3, A.8).

use sojourn_core::{RtpStream, Span, Time};

use crate::rtcp::{Block, ntp_middle};
use crate::rtp::VIDEO_CLOCK;

#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    /// The stream's synchronisation source, and ticks of its clock in a second.
    source: u32,
    clock: f64,
    /// One more than the highest sequence number; zero before the first packet.
    expected: u32,
    received: u64,
    expected_before: u64,
    received_before: u64,
    /// In ticks of the clock.
    jitter: f64,
    last: Option<(Time, Time)>,
    report: Option<(u32, Time)>,
}

impl Statistics {
    pub(crate) fn new(stream: RtpStream, clock: u32) -> Self {
        Self {
            source: stream.source(),
            clock: clock.into(),
            expected: 0,
            received: 0,
            expected_before: 0,
            received_before: 0,
            jitter: 0.0,
            last: None,
            report: None,
        }
    }

    pub(crate) fn on_packet(&mut self, now: Time, sequence: u32, captured: Time) {
        self.received += 1;
        self.expected = self.expected.max(sequence + 1);
        if let Some((last_captured, last_now)) = self.last.replace((captured, now)) {
            // 63 bits hold three centuries, and convert faster than 64.
            let nanos = |at: Time| at.as_nanos() as i64 as f64;
            let ticks = |from: Time, to: Time| (nanos(to) - nanos(from)) / 1e9 * self.clock;
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
            source: self.source,
            fraction_lost: fraction as u8,
            cumulative_lost: lost as i32,
            highest_sequence,
            jitter: self.jitter as u32,
            last_report: self.report.map_or(0, |(sent, _)| sent),
            since_last_report: self.report.map_or(0, |(_, at)| since(at)),
        })
    }
}

/// A jitter of video in ticks as a time.
pub(crate) fn jitter_of(ticks: u32) -> Span {
    Span::from_secs_f64(f64::from(ticks) / f64::from(VIDEO_CLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_lost_is_64_of_256_and_the_next_report_begins_anew() {
        let mut statistics = Statistics::new(RtpStream::Video, VIDEO_CLOCK);
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
    /// RFC 3550 section 6.4.1: jitter is in units of the stream's timestamps. Every second packet is 16 ms late, so the mean of
    /// differences comes near 16 ms.
    #[test]
    fn jitter_is_in_ticks_of_the_streams_own_clock() {
        for (stream, clock, source) in
            [(RtpStream::Video, 90_000, 1), (RtpStream::Audio, 48_000, 4)]
        {
            let mut statistics = Statistics::new(stream, clock);
            for n in 0..400_u32 {
                let captured = Time::from_nanos(u64::from(n) * 20_000_000);
                let late = Span::from_millis(16 * u64::from(n % 2));
                statistics.on_packet(captured + late, n, captured);
            }
            let block = statistics.block(Time::from_nanos(9_000_000_000)).expect("packets came");
            assert!(block.jitter.abs_diff(clock * 16 / 1000) <= 1, "{}", block.jitter);
            assert_eq!(block.source, source);
        }
    }
}
