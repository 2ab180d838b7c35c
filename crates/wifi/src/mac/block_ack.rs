//! A block ack agreement (section 10.25): the frames of one transmitter, receiver and traffic
//! identifier that have sequence numbers and are not yet delivered.
//!
//! Transmitter and recipient agree on what has arrived as soon as a BlockAck is received, and a
//! BlockAck is lost only with the whole exchange. So one record serves both: what the transmitter
//! may send (10.25.6.7) and what the recipient holds back until its turn (10.25.6.6).

use alloc::collections::VecDeque;

use sojourn_core::Time;

use crate::store::{Appender, Slot};

/// An MSDU that has a place in an MPDU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Msdu {
    pub(crate) packet: Slot,
    /// Bytes of the packet.
    pub(crate) ip_len: u32,
    /// Since when it waits in the station, as a number that grows with every arrival.
    pub(crate) order: u64,
    /// Length of the MPDU that begins with this MSDU; zero for a further MSDU of an A-MSDU.
    pub(crate) mpdu_octets: u32,
    pub(crate) attempts: u8,
    /// The PPDU it is part of, 0 if of none.
    pub(crate) ppdu: u32,
    pub(crate) fate: Fate,
    /// When it was received.
    pub(crate) received: Time,
    /// It was passed on, or never will be.
    pub(crate) is_passed_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not yet acknowledged.
    Open,
    /// It arrived and waits for those before it.
    Received,
    /// Given up after the last attempt.
    Discarded,
}

#[derive(Debug)]
pub(crate) struct Agreement {
    msdus: VecDeque<Msdu>,
    /// MPDUs from the first that is not delivered to the last that has a number (WinEnd − WinStart).
    mpdus: u32,
    /// Frames that may be sent again: open, and in no PPDU.
    pub(crate) to_repeat: u32,
    /// A BlockAck did not come and must be requested.
    pub(crate) bar_due: bool,
}

impl Agreement {
    pub(crate) fn new() -> Self {
        Self { msdus: VecDeque::new(), mpdus: 0, to_repeat: 0, bar_due: false }
    }

    /// How many more MPDUs may have a number.
    #[inline]
    pub(crate) fn room(&self, window: u32) -> u32 {
        window.saturating_sub(self.mpdus)
    }

    /// Whether another MPDU may have a number.
    #[inline]
    pub(crate) fn has_room(&self, window: u32) -> bool {
        self.mpdus < window
    }

    /// Whether there is something to repeat, or room for more.
    #[inline]
    pub(crate) fn may_send(&self, window: u32) -> bool {
        self.to_repeat > 0 || self.has_room(window)
    }

    /// Gives the MSDU a place behind the others.
    #[inline]
    pub(crate) fn append(&mut self, msdu: Msdu) {
        self.mpdus += u32::from(msdu.mpdu_octets > 0);
        self.msdus.push_back(msdu);
    }

    /// The MSDU added last, for another one to join it.
    #[inline]
    pub(crate) fn first_of_last(&mut self, msdus: usize) -> Option<&mut Msdu> {
        let index = self.msdus.len().checked_sub(msdus)?;
        self.msdus.get_mut(index)
    }

    /// Settles the MSDUs of a PPDU that ends at `end`, given by its number and how many MPDUs it has, and appends to `out`
    /// what is passed on. `decide` says of the first MSDU of each MPDU, whose attempt is counted already, what becomes
    /// of the MPDU, and when it was received. Gives how many MPDUs there were, and how many MSDUs are finished.
    #[inline(always)]
    pub(crate) fn settle<P>(
        &mut self,
        (number, all): (u32, u32),
        end: Time,
        mut out: Appender<'_, P>,
        mut decide: impl FnMut(&Msdu) -> (Fate, Time),
    ) -> (u32, u32) {
        let (mut mpdus, mut done, mut repeat) = (0, 0, 0);
        let mut decided = (Fate::Open, end);
        let mut passing = Passing::new(end);
        // Both parts of the ring: for each of them the loop is a plain one.
        let (front, back) = self.msdus.as_mut_slices();
        'all: for part in [front, back] {
            for msdu in part {
                if msdu.ppdu == number {
                    if msdu.mpdu_octets > 0 {
                        msdu.attempts = msdu.attempts.saturating_add(1);
                        decided = decide(msdu);
                        mpdus += 1;
                        repeat += u32::from(decided.0 == Fate::Open);
                    }
                    (msdu.fate, msdu.received, msdu.ppdu) = (decided.0, decided.1, 0);
                    done += u32::from(decided.0 != Fate::Open);
                } else if mpdus == all && passing.is_over() {
                    break 'all;
                }
                if let Some(at) = passing.next(msdu) {
                    out.append(msdu.packet, at);
                }
            }
        }
        self.to_repeat += repeat;
        (mpdus, done)
    }

    #[inline]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Msdu> {
        self.msdus.iter_mut()
    }

    /// The oldest MPDU that may be sent again.
    pub(crate) fn first_to_repeat(&self) -> Option<&Msdu> {
        let may = |msdu: &&Msdu| msdu.ppdu == 0 && msdu.fate == Fate::Open && msdu.mpdu_octets > 0;
        self.msdus.iter().find(may)
    }

    /// The oldest that is not delivered.
    pub(crate) fn first_open(&self) -> Option<&Msdu> {
        self.msdus.iter().find(|msdu| msdu.fate == Fate::Open)
    }

    /// Removes the MSDUs that come first and are finished, received or discarded, after `see` has seen them.
    #[inline]
    pub(crate) fn remove_done(&mut self, mut see: impl FnMut(&Msdu)) -> u32 {
        let (mut done, mut mpdus) = (0, 0);
        let (front, back) = self.msdus.as_slices();
        'all: for part in [front, back] {
            for msdu in part {
                if msdu.fate == Fate::Open {
                    break 'all;
                }
                see(msdu);
                done += 1;
                mpdus += u32::from(msdu.mpdu_octets > 0);
            }
        }
        self.mpdus -= mpdus;
        self.msdus.drain(..done);
        done as u32
    }
}

/// Passes on what was received up to the first frame that is still open. Each is passed on as soon as it and all
/// before it were received; after a frame that was given up, from the end of the PPDU on.
pub(crate) struct Passing {
    /// The end of the PPDU.
    end: Time,
    /// The earliest time for the next.
    at: Time,
}

impl Passing {
    pub(crate) fn new(end: Time) -> Self {
        Self { end, at: Time::ZERO }
    }

    /// Whether an open frame came, so that no more is passed on.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.at.is_never()
    }

    /// The next MSDU in order, whose fate is known now: when it is passed on, if it is.
    #[inline]
    pub(crate) fn next(&mut self, msdu: &mut Msdu) -> Option<Time> {
        self.at = match msdu.fate {
            Fate::Open => Time::NEVER,
            Fate::Received => self.at.max(msdu.received),
            Fate::Discarded if self.is_over() => Time::NEVER,
            Fate::Discarded => self.end,
        };
        if self.is_over() || msdu.is_passed_on {
            return None;
        }
        msdu.is_passed_on = true;
        (msdu.fate == Fate::Received).then_some(self.at)
    }
}
