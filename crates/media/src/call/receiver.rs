//! The receiving end of a call.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{
    Body, Direction, Event, FecEvent, FrameEvent, FrameStage, Packet, Purpose, Queued, RtpBody,
    RtpStream, Span, Stream, Time, VoiceEvent, Who,
};
use sojourn_host::{Around, Endpoint, Endpoints, FlowSetup};

use super::sender::next_report;
use super::{CallConfig, CallSpec, Playout, REPORT_INTERVAL, rtcp_packet};
use crate::control::{Arrival, Estimator, FeedbackKind};
use crate::fec::{Arrived, FecScheme, Protected, Recovery};
use crate::receive::{
    Assembler, COMPARE_EVERY, Jitter, LipSync, Missing, NetEq, Newest, RoundTrip, Statistics, TICK,
    Timing, Whole,
};
use crate::rtcp::{
    self, Block, CcfbArrivals, Extended, Message, Nack, ReceiverReport, ReferenceTime, Remb, SRTCP,
    SenderReport, TwccArrivals, ntp_middle, unwrap, write_key_request,
};
use crate::rtp::{
    IP_UDP, RTP, RTX, SRTP, VIDEO_CLOCK, VOICE_CLOCK, abs_send_time, video_ticks, voice_ticks,
};

/// With `PARITY`, a receiver of a call with forward error correction; apart, so that others take no step for it.
pub(super) struct Receiver<const PARITY: bool> {
    ends: Endpoints,
    start: Time,
    /// Bytes of headers around a packet's payload.
    around: u32,
    nack: bool,
    nack_again: bool,
    round_trip: KnownRtt,
    nack_wait: Span,
    fec: Option<Box<Fec>>,
    playout: Playout,
    held_packets: u32,
    showing: Span,
    interval: Span,
    /// With a number, a report also follows that many packets, and the end of each frame.
    report_packets: Option<u32>,
    /// Packets since the last report.
    unreported: u32,
    decoding: Span,
    frame_wait: Span,
    key_wait: Span,
    feedback: Feedback,
    missing: Missing,
    assembler: Assembler,
    jitter: Jitter,
    timing: Timing,
    statistics: Statistics,
    audio: Option<Audio>,
    /// When each frame is decoded, and when each decoded one is shown.
    decodes: VecDeque<(Time, Whole)>,
    shows: VecDeque<(Time, Whole)>,
    /// The earlier of their first times.
    frame_at: Time,
    decoder_free: Time,
    /// Whether voices or an estimator have times of their own.
    has_voice_or_estimator: bool,
    /// Messages that wait to be sent.
    outbox: VecDeque<Vec<u8>>,
    /// Bytes of the largest request for packets.
    largest_message: usize,
    feedback_at: Time,
    again_at: Time,
    report_at: Time,
    /// When it asks for a key frame if no frame comes; `NEVER` before the first packet.
    patience: Time,
    /// When the newest packet of video came, and the newest of a key frame.
    heard_at: Time,
    key_heard_at: Option<Time>,
    number: u32,
    random: Stream,
}

/// The voice beside the video.
struct Audio {
    neteq: NetEq,
    statistics: Statistics,
    /// Whether reports on packets include its packets.
    has_feedback: bool,
    /// Bytes around a packet's payload.
    around: u32,
    /// When the next sound is given out; it ends when the sender has stopped and nothing is left.
    tick_at: Time,
    stop: Time,
    lip_sync: Option<LipSync>,
    /// When it is next compared with the video.
    compare_at: Time,
}

/// Parity of the video.
struct Fec {
    scheme: FecScheme,
    recovery: Recovery,
    /// The newest number in transport-wide feedback.
    transport: u32,
}

impl Fec {
    fn new(scheme: FecScheme) -> Self {
        Self { scheme, recovery: Recovery::default(), transport: 0 }
    }
}

/// The round trip that pictures wait for while losses are repaired.
enum KnownRtt {
    Told(Span),
    Measured(RoundTrip),
}

impl KnownRtt {
    fn new(spec: &CallSpec) -> Self {
        match (spec.known_rtt, spec.playout) {
            (Some(rtt), _) => Self::Told(rtt),
            // aiortc's pictures never wait for it.
            (None, Playout::NextFrame) => Self::Told(Span::ZERO),
            (None, Playout::Adaptive) => Self::Measured(RoundTrip::default()),
        }
    }

    /// Returns the longest of the last moments, after which the receiver asks again.
    fn on_rtt(&mut self, now: Time, rtt: Span) -> Span {
        match self {
            Self::Told(rtt) => *rtt,
            Self::Measured(round_trip) => round_trip.on_rtt(now, rtt),
        }
    }

    fn longest(&self) -> Span {
        match self {
            Self::Told(rtt) => *rtt,
            Self::Measured(round_trip) => round_trip.longest(),
        }
    }
}

/// What it reports on packets, beside the losses of a stream.
enum Feedback {
    Twcc(TwccArrivals),
    Ccfb(CcfbArrivals),
    Remb(Box<dyn Estimator>),
    None,
}

/// What a packet of any stream says for reports.
struct Heard {
    source: u32,
    is_audio: bool,
    transport: u32,
    ends_frame: bool,
}

/// aiortc remembers missing packets this far back.
const REMEMBERED: u32 = 128;
/// Without a packet for so long, a call is taken to be silent.
const SILENT: Span = Span::from_secs(5);
/// How often it looks for packets to be asked for again, from the start on.
const AGAIN: Span = Span::from_millis(20);
/// Chromium does what is to be done at some time at the next multiple of 1/64 s.
const TICK_OF_TASKS: Span = Span::from_nanos(15_625_000);

/// The next time after `now` to look for them.
fn next_look(start: Time, now: Time) -> Time {
    let tick = TICK_OF_TASKS.as_nanos();
    let mut due = start + AGAIN * (now.since(start).as_nanos() / AGAIN.as_nanos());
    loop {
        let at = Time::from_nanos(due.as_nanos().div_ceil(tick) * tick);
        if at > now {
            return at;
        }
        due += AGAIN;
    }
}

impl<const PARITY: bool> Receiver<PARITY> {
    pub(super) fn new(call: &CallConfig, flow: &FlowSetup<'_>) -> Self {
        let spec = &call.spec;
        let feedback = match call.feedback() {
            FeedbackKind::Twcc => Feedback::Twcc(TwccArrivals::default()),
            FeedbackKind::Ccfb => Feedback::Ccfb(CcfbArrivals::default()),
            FeedbackKind::Remb => {
                call.control.estimator(&call.setup(flow)).map_or(Feedback::None, Feedback::Remb)
            }
            FeedbackKind::ReceiverReports => Feedback::None,
        };
        let around = call.video_packetiser().around();
        let has_voice_or_estimator =
            call.voice().is_some() || matches!(feedback, Feedback::Remb(_));
        let has_lip_sync = spec.lip_sync && spec.playout == Playout::Adaptive;
        // The sender draws from the flow's own stream; this end's has another name.
        let mut name = alloc::string::String::from(flow.name);
        name.push_str(" receiver");
        Self {
            ends: flow.ends,
            start: flow.start,
            around,
            nack: spec.nack,
            nack_again: spec.nack_again,
            round_trip: KnownRtt::new(spec),
            nack_wait: if spec.nack_again { spec.nack_wait } else { Span::ZERO },
            fec: spec.fec.map(|scheme| Box::new(Fec::new(scheme))),
            playout: spec.playout,
            held_packets: spec.held_packets,
            showing: spec.showing,
            interval: spec.feedback_interval.unwrap_or(call.control.feedback_interval()),
            report_packets: call.control.feedback_packets(),
            unreported: 0,
            decoding: spec.decoding,
            frame_wait: spec.frame_wait,
            key_wait: spec.key_wait,
            feedback,
            missing: match spec.nack_again {
                true => Missing::new(spec.nack_rtt, spec.nack_wait),
                false => Missing::of_last(REMEMBERED),
            },
            assembler: Assembler::new(),
            jitter: Jitter::new(),
            timing: Timing::new(spec.decoding, spec.showing, spec.playout_delay),
            statistics: Statistics::new(RtpStream::Video, VIDEO_CLOCK),
            audio: call.voice().map(|voice| Audio {
                neteq: NetEq::new(voice.frame),
                statistics: Statistics::new(RtpStream::Audio, VOICE_CLOCK),
                has_feedback: spec.audio_feedback,
                around: call.packetiser().around(),
                tick_at: Time::NEVER,
                stop: flow.stop,
                lip_sync: has_lip_sync.then(|| LipSync::new(VOICE_CLOCK, VIDEO_CLOCK)),
                compare_at: if has_lip_sync { flow.start + COMPARE_EVERY } else { Time::NEVER },
            }),
            decodes: VecDeque::new(),
            shows: VecDeque::new(),
            frame_at: Time::NEVER,
            decoder_free: Time::ZERO,
            has_voice_or_estimator,
            outbox: VecDeque::new(),
            largest_message: spec.packet.as_u64() as usize - (SRTCP - SRTP) as usize,
            feedback_at: Time::NEVER,
            again_at: Time::NEVER,
            report_at: Time::NEVER,
            patience: Time::NEVER,
            heard_at: Time::ZERO,
            key_heard_at: None,
            number: 0,
            random: flow.address.stream_named(&name, Purpose::Application),
        }
    }

    fn on_media(&mut self, now: Time, rtp: &RtpBody, packet: &Packet, around: &mut Around<'_>) {
        if rtp.stream == RtpStream::Audio
            && let Some(audio) = &mut self.audio
        {
            audio.on_packet(now, rtp, packet);
            if !audio.has_feedback {
                return;
            }
        }
        let heard = Heard {
            source: rtp.stream.source(),
            is_audio: rtp.stream == RtpStream::Audio,
            transport: rtp.transport,
            ends_frame: rtp.stream == RtpStream::Video && rtp.part + 1 == rtp.parts,
        };
        self.note(now, &heard, packet, || (abs_send_time(rtp.stamp), video_ticks(rtp.captured)));
        let extra = match rtp.stream {
            RtpStream::Padding | RtpStream::Audio | RtpStream::Fec => return,
            RtpStream::Video => 0,
            RtpStream::Repair => RTX,
        };
        if rtp.stream == RtpStream::Video {
            self.statistics.on_packet(now, rtp.sequence, rtp.captured);
        }
        let payload = packet.ip_len().saturating_sub(self.around + extra);
        self.take(now, rtp, payload, around);
        if PARITY {
            self.help_parity(now, rtp, payload, packet.sent, around);
        }
    }

    /// Notes a packet of any stream for reports. `times` are its abs-send-time and RTP timestamp.
    #[inline(always)]
    fn note(
        &mut self,
        now: Time,
        heard: &Heard,
        packet: &Packet,
        times: impl FnOnce() -> (u32, u32),
    ) {
        match &mut self.feedback {
            Feedback::Twcc(arrivals) => arrivals.on_packet(heard.transport, now),
            Feedback::Ccfb(arrivals) => {
                arrivals.on_packet(heard.source, heard.transport, now, packet.ecn);
            }
            Feedback::Remb(estimator) => {
                let (abs_send_time, rtp_timestamp) = times();
                let estimate = estimator.on_arrival(&Arrival {
                    now,
                    abs_send_time,
                    size: packet.ip_len() - IP_UDP,
                    payload: packet.ip_len().saturating_sub(self.around),
                    ecn: packet.ecn,
                    rtp_timestamp,
                    stream: u8::from(heard.is_audio),
                });
                self.outbox.extend(estimate.map(|rate| Remb { rate }.write()));
            }
            Feedback::None => {}
        }
        if self.feedback_at.is_never()
            && matches!(self.feedback, Feedback::Twcc(_) | Feedback::Ccfb(_))
        {
            let interval = self.interval.as_nanos();
            self.feedback_at = Time::from_nanos((now.as_nanos() / interval + 1) * interval);
        }
        self.unreported += 1;
        if self.report_packets.is_some_and(|most| heard.ends_frame || self.unreported >= most) {
            self.report_arrivals(now);
        }
    }

    /// Takes a packet of video that arrived, came once more, or was restored.
    #[inline(always)]
    fn take(&mut self, now: Time, rtp: &RtpBody, payload: u32, around: &mut Around<'_>) {
        if self.patience.is_never() {
            self.wait_for_frame(now);
            self.report_at = now + next_report(&mut self.random, REPORT_INTERVAL);
        }
        self.heard_at = now;
        if rtp.is_key {
            self.key_heard_at = Some(now);
            if rtp.part == 0 {
                self.missing.on_key(rtp.sequence);
            }
        }
        if self.nack {
            self.look_for_gap(now, rtp.sequence, around);
        }
        if self.playout == Playout::NextFrame && self.assembler.begin_anew(rtp) {
            self.ask_for_key(now, around);
        }
        if let Some(whole) = self.assembler.on_packet(now, rtp, payload) {
            self.tell(now, around, FrameStage::Received, &whole);
            if self.playout == Playout::Adaptive {
                self.advance(now, around);
                self.note_next_frame();
            }
        }
        if self.playout == Playout::NextFrame {
            self.advance_behind_next(now, around);
            self.note_next_frame();
        }
    }

    /// A packet with this number in the video's stream has come: those before it may be missing.
    #[inline(always)]
    fn look_for_gap(&mut self, now: Time, sequence: u32, around: &mut Around<'_>) {
        if !self.missing.goes_on(sequence) {
            self.look_into_gap(now, sequence, around);
        }
    }

    #[inline(never)]
    fn look_into_gap(&mut self, now: Time, sequence: u32, around: &mut Around<'_>) {
        let gap = self.missing.on_packet(now, sequence);
        self.ask(now, &gap.wanted, around);
        if gap.needs_key {
            self.ask_for_key(now, around);
        }
        if self.nack_again && !self.missing.is_empty() {
            if self.again_at.is_never() {
                self.again_at = next_look(self.start, now);
            }
            if !self.nack_wait.is_zero() {
                self.again_at = self.again_at.min(self.missing.first_due());
            }
        }
    }

    /// A packet of video may be the one that parity waits for.
    #[inline(never)]
    fn help_parity(
        &mut self,
        now: Time,
        rtp: &RtpBody,
        payload: u32,
        sent: Time,
        around: &mut Around<'_>,
    ) {
        let behind_header = payload + self.extensions();
        let Some(fec) = &mut self.fec else { return };
        fec.transport = fec.transport.max(rtp.transport);
        let restored = fec.recovery.on_packet(Protected {
            sequence: rtp.sequence,
            frame: rtp.frame,
            part: rtp.part,
            parts: rtp.parts,
            captured: rtp.captured,
            is_key: rtp.is_key,
            length: behind_header as u16,
        });
        self.take_restored(now, &restored, sent, around);
    }

    fn on_parity(
        &mut self,
        now: Time,
        arrived: &Arrived,
        packet: &Packet,
        around: &mut Around<'_>,
    ) {
        let Some(fec) = &mut self.fec else { return };
        let bytes = packet.ip_len();
        let event = FecEvent::Arrived { bytes };
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::Fec(&event));
        let (scheme, newest) = (fec.scheme, fec.recovery.newest());
        let transport = unwrap(fec.transport, arrived.transport);
        let heard =
            Heard { source: scheme.source(), is_audio: false, transport, ends_frame: false };
        self.note(now, &heard, packet, || (arrived.abs_send_time, arrived.timestamp));
        if scheme == FecScheme::Ulpfec {
            let sequence = unwrap(newest, arrived.sequence);
            let since = f64::from(video_ticks(now).wrapping_sub(arrived.timestamp))
                / f64::from(VIDEO_CLOCK);
            let captured = now - Span::from_secs_f64(since).min(now.since(Time::ZERO));
            self.statistics.on_packet(now, sequence, captured);
            if self.nack {
                self.look_for_gap(now, sequence, around);
            }
        }
        let Some(fec) = &mut self.fec else { return };
        let restored = fec.recovery.on_parity(arrived.parity.near(newest));
        self.take_restored(now, &restored, packet.sent, around);
    }

    /// Takes packets that were restored with the help of one that left at `sent`.
    fn take_restored(
        &mut self,
        now: Time,
        restored: &[Protected],
        sent: Time,
        around: &mut Around<'_>,
    ) {
        for packet in restored {
            let event = FecEvent::Restored { sequence: packet.sequence, sent };
            around.observer.record(now, Who::Flow(self.ends.flow), &Event::Fec(&event));
            let payload = u32::from(packet.length).saturating_sub(self.extensions());
            self.take(now, &packet.body(), payload, around);
        }
    }

    /// Bytes of header extensions of a packet of video, which parity protects.
    fn extensions(&self) -> u32 {
        let red = self.fec.as_ref().map_or(0, |fec| fec.scheme.per_packet());
        self.around - IP_UDP - RTP - SRTP - red
    }

    /// Decodes each frame behind which a packet of a later frame has come. Gives up the oldest frames if
    /// they and what came behind them are more packets than it holds.
    fn advance_behind_next(&mut self, now: Time, around: &mut Around<'_>) {
        loop {
            while let Some(whole) = self.assembler.pop_behind_next() {
                self.wait_for_frame(now);
                self.decoder_free = now.max(self.decoder_free) + self.decoding;
                self.decodes.push_back((self.decoder_free, whole));
                self.shows.push_back((self.decoder_free + self.showing, whole));
            }
            let dropped = self.assembler.give_up(self.held_packets);
            if dropped == 0 {
                return;
            }
            let Some(next) = self.assembler.next_known() else { return };
            for _ in 0..dropped {
                self.tell(now, around, FrameStage::Dropped, &next);
            }
            self.ask_for_key(now, around);
        }
    }

    /// Sends the frames that can be decoded on to the decoder.
    fn advance(&mut self, now: Time, around: &mut Around<'_>) {
        while let Some((whole, dropped)) = self.assembler.pop() {
            self.wait_for_frame(now);
            for _ in 0..dropped {
                self.tell(now, around, FrameStage::Dropped, &whole);
            }
            // What is missing before a frame that follows the one before can only be parity.
            if dropped > 0 || PARITY && !self.missing.is_empty() {
                self.missing.forget_before(whole.sequence);
            }
            let Whole { captured, completed, bytes, was_repaired, .. } = whole;
            if was_repaired {
                self.jitter.on_repaired(completed);
            } else {
                self.jitter.on_frame(captured, completed, bytes);
                self.timing.on_arrival(captured, completed);
                self.timing.set_jitter(self.jitter.estimate(now, self.round_trip.longest()));
            }
            let ready = now.max(self.decoder_free);
            let (decode, shown) = self.timing.schedule(ready, captured, was_repaired);
            self.decoder_free = decode + self.decoding;
            self.decodes.push_back((self.decoder_free, whole));
            self.shows.push_back((shown, whole));
        }
    }

    fn note_next_frame(&mut self) {
        let front = |queue: &VecDeque<(Time, Whole)>| queue.front().map_or(Time::NEVER, |f| f.0);
        self.frame_at = front(&self.decodes).min(front(&self.shows));
    }

    fn tell(&self, now: Time, around: &mut Around<'_>, stage: FrameStage, whole: &Whole) {
        let buffered = match stage {
            FrameStage::Decoded => now.since(whole.first_arrival).saturating_sub(self.decoding),
            _ => Span::ZERO,
        };
        let Whole { captured, bytes, is_key, .. } = *whole;
        let frame = FrameEvent { stage, captured, bytes, is_key, buffered };
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::Frame(&frame));
    }

    fn ask(&mut self, now: Time, sequences: &[u32], around: &mut Around<'_>) {
        let who = Who::Flow(self.ends.flow);
        for sequence in sequences {
            around.observer.record(now, who, &Event::Asked { sequence: *sequence });
        }
        let low = sequences.iter().map(|sequence| *sequence as u16);
        for nack in Nack::split(low, self.largest_message) {
            let packets = nack.sequences.len() as u32;
            around.observer.record(now, who, &Event::Nack { packets });
            self.outbox.push_back(nack.write());
        }
    }

    fn ask_for_key(&mut self, now: Time, around: &mut Around<'_>) {
        self.wait_for_frame(now);
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::KeyRequest);
        self.outbox.push_back(write_key_request());
    }

    /// Reports the packets that arrived, and sets the time of the next report.
    fn report_arrivals(&mut self, now: Time) {
        match &mut self.feedback {
            Feedback::Twcc(arrivals) => {
                while let Some(report) = arrivals.report() {
                    self.outbox.push_back(report);
                }
            }
            Feedback::Ccfb(arrivals) => {
                while let Some(report) = arrivals.report(now) {
                    self.outbox.push_back(report.write());
                }
            }
            Feedback::Remb(_) | Feedback::None => {}
        }
        self.feedback_at = now + self.interval;
        self.unreported = 0;
    }

    fn on_sender_report(&mut self, now: Time, report: &SenderReport) {
        let is_audio = report.source == RtpStream::Audio.source();
        if !is_audio {
            self.statistics.on_sender_report(now, report.sent);
        }
        let Some(audio) = &mut self.audio else { return };
        if is_audio {
            audio.statistics.on_sender_report(now, report.sent);
        }
        match &mut audio.lip_sync {
            Some(lip_sync) if is_audio => lip_sync.on_voice_report(report),
            Some(lip_sync) => lip_sync.on_video_report(report),
            None => {}
        }
    }

    /// A frame came, or a key frame was asked for: its patience begins anew.
    fn wait_for_frame(&mut self, now: Time) {
        let wait = if self.assembler.needs_key() { self.key_wait } else { self.frame_wait };
        self.patience = now + wait;
    }
}

impl Audio {
    fn on_packet(&mut self, now: Time, rtp: &RtpBody, packet: &Packet) {
        let payload = packet.ip_len().saturating_sub(self.around);
        self.statistics.on_packet(now, rtp.sequence, rtp.captured);
        self.neteq.on_packet(now, rtp.sequence, rtp.captured, payload);
        if self.tick_at.is_never() {
            self.tick_at = now;
        }
    }

    /// Gives out sound.
    fn on_wake(&mut self, now: Time, who: Who, around: &mut Around<'_>) {
        while self.tick_at <= now {
            self.neteq.tick(now);
            let is_over = now >= self.stop && self.neteq.is_empty();
            self.tick_at = if is_over { Time::NEVER } else { self.tick_at + TICK };
        }
        while let Some(event) = self.neteq.poll_event() {
            if let VoiceEvent::Played { bytes, .. } = event {
                let bytes = bytes.into();
                around.observer.record(now, who, &Event::Delivered { bytes });
            }
            around.observer.record(now, who, &Event::Voice(&event));
        }
    }
}

impl Audio {
    /// Makes the voice wait for the video, or the video for the voice.
    fn align(&mut self, now: Time, video: &Statistics, timing: &mut Timing) {
        let Some(lip_sync) = &mut self.lip_sync else { return };
        if now < self.compare_at {
            return;
        }
        self.compare_at = match now >= self.stop && self.tick_at.is_never() {
            true => Time::NEVER,
            false => now + COMPARE_EVERY,
        };
        let (Some(voice), Some(video)) = (self.statistics.newest(), video.newest()) else { return };
        let voice =
            Newest { timestamp: voice_ticks(voice.0), arrived: voice.1, waits: self.neteq.waits() };
        let video =
            Newest { timestamp: video_ticks(video.0), arrived: video.1, waits: timing.target() };
        let Some(least) = lip_sync.compare(voice, video) else { return };
        if !self.neteq.wait_for_video(least.voice) {
            lip_sync.on_voice_refused();
        }
        timing.wait_for_voice(least.video);
    }
}

impl<const PARITY: bool> Endpoint for Receiver<PARITY> {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        match &packet.body {
            Body::Rtp(rtp) => self.on_media(now, rtp, packet, around),
            Body::Opaque { content, .. } => {
                if PARITY && let Some(parity) = Arrived::read(around.contents.bytes(*content)) {
                    return self.on_parity(now, &parity, packet, around);
                }
                for message in rtcp::messages(around.contents.bytes(*content)) {
                    match message {
                        Message::SenderReport(report) => self.on_sender_report(now, &report),
                        Message::Extended(Extended::SinceReference(answer)) => {
                            let recent = self.round_trip.on_rtt(now, answer.rtt(now));
                            self.missing.set_rtt(recent);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        while let Some((_, whole)) = self.decodes.front().filter(|(at, _)| *at <= now) {
            self.tell(now, around, FrameStage::Decoded, whole);
            let bytes = whole.bytes.into();
            around.observer.record(now, Who::Flow(self.ends.flow), &Event::Delivered { bytes });
            self.decodes.pop_front();
        }
        while let Some((_, whole)) = self.shows.front().filter(|(at, _)| *at <= now) {
            self.tell(now, around, FrameStage::Rendered, whole);
            self.shows.pop_front();
        }
        self.note_next_frame();
        if let Some(audio) = &mut self.audio {
            audio.on_wake(now, Who::Flow(self.ends.flow), around);
            audio.align(now, &self.statistics, &mut self.timing);
        }
        if self.feedback_at <= now {
            self.report_arrivals(now);
        }
        if let Feedback::Remb(estimator) = &mut self.feedback
            && estimator.next_wake() <= now
        {
            let estimate = estimator.on_wake(now);
            self.outbox.extend(estimate.map(|rate| Remb { rate }.write()));
        }
        if self.again_at <= now {
            let again = self.missing.again(now);
            self.ask(now, &again, around);
            self.again_at = match self.nack_wait.is_zero() {
                _ if self.missing.is_empty() => Time::NEVER,
                true => next_look(self.start, now),
                false => self.missing.first_due().min(next_look(self.start, now)),
            };
        }
        if self.report_at <= now {
            let audio = self.audio.as_mut().and_then(|audio| audio.statistics.block(now));
            let blocks: Vec<Block> = self.statistics.block(now).into_iter().chain(audio).collect();
            if !blocks.is_empty() {
                let mut bytes = ReceiverReport { blocks }.write();
                if matches!(self.round_trip, KnownRtt::Measured(_)) {
                    bytes.extend(ReferenceTime { time: ntp_middle(now) }.write());
                }
                self.outbox.push_back(bytes);
            }
            self.report_at = now + next_report(&mut self.random, REPORT_INTERVAL);
        }
        if self.patience <= now {
            // Where nothing comes a key frame would not come either, and one that is on its way need not be asked for again.
            let is_silent = now.since(self.heard_at) > SILENT;
            let comes = self.key_heard_at.is_some_and(|at| now.since(at) < self.key_wait);
            match is_silent || comes {
                true => self.wait_for_frame(now),
                false => self.ask_for_key(now, around),
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        // Mostly there is nothing to say.
        if self.outbox.is_empty() { None } else { self.say(now, around) }
    }

    fn next_wake(&self) -> Time {
        let timers = self.feedback_at.min(self.again_at).min(self.report_at);
        let next = self.frame_at.min(timers).min(self.patience);
        if !self.has_voice_or_estimator {
            return next;
        }
        let estimator = match &self.feedback {
            Feedback::Remb(estimator) => estimator.next_wake(),
            _ => Time::NEVER,
        };
        let sound =
            self.audio.as_ref().map_or(Time::NEVER, |audio| audio.tick_at.min(audio.compare_at));
        next.min(sound).min(estimator)
    }
}

impl<const PARITY: bool> Receiver<PARITY> {
    #[inline(never)]
    fn say(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let bytes = self.outbox.pop_front()?;
        Some(rtcp_packet(&self.ends, Direction::Reverse, &mut self.number, bytes, now, around))
    }
}
