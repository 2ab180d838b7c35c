//! What nobody needs to know at once is done later, many packets at a time, each at its own time.
//!
//! A source of datagrams depends on nothing but the time, so its packets enter their first link when another packet
//! does, or when the first of them may come out. A carrier says until when packets that enter change nothing of what
//! it does, so packets enter it then, or when it acts. Whoever could see a difference is preceded by what was put off,
//! in the order of the agenda: by time, then by place.

use alloc::vec::Vec;

use sojourn_core::{Event, Observer, Packet, PortId, Queued, Span, Time, Who};
use sojourn_wire::{Exit, Wire};

use super::way::FlowState;
use super::{Engine, SENDER, end_of};
use crate::agenda::Place;

/// A wake of the agenda: everything with an earlier time, or the same time and a lower place, is over.
pub(super) type Moment = (Time, u32);

/// What is put off in a world. All is empty where nothing ever is.
pub(super) struct Late {
    links: Vec<LateLink>,
    /// By carrier, the links whose packets all enter it next.
    carriers: Vec<Vec<u32>>,
    /// The end of the row of the time series, beyond which nothing is put off; never where nothing is at all.
    row: Time,
    /// The last wake of an end, or of a place behind them; of several at one time the one with the highest place.
    passed: Moment,
}

/// One for each link of the world.
#[derive(Default)]
struct LateLink {
    sends: Sends,
    carrier: Option<u32>,
}

/// When the next datagram of each source leaves, and its flow; in this order, from `first` on and around.
#[derive(Default)]
struct Sends {
    ring: Vec<(Time, u32)>,
    first: usize,
}

impl Sends {
    fn new(mut sends: Vec<(Time, u32)>) -> Self {
        sends.sort_unstable();
        Self { ring: sends, first: 0 }
    }

    #[inline]
    fn first(&self) -> Option<(Time, u32)> {
        self.ring.get(self.first).copied()
    }

    /// What was first comes at `send` again: its place is the last now, unless others come later.
    #[inline]
    fn put_off_first(&mut self, send: (Time, u32)) {
        let len = self.ring.len();
        let mut place = self.first;
        self.first = if place + 1 == len { 0 } else { place + 1 };
        while place != self.first {
            let ahead = if place == 0 { len - 1 } else { place - 1 };
            if self.ring[ahead] <= send {
                break;
            }
            self.ring[place] = self.ring[ahead];
            place = ahead;
        }
        self.ring[place] = send;
    }

    /// The source that is first sends no more.
    fn end_first(&mut self) {
        self.ring.rotate_left(self.first);
        self.ring.remove(0);
        self.first = 0;
    }
}

impl Late {
    /// Finds what can be put off, and tells the links.
    pub(super) fn new(
        flows: &mut [FlowState],
        links: &mut [Wire<Packet>],
        carrier_of: &[u32],
    ) -> Self {
        let carriers = carrier_of.iter().max().map_or(0, |last| *last as usize + 1);
        let mut late = Self::nothing();
        late.links.resize_with(links.len(), LateLink::default);
        late.carriers.resize_with(carriers, Vec::new);
        for port in (0..links.len() as u16).map(PortId) {
            let link = &links[port.index()];
            // Without any delay a wake at the moment of a send would come before it.
            if link.exit() == Exit::OwnDelays || link.least_delay().is_zero() {
                continue;
            }
            let sends = sends_into(port, flows);
            // Of other senders so few packets can be put off at a time that it does not pay.
            if sends.ring.is_empty() {
                continue;
            }
            let carrier = next_carrier(port, flows, links.len(), carrier_of);
            if let Some(carrier) = carrier {
                late.carriers[carrier as usize].push(u32::from(port.0));
            }
            links[port.index()].be_late();
            late.links[port.index()] = LateLink { sends, carrier };
            late.row = Time::ZERO;
        }
        if late.row.is_never() {
            return Self::nothing();
        }
        late.leave_carriers_in_time(flows, links.len(), carrier_of);
        late
    }

    /// If something enters a carrier from a link in time, nothing enters it late: of two links whose packets come at
    /// one time it would not be known which is first.
    fn leave_carriers_in_time(&mut self, flows: &[FlowState], links: usize, carrier_of: &[u32]) {
        for way in flows.iter().flat_map(|flow| [&flow.forward.links, &flow.reverse.links]) {
            for hop in way.windows(2) {
                let Some(next) = hop[1].index().checked_sub(links) else { continue };
                let carrier = carrier_of[next] as usize;
                let Some(link) = self.links.get(hop[0].index()) else { continue };
                if link.carrier.is_none() {
                    for late in self.carriers[carrier].drain(..) {
                        self.links[late as usize].carrier = None;
                    }
                }
            }
        }
    }

    /// An end is woken, or a place behind them in the agenda.
    #[inline(always)]
    pub(super) fn pass(&mut self, now: Time, place: u32) {
        self.passed =
            if self.passed.0 < now { (now, place) } else { (now, place.max(self.passed.1)) };
    }

    pub(super) fn nothing() -> Self {
        Self { links: Vec::new(), carriers: Vec::new(), row: Time::NEVER, passed: (Time::ZERO, 0) }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.links.is_empty()
    }

    /// The last moment before the end of the row, and the end itself: what was put off is caught up with at both.
    pub(super) fn next_stop(&self, now: Time) -> Time {
        let before = self.row - Span::from_nanos(1);
        if self.row.is_never() || now >= before { self.row } else { before }
    }

    pub(super) fn set_row(&mut self, end: Time) {
        if !self.row.is_never() {
            self.row = end;
        }
    }
}

/// The sources of datagrams whose packets enter at `port`.
fn sends_into(port: PortId, flows: &mut [FlowState]) -> Sends {
    let enter = (0..).zip(flows).filter(|(_, flow)| flow.forward.links.first() == Some(&port));
    let sends = enter.filter_map(|(number, flow)| {
        flow.ends.datagrams().map(|source| (source.next_send(), number))
    });
    Sends::new(sends.filter(|(at, _)| !at.is_never()).collect())
}

/// The carrier that every packet enters after the link `port`, if it is always the same.
fn next_carrier(
    port: PortId,
    flows: &[FlowState],
    links: usize,
    carrier_of: &[u32],
) -> Option<u32> {
    let ways = flows.iter().flat_map(|flow| [&flow.forward.links, &flow.reverse.links]);
    let mut next = ways.flat_map(|way| {
        let here = (1..=way.len()).filter(|hop| way[hop - 1] == port);
        here.map(|hop| {
            let next = way.get(hop)?.index().checked_sub(links)?;
            carrier_of.get(next).copied()
        })
    });
    let first = next.next()??;
    next.all(|carrier| carrier == Some(first)).then_some(first)
}

impl<O: Observer> Engine<'_, O> {
    /// Sources whose datagrams are put off are never woken, but their links.
    pub(super) fn begin_late(&mut self) {
        for link in 0..self.late.links.len() {
            for index in 0..self.late.links[link].sends.ring.len() {
                let (_, flow) = self.late.links[link].sends.ring[index];
                self.agenda.set(self.end_place(flow as usize, SENDER), Time::NEVER);
            }
            self.reschedule_late(link);
        }
    }

    /// What is over now: the wakes of ends up to the last one, or of no end yet but of all links.
    pub(super) fn moment(&self) -> Moment {
        self.late.passed.max((self.now, self.ways))
    }

    /// Does all that was put off and would have been done before `before`.
    pub(super) fn catch_up(&mut self, before: Moment) {
        for link in 0..self.late.links.len() {
            self.feed(link, before);
        }
        for carrier in 0..self.late.carriers.len() {
            self.take_late(carrier, before);
            let wake = self.carriers[carrier].next_wake();
            self.reschedule_carrier(carrier, wake);
        }
    }

    /// A packet that nobody put off enters a link to which others come late, or from which they go late.
    pub(super) fn offer_late(&mut self, link: usize, packet: &Packet) {
        self.feed(link, self.moment());
        let state = &mut self.links[link];
        state.settle(self.now, self.observer);
        let is_asleep = state.under_way().is_empty();
        state.cross(self.now, packet, self.observer);
        if is_asleep {
            self.reschedule_late(link);
        }
    }

    /// A packet may come out of a link to which others come late.
    pub(super) fn wake_late_link(&mut self, link: usize) {
        if self.links[link].under_way().next() > self.now {
            self.fill(link, self.moment());
        }
        let arrived = self.links[link].under_way().pop_due(self.now);
        if self.links[link].under_way().is_empty() {
            self.fill(link, self.moment());
        }
        self.reschedule_late(link);
        if let Some(packet) = &arrived {
            self.pass_on(packet);
        }
    }

    /// Packets enter a carrier late, those that would have come before `before`.
    #[inline]
    pub(super) fn take_late(&mut self, carrier: usize, before: Moment) {
        if self.late.carriers.get(carrier).is_some_and(|links| !links.is_empty()) {
            self.take_all_late(carrier, before);
        }
    }

    #[inline(never)]
    fn take_all_late(&mut self, carrier: usize, before: Moment) {
        loop {
            let mut first = before;
            for index in 0..self.late.carriers[carrier].len() {
                let link = self.late.carriers[carrier][index];
                if self.links[link as usize].under_way().is_empty() {
                    self.fill(link as usize, before);
                }
                first = first.min((self.links[link as usize].under_way().next(), link));
            }
            if first == before {
                return;
            }
            // Usually there is only one link, so the next packet is from it, too.
            let (mut at, link) = first;
            let is_only = self.late.carriers[carrier].len() == 1;
            loop {
                let state = &mut self.links[link as usize];
                let packet = state.under_way().pop_in_place();
                let way = self.flows[packet.flow.index()].way(packet.direction);
                let port = way.links[usize::from(packet.hop)];
                self.carriers[carrier].put_in(at, port, packet, self.observer);
                let next = state.under_way().next();
                if !is_only || (next, link) >= before {
                    break;
                }
                at = next;
            }
        }
    }

    /// When a carrier must be woken that would wake at `wake` if nothing came to it.
    #[inline(always)]
    pub(super) fn or_late_arrival(&self, carrier: usize, wake: Time) -> Time {
        if self.late.is_nothing() { wake } else { self.or_first_late(carrier, wake) }
    }

    #[inline(never)]
    fn or_first_late(&self, carrier: usize, wake: Time) -> Time {
        match self.late.carriers.get(carrier) {
            Some(links) if !links.is_empty() => {
                let first = links.iter().map(|link| self.late_wake(*link as usize)).min();
                let from = self.carriers[carrier].heeds_from();
                wake.min(first.unwrap_or(Time::NEVER).max(from))
            }
            _ => wake,
        }
    }

    /// When the next packet comes out of a link, or the first moment at which it may.
    fn late_wake(&self, link: usize) -> Time {
        let state = &self.links[link];
        let arrival = state.next_arrival();
        if !arrival.is_never() {
            return arrival;
        }
        let send = self.late.links[link].sends.first();
        let arrival = send.map_or(Time::NEVER, |(at, _)| at + state.least_delay());
        state.next_wake().min(arrival)
    }

    fn reschedule_late(&mut self, link: usize) {
        match self.late.links[link].carrier {
            Some(carrier) => {
                let wake = self.carriers[carrier as usize].next_wake();
                self.reschedule_carrier(carrier as usize, wake);
            }
            None => {
                let wake = self.late_wake(link);
                self.agenda.set(Place(link as u32), wake);
            }
        }
    }

    /// Brings under way what leaves before `before`.
    fn fill(&mut self, link: usize, before: Moment) {
        self.feed(link, before);
        self.links[link].settle(before.0, self.observer);
    }

    /// Datagrams that leave before `before` enter their first link.
    fn feed(&mut self, link: usize, before: Moment) {
        let first_end = self.ways;
        let Self { late, links, flows, observer, sent, .. } = self;
        let (sends, state) = (&mut late.links[link].sends, &mut links[link]);
        while let Some((at, flow)) = sends.first()
            && (at, first_end + end_of(flow as usize, SENDER)) < before
        {
            let Some(source) = flows[flow as usize].ends.datagrams() else {
                sends.end_first();
                continue;
            };
            while source.next_send() <= at
                && let Some(packet) = &source.send(at)
            {
                *sent += u64::from(packet.wire_len());
                observer.record(at, Who::Flow(packet.flow), &Event::Sent { packet });
                state.cross(at, packet, *observer);
            }
            match source.next_send() {
                Time::NEVER => sends.end_first(),
                next => sends.put_off_first((next, flow)),
            }
        }
    }
}
