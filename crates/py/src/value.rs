//! Python's values as a study's document, and back.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyMapping, PySequence, PyString};
use sojourn_core::SpecError;
use sojourn_file::document::{At, Document, Entry, Node, Table, Value};
use sojourn_file::{Place, StudyError};

/// Deeper nesting is refused, and with it a list that contains itself.
const MAX_DEPTH: usize = 60;

/// The name that errors give a study which is in no file.
pub(crate) const MADE: &str = "study";

/// Why values make no study.
pub(crate) enum Refused {
    Study(Box<StudyError>),
    /// What Python itself raised, for example a mapping of the user's own.
    Python(PyErr),
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// The document of a mapping.
pub(crate) fn table(mapping: &Bound<'_, PyMapping>) -> Result<Table, Refused> {
    table_at(mapping, "", 0)
}

/// A document as Python's values.
pub(crate) fn dict<'py>(py: Python<'py>, document: &Document) -> PyResult<Bound<'py, PyDict>> {
    dict_of(py, &document.root)
}

/// A value as the option `--set` would have it.
pub(crate) fn option(value: &Bound<'_, PyAny>, key: &str) -> Result<String, Refused> {
    let table = Table { entries: vec![entry("x", value_at(value, key, 0)?)] };
    // `x = VALUE`; with dotted keys there would be no such line, and tables are refused.
    if matches!(table.entries[0].node.value, Value::Table(_)) {
        return Err(refused(
            key,
            "a table",
            &["a text, a number, true or false, or a list of them"],
        ));
    }
    if let Value::String(text) = &table.entries[0].node.value {
        return Ok(text.clone());
    }
    let written = table.to_toml();
    Ok(written.trim().trim_start_matches("x =").trim().replace('\n', " "))
}

fn table_at(mapping: &Bound<'_, PyMapping>, key: &str, depth: usize) -> Result<Table, Refused> {
    let mut table = Table::default();
    for item in mapping.items()?.iter() {
        let (name, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let Ok(name) = name.cast::<PyString>() else {
            let problem = format!("a key is {}, not a text", type_name(&name));
            return Err(refused(key, &problem, &["texts such as \"path.queue\""]));
        };
        let name = name.to_str()?;
        let key = match key {
            "" => name.to_owned(),
            above => format!("{above}.{name}"),
        };
        table.entries.push(entry(name, value_at(&value, &key, depth + 1)?));
    }
    Ok(table)
}

fn value_at(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> Result<Value, Refused> {
    if depth > MAX_DEPTH {
        let problem = "values are nested too deeply; does a list contain itself?";
        return Err(refused(key, problem, &[]));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    // A bool is an int to Python, so it comes before.
    if let Ok(flag) = value.extract::<bool>() {
        return Ok(Value::Boolean(flag));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Value::Float(number.extract()?));
    }
    // Arrays of numpy have it, too.
    let is_several = value.hasattr("__len__")?;
    if value.hasattr("__index__")? && !is_several {
        return value.extract::<i64>().map(Value::Integer).map_err(|_| {
            refused(key, &format!("{value} is too large"), &["whole numbers of 64 bits"])
        });
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return table_at(mapping, key, depth).map(Value::Table);
    }
    if value.hasattr("__fspath__")? {
        let path = value.call_method0("__fspath__")?;
        return Ok(Value::String(path.extract()?));
    }
    let is_list = value.cast::<PySequence>().is_ok() && value.cast::<PyBytes>().is_err();
    if is_list || is_several && value.hasattr("__array__")? {
        let mut items = Vec::new();
        for (index, item) in value.try_iter()?.enumerate() {
            items.push(node(value_at(&item?, &format!("{key}.{index}"), depth + 1)?));
        }
        return Ok(Value::Array(items));
    }
    if value.hasattr("__float__")? {
        return Ok(Value::Float(value.extract()?));
    }
    let problem = match value.is_none() {
        true => "None is no value; leave the key out".to_owned(),
        false => format!("{} is no value of a study", type_name(value)),
    };
    Err(refused(key, &problem, &["texts, numbers, True, False, lists, dicts"]))
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "something".to_owned(), |name| format!("a {name}"))
}

fn refused(key: &str, problem: &str, allowed: &[&str]) -> Refused {
    let place = Place { file: MADE.to_owned(), position: None };
    let problem = SpecError::new(problem);
    let problem = if allowed.is_empty() { problem } else { problem.allow(allowed.iter().copied()) };
    Refused::Study(Box::new(StudyError::new(place, key, problem)))
}

fn entry(key: &str, value: Value) -> Entry {
    Entry { key: key.to_owned(), key_at: At::START, node: node(value) }
}

fn node(value: Value) -> Node {
    Node { value, at: At::START }
}

fn dict_of<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for entry in &table.entries {
        dict.set_item(&entry.key, object(py, &entry.node.value)?)?;
    }
    Ok(dict)
}

fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::String(text) | Value::Datetime(text) => PyString::new(py, text).into_any(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Boolean(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Table(table) => dict_of(py, table)?.into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(object(py, &item.value)?)?;
            }
            list.into_any()
        }
    })
}
