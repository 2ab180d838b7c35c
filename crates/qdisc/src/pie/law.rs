//! The drop probability: how it is updated, and how it decides on an arrival (RFC 8033 sections 4
//! and 5; Linux `pie.h`, `sch_pie.c`).

use sojourn_core::{Span, Stream, Time};

use super::LawConfig;
use crate::DEVICE_MTU;

/// A time in the kernel's scheduler ticks of 64 ns.
type Ticks = u64;

const TICK_SHIFT: u32 = 6;
const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK_SHIFT;

const fn ticks(nanos: u64) -> Ticks {
    nanos >> TICK_SHIFT
}

/// The probability one, which leaves room for sums above it.
pub(crate) const MAX_PROB: u64 = u64::MAX >> 8;

/// `MAX_BURST`: the time after rest in which nothing is dropped (RFC 8033 section 4.4).
const MAX_BURST: Ticks = ticks(150_000_000);

/// Above this delay each update raises the probability by 2 % more (section 5.5).
const HIGH_DELAY: Ticks = ticks(250_000_000);

/// The largest rise in one update once the probability is 10 % (section 5.5).
const DELTA_MOST: u64 = MAX_PROB / 50;

/// The backlog in bytes that a measurement of the departure rate needs, and the bytes it covers
/// (section 5.2).
const DQ_THRESHOLD: u64 = 1 << 14;

/// Bits of the fraction of the departure rate, in bytes a tick.
const RATE_SHIFT: u32 = 8;

/// The controller's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    target: Ticks,
    tupdate: Span,
    /// Per tick of delay, in fractions of [`MAX_PROB`].
    alpha: u64,
    beta: u64,
    /// The probability up to which arrivals are marked instead of dropped; `None` if they never
    /// are.
    mark_up_to: Option<u64>,
    bytemode: bool,
    dq_rate_estimator: bool,
}

/// The controller's state of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    next_update: Time,
    pub(super) prob: u64,
    /// Sum of the probabilities since the last drop (section 5.4).
    accu_prob: u64,
    burst_time: Ticks,
    pub(super) qdelay: Ticks,
    qdelay_old: Ticks,
    /// When the last packet left, or the measurement of the rate began.
    dq_tstamp: Option<Ticks>,
    /// Bytes that left in the measurement.
    dq_count: Option<u64>,
    avg_dq_rate: u64,
}

impl State {
    /// An arrival was dropped, for whatever reason.
    pub(crate) fn has_dropped(&mut self) {
        self.accu_prob = 0;
    }

    pub(crate) fn prob_ppm(&self) -> u64 {
        (u128::from(self.prob) * 1_000_000 / u128::from(MAX_PROB)) as u64
    }

    pub(crate) fn delay(&self) -> Span {
        Span::from_nanos(self.qdelay << TICK_SHIFT)
    }

    /// A queue at rest gets its burst allowance back.
    fn come_to_rest(&mut self) {
        self.burst_time = MAX_BURST;
        self.dq_tstamp = None;
        self.accu_prob = 0;
        self.dq_count = None;
        self.avg_dq_rate = 0;
    }
}

impl Law {
    pub(crate) fn new(config: &LawConfig, ecn_prob_percent: u64) -> Self {
        // Gains are sixteenths a second.
        let per_tick = |gain: u32| (u64::from(gain) * (MAX_PROB / TICKS_PER_SECOND)) >> 4;
        Self {
            target: ticks(config.target.as_nanos()),
            tupdate: config.tupdate,
            alpha: per_tick(config.alpha),
            beta: per_tick(config.beta),
            mark_up_to: config.ecn.then_some(MAX_PROB / 100 * ecn_prob_percent),
            bytemode: config.bytemode,
            dq_rate_estimator: config.dq_rate_estimator,
        }
    }

    pub(crate) fn fresh_state(&self) -> State {
        State {
            next_update: Time::ZERO + self.tupdate,
            prob: 0,
            accu_prob: 0,
            burst_time: MAX_BURST,
            qdelay: 0,
            qdelay_old: 0,
            dq_tstamp: None,
            dq_count: None,
            avg_dq_rate: 0,
        }
    }

    /// Computes the updates that were due up to `now`, at multiples of `tupdate`. The queue has
    /// held `backlog` bytes since the last call.
    #[inline]
    pub(crate) fn catch_up(&self, state: &mut State, backlog: u64, now: Time) {
        if now >= state.next_update {
            self.update_until(state, backlog, now);
        }
    }

    #[inline(never)]
    fn update_until(&self, state: &mut State, backlog: u64, now: Time) {
        while now >= state.next_update {
            let before = state.clone();
            self.update(state, backlog);
            // After an update that changed nothing, the next ones change nothing either.
            if *state == before {
                let missed = now.since(state.next_update).as_nanos() / self.tupdate.as_nanos();
                state.next_update += self.tupdate * missed;
            }
            state.next_update += self.tupdate;
        }
    }

    /// RFC 8033 section 4.2, `calculate_drop_prob`, with the scaling of section 5.5.
    pub(super) fn update(&self, state: &mut State, backlog: u64) {
        let (qdelay, qdelay_old) = if self.dq_rate_estimator {
            let qdelay = (backlog << RATE_SHIFT).checked_div(state.avg_dq_rate).unwrap_or(0);
            (qdelay, state.qdelay)
        } else {
            (state.qdelay, state.qdelay_old)
        };
        // The backlog is too small for a delay to be computed.
        let mut may_decay = qdelay != 0 || backlog == 0;
        let (alpha, beta) = self.scaled_gains(state.prob);
        let times = |gain: u64, from: Ticks, to: Ticks| gain as i128 * (to as i128 - from as i128);
        let mut delta = times(alpha, self.target, qdelay) + times(beta, qdelay_old, qdelay);
        if delta > i128::from(DELTA_MOST) && state.prob >= MAX_PROB / 10 {
            delta = i128::from(DELTA_MOST);
        }
        if qdelay > HIGH_DELAY {
            delta += i128::from(DELTA_MOST);
        }
        // As in the kernel, the probability is not bounded by one but by the number's type.
        state.prob = match u64::try_from(i128::from(state.prob) + delta) {
            Ok(prob) => prob,
            Err(_) if delta > 0 => {
                may_decay = false;
                MAX_PROB
            }
            Err(_) => 0,
        };
        if qdelay == 0 && qdelay_old == 0 && may_decay {
            state.prob -= state.prob / 64;
        }
        state.qdelay = qdelay;
        let is_low = qdelay < self.target / 2 && qdelay_old < self.target / 2;
        if is_low && state.prob == 0 && (!self.dq_rate_estimator || state.avg_dq_rate > 0) {
            state.come_to_rest();
        }
        if !self.dq_rate_estimator {
            state.qdelay_old = qdelay;
        }
    }

    /// Both gains, divided by 2 below a probability of 10 % and by 4 more for every decade below,
    /// down to a millionth.
    pub(super) fn scaled_gains(&self, prob: u64) -> (u64, u64) {
        let (mut alpha, mut beta) = (self.alpha, self.beta);
        if prob < MAX_PROB / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while power <= 1_000_000 && prob < MAX_PROB / power {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                power *= 10;
            }
        }
        (alpha, beta)
    }

    /// RFC 8033 section 4.1 and 5.4: whether the arrival of `bytes` is to be dropped or marked.
    #[inline]
    pub(crate) fn drop_early(
        &self,
        state: &mut State,
        backlog: u64,
        bytes: u32,
        random: &mut Stream,
    ) -> bool {
        if state.burst_time > 0
            || (state.qdelay < self.target / 2 && state.prob < MAX_PROB / 5)
            || backlog < 2 * u64::from(DEVICE_MTU)
        {
            return false;
        }
        let local_prob = if self.bytemode && bytes <= DEVICE_MTU {
            u64::from(bytes) * (state.prob / u64::from(DEVICE_MTU))
        } else {
            state.prob
        };
        if local_prob == 0 {
            state.accu_prob = 0;
        } else {
            state.accu_prob = state.accu_prob.saturating_add(local_prob);
        }
        if state.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if state.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        if random.next_u64() >> 8 < local_prob {
            state.accu_prob = 0;
            return true;
        }
        false
    }

    /// RFC 8033 section 5.1: at a high probability packets are dropped instead of marked.
    #[inline]
    pub(crate) fn may_mark(&self, state: &State) -> bool {
        self.mark_up_to.is_some_and(|most| state.prob <= most)
    }

    /// A packet of `bytes` left; `backlog` remain.
    #[inline]
    pub(crate) fn on_departure(
        &self,
        state: &mut State,
        arrived: Time,
        bytes: u32,
        backlog: u64,
        now: Time,
    ) {
        let now = ticks(now.as_nanos());
        if self.dq_rate_estimator {
            self.measure_departure_rate(state, bytes, backlog, now);
            return;
        }
        state.qdelay = if backlog == 0 { 0 } else { now - ticks(arrived.as_nanos()) };
        let since_last = state.dq_tstamp.map_or(0, |last| now - last);
        state.dq_tstamp = Some(now);
        state.burst_time = state.burst_time.saturating_sub(since_last);
    }

    /// RFC 8033 section 5.2.
    fn measure_departure_rate(&self, state: &mut State, bytes: u32, backlog: u64, now: Ticks) {
        if backlog >= DQ_THRESHOLD && state.dq_count.is_none() {
            state.dq_tstamp = Some(now);
            state.dq_count = Some(0);
        }
        let Some(count) = &mut state.dq_count else { return };
        *count += u64::from(bytes);
        if *count < DQ_THRESHOLD {
            return;
        }
        let dtime = now - state.dq_tstamp.unwrap_or(now);
        if dtime == 0 {
            return;
        }
        let rate = (*count << RATE_SHIFT) / dtime;
        state.avg_dq_rate = if state.avg_dq_rate == 0 {
            rate
        } else {
            state.avg_dq_rate - (state.avg_dq_rate >> 3) + (rate >> 3)
        };
        if backlog < DQ_THRESHOLD {
            state.dq_count = None;
        } else {
            state.dq_count = Some(0);
            state.dq_tstamp = Some(now);
        }
        state.burst_time = state.burst_time.saturating_sub(dtime);
    }
}
