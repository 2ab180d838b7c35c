//! Changing a study from outside: factors and `--set` find a key by the same address.

use sojourn_core::SpecError;

use super::{At, Document, Entry, Node, Table, Value};

/// `path.rate=40mbps`, as an option of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub address: String,
    pub value: String,
}

impl Assignment {
    /// # Errors
    /// There is no `=`, or nothing before it.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        match text.split_once('=') {
            Some((address, value)) if !address.trim().is_empty() => {
                Ok(Self { address: address.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(SpecError::new(format!("'{text}' sets nothing"))
                .allow(["ADDRESS=VALUE, such as path.rate=40mbps"])),
        }
    }
}

impl Document {
    /// The value of an [`Assignment`] as a node that says where it came from.
    pub fn option(&mut self, assignment: &Assignment) -> Node {
        let name = format!("--set {}={}", assignment.address, assignment.value);
        self.add_option(&name, &assignment.value)
    }
}

/// Sets what `address` stands for in a `[scenario]` table.
///
/// | address | is |
/// |---|---|
/// | `duration`, `warmup`, `step` | a key of the scenario |
/// | `path.KEY`, `parking_lot.KEY` | a key of the shape |
/// | `flow.NAME.KEY`, `link.NAME.KEY` | a key of the flow or link of that name |
/// | `flow.*.KEY`, `link.*.KEY` | the same for all of them |
/// | `cca` | the congestion control of every flow over TCP |
///
/// # Errors
/// What is addressed is not in the study. Whether the key exists and the value fits is found when
/// the scenario is read.
pub fn set(scenario: &mut Table, address: &str, at: At, node: &Node) -> Result<(), SpecError> {
    let address = address.strip_prefix("scenario.").unwrap_or(address);
    let steps: Vec<&str> = address.split('.').collect();
    let entry = |key: &str| Entry { key: key.to_owned(), key_at: at, node: node.clone() };
    match steps[..] {
        ["cca"] => set_all_cca(scenario, &entry("cca")),
        [key @ ("duration" | "warmup" | "step")] => {
            scenario.insert(entry(key));
            Ok(())
        }
        [shape @ ("path" | "parking_lot"), key] => match table_mut(scenario, shape) {
            Some(table) => {
                table.insert(entry(key));
                Ok(())
            }
            None => Err(SpecError::new(format!("the study has no [scenario.{shape}]"))),
        },
        [list @ ("flow" | "link"), name, key] => set_named(scenario, list, name, &entry(key)),
        // A flow of a group is no table of its own.
        ["flow", name, _, key] => Err(SpecError::new(format!(
            "one flow of a group cannot be set alone; 'flow.{name}.{key}' sets them all"
        ))),
        _ => Err(SpecError::new(format!("'{address}' is no address in a scenario"))
            .near(address, ["duration", "warmup", "step", "cca"])
            .allow([
                "duration",
                "warmup",
                "step",
                "path.KEY",
                "parking_lot.KEY",
                "flow.NAME.KEY",
                "link.NAME.KEY",
                "cca",
            ])),
    }
}

fn set_named(scenario: &mut Table, list: &str, name: &str, entry: &Entry) -> Result<(), SpecError> {
    let mut names = Vec::new();
    let mut found = false;
    for table in tables_mut(scenario, list) {
        let own = table.node("name").and_then(|node| node.value.plain()).unwrap_or_default();
        if name == "*" || own == name {
            table.insert(entry.clone());
            found = true;
        }
        names.push(own);
    }
    if found {
        return Ok(());
    }
    Err(SpecError::new(format!("no {list} is named '{name}'"))
        .near(name, names.iter().map(String::as_str))
        .allow(names.iter().map(String::as_str).chain(["*"])))
}

fn set_all_cca(scenario: &mut Table, entry: &Entry) -> Result<(), SpecError> {
    let mut found = false;
    for table in tables_mut(scenario, "flow") {
        let app = table.node("app").and_then(|node| node.value.plain());
        if matches!(app.as_deref(), Some("bulk" | "on_off")) {
            table.insert(entry.clone());
            found = true;
        }
    }
    if found { Ok(()) } else { Err(SpecError::new("no flow runs over TCP")) }
}

fn table_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    let entry = table.entries.iter_mut().find(|entry| entry.key == key)?;
    match &mut entry.node.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

fn tables_mut<'a>(table: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Table> {
    let items =
        table.entries.iter_mut().find(|entry| entry.key == key).and_then(|entry| match &mut entry
            .node
            .value
        {
            Value::Array(items) => Some(items),
            _ => None,
        });
    items.into_iter().flatten().filter_map(|node| match &mut node.value {
        Value::Table(table) => Some(table),
        _ => None,
    })
}
