//! Link rates, and the trace files that some of them need.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sojourn_core::SpecError;
use sojourn_link::{RateConfig, RateSpec};

use super::Wrong;
use crate::document::Document;
use crate::spec::Text;

/// Trace files longer than this are no capacity traces.
const MAX_TRACE_BYTES: u64 = 256 << 20;

/// Rates that were completed already: each trace is read once, and held once, for all scenarios.
#[derive(Debug, Default)]
pub struct Traces {
    completed: BTreeMap<(PathBuf, String), RateConfig>,
}

impl Traces {
    /// Completes the rate that stands under `key` of the scenario.
    pub(super) fn complete(
        &mut self,
        rate: &Text<RateSpec>,
        key: &str,
        document: &Document,
    ) -> Result<RateConfig, Wrong> {
        let wrong = |problem| Wrong::new(key, problem);
        let Some(path) = rate.value.path() else {
            return rate.value.complete(None).map_err(wrong);
        };
        let folder = document.folder(document.locate(&format!("scenario.{key}")));
        let path = folder.join(path);
        let name = (path.clone(), rate.text.clone());
        if let Some(config) = self.completed.get(&name) {
            return Ok(config.clone());
        }
        let shown = path.display().to_string();
        let text = read(&path).map_err(|why| {
            wrong(SpecError::new(format!("the trace '{shown}' cannot be read: {why}")))
        })?;
        let config =
            rate.value.complete(Some(&text)).map_err(|error| wrong(error.within(&shown)))?;
        self.completed.insert(name, config.clone());
        Ok(config)
    }
}

fn read(path: &PathBuf) -> Result<String, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > MAX_TRACE_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_TRACE_BYTES >> 20));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}
