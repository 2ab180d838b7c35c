//! Studies: their runs are run, measured and kept, and their claims checked.
//!
//! | module | what |
//! |---|---|
//! | [`study`] | [`Study::load`]: a file with its claims and figures checked, and its [`results::Plan`] |
//! | [`claims`] | expressions over metrics, and their verdicts |
//! | [`engine`] | what makes numbers of a scenario: the simulator, and engines from elsewhere |
//! | [`possible`] | which metrics what is in a study can have |
//! | [`confidence`] | intervals of means over runs |
//! | [`runner`] | runs, shards, resuming, joining |
//! | [`results`] | the result folder |
//! | [`mod@reference`] | the reference page of studies, generated |

pub mod claims;
pub mod confidence;
pub mod digest;
pub mod engine;
pub mod metrics;
pub mod possible;
pub mod reference;
mod removed;
pub mod results;
pub mod runner;
mod shape;
mod shard;
pub mod study;
#[cfg(test)]
mod testing;

pub use sojourn_file::{Overrides, Place, Registry, StudyError, StudyScenario};
pub use study::Study;
