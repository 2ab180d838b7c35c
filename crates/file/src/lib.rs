//! Study files: from what a person writes to checked scenarios.
//!
//! | module | what |
//! |---|---|
//! | [`Registry`] | what a file can name: the built-in kinds, and those that a program adds |
//! | [`study_file`] | [`StudyFile::load`]: a file read, checked and expanded into scenarios |
//! | [`document`] | the file as a tree that knows its lines |
//! | [`spec`] | the keys of the file, with their documentation |
//! | [`factors`] | what is varied |
//! | [`world`] | from keys to a checked `Scenario` |
//! | [`numbers`] | the numbers in a factor's values |
//! | [`plan`] | what results keep of all this |
//! | [`text_file`] | reading files that users name, never without bound |
//! | [`schema`] | the JSON Schema, generated |

mod at;
pub mod document;
mod engine;
mod error;
pub mod factors;
pub mod numbers;
pub mod plan;
mod registry;
pub mod schema;
pub mod spec;
pub mod study_file;
pub mod text_file;
mod workload;
pub mod world;

pub use engine::NamedEngine;
pub use error::{Mistake, Place, StudyError};
pub use registry::Registry;
pub use study_file::{FILE_NAME, Overrides, Scenarios, Seeding, StudyFile, StudyScenario, file_of};
