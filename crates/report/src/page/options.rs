//! Limits on a page's size.

/// Limits of a page.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most characters for the time series of all runs together.
    pub series_budget: usize,
    /// The most runs with a section of their own; the others are in tables and figures only.
    pub runs: usize,
    /// The most scenarios with a still figure of their first run over time.
    pub timelines: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { series_budget: 1_900_000, runs: 300, timelines: 40 }
    }
}
