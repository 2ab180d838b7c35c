use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{Observer, PortId, QueueSample, Time};

use crate::Carried;

/// A carrier takes packets in at a port and gives them back some time later: a link, a switch, a
/// radio medium.
///
/// It is used as every machine is: change it ([`Carrier::offer`], [`Carrier::on_wake`]), take what
/// has come out with [`Carrier::poll_deliver`] until there is nothing, then ask
/// [`Carrier::next_wake`] when it must be called again. Time never goes back. A carrier that is
/// woken early does nothing.
///
/// Port numbers are those of the whole scenario; a carrier gets the number of its first port when
/// it is built, and has those that follow.
pub trait Carrier<P: Carried>: Send {
    /// A packet enters at `port`: it waits there, or is dropped.
    fn offer(&mut self, now: Time, port: PortId, packet: P, observer: &mut dyn Observer);

    /// When it must be woken; [`Time::NEVER`] while nothing is inside.
    fn next_wake(&self) -> Time;

    /// Does what is due by `now`.
    fn on_wake(&mut self, now: Time, observer: &mut dyn Observer);

    /// The next packet that has come out by `now`, and the port at which it was offered. Packets
    /// that come out at one moment keep the order in which they arrived.
    fn poll_deliver(&mut self, now: Time) -> Option<(PortId, P)>;

    /// Until when packets that enter change nothing of what it does next. They may be offered late then, each with
    /// its own time: after packets have come out at later times, but before this time, anything else that it
    /// is to do, and any question about its state.
    fn heeds_from(&self) -> Time {
        Time::ZERO
    }

    /// [`Carrier::offer`] without a copy for the call.
    fn put_in(&mut self, now: Time, port: PortId, packet: &P, observer: &mut dyn Observer) {
        self.offer(now, port, *packet, observer);
    }

    /// [`Carrier::put_in`] and [`Carrier::next_wake`] in one call, since an engine asks for the second after
    /// every first.
    fn take_in(
        &mut self,
        now: Time,
        port: PortId,
        packet: &P,
        observer: &mut dyn Observer,
    ) -> Time {
        self.put_in(now, port, packet, observer);
        self.next_wake()
    }

    /// [`Carrier::on_wake`], [`Carrier::poll_deliver`] and [`Carrier::next_wake`] in one call.
    fn turn(&mut self, now: Time, observer: &mut dyn Observer) -> Turn<P> {
        self.on_wake(now, observer);
        let (port, delivered) = match self.poll_deliver(now) {
            Some((port, packet)) => (port, Some(packet)),
            None => (PortId(0), None),
        };
        Turn { delivered, port, wake: self.next_wake() }
    }

    /// Takes out ahead of time what is known to come out before `before`, as long as the port of the next packet is one
    /// that `may`: each with its time and port. Whatever enters meanwhile must not change any of it. Gives
    /// [`Carrier::next_wake`] after that.
    fn deliver_ahead(
        &mut self,
        before: Time,
        may: &dyn Fn(PortId) -> bool,
        take: &mut dyn FnMut(Time, PortId, &P),
    ) -> Time {
        let _ = (before, may, take);
        self.next_wake()
    }

    /// What was counted at `port` since the start.
    fn books(&self, port: PortId) -> Books;

    /// What `tc -s` would show of the queue at `port`.
    fn sample(&self, now: Time, port: PortId) -> QueueSample;

    /// The lines that `tc -s qdisc` would print below the counters that every discipline has.
    fn details(&self, port: PortId) -> Vec<(&'static str, u64)> {
        let _ = port;
        Vec::new()
    }

    /// Hands over the packets with contents that were dropped or lost since the last call.
    fn take_lost(&mut self, take: &mut dyn FnMut(P));

    /// Checks the invariants that only this carrier knows.
    ///
    /// # Errors
    /// Which one does not, in words.
    fn check(&self, now: Time) -> Result<(), String> {
        let _ = now;
        Ok(())
    }
}

/// What [`Carrier::turn`] gives.
#[derive(Clone, Copy, Debug)]
pub struct Turn<P> {
    /// The next packet that has come out.
    pub delivered: Option<P>,
    /// The port at which it was offered; without meaning if there is none.
    pub port: PortId,
    /// When the carrier must be woken.
    pub wake: Time,
}

/// Where the bytes are that were offered at a port. Books count bytes, because a discipline may cut
/// an offloaded packet into its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    pub offered: u64,
    /// Dropped before or in the queue.
    pub dropped: u64,
    /// Waiting in the queue.
    pub waiting: u64,
    /// Taken from the queue, including those that the medium then lost.
    pub sent: u64,
    /// Lost on the medium after it was sent.
    pub lost: u64,
    /// On the way to the far end.
    pub under_way: u64,
}

impl Books {
    /// Whether every byte that was offered was dropped, waits or was sent.
    pub fn balance(&self) -> bool {
        self.offered == self.dropped + self.waiting + self.sent
    }
}
