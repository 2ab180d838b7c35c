//! Blocks of a pcapng file, little endian.

use super::fate::Held;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;

const COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const SHB_USER_APPLICATION: u16 = 4;
const TIMESTAMP_RESOLUTION: u16 = 9;

pub(super) fn section_header() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(0x1a2b_3c4d_u32.to_le_bytes());
    body.extend(1u16.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    // The length of the section is not known yet.
    body.extend(u64::MAX.to_le_bytes());
    option(&mut body, SHB_USER_APPLICATION, b"Sojourn");
    end_of_options(&mut body);
    block(SECTION_HEADER, &body)
}

pub(super) fn interface(name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(ETHERNET.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    body.extend(0u32.to_le_bytes());
    option(&mut body, INTERFACE_NAME, name.as_bytes());
    option(&mut body, TIMESTAMP_RESOLUTION, &[9]);
    end_of_options(&mut body);
    block(INTERFACE, &body)
}

pub(super) fn enhanced_packet(held: &Held) -> Vec<u8> {
    let mut body = Vec::with_capacity(held.bytes.len() + 64);
    let nanos = held.at.as_nanos();
    body.extend(held.interface.to_le_bytes());
    body.extend(((nanos >> 32) as u32).to_le_bytes());
    body.extend((nanos as u32).to_le_bytes());
    body.extend((held.bytes.len() as u32).to_le_bytes());
    body.extend(held.length.to_le_bytes());
    padded(&mut body, &held.bytes);
    if !held.comments.is_empty() {
        for comment in &held.comments {
            option(&mut body, COMMENT, comment.as_bytes());
        }
        end_of_options(&mut body);
    }
    block(ENHANCED_PACKET, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 12) as u32;
    let mut out = Vec::with_capacity(body.len() + 12);
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(length.to_le_bytes());
    out
}

/// A value that is too long for an option is cut.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX) - 3)];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    padded(body, value);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(std::iter::repeat_n(0, bytes.len().next_multiple_of(4) - bytes.len()));
}
