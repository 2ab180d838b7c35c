//! One direction of a link at work: loss before the queue, the queue, the transmitter, loss and
//! jitter after it, and the pipe in which packets propagate.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{
    DropReason, Event, Observer, PortId, Purpose, QueueSample, Rate, Span, Stream, StreamAddress,
    Time, Who,
};
use sojourn_link::{
    DelayLine, Departure, Jitter, JitterConfig, Loss, LossConfig, Policer, PolicerConfig, Reorder,
    ReorderConfig, Transmitter,
};
use sojourn_qdisc::{Admission, AnyQdisc, Backlog, Config, Dequeue, Enqueue, Qdisc, Sink};

use crate::{Books, Carried, Carrier, Link};

/// One direction of a link at work. It works late: only when somebody needs the result, it does
/// what was due, each step at the time at which it was due.
pub struct Wire<P: Carried> {
    queue: Queue<P>,
    line: Line<P>,
}

/// Where packets wait for the transmitter.
#[expect(clippy::large_enum_variant, reason = "one per link, and never moved")]
enum Queue<P: Carried> {
    /// First in, first out: packets wait in the line's own ring, so they need not be moved when
    /// they are sent.
    InLine(Admission),
    Managed(AnyQdisc<P>),
}

/// A link without its queue.
struct Line<P> {
    port: PortId,
    transmitter: Transmitter,
    policer: Option<Policer>,
    entry_loss: Loss,
    loss: Loss,
    jitter: Option<Jitter>,
    reorder: Option<Reorder>,
    /// Whether packets are looked at as they come, because `policer` or `entry_loss` may keep them out or because they may
    /// have several segments; and whether `loss`, `jitter` or `reorder` does anything to one that was sent: asked of
    /// every packet, and mostly not so.
    watches_entry: bool,
    disturbs: bool,
    delay: Span,
    /// How much of `delay` is not the link's own.
    lengthened: Span,
    /// After the delay became shorter: when the packets arrive that were sent before, which later
    /// ones do not overtake.
    not_before: Time,
    /// Packets on their way to what comes after this link. If the queue is [`Queue::InLine`], the
    /// packets that wait are behind them.
    pipe: DelayLine<P>,
    /// When the next packet must be taken from the queue: never, if nothing waits.
    due: Time,
    /// Where packets go after this link.
    exit: Exit,
    entry_random: Stream,
    loss_random: Stream,
    jitter_random: Stream,
    reorder_random: Stream,
    counts: Counts,
    /// Packets with contents that were dropped or lost, for the owner to free.
    lost: Vec<P>,
}

/// Where packets go after a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Every packet goes to its end.
    Ends,
    /// Every packet goes to another link or to its end.
    Onward,
    /// The same, and the engine brings or takes packets late.
    Late,
    /// Some packets have a propagation of their flow's own and are then at their end.
    OwnDelays,
}

/// Totals since the start. Bytes are conserved and packets are not, because a discipline may cut an
/// offloaded packet into its segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub offered_bytes: u64,
    /// Only where packets are looked at as they come.
    offered_segments: u64,
    pub sent_packets: u64,
    pub sent_segments: u64,
    pub sent_bytes: u64,
    pub dropped: u64,
    pub dropped_bytes: u64,
    /// Of packets that were not sent.
    dropped_segments: u64,
    /// Lost on the medium after they were sent.
    pub lost_bytes: u64,
    pub marked: u64,
}

impl Counts {
    fn drop(&mut self, packet: &impl Carried) {
        self.dropped += 1;
        self.dropped_bytes += u64::from(packet.wire_len());
        self.dropped_segments += u64::from(packet.segments());
    }
}

/// Passes what a queue drops and marks on to the observer, and counts it.
struct Notes<'a, P, O: ?Sized> {
    who: Who,
    counts: &'a mut Counts,
    lost: &'a mut Vec<P>,
    observer: &'a mut O,
}

impl<P: Carried, O: Observer + ?Sized> Sink<P> for Notes<'_, P, O> {
    fn dropped(&mut self, now: Time, packet: P, why: DropReason) {
        self.counts.drop(&packet);
        self.observer.record(now, self.who, &Event::Dropped { packet: packet.headers(), why });
        if packet.has_contents() {
            self.lost.push(packet);
        }
    }

    fn marked(&mut self, now: Time, packet: &P) {
        self.counts.marked += 1;
        self.observer.record(now, self.who, &Event::Marked { packet: packet.headers() });
    }
}

/// Calls a method of the line with the concrete type of the queue. The compiler then makes a path
/// of its own for each discipline, and no packet passes through dynamic dispatch.
macro_rules! with_discipline {
    ($discipline:expr, $queue:ident => $call:expr) => {
        match $discipline {
            AnyQdisc::FqCodel($queue) => $call,
            AnyQdisc::Cake($queue) => $call,
            $queue => $call,
        }
    };
}

impl<P: Carried> Wire<P> {
    /// The link that is `port` of its scenario.
    pub fn new(link: &Link, port: PortId, exit: Exit, address: StreamAddress) -> Self {
        Self::that_may_lose(link.loss.may_lose(), link, port, exit, address)
    }

    /// The same, where [`Wire::set_loss`] may be called if it `may_lose`.
    pub fn that_may_lose(
        may_lose: bool,
        link: &Link,
        port: PortId,
        exit: Exit,
        address: StreamAddress,
    ) -> Self {
        let stream = |purpose| address.stream_named(&link.name, purpose);
        let line = Line {
            port,
            transmitter: link.rate.build(&mut stream(Purpose::Capacity)),
            policer: link.policer.build(),
            entry_loss: link.entry_loss.build(),
            loss: link.loss.build(),
            jitter: (link.jitter != JitterConfig::None).then(|| link.jitter.build()),
            reorder: link.reorder.build(),
            watches_entry: link.policer != PolicerConfig::None || link.entry_loss.may_lose(),
            disturbs: link.loss.may_lose()
                || link.jitter != JitterConfig::None
                || link.reorder != ReorderConfig::None,
            delay: link.delay,
            lengthened: Span::ZERO,
            not_before: Time::ZERO,
            pipe: DelayLine::default(),
            due: Time::NEVER,
            exit,
            entry_random: address.stream_named(&format!("{} entry", link.name), Purpose::Loss),
            loss_random: stream(Purpose::Loss),
            jitter_random: stream(Purpose::Jitter),
            reorder_random: address
                .stream_named(&format!("{} reorder", link.name), Purpose::Jitter),
            counts: Counts::default(),
            lost: Vec::new(),
        };
        let queue = match &link.queue {
            // A packet lost by the medium, moved to a flow's own delay or ahead of others would leave
            // a hole in the ring.
            Config::Fifo(fifo)
                if exit != Exit::OwnDelays && !may_lose && link.reorder == ReorderConfig::None =>
            {
                Queue::InLine(Admission::new(fifo))
            }
            discipline => {
                Queue::Managed(discipline.build_on(link.rate.constant(), stream(Purpose::Queue)))
            }
        };
        Self { queue, line }
    }

    /// Takes a packet in, or drops it. Everything due by now must have been pulled before.
    #[inline(always)]
    pub fn offer<O: Observer + ?Sized>(&mut self, now: Time, packet: &P, observer: &mut O) {
        match &mut self.queue {
            Queue::InLine(admission) => self.line.offer_own(admission, now, packet, observer),
            Queue::Managed(discipline) => {
                self.line.offer_managed(discipline, now, packet, observer);
            }
        }
    }

    /// Pulls everything due, takes a packet in, and pulls what is due then: [`Wire::settle`], [`Wire::offer`] and
    /// [`Wire::settle`] again.
    #[inline(always)]
    pub fn cross<O: Observer + ?Sized>(&mut self, now: Time, packet: &P, observer: &mut O) {
        if self.cross_idle(now, packet, observer) {
            return;
        }
        let line = &mut self.line;
        match &mut self.queue {
            Queue::InLine(admission) => {
                line.settle_own(admission, now, observer);
                line.offer_own(admission, now, packet, observer);
                line.settle_own(admission, now, observer);
            }
            Queue::Managed(discipline) => {
                if line.due <= now {
                    line.settle_managed(discipline, now, observer);
                }
                line.offer_managed(discipline, now, packet, observer);
                if line.due <= now {
                    line.settle_managed(discipline, now, observer);
                }
            }
        }
    }

    /// [`Wire::cross`] if the link is idle and nothing could keep the packet; false, and nothing has happened, if not.
    #[inline(always)]
    pub fn cross_idle<O: Observer + ?Sized>(
        &mut self,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) -> bool {
        let line = &mut self.line;
        if line.due.is_never()
            && let Queue::InLine(admission) = &self.queue
            && !line.watches_entry
            && !line.disturbs
            && admission.has_room(packet.wire_len())
            && let Some(departure) = line.transmitter.send_if_idle(now, packet)
        {
            line.pass(now, packet, departure, observer);
            return true;
        }
        false
    }

    /// Pulls everything due by `until`, each packet at its own time.
    #[inline(always)]
    pub fn settle<O: Observer + ?Sized>(&mut self, until: Time, observer: &mut O) {
        let line = &mut self.line;
        if line.due > until {
            return;
        }
        match &mut self.queue {
            Queue::InLine(admission) => line.settle_own(admission, until, observer),
            Queue::Managed(discipline) => line.settle_managed(discipline, until, observer),
        }
    }

    /// Takes the packet that is due from the queue, sends it into the pipe, unless the medium loses
    /// it, and finds when the next one is due. If the queue has none to give, the next arrival
    /// finds out when the transmitter is ready.
    pub fn pull<O: Observer + ?Sized>(&mut self, observer: &mut O) {
        let line = &mut self.line;
        match &mut self.queue {
            Queue::InLine(admission) => line.pull_own(admission, observer),
            Queue::Managed(discipline) => {
                with_discipline!(discipline, queue => line.pull(queue, observer));
            }
        }
    }

    /// When the engine must call this link again: when a packet comes out at the far end, or, if
    /// none is under way, when one is due. What is due earlier than an arrival can be done at the
    /// arrival.
    #[inline]
    pub fn next_wake(&self) -> Time {
        let line = &self.line;
        match line.exit {
            Exit::OwnDelays => line.due.min(line.pipe.next()),
            // What is sent next may arrive before what was sent already.
            _ if line.reorder.is_some() => line.due.min(line.pipe.next()),
            _ if line.pipe.is_empty() => line.due,
            _ => line.pipe.next(),
        }
    }

    /// When something happens next, for callers that do not want work done late.
    pub fn next_event(&self) -> Time {
        self.line.due.min(self.line.pipe.next())
    }

    /// When the next packet comes out at the far end.
    pub fn next_arrival(&self) -> Time {
        self.line.pipe.next()
    }

    /// Whether packets may overtake others.
    pub fn reorders(&self) -> bool {
        self.line.reorder.is_some()
    }

    /// When the next packet is to be taken from the queue: never, if nothing waits.
    #[inline(always)]
    pub fn due(&self) -> Time {
        self.line.due
    }

    #[inline(always)]
    pub fn exit(&self) -> Exit {
        self.line.exit
    }

    /// The engine brings or takes packets late.
    ///
    /// # Panics
    /// If some packets have a propagation of their own after this link.
    pub fn be_late(&mut self) {
        assert!(self.line.exit != Exit::OwnDelays, "its packets come out in another order");
        self.line.exit = Exit::Late;
    }

    /// Packets may have several segments: backlogs count these.
    pub fn expect_offload(&mut self) {
        self.line.watches_entry = true;
    }

    /// From when a packet is offered until it comes out it takes this long at least.
    pub fn least_delay(&self) -> Span {
        self.line.delay
    }

    /// Adds propagation that every packet has after this link.
    pub fn lengthen(&mut self, delay: Span) {
        self.line.delay += delay;
        self.line.lengthened += delay;
    }

    /// From `now` on packets are sent at `rate`, if it is fixed; what is being sent ends as it began.
    /// Everything due by now must have been pulled before.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.line.transmitter.set_rate(now, rate);
    }

    /// What is sent from now on is lost by another process, which begins anew.
    pub fn set_loss(&mut self, loss: &LossConfig) {
        debug_assert!(
            matches!(self.queue, Queue::Managed(_)),
            "the wire was told that it may lose"
        );
        self.line.loss = loss.build();
        self.line.disturbs = true;
    }

    /// What is sent from now on propagates for so long. Nothing overtakes what was sent before.
    pub fn set_delay(&mut self, delay: Span) {
        let line = &mut self.line;
        line.delay = delay + line.lengthened;
        let under_way = line.pipe.last_under_way();
        line.not_before = line.not_before.max(under_way.unwrap_or(Time::ZERO));
        line.disturbs = true;
    }

    /// The packets that have left the queue and not come out.
    #[inline(always)]
    pub fn under_way(&mut self) -> &mut DelayLine<P> {
        &mut self.line.pipe
    }

    pub fn backlog(&self) -> Backlog {
        match &self.queue {
            Queue::InLine(admission) => admission.backlog(),
            Queue::Managed(discipline) => discipline.backlog(),
        }
    }

    pub fn books(&self) -> Books {
        let Counts { offered_bytes, sent_bytes, dropped_bytes, lost_bytes, .. } = self.line.counts;
        Books {
            offered: offered_bytes,
            dropped: dropped_bytes,
            waiting: self.backlog().bytes,
            sent: sent_bytes,
            lost: lost_bytes,
            under_way: self.line.pipe.iter().map(|packet| u64::from(packet.wire_len())).sum(),
        }
    }

    pub fn sample(&self, now: Time) -> QueueSample {
        let backlog = self.backlog();
        let oldest = match &self.queue {
            Queue::InLine(_) => self.line.pipe.first_waiting().map(|(since, _)| *since),
            Queue::Managed(discipline) => discipline.oldest(),
        };
        let medium_bytes = self.line.transmitter.bytes_on_medium(
            self.line.counts.sent_bytes,
            self.line.counts.sent_packets,
            self.line.counts.sent_segments,
        );
        let packets = self.line.waiting(backlog.packets);
        QueueSample {
            packets,
            joined: packets - backlog.packets,
            bytes: backlog.bytes,
            head_wait: oldest.map_or(Span::ZERO, |arrived| now.since(arrived)),
            sent_packets: self.line.counts.sent_packets,
            sent_bytes: self.line.counts.sent_bytes,
            dropped: self.line.counts.dropped,
            marked: self.line.counts.marked,
            capacity: self.line.transmitter.capacity(now),
            medium_bytes: medium_bytes.saturating_sub(self.line.transmitter.bytes_to_come(now)),
            capacity_bytes: self.line.transmitter.capacity_until(now),
            air: None,
        }
    }

    pub fn queue_details(&self) -> Vec<(&'static str, u64)> {
        match &self.queue {
            Queue::InLine(_) => Vec::new(),
            Queue::Managed(discipline) => discipline.details(),
        }
    }

    /// Whether its queue still works.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        match &self.queue {
            Queue::InLine(_) => Ok(()),
            Queue::Managed(discipline) => discipline.check(),
        }
    }

    /// Drops a packet that the owner of the queue does not admit.
    pub fn refuse<O: Observer + ?Sized>(&mut self, now: Time, packet: &P, observer: &mut O) {
        self.line.counts.offered_bytes += u64::from(packet.wire_len());
        self.line.counts.offered_segments += u64::from(packet.segments());
        self.line.drop(now, packet, DropReason::Full, observer);
    }

    pub fn take_lost(&mut self, mut take: impl FnMut(P)) {
        self.line.lost.drain(..).for_each(&mut take);
    }
}

impl<P: Carried> Carrier<P> for Wire<P> {
    fn offer(&mut self, now: Time, _: PortId, packet: P, observer: &mut dyn Observer) {
        self.cross(now, &packet, observer);
    }

    fn next_wake(&self) -> Time {
        Wire::next_wake(self)
    }

    fn on_wake(&mut self, now: Time, observer: &mut dyn Observer) {
        self.settle(now, observer);
    }

    fn poll_deliver(&mut self, now: Time) -> Option<(PortId, P)> {
        self.line.pipe.pop_due(now).map(|packet| (self.line.port, packet))
    }

    fn books(&self, _: PortId) -> Books {
        Wire::books(self)
    }

    fn sample(&self, now: Time, _: PortId) -> QueueSample {
        Wire::sample(self, now)
    }

    fn details(&self, _: PortId) -> Vec<(&'static str, u64)> {
        self.queue_details()
    }

    fn take_lost(&mut self, take: &mut dyn FnMut(P)) {
        Wire::take_lost(self, take);
    }

    fn check(&self, _: Time) -> Result<(), String> {
        Wire::check(self)
    }
}

impl<P: Carried> Line<P> {
    /// [`Wire::offer`] where packets wait in the ring.
    #[inline(always)]
    fn offer_own<O: Observer + ?Sized>(
        &mut self,
        admission: &mut Admission,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) {
        self.counts.offered_bytes += u64::from(packet.wire_len());
        if self.watches_entry {
            self.offer_own_watched(admission, now, packet, observer);
        } else {
            self.wait_own::<false, _>(admission, now, packet, observer);
        }
    }

    #[inline(never)]
    fn offer_own_watched<O: Observer + ?Sized>(
        &mut self,
        admission: &mut Admission,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) {
        if self.lets_in(now, packet, observer) {
            self.wait_own::<true, _>(admission, now, packet, observer);
        }
    }

    #[inline(always)]
    fn wait_own<const WATCHED: bool, O: Observer + ?Sized>(
        &mut self,
        admission: &mut Admission,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) {
        if !admission.admits(packet.wire_len()) {
            self.drop(now, packet, DropReason::Full, observer);
            return;
        }
        self.pipe.wait(now, *packet);
        let held = admission.backlog().packets;
        let backlog = if WATCHED { self.waiting(held) } else { held };
        let who = Who::Port(self.port);
        observer.record(now, who, &Event::Enqueued { packet: packet.headers(), backlog });
        self.begin(now);
    }

    /// The same where they wait in a discipline.
    #[inline(always)]
    fn offer_managed<O: Observer + ?Sized>(
        &mut self,
        discipline: &mut AnyQdisc<P>,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) {
        self.counts.offered_bytes += u64::from(packet.wire_len());
        if self.watches_entry {
            self.offer_managed_watched(discipline, now, packet, observer);
        } else if with_discipline!(discipline, queue => self.enqueue::<false, _>(queue, now, packet, observer))
        {
            self.begin(now);
        }
    }

    #[inline(never)]
    fn offer_managed_watched<O: Observer + ?Sized>(
        &mut self,
        discipline: &mut AnyQdisc<P>,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) {
        if self.lets_in(now, packet, observer)
            && self.enqueue::<true, _>(discipline, now, packet, observer)
        {
            self.begin(now);
        }
    }

    /// Something waits. If nothing did, finds when it is due.
    #[inline(always)]
    fn begin(&mut self, now: Time) {
        if self.due.is_never() {
            self.due = self.transmitter.ready_at(now);
        }
    }

    /// Whether `queue` then holds any packet.
    #[inline(always)]
    fn enqueue<const WATCHED: bool, O: Observer + ?Sized>(
        &mut self,
        queue: &mut impl Qdisc<P>,
        now: Time,
        packet: &P,
        observer: &mut O,
    ) -> bool {
        let who = Who::Port(self.port);
        let mut notes = Notes { who, counts: &mut self.counts, lost: &mut self.lost, observer };
        match queue.enqueue(now, *packet, &mut notes) {
            Enqueue::Queued => {
                let held = queue.backlog().packets;
                let backlog = if WATCHED { self.waiting(held) } else { held };
                let packet = packet.headers();
                observer.record(now, who, &Event::Enqueued { packet, backlog });
                true
            }
            Enqueue::Dropped(packet, why) => {
                self.drop(now, &packet, why, observer);
                queue.backlog().packets > 0
            }
        }
    }

    #[inline(always)]
    fn settle_own<O: Observer + ?Sized>(
        &mut self,
        admission: &mut Admission,
        until: Time,
        observer: &mut O,
    ) {
        while self.due <= until {
            self.pull_own(admission, observer);
        }
    }

    #[inline(never)]
    fn settle_managed<O: Observer + ?Sized>(
        &mut self,
        discipline: &mut AnyQdisc<P>,
        until: Time,
        observer: &mut O,
    ) {
        with_discipline!(discipline, queue => {
            while self.due <= until {
                self.pull(queue, observer);
            }
        });
    }

    #[inline(always)]
    fn pull<O: Observer + ?Sized>(&mut self, queue: &mut impl Qdisc<P>, observer: &mut O) {
        let now = self.due;
        let who = Who::Port(self.port);
        let mut notes = Notes { who, counts: &mut self.counts, lost: &mut self.lost, observer };
        let pipe = &mut self.pipe;
        let take = |packet: &P| {
            pipe.wait(now, *packet);
        };
        let sojourn = match queue.dequeue_copied(now, &mut notes, take) {
            Dequeue::Packet((), sojourn) => sojourn,
            Dequeue::Empty => {
                self.due = Time::NEVER;
                return;
            }
            Dequeue::NotBefore(at) => {
                self.due = at;
                return;
            }
        };
        let ready = self.send(sojourn, observer);
        self.due = if queue.backlog().packets > 0 { ready } else { Time::NEVER };
    }

    #[inline(always)]
    fn pull_own<O: Observer + ?Sized>(&mut self, admission: &mut Admission, observer: &mut O) {
        let Some((since, packet)) = self.pipe.first_waiting() else {
            self.due = Time::NEVER;
            return;
        };
        let sojourn = self.due.after(*since);
        admission.release(packet.wire_len());
        let ready = self.send(sojourn, observer);
        self.due = if admission.backlog().packets > 0 { ready } else { Time::NEVER };
    }

    /// A packet has found the transmitter idle and nothing that could keep it: it was sent at once.
    #[inline(always)]
    fn pass<O: Observer + ?Sized>(
        &mut self,
        now: Time,
        packet: &P,
        departure: Departure,
        observer: &mut O,
    ) {
        let bytes = u64::from(packet.wire_len());
        self.counts.offered_bytes += bytes;
        self.counts.sent_bytes += bytes;
        self.counts.sent_packets += 1;
        self.counts.sent_segments += u64::from(packet.segments());
        let (_, leaves) = self.pipe.wait(departure.out + self.delay, *packet);
        leaves.leave_port();
        observer.passed(now, self.port, packet.headers(), leaves.headers());
        self.pipe.send();
    }

    /// Sends the first packet that waits in the ring, which is due, and returns when the next may
    /// follow.
    #[inline(always)]
    fn send<O: Observer + ?Sized>(&mut self, sojourn: Span, observer: &mut O) -> Time {
        let now = self.due;
        let slot = self.pipe.first_waiting_mut().expect("the caller found one");
        let packet = &mut slot.1;
        packet.leave_port();
        let event = Event::Dequeued { packet: packet.headers(), sojourn };
        observer.record(now, Who::Port(self.port), &event);
        let departure = self.transmitter.send(now, packet);
        self.counts.sent_packets += 1;
        self.counts.sent_segments += u64::from(packet.segments());
        self.counts.sent_bytes += u64::from(packet.wire_len());
        slot.0 = departure.out + self.delay;
        if self.disturbs {
            self.send_disturbed(now, departure.out, observer);
        } else {
            self.pipe.send();
        }
        departure.ready
    }

    /// The first packet that waits has left the transmitter at `out`. It arrives at the time set for it,
    /// unless the medium loses it, delays it or lets it overtake others.
    #[inline(never)]
    fn send_disturbed<O: Observer + ?Sized>(&mut self, now: Time, out: Time, observer: &mut O) {
        if self.loss.loses(now, &mut self.loss_random) {
            self.lose(now, observer);
            return;
        }
        let slot = self.pipe.first_waiting_mut().expect("the caller found one");
        slot.0 = slot.0.max(self.not_before);
        // Departures are in order, and jitter keeps the order.
        if let Some(jitter) = &mut self.jitter {
            slot.0 = jitter.delay(slot.0, &mut self.jitter_random);
        }
        if let Some(reorder) = &mut self.reorder
            && reorder.hurries(&mut self.reorder_random)
        {
            slot.0 = out;
        }
        self.pipe.send();
        // If a flow has a delay of its own, packets are sorted once that is added.
        if self.reorder.is_some() && self.exit != Exit::OwnDelays {
            self.pipe.sort_last();
        }
    }

    /// A packet that is looked at comes. False if it does not even come to the queue.
    fn lets_in<O: Observer + ?Sized>(&mut self, now: Time, packet: &P, observer: &mut O) -> bool {
        self.counts.offered_segments += u64::from(packet.segments());
        let refused = self.guard(now, packet.wire_len());
        if let Some(why) = refused {
            self.drop(now, packet, why, observer);
        }
        refused.is_none()
    }

    /// Why a packet does not come to the queue, if it does not.
    fn guard(&mut self, now: Time, wire_len: u32) -> Option<DropReason> {
        if let Some(policer) = &mut self.policer
            && !policer.passes(now, wire_len)
        {
            return Some(DropReason::Policed);
        }
        let is_lost = self.entry_loss.loses(now, &mut self.entry_random);
        is_lost.then_some(DropReason::Entry)
    }

    /// Wire packets that wait, where the queue holds so many packets.
    fn waiting(&self, held: u32) -> u32 {
        if !self.watches_entry {
            return held;
        }
        let Counts { offered_segments, dropped_segments, sent_segments, .. } = self.counts;
        (offered_segments - dropped_segments - sent_segments) as u32
    }

    /// The medium loses the only packet that waits in the ring.
    #[cold]
    #[inline(never)]
    fn lose<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        if let Some((_, packet)) = self.pipe.withdraw() {
            self.counts.dropped += 1;
            self.counts.lost_bytes += u64::from(packet.wire_len());
            let event = Event::Dropped { packet: packet.headers(), why: DropReason::Medium };
            observer.record(now, Who::Port(self.port), &event);
            self.forget(packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop<O: Observer + ?Sized>(
        &mut self,
        now: Time,
        packet: &P,
        why: DropReason,
        observer: &mut O,
    ) {
        self.counts.drop(packet);
        let event = Event::Dropped { packet: packet.headers(), why };
        observer.record(now, Who::Port(self.port), &event);
        self.forget(*packet);
    }

    /// Keeps a lost packet if it has contents that must be freed.
    fn forget(&mut self, packet: P) {
        if packet.has_contents() {
            self.lost.push(packet);
        }
    }
}
