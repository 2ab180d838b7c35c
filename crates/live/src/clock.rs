//! The real clock, counted from the start of a run.

use std::time::Instant;

use sojourn_core::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A run begins at `start`.
    pub(crate) fn from(start: Instant) -> Self {
        Self { start }
    }

    /// The present time of the run; its start until that has come.
    pub(crate) fn now(&self) -> Time {
        let since = Instant::now().saturating_duration_since(self.start);
        Time::ZERO + Span::from_nanos(since.as_nanos() as u64)
    }
}
