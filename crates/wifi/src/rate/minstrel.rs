//! A controller in the manner of Minstrel: it knows of the air only which frames were acknowledged.
//! Every rate has a probability of success, an exponentially weighted average over intervals; some
//! PPDUs look around at other rates; a PPDU that is not answered goes down a chain of rates.

use alloc::vec::Vec;

use sojourn_core::param::{number, time, whole};
use sojourn_core::{Span, Stream, Time};

use crate::mac::aggregation::{mpdu_octets, msdu_octets};
use crate::phy::Mode;

sojourn_core::params! {
    /// The parameters of the Minstrel-like controller.
    pub struct MinstrelConfig: "minstrel", "chooses rates by what was acknowledged" {
        pub interval: Span = "50ms", time(Span::from_millis(1), Span::from_secs(60)), "time over which successes are counted before the averages move";
        pub keep: f64 = "0.75", number(0.0, 0.99), "weight of the old average in the new one";
        pub look_around: f64 = "0.1", number(0.0, 0.9), "share of PPDUs that try another rate";
        pub tries: u32 = "2", whole(1, 16), "unanswered PPDUs before the next rate of the chain is used";
        pub least_probability: f64 = "0.1", number(0.0, 0.9), "a rate below this has no throughput";
        pub reliable: f64 = "0.95", number(0.1, 1.0), "among rates that succeed more often than this, the most reliable is the one with most throughput";
    }
}

#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    config: MinstrelConfig,
    rates: Vec<Rate>,
    /// Best throughput, second best, most reliable, slowest.
    chain: [usize; 4],
    /// PPDUs in a row that nobody answered.
    unanswered: u32,
    moves_at: Time,
    random: Stream,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Frames a second if all arrive.
    perfect: f64,
    /// In this interval.
    sent: u32,
    arrived: u32,
    /// Average, once it has been tried.
    probability: Option<f64>,
}

impl Rate {
    fn throughput(&self, config: &MinstrelConfig) -> f64 {
        match self.probability {
            Some(probability) if probability >= config.least_probability => {
                probability * self.perfect
            }
            _ => 0.0,
        }
    }
}

impl Minstrel {
    /// Over modes in rising order of rate; it begins with the slowest.
    pub(super) fn new(config: &MinstrelConfig, modes: &[Mode], random: Stream) -> Self {
        // A full packet in an aggregate: what surrounds it is shared.
        let octets = crate::mac::frames::subframe(mpdu_octets(msdu_octets(1500), true));
        let perfect = |mode: &Mode| mode.rate().as_bps() as f64 / 8.0 / f64::from(octets);
        let rate = |mode: &Mode| Rate { perfect: perfect(mode), ..Rate::default() };
        Self {
            config: config.clone(),
            rates: modes.iter().map(rate).collect(),
            chain: [0; 4],
            unanswered: 0,
            moves_at: Time::ZERO,
            random,
        }
    }

    /// The rate of the next PPDU.
    pub(super) fn choose(&mut self, now: Time) -> usize {
        if now >= self.moves_at {
            self.move_averages();
            self.moves_at = now + self.config.interval;
        }
        if self.unanswered == 0
            && self.random.chance(self.config.look_around)
            && let Some(other) = self.look_around()
        {
            return other;
        }
        let step = (self.unanswered / self.config.tries).min(3) as usize;
        self.chain[step]
    }

    /// A rate to try: half of the time one next to the best, so that a signal that changes slowly is
    /// followed, else any that could be better than the best is.
    fn look_around(&mut self) -> Option<usize> {
        let best = self.chain[0];
        let last = self.rates.len() - 1;
        match self.random.below(4) {
            0 => Some((best + 1).min(last)),
            1 => Some(best.saturating_sub(1)),
            _ => {
                let other = self.random.below(self.rates.len() as u64) as usize;
                let least = self.rates[best].throughput(&self.config);
                (self.rates[other].perfect > least).then_some(other)
            }
        }
    }

    /// Of so many frames sent at a rate so many were acknowledged.
    pub(super) fn report(&mut self, rate: usize, sent: u32, arrived: u32) {
        let counted = &mut self.rates[rate];
        counted.sent += sent;
        counted.arrived += arrived;
        self.unanswered = if arrived > 0 { 0 } else { self.unanswered.saturating_add(1) };
    }

    fn move_averages(&mut self) {
        let keep = self.config.keep;
        for rate in &mut self.rates {
            if rate.sent > 0 {
                let share = f64::from(rate.arrived) / f64::from(rate.sent);
                let average =
                    rate.probability.map_or(share, |old| keep * old + (1.0 - keep) * share);
                rate.probability = Some(average);
                (rate.sent, rate.arrived) = (0, 0);
            }
        }
        let of = |rate: usize| self.rates[rate].throughput(&self.config);
        let probability = |rate: usize| self.rates[rate].probability.unwrap_or(0.0);
        let (mut best, mut second, mut reliable) = (0, 0, 0);
        for rate in 0..self.rates.len() {
            if of(rate) > of(best) {
                (best, second) = (rate, best);
            } else if rate != best && of(rate) > of(second) {
                second = rate;
            }
            let is_better = match probability(reliable) >= self.config.reliable {
                true => probability(rate) >= self.config.reliable && of(rate) > of(reliable),
                false => probability(rate) > probability(reliable),
            };
            if is_better {
                reliable = rate;
            }
        }
        self.chain = [best, second, reliable, 0];
    }
}
