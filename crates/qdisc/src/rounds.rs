//! Deficit round robin over flows, new ones first (RFC 8290 section 4.2).

use alloc::vec::Vec;

use sojourn_core::Param;
use sojourn_core::param::whole;

use crate::notation::Packets;

/// What all disciplines of hashed flows share.
pub(crate) const LIMIT: Param =
    Param::of::<Packets>("limit", "10240", "packets that may wait, all flows together");
pub(crate) const FLOWS: Param =
    Param::of::<u32>("flows", "1024", "queues that flows are hashed to").within(whole(1, 65_536));

const NONE: u32 = u32::MAX;

/// Flows that take turns. A flow is in one of two rings or in none. It begins among the new ones,
/// which are served first, and moves to the old ones when its first quantum is used up.
#[derive(Debug)]
pub(crate) struct Rounds<F> {
    turns: Vec<Turn<F>>,
    new: Ring,
    old: Ring,
    quantum: i32,
}

#[derive(Debug)]
struct Turn<F> {
    flow: F,
    /// Bytes that the flow may still send.
    deficit: i32,
    /// The next flow in its ring; meaningless if it is in no ring.
    next: u32,
}

/// The last flow's `next` is the first, so sending the first to the back changes no flow.
#[derive(Clone, Copy, Debug)]
struct Ring {
    first: u32,
    last: u32,
}

impl<F> Rounds<F> {
    pub(crate) fn new(flows: impl Iterator<Item = F>, quantum: u32) -> Self {
        let empty = Ring { first: NONE, last: NONE };
        Self {
            turns: flows.map(|flow| Turn { flow, deficit: 0, next: NONE }).collect(),
            new: empty,
            old: empty,
            quantum: quantum as i32,
        }
    }

    /// The flow whose turn it is; a flow without deficit gets a quantum and goes to the end of the
    /// old ones.
    #[inline]
    pub(crate) fn current(&mut self) -> Option<u32> {
        loop {
            let is_new = self.new.first != NONE;
            let index = if is_new { self.new.first } else { self.old.first };
            // No flow has the number NONE.
            let turn = self.turns.get_mut(index as usize)?;
            if turn.deficit > 0 {
                return Some(index);
            }
            turn.deficit += self.quantum;
            if is_new {
                self.new.remove_first(&mut self.turns);
                self.old.push(index, &mut self.turns);
            } else {
                self.old = Ring { first: turn.next, last: index };
            }
        }
    }

    /// [`Rounds::join`] and [`Rounds::current`] for a flow whose turn it is already, and that stays where it is: the flow and its
    /// deficit. It is the first of the new ones, or alone among the old ones. `None`, and nothing has happened, if it is not.
    #[inline(always)]
    pub(crate) fn in_turn(&mut self, index: u32) -> Option<(&mut F, &mut i32)> {
        let Ring { first, last } = self.old;
        let Turn { flow, deficit, .. } = &mut self.turns[index as usize];
        if self.new.first != NONE {
            return (self.new.first == index && *deficit > 0).then_some((flow, deficit));
        }
        if first != index || last != index {
            return None;
        }
        while *deficit <= 0 {
            *deficit += self.quantum;
        }
        Some((flow, deficit))
    }

    #[inline]
    pub(crate) fn flow_mut(&mut self, index: u32) -> &mut F {
        &mut self.turns[index as usize].flow
    }

    /// The flow and its deficit, from which the caller takes the bytes of a packet that was sent.
    #[inline]
    pub(crate) fn turn_mut(&mut self, index: u32) -> (&mut F, &mut i32) {
        let Turn { flow, deficit, .. } = &mut self.turns[index as usize];
        (flow, deficit)
    }

    /// The flow got a packet. If it was in no ring it joins the new ones, and this returns true.
    #[inline]
    pub(crate) fn join(&mut self, index: u32) -> bool {
        let turn = &mut self.turns[index as usize];
        if turn.next != NONE {
            return false;
        }
        turn.deficit = self.quantum;
        self.new.push(index, &mut self.turns);
        true
    }

    /// The flow whose turn it is was found empty. A new flow passes through the old ones, so that
    /// it can't return as new at once and starve them.
    pub(crate) fn leave(&mut self, index: u32) {
        let is_new = self.new.first == index;
        if is_new {
            self.new.remove_first(&mut self.turns);
        } else {
            self.old.remove_first(&mut self.turns);
        }
        if is_new && self.old.first != NONE {
            self.old.push(index, &mut self.turns);
        } else {
            self.turns[index as usize].next = NONE;
        }
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &F> {
        self.turns.iter().map(|turn| &turn.flow)
    }

    /// The flows in the rings, new ones first; some may be empty.
    pub(crate) fn active(&self) -> impl Iterator<Item = &F> {
        self.active_by_number().map(|(_, flow)| flow)
    }

    /// The same with their numbers.
    pub(crate) fn active_by_number(&self) -> impl Iterator<Item = (u32, &F)> {
        self.new.iter(&self.turns).chain(self.old.iter(&self.turns))
    }

    pub(crate) fn new_flows(&self) -> u64 {
        self.new.iter(&self.turns).count() as u64
    }

    pub(crate) fn old_flows(&self) -> u64 {
        self.old.iter(&self.turns).count() as u64
    }
}

impl Ring {
    fn push<F>(&mut self, index: u32, turns: &mut [Turn<F>]) {
        if self.first == NONE {
            self.first = index;
        } else {
            turns[self.last as usize].next = index;
        }
        self.last = index;
        turns[index as usize].next = self.first;
    }

    fn remove_first<F>(&mut self, turns: &mut [Turn<F>]) {
        if self.first == self.last {
            *self = Self { first: NONE, last: NONE };
        } else {
            self.first = turns[self.first as usize].next;
            turns[self.last as usize].next = self.first;
        }
    }

    fn iter<F>(self, turns: &[Turn<F>]) -> impl Iterator<Item = (u32, &F)> {
        let mut next = (self.first != NONE).then_some(self.first);
        core::iter::from_fn(move || {
            let index = next?;
            let turn = &turns[index as usize];
            next = (index != self.last).then_some(turn.next);
            Some((index, &turn.flow))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const QUANTUM: i32 = 1000;

    /// The same with two plain lists, for comparison.
    #[derive(Default)]
    struct Oracle {
        new: VecDeque<u32>,
        old: VecDeque<u32>,
        deficits: [i32; 5],
    }

    impl Oracle {
        fn current(&mut self) -> Option<u32> {
            loop {
                let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
                let flow = *list.front()?;
                let deficit = &mut self.deficits[flow as usize];
                if *deficit > 0 {
                    return Some(flow);
                }
                *deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(flow);
            }
        }

        fn join(&mut self, flow: u32) -> bool {
            let joins = !self.new.contains(&flow) && !self.old.contains(&flow);
            if joins {
                self.deficits[flow as usize] = QUANTUM;
                self.new.push_back(flow);
            }
            joins
        }

        fn leave(&mut self) {
            if let Some(flow) = self.new.pop_front() {
                if !self.old.is_empty() {
                    self.old.push_back(flow);
                }
            } else {
                self.old.pop_front();
            }
        }
    }

    proptest! {
        #[test]
        fn turns_are_those_of_two_lists(
            operations in prop::collection::vec((0u32..5, 0i32..9), 0..200)
        ) {
            let mut rounds = Rounds::new(0u32..5, QUANTUM as u32);
            let mut oracle = Oracle::default();
            for (flow, operation) in operations {
                if operation < 3 {
                    prop_assert_eq!(rounds.join(flow), oracle.join(flow));
                    continue;
                }
                if operation == 8 && rounds.in_turn(flow).is_some() {
                    prop_assert!(!oracle.join(flow));
                    prop_assert_eq!(oracle.current(), Some(flow));
                }
                let current = rounds.current();
                prop_assert_eq!(current, oracle.current());
                let Some(current) = current else { continue };
                if operation == 3 {
                    rounds.leave(current);
                    oracle.leave();
                } else {
                    *rounds.turn_mut(current).1 -= 300 * operation;
                    oracle.deficits[current as usize] -= 300 * operation;
                }
                let active: Vec<u32> = rounds.active().copied().collect();
                let expected: Vec<u32> = oracle.new.iter().chain(&oracle.old).copied().collect();
                prop_assert_eq!(active, expected);
                prop_assert_eq!(rounds.new_flows(), oracle.new.len() as u64);
                prop_assert_eq!(rounds.old_flows(), oracle.old.len() as u64);
            }
        }
    }
}
