//! A class of Python's with values for its parameters.

use std::fmt;
use std::sync::Arc;

use pyo3::prelude::*;
use sojourn_core::param::Style;
use sojourn_core::{SpecError, Words};
use sojourn_study::runner::Fault;

/// `_own.Loaded`.
#[derive(FromPyObject)]
struct Loaded {
    #[pyo3(attribute("class_"))]
    class: Py<PyAny>,
    /// Parameters that differ from their defaults, as a study writes them.
    settings: Vec<(String, String)>,
    /// A digest of the source.
    code: String,
    /// Methods that are called only if the class has them.
    methods: Vec<String>,
    phases: Vec<String>,
    ecn: String,
    uses_prr: bool,
}

/// What is known of a class that was imported. The default stands for none.
#[derive(Clone, Default)]
pub(super) struct Class {
    /// `MODULE:CLASS`.
    path: String,
    loaded: Option<Arc<Loaded>>,
}

impl Class {
    /// Imports what the first word names, with the parameters that follow.
    ///
    /// # Errors
    /// There is no such class, or it has no such parameter.
    pub(super) fn parse(base: &str, words: &mut Words<'_>) -> Result<Self, SpecError> {
        let Some(path) = words.next() else {
            let problem = SpecError::new("python: which class?");
            return Err(problem.allow(["python MODULE:CLASS NAME=VALUE …"]));
        };
        let mut settings = Vec::new();
        while let Some(name) = words.next() {
            settings.push((name.to_owned(), words.value(name)?.to_owned()));
        }
        let loaded = Python::attach(|py| {
            let own = py.import("sojourn._own")?;
            own.call_method1("load", (base, path, settings))?.extract::<Loaded>()
        });
        let loaded = loaded.map_err(|error| {
            let text = Python::attach(|py| error.value(py).to_string());
            SpecError::new(text)
        })?;
        Ok(Self { path: path.to_owned(), loaded: Some(Arc::new(loaded)) })
    }

    fn loaded(&self) -> &Loaded {
        self.loaded.as_ref().expect("only what was parsed is built")
    }

    /// An instance, made with `start`.
    pub(super) fn make<'py>(
        &self,
        py: Python<'py>,
        start: impl IntoPyObject<'py>,
    ) -> PyResult<Py<PyAny>> {
        let own = py.import("sojourn._own")?;
        let class = self.loaded();
        let made = own.call_method1("make", (&class.class, &class.settings, start))?;
        Ok(made.unbind())
    }

    pub(super) fn has(&self, method: &str) -> bool {
        self.loaded().methods.iter().any(|name| name == method)
    }

    pub(super) fn phases(&self) -> &[String] {
        &self.loaded().phases
    }

    pub(super) fn ecn(&self) -> &str {
        &self.loaded().ecn
    }

    pub(super) fn uses_prr(&self) -> bool {
        self.loaded().uses_prr
    }

    /// What was raised, and where, as the reason why the run ends.
    pub(super) fn fault(&self, py: Python<'_>, error: &PyErr) -> Fault {
        let described = py.import("sojourn._own").and_then(|own| {
            own.call_method1("described", (error.value(py), error.traceback(py)))?
                .extract::<String>()
        });
        Fault(format!("{}: {}", self.path, described.unwrap_or_else(|_| error.to_string())))
    }

    /// With the code's digest, if this is to name a run.
    pub(super) fn write(&self, style: Style, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(loaded) = &self.loaded else { return Ok(()) };
        write!(f, " {}", self.path)?;
        let sign = style.sign();
        for (name, value) in &loaded.settings {
            write!(f, " {name}{sign}{value}")?;
        }
        match style {
            Style::Equals => Ok(()),
            _ => write!(f, " code{sign}{}", loaded.code),
        }
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        let of = |class: &Self| {
            class.loaded.as_ref().map(|loaded| (loaded.settings.clone(), loaded.code.clone()))
        };
        self.path == other.path && of(self) == of(other)
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Class({})", self.path)
    }
}

/// Makes `$Own` the parameters of a kind named `python`, whose class has the base `$base`.
macro_rules! named_python {
    ($Own:ident, $base:literal, $doc:literal) => {
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct $Own($crate::own::class::Class);

        impl sojourn_core::Params for $Own {
            const NAME: &'static str = "python";
            const DOC: &'static str = $doc;
            // Each class has its own.
            const PARAMS: &'static [sojourn_core::Param] = &[];

            fn accept(
                &mut self,
                _: &str,
                _: &mut sojourn_core::Words<'_>,
            ) -> Result<bool, sojourn_core::SpecError> {
                Ok(false)
            }

            fn check(&self) -> Result<(), sojourn_core::SpecError> {
                Ok(())
            }

            fn write(
                &self,
                style: sojourn_core::param::Style,
                f: &mut std::fmt::Formatter<'_>,
            ) -> std::fmt::Result {
                self.0.write(style, f)
            }

            fn parse(words: &mut sojourn_core::Words<'_>) -> Result<Self, sojourn_core::SpecError> {
                $crate::own::class::Class::parse($base, words).map(Self)
            }
        }
    };
}

pub(super) use named_python;
