//! Engines by the names that scenarios give them.

use std::any::Any;
use std::fmt;

use sojourn_core::SpecError;
use sojourn_scenario::Checked;

/// An engine with its parameters, as a scenario names it. This room reads files and runs nothing, so
/// only the study's room knows what an engine does.
pub trait NamedEngine: Any + fmt::Debug + Send + Sync {
    /// Its name, its version and the parameters that are not the default; `None` for the engine of
    /// scenarios that name none. This text is part of a run's identity.
    fn canonical(&self) -> Option<String>;

    /// Refuses a world that this engine can't compute.
    ///
    /// # Errors
    /// What it can't compute, and what it can.
    fn check(&self, scenario: &Checked) -> Result<(), SpecError>;
}
