//! The smallest round-trip time, sections 5.3.4.3 and 5.5.7.

use sojourn_core::{Span, Time};

use super::super::Bbr3;
use crate::Ack;

#[derive(Clone, Debug)]
pub(crate) struct MinRtt {
    /// `None` stands for infinity.
    pub(crate) min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Option<Span>,
    pub(crate) probe_rtt_min_stamp: Time,
}

impl MinRtt {
    pub(crate) fn new(now: Time, srtt: Option<Span>) -> Self {
        Self {
            min_rtt: srtt,
            min_rtt_stamp: now,
            probe_rtt_min_delay: srtt,
            probe_rtt_min_stamp: now,
        }
    }
}

impl Bbr3 {
    /// True when ProbeRTT is due (`probe_rtt_expired`).
    pub(crate) fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let rtts = &mut self.min_rtt;
        let is_due = ack.now > rtts.probe_rtt_min_stamp + self.config.probe_rtt_interval;
        if let Some(rtt) = ack.rtt
            && (is_due || rtts.probe_rtt_min_delay.is_none_or(|min| rtt < min))
        {
            rtts.probe_rtt_min_delay = Some(rtt);
            rtts.probe_rtt_min_stamp = ack.now;
        }
        if let Some(delay) = rtts.probe_rtt_min_delay {
            let is_expired = ack.now > rtts.min_rtt_stamp + self.config.min_rtt_window;
            if is_expired || rtts.min_rtt.is_none_or(|min| delay < min) {
                rtts.min_rtt = Some(delay);
                rtts.min_rtt_stamp = rtts.probe_rtt_min_stamp;
            }
        }
        is_due
    }
}
