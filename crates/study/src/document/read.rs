//! From TOML to the tree.

use std::path::{Path, PathBuf};

use sojourn_core::SpecError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{At, Document, Entry, Node, Source, Table, Value};
use crate::error::{Place, StudyError};

/// How many files may extend one another in a row.
const MAX_EXTENDS: usize = 16;

/// Nesting that no study needs, and that keeps recursion shallow.
const MAX_DEPTH: usize = 64;

impl Document {
    /// Reads a file, and those that it extends: its keys then stand above theirs, table by table.
    ///
    /// # Errors
    /// A file that cannot be read or is no TOML, or files that extend one another in a circle.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let mut sources = Vec::new();
        let root = read_extending(path, &mut sources)?;
        Ok(Self { sources, root })
    }

    /// Reads a text that stands in no file; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// The text is no TOML, or extends a file that cannot be read.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, StudyError> {
        let mut sources = Vec::new();
        let root = parse_extending(name, text, folder, &mut sources)?;
        Ok(Self { sources, root })
    }

    /// Reads what an option of the command line gives as a value: TOML, or else plain text.
    pub(super) fn add_option(&mut self, option: &str, value: &str) -> Node {
        let source = self.sources.len() as u16;
        self.sources.push(Source {
            name: option.to_owned(),
            text: String::new(),
            folder: PathBuf::new(),
            is_file: false,
        });
        let at = At { source, byte: 0 };
        let parsed = DeValue::parse(value.trim())
            .ok()
            .and_then(|spanned| value_of(spanned.get_ref(), &|_| at, 0))
            .filter(|value| !matches!(value, Value::Datetime(_)));
        Node { value: parsed.unwrap_or_else(|| Value::String(value.trim().to_owned())), at }
    }
}

fn read_extending(path: &Path, sources: &mut Vec<Source>) -> Result<Table, StudyError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| StudyError::of_file(&name, format!("cannot be read: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    parse_extending(&name, &text, &folder, sources)
}

fn parse_extending(
    name: &str,
    text: &str,
    folder: &Path,
    sources: &mut Vec<Source>,
) -> Result<Table, StudyError> {
    let index = sources.len() as u16;
    sources.push(Source {
        name: name.to_owned(),
        text: text.to_owned(),
        folder: folder.to_owned(),
        is_file: true,
    });
    let document =
        |sources: &[Source]| Document { sources: sources.to_vec(), root: Table::default() };
    let at = |byte: usize| At { source: index, byte: byte as u32 };
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = at(error.span().map_or(0, |span| span.start));
        let place = document(sources).place(at);
        StudyError::new(place, "", SpecError::new(format!("not TOML: {}", error.message())))
    })?;
    let mut table = table_of(parsed.get_ref(), &at, 0).ok_or_else(|| {
        let place = Place { file: name.to_owned(), position: None };
        StudyError::new(place, "", SpecError::new("tables are nested too deeply"))
    })?;
    let Some(extends) = table.remove("extends") else {
        return Ok(table);
    };
    let wrong = |problem| document(sources).error(extends.node.at, "extends", problem);
    let Value::String(base) = &extends.node.value else {
        return Err(wrong(
            SpecError::new(format!("'extends' is {}", extends.node.value.kind()))
                .allow(["the path of a study file"]),
        ));
    };
    if sources.len() >= MAX_EXTENDS {
        return Err(wrong(SpecError::new("too many files extend one another; is it a circle?")));
    }
    let mut base = read_extending(&folder.join(base), sources)?;
    merge(&mut base, table);
    Ok(base)
}

/// Puts `above` on top of `base`: tables key by key, everything else as a whole.
fn merge(base: &mut Table, above: Table) {
    for entry in above.entries {
        let old = base.entries.iter_mut().find(|old| old.key == entry.key);
        match (old, entry) {
            (
                Some(Entry { node: Node { value: Value::Table(old), .. }, .. }),
                Entry { node: Node { value: Value::Table(new), .. }, .. },
            ) => merge(old, new),
            (Some(old), entry) => *old = entry,
            (None, entry) => base.entries.push(entry),
        }
    }
}

fn table_of(table: &DeTable<'_>, at: &impl Fn(usize) -> At, depth: usize) -> Option<Table> {
    let entries = table
        .iter()
        .map(|(key, value)| {
            Some(Entry {
                key: key.get_ref().to_string(),
                key_at: at(key.span().start),
                node: node_of(value, at, depth)?,
            })
        })
        .collect::<Option<_>>()?;
    Some(Table { entries })
}

fn node_of(value: &Spanned<DeValue<'_>>, at: &impl Fn(usize) -> At, depth: usize) -> Option<Node> {
    Some(Node { value: value_of(value.get_ref(), at, depth)?, at: at(value.span().start) })
}

/// `None` when nested too deeply.
fn value_of(value: &DeValue<'_>, at: &impl Fn(usize) -> At, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Integer(number),
                // Beyond 64 bits: kept as the number it is, to be refused where it is used.
                Err(_) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
            }
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| node_of(item, at, depth + 1)).collect::<Option<_>>()?,
        ),
        DeValue::Table(table) => Value::Table(table_of(table, at, depth + 1)?),
    })
}
