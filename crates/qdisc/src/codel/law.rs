//! When to drop, and how fast to drop again (RFC 8289 section 5; Linux `codel_impl.h`).
//!
//! Kernel and RFC share this state machine: the RFC took its re-entry rule from Linux. They differ
//! in the clock, in one comparison, in the reciprocal square root and in which backlog keeps a
//! packet from being dropped.

use alloc::format;
use core::fmt;

use sojourn_core::param::Form;
use sojourn_core::{DropReason, Ecn, Param, ParamKind, Queued, Span, SpecError, Time};

use super::LawConfig;
use crate::{DEVICE_MTU, Sink, mark_if_capable};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Ticks of 1024 ns; a 16-bit reciprocal square root with one Newton step a drop; in `fq_codel`
    /// the guard sees the backlog of all flows.
    #[default]
    Linux,
    /// RFC 8289 and RFC 8290 to the letter.
    Rfc,
}

sojourn_core::choice!(Mode { "linux" = Mode::Linux, "rfc" = Mode::Rfc });

/// A pattern of the former TOS byte: `value/mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    pub value: u8,
    pub mask: u8,
}

impl Selector {
    fn matches<P: Queued>(self, packet: &P) -> bool {
        let ecn = match packet.ecn() {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        };
        (packet.dscp() << 2 | ecn) & self.mask == self.value
    }
}

impl Form for Selector {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;
    const EXAMPLES: &'static [&'static str] = &["0x1/0x3"];

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let byte = |text: &str| {
            let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            match hex {
                Some(hex) => u8::from_str_radix(hex, 16).ok(),
                None => text.parse().ok(),
            }
        };
        text.split_once('/')
            .and_then(|(value, mask)| Some(Self { value: byte(value)?, mask: byte(mask)? }))
            .ok_or_else(|| {
                SpecError::new(format!("'{}' is '{text}'", param.name))
                    .allow(["VALUE/MASK such as 0x1/0x3"])
            })
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}/{:#x}", value.value, value.mask)
    }
}

/// The queue that the law controls. The law inspects the head and removes it only to drop it, so a
/// packet moves once, from the queue to the transmitter.
pub trait Source<P> {
    /// The packet at the head and when it arrived.
    fn head(&self) -> Option<(&P, Time)>;

    fn head_mut(&mut self) -> Option<&mut P>;

    fn pop(&mut self) -> Option<P>;

    /// The backlog that the guard checks: if it is small, no packet is dropped. It includes the
    /// head.
    fn backlog(&self) -> u64;
}

/// The packet at the head, as the law sees it.
pub(crate) struct Head {
    pub(crate) bytes: u32,
    pub(crate) arrived: Time,
    /// The value of [`Source::backlog`].
    pub(crate) backlog: u64,
}

impl Head {
    #[inline]
    fn of<P: Queued>(source: &impl Source<P>) -> Option<Self> {
        let (packet, arrived) = source.head()?;
        Some(Self { bytes: packet.wire_len(), arrived, backlog: source.backlog() })
    }
}

/// The law's decision on the head.
pub(crate) enum Look {
    /// It may go, and nothing changes.
    Pass,
    /// The law must act; `ok_to_drop` says whether the delay was above target for an interval.
    Act { ok_to_drop: bool },
}

/// The law's parameters, in ticks of its clock.
#[derive(Clone, Debug)]
pub struct Law {
    mode: Mode,
    /// A tick is 2 to this power nanoseconds.
    tick_shift: u32,
    /// A run begins long after time zero, so that a queue's zero `drop_next` lies in the past.
    epoch: u64,
    target: u64,
    interval: u64,
    /// How long the delay may be above target: the interval, which in the RFC ends a tick sooner.
    patience: u64,
    ecn: bool,
    ce_threshold: u64,
    ce_threshold_selector: Option<Selector>,
}

/// The law's state of a queue; times in ticks, zero for none.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) count: u32,
    pub(crate) lastcount: u32,
    pub(crate) dropping: bool,
    pub(crate) rec_inv_sqrt: u16,
    pub(crate) first_above_time: u64,
    pub(crate) drop_next: u64,
    pub(crate) ldelay: u64,
}

/// What the law counts of its queues.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub(crate) maxpacket: u32,
    pub(crate) ecn_mark: u64,
    pub(crate) ce_mark: u64,
}

/// 1/sqrt(1) as the kernel's 16-bit fraction holds it.
const REC_INV_SQRT_ONE: u16 = u16::MAX;

/// Recently left the dropping state: within this many intervals of the last scheduled drop.
const REENTRY_INTERVALS: u64 = 16;

const EPOCH: Span = Span::from_secs(1 << 20);

impl Law {
    pub fn new(config: &LawConfig) -> Self {
        let (tick_shift, sooner) = match config.mode {
            Mode::Linux => (10, 0),
            Mode::Rfc => (0, 1),
        };
        let ticks = |span: Span| span.as_nanos() >> tick_shift;
        Self {
            mode: config.mode,
            tick_shift,
            epoch: ticks(EPOCH),
            target: ticks(config.target),
            interval: ticks(config.interval),
            patience: ticks(config.interval) - sooner,
            ecn: config.ecn,
            ce_threshold: config.ce_threshold.map_or(u64::MAX, ticks),
            ce_threshold_selector: config.ce_threshold_selector,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn to_nanos(&self, ticks: u64) -> u64 {
        ticks << self.tick_shift
    }

    /// Drops or marks what is due, and returns how long the head has waited that may now be
    /// transmitted; `None` if the queue is empty. The caller removes the head.
    #[inline]
    pub fn judge<P: Queued>(
        &self,
        state: &mut State,
        source: &mut impl Source<P>,
        now: Time,
        stats: &mut Stats,
        sink: &mut dyn Sink<P>,
    ) -> Option<Span> {
        let Some(head) = Head::of(source) else {
            self.rest(state);
            return None;
        };
        match self.look(state, &head, now, stats) {
            Look::Pass => Some(now.since(head.arrived)),
            Look::Act { ok_to_drop } => self.act(ok_to_drop, state, source, now, stats, sink),
        }
    }

    /// The queue was found empty.
    #[inline]
    pub(crate) fn rest(&self, state: &mut State) {
        state.first_above_time = 0;
        state.dropping = false;
    }

    /// [`Law::look`] at a packet that has not waited, in a queue that drops nothing and holds nothing else: it may
    /// go.
    #[inline]
    pub(crate) fn let_pass(state: &mut State, bytes: u32, stats: &mut Stats) {
        if bytes > stats.maxpacket {
            stats.maxpacket = bytes;
        }
        (state.ldelay, state.first_above_time) = (0, 0);
    }

    #[inline]
    pub(crate) fn look(
        &self,
        state: &mut State,
        head: &Head,
        now: Time,
        stats: &mut Stats,
    ) -> Look {
        let ok_to_drop = self.ok_to_drop(state, head, now, stats);
        let is_steady = if state.dropping {
            ok_to_drop && self.ticks(now) < state.drop_next
        } else {
            !ok_to_drop
        };
        if is_steady && state.ldelay <= self.ce_threshold {
            Look::Pass
        } else {
            Look::Act { ok_to_drop }
        }
    }

    /// Enters, stays in or leaves the dropping state, and drops or marks what is due. Returns what
    /// [`Law::judge`] returns.
    #[inline(never)]
    pub(crate) fn act<P: Queued>(
        &self,
        mut ok_to_drop: bool,
        state: &mut State,
        source: &mut impl Source<P>,
        now: Time,
        stats: &mut Stats,
        sink: &mut dyn Sink<P>,
    ) -> Option<Span> {
        let ticks = self.ticks(now);
        if state.dropping {
            if !ok_to_drop {
                state.dropping = false;
            }
            while state.dropping && ticks >= state.drop_next {
                state.count = state.count.wrapping_add(1);
                self.refine_rec_inv_sqrt(state);
                if self.mark(source, now, stats, sink) {
                    state.drop_next = self.control_law(state.drop_next, state);
                    break;
                }
                drop_head(source, now, sink);
                ok_to_drop = self.next_is_ok_to_drop(state, source, now, stats);
                if ok_to_drop {
                    state.drop_next = self.control_law(state.drop_next, state);
                } else {
                    state.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !self.mark(source, now, stats, sink) {
                drop_head(source, now, sink);
                self.next_is_ok_to_drop(state, source, now, stats);
            }
            self.enter_dropping(state, ticks);
        }
        let (_, arrived) = source.head()?;
        if state.ldelay > self.ce_threshold {
            self.mark_above_threshold(source, now, stats, sink);
        }
        Some(now.since(arrived))
    }

    /// Checks the head after the one before it was dropped.
    fn next_is_ok_to_drop<P: Queued>(
        &self,
        state: &mut State,
        source: &impl Source<P>,
        now: Time,
        stats: &mut Stats,
    ) -> bool {
        match Head::of(source) {
            Some(head) => self.ok_to_drop(state, &head, now, stats),
            None => {
                state.first_above_time = 0;
                false
            }
        }
    }

    #[inline]
    fn ticks(&self, time: Time) -> u64 {
        (time.as_nanos() >> self.tick_shift) + self.epoch
    }

    /// RFC 8289 section 5.6, `dodequeue`: whether the delay has been above target for an interval.
    /// The guard counts the backlog without the head.
    #[inline]
    fn ok_to_drop(&self, state: &mut State, head: &Head, now: Time, stats: &mut Stats) -> bool {
        if head.bytes > stats.maxpacket {
            stats.maxpacket = head.bytes;
        }
        let now = self.ticks(now);
        state.ldelay = now - self.ticks(head.arrived);
        if state.ldelay < self.target || head.backlog <= u64::from(head.bytes + DEVICE_MTU) {
            state.first_above_time = 0;
            return false;
        }
        if state.first_above_time == 0 {
            state.first_above_time = now + self.patience;
            return false;
        }
        now > state.first_above_time
    }

    /// RFC 8289 section 5.5: starts at the rate that controlled the queue last time, if that was
    /// recent.
    fn enter_dropping(&self, state: &mut State, now: u64) {
        state.dropping = true;
        let delta = state.count.wrapping_sub(state.lastcount);
        let since = now.saturating_sub(state.drop_next);
        if delta > 1 && since < REENTRY_INTERVALS * self.interval {
            state.count = delta;
            self.refine_rec_inv_sqrt(state);
        } else {
            state.count = 1;
            state.rec_inv_sqrt = REC_INV_SQRT_ONE;
        }
        state.lastcount = state.count;
        state.drop_next = self.control_law(now, state);
    }

    /// One Newton step towards 1/sqrt(count) in fractions of 2^32, of which the upper 16 bits are
    /// kept. Far from the root, for example after an overflow raised the count, it wraps as in the
    /// kernel.
    fn refine_rec_inv_sqrt(&self, state: &mut State) {
        let root = u64::from(state.rec_inv_sqrt) << 16;
        let square = (root * root) >> 32;
        let three = 3u64 << 32;
        let bracket = three.wrapping_sub(u64::from(state.count).wrapping_mul(square)) >> 2;
        state.rec_inv_sqrt = (bracket.wrapping_mul(root) >> 47) as u16;
    }

    /// `t + interval / sqrt(count)`.
    #[inline]
    fn control_law(&self, t: u64, state: &State) -> u64 {
        t + match self.mode {
            Mode::Linux => (self.interval * u64::from(state.rec_inv_sqrt)) >> 16,
            Mode::Rfc => (self.interval as f64 / libm::sqrt(f64::from(state.count))) as u64,
        }
    }

    /// Marks the head if marking is on and the packet allows it.
    fn mark<P: Queued>(
        &self,
        source: &mut impl Source<P>,
        now: Time,
        stats: &mut Stats,
        sink: &mut dyn Sink<P>,
    ) -> bool {
        let Some(packet) = source.head_mut() else { return false };
        let is_marked = self.ecn && mark_if_capable(now, packet, sink);
        stats.ecn_mark += u64::from(is_marked);
        is_marked
    }

    /// Marks the head, which waited longer than `ce_threshold`, if the selector allows it.
    #[cold]
    fn mark_above_threshold<P: Queued>(
        &self,
        source: &mut impl Source<P>,
        now: Time,
        stats: &mut Stats,
        sink: &mut dyn Sink<P>,
    ) {
        let Some(packet) = source.head_mut() else { return };
        if self.ce_threshold_selector.is_none_or(|selector| selector.matches(packet))
            && mark_if_capable(now, packet, sink)
        {
            stats.ce_mark += 1;
        }
    }
}

fn drop_head<P>(source: &mut impl Source<P>, now: Time, sink: &mut dyn Sink<P>) {
    if let Some(packet) = source.pop() {
        sink.dropped(now, packet, DropReason::Aqm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_square_root_is_the_kernels_to_the_bit() {
        let law = Law::new(&crate::codel::Config::default().law());
        let mut state = State { count: 1, rec_inv_sqrt: REC_INV_SQRT_ONE, ..State::default() };
        let mut values = vec![state.rec_inv_sqrt];
        for count in 2..=10 {
            state.count = count;
            law.refine_rec_inv_sqrt(&mut state);
            values.push(state.rec_inv_sqrt);
        }
        let expected =
            [65_535, 32_769, 36_864, 31_968, 28_935, 26_481, 24_588, 23_037, 21_746, 20_647];
        assert_eq!(values, expected);
    }

    #[test]
    fn kernel_time_runs_in_units_of_1024_ns() {
        let law = Law::new(&crate::codel::Config::default().law());
        assert_eq!((law.target, law.interval), (4882, 97_656));
        assert_eq!(law.to_nanos(law.target), 4_999_168);
    }
}
