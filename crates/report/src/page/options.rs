//! How a page is made.

use std::num::NonZero;

/// Limits of a page, and of what makes it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most characters for the time series of all runs together.
    pub series_budget: usize,
    /// The most runs with a section of their own; the others are in tables and figures only.
    pub runs: usize,
    /// The most scenarios with a still figure of their first run over time.
    pub timelines: usize,
    /// Threads that make it, by default one for each core. The page does not depend on it.
    pub jobs: Option<NonZero<usize>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { series_budget: 1_900_000, runs: 300, timelines: 40, jobs: None }
    }
}
