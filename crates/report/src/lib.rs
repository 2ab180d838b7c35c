//! What a result folder says, for people.
//!
//! - [`html`] makes one self-contained page: the answer, the factor matrix, figures, time series,
//!   runs and methods. It opens without a network and reads without script.
//! - [`terminal`] prints the same tables as text.
//! - [`compare`] pairs the runs of two folders and ranks what changed.
//! - [`export`] writes what flent, iperf3, Mahimahi's plots and spreadsheets read.
//! - [`pcap`] observes a run and writes packets that Wireshark analyses.
//!
//! Everything but [`pcap`] reads [`Results`](sojourn_study::results::Results) and nothing else, so
//! a page can be made again from a folder alone. Functions return text or bytes; who calls them
//! decides where it goes.

pub mod compare;
pub mod export;
pub mod pcap;
pub mod terminal;

mod command;
mod data;
mod markup;
mod names;
mod number;
mod packed;
mod page;
mod spread;
mod svg;

pub use command::repeat;
pub use page::{Options, html};

use sojourn_study::results::{Delays, Reader, Series};

/// What a page reads run by run, by positions in the plan. Errors are texts, which the page tells.
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
