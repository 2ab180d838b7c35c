//! Proportional rate reduction (RFC 9937): how many segments may leave on each acknowledgement
//! while the window comes down to the slow start threshold.

#[derive(Clone, Debug, Default)]
pub(super) struct Prr {
    /// RecoverFS; the kernel uses the window at entry.
    prior_cwnd: u32,
    ssthresh: u32,
    delivered: u32,
    out: u32,
    cwnd: u32,
}

impl Prr {
    pub(super) fn begin(cwnd: u32, ssthresh: u32) -> Self {
        Self { prior_cwnd: cwnd.max(1), ssthresh, delivered: 0, out: 0, cwnd }
    }

    /// The reduction under way gets a lower target.
    pub(super) fn lower(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    pub(super) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(super) fn on_sent(&mut self, segments: u32) {
        self.out += segments;
    }

    /// `is_safe`: the cumulative acknowledgement advanced and nothing new was lost (SafeACK).
    pub(super) fn on_ack(&mut self, newly_delivered: u32, in_flight: u32, is_safe: bool) {
        if newly_delivered == 0 {
            return;
        }
        self.delivered += newly_delivered;
        let count = if in_flight > self.ssthresh {
            let allowed = (u64::from(self.ssthresh) * u64::from(self.delivered))
                .div_ceil(u64::from(self.prior_cwnd));
            (allowed as i64) - i64::from(self.out)
        } else {
            let conserve = i64::from(self.delivered) - i64::from(self.out);
            let limit = conserve.max(i64::from(newly_delivered)) + i64::from(is_safe);
            limit.min(i64::from(self.ssthresh - in_flight))
        };
        // The first acknowledgement of recovery releases at least the fast retransmission.
        let least = i64::from(self.out == 0);
        self.cwnd = in_flight + count.max(least) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9937 section 6: halving a window of 20 sends one segment for every second delivered.
    #[test]
    fn above_the_threshold_the_sending_rate_follows_the_ratio() {
        let mut prr = Prr::begin(20, 10);
        let mut in_flight = 19;
        let mut sent = 0;
        for _ in 0..9 {
            in_flight -= 1;
            prr.on_ack(1, in_flight, true);
            while in_flight < prr.cwnd() {
                prr.on_sent(1);
                in_flight += 1;
                sent += 1;
            }
        }
        assert!((4..=6).contains(&sent), "{sent}");
    }

    #[test]
    fn below_the_threshold_it_conserves_and_adds_one_when_safe() {
        let mut prr = Prr::begin(20, 10);
        prr.on_sent(1);
        prr.on_ack(1, 4, false);
        assert_eq!(prr.cwnd(), 5);
        prr.on_sent(1);
        prr.on_ack(1, 4, true);
        assert_eq!(prr.cwnd(), 6);
    }
}
