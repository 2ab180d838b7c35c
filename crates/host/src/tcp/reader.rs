//! A receiving application that reads at a rate, or not at all for a while. What it has not read stays
//! in the receive buffer and closes the window.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Rate, Span, SpecError, Time};

/// How often it reads.
const READS: Span = Span::from_millis(10);

/// What an application reads a second, in steps from the start of the run on.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    steps: Arc<[(Rate, Span)]>,
    /// Begins again after the last step; otherwise the last rate stays.
    wraps: bool,
}

impl Reading {
    /// Rates, zero for none, and how long each lasts.
    ///
    /// # Errors
    /// No steps, or one that takes no time.
    pub fn new(steps: Vec<(Rate, Span)>, wraps: bool) -> Result<Self, SpecError> {
        if steps.is_empty() || steps.iter().any(|(_, span)| span.is_zero()) {
            return Err(SpecError::new("a step takes no time").allow(["more than 0s"]));
        }
        Ok(Self { steps: steps.into(), wraps })
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("steps")?;
        for (rate, span) in self.steps.iter() {
            write!(f, " {rate} {span}")?;
        }
        f.write_str(if self.wraps { " end wrap" } else { " end hold" })
    }
}

/// What the application does with data that has arrived in order. A receiver is compiled once for each
/// kind, so that one whose application reads at once need not ask.
pub trait Reads {
    /// Nothing ever waits to be read, so the receiver calls none of the methods below.
    const AT_ONCE: bool;

    /// Data has come.
    fn on_data(&mut self, now: Time);

    /// When it reads; [`Time::NEVER`] while there is nothing to read.
    fn next_read(&self) -> Time;

    /// Reads some of the bytes up to `arrived`, and returns how many.
    fn read(&mut self, now: Time, arrived: u64) -> u64;

    /// How many of the bytes up to `arrived` it has not read.
    fn unread(&self, arrived: u64) -> u64;
}

/// Takes all data the moment it has arrived.
#[derive(Clone, Copy, Debug)]
pub struct AtOnce;

impl Reads for AtOnce {
    const AT_ONCE: bool = true;

    fn on_data(&mut self, _: Time) {}

    fn next_read(&self) -> Time {
        Time::NEVER
    }

    fn read(&mut self, _: Time, _: u64) -> u64 {
        0
    }

    fn unread(&self, _: u64) -> u64 {
        0
    }
}

/// Reads one connection's data as a [`Reading`] says.
#[derive(Clone, Debug)]
pub struct Reader {
    reading: Reading,
    step: usize,
    /// When the step ends; [`Time::NEVER`] for the last one if it stays.
    step_ends: Time,
    /// What it may read is counted up to here.
    counted: Time,
    /// What it may read beyond whole bytes, in bits times nanoseconds.
    rest: u128,
    /// Byte position up to which it has read.
    read: u64,
    /// When it reads next.
    at: Time,
}

/// Bits times nanoseconds in a byte at one bit a second.
const BYTE: u128 = 8_000_000_000;

impl Reader {
    pub(super) fn new(reading: Reading) -> Self {
        let mut new = Self {
            step: 0,
            step_ends: Time::ZERO,
            counted: Time::ZERO,
            rest: 0,
            read: 0,
            at: Time::NEVER,
            reading,
        };
        new.step_ends = new.end_of(0, Time::ZERO);
        new
    }

    /// When it reads next, if there is something to read at `now`.
    fn after(now: Time) -> Time {
        let reads = READS.as_nanos();
        Time::from_nanos((now.as_nanos() / reads + 1) * reads)
    }

    /// Bits times nanoseconds from where it was counted up to until `now`.
    fn count(&mut self, now: Time) -> u128 {
        let mut sum = 0;
        while self.counted < now {
            let end = self.step_ends.min(now);
            let rate = self.reading.steps[self.step].0.as_bps();
            sum += u128::from(rate) * u128::from(end.since(self.counted).as_nanos());
            self.counted = end;
            if end == self.step_ends {
                self.step = (self.step + 1) % self.reading.steps.len();
                self.step_ends = self.end_of(self.step, end);
            }
        }
        sum
    }

    fn end_of(&self, step: usize, begins: Time) -> Time {
        let stays = !self.reading.wraps && step + 1 == self.reading.steps.len();
        if stays { Time::NEVER } else { begins + self.reading.steps[step].1 }
    }
}

impl Reads for Reader {
    const AT_ONCE: bool = false;

    fn on_data(&mut self, now: Time) {
        if !self.at.is_never() {
            return;
        }
        self.at = Self::after(now);
        // Time without anything to read earns no credit.
        let last = Time::from_nanos(now.as_nanos() / READS.as_nanos() * READS.as_nanos());
        self.count(last);
        self.rest = 0;
    }

    fn next_read(&self) -> Time {
        self.at
    }

    fn read(&mut self, now: Time, arrived: u64) -> u64 {
        let may = self.count(now) + self.rest;
        let bytes = u64::try_from(may / BYTE).unwrap_or(u64::MAX).min(self.unread(arrived));
        self.read += bytes;
        self.rest = may % BYTE;
        self.at = if self.unread(arrived) > 0 { Self::after(now) } else { Time::NEVER };
        bytes
    }

    fn unread(&self, arrived: u64) -> u64 {
        arrived - self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn reader(wraps: bool) -> Reader {
        let steps = [(80_000, 20), (0, 30), (8_000, 10)];
        let steps = steps.map(|(bps, ms)| (Rate::from_bps(bps), Span::from_millis(ms)));
        Reader::new(Reading::new(steps.into(), wraps).expect("good steps"))
    }

    #[test]
    fn it_reads_what_its_rate_allows_step_by_step() {
        let mut reader = reader(false);
        // 80 kbit/s are 100 bytes in 10 ms, 8 kbit/s are 10.
        let read: Vec<u64> = (1..=8).map(|n| reader.read(at(10 * n), 1_000_000)).collect();
        assert_eq!(read, [100, 100, 0, 0, 0, 10, 10, 10]);
        let mut wraps = self::reader(true);
        let read: Vec<u64> = (1..=8).map(|n| wraps.read(at(10 * n), 1_000_000)).collect();
        assert_eq!(read, [100, 100, 0, 0, 0, 10, 100, 100]);
    }

    #[test]
    fn it_reads_no_more_for_having_waited() {
        let mut reader = reader(true);
        reader.on_data(at(3));
        assert_eq!(reader.read(at(10), 30), 30);
        assert_eq!(reader.next_read(), Time::NEVER);
        reader.on_data(at(75));
        assert_eq!(reader.next_read(), at(80));
        assert_eq!(reader.read(at(80), 1_000_000), 100);
    }
}
