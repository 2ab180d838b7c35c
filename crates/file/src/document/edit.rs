//! Changes to a study from outside: factors and `--set` find a key by the same address.

use sojourn_core::SpecError;

use super::{At, Document, Entry, Node, Table, Value};
use crate::spec::AppKind;

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
    pub fn assigned(&mut self, assignment: &Assignment) -> Node {
        let at = self.option(&format!("--set {}={}", assignment.address, assignment.value));
        Node { value: Value::of_option(&assignment.value, at), at }
    }
}

/// Sets what `address` stands for in a `[scenario]` table.
///
/// | address | is |
/// |---|---|
/// | `engine`, `duration`, `until`, `warmup`, `step`, `workload` | a key of the scenario |
/// | `path.KEY`, `gateway.KEY`, `parking_lot.KEY` | a key of the shape |
/// | `flow.NAME.KEY`, `link.NAME.KEY` | a key of the flow or link of that name |
/// | `change.NAME.KEY` | a key of the change of that name |
/// | `carrier.NAME.KEY` | a key of the carrier of that name |
/// | `carrier.NAME.port.PORT.KEY` | a key of one of its ports |
/// | `radio.NAME.KEY`, `radio.NAME.station.STATION.KEY` | a key of a radio, or of one of its stations |
/// | `flow.*.KEY`, `link.*.KEY`, `carrier.*.port.*.KEY` | the same for all of them |
/// | `cca` | the congestion control of every flow over TCP |
///
/// # Errors
/// What is addressed is not in the study. Whether the key exists and the value fits is found when
/// the scenario is read.
pub fn set(scenario: &mut Table, address: &str, at: At, node: &Node) -> Result<(), SpecError> {
    visit(scenario, address, &mut |table, key| table.insert(entry(key, at, node)))
}

/// As [`set`], but changes only keys that are not written.
///
/// # Errors
/// As [`set`].
pub fn fill(scenario: &mut Table, address: &str, at: At, node: &Node) -> Result<(), SpecError> {
    visit(scenario, address, &mut |table, key| {
        if table.entry(key).is_none() {
            table.insert(entry(key, at, node));
        }
    })
}

/// Where the keys that `address` means are written.
///
/// # Errors
/// As [`set`].
pub fn written(scenario: &mut Table, address: &str) -> Result<Vec<At>, SpecError> {
    let mut places = Vec::new();
    visit(scenario, address, &mut |table, key| places.extend(table.node(key).map(|node| node.at)))?;
    Ok(places)
}

/// Copies the values at `address` from `other`, a table of the same flows and links.
///
/// # Errors
/// As [`set`].
pub fn copy(scenario: &mut Table, address: &str, other: &Table) -> Result<(), SpecError> {
    let mut entries = Vec::new();
    visit(&mut other.clone(), address, &mut |table, key| entries.push(table.entry(key).cloned()))?;
    let mut entries = entries.into_iter().flatten();
    visit(scenario, address, &mut |table, _| {
        entries.next().into_iter().for_each(|e| table.insert(e))
    })
}

fn entry(key: &str, key_at: At, node: &Node) -> Entry {
    Entry { key: key.to_owned(), key_at, node: node.clone() }
}

/// Calls `act` with every table, and the key in it, that `address` means. What should be a table or a list of them, and is
/// something else, is left to whoever reads the scenario: that is the mistake, and not the address.
fn visit(
    scenario: &mut Table,
    address: &str,
    act: &mut dyn FnMut(&mut Table, &str),
) -> Result<(), SpecError> {
    let address = address.strip_prefix("scenario.").unwrap_or(address);
    let steps: Vec<&str> = address.split('.').collect();
    match steps[..] {
        ["cca"] => visit_all_cca(scenario, act),
        [key @ ("case" | "engine" | "duration" | "until" | "warmup" | "step" | "workload")] => {
            act(scenario, key);
            Ok(())
        }
        [shape @ ("path" | "gateway" | "parking_lot"), key] => match value_mut(scenario, shape) {
            Some(Value::Table(table)) => {
                act(table, key);
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err(SpecError::new(format!("the study has no [scenario.{shape}]"))
                .allow(shapes(scenario))),
        },
        [list @ ("flow" | "link" | "carrier" | "radio" | "change"), name, key] => {
            visit_named(scenario, list, name, &mut |table| {
                act(table, key);
                Ok(())
            })
        }
        [list @ "carrier", name, part @ "port", own, key]
        | [list @ "radio", name, part @ "station", own, key] => {
            visit_named(scenario, list, name, &mut |table| {
                visit_named(table, part, own, &mut |table| {
                    act(table, key);
                    Ok(())
                })
            })
        }
        // A flow of a group has no table of its own.
        ["flow", name, _, key] => Err(SpecError::new(format!(
            "one flow of a group cannot be set alone; 'flow.{name}.{key}' sets them all"
        ))),
        _ => Err(SpecError::new(format!("'{address}' is no address in a scenario"))
            .near(
                address,
                ["case", "engine", "duration", "until", "warmup", "step", "workload", "cca"],
            )
            .allow([
                "case",
                "duration",
                "until",
                "engine",
                "warmup",
                "step",
                "workload",
                "path.KEY",
                "gateway.KEY",
                "parking_lot.KEY",
                "flow.NAME.KEY",
                "link.NAME.KEY",
                "carrier.NAME.KEY",
                "carrier.NAME.port.PORT.KEY",
                "radio.NAME.KEY",
                "radio.NAME.station.STATION.KEY",
                "change.NAME.KEY",
                "cca",
            ])),
    }
}

/// The first parts of addresses in the study's own shape.
fn shapes(scenario: &Table) -> Vec<&'static str> {
    [
        ("path", "path.KEY"),
        ("gateway", "gateway.KEY"),
        ("parking_lot", "parking_lot.KEY"),
        ("link", "link.NAME.KEY"),
        ("carrier", "carrier.NAME.KEY"),
        ("radio", "radio.NAME.KEY"),
    ]
    .into_iter()
    .filter_map(|(key, address)| scenario.entry(key).map(|_| address))
    .chain(["flow.NAME.KEY"])
    .chain(scenario.entry("change").map(|_| "change.NAME.KEY"))
    .collect()
}

/// Calls `act` with the tables of a list that have that name, or with all of them for `*`.
fn visit_named(
    within: &mut Table,
    list: &str,
    name: &str,
    act: &mut dyn FnMut(&mut Table) -> Result<(), SpecError>,
) -> Result<(), SpecError> {
    let mut names = Vec::new();
    let mut found = false;
    for table in tables_mut(within, list) {
        let own = table.node("name").and_then(|node| node.value.plain()).unwrap_or_default();
        if name == "*" || own == name {
            act(table)?;
            found = true;
        }
        names.push(own);
    }
    if found || !is_list_of_tables(within, list) {
        return Ok(());
    }
    if names.is_empty() {
        return Err(match list {
            "port" => SpecError::new("the carrier has no [[scenario.carrier.port]]"),
            "station" => SpecError::new("the radio has no [[scenario.radio.station]]"),
            _ => SpecError::new(format!("the study has no [[scenario.{list}]]"))
                .allow(shapes(within)),
        });
    }
    Err(SpecError::new(format!("no {list} is named '{name}'"))
        .near(name, names.iter().map(String::as_str))
        .allow(names.iter().map(String::as_str).chain(["*"])))
}

fn visit_all_cca(
    scenario: &mut Table,
    act: &mut dyn FnMut(&mut Table, &str),
) -> Result<(), SpecError> {
    let over_tcp = || AppKind::ALL.iter().filter(|app| app.is_tcp()).map(|app| app.name());
    let mut found = false;
    for table in tables_mut(scenario, "flow") {
        let app = table.node("app").and_then(|node| node.value.plain());
        if over_tcp().any(|name| Some(name) == app.as_deref()) {
            act(table, "cca");
            found = true;
        }
    }
    match found || !is_list_of_tables(scenario, "flow") {
        true => Ok(()),
        false => Err(SpecError::new("no flow runs over TCP, which has congestion control")
            .allow(over_tcp().map(|name| format!("a flow with app = \"{name}\"")))),
    }
}

/// Whether what is written under a key, if anything, can be a list of tables.
fn is_list_of_tables(table: &Table, key: &str) -> bool {
    match table.node(key).map(|node| &node.value) {
        None => true,
        Some(Value::Array(items)) => items.iter().all(|item| matches!(item.value, Value::Table(_))),
        Some(_) => false,
    }
}

fn value_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    let entry = table.entries.iter_mut().find(|entry| entry.key == key)?;
    Some(&mut entry.node.value)
}

fn tables_mut<'a>(table: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Table> {
    let items = match value_mut(table, key) {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    };
    items.into_iter().flatten().filter_map(|node| match &mut node.value {
        Value::Table(table) => Some(table),
        _ => None,
    })
}
