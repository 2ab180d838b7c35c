//! How much memory a guest has.

use std::fmt;

/// Whole megabytes. They are a file that grows as the guest uses them, so what is not used takes only the 64 bytes for each 4096 with
/// which a kernel describes its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(u64);

impl Memory {
    /// What most guests have: more than a kernel with the usual buffers needs.
    pub(crate) const USUAL: Self = Self(128);

    /// What is left of the usual beside the kernel itself, for buffers and queues.
    const SPARE: u64 = 40 << 20;

    /// Enough for buffers or queues of `bytes`, as the kernel counts them (`truesize`). Pages are filled up less well than it counts.
    pub(crate) fn for_buffers(bytes: u64) -> Self {
        const STEP: u64 = 64;
        const MOST: u64 = 16 << 10;
        if bytes <= Self::SPARE {
            return Self::USUAL;
        }
        let megabytes = (bytes + bytes / 2) >> 20;
        Self((Self::USUAL.0 + megabytes).next_multiple_of(STEP).min(MOST))
    }

    /// What must be free where it is kept: what every kernel uses, a share of it for the pages' descriptions, and half of the buffers.
    pub(crate) fn room(self) -> u64 {
        const KERNEL: u64 = 24;
        (KERNEL + (self.0 - Self::USUAL.0) / 2) << 20
    }

    pub(crate) fn argument(self) -> String {
        format!("mem={}M", self.0)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_buffers_make_a_guest_larger() {
        assert_eq!(Memory::for_buffers(6 << 20), Memory::USUAL);
        assert_eq!(Memory::for_buffers(40 << 20), Memory::USUAL);
        assert_eq!(Memory::for_buffers(256 << 20).argument(), "mem=512M");
        assert_eq!(Memory::for_buffers(u64::MAX / 2).to_string(), "16384 MB");
    }
}
