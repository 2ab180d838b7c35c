//! The medium: stations and an access point that share one channel and hear each other.
//!
//! There is one event per exchange on the air. While no station sends, every function counts down
//! on its own, so the next one to send is the one with the smallest time. When it sends, the
//! counters of the others are advanced, and the whole exchange up to its acknowledgement is
//! computed.

mod attempt;
mod config;
mod counts;
mod exchange;
mod hardware;
mod link;
mod multi_user;
mod rates;
mod staged;
#[cfg(test)]
mod tests;

use attempt::Ppdu;
pub use config::{Config, LostBlockAck, Radio, Station};
pub use counts::{AirCounts, LinkCounts};
use hardware::{HardwareQueue, Prepared};
pub(crate) use link::Link;
use multi_user::MultiUser;
use staged::{Limits, Staged};

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Purpose, Span, SpecError, Stream, StreamAddress, Time};
use sojourn_qdisc::Reshape;

use crate::mac::aggregation::Psdu;
use crate::mac::block_ack::Fate;
use crate::mac::classify::access_category;
use crate::mac::edca::{AccessCategory, Countdown, Edcaf};
use crate::phy::{Format, Mode};
use crate::port::{Listener, Port};
use crate::queueing::{Arrival, Hardware, Queue, QueueKind, Waiting};
use crate::store::{Chain, Out, Released, Store};

const CATEGORIES: usize = AccessCategory::COUNT;

pub struct Medium<P: Reshape + Send> {
    config: Config,
    countdown: Countdown,
    /// By node and access category; the access point is node 0, station s is node s + 1.
    edcafs: Vec<Edcaf>,
    /// Functions that have a frame or still count down.
    active: Vec<u16>,
    queues: Vec<Queue<P>>,
    /// Aggregates of the access point that are ready to be sent, by access category.
    prepared: [HardwareQueue; CATEGORIES],
    /// Packets of the access point that are in the hardware, where airtime queue limits let them in.
    staged: Option<Box<Staged>>,
    /// By access category, whether it is the turn of a station that can't have another aggregate.
    is_stuck: [bool; CATEGORIES],
    /// By port and access category.
    links: Vec<Link>,
    /// Links whose BlockAck did not come and must be requested.
    bars_due: u32,
    store: Store<P>,
    counts: Vec<LinkCounts>,
    air: AirCounts,
    /// Until when the medium is or was busy.
    idle_since: Time,
    /// How much longer the bystanders' interframe spaces are after the last exchange (EIFS − DIFS).
    extended: Span,
    /// When the next exchange begins if nothing comes in between.
    next_access: Time,
    /// Who holds the medium, and until when at most.
    txop: Option<Txop>,
    /// A node for which the medium is idle although an exchange goes on: it has received a frame
    /// and will answer after SIFS.
    answering: (u16, Time),
    reserved: Reserved,
    /// By node, until when it last waited for a response that did not come.
    timeouts: Vec<Time>,
    /// Links whose frames arrive at this time.
    arriving: Vec<u32>,
    arrive_at: Time,
    /// Packets that have come out, or will at these times, in order.
    outbox: Chain,
    /// When the first of them comes out: asked far more often than it changes.
    out_at: Time,
    winners: Vec<u16>,
    attempts: Vec<attempt::Attempt>,
    /// What OFDMA needs, where it is used.
    multi: Option<Box<MultiUser>>,
    /// By port, where modes change.
    rates: Vec<Option<Box<rates::Adaptive>>>,
    /// When a shaper above some node's driver releases a packet.
    held_back_until: Time,
    /// When something is due: the first of the times above, of `arrival_at` and of the next trigger.
    due_at: Time,
    /// Whether aggregates of the access point are ready before they are sent.
    prepares: bool,
    /// Whether packets that enter can change anything only when the medium is idle.
    may_heed: bool,
    /// When a station comes that was away.
    arrival_at: Time,
    arrivals: u64,
    ppdus: u32,
    random: Stream,
}

/// Until when the medium counts as busy after the last exchange, whether or not its response came: bystanders have
/// read how long it was to last and set their NAV.
#[derive(Clone, Copy, Debug, Default)]
struct Reserved {
    holder: u16,
    until: Time,
    /// A node that could read nothing waits as after any such frame (section 10.3.2.3.7).
    deaf: Option<(u16, Time)>,
}

impl Reserved {
    fn until(&self, node: u16) -> Time {
        match self.deaf {
            _ if node == self.holder => Time::ZERO,
            Some((deaf, until)) if node == deaf => until,
            _ => self.until,
        }
    }
}

/// What becomes of a packet that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is in its buffer, or above it.
    Passed,
    /// There is no room for all that [wait above](Medium::wait_above) the buffer of its category.
    Waits,
    /// It must be [offered](Medium::offer).
    Offered,
}

#[derive(Clone, Copy, Debug)]
struct Txop {
    edcaf: u16,
    until: Time,
}

impl<P: Reshape + Send> Medium<P> {
    /// # Errors
    /// What [`Config::check`] refuses.
    pub fn new(config: Config, address: StreamAddress, entity: u64) -> Result<Self, SpecError> {
        config.check()?;
        let stations = config.stations.len();
        let mut queue_random = address.stream(entity, Purpose::Queue);
        let mut edcafs = Vec::new();
        for node in 0..=stations {
            let parameters = if node == 0 { &config.access_point } else { &config.station };
            for (ac, parameters) in parameters.iter().enumerate() {
                let number = (node * CATEGORIES + ac) as u64;
                let random = address.stream(entity ^ (number << 40), Purpose::Backoff);
                edcafs.push(Edcaf::new(*parameters, config.sifs, config.slot, random));
            }
        }
        let mut queues = Vec::new();
        queues.push(Queue::new(&config.queue.kind, stations, &mut queue_random));
        queues[0].weigh(config.stations.iter().map(|station| station.weight));
        let mut links = Vec::new();
        for station in &config.stations {
            let kind = QueueKind::Driver(station.queue.clone());
            queues.push(Queue::new(&kind, 1, &mut queue_random));
            for radio in [station.down, station.up] {
                for _ in AccessCategory::ALL {
                    links.push(Link::new(radio, &config));
                }
            }
        }
        let mut medium = Self {
            countdown: config.countdown(),
            timeouts: alloc::vec![Time::ZERO; stations + 1],
            active: Vec::new(),
            counts: alloc::vec![LinkCounts::default(); 2 * stations],
            edcafs,
            queues,
            links,
            bars_due: 0,
            store: Store::new(),
            prepared: core::array::from_fn(|_| HardwareQueue::new()),
            staged: None,
            is_stuck: [false; CATEGORIES],
            air: AirCounts::default(),
            idle_since: Time::ZERO,
            extended: Span::ZERO,
            next_access: Time::NEVER,
            txop: None,
            answering: (0, Time::NEVER),
            reserved: Reserved::default(),
            arriving: Vec::new(),
            arrive_at: Time::NEVER,
            outbox: Chain::EMPTY,
            out_at: Time::NEVER,
            winners: Vec::new(),
            attempts: Vec::new(),
            multi: MultiUser::new(&config, &mut queue_random),
            rates: rates::adaptive(&config, &mut queue_random),
            held_back_until: Time::NEVER,
            due_at: Time::NEVER,
            prepares: false,
            may_heed: config.ofdma.is_none() && !config.may_hold_back(),
            arrival_at: Time::NEVER,
            arrivals: 0,
            ppdus: 0,
            random: address.stream(entity, Purpose::Loss),
            config,
        };
        if !medium.multi.as_ref().is_some_and(|multi| multi.sends_down()) {
            match medium.config.queue.hardware {
                Hardware::None => {}
                Hardware::Aggregates(_) => medium.prepares = true,
                Hardware::Airtime { low, high, total } => {
                    let limits = Limits { low, high, total };
                    medium.staged = Some(Box::new(Staged::new(stations, limits)));
                }
            }
        }
        medium.arrival_at = medium.next_arrival(Time::ZERO);
        medium.due_at = medium.next_due();
        Ok(medium)
    }

    /// Takes a packet in that goes into its buffer, or above it while it is full, and changes nothing of what happens next,
    /// because its function counts down already. Otherwise nothing has happened, and it says what must.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Time, port: Port, packet: &P) -> Entry {
        let ac = self.category(packet);
        let node = Self::node_of(port);
        let index = node * CATEGORIES + ac as usize;
        let counts_down = self.edcafs[index].has_frames
            && !self.fills_hardware(node)
            && !self.lacks_trigger(node)
            && self.is_present(port.station(), now);
        let Queue::Driver(driver) = &mut self.queues[node] else { return Entry::Offered };
        if !counts_down {
            return Entry::Offered;
        }
        // The buffer numbers what it takes.
        let arrival = Arrival { packet, port, order: 0, now };
        if driver.is_full(ac) {
            return if driver.keeps(ac, &arrival) { Entry::Passed } else { Entry::Waits };
        }
        if !driver.passes(ac, packet) {
            return Entry::Offered;
        }
        driver.take(ac, &arrival, &mut self.store);
        self.edcafs[index].pending += 1;
        Entry::Passed
    }

    /// A packet enters above a buffer that is full, where another one may be dropped.
    pub(crate) fn wait_above(
        &mut self,
        now: Time,
        port: Port,
        packet: &P,
        listener: &mut impl Listener<P>,
    ) {
        let ac = self.category(packet);
        if let Queue::Driver(driver) = &mut self.queues[Self::node_of(port)] {
            driver.wait_above(ac, &Arrival { packet, port, order: 0, now }, listener);
        }
    }

    /// A packet to a station enters where queues are in the MAC. False, and nothing has happened, where they are not.
    #[inline(always)]
    pub(crate) fn offer_managed(
        &mut self,
        now: Time,
        port: Port,
        packet: &P,
        listener: &mut impl Listener<P>,
    ) -> bool {
        let (ac, is_present) = (self.category(packet), self.is_present(port.station(), now));
        let Queue::Managed(queue) = &mut self.queues[0] else { return false };
        if !is_present {
            listener.refused(now, port, packet, DropReason::Medium);
            return true;
        }
        self.arrivals += 1;
        let arrival = Arrival { packet, port, order: self.arrivals, now };
        queue.enqueue(ac, arrival, &mut self.store, listener);
        self.note_arrival(now, 0, ac, 1, port.station(), listener);
        true
    }

    /// Whether packets may go into the access point's buffer at once.
    pub(crate) fn passes_down(&self) -> bool {
        !self.fills_hardware(0) && matches!(self.queues[0], Queue::Driver(_))
    }

    /// Who sends what enters at a port.
    #[inline]
    fn node_of(port: Port) -> usize {
        if port.is_up() { port.station() + 1 } else { 0 }
    }

    #[inline]
    fn category(&self, packet: &P) -> AccessCategory {
        if self.config.is_qos { access_category(packet.dscp()) } else { AccessCategory::Be }
    }

    /// A packet enters at `port`; the listener is told if it or another one is dropped.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, port: Port, packet: &P, listener: &mut impl Listener<P>) {
        let ac = self.category(packet);
        if !self.is_present(port.station(), now) {
            listener.refused(now, port, packet, DropReason::Medium);
            return;
        }
        let node = Self::node_of(port);
        self.arrivals += 1;
        let arrival = Arrival { packet, port, order: self.arrivals, now };
        let queue = &mut self.queues[node];
        let taken = queue.offer(ac, &arrival, &mut self.store, listener);
        if taken == 0 {
            self.held_back_until = self.held_back_until.min(queue.held_back_until());
            self.due_at = self.due_at.min(self.held_back_until);
        }
        // The usual case under load: its function counts down already, or the buffer is full.
        let is_counted = taken == 0 || (queue.drops_nothing_later() && !self.lacks_trigger(node));
        let index = node * CATEGORIES + ac as usize;
        if is_counted && self.edcafs[index].has_frames && !self.fills_hardware(node) {
            self.edcafs[index].pending += taken;
            return;
        }
        self.note_arrival(now, node, ac, taken, arrival.station(), listener);
    }

    /// `taken` more packets of a station may be sent.
    #[inline(never)]
    fn note_arrival(
        &mut self,
        now: Time,
        node: usize,
        ac: AccessCategory,
        taken: u32,
        station: usize,
        listener: &mut impl Listener<P>,
    ) {
        let index = node * CATEGORIES + ac as usize;
        let may_wait = !self.fills_hardware(node) || self.hardware_has_enough(node, ac, station);
        // Usually its function counts down already.
        if may_wait && !self.lacks_trigger(node) && self.edcafs[index].has_frames {
            self.edcafs[index].pending += taken;
            self.forget_dropped(node);
            return;
        }
        self.note(now, node, ac, taken, Some(station), listener);
        self.due_at = self.next_due();
    }

    /// Whether a Trigger frame must be asked for when a packet comes to a node.
    #[inline]
    fn lacks_trigger(&self, node: usize) -> bool {
        node > 0 && self.multi.as_ref().is_some_and(|multi| multi.lacks_trigger())
    }

    /// Until when packets that enter change nothing of what happens next: while the medium is busy they can only
    /// wait, unless a discipline may let them wait for less, or the access point for a trigger.
    #[inline]
    pub fn heeds_from(&self) -> Time {
        if self.may_heed { self.idle_since.min(self.due_at) } else { Time::ZERO }
    }

    /// When something is due or a packet comes out; never while no station has anything to send.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.out_at.min(self.due_at)
    }

    fn next_due(&self) -> Time {
        let trigger = self.multi.as_ref().map_or(Time::NEVER, |multi| multi.trigger_at());
        let others = self.held_back_until.min(self.arrival_at).min(trigger);
        self.next_access.min(self.arrive_at).min(others)
    }

    /// Whether anything is due. Usually only a packet comes out.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.due_at <= now
    }

    /// Does everything that is due.
    #[inline]
    pub fn on_wake(&mut self, now: Time, listener: &mut impl Listener<P>) {
        if self.is_due(now) {
            self.act(now, listener);
        }
    }

    #[inline(never)]
    pub(crate) fn act(&mut self, now: Time, listener: &mut impl Listener<P>) {
        if self.arrive_at <= now {
            self.arrive(now, listener);
        }
        if self.held_back_until <= now {
            self.release_held_back(now, listener);
        }
        if self.arrival_at <= now {
            self.welcome(now);
        }
        if let Some(multi) = &mut self.multi
            && multi.trigger_at() <= now
        {
            multi.come_due();
            let (draws, index) = (multi.backs_off(), AccessCategory::Be as usize);
            if !self.edcafs[index].has_frames {
                self.begin_contending(now, index, draws);
            }
        }
        if self.next_access <= now {
            match self.txop {
                Some(txop) => self.continue_txop(now, txop, listener),
                None => self.contend(now, listener),
            }
        }
        self.due_at = self.next_due();
        self.out_at = self.store.next_out(&self.outbox);
    }

    /// The next packet that has come out.
    #[inline]
    pub fn poll_deliver(&mut self, now: Time) -> Option<(Port, P)> {
        self.poll_in_place(now).map(|(port, packet, _)| (port, *packet))
    }

    /// [`Medium::poll_deliver`], where the packet lies, and [`Medium::next_wake`] after that; it must be copied at once.
    #[inline]
    pub(crate) fn poll_in_place(&mut self, now: Time) -> Option<(Port, &mut P, Time)> {
        if self.out_at > now {
            return None;
        }
        let Out { port, packet, next } = self.store.come_out_if(&mut self.outbox, |_| true)?;
        self.out_at = next;
        Some((port, packet, next.min(self.due_at)))
    }

    /// Gives `take` the packets that will come out before `before`, each with its time, up to the first of a port that may
    /// not; they must be copied at once. What enters later comes out later.
    #[inline]
    pub(crate) fn poll_ahead(
        &mut self,
        before: Time,
        mut may: impl FnMut(Port) -> bool,
        mut take: impl FnMut(Time, Port, &mut P),
    ) {
        let Self { outbox, store, .. } = self;
        let mut at = store.next_out(outbox);
        while at < before
            && let Some(Out { port, packet, next }) = store.come_out_if(outbox, &mut may)
        {
            take(at, port, packet);
            at = next;
        }
        self.out_at = at;
    }

    /// What was on the air up to the end of the last exchange.
    pub fn air(&self) -> AirCounts {
        self.air
    }

    /// The time up to which [`Medium::air`] counts; before `now` if nothing was sent since.
    pub fn counted_until(&self) -> Time {
        self.idle_since
    }

    pub fn counts(&self, port: Port) -> LinkCounts {
        self.counts[usize::from(port.index())]
    }

    pub fn stations(&self) -> usize {
        self.config.stations.len()
    }

    /// How a port sends.
    pub(crate) fn mode(&self, port: Port) -> Mode {
        self.links[usize::from(port.index()) * CATEGORIES].sending.mode
    }

    /// The longest time that a packet has waited to enter a frame at this port. Below a discipline
    /// that all stations share, it may be another station's packet.
    pub(crate) fn oldest_at(&self, now: Time, port: Port) -> Span {
        let (node, station) =
            if port.is_up() { (port.station() + 1, 0) } else { (0, port.station()) };
        self.queues[node].oldest_of(now, station, &self.store)
    }

    /// Checks that every moment was counted once, and that nothing is left behind when no station
    /// has anything to send.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check(&self) -> Result<(), String> {
        let air = &self.air;
        let (sum, until) = (air.idle + air.exchanges + air.collisions, self.idle_since);
        if sum != until.since(Time::ZERO) {
            return Err(format!("idle, exchanges and collisions are {sum} of {until}"));
        }
        let stations = self.counts.iter().fold(Span::ZERO, |sum, counts| sum + counts.exchanges);
        if stations != air.exchanges {
            let whole = air.exchanges;
            return Err(format!("stations used the air for {stations} and the medium for {whole}"));
        }
        let collided = self.counts.iter().fold(Span::ZERO, |sum, counts| sum + counts.collisions);
        if collided < air.collisions {
            let whole = air.collisions;
            return Err(format!(
                "stations' frames collided for {collided} and the medium's for {whole}"
            ));
        }
        let pending = self.pending_airtime();
        if self.next_wake().is_never() && !pending.is_zero() {
            return Err(format!(
                "{pending} of frames are in the hardware and nobody will send them"
            ));
        }
        Ok(())
    }

    /// Packets that wait at the access point, or at a station.
    pub fn backlog(&self, station: Option<u16>) -> u64 {
        self.queues[station.map_or(0, |station| usize::from(station) + 1)].backlog()
    }

    /// Time on the air of what is in the access point's hardware.
    pub fn pending_airtime(&self) -> Span {
        let staged = self.staged.iter().map(|staged| staged.airtime());
        let prepared = self.prepared.iter().map(HardwareQueue::airtime);
        prepared.chain(staged).fold(Span::ZERO, |sum, airtime| sum + airtime)
    }

    /// The longest time that a packet has waited there.
    pub fn oldest(&self, now: Time, station: Option<u16>) -> Span {
        self.queues[station.map_or(0, |station| usize::from(station) + 1)].oldest(now, &self.store)
    }

    /// An EDCA function has something to send.
    #[inline]
    fn announce(&mut self, now: Time, index: usize) {
        if !self.edcafs[index].has_frames {
            self.begin_contending(now, index, true);
        }
    }

    /// If it `draws`, a function whose backoff is over draws another one while the medium is busy.
    fn begin_contending(&mut self, now: Time, index: usize, draws: bool) {
        let is_answering = (index / CATEGORIES) as u16 == self.answering.0
            && self.answering.1 <= now
            && now < self.answering.1 + self.config.sifs;
        if index >= CATEGORIES && !self.is_present(index / CATEGORIES - 1, now) {
            return;
        }
        let idle_since = self.idle_since.max(self.reserved.until((index / CATEGORIES) as u16));
        let is_busy = (now < idle_since || self.txop.is_some()) && !is_answering;
        let edcaf = &mut self.edcafs[index];
        edcaf.has_frames = true;
        let earliest =
            (idle_since + self.extended).max(self.timeouts[index / CATEGORIES]) + edcaf.ifs;
        let slot = self.config.slot;
        if !edcaf.is_active {
            edcaf.is_active = true;
            self.active.push(index as u16);
            if is_busy && draws {
                edcaf.back_off(earliest);
            } else {
                edcaf.send_soon(now, earliest, slot, self.countdown);
            }
        } else if !is_busy && edcaf.sends_at(slot) < now {
            // The backoff after its last exchange is over.
            edcaf.send_soon(now, earliest, slot, self.countdown);
        }
        if self.txop.is_none() {
            self.next_access = self.next_access.min(edcaf.sends_at(slot));
        }
    }

    /// Finds who sends next if the medium stays idle.
    fn rearm(&mut self) {
        let slot = self.config.slot;
        let mut next = Time::NEVER;
        for index in &self.active {
            let edcaf = &self.edcafs[usize::from(*index)];
            if edcaf.has_frames {
                next = next.min(edcaf.sends_at(slot));
            }
        }
        self.next_access = next;
    }

    /// Shapers release packets.
    fn release_held_back(&mut self, now: Time, listener: &mut impl Listener<P>) {
        self.held_back_until = Time::NEVER;
        for node in 0..self.queues.len() {
            if self.queues[node].held_back_until() <= now {
                self.queues[node].wake();
                for ac in AccessCategory::ALL {
                    self.refill(now, node, ac, listener);
                }
            }
            self.wait_for_shaper(node);
        }
    }

    #[inline]
    fn wait_for_shaper(&mut self, node: usize) {
        self.held_back_until = self.held_back_until.min(self.queues[node].held_back_until());
    }

    /// Moves packets from the discipline above into the driver, as far as there is room.
    fn refill(
        &mut self,
        now: Time,
        node: usize,
        ac: AccessCategory,
        listener: &mut impl Listener<P>,
    ) {
        let fills_hardware = self.fills_hardware(node);
        let mut taken = 0;
        while self.queues[node].refill(now, ac, &mut self.store, listener) > 0 {
            taken += 1;
            // The hardware takes what comes, packet by packet.
            if fills_hardware {
                self.note(now, node, ac, 1, None, listener);
            }
        }
        if taken > 0 && !fills_hardware {
            self.note(now, node, ac, taken, None, listener);
        }
        self.wait_for_shaper(node);
    }

    /// `taken` more packets may be sent; `station` is set if they all belong to one station.
    fn note(
        &mut self,
        now: Time,
        node: usize,
        ac: AccessCategory,
        taken: u32,
        station: Option<usize>,
        listener: &mut impl Listener<P>,
    ) {
        let index = node * CATEGORIES + ac as usize;
        self.edcafs[index].pending += taken;
        if node > 0
            && taken > 0
            && let Some(multi) = &mut self.multi
        {
            multi.wants_trigger(now);
        }
        self.forget_dropped(node);
        if self.is_prepared(node) {
            // Whoever else had packets and could have more aggregates has them already.
            let can_have_more = |station: usize| {
                let Link { agreement, sending, .. } =
                    &self.links[Self::link_index(0, station, ac as usize)];
                !(self.is_stuck[ac as usize] && self.queues[0].has_same_turn(ac))
                    && agreement.may_send(sending.window)
            };
            if station.is_none_or(can_have_more) {
                self.prepare(now, ac, listener);
            }
            if self.prepared[ac as usize].is_empty() {
                return;
            }
        } else if node == 0 && self.staged.is_some() {
            self.stage(now, ac, station, listener);
            let (links, staged) = (&self.links, &mut self.staged);
            let repeats = |s| links[Self::link_index(0, s, ac as usize)].agreement.to_repeat > 0;
            if !staged.as_mut().is_some_and(|staged| staged.has_any(ac, repeats)) {
                return;
            }
        } else if self.edcafs[index].pending == 0 {
            return;
        }
        self.announce(now, index);
    }

    /// Whether aggregates of a node are ready before they are sent.
    fn is_prepared(&self, node: usize) -> bool {
        node == 0 && self.prepares
    }

    /// Whether a node's packets leave its queues before they are sent.
    fn fills_hardware(&self, node: usize) -> bool {
        node == 0 && (self.prepares || self.staged.is_some())
    }

    /// Whether airtime queue limits keep further packets for a station out.
    #[inline]
    fn hardware_has_enough(&self, node: usize, ac: AccessCategory, station: usize) -> bool {
        let waiting = self.queues[0].listed(ac);
        let has_enough =
            |staged: &Staged| staged.has_enough(ac, station) || !staged.is_served(ac, waiting);
        node == 0 && self.staged.as_deref().is_some_and(has_enough)
    }

    /// Lets packets into the hardware as far as the airtime queue limits allow; `arrived` is set if only that station
    /// has more than before.
    fn stage(
        &mut self,
        now: Time,
        ac: AccessCategory,
        arrived: Option<usize>,
        listener: &mut impl Listener<P>,
    ) {
        let Some(staged) = &mut self.staged else { return };
        let (queue, store) = (&mut self.queues[0], &mut self.store);
        if arrived.is_some_and(|station| staged.has_enough(ac, station))
            || !staged.is_served(ac, queue.listed(ac))
        {
            return;
        }
        let stations = self.config.stations.len();
        // mac80211 takes frames of the voice category to be sent one by one.
        let aggregates = self.config.limits.is_aggregating() && ac != AccessCategory::Vo;
        while let Some(station) =
            queue.choose(ac, stations, store, |_| None, |s| staged.has_enough(ac, s))
        {
            let cost = &self.links[Self::link_index(0, station, ac as usize)].cost;
            let (mut left, mut octets, port) = (0, 0, Port::down(station as u16));
            let (mut waiting, mut estimates) = (queue.waiting(station, ac), Span::ZERO);
            while !staged.has_enough(ac, station)
                && let Some(taken) = waiting.take_first(now, store, listener)
            {
                let (packet, since) = (store.at(taken), store.released(taken).arrived);
                (left, octets) = (left + 1, octets + packet.wire_len());
                listener.framed(now, port, packet, now.since(since));
                estimates += staged.push((ac, station), taken, cost, aggregates, store);
            }
            if left > 0 {
                // What is under way counts against its deficit.
                queue.charge(ac, station, estimates);
                listener.left(port, left, octets);
            }
        }
        self.forget_dropped(0);
    }

    /// There is room in the total of the airtime queue limits, which may have held any category back. Drivers of Linux ask
    /// the highest one first.
    fn stage_all(&mut self, now: Time, listener: &mut impl Listener<P>) {
        for ac in AccessCategory::ALL.into_iter().rev() {
            if self.edcafs[ac as usize].pending > 0 {
                self.note(now, 0, ac, 0, None, listener);
            }
        }
    }

    #[inline]
    fn forget_dropped(&mut self, node: usize) {
        let Some(dropped) = self.queues[node].take_dropped() else { return };
        for (ac, dropped) in dropped.into_iter().enumerate() {
            self.edcafs[node * CATEGORIES + ac].pending -= dropped;
        }
    }

    /// Fills the hardware of the access point (the loop of algorithm 3).
    fn prepare(&mut self, now: Time, ac: AccessCategory, listener: &mut impl Listener<P>) {
        let limit = self.edcafs[ac as usize].parameters.txop_limit;
        let limit = if limit.is_zero() { Span::from_secs(1) } else { limit };
        // A station may turn out to have nothing, because CoDel dropped it all or the window is
        // full.
        let mut patience = self.config.stations.len();
        self.is_stuck[ac as usize] = false;
        while patience > 0 {
            if self.prepared[ac as usize].is_full(self.config.queue.hardware) {
                let links = &self.links;
                let started = |s| links[Self::link_index(0, s, ac as usize)].first_to_send();
                self.queues[0].pass_over(ac, &self.store, started);
                return;
            }
            let Some(station) = self.choose(0, ac as usize) else { return };
            let link = Self::link_index(0, station, ac as usize);
            self.adapt(now, link);
            let sending = self.links[link].sending;
            let room = limit.saturating_sub(self.config.sifs + sending.block_ack);
            let room = room.saturating_sub(sending.protection(&self.config));
            let Some(ppdu) = self.build(now, 0, station, ac as usize, room, true, listener) else {
                // As long as the station whose turn it is has a full window, nobody gets another one.
                let agreement = &self.links[link].agreement;
                if self.rates.is_empty()
                    && !agreement.may_send(sending.window)
                    && self.queues[0].keeps_turn(ac)
                {
                    self.is_stuck[ac as usize] = true;
                    return;
                }
                patience -= 1;
                continue;
            };
            let airtime = sending.mode.txtime(ppdu.psdu.octets(&sending.mode));
            self.prepared[ac as usize].push(Prepared { ppdu, airtime });
        }
    }

    /// Recipients have decoded frames and pass them on in order.
    fn arrive(&mut self, now: Time, listener: &mut impl Listener<P>) {
        self.arrive_at = Time::NEVER;
        for number in 0..self.arriving.len() {
            let link = self.arriving[number] as usize;
            let (port, ac) = (link / CATEGORIES, AccessCategory::ALL[link % CATEGORIES]);
            let node = if port % 2 == 1 { port / 2 + 1 } else { 0 };
            if self.links[link].agreement.to_repeat > 0 {
                self.queues[node].rejoin(ac, if node == 0 { port / 2 } else { 0 });
            }
            let agreement = &mut self.links[link].agreement;
            let store = &mut self.store;
            let (mut octets, mut discarded) = (0, 0);
            let done = agreement.remove_done(|msdu| {
                if msdu.fate == Fate::Received {
                    octets += u64::from(msdu.ip_len);
                } else {
                    discarded += 1;
                    let packet = store.vacate(msdu.packet);
                    listener.given_up(now, Port::new(port as u16), packet);
                }
            });
            let counts = &mut self.counts[port];
            counts.delivered += u64::from(done - discarded);
            counts.delivered_bytes += octets;
            counts.discarded += u64::from(discarded);
            self.queues[node].release(ac, done);
            let mut has_room_again = false;
            if node == 0
                && let Some(staged) = &mut self.staged
            {
                let (station, was_full) = (port / 2, staged.is_full());
                let estimate = staged.release(ac, station, done);
                has_room_again = was_full && !staged.is_full();
                self.queues[0].refund(ac, station, estimate);
            }
            if self.is_prepared(node) {
                self.prepared[ac as usize].pop();
            }
            // What the driver has comes before what it takes from above. Usually its function counts down already.
            if has_room_again {
                self.stage_all(now, listener);
            }
            if self.fills_hardware(node) || !self.edcafs[node * CATEGORIES + ac as usize].has_frames
            {
                self.note(now, node, ac, 0, None, listener);
            } else {
                self.forget_dropped(node);
            }
            self.refill(now, node, ac, listener);
        }
        self.arriving.clear();
    }

    fn link_index(node: usize, station: usize, ac: usize) -> usize {
        let port = if node == 0 { 2 * station } else { 2 * (node - 1) + 1 };
        port * CATEGORIES + ac
    }

    /// The station whose turn it is at an EDCA function, as the queue counts stations.
    fn choose(&mut self, node: usize, ac: usize) -> Option<usize> {
        if node > 0 {
            return Some(0);
        }
        let links = &self.links;
        let category = AccessCategory::ALL[ac];
        let started = |s| links[Self::link_index(node, s, ac)].first_to_send();
        self.queues[node]
            .choose(category, self.config.stations.len(), &self.store, started, |_| false)
    }

    /// The station whose BlockAck the access point must request.
    fn choose_request(&self, node: usize, ac: usize) -> Option<usize> {
        let stations = if node == 0 { self.config.stations.len() } else { 1 };
        if self.bars_due == 0 {
            return None;
        }
        (0..stations).find(|s| self.links[Self::link_index(node, *s, ac)].agreement.bar_due)
    }

    /// Puts together what a link may send in a PPDU of at most `limit`. If `is_exempt`, the first
    /// MPDU may take longer.
    #[expect(clippy::too_many_arguments, reason = "who sends what to whom, and how much of it")]
    fn build(
        &mut self,
        now: Time,
        node: usize,
        station: usize,
        ac: usize,
        limit: Span,
        is_exempt: bool,
        listener: &mut impl Listener<P>,
    ) -> Option<Ppdu> {
        let mode = self.links[Self::link_index(node, station, ac)].sending.mode;
        self.build_in(now, (node, station, ac), &mode, limit, 0, is_exempt, listener)
    }

    /// Whether the first frame that [`Medium::build_in`] would send fits; false if there is none.
    pub(super) fn next_fits(
        &mut self,
        now: Time,
        (node, station, ac): (usize, usize, usize),
        mode: &Mode,
        limit: Span,
        reserved: u32,
        listener: &mut impl Listener<P>,
    ) -> bool {
        let agreement = &self.links[Self::link_index(node, station, ac)].agreement;
        let mpdu = if agreement.to_repeat > 0 {
            agreement.first_to_repeat().map(|msdu| msdu.mpdu_octets)
        } else {
            let (queue, store) = (&mut self.queues[node], &mut self.store);
            let mut waiting = queue.waiting(station, AccessCategory::ALL[ac]);
            let first = waiting.first(now, store, listener);
            let body = |ip_len| crate::mac::aggregation::msdu_octets(ip_len);
            let is_qos = self.config.is_qos;
            first.map(|first| crate::mac::aggregation::mpdu_octets(body(first.ip_len), is_qos))
        };
        let mut alone = Psdu::default();
        let limit = limit.min(self.config.limits.ppdu_time);
        mpdu.is_some_and(|mpdu| {
            alone.add(mpdu);
            mode.txtime(alone.octets(mode) + reserved) <= limit
        })
    }

    /// The same in another mode, where the PSDU is to have room for `reserved` octets more.
    #[expect(clippy::too_many_arguments, reason = "who sends what to whom, and how much of it")]
    fn build_in(
        &mut self,
        now: Time,
        (node, station, ac): (usize, usize, usize),
        mode: &Mode,
        limit: Span,
        reserved: u32,
        is_exempt: bool,
        listener: &mut impl Listener<P>,
    ) -> Option<Ppdu> {
        let index = Self::link_index(node, station, ac);
        let link = &mut self.links[index];
        let choice = link.choice;
        let store = &mut self.store;
        // What is in the hardware has left the queues.
        let (mut waiting, is_staged) = match &mut self.staged {
            Some(staged) if node == 0 => (Waiting::Chain(staged.packets(ac, station)), true),
            _ => (self.queues[node].waiting(station, AccessCategory::ALL[ac]), false),
        };
        let limits = &self.config.limits;
        let limit = limit.min(limits.ppdu_time);
        let most = mode.largest_psdu(limit).min(link.sending.longest).saturating_sub(reserved);
        self.ppdus = self.ppdus.wrapping_add(1).max(1);
        let ppdu = self.ppdus;
        let mut psdu = Psdu::default();
        // The formats before 802.11n have no aggregates.
        let (frames, amsdu_octets) = match mode.format() <= Format::NonHt {
            true => (1, 0),
            false => (u32::from(limits.mpdus), limits.amsdu_octets),
        };
        let fits = |psdu: &Psdu, mpdu: u32| {
            if psdu.mpdus > 0 {
                return psdu.mpdus < frames && psdu.octets_with(mpdu) <= most;
            }
            let mut alone = Psdu::default();
            alone.add(mpdu);
            is_exempt || mode.txtime(alone.octets(mode) + reserved) <= limit
        };
        // Frames that were sent before and not acknowledged come first.
        if link.agreement.to_repeat > 0 {
            let mut repeated = 0;
            for msdu in link.agreement.iter_mut() {
                if msdu.ppdu != 0 || msdu.fate != Fate::Open {
                    continue;
                }
                if msdu.mpdu_octets > 0 {
                    if !fits(&psdu, msdu.mpdu_octets) {
                        break;
                    }
                    psdu.add(msdu.mpdu_octets);
                    repeated += 1;
                }
                msdu.ppdu = ppdu;
            }
            link.agreement.to_repeat -= repeated;
            if link.agreement.to_repeat > 0 {
                let link = index as u32;
                return (psdu.mpdus > 0).then_some(Ppdu { link, number: ppdu, choice, psdu });
            }
        }
        let is_qos = self.config.is_qos;
        // Without A-MSDUs, packets that leave in their order have an MPDU each.
        if let Waiting::Chain(chain) = &mut waiting
            && amsdu_octets == 0
        {
            let around = crate::mac::aggregation::around_packet(is_qos);
            let first = store.first(chain).map(|first| first.ip_len + around);
            let mut room = link.agreement.room(link.sending.window);
            if psdu.mpdus == 0 && !first.is_some_and(|mpdu| fits(&psdu, mpdu)) {
                room = 0;
            }
            let (port, mut filled, mut octets) = (Port::new((index / CATEGORIES) as u16), psdu, 0);
            let full = (psdu.mpdus + room).min(frames.max(1));
            while filled.mpdus < full
                && let Some((next, packet)) = store.pop_if(chain, |next| {
                    filled.mpdus == 0 || filled.octets_with(next.ip_len + around) <= most
                })
            {
                if !is_staged {
                    octets += packet.wire_len();
                    listener.framed(now, port, packet, now.since(next.arrived));
                }
                let mpdu = next.ip_len + around;
                filled.add(mpdu);
                link.agreement.append(link::msdu(&next, mpdu, ppdu));
            }
            if octets > 0 {
                listener.left(port, filled.mpdus - psdu.mpdus, octets);
            }
            psdu = filled;
            let link = index as u32;
            return (psdu.mpdus > 0).then_some(Ppdu { link, number: ppdu, choice, psdu });
        }
        while link.agreement.has_room(link.sending.window) {
            let (mut body, mut mpdu) = (0, 0);
            let next_fits = |next: &Released| {
                body = crate::mac::aggregation::msdu_octets(next.ip_len);
                mpdu = crate::mac::aggregation::mpdu_octets(body, is_qos);
                fits(&psdu, mpdu)
            };
            let first = waiting.pop_if(now, store, listener, next_fits);
            let Some(first) = first else { break };
            if !is_staged {
                frame(now, &first, store, listener);
            }
            psdu.add(mpdu);
            link.agreement.append(link::msdu(&first, mpdu, ppdu));
            // Further packets join it in an A-MSDU. Queues in the MAC are asked for the next one in any case, since
            // their CoDel drops when it is asked.
            let mut joined = 1;
            while let Some(next) = waiting.first(now, store, listener) {
                if amsdu_octets == 0 {
                    break;
                }
                let longer = link::amsdu_octets(body, joined, next.ip_len);
                let with = crate::mac::aggregation::mpdu_octets(longer, is_qos);
                let octets = psdu.octets_with_last(with);
                if longer > amsdu_octets || octets > most {
                    break;
                }
                let next = waiting.pop(store)?;
                if !is_staged {
                    frame(now, &next, store, listener);
                }
                link.agreement.append(link::msdu(&next, 0, ppdu));
                joined += 1;
                (body, mpdu) = (longer, with);
                psdu.replace_last(mpdu);
                if let Some(first) = link.agreement.first_of_last(joined) {
                    first.mpdu_octets = mpdu;
                }
            }
        }
        self.forget_dropped(node);
        (psdu.mpdus > 0).then_some(Ppdu { link: index as u32, number: ppdu, choice, psdu })
    }
}

/// A packet has been put into a frame.
fn frame<P: Reshape>(
    now: Time,
    released: &Released,
    store: &Store<P>,
    listener: &mut impl Listener<P>,
) {
    let packet = store.at(released.slot);
    listener.framed(now, released.port, packet, now.since(released.arrived));
    listener.left(released.port, 1, packet.wire_len());
}
