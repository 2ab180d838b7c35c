use alloc::sync::Arc;

use sojourn_core::{ETHERNET_HEADER, Queued, Rate, Time};

use super::Departure;
use crate::trace::Schedule;

/// Mahimahi's link: at given milliseconds a fixed number of bytes may leave, all at once. Small
/// packets share an opportunity, a packet may need several, and what is not used is lost.
#[derive(Clone, Debug)]
pub struct Opportunities {
    schedule: Arc<Schedule>,
    size: OpportunitySize,
    /// When the schedule's present repetition began, in milliseconds.
    lap: u64,
    /// The first opportunity that was neither used nor lost.
    next: usize,
    /// The opportunity used last: when it was, and how many bytes it still carries.
    at: u64,
    left: u32,
}

/// How much one opportunity carries, and which bytes of packets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpportunitySize {
    /// 1500 bytes, counting IP packets.
    Ip1500,
    /// 1504 bytes, counting IP packets with the 4 bytes that a TUN device puts before each, as
    /// `mm-link` does.
    #[default]
    Tun1504,
}

impl OpportunitySize {
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Ip1500 => 1500,
            Self::Tun1504 => 1504,
        }
    }

    #[inline]
    fn measure(self, packet: &impl Queued) -> u32 {
        match self {
            Self::Ip1500 => packet.ip_len(),
            Self::Tun1504 => packet.ip_len() + 4 * packet.segments(),
        }
    }
}

const MILLI: u64 = 1_000_000;

/// The time over which the capacity for plots is averaged.
const CAPACITY_WINDOW_MS: u64 = 100;

impl Opportunities {
    pub fn new(schedule: Arc<Schedule>, size: OpportunitySize) -> Self {
        Self { schedule, size, lap: 0, next: 0, at: 0, left: 0 }
    }

    #[inline]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let mut need = self.size.measure(packet);
        if now.as_nanos() > self.at {
            self.left = 0;
        }
        while need > self.left || self.left == 0 {
            need -= self.left;
            self.at = self.upcoming(now.as_nanos());
            self.left = self.size.bytes();
            self.next += 1;
        }
        self.left -= need;
        let out = Time::from_nanos(self.at);
        Departure { out, ready: self.ready_at(out) }
    }

    #[inline]
    pub fn ready_at(&mut self, now: Time) -> Time {
        if self.left > 0 && now.as_nanos() <= self.at {
            return Time::from_nanos(self.at);
        }
        Time::from_nanos(self.upcoming(now.as_nanos()))
    }

    /// The capacity of the 100 ms that follow `now`, on average.
    pub fn capacity(&self, now: Time) -> Rate {
        let from = now.as_nanos() / MILLI;
        let count = self.count_until(from + CAPACITY_WINDOW_MS) - self.count_until(from);
        Rate::from_bps(count * u64::from(self.size.bytes()) * 8 * 1000 / CAPACITY_WINDOW_MS)
    }

    /// Bytes of all opportunities up to and including `now`.
    pub fn capacity_until(&self, now: Time) -> f64 {
        self.count_until(now.as_nanos() / MILLI) as f64 * f64::from(self.size.bytes())
    }

    /// Bytes of the packet being sent that opportunities after `now` carry.
    pub(super) fn bytes_to_come(&self, now: Time) -> u64 {
        let (len, period) = (self.schedule.millis().len() as u64, self.schedule.period_millis());
        let used = self.lap / period * len + self.next as u64;
        let over = self.count_until(now.as_nanos() / MILLI);
        (used.saturating_sub(over) * u64::from(self.size.bytes()))
            .saturating_sub(u64::from(self.left))
    }

    /// Bytes that count for packets of `wire_bytes`, `segments` in all.
    pub(super) fn bytes_taken(&self, wire_bytes: u64, segments: u64) -> u64 {
        let per_segment = match self.size {
            OpportunitySize::Ip1500 => u64::from(ETHERNET_HEADER),
            OpportunitySize::Tun1504 => u64::from(ETHERNET_HEADER) - 4,
        };
        wire_bytes - per_segment * segments
    }

    /// When the first unused opportunity at or after `now` is.
    #[inline]
    fn upcoming(&mut self, now: u64) -> u64 {
        if let Some(milli) = self.schedule.millis().get(self.next) {
            let at = (self.lap + u64::from(*milli)) * MILLI;
            if at >= now {
                return at;
            }
        }
        self.seek(now)
    }

    fn seek(&mut self, now: u64) -> u64 {
        let millis = self.schedule.millis();
        let period = self.schedule.period_millis();
        if self.next == millis.len() {
            self.lap += period;
            self.next = 0;
        }
        let offset = now.div_ceil(MILLI).saturating_sub(self.lap);
        // Repetitions in which nothing was sent are skipped at once. The last opportunity of a
        // repetition is at its very end.
        if offset > period {
            self.lap += (offset - 1) / period * period;
            self.next = 0;
        }
        let offset = now.div_ceil(MILLI).saturating_sub(self.lap);
        self.next += millis[self.next..].partition_point(|milli| u64::from(*milli) < offset);
        // `offset` is at most the period, which is the last entry.
        (self.lap + u64::from(millis[self.next])) * MILLI
    }

    /// Opportunities from the start of the run up to and including `milli`.
    fn count_until(&self, milli: u64) -> u64 {
        let (millis, period) = (self.schedule.millis(), self.schedule.period_millis());
        let (laps, offset) = (milli / period, milli % period);
        let within = millis.partition_point(|at| u64::from(*at) <= offset);
        laps * millis.len() as u64 + within as u64
    }
}
