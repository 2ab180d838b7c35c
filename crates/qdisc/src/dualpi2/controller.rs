//! The proportional integral controller and what its probability does (RFC 9332 sections 2.4, 4
//! and appendix A; De Schepper et al., "PI2: A Linearized AQM for both Classic and Scalable TCP",
//! CoNEXT 2016).

use sojourn_core::{Ecn, Span, Stream, Time};

use super::config::{Config, Overload};

#[derive(Debug)]
pub(super) struct Controller {
    target: Span,
    tupdate: Span,
    /// Per nanosecond of delay, in fractions of 2^32 times 2^[`GRANULARITY`].
    alpha: u32,
    beta: u32,
    coupling_factor: u32,
    overload: Overload,
    next_update: Time,
    /// p', from which the other probabilities follow, in fractions of 2^32.
    pub(super) prob: u32,
    last_qdelay: Span,
}

/// Bits of the gains below the probability's unit.
const GRANULARITY: u32 = 6;

const MAX_PROB: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl Controller {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            target: config.target,
            tupdate: config.tupdate,
            alpha: config.alpha.scaled(),
            beta: config.beta.scaled(),
            coupling_factor: config.coupling_factor,
            overload: config.overload,
            next_update: Time::ZERO + config.tupdate,
            prob: 0,
            last_qdelay: Span::ZERO,
        }
    }

    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        now >= self.next_update
    }

    /// Computes the updates that were due up to `now`, at multiples of `tupdate`. Since the last
    /// call the queues have had these heads, given by their times of arrival.
    #[inline(never)]
    pub(super) fn update_until(&mut self, now: Time, c_head: Option<Time>, l_head: Option<Time>) {
        while now >= self.next_update {
            let at = self.next_update;
            let delay = |head: Option<Time>| head.map_or(Span::ZERO, |arrived| at.since(arrived));
            let before = (self.prob, self.last_qdelay);
            self.update(delay(c_head).max(delay(l_head)));
            // After an update that changed nothing, the next ones change nothing either, unless a
            // head grows older.
            if before == (self.prob, self.last_qdelay) && c_head.or(l_head).is_none() {
                let missed = now.since(at).as_nanos() / self.tupdate.as_nanos();
                self.next_update += self.tupdate * missed;
            }
            self.next_update += self.tupdate;
        }
    }

    /// RFC 9332 appendix A.1, `dualpi2_update`.
    pub(super) fn update(&mut self, qdelay: Span) {
        let times = |gain: u32, from: Span, to: Span| {
            i128::from(gain) * (i128::from(to.as_nanos()) - i128::from(from.as_nanos()))
        };
        let delta =
            times(self.alpha, self.target, qdelay) + times(self.beta, self.last_qdelay, qdelay);
        self.last_qdelay = qdelay;
        let prob = i128::from(self.prob) + delta / (1 << GRANULARITY);
        self.prob = prob.clamp(0, i128::from(MAX_PROB)) as u32;
        if self.overload == Overload::Overflow {
            // L's probability is held at one, so that both kinds of flow keep their shares.
            self.prob = self.prob.min(MAX_PROB / self.coupling_factor.max(1));
        }
    }

    /// L's probability, p_CL, which may exceed one.
    fn coupled_prob(&self) -> u64 {
        u64::from(self.prob) * u64::from(self.coupling_factor)
    }

    /// RFC 9332 section 2.5.1.1: L would need more signals than marking every packet.
    fn is_overloaded(&self) -> bool {
        self.coupled_prob() > u64::from(MAX_PROB)
    }

    /// p_C is the square of p': two random numbers must both be below p'.
    #[inline]
    pub(super) fn judge_classic(&self, ecn: Ecn, random: &mut Stream) -> Verdict {
        if !(roll(self.prob, random) && roll(self.prob, random)) {
            Verdict::Pass
        } else if self.is_overloaded() || ecn == Ecn::NotEct {
            Verdict::Drop
        } else {
            Verdict::Mark
        }
    }

    #[inline]
    pub(super) fn judge_l4s(&self, ecn: Ecn, random: &mut Stream) -> Verdict {
        if self.is_overloaded() {
            let is_dropped = self.overload == Overload::Drop
                && roll(self.prob, random)
                && roll(self.prob, random);
            return if is_dropped { Verdict::Drop } else { Verdict::Mark };
        }
        if !roll(self.coupled_prob() as u32, random) {
            Verdict::Pass
        } else if ecn == Ecn::NotEct {
            Verdict::Drop
        } else {
            Verdict::Mark
        }
    }

    pub(super) fn prob_ppm(&self) -> u64 {
        (u64::from(self.prob) * 1_000_000) >> 32
    }
}

#[inline]
fn roll(prob: u32, random: &mut Stream) -> bool {
    random.next_u32() <= prob
}
