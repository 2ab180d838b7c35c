//! Link rates, and the trace files that some of them need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sojourn_core::SpecError;
use sojourn_host::apps::{Sizes, SizesSpec};
use sojourn_link::{RateConfig, RateSpec};
use sojourn_media::source;
use sojourn_wifi::rate::{Control, ControlSpec};

use super::Wrong;
use crate::document::Document;
use crate::spec::Text;
use crate::text_file;

/// What was read of the files that a study names. Each is read once for all scenarios, so a scenario that is
/// built again is the same even if a file has changed meanwhile.
#[derive(Debug, Default)]
pub struct Traces {
    /// Link rates by the path of their trace and as they are written; many scenarios share one trace.
    completed: BTreeMap<(PathBuf, String), RateConfig>,
    /// Of all other files.
    texts: BTreeMap<PathBuf, Arc<str>>,
}

impl Traces {
    /// Completes the rate at `key` of the scenario.
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
        let path = beside(document, &format!("scenario.{key}"), path);
        let name = (path.clone(), rate.text.clone());
        if let Some(config) = self.completed.get(&name) {
            return Ok(config.clone());
        }
        let text = read("trace", &path).map_err(wrong)?;
        let within = |error: SpecError| error.within(&path.display().to_string());
        let config = rate.value.complete(Some(&text)).map_err(|error| wrong(within(error)))?;
        self.completed.insert(name, config.clone());
        Ok(config)
    }

    /// Reads the trace that the rate control at `key` of the scenario may name.
    pub(super) fn control(
        &mut self,
        control: &ControlSpec,
        key: &str,
        document: &Document,
    ) -> Result<Control, SpecError> {
        let Some(path) = control.path() else {
            return control.complete("");
        };
        let path = beside(document, &format!("scenario.{key}"), path);
        let text = self.text("trace", &path)?;
        control.complete(&text).map_err(|error| error.within(&path.display().to_string()))
    }

    /// Completes the distribution at `key` of the file.
    pub(super) fn sizes(
        &mut self,
        sizes: &SizesSpec,
        key: &str,
        document: &Document,
    ) -> Result<Sizes, SpecError> {
        let Some(path) = sizes.path() else {
            return sizes.complete(None);
        };
        let path = beside(document, key, path);
        let text = self.text("distribution", &path)?;
        sizes.complete(Some(&text)).map_err(|error| error.within(&path.display().to_string()))
    }

    /// Gives the source at `key` of the file the frame sizes that it names.
    pub(super) fn frames(
        &mut self,
        mut source: source::Config,
        key: &str,
        document: &Document,
    ) -> Result<source::Config, SpecError> {
        let names: Vec<String> = source.files().into_iter().map(str::to_owned).collect();
        for name in names {
            let path = beside(document, key, &name);
            let text = self.text("frame trace", &path)?;
            let read = source.with_file(&name, &text);
            source = read.map_err(|error| error.within(&path.display().to_string()))?;
        }
        Ok(source)
    }

    fn text(&mut self, what: &str, path: &Path) -> Result<Arc<str>, SpecError> {
        if let Some(text) = self.texts.get(path) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = read(what, path)?.into();
        self.texts.insert(path.to_owned(), Arc::clone(&text));
        Ok(text)
    }
}

/// A path is looked up from the folder of the file or option that named it under `key`.
fn beside(document: &Document, key: &str, path: &str) -> PathBuf {
    document.folder(document.locate(key)).join(path)
}

fn read(what: &str, path: &Path) -> Result<String, SpecError> {
    text_file::read(path).map_err(|error| error.within(&format!("the {what} '{}'", path.display())))
}
