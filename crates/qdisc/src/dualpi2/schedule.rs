//! Which queue is served: L, as far as `classic_protection` allows (RFC 9332 section 4.2.2).
//!
//! While both queues have packets, a byte from L earns C credit in proportion to C's weight, a byte
//! from C costs credit in proportion to L's, and C is served while it has credit.

use crate::DEVICE_MTU;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    C,
    L,
}

#[derive(Debug)]
pub(super) struct Schedule {
    c_weight: i64,
    l_weight: i64,
    /// C's credit, in bytes times percent.
    pub(super) credit: i64,
}

impl Schedule {
    pub(super) fn new(classic_protection_percent: u32) -> Self {
        let c_weight = i64::from(classic_protection_percent);
        let l_weight = 100 - c_weight;
        Self { c_weight, l_weight, credit: Self::fresh_credit(c_weight, l_weight) }
    }

    /// The queue with the larger weight begins.
    fn fresh_credit(c_weight: i64, l_weight: i64) -> i64 {
        i64::from(DEVICE_MTU) * (c_weight - l_weight)
    }

    #[inline]
    pub(super) fn choose(&mut self, c_waits: bool, l_waits: bool) -> Option<Queue> {
        match (c_waits, l_waits) {
            (true, true) => Some(if self.credit <= 0 { Queue::L } else { Queue::C }),
            (true, false) => Some(Queue::C),
            (false, true) => Some(Queue::L),
            (false, false) => {
                self.credit = Self::fresh_credit(self.c_weight, self.l_weight);
                None
            }
        }
    }

    /// Accounts for a packet of `bytes` that left its queue; `both_wait` says whether the other
    /// queue had packets.
    #[inline]
    pub(super) fn charge(&mut self, queue: Queue, both_wait: bool, bytes: u32) {
        if both_wait {
            self.credit += i64::from(bytes)
                * match queue {
                    Queue::C => -self.l_weight,
                    Queue::L => self.c_weight,
                };
        }
    }
}
