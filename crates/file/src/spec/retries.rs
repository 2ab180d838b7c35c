//! How often a frame is sent.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU8;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};

const NEVER: &str = "never";

/// Attempts before a frame is given up; none is without a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries(pub Option<NonZeroU8>);

impl<'de> Deserialize<'de> for Retries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RetriesVisitor;
        impl Visitor<'_> for RetriesVisitor {
            type Value = Retries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 1 to 255, or \"{NEVER}\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Retries, E> {
                let limit = u8::try_from(number).ok().and_then(NonZeroU8::new);
                let wrong = || E::invalid_value(de::Unexpected::Signed(number), &self);
                limit.map(|limit| Retries(Some(limit))).ok_or_else(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Retries, E> {
                match text {
                    NEVER => Ok(Retries(None)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(RetriesVisitor)
    }
}

impl JsonSchema for Retries {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "retries".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "number or never",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 255 },
                { "const": NEVER }
            ]
        })
    }
}
