//! Files of frame sizes: a line for each frame, with its size in bytes alone, or as the last of five
//! fields `number type … timestamp size`, as the traces of syncodecs have them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::SpecError;

/// Reads sizes. Blank lines, and what follows a `#`, are skipped.
pub(super) fn parse(text: &str) -> Result<Vec<u32>, SpecError> {
    let mut sizes = Vec::new();
    let mut columns = None;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let place = || format!("line {}", index + 1);
        let content = line.split('#').next().unwrap_or_default();
        let mut fields = content
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|field| !field.is_empty());
        let Some(last) = fields.next_back() else {
            continue;
        };
        let count = fields.count() + 1;
        if count != *columns.get_or_insert(count) || (count != 1 && count != 5) {
            return Err(SpecError::new(format!("'{}' has {count} fields", excerpt(content)))
                .allow([
                    "a size in bytes in every line",
                    "five fields in every line, the size last",
                ])
                .within(&place()));
        }
        if sizes.len() == MOST_FRAMES {
            return Err(SpecError::new("there are too many frames")
                .allow([format!("up to {MOST_FRAMES}")])
                .within(&place()));
        }
        sizes.push(size(last).map_err(|error| error.within(&place()))?);
    }
    if sizes.is_empty() {
        return Err(SpecError::new("there are no frames").allow(["a size in bytes in every line"]));
    }
    if sizes.iter().all(|size| *size == 0) {
        return Err(SpecError::new("all frames have size 0").allow(["sizes, some above 0"]));
    }
    Ok(sizes)
}

/// Ten hours at 60 frames a second.
const MOST_FRAMES: usize = 2_160_000;

const LARGEST: u32 = 100_000_000;

fn size(text: &str) -> Result<u32, SpecError> {
    let problem = match text.parse::<i64>() {
        Ok(size) if size < 0 => "is negative",
        Ok(size) if size > i64::from(LARGEST) => "is too large",
        Ok(size) => return Ok(size as u32),
        Err(_) => "is no whole number of bytes",
    };
    Err(SpecError::new(format!("size '{}' {problem}", excerpt(text)))
        .allow([format!("whole bytes from 0 to {LARGEST}")]))
}

/// The beginning of `text`, so that a binary file does not fill the screen.
fn excerpt(text: &str) -> String {
    text.trim().chars().take(40).collect()
}
