//! Frames become packets of nearly equal size.

use sojourn_core::{Rate, RtpStream};

use super::Item;
use crate::rtp::{IP_UDP, RTP, SRTP};
use crate::source::Frame;

#[derive(Clone, Debug)]
pub(crate) struct Packetiser {
    /// Bytes of RTP header extensions and payload descriptor in each packet.
    extra: u32,
    /// Bytes of the largest RTP packet.
    largest: u32,
    sequence: u32,
    frames: u32,
}

impl Packetiser {
    pub(crate) fn new(largest: u32, extra: u32) -> Self {
        Self { extra, largest, sequence: 0, frames: 0 }
    }

    /// Payload that a packet has room for.
    fn room(&self) -> u32 {
        self.largest - RTP - self.extra
    }

    /// Bytes of all headers around a packet's payload.
    pub(crate) fn around(&self) -> u32 {
        IP_UDP + RTP + self.extra + SRTP
    }

    /// The packets of the next frame.
    pub(crate) fn packets(
        &mut self,
        frame: &Frame,
        stream: RtpStream,
    ) -> impl Iterator<Item = Item> + use<> {
        let size = frame.size.max(1);
        let parts = size.div_ceil(self.room());
        let (first, number) = (self.sequence, self.frames);
        self.sequence += parts;
        self.frames += 1;
        let around = self.around();
        let (captured, is_key) = (frame.captured, frame.is_key);
        (0..parts).map(move |part| Item {
            stream,
            sequence: first + part,
            frame: number,
            part: part as u16,
            parts: parts as u16,
            captured,
            is_key,
            // The remainder is shared by the first packets, a byte each.
            size: size / parts + u32::from(part < size % parts) + around,
            frame_bytes: size,
        })
    }

    /// The rate of the payload alone, if whole packets have `rate`.
    pub(crate) fn payload_rate(&self, rate: Rate, frames_per_second: f64) -> Rate {
        let whole = rate.as_bps() as f64;
        let frame = whole / 8.0 / frames_per_second;
        let parts = libm::ceil(frame / f64::from(self.room() + self.around())).max(1.0);
        let headers = parts * frames_per_second * f64::from(self.around()) * 8.0;
        Rate::from_bps((whole - headers).max(0.0) as u64)
    }

    /// The rate of whole packets that carries the rate `payload`.
    pub(crate) fn whole_rate(&self, payload: Rate, frames_per_second: f64) -> Rate {
        let frame = payload.as_bps() as f64 / 8.0 / frames_per_second;
        let parts = libm::ceil(frame / f64::from(self.room())).max(1.0);
        let headers = parts * frames_per_second * f64::from(self.around()) * 8.0;
        Rate::from_bps(payload.as_bps() + headers as u64)
    }
}

/// The share of repairs in all that is sent, limited to half.
pub(crate) fn overhead_of(repair: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { (repair as f64 / all as f64).min(0.5) }
}

#[cfg(test)]
mod tests {
    use sojourn_core::Time;

    use super::*;

    fn frame(size: u32) -> Frame {
        Frame {
            captured: Time::ZERO,
            encoded: Time::ZERO,
            size,
            is_key: false,
            layer: 0,
            height: 360,
        }
    }

    /// 1200 bytes of RTP hold 1172 of payload beside 12 of header and 16 of extensions.
    #[test]
    fn a_frame_is_cut_into_as_few_packets_as_hold_it_of_nearly_equal_size() {
        let mut packetiser = Packetiser::new(1200, 16);
        let sizes = |packets: &[Item]| packets.iter().map(|item| item.size).collect::<Vec<_>>();
        let first: Vec<Item> = packetiser.packets(&frame(1172), RtpStream::Video).collect();
        assert_eq!(sizes(&first), [1238]);
        let second: Vec<Item> = packetiser.packets(&frame(3517), RtpStream::Video).collect();
        assert_eq!(sizes(&second), [946, 945, 945, 945]);
        let last = second[3];
        assert_eq!((last.sequence, last.frame, last.part, last.parts), (4, 1, 3, 4));
    }

    /// At 1 Mbit/s and 30 frames a second, a frame has four packets with 66 bytes around each.
    #[test]
    fn an_encoder_gets_what_headers_leave() {
        let packetiser = Packetiser::new(1200, 16);
        let payload = packetiser.payload_rate(Rate::from_bps(1_000_000), 30.0);
        assert_eq!(payload.as_bps(), 1_000_000 - 4 * 30 * 66 * 8);
        let whole = packetiser.whole_rate(payload, 30.0);
        assert_eq!(whole.as_bps(), 1_000_000);
    }
}
