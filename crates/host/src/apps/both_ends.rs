use sojourn_core::{Direction, FlowSample, Observer, Packet, Time};

use crate::tcp::{Receiver, Sender};

/// Both ends of a flow in one value, for an application that opens and closes connections by itself:
/// closing one frees both of its ends, without a packet that would tell the other.
///
/// An end is named by the direction in which it sends. It is used as an [`Endpoint`](crate::Endpoint) is.
pub trait BothEnds {
    /// A packet reached the end opposite to the one that sends in its direction.
    fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, observer: &mut O);

    /// A time that [`BothEnds::next_wake`] named for this end has come.
    fn on_wake<O: Observer>(&mut self, now: Time, sends: Direction, observer: &mut O);

    /// The next packet that leaves this end now.
    fn poll_transmit(&mut self, now: Time, sends: Direction) -> Option<Packet>;

    fn next_wake(&self, sends: Direction) -> Time;

    /// What `ss` would show of all connections, added up.
    fn sample(&self, now: Time) -> FlowSample;

    /// All its transfers have ended, and none is to come.
    fn is_done(&self) -> bool;

    /// The sender and the receiver of each direction of each connection that is open.
    fn connections(&self) -> impl Iterator<Item = (&Sender, &Receiver)>;
}
