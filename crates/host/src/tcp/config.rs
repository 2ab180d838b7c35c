//! What both ends of a connection are set to. Names and defaults are Linux's where it has them.

use alloc::format;

use sojourn_cca::EcnRequest;
use sojourn_core::param::{Maybe, Octets, Truth, size, time, whole};
use sojourn_core::{Span, SpecError, Stream};

use super::send_buffer::{self, SendBuffer};
use super::timer_wheel::TimerWheel;
use super::window::ReceiveBuffer;
use super::windows::Windows;
use super::write_queue::{Memory, WriteQueue};
use super::{EcnOffer, EcnSupport};

sojourn_core::params! {
    /// The parameters of a connection.
    pub struct Config: "tcp", "both ends of a connection", check fits_together {
        pub mss: u32 = "1448", whole(64, 65_000),
            "payload of a full segment in bytes; 1448 leaves room for IPv4, TCP and timestamps in 1500";
        pub header: u32 = "52", whole(20, 535), "bytes of IP and TCP headers with options";
        pub initial_cwnd: u32 = "10", whole(1, 10_000), "initial window in segments (RFC 6928)";
        pub receive_window: Option<Windows> as Maybe<Windows> = "", BUFFERS,
            "a receive window that the application does not change, or changes at stated times of the run; \
             either this or `receive_buffer`; without both it is tuned automatically";
        pub receive_buffer: Option<u64> as Maybe<Octets> = "", BUFFERS,
            "what the application asks for with `SO_RCVBUF`, which ends auto-tuning";
        pub initial_receive_buffer: u64 as Octets = "128KiB", BUFFERS,
            "memory of the receive buffer with which auto-tuning begins (the second of `tcp_rmem`)";
        pub most_receive_buffer: u64 as Octets = "6MiB", BUFFERS,
            "memory up to which auto-tuning grows the receive buffer (the third of `tcp_rmem`): 6 MiB up to Linux 6.16, 32 MiB since 6.17";
        pub adv_win_scale: Option<u32> as Maybe<u32> = "", whole(1, 8),
            "all but 1 part in 2 to this power of the receive buffer is window, whatever arrives (`tcp_adv_win_scale`; 1 is what \
             Linux before 6.6 did); without it the share follows what segments take";
        pub packet_buffers: PacketBuffers = "pages",
            "how the receiving card's driver keeps a segment; `pages`: headers apart from the payload, which beside its headers' 880 bytes takes \
             no more memory than itself, and where segments beyond a hole follow each other 17 share those; `linear`: in one buffer (virtio), which \
             takes 640 bytes more than the packet, of which each such segment saves 256";
        pub send_buffer: SendBuffer = "auto", size(0, MOST),
            "memory of what is not acknowledged, from the beginning on (`SO_SNDBUF` gives twice what it is asked for); `0` is \
             unlimited; `auto` begins with two windows of memory, 87040 bytes, and grows with the window as Linux does";
        pub most_send_buffer: u64 as Octets = "4MiB", BUFFERS,
            "memory up to which a send buffer grows that is `auto` (the third of `tcp_wmem`)";
        pub header_room: u32 = "320", whole(64, 512),
            "bytes that the kernel leaves for headers in each buffer (`MAX_TCP_HEADER`): 320 in kernels of distributions, 192 \
             without wireless networks and tunnels; send buffers are tuned by it";
        pub buffer_overhead: Option<u32> as Maybe<u32> = "", whole(0, 65_536),
            "memory that a buffer of what is sent takes beside its payload; without it what Linux 6.5 and later take: `header_room`, 576 bytes, \
             and 64 more for 192; before it was 1280, or 768 for 192";
        pub notsent_lowat: Option<u64> as Maybe<Octets> = "", size(1, MOST),
            "the application writes only while fewer bytes than these are unsent (`TCP_NOTSENT_LOWAT`); without it \
             as long as the send buffer has room";
        pub blocking: bool as Truth = "true",
            "an application whose call has found too little memory sleeps in it and goes on (`send` of a blocking socket); `false`: it returns, \
             and calls again when it is told that there is room, as programs do that wait for many sockets at once";
        pub ecn: Option<EcnOffer> as Maybe<EcnOffer> = "",
            "what the sender asks for in the handshake; `off`: no ECN (`tcp_ecn=2`); `classic`: one echo a \
             round trip (`tcp_ecn=1`, RFC 3168); `accecn`: counters of marks (`tcp_ecn=3`, RFC 9768), or what \
             of `classic` the receiver has; without it what `cca` asks for: prague and bbr2 with ecn=ect1 \
             accecn, dctcp, bbr2 with ecn=on and bbr3-linux with ecn_low classic, else off";
        pub receiver_ecn: EcnSupport = "accecn",
            "what the receiver agrees to; `dctcp`: `classic`, echoing mark by mark (RFC 8257 section 3.2), \
             which `accecn` does too where only classic ECN is asked for and `cca` wants it";
        pub ecn_option: bool as Truth = "true",
            "with `accecn`, the receiver also reports marked bytes, in an option (`tcp_ecn_option`)";
        pub joined_marks_once: bool as Truth = "false",
            "with `accecn`, the receiver counts a marked packet that its card joined from several segments \
             as one mark, and not by its segments (RFC 9768 section 3.2.2 wants each counted)";
        pub offload: bool as Truth = "false",
            "segmentation is offloaded, so that a burst crosses the network as one packet";
        pub offload_segments: u32 = "65535", whole(1, 65_535),
            "most segments that cross as one packet with `offload`; a longer burst is cut, as where a \
             network card joins what it received only until it is polled";
        pub gso_max_size: u32 = "65536", whole(1_024, 16 << 20),
            "most bytes that one offloaded packet holds";
        pub tso_rtt_log: u32 = "9", whole(0, 31),
            "bursts are larger the nearer the receiver, by 64 KiB halved every 2 to this power \
             microseconds of round-trip time (`tcp_tso_rtt_log`); `0` is what Linux before 5.18 did";
        pub deferral: Span = "1ms", time(Span::ZERO, Span::from_secs(1)),
            "a short burst waits for an acknowledgement that is due within this time and half a round trip; \
             `1s` is what Linux before 6.13 did";
        pub buffer_bound: bool as Truth = "false",
            "bursts end where a buffer of the send queue ends, which the application filled to `gso_max_size`; it is what Linux \
             before 6.10 did: later ones fill a burst from the next buffer";
        pub pacing: bool as Truth = "false",
            "paces also a congestion control that has no pacing rate of its own, as the `fq` discipline at \
             the sender would";
        pub pacing_slack: Span = "0s", time(Span::ZERO, Span::from_millis(100)),
            "how late the pacing timer may run, evenly distributed: it is a soft interrupt, which waits for \
             a sleeping or busy processor; what an acknowledgement releases does not wait";
        pub tick: Span = "1ms", time(Span::ZERO, Span::from_secs(1)),
            "coarseness of kernel timers (a jiffy), in the units of which longer waits are coarser by 8, 64 and so on; `0s` is exact";
        pub tick_phase: Option<Span> as Maybe<Span> = "", time(Span::ZERO, Span::from_secs(1)),
            "when the ticks of the kernels at both ends come, counted from the beginning of the run; without it drawn for each end and seed";
        pub rto_min: Span = "200ms", time(Span::ZERO, Span::from_secs(120)),
            "smallest retransmission timeout (`tcp_rto_min_us`)";
        pub delayed_ack: Span = "40ms", time(Span::ZERO, Span::from_secs(1)),
            "longest wait of a delayed acknowledgement's first timer (`TCP_DELACK_MIN`)";
        pub quick_ack: bool as Truth = "false", "the receiver acknowledges every segment at once";
        pub address_resolution: Span = "0s", time(Span::ZERO, Span::from_secs(60)),
            "how long address resolution holds up the first packet; the round-trip time of the handshake \
             includes it";
        pub slow_start_after_idle: bool as Truth = "true",
            "the window is reduced after idleness (`tcp_slow_start_after_idle`)";
    }
}

/// Two small segments.
const LEAST: u64 = 2_304;
/// Far below where sums of buffers could wrap.
const MOST: u64 = 1 << 40;
const BUFFERS: sojourn_core::param::Bounds = size(LEAST, MOST);

/// How the receiving card's driver keeps what has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketBuffers {
    #[default]
    Pages,
    Linear,
}

sojourn_core::choice!(PacketBuffers {
    "pages" = PacketBuffers::Pages,
    "linear" = PacketBuffers::Linear,
});

sojourn_core::choice!(EcnOffer {
    "off" = EcnOffer::Off,
    "classic" = EcnOffer::Classic,
    "accecn" = EcnOffer::Accurate,
});

sojourn_core::choice!(EcnSupport {
    "off" = EcnSupport::Off,
    "classic" = EcnSupport::Classic,
    "dctcp" = EcnSupport::MarkByMark,
    "accecn" = EcnSupport::Accurate,
});

fn fits_together(config: &Config) -> Result<(), SpecError> {
    if config.receive_window.is_some() && config.receive_buffer.is_some() {
        let problem = "receive_window and receive_buffer say the same; one of them must go";
        let problem = SpecError::new(problem).allow(["receive_window", "receive_buffer"]);
        return Err(problem.about("receive_window"));
    }
    let (initial, most) = (config.initial_receive_buffer, config.most_receive_buffer);
    if initial > most {
        let problem = format!("'initial_receive_buffer' is {initial} bytes");
        let problem = SpecError::new(problem).allow([format!("{LEAST} to {most} bytes")]);
        return Err(problem.about("initial_receive_buffer"));
    }
    if let SendBuffer::Bytes(bytes @ 1..LEAST) = config.send_buffer {
        let problem = format!("'send_buffer' is {bytes} bytes");
        let problem =
            SpecError::new(problem).allow([format!("0, {LEAST} to {MOST} bytes, or auto")]);
        return Err(problem.about("send_buffer"));
    }
    Ok(())
}

impl Config {
    /// For one end: its kernel's ticks come when the configuration says, or else when `clock` draws it.
    #[must_use]
    pub fn with_clock(&self, clock: &mut Stream) -> Self {
        let drawn = || Span::from_nanos(clock.below(self.tick.as_nanos().max(1) << 12));
        Self { tick_phase: Some(self.tick_phase.unwrap_or_else(drawn)), ..self.clone() }
    }

    /// Segments that one buffer of the receiver holds at most.
    #[inline]
    pub(super) fn most_joined(&self) -> u32 {
        /// `MAX_SKB_FRAGS`.
        const PAGES: u32 = 17;
        match self.packet_buffers {
            PacketBuffers::Pages => PAGES,
            PacketBuffers::Linear => PAGES + 1,
        }
    }

    pub(super) fn timer_wheel(&self) -> TimerWheel {
        TimerWheel::new(self.tick, self.tick_phase.unwrap_or_default())
    }

    /// What the sender asks for in the handshake if its controller asks for `request`.
    pub fn ecn_offer(&self, request: EcnRequest) -> EcnOffer {
        self.ecn.unwrap_or_else(|| EcnOffer::following(request))
    }

    /// Memory of the send buffer that Linux wants for `windows` windows of so many segments.
    pub(super) fn send_buffer_for(&self, windows: u32, segments: u32) -> u64 {
        send_buffer::wanted(windows, segments, self.segment_memory()).min(self.most_send_buffer)
    }

    fn segment_memory(&self) -> u64 {
        send_buffer::of_a_segment(self.mss, self.header, self.header_room)
    }

    /// Most bytes of a buffer, and of a burst: what leaves room for headers.
    #[inline(always)]
    pub(super) fn most_of_a_burst(&self) -> u32 {
        self.gso_max_size - self.header_room - 1
    }

    pub(super) fn write_queue(&self, windows: u32) -> WriteQueue {
        let memory = Memory {
            most: self.send_buffer.at_first(windows, self.segment_memory(), self.most_send_buffer),
            of_a_buffer: self
                .buffer_overhead
                .map_or_else(|| send_buffer::of_a_buffer(self.header_room), u64::from),
            lowat: self.notsent_lowat.unwrap_or(u64::MAX),
        };
        WriteQueue::new(self.mss, self.most_of_a_burst(), memory)
    }

    pub(super) fn window(&self) -> ReceiveBuffer {
        match (&self.receive_window, self.receive_buffer) {
            (Some(windows), _) => ReceiveBuffer::Window(windows.first()),
            (None, Some(bytes)) => ReceiveBuffer::Locked(bytes),
            (None, None) => ReceiveBuffer::Auto {
                initial: self.initial_receive_buffer,
                most: self.most_receive_buffer,
            },
        }
    }
}
