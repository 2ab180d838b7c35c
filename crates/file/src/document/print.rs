//! Prints the tree as TOML.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Document, Node, Table, Value};

impl Document {
    /// Everything as one file: what it extends is included, what was set is applied.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&self.root).unwrap_or_else(|error| format!("# {error}\n"))
    }

    /// The text of the file itself, if it extends nothing and nothing was set.
    pub fn verbatim(&self) -> Option<&str> {
        match &self.sources[..] {
            [only] => Some(&only.text),
            _ => None,
        }
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for entry in &self.entries {
            map.serialize_entry(&entry.key, &entry.node)?;
        }
        map.end()
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::String(text) | Value::Datetime(text) => serializer.serialize_str(text),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::Boolean(flag) => serializer.serialize_bool(*flag),
            Value::Array(items) => items.serialize(serializer),
            Value::Table(table) => table.serialize(serializer),
        }
    }
}
