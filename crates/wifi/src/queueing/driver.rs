//! A driver's buffer: a queue for each station, one limit for all of them, and no queue management.
//! There may be a discipline above, which gives the buffer as much as it takes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Span, SpecError, Stream, Time};
use sojourn_qdisc::{AnyQdisc, Config, Dequeue, Enqueue, Qdisc, Reshape};

use super::{Addressed, Arrival, PassedOn};
use crate::mac::edca::AccessCategory;
use crate::phy::{Mode, PPDU_MAX_TIME};
use crate::port::Listener;
use crate::store::{Chain, Store};

/// How the stations take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One aggregate each.
    #[default]
    RoundRobin,
    /// The station whose first packet has waited longest.
    OldestFirst,
    /// One aggregate each, but a station whose turn comes while the hardware is full loses it: it goes to the
    /// end of the round. That happens with every packet that comes in, so that the order is nearly
    /// random (ath9k before Linux 4.10).
    LosesTurns,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DriverConfig {
    /// Packets of an access category that may be in the buffer, those in the air included.
    pub limit: u32,
    pub order: Order,
    /// The discipline above, one for each access category. If there is none, what the buffer can't
    /// take is dropped.
    pub upper: Option<Config>,
}

impl DriverConfig {
    /// Packets of ath9k's buffer (ATH_MAX_QDEPTH).
    pub const ATH9K: u32 = 123;

    /// A station's own buffer: ath9k's, or as much as an aggregate on the air and the next one need if that is more. An aggregate is as
    /// long as the longest PPDU or the block ack window allows.
    pub fn of_station(mode: &Mode, upper: Config) -> Self {
        const OCTETS: u64 = 1540;
        let window = mode.format().largest_window().unwrap_or(1);
        let in_longest = mode.rate().bytes_in(PPDU_MAX_TIME) / OCTETS;
        let aggregate = in_longest.min(u64::from(window)) as u32;
        let limit = Self::ATH9K.max(2 * aggregate);
        Self { limit, order: Order::RoundRobin, upper: Some(upper) }
    }

    /// # Errors
    /// No room for a packet, or a discipline that its own room refuses.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.limit == 0 {
            return Err(SpecError::new("a buffer of 0 packets").allow(["1 packet or more"]));
        }
        let Some(upper) = &self.upper else { return Ok(()) };
        upper.check()?;
        upper.check_on(None)
    }

    /// Whether the discipline above may keep a packet although the buffer has room.
    pub(crate) fn may_hold_back(&self) -> bool {
        use Config::{Cake, External, Fq, Tbf};
        matches!(self.upper, Some(Cake(_) | External(_) | Fq(_) | Tbf(_)))
    }
}

pub(crate) struct Driver<P: Reshape + Send> {
    limit: u32,
    order: Order,
    /// By access category.
    upper: Vec<AnyQdisc<Addressed<P>>>,
    held_back_until: Time,
    /// By access category, packets taken in and not yet delivered or dropped.
    held: [u32; AccessCategory::COUNT],
    /// Packets taken in so far, which numbers them in the order of the buffer.
    taken: u64,
    /// By station and access category.
    waiting: Vec<Chain>,
    /// By access category, the station that was served last.
    served: [usize; AccessCategory::COUNT],
    /// By access category, who is to be served, where turns are lost.
    round: [VecDeque<u16>; AccessCategory::COUNT],
}

impl<P: Reshape + Send> Driver<P> {
    pub(crate) fn new(config: &DriverConfig, stations: usize, random: &mut Stream) -> Self {
        let upper = config.upper.as_ref().map_or_else(Vec::new, |upper| {
            AccessCategory::ALL.iter().map(|_| upper.build(random.fork())).collect()
        });
        Self {
            limit: config.limit,
            order: config.order,
            upper,
            held_back_until: Time::NEVER,
            held: [0; AccessCategory::COUNT],
            taken: 0,
            waiting: alloc::vec![Chain::EMPTY; stations * AccessCategory::COUNT],
            served: [0; AccessCategory::COUNT],
            round: Default::default(),
        }
    }

    #[inline]
    pub(crate) fn is_full(&self, ac: AccessCategory) -> bool {
        self.held[ac as usize] >= self.limit
    }

    /// Whether the discipline above lets a packet pass without storing it; then [`Driver::take`] must follow. If not,
    /// nothing has happened.
    #[inline(always)]
    pub(crate) fn passes(&mut self, ac: AccessCategory, packet: &P) -> bool {
        self.upper.get_mut(ac as usize).is_some_and(|upper| upper.pass(packet))
    }

    /// Whether the discipline above keeps a packet, and drops none. If not, nothing has happened.
    #[inline(always)]
    pub(crate) fn keeps(&mut self, ac: AccessCategory, arrival: &Arrival<'_, P>) -> bool {
        let Arrival { packet, now, .. } = *arrival;
        let Some(upper) = self.upper.get_mut(ac as usize) else { return false };
        upper.keep(now, packet, || arrival.addressed())
    }

    /// Takes a packet in. Returns how many packets were added to the buffer.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        ac: AccessCategory,
        arrival: &Arrival<'_, P>,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> u32 {
        let Arrival { packet, port, now, .. } = *arrival;
        // The usual case if the buffer has room: nothing waits above.
        if !self.is_full(ac) && (self.upper.is_empty() || self.passes(ac, packet)) {
            listener.entered(now, port, packet);
            self.take(ac, arrival, store);
            return 1;
        }
        self.wait_above(ac, arrival, listener);
        self.refill(now, ac, store, listener)
    }

    /// A packet enters the discipline above. If there is none, it is dropped.
    pub(crate) fn wait_above(
        &mut self,
        ac: AccessCategory,
        arrival: &Arrival<'_, P>,
        listener: &mut impl Listener<P>,
    ) {
        let Arrival { packet, port, now, .. } = *arrival;
        if self.keeps(ac, arrival) {
            return listener.entered(now, port, packet);
        }
        let Some(upper) = self.upper.get_mut(ac as usize) else {
            return listener.refused(now, port, packet, DropReason::Full);
        };
        match upper.enqueue(now, arrival.addressed(), &mut PassedOn(&mut *listener)) {
            Enqueue::Queued => listener.entered(now, port, packet),
            Enqueue::Dropped(packet, why) => {
                listener.refused(now, packet.port, &packet.packet, why);
            }
        }
    }

    /// Takes a packet from the discipline above if the buffer has room. Gives how many came.
    #[inline]
    pub(crate) fn refill(
        &mut self,
        now: Time,
        ac: AccessCategory,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> u32 {
        if self.is_full(ac) {
            return 0;
        }
        self.pull(now, ac, store, listener)
    }

    fn pull(
        &mut self,
        now: Time,
        ac: AccessCategory,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> u32 {
        let Some(upper) = self.upper.get_mut(ac as usize) else { return 0 };
        match upper.dequeue(now, &mut PassedOn(listener)) {
            Dequeue::Packet(packet, _) => {
                self.take(ac, &packet.arrival(), store);
                1
            }
            Dequeue::Empty => 0,
            Dequeue::NotBefore(at) => {
                self.held_back_until = self.held_back_until.min(at);
                0
            }
        }
    }

    /// When a shaper above releases the next packet.
    pub(crate) fn held_back_until(&self) -> Time {
        self.held_back_until
    }

    /// Must be called before the categories are filled again.
    pub(crate) fn wake(&mut self) {
        self.held_back_until = Time::NEVER;
    }

    /// So many packets of the category are delivered or dropped.
    #[inline]
    pub(crate) fn release(&mut self, ac: AccessCategory, packets: u32) {
        self.held[ac as usize] -= packets;
    }

    pub(crate) fn stations(&self) -> usize {
        self.waiting.len() / AccessCategory::COUNT
    }

    /// The packets of the buffer for a station.
    #[inline]
    pub(crate) fn waiting(&self, station: usize, ac: AccessCategory) -> &Chain {
        &self.waiting[station * AccessCategory::COUNT + ac as usize]
    }

    #[inline]
    pub(crate) fn waiting_mut(&mut self, station: usize, ac: AccessCategory) -> &mut Chain {
        &mut self.waiting[station * AccessCategory::COUNT + ac as usize]
    }

    /// The station whose turn it is, among those that have something and are not held back.
    pub(crate) fn choose(
        &mut self,
        ac: AccessCategory,
        stations: usize,
        store: &Store<P>,
        started: impl Fn(usize) -> Option<u64>,
        is_held: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if self.order == Order::LosesTurns {
            while let Some(first) = self.round[ac as usize].pop_front() {
                let station = usize::from(first);
                if started(station).is_some() || !self.waiting(station, ac).is_empty() {
                    self.round[ac as usize].push_back(first);
                    return Some(station);
                }
            }
            return None;
        }
        let oldest = |s: usize| {
            let oldest = started(s).or_else(|| Some(store.first(self.waiting(s, ac))?.order));
            oldest.filter(|_| !is_held(s))
        };
        let chosen = match self.order {
            Order::OldestFirst => {
                (0..stations).filter_map(|s| Some((oldest(s)?, s))).min().map(|(_, s)| s)
            }
            Order::RoundRobin | Order::LosesTurns => {
                let last = self.served[ac as usize];
                (last + 1..stations).chain(0..=last).find(|s| oldest(*s).is_some())
            }
        }?;
        self.served[ac as usize] = chosen;
        Some(chosen)
    }

    /// The hardware is full: with [`Order::LosesTurns`] the station whose turn it is loses the turn.
    pub(crate) fn pass_over(
        &mut self,
        ac: AccessCategory,
        store: &Store<P>,
        started: impl Fn(usize) -> Option<u64>,
    ) {
        if self.order == Order::LosesTurns {
            // Choosing the station moves it to the end of the round.
            let _ = self.choose(ac, 0, store, started, |_| false);
        }
    }

    /// The station has frames to send.
    #[inline(always)]
    pub(crate) fn join(&mut self, ac: AccessCategory, station: usize) {
        if self.order == Order::LosesTurns {
            self.join_round(ac, station as u16);
        }
    }

    #[inline(never)]
    fn join_round(&mut self, ac: AccessCategory, station: u16) {
        let round = &mut self.round[ac as usize];
        if !round.contains(&station) {
            round.push_back(station);
        }
    }

    pub(crate) fn backlog(&self) -> u64 {
        let above: u64 = self.upper.iter().map(|upper| u64::from(upper.backlog().packets)).sum();
        above + self.held.iter().map(|held| u64::from(*held)).sum::<u64>()
    }

    /// The longest time that a packet has waited.
    pub(crate) fn oldest(&self, now: Time, store: &Store<P>) -> Span {
        let above = self.upper.iter().filter_map(Qdisc::oldest);
        let here = self.waiting.iter().filter_map(|chain| Some(store.first(chain)?.arrived));
        above.chain(here).min().map_or(Span::ZERO, |arrived| now.since(arrived))
    }

    /// When the packet arrived that has waited longest for a station: the first in its buffer,
    /// otherwise the first of all that wait above.
    pub(crate) fn oldest_of(&self, station: usize, store: &Store<P>) -> Option<Time> {
        let first = station * AccessCategory::COUNT;
        let own = &self.waiting[first..first + AccessCategory::COUNT];
        let here = own.iter().filter_map(|chain| Some(store.first(chain)?.arrived)).min();
        here.or_else(|| self.upper.iter().filter_map(Qdisc::oldest).min())
    }

    /// Puts a packet into the buffer.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        ac: AccessCategory,
        arrival: &Arrival<'_, P>,
        store: &mut Store<P>,
    ) {
        self.held[ac as usize] += 1;
        self.taken += 1;
        let arrival = Arrival { order: self.taken, ..*arrival };
        let (slot, station) = (arrival.put_into(store), arrival.station());
        store.append(self.waiting_mut(station, ac), slot);
        self.join(ac, station);
    }
}
