//! Calls: the source and the rate controller that the text names, and the source's files.

use sojourn_core::SpecError;
use sojourn_media::call::{CallConfig, CallSpec, NO_AUDIO};

use super::{Sources, WrongKey};

/// Builds a call; `index` is the position of the flow in the file.
pub(super) fn config(
    spec: CallSpec,
    index: usize,
    sources: &mut Sources<'_>,
) -> Result<CallConfig, WrongKey> {
    let source = sources.registry.source(&spec.source).map_err(|error| ("source", error))?;
    let key = format!("scenario.flow.{index}.source");
    let source =
        sources.traces.frames(source, &key, sources.document).map_err(|error| ("source", error))?;
    let control =
        sources.registry.rate_controller(&spec.control).map_err(|error| ("control", error))?;
    let audio = match spec.audio.trim() {
        NO_AUDIO => None,
        text => Some(sources.registry.source(text).map_err(|error| ("audio", error))?),
    };
    let about = |error: SpecError| (error.parameter().unwrap_or("app"), error);
    CallConfig::new(spec, source, control, audio).map_err(about)
}
