//! Transfers of limited size: how many began, and how long they took.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use crate::histogram::Histogram;
use crate::outcome::{TransferCounts, TransferMetrics, size_class};
use crate::qoe::EmptyPath;

#[derive(Clone, Debug, Default)]
pub(super) struct Transfers {
    /// In the whole run.
    began: u64,
    /// Sizes of the transfers that have not ended, by when they began.
    open: BTreeMap<Time, Vec<u64>>,
    opened: u64,
    refused: u64,
    refused_by_size: [u64; 3],
    /// Of those that began after the warm-up.
    completion: Histogram,
    by_size: [Histogram; 3],
    /// In thousandths.
    slowdown: Histogram,
}

impl Transfers {
    pub(super) fn on_opened(&mut self, began: Time, bytes: u64) {
        self.began += 1;
        self.opened += 1;
        self.open.entry(began).or_default().push(bytes);
    }

    pub(super) fn on_refused(&mut self, bytes: u64) {
        self.refused += 1;
        self.refused_by_size[size_class(bytes)] += 1;
    }

    pub(super) fn on_completed(
        &mut self,
        now: Time,
        bytes: u64,
        took: Span,
        warmup: Time,
        empty: Option<&EmptyPath>,
    ) {
        let began = now - took;
        self.close(began, bytes);
        if began < warmup {
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

    fn close(&mut self, began: Time, bytes: u64) {
        if let Some(open) = self.open.get_mut(&began) {
            if let Some(at) = open.iter().position(|other| *other == bytes) {
                open.swap_remove(at);
            }
            if open.is_empty() {
                self.open.remove(&began);
            }
        }
    }

    /// Transfers that began before do not count.
    pub(super) fn end_warmup(&mut self) {
        self.opened = 0;
        self.refused = 0;
        self.refused_by_size = [0; 3];
    }

    pub(super) fn finish(self, warmup: Time, end: Time) -> TransferMetrics {
        let completed = self.completion.count();
        let (mut open_in_run, mut open) = (Histogram::new(), Histogram::new());
        let mut missing_by_size = self.refused_by_size;
        for (began, transfers) in self.open {
            for bytes in transfers {
                let age = end.since(began).as_nanos();
                open_in_run.record(age);
                if began >= warmup {
                    open.record(age);
                    missing_by_size[size_class(bytes)] += 1;
                }
            }
        }
        TransferMetrics {
            counts: TransferCounts { opened: self.opened, completed, refused: self.refused },
            began: self.began,
            open_in_run: open_in_run.distribution(),
            open: open.distribution(),
            missing_by_size,
            completion: self.completion.distribution(),
            by_size: self.by_size.map(|histogram| histogram.distribution()),
            slowdown: self.slowdown.distribution(),
        }
    }
}
