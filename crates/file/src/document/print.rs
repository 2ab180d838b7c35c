//! Prints the tree as TOML.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Document, Entry, Node, Table, Value};

impl Document {
    /// Everything as one file: what it extends is included, what was set is applied.
    pub fn to_toml(&self) -> String {
        self.root.to_toml()
    }

    /// The text of the file itself, if it extends nothing and nothing was set.
    pub fn verbatim(&self) -> Option<&str> {
        match &self.sources[..] {
            [only] => Some(&only.text),
            _ => None,
        }
    }
}

impl Table {
    /// The order of the keys is kept, because that of factors is the order of the scenarios. TOML has
    /// no way back from `[table]` to the keys above it, so a table before other keys is put on a line.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        match self.write(&mut text, "") {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }

    fn write(&self, text: &mut String, above: &str) -> Result<(), toml::ser::Error> {
        let is_line = |entry: &Entry| !entry.node.has_header();
        let lines = self.entries.iter().rposition(is_line).map_or(0, |last| last + 1);
        let (lines, headed) = self.entries.split_at(lines);
        for entry in lines {
            match is_line(entry) {
                true => text.push_str(&toml::to_string_pretty(&One(entry))?),
                false => {
                    let mut value = String::new();
                    entry.node.serialize(toml::ser::ValueSerializer::new(&mut value))?;
                    text.push_str(&format!("{} = {value}\n", quoted(&entry.key)?));
                }
            }
        }
        for entry in headed {
            let name = format!("{above}{}", quoted(&entry.key)?);
            let (header, tables) = match &entry.node.value {
                Value::Table(table) => (format!("[{name}]"), vec![table]),
                _ => (format!("[[{name}]]"), entry.node.tables().unwrap_or_default()),
            };
            for table in tables {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}{header}\n"));
                table.write(text, &format!("{name}."))?;
            }
        }
        Ok(())
    }
}

impl Node {
    /// Whether it is written below a `[table]` or `[[table of a list]]`.
    fn has_header(&self) -> bool {
        matches!(self.value, Value::Table(_)) || self.tables().is_some()
    }

    /// The tables of a list that has nothing else.
    fn tables(&self) -> Option<Vec<&Table>> {
        let Value::Array(items) = &self.value else { return None };
        let tables = items.iter().map(|item| match &item.value {
            Value::Table(table) => Some(table),
            _ => None,
        });
        tables.collect::<Option<Vec<_>>>().filter(|tables| !tables.is_empty())
    }
}

/// A key as TOML has it, in quotes if it needs them.
fn quoted(key: &str) -> Result<String, toml::ser::Error> {
    let line = toml::to_string(&BTreeMap::from([(key, 0)]))?;
    Ok(line.trim_end().trim_end_matches("= 0").trim_end().to_owned())
}

/// A table with one key.
struct One<'a>(&'a Entry);

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(&self.0.key, &self.0.node)])
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
