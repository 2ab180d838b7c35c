//! Where packets enter a medium, and the listener for what happens to them inside.

use sojourn_core::{DropReason, Span, Time};

/// The place where a packet enters; the packet has the same port when it comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port(u16);

impl Port {
    /// From the access point to a station.
    pub const fn down(station: u16) -> Self {
        Self(2 * station)
    }

    /// From a station to the access point.
    pub const fn up(station: u16) -> Self {
        Self(2 * station + 1)
    }

    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    pub const fn index(self) -> u16 {
        self.0
    }

    pub const fn station(self) -> usize {
        self.0 as usize / 2
    }

    pub const fn is_up(self) -> bool {
        self.0 % 2 == 1
    }
}

/// Learns what happens to packets between their port and the other end.
pub trait Listener<P> {
    /// It waits at its port.
    fn entered(&mut self, now: Time, port: Port, packet: &P);

    /// It was dropped on arrival.
    fn refused(&mut self, now: Time, port: Port, packet: &P, why: DropReason);

    /// It was put into a frame, `waited` after it entered.
    fn framed(&mut self, now: Time, port: Port, packet: &P, waited: Span);

    /// So many packets of so many octets all together were put into frames, each of which was [framed](Listener::framed).
    fn left(&mut self, port: Port, packets: u32, octets: u32) {
        let _ = (port, packets, octets);
    }

    fn marked(&mut self, now: Time, port: Port, packet: &P);

    /// It had waited, and was dropped before it was in a frame.
    fn dropped(&mut self, now: Time, port: Port, packet: &P, why: DropReason);

    /// Its frame was given up after the last attempt.
    fn given_up(&mut self, now: Time, port: Port, packet: &P);
}
