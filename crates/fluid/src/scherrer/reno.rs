//! Reno: additive increase by acknowledgements and half of the window for each loss.

use super::{Seen, Shared};

/// Window and rate.
pub(super) fn advance(shared: &Shared, seen: &Seen, window: f64) -> (f64, f64) {
    let acknowledged = seen.sent * (1.0 - seen.loss);
    let lost = seen.sent * seen.loss;
    let slope = acknowledged / window - lost * window / 2.0;
    let window = (window + shared.step * slope).max(1.0);
    (window, window / seen.rtt)
}
