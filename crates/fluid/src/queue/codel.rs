//! CoDel (RFC 8289). Paper "TCP BBR Performance over Wi-Fi 6", equation (21), has a constant rate of
//! drops above target; here the law itself: nothing for an interval, then drops at distances of
//! interval/√n.

use alloc::vec::Vec;

use sojourn_core::Span;
use sojourn_qdisc::codel::Config;

use super::{Due, Fate, Member, Seen, Step, one_class, serve_fifo};

/// The least wait among the packets of a round trip, of which `backlog` bytes wait `sojourn` on average:
/// a packet waits for whole packets, and they come in pairs, as one acknowledgement stands for two.
pub(super) fn least_wait(sojourn: f64, backlog: f64, packet: f64) -> f64 {
    let packets = backlog / packet;
    if packets < 1.5 { 0.0 } else { sojourn * libm::floor(packets - 0.5) / packets }
}

/// The law's state of one queue.
#[derive(Clone, Debug)]
pub(super) struct Law {
    target: f64,
    interval: f64,
    packet: f64,
    first_above: Option<f64>,
    drop_next: f64,
    is_dropping: bool,
    count: f64,
    last_count: f64,
}

impl Law {
    pub(super) fn new(target: Span, interval: Span, packet: f64) -> Self {
        Self {
            target: target.as_secs_f64(),
            interval: interval.as_secs_f64(),
            packet,
            first_above: None,
            drop_next: f64::NEG_INFINITY,
            is_dropping: false,
            count: 0.0,
            last_count: 0.0,
        }
    }

    /// How many packets go now. `own` waits in this queue; `backlog` is what the guard sees: a queue of
    /// a packet is let alone, also by those that were due while nothing left.
    pub(super) fn observe(&mut self, now: f64, sojourn: f64, own: f64, backlog: f64) -> u32 {
        let sojourn = least_wait(sojourn, own, self.packet);
        if sojourn < self.target || backlog <= self.packet {
            self.first_above = None;
            self.is_dropping = false;
            return 0;
        }
        let first_above = *self.first_above.get_or_insert(now + self.interval);
        if now < first_above {
            self.is_dropping = false;
            return 0;
        }
        if self.is_dropping {
            let mut packets = 0;
            let most = own.min(backlog - self.packet) / self.packet;
            while now >= self.drop_next && f64::from(packets) < most {
                packets += 1;
                self.count += 1.0;
                self.drop_next += self.interval / libm::sqrt(self.count);
            }
            return packets;
        }
        self.is_dropping = true;
        // Section 5.5: soon after the last time it goes on where it was.
        let delta = self.count - self.last_count;
        let is_recent = now - self.drop_next < 16.0 * self.interval;
        self.count = if delta > 1.0 && is_recent { delta } else { 1.0 };
        self.last_count = self.count;
        self.drop_next = now + self.interval / libm::sqrt(self.count);
        1
    }

    pub(super) fn timer(&self) -> f64 {
        match self.first_above {
            _ if self.is_dropping => self.drop_next,
            Some(first_above) => first_above,
            None => f64::INFINITY,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Codel {
    limit: f64,
    ecn: bool,
    law: Law,
}

impl Codel {
    pub(super) fn new(config: &Config, packet: f64) -> Self {
        Self {
            limit: f64::from(config.limit) * packet,
            ecn: config.ecn,
            law: Law::new(config.target, config.interval, packet),
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        one_class(members)
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        serve_fifo(step, fate, self.limit);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
        if seen.stands_still(0) {
            return;
        }
        let backlog = seen.backlogs[0];
        let packets = self.law.observe(seen.now, seen.sojourns[0], backlog, backlog);
        due.push(Due { class: 0, packets, at_tail: false, may_mark: self.ecn });
    }

    pub(super) fn timer(&self) -> f64 {
        self.law.timer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_due_meanwhile_no_more_is_dropped_than_waits() {
        let packet = 1500.0;
        let mut law = Law::new(Span::from_millis(5), Span::from_millis(100), packet);
        let mut drops =
            |now: f64, packets: f64| law.observe(now, 0.02, packets * packet, packets * packet);
        let begins: Vec<u32> = [0.0, 0.1, 0.2].map(|now| drops(now, 10.0)).into();
        assert_eq!(begins, [0, 1, 1]);
        // Some two hundred are due after three seconds; a packet is let alone.
        assert_eq!(drops(3.2, 10.0), 9);
    }
}
