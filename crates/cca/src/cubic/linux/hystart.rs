//! HyStart as Linux has it: slow start ends when acknowledgements come in a train as long as the
//! path, or when their delay rises.

use sojourn_core::{Rate, Span, Time};

use super::config::{Config, Detect};
use crate::Ack;
use crate::reno::window::is_after;

/// One slow start. A round lasts until what was sent before it is acknowledged.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    is_paced: bool,
    is_over: bool,
    round_start: Time,
    /// The newest acknowledgement of the train.
    last_ack: Time,
    /// `None` before the first acknowledgement.
    end_seq: Option<u32>,
    /// Smallest round-trip time of the round.
    curr_rtt: Span,
    sample_cnt: u32,
}

/// A round is not judged before it has this many samples.
const MIN_SAMPLES: u32 = 8;

impl HyStart {
    pub(super) fn new(now: Time, is_paced: bool) -> Self {
        Self {
            is_paced,
            is_over: false,
            round_start: now,
            last_ack: now,
            end_seq: None,
            curr_rtt: Span::MAX,
            sample_cnt: 0,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Starts over with a slow start.
    pub(super) fn restart(&mut self, now: Time, snd_nxt: u32) {
        *self = Self::new(now, self.is_paced);
        self.end_seq = Some(snd_nxt);
    }

    /// Processes an acknowledgement that measured `rtt`, before the window grows by it; true when
    /// slow start should end.
    pub(super) fn is_over_after(
        &mut self,
        config: &Config,
        ack: &Ack,
        cwnd: u32,
        mss: u32,
        rtt: Span,
        delay_min: Span,
    ) -> bool {
        if self.end_seq.is_none_or(|end_seq| is_after(ack.snd_una, end_seq)) {
            self.restart(ack.now, ack.snd_nxt);
        }
        if cwnd < config.hystart_low_window {
            return false;
        }
        self.is_over = (config.hystart_detect != Detect::Delay
            && self.has_long_train(config, ack, cwnd, mss, delay_min))
            | (config.hystart_detect != Detect::AckTrain && self.has_risen(rtt, delay_min));
        self.is_over
    }

    /// Whether acknowledgements have followed closely on one another for as long as the path takes
    /// one way.
    fn has_long_train(
        &mut self,
        config: &Config,
        ack: &Ack,
        cwnd: u32,
        mss: u32,
        delay_min: Span,
    ) -> bool {
        if ack.now.since(self.last_ack) > Span::from_micros(config.hystart_ack_delta_us.into()) {
            return false;
        }
        self.last_ack = ack.now;
        let path = delay_min + offload_delay(ack, cwnd, mss);
        // Pacing spreads a window over half a round trip by itself.
        let threshold = if self.is_paced { path } else { path / 2 };
        ack.now.since(self.round_start) > threshold
    }

    fn has_risen(&mut self, rtt: Span, delay_min: Span) -> bool {
        self.curr_rtt = self.curr_rtt.min(rtt);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
            return false;
        }
        let rise = (delay_min / 8).max(Span::from_millis(4)).min(Span::from_millis(16));
        self.curr_rtt > delay_min + rise
    }
}

/// How much segmentation and receive offload may lengthen the train: four bursts of the largest
/// size at the rate at which slow start would be paced, and at most a millisecond.
fn offload_delay(ack: &Ack, cwnd: u32, mss: u32) -> Span {
    const BURSTS: u64 = 4 * 65_536;
    let most = Span::from_millis(1);
    let srtt = ack.srtt.or(ack.rtt).unwrap_or(Span::ZERO).as_nanos();
    if srtt == 0 {
        return Span::ZERO;
    }
    let bytes = u64::from(cwnd.max(ack.packets_out)) * u64::from(mss);
    // Twice the window per round trip.
    let per_second = (u128::from(bytes) * 2 * 1_000_000_000 / u128::from(srtt)) as u64;
    Rate::from_bytes_per_sec(per_second).time_for(BURSTS).min(most)
}
