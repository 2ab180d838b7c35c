//! Results in the formats of other tools. Everything here is a pure function of results, except
//! [`MahimahiLog`], which needs every packet and therefore observes a run.

mod csv;
mod flent;
mod iperf3;
mod mahimahi;

pub use csv::{runs_csv, series_csv};
pub use flent::flent;
pub use iperf3::iperf3;
pub use mahimahi::MahimahiLog;
