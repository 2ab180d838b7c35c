//! Requests for packets and for key frames (RFC 4585 sections 6.2.1 and 6.3.1).

use alloc::vec::Vec;

use super::{
    PAYLOAD_FEEDBACK, RECEIVER, SENDER, TRANSPORT_FEEDBACK, begin, finish, put_u32, u16_at,
};

pub(super) const FORMAT: u8 = 1;
pub(super) const KEY_REQUEST_FORMAT: u8 = 1;

/// A generic NACK: the lowest 16 bits of the sequence numbers that are missing, in rising order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    pub sequences: Vec<u16>,
}

/// Bytes of a request's header and of each of its fields.
const HEADER: usize = 12;
const FIELD: usize = 4;

/// Whether a field that begins with one packet has a bit for the other.
fn covers(first: u16, other: u16) -> bool {
    (1..=16).contains(&other.wrapping_sub(first))
}

impl Nack {
    /// Requests for these packets, in rising order, none of which has more than `most` bytes.
    pub fn split(sequences: impl Iterator<Item = u16>, most: usize) -> Vec<Self> {
        let most_fields = most.saturating_sub(HEADER) / FIELD;
        let mut requests: Vec<Self> = Vec::new();
        let (mut fields, mut first) = (most_fields, None);
        for sequence in sequences {
            if !first.is_some_and(|first| covers(first, sequence)) {
                first = Some(sequence);
                if fields == most_fields {
                    requests.push(Self { sequences: Vec::new() });
                    fields = 0;
                }
                fields += 1;
            }
            requests.last_mut().expect("one was begun").sequences.push(sequence);
        }
        requests
    }

    pub fn write(&self) -> Vec<u8> {
        let mut message = begin(FORMAT, TRANSPORT_FEEDBACK);
        put_u32(&mut message, RECEIVER);
        put_u32(&mut message, SENDER);
        let mut left = self.sequences.iter().copied().peekable();
        while let Some(first) = left.next() {
            let mut following = 0_u16;
            while let Some(next) = left.next_if(|next| covers(first, *next)) {
                following |= 1 << (next.wrapping_sub(first) - 1);
            }
            message.extend(first.to_be_bytes());
            message.extend(following.to_be_bytes());
        }
        finish(message)
    }

    pub(super) fn read(body: &[u8]) -> Self {
        let mut sequences = Vec::new();
        let mut at = 8;
        while let (Some(first), Some(following)) = (u16_at(body, at), u16_at(body, at + 2)) {
            sequences.push(first);
            let more = (0..16).filter(|bit| following & 1 << bit != 0);
            sequences.extend(more.map(|bit: u16| first.wrapping_add(bit + 1)));
            at += 4;
        }
        Self { sequences }
    }
}

/// A picture loss indication.
pub fn write_key_request() -> Vec<u8> {
    let mut message = begin(KEY_REQUEST_FORMAT, PAYLOAD_FEEDBACK);
    put_u32(&mut message, RECEIVER);
    put_u32(&mut message, SENDER);
    finish(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_packets_after_the_first_cost_nothing_more() {
        let sequences: Vec<u16> = (0..17).map(|at| 65_530_u16.wrapping_add(at)).collect();
        let nack = Nack { sequences };
        assert_eq!(nack.write().len(), 16);
        assert_eq!(Nack::read(&nack.write()[4..]), nack);
        let far = Nack { sequences: alloc::vec![1, 18] };
        assert_eq!(far.write().len(), 20);
        assert_eq!(Nack::read(&far.write()[4..]), far);
    }
    #[test]
    fn a_request_that_is_too_large_is_split() {
        let far = || (0..1000_u16).map(|n| n * 20);
        let requests = Nack::split(far(), 1196);
        assert_eq!(
            requests.iter().map(|nack| nack.sequences.len()).collect::<Vec<_>>(),
            [296, 296, 296, 112]
        );
        assert!(requests.iter().all(|nack| nack.write().len() <= 1196));
        assert_eq!(
            requests.into_iter().flat_map(|nack| nack.sequences).collect::<Vec<_>>(),
            far().collect::<Vec<_>>()
        );
        assert_eq!(Nack::split(0..17, 16).len(), 1);
        assert_eq!(Nack::split(0..18, 16).len(), 2);
        assert_eq!(Nack::split(0..0, 16), []);
    }
}
