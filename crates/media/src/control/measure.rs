//! What several controllers measure of reports.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use super::Report;

/// A packet's one-way delay in seconds. It may be negative, because the clocks of both ends may differ.
pub(super) fn one_way(report: &Report) -> Option<f64> {
    let arrived = report.arrived?.as_nanos() as i64;
    Some((arrived - report.packet.at.as_nanos() as i64) as f64 / 1e9)
}

/// Bytes within a sliding window of time.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    window: Span,
    packets: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl Recent {
    pub(super) fn new(window: Span) -> Self {
        Self { window, packets: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn add(&mut self, at: Time, bytes: u32) {
        self.packets.push_back((at, bytes));
        self.bytes += u64::from(bytes);
        let newest = at;
        while let Some((at, bytes)) = self.packets.front().copied() {
            if at + self.window >= newest {
                return;
            }
            self.packets.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }

    /// Bits a second; `None` until packets of half the window are known.
    pub(super) fn rate(&self) -> Option<f64> {
        let (first, last) = (self.packets.front()?, self.packets.back()?);
        let span = last.0.since(first.0);
        // The time begins with the first packet, so its bytes do not belong to it.
        let bytes = self.bytes - u64::from(first.1);
        (span * 2 >= self.window).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
    }
}

/// The least one-way delay of the last minutes (RFC 6817 section 4.3), in seconds.
#[derive(Clone, Debug)]
pub(super) struct BaseDelay {
    minutes: VecDeque<f64>,
    minute: u64,
    kept: usize,
}

impl BaseDelay {
    pub(super) fn new(kept: u32) -> Self {
        Self { minutes: VecDeque::new(), minute: 0, kept: kept as usize }
    }

    /// Takes a delay in; returns the part of it that is above the base.
    pub(super) fn above(&mut self, now: Time, delay: f64) -> f64 {
        let minute = now.as_nanos() / 60_000_000_000;
        if self.minutes.is_empty() || minute > self.minute {
            self.minutes.push_back(delay);
            self.minute = minute;
            while self.minutes.len() > self.kept {
                self.minutes.pop_front();
            }
        }
        if let Some(newest) = self.minutes.back_mut() {
            *newest = newest.min(delay);
        }
        delay - self.minutes.iter().copied().fold(f64::INFINITY, f64::min)
    }
}
