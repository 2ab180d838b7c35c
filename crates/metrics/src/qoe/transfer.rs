//! How long a transfer would take without other traffic.

use sojourn_core::{Rate, Span};

/// A path without other traffic, for the least time that a transfer can take there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyPath {
    /// Propagation there and back.
    pub rtt: Span,
    /// The most that its narrowest link ever carries.
    pub rate: Rate,
    /// Bytes that may leave before the first acknowledgement.
    pub initial_window: u64,
}

impl EmptyPath {
    /// One round trip for the handshake; then as many as slow start needs when the window doubles
    /// in each, or the serialisation of all bytes and a round trip, whichever is longer.
    pub fn least_time(&self, bytes: u64) -> Span {
        let (mut rounds, mut window, mut sent) = (0, self.initial_window.max(1), 0u64);
        while sent < bytes {
            sent = sent.saturating_add(window);
            window = window.saturating_mul(2);
            rounds += 1;
        }
        let round_trips = Span::from_nanos(self.rtt.as_nanos().saturating_mul(rounds));
        self.rtt + round_trips.max(self.rtt + self.rate.time_for(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn small_transfers_need_round_trips_and_large_ones_the_rate() {
        // Ten segments at once, then twenty, then forty.
        let path =
            EmptyPath { rtt: MS(10), rate: Rate::from_bps(8_000_000), initial_window: 14_480 };
        let fast = EmptyPath { rate: Rate::UNLIMITED, ..path };
        assert_eq!(fast.least_time(1), MS(20));
        assert_eq!(fast.least_time(14_480), MS(20));
        assert_eq!(fast.least_time(14_481), MS(30));
        assert_eq!(fast.least_time(3 * 14_480), MS(30));
        assert_eq!(fast.least_time(7 * 14_480), MS(40));
        // A megabyte lasts a second at 8 Mbit/s.
        assert_eq!(path.least_time(1_000_000), MS(1020));
        assert_eq!(path.least_time(u64::MAX / 16).max(MS(1)), path.least_time(u64::MAX / 16));
    }
}
