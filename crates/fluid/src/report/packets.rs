//! Datagrams and pings go with the fluid one by one.
//!
//! A packet leaves a queue when the fluid does that came with it. Of a stream's datagrams as many are dropped as its
//! curves lose. A ping is in no curve: the share that others lose where and when it passes is what is expected to be
//! lost of it, and each time that this adds up to a whole ping, one is lost.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{Body, Direction, DropReason, Event, FlowId, Observer, Packet, Who};
use sojourn_scenario::Scenario;

use crate::capacity::Capacity;
use crate::curves::{AT_HEAD, AT_TAIL, CAME, Curves, IN, MEDIUM, OUT, Passed, REFUSED, Sparse};
use crate::world::{Source, Stream, World};

use super::{just_before, next_reason, packet_of, port, span, time};

/// The packets of a flow that are under way.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    /// The number of the first one, and when each passed the last place that it came to; of one that is lost it is not
    /// a number.
    first: u64,
    passed: VecDeque<f64>,
    links: Vec<Link>,
    /// Seconds between two of them.
    interval: f64,
    /// Losses are counted in whole packets from this part of one on.
    part: f64,
    looked: f64,
}

/// A link on the way, and its queue.
#[derive(Clone, Debug)]
struct Link {
    port: usize,
    direction: Direction,
    before: f64,
    tail: End,
    head: End,
    /// When what had left by the last look had come, and what has by this one.
    came: [f64; 2],
    /// How a ping meets it.
    crossing: Option<Crossing>,
}

#[derive(Clone, Debug)]
struct Crossing {
    queue: Option<usize>,
    capacity: Option<Capacity>,
    room: usize,
    waiting: usize,
    loss: f64,
}

/// One end of a queue.
#[derive(Clone, Debug, Default)]
struct End {
    /// The number of the packet that comes to it next.
    next: u64,
    seen: Passed,
    /// Packets that should have been lost by the last look and by this one, by reason, and those that were.
    due: [[f64; 3]; 2],
    told: [u64; 3],
    /// Since the last look everything was lost.
    is_closed: bool,
    /// Of a ping: what is expected to be lost of one that passes in this look.
    shares: Option<[f64; 3]>,
}

impl End {
    /// What came here of a stream, and what of it was lost.
    fn see(&mut self, seen: Passed, packet: f64) {
        let Passed { came, lost } = seen;
        let sum = |lost: [f64; 3]| lost.iter().sum::<f64>();
        let more = sum(lost) - sum(self.seen.lost);
        self.is_closed = more > 0.0 && more >= (came - self.seen.came) * (1.0 - CLOSE);
        self.seen = seen;
        self.due = [self.due[1], lost.map(|bytes| bytes / packet)];
    }

    /// What came here of the packets beside which a ping waits, and the share that the medium loses of the rest.
    fn see_others(&mut self, seen: Passed, medium: f64) {
        let came = seen.came - self.seen.came;
        let mut shares = [0.0; 3];
        if came > 0.0 {
            for (of, share) in shares[..MEDIUM].iter_mut().enumerate() {
                *share = ((seen.lost[of] - self.seen.lost[of]) / came).clamp(0.0, 1.0);
            }
        }
        shares[MEDIUM] = (1.0 - shares[0] - shares[1]).max(0.0) * medium;
        self.is_closed = shares.iter().sum::<f64>() >= 1.0 - CLOSE;
        self.seen = seen;
        self.shares = Some(shares);
    }

    /// For which reason the packet is lost that passes after this part of the time since the last look.
    fn pass(&mut self, when: f64, part: f64) -> Option<usize> {
        self.next += 1;
        if let Some(shares) = self.shares {
            self.due[1].iter_mut().zip(shares).for_each(|(due, share)| *due += share);
            self.due[0] = self.due[1];
        }
        let [before, now] = self.due;
        let due = [0, 1, 2].map(|of| before[of] + when * (now[of] - before[of]));
        let told = self.told.iter().sum::<u64>() as f64;
        let is_due = due.iter().sum::<f64>() + part >= told + 1.0 - CLOSE;
        (is_due || self.is_closed).then(|| next_reason(&now, &mut self.told))
    }
}

/// Shares and counts are the same but for rounding.
const CLOSE: f64 = 1e-6;

/// A look at a flow.
#[derive(Clone, Copy)]
struct Look<'a> {
    flow: &'a Stream,
    scenario: &'a Scenario,
    looked: f64,
    now: f64,
}

impl Look<'_> {
    fn is_over(&self, moment: f64) -> bool {
        time(moment) <= just_before(self.now)
    }

    fn who(&self) -> Who {
        Who::Flow(FlowId(self.flow.id as u32))
    }
}

impl Packets {
    /// `None` for a flow of TCP.
    pub(super) fn of(flow: &Stream, world: &World, part: f64) -> Option<Self> {
        let link = |port, before, direction| Link {
            port,
            direction,
            before,
            tail: End::default(),
            head: End::default(),
            came: [0.0; 2],
            crossing: None,
        };
        let (interval, links) = match flow.source {
            Source::Tcp { .. } => return None,
            Source::Udp(rate) => {
                let hops = flow.hops.iter();
                let of = |hop: &crate::world::Hop| {
                    link(world.links[hop.link].port, hop.before, Direction::Forward)
                };
                (flow.packet / rate, hops.map(of).collect())
            }
            Source::Ping(interval) => {
                let of = |crossing: &crate::world::Crossing| Link {
                    crossing: Some(Crossing {
                        queue: crossing.link,
                        capacity: crossing.capacity.clone(),
                        room: crossing.room,
                        waiting: 0,
                        loss: crossing.loss,
                    }),
                    ..link(crossing.port, crossing.before, crossing.direction)
                };
                (interval, flow.crossings.iter().map(of).collect())
            }
        };
        Some(Self { first: 0, passed: VecDeque::new(), links, interval, part, looked: 0.0 })
    }

    /// What they did since the last look.
    pub(super) fn look(
        &mut self,
        curves: &impl Curves,
        scenario: &Scenario,
        at: usize,
        observer: &mut impl Observer,
    ) {
        let flow = &curves.world().flows[at];
        let look = Look { flow, scenario, looked: self.looked, now: curves.now() };
        self.send(&look, observer);
        for place in 0..self.links.len() {
            self.links[place].see(curves, &look, at, place);
            self.come(&look, place, observer);
            self.leave(&look, place, observer);
        }
        self.arrive(&look, observer);
        self.looked = look.now;
    }

    /// After the last that was sent.
    fn end(&self) -> u64 {
        self.first + self.passed.len() as u64
    }

    fn sent_at(&self, flow: &Stream, number: u64) -> f64 {
        flow.begins + number as f64 * self.interval
    }

    fn passed(&mut self, number: u64) -> &mut f64 {
        &mut self.passed[(number - self.first) as usize]
    }

    fn packet(&self, look: &Look<'_>, number: u64, direction: Direction) -> Packet {
        let sent = time(self.sent_at(look.flow, number));
        let number = number as u32;
        let body = match look.flow.source {
            Source::Ping(_) => Body::Echo { number, asked: sent },
            _ => Body::Datagram { number, frame: number, last: true },
        };
        Packet { direction, ..packet_of(look.flow, look.scenario, 1, sent, body) }
    }

    fn send(&mut self, look: &Look<'_>, observer: &mut impl Observer) {
        loop {
            let number = self.end();
            let sent = self.sent_at(look.flow, number);
            if sent >= look.flow.ends || !look.is_over(sent) {
                return;
            }
            self.passed.push_back(sent);
            let packet = self.packet(look, number, Direction::Forward);
            observer.record(time(sent), look.who(), &Event::Sent { packet: &packet });
        }
    }

    /// To the queue of a link.
    fn come(&mut self, look: &Look<'_>, place: usize, observer: &mut impl Observer) {
        let end = match place.checked_sub(1) {
            None => self.end(),
            Some(before) => self.links[before].head.next,
        };
        while self.links[place].tail.next < end {
            let number = self.links[place].tail.next;
            let came = *self.passed(number) + self.links[place].before;
            let link = &mut self.links[place];
            if came.is_nan() {
                link.tail.next += 1;
                continue;
            }
            if !look.is_over(came) {
                return;
            }
            let why = link.tail.pass(share(came, [look.looked, look.now]), self.part);
            let mut why = why.map(|why| AT_TAIL[why]);
            if let Some(crossing) = &mut link.crossing
                && why.is_none()
            {
                why = crossing.is_full(came).then_some(DropReason::Full);
                crossing.waiting += usize::from(why.is_none());
            }
            *self.passed(number) = came;
            self.lose(look, place, number, why, observer);
        }
    }

    /// From the queue of a link, over its medium.
    fn leave(&mut self, look: &Look<'_>, place: usize, observer: &mut impl Observer) {
        while self.links[place].head.next < self.links[place].tail.next {
            let number = self.links[place].head.next;
            let came = *self.passed(number);
            let link = &mut self.links[place];
            if came.is_nan() {
                link.head.next += 1;
                continue;
            }
            if came > link.came[1] {
                return;
            }
            let mut left = look.looked + share(came, link.came) * (look.now - look.looked);
            if let Some(capacity) = link.crossing.as_ref().and_then(|it| it.capacity.as_ref()) {
                left = capacity.opens(left);
            }
            if !look.is_over(left) {
                return;
            }
            let why = link.head.pass(share(left, [look.looked, look.now]), self.part);
            let why = why.map(|why| AT_HEAD[why]);
            if let Some(crossing) = &mut link.crossing {
                crossing.waiting -= 1;
            }
            let (who, direction) = (Who::Port(port(link.port)), link.direction);
            if why.is_none_or(|why| why == DropReason::Medium) {
                let packet = self.packet(look, number, direction);
                let event = Event::Dequeued { packet: &packet, sojourn: span(left - came) };
                observer.record(time(left), who, &event);
            }
            *self.passed(number) = left;
            self.lose(look, place, number, why, observer);
        }
    }

    /// If there is a reason, the packet is lost where and when it last passed.
    fn lose(
        &mut self,
        look: &Look<'_>,
        place: usize,
        number: u64,
        why: Option<DropReason>,
        observer: &mut impl Observer,
    ) {
        let Some(why) = why else { return };
        let now = time(core::mem::replace(self.passed(number), f64::NAN));
        let link = &self.links[place];
        let packet = self.packet(look, number, link.direction);
        observer.record(now, Who::Port(port(link.port)), &Event::Dropped { packet: &packet, why });
    }

    /// At the receiver, or as a reply at the sender.
    fn arrive(&mut self, look: &Look<'_>, observer: &mut impl Observer) {
        let end = self.links.last().map_or(self.end(), |last| last.head.next);
        let is_ping = matches!(look.flow.source, Source::Ping(_));
        let after = if is_ping { look.flow.to_sender } else { look.flow.to_receiver };
        while self.first < end {
            let arrived = self.passed[0] + after;
            if !arrived.is_nan() && !look.is_over(arrived) {
                return;
            }
            let direction = if is_ping { Direction::Reverse } else { Direction::Forward };
            let packet = self.packet(look, self.first, direction);
            self.passed.pop_front();
            self.first += 1;
            if arrived.is_nan() {
                continue;
            }
            let now = time(arrived);
            observer.record(now, look.who(), &Event::Arrived { packet: &packet });
            let event = match is_ping {
                true => Event::Ping { rtt: now.since(packet.sent) },
                false => Event::Delivered { bytes: look.flow.payload.into() },
            };
            observer.record(now, look.who(), &event);
        }
    }
}

impl Link {
    fn see(&mut self, curves: &impl Curves, look: &Look<'_>, at: usize, place: usize) {
        let Some(crossing) = &self.crossing else {
            let (row, drops) = (curves.of_hop(at, place), curves.drops(at, place));
            let packet = look.flow.packet;
            self.tail.see(Passed { came: row[IN] + row[REFUSED], lost: drops.tail }, packet);
            self.head.see(Passed { came: row[OUT], lost: drops.head }, packet);
            self.came = [self.came[1], row[CAME]];
            return;
        };
        let alone = Sparse { came_at: look.now, ..Sparse::default() };
        let sparse = crossing.queue.map_or(alone, |queue| curves.sparse(queue));
        self.tail.see_others(sparse.tail, 0.0);
        self.head.see_others(sparse.head, crossing.loss);
        self.came = [self.came[1], sparse.came_at];
    }
}

impl Crossing {
    /// Pings alone fill a queue only while nothing gets through.
    fn is_full(&self, now: f64) -> bool {
        let is_shut = |capacity: &Capacity| capacity.opens(now) > now;
        let is_alone = self.queue.is_none();
        is_alone && self.waiting >= self.room && self.capacity.as_ref().is_some_and(is_shut)
    }
}

/// The part of a time that is over.
fn share(moment: f64, [from, until]: [f64; 2]) -> f64 {
    if until > from { ((moment - from) / (until - from)).clamp(0.0, 1.0) } else { 0.0 }
}
