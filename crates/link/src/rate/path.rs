//! The path of a file in a rate.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

use sojourn_core::SpecError;

/// Cuts a path from the text after `name`: up to a blank, or between double quotes.
pub(super) fn split<'a>(name: &str, rest: &'a str) -> Result<(String, &'a str), SpecError> {
    let rest = rest.trim_start();
    let (path, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or_else(|| {
            SpecError::new(format!("{name}: the quotation mark before the path is not closed"))
        })?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    if path.is_empty() {
        return Err(SpecError::new(format!("'{name}' needs the path of a file")));
    }
    if path.contains('"') {
        return Err(SpecError::new(format!("{name}: a path may not hold a quotation mark")));
    }
    Ok((path.to_owned(), rest))
}

/// A path as [`split`] reads it.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(char::is_whitespace) {
            write!(f, "\"{}\"", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}
