//! The source of what a page needs for each run.

use sojourn_study::results::{Delays, Reader, Series};

/// What a page reads run by run, by positions in the plan. Errors are texts that the page shows.
pub trait ReadRuns {
    /// # Errors
    /// The time series of the run cannot be read.
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String>;

    /// # Errors
    /// The distributions of the run cannot be read.
    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String>;
}

impl ReadRuns for Reader {
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String> {
        self.series(run).map_err(|error| error.to_string())
    }

    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String> {
        self.delays(run).map_err(|error| error.to_string())
    }
}
