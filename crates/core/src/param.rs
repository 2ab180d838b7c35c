//! What a parameter is: a name, a form, bounds, a default and what it does, defined in one place.
//!
//! [`params!`](crate::params) turns a table of parameters into a struct with its defaults, its
//! reader, its checks, its printer and its list. `sojourn list`, the JSON Schema and the tables of
//! the documentation are made from that list, so they can't disagree.

mod bounds;
#[doc(hidden)]
pub mod field;
mod form;
mod style;
mod table;
mod tc;
mod unknown;

use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

pub use bounds::{Bounds, number, rate, size, time, whole, words};
pub use form::{Choice, Flag, Form, Given, Keyword, Maybe, Needed, Octets, Switch, Truth};
pub use style::Style;
pub use table::{Params, join};
pub use tc::{TcRate, TcSize};
pub use unknown::{missing_param, unknown_param, unknown_value};

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    /// Other names for the parameter.
    pub aliases: &'static [&'static str],
    pub kind: ParamKind,
    /// In the notation a user would write; empty if the default is nothing.
    pub default: &'static str,
    pub bounds: Bounds,
    /// The words that stand alone for a value; if there are any, the name is never written.
    pub keywords: &'static [Keyword],
    pub doc: &'static str,
    /// How it may be written.
    pub examples: &'static [&'static str],
    /// Printed only where it is not the default.
    pub is_quiet: bool,
    /// It must be given.
    pub is_needed: bool,
    /// Lists have one row for all of its keywords, as they are explained elsewhere.
    pub is_known: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A time: `5ms`.
    Span,
    /// A rate: `10mbit`.
    Rate,
    /// A size in bytes: `32Mb`.
    Size,
    /// A whole number.
    Count,
    /// A number.
    Number,
    /// A share: `0.02` or `2%`.
    Share,
    /// A word that stands alone.
    Flag,
    /// `on` or `off`, `true` or `false`.
    Switch,
    /// One of the words named in the documentation.
    Choice,
    /// A text in a notation of its own.
    Text,
}

impl Param {
    /// A parameter in form `F`.
    pub const fn of<F: Form>(name: &'static str, default: &'static str, doc: &'static str) -> Self {
        let param = Self::new(name, F::KIND, default, doc).within(F::BOUNDS);
        Self { keywords: F::KEYWORDS, is_needed: F::IS_NEEDED, examples: F::EXAMPLES, ..param }
    }

    /// A parameter that is read by hand.
    pub const fn new(
        name: &'static str,
        kind: ParamKind,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        let (aliases, keywords): (&[&str], &[Keyword]) = (&[], &[]);
        let (bounds, examples) = (Bounds::Any, kind.examples());
        Self {
            name,
            aliases,
            kind,
            default,
            bounds,
            keywords,
            doc,
            examples,
            is_quiet: false,
            is_needed: false,
            is_known: false,
        }
    }

    /// The parameter with bounds of its own.
    pub const fn within(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// The parameter with further names.
    pub const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The parameter with another default.
    pub const fn by_default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// The parameter under another name.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The parameter with another description.
    pub const fn saying(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    /// The same with examples.
    pub const fn such_as(self, examples: &'static [&'static str]) -> Self {
        Self { examples, ..self }
    }

    /// The same, printed only where it is not the default.
    pub const fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// The same in one row of a list, whose keywords are explained elsewhere.
    pub const fn known(self) -> Self {
        Self { is_known: true, ..self }
    }

    /// Its default in a table.
    pub const fn said_default(&self) -> &'static str {
        if self.is_needed { "required" } else { self.default }
    }

    /// Whether `word` begins this parameter.
    pub fn is_meant_by(&self, word: &str) -> bool {
        if self.keywords.is_empty() {
            return self.name == word || self.aliases.contains(&word);
        }
        self.keywords.iter().any(|keyword| keyword.word == word)
    }

    /// The words that may begin it.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let name = self.keywords.is_empty().then_some(self.name);
        let keywords = self.keywords.iter().map(|keyword| keyword.word);
        name.into_iter().chain(self.aliases.iter().copied()).chain(keywords)
    }

    /// Its bounds in words; empty if everything its form can hold is allowed.
    pub fn allowed(&self) -> String {
        match (self.kind, self.bounds) {
            (ParamKind::Flag, _) => String::new(),
            (ParamKind::Number, Bounds::Number { least: f64::MIN, most: f64::MAX }) => {
                String::new()
            }
            (_, bounds) => bounds.to_string(),
        }
    }

    /// A row for each word that may begin it, without aliases: the parameter itself, or its
    /// keywords as flags.
    pub fn rows(&self) -> Vec<Self> {
        if self.keywords.is_empty() || self.is_known {
            return vec![Self { keywords: &[], ..*self }];
        }
        let stands_for_default = |keyword: &Keyword| keyword.word == self.default;
        let has_word = self.keywords.iter().any(stands_for_default);
        let row = |keyword: &Keyword| Self {
            name: keyword.word,
            kind: keyword.kind,
            default: match keyword.kind {
                ParamKind::Flag if stands_for_default(keyword) => "on",
                ParamKind::Flag => "",
                // If one of the words is the default, no keyword with a value is.
                _ if has_word => "",
                _ => self.default,
            },
            keywords: &[],
            doc: keyword.doc,
            ..*self
        };
        self.keywords.iter().map(row).collect()
    }
}

impl ParamKind {
    /// How values of this kind are written.
    pub const fn examples(self) -> &'static [&'static str] {
        match self {
            Self::Span => &["20ms", "1.5s"],
            Self::Rate => &["10Mbps", "500kbit"],
            Self::Size => &["7.5MB", "58kB"],
            Self::Count => &["10"],
            Self::Number => &["0.5"],
            Self::Share => &["0.02", "2%"],
            Self::Flag | Self::Switch | Self::Choice | Self::Text => &[],
        }
    }
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Span => "time",
            Self::Rate => "rate",
            Self::Size => "size",
            Self::Count => "count",
            Self::Number => "number",
            Self::Share => "share",
            Self::Flag => "flag",
            Self::Switch => "switch",
            Self::Choice => "choice",
            Self::Text => "text",
        })
    }
}
