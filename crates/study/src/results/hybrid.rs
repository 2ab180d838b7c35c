//! Parquet's hybrid of run lengths and packed bits, in which small whole numbers are written.

/// The most numbers in a packed run whose header is one byte.
const MOST: u32 = 63 * 8;

/// Small numbers, written as they come.
pub(super) struct Hybrid {
    /// Bits of a number.
    width: u32,
    bytes: Vec<u8>,
    /// How many numbers the packed run at the end has, and where its header is.
    packed: u32,
    header: usize,
    /// What of it is not in `bytes` yet: so many bits, fewer than 32.
    word: u64,
    bits: u32,
}

impl Hybrid {
    /// For numbers up to a largest one, behind what stands before them.
    pub(super) fn new(largest: u32, bytes: Vec<u8>) -> Self {
        Self { width: width(largest), bytes, packed: 0, header: 0, word: 0, bits: 0 }
    }

    /// A number that comes so many times.
    #[inline(always)]
    pub(super) fn put(&mut self, number: u32, times: u32) {
        // Most come once, and no run is shorter than a group.
        if times == 1 {
            self.pack(number);
        } else {
            self.put_several(number, times);
        }
    }

    #[inline(never)]
    fn put_several(&mut self, number: u32, times: u32) {
        // Only whole groups of eight can be packed, and what fills one is no run.
        let filling = self.packed.wrapping_neg() % 8;
        if times >= filling + 8 {
            (0..filling).for_each(|_| self.pack(number));
            self.end_packed();
            write_varint(u64::from(times - filling) << 1, &mut self.bytes);
            self.bytes.extend(&number.to_le_bytes()[..self.width.div_ceil(8) as usize]);
        } else {
            (0..times).for_each(|_| self.pack(number));
        }
    }

    #[inline(always)]
    fn pack(&mut self, number: u32) {
        if self.packed == 0 {
            self.header = self.bytes.len();
            self.bytes.push(0);
        }
        self.packed += 1;
        self.word |= u64::from(number) << self.bits;
        self.bits += self.width;
        if self.bits >= 32 {
            self.bytes.extend_from_slice(&(self.word as u32).to_le_bytes());
            self.word >>= 32;
            self.bits -= 32;
        }
        if self.packed == MOST {
            self.end_packed();
        }
    }

    /// Ends the packed run, if there is one; it has whole groups.
    #[inline(never)]
    fn end_packed(&mut self) {
        if self.packed > 0 {
            let rest = &self.word.to_le_bytes()[..self.bits.div_ceil(8) as usize];
            self.bytes.extend_from_slice(rest);
            self.bytes[self.header] = (self.packed / 8) as u8 * 2 + 1;
            (self.packed, self.word, self.bits) = (0, 0, 0);
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let filling = self.packed.wrapping_neg() % 8;
        (0..filling).for_each(|_| self.pack(0));
        self.end_packed();
        self.bytes
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
