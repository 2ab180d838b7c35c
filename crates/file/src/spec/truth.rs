//! Keys that are on or off.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::{Value, json};
use sojourn_core::param::Switch;

/// `true` or `false`, or one of a switch's words in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth(pub bool);

impl Truth {
    /// What may stand in a file.
    pub(crate) fn allowed() -> Vec<Value> {
        let words = Switch::WORDS.iter().map(|word| json!(word));
        [json!(true), json!(false)].into_iter().chain(words).collect()
    }
}

impl<'de> Deserialize<'de> for Truth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TruthVisitor;
        impl Visitor<'_> for TruthVisitor {
            type Value = Truth;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Switch::WANTED)
            }

            fn visit_bool<E: de::Error>(self, is_so: bool) -> Result<Truth, E> {
                Ok(Truth(is_so))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Truth, E> {
                let is_so = Switch::of(text);
                is_so.map(Truth).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(TruthVisitor)
    }
}

impl JsonSchema for Truth {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "switch".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["boolean", "string"],
            "enum": Truth::allowed(),
        })
    }
}
