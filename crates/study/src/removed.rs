//! Flows and queues that the command line took away: views and claims may name them.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sojourn_file::document::{At, Document, Node, Table, Value};
use sojourn_file::{Overrides, Registry, StudyFile, StudyScenario};

use crate::results::Kind;

/// In a study that a run has written, this key has those of them that its views and claims name.
const REMOVED: &str = "removed";

const KINDS: [Kind; 2] = [Kind::Flow, Kind::Queue];

type Names = BTreeMap<String, BTreeSet<Kind>>;

/// What has a name in a study without its changes.
pub(crate) struct Removed<'a> {
    /// Read when a name is asked for that no scenario has, because it takes as long as the study itself.
    all: OnceCell<Names>,
    read: &'a dyn Fn() -> Names,
    /// Those that were asked for.
    named: RefCell<Names>,
}

impl<'a> Removed<'a> {
    pub(crate) fn new(read: &'a dyn Fn() -> Names) -> Self {
        Self { all: OnceCell::new(), read, named: RefCell::default() }
    }

    /// What has this name: flows, a queue, both or nothing.
    pub(crate) fn kinds(&self, name: &str) -> Vec<Kind> {
        let Some(kinds) = self.all.get_or_init(self.read).get(name) else { return Vec::new() };
        self.named.borrow_mut().insert(name.to_owned(), kinds.clone());
        kinds.iter().copied().collect()
    }

    /// Notes in a document those that were asked for, so that it can be read without the study it is made of.
    pub(crate) fn write(&self, document: &mut Document) {
        let named = self.named.borrow();
        if named.is_empty() {
            return;
        }
        let node = |value| Node { value, at: At::START };
        let mut table = Table::default();
        for kind in KINDS {
            let of_kind = named.iter().filter(|(_, kinds)| kinds.contains(&kind));
            let names = of_kind.map(|(name, _)| node(Value::String(name.clone()))).collect();
            table.insert_value(kind.name(), At::START, node(Value::Array(names)));
        }
        document.root.insert_value(REMOVED, At::START, node(Value::Table(table)));
    }
}

/// What a document that a run has written says of them.
pub(crate) fn noted(document: &Document) -> Names {
    let mut names = Names::new();
    for kind in KINDS {
        let key = format!("{REMOVED}.{}", kind.name());
        if let Some(Value::Array(items)) = document.node(&key).map(|node| &node.value) {
            for name in items.iter().filter_map(|item| item.value.plain()) {
                names.entry(name).or_default().insert(kind);
            }
        }
    }
    names
}

/// What has a name in a document as it is written, as far as it is a study without changes.
pub(crate) fn of_whole(document: &Document, registry: &Registry, path: &Path) -> Names {
    let mut names = noted(document);
    let mut add = |name: &str, kind| match names.get_mut(name) {
        Some(kinds) => _ = kinds.insert(kind),
        None => _ = names.insert(name.to_owned(), BTreeSet::from([kind])),
    };
    let mut each = |scenario: &StudyScenario, _: sojourn_file::Seeding<'_>| {
        for flow in &scenario.flows {
            add(&flow.name, Kind::Flow);
            add(&flow.group, Kind::Flow);
        }
        scenario.queues.iter().for_each(|queue| add(&queue.name, Kind::Queue));
    };
    // A study that is only one with its changes has the names of the scenarios before its first mistake.
    let (document, path) = (document.clone(), path.to_owned());
    let _ = StudyFile::of(document, registry, path, &Overrides::default(), &mut each);
    names
}
