//! The source of what a page needs for each run.

use sojourn_study::results::{Delays, Kind, Reader, Series};

/// What a page reads run by run, by positions in the plan. Errors are texts that the page shows.
pub trait ReadRuns: Send {
    /// # Errors
    /// The time series of the run cannot be read.
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String>;

    /// The same of those flows and queues that are wanted.
    ///
    /// # Errors
    /// As [`ReadRuns::series`].
    fn series_of(
        &mut self,
        run: u32,
        is_wanted: &dyn Fn(Kind, &str) -> bool,
    ) -> Result<Vec<Series>, String> {
        let mut series = self.series(run)?;
        series.retain(|one| is_wanted(one.kind, &one.name));
        Ok(series)
    }

    /// # Errors
    /// The distributions of the run cannot be read.
    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String>;
}

impl ReadRuns for Reader {
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String> {
        self.series(run).map_err(|error| error.to_string())
    }

    fn series_of(
        &mut self,
        run: u32,
        is_wanted: &dyn Fn(Kind, &str) -> bool,
    ) -> Result<Vec<Series>, String> {
        Self::series_of(self, run, is_wanted).map_err(|error| error.to_string())
    }

    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String> {
        self.delays(run).map_err(|error| error.to_string())
    }
}
