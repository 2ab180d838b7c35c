//! What one acknowledgement says about delivery.

use crate::Ack;
use crate::bbr::app_limit::OwnAppLimit;
use crate::fixed::Bw;

/// The kernel's rate sample, with its bandwidth. The counters are valid even if the rate is not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Zero unless valid.
    pub(super) bw: Bw,
    /// The interval is long enough for a rate.
    pub(super) is_valid: bool,
    pub(super) delivered: u32,
    pub(super) delivered_ce: u32,
    pub(super) prior_delivered: u64,
    /// Segments lost between the sending and the acknowledging of the newest acknowledged segment.
    pub(super) lost: u32,
    /// In flight when that segment left, itself included.
    pub(super) tx_in_flight: u32,
    pub(super) is_app_limited: bool,
}

impl Sample {
    pub(super) fn of(ack: &Ack, own_app_limit: &OwnAppLimit) -> Self {
        let Some(rate) = &ack.rate else { return Self::default() };
        let micros = rate.interval.as_micros();
        let is_valid = !rate.is_too_short && micros > 0;
        let bw =
            if is_valid { Bw::of_rounded_up(u64::from(rate.delivered), micros) } else { Bw::ZERO };
        Self {
            bw,
            is_valid,
            delivered: rate.delivered,
            delivered_ce: rate.delivered_ce,
            prior_delivered: rate.prior.delivered,
            lost: rate.lost,
            tx_in_flight: rate.prior.in_flight,
            is_app_limited: rate.prior.is_app_limited || own_app_limit.covers(rate.prior.delivered),
        }
    }
}
