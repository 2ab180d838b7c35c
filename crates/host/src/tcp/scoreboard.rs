//! A record for every segment that is sent and not cumulatively acknowledged, and the order in
//! which they were last sent.

use std::collections::VecDeque;

use sojourn_cca::Memo;
use sojourn_core::Time;

/// Ends the list of segments in order of transmission.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
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
    is_listed: bool,
    before: u32,
    after: u32,
}

/// Segments `first()..first() + len()`, and those of them whose fate is open in order of their
/// last transmission.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    records: VecDeque<Record>,
    first: u32,
    oldest: u32,
    newest: u32,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        Self { records: VecDeque::with_capacity(64), first: 0, oldest: NONE, newest: NONE }
    }

    pub(super) fn first(&self) -> u32 {
        self.first
    }

    pub(super) fn end(&self) -> u32 {
        self.first + self.records.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    #[inline]
    pub(super) fn record(&self, segment: u32) -> &Record {
        &self.records[(segment - self.first) as usize]
    }

    #[inline]
    pub(super) fn record_mut(&mut self, segment: u32) -> &mut Record {
        &mut self.records[(segment - self.first) as usize]
    }

    /// Adds the next segment, sent for the first time.
    #[inline]
    pub(super) fn push(&mut self, sent: Time, memo: Memo, byte: u64, payload: u32) {
        let segment = self.end();
        self.records.push_back(Record {
            sent,
            memo,
            byte,
            payload,
            is_sacked: false,
            is_lost: false,
            is_retransmitted: false,
            was_retransmitted: false,
            is_sampled: false,
            is_listed: false,
            before: NONE,
            after: NONE,
        });
        self.list_last(segment);
    }

    /// Removes the first record, cumulatively acknowledged.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Record> {
        let segment = self.first;
        if self.records.is_empty() {
            return None;
        }
        self.unlist(segment);
        self.first += 1;
        self.records.pop_front()
    }

    /// The segment whose last transmission is longest ago and whose fate is open.
    pub(super) fn oldest_sent(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The one sent next after `segment`.
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
        if before == NONE {
            self.oldest = segment;
        } else {
            self.record_mut(before).after = segment;
        }
        self.newest = segment;
    }

    /// Takes `segment` out of the order: its fate is known.
    #[inline]
    pub(super) fn unlist(&mut self, segment: u32) {
        let record = self.record_mut(segment);
        if !record.is_listed {
            return;
        }
        record.is_listed = false;
        let (before, after) = (record.before, record.after);
        if before == NONE {
            self.oldest = after;
        } else {
            self.record_mut(before).after = after;
        }
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
        board.pop();
        assert_eq!(board.oldest_sent(), Some(2));
        assert_eq!((board.first(), board.end()), (1, 4));
    }
}
