//! CUBIC: a cubic of the time since the last loss.

use super::shapes::since;
use super::{Seen, Shared};

const C: f64 = 0.4;
/// What remains of a window. The authors' K has it where RFC 9438 has 1 − β.
const BETA: f64 = 0.7;
/// Seconds by which the authors' cubic is ahead.
const AHEAD: f64 = 2.0;
/// A loss at all.
const LEAST_LOSS: f64 = 1e-6;

#[derive(Clone, Debug)]
pub(super) struct Cubic {
    /// Window at the last loss.
    most: f64,
    /// s: milliseconds since the last loss.
    since_loss: f64,
}

impl Cubic {
    pub(super) fn new(window: f64) -> Self {
        Self { most: 1.1 * window, since_loss: 0.0 }
    }

    /// Window and rate.
    pub(super) fn advance(&mut self, shared: &Shared, seen: &Seen) -> (f64, f64) {
        let loses = since(seen.loss - LEAST_LOSS);
        self.most += shared.step * loses * (seen.old_window - self.most);
        self.since_loss += shared.step * (1.0 - loses * self.since_loss);
        let k = libm::cbrt(self.most * BETA / C);
        let time = self.since_loss / 1000.0 + AHEAD - k;
        let window = (C * time * time * time + self.most).max(1.0);
        (window, window / seen.rtt)
    }
}
