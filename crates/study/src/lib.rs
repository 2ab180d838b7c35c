//! Studies: from a file that a person writes to runs, numbers and claims.
//!
//! | module | what |
//! |---|---|
//! | [`study`] | [`Study::load`]: read, checked, expanded into a [`results::Plan`] |
//! | [`document`] | the file as a tree that knows its lines |
//! | [`spec`] | the keys of the file, with their documentation |
//! | [`factors`] | what is varied |
//! | [`world`] | from keys to a checked `Scenario` |
//! | [`claims`] | expressions over metrics, and their verdicts |
//! | [`runner`] | runs, shards, resuming, joining |
//! | [`results`] | the result folder |
//! | [`schema`], [`reference`] | the JSON Schema and the reference page, generated |

pub mod claims;
pub mod digest;
pub mod document;
mod error;
pub mod factors;
pub mod metrics;
pub mod reference;
pub mod results;
pub mod runner;
pub mod schema;
pub mod spec;
pub mod study;
#[cfg(test)]
mod testing;
pub mod world;

pub use error::{Place, StudyError};
pub use study::{Overrides, Study};
