//! The receiver: collects packets into groups and estimates the rate from the groups.

use sojourn_core::{Rate, Time};

use super::Config;
use super::aimd::Aimd;
use super::filter::{Filter, Usage};
use crate::control::{Arrival, Estimator};

/// Packets sent together. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: f64,
    last_sent: f64,
    arrived: f64,
    bytes: f64,
}

impl Group {
    /// The packet left with the last one, or came closer behind it than it left: then it waited behind it. However
    /// long such a burst is, it is one group.
    fn has_burst(&self, now: f64, sent: f64) -> bool {
        let (sent, arrived) = (sent - self.last_sent, now - self.arrived);
        let apart = libm::round(sent);
        apart == 0.0 || (arrived <= BURST_MS && (sent < 0.0 || arrived < apart))
    }
}

/// Packets of a burst come within this time of each other.
const BURST_MS: f64 = 5.0;

#[derive(Clone, Debug)]
pub(super) struct RemoteEstimator {
    group: f64,
    interval: f64,
    filter: Filter,
    aimd: Aimd,
    current: Option<Group>,
    before: Option<Group>,
    /// The newest time of sending in ticks, extended from the 24 bits that packets carry.
    sent: u64,
    last_low: Option<u32>,
    throughput: Throughput,
    updated: Option<f64>,
}

const TICK_MS: f64 = 1000.0 / 262_144.0;

impl RemoteEstimator {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            group: config.group.as_millis_f64(),
            interval: config.interval.as_millis_f64(),
            filter: Filter::new(config),
            aimd: Aimd::new(config),
            current: None,
            before: None,
            sent: 0,
            last_low: None,
            throughput: Throughput::default(),
            updated: None,
        }
    }

    fn whole(&mut self, low: u32) -> f64 {
        let last = self.last_low.replace(low).unwrap_or(low);
        let ahead = low.wrapping_sub(last) & 0xff_ffff;
        // In 24 bits, a small step back looks like a step ahead of almost 2^24.
        let ahead = if ahead < 1 << 23 { i64::from(ahead) } else { i64::from(ahead) - (1 << 24) };
        self.sent = self.sent.saturating_add_signed(ahead);
        self.sent as f64 * TICK_MS
    }

    fn on_packet(&mut self, now: f64, sent: f64, bytes: f64) {
        let Some(current) = &mut self.current else {
            self.current = Some(Group { first_sent: sent, last_sent: sent, arrived: now, bytes });
            return;
        };
        if sent < current.first_sent {
            return;
        }
        if sent - current.first_sent <= self.group || current.has_burst(now, sent) {
            current.last_sent = current.last_sent.max(sent);
            current.arrived = now;
            current.bytes += bytes;
            return;
        }
        let next = Group { first_sent: sent, last_sent: sent, arrived: now, bytes };
        let done = core::mem::replace(current, next);
        if let Some(before) = self.before.replace(done) {
            let (sent, arrived) =
                (done.last_sent - before.last_sent, done.arrived - before.arrived);
            self.filter.on_group(now, arrived, sent, done.bytes - before.bytes);
        }
    }
}

impl Estimator for RemoteEstimator {
    fn on_arrival(&mut self, arrival: &Arrival) -> Option<Rate> {
        // Its clock counts milliseconds.
        let now = (arrival.now.as_nanos() / 1_000_000) as f64;
        let sent = self.whole(arrival.abs_send_time);
        self.throughput.add(arrival.now, arrival.payload);
        self.on_packet(now, sent, f64::from(arrival.payload));
        let is_due = self.updated.is_none_or(|updated| now - updated > self.interval);
        let usage = self.filter.usage();
        if !is_due && usage != Usage::Over {
            return None;
        }
        let throughput = self.throughput.rate(arrival.now);
        let rate = self.aimd.update(now, usage, throughput)?;
        self.updated = Some(now);
        Some(Rate::from_bps(rate as u64))
    }
}

/// Bits that arrived in the last second, one sum for each millisecond.
#[derive(Clone, Debug, Default)]
struct Throughput {
    packets: alloc::collections::VecDeque<(u64, u32)>,
    bytes: u64,
    first: Option<u64>,
}

const WINDOW: u64 = 1000;

impl Throughput {
    fn add(&mut self, now: Time, bytes: u32) {
        let now = now.as_nanos() / 1_000_000;
        self.first.get_or_insert(now);
        self.packets.push_back((now, bytes));
        self.bytes += u64::from(bytes);
    }

    fn rate(&mut self, now: Time) -> Option<f64> {
        let now = now.as_nanos() / 1_000_000;
        while let Some((_, bytes)) = self.packets.pop_front_if(|(at, _)| *at + WINDOW <= now) {
            self.bytes -= u64::from(bytes);
        }
        let active = (now - self.first? + 1).min(WINDOW);
        (self.packets.len() > 1 && active > 1)
            .then(|| self.bytes as f64 * 8.0 * 1000.0 / active as f64)
    }
}
