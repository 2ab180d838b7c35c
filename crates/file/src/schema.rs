//! The JSON Schema of study files, for editors that complete and check as one types.

use schemars::generate::SchemaSettings;

use crate::spec::StudySpec;

/// The schema (draft 2020-12) as it is committed under `schema/study.schema.json`.
pub fn json() -> String {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.into_root_schema_for::<StudySpec>();
    // Plain data that came from serde: it prints.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
