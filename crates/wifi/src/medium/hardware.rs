//! Aggregates of one access category that wait in the access point's hardware.

use alloc::collections::VecDeque;

use sojourn_core::Span;

use super::attempt::Ppdu;
use crate::queueing::Hardware;

/// An aggregate that waits in the hardware.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) ppdu: Ppdu,
    pub(super) airtime: Span,
}

#[derive(Debug)]
pub(super) struct HardwareQueue {
    aggregates: VecDeque<Prepared>,
    /// Time on the air of all.
    all: Span,
}

impl HardwareQueue {
    pub(super) fn new() -> Self {
        Self { aggregates: VecDeque::new(), all: Span::ZERO }
    }

    pub(super) fn push(&mut self, aggregate: Prepared) {
        self.all += aggregate.airtime;
        self.aggregates.push_back(aggregate);
    }

    /// The first has left.
    pub(super) fn pop(&mut self) {
        if let Some(aggregate) = self.aggregates.pop_front() {
            self.all = self.all.saturating_sub(aggregate.airtime);
        }
    }

    pub(super) fn first(&self) -> Option<&Prepared> {
        self.aggregates.front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.aggregates.is_empty()
    }

    pub(super) fn is_full(&self, hardware: Hardware) -> bool {
        matches!(hardware, Hardware::Aggregates(most) if self.aggregates.len() >= usize::from(most))
    }

    pub(super) fn airtime(&self) -> Span {
        self.all
    }
}
