//! What every discipline must do. Built-in disciplines and disciplines from elsewhere are tested by the
//! same suite: packets, a bench, and what must hold of what goes in and out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{
    DropReason, Ecn, FlowKey, PureAck, Purpose, Queued, Span, Stream, StreamAddress, Time,
};

use crate::{AnyQdisc, Backlog, Config, Dequeue, Enqueue, Qdisc, Reshape, Sink};

/// Sequences of arrivals and departures that [`check`] puts a discipline through.
const SEQUENCES: u64 = 60;

/// Runs the whole suite on what `config` makes: random sequences, each twice.
///
/// # Errors
/// What it does that a discipline must not do.
pub fn check(config: &Config) -> Result<(), String> {
    for seed in 0..SEQUENCES {
        let mut random = stream(seed);
        let count = 1 + random.below(120);
        let operations: Vec<_> = (0..count).map(|_| Operation::random(&mut random)).collect();
        let first = conserves(config, &operations, true)?;
        if first != conserves(config, &operations, true)? {
            return Err("the same packets are treated otherwise the second time".into());
        }
    }
    Ok(())
}

macro_rules! ensure {
    ($holds:expr, $($problem:tt)+) => {
        if !$holds {
            return Err(format!($($problem)+));
        }
    };
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TestPacket {
    pub(crate) id: u32,
    pub(crate) ip_len: u32,
    pub(crate) segments: u32,
    pub(crate) key: FlowKey,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) ack: Option<PureAck>,
}

impl TestPacket {
    fn random(random: &mut Stream) -> Self {
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][random.below(4) as usize];
        let host = random.below(4) as u32;
        let key = FlowKey { src: host, dst: host / 2, ports: random.below(30) };
        let ip_len = 20 + random.below(1481) as u32;
        let dscp = random.below(64) as u8;
        let packet = Self { id: 0, ip_len, segments: 1, key, ecn, dscp, ack: None };
        if random.chance(0.5) {
            let segments = 1 + random.below(3) as u32;
            return Self { segments, ip_len: ip_len * segments, ..packet };
        }
        let ack = PureAck {
            ack: random.below(50),
            sack: Default::default(),
            sack_count: 0,
            ecn_flags: 0,
            timestamp: Time::ZERO,
        };
        Self { ack: Some(ack), ip_len: 52, ..packet }
    }
}

impl Queued for TestPacket {
    fn wire_len(&self) -> u32 {
        self.ip_len + 14 * self.segments
    }

    fn ip_len(&self) -> u32 {
        self.ip_len
    }

    fn segments(&self) -> u32 {
        self.segments
    }

    fn truesize(&self) -> u32 {
        self.ip_len.next_multiple_of(64) + 896 * self.segments
    }

    fn flow_key(&self) -> FlowKey {
        self.key
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        assert!(self.ecn.is_capable(), "marked a packet that may not be");
        self.ecn = Ecn::Ce;
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.ack
    }
}

impl Reshape for TestPacket {
    fn split_first(&mut self) -> Option<Self> {
        if self.segments < 2 {
            return None;
        }
        let ip_len = self.ip_len / self.segments;
        self.ip_len -= ip_len;
        self.segments -= 1;
        Some(Self { ip_len, segments: 1, ..*self })
    }

    fn wash(&mut self) {
        self.dscp = 0;
    }
}

/// Records what it is told.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) dropped: Vec<(Time, TestPacket, DropReason)>,
    pub(crate) marked: Vec<(Time, u32)>,
}

impl Sink<TestPacket> for Recorder {
    fn dropped(&mut self, now: Time, packet: TestPacket, why: DropReason) {
        self.dropped.push((now, packet, why));
    }

    fn marked(&mut self, now: Time, packet: &TestPacket) {
        self.marked.push((now, packet.id));
    }
}

pub(crate) fn stream(seed: u64) -> Stream {
    StreamAddress { seed, run: 0 }.stream(0, Purpose::Queue)
}

/// A discipline with a clock and a record of what it did.
pub(crate) struct Bench {
    pub(crate) qdisc: AnyQdisc<TestPacket>,
    pub(crate) now: Time,
    pub(crate) record: Recorder,
}

impl Bench {
    pub(crate) fn of(config: &Config, seed: u64) -> Self {
        Self { qdisc: config.build(stream(seed)), now: Time::ZERO, record: Recorder::default() }
    }

    pub(crate) fn wait(&mut self, span: Span) {
        self.now += span;
    }

    pub(crate) fn offer(&mut self, packet: TestPacket) {
        if let Enqueue::Dropped(packet, why) =
            self.qdisc.enqueue(self.now, packet, &mut self.record)
        {
            self.record.dropped.push((self.now, packet, why));
        }
    }

    /// The next packet with how long it waited; waits for the shaper, if there is one.
    ///
    /// # Errors
    /// The shaper names no later time.
    pub(crate) fn next(&mut self) -> Result<Option<(TestPacket, Span)>, String> {
        loop {
            match self.qdisc.dequeue(self.now, &mut self.record) {
                Dequeue::Packet(packet, wait) => return Ok(Some((packet, wait))),
                Dequeue::Empty => return Ok(None),
                Dequeue::NotBefore(time) => {
                    ensure!(time > self.now, "it asks to wait until {time}, at {}", self.now);
                    self.now = time;
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Wait(u64),
    Offer(TestPacket),
    Burst(TestPacket, u32),
    Take,
    TakeMany(u32),
}

impl Operation {
    fn random(random: &mut Stream) -> Self {
        match random.below(5) {
            0 => Self::Wait(random.below(40_000_000)),
            1 => Self::Offer(TestPacket::random(random)),
            2 => Self::Burst(TestPacket::random(random), 1 + random.below(39) as u32),
            3 => Self::Take,
            _ => Self::TakeMany(1 + random.below(29) as u32),
        }
    }
}

/// Wire packets and bytes, the Ethernet headers of segments included.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    segments: u64,
    bytes: u64,
}

impl Tally {
    fn count(&mut self, packet: &TestPacket) {
        self.segments += u64::from(packet.segments);
        self.bytes += u64::from(packet.wire_len());
    }
}

/// Packets that left, with the times at which they did, and those that were dropped.
pub(crate) type Fates = (Vec<(Time, u32)>, Vec<(Time, u32)>);

/// Applies `operations` and checks after each that nothing is lost or made, and that packets of a flow keep
/// their order; of a discipline that `has_classes`, those with the same code point and ECN bits.
///
/// # Errors
/// What does not hold.
pub(crate) fn conserves(
    config: &Config,
    operations: &[Operation],
    has_classes: bool,
) -> Result<Fates, String> {
    let mut run = Conserved {
        bench: Bench::of(config, 1),
        has_classes,
        offered: Tally::default(),
        taken: Tally::default(),
        arrivals: Vec::new(),
        last: BTreeMap::new(),
        left: Vec::new(),
    };
    for operation in operations {
        match operation {
            Operation::Wait(ns) => run.bench.wait(Span::from_nanos(*ns)),
            Operation::Offer(packet) => run.offer(*packet),
            Operation::Burst(packet, count) => (0..*count).for_each(|_| run.offer(*packet)),
            Operation::Take => run.take()?,
            Operation::TakeMany(count) => (0..*count).try_for_each(|_| run.take())?,
        }
        let (oldest, waiting) = (run.bench.qdisc.oldest(), run.bench.qdisc.backlog().packets);
        ensure!(
            oldest.is_some() == (waiting > 0),
            "{waiting} packets wait, and the oldest arrived at {oldest:?}"
        );
        ensure!(
            oldest.is_none_or(|time| time <= run.bench.now),
            "the oldest packet is yet to come"
        );
    }
    run.finish()
}

struct Conserved {
    bench: Bench,
    has_classes: bool,
    offered: Tally,
    taken: Tally,
    /// Packets as they arrived, by number.
    arrivals: Vec<TestPacket>,
    /// Of each class of a flow the packet that left last.
    last: BTreeMap<(u64, u32, u32, u8, u8), u32>,
    left: Vec<(Time, u32)>,
}

impl Conserved {
    fn offer(&mut self, packet: TestPacket) {
        let packet = TestPacket { id: self.arrivals.len() as u32, ..packet };
        self.arrivals.push(packet);
        self.offered.count(&packet);
        self.bench.offer(packet);
    }

    fn take(&mut self) -> Result<(), String> {
        let bench = &mut self.bench;
        match bench.qdisc.dequeue(bench.now, &mut bench.record) {
            Dequeue::Packet(packet, wait) => {
                ensure!(wait <= bench.now.since(Time::ZERO), "a packet waited for {wait}");
                self.count(&packet)
            }
            Dequeue::Empty => {
                let backlog = bench.qdisc.backlog();
                ensure!(backlog == Backlog::default(), "it gives nothing, with {backlog:?} inside");
                Ok(())
            }
            Dequeue::NotBefore(time) => {
                ensure!(time > bench.now, "it asks to wait until {time}, at {}", bench.now);
                ensure!(bench.qdisc.backlog().packets > 0, "it asks to wait, with nothing inside");
                Ok(())
            }
        }
    }

    fn count(&mut self, packet: &TestPacket) -> Result<(), String> {
        self.taken.count(packet);
        self.left.push((self.bench.now, packet.id));
        let arrival = self.arrivals[packet.id as usize];
        let (dscp, ecn) = if self.has_classes { (arrival.dscp, arrival.ecn as u8) } else { (0, 0) };
        let key = (arrival.key.ports, arrival.key.src, arrival.key.dst, dscp, ecn);
        let last = self.last.insert(key, packet.id);
        ensure!(last.is_none_or(|last| last <= packet.id), "packets of a flow change their order");
        Ok(())
    }

    fn finish(mut self) -> Result<Fates, String> {
        let inside = self.bench.qdisc.backlog();
        self.balances(inside)?;
        while let Some((packet, _)) = self.bench.next()? {
            self.count(&packet)?;
        }
        let backlog = self.bench.qdisc.backlog();
        ensure!(backlog == Backlog::default(), "{backlog:?} stay inside");
        self.balances(backlog)?;
        let dropped = self.dropped();
        let segments = self.taken.segments + dropped.segments;
        ensure!(
            self.offered.segments == segments,
            "{} segments went in, {segments} came out or were dropped",
            self.offered.segments
        );
        let dropped = self.bench.record.dropped.iter().map(|(at, packet, _)| (*at, packet.id));
        Ok((self.left, dropped.collect()))
    }

    fn dropped(&self) -> Tally {
        let mut dropped = Tally::default();
        self.bench.record.dropped.iter().for_each(|(_, packet, _)| dropped.count(packet));
        dropped
    }

    fn balances(&self, inside: Backlog) -> Result<(), String> {
        let (taken, dropped) = (self.taken.bytes, self.dropped().bytes);
        ensure!(
            self.offered.bytes == taken + dropped + inside.bytes,
            "{} bytes went in, {taken} came out, {dropped} were dropped, {} are inside",
            self.offered.bytes,
            inside.bytes
        );
        Ok(())
    }
}
