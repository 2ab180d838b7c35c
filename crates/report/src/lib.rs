//! Presents a result folder to people.
//!
//! - [`html`] makes one self-contained page: the answer, the factor matrix, figures, time series,
//!   runs and methods. It opens without a network and reads without script.
//! - [`figure`] makes one of its figures a file, [`figures`] all of them.
//! - [`terminal`] prints the same tables as text.
//! - [`compare`] pairs the runs of two folders and ranks what changed.
//! - [`export`] writes what flent, iperf3, Mahimahi's plots and spreadsheets read.
//! - [`pcap`] observes a run and writes packets that Wireshark analyses.
//!
//! Everything except [`pcap`] reads [`Results`](sojourn_study::results::Results) and nothing else,
//! so a page can be made again from a folder alone. Functions return text or bytes; the caller
//! decides where these go.

pub mod compare;
pub mod export;
pub mod pcap;
pub mod terminal;

mod batches;
mod command;
mod data;
mod ending;
mod extremes;
mod freezes;
mod grid;
mod lines;
mod markup;
mod names;
mod nearby;
mod number;
mod packed;
mod page;
mod read;
mod spread;
mod survey;
mod svg;
mod worth;

pub use command::repeat;
pub use page::{Alone, Options, figure, figures, html};
pub use read::ReadRuns;
