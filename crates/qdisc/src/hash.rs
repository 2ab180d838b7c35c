//! Which flow and which hosts a packet belongs to, as numbers that differ from run to run.

use sojourn_core::random::mix;
use sojourn_core::{FlowKey, Stream};

/// A keyed hash of flows. The key comes from the discipline's stream, as the kernel's does from
/// the boot; so two disciplines, and two runs, collide in different places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHash {
    key: u64,
}

impl FlowHash {
    pub(crate) fn new(random: &mut Stream) -> Self {
        Self { key: random.next_u64() }
    }

    #[inline]
    pub(crate) fn flow(self, key: &FlowKey) -> u32 {
        let hosts = u64::from(key.src) << 32 | u64::from(key.dst);
        (mix(mix(key.ports ^ self.key) ^ hosts) >> 32) as u32
    }

    #[inline]
    pub(crate) fn host(self, host: u32) -> u32 {
        (mix(self.key.rotate_left(32) ^ u64::from(host)) >> 32) as u32
    }
}

/// Maps a hash to `0..buckets` without division.
#[inline]
pub(crate) fn bucket(hash: u32, buckets: u32) -> u32 {
    ((u64::from(hash) * u64::from(buckets)) >> 32) as u32
}
