//! Hashes of flows and hosts, which differ from run to run.

use sojourn_core::random::mix;
use sojourn_core::{FlowKey, Stream};

/// A keyed hash of flows. The key comes from the discipline's stream, as the kernel's is drawn at
/// boot; so two disciplines, and two runs, have different collisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHash {
    keys: [u64; 2],
}

impl FlowHash {
    pub(crate) fn new(random: &mut Stream) -> Self {
        Self { keys: [random.next_u64(), random.next_u64()] }
    }

    /// Folds the halves of a long product: after two random keys are added, one multiplication
    /// mixes enough.
    #[inline]
    pub(crate) fn flow(self, key: &FlowKey) -> u32 {
        let hosts = u64::from(key.src) << 32 | u64::from(key.dst);
        let product = u128::from(key.ports ^ self.keys[0]) * u128::from(hosts ^ self.keys[1]);
        (((product >> 64) ^ product) as u64 >> 32) as u32
    }

    #[inline]
    pub(crate) fn host(self, host: u32) -> u32 {
        (mix(self.keys[0].rotate_left(32) ^ u64::from(host)) >> 32) as u32
    }
}

/// Maps a hash to `0..buckets` without division.
#[inline]
pub(crate) fn bucket(hash: u32, buckets: u32) -> u32 {
    ((u64::from(hash) * u64::from(buckets)) >> 32) as u32
}
