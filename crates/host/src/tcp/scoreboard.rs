//! A record for every segment that is sent and not cumulatively acknowledged, and the order in
//! which they were last sent.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use sojourn_cca::Memo;
use sojourn_core::Time;

/// Ends the list of segments in order of transmission.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// When it last left.
    pub(super) sent: Time,
    pub(super) memo: Memo,
    /// Position in the stream, and length.
    pub(super) byte: u64,
    pub(super) payload: u32,
    /// Which of the connection's bursts it left with first; those of a burst are one buffer of the sender's memory.
    pub(super) burst: u32,
    /// The last of its buffer, which is marked PSH.
    pub(super) is_pushed: bool,
    pub(super) is_sacked: bool,
    pub(super) is_lost: bool,
    /// A retransmission is in flight.
    pub(super) is_retransmitted: bool,
    pub(super) was_retransmitted: bool,
    /// Its delivery has given a rate sample already.
    pub(super) is_sampled: bool,
    /// Any of the flags above was ever set; in the usual case none was, and this is the only one to
    /// check.
    pub(super) has_history: bool,
    is_listed: bool,
    before: u32,
    after: u32,
}

impl Record {
    /// Whether it, the record of `segment`, last left after another segment, or at the same time and has the larger number. Compared
    /// as a pair, it would be asked first which of both times is less.
    #[inline]
    pub(super) fn is_newer(&self, segment: u32, sent: Time, than: u32) -> bool {
        self.sent > sent || (self.sent == sent && segment > than)
    }
}

/// Segments `first()..first() + len()`. Those that are neither acknowledged nor lost are also
/// listed in the order of their last transmission.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    /// A ring whose length is a power of two: a segment's place is its number modulo the length.
    records: Vec<Record>,
    first: u32,
    end: u32,
    /// Ends of the order of transmission. The oldest record's `before` has no meaning.
    oldest: u32,
    newest: u32,
    /// The last one, in the order of transmission, of those that RACK has passed and not marked.
    passed: u32,
    /// While a segment below this is outstanding, the order of transmission may not be that of
    /// `sent`.
    disordered: Option<u32>,
    /// In this time only: those that RACK has passed and not marked, by when they left, each with
    /// the number by which it was passed.
    by_time: BTreeMap<(Time, u32), u64>,
    passes: u64,
    /// Which segments are selectively acknowledged, and which are lost and not retransmitted. Both
    /// are in the records, too; here whole stretches can be skipped.
    sacked: Bits,
    lost: Bits,
    /// How many more buffers than bursts there are.
    cuts: i32,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        let records = vec![Record::default(); 16];
        Self {
            records,
            first: 0,
            end: 0,
            oldest: NONE,
            newest: NONE,
            passed: NONE,
            disordered: None,
            by_time: BTreeMap::new(),
            passes: 0,
            sacked: Bits::new(),
            lost: Bits::new(),
            cuts: 0,
        }
    }

    #[inline]
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    #[inline]
    pub(super) fn record(&self, segment: u32) -> &Record {
        debug_assert!((self.first..self.end).contains(&segment));
        &self.records[segment as usize & (self.records.len() - 1)]
    }

    /// The record of a segment that the acknowledgement at hand covers. It may have been removed,
    /// but its place in the ring is kept until the next segment is added.
    #[inline]
    pub(super) fn covered(&self, segment: u32) -> &Record {
        &self.records[segment as usize & (self.records.len() - 1)]
    }

    #[inline]
    pub(super) fn record_mut(&mut self, segment: u32) -> &mut Record {
        debug_assert!((self.first..self.end).contains(&segment));
        let mask = self.records.len() - 1;
        &mut self.records[segment as usize & mask]
    }

    /// Adds the next segment, sent for the first time.
    #[inline]
    pub(super) fn push(&mut self, sent: Time, memo: Memo, byte: u64, payload: u32, burst: u32) {
        if (self.end - self.first) as usize == self.records.len() {
            self.grow();
        }
        let segment = self.end;
        self.end += 1;
        let before = self.newest;
        *self.record_mut(segment) = Record {
            sent,
            memo,
            byte,
            payload,
            burst,
            is_listed: true,
            before,
            after: NONE,
            ..Record::default()
        };
        self.follow(before, segment);
    }

    /// The outstanding segments' records.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        let (count, place) =
            (self.end - self.first, self.first as usize & (self.records.len() - 1));
        let (wrapped, ahead) = self.records.split_at(place);
        let wrapped = &wrapped[..(count as usize).saturating_sub(ahead.len())];
        ahead[..(count as usize).min(ahead.len())].iter().chain(wrapped)
    }

    /// Removes the first record, cumulatively acknowledged and not selectively before.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        debug_assert!(!self.is_empty() && !self.record(self.first).is_sacked);
        self.cuts -= self.cuts_behind(self.first);
        self.unlist(self.first);
        if self.record(self.first).is_lost {
            self.lost.clear(self.first);
        }
        self.first += 1;
    }

    /// Removes those of the first records up to `end` that are selectively acknowledged, in one piece; the first one is. They are
    /// in no list. True if one of them was ever retransmitted.
    pub(super) fn drop_sacked(&mut self, end: u32) -> bool {
        let stop = self.next_not_sacked(self.first, end);
        let mut burst = self.record(self.first).burst;
        let mut was_retransmitted = false;
        for segment in self.first..stop {
            let record = self.record(segment);
            was_retransmitted |= record.was_retransmitted;
            // As `cuts_behind` has it between two that are selectively acknowledged.
            let begins_burst = i32::from(record.burst != burst);
            burst = record.burst;
            self.cuts += begins_burst;
            self.sacked.clear(segment);
        }
        self.cuts -= self.cuts_behind(stop - 1);
        self.first = stop;
        was_retransmitted
    }

    /// Removes all records up to that of `last`. None of them has a history, so no outstanding
    /// segment was sent before them, and they are the first in the order of transmission.
    #[inline(always)]
    pub(super) fn drop_untouched(&mut self, last: u32) {
        debug_assert_eq!(self.oldest, self.first);
        let after = self.record(last).after;
        self.oldest = after;
        if after == NONE {
            self.newest = NONE;
        }
        if self.passed != NONE {
            self.drop_passed(last);
        }
        if last + 1 < self.end && self.record(last + 1).is_sacked {
            self.cuts -= self.cuts_behind(last);
        }
        self.first = last + 1;
    }

    /// What RACK has passed comes first in the order, so it is gone as well.
    fn drop_passed(&mut self, last: u32) {
        if self.passed <= last {
            self.passed = NONE;
        }
        if !self.by_time.is_empty() {
            self.forget_times_to(last);
        }
    }

    /// Doubles the ring.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = 2 * self.records.len();
        let mut records = vec![Record::default(); len];
        for (segment, record) in (self.first..).zip(self.records()) {
            records[segment as usize & (len - 1)] = *record;
        }
        self.records = records;
        self.sacked.grow(self.first..self.end, len);
        self.lost.grow(self.first..self.end, len);
    }

    /// The segment is selectively acknowledged.
    pub(super) fn set_sacked(&mut self, segment: u32) {
        debug_assert!(!self.record(segment).is_sacked);
        self.cuts += self.cuts_of(segment);
        let record = self.record_mut(segment);
        record.is_sacked = true;
        record.has_history = true;
        record.is_retransmitted = false;
        if core::mem::take(&mut record.is_lost) {
            self.lost.clear(segment);
        }
        self.sacked.set(segment);
        self.unlist(segment);
    }

    /// The receiver has dropped a segment that it had selectively acknowledged.
    pub(super) fn clear_sacked(&mut self, segment: u32) {
        debug_assert!(self.record(segment).is_sacked);
        self.cuts -= self.cuts_of(segment);
        self.record_mut(segment).is_sacked = false;
        self.sacked.clear(segment);
    }

    /// The segment is deemed lost, and so is its retransmission if there was one.
    pub(super) fn set_lost(&mut self, segment: u32) {
        let record = self.record_mut(segment);
        record.is_lost = true;
        record.is_retransmitted = false;
        record.has_history = true;
        self.lost.set(segment);
    }

    /// The segment is not lost after all.
    pub(super) fn clear_lost(&mut self, segment: u32) {
        let record = self.record_mut(segment);
        record.is_lost = false;
        let is_open = !record.is_sacked && !record.is_retransmitted;
        self.lost.clear(segment);
        if is_open {
            // It left long ago and comes last in the order nevertheless.
            if self.disordered.replace(self.end).is_none() {
                self.keep_times();
            }
            self.list_last(segment);
        }
    }

    /// The order of transmission is no longer that of [`Record::sent`].
    fn keep_times(&mut self) {
        let mut next = if self.passed == NONE { NONE } else { self.oldest };
        while next != NONE {
            self.keep_time(next);
            next = if next == self.passed { NONE } else { self.record(next).after };
        }
    }

    fn keep_time(&mut self, segment: u32) {
        let sent = self.record(segment).sent;
        self.passes += 1;
        self.by_time.insert((sent, segment), self.passes);
    }

    /// Out of line, so that where nothing is out of order [`Scoreboard::unlist`] stays short.
    #[cold]
    #[inline(never)]
    fn forget_time(&mut self, sent: Time, segment: u32) {
        self.by_time.remove(&(sent, segment));
    }

    /// Segments up to `last` are acknowledged.
    #[cold]
    #[inline(never)]
    fn forget_times_to(&mut self, last: u32) {
        for segment in self.first..=last {
            self.forget_time(self.record(segment).sent, segment);
        }
    }

    /// A retransmission leaves.
    pub(super) fn set_retransmitted(&mut self, segment: u32, sent: Time, memo: Memo) {
        self.list_last(segment);
        let record = self.record_mut(segment);
        record.sent = sent;
        record.memo = memo;
        record.is_retransmitted = true;
        record.was_retransmitted = true;
        record.has_history = true;
        self.lost.clear(segment);
    }

    /// The first segment in `from..end` that is not selectively acknowledged; `end` if all are.
    #[inline]
    pub(super) fn next_not_sacked(&self, from: u32, end: u32) -> u32 {
        self.sacked.next_clear(from, end)
    }

    /// In how many buffers Linux keeps what was sent, in bursts up to that before `bursts`: each burst has one, which is cut where a part of it
    /// is selectively acknowledged; all that is selectively acknowledged in one piece is joined to one.
    #[inline]
    pub(super) fn buffers(&self, bursts: u32) -> u32 {
        if self.is_empty() {
            return 0;
        }
        (bursts - self.record(self.first).burst).saturating_add_signed(self.cuts)
    }

    /// How many more buffers begin behind this segment than bursts do.
    fn cuts_behind(&self, segment: u32) -> i32 {
        if segment < self.first || segment + 1 >= self.end {
            return 0;
        }
        let (left, right) = (self.record(segment), self.record(segment + 1));
        let ends_burst = i32::from(left.burst != right.burst);
        match (left.is_sacked, right.is_sacked) {
            (true, true) => -ends_burst,
            (false, false) => 0,
            _ => 1 - ends_burst,
        }
    }

    /// How many more there are if this segment is selectively acknowledged than if it isn't: on each side it is cut from the rest of its burst, or joined to what
    /// is selectively acknowledged.
    #[inline(always)]
    fn cuts_of(&self, segment: u32) -> i32 {
        let own = self.record(segment).burst;
        let beside = |other: &Record| match other.is_sacked {
            true => -1,
            false => i32::from(other.burst == own),
        };
        let mut cuts = 0;
        if segment > self.first {
            cuts += beside(self.record(segment - 1));
        }
        if segment + 1 < self.end {
            cuts += beside(self.record(segment + 1));
        }
        cuts
    }

    /// The first segment from `from` on that is lost and not retransmitted; [`Scoreboard::end`] if
    /// there is none.
    pub(super) fn next_lost(&self, from: u32) -> u32 {
        self.lost.next_set(from, self.end)
    }

    /// How many segments are selectively acknowledged, and how many lost and not retransmitted,
    /// by the bits.
    pub(super) fn count_bits(&self) -> (u32, u32) {
        (self.sacked.count(), self.lost.count())
    }

    /// Whether the order of transmission may not be that of [`Record::sent`].
    #[inline]
    pub(super) fn is_out_of_order(&mut self) -> bool {
        let Some(end) = self.disordered else { return false };
        if self.first >= end {
            self.disordered = None;
            self.by_time.clear();
        }
        self.disordered.is_some()
    }

    /// Passes records as [`Scoreboard::pass`] does while they are out of order. Of those passed, now or before, returns
    /// those that left in time, in the order of transmission, and when the last of the others left.
    pub(super) fn pass_out_of_order(
        &mut self,
        before: impl Fn(u32, &Record) -> bool,
        in_time: impl Fn(Time) -> bool,
    ) -> (Vec<u32>, Option<Time>) {
        let mut next = self.after_passed();
        while next != NONE && before(next, self.record(next)) {
            self.keep_time(next);
            (self.passed, next) = (next, self.record(next).after);
        }
        let mut early: Vec<(u64, u32)> = (self.by_time.iter())
            .take_while(|((sent, _), _)| in_time(*sent))
            .map(|((_, segment), number)| (*number, *segment))
            .collect();
        early.sort_unstable();
        let others_left = early.len() < self.by_time.len();
        let last = self.by_time.last_key_value().filter(|_| others_left);
        (early.into_iter().map(|(_, segment)| segment).collect(), last.map(|((sent, _), _)| *sent))
    }

    /// Passes every record, in the order of transmission, up to the first that is not `before`;
    /// what was before stays so. Returns the last one passed.
    pub(super) fn pass(&mut self, before: impl Fn(u32, &Record) -> bool) -> Option<&Record> {
        let mut next = self.after_passed();
        while next != NONE {
            let record = self.record(next);
            if !before(next, record) {
                break;
            }
            (self.passed, next) = (next, record.after);
        }
        (self.passed != NONE).then(|| self.record(self.passed))
    }

    fn after_passed(&self) -> u32 {
        match self.passed {
            NONE => self.oldest,
            passed => self.record(passed).after,
        }
    }

    /// The segment, neither acknowledged nor lost, whose last transmission is longest ago.
    pub(super) fn oldest_sent(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The segment whose last transmission came next after that of `segment`.
    #[cfg(test)]
    fn sent_after(&self, segment: u32) -> Option<u32> {
        let after = self.record(segment).after;
        (after != NONE).then_some(after)
    }

    /// Makes `segment` the last one sent.
    pub(super) fn list_last(&mut self, segment: u32) {
        self.unlist(segment);
        let before = self.newest;
        let record = self.record_mut(segment);
        record.is_listed = true;
        record.before = before;
        record.after = NONE;
        self.follow(before, segment);
    }

    /// Makes `segment` the newest in the order, after `before`, which was the newest.
    #[inline]
    fn follow(&mut self, before: u32, segment: u32) {
        if before == NONE {
            self.oldest = segment;
        } else {
            self.record_mut(before).after = segment;
        }
        self.newest = segment;
    }

    /// Removes `segment` from the order, because it is acknowledged or lost.
    #[inline(always)]
    pub(super) fn unlist(&mut self, segment: u32) {
        let is_oldest = segment == self.oldest;
        let record = self.record_mut(segment);
        let (before, after, sent) = (record.before, record.after, record.sent);
        if !core::mem::take(&mut record.is_listed) {
            return;
        }
        if !self.by_time.is_empty() {
            self.forget_time(sent, segment);
        }
        if segment == self.passed {
            self.passed = if is_oldest { NONE } else { before };
        }
        if is_oldest {
            // The usual case, acknowledged in order: the next record's `before` needs no update.
            self.oldest = after;
            if after == NONE {
                self.newest = NONE;
            }
            return;
        }
        self.record_mut(before).after = after;
        if after == NONE {
            self.newest = before;
        } else {
            self.record_mut(after).before = before;
        }
    }
}

/// A bit for each segment of a ring.
#[derive(Clone, Debug)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    const WIDTH: u32 = u64::BITS;

    fn new() -> Self {
        Self { words: vec![0; 1] }
    }

    #[inline]
    fn word(&self, segment: u32) -> usize {
        (segment / Self::WIDTH) as usize & (self.words.len() - 1)
    }

    #[inline]
    fn set(&mut self, segment: u32) {
        let word = self.word(segment);
        self.words[word] |= 1 << (segment % Self::WIDTH);
    }

    #[inline]
    fn clear(&mut self, segment: u32) {
        let word = self.word(segment);
        self.words[word] &= !(1 << (segment % Self::WIDTH));
    }

    fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    #[inline]
    fn next_set(&self, from: u32, end: u32) -> u32 {
        self.next(from, end, 0)
    }

    #[inline]
    fn next_clear(&self, from: u32, end: u32) -> u32 {
        self.next(from, end, u64::MAX)
    }

    /// The first of `from..end` whose bit differs from those of `skipped`. Behind `end`, a word may have
    /// bits of segments at the beginning of the ring.
    #[inline]
    fn next(&self, from: u32, end: u32, skipped: u64) -> u32 {
        let mut at = from;
        while at < end {
            let differs = (self.words[self.word(at)] ^ skipped) >> (at % Self::WIDTH);
            if differs != 0 {
                return (at + differs.trailing_zeros()).min(end);
            }
            at = (at | (Self::WIDTH - 1)) + 1;
        }
        end
    }

    /// Makes room for a ring of `len`, a power of two, and keeps the bits of `segments`.
    fn grow(&mut self, segments: Range<u32>, len: usize) {
        let mut grown = Self { words: vec![0; len.div_ceil(Self::WIDTH as usize)] };
        let mut at = self.next_set(segments.start, segments.end);
        while at < segments.end {
            grown.set(at);
            at = self.next_set(at + 1, segments.end);
        }
        *self = grown;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_order_of_transmission_follows_retransmissions() {
        let mut board = Scoreboard::new();
        for _ in 0..4 {
            board.push(Time::ZERO, Memo::default(), 0, 1448, 0);
        }
        board.unlist(1);
        board.list_last(1);
        let mut order = Vec::new();
        let mut next = board.oldest_sent();
        while let Some(segment) = next {
            order.push(segment);
            next = board.sent_after(segment);
        }
        assert_eq!(order, [0, 2, 3, 1]);
        board.drop_first();
        assert_eq!(board.oldest_sent(), Some(2));
        assert_eq!((board.first(), board.end()), (1, 4));
    }

    proptest! {
        #[test]
        fn a_ring_of_bits_finds_what_a_list_finds(
            first in 0u32..1000,
            set in prop::collection::vec(0u32..200, 0..60),
            ranges in prop::collection::vec((0u32..200, 0u32..200), 1..20),
        ) {
            // A ring of 64 that grows to 256 when all but the bits from 64 on are set.
            let mut bits = Bits::new();
            for bit in set.iter().filter(|bit| **bit < 64) {
                bits.set(first + bit);
            }
            bits.grow(first..first + 64, 256);
            for bit in &set {
                bits.set(first + bit);
            }
            for (from, end) in ranges {
                let is = |bit: &u32, wanted: bool| set.contains(bit) == wanted;
                let next = |wanted| (from..end).find(|bit| is(bit, wanted)).unwrap_or(end.max(from));
                let (from, end) = (first + from, first + end.max(from));
                prop_assert_eq!(bits.next_set(from, end), first + next(true));
                prop_assert_eq!(bits.next_clear(from, end), first + next(false));
            }
        }

        /// Segments are sent, repeated, acknowledged, marked lost and unmarked at random, while what is passed
        /// grows: the last one passed is the one that a walk from the oldest finds, and so are those that left in time.
        #[test]
        fn passing_goes_as_far_as_a_walk(
            steps in prop::collection::vec((0u8..7, 0u32..40, 0u64..3), 1..300),
        ) {
            let mut board = Scoreboard::new();
            let (mut now, mut bound, mut bursts) = (0, (Time::ZERO, 0), 0);
            for (what, place, later) in steps {
                now += later;
                let at = Time::from_nanos(now);
                let segment = board.first() + place % (board.end() - board.first()).max(1);
                let record = (!board.is_empty()).then(|| *board.record(segment));
                match (what, record) {
                    (0 | 1, _) => {
                        let goes_on = what == 1
                            && !board.is_empty()
                            && !board.record(board.end() - 1).is_sacked;
                        bursts += u32::from(!goes_on);
                        board.push(at, Memo::default(), 0, 1448, bursts - 1);
                    }
                    (2, Some(record)) if !record.is_sacked => board.set_sacked(segment),
                    (3, Some(record)) if !record.is_sacked => {
                        board.unlist(segment);
                        board.set_lost(segment);
                    }
                    (4, Some(record)) if record.is_lost => {
                        board.set_retransmitted(segment, at, Memo::default());
                    }
                    (6, Some(record)) if record.is_lost && !record.is_retransmitted => {
                        board.clear_lost(segment);
                    }
                    (5, Some(record)) if board.record(board.first()).is_sacked => {
                        bound = bound.max((record.sent, segment));
                        let (first, end) = (board.first(), segment + 1);
                        let until = board.next_not_sacked(first, end);
                        let mut those = first..until;
                        let repeats = those.any(|segment| board.record(segment).was_retransmitted);
                        prop_assert_eq!(board.drop_sacked(end), repeats);
                        prop_assert_eq!(board.first(), until);
                    }
                    (5, Some(record)) if board.record(board.first()).has_history => {
                        bound = bound.max((record.sent, segment));
                        board.drop_first();
                    }
                    (5, Some(record)) => {
                        bound = bound.max((record.sent, board.first()));
                        board.drop_untouched(board.first());
                    }
                    _ => {}
                }
                let pieces: Vec<(bool, u32)> = (board.first()..board.end())
                    .map(|segment| *board.record(segment))
                    .map(|record| (record.is_sacked, if record.is_sacked { 0 } else { record.burst }))
                    .collect();
                let buffers = pieces.chunk_by(|one, next| one == next).count();
                prop_assert_eq!(board.buffers(bursts) as usize, buffers);
                let before = |segment: u32, record: &Record| (record.sent, segment) < bound;
                let mut walked = Vec::new();
                let mut next = board.oldest_sent();
                while let Some(segment) = next.filter(|next| before(*next, board.record(*next))) {
                    walked.push(segment);
                    next = board.sent_after(segment);
                }
                let sent = |board: &Scoreboard, segment: &u32| board.record(*segment).sent;
                if board.is_out_of_order() {
                    let limit = Time::from_nanos(now / 2 + u64::from(place));
                    let (early, last) = board.pass_out_of_order(before, |sent| sent <= limit);
                    let (in_time, others): (Vec<u32>, Vec<u32>) =
                        walked.iter().partition(|segment| sent(&board, segment) <= limit);
                    prop_assert_eq!(early, in_time);
                    prop_assert_eq!(last, others.iter().map(|segment| sent(&board, segment)).max());
                } else {
                    let passed = board.pass(before).map(|record| record.sent);
                    prop_assert_eq!(passed, walked.last().map(|last| sent(&board, last)));
                }
                prop_assert_eq!(board.passed, walked.last().copied().unwrap_or(NONE));
                for segment in board.first()..board.end() {
                    let record = board.record(segment);
                    let is_open = record.is_lost && !record.is_retransmitted;
                    let is_next = board.next_not_sacked(segment, segment + 1) == segment;
                    prop_assert_eq!(is_next, !record.is_sacked);
                    prop_assert_eq!(board.next_lost(segment) == segment, is_open);
                }
            }
        }
    }
}
