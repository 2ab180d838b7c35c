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
    #[inline]
    pub(super) fn put(&mut self, number: u32, times: u32) {
        // Most come once, and no run is shorter than a group.
        if times == 1 {
            self.wait(number);
        } else {
            self.put_several(number, times);
        }
    }

    fn put_several(&mut self, number: u32, times: u32) {
        // Only whole groups of eight can be packed, and what fills one is no run.
        let filling = self.waiting.wrapping_neg() as u32 % 8;
        if times >= filling + 8 {
            (0..filling).for_each(|_| self.wait(number));
            self.pack();
            write_varint(u64::from(times - filling) << 1, &mut self.bytes);
            self.bytes.extend(&number.to_le_bytes()[..self.width.div_ceil(8) as usize]);
        } else {
            (0..times).for_each(|_| self.wait(number));
        }
    }

    #[inline]
    fn wait(&mut self, number: u32) {
        if self.waiting == self.packed.len() {
            self.pack();
        }
        self.packed[self.waiting] = number;
        self.waiting += 1;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let filling = self.waiting.wrapping_neg() % 8;
        (0..filling).for_each(|_| self.wait(0));
        self.pack();
        self.bytes
    }

    /// Writes the numbers that wait, of which there are whole groups.
    fn pack(&mut self) {
        if self.waiting == 0 {
            return;
        }
        write_varint(((self.waiting / 8) as u64) << 1 | 1, &mut self.bytes);
        self.bytes.reserve(self.waiting / 8 * self.width as usize);
        let (mut word, mut bits) = (0u64, 0);
        for number in &self.packed[..self.waiting] {
            word |= u64::from(*number) << bits;
            bits += self.width;
            if bits >= 32 {
                self.bytes.extend_from_slice(&(word as u32).to_le_bytes());
                word >>= 32;
                bits -= 32;
            }
        }
        self.bytes.extend_from_slice(&word.to_le_bytes()[..bits.div_ceil(8) as usize]);
        self.waiting = 0;
    }
}

/// So many bits, from the lowest of the first word on; behind the last there are none. They are written behind what
/// stands before them, in runs of whole words.
pub(super) fn bits(words: &[u64], count: usize, mut bytes: Vec<u8>) -> Vec<u8> {
    let bits_of = |word: usize| (count - word * 64).min(64);
    // What all bits of a word are, if they are alike.
    let alike = |word: usize| match words[word] {
        0 => Some(false),
        bits if bits.count_ones() as usize == bits_of(word) => Some(true),
        _ => None,
    };
    let mut from = 0;
    while from < words.len() {
        let kind = alike(from);
        let to = (from + 1..words.len()).find(|word| alike(*word) != kind).unwrap_or(words.len());
        let length = count.min(to * 64) - from * 64;
        match kind {
            Some(bit) => {
                write_varint((length as u64) << 1, &mut bytes);
                bytes.push(u8::from(bit));
            }
            None => {
                let groups = length.div_ceil(8);
                write_varint((groups as u64) << 1 | 1, &mut bytes);
                let packed = words[from..to].iter().flat_map(|word| word.to_le_bytes());
                bytes.extend(packed.take(groups));
            }
        }
        from = to;
    }
    bytes
}

/// Seven bits in each byte, the lowest first; the highest bit says whether there are more.
#[inline]
pub(super) fn write_varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// How many bits numbers up to a largest one need.
pub(super) fn width(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}
