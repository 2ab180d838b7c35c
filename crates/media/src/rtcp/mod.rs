//! What the ends of a call tell each other beside media: RTCP, byte by byte, so that its packets have
//! their real size.
//!
//! A kind of message has a file. A packet is one message or several, one after another (RFC 3550
//! section 6.1, or one alone by RFC 5506); [`messages`] takes it apart.

mod ccfb;
mod extended;
mod nack;
mod remb;
mod reports;
mod twcc;

pub(crate) use ccfb::LARGEST_OFFSET;
pub use ccfb::{Ccfb, CcfbArrival, CcfbArrivals, CcfbStream, arrived_at};
pub(crate) use extended::LastReference;
pub use extended::{Extended, ReferenceTime, SinceReference};
pub use nack::{Nack, write_key_request};
pub use remb::Remb;
pub use reports::{Block, ReceiverReport, SenderReport, ntp_middle};
pub use twcc::{Twcc, TwccArrivals};

use alloc::vec::Vec;

use sojourn_core::{RtpStream, Span, Time};

/// What SRTCP adds: the index with its flag, and a tag of ten bytes (RFC 3711 section 3.4).
pub const SRTCP: u32 = 14;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    SenderReport(SenderReport),
    ReceiverReport(ReceiverReport),
    Extended(Extended),
    Twcc(Twcc),
    Ccfb(Ccfb),
    Remb(Remb),
    Nack(Nack),
    /// Picture loss indication (RFC 4585 section 6.3.1).
    KeyRequest,
}

/// The messages of a packet, in their order; unknown ones are left out.
pub fn messages(packet: &[u8]) -> impl Iterator<Item = Message> {
    let mut left = packet;
    core::iter::from_fn(move || {
        while let Some((header, body)) = left.split_at_checked(4) {
            let length = 4 * usize::from(u16::from_be_bytes([header[2], header[3]]));
            let body = body.get(..length)?;
            left = &left[4 + length..];
            if let Some(message) = message(header[0] & 31, header[1], body) {
                return Some(message);
            }
        }
        None
    })
}

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const TRANSPORT_FEEDBACK: u8 = 205;
const PAYLOAD_FEEDBACK: u8 = 206;
const EXTENDED_REPORT: u8 = 207;

fn message(count: u8, kind: u8, body: &[u8]) -> Option<Message> {
    match (kind, count) {
        (SENDER_REPORT, _) => SenderReport::read(body).map(Message::SenderReport),
        (RECEIVER_REPORT, _) => ReceiverReport::read(body, count).map(Message::ReceiverReport),
        (EXTENDED_REPORT, _) => Extended::read(body).map(Message::Extended),
        (TRANSPORT_FEEDBACK, nack::FORMAT) => Some(Message::Nack(Nack::read(body))),
        (TRANSPORT_FEEDBACK, twcc::FORMAT) => Twcc::read(body).map(Message::Twcc),
        (TRANSPORT_FEEDBACK, ccfb::FORMAT) => Ccfb::read(body).map(Message::Ccfb),
        (PAYLOAD_FEEDBACK, remb::FORMAT) => Remb::read(body).map(Message::Remb),
        (PAYLOAD_FEEDBACK, nack::KEY_REQUEST_FORMAT) => Some(Message::KeyRequest),
        _ => None,
    }
}

/// Bytes that hold most messages.
const MOST_MESSAGES: usize = 128;

/// Begins a message whose length [`finish`] fills in.
fn begin(count: u8, kind: u8) -> Vec<u8> {
    let mut message = Vec::with_capacity(MOST_MESSAGES);
    message.extend([0x80 | count, kind, 0, 0]);
    message
}

/// Pads the message to whole words and fills in its length.
fn finish(mut message: Vec<u8>) -> Vec<u8> {
    while !message.len().is_multiple_of(4) {
        message.push(0);
    }
    let words = (message.len() / 4 - 1) as u16;
    message[2..4].copy_from_slice(&words.to_be_bytes());
    message
}

/// The synchronisation sources of the video and of the receiver, which has no stream of its own.
const SENDER: u32 = RtpStream::Video.source();
const RECEIVER: u32 = 2;

fn put_u32(message: &mut Vec<u8>, value: u32) {
    message.extend(value.to_be_bytes());
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The round trip at `now`, if the other end says that it got what was sent at `sent` so long before its answer.
fn rtt_of(now: Time, sent: u32, held: u32) -> Span {
    let units = ntp_middle(now).wrapping_sub(sent).wrapping_sub(held);
    // Rounding may make it negative.
    let units = (units as i32).max(0) as u64;
    Span::from_nanos((units * 1_000_000_000) >> 16)
}

/// The number with these lowest 16 bits that is nearest to `near`.
pub fn unwrap(near: u32, low: u16) -> u32 {
    near.wrapping_add_signed(i32::from(low.wrapping_sub(near as u16) as i16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_completed_to_the_nearest_one() {
        assert_eq!(unwrap(65_530, 5), 65_541);
        assert_eq!(unwrap(65_541, 65_530), 65_530);
        assert_eq!(unwrap(70_000, 70_001_u32 as u16), 70_001);
    }

    #[test]
    fn a_packet_of_several_messages_is_taken_apart_and_a_broken_one_ends_there() {
        let mut packet = write_key_request();
        packet.extend(Nack { sequences: alloc::vec![7, 8, 30] }.write());
        assert_eq!(packet.len(), 12 + 20);
        let found: Vec<Message> = messages(&packet).collect();
        let nack = Message::Nack(Nack { sequences: alloc::vec![7, 8, 30] });
        assert_eq!(found, [Message::KeyRequest, nack]);
        assert_eq!(messages(&packet[..20]).count(), 1);
    }
}
