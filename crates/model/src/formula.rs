//! What a closed form is: parameters in, named numbers out.

use alloc::vec::Vec;

use sojourn_core::{Params, SpecError};

/// One number that a formula gives.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub name: &'static str,
    /// As units of metrics are written; empty for plain numbers.
    pub unit: &'static str,
    pub doc: &'static str,
}

/// What a formula gives for some parameters. The first output is the one that is meant if none is
/// named.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub outputs: &'static [Output],
    /// In the order of `outputs`, in their units.
    pub values: Vec<f64>,
}

impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Answer {
    /// The output of that name; the first one if `name` is `None`.
    ///
    /// # Errors
    /// The formula has no such output; names those that it has.
    pub fn output(&self, name: Option<&str>) -> Result<(&'static Output, f64), SpecError> {
        let named = |output: &&Output| name.is_none_or(|name| output.name == name);
        let place = self.outputs.iter().position(|output| named(&output));
        let place = place.ok_or_else(|| {
            let name = name.unwrap_or_default();
            let names = || self.outputs.iter().map(|output| output.name);
            SpecError::new(alloc::format!("the formula gives no '{name}'"))
                .near(name, names())
                .allow(names())
        })?;
        Ok((&self.outputs[place], self.values[place]))
    }
}

/// A formula by its parameters.
pub(crate) trait Formula: Params {
    const OUTPUTS: &'static [Output];

    /// # Errors
    /// Parameters for which the formula says nothing, and those for which it does.
    fn evaluate(&self) -> Result<Vec<f64>, SpecError>;
}

pub(crate) const fn output(name: &'static str, unit: &'static str, doc: &'static str) -> Output {
    Output { name, unit, doc }
}
