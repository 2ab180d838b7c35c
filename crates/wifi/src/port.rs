//! Where packets enter a medium, and who is told what becomes of them inside.

use sojourn_core::{DropReason, Span, Time};

/// Where a packet enters, and by which it is known when it comes out at the other end.
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

/// Told what becomes of packets between their port and the other end.
pub trait Listener<P> {
    /// It waits at its port.
    fn entered(&mut self, now: Time, port: Port, packet: &P);

    /// It was dropped on arrival.
    fn refused(&mut self, now: Time, port: Port, packet: P, why: DropReason);

    /// It was put into a frame, `waited` after it entered.
    fn framed(&mut self, now: Time, port: Port, packet: &P, waited: Span);

    fn marked(&mut self, now: Time, port: Port, packet: &P);

    /// It had waited, and was dropped before it was in a frame.
    fn dropped(&mut self, now: Time, port: Port, packet: P, why: DropReason);

    /// Its frame was given up after the last attempt.
    fn given_up(&mut self, now: Time, port: Port, packet: P);
}
