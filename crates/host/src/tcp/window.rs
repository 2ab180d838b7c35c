//! The receive window: fixed, or grown with what the application reads, as on Linux.

use sojourn_core::{Span, Time};

/// How much the receiver will hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveBuffer {
    /// A window of so many bytes, whatever is read.
    Window(u64),
    /// A buffer of this many bytes of memory (what `SO_RCVBUF` asks for; the kernel doubles it).
    Locked(u64),
    /// Starts at `initial` bytes of memory and grows to `most` (`tcp_rmem`).
    Auto { initial: u64, most: u64 },
}

/// Share of buffer memory that may be advertised, in 1/256, before any segment has shown what it
/// costs.
const INITIAL_RATIO: u64 = 128;
/// Below this round-trip time the window grows less ahead of the data (`tcp_rcvbuf_low_rtt`).
const LOW_RTT: Span = Span::from_millis(1);
/// Timestamps count these.
const TICK: Span = Span::from_millis(1);

/// A field of 15 bits holds the window of the largest buffer, if that is shifted by so many bits, of which 14 are the most
/// (Linux's `tcp_select_initial_window`).
fn unit_for(most: u64) -> u64 {
    1 << most.max(1).ilog2().saturating_sub(15).min(14)
}

#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    buffer: ReceiveBuffer,
    mss: u64,
    /// Windows are offered in units of so many bytes, a power of two (RFC 7323 section 2.2).
    unit: u64,
    /// Memory allowed.
    space: u64,
    /// Advertisable share of it, in 1/256, and whether segments change it.
    ratio: u64,
    is_ratio_shown: bool,
    /// What may be advertised while nothing takes memory, and the memory that [`ReceiveWindow::slow_start`] needs.
    all: u64,
    needed: u64,
    /// Above this it does not grow: where segments change no share, room for one stays free until the buffer grows.
    clamp: u64,
    /// Payload and memory of the full segment that showed the share, and whether the next segment
    /// of that kind changes nothing.
    shown: (u32, u32),
    is_grown: bool,
    /// Grows from the initial window as segments arrive (`rcv_ssthresh`).
    slow_start: u64,
    /// Right edge advertised so far, as a byte position: it never moves back.
    edge: u64,
    /// The window that the acknowledgement before offered.
    offered: u64,
    /// Smoothed, but any smaller sample at once; [`Span::MAX`] before there is one.
    rtt: Span,
    /// The timestamp of which that was, in ticks.
    last_echo: u64,
    /// Without timestamps, the time in which a whole window arrives is the sample: where it ends
    /// and since when it is awaited.
    window_end: u64,
    window_start: Time,
    /// Bytes read in the measurement interval before, and where and when the present one began.
    copied_before: u64,
    interval_byte: u64,
    interval_start: Time,
}

impl ReceiveWindow {
    /// With `scale` one part in so many powers of two is no window, whatever arrives (`tcp_adv_win_scale` before Linux 6.6).
    pub(super) fn new(buffer: ReceiveBuffer, mss: u32, scale: Option<u32>) -> Self {
        let mss = u64::from(mss);
        let ratio = scale.map_or(INITIAL_RATIO, |scale| 256 - (256 >> scale));
        let space = match buffer {
            ReceiveBuffer::Window(bytes) => bytes,
            ReceiveBuffer::Locked(asked) => 2 * asked,
            ReceiveBuffer::Auto { initial, .. } => initial,
        };
        let full = space * ratio / 256;
        let unit = match buffer {
            ReceiveBuffer::Window(_) => 1,
            ReceiveBuffer::Locked(bytes) => unit_for(bytes),
            ReceiveBuffer::Auto { most, .. } => unit_for(most),
        };
        let (edge, slow_start) = match buffer {
            ReceiveBuffer::Window(bytes) => (bytes, bytes),
            // Whole segments if there is room for one, without the option for scaling. After the answer of the
            // handshake room for one segment is kept free.
            _ => {
                let whole = if full > mss { full - full % mss } else { full }.min(65_535);
                (whole, whole.min(full.saturating_sub(mss).max(2 * mss)))
            }
        };
        Self {
            buffer,
            mss,
            unit,
            space,
            ratio,
            is_ratio_shown: scale.is_none(),
            all: full,
            needed: (slow_start * 256).div_ceil(ratio),
            clamp: if scale.is_none() { u64::MAX } else { full.saturating_sub(mss).max(2 * mss) },
            shown: (0, 0),
            is_grown: false,
            slow_start,
            edge,
            offered: edge,
            rtt: Span::MAX,
            last_echo: 0,
            window_end: 0,
            window_start: Time::NEVER,
            // The buffer may grow as soon as a round trip brings more than the initial window.
            copied_before: slow_start.min(10 * mss),
            interval_byte: 0,
            interval_start: Time::ZERO,
        }
    }

    /// What it offers before anything has arrived.
    pub(super) fn at_first(&self) -> u64 {
        self.edge
    }

    /// `segments` segments of `payload` bytes each arrived as one packet; each takes `truesize`
    /// bytes of memory. All that counts as unread takes `taken`. True if the window is still growing into the buffer.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        payload: u32,
        truesize: u32,
        segments: u32,
        taken: u64,
    ) -> bool {
        let is_usual = (payload, truesize) == self.shown && taken >= u64::from(truesize);
        (!self.is_grown || !is_usual) && self.grow(payload, truesize, segments, taken)
    }

    fn grow(&mut self, payload: u32, truesize: u32, segments: u32, taken: u64) -> bool {
        if matches!(self.buffer, ReceiveBuffer::Window(_)) {
            return false;
        }
        let is_full = u64::from(payload) >= self.mss;
        if is_full {
            self.shown = (payload, truesize);
            if self.is_ratio_shown {
                self.ratio = (u64::from(payload) << 8).div_euclid(u64::from(truesize)).max(1);
                self.on_change();
            }
        }
        // A packet takes memory until the application has read it, so the window stops growing that much short of the whole buffer.
        let most = self.share_of(self.space.saturating_sub(taken)).min(self.clamp);
        let grows = self.slow_start < most;
        if grows {
            let twice = 2 * u64::from(payload) * u64::from(segments);
            self.slow_start = (self.slow_start + twice.max(2 * self.mss)).min(most);
            self.on_change();
        }
        if is_full && taken == u64::from(truesize) * u64::from(segments) {
            self.is_grown = self.slow_start >= most;
        }
        grows
    }

    /// The buffer, the share of it or the window that grows into it has changed.
    fn on_change(&mut self) {
        self.all = self.share_of(self.space);
        self.needed = (self.slow_start * 256).div_ceil(self.ratio);
    }

    /// What may be advertised of so much memory.
    #[inline]
    fn share_of(&self, memory: u64) -> u64 {
        memory * self.ratio / 256
    }

    /// The window has so many bytes from now on. What was advertised stays promised, so a smaller one
    /// closes only as data comes (RFC 9293 section 3.8.6).
    pub(super) fn change(&mut self, bytes: u64) {
        self.buffer = ReceiveBuffer::Window(bytes);
    }

    /// The connection is established, with the last packet of its handshake or with what came before that.
    pub(super) fn start(&mut self, now: Time) {
        if self.interval_start == Time::ZERO {
            self.interval_start = now;
        }
    }

    /// A timestamp that left at `echo` came back. The first segment that has it gives the sample. The kernel's timestamps count
    /// milliseconds. Times below one give no sample; before Linux 6.6, a millisecond.
    pub(super) fn on_echo(&mut self, now: Time, echo: Time) {
        let ticks = |time: Time| time.as_nanos() / TICK.as_nanos();
        let echo = ticks(echo);
        if core::mem::replace(&mut self.last_echo, echo) == echo {
            return;
        }
        let mut rtt = TICK * (ticks(now) - echo);
        if rtt == Span::ZERO {
            if self.is_ratio_shown {
                return;
            }
            rtt = TICK;
        }
        self.rtt = if rtt < self.rtt {
            rtt
        } else {
            Span::from_nanos((self.rtt.as_nanos() * 7 + rtt.as_nanos()) / 8)
        };
    }

    /// Everything up to `byte` is here. If that is a whole window, it took at least a round trip.
    #[inline]
    pub(super) fn on_in_order(&mut self, now: Time, byte: u64) {
        if byte >= self.window_end {
            self.end_window(now, byte);
        }
    }

    #[inline(never)]
    fn end_window(&mut self, now: Time, byte: u64) {
        if !self.window_start.is_never() {
            let least = Span::from_micros(1);
            self.rtt = self.rtt.min(now.since(self.window_start).max(least));
        }
        self.window_end = byte + self.offered;
        self.window_start = now;
    }

    /// The application has read everything up to `byte`; what arrived early ends `early` bytes
    /// beyond.
    #[inline]
    pub(super) fn on_taken(&mut self, now: Time, byte: u64, early: u64) {
        if let ReceiveBuffer::Auto { most, .. } = self.buffer
            && now.after(self.interval_start) >= self.rtt
        {
            self.end_interval(now, byte, early, most);
        }
    }

    #[inline(never)]
    fn end_interval(&mut self, now: Time, byte: u64, early: u64, most: u64) {
        let copied = byte - self.interval_byte;
        if copied > self.copied_before {
            // Space for twice what was read in a round trip and, to stay ahead of slow start, for a
            // lead: four times what was read, times its relative growth. Below a round trip of a
            // millisecond the lead is twice what was read, times the share of the millisecond.
            let twice = 2 * copied;
            let lead = if self.rtt < LOW_RTT {
                twice * self.rtt.as_micros() / LOW_RTT.as_micros()
            } else {
                2 * twice * (copied - self.copied_before) / self.copied_before.max(1)
            };
            let space = if self.is_ratio_shown {
                (twice + lead + early) * 256 / self.ratio
            } else {
                self.space_before_linux_6_6(copied)
            };
            self.space = self.space.max(space.min(most));
            self.clamp = u64::MAX;
            self.on_change();
            self.is_grown = false;
            self.copied_before = copied;
        }
        self.interval_byte = byte;
        self.interval_start = now;
    }

    /// Memory for twice what was read in a round trip and 16 segments, and for twice the relative growth of that; a
    /// segment takes what a packet of its length would, in steps of 128 bytes until half of it, or what `scale` leaves, is payload.
    fn space_before_linux_6_6(&self, copied: u64) -> u64 {
        /// Room for headers, and the kernel's structures.
        const BESIDE: u64 = 192 + 576;
        const STEP: u64 = 128;
        let least = 2 * copied + 16 * self.mss;
        let growth = least * (copied - self.copied_before) / self.copied_before.max(1);
        let segments = (least + 2 * growth) / self.mss;
        let packet = self.mss + BESIDE;
        let missing = (self.mss * 256).div_ceil(self.ratio).saturating_sub(packet);
        segments * (packet + missing.next_multiple_of(STEP))
    }

    /// The window to advertise when acknowledging `byte`, while segments that arrived out of order
    /// take `held` bytes of memory and the application has not read `unread` bytes.
    #[inline(always)]
    pub(super) fn advertise(&mut self, byte: u64, held: u64, unread: u64) -> u32 {
        let free = if unread == 0 { self.free(held) } else { self.free_beside(held, unread) };
        let free = if self.unit > 1 { free } else { self.whole_segments(free) };
        self.offered = self.in_units(self.edge.saturating_sub(byte).max(free));
        self.edge = byte + self.offered;
        u32::try_from(self.offered).unwrap_or(u32::MAX)
    }

    #[cfg(test)]
    pub(super) fn round_trip(&self) -> Span {
        self.rtt
    }

    /// The window that was offered last.
    pub(super) fn offered(&self) -> u64 {
        self.offered
    }

    /// How much of the window offered last is left after `byte`, and how much could be offered.
    pub(super) fn room(&self, byte: u64, held: u64, unread: u64) -> (u64, u64) {
        (self.edge.saturating_sub(byte), self.free_beside(held, unread))
    }

    /// Whether what has arrived and takes so much memory makes the window smaller while it is not read.
    #[inline(always)]
    pub(super) fn is_narrowed_by(&self, unread: u64) -> bool {
        self.space.saturating_sub(unread) < self.needed
    }

    /// Whether the window is as large as the one offered last while something takes so much memory.
    #[inline(never)]
    pub(super) fn offers_as_before(&self, held: u64) -> bool {
        self.in_units(self.free(held)) >= self.offered
    }

    /// Rounded up to a whole unit.
    #[inline]
    fn in_units(&self, bytes: u64) -> u64 {
        (bytes + (self.unit - 1)) & !(self.unit - 1)
    }

    #[inline(always)]
    fn free(&self, held: u64) -> u64 {
        match self.buffer {
            ReceiveBuffer::Window(bytes) => bytes,
            _ if held == 0 => self.all.min(self.slow_start),
            _ => self.free_of_rest(held).min(self.slow_start),
        }
    }

    #[inline(never)]
    fn free_of_rest(&self, held: u64) -> u64 {
        let free = self.share_of(self.space.saturating_sub(held));
        if 2 * free < self.all.min(self.clamp) { self.little(free) } else { free }
    }

    /// A window that is not scaled is a multiple of segments, and remains as it is while less than a segment more is free.
    #[cold]
    #[inline(never)]
    fn whole_segments(&self, free: u64) -> u64 {
        if matches!(self.buffer, ReceiveBuffer::Window(_)) {
            return free;
        }
        let all = self.all.min(self.clamp);
        let mss = self.mss.min(all).max(1);
        if self.offered + mss <= free || self.offered > free {
            free - free % mss
        } else if mss == all && free > self.offered + all / 2 {
            free
        } else {
            self.offered
        }
    }

    /// Of less than half of the buffer Linux offers whole units, and nothing of less than a sixteenth or a segment.
    #[cold]
    #[inline(never)]
    fn little(&self, free: u64) -> u64 {
        let free = free - free % self.unit;
        let least = (self.all / 16).max(self.mss.min(self.all).min(self.clamp));
        if free < least { 0 } else { free }
    }

    /// Whether less than half of the buffer is free.
    pub(super) fn is_short(&self, held: u64, unread: u64) -> bool {
        let taken = held + unread * 256 / self.ratio;
        !matches!(self.buffer, ReceiveBuffer::Window(_))
            && self.share_of(2 * self.space.saturating_sub(taken)) < self.all.min(self.clamp)
    }

    /// Free space if `unread` bytes wait for the application. Of a window of a stated size, space below a segment, or below half of
    /// it, counts as none (RFC 9293 section 3.8.6.2.2).
    #[inline(never)]
    fn free_beside(&self, held: u64, unread: u64) -> u64 {
        match self.buffer {
            ReceiveBuffer::Window(bytes) => match bytes.saturating_sub(unread) {
                free if free < self.mss.min(bytes / 2) => 0,
                free => free,
            },
            _ => self.free(held + unread * 256 / self.ratio),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: ReceiveBuffer = ReceiveBuffer::Auto { initial: 131_072, most: 6_291_456 };

    #[test]
    fn before_linux_6_6_the_window_is_half_of_the_buffer() {
        let segments = |scale| {
            let mut window = ReceiveWindow::new(ReceiveBuffer::Locked(10_000), 1448, scale);
            for _ in 0..20 {
                window.on_packet(1448, 2304, 1, 2304);
            }
            window.advertise(10 * 1448, 0, 0) / 1448
        };
        // Half of 20 000 bytes without a segment has room for five; 1448/2304 of what the packet itself leaves for seven.
        assert_eq!((segments(Some(1)), segments(None)), (5, 7));
    }

    /// A kernel of 6.1 sent six segments of 1448 bytes on it, and never had as many in flight again.
    #[test]
    fn the_answer_of_the_handshake_offers_the_segment_that_is_kept_free_later() {
        let mut window = ReceiveWindow::new(ReceiveBuffer::Locked(10_000), 1448, Some(1));
        assert_eq!(window.at_first() / 1448, 6);
        let later = |byte| window.advertise(byte, 0, 0) / 1448;
        assert_eq!([1448, 2 * 1448, 10 * 1448].map(later), [5; 3]);
    }

    #[test]
    fn before_linux_6_6_the_buffer_grows_for_sixteen_segments_more() {
        let auto = ReceiveBuffer::Auto { initial: 131_072, most: 6 << 20 };
        let mut window = ReceiveWindow::new(auto, 1448, Some(1));
        window.copied_before = 11 * 1448;
        // 48 segments, and 10/11 of that more, are 91 of 2984 bytes each. Linux 6.1 advertised half of that over 5 Mbit/s, in whole
        // KiB: 136 192 bytes.
        window.end_interval(Time::from_nanos(1), 16 * 1448, 0, 6 << 20);
        assert_eq!(window.space, 91 * 2_984);
        assert_eq!((window.space / 2).next_multiple_of(1_024), 136_192);
    }

    #[test]
    fn the_right_edge_never_moves_back() {
        let mut window = ReceiveWindow::new(ReceiveBuffer::Locked(50_000), 1448, None);
        let first = window.advertise(0, 0, 0);
        assert_eq!(window.advertise(1448, 90_000, 0), first - 1448);
    }

    #[test]
    fn auto_tuning_grows_with_what_the_application_takes() {
        let mut window = ReceiveWindow::new(AUTO, 1448, None);
        let (mut byte, mut now) = (0, Time::ZERO + Span::from_secs(1));
        window.on_echo(now, now - Span::from_millis(20));
        window.start(now);
        for _ in 0..200 {
            byte += u64::from(window.advertise(byte, 0, 0));
            now += Span::from_millis(21);
            (0..50).for_each(|_| {
                window.on_packet(1448, 2432, 1, 2432);
            });
            window.on_taken(now, byte, 0);
        }
        assert_eq!(window.space, 6_291_456);
    }

    #[test]
    fn the_initial_window_keeps_a_segment_of_the_buffer_free() {
        let initial = |buffer| ReceiveWindow::new(buffer, 1448, None).slow_start;
        assert_eq!(initial(AUTO), 65_536 - 1448);
        assert_eq!(initial(ReceiveBuffer::Locked(50_000)), 50_000 - 1448);
        assert_eq!(initial(ReceiveBuffer::Locked(1 << 20)), 65_535);
    }

    #[test]
    fn an_offloaded_packet_widens_the_window_by_twice_its_length() {
        let mut window = ReceiveWindow::new(ReceiveBuffer::Locked(1 << 20), 1448, None);
        assert!(window.on_packet(1448, 3365, 10, 33650));
        assert_eq!(window.slow_start, 65_535 + 20 * 1448);
        assert!(window.on_packet(1448, 2416, 1, 2416));
        assert_eq!(window.slow_start, 65_535 + 22 * 1448);
    }

    #[test]
    fn a_window_that_fills_the_buffer_grows_no_more() {
        let mut window = ReceiveWindow::new(AUTO, 1448, None);
        let growing = (0..100).filter(|_| window.on_packet(1448, 2416, 1, 2416)).count();
        assert_eq!(growing, 5);
    }

    /// What is read in a round trip has doubled: at 20 ms the lead is four times that amount, at half a
    /// millisecond once.
    #[test]
    fn near_senders_get_less_lead() {
        let grown = |rtt| {
            let mut window = ReceiveWindow::new(AUTO, 1448, None);
            window.rtt = rtt;
            window.on_taken(Time::ZERO + Span::from_secs(1), 28_960, 7_240);
            window.space
        };
        assert_eq!(grown(Span::from_micros(500)), 2 * (57_920 + 28_960 + 7_240));
        assert_eq!(grown(Span::from_millis(20)), 2 * (57_920 + 115_840 + 7_240));
    }

    #[test]
    fn timestamps_count_milliseconds_and_a_smaller_one_holds_at_once() {
        let mut window = ReceiveWindow::new(AUTO, 1448, None);
        let now = Time::ZERO + Span::from_micros(1_000_900);
        window.on_echo(now, now - Span::from_micros(800));
        assert_eq!(window.rtt, Span::MAX);
        window.on_echo(now, now - Span::from_micros(40_000));
        assert_eq!(window.rtt, Span::from_millis(40));
        window.on_echo(now, now - Span::from_micros(48_000));
        assert_eq!(window.rtt, Span::from_millis(41));
        window.on_echo(now, now - Span::from_micros(20_000));
        assert_eq!(window.rtt, Span::from_millis(20));
    }

    /// Of 131 072 bytes half is window. A sixteenth of that is 4 096 bytes.
    #[test]
    fn a_window_is_in_units_of_its_scale_and_none_below_a_sixteenth_of_the_buffer() {
        let offered = |unread| {
            let mut window = ReceiveWindow::new(AUTO, 1448, None);
            window.edge = 0;
            window.advertise(0, 0, unread)
        };
        assert_eq!(offered(10_000), (65_536 - 10_000u32).next_multiple_of(128));
        assert_eq!([61_440, 61_441].map(offered), [4_096, 0]);
    }

    #[test]
    fn a_whole_window_stands_in_for_a_timestamp() {
        let mut window = ReceiveWindow::new(AUTO, 1448, None);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        window.on_in_order(at(10), 1448);
        window.on_in_order(at(20), 1448 + 65_000);
        assert_eq!(window.rtt, Span::MAX, "not all of it is here");
        window.on_in_order(at(23), 1448 + 65_160);
        assert_eq!(window.rtt, Span::from_millis(13));
    }
}
