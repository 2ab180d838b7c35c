//! Which function of a program an address is in, by the program's own table of symbols.

use std::fs;
use std::path::Path;

/// Functions, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Symbols(Vec<(u64, u64, String)>);

impl Symbols {
    /// Those of an ELF file of 64 bits; none if it has no table, or a broken one.
    pub(crate) fn of(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        Self(functions(&bytes).unwrap_or_default())
    }

    /// `tcp_v4_rcv+0x1f`.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let place = self.0.partition_point(|(begin, ..)| *begin <= address);
        let (begin, size, name) = self.0.get(place.checked_sub(1)?)?;
        let offset = address - begin;
        (offset < *size).then(|| format!("{name}+{offset:#x}"))
    }
}

fn functions(bytes: &[u8]) -> Option<Vec<(u64, u64, String)>> {
    const HEADER: usize = 64;
    const SYMBOL: usize = 24;
    const SYMBOLS: u64 = 2;
    const FUNCTION: u8 = 2;
    let sections = number(bytes, 40, 8)? as usize;
    let count = number(bytes, 60, 2)? as usize;
    // The place and the length of a section.
    let section = |index: usize| {
        let at = sections.checked_add(index.checked_mul(HEADER)?)?;
        let (begin, len) = (number(bytes, at + 24, 8)?, number(bytes, at + 32, 8)?);
        bytes.get(begin as usize..begin.checked_add(len)? as usize)
    };
    let header = |index: usize| sections.checked_add(index * HEADER);
    let is_table =
        |index: &usize| header(*index).and_then(|at| number(bytes, at + 4, 4)) == Some(SYMBOLS);
    let table = (0..count).find(is_table)?;
    let names = section(number(bytes, header(table)? + 40, 4)? as usize)?;
    let mut all = Vec::new();
    for symbol in section(table)?.chunks_exact(SYMBOL) {
        let (begin, size) = (number(symbol, 8, 8)?, number(symbol, 16, 8)?);
        if symbol[4] & 15 != FUNCTION || size == 0 {
            continue;
        }
        let name = names.get(number(symbol, 0, 4)? as usize..)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        all.push((begin, size, String::from_utf8_lossy(name).into_owned()));
    }
    all.sort_unstable();
    Some(all)
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_program_knows_its_functions() {
        let own = std::env::current_exe().expect("a test has a path");
        let symbols = Symbols::of(&own);
        let (begin, size, name) = symbols.0.first().expect("a test is not stripped").clone();
        assert_eq!(symbols.name(begin), Some(format!("{name}+0x0")));
        assert!(symbols.name(begin + size - 1).is_some());
        assert_eq!(symbols.name(0), None);
        assert_eq!(symbols.name(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn any_file_has_functions_or_none(mut bytes: Vec<u8>, at in 0u8..200, count in 0u8..4) {
            if bytes.len() > 62 {
                bytes[40..48].copy_from_slice(&u64::from(at).to_le_bytes());
                bytes[60..62].copy_from_slice(&u16::from(count).to_le_bytes());
            }
            let _ = functions(&bytes);
        }
    }
}
