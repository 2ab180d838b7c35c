//! What a guest says of its network card: the messages of vhost-user, of which the guest's kernel is the front end.

use crate::fault::Fault;

/// The longest payload of a message that is understood here.
pub(crate) const LONGEST: usize = 512;

/// Where a ring or a region of memory is, in addresses of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Where it begins in the file that came with it.
    pub(crate) offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CardMessage {
    AskFeatures,
    SetFeatures(u64),
    AskProtocolFeatures,
    SetProtocolFeatures,
    /// The regions come with as many files.
    Memory(Vec<Region>),
    RingSize {
        ring: u32,
        size: u32,
    },
    RingPlaces {
        ring: u32,
        descriptors: u64,
        used: u64,
        available: u64,
    },
    RingBase {
        ring: u32,
        base: u32,
    },
    AskRingBase {
        ring: u32,
    },
    /// The file of the channel on which the guest is told of interrupts comes with it.
    BackChannel,
    AskConfig {
        offset: u32,
        size: u32,
    },
    /// There is something in a ring.
    Kick {
        ring: u32,
    },
    /// Nothing that needs an answer of its own.
    Other,
}

/// Kind, flags and length of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) wants_reply: bool,
    pub(crate) len: usize,
}

impl Header {
    pub(crate) const LEN: usize = 12;
    const VERSION: u32 = 1;
    const IS_REPLY: u32 = 1 << 2;
    const NEED_REPLY: u32 = 1 << 3;

    pub(crate) fn read(bytes: &[u8; Self::LEN]) -> Result<Self, Fault> {
        let word = |at: usize| number(bytes, at).unwrap_or_default();
        let (kind, flags, len) = (word(0), word(4), word(8) as usize);
        if flags & 3 != Self::VERSION || flags & Self::IS_REPLY != 0 || len > LONGEST {
            let problem = format!("message {kind} of its card with flags {flags:#x}, {len} bytes");
            return Err(Fault::Nonsense(problem));
        }
        Ok(Self { kind, wants_reply: flags & Self::NEED_REPLY != 0, len })
    }

    /// A message that answers one of this kind.
    pub(crate) fn answer(self, payload: &[u8]) -> Vec<u8> {
        message(self.kind, Self::VERSION | Self::IS_REPLY, payload)
    }
}

/// Tells a guest of something in one of its rings, and asks for a reply.
pub(crate) fn interrupt(ring: u32) -> Vec<u8> {
    const CALL: u32 = 4;
    let payload = [ring.to_ne_bytes(), 0u32.to_ne_bytes()].concat();
    message(CALL, Header::VERSION | Header::NEED_REPLY, &payload)
}

/// The bytes of the reply to [`interrupt`].
pub(crate) const INTERRUPT_REPLY: usize = Header::LEN + 8;

fn message(kind: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let header = [kind, flags, payload.len() as u32].map(u32::to_ne_bytes).concat();
    [&header, payload].concat()
}

impl CardMessage {
    pub(crate) fn read(kind: u32, payload: &[u8]) -> Result<Self, Fault> {
        Self::parse(kind, payload).ok_or_else(|| {
            let problem = format!("message {kind} of its card has {} bytes", payload.len());
            Fault::Nonsense(problem)
        })
    }

    /// Whether it has an answer of its own, for which the guest waits.
    pub(crate) fn is_question(&self) -> bool {
        use CardMessage::{AskConfig, AskFeatures, AskProtocolFeatures, AskRingBase};
        matches!(self, AskFeatures | AskProtocolFeatures | AskRingBase { .. } | AskConfig { .. })
    }

    fn parse(kind: u32, payload: &[u8]) -> Option<Self> {
        let word = |at| number(payload, at);
        let long = |at| Some(u64::from_ne_bytes(payload.get(at..at + 8)?.try_into().ok()?));
        Some(match kind {
            1 => Self::AskFeatures,
            2 => Self::SetFeatures(long(0)?),
            5 => {
                let regions = word(0)? as usize;
                if regions > 8 {
                    return None;
                }
                let region = |index: usize| {
                    let at = 8 + 32 * index;
                    Some(Region { address: long(at)?, size: long(at + 8)?, offset: long(at + 24)? })
                };
                Self::Memory((0..regions).map(region).collect::<Option<_>>()?)
            }
            8 => Self::RingSize { ring: word(0)?, size: word(4)? },
            9 => Self::RingPlaces {
                ring: word(0)?,
                descriptors: long(8)?,
                used: long(16)?,
                available: long(24)?,
            },
            10 => Self::RingBase { ring: word(0)?, base: word(4)? },
            11 => Self::AskRingBase { ring: word(0)? },
            15 => Self::AskProtocolFeatures,
            16 => Self::SetProtocolFeatures,
            21 => Self::BackChannel,
            24 => Self::AskConfig { offset: word(0)?, size: word(4)? },
            35 => Self::Kick { ring: word(0)? },
            3 | 4 | 12 | 13 | 14 | 18 | 25 => Self::Other,
            _ => return None,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_header_is_read_or_named_nonsense(bytes: [u8; 12]) {
            match Header::read(&bytes) {
                Ok(header) => prop_assert!(header.len <= LONGEST),
                Err(fault) => prop_assert!(fault.to_string().contains("protocol")),
            }
        }

        #[test]
        fn any_payload_is_read_or_named_nonsense(kind in 0u32..40, payload in vec(any::<u8>(), 0..LONGEST)) {
            if let Err(fault) = CardMessage::read(kind, &payload) {
                let named = format!("message {} ", kind);
                prop_assert!(fault.to_string().contains(&named));
            }
        }
    }

    #[test]
    fn regions_have_address_size_and_offset() {
        let numbers = [1u64, 0x1000, 0x2000, 7, 0x3000];
        let payload: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let region = Region { address: 0x1000, size: 0x2000, offset: 0x3000 };
        assert_eq!(CardMessage::parse(5, &payload), Some(CardMessage::Memory(vec![region])));
    }
}
