//! One direction of a link at work: loss before the queue, the queue, the transmitter, loss and
//! jitter behind it, and the pipe in which packets propagate.

use sojourn_core::{
    DropReason, Event, Observer, Packet, Purpose, QueueSample, Queued, Span, Stream, StreamAddress,
    Time, Who,
};
use sojourn_link::{DelayLine, Jitter, Loss, LossConfig, Transmitter};
use sojourn_qdisc::{Admission, AnyQdisc, Backlog, Dequeue, Enqueue, Qdisc, Sink};
use sojourn_scenario::Link as LinkConfig;

pub(crate) struct Link {
    queue: Queue,
    pub(crate) line: Line,
}

/// Where packets wait for the transmitter.
#[expect(clippy::large_enum_variant, reason = "one per link, and never moved")]
enum Queue {
    /// First in, first out: in the line's own ring, which they then need not change.
    InLine(Admission),
    Managed(AnyQdisc<Packet>),
}

/// A link without its queue.
pub(crate) struct Line {
    index: u16,
    transmitter: Transmitter,
    entry_loss: Loss,
    loss: Loss,
    jitter: Option<Jitter>,
    pub(crate) delay: Span,
    /// Packets on their way to what comes behind this link, and behind them those that wait, where
    /// the queue is [`Queue::InLine`].
    pub(crate) pipe: DelayLine<Packet>,
    /// When the next packet is to be taken from the queue: never, if nothing waits.
    pub(crate) due: Time,
    /// What may leave this link for.
    pub(crate) exit: Exit,
    entry_random: Stream,
    loss_random: Stream,
    jitter_random: Stream,
    pub(crate) counts: Counts,
}

/// What comes behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// For every packet the end that it goes to.
    Ends,
    /// For every packet another link or its end.
    Onward,
    /// For some a propagation of their flow's own, after which they are at their end.
    OwnDelays,
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
macro_rules! with_discipline {
    ($discipline:expr, $queue:ident => $call:expr) => {
        match $discipline {
            AnyQdisc::FqCodel($queue) => $call,
            AnyQdisc::Cake($queue) => $call,
            $queue => $call,
        }
    };
}

impl Link {
    pub(crate) fn new(config: &LinkConfig, index: u16, exit: Exit, address: StreamAddress) -> Self {
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
            due: Time::NEVER,
            exit,
            entry_random: address.stream_named(&format!("{} entry", config.name), Purpose::Loss),
            loss_random: stream(Purpose::Loss),
            jitter_random: stream(Purpose::Jitter),
            counts: Counts::default(),
        };
        let queue = match &config.queue {
            // What is taken out in the middle of the ring would leave a hole.
            sojourn_qdisc::Config::Fifo(fifo)
                if exit != Exit::OwnDelays && config.loss == LossConfig::None =>
            {
                Queue::InLine(Admission::new(fifo))
            }
            discipline => Queue::Managed(discipline.build(stream(Purpose::Queue))),
        };
        Self { queue, line }
    }

    /// Takes a packet in, or drops it. Whatever is due by now must have been pulled.
    #[inline(always)]
    pub(crate) fn offer<O: Observer>(&mut self, now: Time, packet: &Packet, observer: &mut O) {
        let line = &mut self.line;
        let wire_len = packet.wire_len();
        line.counts.offered_bytes += u64::from(wire_len);
        if line.entry_loss.loses(&mut line.entry_random) {
            line.drop(now, packet, DropReason::Medium, observer);
            return;
        }
        match &mut self.queue {
            Queue::InLine(admission) => {
                if !admission.admits(wire_len) {
                    line.drop(now, packet, DropReason::Full, observer);
                    return;
                }
                line.pipe.wait(now, *packet);
                let backlog = admission.backlog().packets;
                let who = Who::Link(line.index);
                observer.record(now, who, &Event::Enqueued { packet, backlog });
            }
            Queue::Managed(discipline) => {
                if !line.enqueue_managed(discipline, now, packet, observer) {
                    return;
                }
            }
        }
        if line.due.is_never() {
            line.due = line.transmitter.ready_at(now);
        }
    }

    /// Pulls all that is due by `until`, each packet at its own time.
    #[inline(always)]
    pub(crate) fn settle<O: Observer>(&mut self, until: Time, observer: &mut O) {
        let line = &mut self.line;
        if line.due > until {
            return;
        }
        match &mut self.queue {
            Queue::InLine(admission) => {
                while line.due <= until {
                    line.pull_own(admission, observer);
                }
            }
            Queue::Managed(discipline) => line.settle_managed(discipline, until, observer),
        }
    }

    /// Takes the packet that is due from the queue, sends it into the pipe, unless the medium loses
    /// it, and finds when the next one is due. A queue may have none to give: the next arrival
    /// finds out then when the transmitter is ready.
    pub(crate) fn pull<O: Observer>(&mut self, observer: &mut O) {
        let line = &mut self.line;
        match &mut self.queue {
            Queue::InLine(admission) => line.pull_own(admission, observer),
            Queue::Managed(discipline) => {
                with_discipline!(discipline, queue => line.pull(queue, observer));
            }
        }
    }

    /// When the engine must look at this link again: when a packet comes out at the far end, or
    /// one is due while there is none before it. What is due earlier can as well be done then.
    #[inline]
    pub(crate) fn next_wake(&self) -> Time {
        let line = &self.line;
        match line.exit {
            Exit::OwnDelays => line.due.min(line.pipe.next()),
            _ if line.pipe.is_empty() => line.due,
            _ => line.pipe.next(),
        }
    }

    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.backlog().bytes
    }

    pub(crate) fn sample(&self, now: Time) -> QueueSample {
        let backlog = self.backlog();
        let oldest = match &self.queue {
            Queue::InLine(_) => self.line.pipe.first_waiting().map(|(since, _)| *since),
            Queue::Managed(discipline) => discipline.oldest(),
        };
        QueueSample {
            packets: backlog.packets,
            bytes: backlog.bytes,
            head_wait: oldest.map_or(Span::ZERO, |arrived| now.since(arrived)),
            sent_packets: self.line.counts.sent_packets,
            sent_bytes: self.line.counts.sent_bytes,
            dropped: self.line.counts.dropped,
            marked: self.line.counts.marked,
            capacity: self.line.transmitter.capacity(now),
        }
    }

    pub(crate) fn queue_details(&self) -> Vec<(&'static str, u64)> {
        match &self.queue {
            Queue::InLine(_) => Vec::new(),
            Queue::Managed(discipline) => discipline.details(),
        }
    }

    fn backlog(&self) -> Backlog {
        match &self.queue {
            Queue::InLine(admission) => admission.backlog(),
            Queue::Managed(discipline) => discipline.backlog(),
        }
    }
}

impl Line {
    /// Whether `discipline` then holds any packet.
    #[inline(always)]
    fn enqueue_managed<O: Observer>(
        &mut self,
        discipline: &mut AnyQdisc<Packet>,
        now: Time,
        packet: &Packet,
        observer: &mut O,
    ) -> bool {
        with_discipline!(discipline, queue => self.enqueue(queue, now, packet, observer))
    }

    /// Whether `queue` then holds any packet.
    #[inline(always)]
    fn enqueue<O: Observer>(
        &mut self,
        queue: &mut impl Qdisc<Packet>,
        now: Time,
        packet: &Packet,
        observer: &mut O,
    ) -> bool {
        let who = Who::Link(self.index);
        let mut notes = Notes { who, counts: &mut self.counts, observer };
        match queue.enqueue(now, *packet, &mut notes) {
            Enqueue::Queued => {
                let backlog = queue.backlog().packets;
                observer.record(now, who, &Event::Enqueued { packet, backlog });
                true
            }
            Enqueue::Dropped(packet, why) => {
                self.drop(now, &packet, why, observer);
                queue.backlog().packets > 0
            }
        }
    }

    #[inline(never)]
    fn settle_managed<O: Observer>(
        &mut self,
        discipline: &mut AnyQdisc<Packet>,
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
    fn pull<O: Observer>(&mut self, queue: &mut impl Qdisc<Packet>, observer: &mut O) {
        let now = self.due;
        let who = Who::Link(self.index);
        let mut notes = Notes { who, counts: &mut self.counts, observer };
        let sojourn = match queue.dequeue(now, &mut notes) {
            Dequeue::Packet(packet, sojourn) => {
                self.pipe.wait(now, packet);
                sojourn
            }
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
    fn pull_own<O: Observer>(&mut self, admission: &mut Admission, observer: &mut O) {
        let Some((since, packet)) = self.pipe.first_waiting() else {
            self.due = Time::NEVER;
            return;
        };
        let sojourn = self.due.after(*since);
        admission.release(packet.wire_len());
        let ready = self.send(sojourn, observer);
        self.due = if admission.backlog().packets > 0 { ready } else { Time::NEVER };
    }

    /// Sends what is first to wait in the ring and is due, and returns when the next may follow.
    #[inline(always)]
    fn send<O: Observer>(&mut self, sojourn: Span, observer: &mut O) -> Time {
        let now = self.due;
        let slot = self.pipe.first_waiting_mut().expect("the caller found one");
        let packet = &mut slot.1;
        packet.hop += 1;
        observer.record(now, Who::Link(self.index), &Event::Dequeued { packet, sojourn });
        let departure = self.transmitter.send(now, packet);
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += u64::from(packet.wire_len());
        if self.loss.loses(&mut self.loss_random) {
            self.lose(now, observer);
            return departure.ready;
        }
        // Departures are in order, and jitter keeps them so.
        slot.0 = departure.out + self.delay;
        if let Some(jitter) = &mut self.jitter {
            slot.0 = jitter.delay(slot.0, &mut self.jitter_random);
        }
        self.pipe.send();
        departure.ready
    }

    /// The medium loses the only packet that waits in the ring.
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
