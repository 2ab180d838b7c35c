//! The receiving end: puts segments in order, reports what has arrived, and decides when to report.

use alloc::collections::VecDeque;

use sojourn_cca::EcnRequest;
use sojourn_core::{
    AckBody, AckFlags, AckKind, Body, CeBytes, Direction, ETHERNET_HEADER, Ecn, Event,
    MAX_SACK_BLOCKS, Observer, Packet, Queued, SackBlock, SegmentBody, Span, TcpEcn, Time, Who,
};

use super::accecn::Counters;
use super::ecn::{self, Echo};
use super::reader::{AtOnce, Reader, Reading, Reads};
use super::timer_wheel::{KernelTimer, TimerWheel};
use super::window::ReceiveWindow;
use super::{Config, Endpoints, PacketBuffers};

/// Most segments acknowledged one by one at the start of a connection (`TCP_MAX_QUICKACKS`).
const MOST_QUICK_ACKS: u32 = 16;
/// Duplicate acknowledgements that leave at once; further ones are compressed.
const UNCOMPRESSED: u32 = 3;
const COMPRESSION_LIMIT: u32 = 44;
const COMPRESSION_DELAY: Span = Span::from_millis(1);
/// The timer may be late by so much, and is where no other fires meanwhile (`tcp_comp_sack_slack_ns`).
const COMPRESSION_SLACK: Span = Span::from_micros(100);
const DELAYED_ACK_MAX: Span = Span::from_millis(200);
/// Memory that a packet in one buffer takes less than one whose payload lies in pages.
const LINEAR_SAVES: u32 = 240;
/// Memory of a packet's descriptor (`struct sk_buff`), which one that joins another does without.
const DESCRIPTOR: u32 = 256;

/// Receives one connection's data and acknowledges it. The application reads at once or as a
/// [`Reader`] does.
pub struct Receiver<R = AtOnce> {
    config: Config,
    ends: Endpoints,
    /// Next segment expected, and its byte position.
    next: u32,
    next_byte: u64,
    /// `next` when an acknowledgement last left.
    acked: u32,
    acked_byte: u64,
    /// Segments beyond `next` that have arrived, in order.
    ranges: VecDeque<Range>,
    /// The ranges that changed last, the newest first.
    recent: [SackBlock; MAX_SACK_BLOCKS + 1],
    recent_count: usize,
    held: u64,
    /// Memory that a packet takes less than in pages.
    memory_saved: u32,
    duplicate: Option<SackBlock>,
    window: ReceiveWindow,
    application: R,
    /// When the window that the application allows changes.
    changes_at: Time,
    /// What to echo (`ts_recent`).
    echo: Time,
    quick: u32,
    has_started: bool,
    /// Estimate of the interval between segments, which the delayed acknowledgement waits.
    ato: Span,
    last_arrival: Time,
    /// The timer of delayed acknowledgements, which stays set when one is sent, and whether one waits for it.
    delayed: KernelTimer,
    waits: bool,
    wheel: TimerWheel,
    must_ack: bool,
    owes_ack: bool,
    duplicates_sent: u32,
    duplicates_for: u32,
    compressed: u32,
    compressed_at: Time,
    /// The smallest round-trip time; [`Span::MAX`] before the first sample.
    rtt: Span,
    /// The timestamp that the sender echoed last.
    last_echo: Time,
    /// The ECN feedback that the connection's congestion control asks for.
    request: EcnRequest,
    has_agreed: bool,
    echo_of_marks: Echo,
    /// The codepoint of acknowledgements.
    codepoint: Ecn,
    /// ECN-Echo is set, and ECN-capable data has been seen.
    echoes_congestion: bool,
    saw_capable: bool,
    counters: Counters,
    /// An acknowledgement that leaves before the one that is due.
    outgoing: Option<Packet>,
}

/// Contiguous segments that arrived early.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u32,
    end: u32,
    /// Byte position after its last segment.
    end_byte: u64,
    /// Memory that the range takes.
    held: u64,
    /// Segments that its last buffer holds.
    joined: u32,
}

impl Range {
    fn touches(&self, block: &SackBlock) -> bool {
        self.start <= block.end && block.start <= self.end
    }

    /// As it is behind `before`, whose last buffer has room for `most` segments. `joined` is the memory that it takes there.
    fn follows(self, before: &Self, joined: u64, most: u32) -> Self {
        if before.joined < most {
            Self { held: joined, joined: before.joined + 1, ..self }
        } else {
            self
        }
    }
}

impl Receiver {
    /// `request` is the ECN feedback that the connection's congestion control asks for: on Linux
    /// both ends run it.
    pub fn new(config: Config, request: EcnRequest, ends: Endpoints) -> Self {
        Self::of(config, request, ends, AtOnce)
    }
}

impl Receiver<Reader> {
    /// The same with an application that reads so.
    pub fn read_as(reading: Reading, config: Config, request: EcnRequest, ends: Endpoints) -> Self {
        Self::of(config, request, ends, Reader::new(reading))
    }
}

impl<R: Reads> Receiver<R> {
    fn of(config: Config, request: EcnRequest, ends: Endpoints, application: R) -> Self {
        let window = ReceiveWindow::new(config.window(), config.mss, config.adv_win_scale);
        let windows = config.receive_window.as_ref();
        let memory_saved = match config.packet_buffers {
            PacketBuffers::Pages => 0,
            PacketBuffers::Linear => LINEAR_SAVES,
        };
        Self {
            ends,
            next: 0,
            next_byte: 0,
            acked: 0,
            acked_byte: 0,
            ranges: VecDeque::new(),
            recent: [SackBlock::default(); MAX_SACK_BLOCKS + 1],
            recent_count: 0,
            held: 0,
            memory_saved,
            duplicate: None,
            window,
            application,
            changes_at: windows.map_or(Time::NEVER, |windows| windows.next_change(Time::ZERO)),
            echo: Time::ZERO,
            quick: 0,
            has_started: false,
            ato: Span::ZERO,
            last_arrival: Time::ZERO,
            delayed: KernelTimer::OFF,
            waits: false,
            wheel: config.timer_wheel(),
            must_ack: false,
            owes_ack: false,
            duplicates_sent: 0,
            duplicates_for: 0,
            compressed: 0,
            compressed_at: Time::NEVER,
            rtt: Span::MAX,
            last_echo: Time::ZERO,
            request,
            has_agreed: false,
            echo_of_marks: Echo::Off,
            codepoint: Ecn::NotEct,
            echoes_congestion: false,
            saw_capable: false,
            counters: Counters::default(),
            outgoing: None,
            config,
        }
    }

    #[inline(always)]
    pub fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, observer: &mut O) {
        // One comparison for nearly all packets costs less than a match of all kinds.
        if let Body::Segment(segment) = &packet.body {
            self.on_segment(now, packet, segment, observer);
        } else {
            self.on_other(now, packet);
        }
    }

    /// A packet of the handshake arrives.
    #[cold]
    #[inline(never)]
    fn on_other(&mut self, now: Time, packet: &Packet) {
        match &packet.body {
            Body::Handshake { asked, ecn } => {
                let ecn = self.agree(*ecn).answer(packet.ecn);
                self.outgoing = Some(Packet {
                    direction: Direction::Reverse,
                    ecn: Ecn::NotEct,
                    hop: 0,
                    src: self.ends.receiver,
                    dst: self.ends.sender,
                    sent: now,
                    body: Body::Handshake { asked: *asked, ecn },
                    ..*packet
                });
            }
            Body::Ack(_) => self.window.start(now),
            _ => {}
        }
    }

    /// The first request decides (RFC 9768 section 3.1.5).
    fn agree(&mut self, asked: TcpEcn) -> Echo {
        if !self.has_agreed {
            self.has_agreed = true;
            self.echo_of_marks = self.config.receiver_ecn.agrees_to(asked, self.request);
            self.codepoint = self.echo_of_marks.codepoint(self.request);
        }
        if asked == TcpEcn::NONE {
            // The sender may not know yet what was agreed on.
            self.codepoint = Ecn::NotEct;
        }
        self.echo_of_marks
    }

    /// A time that [`Receiver::next_wake`] named has come.
    pub fn on_wake<O: Observer>(&mut self, now: Time, observer: &mut O) {
        if self.waits && self.delayed.is_over(now, &self.wheel) {
            self.waits = false;
            // The wait was too short for this sender, so the next one may be longer.
            self.ato = (self.ato * 2).min(DELAYED_ACK_MAX + self.rtt.min(DELAYED_ACK_MAX));
            self.must_ack |= self.owes_ack;
        }
        if now >= self.compressed_at {
            self.compressed_at = Time::NEVER;
            self.must_ack |= self.compressed > 0;
        }
        if !R::AT_ONCE && now >= self.application.next_read() {
            self.read(now, observer);
        }
        if now >= self.changes_at {
            self.change_window(now);
        }
    }

    #[cold]
    fn change_window(&mut self, now: Time) {
        if let Some(windows) = &self.config.receive_window {
            self.window.change(windows.at(now));
            self.changes_at = windows.next_change(now);
        }
    }

    /// The application reads.
    fn read<O: Observer>(&mut self, now: Time, observer: &mut O) {
        let bytes = self.application.read(now, self.next_byte);
        if bytes == 0 {
            return;
        }
        let unread = self.unread();
        self.window.on_taken(now, self.next_byte - unread, self.early());
        self.tell_doubled_window(unread);
        observer.record(now, Who::Flow(self.ends.flow), &Event::Delivered { bytes });
    }

    /// Bytes beyond a gap, up to the last segment that has arrived.
    #[inline]
    fn early(&self) -> u64 {
        self.ranges.back().map_or(0, |last| last.end_byte - self.next_byte)
    }

    #[inline(always)]
    fn unread(&self) -> u64 {
        self.application.unread(self.next_byte)
    }

    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.must_ack {
            if self.outgoing.is_some() {
                return self.take_outgoing(now);
            }
            return Some(self.acknowledge(now));
        }
        if self.outgoing.is_some() { self.outgoing.take() } else { None }
    }

    /// After it, the acknowledgement that is due follows at once.
    #[cold]
    fn take_outgoing(&mut self, now: Time) -> Option<Packet> {
        self.compressed_at = now;
        self.outgoing.take()
    }

    #[inline(always)]
    pub fn next_wake(&self) -> Time {
        let others = self.next_wake_of_others();
        if self.waits { self.delayed.fires_or(others, &self.wheel) } else { others }
    }

    /// A time that [`Receiver::next_wake`] doesn't come before, which takes less to find.
    #[inline(always)]
    pub fn least_wake(&self) -> Time {
        let others = self.next_wake_of_others();
        if self.waits { self.delayed.at.min(others) } else { others }
    }

    #[inline(always)]
    fn next_wake_of_others(&self) -> Time {
        self.compressed_at.min(self.application.next_read()).min(self.changes_at)
    }

    /// The first segment not received.
    pub fn next_expected(&self) -> u32 {
        self.next
    }

    #[inline(always)]
    fn on_segment<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &SegmentBody,
        observer: &mut O,
    ) {
        // A probe of the window before anything is acknowledged is the one before the first.
        let (start, end) = (segment.first, segment.first.wrapping_add(u32::from(packet.segments)));
        if self.echo_of_marks != Echo::Off {
            self.on_ecn(now, packet, segment);
        }
        // RFC 7323 section 4.3: remember the timestamp of a segment that advances the left edge.
        if start <= self.acked {
            self.echo = packet.sent;
        }
        if segment.echo > Time::ZERO && segment.payload > 0 {
            self.on_echo(now, segment.echo);
        }
        self.owes_ack = true;
        if end <= self.next {
            self.must_ack = true;
            if segment.payload == 0 {
                // A probe of the window.
                return;
            }
            self.quick = self.quick.max(self.most_quick_acks());
            self.duplicate = Some(SackBlock { start, end });
            return;
        }
        if start > self.next {
            let arrived = Range {
                start,
                end,
                end_byte: segment.byte + u64::from(segment.payload),
                held: u64::from(self.memory(packet)),
                joined: 1,
            };
            let before = self.held;
            let is_told =
                self.on_early(now, arrived, u64::from(self.memory_joined(packet, segment)));
            // Linux counts it before the window grows only if it joins a buffer.
            let has_joined = self.held < before + arrived.held;
            let own = u64::from(self.memory(packet));
            let taken = if has_joined { self.held } else { before };
            self.widen(packet, segment, self.taken(taken, own));
            if !is_told {
                self.decide(now, 0);
            }
            return;
        }
        self.on_in_order(now, packet, segment, observer);
    }

    #[inline(always)]
    fn on_in_order<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &SegmentBody,
        observer: &mut O,
    ) {
        let before = self.next_byte;
        self.next = segment.first + u32::from(packet.segments);
        self.next_byte = segment.byte + u64::from(segment.payload);
        let mut read_first = self.next_byte;
        let mut unread = 0;
        let held = self.held;
        let own = u64::from(self.memory(packet));
        if held > 0 {
            read_first = self.take_ranges();
            // RFC 5681 section 4.2: at once when a gap is filled.
            self.must_ack |= self.ranges.is_empty();
            unread = held - self.held + own;
            if read_first > segment.byte + u64::from(segment.payload)
                && self.config.packet_buffers == PacketBuffers::Linear
            {
                unread -= u64::from(DESCRIPTOR);
            }
        }
        self.on_arrival(now);
        self.window.on_in_order(now, self.next_byte);
        self.widen(packet, segment, self.taken(held + own, own));
        if R::AT_ONCE {
            let is_told =
                (unread > 0 || self.is_told_before_it_is_read(own)) && self.outgoing.is_none();
            if is_told {
                let unread = unread.max(own);
                self.decide(now, unread);
                self.acknowledge_unread(now, unread);
            }
            self.window.on_taken(now, read_first, self.early());
            let delivered = Event::Delivered { bytes: self.next_byte - before };
            observer.record(now, Who::Flow(self.ends.flow), &delivered);
            if is_told {
                self.tell_doubled_window(0);
                return;
            }
        } else {
            self.application.on_data(now);
        }
        // Linux acknowledges a pushed segment as soon as the application has read it.
        self.must_ack |= segment.push;
        self.decide(now, 0);
    }

    /// Linux acknowledges before the application has read, unless that would not offer as much as before. It is the same where what
    /// arrived does not make the window smaller.
    #[inline(always)]
    fn is_told_before_it_is_read(&self, own: u64) -> bool {
        self.window.is_narrowed_by(own)
            && (self.quick > 0
                || (self.next_byte - self.acked_byte > u64::from(self.config.mss)
                    && self.window.offers_as_before(own)))
    }

    /// While there are gaps, acknowledgements of what fills one leave before the application is woken, so what arrived beyond it still
    /// takes its memory.
    #[inline(never)]
    fn acknowledge_unread(&mut self, now: Time, unread: u64) {
        self.held += unread;
        self.outgoing = Some(self.acknowledge(now));
        self.held -= unread;
    }

    /// If reading at least doubled the window, the sender is told, as Linux does: so small windows are kept from it
    /// (RFC 9293 section 3.8.6.2.2).
    fn tell_doubled_window(&mut self, unread: u64) {
        let (now_offered, free) = self.window.room(self.next_byte, self.held, unread);
        self.must_ack |= free > 0 && free >= 2 * now_offered;
    }

    /// Lets the window grow into the buffer. While it grows, Linux acknowledges every packet, so
    /// that the sender learns of the new window.
    #[inline(always)]
    fn widen(&mut self, packet: &Packet, segment: &SegmentBody, taken: u64) {
        let segments = u32::from(packet.segments);
        let grows = if segments == 1 {
            self.window.on_packet(segment.payload, self.memory(packet), 1, taken)
        } else {
            let each = (segment.payload / segments, packet.truesize() / segments);
            self.window.on_packet(each.0, each.1, segments, taken)
        };
        // The kernel sets the lowest bit of its counter.
        self.quick |= u32::from(grows);
    }

    /// Memory of what has arrived beyond holes.
    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Its estimate of the round-trip time.
    #[cfg(test)]
    pub(super) fn round_trip(&self) -> Span {
        self.window.round_trip()
    }

    /// Segments that are acknowledged one by one: at most half of the window's (`tcp_incr_quickack`).
    #[inline(never)]
    fn most_quick_acks(&self) -> u32 {
        let pairs = self.window.offered() / (2 * u64::from(self.config.mss).max(1));
        if pairs == 0 { 2 } else { MOST_QUICK_ACKS.min(u32::try_from(pairs).unwrap_or(u32::MAX)) }
    }

    /// Memory that a packet takes.
    #[inline(always)]
    fn memory(&self, packet: &Packet) -> u32 {
        packet.truesize() - self.memory_saved
    }

    /// Memory that it takes in the buffer of the segment before it. Those of an offloaded packet fill all pages of theirs.
    fn memory_joined(&self, packet: &Packet, segment: &SegmentBody) -> u32 {
        match self.config.packet_buffers {
            _ if packet.segments > 1 => self.memory(packet),
            PacketBuffers::Pages => segment.payload,
            PacketBuffers::Linear => self.memory(packet) - DESCRIPTOR,
        }
    }

    /// Takes ranges that arrived early and are in order by now. Returns where what the application reads first ends: with buffers in one
    /// piece that of the segment that arrived, as was measured; else all that is in order.
    fn take_ranges(&mut self) -> u64 {
        let read_first = match self.ranges.front() {
            Some(range)
                if range.start <= self.next
                    && range.end - range.start < self.config.most_joined() =>
            {
                self.next_byte.max(range.end_byte)
            }
            _ => self.next_byte,
        };
        while let Some(range) = self.ranges.front() {
            if range.start > self.next {
                break;
            }
            if range.end > self.next {
                self.next = range.end;
                self.next_byte = range.end_byte;
            }
            self.held -= range.held;
            self.ranges.pop_front();
        }
        let next = self.next;
        let mut kept = 0;
        for index in 0..self.recent_count {
            if self.recent[index].end > next {
                self.recent[kept] = self.recent[index];
                kept += 1;
            }
        }
        self.recent_count = kept;
        match self.config.packet_buffers {
            PacketBuffers::Linear => read_first,
            PacketBuffers::Pages => self.next_byte,
        }
    }

    /// What counts as taken when the window grows: all of it where that was seen, of segments in one piece, else the segment's `own`.
    #[inline(always)]
    fn taken(&self, all: u64, own: u64) -> u64 {
        match self.config.packet_buffers {
            PacketBuffers::Linear => all,
            PacketBuffers::Pages => own,
        }
    }

    /// `joined` is the memory that it takes in the buffer of the segment before it. True if what had waited was acknowledged.
    #[inline(always)]
    fn on_early(&mut self, now: Time, arrived: Range, joined: u64) -> bool {
        let most = self.config.most_joined();
        // Usually the arriving segment extends the newest block.
        if let Some(last) = self.ranges.back_mut()
            && last.end == arrived.start
            && self.recent_count > 0
            && self.recent[0].end == arrived.start
        {
            let added = arrived.follows(last, joined, most);
            self.held += added.held;
            *last = Range { start: last.start, held: last.held + added.held, ..added };
            self.recent[0] = SackBlock { start: last.start, end: last.end };
            return false;
        }
        let is_told = self.compressed > 0 && self.tell_blocks_before(now, &arrived);
        self.on_early_elsewhere(arrived, joined);
        is_told
    }

    /// If an acknowledgement waits for more to come, Linux sends it before a third block, or one behind it, is the newest: so
    /// each block is reported more than once. Then nothing waits for what has arrived.
    #[inline(never)]
    fn tell_blocks_before(&mut self, now: Time, arrived: &Range) -> bool {
        const EXPECTED: usize = 2;
        let blocks = &mut self.recent[..self.recent_count];
        let at = blocks.iter().position(|block| arrived.touches(block));
        if at.unwrap_or(self.recent_count) < EXPECTED || self.outgoing.is_some() {
            return false;
        }
        if let Some(block) = at.map(|at| &mut blocks[at]) {
            *block = SackBlock {
                start: block.start.min(arrived.start),
                end: block.end.max(arrived.end),
            };
        }
        self.outgoing = Some(self.acknowledge(now));
        true
    }

    fn on_early_elsewhere(&mut self, mut arrived: Range, joined: u64) {
        // All ranges that overlap or touch what arrived become one.
        let from = self.ranges.partition_point(|range| range.end < arrived.start);
        // Seldom more than two, so they are not worth a search.
        let touched = self.ranges.range(from..).take_while(|range| range.start <= arrived.end);
        let to = from + touched.count();
        let is_known = self
            .ranges
            .get(from)
            .is_some_and(|range| range.start <= arrived.start && arrived.end <= range.end);
        let block = if is_known {
            self.duplicate = Some(SackBlock { start: arrived.start, end: arrived.end });
            self.ranges[from]
        } else {
            if let Some(before) = self.ranges.get(from).filter(|range| range.end == arrived.start) {
                arrived = arrived.follows(before, joined, self.config.most_joined());
            }
            self.held += arrived.held;
            let mut whole = arrived;
            for range in self.ranges.range(from..to) {
                if range.end > whole.end {
                    whole.end = range.end;
                    whole.end_byte = range.end_byte;
                    whole.joined = range.joined;
                }
                whole.start = whole.start.min(range.start);
                whole.held += range.held;
            }
            if from < to {
                self.ranges[from] = whole;
                self.ranges.drain(from + 1..to);
            } else {
                self.ranges.insert(from, whole);
            }
            whole
        };
        self.remember(SackBlock { start: block.start, end: block.end });
    }

    /// Puts `block` first among the blocks to be reported, and drops blocks that it contains.
    fn remember(&mut self, block: SackBlock) {
        let mut fresh = [SackBlock::default(); MAX_SACK_BLOCKS + 1];
        fresh[0] = block;
        let mut count = 1;
        for old in &self.recent[..self.recent_count] {
            let is_inside = block.start <= old.start && old.end <= block.end;
            if !is_inside && count < fresh.len() {
                fresh[count] = *old;
                count += 1;
            }
        }
        self.recent = fresh;
        self.recent_count = count;
    }

    /// Several segments may have the same timestamp; the first of them gives the sample.
    #[inline(always)]
    fn on_echo(&mut self, now: Time, echo: Time) {
        if echo != self.last_echo {
            self.last_echo = echo;
            self.window.on_echo(now, echo);
            self.rtt = self.rtt.min(now.after(echo));
        }
    }

    #[inline(never)]
    fn on_ecn(&mut self, now: Time, packet: &Packet, segment: &SegmentBody) {
        match self.echo_of_marks {
            Echo::Off => {}
            Echo::Latched => self.latch(packet.ecn, segment.ecn),
            Echo::MarkByMark => self.echo_mark(now, packet.ecn, segment.ecn),
            Echo::Counters => {
                let is_one = self.config.joined_marks_once;
                let segments = if is_one { 1 } else { u32::from(packet.segments) };
                self.must_ack |= self.counters.on_data(packet.ecn, segments, segment.payload);
            }
        }
    }

    /// RFC 3168 section 6.1.3. After a reduction the sender's window may be very small, and
    /// repeated data shows that it is stalled; so Linux does not delay acknowledgements then.
    fn latch(&mut self, ecn: Ecn, flags: TcpEcn) {
        if flags.contains(TcpEcn::CWR) {
            self.echoes_congestion = false;
            self.must_ack = true;
        }
        if ecn == Ecn::Ce {
            if !self.echoes_congestion {
                self.quick = self.quick.max(2);
            }
            self.echoes_congestion = true;
        } else if ecn == Ecn::NotEct && self.saw_capable {
            self.quick = self.quick.max(2);
        }
        self.saw_capable |= ecn.is_capable();
    }

    /// RFC 8257 section 3.2: an acknowledgement covers segments that are all marked or all
    /// unmarked.
    fn echo_mark(&mut self, now: Time, ecn: Ecn, flags: TcpEcn) {
        let is_marked = ecn == Ecn::Ce;
        if is_marked != self.echoes_congestion {
            if self.must_ack || self.waits {
                // This acknowledges what came before, and does not use up the segments to be
                // acknowledged one by one.
                let quick = self.quick;
                self.outgoing = Some(self.acknowledge(now));
                self.quick = quick;
            }
            self.must_ack = true;
        }
        self.echoes_congestion = is_marked;
        self.must_ack |= flags.contains(TcpEcn::CWR);
    }

    /// Adapts the delayed acknowledgement to the pace of the sender.
    #[inline(always)]
    fn on_arrival(&mut self, now: Time) {
        let least = self.config.delayed_ack;
        if !self.has_started {
            self.has_started = true;
            self.window.start(now);
            self.quick = self.most_quick_acks();
            self.ato = least;
        } else {
            let gap = now.after(self.last_arrival);
            if gap <= least / 2 {
                self.ato = self.ato / 2 + least / 2;
            } else if gap < self.ato {
                self.ato = self.ato / 2 + gap;
            } else if gap > Span::from_secs(1) {
                self.quick = self.most_quick_acks();
            }
        }
        self.last_arrival = now;
    }

    /// Decides whether to acknowledge at once, later, or with what follows. What has arrived takes so much memory until it is read.
    #[inline(always)]
    fn decide(&mut self, now: Time, unread: u64) {
        let is_much = self.next_byte - self.acked_byte > u64::from(self.config.mss);
        if self.must_ack || self.quick > 0 || self.config.quick_ack {
            self.must_ack = true;
        } else if self.ranges.is_empty() {
            if is_much {
                self.must_ack = true;
            } else {
                self.delay(now);
            }
        } else if is_much && self.window.offers_as_before(self.held + unread) {
            self.must_ack = true;
        } else {
            self.compress(now);
        }
    }

    #[inline(always)]
    fn delay(&mut self, now: Time) {
        let longest = self.rtt.max(self.config.delayed_ack).min(DELAYED_ACK_MAX);
        let timer = KernelTimer::new(now, self.ato.min(longest));
        if !self.waits || timer.fires(&self.wheel) < self.delayed.fires(&self.wheel) {
            self.delayed = timer;
        }
        self.waits = true;
    }

    /// The first duplicates go out as they come, so that the sender sees the loss; later ones at
    /// most once in a twentieth of a round trip.
    #[inline(always)]
    fn compress(&mut self, now: Time) {
        if self.duplicates_for != self.next {
            self.duplicates_for = self.next;
            self.duplicates_sent = 0;
        }
        if self.duplicates_sent < UNCOMPRESSED || self.compressed >= COMPRESSION_LIMIT {
            self.duplicates_sent += 1;
            self.must_ack = true;
            return;
        }
        self.compressed += 1;
        if self.compressed_at.is_never() {
            self.compressed_at = now + COMPRESSION_DELAY.min(self.rtt / 20) + COMPRESSION_SLACK;
            // The timer of delayed acknowledgements, which nobody stops, sends what waits too.
            let timer = self.delayed.fires(&self.wheel);
            if timer > now {
                self.compressed_at = self.compressed_at.min(timer);
            }
        }
    }

    /// The one that is sent now. Who has acknowledged them all begins again with a short delay.
    #[inline(always)]
    fn count_quick_ack(&mut self, is_short: bool) {
        self.quick = if is_short { 0 } else { self.quick - 1 };
        if self.quick == 0 && !is_short {
            self.ato = self.config.delayed_ack;
        }
    }

    #[inline(always)]
    fn acknowledge(&mut self, now: Time) -> Packet {
        self.must_ack = false;
        self.owes_ack = false;
        self.waits = false;
        self.compressed = 0;
        self.compressed_at = Time::NEVER;
        let is_short = self.held > 0 && self.window.is_short(self.held, self.unread());
        if self.quick > 0 {
            self.count_quick_ack(is_short);
        }
        self.acked = self.next;
        self.acked_byte = self.next_byte;
        let mut body = AckBody {
            ack: self.next,
            window: self.window.advertise(self.next_byte, self.held, self.unread()),
            echo: self.echo,
            sack: [SackBlock::default(); MAX_SACK_BLOCKS],
            sack_count: 0,
            flags: AckFlags::NONE,
            ecn: TcpEcn::NONE,
            ce_bytes: None,
            kind: AckKind::Ack,
        };
        let mut ecn = Ecn::NotEct;
        let mut wire_len = self.config.header + ETHERNET_HEADER;
        if self.recent_count > 0 || self.duplicate.is_some() {
            self.report(&mut body);
            wire_len += 4 + 8 * u32::from(body.sack_count);
        }
        if self.echo_of_marks != Echo::Off {
            let marks = self.tell_marks(body.sack_count);
            ecn = marks.codepoint;
            (body.ecn, body.ce_bytes) = (marks.flags, marks.bytes);
            wire_len += u32::from(marks.option_length);
        }
        Packet {
            flow: self.ends.flow,
            connection: 0,
            direction: Direction::Reverse,
            ecn,
            dscp: self.ends.dscp,
            segments: 1,
            wire_len,
            hop: 0,
            src: self.ends.receiver,
            dst: self.ends.sender,
            sent: now,
            body: Body::Ack(body),
        }
    }

    /// Reports what has arrived out of order or twice; the first is a duplicate, if there was one.
    #[inline(always)]
    fn report(&mut self, body: &mut AckBody) {
        let duplicate = self.duplicate.take();
        body.flags = AckFlags::DSACK.only_if(duplicate.is_some());
        let reported = duplicate.iter().chain(&self.recent[..self.recent_count]);
        for (slot, block) in body.sack.iter_mut().zip(reported) {
            *slot = *block;
            body.sack_count += 1;
        }
    }

    #[inline(never)]
    fn tell_marks(&mut self, sack_count: u8) -> AckMarks {
        let codepoint = self.codepoint;
        if self.echo_of_marks != Echo::Counters {
            let flags = if self.echoes_congestion { TcpEcn::ECE } else { TcpEcn::NONE };
            return AckMarks { codepoint, flags, ..AckMarks::default() };
        }
        let flags = self.counters.tell();
        let option_length = ecn::option_length(sack_count);
        if !self.config.ecn_option || option_length == 0 {
            return AckMarks { codepoint, flags, ..AckMarks::default() };
        }
        let bytes = Some(CeBytes::new(self.counters.ceb));
        AckMarks { codepoint, flags, option_length, bytes }
    }
}

/// What an acknowledgement reports of marks, and the codepoint that it carries itself.
#[derive(Clone, Copy, Debug, Default)]
struct AckMarks {
    codepoint: Ecn,
    flags: TcpEcn,
    option_length: u8,
    bytes: Option<CeBytes>,
}
