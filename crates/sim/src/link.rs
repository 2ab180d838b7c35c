//! One direction of a link at work: loss before the queue, the queue, the transmitter, loss and
//! jitter behind it, and the pipe in which packets propagate.

use sojourn_core::{
    DropReason, Event, Observer, Packet, Purpose, QueueSample, Queued, Span, Stream,
    StreamAddress, Time, Who,
};
use sojourn_link::{DelayLine, Jitter, Loss, Transmitter};
use sojourn_qdisc::{AnyQdisc, Dequeue, Enqueue, Qdisc, Sink};
use sojourn_scenario::Link as LinkConfig;

pub(crate) struct Link {
    index: u16,
    queue: AnyQdisc<Packet>,
    transmitter: Transmitter,
    entry_loss: Loss,
    loss: Loss,
    jitter: Option<Jitter>,
    pub(crate) delay: Span,
    /// Packets on their way to what comes behind this link.
    pub(crate) pipe: DelayLine<Packet>,
    /// Whatever leaves this link has only the pipe before it, and then its end.
    pub(crate) leads_to_ends: bool,
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

/// What a pull from the queue gave.
pub(crate) enum Pulled {
    /// A packet is in the pipe; the next one may start at `ready`.
    Arriving { ready: Time },
    /// A packet that comes out at `at` and may have its own way from there.
    Passing { packet: Packet, at: Time, ready: Time },
    /// The packet was lost on the medium.
    Lost,
    /// Nothing before this time.
    Wait(Time),
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

impl Link {
    pub(crate) fn new(config: &LinkConfig, index: u16, address: StreamAddress) -> Self {
        let stream = |purpose| address.stream_named(&config.name, purpose);
        Self {
            index,
            queue: config.queue.build(stream(Purpose::Queue)),
            transmitter: config.rate.build(&mut stream(Purpose::Capacity)),
            entry_loss: config.entry_loss.build(),
            loss: config.loss.build(),
            jitter: (config.jitter != sojourn_link::JitterConfig::None)
                .then(|| config.jitter.build()),
            delay: config.delay,
            pipe: DelayLine::default(),
            leads_to_ends: false,
            entry_random: address.stream_named(&format!("{} entry", config.name), Purpose::Loss),
            loss_random: stream(Purpose::Loss),
            jitter_random: stream(Purpose::Jitter),
            counts: Counts::default(),
        }
    }

    /// Takes a packet in, or drops it.
    #[inline]
    pub(crate) fn offer<O: Observer>(&mut self, now: Time, packet: &Packet, observer: &mut O) {
        self.counts.offered_bytes += u64::from(packet.wire_len());
        if self.entry_loss.loses(&mut self.entry_random) {
            self.drop(now, packet, DropReason::Medium, observer);
            return;
        }
        let who = Who::Link(self.index);
        let mut notes = Notes { who, counts: &mut self.counts, observer };
        match self.queue.enqueue(now, *packet, &mut notes) {
            Enqueue::Queued => {
                let backlog = self.queue.backlog().packets;
                observer.record(now, who, &Event::Enqueued { packet, backlog });
            }
            Enqueue::Dropped(packet, why) => self.drop(now, &packet, why, observer),
        }
    }

    /// Takes the next packet from the queue, if the transmitter is ready, and says when and
    /// whether it arrives.
    #[inline]
    pub(crate) fn pull<O: Observer>(&mut self, now: Time, observer: &mut O) -> Pulled {
        let ready = self.transmitter.ready_at(now);
        if ready > now {
            return Pulled::Wait(ready);
        }
        let who = Who::Link(self.index);
        let mut notes = Notes { who, counts: &mut self.counts, observer };
        let (packet, sojourn) = match self.queue.dequeue(now, &mut notes) {
            Dequeue::Packet(packet, sojourn) => (packet, sojourn),
            Dequeue::Empty => return Pulled::Wait(Time::NEVER),
            Dequeue::NotBefore(at) => return Pulled::Wait(at),
        };
        observer.record(now, who, &Event::Dequeued { packet: &packet, sojourn });
        let departure = self.transmitter.send(now, &packet);
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += u64::from(packet.wire_len());
        if self.loss.loses(&mut self.loss_random) {
            self.counts.dropped += 1;
            self.counts.lost_bytes += u64::from(packet.wire_len());
            let event = Event::Dropped { packet: &packet, why: DropReason::Medium };
            observer.record(now, who, &event);
            return Pulled::Lost;
        }
        let mut at = departure.out + self.delay;
        if let Some(jitter) = &mut self.jitter {
            at = jitter.delay(at, &mut self.jitter_random);
        }
        let ready = departure.ready;
        if !self.leads_to_ends {
            return Pulled::Passing { packet, at, ready };
        }
        self.pipe.push(at, packet);
        Pulled::Arriving { ready }
    }

    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.queue.backlog().bytes
    }

    /// Whether something waits; then the link wants to be called when it is ready.
    #[inline]
    pub(crate) fn has_backlog(&self) -> bool {
        self.queue.backlog().packets > 0
    }

    pub(crate) fn sample(&self, now: Time) -> QueueSample {
        let backlog = self.queue.backlog();
        QueueSample {
            packets: backlog.packets,
            bytes: backlog.bytes,
            head_wait: self.queue.oldest().map_or(Span::ZERO, |arrived| now.since(arrived)),
            sent_packets: self.counts.sent_packets,
            sent_bytes: self.counts.sent_bytes,
            dropped: self.counts.dropped,
            marked: self.counts.marked,
            capacity: self.transmitter.capacity(now),
        }
    }

    pub(crate) fn queue_details(&self) -> Vec<(&'static str, u64)> {
        self.queue.details()
    }

    #[cold]
    #[inline(never)]
    fn drop<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        why: DropReason,
        observer: &mut O,
    ) {
        self.counts.dropped += 1;
        self.counts.dropped_bytes += u64::from(packet.wire_len());
        observer.record(now, Who::Link(self.index), &Event::Dropped { packet, why });
    }
}
