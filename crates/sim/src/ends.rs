//! The two ends of a flow, whatever it is.

use sojourn_core::{
    Body, Event, FlowId, FlowSample, Observer, Packet, Purpose, StreamAddress, Time, Who,
};
use sojourn_host::apps::arrivals::Draws;
use sojourn_host::apps::{Arrivals, Ping, Source, Udp};
use sojourn_host::tcp::{Endpoints, Receiver, Sender};
use sojourn_scenario::{App, Flow, Traffic};

/// Of two kinds, so that one comparison finds the commonest.
#[expect(clippy::large_enum_variant, reason = "one per flow, and never moved")]
#[repr(u8)] // Told apart by a byte of its own, not by impossible values within the sender.
pub(crate) enum Ends {
    Tcp { sender: Sender, receiver: Receiver },
    Other(Other),
}

#[expect(clippy::large_enum_variant, reason = "one per flow, and never moved")]
pub(crate) enum Other {
    /// One connection after another, and several at once.
    Arrivals(Arrivals),
    Ping(Ping),
    Udp(Udp),
}

impl Ends {
    pub(crate) fn new(flow: &Flow, id: FlowId, address: StreamAddress, end: Time) -> Self {
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
                let source = match traffic {
                    Traffic::Bulk { bytes } => Source::Bulk { bytes: *bytes, stop },
                    Traffic::OnOff { on, off, random } => Source::on_off(
                        *on,
                        *off,
                        random.then(|| address.stream_named(&flow.name, Purpose::Application)),
                        start,
                        stop.min(end),
                    ),
                    Traffic::Arrivals(config) => {
                        let draws = Draws::new(address, &flow.name);
                        let (config, stop) = (config.clone(), stop.min(end));
                        let (cca, transport) = (cca.clone(), transport.clone());
                        return Self::Other(Other::Arrivals(Arrivals::new(
                            config, cca, transport, ends, draws, start, stop,
                        )));
                    }
                };
                let random = address.stream_named(&flow.name, Purpose::Controller);
                let config = transport.clone();
                Self::Tcp {
                    receiver: Receiver::new(config.clone(), cca.ecn_request(), ends),
                    sender: Sender::new(config, cca.clone(), ends, source, start, random),
                }
            }
            App::Ping(config) => Self::Other(Other::Ping(Ping::new(*config, ends, start, stop))),
            App::Udp(config) => Self::Other(Other::Udp(Udp::new(*config, ends, start, stop))),
        }
    }

    /// A packet reached the sending end.
    #[inline]
    pub(crate) fn on_reverse<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) {
        match self {
            Self::Tcp { sender, .. } => sender.on_packet(now, packet, o),
            Self::Other(other) => other.on_reverse(now, packet, o),
        }
    }

    /// A packet reached the receiving end; `Some` is what it answers at once.
    #[inline(always)]
    pub(crate) fn on_forward<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        o: &mut O,
    ) -> Option<Packet> {
        match self {
            Self::Tcp { receiver, .. } => {
                receiver.on_packet(now, packet, o);
                receiver.poll_transmit(now)
            }
            Self::Other(other) => other.on_forward(now, packet, o),
        }
    }

    pub(crate) fn wake_sender<O: Observer>(&mut self, now: Time, o: &mut O) {
        match self {
            Self::Tcp { sender, .. } => sender.on_wake(now, o),
            Self::Other(Other::Arrivals(arrivals)) => arrivals.wake_sender(now, o),
            Self::Other(Other::Ping(_) | Other::Udp(_)) => {}
        }
    }

    pub(crate) fn wake_receiver(&mut self, now: Time) -> Option<Packet> {
        match self {
            Self::Tcp { receiver, .. } => {
                receiver.on_wake(now);
                receiver.poll_transmit(now)
            }
            Self::Other(Other::Arrivals(arrivals)) => arrivals.wake_receiver(now),
            Self::Other(Other::Ping(_) | Other::Udp(_)) => None,
        }
    }

    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        match self {
            Self::Tcp { sender, .. } => sender.poll_transmit(now),
            Self::Other(other) => other.poll_transmit(now),
        }
    }

    #[inline]
    pub(crate) fn next_sender_wake(&self) -> Time {
        match self {
            Self::Tcp { sender, .. } => sender.next_wake(),
            Self::Other(other) => other.next_sender_wake(),
        }
    }

    #[inline]
    pub(crate) fn next_receiver_wake(&self) -> Time {
        match self {
            Self::Tcp { receiver, .. } => receiver.next_wake(),
            Self::Other(Other::Arrivals(arrivals)) => arrivals.next_receiver_wake(),
            Self::Other(Other::Ping(_) | Other::Udp(_)) => Time::NEVER,
        }
    }

    /// What `ss` would show; `None` if it is not TCP.
    pub(crate) fn sample(&self, now: Time) -> Option<FlowSample> {
        match self {
            Self::Tcp { sender, .. } => Some(sender.sample(now)),
            Self::Other(Other::Arrivals(arrivals)) => Some(arrivals.sample(now)),
            Self::Other(Other::Ping(_) | Other::Udp(_)) => None,
        }
    }

    /// Whether the counts of all senders are those of their scoreboards.
    pub(crate) fn have_counted_right(&self) -> bool {
        match self {
            Self::Tcp { sender, .. } => sender.has_counted_right(),
            Self::Other(Other::Arrivals(arrivals)) => {
                arrivals.connections().all(|(sender, _)| sender.has_counted_right())
            }
            Self::Other(Other::Ping(_) | Other::Udp(_)) => true,
        }
    }

    /// The connection of which more, or less, is acknowledged than arrived and was sent: the
    /// first segment not acknowledged, the first not received, the first not sent.
    pub(crate) fn out_of_sequence(&self) -> Option<[u32; 3]> {
        match self {
            Self::Tcp { sender, receiver } => out_of_sequence(sender, receiver),
            Self::Other(Other::Arrivals(arrivals)) => arrivals
                .connections()
                .find_map(|(sender, receiver)| out_of_sequence(sender, receiver)),
            Self::Other(Other::Ping(_) | Other::Udp(_)) => None,
        }
    }
}

impl Other {
    #[inline(never)]
    fn on_reverse<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) {
        match self {
            Self::Arrivals(arrivals) => arrivals.on_reverse(now, packet, o),
            Self::Ping(_) => {
                if let Body::Echo { asked, .. } = packet.body {
                    let rtt = now.since(asked);
                    o.record(now, Who::Flow(packet.flow), &Event::Ping { rtt });
                }
            }
            Self::Udp(_) => {}
        }
    }

    #[inline(never)]
    fn on_forward<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) -> Option<Packet> {
        match self {
            Self::Arrivals(arrivals) => arrivals.on_forward(now, packet, o),
            Self::Ping(_) => Some(Ping::answer(now, packet)),
            Self::Udp(udp) => {
                let bytes = udp.payload(packet);
                o.record(now, Who::Flow(packet.flow), &Event::Delivered { bytes });
                None
            }
        }
    }

    #[inline(never)]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        match self {
            Self::Arrivals(arrivals) => arrivals.poll_transmit(now),
            Self::Ping(ping) => ping.poll_transmit(now),
            Self::Udp(udp) => udp.poll_transmit(now),
        }
    }

    #[inline(never)]
    fn next_sender_wake(&self) -> Time {
        match self {
            Self::Arrivals(arrivals) => arrivals.next_sender_wake(),
            Self::Ping(ping) => ping.next_wake(),
            Self::Udp(udp) => udp.next_wake(),
        }
    }
}

fn out_of_sequence(sender: &Sender, receiver: &Receiver) -> Option<[u32; 3]> {
    let (una, sent) = sender.outstanding();
    let next = receiver.next_expected();
    (una > next || next > sent).then_some([una, next, sent])
}
