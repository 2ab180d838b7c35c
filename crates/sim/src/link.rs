//! One direction of a link at work: loss before the queue, the queue, the transmitter, loss and
//! jitter behind it, and the pipe in which packets propagate.

use sojourn_core::{
    DropReason, Event, Observer, Packet, Purpose, QueueSample, Queued, Span, Stream, StreamAddress,
    Time, Who,
};
use sojourn_link::{DelayLine, Jitter, Loss, Transmitter};
use sojourn_qdisc::{AnyQdisc, Dequeue, Enqueue, Qdisc, Sink};
use sojourn_scenario::Link as LinkConfig;

pub(crate) struct Link {
    queue: AnyQdisc<Packet>,
    pub(crate) line: Line,
}

/// A link without its queue.
pub(crate) struct Line {
    index: u16,
    transmitter: Transmitter,
    entry_loss: Loss,
    loss: Loss,
    jitter: Option<Jitter>,
    pub(crate) delay: Span,
    /// Packets on their way to what comes behind this link.
    pub(crate) pipe: DelayLine<Packet>,
    /// Whatever leaves this link has only the pipe before it, and then its end.
    pub(crate) leads_to_ends: bool,
    /// On a link that does not: what it sent last and when that comes out, to be taken away.
    pub(crate) passing: Option<(Time, Packet)>,
    entry_random: Stream,
    loss_random: Stream,
    jitter_random: Stream,
    pub(crate) counts: Counts,
}

/// Totals since the start. Conservation is counted in bytes, because a discipline may cut an
/// offloaded packet into its segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) offered_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) dropped_bytes: u64,
    /// Lost on the medium after they were sent.
    pub(crate) lost_bytes: u64,
    pub(crate) marked: u64,
}

/// Passes what a queue drops and marks on to the observer, and counts.
struct Notes<'a, O> {
    who: Who,
    counts: &'a mut Counts,
    observer: &'a mut O,
}

impl<O: Observer> Sink<Packet> for Notes<'_, O> {
    fn dropped(&mut self, now: Time, packet: Packet, why: DropReason) {
        self.counts.dropped += 1;
        self.counts.dropped_bytes += u64::from(packet.wire_len());
        self.observer.record(now, self.who, &Event::Dropped { packet: &packet, why });
    }

    fn marked(&mut self, now: Time, packet: &Packet) {
        self.counts.marked += 1;
        self.observer.record(now, self.who, &Event::Marked { packet });
    }
}

/// Calls a method of the line with the queue as what it is. The compiler then makes each discipline
/// a path of its own, without a packet passing through what all of them have in common.
macro_rules! with_queue {
    ($link:expr, $queue:ident => $call:expr) => {
        match &mut $link.queue {
            AnyQdisc::Fifo($queue) => $call,
            AnyQdisc::FqCodel($queue) => $call,
            AnyQdisc::Cake($queue) => $call,
            $queue => $call,
        }
    };
}

impl Link {
    pub(crate) fn new(config: &LinkConfig, index: u16, address: StreamAddress) -> Self {
        let stream = |purpose| address.stream_named(&config.name, purpose);
        let line = Line {
            index,
            transmitter: config.rate.build(&mut stream(Purpose::Capacity)),
            entry_loss: config.entry_loss.build(),
            loss: config.loss.build(),
            jitter: (config.jitter != sojourn_link::JitterConfig::None)
                .then(|| config.jitter.build()),
            delay: config.delay,
            pipe: DelayLine::default(),
            leads_to_ends: false,
            passing: None,
            entry_random: address.stream_named(&format!("{} entry", config.name), Purpose::Loss),
            loss_random: stream(Purpose::Loss),
            jitter_random: stream(Purpose::Jitter),
            counts: Counts::default(),
        };
        Self { queue: config.queue.build(stream(Purpose::Queue)), line }
    }

    /// Takes a packet in, or drops it.
    #[inline(always)]
    pub(crate) fn offer<O: Observer>(&mut self, now: Time, packet: &Packet, observer: &mut O) {
        with_queue!(self, queue => self.line.offer(queue, now, packet, observer));
    }

    /// Takes the next packet from the queue, if the transmitter is ready, and puts it into the
    /// pipe, unless the medium loses it. Returns when to pull again, if that is not now: never, if
    /// nothing waits, because an idle link is called by the next arrival and finds out itself.
    #[inline(always)]
    pub(crate) fn pull<O: Observer>(&mut self, now: Time, observer: &mut O) -> Time {
        with_queue!(self, queue => self.line.pull(queue, now, observer))
    }

    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.queue.backlog().bytes
    }

    pub(crate) fn sample(&self, now: Time) -> QueueSample {
        let backlog = self.queue.backlog();
        QueueSample {
            packets: backlog.packets,
            bytes: backlog.bytes,
            head_wait: self.queue.oldest().map_or(Span::ZERO, |arrived| now.since(arrived)),
            sent_packets: self.line.counts.sent_packets,
            sent_bytes: self.line.counts.sent_bytes,
            dropped: self.line.counts.dropped,
            marked: self.line.counts.marked,
            capacity: self.line.transmitter.capacity(now),
        }
    }

    pub(crate) fn queue_details(&self) -> Vec<(&'static str, u64)> {
        self.queue.details()
    }
}

impl Line {
    #[inline(always)]
    fn offer<O: Observer>(
        &mut self,
        queue: &mut impl Qdisc<Packet>,
        now: Time,
        packet: &Packet,
        observer: &mut O,
    ) {
        self.counts.offered_bytes += u64::from(packet.wire_len());
        if self.entry_loss.loses(&mut self.entry_random) {
            self.drop(now, packet, DropReason::Medium, observer);
            return;
        }
        let who = Who::Link(self.index);
        let mut notes = Notes { who, counts: &mut self.counts, observer };
        match queue.enqueue(now, *packet, &mut notes) {
            Enqueue::Queued => {
                let backlog = queue.backlog().packets;
                observer.record(now, who, &Event::Enqueued { packet, backlog });
            }
            Enqueue::Dropped(packet, why) => self.drop(now, &packet, why, observer),
        }
    }

    #[inline(always)]
    fn pull<O: Observer>(
        &mut self,
        queue: &mut impl Qdisc<Packet>,
        now: Time,
        observer: &mut O,
    ) -> Time {
        let ready = self.transmitter.ready_at(now);
        if ready > now {
            return when(queue, now, ready);
        }
        let who = Who::Link(self.index);
        let mut notes = Notes { who, counts: &mut self.counts, observer };
        let (slot, sojourn) = match queue.dequeue(now, &mut notes) {
            Dequeue::Packet(packet, sojourn) => (self.pipe.enter(packet), sojourn),
            Dequeue::Empty => return Time::NEVER,
            Dequeue::NotBefore(at) => return when(queue, now, at),
        };
        let packet = &slot.1;
        let wire_len = packet.wire_len();
        observer.record(now, who, &Event::Dequeued { packet, sojourn });
        let departure = self.transmitter.send(now, packet);
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += u64::from(wire_len);
        if self.loss.loses(&mut self.loss_random) {
            self.lose(now, observer);
            return when(queue, now, departure.ready);
        }
        // Departures are in order, and jitter keeps them so.
        slot.0 = departure.out + self.delay;
        if let Some(jitter) = &mut self.jitter {
            slot.0 = jitter.delay(slot.0, &mut self.jitter_random);
        }
        if !self.leads_to_ends {
            self.passing = self.pipe.withdraw();
        }
        when(queue, now, departure.ready)
    }

    /// The medium loses what just entered the pipe.
    #[cold]
    #[inline(never)]
    fn lose<O: Observer>(&mut self, now: Time, observer: &mut O) {
        if let Some((_, packet)) = self.pipe.withdraw() {
            self.counts.dropped += 1;
            self.counts.lost_bytes += u64::from(packet.wire_len());
            let event = Event::Dropped { packet: &packet, why: DropReason::Medium };
            observer.record(now, Who::Link(self.index), &event);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop<O: Observer>(&mut self, now: Time, packet: &Packet, why: DropReason, observer: &mut O) {
        self.counts.dropped += 1;
        self.counts.dropped_bytes += u64::from(packet.wire_len());
        observer.record(now, Who::Link(self.index), &Event::Dropped { packet, why });
    }
}

/// When to pull again: not before something waits. A transmitter that is ready now asks even an
/// empty queue, which may take that as a turn.
#[inline(always)]
fn when(queue: &impl Qdisc<Packet>, now: Time, at: Time) -> Time {
    if at <= now || queue.backlog().packets > 0 { at } else { Time::NEVER }
}
