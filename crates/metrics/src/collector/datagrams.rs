//! The datagrams of a flow: which arrive and when, the frames that they make, and what a call does with them.

use alloc::boxed::Box;

use sojourn_core::{FrameEvent, FrameStage, RtpBody, RtpStream, Span, Time};

use super::frames::Frames;
use super::gaps::Gaps;
use super::media::Media;
use crate::histogram::Histogram;
use crate::outcome::MediaMetrics;
use crate::qoe::Jitter;
use crate::series::FlowRow;

#[derive(Clone, Debug, Default)]
pub(super) struct Datagrams {
    pub(super) gaps: Gaps,
    pub(super) ipdv: Histogram,
    pub(super) jitter: Jitter,
    jitter_sum: f64,
    jitter_count: u64,
    pub(super) frames: Frames,
    /// Bytes of packets of media.
    sent_in_row: u64,
    /// Made when it is first needed: most flows have no datagrams, and it is larger than all else that is kept of them.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Debug, Default)]
struct Rest {
    transits: Transits,
    media: Media,
}

impl Datagrams {
    #[inline(always)]
    pub(super) fn media(&mut self) -> &mut Media {
        &mut self.rest.get_or_insert_with(Rest::first).media
    }

    /// Each that is lost will be told of.
    pub(super) fn expect_all_drops(&mut self) {
        self.gaps.is_told = true;
        self.frames.is_told = true;
    }

    #[inline]
    pub(super) fn on_media_sent(&mut self, now: Time, rtp: &RtpBody, bytes: u32) {
        self.gaps.sent += 1;
        self.sent_in_row += u64::from(bytes);
        if matches!(rtp.stream, RtpStream::Repair | RtpStream::Padding | RtpStream::Audio) {
            self.on_other_sent(now, rtp);
        }
    }

    /// A function of its own, so that where media are sent there is no call.
    #[inline(never)]
    fn on_other_sent(&mut self, now: Time, rtp: &RtpBody) {
        self.media().on_other_sent(now, rtp);
    }

    #[inline]
    pub(super) fn on_arrived(&mut self, now: Time, sent: Time, number: u32) -> &mut Media {
        let transit = now.since(sent);
        self.gaps.on_arrived(number, transit);
        self.jitter.on_packet(sent, now);
        if let Some(jitter) = self.jitter.value() {
            self.jitter_sum += jitter;
            self.jitter_count += 1;
        }
        let rest = self.rest.get_or_insert_with(Rest::first);
        rest.transits.on_arrived(number, transit, &mut self.ipdv);
        &mut rest.media
    }

    /// A frame of a call's video; gaps and delays are those of the frames that are shown.
    pub(super) fn on_frame(&mut self, now: Time, frame: &FrameEvent) {
        let mut froze = false;
        match frame.stage {
            FrameStage::Encoded => self.frames.on_encoded(frame.captured),
            FrameStage::Skipped => self.frames.on_offered(frame.captured),
            FrameStage::Rendered => froze = self.frames.on_shown(now, frame.captured),
            FrameStage::Dropped => self.frames.on_given_up(frame.captured),
            FrameStage::Sent | FrameStage::Received | FrameStage::Decoded => {}
        }
        self.media().on_frame(now, frame, froze);
    }

    pub(super) fn end_warmup(&mut self) {
        self.ipdv.clear();
        self.jitter_sum = 0.0;
        self.jitter_count = 0;
        self.gaps.end_warmup();
        self.frames.end_warmup();
        if let Some(rest) = &mut self.rest {
            rest.media.end_warmup();
        }
    }

    pub(super) fn close_row(&mut self, length: Span, has_stopped: bool, row: &mut FlowRow) {
        let delays = self.frames.delays_in_row().unwrap_or([f64::NAN; 2]);
        [row.frame_delay_p50_ms, row.frame_delay_max_ms] = delays.map(|ns| (ns / 1e6) as f32);
        if let Some(rest) = &mut self.rest {
            rest.media.close_row(length, has_stopped, self.sent_in_row, row);
        }
        self.sent_in_row = 0;
    }

    pub(super) fn finish_media(&mut self) -> MediaMetrics {
        self.rest.take().map_or_else(Media::default, |rest| rest.media).finish()
    }

    /// In nanoseconds, after the warm-up.
    pub(super) fn jitter_mean(&self) -> Option<f64> {
        (self.jitter_count > 0).then(|| self.jitter_sum / self.jitter_count as f64)
    }
}

impl Rest {
    #[cold]
    #[inline(never)]
    fn first() -> Box<Self> {
        Box::default()
    }
}

/// How long the last datagrams that arrived had been under way, by their numbers.
#[derive(Clone, Debug)]
struct Transits {
    /// The largest number that arrived, and one that none has before.
    last: (u32, Span),
    /// At the place of a number, divided by their count: it and its time. Where none was, a number that belongs elsewhere.
    kept: [(u32, Span); Self::COUNT],
}

impl Default for Transits {
    fn default() -> Self {
        Self { last: (u32::MAX - 1, Span::ZERO), kept: [(u32::MAX, Span::ZERO); Self::COUNT] }
    }
}

impl Transits {
    /// Of two neighbours of which one is overtaken by more than these, no difference is counted.
    const COUNT: usize = 64;

    /// Takes in a datagram, and counts how much its time differs from that of the one sent just before it, and of the one sent just
    /// after it, if they have arrived.
    #[inline(always)]
    fn on_arrived(&mut self, number: u32, transit: Span, ipdv: &mut Histogram) {
        let (last, before) = self.last;
        if number == last.wrapping_add(1) {
            ipdv.record(transit.as_nanos().abs_diff(before.as_nanos()));
            self.last = (number, transit);
        } else {
            self.on_far(number, transit, ipdv);
        }
        self.kept[number as usize % Self::COUNT] = (number, transit);
    }

    #[inline(never)]
    fn on_far(&mut self, number: u32, transit: Span, ipdv: &mut Histogram) {
        for neighbour in [number.wrapping_sub(1), number.wrapping_add(1)] {
            let (own, other) = self.kept[neighbour as usize % Self::COUNT];
            if own == neighbour && neighbour != u32::MAX {
                ipdv.record(transit.as_nanos().abs_diff(other.as_nanos()));
            }
        }
        if number > self.last.0 || self.last.0 == u32::MAX - 1 {
            self.last = (number, transit);
        }
    }
}
