//! What a page may cost.

/// Limits of a page.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Characters that the time series of all runs may take together.
    pub series_budget: usize,
    /// Runs with a section of their own; the others are in tables and figures only.
    pub runs: usize,
    /// Scenarios with a still figure of their first run over time.
    pub timelines: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { series_budget: 1_900_000, runs: 300, timelines: 40 }
    }
}
