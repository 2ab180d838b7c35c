//! The rate sample of one acknowledgement, section 4.1.

use super::super::bandwidth::Bandwidth;
use crate::Ack;
use crate::bbr::app_limit::OwnAppLimit;

/// `RS`. All zero when nothing was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) has_data: bool,
    /// `None` if the interval was too short for a rate.
    pub(crate) delivery_rate: Option<Bandwidth>,
    pub(crate) delivered: u32,
    pub(crate) prior_delivered: u64,
    pub(crate) is_app_limited: bool,
    /// In flight when the newest acknowledged packet left, itself included.
    pub(crate) tx_in_flight: u32,
    /// Lost between the sending and the acknowledging of that packet.
    pub(crate) lost: u32,
}

impl Sample {
    pub(crate) fn of(ack: &Ack, own_app_limit: &OwnAppLimit) -> Self {
        let Some(rate) = &ack.rate else { return Self::default() };
        let is_reliable = !rate.is_too_short && !rate.interval.is_zero();
        Self {
            has_data: true,
            delivery_rate: is_reliable.then(|| Bandwidth::of(rate.delivered, rate.interval)),
            delivered: rate.delivered,
            prior_delivered: rate.prior.delivered,
            is_app_limited: rate.prior.is_app_limited || own_app_limit.covers(rate.prior.delivered),
            tx_in_flight: rate.prior.in_flight,
            lost: rate.lost,
        }
    }

    pub(crate) fn delivery_rate_or_zero(&self) -> Bandwidth {
        self.delivery_rate.unwrap_or(Bandwidth::ZERO)
    }
}
