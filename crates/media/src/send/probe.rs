//! Clusters of packets at a rate of their own.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use crate::control::Probe;

#[derive(Clone, Debug, Default)]
pub(super) struct Prober {
    /// Clusters that are due; the first one may have begun.
    due: VecDeque<Probe>,
    current: Option<Cluster>,
}

#[derive(Clone, Copy, Debug)]
struct Cluster {
    probe: Probe,
    began: Time,
    packets: u32,
    bytes: u64,
}

/// A cluster that is not complete by then is given up.
const LONGEST_WAIT: Span = Span::from_secs(5);

impl Prober {
    pub(super) fn add(&mut self, probe: Probe) {
        self.due.push_back(probe);
    }

    /// When the next packet of a cluster may leave; [`Time::NEVER`] without a cluster.
    pub(super) fn next(&self, now: Time) -> Time {
        match &self.current {
            Some(cluster) => cluster.began + cluster.probe.rate.time_for(cluster.bytes),
            None if self.due.is_empty() => Time::NEVER,
            None => now,
        }
    }

    /// Whether a cluster is due or has begun; until it is complete, nothing else leaves.
    pub(super) fn is_on(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether the next packet is the first of a cluster.
    pub(super) fn begins(&self, now: Time) -> bool {
        self.current.is_none_or(|cluster| now.since(cluster.began) > LONGEST_WAIT)
    }

    /// Bytes a second of the cluster that has begun; zero without one.
    pub(super) fn rate(&self) -> f64 {
        self.current.map_or(0.0, |cluster| cluster.probe.rate.as_bps() as f64 / 8.0)
    }

    /// Counts a packet of `size` bytes that leaves as part of the cluster that is due; returns its id.
    pub(super) fn send(&mut self, now: Time, size: u32) -> Option<u32> {
        if self.begins(now) {
            if self.current.is_some() {
                self.due.pop_front();
            }
            let begin = |probe: &Probe| Cluster { probe: *probe, began: now, packets: 0, bytes: 0 };
            self.current = self.due.front().map(begin);
        }
        let cluster = self.current.as_mut()?;
        cluster.packets += 1;
        cluster.bytes += u64::from(size);
        let probe = cluster.probe;
        if cluster.packets >= probe.min_packets && cluster.bytes >= probe.min_bytes {
            self.current = None;
            self.due.pop_front();
        }
        Some(probe.id)
    }
}
