//! What rates of links have in common.

use alloc::format;

use sojourn_core::param::{self, Bounds};
use sojourn_core::{Rate, SpecError};

use crate::trace::MAX_RATE;

/// Rates at which packets can be serialised.
pub(crate) const POSITIVE: Bounds = param::rate(Rate::from_bps(1), MAX_RATE);

/// # Errors
/// The rate is zero, or above 10 Tbit/s and not unlimited.
pub(crate) fn serialisable(rate: Rate) -> Result<Rate, SpecError> {
    if POSITIVE.hold_rate(rate) || rate.is_unlimited() {
        return Ok(rate);
    }
    Err(SpecError::new(format!("rate '{rate}' is out of range"))
        .allow([format!("a rate above 0 and up to {MAX_RATE}")]))
}
