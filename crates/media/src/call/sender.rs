//! The sending end of a call.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sojourn_core::{
    Body, Direction, Ecn, Event, FecEvent, FrameEvent, FrameStage, Packet, Purpose, Rate,
    RateControl, RtpBody, RtpStream, Span, Stream, Time, Who,
};
use sojourn_host::{Around, Endpoint, Endpoints, FlowSetup};

use super::{CallConfig, Copies, REPORT_INTERVAL, rtcp_packet};
use crate::control::{
    Controller, Feedback, FeedbackKind, Outputs, Outstanding, Purpose as Use, ReceiverReport,
    Report, Sent, Tape, Taped,
};
use crate::fec::{FecScheme, Generator, Header, Parity, Protected, Protection, ProtectionConfig};
use crate::receive::jitter_of;
use crate::rtcp::{
    self, Block, Ccfb, Extended, LARGEST_OFFSET, LastReference, Message, SenderReport,
    SinceReference, Twcc, arrived_at, ntp_middle, unwrap,
};
use crate::rtp::{IP_UDP, RTP, RTX, SRTP, abs_send_time, video_ticks, voice_ticks};
use crate::send::{Adjuster, Item, Pacer, PacerConfig, Packetiser, Release, overhead_of};
use crate::source::{Frame, Setup as SourceSetup, Source, Wanted};

/// With `PARITY`, a sender of a call with forward error correction; apart, so that others take no step for it.
pub(super) struct Sender<const PARITY: bool> {
    ends: Endpoints,
    stop: Time,
    now: Time,
    /// When the packet before left. One of a burst leaves after the other, though they are given to the path at once:
    /// controllers tell packets that left together from those that a queue joined.
    left: Time,
    /// How long the machine takes to send a packet, and until when it is busy with the one before.
    gap: Span,
    busy: Time,
    /// When there is something to do besides sending, as of the last time there was.
    besides_packets: Time,
    /// When it must be woken, and when for more than a packet. They are found out where nothing more can leave, which is where every call of the
    /// engine ends; between, zero stands for what isn't known.
    wake: Time,
    wake_for_more: Time,
    fps: f64,
    min: Rate,
    max: Rate,
    /// Padding repeats a packet.
    repeats: bool,
    source: Box<dyn Source>,
    audio: Option<Audio>,
    control: Box<dyn Controller>,
    packetiser: Packetiser,
    pacer: Pacer,
    /// Frames that were captured and are still in the encoder.
    encoding: VecDeque<Frame>,
    key_wanted: bool,
    /// Requests that come sooner after the last one are ignored.
    key_gap: Span,
    key_asked: Option<Time>,
    feedback: FeedbackKind,
    ecn: Ecn,
    counts_payload: bool,
    /// The change of the rate, as a share, beyond which a new encoder begins; and the rate of this one.
    new_encoder: f64,
    encoder: Rate,
    adjuster: Option<Adjuster>,
    skip_after: Option<Span>,
    /// Pictures captured while some are left out.
    thinned: u32,
    fec: Option<Box<Fec>>,
    outputs: Outputs,
    /// The next number of a packet of any kind, and of one of media.
    number: u32,
    transport: u32,
    /// The last sequence number in the stream of repetitions and padding.
    repairs: u16,
    flight: Flight,
    history: History,
    /// What was sent in the last second: all video, and the part that was sent again.
    sent: Window,
    packets: u32,
    octets: u32,
    report_at: Time,
    /// The stream of which a sender report is due.
    report_due: Option<RtpStream>,
    random: Stream,
    reports: Vec<Report>,
    expected_before: u32,
    last_reference: LastReference,
}

/// The voice beside the video.
struct Audio {
    source: Box<dyn Source>,
    packetiser: Packetiser,
    /// The rate reserved for it, headers included.
    rate: Rate,
    /// Whether reports include its packets.
    has_feedback: bool,
    /// The sound in a packet.
    frame: Span,
    packets: u32,
    octets: u32,
    /// When its next sender report is due, and how long it is until the one after, on average.
    report_at: Time,
    report_interval: Span,
    random: Stream,
}

impl Audio {
    /// There is nothing to report before the first packet.
    fn next_report(&self) -> Time {
        if self.packets > 0 { self.report_at } else { Time::NEVER }
    }
}

/// Parity of the video.
struct Fec {
    scheme: FecScheme,
    protection: Protection,
    generator: Generator,
    /// What waits for its turn, and when the newest packet of each was captured.
    waiting: VecDeque<(Time, Parity)>,
    /// Packets of it that were sent.
    sent: u32,
    extensions: u32,
}

impl Fec {
    fn new(call: &CallConfig, scheme: FecScheme) -> Self {
        let spec = &call.spec;
        Self {
            scheme,
            protection: Protection::new(ProtectionConfig {
                per_loss: spec.fec_per_loss,
                least: spec.fec_least,
                most: spec.fec_most,
                rtt: spec.fec_rtt,
                frames_per_second: spec.fps,
            }),
            generator: Generator::default(),
            waiting: VecDeque::new(),
            sent: 0,
            extensions: call.extensions(),
        }
    }

    /// Its packets that were sent with numbers of the video.
    fn numbers(&self) -> u32 {
        match self.scheme {
            FecScheme::Ulpfec => self.sent,
            FecScheme::Flexfec => 0,
        }
    }

    /// A packet of video leaves, of frames that have `bytes` in the mean; returns the packets of parity that follow.
    fn on_video(&mut self, now: Time, item: &Item, bytes: f64) -> Vec<Item> {
        let length = item.size - IP_UDP - RTP - SRTP - self.scheme.per_packet();
        let protected = Protected {
            sequence: item.sequence,
            frame: item.frame,
            part: item.part,
            parts: item.parts,
            captured: item.captured,
            is_key: item.is_key,
            length: length as u16,
        };
        let amount = || self.protection.amount(now, item.is_key, bytes);
        let parity = self.generator.add(&protected, amount);
        let size = |parity: &Parity| IP_UDP + parity.size(self.scheme, self.extensions) + SRTP;
        let items = parity.iter().map(|parity| Item {
            stream: RtpStream::Fec,
            part: 0,
            parts: 1,
            size: size(parity),
            ..*item
        });
        let items = items.collect();
        self.waiting.extend(parity.into_iter().map(|parity| (item.captured, parity)));
        items
    }
}

/// No frame is left out for a smaller share of the rate.
const LEAST_THINNING: f64 = 0.01;
/// The largest payload of a packet of padding, in bytes.
const PADDING: u32 = 224;
impl<const PARITY: bool> Sender<PARITY> {
    pub(super) fn new(call: &CallConfig, flow: &FlowSetup<'_>) -> Self {
        let spec = &call.spec;
        let start = flow.start;
        let extra = spec.extensions.as_u64() as u32;
        let packetiser = call.video_packetiser();
        let mut random = flow.address.stream_named(flow.name, Purpose::Application);
        let source = call.source.build(SourceSetup {
            start,
            frames_per_second: spec.fps,
            min_rate: spec.min_rate,
            max_rate: spec.max_rate,
            random: random.fork(),
        });
        let report_interval = call.voice_report_interval();
        let audio = call.audio.as_ref().zip(call.voice()).map(|(audio, voice)| Audio {
            source: audio.build(SourceSetup {
                start,
                frames_per_second: spec.fps,
                min_rate: spec.min_rate,
                max_rate: spec.max_rate,
                random: random.fork(),
            }),
            packetiser: call.packetiser(),
            rate: call.voice_rate(),
            has_feedback: spec.audio_feedback,
            frame: voice.frame,
            packets: 0,
            octets: 0,
            report_at: start + report_interval / 2,
            report_interval,
            random: random.fork(),
        });
        let mut control = call.control.build(call.setup(flow));
        let padding = PADDING + RTP + extra + SRTP + IP_UDP;
        let config = PacerConfig {
            burst: spec.pacer_burst.unwrap_or(call.control.pacer_burst()),
            queue_limit: spec.pacer_limit.or(call.control.pacer_limit()),
            padding,
        };
        let mut pacer = Pacer::new(config, start);
        let outputs = control.outputs();
        pacer.set(start, &outputs);
        while let Some(probe) = control.poll_probe() {
            pacer.add_probe(probe);
        }
        Self {
            ends: flow.ends,
            stop: flow.stop,
            now: start,
            left: Time::ZERO,
            gap: spec.packet_gap,
            busy: Time::ZERO,
            besides_packets: Time::ZERO,
            wake: Time::ZERO,
            wake_for_more: Time::ZERO,
            fps: spec.fps,
            min: spec.min_rate,
            max: spec.max_rate,
            repeats: spec.nack && call.copies() == Copies::One,
            source,
            audio,
            control,
            packetiser,
            pacer,
            encoding: VecDeque::new(),
            key_wanted: false,
            key_gap: call.key_gap(),
            key_asked: None,
            feedback: call.feedback(),
            ecn: call.control.ecn(),
            counts_payload: call.control.counts_payload(),
            new_encoder: spec.new_encoder,
            encoder: Rate::ZERO,
            adjuster: call.has_adjuster().then(|| Adjuster::new(spec.fps, start)),
            skip_after: spec.skip_after,
            thinned: 0,
            fec: spec.fec.map(|scheme| Box::new(Fec::new(call, scheme))),
            outputs: Outputs { phase: "", ..outputs },
            number: 0,
            transport: 0,
            repairs: 0,
            flight: Flight::default(),
            history: History::new(call.copies()),
            sent: Window::default(),
            packets: 0,
            octets: 0,
            report_at: start,
            report_due: None,
            random,
            reports: Vec::new(),
            expected_before: 0,
            last_reference: LastReference::default(),
        }
    }

    /// The same sender, whose controller has a tape.
    pub(super) fn with_tape(self, tape: Arc<dyn Tape>) -> Self {
        let control = Taped::new(self.control, tape, self.now, self.stop);
        Self { control: Box::new(control), ..self }
    }

    /// The rate that the encoder may use: the target less headers, repairs and parity, and less a frame in every
    /// `thinning`. An adjuster takes from it, too.
    fn encoder_rate(&mut self, now: Time, thinning: Option<u32>) -> Rate {
        let carried = self.carried();
        let mut rate = carried.max(self.min).min(self.max);
        if let Some(every) = thinning {
            rate = Rate::from_bps(rate.as_bps() - rate.as_bps() / u64::from(every));
        }
        let Some(adjuster) = &mut self.adjuster else { return rate };
        let room = carried.as_bps().saturating_sub(rate.as_bps());
        let lowered = adjuster.lower(now, rate.as_bps() as f64, room as f64);
        Rate::from_bps(lowered as u64).max(self.min)
    }

    /// Of how many frames one is left out for what the controller holds back: of two at least. None where none is.
    fn thinning(&mut self, now: Time) -> Option<u32> {
        let share = self.control.held_back(now);
        if share <= LEAST_THINNING {
            return None;
        }
        let rate = self.carried().max(self.min).min(self.max).as_bps() as f64;
        let less = (share * rate).min(rate - self.min.as_bps() as f64);
        (less >= 1.0).then(|| ((rate / less) as u32).max(2))
    }

    /// The payload that the controller's target has room for.
    fn carried(&self) -> Rate {
        if self.counts_payload {
            return self.outputs.target;
        }
        let voice = self.audio.as_ref().map_or(Rate::ZERO, |audio| audio.rate);
        let video = self.outputs.target.as_bps().saturating_sub(voice.as_bps());
        let video = Rate::from_bps(video);
        let payload = self.packetiser.payload_rate(video, self.fps);
        let repair = overhead_of(self.sent.repair, self.sent.all);
        let left = payload.as_bps() as f64 * (1.0 - repair);
        Rate::from_bps(left as u64)
    }

    fn capture(&mut self, now: Time, around: &mut Around<'_>) {
        while self.source.next_capture() <= now {
            self.sent.turn(now);
            let thinning = self.thinning(now);
            let mut rate = self.encoder_rate(now, thinning);
            if self.new_encoder > 0.0 {
                let (bits, before) = (rate.as_bps() as f64, self.encoder.as_bps() as f64);
                if libm::fabs(bits - before) > self.new_encoder * before {
                    self.encoder = rate;
                    self.key_wanted = true;
                }
                rate = self.encoder;
            }
            // The counter goes on where it stood when frames were last left out.
            let is_left_out = thinning.is_some_and(|every| self.thinned.is_multiple_of(every));
            self.thinned += u32::from(thinning.is_some());
            let wanted = Wanted { rate, key: self.key_wanted && !is_left_out };
            let Some(frame) = self.source.capture(&wanted) else { continue };
            if frame.is_key || !(is_left_out || self.skips(now)) {
                self.key_wanted &= !frame.is_key;
                self.encoding.push_back(frame);
            } else {
                self.tell(now, around, FrameStage::Skipped, frame.captured, 0, false);
            }
        }
    }

    /// Whether too much waits to encode more.
    fn skips(&self, now: Time) -> bool {
        self.skip_after.is_some_and(|most| self.pacer.queue_delay(now) > most)
    }

    /// Voices are sent when they are spoken, and their reports when they are due.
    fn speak(&mut self, now: Time) {
        let Some(audio) = &mut self.audio else { return };
        if audio.next_report() <= now && self.report_due.is_none() {
            self.report_due = Some(RtpStream::Audio);
            audio.report_at = now + next_report(&mut audio.random, audio.report_interval);
        }
        while audio.source.next_capture() <= now {
            let wanted = Wanted { rate: audio.rate, key: false };
            let Some(frame) = audio.source.capture(&wanted) else { continue };
            for item in audio.packetiser.packets(&frame, RtpStream::Audio) {
                audio.packets += 1;
                let payload = item.size - audio.packetiser.around();
                audio.octets = audio.octets.wrapping_add(payload);
                self.pacer.push(now, item);
            }
        }
    }

    fn packetise(&mut self, now: Time, around: &mut Around<'_>) {
        while let Some(frame) = self.encoding.pop_front_if(|frame| frame.encoded <= now) {
            let packets = self.packetiser.packets(&frame, RtpStream::Video);
            let bytes = self.pacer.push_frame(now, packets);
            self.tell(now, around, FrameStage::Encoded, frame.captured, frame.size, frame.is_key);
            self.control.on_frame(now, bytes);
            if PARITY && let Some(fec) = &mut self.fec {
                fec.protection.on_frame(frame.height);
            }
            if let Some(adjuster) = &mut self.adjuster {
                adjuster.on_frame(now, frame.size);
            }
        }
    }

    fn tell(
        &self,
        now: Time,
        around: &mut Around<'_>,
        stage: FrameStage,
        captured: Time,
        bytes: u32,
        is_key: bool,
    ) {
        let frame = FrameEvent { stage, captured, bytes, is_key, buffered: Span::ZERO };
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::Frame(&frame));
    }

    /// Takes over the controller's probes and outputs.
    fn settle(&mut self, now: Time, around: &mut Around<'_>) {
        while let Some(probe) = self.control.poll_probe() {
            self.pacer.add_probe(probe);
        }
        let outputs = self.control.outputs();
        if outputs == self.outputs {
            return;
        }
        let who = Who::Flow(self.ends.flow);
        if outputs.phase != self.outputs.phase {
            let event = Event::Phase { from: self.outputs.phase, to: outputs.phase };
            around.observer.record(now, who, &event);
        }
        self.pacer.set(now, &outputs);
        self.outputs = outputs;
        let estimates = self.control.estimates();
        let control = RateControl {
            target: outputs.target,
            pacing: outputs.pacing,
            delay_based: estimates.delay_based,
            loss_based: estimates.loss_based,
            acknowledged: estimates.acknowledged,
            signal: estimates.signal,
            threshold: estimates.threshold,
        };
        around.observer.record(now, who, &Event::RateControl(&control));
    }

    fn on_message(&mut self, now: Time, message: Message) {
        match message {
            Message::Twcc(twcc) => {
                let prior = self.flight.bytes;
                self.reports.clear();
                self.flight.on_twcc(now, &twcc, &mut self.reports);
                self.on_reports(now, prior, None);
            }
            Message::Ccfb(ccfb) => {
                let prior = self.flight.bytes;
                self.reports.clear();
                let held = self.flight.on_ccfb(now, &ccfb, &mut self.reports);
                self.on_reports(now, prior, held);
            }
            Message::Remb(remb) => self.control.on_remb(now, remb.rate),
            Message::Nack(nack) => {
                let near = self.history.newest;
                let wanted = nack.sequences.into_iter().map(|low| unwrap(near, low));
                for item in wanted.filter_map(|sequence| self.history.again(now, sequence)) {
                    self.pacer.push(now, item);
                }
            }
            Message::KeyRequest => {
                if self.key_asked.is_none_or(|last| now.since(last) >= self.key_gap) {
                    self.key_asked = Some(now);
                    self.key_wanted = true;
                }
            }
            Message::ReceiverReport(report) => {
                let video = RtpStream::Video.source();
                if let Some(block) = report.blocks.iter().find(|block| block.source == video) {
                    self.on_block(now, block);
                }
            }
            Message::Extended(Extended::ReferenceTime(reference)) => {
                self.last_reference.note(now, reference);
            }
            Message::SenderReport(_) | Message::Extended(Extended::SinceReference(_)) => {}
        }
    }

    fn on_reports(&mut self, now: Time, prior_in_flight: u64, held: Option<Span>) {
        self.pacer.set_in_flight(now, self.flight.bytes);
        self.control.on_feedback(&Feedback {
            now,
            reports: &self.reports,
            prior_in_flight,
            in_flight: self.flight.bytes,
            held,
        });
    }

    fn on_block(&mut self, now: Time, block: &Block) {
        let expected = block.highest_sequence + 1;
        if let Some(rtt) = block.rtt(now) {
            self.history.on_rtt(rtt);
        }
        self.control.on_receiver_report(&ReceiverReport {
            now,
            fraction_lost: f64::from(block.fraction_lost) / 256.0,
            cumulative_lost: block.cumulative_lost.into(),
            expected: expected.saturating_sub(self.expected_before).into(),
            jitter: jitter_of(block.jitter),
            rtt: block.rtt(now),
        });
        self.expected_before = expected;
        if PARITY && let Some(fec) = &mut self.fec {
            let lost = f64::from(block.fraction_lost) / 256.0;
            fec.protection.on_report(now, lost, self.history.rtt);
        }
    }

    fn is_over(&self) -> bool {
        self.now >= self.stop && self.pacer.queued() == 0
    }

    /// The packet of what the pacer lets go.
    fn send(&mut self, now: Time, release: Release, around: &mut Around<'_>) -> Packet {
        let (item, probe) = match release {
            Release::Media { item, probe } => (item, probe),
            Release::Padding { size, probe } => (padding(now, size), probe),
        };
        let item = if PARITY { self.numbered(item) } else { item };
        let purpose = match item.stream {
            RtpStream::Video => Use::Video,
            RtpStream::Audio => Use::Audio,
            RtpStream::Repair => Use::Repair,
            RtpStream::Padding => Use::Padding,
            RtpStream::Fec => Use::Fec,
        };
        self.left = now.max(self.left + Span::from_nanos(1));
        self.busy = now + self.gap;
        let sent =
            Sent { number: self.transport.into(), at: self.left, size: item.size, purpose, probe };
        let outstanding = Outstanding {
            in_flight: self.flight.bytes,
            queued: self.pacer.queued(),
            queue_delay: self.pacer.queue_delay(now),
        };
        let is_reported = item.stream != RtpStream::Audio
            || self.audio.as_ref().is_some_and(|audio| audio.has_feedback);
        if is_reported {
            self.control.on_sent(&sent, &outstanding);
        }
        if is_reported && self.feedback.is_per_packet() {
            self.flight.add(sent);
            self.pacer.add_in_flight(sent.size);
        }
        let transport = match self.feedback {
            FeedbackKind::Ccfb if is_reported => {
                let source =
                    if PARITY { self.source_of(item.stream) } else { item.stream.source() };
                self.flight.number_in(source, sent.number)
            }
            _ => self.transport,
        };
        let is_parity = PARITY && item.stream == RtpStream::Fec;
        self.sent.add(now, item.size, is_parity || item.stream == RtpStream::Repair);
        if item.stream == RtpStream::Repair {
            self.history.on_copy_left(now, item.sequence);
        }
        if item.stream == RtpStream::Video {
            self.packets += 1;
            self.octets = self.octets.wrapping_add(item.size - self.packetiser.around());
            self.history.add(now, item);
            if self.repeats && self.history.is_for_padding(&item) {
                self.pacer.set_copy(item.size + RTX);
            }
            if item.part + 1 == item.parts {
                let (captured, bytes) = (item.captured, item.frame_bytes);
                self.tell(now, around, FrameStage::Sent, captured, bytes, item.is_key);
            }
        }
        if is_parity {
            self.transport += 1;
            return self.parity(now, &item, transport, around);
        }
        let stamp = match item.stream {
            RtpStream::Repair => self.history.stamp(now, item.sequence),
            _ => now,
        };
        let header_sequence = match item.stream {
            RtpStream::Repair | RtpStream::Padding => {
                self.repairs = self.repairs.wrapping_add(1);
                self.repairs
            }
            _ => item.sequence as u16,
        };
        let body = Body::Rtp(RtpBody {
            number: self.number,
            transport,
            sequence: item.sequence,
            header_sequence,
            frame: item.frame,
            captured: item.captured,
            stamp,
            part: item.part,
            parts: item.parts,
            stream: item.stream,
            is_key: item.is_key,
        });
        self.number += 1;
        self.transport += u32::from(is_reported);
        if PARITY && item.stream == RtpStream::Video {
            self.protect(now, &item);
        }
        Packet { ecn: self.ecn, ..self.ends.packet(now, item.size, body) }
    }

    /// The packet with its sequence number: those of RFC 5109's packets lie between the video's.
    fn numbered(&self, item: Item) -> Item {
        let Some(fec) = &self.fec else { return item };
        let sequence = match (item.stream, fec.scheme) {
            (RtpStream::Video, _) => item.sequence + fec.numbers(),
            (RtpStream::Fec, FecScheme::Ulpfec) => self.history.newest + 1,
            (RtpStream::Fec, FecScheme::Flexfec) => fec.sent,
            (RtpStream::Audio | RtpStream::Repair | RtpStream::Padding, _) => item.sequence,
        };
        Item { sequence, ..item }
    }

    /// The synchronisation source of a stream: parity of RFC 5109 is in the video's.
    fn source_of(&self, stream: RtpStream) -> u32 {
        match &self.fec {
            Some(fec) if stream == RtpStream::Fec => fec.scheme.source(),
            _ => stream.source(),
        }
    }

    /// A packet of video leaves: parity may follow.
    fn protect(&mut self, now: Time, item: &Item) {
        let Some(fec) = &mut self.fec else { return };
        let bytes = self.outputs.target.as_bps() as f64 / 8.0 / self.fps;
        for parity in fec.on_video(now, item, bytes) {
            self.pacer.push(now, parity);
        }
    }

    /// The packet of the parity that has waited longest.
    fn parity(
        &mut self,
        now: Time,
        item: &Item,
        transport: u32,
        around: &mut Around<'_>,
    ) -> Packet {
        let fec = self.fec.as_mut().expect("there is parity only with a scheme");
        let (captured, parity) = fec.waiting.pop_front().expect("parity waits as its item did");
        let bytes = parity.write(
            fec.scheme,
            &Header {
                sequence: item.sequence as u16,
                transport: transport as u16,
                source: fec.scheme.source(),
                captured,
                abs_send_time: abs_send_time(now),
            },
        );
        fec.sent += 1;
        if fec.scheme == FecScheme::Ulpfec {
            self.history.add(now, *item);
        }
        let event = FecEvent::Sent { bytes: item.size };
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::Fec(&event));
        let number = self.number;
        self.number += 1;
        let event = Event::Content { direction: Direction::Forward, number, bytes: &bytes };
        around.observer.record(now, Who::Flow(self.ends.flow), &event);
        let content = around.contents.put(bytes, 1);
        let body = Body::Opaque { number, content };
        Packet { ecn: self.ecn, ..self.ends.packet(now, item.size, body) }
    }

    fn report(&mut self, now: Time, stream: RtpStream, around: &mut Around<'_>) -> Packet {
        let (source, sent) = (stream.source(), ntp_middle(now));
        let bytes = match &self.audio {
            Some(audio) if stream == RtpStream::Audio => {
                // A packet has the time at which its sound was complete, and stands for that at which it began.
                let timestamp = voice_ticks(now + audio.frame);
                let (packets, octets) = (audio.packets, audio.octets);
                SenderReport { source, sent, timestamp, packets, octets }.write()
            }
            _ => {
                let timestamp = video_ticks(now);
                let (packets, octets) = (self.packets, self.octets);
                let report = SenderReport { source, sent, timestamp, packets, octets };
                let mut bytes = report.write();
                let answer = self.last_reference.answer(now);
                bytes.extend(answer.iter().flat_map(SinceReference::write));
                bytes
            }
        };
        rtcp_packet(&self.ends, Direction::Forward, &mut self.number, bytes, now, around)
    }
}

impl<const PARITY: bool> Endpoint for Sender<PARITY> {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        self.now = now;
        (self.wake, self.wake_for_more) = (Time::ZERO, Time::ZERO);
        let Body::Opaque { content, .. } = packet.body else { return };
        for message in rtcp::messages(around.contents.bytes(content)) {
            self.on_message(now, message);
        }
        self.settle(now, around);
        self.besides_packets = self.next_besides_packets();
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        // Mostly the machine is only ready for the next packet.
        if now >= self.wake_for_more {
            self.on_more(now, around);
        }
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        self.now = now;
        if self.report_due.is_none() && (now < self.busy || self.is_over()) {
            self.rest();
            return None;
        }
        self.wake = Time::ZERO;
        if let Some(stream) = self.report_due.take() {
            return Some(self.report(now, stream, around));
        }
        let Some(release) = self.pacer.poll(now) else {
            self.rest();
            return None;
        };
        let packet = Some(self.send(now, release, around));
        if now < self.busy {
            self.rest();
        }
        packet
    }

    #[inline]
    fn next_wake(&self) -> Time {
        match self.wake {
            Time::ZERO => self.wakes().0,
            known => known,
        }
    }

    fn rests_until(&self) -> Option<Time> {
        (self.wake > self.now).then_some(self.wake)
    }
}

impl<const PARITY: bool> Sender<PARITY> {
    /// Does what is due besides sending what is paced.
    #[inline(never)]
    fn on_more(&mut self, now: Time, around: &mut Around<'_>) {
        self.now = now;
        self.wake = Time::ZERO;
        if now < self.stop {
            self.capture(now, around);
            self.speak(now);
        }
        self.packetise(now, around);
        if self.control.next_wake() <= now {
            self.control.on_wake(now);
        }
        if self.report_at <= now && self.packets > 0 && self.report_due.is_none() {
            self.report_due = Some(RtpStream::Video);
            self.report_at = now + next_report(&mut self.random, REPORT_INTERVAL);
        }
        self.settle(now, around);
        self.besides_packets = self.next_besides_packets();
    }

    /// Nothing more leaves now.
    #[inline(always)]
    fn rest(&mut self) {
        (self.wake, self.wake_for_more) = self.wakes();
    }

    /// When it must be woken, and when for more than a packet.
    #[inline(always)]
    fn wakes(&self) -> (Time, Time) {
        let report = if self.packets > 0 { self.report_at.max(self.now) } else { Time::NEVER };
        let besides = match self.besides_packets {
            Time::ZERO => self.next_besides_packets(),
            known => known,
        };
        let more = besides.min(report).min(self.control.next_wake());
        if self.is_over() {
            return (self.encoding.front().map_or(Time::NEVER, |frame| frame.encoded), more);
        }
        (more.min(self.pacer.next(self.now).max(self.busy)), more)
    }

    /// When it has something to do besides sending what is paced, and besides what the controller asks for.
    fn next_besides_packets(&self) -> Time {
        let encoded = self.encoding.front().map_or(Time::NEVER, |frame| frame.encoded);
        let spoken = self.audio.as_ref().map_or(Time::NEVER, |audio| {
            audio.source.next_capture().min(audio.next_report().max(self.now))
        });
        let capture = match self.now < self.stop {
            true => self.source.next_capture().min(spoken),
            false => Time::NEVER,
        };
        capture.min(encoded)
    }
}

fn padding(now: Time, size: u32) -> Item {
    Item {
        stream: RtpStream::Padding,
        sequence: 0,
        frame: 0,
        part: 0,
        parts: 1,
        captured: now,
        is_key: false,
        size,
        frame_bytes: 0,
    }
}

/// Time to the next report: half to one and a half of the mean.
pub(super) fn next_report(random: &mut Stream, mean: Span) -> Span {
    Span::from_secs_f64(mean.as_secs_f64() * random.uniform(0.5, 1.5))
}

/// Packets that were sent and may still be reported on.
#[derive(Default)]
struct Flight {
    packets: VecDeque<(Sent, Known)>,
    /// Bytes sent and not yet reported on, or given up.
    bytes: u64,
    /// The first packet whose size still counts in `bytes`.
    counted_from: u64,
    newest_base: u32,
    /// For reports that number each source's packets separately: which packet each number means.
    sources: [Numbers; 4],
}

/// What was reported of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    Nothing,
    Missing,
    Arrived,
}

/// The call's numbers of a source's packets, in the order of the source's sequence numbers.
#[derive(Default)]
struct Numbers {
    source: u32,
    /// The sequence number of the first one.
    first: u32,
    numbers: VecDeque<u64>,
    newest_begin: u32,
}

/// Packets this far behind the newest report may still be reported on.
const LATE: u64 = 1000;
/// The period after which the reference time of reports repeats.
const WRAP: Span = Span::from_millis(64 << 24);

impl Flight {
    fn add(&mut self, sent: Sent) {
        self.bytes += u64::from(sent.size);
        self.packets.push_back((sent, Known::Nothing));
    }

    /// The sequence number of a packet among those of its source.
    fn number_in(&mut self, source: u32, number: u64) -> u32 {
        let place = self.sources.iter().position(|own| own.source == source || own.source == 0);
        let own = &mut self.sources[place.expect("a call has at most four sources")];
        own.source = source;
        own.numbers.push_back(number);
        own.first + own.numbers.len() as u32 - 1
    }

    #[inline(always)]
    fn on_twcc(&mut self, now: Time, twcc: &Twcc, reports: &mut Vec<Report>) {
        let base = unwrap(self.newest_base, twcc.base);
        self.newest_base = self.newest_base.max(base);
        let end = u64::from(base) + twcc.arrivals.len() as u64;
        self.give_up(end);
        let (base, first) = (u64::from(base), self.first());
        // Some of the packets that it speaks of may be forgotten.
        let arrivals = twcc.arrivals.iter().skip(first.saturating_sub(base) as usize);
        let from = (base.saturating_sub(first) as usize).min(self.packets.len());
        // Times of reports repeat after `WRAP`; before that each stands for itself.
        let may_repeat = now >= Time::ZERO + WRAP;
        for (packet, arrival) in self.packets.range_mut(from..).zip(arrivals) {
            let arrived = arrival.map(|at| if may_repeat { near(at, now) } else { at });
            settle(packet, arrived, Ecn::NotEct, reports);
        }
        self.forget(u64::from(self.newest_base));
    }

    /// Returns how long the receiver kept the newest arrival.
    #[inline(always)]
    fn on_ccfb(&mut self, now: Time, ccfb: &Ccfb, reports: &mut Vec<Report>) -> Option<Span> {
        let mut newest = 0;
        let mut held = None;
        let first = self.first();
        for stream in &ccfb.streams {
            let own = self.sources.iter_mut().find(|own| own.source == stream.source);
            let Some(own) = own else { continue };
            let begin = unwrap(own.newest_begin, stream.begin);
            own.newest_begin = own.newest_begin.max(begin);
            let known = (begin..).zip(&stream.packets).filter_map(|(sequence, packet)| {
                let at = sequence.checked_sub(own.first)? as usize;
                Some((*own.numbers.get(at)?, *packet))
            });
            for (number, packet) in known {
                newest = newest.max(number);
                let before = packet.map(|packet| packet.before.unwrap_or(LARGEST_OFFSET));
                held = match (held, before) {
                    (Some(held), Some(before)) => Some(before.min(held)),
                    (held, before) => held.or(before),
                };
                let arrived = before.map(|before| arrived_at(now, ccfb.sent, before));
                let ecn = packet.map_or(Ecn::NotEct, |packet| packet.ecn);
                if let Some(at) = number.checked_sub(first)
                    && let Some(packet) = self.packets.get_mut(at as usize)
                {
                    settle(packet, arrived, ecn, reports);
                }
            }
        }
        self.give_up(newest + 1);
        self.forget(newest);
        reports.sort_by_key(|report| report.packet.number);
        held.map(|held| Span::from_nanos(u64::from(held) * 1_000_000_000 / 1024))
    }

    /// Takes packets sent before `end` out of the bytes in flight. Their report may have been lost, and
    /// reports are not repeated.
    fn give_up(&mut self, end: u64) {
        if self.counted_from >= end {
            return;
        }
        let place =
            |number: u64| (number.saturating_sub(self.first()) as usize).min(self.packets.len());
        let given_up = self.packets.range(place(self.counted_from)..place(end));
        self.bytes -= given_up.map(|(sent, _)| u64::from(sent.size)).sum::<u64>();
        self.counted_from = end;
    }

    /// The number of the first packet that is kept.
    fn first(&self) -> u64 {
        self.packets.front().map_or(0, |(sent, _)| sent.number)
    }

    fn forget(&mut self, newest: u64) {
        let oldest = newest.saturating_sub(LATE);
        // Their numbers follow each other.
        let old = oldest.saturating_sub(self.first()) as usize;
        self.packets.drain(..old.min(self.packets.len()));
        for own in &mut self.sources {
            while own.numbers.pop_front_if(|number| *number < oldest).is_some() {
                own.first += 1;
            }
        }
    }
}

/// Takes what was reported of a packet, if it is news.
fn settle(
    (sent, known): &mut (Sent, Known),
    arrived: Option<Time>,
    ecn: Ecn,
    reports: &mut Vec<Report>,
) {
    let now_known = if arrived.is_some() { Known::Arrived } else { Known::Missing };
    if now_known > *known {
        *known = now_known;
        reports.push(Report { packet: *sent, arrived, ecn });
    }
}

/// The latest time not after `now` that differs from `at` by a multiple of `WRAP`.
fn near(mut at: Time, now: Time) -> Time {
    while at + WRAP <= now {
        at += WRAP;
    }
    at
}

/// Packets of video that may be asked for again.
struct History {
    /// The lowest bits of a packet's sequence number are its place.
    packets: Vec<Kept>,
    /// So many are kept, a power of two.
    most: u32,
    newest: u32,
    copies: Copies,
    /// Smoothed, from receiver reports; zero before one came.
    rtt: Span,
    /// Sequence number and size of the packet that padding repeats.
    large: (u32, u32),
}

struct Kept {
    item: Item,
    left: Time,
    /// When a copy was last asked for, or left.
    last: Option<Time>,
    /// A copy waits for its turn.
    waits: bool,
}

const MOST_KEPT: u32 = 4096;
const MOST_KEPT_BY_AIORTC: u32 = 128;
const BETWEEN_COPIES: Span = Span::from_millis(10);
const RTT_WEIGHT: f64 = 0.3;
/// Padding repeats a packet that has so many bytes less than the one before, or comes so many numbers behind it.
const LESS: u32 = 100;
const OLD: u32 = 1 << 13;
/// What libwebrtc's history is sure to keep: packets of this time, or of so many round trips if that is longer. Of this many packets it
/// keeps those of three times that.
const SURE: Span = Span::from_secs(1);
const SURE_RTTS: u64 = 3;
const USUAL: u32 = 600;
const USUAL_FACTOR: u64 = 3;
/// libwebrtc takes the round trip for so much longer.
const SPARE: Span = Span::from_millis(5);

impl History {
    fn new(copies: Copies) -> Self {
        let most = match copies {
            Copies::Each => MOST_KEPT_BY_AIORTC,
            Copies::Spaced | Copies::One => MOST_KEPT,
        };
        Self { packets: Vec::new(), most, newest: 0, copies, rtt: Span::ZERO, large: (0, 0) }
    }

    /// Keeps the packet with the next sequence number; the first one is zero.
    fn add(&mut self, now: Time, item: Item) {
        let place = self.place(item.sequence);
        let kept = Kept { item, left: now, last: None, waits: false };
        match self.packets.get_mut(place) {
            Some(oldest) => *oldest = kept,
            None => self.packets.push(kept),
        }
        self.newest = item.sequence;
    }

    fn place(&self, sequence: u32) -> usize {
        (sequence & (self.most - 1)) as usize
    }

    /// Whether padding repeats this packet from now on: it is nearly as large as the one before, or that one is old.
    fn is_for_padding(&mut self, item: &Item) -> bool {
        let (sequence, size) = self.large;
        let is_large = item.size + LESS > size || item.sequence > sequence + OLD;
        if is_large {
            self.large = (item.sequence, item.size);
        }
        is_large
    }

    fn on_rtt(&mut self, rtt: Span) {
        let (before, new) = (self.rtt.as_secs_f64(), rtt.as_secs_f64());
        self.rtt = match self.rtt.is_zero() {
            true => rtt,
            false => Span::from_secs_f64(before + RTT_WEIGHT * (new - before)),
        };
    }

    /// How long a packet can be sent again after it left.
    fn kept_for(&self, sequence: u32) -> Span {
        let sure = SURE.max(self.rtt * SURE_RTTS);
        match self.copies {
            Copies::Each => Span::MAX,
            _ if self.newest.saturating_sub(sequence) < USUAL => sure * USUAL_FACTOR,
            Copies::Spaced | Copies::One => sure,
        }
    }

    fn at(&mut self, sequence: u32) -> Option<&mut Kept> {
        let place = self.place(sequence);
        self.packets.get_mut(place).filter(|kept| kept.item.sequence == sequence)
    }

    /// A copy of the packet, unless one is to be waited for.
    fn again(&mut self, now: Time, sequence: u32) -> Option<Item> {
        let (copies, rtt) = (self.copies, self.rtt);
        let longest = self.kept_for(sequence);
        // Parity is not sent again.
        let is_there = |kept: &&mut Kept| {
            kept.item.stream == RtpStream::Video && now.since(kept.left) < longest
        };
        let kept = self.at(sequence).filter(is_there)?;
        let since = kept.last.map(|last| now.since(last));
        let is_refused = match copies {
            Copies::Spaced => since.is_some_and(|since| since < BETWEEN_COPIES),
            Copies::One => kept.waits || since.is_some_and(|since| since < rtt + SPARE),
            Copies::Each => false,
        };
        if is_refused {
            return None;
        }
        (kept.last, kept.waits) = (Some(now), true);
        let item = kept.item;
        Some(Item { stream: RtpStream::Repair, size: item.size + RTX, ..item })
    }

    /// The time of sending that a copy carries. aiortc sends the packet as it was stored.
    fn stamp(&mut self, now: Time, sequence: u32) -> Time {
        match self.copies {
            Copies::Each => self.at(sequence).map_or(now, |kept| kept.left),
            Copies::Spaced | Copies::One => now,
        }
    }

    fn on_copy_left(&mut self, now: Time, sequence: u32) {
        if self.copies == Copies::One
            && let Some(kept) = self.at(sequence)
        {
            (kept.last, kept.waits) = (Some(now), false);
        }
    }
}

/// A tenth of a second, in nanoseconds.
const TENTH: u64 = 100_000_000;

/// Bytes of the last second, in tenths of it: all, and those sent again.
#[derive(Default)]
struct Window {
    tenths: [(u64, u64); 10],
    /// The present tenth since the beginning, its place in `tenths`, and when it is over.
    tenth: u64,
    place: usize,
    over: Time,
    all: u64,
    repair: u64,
}

impl Window {
    #[inline(always)]
    fn turn(&mut self, now: Time) {
        if now >= self.over {
            self.begin(now.as_nanos() / TENTH);
        }
    }

    #[inline(never)]
    fn begin(&mut self, tenth: u64) {
        let passed = (tenth - self.tenth).min(10);
        for back in 0..passed {
            let old = core::mem::take(&mut self.tenths[((tenth - back) % 10) as usize]);
            self.all -= old.0;
            self.repair -= old.1;
        }
        (self.tenth, self.place) = (tenth, (tenth % 10) as usize);
        self.over = Time::from_nanos((tenth + 1) * TENTH);
    }

    #[inline(always)]
    fn add(&mut self, now: Time, bytes: u32, is_repair: bool) {
        self.turn(now);
        let (all, repair) = &mut self.tenths[self.place];
        let bytes = u64::from(bytes);
        *all += bytes;
        self.all += bytes;
        if is_repair {
            *repair += bytes;
            self.repair += bytes;
        }
    }
}
