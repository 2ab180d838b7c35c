//! Whose turn it is in a tin: lists of flows, their deficits, and the rounds in which bulk flows
//! earn what they may send.
//!
//! A bulk flow without a deficit gets a quantum each time that the rotation comes to it, until its
//! deficit allows it to send. When hosts share, a quantum is a fraction of a packet, so that takes
//! many rounds. Therefore the round of a flow's next turn, and its deficit by then, are computed at
//! once, and rounds in which no flow can send are skipped. Which flow has its turn first, a heap
//! knows (`soonest`).

use alloc::boxed::Box;

use sojourn_core::Stream;

use super::soonest::{Place, Soonest};

/// Flow queues of a tin.
pub(crate) const QUEUES: u32 = 1024;

/// A list of flows; a flow is in one or in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Sparse flows, served first.
    New,
    /// Bulk flows in rotation.
    Old,
    /// Empty flows whose COBALT has not come to rest.
    Decaying,
}

/// The lists are rings: the first element's predecessor is the last.
#[derive(Debug)]
pub(crate) struct Turns {
    turns: Box<[Turn; QUEUES as usize]>,
    first: [u32; 3],
    /// The bulk flows by their turns. The first of them in the ring is also the soonest, but for
    /// what has changed since it was last served.
    soonest: Soonest,
    /// Rounds of the bulk flows so far.
    round: u64,
    /// The quantum of a flow that is alone on its hosts.
    quantum: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Turn {
    next: u32,
    previous: u32,
    list: Option<List>,
    share: Share,
    /// For a bulk flow that waits for its turn: its deficit at that turn.
    deficit: i64,
    /// Of a bulk flow: where in a round its turn is.
    place: Place,
}

impl Turn {
    const NEW: Self = Self {
        next: 0,
        previous: 0,
        list: None,
        share: Share { bytes: 0, host_load: 0 },
        deficit: 0,
        place: Place::FIRST,
    };

    #[inline(always)]
    fn set_host_load(&mut self, quantum: u32, host_load: u32) {
        if self.share.host_load != host_load {
            self.share = Share::new(quantum, host_load);
        }
    }

    /// The rotation comes to the flow in `round`, and then in each round until its turn, whose round
    /// is returned. Its share stays what it is until then, unless the load of its hosts halves.
    #[inline]
    fn wait(&mut self, round: u64, dither: &mut Dither) -> u64 {
        if self.deficit > 0 {
            return round;
        }
        let (rounds, earned) = self.share.rounds_for(1 - self.deficit, dither.next());
        self.deficit += earned;
        round + rounds
    }
}

/// What a flow earns in a round: its quantum divided by the number of bulk flows of the busier of
/// its hosts.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// In fractions of 2^16 of a byte.
    bytes: u32,
    host_load: u32,
}

impl Share {
    fn new(quantum: u32, host_load: u32) -> Self {
        Self { bytes: quantum * (65_535 / host_load), host_load }
    }

    /// The rounds that earn at least `bytes`, and what they earn.
    #[inline]
    fn rounds_for(self, bytes: i64, fraction: u16) -> (u64, i64) {
        let (share, fraction) = (u64::from(self.bytes), u64::from(fraction));
        let rounds = ((bytes.unsigned_abs() << 16) - fraction - 1) / share + 1;
        (rounds, ((rounds * share + fraction) >> 16) as i64)
    }
}

/// Random fractions of 2^16 of a byte. One of them is added to what rounds earn before that is cut
/// to whole bytes, so that nothing is lost on average.
#[derive(Clone, Debug)]
pub(crate) struct Dither {
    random: Stream,
    /// The bits left of the last draw, below a one that marks their end.
    bits: u64,
}

impl Dither {
    const EMPTY: u64 = 1;

    pub(crate) fn new(random: Stream) -> Self {
        Self { random, bits: Self::EMPTY }
    }

    #[inline]
    fn next(&mut self) -> u16 {
        let bits = self.bits;
        if bits == Self::EMPTY {
            let drawn = self.random.next_u64();
            self.bits = drawn >> 16 | 1 << 48;
            return drawn as u16;
        }
        self.bits = bits >> 16;
        bits as u16
    }

    /// For other uses than dithering.
    pub(crate) fn random(&mut self) -> &mut Stream {
        &mut self.random
    }
}

impl Turns {
    pub(crate) fn new(quantum: u32) -> Self {
        let turns = Box::new([Turn::NEW; QUEUES as usize]);
        Self { turns, first: [NONE; 3], soonest: Soonest::new(QUEUES), round: 0, quantum }
    }

    pub(crate) fn quantum(&self) -> u32 {
        self.quantum
    }

    #[inline]
    pub(crate) fn first(&self, list: List) -> Option<u32> {
        let first = self.first[list as usize];
        (first != NONE).then_some(first)
    }

    #[inline]
    pub(crate) fn has_deficit(&self, flow: u32) -> bool {
        self.turns[at(flow)].deficit > 0
    }

    #[inline]
    pub(crate) fn pay(&mut self, flow: u32, bytes: u32) {
        self.turns[at(flow)].deficit -= i64::from(bytes);
    }

    /// Moves the flow to the end of the sparse or decaying ones, from any list. A bulk flow is only
    /// moved when it is served.
    pub(crate) fn move_to_back(&mut self, list: List, flow: u32) {
        self.unlink(flow);
        self.link(list, flow);
    }

    fn link(&mut self, list: List, flow: u32) {
        let first = self.first[list as usize];
        if first == NONE {
            self.first[list as usize] = flow;
            (self.turns[at(flow)].next, self.turns[at(flow)].previous) = (flow, flow);
        } else {
            let last = core::mem::replace(&mut self.turns[at(first)].previous, flow);
            self.turns[at(last)].next = flow;
            (self.turns[at(flow)].next, self.turns[at(flow)].previous) = (first, last);
        }
        self.turns[at(flow)].list = Some(list);
    }

    /// Takes the flow out of its list. Of the bulk flows it must be the one that is served.
    pub(crate) fn unlink(&mut self, flow: u32) {
        let Turn { next, previous, list, place, .. } = self.turns[at(flow)];
        let Some(list) = list else { return };
        self.turns[at(flow)].list = None;
        self.turns[at(previous)].next = next;
        self.turns[at(next)].previous = previous;
        if list == List::Old {
            self.soonest.remove(flow);
            // After the last of a round, the next one begins.
            self.round += u64::from(self.turns[at(next)].place <= place);
        }
        let first = &mut self.first[list as usize];
        if next == flow {
            *first = NONE;
        } else if *first == flow {
            *first = next;
        }
    }

    /// Gives a new flow its first quantum.
    pub(crate) fn begin(&mut self, flow: u32, host_load: u32, dither: &mut Dither) {
        self.turns[at(flow)].deficit = 0;
        self.earn_quantum(flow, host_load, dither);
        self.move_to_back(List::New, flow);
    }

    /// Gives a flow that is not bulk a quantum, and sends it to the end of the bulk flows.
    pub(crate) fn send_to_back(&mut self, flow: u32, host_load: u32, dither: &mut Dither) {
        self.earn_quantum(flow, host_load, dither);
        self.unlink(flow);
        let first = self.first[List::Old as usize];
        self.link(List::Old, flow);
        let mut round = self.round;
        if first == NONE {
            self.turns[at(flow)].place = Place::FIRST;
        } else {
            round += 1;
            self.turns[at(flow)].place = self.place_before(first);
        }
        let turn = &mut self.turns[at(flow)];
        self.soonest.add(turn.wait(round, dither), turn.place, flow);
    }

    /// A place in the rounds for the flow that was just put before `first`.
    fn place_before(&mut self, first: u32) -> Place {
        let own = self.turns[at(first)].previous;
        let previous = self.turns[at(own)].previous;
        if let Some(place) =
            Place::between(self.after(previous, first), self.turns[at(first)].place)
        {
            return place;
        }
        self.space_out(own);
        let (low, high) = (self.after(previous, first), self.turns[at(first)].place);
        Place::between(low, high).expect("places are far from each other now")
    }

    /// The place of the flow before `first`, if it is in the same round.
    fn after(&self, previous: u32, first: u32) -> Option<Place> {
        let place = self.turns[at(previous)].place;
        (place < self.turns[at(first)].place).then_some(place)
    }

    /// Gives all bulk flows but `new`, which has no place yet, places far from each other.
    #[cold]
    #[inline(never)]
    fn space_out(&mut self, new: u32) {
        let after_new = self.turns[at(new)].next;
        let others = |turns: &[Turn; QUEUES as usize], flow: u32| {
            let next = turns[at(flow)].next;
            if next == new { after_new } else { next }
        };
        // The first of a round is the one whose predecessor has a later place.
        let mut flow = after_new;
        while self.turns[at(others(&self.turns, flow))].place > self.turns[at(flow)].place {
            flow = others(&self.turns, flow);
        }
        let last = flow;
        for number in 1.. {
            flow = others(&self.turns, flow);
            self.turns[at(flow)].place = Place::spaced(number, QUEUES);
            if flow == last {
                break;
            }
        }
        let turns = &self.turns;
        self.soonest.renumber(|flow| turns[at(flow)].place);
    }

    fn earn_quantum(&mut self, flow: u32, host_load: u32, dither: &mut Dither) {
        let turn = &mut self.turns[at(flow)];
        turn.set_host_load(self.quantum, host_load);
        turn.deficit += i64::from((turn.share.bytes + u32::from(dither.next())) >> 16);
    }

    /// The first bulk flow that has a deficit left; there must be a bulk flow. One that has used up
    /// its deficit begins to wait, with the share that it has now.
    #[inline(always)]
    pub(crate) fn next_bulk(&mut self, dither: &mut Dither, host_load: impl Fn(u32) -> u32) -> u32 {
        let first = self.first[List::Old as usize];
        let turn = &mut self.turns[at(first)];
        if turn.deficit <= 0 {
            turn.set_host_load(self.quantum, host_load(first));
            self.soonest.put_off(first, turn.wait(self.round, dither));
        }
        let (round, flow) = self.soonest.first();
        self.round = round;
        self.first[List::Old as usize] = flow;
        flow
    }

    /// A flow that waits, and whose hosts have less load than that by which it earns, earns by today's
    /// load from now on. What it has earned it keeps, to within a byte. There must be a bulk flow.
    #[cold]
    #[inline(never)]
    pub(crate) fn advance_those_with_less_load(
        &mut self,
        dither: &mut Dither,
        host_load: impl Fn(u32) -> u32,
    ) {
        let (quantum, round, turns) = (self.quantum, self.round, &mut self.turns);
        let here = turns[at(self.first[List::Old as usize])].place;
        self.soonest.change_rounds(|flow, due| {
            let turn = &mut turns[at(flow)];
            let next_visit = round + u64::from(turn.place < here);
            let (host_load, visits) = (host_load(flow), due.saturating_sub(next_visit));
            if visits == 0 || host_load >= turn.share.host_load {
                return due;
            }
            let to_earn = (u64::from(turn.share.bytes) * visits) >> 16;
            turn.deficit = (turn.deficit - to_earn as i64).min(0);
            turn.set_host_load(quantum, host_load);
            turn.wait(next_visit, dither)
        });
    }

    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = u32> {
        let first = self.first(list);
        let mut next = first;
        core::iter::from_fn(move || {
            let flow = next?;
            next = Some(self.turns[at(flow)].next).filter(|next| Some(*next) != first);
            Some(flow)
        })
    }
}

/// A queue's index in the arrays; the mask lets the compiler omit bounds checks.
#[inline]
pub(crate) fn at(queue: u32) -> usize {
    (queue % QUEUES) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::stream;

    proptest! {
        #[test]
        fn a_flow_is_in_one_list_at_a_time(
            operations in prop::collection::vec((0u32..5, 0usize..4), 0..100)
        ) {
            const LISTS: [List; 3] = [List::New, List::Old, List::Decaying];
            let mut turns = Turns::new(300);
            let mut dither = Dither::new(stream(1));
            let mut oracle: [VecDeque<u32>; 3] = Default::default();
            for (flow, to) in operations {
                // A bulk flow leaves only when it is served, and is not sent to the back again.
                let is_bulk = oracle[List::Old as usize].contains(&flow);
                let is_served = oracle[List::Old as usize].front() == Some(&flow);
                if is_bulk && (!is_served || to == List::Old as usize) {
                    continue;
                }
                for list in &mut oracle {
                    list.retain(|other| *other != flow);
                }
                match LISTS.get(to) {
                    Some(List::Old) => turns.send_to_back(flow, 1, &mut dither),
                    Some(list) => turns.move_to_back(*list, flow),
                    None => turns.unlink(flow),
                }
                if let Some(list) = oracle.get_mut(to) {
                    list.push_back(flow);
                }
                for (list, expected) in LISTS.iter().zip(&oracle) {
                    prop_assert_eq!(turns.first(*list), expected.front().copied());
                    prop_assert!(turns.iter(*list).eq(expected.iter().copied()));
                }
            }
        }

        #[test]
        fn rounds_earn_enough_and_one_fewer_would_not(
            quantum in 300u32..=1514,
            host_load in 1u32..=1024,
            bytes in 1i64..100_000,
            fraction: u16,
        ) {
            let share = Share::new(quantum, host_load);
            let (rounds, earned) = share.rounds_for(bytes, fraction);
            let earn = |rounds| (rounds * i64::from(share.bytes) + i64::from(fraction)) >> 16;
            prop_assert_eq!(earned, earn(rounds as i64));
            prop_assert!(earned >= bytes && earn(rounds as i64 - 1) < bytes);
        }

        /// Compared with a rotation made step by step, in which flows come, send and go.
        #[test]
        fn turns_are_those_of_a_rotation_made_step_by_step(
            steps in prop::collection::vec((0u32..8, 60u32..4000), 1..200),
        ) {
            let mut rotation = Rotation::default();
            let mut turns = Turns::new(QUANTUM);
            let mut dither = [Dither::new(stream(1)), Dither::new(stream(1))];
            for (choice, len) in steps {
                let idle = (0..4).find(|flow| !rotation.list.contains(flow));
                if let Some(flow) = idle && (rotation.list.is_empty() || choice < 2) {
                    turns.turns[at(flow)].deficit = -i64::from(len);
                    rotation.flows[at(flow)].deficit = -i64::from(len);
                    turns.send_to_back(flow, LOADS[at(flow)], &mut dither[0]);
                    rotation.send_to_back(flow, &mut dither[1]);
                }
                let flow = turns.next_bulk(&mut dither[0], |flow| LOADS[at(flow)]);
                prop_assert_eq!(rotation.next(&mut dither[1]), flow);
                prop_assert_eq!(rotation.flows[at(flow)].deficit, turns.turns[at(flow)].deficit);
                turns.pay(flow, len);
                rotation.flows[at(flow)].deficit -= i64::from(len);
                if choice == 7 {
                    turns.unlink(flow);
                    rotation.list.pop_front();
                }
            }
        }
    }

    #[test]
    fn a_thousand_flows_that_begin_at_once_have_their_turns_in_that_order() {
        let mut turns = Turns::new(QUANTUM);
        let mut dither = Dither::new(stream(1));
        for flow in 0..QUEUES {
            turns.send_to_back(flow, 1, &mut dither);
        }
        assert!(
            turns.turns.iter().any(|turn| turn.place == Place::spaced(1, QUEUES)),
            "gaps were used up"
        );
        for _round in 0..2 {
            for flow in 0..QUEUES {
                assert_eq!(turns.next_bulk(&mut dither, |_| 1), flow);
                turns.pay(flow, QUANTUM);
            }
        }
    }

    #[test]
    fn a_flow_whose_host_has_lost_half_of_its_flows_need_not_wait_for_them() {
        let mut turns = Turns::new(QUANTUM);
        let mut dither = Dither::new(stream(1));
        turns.send_to_back(0, 1000, &mut dither);
        turns.send_to_back(1, 1, &mut dither);
        // Both send a packet, after which flow 0 would wait for 15 000 rounds and flow 1 for 15.
        for _ in 0..2 {
            let flow = turns.next_bulk(&mut dither, |flow| [1000, 1][at(flow)]);
            turns.pay(flow, 15 * QUANTUM);
        }
        let mut served = [0; 2];
        for _ in 0..50 {
            let flow = turns.next_bulk(&mut dither, |flow| [1000, 1][at(flow)]);
            turns.pay(flow, 15 * QUANTUM);
            served[at(flow)] += 1;
        }
        assert_eq!(served, [0, 50]);
        let deficit = turns.turns[0].deficit;
        turns.advance_those_with_less_load(&mut dither, |_| 1);
        for _ in 0..50 {
            let flow = turns.next_bulk(&mut dither, |_| 1);
            turns.pay(flow, 15 * QUANTUM);
            served[at(flow)] += 1;
        }
        assert!((24..=26).contains(&served[0]), "{served:?}");
        assert!(deficit > 0, "it would have had its turn with a deficit left");
    }

    const QUANTUM: u32 = 305;
    const LOADS: [u32; 4] = [2, 3, 7, 5];

    /// The head of the list has a deficit left, or gets a quantum and goes to the end.
    #[derive(Default)]
    struct Rotation {
        list: VecDeque<u32>,
        flows: [Earning; 4],
    }

    #[derive(Default)]
    struct Earning {
        deficit: i64,
        /// Fractions of bytes earned since the flow began to wait.
        fraction: Option<u32>,
    }

    impl Rotation {
        fn send_to_back(&mut self, flow: u32, dither: &mut Dither) {
            let earning = &mut self.flows[at(flow)];
            let bytes = Share::new(QUANTUM, LOADS[at(flow)]).bytes;
            earning.deficit += i64::from((bytes + u32::from(dither.next())) >> 16);
            earning.fraction = (earning.deficit <= 0).then(|| u32::from(dither.next()));
            self.list.push_back(flow);
        }

        fn next(&mut self, dither: &mut Dither) -> u32 {
            loop {
                let flow = self.list[0];
                let earning = &mut self.flows[at(flow)];
                if earning.deficit > 0 {
                    earning.fraction = None;
                    return flow;
                }
                let fraction = earning.fraction.unwrap_or_else(|| u32::from(dither.next()));
                let earned = fraction + Share::new(QUANTUM, LOADS[at(flow)]).bytes;
                earning.deficit += i64::from(earned >> 16);
                earning.fraction = Some(earned & 0xffff);
                self.list.rotate_left(1);
            }
        }
    }

    #[test]
    fn a_flow_that_waits_earns_by_the_load_with_which_it_began_to_wait() {
        let mut turns = Turns::new(QUANTUM);
        let mut dither = Dither::new(stream(1));
        for flow in 0..2 {
            turns.send_to_back(flow, 2, &mut dither);
        }
        for flow in 0..2 {
            assert_eq!(turns.next_bulk(&mut dither, |_| 2), flow);
            turns.pay(flow, 4000);
        }
        // Flow 0 has its turn after some 26 rounds of 152 bytes, and flow 1 after as many, although
        // its hosts have forty flows by then.
        assert_eq!(turns.next_bulk(&mut dither, |_| 2), 0);
        turns.pay(0, 8000);
        assert_eq!(turns.next_bulk(&mut dither, |flow| [1, 40][at(flow)]), 1);
        assert!((1..=153).contains(&turns.turns[at(1)].deficit));
        // Flow 0, alone meanwhile, earns 305 bytes in a round.
        assert_eq!(turns.turns[at(0)].share.bytes >> 16, 304);
        turns.pay(1, 4000);
        let round = turns.round;
        assert_eq!(turns.next_bulk(&mut dither, |_| 40), 0);
        assert!((25..=27).contains(&(turns.round - round)), "{}", turns.round - round);
    }
}
