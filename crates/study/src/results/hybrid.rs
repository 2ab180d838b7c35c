//! Parquet's hybrid of run lengths and packed bits, in which small whole numbers are written.

/// The most groups of eight values in a packed run whose header is one byte.
const MOST_GROUPS: usize = 63;

/// Small numbers, written as they come.
pub(super) struct Hybrid {
    /// Bits of a number.
    width: u32,
    bytes: Vec<u8>,
    /// Numbers that are going to be packed, and how many they are.
    packed: [u32; 8 * MOST_GROUPS],
    waiting: usize,
}

impl Hybrid {
    /// For numbers up to a largest one, behind what stands before them.
    pub(super) fn new(largest: u32, bytes: Vec<u8>) -> Self {
        Self { width: width(largest), bytes, packed: [0; 8 * MOST_GROUPS], waiting: 0 }
    }

    /// A number that comes so many times.
    pub(super) fn put(&mut self, number: u32, times: u32) {
        // Only whole groups of eight can be packed, and what fills one is no run.
        let filling = self.waiting.wrapping_neg() % 8;
        if times as usize >= filling + 8 {
            self.wait(number, filling);
            self.pack();
            self.write_varint(u64::from(times - filling as u32) << 1);
            self.bytes.extend(&number.to_le_bytes()[..self.width.div_ceil(8) as usize]);
        } else {
            self.wait(number, times as usize);
        }
    }

    fn wait(&mut self, number: u32, times: usize) {
        for _ in 0..times {
            if self.waiting == self.packed.len() {
                self.pack();
            }
            self.packed[self.waiting] = number;
            self.waiting += 1;
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.wait(0, self.waiting.wrapping_neg() % 8);
        self.pack();
        self.bytes
    }

    /// Writes the numbers that wait, of which there are whole groups.
    fn pack(&mut self) {
        if self.waiting == 0 {
            return;
        }
        self.write_varint(((self.waiting / 8) as u64) << 1 | 1);
        let (mut word, mut bits) = (0u64, 0);
        for number in &self.packed[..self.waiting] {
            word |= u64::from(*number) << bits;
            bits += self.width;
            if bits >= 32 {
                self.bytes.extend((word as u32).to_le_bytes());
                word >>= 32;
                bits -= 32;
            }
        }
        self.bytes.extend(&word.to_le_bytes()[..bits.div_ceil(8) as usize]);
        self.waiting = 0;
    }

    fn write_varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// How many bits numbers up to a largest one need.
pub(super) fn width(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}
