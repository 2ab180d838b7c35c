//! A record for every segment that is sent and not cumulatively acknowledged, and the order in
//! which they were last sent.

use alloc::vec;
use alloc::vec::Vec;

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
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        let records = vec![Record::default(); 64];
        Self { records, first: 0, end: 0, oldest: NONE, newest: NONE }
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
    pub(super) fn push(&mut self, sent: Time, memo: Memo, byte: u64, payload: u32) {
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
            is_listed: true,
            before,
            after: NONE,
            ..Record::default()
        };
        self.follow(before, segment);
    }

    /// Removes the first record, cumulatively acknowledged.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        debug_assert!(!self.is_empty());
        self.unlist(self.first);
        self.first += 1;
    }

    /// Removes all records up to that of `last`. None of them has a history, so no outstanding
    /// segment was sent before them, and they are the first in the order of transmission.
    #[inline]
    pub(super) fn drop_untouched(&mut self, last: u32) {
        debug_assert_eq!(self.oldest, self.first);
        let after = self.record(last).after;
        self.oldest = after;
        if after == NONE {
            self.newest = NONE;
        }
        self.first = last + 1;
    }

    /// Doubles the ring.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = 2 * self.records.len();
        let mut records = vec![Record::default(); len];
        for segment in self.first..self.end {
            records[segment as usize & (len - 1)] = *self.record(segment);
        }
        self.records = records;
    }

    /// The segment, neither acknowledged nor lost, whose last transmission is longest ago.
    pub(super) fn oldest_sent(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The segment whose last transmission came next after that of `segment`.
    pub(super) fn sent_after(&self, segment: u32) -> Option<u32> {
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
    #[inline]
    pub(super) fn unlist(&mut self, segment: u32) {
        let is_oldest = segment == self.oldest;
        let record = self.record_mut(segment);
        let (before, after) = (record.before, record.after);
        if !core::mem::take(&mut record.is_listed) {
            return;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_transmission_follows_retransmissions() {
        let mut board = Scoreboard::new();
        for _ in 0..4 {
            board.push(Time::ZERO, Memo::default(), 0, 1448);
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
}
