//! Packets of a run in a file that Wireshark reads: pcapng (draft-ietf-opsawg-pcapng), nanosecond
//! timestamps, an interface for each tap point, drops and marks as comments.
//!
//! What a simulated packet lacks is made up so that it is valid: addresses `10.x.y.z` by host,
//! ports by flow, a handshake's options, checksums. Payload is zeros and is cut off, as with
//! `tcpdump -s 96`, but for RTCP and parity of calls, which are whole; lengths are those of the whole packet. An offloaded packet is written as the
//! wire packets that it represents.
//!
//! If packets of one connection are captured at two points, an analyser takes the second copy for a
//! retransmission. [`Taps::default`] therefore captures at senders only, as `tcpdump` there would,
//! and a comment tells what became of each packet.

mod block;
mod fate;
mod frame;

use std::collections::BTreeMap;
use std::io::{self, Write};

use sojourn_core::{Body, Direction, Event, Observer, Packet, PortId, Time, Who};

use block::{enhanced_packet, interface, section_header};
use fate::{Fates, Held};
use frame::Connection;

/// Where packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taps {
    pub senders: bool,
    pub receivers: bool,
    /// Before and after the queue of every link.
    pub queues: bool,
}

impl Default for Taps {
    fn default() -> Self {
        Self { senders: true, receivers: false, queues: false }
    }
}

impl Taps {
    pub const ALL: Self = Self { senders: true, receivers: true, queues: true };
}

/// Names of what is captured, by their positions in the scenario.
#[derive(Clone, Debug, Default)]
pub struct PcapConfig {
    pub flows: Vec<String>,
    pub links: Vec<String>,
    pub taps: Taps,
    /// What the ends of each flow say of their windows; flows beyond the list have [`Offer::default`].
    pub offers: Vec<Offer>,
}

/// What an end of a connection says of its receive window in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Bytes that it offers there, where windows are not scaled (RFC 7323 section 2.2).
    pub first: u16,
    /// Later windows are counted in units of 2 to this power bytes; at most 14.
    pub scale: u8,
}

/// Linux's over Ethernet, with its usual buffers.
impl Default for Offer {
    fn default() -> Self {
        Self { first: 65_160, scale: 7 }
    }
}

/// Writes what it observes as pcapng. Packets are held until it is known what became of them, so a
/// file is complete only after [`PcapObserver::finish`].
pub struct PcapObserver<W: Write> {
    out: W,
    config: PcapConfig,
    /// By flow, and number within the flow.
    connections: BTreeMap<(u32, u32), Connection>,
    /// The number of each tap point in the file.
    interfaces: BTreeMap<Tap, u32>,
    fates: Fates,
    /// What opaque packets under way have behind their headers, by flow, direction and number. Those that are lost stay.
    contents: BTreeMap<(u32, bool, u32), Vec<u8>>,
    /// The first error; after it nothing more is written.
    failed: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tap {
    Sender(u32),
    Receiver(u32),
    QueueIn(PortId),
    QueueOut(PortId),
}

impl<W: Write> PcapObserver<W> {
    /// # Errors
    /// Writing the head of the file fails.
    pub fn new(mut out: W, config: PcapConfig) -> io::Result<Self> {
        let mut interfaces = BTreeMap::new();
        let mut heads = section_header();
        let mut add = |tap: Tap, name: String| {
            let number = interfaces.len() as u32;
            heads.extend(interface(&name));
            interfaces.insert(tap, number);
        };
        for (at, name) in config.flows.iter().enumerate() {
            if config.taps.senders {
                add(Tap::Sender(at as u32), format!("sender of {name}"));
            }
            if config.taps.receivers {
                add(Tap::Receiver(at as u32), format!("receiver of {name}"));
            }
        }
        if config.taps.queues {
            for (at, name) in config.links.iter().enumerate() {
                add(Tap::QueueIn(PortId(at as u16)), format!("{name}, into the queue"));
                add(Tap::QueueOut(PortId(at as u16)), format!("{name}, out of the queue"));
            }
        }
        out.write_all(&heads)?;
        let connections = BTreeMap::new();
        let (fates, contents) = Default::default();
        Ok(Self { out, config, connections, interfaces, fates, contents, failed: None })
    }

    /// Writes the packets that are still held, and returns the writer.
    ///
    /// # Errors
    /// The first error of writing, even an earlier one.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_settled(true);
        match self.failed {
            Some(error) => Err(error),
            None => {
                self.out.flush()?;
                Ok(self.out)
            }
        }
    }

    fn tap(&mut self, now: Time, tap: Tap, packet: &Packet, waits: bool, comment: Option<String>) {
        let (Some(interface), Some(connection)) =
            (self.interfaces.get(&tap), self.connections.get_mut(&connection_of(packet)))
        else {
            return;
        };
        let content = content_of(packet).and_then(|key| self.contents.get(&key));
        for frame in connection.frames(packet, content.map_or(&[], Vec::as_slice)) {
            self.fates.hold(
                Held {
                    at: now,
                    interface: *interface,
                    bytes: frame.bytes,
                    length: frame.length,
                    comments: comment.iter().cloned().collect(),
                    open: waits,
                },
                waits.then_some((
                    packet.flow,
                    packet.direction,
                    packet.sent,
                    within_flow(packet, frame.number),
                )),
            );
        }
    }

    fn write_settled(&mut self, all: bool) {
        while let Some(held) = self.fates.settled(all) {
            if self.failed.is_none() {
                let block = enhanced_packet(&held);
                self.failed = self.out.write_all(&block).err();
            }
        }
    }

    /// Remembers what a packet shows of its connection.
    fn learn(&mut self, packet: &Packet) {
        if self.connections.len() > MOST_CONNECTIONS
            && matches!(packet.body, Body::Handshake { .. })
        {
            // Connections with nothing outstanding can be forgotten, because nothing of them will
            // be needed.
            self.connections.retain(|_, connection| !connection.is_idle());
        }
        let offer = self.config.offers.get(packet.flow.index()).copied().unwrap_or_default();
        let new = || Connection::new(offer);
        self.connections.entry(connection_of(packet)).or_insert_with(new).learn(packet);
    }

    fn link_name(&self, who: Who) -> &str {
        match who {
            Who::Port(port) => self.config.links.get(port.index()).map_or("a link", |n| n),
            Who::Flow(_) => "an end",
        }
    }
}

/// Above this many connections, only those with something outstanding are remembered.
const MOST_CONNECTIONS: usize = 1024;

fn connection_of(packet: &Packet) -> (u32, u32) {
    (packet.flow.0, packet.connection)
}

/// The key of an opaque packet's content.
fn content_of(packet: &Packet) -> Option<(u32, bool, u32)> {
    let is_back = packet.direction == Direction::Reverse;
    match packet.body {
        Body::Opaque { number, .. } => Some((packet.flow.0, is_back, number)),
        _ => None,
    }
}

/// A number of a connection's as one of its flow's.
fn within_flow(packet: &Packet, number: u64) -> u64 {
    u64::from(packet.connection) << 32 | number
}

/// The first number of a packet, and how many numbers it takes: for data its segments, otherwise
/// one.
fn numbers(packet: &Packet) -> (u64, u64) {
    let (first, count) = match &packet.body {
        Body::Segment(segment) => (u64::from(segment.first), u64::from(packet.segments.max(1))),
        Body::Ack(ack) => (u64::from(ack.ack), 1),
        Body::Datagram { number, .. } | Body::Echo { number, .. } | Body::Opaque { number, .. } => {
            (u64::from(*number), 1)
        }
        Body::Rtp(rtp) => (u64::from(rtp.number), 1),
        Body::Handshake { .. } => (0, 1),
    };
    (within_flow(packet, first), count)
}

impl<W: Write> Observer for PcapObserver<W> {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match (who, event) {
            (Who::Flow(flow), Event::Content { direction, number, bytes }) => {
                let key = (flow.0, *direction == Direction::Reverse, *number);
                self.contents.insert(key, bytes.to_vec());
            }
            (Who::Flow(flow), Event::Sent { packet }) => {
                self.learn(packet);
                match packet.direction {
                    Direction::Forward => self.tap(now, Tap::Sender(flow.0), packet, true, None),
                    Direction::Reverse => self.tap(now, Tap::Receiver(flow.0), packet, true, None),
                }
            }
            (Who::Flow(flow), Event::Arrived { packet }) => {
                let (first, count) = numbers(packet);
                self.fates.settle(packet, first, count, None);
                if let Some(connection) = self.connections.get_mut(&connection_of(packet)) {
                    connection.hear(now, packet);
                }
                match packet.direction {
                    Direction::Forward => self.tap(now, Tap::Receiver(flow.0), packet, false, None),
                    Direction::Reverse => self.tap(now, Tap::Sender(flow.0), packet, false, None),
                }
                content_of(packet).map(|key| self.contents.remove(&key));
            }
            (Who::Port(port), Event::Enqueued { packet, .. }) => {
                self.tap(now, Tap::QueueIn(port), packet, false, None);
            }
            (Who::Port(port), Event::Dequeued { packet, sojourn }) => {
                if self.config.taps.queues {
                    let comment = format!("sojourn {sojourn}");
                    self.tap(now, Tap::QueueOut(port), packet, false, Some(comment));
                }
            }
            (Who::Port(port), Event::Dropped { packet, why }) => {
                let comment = format!("dropped at {}: {}", self.link_name(who), why.name());
                let (first, count) = numbers(packet);
                self.fates.settle(packet, first, count, Some(&comment));
                self.tap(now, Tap::QueueIn(port), packet, false, Some(comment));
            }
            (Who::Port(_), Event::Marked { packet }) => {
                let comment = format!("marked CE at {}", self.link_name(who));
                let (first, count) = numbers(packet);
                self.fates.note(packet, first, count, &comment);
            }
            _ => return,
        }
        self.write_settled(false);
    }

    /// Frames must be written in order.
    fn needs_order(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
