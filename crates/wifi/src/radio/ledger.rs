//! Where the bytes are that were offered at a port.

use sojourn_core::QueueSample;
use sojourn_wire::Books;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) marked: u64,
    books: Books,
    waiting: u32,
    sent: u64,
    dropped: u64,
}

impl Ledger {
    pub(super) fn enter(&mut self, bytes: u32) {
        self.waiting = self.waiting.wrapping_add(1);
        self.books.offered += u64::from(bytes);
        self.books.waiting = self.books.waiting.wrapping_add(u64::from(bytes));
    }

    pub(super) fn refuse(&mut self, bytes: u32) {
        self.dropped += 1;
        self.books.offered += u64::from(bytes);
        self.books.dropped += u64::from(bytes);
    }

    pub(super) fn send(&mut self, packets: u32, bytes: u32) {
        self.waiting -= packets;
        self.sent += u64::from(packets);
        self.books.waiting -= u64::from(bytes);
        self.books.sent += u64::from(bytes);
        self.books.under_way += u64::from(bytes);
    }

    pub(super) fn drop(&mut self, bytes: u32) {
        // A discipline may drop an arrival before it reports that it took it.
        self.waiting = self.waiting.wrapping_sub(1);
        self.dropped += 1;
        self.books.waiting = self.books.waiting.wrapping_sub(u64::from(bytes));
        self.books.dropped += u64::from(bytes);
    }

    pub(super) fn lose(&mut self, bytes: u32) {
        self.dropped += 1;
        self.books.under_way -= u64::from(bytes);
        self.books.lost += u64::from(bytes);
    }

    pub(super) fn deliver(&mut self, bytes: u32) {
        self.books.under_way -= u64::from(bytes);
    }

    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    pub(super) fn books(&self) -> Books {
        self.books
    }

    /// The part of a sample that is counted here.
    pub(super) fn sample(&self) -> QueueSample {
        QueueSample {
            sent_packets: self.sent,
            sent_bytes: self.books.sent,
            dropped: self.dropped,
            marked: self.marked,
            ..QueueSample::default()
        }
    }
}
