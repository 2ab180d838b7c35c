//! CAKE: a shaper, fair shares of hosts and of their flows, and COBALT in each (Høiland-Jørgensen,
//! Täht, Morton, "Piece of CAKE", LANMAN 2018). Paper "TCP BBR Performance over Wi-Fi 6", equations
//! (22) to (24), where φ_host and F_cake are not defined: φ is one over the busier host's flows, and F
//! is COBALT.

use alloc::vec::Vec;
use core::slice;

use sojourn_core::{Framing, Params, SpecError};
use sojourn_qdisc::cake::{CobaltParams, Config, Isolation};

use super::codel::least_wait;
use super::fq_codel::serve;
use super::room::{Room, make_room};
use super::{Due, Fate, Member, Seen, Step, refusal};
use crate::framing::payload_share;

#[derive(Clone, Debug)]
pub(crate) struct Cake {
    /// Bytes a second.
    bandwidth: f64,
    room: Room,
    cobalts: Vec<Cobalt>,
    weights: Vec<f64>,
    /// When the last step ended.
    now: f64,
}

/// # Errors
/// What a fluid lacks.
pub(super) fn check(config: &Config) -> Result<(), SpecError> {
    let refuse = |what: &str| refusal(Config::NAME, what);
    if !config.isolation.parts_flows() {
        let allowed = ["'flows', 'dual-srchost', 'dual-dsthost' or 'triple-isolate'"];
        return Err(refuse("flows that share a queue").allow(allowed));
    }
    if config.ingress {
        return Err(refuse("'ingress'").allow(["'egress'"]));
    }
    if !config.split_gso {
        return Err(refuse("packets of several segments").allow(["'split-gso'"]));
    }
    Ok(())
}

/// How the shaper takes packets to be framed.
pub(super) fn framing(config: &Config) -> Framing {
    // Overheads that add up to too much have been refused.
    config.link.framing().unwrap_or_default()
}

impl Cake {
    pub(super) fn new(config: &Config, members: &[Member], packet: f64) -> Self {
        let bandwidth = if config.bandwidth.is_unlimited() {
            f64::INFINITY
        } else {
            config.bandwidth.as_bps() as f64 / 8.0
        };
        // All packets are framed alike, which has been checked.
        let bandwidth = bandwidth * payload_share(framing(config), packet as u32);
        let limit = config.buffer_limit() as f64;
        let cobalt =
            |member: &Member| Cobalt::new(&config.cobalt_of(config.tin_of(member.dscp)), member);
        Self {
            bandwidth,
            room: Room::for_memory(limit, members),
            cobalts: members.iter().map(cobalt).collect(),
            weights: weights(config.isolation, members),
            now: 0.0,
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        (0..members.len()).collect()
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        let capacity = step.capacity.min(self.bandwidth * step.length);
        let step = Step { capacity, ..*step };
        serve(&step, fate, &self.weights, |class| self.cobalts[class].blue);
        make_room(slice::from_ref(&self.room), &step, fate);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
        let length = seen.now - self.now;
        self.now = seen.now;
        for (class, cobalt) in self.cobalts.iter_mut().enumerate() {
            let backlog = seen.backlogs[class];
            if !seen.stands_still(class) {
                let packets = cobalt.observe(seen.now, seen.sojourns[class], backlog);
                due.push(Due { class, packets, at_tail: false, may_mark: true });
            }
            if backlog < cobalt.packet {
                cobalt.on_empty(length);
            } else if seen.excess[class] > 0.0 {
                cobalt.on_overflow(seen.now, length);
            }
        }
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

/// BLUE's steps, which take a target each: up while the queue is the longest of a full buffer, down while it is empty.
const UP: f64 = 1.0 / 256.0;
const DOWN: f64 = 1.0 / 4096.0;

/// COBALT: CoDel, and BLUE for what does not respond.
#[derive(Clone, Debug)]
struct Cobalt {
    target: f64,
    interval: f64,
    /// At low rates a few packets take longer than the target.
    longest_wait: f64,
    packet: f64,
    /// The flow's round trip without a queue.
    round: f64,
    count: f64,
    is_dropping: bool,
    drop_next: f64,
    /// BLUE drops this share of what leaves.
    blue: f64,
}

impl Cobalt {
    fn new(params: &CobaltParams, member: &Member) -> Self {
        Self {
            target: params.target.as_secs_f64(),
            interval: params.interval.as_secs_f64(),
            longest_wait: params.longest_wait().as_secs_f64(),
            packet: member.packet,
            round: member.round,
            count: 0.0,
            is_dropping: false,
            drop_next: f64::INFINITY,
            blue: 0.0,
        }
    }

    /// In a step of this length the buffer was full, and no queue was longer than this one.
    fn on_overflow(&mut self, now: f64, length: f64) {
        self.blue = (self.blue + UP * length / self.target).min(1.0 - DOWN);
        self.is_dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1.0);
    }

    /// Less than a packet waited after a step of this length.
    fn on_empty(&mut self, length: f64) {
        self.blue = (self.blue - DOWN * length / self.target).max(0.0);
    }

    fn observe(&mut self, now: f64, sojourn: f64, backlog: f64) -> u32 {
        let distance = |count: f64| self.interval / libm::sqrt(count.max(1.0));
        // It must last until the next drop: with all packets of a round trip if that is farther away.
        let wait = match distance(self.count) < self.round {
            true => sojourn,
            false => least_wait(sojourn, backlog, self.packet),
        };
        let is_above = wait > self.longest_wait && backlog > self.packet;
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
