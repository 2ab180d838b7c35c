//! Prague (draft-briscoe-iccrg-prague-congestion-control-04), the scalable controller of L4S
//! (RFC 9330, RFC 9331).
//!
//! Like DCTCP it cuts the window by half of the average share of marked segments, alpha. Unlike
//! DCTCP it keeps increasing in between, counts a short round-trip time as a longer, virtual one,
//! and paces. It needs accurate feedback; without it, it behaves as Reno.
//!
//! There are three: the draft here, the kernel module in [`linux`], and the library udp_prague in
//! [`udp`]. They share no arithmetic, because their arithmetic differs.

mod episodes;
pub mod linux;
#[cfg(test)]
mod tests;
pub mod udp;

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{Rate, Span, Time};

use crate::dctcp::OrReno;
use crate::forms::Ratio;
use crate::reno::window::is_after;
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, EcnFeedback, EcnRequest, Quantum,
    RecoveryState, Setup, Undo,
};
use episodes::Episodes;

sojourn_core::params! {
    /// The parameters of the draft.
    pub struct Config: "prague", "Prague, draft-briscoe-iccrg-prague-congestion-control-04" {
        pub(crate) rtt_virt_min: Span = "25ms", "Least virtual round-trip time";
        pub(crate) rtt_rounds: u32 = "500", "Rounds after slow start before the increase is scaled to the virtual round-trip time";
        pub(crate) g: Ratio = "0.0625", "Weight of the latest mark rate in its moving average";
        pub(crate) max_burst_delay: Span = "250us", "Longest burst";
        pub(crate) min_cwnd: u32 = "2", "Least window, in segments";
    }
}

impl Algorithm for Config {
    type Controller = OrReno<Prague>;

    /// Prague if the ends agreed on accurate feedback, otherwise Reno (section 2.3.1).
    fn build(&self, setup: Setup) -> OrReno<Prague> {
        match setup.ecn {
            EcnFeedback::Accurate => OrReno::Scalable(Prague::new(self.clone(), setup)),
            EcnFeedback::Off | EcnFeedback::Classic => OrReno::reno(setup),
        }
    }

    fn ecn_request(&self) -> EcnRequest {
        EcnRequest::L4s
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["slow_start", "avoidance", "avoidance:rtt_independent"]
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Prague {
    config: Config,
    mtu: u32,
    /// Segments, with a fraction.
    cwnd: f64,
    ssthresh: f64,
    /// Moving average of the mark rate; nothing before the first mark.
    alpha: Option<f64>,
    alpha_update: Time,
    /// Segments delivered and marked since then.
    acked: u64,
    ce: u64,
    /// The present round ends when this is acknowledged.
    round_end: Option<u32>,
    /// The mark rate is averaged at the first acknowledgement after this.
    alpha_end: Option<u32>,
    /// Rounds since slow start.
    rounds: u32,
    srtt: Span,
    /// When the window was last cut, for loss or for marks, and how much marks took.
    last_cut: Option<(Time, f64)>,
    episodes: Episodes,
    /// A loss is being repaired.
    in_loss: bool,
    is_loss_answered: bool,
    /// Window and threshold to return to.
    prior: Option<(f64, f64)>,
    bytes_per_sec: Option<u64>,
}

impl Prague {
    pub fn new(config: Config, setup: Setup) -> Self {
        let mut prague = Self {
            mtu: setup.mtu.max(1),
            cwnd: f64::from(setup.initial_cwnd.max(1)),
            ssthresh: f64::INFINITY,
            alpha: None,
            alpha_update: setup.now,
            acked: 0,
            ce: 0,
            round_end: None,
            alpha_end: None,
            rounds: 0,
            srtt: setup.handshake_rtt.unwrap_or_default(),
            last_cut: None,
            episodes: Episodes::default(),
            in_loss: false,
            is_loss_answered: false,
            prior: None,
            bytes_per_sec: None,
            config,
        };
        prague.update_pacing_rate(0);
        prague
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn rtt_virt(&self) -> Span {
        self.srtt.max(self.config.rtt_virt_min)
    }

    /// Section 2.3.2: alpha += g (frac − alpha), once per virtual round-trip time. The first mark
    /// sets it to one.
    fn update_alpha(&mut self, ack: &Ack) {
        self.acked += u64::from(ack.delivered);
        self.ce += u64::from(ack.ce);
        if self.alpha.is_none() {
            if ack.ce > 0 {
                self.alpha = Some(1.0);
                self.start_average(ack);
            } else {
                (self.acked, self.ce) = (0, 0);
            }
            return;
        }
        let is_round = self.alpha_end.is_none_or(|end| !is_after(end, ack.snd_una));
        if !is_round || ack.now.since(self.alpha_update) < self.rtt_virt() || self.acked == 0 {
            return;
        }
        let frac = (self.ce as f64 / self.acked as f64).min(1.0);
        self.alpha = self.alpha.map(|alpha| alpha + self.config.g.0 * (frac - alpha));
        self.start_average(ack);
    }

    fn start_average(&mut self, ack: &Ack) {
        self.alpha_update = ack.now;
        self.alpha_end = Some(ack.snd_nxt);
        (self.acked, self.ce) = (0, 0);
    }

    fn count_round(&mut self, ack: &Ack) {
        if self.round_end.is_none_or(|end| !is_after(end, ack.snd_una)) {
            self.round_end = Some(ack.snd_nxt);
            if !self.is_slow_start() {
                self.rounds = self.rounds.saturating_add(1);
            }
        }
    }

    /// Section 2.4.2: (1 − alpha / 2) cwnd, then no more for a virtual round-trip time.
    fn decrease(&mut self, now: Time) {
        if self.in_loss || self.has_cut_lately(now) {
            return;
        }
        let least = f64::from(self.config.min_cwnd);
        let reduced = (self.cwnd * (1.0 - self.alpha.unwrap_or(1.0) / 2.0)).max(least);
        let cut = (self.cwnd - reduced).max(0.0);
        self.cwnd -= cut;
        self.ssthresh = self.cwnd;
        self.last_cut = Some((now, cut));
    }

    /// Section 2.4.3: cwnd += unmarked · ai_per_rtt / cwnd, even right after a decrease.
    fn increase(&mut self, ack: &Ack) {
        let mut unmarked = f64::from(ack.delivered.saturating_sub(ack.ce));
        if unmarked == 0.0 || self.in_loss || !ack.is_cwnd_limited {
            return;
        }
        if self.is_slow_start() {
            let growth = unmarked.min(self.ssthresh - self.cwnd);
            self.cwnd += growth;
            unmarked -= growth;
        }
        self.cwnd += unmarked * self.ai_per_rtt() / self.cwnd;
    }

    /// Section 2.4.4: with a short round-trip time the window grows by a segment per virtual one;
    /// in rate as well.
    fn ai_per_rtt(&self) -> f64 {
        if self.rounds < self.config.rtt_rounds || self.srtt >= self.config.rtt_virt_min {
            return 1.0;
        }
        let ratio = self.srtt.as_nanos() as f64 / self.rtt_virt().as_nanos() as f64;
        ratio * ratio
    }

    fn has_cut_lately(&self, now: Time) -> bool {
        self.last_cut.is_some_and(|(at, _)| now.since(at) < self.rtt_virt())
    }

    /// Section 2.4.1: halves as Reno does, less what marks took within the last virtual round-trip
    /// time.
    fn halve(&mut self, now: Time) {
        let credit = match self.last_cut {
            Some((_, cut)) if self.has_cut_lately(now) => cut,
            _ => 0.0,
        };
        let least = f64::from(self.config.min_cwnd);
        let halved = ((self.cwnd + credit) / 2.0).min(self.cwnd).max(least);
        self.ssthresh = halved;
        self.cwnd = halved;
        self.last_cut = Some((now, 0.0));
        self.in_loss = true;
        self.is_loss_answered = true;
    }

    /// Section 2.5.
    fn update_pacing_rate(&mut self, in_flight: u32) {
        if self.srtt.is_zero() {
            return;
        }
        let is_early = self.cwnd < self.ssthresh / 2.0;
        let window = self.cwnd().max(in_flight);
        let bytes_per_sec = paced_bytes(self.mtu, window, self.srtt) << u32::from(is_early);
        self.bytes_per_sec = Some(bytes_per_sec.max(1));
    }
}

/// Bytes per second that spread `window` packets of `mtu` bytes over `srtt`.
fn paced_bytes(mtu: u32, window: u32, srtt: Span) -> u64 {
    const SECOND: u64 = Span::from_secs(1).as_nanos();
    let per_packet = u64::from(mtu) * SECOND / srtt.as_nanos().max(1);
    per_packet.saturating_mul(u64::from(window)).min(u64::MAX >> 8)
}

impl Controller for Prague {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.episodes.on_ack(ack);
        self.srtt = ack.srtt.unwrap_or(self.srtt);
        match ack.state {
            RecoveryState::Recovery if !self.is_loss_answered => {
                self.prior = None;
                self.halve(ack.now);
            }
            RecoveryState::Recovery | RecoveryState::Loss => {}
            _ => (self.in_loss, self.is_loss_answered) = (false, false),
        }
        self.update_alpha(ack);
        if ack.ce > 0 {
            self.decrease(ack.now);
        }
        self.increase(ack);
        self.count_round(ack);
        self.update_pacing_rate(ack.in_flight);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let is_new = self.episodes.begin(congestion);
        match congestion.kind {
            // The response to marks is decided when the acknowledgement that reports them is
            // processed.
            CongestionKind::Ecn => self.prior = None,
            CongestionKind::Loss => match congestion.prior_state {
                RecoveryState::Recovery => {}
                prior_state => {
                    let may_undo = prior_state != RecoveryState::Cwr;
                    self.prior = may_undo.then_some((self.cwnd, self.ssthresh));
                    self.halve(congestion.now);
                }
            },
            CongestionKind::Timeout => {
                if is_new {
                    self.prior = Some((self.cwnd, self.ssthresh));
                    self.halve(congestion.now);
                }
                self.cwnd = f64::from(congestion.in_flight.saturating_add(1));
                // From here on slow start grows to the threshold.
                self.in_loss = false;
                self.is_loss_answered = true;
            }
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        (self.in_loss, self.is_loss_answered) = (false, false);
    }

    fn on_undo(&mut self, _undo: &Undo) {
        self.in_loss = false;
        if let Some((cwnd, ssthresh)) = self.prior.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// Rounded up, so that the pace limits and not the window.
    #[inline]
    fn cwnd(&self) -> u32 {
        libm::ceil(self.cwnd) as u32
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh.is_finite().then(|| libm::ceil(self.ssthresh) as u32)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.bytes_per_sec.map(Rate::from_bytes_per_sec)
    }

    fn send_quantum(&self) -> Quantum {
        let bytes_per_sec = self.bytes_per_sec.unwrap_or_default();
        let micros = self.config.max_burst_delay.as_micros();
        let burst = bytes_per_sec.saturating_mul(micros) / 1_000_000 / u64::from(self.mtu);
        Quantum::Segments(burst.clamp(1, 1 << 16) as u32)
    }

    /// Reno handles losses; marks do not reduce the window through the transport.
    fn uses_prr(&self) -> bool {
        self.in_loss
    }

    fn reads_rate(&self) -> bool {
        false
    }

    fn heeds_losses(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        match (self.is_slow_start(), self.rounds >= self.config.rtt_rounds) {
            (true, _) => "slow_start",
            (false, false) => "avoidance",
            (false, true) => "avoidance:rtt_independent",
        }
    }
}
