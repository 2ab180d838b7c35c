//! The two rings of a guest's network card (virtio 1.2, section 2.7), in the memory that the guest gave. Everything is
//! read and written through its file, so that a guest that shortens it is an error and no fault of this process.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::card_messages::Region;
use crate::fault::Fault;

/// The header in front of each frame (`virtio_net_hdr_v1`).
pub(crate) const CARD_HEADER: usize = 12;

/// Header and frame; longer ones are nonsense.
const LONGEST: usize = CARD_HEADER + 14 + 65_535;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<(Region, File)>,
}

impl Memory {
    pub(crate) fn new(regions: Vec<(Region, File)>) -> Self {
        Self { regions }
    }

    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        let (file, offset) = self.place(address, to.len())?;
        file.read_exact_at(to, offset).map_err(|problem| lost(address, problem))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let (file, offset) = self.place(address, bytes.len())?;
        file.write_all_at(bytes, offset).map_err(|problem| lost(address, problem))
    }

    fn word(&self, address: u64) -> Result<u16, Fault> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Ok(u16::from_ne_bytes(bytes))
    }

    fn place(&self, address: u64, len: usize) -> Result<(&File, u64), Fault> {
        let inside = |region: &Region| {
            let into = address.checked_sub(region.address)?;
            let end = into.checked_add(len as u64)?;
            (end <= region.size).then(|| region.offset.checked_add(into)).flatten()
        };
        self.regions.iter().find_map(|(region, file)| Some((file, inside(region)?))).ok_or_else(
            || Fault::Nonsense(format!("{len} bytes at {address:#x} are not in its memory")),
        )
    }
}

fn lost(address: u64, problem: std::io::Error) -> Fault {
    Fault::Nonsense(format!("its memory at {address:#x} is gone: {problem}"))
}

/// One ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pub(crate) size: u16,
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
    /// How many buffers were taken, and how many were given back; both go round.
    pub(crate) taken: u16,
    given: u16,
}

/// A buffer of a descriptor: where it is, how long, and whether it is to be written.
struct Piece {
    address: u64,
    len: usize,
    is_for_writing: bool,
}

impl Ring {
    /// Asks the guest not to say when it has put something in.
    pub(crate) fn want_no_kicks(&self, memory: &Memory) -> Result<(), Fault> {
        memory.write(self.used, &1u16.to_ne_bytes())
    }

    /// Whether the guest wants an interrupt when something was given back.
    pub(crate) fn wants_interrupt(&self, memory: &Memory) -> Result<bool, Fault> {
        Ok(memory.word(self.available)? & 1 == 0)
    }

    /// Takes the next header and frame that the guest sends, and gives the buffer back.
    pub(crate) fn take(&mut self, memory: &Memory) -> Result<Option<Vec<u8>>, Fault> {
        let Some(head) = self.next(memory)? else { return Ok(None) };
        let mut frame = Vec::new();
        for piece in self.pieces(memory, head)? {
            if piece.is_for_writing || frame.len() + piece.len > LONGEST {
                return Err(Fault::Nonsense(
                    "a frame to be sent is too long or not readable".to_owned(),
                ));
            }
            let begin = frame.len();
            frame.resize(begin + piece.len, 0);
            memory.read(piece.address, &mut frame[begin..])?;
        }
        self.give(memory, head, 0)?;
        Ok(Some(frame))
    }

    /// Puts a header and a frame into the next buffer; false if the guest has none.
    pub(crate) fn put(&mut self, memory: &Memory, frame: &[u8]) -> Result<bool, Fault> {
        let Some(head) = self.next(memory)? else { return Ok(false) };
        let mut left = frame;
        for piece in self.pieces(memory, head)? {
            if !piece.is_for_writing {
                return Err(Fault::Nonsense("a buffer for arrivals is not writable".to_owned()));
            }
            let (now, later) = left.split_at(left.len().min(piece.len));
            if !now.is_empty() {
                memory.write(piece.address, now)?;
            }
            left = later;
        }
        if !left.is_empty() {
            let problem = format!("a buffer for arrivals is {} bytes too short", left.len());
            return Err(Fault::Nonsense(problem));
        }
        self.give(memory, head, frame.len() as u32)?;
        Ok(true)
    }

    fn next(&mut self, memory: &Memory) -> Result<Option<u16>, Fault> {
        if self.size == 0 {
            return Ok(None);
        }
        let put_in = memory.word(self.available.wrapping_add(2))?;
        let waiting = put_in.wrapping_sub(self.taken);
        if waiting == 0 {
            return Ok(None);
        }
        if waiting > self.size {
            return Err(Fault::Nonsense(format!("{waiting} buffers in a ring of {}", self.size)));
        }
        let slot = u64::from(self.taken % self.size);
        self.taken = self.taken.wrapping_add(1);
        memory.word(self.available.wrapping_add(4 + 2 * slot)).map(Some)
    }

    fn pieces(&self, memory: &Memory, head: u16) -> Result<Vec<Piece>, Fault> {
        const HAS_NEXT: u16 = 1;
        const IS_FOR_WRITING: u16 = 2;
        const IS_INDIRECT: u16 = 4;
        let mut pieces = Vec::new();
        let mut index = head;
        loop {
            if index >= self.size || pieces.len() >= usize::from(self.size) {
                return Err(Fault::Nonsense(format!("descriptor {index} of {}", self.size)));
            }
            let mut bytes = [0; 16];
            memory.read(self.descriptors.wrapping_add(16 * u64::from(index)), &mut bytes)?;
            let [address @ .., l0, l1, l2, l3, f0, f1, n0, n1] = bytes;
            let flags = u16::from_ne_bytes([f0, f1]);
            if flags & IS_INDIRECT != 0 {
                return Err(Fault::Nonsense("an indirect descriptor".to_owned()));
            }
            pieces.push(Piece {
                address: u64::from_ne_bytes(address),
                len: u32::from_ne_bytes([l0, l1, l2, l3]) as usize,
                is_for_writing: flags & IS_FOR_WRITING != 0,
            });
            if flags & HAS_NEXT == 0 {
                return Ok(pieces);
            }
            index = u16::from_ne_bytes([n0, n1]);
        }
    }

    fn give(&mut self, memory: &Memory, head: u16, written: u32) -> Result<(), Fault> {
        let slot = u64::from(self.given % self.size);
        let entry = [u32::from(head).to_ne_bytes(), written.to_ne_bytes()].concat();
        memory.write(self.used.wrapping_add(4 + 8 * slot), &entry)?;
        self.given = self.given.wrapping_add(1);
        memory.write(self.used.wrapping_add(2), &self.given.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SIZE: usize = 4096;

    fn ring_in(bytes: &[u8]) -> (Memory, Ring) {
        let file = crate::scratch::file().expect("a scratch file");
        file.write_all_at(bytes, 0).expect("it can be written");
        let region = Region { address: 0x10_000, size: SIZE as u64, offset: 0 };
        let ring = Ring {
            size: 8,
            descriptors: 0x10_000,
            available: 0x10_000 + 128,
            used: 0x10_000 + 256,
            ..Ring::default()
        };
        (Memory::new(vec![(region, file)]), ring)
    }

    proptest! {
        #[test]
        fn a_ring_of_any_bytes_is_read_or_named_nonsense(bytes in vec(any::<u8>(), SIZE), count in 0u16..10) {
            let mut bytes = bytes;
            bytes[130..132].copy_from_slice(&count.to_ne_bytes());
            let (memory, mut ring) = ring_in(&bytes);
            for _ in 0..12 {
                match ring.take(&memory) {
                    Ok(Some(frame)) => prop_assert!(frame.len() <= LONGEST),
                    Ok(None) => break,
                    Err(fault) => {
                        prop_assert!(fault.to_string().contains("protocol"));
                        break;
                    }
                }
            }
            let (memory, mut ring) = ring_in(&bytes);
            let _ = ring.put(&memory, &[0; 100]);
        }

        #[test]
        fn what_is_put_in_is_what_the_guest_finds(frame in vec(any::<u8>(), 1..1500)) {
            let mut bytes = vec![0; SIZE];
            bytes[..8].copy_from_slice(&(0x10_000u64 + 1024).to_ne_bytes());
            bytes[8..12].copy_from_slice(&2000u32.to_ne_bytes());
            bytes[12..14].copy_from_slice(&2u16.to_ne_bytes());
            bytes[130..132].copy_from_slice(&1u16.to_ne_bytes());
            let (memory, mut ring) = ring_in(&bytes);
            prop_assert!(ring.put(&memory, &frame).expect("the ring is in order"));
            let mut found = vec![0; frame.len()];
            memory.read(0x10_000 + 1024, &mut found).expect("it is in the memory");
            prop_assert_eq!(found, frame);
            prop_assert!(!ring.put(&memory, &[0; 4]).expect("it is empty"));
        }
    }

    #[test]
    fn memory_that_is_taken_away_is_an_error() {
        let (memory, _) = ring_in(&[0; SIZE]);
        memory.regions[0].1.set_len(0).expect("it can be shortened");
        assert!(memory.word(0x10_000).is_err_and(|fault| fault.to_string().contains("is gone")));
        assert!(memory.word(u64::MAX).is_err());
    }
}
