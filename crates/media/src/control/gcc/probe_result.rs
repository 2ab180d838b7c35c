//! Computes the link's rate from the arrivals of a cluster of probe packets.

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use crate::control::{Probe, Sent};

#[derive(Clone, Debug)]
struct Cluster {
    probe: Probe,
    packets: u32,
    bytes: u64,
    first_sent: Time,
    last_sent: Time,
    last_sent_bytes: u64,
    first_arrived: Time,
    first_arrived_bytes: u64,
    last_arrived: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ProbeResults {
    clusters: Vec<Cluster>,
}

/// The share of a cluster's packets and bytes that must have arrived.
const LEAST_PART: f64 = 0.8;
const LONGEST: Span = Span::from_secs(1);
/// A result is discarded if packets arrive this many times faster than they were sent: the
/// receiver's times are then of no use.
const MOST_FASTER: f64 = 2.0;
/// If the arriving rate is below this share of the sending rate, the link is full, and the result is
/// `BELOW_FULL` of the arriving rate.
const FULL: f64 = 0.9;
const BELOW_FULL: f64 = 0.95;

impl ProbeResults {
    pub(super) fn on_probe(&mut self, probe: Probe) {
        self.clusters.push(Cluster {
            probe,
            packets: 0,
            bytes: 0,
            first_sent: Time::NEVER,
            last_sent: Time::ZERO,
            last_sent_bytes: 0,
            first_arrived: Time::NEVER,
            first_arrived_bytes: 0,
            last_arrived: Time::ZERO,
        });
    }

    /// A packet of cluster `id` arrived. `Some` is the link's rate in bit/s.
    pub(super) fn on_packet(&mut self, id: u32, packet: &Sent, arrived: Time) -> Option<f64> {
        let is_old =
            |cluster: &Cluster| cluster.packets > 0 && cluster.last_arrived + LONGEST < arrived;
        self.clusters.retain(|cluster| !is_old(cluster));
        let cluster = self.clusters.iter_mut().find(|cluster| cluster.probe.id == id)?;
        let (sent, bytes) = (packet.at, u64::from(packet.size));
        cluster.packets += 1;
        cluster.bytes += bytes;
        cluster.first_sent = cluster.first_sent.min(sent);
        if sent >= cluster.last_sent {
            (cluster.last_sent, cluster.last_sent_bytes) = (sent, bytes);
        }
        if arrived < cluster.first_arrived {
            (cluster.first_arrived, cluster.first_arrived_bytes) = (arrived, bytes);
        }
        cluster.last_arrived = cluster.last_arrived.max(arrived);
        cluster.rate()
    }
}

impl Cluster {
    fn rate(&self) -> Option<f64> {
        let has_part = |have: f64, all: f64| have >= LEAST_PART * all;
        if !has_part(f64::from(self.packets), f64::from(self.probe.min_packets))
            || !has_part(self.bytes as f64, self.probe.min_bytes as f64)
        {
            return None;
        }
        let rate = |bytes: u64, from: Time, to: Time| {
            let lasted = to.since(from);
            let is_good = !lasted.is_zero() && lasted <= LONGEST;
            is_good.then(|| bytes as f64 * 8.0 / lasted.as_secs_f64())
        };
        let sent = rate(self.bytes - self.last_sent_bytes, self.first_sent, self.last_sent)?;
        let arrived =
            rate(self.bytes - self.first_arrived_bytes, self.first_arrived, self.last_arrived)?;
        if arrived > MOST_FASTER * sent {
            return None;
        }
        Some(if arrived < FULL * sent { BELOW_FULL * arrived } else { sent.min(arrived) })
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::Rate;

    use super::*;

    /// Packets of 1000 bytes, sent and arriving so many milliseconds apart; the last result.
    fn result(sent: u64, arrived: u64, packets: u64) -> Option<f64> {
        let mut results = ProbeResults::default();
        results.on_probe(Probe {
            id: 7,
            rate: Rate::from_bps(800_000),
            min_packets: 5,
            min_bytes: 5000,
            duration: Span::from_millis(50),
        });
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut last = None;
        for n in 0..packets {
            let packet = Sent { number: n, at: ms(n * sent), size: 1000, ..Sent::default() };
            let at = ms(100 + n * arrived);
            last = results.on_packet(7, &packet, at);
        }
        last
    }

    /// libwebrtc's own cases: sent and received at 800 kbit/s; received slower; too few; too fast.
    #[test]
    fn a_result_is_what_was_sent_unless_less_arrives() {
        assert_eq!(result(10, 10, 5), Some(800e3));
        assert_eq!(result(10, 9, 5), Some(800e3));
        assert_eq!(result(10, 50, 5), Some(0.95 * 160e3));
        assert_eq!(result(10, 10, 3), None);
        assert_eq!(result(10, 4, 5), None);
    }
}
