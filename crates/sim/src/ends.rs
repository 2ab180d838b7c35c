//! The two ends of a flow, of whatever kind.

use alloc::boxed::Box;
use alloc::string::String;

use sojourn_core::{
    Direction, ETHERNET_HEADER, FlowId, FlowSample, Observer, Packet, Purpose, StreamAddress, Time,
};
use sojourn_host::apps::arrivals::Draws;
use sojourn_host::apps::{
    Arrivals, BothEnds, BulkConfig, Echo, OnOffConfig, Page, Ping, Requests, Rpm, Source, Udp,
    UdpSink,
};
use sojourn_host::tcp::{Endpoints, Reader, Reads, Receiver, Sender};
use sojourn_host::{Around, Contents, Endpoint, FlowSetup};
use sojourn_scenario::{App, Flow, Traffic};

/// Either a lone TCP connection, the commonest flow, or anything else: one comparison tells which.
#[expect(clippy::large_enum_variant, reason = "one per flow, and never moved")]
#[repr(u8)] // Told apart by a byte of its own, not by impossible values within the sender.
pub(crate) enum Ends {
    Tcp { sender: Sender, receiver: Receiver },
    Other(Other),
}

#[expect(clippy::large_enum_variant, reason = "one per flow, and never moved")]
pub(crate) enum Other {
    Arrivals(Arrivals),
    Page(Page),
    Requests(Requests),
    Rpm(Rpm),
    /// The sending and the receiving end, and their addresses.
    Two([End; 2], Endpoints),
}

/// One end: a built-in one, called directly, or any other behind a box.
#[expect(clippy::large_enum_variant, reason = "two per flow, and never moved")]
pub(crate) enum End {
    Ping(Ping),
    Echo(Echo),
    Udp(Udp),
    UdpSink(UdpSink),
    /// The ends of a connection whose application does not read at once, or whose phases are watched.
    Sender(Sender),
    Receiver(Receiver),
    Reading(Receiver<Reader>),
    External(Box<dyn Endpoint>),
}

macro_rules! each {
    ($end:expr, $inner:ident => $call:expr) => {
        match $end {
            End::Ping($inner) => $call,
            End::Echo($inner) => $call,
            End::Udp($inner) => $call,
            End::UdpSink($inner) => $call,
            End::Sender($inner) => $call,
            End::Receiver($inner) => $call,
            End::Reading($inner) => $call,
            End::External($inner) => $call,
        }
    };
}

/// Calls those that are [`BothEnds`] with one arm, and two ends of their own with the other.
macro_rules! either {
    ($other:expr, $both:ident => $call:expr, $two:pat => $calls:expr) => {
        match $other {
            Other::Arrivals($both) => $call,
            Other::Page($both) => $call,
            Other::Requests($both) => $call,
            Other::Rpm($both) => $call,
            $two => $calls,
        }
    };
}

impl Ends {
    /// A flow that does nothing; its ends take its place when it starts.
    pub(crate) fn waiting(flow: &Flow, id: FlowId) -> Self {
        let ends = Endpoints { flow: id, sender: flow.src, receiver: flow.dst, dscp: flow.dscp };
        Self::two([End::Echo(Echo::default()), End::Echo(Echo::default())], ends)
    }

    /// The ends of a flow that starts at `flow.start`. If it `is_watched`, [`Ends::phase`] says in
    /// which phase it is.
    pub(crate) fn new(
        flow: &Flow,
        id: FlowId,
        address: StreamAddress,
        end: Time,
        is_watched: bool,
    ) -> Self {
        let ends = Endpoints { flow: id, sender: flow.src, receiver: flow.dst, dscp: flow.dscp };
        let jitter = flow.start_jitter.as_nanos();
        let moved = match jitter {
            0 => 0,
            bound => address.stream_named(&flow.name, Purpose::Start).below(bound),
        };
        let start = Time::from_nanos(flow.start.as_nanos() + moved);
        let stop = flow.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop);
        match &flow.app {
            App::Tcp { traffic, cca, transport } => {
                let random = address.stream_named(&flow.name, Purpose::Controller);
                let mut clock = address.stream_named(&flow.name, Purpose::Clock);
                let receiving = transport.with_clock(&mut clock);
                let transport = transport.with_clock(&mut clock);
                let until = stop.min(end);
                let source = match traffic {
                    Traffic::Bulk(BulkConfig { rate: None, bytes }) => {
                        Source::Bulk { bytes: *bytes, stop }
                    }
                    Traffic::Bulk(BulkConfig { rate: Some(rate), bytes }) => {
                        Source::paced(*rate, transport.mss, *bytes, start, until)
                    }
                    Traffic::OnOff(OnOffConfig { on, off, random }) => Source::on_off(
                        *on,
                        *off,
                        random.then(|| address.stream_named(&flow.name, Purpose::Application)),
                        start,
                        until,
                    ),
                    Traffic::Arrivals(config) => {
                        let draws = Draws::new(address, &flow.name);
                        let (config, cca, transport) = (config.clone(), cca.clone(), transport);
                        let end = Arrivals::new(config, cca, transport, ends, draws, start, until);
                        return Self::Other(Other::Arrivals(end));
                    }
                    Traffic::Page(config) => {
                        let (config, cca, transport) = (config.clone(), cca.clone(), transport);
                        let end = Page::new(config, cca, transport, ends, random, start, until);
                        return Self::Other(Other::Page(end));
                    }
                    Traffic::Requests(config) => {
                        let (config, cca, transport) = (config.clone(), cca.clone(), transport);
                        let end = Requests::new(config, cca, transport, ends, random, start, until);
                        return Self::Other(Other::Requests(end));
                    }
                    Traffic::Rpm(config) => {
                        let (config, cca, transport) = (config.clone(), cca.clone(), transport);
                        let end = Rpm::new(config, cca, transport, ends, random, start, until);
                        return Self::Other(Other::Rpm(end));
                    }
                };
                let sender = Sender::new(transport, cca.clone(), ends, source, start, random);
                let (config, request) = (receiving, cca.ecn_request());
                match flow.reads.clone() {
                    None if is_watched => {
                        let receiver = Receiver::new(config, request, ends);
                        Self::two([End::Sender(sender), End::Receiver(receiver)], ends)
                    }
                    None => Self::Tcp { sender, receiver: Receiver::new(config, request, ends) },
                    Some(reading) => {
                        let receiver = Receiver::read_as(reading, config, request, ends);
                        Self::two([End::Sender(sender), End::Reading(receiver)], ends)
                    }
                }
            }
            App::Ping(config) => {
                let asking = Ping::new(config.clone(), ends, start, stop);
                Self::two([End::Ping(asking), End::Echo(Echo::default())], ends)
            }
            App::Udp(config) => {
                let sending = Udp::new(*config, ends, start, stop);
                Self::two([End::Udp(sending), End::UdpSink(UdpSink::new(*config))], ends)
            }
            App::External(app) => {
                let setup = FlowSetup { name: &flow.name, ends, start, stop, address };
                Self::two(app.0.build(&setup).map(End::External), ends)
            }
        }
    }

    fn two(both: [End; 2], ends: Endpoints) -> Self {
        Self::Other(Other::Two(both, ends))
    }

    #[inline]
    pub(crate) fn next_sender_wake(&self) -> Time {
        match self {
            Self::Tcp { sender, .. } => sender.next_wake(),
            Self::Other(other) => other.next_wake(Direction::Forward),
        }
    }

    /// A time that [`Ends::next_sender_wake`] doesn't come before.
    #[inline(always)]
    pub(crate) fn least_sender_wake(&self) -> Time {
        match self {
            Self::Tcp { sender, .. } => sender.least_wake(),
            Self::Other(_) => Time::ZERO,
        }
    }

    #[inline]
    pub(crate) fn next_receiver_wake(&self) -> Time {
        match self {
            Self::Tcp { receiver, .. } => receiver.next_wake(),
            Self::Other(other) => other.next_wake(Direction::Reverse),
        }
    }

    /// The sending end, if it sends datagrams at a constant rate.
    #[inline]
    pub(crate) fn datagrams(&mut self) -> Option<&mut Udp> {
        match self {
            Self::Other(Other::Two([End::Udp(source), _], _)) => Some(source),
            _ => None,
        }
    }

    /// The end that sends in this direction and the addresses of both, if it is an outside one, as the ends of calls are.
    #[inline(always)]
    pub(crate) fn outside(
        &mut self,
        sends: Direction,
    ) -> Option<(&mut Box<dyn Endpoint>, &Endpoints)> {
        let Self::Other(Other::Two(both, ends)) = self else { return None };
        match &mut both[sends as usize] {
            End::External(end) => Some((end, ends)),
            _ => None,
        }
    }

    /// The sending end of a flow that is one TCP connection.
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Self::Tcp { sender, .. } | Self::Other(Other::Two([End::Sender(sender), _], _)) => {
                Some(sender)
            }
            Self::Other(_) => None,
        }
    }

    /// The phase of its congestion controller, if the flow is watched.
    pub(crate) fn phase(&self) -> Option<&'static str> {
        match self {
            Self::Other(Other::Two([End::Sender(sender), _], _)) => Some(sender.phase()),
            _ => None,
        }
    }

    /// All its transfers have ended, and no other is to come.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Tcp { sender, .. } => sender.is_complete(),
            Self::Other(other) => either!(
                other,
                both => both.is_done(),
                Other::Two([sending, _], _) => {
                    matches!(sending, End::Sender(sender) if sender.is_complete())
                }
            ),
        }
    }

    /// It offers nothing after `stop`, and all that it sent has been acknowledged, as `sample` says; or its
    /// transfers have ended. Nothing more happens to it.
    pub(crate) fn is_over(&self, now: Time, stop: Time, sample: &FlowSample) -> bool {
        let is_one =
            matches!(self, Self::Tcp { .. } | Self::Other(Other::Two([End::Sender(_), _], _)));
        let is_empty = sample.unacked == 0 && sample.not_sent == 0;
        self.is_done() || (is_one && now >= stop && is_empty)
    }

    /// What `ss` would show; `None` if it is not TCP.
    pub(crate) fn sample(&self, now: Time) -> Option<FlowSample> {
        match self {
            Self::Tcp { sender, .. } => Some(sender.sample(now)),
            Self::Other(other) => either!(
                other,
                both => Some(both.sample(now)),
                Other::Two([sending, _], _) => each!(sending, end => Endpoint::sample(end, now))
            ),
        }
    }

    /// Whether the counts of all senders match their scoreboards.
    pub(crate) fn have_counted_right(&self) -> bool {
        match self {
            Self::Tcp { sender, .. } => sender.has_counted_right(),
            Self::Other(other) => either!(
                other,
                both => both.connections().all(|(sender, _)| sender.has_counted_right()),
                Other::Two([sending, _], _) => {
                    !matches!(sending, End::Sender(sender) if !sender.has_counted_right())
                }
            ),
        }
    }

    /// A connection that breaks the order acknowledged ≤ received ≤ sent, if there is one: the
    /// first segment not acknowledged, the first not received, the first not sent.
    pub(crate) fn out_of_sequence(&self) -> Option<[u32; 3]> {
        match self {
            Self::Tcp { sender, receiver } => out_of_sequence(sender, receiver),
            Self::Other(other) => either!(
                other,
                both => {
                    both.connections().find_map(|(sender, receiver)| out_of_sequence(sender, receiver))
                },
                Other::Two(ends, _) => match ends {
                    [End::Sender(sender), End::Reading(receiver)] => {
                        out_of_sequence(sender, receiver)
                    }
                    [End::Sender(sender), End::Receiver(receiver)] => {
                        out_of_sequence(sender, receiver)
                    }
                    _ => None,
                }
            ),
        }
    }

    /// Reports what an end finds wrong with its own invariants.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Other(Other::Two(both, _)) => {
                both.iter().try_for_each(|end| each!(end, end => Endpoint::check(end)))
            }
            Self::Tcp { .. }
            | Self::Other(
                Other::Arrivals(_) | Other::Page(_) | Other::Requests(_) | Other::Rpm(_),
            ) => Ok(()),
        }
    }
}

/// Everything but a lone TCP connection. Packets of the sending end go [`Direction::Forward`] and those of the receiving end [`Direction::Reverse`]; that tells
/// the ends apart. Outside ends are called by the engine itself ([`Ends::outside`]).
impl Other {
    /// A packet reached an end; `Some` is the first that this end then sends.
    #[inline(never)]
    pub(crate) fn on_packet<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        contents: &mut Contents,
        observer: &mut O,
    ) -> Option<Packet> {
        let sends = packet.direction.opposite();
        either!(
            self,
            both => {
                both.on_packet(now, packet, observer);
                both.poll_transmit(now, sends)
            },
            Self::Two(ends, _) => {
                let around = &mut Around { contents, observer };
                each!(&mut ends[sends as usize], end => Endpoint::on_packet(end, now, packet, around));
                self.poll_two(now, sends, around)
            }
        )
    }

    /// An end was woken; `Some` is the first packet that it then sends.
    #[inline(never)]
    pub(crate) fn on_wake<O: Observer>(
        &mut self,
        now: Time,
        sends: Direction,
        contents: &mut Contents,
        observer: &mut O,
    ) -> Option<Packet> {
        either!(
            self,
            both => {
                both.on_wake(now, sends, observer);
                both.poll_transmit(now, sends)
            },
            Self::Two(ends, _) => {
                let around = &mut Around { contents, observer };
                let end = &mut ends[sends as usize];
                if each!(&*end, end => Endpoint::next_wake(end)) > now {
                    return None;
                }
                each!(end, end => Endpoint::on_wake(end, now, around));
                self.poll_two(now, sends, around)
            }
        )
    }

    /// The next packet of an end that has just sent one.
    #[inline(never)]
    pub(crate) fn poll_more<O: Observer>(
        &mut self,
        now: Time,
        sends: Direction,
        contents: &mut Contents,
        observer: &mut O,
    ) -> Option<Packet> {
        either!(
            self,
            both => both.poll_transmit(now, sends),
            Self::Two(..) => self.poll_two(now, sends, &mut Around { contents, observer })
        )
    }

    #[inline(never)]
    pub(crate) fn next_wake(&self, sends: Direction) -> Time {
        if let Self::Two(both, _) = self
            && let End::External(end) = &both[sends as usize]
        {
            return end.next_wake();
        }
        self.next_wake_inside(sends)
    }

    /// [`Other::next_wake`] of an end that is not outside.
    #[inline(never)]
    fn next_wake_inside(&self, sends: Direction) -> Time {
        either!(
            self,
            both => both.next_wake(sends),
            Self::Two(ends, _) => each!(&ends[sends as usize], end => Endpoint::next_wake(end))
        )
    }

    fn poll_two(&mut self, now: Time, sends: Direction, around: &mut Around<'_>) -> Option<Packet> {
        let Self::Two(both, _) = self else { return None };
        debug_assert!(!matches!(both[sends as usize], End::External(_)), "an outside end");
        each!(&mut both[sends as usize], end => Endpoint::poll_transmit(end, now, around))
    }
}

/// Fills in the fields by which the engine routes a packet of an outside end.
#[inline(always)]
pub(crate) fn address(packet: &mut Packet, now: Time, direction: Direction, ends: &Endpoints) {
    (packet.src, packet.dst) = match direction {
        Direction::Forward => (ends.sender, ends.receiver),
        Direction::Reverse => (ends.receiver, ends.sender),
    };
    packet.flow = ends.flow;
    packet.direction = direction;
    packet.hop = 0;
    packet.sent = now;
    packet.segments = packet.segments.max(1);
    packet.wire_len = packet.wire_len.max(ETHERNET_HEADER * u32::from(packet.segments));
}

fn out_of_sequence<R: Reads>(sender: &Sender, receiver: &Receiver<R>) -> Option<[u32; 3]> {
    let (una, sent) = sender.outstanding();
    let next = receiver.next_expected();
    (una > next || next > sent).then_some([una, next, sent])
}
