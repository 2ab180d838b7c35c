//! What happens to a call's frames and packets, and what its rate controller wants.

use alloc::boxed::Box;

use sojourn_core::{
    FecEvent, FrameEvent, FrameStage, Packet, Queued, RateControl, RtpBody, RtpStream, Span, Time,
    VoiceEvent,
};

use super::freezes::FreezeLog;
use super::mbps;
use super::offsets::Offsets;
use crate::histogram::Histogram;
use crate::outcome::{MediaCounts, MediaMetrics, VoiceCounts, VoiceMetrics};
use crate::series::FlowRow;

#[derive(Clone, Debug, Default)]
pub(super) struct Media {
    total: MediaCounts,
    at_warmup: MediaCounts,
    at_row: MediaCounts,
    sent_in_row: u64,
    arrived_in_row: u64,
    control: Option<RateControl>,
    target: Histogram,
    buffered: Histogram,
    pub(super) freezes: FreezeLog,
    voice: Voice,
}

/// What the listener gets.
#[derive(Clone, Debug, Default)]
struct Voice {
    total: VoiceCounts,
    at_warmup: VoiceCounts,
    delay: Histogram,
    buffered: Histogram,
    target: Histogram,
    /// The delay of the frame of sound that is heard; `None` while none is.
    heard: Option<Span>,
    /// Once a frame of video was shown while sound was heard.
    offsets: Option<Box<Offsets>>,
}

impl Media {
    /// `froze` tells of a frame that is shown whether the wait for it was a freeze or a pause.
    pub(super) fn on_frame(&mut self, now: Time, frame: &FrameEvent, froze: bool) {
        self.freezes.on_frame(now, frame, froze);
        let total = &mut self.total;
        match frame.stage {
            FrameStage::Encoded => {
                total.encoded += 1;
                total.encoded_bytes += u64::from(frame.bytes);
                total.key += u64::from(frame.is_key);
            }
            FrameStage::Sent => total.sent += 1,
            FrameStage::Received => total.received += 1,
            FrameStage::Decoded => {
                total.decoded += 1;
                self.buffered.record(frame.buffered.as_nanos());
            }
            FrameStage::Rendered => {
                total.rendered += 1;
                if let Some(sound) = self.voice.heard {
                    let offsets = self.voice.offsets.get_or_insert_default();
                    offsets.on_frame(now.since(frame.captured), sound);
                }
            }
            FrameStage::Dropped => total.dropped += 1,
            FrameStage::Skipped => {}
        }
    }

    pub(super) fn on_voice(&mut self, event: &VoiceEvent) {
        let Voice { total, delay: delays, buffered: waits, target: targets, heard, .. } =
            &mut self.voice;
        match *event {
            VoiceEvent::Played { delay, buffered, target, length, .. } => {
                total.played += 1;
                total.heard += length;
                delays.record(delay.as_nanos());
                waits.record(buffered.as_nanos());
                targets.record(target.as_nanos());
                *heard = Some(delay);
            }
            VoiceEvent::Concealed { length, begins } => {
                total.heard += length;
                total.concealed += length;
                total.concealments += u64::from(begins);
                *heard = None;
            }
            VoiceEvent::Silent { length } => {
                total.heard += length;
                total.silent += length;
                *heard = None;
            }
            VoiceEvent::Removed { length } => {
                total.heard = total.heard.saturating_sub(length);
                total.removed += length;
            }
            VoiceEvent::Inserted { length } => {
                total.heard += length;
                total.inserted += length;
            }
            VoiceEvent::Discarded => total.discarded += 1,
        }
    }

    pub(super) fn on_nack(&mut self, packets: u32) {
        self.total.nacks += 1;
        self.total.nacked_packets += u64::from(packets);
    }

    pub(super) fn on_key_request(&mut self) {
        self.total.key_requests += 1;
    }

    pub(super) fn on_fec(&mut self, event: FecEvent) {
        match event {
            FecEvent::Sent { bytes } => {
                self.sent_in_row += u64::from(bytes);
                self.total.fec_packets += 1;
                self.total.fec_bytes += u64::from(bytes);
            }
            FecEvent::Arrived { bytes } => self.arrived_in_row += u64::from(bytes),
            FecEvent::Restored { sequence, sent } => {
                self.total.fec_recovered += 1;
                self.freezes.on_restored(sequence, sent);
            }
        }
    }

    pub(super) fn on_rate_control(&mut self, control: &RateControl) {
        self.control = Some(*control);
    }

    /// What else than video is sent.
    pub(super) fn on_other_sent(&mut self, now: Time, rtp: &RtpBody) {
        match rtp.stream {
            RtpStream::Repair => {
                self.total.repair_packets += 1;
                self.freezes.on_copy(now, rtp.sequence);
            }
            RtpStream::Padding => self.total.padding_packets += 1,
            RtpStream::Audio => self.voice.total.sent += 1,
            RtpStream::Video | RtpStream::Fec => {}
        }
    }

    pub(super) fn on_arrived(&mut self, packet: &Packet, rtp: &RtpBody) {
        self.arrived_in_row += u64::from(packet.ip_len());
        self.freezes.on_arrived(packet, rtp);
    }

    pub(super) fn end_warmup(&mut self) {
        self.at_warmup = self.total;
        self.target.clear();
        self.buffered.clear();
        self.voice.at_warmup = self.voice.total;
        self.voice.delay.clear();
        self.voice.buffered.clear();
        self.voice.target.clear();
        if let Some(offsets) = &mut self.voice.offsets {
            offsets.end_warmup();
        }
    }

    /// Fills in what is of calls only, in which so many bytes were sent. A call that has stopped has no target.
    #[inline]
    pub(super) fn close_row(
        &mut self,
        length: Span,
        has_stopped: bool,
        sent: u64,
        row: &mut FlowRow,
    ) {
        if let Some(control) = self.control {
            self.sent_in_row += sent;
            self.fill_row_of_call(length, row);
            if !has_stopped {
                self.fill_row_of_control(&control, row);
            }
        }
        self.at_row = self.total;
        self.sent_in_row = 0;
        self.arrived_in_row = 0;
    }

    #[inline(never)]
    fn fill_row_of_call(&mut self, length: Span, row: &mut FlowRow) {
        let frames = self.total - self.at_row;
        row.sent_mbps = mbps(self.sent_in_row, length) as f32;
        row.received_mbps = mbps(self.arrived_in_row, length) as f32;
        row.frames_encoded = frames.encoded as f32;
        row.frames_rendered = frames.rendered as f32;
        row.frames_dropped = frames.dropped as f32;
        if let Some(offsets) = &mut self.voice.offsets {
            row.av_offset_mean_ms = offsets.close_row();
        }
    }

    fn fill_row_of_control(&mut self, control: &RateControl, row: &mut FlowRow) {
        let known = |bits: Option<f64>| bits.map_or(f32::NAN, |bits| (bits / 1e6) as f32);
        self.target.record(control.target.as_bps());
        row.target_mbps = control.target.as_mbps() as f32;
        row.delay_based_mbps = known(control.delay_based);
        row.loss_based_mbps = known(control.loss_based);
        row.acknowledged_mbps = known(control.acknowledged);
    }

    pub(super) fn finish(self) -> MediaMetrics {
        MediaMetrics {
            is_call: self.control.is_some(),
            whole: self.total,
            after_warmup: self.total - self.at_warmup,
            target: self.target.distribution(),
            buffered: self.buffered.distribution(),
            freezes: self.freezes.found(),
            voice: VoiceMetrics {
                whole: self.voice.total,
                after_warmup: self.voice.total - self.voice.at_warmup,
                delay: self.voice.delay.distribution(),
                buffered: self.voice.buffered.distribution(),
                target: self.voice.target.distribution(),
                offset: self.voice.offsets.map(|offsets| offsets.finish()).unwrap_or_default(),
            },
        }
    }
}
