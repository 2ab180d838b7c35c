//! The grammar in which algorithms and their parameters are written: a name, then parameters,
//! as `tc` writes a queue (`fq_codel limit 1000 target 5ms noecn`) or as a study overrides a
//! congestion controller (`bbr3 probe_rtt_interval=10s`). Both forms are read alike.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::SpecError;

/// A text cut into words, read from left to right. `name=value` counts as two words.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str) -> Self {
        let words = text
            .split(|c: char| c.is_whitespace() || c == '=')
            .filter(|word| !word.is_empty())
            .collect();
        Self { words, next: 0 }
    }

    /// A text that is one word even if it has blanks.
    pub fn one(text: &'a str) -> Self {
        Self { words: vec![text], next: 0 }
    }

    /// The value that must follow parameter `name`.
    pub fn value(&mut self, name: &str) -> Result<&'a str, SpecError> {
        self.next().ok_or_else(|| SpecError::new(format!("'{name}' needs a value")))
    }

    /// The value after `name`, read by `parse`; an error names the parameter.
    pub fn parse<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        parse(self.value(name)?).map_err(|error| error.within(name))
    }

    /// The whole number after `name`, between `least` and `most`.
    pub fn count(&mut self, name: &str, least: u64, most: u64) -> Result<u64, SpecError> {
        let text = self.value(name)?;
        let bounds = || format!("a whole number from {least} to {most}");
        match text.parse::<u64>() {
            Ok(count) if (least..=most).contains(&count) => Ok(count),
            _ => Err(SpecError::new(format!("'{name}' is '{text}'")).allow([bounds()])),
        }
    }

    /// What the word after `name` stands for; the word must be one of `choices`.
    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T, SpecError> {
        let written = self.value(name)?;
        let allowed = || choices.iter().map(|(word, _)| *word);
        match choices.iter().find(|(word, _)| *word == written) {
            Some((_, choice)) => Ok(*choice),
            None => Err(SpecError::new(format!("'{name}' is '{written}'"))
                .near(written, allowed())
                .allow(allowed())),
        }
    }

    /// The number after `name`, between `least` and `most`.
    pub fn number(&mut self, name: &str, least: f64, most: f64) -> Result<f64, SpecError> {
        let text = self.value(name)?;
        number_in(text, 1.0, least, most).map_err(|error| error.within(name))
    }

    /// The share after `name`, written `0.02` or `2%`.
    pub fn share(&mut self, name: &str) -> Result<f64, SpecError> {
        let text = self.value(name)?;
        share(text).map_err(|error| error.within(name))
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.next).copied();
        self.next += usize::from(word.is_some());
        word
    }
}

/// A share between 0 and 1, written `0.02` or `2%`.
pub fn share(text: &str) -> Result<f64, SpecError> {
    match text.trim().strip_suffix('%') {
        Some(percent) => number_in(percent, 0.01, 0.0, 1.0),
        None => number_in(text, 1.0, 0.0, 1.0),
    }
}

pub(crate) fn number_in(text: &str, scale: f64, least: f64, most: f64) -> Result<f64, SpecError> {
    match text.trim().parse::<f64>() {
        Ok(number) if (least..=most).contains(&(number * scale)) => Ok(number * scale),
        _ => Err(SpecError::new(format!("'{text}' is out of range"))
            .allow([format!("a number from {least} to {most}")])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_give_the_same_words() {
        let tc: Vec<_> = Words::new("fq_codel limit 1000 target 5ms").collect();
        let study: Vec<_> = Words::new("fq_codel limit=1000 target = 5ms").collect();
        assert_eq!(tc, study);
    }

    #[test]
    fn shares_are_read_as_number_or_percent() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("101%").is_err());
        assert!(share("NaN").is_err());
    }
}
