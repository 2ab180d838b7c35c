//! CAKE: a shaper, fair shares of hosts and of their flows, and COBALT in each (Høiland-Jørgensen,
//! Täht, Morton, "Piece of CAKE", LANMAN 2018). Paper "TCP BBR Performance over Wi-Fi 6", equations
//! (22) to (24), where φ_host and F_cake are not defined: φ is one over the busier host's flows, and F
//! is COBALT.

use alloc::vec::Vec;

use sojourn_qdisc::cake::{Config, Isolation};

use super::codel::least_wait;
use super::fq_codel::{make_room, serve};
use super::{Due, Fate, Member, Seen, Step};

#[derive(Clone, Debug)]
pub(crate) struct Cake {
    /// Bytes a second.
    bandwidth: f64,
    limit: f64,
    cobalts: Vec<Cobalt>,
    weights: Vec<f64>,
    packet: f64,
}

impl Cake {
    pub(super) fn new(config: &Config, members: &[Member]) -> Self {
        let bandwidth = if config.bandwidth.is_unlimited() {
            f64::INFINITY
        } else {
            config.bandwidth.as_bps() as f64 / 8.0
        };
        // Four bandwidth-delay products, at least 4 MB, as CAKE derives it.
        let limit = match config.memlimit {
            Some(bytes) => bytes.as_u64() as f64,
            None if bandwidth.is_finite() => {
                (4.0 * bandwidth * config.rtt.as_secs_f64()).max(4.0 * 1024.0 * 1024.0)
            }
            None => 32.0 * 1024.0 * 1024.0,
        };
        let target = config.target().as_secs_f64();
        let cobalt = |member: &Member| Cobalt::new(target, config.rtt.as_secs_f64(), member);
        Self {
            bandwidth,
            limit,
            cobalts: members.iter().map(cobalt).collect(),
            weights: weights(config.isolation, members),
            packet: members.iter().map(|member| member.packet).fold(0.0, f64::max),
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        (0..members.len()).collect()
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        let capacity = step.capacity.min(self.bandwidth * step.length);
        serve(&Step { capacity, ..*step }, fate, &self.weights);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
        for (class, cobalt) in self.cobalts.iter_mut().enumerate() {
            let packets = cobalt.observe(seen.now, seen.sojourns[class], seen.backlogs[class]);
            due.push(Due { class, packets, at_tail: false, may_mark: true });
        }
        make_room(seen, due, self.limit, self.packet);
    }

    pub(super) fn timer(&self) -> f64 {
        self.cobalts.iter().map(Cobalt::timer).fold(f64::INFINITY, f64::min)
    }
}

/// φ_host·ψ of equation (22), with ψ = 1.
fn weights(isolation: Isolation, members: &[Member]) -> Vec<f64> {
    let of = |member: &Member| {
        let same = |by: fn(&Member) -> u16| {
            members.iter().filter(|other| by(other) == by(member)).count() as f64
        };
        let sources = if isolation.is_fair_to_sources() { same(|m| m.source) } else { 1.0 };
        let destinations =
            if isolation.is_fair_to_destinations() { same(|m| m.destination) } else { 1.0 };
        1.0 / sources.max(destinations)
    };
    members.iter().map(of).collect()
}

/// COBALT's CoDel half. Its other half, BLUE, acts on queues that overflow.
#[derive(Clone, Debug)]
struct Cobalt {
    target: f64,
    interval: f64,
    packet: f64,
    /// The flow's round trip without a queue.
    round: f64,
    count: f64,
    is_dropping: bool,
    drop_next: f64,
}

impl Cobalt {
    fn new(target: f64, interval: f64, member: &Member) -> Self {
        Self {
            target,
            interval,
            packet: member.packet,
            round: member.round,
            count: 0.0,
            is_dropping: false,
            drop_next: f64::INFINITY,
        }
    }

    fn observe(&mut self, now: f64, sojourn: f64, backlog: f64) -> u32 {
        let distance = |count: f64| self.interval / libm::sqrt(count.max(1.0));
        // It must last until the next drop: with all packets of a round trip if that is farther away.
        let wait = match distance(self.count) < self.round {
            true => sojourn,
            false => least_wait(sojourn, backlog, self.packet),
        };
        let is_above = wait > self.target && backlog > self.packet;
        if is_above && !self.is_dropping {
            self.is_dropping = true;
            self.drop_next = now + distance(self.count);
            self.count = self.count.max(1.0);
            return 0;
        }
        if !is_above {
            self.is_dropping = false;
        }
        let mut packets = 0;
        while self.count > 0.0 && now >= self.drop_next {
            if self.is_dropping {
                packets += 1;
                self.count += 1.0;
            } else {
                self.count -= 1.0;
            }
            self.drop_next += self.interval / libm::sqrt(self.count.max(1.0));
        }
        packets
    }

    fn timer(&self) -> f64 {
        if self.count > 0.0 { self.drop_next } else { f64::INFINITY }
    }
}
