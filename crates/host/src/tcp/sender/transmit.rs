//! What may leave now: lost segments first, then new ones, as far as window, receiver and pacer
//! allow, in bursts of the size that Linux gives to segmentation offload.

use sojourn_cca::{Quantum, RecoveryState, Sent};
use sojourn_core::{Body, ETHERNET_HEADER, Packet, SegmentBody, Span, TcpEcn, Time};

use super::burst::Burst;
use super::window_use::Waiting;
use super::{Sender, TimerKind};
use crate::source::SourceState;
use crate::tcp::SendBuffer;
use crate::tcp::write_queue::Wrote;

/// Why new data did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Window,
    Receiver,
    /// More of the window is about to open, and a fuller burst is worth the wait.
    Deferred,
    /// The same, and it is the receiver's window that ends the burst.
    DeferredByReceiver,
    NothingToSend,
    /// What the application has written is sent, and the send buffer has no room for more.
    SendBuffer,
    Pacing,
}

impl Sender {
    /// The next packet on the wire: the rest of a burst, a retransmission, or new data.
    #[inline(always)]
    pub(super) fn next_segment(&mut self, now: Time) -> Option<Packet> {
        if self.burst.is_none() {
            let sent_before = self.totals.segments_sent;
            self.pacer.wake = Time::NEVER;
            if !self.plan_burst(now) {
                self.set_probe_timer(now);
                return self.take_window_probe(now);
            }
            debug_assert!(self.totals.segments_sent > sent_before, "a burst has segments");
        }
        let burst = self.burst.as_mut()?;
        let (first, byte) = (burst.next, burst.byte);
        let count = if self.config.offload {
            (burst.end - burst.next).min(self.config.offload_segments)
        } else {
            1
        };
        let payload = if burst.retransmission {
            (first..first + count).map(|segment| self.board.record(segment).payload).sum()
        } else {
            u64::from(self.config.mss * count).min(burst.end_byte - byte) as u32
        };
        burst.next += count;
        burst.byte += u64::from(payload);
        let (retransmission, cwr) = (burst.retransmission, burst.cwr);
        burst.cwr = false;
        let is_last = burst.next == burst.end;
        let push = is_last && burst.push;
        if is_last {
            self.burst = None;
        }
        let body = Body::Segment(SegmentBody {
            first,
            byte,
            payload,
            retransmission,
            ecn: if cwr { TcpEcn::CWR } else { self.ecn.flags },
            push,
            fin: false,
            echo: self.echo,
        });
        let ecn = if retransmission { self.ecn.repeated } else { self.ecn.fresh };
        let wire_len = payload + (self.config.header + ETHERNET_HEADER) * count;
        Some(Packet { ecn, segments: count as u16, wire_len, ..self.ends.packet(now, 0, body) })
    }

    /// Plans the next burst and accounts for it.
    #[inline(always)]
    fn plan_burst(&mut self, now: Time) -> bool {
        let in_flight = self.in_flight();
        let cwnd = self.cwnd();
        let may_retransmit = self.lost_out > self.retrans_out && !self.prefers_new_data;
        if may_retransmit && in_flight < cwnd {
            if self.is_paced_out(now) {
                return false;
            }
            if self.plan_retransmission(now, cwnd - in_flight) {
                return true;
            }
        }
        // An application that is awake goes on writing as its bursts leave.
        let wrote = if self.queue.is_asleep() { Wrote::Nothing } else { self.write_once(now) };
        self.plan_from_queue(now, in_flight, cwnd, wrote)
    }

    #[inline(always)]
    fn plan_from_queue(&mut self, now: Time, in_flight: u32, cwnd: u32, wrote: Wrote) -> bool {
        match self.plan_new(now, in_flight, cwnd, wrote == Wrote::OnlyBuffer) {
            Ok(()) => true,
            Err(hold) => {
                self.on_hold(now, hold, in_flight, cwnd);
                self.may_write(now, in_flight, cwnd) && self.write_on(now, hold, in_flight, cwnd)
            }
        }
    }

    /// What an awake application writes before a burst leaves.
    #[inline(never)]
    fn write_once(&mut self, now: Time) -> Wrote {
        if self.queue.leaves_first() && !self.queue.is_complete() {
            return Wrote::Nothing;
        }
        self.write_more(now)
    }

    /// Whether the application is awake, or is woken now because there is enough memory.
    #[inline(always)]
    fn may_write(&mut self, now: Time, in_flight: u32, cwnd: u32) -> bool {
        if !self.queue.is_asleep() {
            return !self.queue.is_complete();
        }
        if core::mem::take(&mut self.window_had_room) || in_flight < cwnd {
            if cwnd.max(self.rack.reordering + 1) > self.buffer_serves {
                self.expand_send_buffer(cwnd);
            }
            // Where the buffer is the limit, a window that isn't used stays as it is (`tcp_new_space`).
            if self.config.send_buffer == SendBuffer::Auto {
                self.usage.used_since = now;
            }
        }
        let is_woken = self.queue.may_wake(self.una_byte)
            && self.queue.wake(self.nxt_byte, self.memory_taken());
        if is_woken && !self.config.blocking {
            self.queue.begin_call();
            self.on_call();
        }
        is_woken
    }

    /// Linux asks when a call begins whether everything that was written has left.
    #[inline(never)]
    fn on_call(&mut self) {
        if self.queue.end() - self.nxt_byte < u64::from(self.config.mss) {
            self.note_app_limit(self.in_flight(), self.cwnd());
        }
    }

    /// If the buffer is tuned, it grows when the application waits for memory and the window has room
    /// (Linux's `tcp_should_expand_sndbuf`).
    #[inline(never)]
    fn expand_send_buffer(&mut self, cwnd: u32) {
        let segments = cwnd.max(self.rack.reordering + 1);
        self.buffer_serves = segments;
        if self.config.send_buffer == SendBuffer::Auto {
            let windows = self.cca.send_buffer_windows();
            self.queue.grow(self.config.send_buffer_for(windows, segments));
        }
    }

    /// The application writes although nothing can leave: until it sleeps, has nothing more, or has given an
    /// empty queue something that can.
    #[inline(never)]
    fn write_on(&mut self, now: Time, hold: Hold, in_flight: u32, cwnd: u32) -> bool {
        let is_empty = matches!(hold, Hold::NothingToSend | Hold::SendBuffer);
        let is_deferred = matches!(hold, Hold::Deferred | Hold::DeferredByReceiver);
        self.queue.give_way();
        loop {
            let wrote = self.write_more(now);
            if wrote == Wrote::Nothing {
                return false;
            }
            let is_pushed = wrote == Wrote::OnlyBuffer || self.queue.is_pushed();
            if is_empty || (is_deferred && is_pushed) {
                return self.plan_from_queue(now, in_flight, cwnd, wrote);
            }
            self.queue.give_way();
        }
    }

    /// As much as fits a buffer.
    #[inline(always)]
    fn write_more(&mut self, now: Time) -> Wrote {
        let plan = match self.source.state(now) {
            SourceState::Endless => u64::MAX,
            SourceState::Until(bytes) | SourceState::SoFar(bytes) => bytes,
            SourceState::Paused => self.queue.end_of_call(),
            SourceState::Stopped => self.queue.end(),
        };
        if plan > self.queue.end() && self.queue.take_end_of_call() {
            self.on_call();
        }
        self.queue.write(plan, self.nxt_byte, self.memory_taken())
    }

    /// Memory of all that is not acknowledged.
    #[inline(always)]
    fn memory_taken(&self) -> u64 {
        self.queue.taken(self.una_byte, self.board.buffers(self.bursts))
    }

    /// True if only the pacer holds the burst back; then sets when to come back.
    fn is_paced_out(&mut self, now: Time) -> bool {
        if self.pacer.slack > Span::ZERO {
            let is_prompted = self.rate.delivered_time == now || self.board.is_empty();
            return self.pacer.waits_for_late_timer(now, is_prompted);
        }
        let is_out = self.pacer.holds_back(now);
        if is_out {
            self.pacer.wake = self.pacer.stamp;
        }
        is_out
    }

    #[inline(always)]
    fn plan_new(
        &mut self,
        now: Time,
        in_flight: u32,
        cwnd: u32,
        is_at_once: bool,
    ) -> Result<(), Hold> {
        let mss = u64::from(self.config.mss);
        let (mut available, mut is_last) = self.available(now);
        if available == 0 {
            // Who has stopped has no call in which it could sleep.
            let waits = self.queue.is_asleep() && self.source.state(now) != SourceState::Stopped;
            return Err(if waits { Hold::SendBuffer } else { Hold::NothingToSend });
        }
        if in_flight >= cwnd {
            return Err(Hold::Window);
        }
        if self.is_paced_out(now) {
            return Err(Hold::Pacing);
        }
        if self.board.is_empty() && self.totals.segments_sent > 0 {
            self.restart(now, self.pacer.stamp.min(now));
        }
        let most = self.burst_limit();
        let count = (cwnd - in_flight).min((cwnd / 2).max(1)).min(most);
        let full = u64::from(count) * mss;
        if full > available && !is_last && !self.config.buffer_bound {
            (available, is_last) = self.queue.join(self.nxt_byte, full);
        }
        let room = self.window_end.saturating_sub(self.nxt_byte);
        if room < mss.min(available) {
            return Err(Hold::Receiver);
        }
        // A single segment never waits.
        if available > mss && !is_at_once {
            let buffer = (available, is_last);
            if let Some(hold) = self.defers(now, in_flight, cwnd, room, most, buffer) {
                return Err(hold);
            }
        }
        self.window_had_room |= in_flight + count < cwnd;
        if full <= room.min(available) {
            self.send_new(now, full, count, in_flight);
        } else {
            let bytes = full.min(available).min(room);
            let rest = bytes % mss;
            let ends = bytes == available;
            // To the last byte of the receiver's window kernels before 6.10 were seen to send, and newer ones whole segments.
            let waits = rest > 0
                && !is_at_once
                && ((!ends && !self.config.buffer_bound)
                    || ((is_last || !ends) && self.keeps_small(ends)));
            let bytes = if waits { bytes - rest } else { bytes };
            if bytes == 0 {
                return Err(Hold::Deferred);
            }
            self.send_new(now, bytes, bytes.div_ceil(mss) as u32, in_flight);
        }
        Ok(())
    }

    /// Whether what is less than a segment waits because something as small has not been acknowledged (RFC 896, as Linux has it after
    /// draft-minshall-nagle-01). The end of what gets nothing more does not wait.
    #[cold]
    #[inline(never)]
    fn keeps_small(&self, is_end: bool) -> bool {
        self.small_end > self.una_byte && !(is_end && self.queue.is_complete())
    }

    /// Bytes of the buffer that leaves next, and whether it is the last one. What an application that pauses or stops has
    /// written goes on leaving; one whose buffer has no limit has written what left.
    #[inline(always)]
    pub(super) fn available(&self, now: Time) -> (u64, bool) {
        if !self.config.send_buffer.is_limited() && self.is_silent(now) {
            return (0, true);
        }
        self.queue.head(self.nxt_byte)
    }

    fn is_silent(&self, now: Time) -> bool {
        matches!(self.source.state(now), SourceState::Paused | SourceState::Stopped)
    }

    /// Bytes that the application has written and that have not been sent; zero, if it never ends and nothing limits it.
    pub(super) fn not_sent(&self, now: Time) -> u64 {
        let is_limited = self.config.send_buffer.is_limited();
        match self.source.state(now) {
            SourceState::Endless | SourceState::Paused | SourceState::Stopped if !is_limited => 0,
            _ => self.queue.end() - self.nxt_byte,
        }
    }

    /// A tail loss probe prefers new data, even if the window is full. False if there is none that
    /// the receiver would accept.
    pub(super) fn send_probe_of_new_data(&mut self, now: Time) -> bool {
        let mss = u64::from(self.config.mss);
        let available = self.available(now).0.min(mss);
        let room = self.window_end.saturating_sub(self.nxt_byte);
        if available == 0 || room < available {
            return false;
        }
        self.send_new(now, available, 1, self.in_flight());
        true
    }

    /// Sends `bytes` as `count` segments; `in_flight` are under way before them.
    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time, bytes: u64, count: u32, in_flight: u32) {
        let mss = u64::from(self.config.mss);
        let was_empty = self.board.is_empty();
        let memo = self.memo(now, in_flight + count);
        let first = self.board.end();
        let mut left = bytes;
        for _ in 0..count {
            let payload = left.min(mss) as u32;
            self.board.push(now, memo, self.nxt_byte + bytes - left, payload, self.bursts);
            left -= u64::from(payload);
        }
        self.bursts += 1;
        let ends_marked = self.queue.on_sent(self.nxt_byte + bytes);
        if bytes < u64::from(count) * mss {
            self.small_end = self.nxt_byte + bytes;
        }
        // A copy of a burst's last segment isn't pushed because its burst was.
        if ends_marked {
            self.board.record_mut(first + count - 1).is_pushed = true;
        }
        let cwr = core::mem::take(&mut self.ecn.owes_cwr);
        self.burst = Some(Burst {
            next: first,
            end: first + count,
            byte: self.nxt_byte,
            end_byte: self.nxt_byte + bytes,
            retransmission: false,
            cwr,
            push: count > 1 || ends_marked,
        });
        self.nxt_byte += bytes;
        self.on_burst(now, bytes, count, in_flight, false);
        self.usage.wait(now, Waiting::Busy);
        // A probe timer restarts with every burst of new data.
        let is_idle = was_empty || self.timer.is_off();
        if !self.schedule_probe() && (is_idle || self.timer.kind == TimerKind::LossProbe) {
            self.rearm_retransmission(now);
        }
    }

    /// Repeats the first lost segment that has no retransmission under way, and the lost ones after
    /// it that left with it.
    fn plan_retransmission(&mut self, now: Time, room: u32) -> bool {
        let most = room.min(self.burst_limit());
        let end = self.board.end();
        let first = self.board.next_lost(self.retransmit_hint.max(self.board.first()));
        self.retransmit_hint = first;
        if first == end {
            return false;
        }
        let left_at = self.board.record(first).sent;
        let mut last = first + 1;
        while last < end
            && last - first < most
            && self.is_retransmittable(last)
            && self.board.record(last).sent == left_at
        {
            last += 1;
        }
        self.undo.on_retransmission(now, last - first);
        self.retransmit(now, first, last);
        true
    }

    fn is_retransmittable(&self, segment: u32) -> bool {
        let record = self.board.record(segment);
        record.is_lost && !record.is_retransmitted && !record.is_sacked
    }

    /// Sends `first..end` again.
    pub(super) fn retransmit(&mut self, now: Time, first: u32, end: u32) {
        let in_flight = self.in_flight();
        let count = end - first;
        let memo = self.memo(now, in_flight + count);
        let (mut bytes, mut push) = (0, count > 1);
        for segment in first..end {
            let record = self.board.record(segment);
            bytes += u64::from(record.payload);
            push |= record.is_pushed && segment + 1 == end;
            self.retrans_out += u32::from(!record.is_retransmitted);
            self.board.set_retransmitted(segment, now, memo);
        }
        let byte = self.board.record(first).byte;
        self.burst = Some(Burst {
            next: first,
            end,
            byte,
            end_byte: byte + bytes,
            retransmission: true,
            cwr: false,
            push,
        });
        self.totals.retransmitted += u64::from(count);
        self.totals.bytes_retransmitted += bytes;
        self.on_burst(now, bytes, count, in_flight, true);
        if first == self.board.first() && self.timer.kind != TimerKind::Reorder {
            self.arm(TimerKind::Retransmit, now, self.rtt.rto());
        }
    }

    #[inline(always)]
    fn on_burst(
        &mut self,
        now: Time,
        bytes: u64,
        segments: u32,
        in_flight: u32,
        retransmission: bool,
    ) {
        self.totals.segments_sent += u64::from(segments);
        self.pacer.on_sent(now, bytes, self.totals.segments_sent);
        self.totals.bytes_sent += bytes;
        if let Some(prr) = &mut self.prr {
            prr.on_sent(segments);
        }
        self.cca.on_sent(&Sent { now, segments, in_flight, retransmission });
    }

    /// The largest burst in segments: a millisecond of the pacing rate, and more the nearer the
    /// peer is, as Linux sizes offloaded segments.
    #[inline(always)]
    fn burst_limit(&self) -> u32 {
        let least = match self.cca.send_quantum() {
            Quantum::Segments(segments) => return segments.max(1),
            Quantum::Auto { least } => least,
        };
        let most = u64::from(self.config.most_of_a_burst());
        let rate = self.pacer.rate;
        let mut bytes = if rate.is_unlimited() { most } else { rate.as_bytes_per_sec() >> 10 };
        // By default the addition doubles for every 512 µs that the round-trip time is shorter,
        // below 32 times that.
        let log = self.config.tso_rtt_log;
        let distance = self.rtt.min_us() >> log;
        if log != 0 && distance < 32 {
            bytes += most >> distance;
        }
        (bytes.min(most) as u32 / self.config.mss).max(least)
    }

    /// Whether a burst that the window cuts short should wait for the next acknowledgement
    /// (Linux's `tcp_tso_should_defer`).
    #[inline(always)]
    fn defers(
        &mut self,
        now: Time,
        in_flight: u32,
        cwnd: u32,
        room: u64,
        most: u32,
        (available, is_last): (u64, bool),
    ) -> Option<Hold> {
        const RECENT: Span = Span::from_millis(1);
        let mss = u64::from(self.config.mss);
        if matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
            || now.since(self.pacer.stamp) > RECENT
            || self.board.is_empty()
        {
            return None;
        }
        let by_window = u64::from(cwnd - in_flight) * mss;
        let limit = by_window.min(room);
        // What will get nothing more can leave whole.
        let whole = if is_last && !self.queue.is_complete() { u64::MAX } else { available };
        if limit >= u64::from(most) * mss || limit >= whole {
            return None;
        }
        // A third of the window is enough for a burst.
        let chunk = (self.window_end - self.una_byte).min(u64::from(cwnd) * mss) / 3;
        if limit >= chunk {
            return None;
        }
        // The next acknowledgement is due too late to wait for it.
        let srtt = Span::from_nanos(self.rtt.srtt_us_8() * 125);
        let expected = self.board.record(self.board.first()).sent + srtt;
        if expected.since(now) > self.config.deferral.min(srtt / 2) {
            return None;
        }
        if by_window < room {
            self.usage.limited_by_deferral |= by_window <= available;
        } else if room <= available {
            return Some(Hold::DeferredByReceiver);
        }
        Some(Hold::Deferred)
    }

    #[inline(always)]
    fn on_hold(&mut self, now: Time, hold: Hold, in_flight: u32, cwnd: u32) {
        let waiting = match hold {
            Hold::Receiver | Hold::DeferredByReceiver => Waiting::Receiver,
            // A full window holds it back as well (Linux's `tcp_cwnd_validate`).
            Hold::SendBuffer if in_flight < cwnd => Waiting::SendBuffer,
            Hold::NothingToSend if self.board.is_empty() => Waiting::Idle,
            _ => Waiting::Busy,
        };
        self.usage.wait(now, waiting);
        match hold {
            Hold::NothingToSend => self.note_app_limit(in_flight, cwnd),
            Hold::Receiver => {
                self.note_receiver_limit(in_flight);
                self.persist(now);
            }
            Hold::DeferredByReceiver => self.note_receiver_limit(in_flight),
            // Who sleeps in a call is not asked.
            Hold::SendBuffer | Hold::Window | Hold::Deferred | Hold::Pacing => {}
        }
        // Linux looks at the window where something was sent, or the window kept it from being sent (`tcp_write_xmit`).
        let is_full = in_flight >= cwnd;
        let has_sent = self.board.end() != self.usage.told_until;
        let waits = !matches!(hold, Hold::NothingToSend | Hold::SendBuffer);
        if has_sent || (waits && (is_full || self.usage.limited_by_deferral)) {
            self.usage.told_until = self.board.end();
            self.validate_window(now, is_full);
        }
    }

    fn note_receiver_limit(&mut self, in_flight: u32) {
        self.rate.rwnd_limited = (self.rate.delivered + u64::from(in_flight)).max(1);
    }

    /// The application had nothing more to send, though the window had room.
    fn note_app_limit(&mut self, in_flight: u32, cwnd: u32) {
        if in_flight < cwnd && self.lost_out <= self.retrans_out {
            self.rate.app_limited = (self.rate.delivered + u64::from(in_flight)).max(1);
        }
    }

    /// Once a flight, determines whether the window was the limit, and tells the controller if it
    /// has not been fully used for a whole timeout.
    #[inline(always)]
    fn validate_window(&mut self, now: Time, is_full: bool) {
        let packets_out = self.packets_out();
        let is_limited = is_full || core::mem::take(&mut self.usage.limited_by_deferral);
        let usage = &mut self.usage;
        let is_new_flight = self.board.first() >= usage.until;
        if is_new_flight || is_limited || (!usage.was_full && packets_out > usage.max_packets_out) {
            usage.was_full = is_limited;
            usage.max_packets_out = packets_out;
            usage.until = self.board.end();
        }
        if self.usage.is_limited(&self.cca) {
            self.usage.used = 0;
            self.usage.used_since = now;
            return;
        }
        self.note_unused_window(now, packets_out);
    }

    #[inline(always)]
    fn note_unused_window(&mut self, now: Time, packets_out: u32) {
        self.usage.used = self.usage.used.max(packets_out);
        let is_long = now.since(self.usage.used_since) >= self.rtt.rto();
        if is_long && self.config.slow_start_after_idle && self.cca.uses_prr() {
            // Who sleeps for want of memory has more to send (`tcp_cwnd_application_limited`).
            if self.state == RecoveryState::Open && !self.queue.is_asleep() {
                self.cca.on_unused_window(self.usage.used.max(self.config.initial_cwnd));
                self.usage.used = 0;
            }
            self.usage.used_since = now;
        }
    }
}
