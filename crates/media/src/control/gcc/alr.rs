//! Whether the application sends less than it might (the application-limited region).

use sojourn_core::{Span, Time};

use super::Config;

#[derive(Clone, Debug)]
pub(super) struct Alr {
    share: f64,
    begins: f64,
    ends: f64,
    /// Bytes that the application may leave out in a nanosecond.
    rate: f64,
    /// Bytes that half a second carries at that rate, and the parts of them with which the region begins and ends.
    most: f64,
    begins_at: f64,
    ends_at: f64,
    /// Bytes that could have been sent but were not; at most `most`.
    spare: f64,
    /// `NEVER` before the first packet.
    updated: Time,
    since: Option<Time>,
}

const WINDOW: Span = Span::from_millis(500);

impl Alr {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            share: config.alr_share,
            begins: config.alr_begins,
            ends: config.alr_ends,
            rate: 0.0,
            most: 0.0,
            begins_at: 0.0,
            ends_at: 0.0,
            spare: 0.0,
            updated: Time::NEVER,
            since: None,
        }
    }

    pub(super) fn since(&self) -> Option<Time> {
        self.since
    }

    pub(super) fn set_estimate(&mut self, rate: f64) {
        self.rate = self.share * rate / 8e9;
        self.most = self.rate * WINDOW.as_nanos() as f64;
        self.begins_at = self.begins * self.most;
        self.ends_at = self.ends * self.most;
        self.spare = self.spare.clamp(-self.most, self.most);
    }

    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        let most = self.most;
        // 63 bits hold three centuries, and convert faster than 64.
        let passed = now.since(self.updated).as_nanos() as i64 as f64;
        self.updated = now;
        let held = |spare: f64, bound: f64, is_beyond: bool| if is_beyond { bound } else { spare };
        let spare = self.spare - f64::from(bytes);
        let spare = held(spare, -most, spare < -most) + self.rate * passed;
        self.spare = held(spare, most, spare > most);
        if self.spare < self.ends_at {
            self.since = None;
        } else if self.spare > self.begins_at && self.since.is_none() {
            self.since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libwebrtc's own cases, at an estimate of 300 kbit/s: half of it for a while begins the region,
    /// more than it ends it.
    #[test]
    fn a_call_at_20_percent_is_limited_by_its_application_and_at_100_percent_is_not() {
        let mut alr = Alr::new(&Config::default());
        alr.set_estimate(300e3);
        let mut now = Time::ZERO;
        let mut send = |alr: &mut Alr, share: f64, seconds: u64| {
            for _ in 0..seconds * 100 {
                now += Span::from_millis(10);
                alr.on_sent(now, (300e3 * share / 800.0) as u32);
            }
        };
        send(&mut alr, 1.0, 1);
        assert_eq!(alr.since(), None);
        send(&mut alr, 0.2, 2);
        assert!(alr.since().is_some());
        send(&mut alr, 1.0, 2);
        assert_eq!(alr.since(), None);
    }
}
