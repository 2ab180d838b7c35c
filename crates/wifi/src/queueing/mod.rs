//! Where packets wait in a station before they have a sequence number.

mod addressed;
mod driver;

pub(crate) use addressed::{Addressed, Refused};
pub(crate) use driver::Driver;
pub use driver::{DriverConfig, Order};
