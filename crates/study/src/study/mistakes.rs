//! All mistakes of a study, not only the first.
//!
//! Reading stops at a mistake. Here that mistake is repaired, that is, taken out of the tree or
//! replaced by something valid, and the study is read again, until it is valid or has a mistake
//! that can't be repaired. A mistake that may only be a consequence of a repair is not reported.

use std::collections::BTreeSet;

use sojourn_core::SpecError;
use sojourn_file::document::{At, Document, Entry, MAX_MISTAKES, Node, Table, Value};
use sojourn_file::{Mistake, StudyError};

/// After this many repairs, other mistakes are left for the next time.
const MAX_HEALINGS: usize = 3 * MAX_MISTAKES;

/// All mistakes of `document`; reading has found the `first`.
pub(super) fn all(
    first: StudyError,
    document: Document,
    read: &dyn Fn(Document) -> Result<(), StudyError>,
) -> StudyError {
    let mut healing = Healing::new(document);
    let mut found = vec![first.clone()];
    let mut last = first.clone();
    for _ in 0..MAX_HEALINGS {
        if found.len() == MAX_MISTAKES || !healing.heal(last.first()) {
            break;
        }
        let Err(next) = read(healing.document.clone()) else { break };
        let next = healing.as_written(next);
        if !healing.explains(next.first()) && !found.contains(&next) {
            found.push(next.clone());
        }
        last = next;
    }
    StudyError::joined(found).unwrap_or(first)
}

/// A document that is being repaired, and what was done to it.
struct Healing {
    document: Document,
    /// Places that were repaired; a place whose repair did not help is not repaired again.
    healed: BTreeSet<Vec<String>>,
    /// Values and names that repairs have removed.
    gone: Vec<String>,
    /// Tables, with dots, from which something was removed: a key that is missing there is not the
    /// user's mistake.
    thinned: Vec<String>,
    /// Flows whose application was replaced, with dots: their other keys do not fit it.
    replaced: Vec<String>,
    /// Keys, with dots, that bear the nearest allowed name now: the value may have been meant for
    /// another one.
    renamed: Vec<String>,
    /// Keys and lists, with dots, of which nothing is left: whoever misses them was not told of their own mistakes.
    emptied: Vec<String>,
    /// Whether a whole factor was removed.
    has_fewer_factors: bool,
    /// Whether a time was replaced; others must agree with it.
    is_retimed: bool,
    /// Positions of the changes that were removed, as they are written, the least first.
    without_changes: Vec<usize>,
}

/// Where changes are listed.
const CHANGES: [&str; 2] = ["scenario", "change"];

/// Times of a scenario that must agree.
const TIMES: [&str; 6] = ["duration", "warmup", "step", "start", "stop", "start_jitter"];

/// Valid values of required keys.
const SOUND: [(&str, &str); 16] = [
    ("schema", "1"),
    ("title", "'x'"),
    ("duration", "'100s'"),
    ("rate", "'10Mbps'"),
    ("rtt", "'20ms'"),
    ("delay", "'1ms'"),
    ("queue", "'pfifo'"),
    ("hops", "3"),
    ("app", "'bulk'"),
    ("kind", "'switch'"),
    ("on", "'1s'"),
    ("off", "'1s'"),
    ("size", "'1kB'"),
    ("sizes", "'100kB'"),
    ("frames_per_second", "60"),
    ("transfers", "1"),
];

/// What names begin with that take the place of wrong ones.
const HEALED: &str = "healed-";

impl Healing {
    fn new(document: Document) -> Self {
        Self {
            document,
            healed: BTreeSet::new(),
            gone: Vec::new(),
            thinned: Vec::new(),
            replaced: Vec::new(),
            renamed: Vec::new(),
            emptied: Vec::new(),
            has_fewer_factors: false,
            is_retimed: false,
            without_changes: Vec::new(),
        }
    }

    /// The position of a change as it is written.
    fn written(&self, position: usize) -> usize {
        self.without_changes.iter().fold(position, |at, gone| at + usize::from(*gone <= at))
    }

    /// The error with the position of a change as it is written.
    fn as_written(&self, error: StudyError) -> StudyError {
        match change_of(error.first().key()) {
            Some((position, rest)) => {
                let key = format!("{}.{}{rest}", CHANGES.join("."), self.written(position));
                error.with_key(key)
            }
            None => error,
        }
    }

    /// Whether a mistake may be a consequence of earlier repairs.
    fn explains(&self, mistake: &Mistake) -> bool {
        let (key, problem) = (mistake.key(), mistake.problem().problem());
        let is_under = |prefix: &String| key.starts_with(&prefix[..]);
        self.gone.iter().any(|gone| problem.contains(&format!("'{gone}'")))
            // What is allowed is not known where a name was replaced.
            || mistake.problem().allowed().iter().any(|allowed| allowed.starts_with(HEALED))
            || (is_missing(problem) && self.thinned.iter().any(is_under))
            || self.replaced.iter().any(is_under)
            || self.renamed.iter().any(|renamed| renamed == key)
            || (self.has_fewer_factors && problem.contains("is no factor"))
            || self.is_missed(mistake)
            || (self.is_retimed && TIMES.contains(&last(key)))
    }

    /// Whether a mistake is that something is not there which repairs have removed.
    fn is_missed(&self, mistake: &Mistake) -> bool {
        let problem = mistake.problem();
        let names = |text: &str| {
            let is_named = |key: &String| text.contains(&format!("[{key}]"));
            self.emptied.iter().any(is_named)
        };
        let has_fewer_flows = self.emptied.iter().any(|key| key == "scenario.flow");
        names(problem.problem())
            || problem.allowed().iter().any(|allowed| names(allowed))
            || (has_fewer_flows && problem.problem().starts_with("no flow"))
    }

    /// Notes that nothing is left of a key or list; a workload brings flows.
    fn empty(&mut self, key: String) {
        self.emptied.push(match &key[..] {
            "scenario.workload" => "scenario.flow".to_owned(),
            _ => key,
        });
    }

    /// Repairs a mistake; false if it can't.
    fn heal(&mut self, mistake: &Mistake) -> bool {
        let (key, problem) = (mistake.key(), mistake.problem());
        if is_missing(problem.problem()) && change_of(key).is_none() {
            return self.add_missing(key, problem);
        }
        let found = mistake.at().and_then(|at| find(&self.document.root, at));
        let is_misspelt = matches!(found, Some((_, true))) && problem.nearest().is_some();
        if let (Some((written, _)), false) = (change_of(key), is_misspelt) {
            return self.remove_change(written);
        }
        if let Some((path, true)) = &found
            && path[0] != "factors"
            && !path.iter().any(|step| step == "where")
        {
            return self.heal_key(path, problem);
        }
        let mut steps = key.splitn(3, '.');
        match (steps.next(), steps.next(), steps.next()) {
            (Some("claim"), Some(index), field) => {
                self.heal_claim(index, field.unwrap_or_default(), mistake.at())
            }
            (Some("views"), Some(_), _) => self.remove_view(key),
            _ => match found {
                Some((path, _)) if path[0] == "factors" => self.heal_factor(&path, problem),
                Some((path, _)) => self.replace(&path),
                None => false,
            },
        }
    }

    /// Adds what is missing, as the message writes it.
    fn add_missing(&mut self, key: &str, problem: &SpecError) -> bool {
        let written = match problem.problem().contains("propagation") {
            true => "rtt = '20ms'",
            false => problem.allowed().first().map_or("", |allowed| allowed),
        };
        let Some(Entry { key: name, node, .. }) = entry_of(written) else { return false };
        // A message names a table, or a key in it, as lacking something.
        let prefix = match problem.problem().contains("propagation") {
            true => key,
            false => key.rsplit_once('.').map_or("", |(prefix, _)| prefix),
        };
        let mut path: Vec<String> = prefix.split('.').map(str::to_owned).collect();
        path.retain(|step| !step.is_empty());
        let Some(table) = table_at(&mut self.document.root, &path) else { return false };
        let at = table.entries.first().map_or(At::START, |entry| entry.key_at);
        table.insert_value(&name, at, node);
        path.push(name);
        self.healed.insert(path)
    }

    /// Repairs a key that should not be there, or that has another name.
    fn heal_key(&mut self, path: &[String], problem: &SpecError) -> bool {
        let Some((name, above)) = path.split_last() else { return false };
        let Some(table) = table_at(&mut self.document.root, above) else { return false };
        let is_table = matches!(table.node(name).map(|node| &node.value), Some(Value::Table(_)));
        let nearest = problem.nearest().filter(|near| !is_table && table.entry(near).is_none());
        match nearest {
            Some(nearest) => {
                let entry = table.entries.iter_mut().find(|entry| entry.key == *name);
                entry.into_iter().for_each(|entry| entry.key = nearest.to_owned());
                self.renamed.push([above, &[nearest.to_owned()]].concat().join("."));
            }
            None => {
                table.remove(name);
                self.thinned.push(above.join("."));
            }
        }
        self.healed.insert(path.to_vec())
    }

    /// Removes a change: what is wrong of it, such as its queue, leaves nothing else to check. `written` is its
    /// position as it is written.
    fn remove_change(&mut self, written: usize) -> bool {
        let position =
            written - self.without_changes.iter().filter(|gone| **gone < written).count();
        let path = CHANGES.map(str::to_owned);
        let Some(Node { value: Value::Array(items), .. }) = node_at(&mut self.document.root, &path)
        else {
            return false;
        };
        if position >= items.len() {
            return false;
        }
        if let Value::Table(change) = items.remove(position).value {
            self.gone.extend(change.node("name").and_then(|name| name.value.plain()));
        }
        if items.is_empty() {
            self.empty(path.join("."));
        }
        let place = self.without_changes.partition_point(|gone| *gone < written);
        self.without_changes.insert(place, written);
        true
    }

    fn heal_claim(&mut self, index: &str, field: &str, at: Option<At>) -> bool {
        let path = ["claim".to_owned(), index.to_owned()];
        let number = self.healed.len();
        let Some(claim) = table_at(&mut self.document.root, &path) else { return false };
        let text = |text: String| Node { value: Value::String(text), at: At::START };
        match field.split('.').next().unwrap_or_default() {
            "expect" => {
                let entry = claim.entries.iter_mut().find(|entry| entry.key == "expect");
                let items = entry.and_then(|entry| match &mut entry.node.value {
                    Value::Array(items) if items.len() > 1 => Some(items),
                    _ => None,
                });
                match items {
                    Some(items) => {
                        let wrong = items.iter().rposition(|item| Some(item.at) <= at);
                        items.remove(wrong.unwrap_or_default());
                    }
                    None => {
                        claim.remove("expect");
                        claim.insert_value("untestable", At::START, text("healed".into()));
                    }
                }
            }
            "where" => {
                claim.remove("where");
            }
            "untestable" => {
                claim.remove("untestable");
            }
            "" => claim.insert_value("untestable", At::START, text("healed".into())),
            field @ ("id" | "text" | "source" | "note") => {
                claim.insert_value(field, At::START, text(format!("healed {number}")));
            }
            _ => return false,
        }
        self.healed.insert(vec!["claim".to_owned(), index.to_owned(), number.to_string()])
    }

    fn remove_view(&mut self, key: &str) -> bool {
        let Some(views) = table_at(&mut self.document.root, &["views".to_owned()]) else {
            return false;
        };
        // A name may have dots.
        let key = key.trim_start_matches("views.");
        let is_it = |entry: &Entry| {
            key.strip_prefix(&entry.key[..])
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let before = views.entries.len();
        views.entries.retain(|entry| !is_it(entry));
        views.entries.len() < before
    }

    /// Repairs a value of a factor, or the whole factor.
    fn heal_factor(&mut self, path: &[String], problem: &SpecError) -> bool {
        let Some((step, above)) = path.split_last() else { return false };
        let is_twice = problem.problem().contains("listed twice");
        if path.get(1).is_some_and(|name| name == "workload") {
            self.empty("scenario.workload".to_owned());
        }
        match path.get(1).map(String::as_str) {
            Some("except") => {
                let factors = table_at(&mut self.document.root, &path[..1]);
                return factors.and_then(|factors| factors.remove("except")).is_some();
            }
            Some("zip") => {
                // Removes the same row from all factors that change together.
                let Ok(row) = step.parse::<usize>() else { return false };
                let Some(group) = table_at(&mut self.document.root, &path[..3]) else {
                    return false;
                };
                for entry in &mut group.entries {
                    match &mut entry.node.value {
                        Value::Array(items) if items.len() > 1 && row < items.len() => {
                            self.gone.extend(items.remove(row).value.plain());
                        }
                        _ => return false,
                    }
                }
                return true;
            }
            _ => {}
        }
        if let (Ok(index), Some(node)) =
            (step.parse::<usize>(), node_at(&mut self.document.root, above))
            && let Value::Array(items) = &mut node.value
            && items.len() > 1
            && index < items.len()
        {
            let value = items.remove(index).value.plain();
            self.gone.extend(value.filter(|_| !is_twice));
            return true;
        }
        // Removes the whole factor, with those that are written in the same table.
        let (Some(name), Some(factors)) =
            (path.get(1), table_at(&mut self.document.root, &path[..1]))
        else {
            return false;
        };
        if factors.remove(name).is_none() {
            return false;
        }
        // A key that only a factor gave may now be missing in the scenario.
        self.thinned.push("scenario".to_owned());
        self.has_fewer_factors = true;
        true
    }

    /// Replaces a value of the scenario, or of a key beside it.
    fn replace(&mut self, path: &[String]) -> bool {
        if !self.healed.insert(path.to_vec()) {
            return false;
        }
        let Some((name, above)) = path.split_last() else { return false };
        let number = self.healed.len();
        let is_of_flow = path.get(1).is_some_and(|step| step == "flow");
        let Some(table) = table_at(&mut self.document.root, above) else { return false };
        let Some(old) = table.node(name) else { return false };
        if matches!(old.value, Value::Table(_))
            || matches!(&name[..], "src" | "dst" | "from" | "to")
        {
            return false;
        }
        let sound = SOUND.iter().find(|(key, _)| *key == name).map(|(_, sound)| *sound);
        let sound = sound.filter(|_| !(is_of_flow && name == "rtt"));
        let at = old.at;
        if name == "name" {
            self.gone.extend(old.value.plain());
            let value = Value::String(format!("{HEALED}{number}"));
            table.insert_value(name, at, Node { value, at });
        } else if let Some(entry) = sound.and_then(|sound| entry_of(&format!("x = {sound}"))) {
            table.insert_value(name, at, Node { at, ..entry.node });
        } else {
            table.remove(name);
            self.thinned.push(above.join("."));
            self.empty(path.join("."));
        }
        self.is_retimed |= TIMES.contains(&&name[..]);
        if name == "app" || name == "kind" {
            self.replaced.push(above.join("."));
        }
        true
    }
}

/// Whether a message says that something is missing.
fn is_missing(problem: &str) -> bool {
    problem == "is missing"
        || problem.ends_with("' is missing")
        || problem == "propagation is missing"
        || problem.contains(" needs '")
}

/// The position of the change that a key is in, and what follows it.
fn change_of(key: &str) -> Option<(usize, &str)> {
    let rest = key.strip_prefix(&format!("{}.", CHANGES.join("."))[..])?;
    let end = rest.find('.').unwrap_or(rest.len());
    Some((rest[..end].parse().ok()?, &rest[end..]))
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// `key = value` as an entry.
fn entry_of(written: &str) -> Option<Entry> {
    let document = Document::parse("", written, std::path::Path::new("")).ok()?;
    match &document.root.entries[..] {
        [entry] => Some(entry.clone()),
        _ => None,
    }
}

/// The keys and positions that lead to what is written at a place, and whether that is a key.
fn find(table: &Table, at: At) -> Option<(Vec<String>, bool)> {
    fn in_node(node: &Node, at: At, path: &mut Vec<String>) -> Option<bool> {
        let inside = match &node.value {
            Value::Table(table) => in_table(table, at, path),
            Value::Array(items) => items.iter().zip(0..).find_map(|(item, index): (_, usize)| {
                path.push(index.to_string());
                let found = in_node(item, at, path);
                if found.is_none() {
                    path.pop();
                }
                found
            }),
            _ => None,
        };
        inside.or_else(|| (node.at == at).then_some(false))
    }
    fn in_table(table: &Table, at: At, path: &mut Vec<String>) -> Option<bool> {
        table.entries.iter().find_map(|entry| {
            path.push(entry.key.clone());
            let found = match entry.key_at == at {
                true => Some(true),
                false => in_node(&entry.node, at, path),
            };
            if found.is_none() {
                path.pop();
            }
            found
        })
    }
    let mut path = Vec::new();
    in_table(table, at, &mut path).map(|is_key| (path, is_key))
}

fn node_at<'a>(table: &'a mut Table, path: &[String]) -> Option<&'a mut Node> {
    let (first, rest) = path.split_first()?;
    let entry = table.entries.iter_mut().find(|entry| entry.key == *first)?;
    let mut node = &mut entry.node;
    for step in rest {
        node = match &mut node.value {
            Value::Table(table) => {
                &mut table.entries.iter_mut().find(|entry| entry.key == *step)?.node
            }
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(node)
}

/// The table at a path; the root if the path is empty.
fn table_at<'a>(root: &'a mut Table, path: &[String]) -> Option<&'a mut Table> {
    if path.is_empty() {
        return Some(root);
    }
    match &mut node_at(root, path)?.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}
