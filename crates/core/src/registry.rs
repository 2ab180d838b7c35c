//! What can be asked for by name: the built-in kinds, and those that other crates register.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use crate::{Param, Params, SpecError, Words};

/// One kind: its name, what it is, its parameters, and how they become a `C`.
pub struct Kind<C> {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: &'static [Param],
    read: fn(&mut Words<'_>) -> Result<C, SpecError>,
}

impl<C> Kind<C> {
    /// The kind that is described by the parameters `P`.
    pub const fn of<P: Params>(read: fn(&mut Words<'_>) -> Result<C, SpecError>) -> Self {
        Self::new(P::NAME, P::DOC, P::PARAMS, read)
    }

    /// A kind whose parameters are read by code of its own.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        params: &'static [Param],
        read: fn(&mut Words<'_>) -> Result<C, SpecError>,
    ) -> Self {
        Self { name, doc, params, read }
    }

    /// Reads this kind's parameters up to the end of `words`.
    ///
    /// # Errors
    /// An unknown parameter or a value out of bounds.
    pub fn read(&self, words: &mut Words<'_>) -> Result<C, SpecError> {
        (self.read)(words)
    }
}

/// All kinds of one sort. It is a value, not a global: two studies may know different kinds.
pub struct Kinds<C> {
    /// The sort's name as errors print it: `congestion control`.
    what: &'static str,
    kinds: Vec<Kind<C>>,
    /// Names that only another program knows, with who that is.
    elsewhere: Vec<(&'static str, &'static str)>,
}

impl<C> Kinds<C> {
    pub fn new(what: &'static str, kinds: impl IntoIterator<Item = Kind<C>>) -> Self {
        Self { what, kinds: kinds.into_iter().collect(), elsewhere: Vec::new() }
    }

    /// Adds a kind.
    ///
    /// # Errors
    /// Its name is taken, or could not be written in a study file.
    pub fn add(&mut self, kind: Kind<C>) -> Result<(), SpecError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if kind.name.is_empty() || !kind.name.chars().all(is_plain) {
            return Err(SpecError::new(format!("'{}' is no name for a {}", kind.name, self.what))
                .allow(["letters, digits, '-' and '_'"]));
        }
        if self.named(kind.name).is_some() {
            return Err(SpecError::new(format!("there is a {} '{}'", self.what, kind.name))
                .allow(["another name"]));
        }
        self.kinds.push(kind);
        Ok(())
    }

    /// Says who knows a name that is not known here: `sojourn run has it`.
    pub fn add_elsewhere(&mut self, name: &'static str, who: &'static str) {
        self.elsewhere.push((name, who));
    }

    pub fn named(&self, name: &str) -> Option<&Kind<C>> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Kind<C>> {
        self.kinds.iter()
    }

    /// Reads a name and its parameters: `bbr3 probe_rtt_interval=10s`.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of bounds; names what is allowed.
    pub fn parse(&self, text: &str) -> Result<C, SpecError> {
        let mut words = Words::new(text);
        let names = || self.kinds.iter().map(|kind| kind.name);
        let name = words
            .next()
            .ok_or_else(|| SpecError::new(format!("no {} is named", self.what)).allow(names()))?;
        match self.named(name) {
            Some(kind) => kind.read(&mut words),
            None if let Some((_, who)) = self.elsewhere.iter().find(|known| known.0 == name) => {
                Err(SpecError::new(format!("{} '{name}': {who}", self.what)).allow(names()))
            }
            None => Err(SpecError::new(format!("unknown {} '{name}'", self.what))
                .near(name, names())
                .allow(names())),
        }
    }
}

impl<C> Clone for Kind<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Kind<C> {}

impl<C> Clone for Kinds<C> {
    fn clone(&self) -> Self {
        Self { what: self.what, kinds: self.kinds.clone(), elsewhere: self.elsewhere.clone() }
    }
}

impl<C> fmt::Debug for Kind<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<C> fmt::Debug for Kinds<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.kinds).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::params! {
        struct Config: "example", "a kind for tests" {
            rounds: u32 = "3", "rounds to wait";
        }
    }

    #[test]
    fn a_name_that_another_program_knows_says_whose_it_is() {
        let mut kinds = Kinds::new("example", [EXAMPLE]);
        kinds.add_elsewhere("real", "the laboratory has it");
        let error = kinds.parse("real rounds=4").unwrap_err().to_string();
        assert_eq!(error, "example 'real': the laboratory has it (allowed: example)");
    }

    const EXAMPLE: Kind<u32> =
        Kind::of::<Config>(|words| Config::parse(words).map(|config| config.rounds));

    #[test]
    fn a_registered_kind_is_read_by_its_name() {
        let mut kinds = Kinds::new("example", []);
        assert!(kinds.parse("example").is_err());
        kinds.add(EXAMPLE).expect("its name is free");
        assert_eq!(kinds.parse("example rounds=5"), Ok(5));
        let error = kinds.parse("exampel").expect_err("it is misspelt");
        assert_eq!((error.nearest(), error.allowed()), (Some("example"), &["example".into()][..]));
    }

    #[test]
    fn a_name_is_given_once() {
        let mut kinds = Kinds::new("example", [EXAMPLE]);
        assert!(kinds.add(EXAMPLE).is_err());
    }
}
