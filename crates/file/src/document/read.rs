//! Reads TOML into the tree.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sojourn_core::SpecError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{At, Document, Entry, Node, Source, Table, Value};
use crate::error::{Place, StudyError};

/// The longest chain of files that extend one another.
const MAX_EXTENDS: usize = 16;

/// Longer files are refused.
const MAX_BYTES: u64 = 64 << 20;

/// The most mistakes that are reported at once.
pub const MAX_MISTAKES: usize = 20;

/// Deeper nesting is refused, so that recursion stays shallow.
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

    /// Reads a text that is in no file; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// The text is no TOML, or extends a file that cannot be read.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, StudyError> {
        let mut sources = Vec::new();
        let root = parse_extending(name, text, folder, &mut sources)?;
        Ok(Self { sources, root })
    }

    /// A study that a program made of values: its errors name keys, and no lines.
    ///
    /// # Errors
    /// It is nested too deeply, or extends a file that cannot be read.
    pub fn of_values(name: &str, values: &Table, folder: &Path) -> Result<Self, StudyError> {
        let mut document = Self::parse(name, &values.to_toml(), folder)?;
        // The others are files that it extends.
        if let Some(source) = document.sources.first_mut() {
            source.is_file = false;
        }
        Ok(document)
    }

    /// Registers an option of the command line as a place.
    pub fn option(&mut self, option: &str) -> At {
        let source = self.sources.len() as u32;
        self.sources.push(Source {
            name: option.to_owned(),
            text: String::new(),
            folder: PathBuf::new(),
            is_file: false,
        });
        At { source, byte: 0 }
    }
}

impl Value {
    /// Reads the value of an option: TOML, or else plain text.
    pub(super) fn of_option(text: &str, at: At) -> Self {
        let parsed = DeValue::parse(text.trim())
            .ok()
            .and_then(|spanned| value_of(spanned.get_ref(), &|_| at, 0))
            .filter(|value| !matches!(value, Self::Datetime(_)));
        parsed.unwrap_or_else(|| Self::String(text.trim().to_owned()))
    }
}

fn read_extending(path: &Path, sources: &mut Vec<Source>) -> Result<Table, StudyError> {
    let name = path.display().to_string();
    let text = read_text(path, &name)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    parse_extending(&name, &text, &folder, sources)
}

fn read_text(path: &Path, name: &str) -> Result<String, StudyError> {
    let unreadable = |error| {
        let problem = SpecError::new(format!("cannot be read: {error}"));
        let beside = beside(path);
        let written = path.file_name().unwrap_or_default().to_string_lossy();
        let others = beside.iter().map(String::as_str).filter(|name| *name != written);
        let problem =
            problem.near(&written, others).allow(["a study file", "a folder with a study.toml"]);
        StudyError::new(Place { file: name.to_owned(), position: None }, "", problem)
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        let problem = SpecError::new("is too long for a study");
        let place = Place { file: name.to_owned(), position: None };
        let problem = problem.allow([format!("at most {} MiB", MAX_BYTES >> 20)]);
        return Err(StudyError::new(place, "", problem));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        let last = good.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(last).chars().count() as u32 + 1;
        let place = Place { file: name.to_owned(), position: Some((line, column)) };
        let byte = error.as_bytes()[good.len()];
        let problem = SpecError::new(format!("byte 0x{byte:02x} is no text"));
        StudyError::new(place, "", problem.allow(["text in UTF-8"]))
    })
}

/// Names of the files in the folder of `path`.
fn beside(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|parent| *parent != Path::new(""));
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn parse_extending(
    name: &str,
    text: &str,
    folder: &Path,
    sources: &mut Vec<Source>,
) -> Result<Table, StudyError> {
    let index = sources.len() as u32;
    sources.push(Source {
        name: name.to_owned(),
        text: text.to_owned(),
        folder: folder.to_owned(),
        is_file: true,
    });
    let document =
        |sources: &[Source]| Document { sources: sources.to_vec(), root: Table::default() };
    let at = |byte: usize| At { source: index, byte: byte as u32 };
    let (parsed, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<StudyError> = errors
        .iter()
        .map(|error| {
            let at = at(error.span().map_or(0, |span| span.start));
            // The parser's message may have several lines.
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            let problem = SpecError::new(format!("not TOML: {message}"));
            let problem = problem.allow(["key = value", "[table]", "[[table of a list]]"]);
            document(sources).error(at, "", problem)
        })
        .collect();
    // A second mistake in a line may be a consequence of the first.
    let line = |error: &StudyError| error.place().position.map(|(line, _)| line);
    errors.dedup_by_key(|error| line(error));
    errors.truncate(MAX_MISTAKES);
    if let Some(error) = StudyError::joined(errors) {
        return Err(error);
    }
    let mut table = table_of(parsed.get_ref(), &at, 0).ok_or_else(|| {
        let place = Place { file: name.to_owned(), position: None };
        let problem = SpecError::new("tables are nested too deeply");
        StudyError::new(place, "", problem.allow([format!("at most {MAX_DEPTH} levels")]))
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
        let problem = SpecError::new("too many files extend one another; is it a circle?");
        return Err(wrong(problem.allow([format!("at most {MAX_EXTENDS} files")])));
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
                // Beyond 64 bits: kept as a float, to be refused where it is used.
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
