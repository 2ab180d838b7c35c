//! How an encoder takes a new target (RFC 8593 sections 5.1 and 5.3).

use sojourn_core::{Bytes, Rate, Span, Time};

use super::Setup;

/// The target that the encoder works with.
#[derive(Clone, Debug)]
pub(in crate::source) struct Encoder {
    tau_v: Span,
    min: Rate,
    max: Rate,
    target: Option<(Rate, Time)>,
}

impl Encoder {
    pub(in crate::source) fn new(tau_v: Span, setup: &Setup) -> Self {
        Self { tau_v, min: setup.min_rate, max: setup.max_rate, target: None }
    }

    /// Asks for a rate; answers by what share the encoder's target changed, infinite for its first.
    pub(in crate::source) fn aim(&mut self, now: Time, wanted: Rate) -> f64 {
        let wanted = wanted.max(self.min).min(self.max);
        match self.target {
            None => {
                self.target = Some((wanted, now));
                f64::INFINITY
            }
            Some((target, since)) => {
                if wanted == target || now.since(since) < self.tau_v {
                    return 0.0;
                }
                self.target = Some((wanted, now));
                let before = target.as_bps().max(1) as f64;
                libm::fabs(wanted.as_bps() as f64 - before) / before
            }
        }
    }

    pub(in crate::source) fn rate(&self) -> Rate {
        self.target.map_or(self.min, |(target, _)| target)
    }

    pub(in crate::source) fn bytes_per_second(&self) -> f64 {
        self.rate().as_bps() as f64 / 8.0
    }
}

/// The frames after a large change of the target, or after a request for a key frame.
#[derive(Clone, Debug)]
pub(in crate::source) struct Transient {
    frames: u32,
    first: f64,
    change: f64,
    left: u32,
}

impl Transient {
    pub(in crate::source) fn new(k_d: u32, k_b: Bytes, change: f64) -> Self {
        Self { frames: k_d, first: k_b.as_u64() as f64, change, left: 0 }
    }

    /// Size of the next frame and whether it is a key frame; `None` if no transient is on.
    pub(in crate::source) fn frame(
        &mut self,
        key: bool,
        change: f64,
        mean: f64,
    ) -> Option<(f64, bool)> {
        if key || change > self.change {
            self.left = self.frames - 1;
            // The call's first frame is a key frame, because there is none to refer to.
            return Some((self.first, key || change.is_infinite()));
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let frames = f64::from(self.frames);
        Some(((mean * frames - self.first) / (frames - 1.0), false))
    }
}
