//! Why the picture of a call stood still: for each freeze, the frame that ended it, what that waited
//! for, and the packets that were lost on the way.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{DropReason, FrameEvent, FrameStage, Packet, PortId, RtpBody, RtpStream, Time};

use crate::outcome::{CompletingPacket, Freeze, LostPacket, RepairStep};

/// Freezes that are kept; further ones are only counted.
const MOST_FREEZES: usize = 200;
/// Lost packets that a freeze names; further ones are only counted.
const MOST_LOST: usize = 40;
/// Steps of repair that a freeze has; a packet that never comes is asked for a hundred times.
const MOST_STEPS: usize = 40;
/// Frames, lost packets and steps of repair that are remembered while nothing is shown. Of more frames the first half and the
/// newest ones are remembered: one of these ends the freeze. Of the others the first ones are, as a freeze names these.
const MOST_PENDING: usize = 1 << 12;

#[derive(Clone, Debug, Default)]
pub(super) struct FreezeLog {
    /// Frames that have not been shown, by the time of their capture.
    frames: VecDeque<Frame>,
    /// How many have been encoded.
    encoded: u32,
    /// Packets of frames that have not been shown, by the capture of their frames.
    lost: VecDeque<(Time, LostPacket)>,
    /// How many there are that `lost` has no place for, by frame; of many frames, by several that follow each other.
    more_lost: VecDeque<(Time, u32)>,
    /// What was done about lost packets since there are some.
    repairs: VecDeque<RepairStep>,
    /// The packet that arrived last. When a frame is received, it is the one that made it complete.
    arrived: Option<Arrived>,
    shown: Option<Shown>,
    found: Vec<Freeze>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u32,
    captured: Time,
    /// Never, until it is.
    sent: Time,
    received: Time,
    last: Option<Arrived>,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    sequence: u32,
    is_repair: bool,
    sent: Time,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    number: u32,
    at: Time,
}

impl FreezeLog {
    #[inline(always)]
    pub(super) fn on_arrived(&mut self, packet: &Packet, rtp: &RtpBody) {
        let is_repair = rtp.stream == RtpStream::Repair;
        self.arrived = Some(Arrived { sequence: rtp.sequence, is_repair, sent: packet.sent });
    }

    /// A packet of video was restored from parity, with the help of one that left at `sent`.
    pub(super) fn on_restored(&mut self, sequence: u32, sent: Time) {
        self.arrived = Some(Arrived { sequence, is_repair: false, sent });
    }

    pub(super) fn on_asked(&mut self, now: Time, sequence: u32) {
        self.on_repair(RepairStep { sequence, at: now, is_copy: false });
    }

    /// A copy of a packet of video leaves.
    pub(super) fn on_copy(&mut self, now: Time, sequence: u32) {
        self.on_repair(RepairStep { sequence, at: now, is_copy: true });
    }

    fn on_repair(&mut self, step: RepairStep) {
        if self.repairs.len() < MOST_PENDING {
            self.repairs.push_back(step);
        }
    }

    pub(super) fn on_dropped(
        &mut self,
        now: Time,
        place: PortId,
        why: DropReason,
        packet: &Packet,
        rtp: &RtpBody,
    ) {
        if let RtpStream::Audio | RtpStream::Fec | RtpStream::Padding = rtp.stream {
            return;
        }
        if self.lost.len() == MOST_PENDING {
            return self.count_lost(rtp.captured);
        }
        let lost = LostPacket {
            sequence: rtp.sequence,
            frame: rtp.frame,
            is_repair: rtp.stream == RtpStream::Repair,
            sent: packet.sent,
            lost: now,
            place,
            why,
        };
        self.lost.push_back((rtp.captured, lost));
    }

    /// Counts a lost packet of the frame that was captured then.
    #[cold]
    fn count_lost(&mut self, captured: Time) {
        match self.more_lost.back_mut() {
            Some((newest, count)) if captured <= *newest => *count += 1,
            _ => self.more_lost.push_back((captured, 1)),
        }
        if self.more_lost.len() > MOST_PENDING {
            let pairs = self.more_lost.make_contiguous().chunks(2);
            let joined = |pair: &[(Time, u32)]| {
                let (newest, _) = pair[pair.len() - 1];
                (newest, pair.iter().map(|(_, count)| count).sum())
            };
            self.more_lost = pairs.map(joined).collect();
        }
    }

    /// `froze` tells of a frame that is shown whether the wait for it was a freeze or a pause.
    pub(super) fn on_frame(&mut self, now: Time, event: &FrameEvent, froze: bool) {
        match event.stage {
            FrameStage::Encoded => {
                if self.frames.len() == MOST_PENDING {
                    self.frames.remove(MOST_PENDING / 2);
                }
                self.frames.push_back(Frame {
                    number: self.encoded,
                    captured: event.captured,
                    sent: Time::NEVER,
                    received: Time::NEVER,
                    last: None,
                });
                self.encoded += 1;
            }
            FrameStage::Sent => {
                if let Some(frame) = self.frame(event.captured) {
                    frame.sent = now;
                }
            }
            FrameStage::Received => {
                // The packets of some applications can't be told apart.
                let last = self.arrived;
                if let Some(frame) = self.frame(event.captured) {
                    frame.received = now;
                    frame.last = last;
                }
            }
            FrameStage::Decoded | FrameStage::Dropped | FrameStage::Skipped => {}
            FrameStage::Rendered => self.on_shown(now, event.captured, froze),
        }
    }

    /// At the end the picture stands still, up to `until`, and no frame has ended that: the first one that was not shown stands for it.
    pub(super) fn on_end(&mut self, until: Time) {
        let Some(frame) = self.frames.front().copied() else { return };
        let found = self.found.len();
        self.explain(until, frame.captured, true);
        let later = core::mem::take(&mut self.lost);
        if let Some(freeze) = self.found.get_mut(found) {
            freeze.never_shown = self.encoded - frame.number;
            later.into_iter().for_each(|(_, lost)| name(freeze, lost));
            freeze.lost_packets += self.more_lost.iter().map(|(_, count)| count).sum::<u32>();
            freeze.repairs = steps_for(&freeze.lost, &self.repairs);
        }
    }

    pub(super) fn found(self) -> Vec<Freeze> {
        self.found
    }

    fn frame(&mut self, captured: Time) -> Option<&mut Frame> {
        self.frames.iter_mut().rfind(|frame| frame.captured == captured)
    }

    #[inline]
    fn on_shown(&mut self, now: Time, captured: Time, froze: bool) {
        let has_losses = !(self.lost.is_empty() && self.more_lost.is_empty());
        if froze || has_losses || !self.repairs.is_empty() {
            return self.explain(now, captured, froze);
        }
        let frame = self.pass_to(captured);
        self.shown = Some(Shown { number: frame.number, at: now });
    }

    /// Forgets the frames up to the one that was captured then, and returns that. If it had been forgotten, it is taken for the
    /// one after the last that is known.
    #[inline]
    fn pass_to(&mut self, captured: Time) -> Frame {
        let mut passed = None;
        while let Some(frame) = self.frames.pop_front_if(|frame| frame.captured <= captured) {
            passed = Some(frame);
        }
        match passed {
            Some(frame) if frame.captured == captured => frame,
            _ => {
                let last =
                    passed.map(|frame| frame.number).max(self.shown.map(|shown| shown.number));
                Frame {
                    number: last.map_or(0, |number| number + 1),
                    captured,
                    sent: Time::NEVER,
                    received: Time::NEVER,
                    last: None,
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn explain(&mut self, now: Time, captured: Time, froze: bool) {
        let frame = self.pass_to(captured);
        let before = self.shown.replace(Shown { number: frame.number, at: now });
        let known = |at: Time| (!at.is_never()).then_some(at);
        let mut freeze =
            before.filter(|_| froze && self.found.len() < MOST_FREEZES).map(
                |Shown { number, at }| Freeze {
                    from: at,
                    to: now,
                    after: number,
                    frame: frame.number,
                    captured,
                    sent: known(frame.sent),
                    received: known(frame.received),
                    last: frame.last.map(|Arrived { sequence, is_repair, sent }| {
                        CompletingPacket { sequence, is_repair, sent, arrived: frame.received }
                    }),
                    never_shown: frame.number.saturating_sub(number + 1),
                    lost: Vec::new(),
                    lost_packets: 0,
                    repairs: Vec::new(),
                },
            );
        self.lost.retain(|(of, lost)| {
            let is_passed = *of <= captured;
            if is_passed && let Some(freeze) = &mut freeze {
                name(freeze, *lost);
            }
            !is_passed
        });
        let mut more = 0;
        while let Some((_, count)) = self.more_lost.pop_front_if(|(of, _)| *of <= captured) {
            more += count;
        }
        if let Some(freeze) = &mut freeze {
            freeze.lost_packets += more;
            freeze.repairs = steps_for(&freeze.lost, &self.repairs);
        }
        self.forget_steps();
        self.found.extend(freeze);
    }

    /// Forgets what was done about packets before the first one that is lost.
    fn forget_steps(&mut self) {
        match self.lost.iter().map(|(_, lost)| lost.sequence).min() {
            Some(first) => self.repairs.retain(|step| step.sequence >= first),
            None => self.repairs.clear(),
        }
    }
}

/// The freeze has one more lost packet, which is named if few are.
fn name(freeze: &mut Freeze, lost: LostPacket) {
    freeze.lost_packets += 1;
    if freeze.lost.len() < MOST_LOST {
        freeze.lost.push(lost);
    }
}

/// The first steps about these packets.
fn steps_for(lost: &[LostPacket], repairs: &VecDeque<RepairStep>) -> Vec<RepairStep> {
    let is_of = |step: &&RepairStep| lost.iter().any(|lost| lost.sequence == step.sequence);
    repairs.iter().filter(is_of).take(MOST_STEPS).copied().collect()
}
