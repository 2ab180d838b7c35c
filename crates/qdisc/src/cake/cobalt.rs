//! COBALT on every flow queue: CoDel for responsive flows and BLUE for unresponsive ones.
//!
//! Unlike CoDel it has no memory of sixteen intervals. While the delay is below target the count
//! decays by the schedule by which it grew.

use sojourn_core::{Span, Stream, Time};

/// A tin's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    pub target: Span,
    pub interval: Span,
    /// The time that a full packet takes at the tin's rate.
    pub mtu_time: Span,
}

impl Params {
    /// Packets that have waited no longer are let alone, unless several bulk flows are allowed more.
    pub fn longest_wait(&self) -> Span {
        self.target.max(self.mtu_time * 4)
    }
}

/// COBALT's state of a queue. A queue that was never used has a `rec_inv_sqrt` of zero, as in the
/// kernel, so its first signal does not wait for an interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cobalt {
    pub(crate) count: u32,
    rec_inv_sqrt: u32,
    pub(crate) drop_next: Time,
    /// When BLUE last changed its probability; `None` before the first change.
    blue_timer: Option<Time>,
    /// BLUE's probability, in fractions of 2^32.
    pub(crate) p_drop: u32,
    pub(crate) dropping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) mark: bool,
    pub(crate) drop: bool,
}

impl Signal {
    const NONE: Self = Self { mark: false, drop: false };
}

/// BLUE's steps: 1/256 up and 1/4096 down.
const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

impl Cobalt {
    /// A packet has come to the head: marks it, drops it or lets it go. With `bulk_flows` a delay
    /// of two packets of each of those flows is allowed.
    #[inline]
    pub(crate) fn on_dequeue(
        &mut self,
        params: &Params,
        now: Time,
        sojourn: Span,
        bulk_flows: Option<u32>,
        is_ecn_capable: bool,
        random: &mut Stream,
    ) -> Signal {
        let over_target = sojourn > params.longest_wait()
            && bulk_flows.is_none_or(|flows| sojourn > params.mtu_time * (2 * u64::from(flows)));
        if self.p_drop == 0 {
            if self.count == 0 && !over_target {
                self.dropping = false;
                self.drop_next = now + params.interval;
                return Signal::NONE;
            }
            if self.count > 0 && now < self.drop_next && self.dropping == over_target {
                return Signal::NONE;
            }
        }
        self.decide(over_target, params, now, is_ecn_capable, random)
    }

    /// Handles a head for which something is due, begins or ends, or for which BLUE acts.
    #[inline(never)]
    fn decide(
        &mut self,
        over_target: bool,
        params: &Params,
        now: Time,
        is_ecn_capable: bool,
        random: &mut Stream,
    ) -> Signal {
        let mut next_due = self.count > 0 && now >= self.drop_next;
        let mut is_past = now > self.drop_next;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(now, params);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut signal = Signal::NONE;
        if next_due && self.dropping {
            signal = Signal { mark: is_ecn_capable, drop: !is_ecn_capable };
            self.count = self.count.saturating_add(1);
            self.refine_rec_inv_sqrt();
            self.drop_next = self.control(self.drop_next, params);
            is_past = now > self.drop_next;
        } else {
            while next_due {
                self.decay(params);
                is_past = now > self.drop_next;
                next_due = self.count > 0 && now >= self.drop_next;
            }
        }
        // BLUE ignores ECN, because it acts on flows that ignore signals.
        if self.p_drop > 0 && !signal.drop {
            signal.drop = random.next_u32() < self.p_drop;
        }
        // While the count is zero, drop_next tells how long the queue has been quiet.
        if self.count == 0 {
            self.drop_next = now + params.interval;
        } else if is_past && !signal.drop {
            self.drop_next = now;
        }
        signal
    }

    /// The buffer is full and this queue is the longest. True if BLUE was at rest before.
    pub(crate) fn on_overflow(&mut self, params: &Params, now: Time) -> bool {
        let mut has_woken = false;
        if self.may_move_blue(params, now) {
            has_woken = self.p_drop == 0;
            self.p_drop = self.p_drop.saturating_add(P_INC);
            self.blue_timer = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        has_woken
    }

    /// The queue was served and found empty. True if BLUE came to rest now.
    #[inline]
    pub(crate) fn on_empty(&mut self, params: &Params, now: Time) -> bool {
        let mut has_rested = false;
        if self.p_drop > 0 && self.may_move_blue(params, now) {
            self.p_drop = self.p_drop.saturating_sub(P_DEC);
            self.blue_timer = Some(now);
            has_rested = self.p_drop == 0;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.decay(params);
        }
        has_rested
    }

    /// Nothing is left to decay, so the queue may be forgotten.
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// BLUE changes its probability at most once within `target`.
    fn may_move_blue(&self, params: &Params, now: Time) -> bool {
        self.blue_timer.is_none_or(|moved| now.since(moved) > params.target)
    }

    fn decay(&mut self, params: &Params) {
        self.count -= 1;
        self.refine_rec_inv_sqrt();
        self.drop_next = self.control(self.drop_next, params);
    }

    /// `t + interval / sqrt(count)`.
    #[inline]
    fn control(&self, t: Time, params: &Params) -> Time {
        let interval = u128::from(params.interval.as_nanos());
        t + Span::from_nanos(((interval * u128::from(self.rec_inv_sqrt)) >> 32) as u64)
    }

    fn refine_rec_inv_sqrt(&mut self) {
        self.rec_inv_sqrt = match REC_INV_SQRT.get(self.count as usize) {
            Some(exact) => *exact,
            None => newton_step(self.rec_inv_sqrt, self.count),
        };
    }
}

/// 1/sqrt(count) for small counts, where a single Newton step from one to the next is inaccurate:
/// without the table the second signal would come after half an interval instead of 71 %.
const REC_INV_SQRT: [u32; 16] = {
    let mut table = [u32::MAX; 16];
    let mut count = 2;
    while count < table.len() {
        table[count] = ((1u128 << 64) / count as u128).isqrt() as u32;
        count += 1;
    }
    table
};

/// One Newton step towards 1/sqrt(count), in fractions of 2^32.
fn newton_step(root: u32, count: u32) -> u32 {
    let root = u64::from(root);
    let square = (root * root) >> 32;
    let bracket = (3u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
    (bracket.wrapping_mul(root) >> 31) as u32
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, StreamAddress};

    use super::*;

    fn params() -> Params {
        Params {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            mtu_time: Span::from_micros(1211),
        }
    }

    fn stream() -> Stream {
        StreamAddress { seed: 3, run: 0 }.stream(0, Purpose::Queue)
    }

    fn at(ms: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(ms / 1e3)
    }

    /// Times, in ms, at which a queue whose packets all waited 50 ms is signalled.
    fn signals(cobalt: &mut Cobalt, from_ms: u32, to_ms: u32) -> Vec<u32> {
        let mut random = stream();
        let mut when = Vec::new();
        for ms in from_ms..to_ms {
            let now = at(f64::from(ms));
            let signal =
                cobalt.on_dequeue(&params(), now, Span::from_millis(50), None, true, &mut random);
            if signal.mark {
                when.push(ms);
            }
        }
        when
    }

    #[test]
    fn the_table_holds_one_over_the_square_root() {
        for (count, root) in (1u32..).zip(&REC_INV_SQRT[1..]) {
            let exact = 4_294_967_296.0 / libm::sqrt(f64::from(count));
            assert!((f64::from(*root) / exact - 1.0).abs() < 1e-9, "{count}");
        }
        assert_eq!(REC_INV_SQRT[0], u32::MAX);
    }

    #[test]
    fn signals_are_spaced_by_the_square_root_law() {
        let mut cobalt = Cobalt::default();
        let when = signals(&mut cobalt, 1000, 1500);
        // A queue that was never used is signalled at its second late packet; then after 70.7,
        // 57.7, 50.0, 44.7 … ms.
        assert_eq!(when[..5], [1001, 1071, 1129, 1179, 1224], "{when:?}");
    }

    #[test]
    fn a_queue_used_before_waits_an_interval_for_its_first_signal() {
        let mut cobalt = Cobalt { rec_inv_sqrt: u32::MAX, ..Cobalt::default() };
        cobalt.on_dequeue(&params(), at(990.0), Span::ZERO, None, true, &mut stream());
        let when = signals(&mut cobalt, 1000, 1300);
        assert_eq!(when[..2], [1100, 1171], "{when:?}");
    }

    #[test]
    fn a_queue_quiet_for_longer_than_an_interval_is_signalled_at_once() {
        let mut cobalt = Cobalt { rec_inv_sqrt: u32::MAX, ..Cobalt::default() };
        cobalt.on_dequeue(&params(), at(500.0), Span::ZERO, None, true, &mut stream());
        let when = signals(&mut cobalt, 1000, 1300);
        assert_eq!(when[..2], [1001, 1071], "{when:?}");
    }

    #[test]
    fn the_count_decays_while_the_delay_is_low() {
        let mut cobalt = Cobalt::default();
        signals(&mut cobalt, 1000, 2000);
        let high = cobalt.count;
        assert!(high > 10, "{high}");
        let mut random = stream();
        for ms in 2000..2100 {
            cobalt.on_dequeue(&params(), at(f64::from(ms)), Span::ZERO, None, true, &mut random);
        }
        let after = cobalt.count;
        assert!(after < high && after > 0, "{high} then {after}");
        cobalt.on_dequeue(&params(), at(30_000.0), Span::ZERO, None, true, &mut random);
        assert_eq!(cobalt.count, 0, "what was due meanwhile decays at once");
    }

    #[test]
    fn four_packet_times_are_never_over_target() {
        let slow = Params { mtu_time: Span::from_millis(20), ..params() };
        let mut cobalt = Cobalt::default();
        let (now, mut random) = (at(1000.0), stream());
        cobalt.on_dequeue(&slow, now, Span::from_millis(80), None, true, &mut random);
        assert!(!cobalt.dropping);
        cobalt.on_dequeue(&slow, now, Span::from_millis(81), None, true, &mut random);
        assert!(cobalt.dropping);
        cobalt.on_dequeue(&slow, now, Span::from_millis(81), Some(3), true, &mut random);
        assert!(!cobalt.dropping, "ingress allows two packets for each of three bulk flows");
    }

    #[test]
    fn blue_rises_by_a_256th_and_falls_by_a_4096th_once_a_target() {
        let mut cobalt = Cobalt::default();
        assert!(cobalt.on_overflow(&params(), at(1000.0)), "it was at rest");
        assert_eq!(cobalt.p_drop, 1 << 24);
        assert!(!cobalt.on_overflow(&params(), at(1004.0)));
        assert_eq!(cobalt.p_drop, 1 << 24, "not twice within target");
        cobalt.on_overflow(&params(), at(1006.0));
        assert_eq!(cobalt.p_drop, 2 << 24);
        cobalt.on_empty(&params(), at(1012.0));
        assert_eq!(cobalt.p_drop, (2 << 24) - (1 << 20));
        let mut cobalt = Cobalt { p_drop: 1, ..Cobalt::default() };
        assert!(cobalt.on_empty(&params(), at(2000.0)), "it came to rest");
    }

    #[test]
    fn blue_drops_what_can_be_marked() {
        let mut cobalt = Cobalt { p_drop: 1 << 31, ..Cobalt::default() };
        let mut random = stream();
        let dropped = (0..1000)
            .filter(|ms| {
                let now = at(f64::from(1000 + ms));
                cobalt.on_dequeue(&params(), now, Span::ZERO, None, true, &mut random).drop
            })
            .count();
        assert!((450..550).contains(&dropped), "{dropped}");
    }
}
