//! The sources that can be asked for by name: the built-in ones, a line each, and those from outside.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{Kind, Kinds, SpecError};

use super::{Setup, Source, SourceModel, Voice};
use super::{camera, frame_trace, game, hybrid, screen, statistical, voice};
use crate::any::AnyParams;

/// Every built-in kind, in the order of the documentation.
pub fn models() -> &'static [Kind<Config>] {
    const ALL: &[Kind<Config>] = &[
        kind::<statistical::Config>(),
        kind::<camera::Config>(),
        kind::<frame_trace::Config>(),
        kind::<hybrid::Config>(),
        kind::<screen::Config>(),
        kind::<game::Config>(),
        kind::<voice::Opus>(),
        kind::<voice::G711>(),
    ];
    ALL
}

/// The built-in kinds, to which others can be added.
pub fn kinds() -> Kinds<Config> {
    Kinds::new("source", models().iter().copied())
}

/// A kind from outside this crate, for [`Kinds::add`].
pub const fn external<S: SourceModel>() -> Kind<Config> {
    kind::<S>()
}

const fn kind<S: SourceModel>() -> Kind<Config> {
    Kind::of::<S>(|words| Ok(Config(Arc::new(S::parse(words)?))))
}

/// A source's checked and complete parameters.
#[derive(Clone, Debug)]
pub struct Config(Arc<dyn AnySource>);

impl Config {
    pub fn new(source: impl SourceModel) -> Self {
        Self(Arc::new(source))
    }

    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Refuses values out of bounds, which code may have set.
    ///
    /// # Errors
    /// Names the parameter, its value and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        self.0.check()
    }

    /// The text that stands for it in a run's identity: the name, and the parameters that are not the default.
    pub fn canonical(&self) -> String {
        let written = self.0.written(Style::Canonical);
        match self.0.fingerprint() {
            Some(fingerprint) => format!("{written} contents={fingerprint:016x}"),
            None => written,
        }
    }

    pub fn build(&self, setup: Setup) -> Box<dyn Source> {
        self.0.build(setup)
    }

    pub fn files(&self) -> Vec<&str> {
        self.0.files()
    }

    /// The same with the text of a file that it names.
    ///
    /// # Errors
    /// It isn't what this source reads.
    pub fn with_file(&self, name: &str, text: &str) -> Result<Self, SpecError> {
        self.0.with_file(name, text)
    }

    pub fn voice(&self) -> Option<Voice> {
        self.0.voice()
    }

    pub fn is_audio(&self) -> bool {
        self.0.is_audio()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_any())
    }
}

impl fmt::Display for Config {
    /// As a study file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.written(Style::Equals))
    }
}

/// A [`SourceModel`] whose type is not known here.
trait AnySource: AnyParams {
    fn build(&self, setup: Setup) -> Box<dyn Source>;
    fn files(&self) -> Vec<&str>;
    fn with_file(&self, name: &str, text: &str) -> Result<Config, SpecError>;
    fn fingerprint(&self) -> Option<u64>;
    fn voice(&self) -> Option<Voice>;
    fn is_audio(&self) -> bool;
}

impl<S: SourceModel> AnySource for S {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        SourceModel::build(self, setup)
    }

    fn files(&self) -> Vec<&str> {
        SourceModel::files(self)
    }

    fn with_file(&self, name: &str, text: &str) -> Result<Config, SpecError> {
        let mut source = self.clone();
        source.read(name, text)?;
        Ok(Config::new(source))
    }

    fn fingerprint(&self) -> Option<u64> {
        SourceModel::fingerprint(self)
    }

    fn voice(&self) -> Option<Voice> {
        SourceModel::voice(self)
    }

    fn is_audio(&self) -> bool {
        SourceModel::is_audio(self)
    }
}
