//! The receive window: fixed, or grown with what the application takes, as Linux does it.

use sojourn_core::{Span, Time};

/// How much the receiver will hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// A window of so many bytes, always.
    Window(u64),
    /// A buffer of so many bytes of memory (what `SO_RCVBUF` asks for; the kernel doubles it).
    Locked(u64),
    /// Starts at `initial` bytes of memory and grows to `most` (`tcp_rmem`).
    Auto { initial: u64, most: u64 },
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self::Auto { initial: 131_072, most: 6_291_456 }
    }
}

/// Share of buffer memory that may be advertised, in 1/256, before any segment has shown what it
/// costs.
const INITIAL_RATIO: u64 = 128;

#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    buffer: ReceiveBuffer,
    mss: u64,
    /// Memory allowed.
    space: u64,
    /// Advertisable share of it, in 1/256.
    ratio: u64,
    /// Payload and memory of the full segment that has shown it, and whether more of the same
    /// leave everything as it is.
    shown: (u32, u32),
    is_grown: bool,
    /// Grows from the initial window as segments arrive (`rcv_ssthresh`).
    slow_start: u64,
    /// Right edge advertised so far, as a byte position: it never moves back.
    edge: u64,
    /// Smoothed; the longest of all spans before there is a sample.
    rtt: Span,
    /// Bytes taken in the measurement interval before, and where and when this one began.
    copied_before: u64,
    interval_byte: u64,
    interval_start: Time,
}

impl ReceiveWindow {
    pub(super) fn new(buffer: ReceiveBuffer, mss: u32) -> Self {
        let mss = u64::from(mss);
        let space = match buffer {
            ReceiveBuffer::Window(bytes) => bytes,
            ReceiveBuffer::Locked(asked) => 2 * asked,
            ReceiveBuffer::Auto { initial, .. } => initial,
        };
        let full = space * INITIAL_RATIO / 256;
        let slow_start = match buffer {
            ReceiveBuffer::Window(bytes) => bytes,
            _ => full.min(65_535),
        };
        Self {
            buffer,
            mss,
            space,
            ratio: INITIAL_RATIO,
            shown: (0, 0),
            is_grown: false,
            slow_start,
            edge: slow_start,
            rtt: Span::MAX,
            // Growth is wanted as soon as a round trip brings more than the initial window.
            copied_before: slow_start.min(10 * mss),
            interval_byte: 0,
            interval_start: Time::ZERO,
        }
    }

    /// A segment of `payload` bytes that took `truesize` bytes of memory arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, payload: u32, truesize: u32) {
        if !self.is_grown || (payload, truesize) != self.shown {
            self.grow(payload, truesize);
        }
    }

    fn grow(&mut self, payload: u32, truesize: u32) {
        if matches!(self.buffer, ReceiveBuffer::Window(_)) {
            return;
        }
        let is_full = u64::from(payload) >= self.mss;
        if is_full {
            self.shown = (payload, truesize);
            self.ratio = (u64::from(payload) << 8).div_euclid(u64::from(truesize)).max(1);
        }
        // The segment itself takes memory until the application has read it, so the window stops
        // growing that much short of the whole buffer.
        let most = self.space.saturating_sub(u64::from(truesize)) * self.ratio / 256;
        if self.slow_start < most {
            self.slow_start = (self.slow_start + 2 * self.mss).min(most);
        }
        if is_full {
            self.is_grown = self.slow_start >= most;
        }
    }

    pub(super) fn on_rtt(&mut self, rtt: Span) {
        self.rtt = if self.rtt == Span::MAX {
            rtt
        } else {
            Span::from_nanos((self.rtt.as_nanos() * 7 + rtt.as_nanos()) / 8)
        };
    }

    /// The application has taken everything up to `byte`.
    #[inline]
    pub(super) fn on_taken(&mut self, now: Time, byte: u64) {
        if let ReceiveBuffer::Auto { most, .. } = self.buffer
            && now.after(self.interval_start) >= self.rtt
        {
            self.end_interval(now, byte, most);
        }
    }

    #[inline(never)]
    fn end_interval(&mut self, now: Time, byte: u64, most: u64) {
        let copied = byte - self.interval_byte;
        if copied > self.copied_before {
            // Twice what was taken in a round trip, and ahead of slow start by the growth seen.
            let mut wanted = 2 * copied + 16 * self.mss;
            wanted += 2 * (wanted * (copied - self.copied_before) / self.copied_before.max(1));
            let space = (wanted * 256 / self.ratio).min(most);
            self.space = self.space.max(space);
            self.is_grown = false;
            self.copied_before = copied;
        }
        self.interval_byte = byte;
        self.interval_start = now;
    }

    /// The window to advertise with acknowledgement of `byte`, while `held` bytes of memory are
    /// taken by segments that arrived out of order.
    pub(super) fn advertise(&mut self, byte: u64, held: u64) -> u32 {
        let free = match self.buffer {
            ReceiveBuffer::Window(bytes) => bytes,
            _ => {
                let free = self.space.saturating_sub(held) * self.ratio / 256;
                // Whole segments only, as the kernel does without window scaling; with it the
                // granularity is finer than a segment and the sender's rounding hides it.
                let free = free.min(self.slow_start);
                free - free % self.mss
            }
        };
        self.edge = self.edge.max(byte + free);
        u32::try_from(self.edge - byte).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_edge_never_moves_back() {
        let mut window = ReceiveWindow::new(ReceiveBuffer::Locked(50_000), 1448);
        let first = window.advertise(0, 0);
        assert_eq!(window.advertise(1448, 90_000), first - 1448);
    }

    #[test]
    fn auto_tuning_grows_with_what_the_application_takes() {
        let mut window = ReceiveWindow::new(ReceiveBuffer::default(), 1448);
        window.on_rtt(Span::from_millis(20));
        let (mut byte, mut now) = (0, Time::ZERO);
        for _ in 0..200 {
            byte += u64::from(window.advertise(byte, 0));
            now += Span::from_millis(21);
            (0..50).for_each(|_| window.on_segment(1448, 2432));
            window.on_taken(now, byte);
        }
        assert_eq!(window.space, 6_291_456);
    }
}
