//! Files of frame sizes: a line for each frame, with its size in bytes alone, or as the last of five
//! fields `number type … timestamp size`, as the traces of syncodecs have them. Their timestamps are
//! checked only: frames are as far apart as the sequence's `fps` says.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::SpecError;

/// Reads sizes. Blank lines, and what follows a `#`, are skipped.
pub(super) fn parse(text: &str) -> Result<Vec<u32>, SpecError> {
    let mut sizes = Vec::new();
    let mut columns = None;
    let mut before = f64::NEG_INFINITY;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let place = || format!("line {}", index + 1);
        let content = line.split('#').next().unwrap_or_default();
        let mut fields = content
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|field| !field.is_empty());
        let Some(last) = fields.next_back() else {
            continue;
        };
        let time = fields.next_back();
        let count = 1 + usize::from(time.is_some()) + fields.count();
        if count != *columns.get_or_insert(count) || (count != 1 && count != 5) {
            let fields = if count == 1 { "field" } else { "fields" };
            return Err(SpecError::new(format!("'{}' has {count} {fields}", excerpt(content)))
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
        if let Some(time) = time {
            before = later(time, before).map_err(|error| error.within(&place()))?;
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

/// A timestamp that is not before the last frame's.
fn later(text: &str, before: f64) -> Result<f64, SpecError> {
    let problem = match text.parse::<f64>() {
        Ok(time) if !time.is_finite() || time < 0.0 => "is no time",
        Ok(time) if time < before => "is before the last frame's",
        Ok(time) => return Ok(time),
        Err(_) => "is no number",
    };
    Err(SpecError::new(format!("timestamp '{}' {problem}", excerpt(text)))
        .allow(["numbers from 0 that do not decrease"]))
}

fn size(text: &str) -> Result<u32, SpecError> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let problem = match digits.parse::<u32>() {
        _ if !is_whole => "is no whole number of bytes",
        _ if !sign.is_empty() => "is negative",
        Ok(size) if size <= LARGEST => return Ok(size),
        _ => "is too large",
    };
    Err(SpecError::new(format!("size '{}' {problem}", excerpt(text)))
        .allow([format!("whole bytes from 0 to {LARGEST}")]))
}

/// The beginning of `text`, so that a binary file does not fill the screen or change it.
fn excerpt(text: &str) -> String {
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.trim().chars().take(40).map(shown).collect()
}
