//! A study file as a tree in which every key and value knows where it was written. So an error that
//! is found late, in a scenario that a factor made, still names a line.

mod deserialize;
mod edit;
mod print;
mod read;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use deserialize::Fault;
pub use edit::{Assignment, copy, fill, set, written};
pub use read::MAX_MISTAKES;

use sojourn_core::SpecError;

pub use crate::at::At;
use crate::error::{Place, StudyError};

/// A study file, the files that it extends, and what the command line sets.
#[derive(Clone, Debug)]
pub struct Document {
    sources: Vec<Source>,
    pub root: Table,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
    /// The folder from which relative paths in it are looked up.
    folder: PathBuf,
    /// Whether it has lines and columns; options of the command line have none.
    is_file: bool,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub value: Value,
    pub at: At,
}

#[derive(Clone, Debug)]
pub enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// As written; no key of a study has a date.
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub key_at: At,
    pub node: Node,
}

impl Document {
    /// The same in words, for an error.
    pub fn place(&self, at: At) -> Place {
        let source = &self.sources[at.source as usize];
        if !source.is_file {
            return Place { file: source.name.clone(), position: None };
        }
        let before = source.text.get(..at.byte as usize).unwrap_or(&source.text);
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() as u32 + 1;
        Place { file: source.name.clone(), position: Some((line, column)) }
    }

    /// The folder from which a relative path written at `at` is looked up.
    pub fn folder(&self, at: At) -> &Path {
        &self.sources[at.source as usize].folder
    }

    pub fn error(&self, at: At, key: impl Into<String>, problem: SpecError) -> StudyError {
        StudyError::new(self.place(at), key, problem).with_at(at)
    }

    /// The place of byte `offset` of a text that is written at `at`; `at` itself if the text is not
    /// written literally, for example with escapes.
    pub fn within_text(&self, at: At, text: &str, offset: usize) -> At {
        // The text begins after one quotation mark or three. After three, TOML ignores a line end.
        const OPENINGS: [usize; 4] = [1, 3, 4, 5];
        let source = &self.sources[at.source as usize];
        let starts = |inside: &usize| {
            let written = source.text.get(at.byte as usize + inside..);
            written.is_some_and(|written| written.starts_with(text))
        };
        match OPENINGS.into_iter().find(starts) {
            Some(inside) => At { byte: at.byte + (inside + offset) as u32, ..at },
            None => at,
        }
    }

    /// An error about a key; if the key is not written, it points to the nearest thing above it.
    pub fn error_at_key(&self, key: &str, problem: SpecError) -> StudyError {
        self.error(self.locate(key), key, problem)
    }

    /// The value of `key`, if it is written.
    pub fn node(&self, key: &str) -> Option<&Node> {
        let mut steps = key.split('.');
        let mut node = self.root.node(steps.next()?)?;
        for step in steps {
            node = match &node.value {
                Value::Table(table) => table.node(step)?,
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Where `key` itself is written, or else the nearest thing above it.
    pub fn locate_key(&self, key: &str) -> At {
        let entry = key.rsplit_once('.').and_then(|(above, name)| {
            let Value::Table(table) = &self.node(above)?.value else { return None };
            table.entry(name)
        });
        entry.map_or_else(|| self.locate(key), |entry| entry.key_at)
    }

    /// Where the value of `key` is written, or else the nearest thing above it.
    pub fn locate(&self, key: &str) -> At {
        let mut at = At::START;
        let mut table = &self.root;
        let mut steps = key.split('.').peekable();
        while let Some(step) = steps.next() {
            let Some(entry) = table.entry(step) else { return at };
            let mut node = &entry.node;
            at = if steps.peek().is_none() { node.at } else { entry.key_at };
            if let Value::Array(items) = &node.value {
                // The path may end at the list, or at a single value that stands for a list.
                let Some(index) = steps.peek().and_then(|step| step.parse::<usize>().ok()) else {
                    return at;
                };
                let Some(item) = items.get(index) else { return at };
                steps.next();
                at = item.at;
                node = item;
            }
            match &node.value {
                Value::Table(inner) => table = inner,
                // A single value that stands for a list.
                _ => return node.at,
            }
        }
        at
    }
}

impl Table {
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn node(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// Keys with dots, and the values that they lead to: `path.queue` may be written with or
    /// without quotes.
    pub fn flat(&self) -> Vec<(String, At, &Node)> {
        fn collect<'a>(prefix: &str, table: &'a Table, into: &mut Vec<(String, At, &'a Node)>) {
            for entry in &table.entries {
                let name = match prefix {
                    "" => entry.key.clone(),
                    prefix => format!("{prefix}.{}", entry.key),
                };
                match &entry.node.value {
                    Value::Table(inner) => collect(&name, inner, into),
                    _ => into.push((name, entry.key_at, &entry.node)),
                }
            }
        }
        let mut all = Vec::new();
        collect("", self, &mut all);
        all
    }

    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let position = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(position))
    }

    pub fn insert_value(&mut self, key: &str, key_at: At, node: Node) {
        self.insert(Entry { key: key.to_owned(), key_at, node });
    }

    /// Sets `key`, in its old place if it is there.
    pub fn insert(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl Value {
    /// As an error calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Datetime(_) => "a date",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// A single value as text without quotes, which names a factor's value. `None` for lists and
    /// tables.
    pub fn plain(&self) -> Option<String> {
        match self {
            Self::String(text) | Self::Datetime(text) => Some(text.clone()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Float(number) => Some(number.to_string()),
            Self::Boolean(flag) => Some(flag.to_string()),
            Self::Array(_) | Self::Table(_) => None,
        }
    }
}
