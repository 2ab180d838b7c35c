//! A call: video from a source to a viewer, and what the viewer's end reports back.
//!
//! The sending end (`sender`) captures, packetises, paces and repairs; the receiving end
//! (`receiver`) puts frames together, asks for what is missing, reports, decodes and shows.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use sojourn_core::param::{Choice, Maybe, Style, Switch, number, rate, size, time, whole};
use sojourn_core::{
    Body, Bytes, Direction, Event, Packet, Param, Params, Purpose, Rate, Span, SpecError, Time, Who,
};
use sojourn_host::{AppModel, Around, Endpoint, Endpoints, FlowSetup};

use self::receiver::Receiver;
use self::sender::Sender;
use crate::control::{self, FeedbackKind, Stack, Tape};
pub use crate::fec::FecScheme;
use crate::rtcp::SRTCP;
use crate::rtp::{IP_UDP, RTP, SRTP};
use crate::send::Packetiser;
use crate::source::{self, Voice};

const SLOWEST: Rate = Rate::from_bps(1000);
const FASTEST: Rate = Rate::from_bps(100_000_000_000);
const LONG: Span = Span::from_secs(100);

sojourn_core::params! {
    /// A call as users write it.
    pub struct CallSpec: "call", "a video call: frames over RTP with feedback, repair, a rate controller and a playout" {
        pub source: String = Param::of::<String>("source", "statistical", "what makes the frames, with its parameters (sojourn list source)")
            .such_as(&["statistical", "game cut_every=10s"]);
        pub control: String = Param::of::<String>("control", "gcc", "rate controller, with its parameters (sojourn list control)")
            .such_as(&["gcc", "fixed rate=2mbit"]);
        pub audio: String = Param::of::<String>("audio", "off", "a voice beside the video, with its parameters (sojourn list voice); off: none")
            .such_as(&["opus", "opus rate=24kbit dtx=on", "g711"]);
        pub audio_feedback: bool as Switch = "on", "voices are numbered and reported on together with video, so the rate controller learns of them";
        pub fps: f64 = "30", number(0.1, 1000.0), "frames a second";
        pub start_rate: Option<Rate> as Maybe<Rate> = "", rate(SLOWEST, FASTEST), "rate to begin with, headers included; without it the controller's own";
        pub min_rate: Rate = "30kbit", rate(SLOWEST, FASTEST), "least rate of the encoder, payload a second";
        pub max_rate: Rate = "2500kbit", rate(SLOWEST, FASTEST), "largest rate of the encoder, payload a second";
        pub packet: Bytes = "1200B", size(200, 9000), "largest RTP packet, its header included";
        pub extensions: Bytes = "16B", size(0, 100), "RTP header extensions and payload descriptor of a packet";
        pub nack: bool as Switch = "on", "the receiver asks for lost packets, and the sender sends them again";
        pub nack_again: bool as Switch = "on", "it asks again after nack_rtt; off: only when the next gap opens, for all that is missing (aiortc)";
        pub nack_rtt: Span = "100ms", time(Span::from_millis(1), LONG), "time after which the receiver asks again, until it has measured the round trip; with known_rtt always";
        pub nack_wait: Span = "0ms", time(Span::ZERO, LONG), "how long the receiver waits before it asks for the first time, so that parity may come; not with nack_again=off";
        pub fec: Option<FecScheme> as Maybe<FecScheme> = "", "packets of parity from which the receiver restores lost video: ulpfec (RFC 5109 in RFC 2198, as libwebrtc for VP8) or flexfec (RFC 8627); without it there are none";
        pub fec_per_loss: f64 = "4", number(0.0, 100.0), "share of parity in all packets of the video and its parity, for each unit of the largest loss reported in 10 s; key frames get twice that";
        pub fec_least: f64 = "0.2", number(0.0, 0.9), "the least such share while anything is lost, where frames have more than 730 bytes";
        pub fec_most: f64 = "0.5", number(0.0, 0.9), "the largest such share";
        pub fec_rtt: Span = "20ms", time(Span::ZERO, LONG), "with a shorter round trip only key frames get parity, because repetitions come soon";
        pub feedback: Option<FeedbackKind> as Maybe<FeedbackKind> = "", "what the receiver reports: twcc (each packet, as libwebrtc), ccfb (each packet and its mark, RFC 8888), remb (an estimate of its own), rr (receiver reports only); without it what the controller is made for";
        pub feedback_interval: Option<Span> as Maybe<Span> = "", time(Span::from_millis(1), LONG), "time between reports on packets; without it the controller's";
        pub pacer_burst: Option<Span> as Maybe<Span> = "", time(Span::ZERO, LONG), "what may leave at once, as time at the pacing rate; without it what the controller's specification has: 40ms for gcc and fixed (libwebrtc), burst_time for gcc-draft, else 0ms, a packet at a time";
        pub pacer_limit: Option<Span> as Maybe<Span> = "", time(Span::from_millis(1), LONG), "packets leave faster if they would wait longer; without it 2s for gcc and fixed (libwebrtc), and no limit for the others";
        pub packet_gap: Span = "120us", time(Span::ZERO, Span::from_millis(1)), "a packet leaves no sooner after the one before it, because the machine sends them one by one; 120us was measured of Chromium on a small machine";
        pub decoding: Span = "5ms", time(Span::ZERO, LONG), "how long a frame takes to decode";
        pub showing: Span = "10ms", time(Span::ZERO, LONG), "how long a decoded frame takes to be shown";
        pub playout: Playout = "adaptive", "when frames are decoded and shown: adaptive (libwebrtc's estimate of how much they vary) or next_frame (aiortc: when the first packet of the next frame comes)";
        pub held_packets: u32 = "512", whole(1, 1_000_000), "next_frame: how many packets the receiver holds, those of a gap counted; older ones are given up, and damage is shown";
        pub new_encoder: f64 = "0", number(0.0, 1.0), "a change of the rate by more than this share begins a new encoder, with a key frame (aiortc: 0.1); 0 for never";
        pub adjuster: Option<bool> as Maybe<Switch> = "", "the encoder's rate is lowered where its frames are too large for an even pace, as libwebrtc does; without it on for gcc and off for the others";
        pub skip_after: Option<Span> as Maybe<Span> = "", time(Span::ZERO, LONG), "no frame is encoded while media has waited in the sender for longer; without it every frame is";
        pub copies: Option<Copies> as Maybe<Copies> = "", "which requests for a packet are answered; without it as the program does whose control it is, one for gcc and fixed, each for aiortc, and spaced for the others: spaced (10 ms after the last one or later), one (libwebrtc: none while a copy waits for its turn, nor for a round trip after one left) or each (aiortc: every one for the last 128 packets, and copies carry the time at which the packet first left)";
        pub known_rtt: Option<Span> as Maybe<Span> = "", time(Span::ZERO, LONG), "the round trip that the receiver takes for known: while losses are repaired, its pictures wait for 0.9 of it, and 200ms at most; 0ms: it knows none; when it asks again is nack_rtt's; without it the receiver measures it (RFC 3611)";
        pub lip_sync: bool as Switch = "on", "voice and video wait for each other as in libwebrtc, so that lips move with the words; with playout=adaptive";
        pub playout_delay: Span = "0ms", time(Span::ZERO, LONG), "least time from a frame's usual arrival until it is shown";
        pub key_gap: Option<Span> as Maybe<Span> = "", time(Span::ZERO, LONG), "a request for a key frame is ignored if it comes sooner after the last one that was answered; without it 0ms for aiortc and 300ms for the others, as libwebrtc has it";
        pub frame_wait: Span = "3s", time(Span::from_millis(1), LONG), "without a frame for so long, the receiver asks for a key frame";
        pub key_wait: Span = "200ms", time(Span::from_millis(1), LONG), "the same wait while the receiver needs a key frame";
    }
}

/// A message of RTCP as the packet in which it leaves in this direction. `number` counts what that end sends.
fn rtcp_packet(
    ends: &Endpoints,
    direction: Direction,
    number: &mut u32,
    bytes: Vec<u8>,
    now: Time,
    around: &mut Around<'_>,
) -> Packet {
    let ip_len = IP_UDP + bytes.len() as u32 + SRTCP;
    let event = Event::Content { direction, number: *number, bytes: &bytes };
    around.observer.record(now, Who::Flow(ends.flow), &event);
    let content = around.contents.put(bytes, 1);
    let body = Body::Opaque { number: *number, content };
    *number += 1;
    match direction {
        Direction::Forward => ends.packet(now, ip_len, body),
        Direction::Reverse => ends.answer(now, ip_len, body),
    }
}

/// When frames are decoded and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playout {
    /// As libwebrtc: after an estimate of how much frames vary.
    Adaptive,
    /// As aiortc: as soon as the first packet of the next frame comes.
    NextFrame,
}

sojourn_core::choice!(Playout {
    "adaptive" = Playout::Adaptive,
    "next_frame" = Playout::NextFrame,
});

/// Which requests for a packet are answered with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Those some time after the last one.
    Spaced,
    /// Those that come while no copy waits or is on its way.
    One,
    Each,
}

sojourn_core::choice!(Copies {
    "spaced" = Copies::Spaced,
    "one" = Copies::One,
    "each" = Copies::Each,
});

sojourn_core::choice!(FecScheme {
    "ulpfec" = FecScheme::Ulpfec,
    "flexfec" = FecScheme::Flexfec,
});

/// Sender and receiver reports of video are sent this often, on average.
const REPORT_INTERVAL: Span = Span::from_secs(1);

/// A checked call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallConfig {
    spec: CallSpec,
    source: source::Config,
    control: control::Config,
    audio: Option<source::Config>,
}

/// The text that stands for a call without audio.
pub const NO_AUDIO: &str = "off";

impl CallConfig {
    /// `source`, `control` and `audio` are what the texts of `spec` say.
    ///
    /// # Errors
    /// Rates out of order or out of the encoder's reach, feedback that a call does not carry, a voice whose frames don't
    /// fit a packet.
    pub fn new(
        spec: CallSpec,
        source: source::Config,
        control: control::Config,
        audio: Option<source::Config>,
    ) -> Result<Self, SpecError> {
        let CallSpec { min_rate, max_rate, .. } = spec;
        if max_rate < min_rate {
            let problem = SpecError::new(format!("{max_rate} is less than min_rate, {min_rate}"));
            return Err(problem.allow([format!("{min_rate} or more")]).about("max_rate"));
        }
        if spec.start_rate.is_some_and(|start| start < min_rate) {
            let problem = SpecError::new(format!("is less than min_rate, {min_rate}"));
            return Err(problem.allow([format!("{min_rate} or more")]).about("start_rate"));
        }
        control.agree().map_err(|problem| problem.about("control"))?;
        if spec.feedback.is_some_and(|wanted| !control.works_with(wanted)) {
            let name = control.name();
            let problem = SpecError::new(format!("'{name}' can't work with that"));
            let kinds = FeedbackKind::WORDS.iter().zip(FeedbackKind::VALUES);
            let allowed = kinds.filter(|(_, kind)| control.works_with(**kind));
            let allowed = allowed.map(|(word, _)| *word);
            return Err(problem.allow(allowed).about("feedback"));
        }
        if spec.fec_most < spec.fec_least {
            let (most, least) = (spec.fec_most, spec.fec_least);
            let problem = SpecError::new(format!("{most} is less than fec_least, {least}"));
            return Err(problem.allow([format!("{least} or more")]).about("fec_most"));
        }
        if source.is_audio() {
            let problem = SpecError::new(format!("'{}' is no video", source.name()));
            return Err(problem.allow(["a source of video"]).about("source"));
        }
        if let Some(audio) = &audio {
            check_voice(audio, &spec)?;
        }
        // Two texts with the same meaning make equal calls.
        let spec = CallSpec {
            source: source.canonical(),
            control: control.canonical(),
            audio: audio.as_ref().map_or_else(|| NO_AUDIO.into(), source::Config::canonical),
            ..spec
        };
        let call = Self { spec, source, control, audio };
        call.check_rates()?;
        Ok(call)
    }

    /// Refuses rates of whole packets that the encoder does not reach.
    fn check_rates(&self) -> Result<(), SpecError> {
        let CallSpec { min_rate, max_rate, start_rate, .. } = self.spec;
        let [least, most] = [min_rate, max_rate].map(|rate| self.whole_rate(rate));
        let voice = match self.voice_rate() {
            Rate::ZERO => String::new(),
            voice => format!(" and {voice} of a voice"),
        };
        let makes = |whole: Rate, key: &str, video: Rate| {
            format!("the {whole} of a call with video of {key}, {video}{voice}, headers included")
        };
        let too_large = |said: &str| {
            let problem = format!("{said} is more than {}", makes(most, "max_rate", max_rate));
            let allowed = format!("{most} or less, or a larger max_rate");
            SpecError::new(problem).allow([allowed])
        };
        self.check_gap(most)?;
        if let Some(start) = start_rate.filter(|start| *start > most) {
            return Err(too_large(&format!("{start}")).about("start_rate"));
        }
        let Some(rate) = self.control.kept_rate() else { return Ok(()) };
        let said = format!("'{}': its rate of {rate}", self.control.name());
        if rate > most {
            return Err(too_large(&said).about("control"));
        }
        if rate < least {
            let problem = format!("{said} is less than {}", makes(least, "min_rate", min_rate));
            let allowed = format!("{least} or more, or a smaller min_rate");
            return Err(SpecError::new(problem).allow([allowed]).about("control"));
        }
        Ok(())
    }

    /// Refuses a gap between packets that leaves no room for the largest rate.
    fn check_gap(&self, most: Rate) -> Result<(), SpecError> {
        let gap = self.spec.packet_gap;
        let bits = 8 * (self.spec.packet.as_u64() + u64::from(IP_UDP + SRTP));
        let longest = Span::from_secs_f64(bits as f64 / most.as_bps() as f64);
        if gap <= longest {
            return Ok(());
        }
        let problem =
            format!("packets {gap} apart can't carry the {most} of max_rate, headers included");
        let allowed = format!("{}us or less, or a smaller max_rate", longest.as_nanos() / 1000);
        Err(SpecError::new(problem).allow([allowed]).about("packet_gap"))
    }
}

/// Refuses what makes no voice, and frames that don't fit a packet.
fn check_voice(audio: &source::Config, spec: &CallSpec) -> Result<(), SpecError> {
    let Some(voice) = audio.voice() else {
        let problem = SpecError::new(format!("'{}' is no voice", audio.name()));
        return Err(problem.allow(["opus", "g711", NO_AUDIO]).about("audio"));
    };
    let bytes = voice.rate.as_bps() as f64 / 8.0 * voice.frame.as_secs_f64();
    let room = spec.packet.as_u64() as f64 - f64::from(RTP) - spec.extensions.as_u64() as f64;
    // Frames of variable size are up to twice as large now and then.
    let (largest, why) = match voice.varies {
        true => (room / 2.0, ", half of what fits, because a frame may have twice its mean size"),
        false => (room, ""),
    };
    if bytes <= largest {
        return Ok(());
    }
    let (name, frame, packet) = (audio.name(), voice.frame, spec.packet);
    let problem = format!(
        "'{name}' makes frames of {bytes:.0} bytes ({} for {frame}), too large for a packet of {packet}",
        voice.rate
    );
    let allowed = format!(
        "at most {largest:.0} bytes{why}: a shorter frame, a lower rate or a larger packet"
    );
    Err(SpecError::new(problem).allow([allowed]).about("audio"))
}

impl CallConfig {
    /// What its receiver reports.
    pub fn feedback(&self) -> FeedbackKind {
        self.spec.feedback.unwrap_or(self.control.feedback())
    }

    /// Which requests for a packet its sender answers.
    pub fn copies(&self) -> Copies {
        self.spec.copies.unwrap_or(match self.control.stack() {
            Stack::Libwebrtc => Copies::One,
            Stack::Aiortc => Copies::Each,
            Stack::None => Copies::Spaced,
        })
    }

    /// Whether the encoder's rate is lowered for frames that are too large.
    fn has_adjuster(&self) -> bool {
        self.spec.adjuster.unwrap_or(self.control.has_adjuster())
    }

    /// How soon a request for a key frame may follow another.
    fn key_gap(&self) -> Span {
        self.spec.key_gap.unwrap_or(match self.control.stack() {
            Stack::Aiortc => Span::ZERO,
            Stack::Libwebrtc | Stack::None => Span::from_millis(300),
        })
    }

    /// How often the sender reports of a voice are sent, on average.
    fn voice_report_interval(&self) -> Span {
        match self.control.stack() {
            Stack::Aiortc => REPORT_INTERVAL,
            Stack::Libwebrtc | Stack::None => Span::from_secs(5),
        }
    }

    /// Its rate controller, with its parameters.
    pub fn control(&self) -> &control::Config {
        &self.control
    }

    /// What either part of the controller learns.
    pub fn setup(&self, flow: &FlowSetup<'_>) -> control::Setup {
        let spec = &self.spec;
        control::Setup {
            now: flow.start,
            start_rate: spec.start_rate,
            min_rate: self.whole_rate(spec.min_rate),
            max_rate: self.whole_rate(spec.max_rate),
            mtu: spec.packet.as_u64() as u32 + IP_UDP + SRTP,
            frames_per_second: spec.fps,
            random: flow.address.stream_named(flow.name, Purpose::Controller),
        }
    }

    /// The rate of whole packets when the encoder makes `video`, with the voice.
    fn whole_rate(&self, video: Rate) -> Rate {
        let video = self.video_packetiser().whole_rate(video, self.spec.fps);
        Rate::from_bps(video.as_bps() + self.voice_rate().as_bps())
    }

    fn voice(&self) -> Option<Voice> {
        self.audio.as_ref().and_then(source::Config::voice)
    }

    /// The rate that voices need while someone talks, headers included.
    fn voice_rate(&self) -> Rate {
        let packetiser = self.packetiser();
        let whole =
            |voice: Voice| packetiser.whole_rate(voice.rate, 1.0 / voice.frame.as_secs_f64());
        self.voice().map_or(Rate::ZERO, whole)
    }

    fn packetiser(&self) -> Packetiser {
        Packetiser::new(self.spec.packet.as_u64() as u32, self.extensions())
    }

    /// With parity, packets of video leave room for its headers.
    fn video_packetiser(&self) -> Packetiser {
        let Some(scheme) = self.spec.fec else { return self.packetiser() };
        let extensions = self.extensions();
        let largest = self.spec.packet.as_u64() as u32 - scheme.longest(extensions);
        Packetiser::new(largest, extensions + scheme.per_packet())
    }

    fn extensions(&self) -> u32 {
        self.spec.extensions.as_u64() as u32
    }
}

impl AppModel for CallConfig {
    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        match self.spec.fec {
            None => [
                Box::new(Sender::<false>::new(self, flow)),
                Box::new(Receiver::<false>::new(self, flow)),
            ],
            Some(_) => [
                Box::new(Sender::<true>::new(self, flow)),
                Box::new(Receiver::<true>::new(self, flow)),
            ],
        }
    }

    fn canonical(&self) -> String {
        self.spec.written(Style::Canonical)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// A call whose rate controller has a tape. It is the same call.
pub struct TapedCall {
    pub call: CallConfig,
    pub tape: Arc<dyn Tape>,
}

impl AppModel for TapedCall {
    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        self.tape.begin(&self.call.setup(flow));
        let (call, tape) = (&self.call, self.tape.clone());
        match call.spec.fec {
            None => [
                Box::new(Sender::<false>::new(call, flow).with_tape(tape)),
                Box::new(Receiver::<false>::new(call, flow)),
            ],
            Some(_) => [
                Box::new(Sender::<true>::new(call, flow).with_tape(tape)),
                Box::new(Receiver::<true>::new(call, flow)),
            ],
        }
    }

    fn canonical(&self) -> String {
        self.call.canonical()
    }
}
