//! Transfers of limited size: how many began, and how long they took.

use sojourn_core::{Span, Time};

use crate::histogram::Histogram;
use crate::outcome::{TransferCounts, TransferMetrics, size_class};
use crate::qoe::EmptyPath;

#[derive(Clone, Debug, Default)]
pub(super) struct Transfers {
    opened: u64,
    refused: u64,
    /// Of those that began after the warm-up.
    completion: Histogram,
    by_size: [Histogram; 3],
    /// In thousandths.
    slowdown: Histogram,
}

impl Transfers {
    pub(super) fn on_opened(&mut self) {
        self.opened += 1;
    }

    pub(super) fn on_refused(&mut self) {
        self.refused += 1;
    }

    pub(super) fn on_completed(
        &mut self,
        now: Time,
        bytes: u64,
        took: Span,
        warmup: Time,
        empty: Option<&EmptyPath>,
    ) {
        if now - took < warmup {
            return;
        }
        self.completion.record(took.as_nanos());
        self.by_size[size_class(bytes)].record(took.as_nanos());
        let least = empty.map_or(Span::ZERO, |path| path.least_time(bytes));
        if !least.is_zero() {
            let slowdown = took.as_nanos() as f64 / least.as_nanos() as f64;
            self.slowdown.record((slowdown * 1000.0) as u64);
        }
    }

    /// What began before does not count.
    pub(super) fn end_warmup(&mut self) {
        self.opened = 0;
        self.refused = 0;
    }

    pub(super) fn finish(self) -> TransferMetrics {
        let completed = self.completion.count();
        TransferMetrics {
            counts: TransferCounts { opened: self.opened, completed, refused: self.refused },
            completion: self.completion.distribution(),
            by_size: self.by_size.map(|histogram| histogram.distribution()),
            slowdown: self.slowdown.distribution(),
        }
    }
}
