use alloc::boxed::Box;
use alloc::string::String;

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

use sojourn_core::{
    Body, Direction, ETHERNET_HEADER, Ecn, FlowId, FlowSample, HostId, Kind, Observer, Packet,
    Params, SpecError, StreamAddress, Time,
};

use crate::Contents;

/// One end of a flow. A flow has two: the sending end, whose packets go forward, and the receiving
/// end, whose packets go back.
///
/// It is used as every machine is: change it ([`Endpoint::on_packet`], [`Endpoint::on_wake`]), take
/// packets with [`Endpoint::poll_transmit`] until there are none, then ask [`Endpoint::next_wake`]
/// when it must be called again. Time never goes back. An endpoint that is woken early does
/// nothing.
pub trait Endpoint: Send {
    /// A packet from the other end arrived. Bytes that it carries are in `around` until this returns.
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>);

    /// A time that [`Endpoint::next_wake`] named has come.
    fn on_wake(&mut self, now: Time, around: &mut Around<'_>);

    /// The next packet that leaves now. The engine fills in its flow, direction and hosts.
    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet>;

    /// When it must be woken; [`Time::NEVER`] while only a packet can change it. The engine asks at
    /// the start and each time it has taken all packets.
    fn next_wake(&self) -> Time;

    /// [`Endpoint::next_wake`], later than now, if it is known already that no more packets leave before. The engine asks right after it took a packet, and
    /// then doesn't poll for another one.
    fn rests_until(&self) -> Option<Time> {
        None
    }

    /// What `ss` would show of it, if it resembles TCP.
    fn sample(&self, now: Time) -> Option<FlowSample> {
        let _ = now;
        None
    }

    /// Whether its own invariants hold.
    ///
    /// # Errors
    /// Which one does not, in words.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Endpoint + ?Sized> Endpoint for Box<E> {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        (**self).on_packet(now, packet, around);
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        (**self).on_wake(now, around);
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        (**self).poll_transmit(now, around)
    }

    fn next_wake(&self) -> Time {
        (**self).next_wake()
    }

    fn rests_until(&self) -> Option<Time> {
        (**self).rests_until()
    }

    fn sample(&self, now: Time) -> Option<FlowSample> {
        (**self).sample(now)
    }

    fn check(&self) -> Result<(), String> {
        (**self).check()
    }
}

/// What an endpoint can use beside its own state.
pub struct Around<'a> {
    pub contents: &'a mut Contents,
    pub observer: &'a mut dyn Observer,
}

/// A kind of application from outside of this workspace, with its parameters. If the parameters are
/// [`Params`], a study file can name it.
pub trait AppModel: Send + Sync {
    /// Refuses values out of bounds, before anything is built; for [`Params`] it is
    /// [`Params::check`]. One that can't be made with such values need not check again.
    ///
    /// # Errors
    /// Names the parameter and what is allowed.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }

    /// The sending end and the receiving end of a flow.
    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2];

    /// Its name and parameters: two applications with the same text are the same. For [`Params`] it
    /// is what [`Params::written`] gives with
    /// [`Style::Canonical`](sojourn_core::param::Style::Canonical).
    fn canonical(&self) -> String;

    /// Whether it is measured as a TCP connection that always has something to send. Then its packets have the bodies of TCP, its
    /// sending end has a sample, and it reports what reaches the application and what round trips take.
    fn is_tcp(&self) -> bool {
        false
    }

    /// Of one that [`AppModel::is_tcp`], how many bytes it transfers, if it ends by itself.
    fn transfer(&self) -> Option<u64> {
        None
    }

    /// Whether its packets may have several segments. If not, queues count each as one.
    fn offloads(&self) -> bool {
        false
    }

    /// Whether all its packets are UDP datagrams of which it knows every byte ([`Body::Opaque`], with their payload
    /// in [`Around::contents`]): then they can leave through a socket as they are.
    fn carries_bytes(&self) -> bool {
        false
    }

    /// The only engine that can run it; without one all that run packets can.
    fn needs_engine(&self) -> Option<&'static str> {
        None
    }

    /// Itself, for who knows its type and wants more of it than a simulation does.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// A kind from outside, for [`Kinds::add`](sojourn_core::Kinds::add).
pub const fn external<A: AppModel + Params + 'static>() -> Kind<ExternalApp> {
    Kind::of::<A>(|words| Ok(ExternalApp(Arc::new(A::parse(words)?))))
}

/// What the ends of a flow learn when they are built.
#[derive(Clone, Copy, Debug)]
pub struct FlowSetup<'a> {
    pub name: &'a str,
    pub ends: Endpoints,
    /// When the application starts, and when it offers nothing more.
    pub start: Time,
    pub stop: Time,
    /// The root of its random streams: draw from streams of its own name.
    pub address: StreamAddress,
}

/// An [`AppModel`] as part of a scenario.
#[derive(Clone)]
pub struct ExternalApp(pub Arc<dyn AppModel>);

impl PartialEq for ExternalApp {
    fn eq(&self, other: &Self) -> bool {
        self.0.canonical() == other.0.canonical()
    }
}

impl fmt::Debug for ExternalApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.canonical())
    }
}

/// Where a connection's packets come from and go to.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    pub flow: FlowId,
    pub sender: HostId,
    pub receiver: HostId,
    pub dscp: u8,
}

impl Endpoints {
    /// A packet of `ip_len` bytes that leaves the sender as one segment, not ECN-capable.
    #[inline(always)]
    pub fn packet(&self, now: Time, ip_len: u32, body: Body) -> Packet {
        Packet {
            flow: self.flow,
            connection: 0,
            direction: Direction::Forward,
            ecn: Ecn::NotEct,
            dscp: self.dscp,
            segments: 1,
            wire_len: ip_len + ETHERNET_HEADER,
            hop: 0,
            src: self.sender,
            dst: self.receiver,
            sent: now,
            body,
        }
    }

    /// The same from the receiver to the sender.
    pub fn answer(&self, now: Time, ip_len: u32, body: Body) -> Packet {
        Packet {
            direction: Direction::Reverse,
            src: self.receiver,
            dst: self.sender,
            ..self.packet(now, ip_len, body)
        }
    }
}
