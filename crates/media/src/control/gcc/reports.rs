//! What losses in receiver reports allow, where no report on packets comes.
//!
//! libwebrtc's older estimate, which it still uses then: below 2 % of loss the rate rises, above 10 % it falls by half of
//! the loss, and between it stays.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use super::Config;
use crate::control::ReceiverReport;

#[derive(Clone, Debug)]
pub(super) struct ByReports {
    low: f64,
    high: f64,
    hold: Span,
    packets: u64,
    increase: f64,
    /// Of reports on too few packets: the packets, and the lost ones among them.
    expected: u64,
    lost: f64,
    rtt: Span,
    fell: Option<Time>,
    /// Rates of the last second that were lower than all later ones.
    lowest: VecDeque<(Time, f64)>,
}

/// The rate rises from the lowest one of this time.
const WINDOW: Span = Span::from_secs(1);
/// Added to each rise, so that low rates rise too.
const STEP: f64 = 1000.0;

impl ByReports {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            low: config.report_low,
            high: config.report_high,
            hold: config.report_hold,
            packets: config.report_packets.into(),
            increase: config.increase,
            expected: 0,
            lost: 0.0,
            rtt: Span::ZERO,
            fell: None,
            lowest: VecDeque::new(),
        }
    }

    /// The rate after `report`, if it was `rate` before.
    pub(super) fn update(&mut self, report: &ReceiverReport, rate: f64) -> f64 {
        let now = report.now;
        self.rtt = report.rtt.unwrap_or(self.rtt);
        self.expected += report.expected;
        self.lost += report.fraction_lost * report.expected as f64;
        if self.expected < self.packets {
            return rate;
        }
        let loss = self.lost / self.expected as f64;
        (self.expected, self.lost) = (0, 0.0);
        while self.lowest.pop_front_if(|(at, _)| *at + WINDOW < now).is_some() {}
        while self.lowest.pop_back_if(|(_, lowest)| *lowest >= rate).is_some() {}
        self.lowest.push_back((now, rate));
        if loss <= self.low {
            let lowest = self.lowest.front().map_or(rate, |(_, lowest)| *lowest);
            return (lowest * self.increase + STEP).max(rate);
        }
        let may_fall = self.fell.is_none_or(|fell| now.since(fell) >= self.hold + self.rtt);
        if loss > self.high && may_fall {
            self.fell = Some(now);
            return rate * (1.0 - loss / 2.0);
        }
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ms: u64, fraction_lost: f64, expected: u64) -> ReceiverReport {
        ReceiverReport {
            now: Time::from_nanos(ms * 1_000_000),
            fraction_lost,
            cumulative_lost: 0,
            expected,
            jitter: Span::ZERO,
            rtt: Some(Span::from_millis(100)),
        }
    }

    #[test]
    fn the_rate_rises_stays_or_falls_by_the_loss() {
        let mut by_reports = ByReports::new(&Config::default());
        assert_eq!(by_reports.update(&report(1000, 0.0, 100), 100e3), 109e3);
        assert_eq!(by_reports.update(&report(2100, 0.05, 100), 109e3), 109e3);
        assert_eq!(by_reports.update(&report(3200, 0.2, 100), 100e3), 90e3);
        // A round trip and 300 ms pass between two falls.
        assert_eq!(by_reports.update(&report(3500, 0.2, 100), 90e3), 90e3);
        assert_eq!(by_reports.update(&report(3600, 0.2, 100), 90e3), 81e3);
    }

    #[test]
    fn reports_on_few_packets_are_taken_together() {
        let mut by_reports = ByReports::new(&Config::default());
        assert_eq!(by_reports.update(&report(1000, 0.0, 19), 100e3), 100e3);
        assert_eq!(by_reports.update(&report(2100, 0.0, 1), 100e3), 109e3);
    }
}
