//! A block ack agreement (section 10.25): the frames of one transmitter, receiver and traffic
//! identifier that have sequence numbers and are not yet delivered.
//!
//! Transmitter and recipient agree on what has arrived as soon as a BlockAck is received, and a
//! BlockAck is lost only with the whole exchange. So one record serves both: what the transmitter
//! may send (10.25.6.7) and what the recipient holds back until its turn (10.25.6.6).

use alloc::collections::VecDeque;

use sojourn_core::Time;

use crate::store::Slot;

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

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Msdu> {
        self.msdus.iter_mut()
    }

    /// The oldest that is not delivered.
    pub(crate) fn first_open(&self) -> Option<&Msdu> {
        self.msdus.iter().find(|msdu| msdu.fate == Fate::Open)
    }

    /// Passes on what was received up to the first frame that is still open. Each is passed on as
    /// soon as it and all before it were received; after a frame that was given up, from `end` on.
    pub(crate) fn pass_on(&mut self, end: Time, mut take: impl FnMut(Time, Slot)) {
        let mut at = Time::ZERO;
        for msdu in &mut self.msdus {
            at = match msdu.fate {
                Fate::Open => return,
                Fate::Received => at.max(msdu.received),
                Fate::Discarded => end,
            };
            if msdu.fate == Fate::Received && !msdu.is_passed_on {
                take(at, msdu.packet);
            }
            msdu.is_passed_on = true;
        }
    }

    /// The next MSDU in order that is finished, received or discarded.
    #[inline]
    pub(crate) fn pop_done(&mut self) -> Option<Msdu> {
        if self.msdus.front()?.fate == Fate::Open {
            return None;
        }
        let msdu = self.msdus.pop_front()?;
        self.mpdus -= u32::from(msdu.mpdu_octets > 0);
        Some(msdu)
    }
}
