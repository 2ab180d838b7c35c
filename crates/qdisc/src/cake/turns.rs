//! Whose turn it is in a tin: lists of flows, their deficits, and the rounds in which bulk flows
//! earn what they may send.

use sojourn_core::Stream;

use super::tin::{QUEUES, at};

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

/// The lists are rings: the first one's previous is the last.
#[derive(Debug)]
pub(crate) struct Turns {
    turns: Box<[Turn; QUEUES as usize]>,
    first: [u32; 3],
    /// Quantum of a flow alone on its hosts.
    quantum: u32,
    /// The load of a host has changed since the bulk flows' shares were worked out.
    are_shares_old: bool,
}

const NONE: u32 = u32::MAX;

/// To make fewer rounds than these together is more work than to make them one by one.
const ROUNDS_WORTHWHILE: u32 = 5;

#[derive(Clone, Copy, Debug)]
struct Turn {
    next: u32,
    previous: u32,
    list: Option<List>,
    share: Share,
    deficit: i64,
}

/// What a flow earns in a round: its quantum divided by the bulk flows of the busier of its hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// In fractions of 2^16 of a byte.
    bytes: u32,
    /// At most one over the whole bytes that a round can earn, in fractions of 2^32.
    reciprocal: u32,
    host_load: u32,
}

impl Share {
    fn new(quantum: u32, host_load: u32) -> Self {
        let bytes = quantum * (65_535 / host_load);
        let most = (bytes + 65_535) >> 16;
        Self { bytes, reciprocal: u32::MAX / most.max(1), host_load }
    }

    /// Rounds that leave a flow without a deficit, however they are dithered.
    #[inline]
    fn rounds_without_turn(&self, deficit: i64) -> u32 {
        if deficit > 0 {
            return 0;
        }
        ((deficit.unsigned_abs() * u64::from(self.reciprocal)) >> 32) as u32
    }
}

/// Random rounding: a random fraction is added to a share before it is cut to whole bytes, so that
/// on average nothing is lost.
#[derive(Clone, Debug)]
pub(crate) struct Dither {
    random: Stream,
    /// The 16-bit numbers left of the last draw, below a one that marks their end.
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

    /// What one round earns.
    #[inline]
    fn round(&mut self, bytes: u32) -> i64 {
        i64::from((bytes + u32::from(self.next())) >> 16)
    }

    /// What some rounds earn together, each rounded by a random number of its own, whose lower
    /// byte is drawn only where the upper one leaves open whether to round up.
    #[inline]
    fn sum(&mut self, bytes: u32, rounds: Rounds) -> i64 {
        let (mut ups, open) = rounds.round(bytes, self.random.next_u64());
        for _ in 0..open {
            ups += ((bytes & 0xff) + u32::from(self.next() & 0xff)) >> 8;
        }
        i64::from(rounds.count * (bytes >> 16) + ups)
    }

    /// For other uses than dithering.
    pub(crate) fn random(&mut self) -> &mut Stream {
        &mut self.random
    }
}

/// Rounds made together, at most eight: as many as a draw has bytes.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    count: u32,
    /// A one for each round, in lanes of 16 bits: those of even bytes, then those of odd ones.
    lanes: [u64; 2],
}

impl Rounds {
    const MOST: u32 = 8;
    const ONES: u64 = 0x0001_0001_0001_0001;

    /// `count` must be from one to eight.
    #[inline]
    fn new(count: u32) -> Self {
        let counted = u64::MAX >> (64 - 8 * count);
        Self { count, lanes: [counted & Self::ONES, counted >> 8 & Self::ONES] }
    }

    /// Takes the bytes of `drawn` as the upper ones of 16-bit numbers: how many of these round
    /// `bytes` up, and how many do if their lower byte carries.
    #[inline]
    fn round(self, bytes: u32, drawn: u64) -> (u32, u32) {
        // Every other byte, so that each has room to carry.
        const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
        let fraction = u64::from(bytes >> 8 & 0xff) * Self::ONES;
        let [even, odd] = [drawn & BYTES, drawn >> 8 & BYTES].map(|bytes| bytes + fraction);
        let carries = |carry: u64| {
            ((even + carry) >> 8 & self.lanes[0]) + ((odd + carry) >> 8 & self.lanes[1])
        };
        let (sure, possible) = (carries(0), carries(Self::ONES));
        let total = |lanes: u64| (lanes.wrapping_mul(Self::ONES) >> 48) as u32;
        if sure == possible { (total(sure), 0) } else { (total(sure), total(possible - sure)) }
    }
}

impl Turns {
    pub(crate) fn new(quantum: u32) -> Self {
        let turn = Turn { next: 0, previous: 0, list: None, share: Share::default(), deficit: 0 };
        let turns = Box::new([turn; QUEUES as usize]);
        Self { turns, first: [NONE; 3], quantum, are_shares_old: false }
    }

    pub(crate) fn quantum(&self) -> u32 {
        self.quantum
    }

    /// The load of a host has changed, or a flow has got other hosts.
    pub(crate) fn hosts_changed(&mut self) {
        self.are_shares_old = true;
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

    /// Moves the flow to the end of the list, from wherever it was.
    pub(crate) fn move_to_back(&mut self, list: List, flow: u32) {
        self.unlink(flow);
        let first = self.first[list as usize];
        if first == NONE {
            self.first[list as usize] = flow;
            (self.turns[at(flow)].next, self.turns[at(flow)].previous) = (flow, flow);
        } else {
            let last = std::mem::replace(&mut self.turns[at(first)].previous, flow);
            self.turns[at(last)].next = flow;
            (self.turns[at(flow)].next, self.turns[at(flow)].previous) = (first, last);
        }
        self.turns[at(flow)].list = Some(list);
    }

    pub(crate) fn unlink(&mut self, flow: u32) {
        let Turn { next, previous, list, .. } = self.turns[at(flow)];
        let Some(list) = list else { return };
        self.turns[at(flow)].list = None;
        self.turns[at(previous)].next = next;
        self.turns[at(next)].previous = previous;
        let first = &mut self.first[list as usize];
        if next == flow {
            *first = NONE;
        } else if *first == flow {
            *first = next;
        }
    }

    /// Gives a new flow its first quantum.
    pub(crate) fn begin(&mut self, flow: u32, dither: &mut Dither, host_load: u32) {
        let bytes = self.share_of(flow, host_load);
        self.turns[at(flow)].deficit = dither.round(bytes);
        self.move_to_back(List::New, flow);
    }

    /// Gives the flow a quantum and sends it to the end of the bulk flows.
    pub(crate) fn send_to_back(&mut self, flow: u32, dither: &mut Dither, host_load: u32) {
        let bytes = self.share_of(flow, host_load);
        self.turns[at(flow)].deficit += dither.round(bytes);
        self.move_to_back(List::Old, flow);
    }

    /// The first bulk flow, of which there must be one, that has a deficit left: a flow without
    /// gets a quantum and goes to the end.
    #[inline(always)]
    pub(crate) fn next_bulk(&mut self, dither: &mut Dither, host_load: impl Fn(u32) -> u32) -> u32 {
        if self.are_shares_old {
            self.work_out_shares(host_load);
        }
        let first = self.first[List::Old as usize];
        let turn = &self.turns[at(first)];
        if turn.share.rounds_without_turn(turn.deficit) >= ROUNDS_WORTHWHILE {
            self.make_rounds(first, dither);
        }
        let mut flow = first;
        loop {
            let turn = &mut self.turns[at(flow)];
            if turn.deficit > 0 {
                self.first[List::Old as usize] = flow;
                return flow;
            }
            turn.deficit += dither.round(turn.share.bytes);
            flow = turn.next;
        }
    }

    /// When hosts share, a quantum is a fraction of a packet and it takes several rounds until a
    /// flow has its turn; those that bring nobody's turn are made together.
    #[inline(never)]
    fn make_rounds(&mut self, first: u32, dither: &mut Dither) {
        while let Some(rounds) = self.rounds_without_turn(first) {
            let mut flow = first;
            loop {
                let turn = &mut self.turns[at(flow)];
                turn.deficit += dither.sum(turn.share.bytes, rounds);
                flow = turn.next;
                if flow == first {
                    break;
                }
            }
            if rounds.count < Rounds::MOST {
                return;
            }
        }
    }

    /// Rounds of all bulk flows that leave each without a deficit, however they are dithered.
    fn rounds_without_turn(&self, first: u32) -> Option<Rounds> {
        let mut least = Rounds::MOST;
        let mut flow = first;
        loop {
            let turn = &self.turns[at(flow)];
            least = least.min(turn.share.rounds_without_turn(turn.deficit));
            flow = turn.next;
            if least == 0 {
                return None;
            }
            if flow == first {
                return Some(Rounds::new(least));
            }
        }
    }

    #[inline(never)]
    fn work_out_shares(&mut self, host_load: impl Fn(u32) -> u32) {
        self.are_shares_old = false;
        let first = self.first[List::Old as usize];
        let mut flow = first;
        loop {
            self.share_of(flow, host_load(flow));
            flow = self.turns[at(flow)].next;
            if flow == first {
                return;
            }
        }
    }

    fn share_of(&mut self, flow: u32, host_load: u32) -> u32 {
        let share = &mut self.turns[at(flow)].share;
        if share.host_load != host_load {
            *share = Share::new(self.quantum, host_load);
        }
        share.bytes
    }

    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = u32> {
        let first = self.first(list);
        let mut next = first;
        std::iter::from_fn(move || {
            let flow = next?;
            next = Some(self.turns[at(flow)].next).filter(|next| Some(*next) != first);
            Some(flow)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

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
            let mut oracle: [VecDeque<u32>; 3] = Default::default();
            for (flow, to) in operations {
                for list in &mut oracle {
                    list.retain(|other| *other != flow);
                }
                match LISTS.get(to) {
                    Some(list) => {
                        turns.move_to_back(*list, flow);
                        oracle[to].push_back(flow);
                    }
                    None => turns.unlink(flow),
                }
                for (list, expected) in LISTS.iter().zip(&oracle) {
                    prop_assert_eq!(turns.first(*list), expected.front().copied());
                    prop_assert!(turns.iter(*list).eq(expected.iter().copied()));
                }
            }
        }

        /// Rounding together is rounding each by a number of its own, uniform in 0..2^16: a
        /// draw's bytes are the upper ones, and a lower one is drawn where the sum needs it.
        #[test]
        fn eight_rounds_together_are_rounded_one_by_one(
            bytes in 0u32..1 << 27,
            upper in prop::array::uniform8(0u8..),
            lower in prop::array::uniform8(0u8..),
            count in 1usize..=8,
        ) {
            let (sure, open) = Rounds::new(count as u32).round(bytes, u64::from_le_bytes(upper));
            let mut expected = 0;
            let mut lower_of_open = Vec::new();
            for (upper, lower) in upper.into_iter().zip(lower).take(count) {
                let number = u32::from(upper) << 8 | u32::from(lower);
                expected += ((bytes & 0xffff) + number) >> 16;
                if u32::from(upper) + (bytes >> 8 & 0xff) == 255 {
                    lower_of_open.push(u32::from(lower));
                }
            }
            prop_assert_eq!(open as usize, lower_of_open.len());
            let carried: u32 =
                lower_of_open.iter().map(|lower| ((bytes & 0xff) + lower) >> 8).sum();
            prop_assert_eq!(sure + carried, expected);
        }

        #[test]
        fn rounds_without_turn_leave_no_deficit_and_are_as_many_as_can_be(
            quantum in 300u32..=1514,
            host_load in 1u32..=1024,
            owed in 0i64..100_000,
        ) {
            let share = Share::new(quantum, host_load);
            let most = i64::from((share.bytes + 65_535) >> 16);
            let rounds = i64::from(share.rounds_without_turn(-owed));
            prop_assert!(rounds * most <= owed);
            prop_assert!((rounds + 2) * most > owed, "one fewer at most, by the reciprocal");
            prop_assert_eq!(share.rounds_without_turn(1), 0);
        }
    }

    const QUANTUM: u32 = 305;
    const LOADS: [u32; 3] = [2, 3, 7];

    /// Three bulk flows that owe something, the first one 200 bytes more than the last.
    fn owing(owed: i64) -> Turns {
        let mut turns = Turns::new(QUANTUM);
        for flow in 0..3 {
            turns.move_to_back(List::Old, flow);
            turns.hosts_changed();
            turns.turns[at(flow)].deficit = -owed + 100 * i64::from(flow);
        }
        turns
    }

    fn one_by_one(turns: &mut Turns, random: &mut Stream) -> u32 {
        loop {
            let flow = turns.first(List::Old).expect("there are three");
            let turn = &mut turns.turns[at(flow)];
            if turn.deficit > 0 {
                return flow;
            }
            let share = Share::new(QUANTUM, LOADS[at(flow)]);
            turn.deficit += i64::from((share.bytes + (random.next_u32() >> 16)) >> 16);
            turns.move_to_back(List::Old, flow);
        }
    }

    /// The law of who is next and of what each has then, by a χ² test of two samples.
    #[test]
    fn rounds_made_together_have_the_law_of_rounds_made_one_by_one() {
        const RUNS: usize = 20_000;
        let (mut random, mut dither) = (stream(1), Dither::new(stream(2)));
        for owed in [400, 700, 1500, 4000] {
            let mut counts: BTreeMap<(u32, [i64; 3]), [f64; 2]> = BTreeMap::new();
            for _ in 0..RUNS {
                let (mut single, mut together) = (owing(owed), owing(owed));
                let next = [
                    one_by_one(&mut single, &mut random),
                    together.next_bulk(&mut dither, |flow| LOADS[at(flow)]),
                ];
                for (sample, turns) in [single, together].iter().enumerate() {
                    let deficits = [0, 1, 2].map(|flow| turns.turns[flow].deficit);
                    counts.entry((next[sample], deficits)).or_default()[sample] += 1.0;
                }
            }
            // Outcomes seen less than twenty times count as one.
            let (rare, common): (Vec<[f64; 2]>, Vec<[f64; 2]>) =
                counts.into_values().partition(|[a, b]| a + b < 20.0);
            let rest = rare.iter().fold([0.0; 2], |sum, [a, b]| [sum[0] + a, sum[1] + b]);
            let cells: Vec<[f64; 2]> =
                common.into_iter().chain([rest]).filter(|[a, b]| a + b > 0.0).collect();
            let chi_square: f64 = cells.iter().map(|[a, b]| (a - b) * (a - b) / (a + b)).sum();
            let freedom = cells.len() as f64 - 1.0;
            assert!(freedom >= 5.0, "owed {owed}: {} outcomes tell too little", cells.len());
            let deviations = (chi_square - freedom) / (2.0 * freedom).sqrt();
            assert!(deviations.abs() < 3.5, "owed {owed}: χ² {chi_square} of {freedom}");
        }
    }
}
