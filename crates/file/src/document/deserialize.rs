//! Turns the tree into plain structs with serde. A mistake keeps its place and its key.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use sojourn_core::SpecError;

use super::{At, Node, Table, Value};

/// What is wrong, with which key, and where.
#[derive(Clone, Debug)]
pub struct Fault {
    /// `None` until the place of the value is known.
    pub at: Option<At>,
    /// The parts of the key, innermost first.
    steps: Vec<String>,
    pub problem: SpecError,
}

impl Fault {
    pub fn new(problem: SpecError) -> Self {
        Self { at: None, steps: Vec::new(), problem }
    }

    /// The key with dots, below `prefix`.
    pub fn key(&self, prefix: &str) -> String {
        let mut key = prefix.to_owned();
        for step in self.steps.iter().rev() {
            if !key.is_empty() {
                key.push('.');
            }
            // As TOML writes an empty key.
            key.push_str(if step.is_empty() { "\"\"" } else { step });
        }
        key
    }

    fn at(mut self, at: At) -> Self {
        self.at.get_or_insert(at);
        self
    }

    fn below(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }
}

impl Node {
    /// # Errors
    /// A key that is unknown, missing or doubled, or a value of the wrong kind.
    pub fn to<'de, T: de::Deserialize<'de>>(&'de self) -> Result<T, Fault> {
        T::deserialize(self).map_err(|fault| fault.at(self.at))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(SpecError::new(message.to_string()))
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let given = match unexpected {
            de::Unexpected::Bool(flag) => flag.to_string(),
            de::Unexpected::Signed(number) => format!("the number {number}"),
            de::Unexpected::Unsigned(number) => format!("the number {number}"),
            de::Unexpected::Float(number) => format!("the number {number}"),
            de::Unexpected::Str(text) => format!("the text '{text}'"),
            de::Unexpected::Seq => "a list".to_owned(),
            de::Unexpected::Map => "a table".to_owned(),
            other => other.to_string(),
        };
        Self::new(SpecError::new(format!("{given} does not fit")).allow([wanted(expected)]))
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(
            SpecError::new(format!("unknown '{variant}'"))
                .near(variant, expected.iter().copied())
                .allow(expected.iter().copied()),
        )
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(
            SpecError::new("unknown key")
                .near(field, expected.iter().copied())
                .allow(expected.iter().copied()),
        )
    }

    fn missing_field(field: &'static str) -> Self {
        let example = EXAMPLES.iter().find(|(key, _)| *key == field).map(|(_, example)| *example);
        Self::new(SpecError::new("is missing").allow(example)).below(field)
    }
}

/// What serde expected, in words.
fn wanted(expected: &dyn de::Expected) -> String {
    let wanted = expected.to_string();
    match &wanted[..] {
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" => "a whole number, 0 or more".to_owned(),
        "f64" => "a number".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a sequence" => "a list: [[TABLE]], or [VALUE, VALUE]".to_owned(),
        "a map" => "a table".to_owned(),
        wanted if wanted.starts_with("struct ") => "a table".to_owned(),
        _ => wanted,
    }
}

/// Examples of required keys, as a user would write them.
const EXAMPLES: [(&str, &str); 15] = [
    ("schema", "schema = 1"),
    ("title", "title = \"a line of text\""),
    ("scenario", "a table [scenario]"),
    ("duration", "duration = \"60s\""),
    ("rate", "rate = \"10Mbps\""),
    ("queue", "queue = \"pfifo limit 50\""),
    ("hops", "hops = 3"),
    ("name", "name = \"a-word\""),
    ("from", "from = \"the name of a node\""),
    ("to", "to = \"the name of a node\""),
    ("app", "app = \"bulk\""),
    ("kind", "kind = \"bars\""),
    ("y", "y = \"goodput\""),
    ("id", "id = \"C1\""),
    ("text", "text = \"the claim in words\""),
];

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::String(text) | Value::Datetime(text) => visitor.visit_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(flag) => visitor.visit_bool(*flag),
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Table(table) => visitor.visit_map(Entries { table, next: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // TOML has no null, so a key that is written has a value.
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// A list is no table, though serde would take its items for the fields in their order. As this does not
    /// go through `deserialize_any`, no struct is compiled for lists, either.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Table(table) => visitor.visit_map(Entries { table, next: 0 }),
            other => Err(other.instead_of(&visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::String(text) => {
                let text: de::value::StrDeserializer<'_, Fault> = text.as_str().into_deserializer();
                text.deserialize_enum(name, variants, visitor)
            }
            other => Err(Fault::new(
                SpecError::new(format!("{} does not fit", other.kind()))
                    .allow(variants.iter().copied()),
            )),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.whole(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.whole(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.whole(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u16 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier
    }
}

impl Node {
    /// Where a whole number is wanted, `1e3` is one.
    fn whole<'de, V: Visitor<'de>>(&'de self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            // Above 2^53 a float is no longer exact.
            Value::Float(number) if number.fract() == 0.0 && number.abs() <= 2f64.powi(53) => {
                visitor.visit_i64(number as i64)
            }
            _ => self.deserialize_any(visitor),
        }
    }
}

impl Value {
    /// What a user is told who wrote this where `expected` is wanted.
    fn instead_of(&self, expected: &dyn de::Expected) -> Fault {
        let unexpected = match self {
            Self::String(text) | Self::Datetime(text) => de::Unexpected::Str(text),
            Self::Integer(number) => de::Unexpected::Signed(*number),
            Self::Float(number) => de::Unexpected::Float(*number),
            Self::Boolean(flag) => de::Unexpected::Bool(*flag),
            Self::Array(_) => de::Unexpected::Seq,
            Self::Table(_) => de::Unexpected::Map,
        };
        de::Error::invalid_type(unexpected, expected)
    }
}

struct Items<'de> {
    items: &'de [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.items.get(self.next) else {
            return Ok(None);
        };
        let index = self.next;
        self.next += 1;
        seed.deserialize(node).map(Some).map_err(|fault| fault.at(node.at).below(index.to_string()))
    }
}

struct Entries<'de> {
    table: &'de Table,
    next: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.table.entries.get(self.next) else {
            return Ok(None);
        };
        let key: de::value::StrDeserializer<'de, Fault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| fault.at(entry.key_at).below(&*entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        // Serde asks for the value only after the key.
        let entry = &self.table.entries[self.next];
        self.next += 1;
        seed.deserialize(&entry.node).map_err(|fault| fault.at(entry.node.at).below(&*entry.key))
    }
}
