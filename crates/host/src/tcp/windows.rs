//! A receive window of a stated size, or of stated sizes from stated times on.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::{Form, Octets, ParamKind};
use sojourn_core::{Param, Span, SpecError, Time, Words};

/// Sizes in bytes, each from a time of the run on. The first begins with the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    first: u64,
    later: Arc<[(Span, u64)]>,
}

/// One that never changes.
impl From<u64> for Windows {
    fn from(bytes: u64) -> Self {
        Self { first: bytes, later: Arc::new([]) }
    }
}

impl Windows {
    /// The size at the beginning.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The size from `now` on.
    pub(super) fn at(&self, now: Time) -> u64 {
        let begun = self.later.iter().take_while(|(from, _)| Time::ZERO + *from <= now);
        begun.last().map_or(self.first, |(_, bytes)| *bytes)
    }

    /// When it changes next after `now`.
    pub(super) fn next_change(&self, now: Time) -> Time {
        let next = self.later.iter().map(|(from, _)| Time::ZERO + *from).find(|from| *from > now);
        next.unwrap_or(Time::NEVER)
    }
}

/// `64kB`, or `64kB at 0s 256kB at 10s`.
impl Form for Windows {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;
    const EXAMPLES: &'static [&'static str] = &["64kB", "64kB at 0s 256kB at 10s"];

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let wanted = |problem| {
            let error = SpecError::new(format!("'{}': {problem}", param.name));
            error.allow([Self::EXAMPLES[0].into(), format!("or {}", Self::EXAMPLES[1])])
        };
        let mut words = Words::new(text);
        let mut steps = Vec::new();
        while let Some(word) = words.next() {
            let bytes = Octets::read(word, param)?;
            let from = match words.next() {
                None if steps.is_empty() => Span::ZERO,
                Some("at") => words.parse("at", str::parse)?,
                _ => return Err(wanted(format!("'at' and a time do not stand after '{word}'"))),
            };
            steps.push((from, bytes));
        }
        if steps.first().is_none_or(|(from, _)| !from.is_zero()) {
            return Err(wanted("the first size does not begin at 0s".into()));
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(wanted(format!("{} does not come after {}", pair[1].0, pair[0].0)));
        }
        Ok(Self { first: steps[0].1, later: steps[1..].into() })
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        let mut all = [value.first].into_iter().chain(value.later.iter().map(|(_, bytes)| *bytes));
        all.try_for_each(|bytes| Octets::check(&bytes, param))
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", value.first)?;
        if !value.later.is_empty() {
            f.write_str(" at 0s")?;
        }
        value.later.iter().try_for_each(|(from, bytes)| write!(f, " {bytes} at {from}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use sojourn_core::Params;

    use super::*;
    use crate::tcp::Config;

    fn read(text: &str) -> Result<Windows, SpecError> {
        let param = Config::PARAMS.iter().find(|param| param.name == "receive_window").unwrap();
        Windows::read(text, param)
    }

    #[test]
    fn sizes_count_from_their_times_on() {
        let windows = read("64kB at 0s 256kB at 10s 32kB at 20s").unwrap();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        assert_eq!(windows.first(), 64_000);
        assert_eq!(
            [9, 10, 19, 20, 99].map(|s| windows.at(at(s))),
            [64_000, 256_000, 256_000, 32_000, 32_000]
        );
        assert_eq!([0, 10, 20].map(|s| windows.next_change(at(s))), [at(10), at(20), Time::NEVER]);
        assert_eq!(read("58kB").unwrap(), Windows::from(58_000));
    }

    #[test]
    fn what_is_no_window_says_why() {
        for (text, words) in [
            ("", "the first size does not begin at 0s"),
            ("64kB at 1s", "the first size does not begin at 0s"),
            ("64kB 128kB", "'at' and a time do not stand after '64kB'"),
            ("64kB at 0s 128kB", "'at' and a time do not stand after '128kB'"),
            ("64kB at 0s 128kB at 0s", "0s does not come after 0s"),
            ("64kB at 0s 10B at 5s", "'receive_window' is 10 bytes (allowed: 2304 to"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
