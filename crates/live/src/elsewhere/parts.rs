//! What programs have left, in parts that messages carry.

use sojourn_core::{FlowId, Span, Time};
use sojourn_scenario::Scenario;

use super::message::Part;
use crate::programs::{self, AllLeft, Left, MOST_PRINTED, Side};

/// Bytes of a part, and times.
const LARGEST: usize = 64 << 10;
const MOST_TIMES: usize = 2 << 10;

pub(super) fn of(all: AllLeft) -> impl Iterator<Item = Part> {
    all.into_iter().flat_map(|((flow, side), left)| {
        let Left { what, how, has_failed, was_asked, printed, complaints } = left;
        let part = move || Part {
            flow: flow.0,
            is_receiver: side == Side::Receiver,
            what: String::new(),
            how: String::new(),
            has_failed: false,
            was_asked: false,
            complaints: String::new(),
            printed: String::new(),
            came: Vec::new(),
        };
        let complaints = characters(&complaints);
        let first = Part { what, how, has_failed, was_asked, complaints, ..part() };
        let count =
            printed.bytes.len().div_ceil(LARGEST).max(printed.came.len().div_ceil(MOST_TIMES));
        let rest = (0..count).map(move |number| {
            let bytes = printed.bytes.chunks(LARGEST).nth(number).unwrap_or_default();
            let came = printed.came.chunks(MOST_TIMES).nth(number).unwrap_or_default();
            let came = came.iter().map(|(bytes, at)| (*bytes as u64, at.as_nanos()));
            Part { printed: characters(bytes), came: came.collect(), ..part() }
        });
        std::iter::once(first).chain(rest)
    })
}

/// Adds a part to what has come. `None` if it can't be one of this scenario, or adds nothing: there is an end to what a program
/// leaves.
pub(super) fn take(part: Part, scenario: &Scenario, all: &mut AllLeft) -> Option<()> {
    let flow = scenario.flows.get(part.flow as usize)?;
    programs::exec_of(&flow.app)?;
    let side = if part.is_receiver { Side::Receiver } else { Side::Sender };
    let id = (FlowId(part.flow), side);
    let adds = !all.contains_key(&id) || !part.printed.is_empty() || !part.came.is_empty();
    let left = all.entry(id).or_default();
    left.what += &part.what;
    left.how += &part.how;
    left.has_failed |= part.has_failed;
    left.was_asked |= part.was_asked;
    left.complaints.extend(bytes(&part.complaints)?);
    left.printed.bytes.extend(bytes(&part.printed)?);
    let came = &mut left.printed.came;
    came.extend(part.came.iter().map(|(bytes, at)| {
        (usize::try_from(*bytes).unwrap_or(usize::MAX), Time::ZERO + Span::from_nanos(*at))
    }));
    let is_in_order = came.is_sorted();
    let is_short = left.what.len() + left.how.len() + left.complaints.len() <= LARGEST
        && left.printed.bytes.len() <= MOST_PRINTED
        && came.len() <= left.printed.bytes.len();
    (adds && is_in_order && is_short).then_some(())
}

fn characters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn bytes(characters: &str) -> Option<Vec<u8>> {
    characters.chars().map(|own| u8::try_from(own).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{message, order};
    use super::*;

    /// A scenario whose last flow is of programs.
    fn scenario() -> Scenario {
        order::read(message::tests::order()).expect("a good order").scenario
    }

    fn left(bytes: Vec<u8>, times: usize) -> AllLeft {
        let scenario = scenario();
        let mut left = Left { what: "a".to_owned(), how: "b".to_owned(), ..Left::default() };
        left.has_failed = true;
        left.complaints = vec![0, 255];
        left.printed.came =
            (0..times).map(|at| (at, Time::ZERO + Span::from_nanos(at as u64))).collect();
        left.printed.bytes = bytes;
        let id = FlowId(scenario.flows.len() as u32 - 1);
        AllLeft::from([((id, Side::Receiver), left)])
    }

    #[test]
    fn what_is_taken_apart_is_put_together() {
        for (length, times) in
            [(0, 0), (5, 1), (LARGEST, 2), (3 * LARGEST + 1, 5), (2 * MOST_TIMES, MOST_TIMES + 1)]
        {
            let bytes = (0..length).map(|at| at as u8).collect();
            let mut again = AllLeft::new();
            for part in of(left(bytes, times)) {
                take(part, &scenario(), &mut again).expect("a good part");
            }
            let bytes = (0..length).map(|at| at as u8).collect();
            assert!(again == left(bytes, times), "{length} {times}");
            let nothing = of(left(Vec::new(), 0)).next().expect("there is a first");
            assert_eq!(take(nothing, &scenario(), &mut again), None, "it would never end");
        }
    }

    #[test]
    fn a_receiver_that_may_have_lost_its_sender_has_not_failed() {
        let (scenario, mut all) = (scenario(), left(Vec::new(), 0));
        let failures = |all: &AllLeft| programs::failures(&scenario, all);
        assert_eq!(failures(&all), ["flow 'i': a ended with b: \0\u{fffd}"]);
        let id = FlowId(scenario.flows.len() as u32 - 1);
        let sender = Left { was_asked: true, ..Left::default() };
        all.insert((id, Side::Sender), sender);
        assert_eq!(failures(&all), [""; 0]);
        let sender = Left { has_failed: true, how: "c".to_owned(), ..Left::default() };
        all.insert((id, Side::Sender), sender);
        assert_eq!(failures(&all).len(), 2);
    }

    proptest! {
        #[test]
        fn no_part_makes_it_panic(
            flow in 0_u32..12,
            (is_receiver, has_failed, was_asked) in any::<(bool, bool, bool)>(),
            texts in ("\\PC{0,9}", "\\PC{0,9}", "[a-z\u{ff}\n]{0,40}"),
            came in prop::collection::vec((any::<u64>(), any::<u64>()), 0..5),
        ) {
            let (how, complaints, printed) = texts;
            let what = String::new();
            let part =
                Part { flow, is_receiver, what, how, has_failed, was_asked, complaints, printed, came };
            let (scenario, mut all) = (scenario(), AllLeft::new());
            if take(part, &scenario, &mut all).is_some() {
                let address = sojourn_core::StreamAddress { seed: 1, run: 1 };
                let _ = programs::reports(&scenario, address, &all, Time::ZERO + scenario.duration);
                prop_assert_eq!(programs::failures(&scenario, &all).len(), usize::from(has_failed));
            }
        }
    }
}
