//! Closed forms, one point at a time.

use pyo3::prelude::*;
use sojourn_model::formulas;

use crate::errors::{Error, guarded};

/// What a closed form gives: names with their units, as columns have them, and values.
#[pyfunction]
pub(crate) fn model(text: &str) -> PyResult<Vec<(String, f64)>> {
    guarded(|| {
        let answer = formulas().parse(text).map_err(|error| Error::new_err(error.to_string()))?;
        let named = answer.outputs.iter().map(|output| match output.unit {
            "" => output.name.to_owned(),
            "Mbit/s" => format!("{}_mbps", output.name),
            unit => format!("{}_{unit}", output.name),
        });
        Ok(named.zip(answer.values).collect())
    })
}

/// Of a parameter: its name, its default and what it is.
type Told = (&'static str, &'static str, &'static str);

/// Every closed form: its name, what it is, and its parameters.
#[pyfunction]
pub(crate) fn models() -> Vec<(&'static str, &'static str, Vec<Told>)> {
    let told = |param: &'static sojourn_core::Param| (param.name, param.default, param.doc);
    let all = formulas();
    all.iter().map(|kind| (kind.name, kind.doc, kind.params.iter().map(told).collect())).collect()
}
