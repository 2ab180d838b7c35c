//! What the application has written and the sender has not sent, in buffers as Linux makes them; when
//! the application sleeps for want of memory, and when it is woken.

use alloc::collections::VecDeque;

/// The unsent end of the stream.
#[derive(Clone, Debug)]
pub(super) struct WriteQueue {
    /// What leaves next; empty if nothing waits.
    head: Buffer,
    /// What waits behind it, in the order of the stream. The last buffer of all may be added to while it has room.
    behind: VecDeque<Buffer>,
    /// Byte position up to which the application has written.
    end: u64,
    memory: Memory,
    mss: u64,
    /// Payload of a full buffer.
    full: u64,
    /// Most bytes of a buffer, whatever the window.
    most_of_a_buffer: u64,
    /// The largest window that the receiver has offered.
    largest_window: u64,
    /// Byte position of the last mark.
    marked: u64,
    /// A call ended, or so much has been written since the mark before, that all of it leaves, as far as it may, before the application
    /// goes on.
    is_pushed: bool,
    /// The application has more to write, and waits for memory.
    is_asleep: bool,
    /// As long as not everything before this is acknowledged, there is too little memory to wake it.
    wakes_from: u64,
    /// It has written all that it has.
    is_complete: bool,
    /// Where its call ends in which it writes, and whether one ended with what it wrote last.
    call_ends: u64,
    has_ended_call: bool,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    start: u64,
    end: u64,
    /// Its last segment will be marked PSH, even if it leaves alone.
    push: bool,
}

impl Buffer {
    const fn empty(at: u64) -> Self {
        Self { start: at, end: at, push: false }
    }

    const fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// What the queue may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Of all that is not acknowledged; `u64::MAX` is without a limit.
    pub(super) most: u64,
    /// Of a buffer beside its payload.
    pub(super) of_a_buffer: u64,
    /// Most bytes that are unsent, if that is limited (`TCP_NOTSENT_LOWAT`).
    pub(super) lowat: u64,
}

/// What came of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    Nothing,
    /// Less than fills the buffer, or there is a buffer before it.
    Some,
    /// The only buffer is full, so Linux sends a burst of it at once (`tcp_push_one`).
    OnlyBuffer,
}

/// Bytes that the application writes at once, as iperf3 does.
const CALL: u64 = 128 << 10;
/// Without a limit of memory the application is so many buffers ahead of the sender at most.
const AHEAD: usize = 32;
/// Below a window of so many bytes a buffer may fill all of it, above it half (`TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;

impl WriteQueue {
    pub(super) fn new(mss: u32, most_of_a_buffer: u32, memory: Memory) -> Self {
        let mss = u64::from(mss);
        Self {
            head: Buffer::empty(0),
            behind: VecDeque::new(),
            end: 0,
            memory,
            mss,
            full: mss,
            most_of_a_buffer: u64::from(most_of_a_buffer),
            largest_window: 0,
            marked: 0,
            is_pushed: false,
            is_asleep: false,
            wakes_from: 0,
            is_complete: false,
            call_ends: CALL,
            has_ended_call: false,
        }
    }

    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that the first buffer still has when everything before `next` is sent, and whether it is the last buffer.
    #[inline(always)]
    pub(super) fn head(&self, next: u64) -> (u64, bool) {
        (self.head.end - next, self.behind.is_empty())
    }

    /// The first buffer takes bytes from the one behind it, to have `wanted` when everything before `next` is sent
    /// (`tcp_grow_skb`). What it has then, and whether it is the last buffer.
    pub(super) fn join(&mut self, next: u64, wanted: u64) -> (u64, bool) {
        if let Some(second) = self.behind.front_mut() {
            let end = second.end.min(self.head.end.max(next + wanted));
            self.head.end = end;
            second.start = end;
            if second.is_empty() {
                self.head.push |= second.push;
                self.behind.pop_front();
            }
        }
        self.head(next)
    }

    /// What waits leaves before the application writes more: there are several buffers, or Linux pushes what was written.
    pub(super) fn leaves_first(&self) -> bool {
        self.is_pushed || !self.behind.is_empty()
    }

    /// Linux pushes what was written (`tcp_push`, `forced_push`).
    pub(super) fn is_pushed(&self) -> bool {
        self.is_pushed
    }

    /// Nothing more of it may leave at the moment, so the application goes on.
    pub(super) fn give_way(&mut self) {
        self.is_pushed = false;
    }

    #[inline(always)]
    pub(super) fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// Whether an application that sleeps may find enough memory to be woken, when everything before `una` is
    /// acknowledged.
    #[inline(always)]
    pub(super) fn may_wake(&self, una: u64) -> bool {
        una >= self.wakes_from
    }

    /// Nothing more will be written at the moment.
    #[inline(always)]
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// What has not been sent was not written either.
    pub(super) fn take_back(&mut self, next: u64) {
        self.behind.clear();
        self.head = Buffer::empty(next);
        (self.end, self.marked) = (next, next);
        (self.is_pushed, self.is_asleep, self.is_complete) = (false, false, false);
    }

    /// Where the call ends in which the application has written a part, or else what it has written.
    pub(super) fn end_of_call(&self) -> u64 {
        if self.call_ends - self.end < CALL { self.call_ends } else { self.end }
    }

    /// The application writes next in a call of its own.
    pub(super) fn begin_call(&mut self) {
        self.call_ends = self.end + CALL;
        self.marked = self.end;
    }

    /// Whether a call ended since this was asked.
    pub(super) fn take_end_of_call(&mut self) -> bool {
        core::mem::take(&mut self.has_ended_call)
    }

    /// Memory that it may take.
    #[cfg(test)]
    pub(super) fn most_memory(&self) -> u64 {
        self.memory.most
    }

    /// Memory grows, if it is tuned.
    pub(super) fn grow(&mut self, most: u64) {
        self.memory.most = self.memory.most.max(most);
        self.find_waking();
    }

    /// The receiver has offered so large a window; buffers are at most half as large.
    #[inline(always)]
    pub(super) fn on_window(&mut self, window: u64) {
        if window > self.largest_window {
            self.on_larger_window(window);
        }
    }

    #[inline(never)]
    fn on_larger_window(&mut self, window: u64) {
        self.largest_window = window;
        let share = if window > SMALL_WINDOW { window / 2 } else { window };
        self.full = (share.min(self.most_of_a_buffer) / self.mss).max(1) * self.mss;
    }

    /// Everything before `next` has left. True if that ends a marked buffer.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, next: u64) -> bool {
        if self.head.end > next {
            return false;
        }
        let left = core::mem::replace(&mut self.head, Buffer::empty(self.end));
        match self.behind.pop_front() {
            Some(second) => self.head = second,
            None => self.is_pushed = false,
        }
        left.push
    }

    /// Memory of what is not acknowledged: everything from `una` on is in so many buffers beside the unsent ones.
    #[inline(always)]
    pub(super) fn taken(&self, una: u64, sent_buffers: u32) -> u64 {
        let buffers = self.count() as u64 + u64::from(sent_buffers);
        self.end - una + buffers * self.memory.of_a_buffer
    }

    /// The application, which has written up to `end` of its plan, fills the last buffer or begins another, for which
    /// there must be memory beside the `taken`. If there is none, it sleeps.
    pub(super) fn write(&mut self, plan: u64, next: u64, taken: u64) -> Wrote {
        if plan <= self.end {
            self.is_complete = true;
            return Wrote::Nothing;
        }
        let begins_call =
            core::mem::take(&mut self.is_complete) || self.end + CALL == self.call_ends;
        let mut room = 0;
        if !self.head.is_empty() {
            let full = self.full;
            let last = self.last();
            room = full.saturating_sub(last.end - last.start.max(next));
            last.push &= room == 0 || !begins_call;
        }
        if room == 0 {
            if !self.has_room(next, taken) {
                self.sleep();
                return Wrote::Nothing;
            }
            if !self.head.is_empty() {
                self.behind.push_back(Buffer::empty(self.end));
            }
            room = self.full;
        }
        let added = room.min(plan - self.end).min(self.call_ends - self.end);
        self.end += added;
        self.last().end = self.end;
        self.is_complete = self.end == plan;
        let ends_call = self.end == self.call_ends;
        // Linux also pushes what it has written since the last mark when that is half of the largest window.
        let is_full = added == room && !ends_call;
        let is_much = is_full && self.end > self.marked + self.largest_window / 2;
        let is_pushed = is_much || ends_call;
        self.is_pushed |= is_pushed;
        if self.is_complete || is_pushed {
            self.mark();
        }
        if ends_call {
            self.call_ends += CALL;
            self.has_ended_call = true;
        }
        if is_full && !is_much && self.behind.is_empty() { Wrote::OnlyBuffer } else { Wrote::Some }
    }

    /// The application may go on, if the memory that is free is at least half of what is `taken`
    /// (`sk_stream_write_space`).
    #[inline(always)]
    pub(super) fn wake(&mut self, next: u64, taken: u64) -> bool {
        let is_woken = if self.memory.most == u64::MAX {
            self.count() <= AHEAD / 2
        } else {
            taken + taken / 2 <= self.memory.most
        };
        self.is_asleep = !(is_woken && 2 * (self.end - next) < self.memory.lowat);
        !self.is_asleep
    }

    fn has_room(&self, next: u64, taken: u64) -> bool {
        let has_memory = if self.memory.most == u64::MAX {
            self.count() < AHEAD
        } else {
            taken < self.memory.most
        };
        has_memory && self.end - next < self.memory.lowat
    }

    /// Who sleeps marks what it has written.
    fn sleep(&mut self) {
        self.is_asleep = true;
        self.mark();
        self.find_waking();
    }

    fn mark(&mut self) {
        self.marked = self.end;
        if !self.head.is_empty() {
            self.last().push = true;
        }
    }

    /// Bytes alone, without what buffers take beside them, must leave a third of the memory free.
    fn find_waking(&mut self) {
        self.wakes_from = match self.memory.most {
            u64::MAX => 0,
            most => self.end.saturating_sub(most / 3 * 2 + 2),
        };
    }

    fn count(&self) -> usize {
        usize::from(!self.head.is_empty()) + self.behind.len()
    }

    fn last(&mut self) -> &mut Buffer {
        self.behind.back_mut().unwrap_or(&mut self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Memory = Memory { most: 300_000, of_a_buffer: 800, lowat: u64::MAX };

    fn queue(memory: Memory, window: u64) -> WriteQueue {
        let mut queue = WriteQueue::new(1_000, 65_215, memory);
        queue.on_window(window);
        queue
    }

    /// Writes without an end until the application sleeps; how many buffers that made.
    fn fill(queue: &mut WriteQueue, una: u64) -> usize {
        let before = queue.count();
        while !queue.is_asleep() {
            queue.write(u64::MAX, una, queue.taken(una, 0));
        }
        queue.count() - before
    }

    /// A buffer is begun while there is any memory, so the last one exceeds it; the application is woken when
    /// what is free is half of what is taken.
    #[test]
    fn an_application_sleeps_when_memory_is_full_and_wakes_when_a_third_is_free() {
        let mut queue = queue(MEMORY, 1 << 20);
        // 65 800 each: the fifth is begun at 263 200.
        assert_eq!(fill(&mut queue, 0), 5);
        assert_eq!((queue.end(), queue.taken(0, 0)), (325_000, 329_000));
        assert!(!queue.wake(0, 200_001));
        assert!(queue.wake(0, 200_000));
        let lowat = Memory { lowat: 100_000, ..MEMORY };
        let mut queue = self::queue(lowat, 1 << 20);
        assert_eq!(fill(&mut queue, 0), 2, "a second one is begun while 65 000 bytes are unsent");
        assert!(!queue.wake(80_000, 0), "50 000 must be unsent at most");
        assert!(queue.wake(80_001, 0));
    }

    /// Who has no limit is far enough ahead.
    #[test]
    fn without_a_limit_the_application_is_some_buffers_ahead() {
        let mut queue = queue(Memory { most: u64::MAX, ..MEMORY }, 1 << 20);
        assert_eq!(fill(&mut queue, 0), AHEAD);
        assert!(!queue.wake(0, 0));
        (1..=16).for_each(|sent| _ = queue.on_sent(65_000 * sent));
        assert!(queue.wake(65_000 * 16, 0));
    }

    #[test]
    fn buffers_are_half_of_the_largest_window_in_whole_segments() {
        for (window, full) in [(500, 1_000), (3_000, 1_000), (65_535, 32_000), (1 << 20, 65_000)] {
            assert_eq!(queue(MEMORY, window).full, full, "{window}");
        }
    }

    /// `tcp_push`, `forced_push`: who sleeps marks the last buffer, and so does who has written half of the largest window since the last
    /// mark, or all there is.
    #[test]
    fn marks_are_where_the_application_sleeps_or_has_written_much_or_all() {
        let marks = |queue: &WriteQueue| -> Vec<usize> {
            let buffers = |queue: &WriteQueue| {
                let head = (!queue.head.is_empty()).then_some(queue.head);
                head.into_iter().chain(queue.behind.clone())
            };
            let marked = |(index, buffer): (usize, Buffer)| buffer.push.then_some(index);
            buffers(queue).enumerate().filter_map(marked).collect()
        };
        let mut queue = queue(MEMORY, 1 << 20);
        fill(&mut queue, 0);
        assert_eq!(marks(&queue), [4]);
        let mut queue = self::queue(MEMORY, 65_535);
        fill(&mut queue, 0);
        // 32 000 bytes are less than half a window. A call ends in the fifth buffer, and again in the ninth.
        assert_eq!(marks(&queue), [1, 3, 5, 7, 9]);
        let mut queue = self::queue(MEMORY, 1 << 20);
        assert_eq!(queue.write(2_500, 0, 0), Wrote::Some);
        assert_eq!(marks(&queue), [0]);
        // More that follows takes the mark with it.
        assert_eq!(queue.write(70_000, 0, 0), Wrote::OnlyBuffer);
        assert_eq!(marks(&queue), [0; 0]);
        assert_eq!(queue.write(70_000, 0, 0), Wrote::Some);
        assert_eq!(marks(&queue), [1]);
        assert_eq!([65_000, 70_000].map(|sent| queue.on_sent(sent)), [false, true]);
    }

    /// `forced_push`: 5 000 bytes more are half of a window of 65 535 since the beginning.
    #[test]
    fn what_linux_pushes_leaves_before_the_application_goes_on() {
        let mut queue = queue(MEMORY, 65_535);
        let write = |queue: &mut WriteQueue, next| {
            queue.write(u64::MAX, next, 0);
            queue.leaves_first()
        };
        assert!(!write(&mut queue, 0), "32 000 bytes are less");
        queue.on_sent(5_000);
        assert!(write(&mut queue, 5_000), "37 000 are more, though one buffer holds what waits");
        queue.on_sent(36_000);
        assert!(queue.leaves_first());
        queue.on_sent(37_000);
        assert!(!queue.leaves_first(), "nothing waits");
        assert!(!write(&mut queue, 37_000));
        queue.on_sent(38_000);
        assert!(write(&mut queue, 38_000), "33 000 since the mark");
        queue.give_way();
        assert!(!queue.leaves_first());
    }

    /// Linux 6.10 and later. What is taken leaves the buffer behind, and the mark of one that is taken whole goes along.
    #[test]
    fn a_burst_is_filled_from_the_next_buffer() {
        let mut queue = queue(MEMORY, 1 << 20);
        fill(&mut queue, 0);
        assert!(!queue.on_sent(60_000));
        assert_eq!(queue.join(60_000, 8_000), (8_000, false));
        assert!(!queue.on_sent(68_000));
        assert_eq!(queue.head(68_000), (62_000, false));
        assert_eq!(queue.join(68_000, 8_000), (62_000, false), "there is more than is wanted");
        assert!(![130_000, 195_000, 260_000].into_iter().any(|next| queue.on_sent(next)));
        assert_eq!(queue.join(260_000, 90_000), (65_000, true), "nothing is behind");
        let mut queue = self::queue(MEMORY, 1 << 20);
        queue.write(70_000, 0, 0);
        queue.write(70_000, 0, 0);
        assert_eq!(queue.join(60_000, 45_000), (10_000, true));
        assert!(queue.on_sent(70_000));
    }

    /// What is added to a buffer of which a part has left fills it again, without a look at memory.
    #[test]
    fn a_last_buffer_is_filled_up_as_its_beginning_leaves() {
        let mut queue = queue(MEMORY, 1 << 20);
        let full = 400_000;
        assert_eq!(queue.write(u64::MAX, 0, 0), Wrote::OnlyBuffer);
        assert_eq!(queue.write(u64::MAX, 2_000, full), Wrote::OnlyBuffer);
        assert_eq!((queue.end(), queue.head(2_000)), (67_000, (65_000, true)));
        assert_eq!(queue.write(u64::MAX, 2_000, full), Wrote::Nothing);
        assert!(queue.is_asleep());
    }
}
