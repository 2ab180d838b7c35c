//! Values that may be one or several.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A single value: text, number, true or false. Kept as the text that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain(pub String);

/// One text or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneOrMany(pub Vec<String>);

/// Factors with the values that they may have, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(pub Vec<(String, Vec<String>)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// 1, 2, 3 … up to this.
    Count(u64),
    List(Vec<u64>),
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlainVisitor;
        impl Visitor<'_> for PlainVisitor {
            type Value = Plain;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true or false")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Plain, E> {
                Ok(Plain(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Plain, E> {
                Ok(Plain(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Plain, E> {
                Ok(Plain(number.to_string()))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Plain, E> {
                Ok(Plain(flag.to_string()))
            }
        }
        deserializer.deserialize_any(PlainVisitor)
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![number.to_string()]))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![number.to_string()]))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![flag.to_string()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany, A::Error> {
                let mut list = Vec::new();
                while let Some(Plain(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(OneOrMany(list))
            }
        }
        deserializer.deserialize_any(ListVisitor)
    }
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SelectionVisitor;
        impl<'de> Visitor<'de> for SelectionVisitor {
            type Value = Selection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("factors with values, such as { \"path.queue\" = \"fq_codel\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selection, A::Error> {
                let mut selection = Vec::new();
                while let Some((name, part)) = map.next_entry::<String, Part>()? {
                    match part {
                        Part::Values(values) => selection.push((name, values)),
                        Part::Inside(inside) => selection.extend(
                            inside.0.into_iter().map(|(rest, of)| (format!("{name}.{rest}"), of)),
                        ),
                    }
                }
                Ok(Selection(selection))
            }
        }
        deserializer.deserialize_any(SelectionVisitor)
    }
}

/// What follows a part of an address: values, or the rest of the address if it is written without
/// quotes.
enum Part {
    Values(Vec<String>),
    Inside(Selection),
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartVisitor;
        impl<'de> Visitor<'de> for PartVisitor {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of values")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Part, E> {
                Ok(Part::Values(vec![text.to_owned()]))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Part, E> {
                Ok(Part::Values(vec![number.to_string()]))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Part, E> {
                Ok(Part::Values(vec![number.to_string()]))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Part, E> {
                Ok(Part::Values(vec![flag.to_string()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Part, A::Error> {
                let items = de::value::SeqAccessDeserializer::new(items);
                OneOrMany::deserialize(items).map(|list| Part::Values(list.0))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Part, A::Error> {
                Selection::deserialize(de::value::MapAccessDeserializer::new(map)).map(Part::Inside)
            }
        }
        deserializer.deserialize_any(PartVisitor)
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SeedsVisitor;
        impl<'de> Visitor<'de> for SeedsVisitor {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("how many seeds, 1 or more; or a list of seeds, 0 or more each")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Seeds, E> {
                let negative = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                u64::try_from(number).map(Seeds::Count).map_err(negative)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Seeds, A::Error> {
                let mut list = Vec::new();
                while let Some(seed) = items.next_element()? {
                    list.push(seed);
                }
                Ok(Seeds::List(list))
            }
        }
        deserializer.deserialize_any(SeedsVisitor)
    }
}

macro_rules! schema {
    ($type:ty, $name:literal, $json:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($json)
            }
        }
    };
}

schema!(Plain, "value", { "type": ["string", "number", "boolean"] });
schema!(OneOrMany, "one or many", {
    "title": "text or list",
    "anyOf": [
        { "type": "string" },
        { "type": "array", "items": { "type": "string" } }
    ]
});
schema!(Selection, "selection", {
    "title": "factors with values",
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            { "type": ["string", "number", "boolean"] },
            { "type": "array", "items": { "type": ["string", "number", "boolean"] } },
            { "type": "object", "title": "the rest of the address" }
        ]
    }
});
schema!(Seeds, "seeds", {
    "title": "number or list",
    "anyOf": [
        { "type": "integer", "minimum": 1 },
        { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1 }
    ]
});
