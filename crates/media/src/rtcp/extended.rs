//! Extended reports (RFC 3611) with which an end that only receives learns the round trip: it says what time it is
//! (section 4.4), and the other end's next report how long ago that came (section 4.5).

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use super::{
    EXTENDED_REPORT, RECEIVER, SENDER, begin, finish, ntp_middle, put_u32, rtt_of, u32_at,
};

const REFERENCE_TIME: u8 = 4;
const DELAY: u8 = 5;

/// An extended report of one block: who sends it, the block's kind and its words.
fn report(from: u32, kind: u8, words: &[u32]) -> Vec<u8> {
    let mut message = begin(0, EXTENDED_REPORT);
    put_u32(&mut message, from);
    message.extend([kind, 0, 0, words.len() as u8]);
    words.iter().for_each(|word| put_u32(&mut message, *word));
    finish(message)
}

/// A receiver reference time report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceTime {
    /// The receiver's time, in 1/65536 s: the middle of an NTP timestamp.
    pub time: u32,
}

impl ReferenceTime {
    pub fn write(&self) -> Vec<u8> {
        report(RECEIVER, REFERENCE_TIME, &[self.time >> 16, self.time << 16])
    }
}

/// How long ago the newest reference time came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinceReference {
    /// What that said, and how long ago it came, in 1/65536 s.
    pub time: u32,
    pub since: u32,
}

impl SinceReference {
    pub fn write(&self) -> Vec<u8> {
        report(SENDER, DELAY, &[RECEIVER, self.time, self.since])
    }

    /// The round-trip time at its arrival.
    pub fn rtt(&self, now: Time) -> Span {
        rtt_of(now, self.time, self.since)
    }
}

/// The first block of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    ReferenceTime(ReferenceTime),
    SinceReference(SinceReference),
}

impl Extended {
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        match *body.get(4)? {
            REFERENCE_TIME => {
                let time = u32_at(body, 8)? << 16 | u32_at(body, 12)? >> 16;
                Some(Self::ReferenceTime(ReferenceTime { time }))
            }
            DELAY => {
                let (time, since) = (u32_at(body, 12)?, u32_at(body, 16)?);
                Some(Self::SinceReference(SinceReference { time, since }))
            }
            _ => None,
        }
    }
}

/// What the sender answers to a reference time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastReference(Option<(ReferenceTime, Time)>);

impl LastReference {
    pub(crate) fn note(&mut self, now: Time, reference: ReferenceTime) {
        self.0 = Some((reference, now));
    }

    pub(crate) fn answer(&self, now: Time) -> Option<SinceReference> {
        let (reference, came) = self.0?;
        let since = ntp_middle(now).wrapping_sub(ntp_middle(came));
        Some(SinceReference { time: reference.time, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Lengths of sections 4.4 and 4.5, with the header of section 2.
    #[test]
    fn a_receiver_learns_the_round_trip_from_the_answer_to_its_time() {
        let asked = ReferenceTime { time: ntp_middle(ms(70_000)) };
        let bytes = asked.write();
        assert_eq!(bytes.len(), 20);
        assert_eq!(Extended::read(&bytes[4..]), Some(Extended::ReferenceTime(asked)));
        let mut last = LastReference::default();
        assert_eq!(last.answer(ms(70_000)), None);
        last.note(ms(70_030), asked);
        let answer = last.answer(ms(70_500)).expect("one came");
        let bytes = answer.write();
        assert_eq!(bytes.len(), 24);
        assert_eq!(Extended::read(&bytes[4..]), Some(Extended::SinceReference(answer)));
        let rtt = answer.rtt(ms(70_550)).as_millis_f64();
        assert!((rtt - 80.0).abs() < 0.1, "{rtt}");
    }
}
