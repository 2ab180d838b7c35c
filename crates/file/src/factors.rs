//! What a study varies: lists and ranges that are crossed, groups that change together,
//! combinations left out.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_core::{Bytes, Rate, Span, SpecError};

use crate::document::{self, At, Document, Entry, Node, Table, Value};
use crate::error::{Place, StudyError};
use crate::plan::Factor;
use crate::workload;

/// The most scenarios of a study.
pub const MAX_SCENARIOS: usize = 100_000;

/// Longer lists and ranges are taken for a mistake.
const MAX_VALUES: usize = 10_000;

/// The most factors of a study: each is a column of the results.
const MAX_FACTORS: usize = 1_000;

/// What an error names as allowed for a factor.
const FACTOR: [&str; 2] = ["a list of values", "a range such as { from = 1, to = 9, step = 2 }"];

/// In a study that a run has written, this key names the factors whose values the command line replaced.
const OVERRIDDEN: &str = "overridden";

/// The `[factors]` of a study, read and checked.
#[derive(Clone, Debug, Default)]
pub struct Factors {
    /// In the order of the file.
    factors: Vec<Varied>,
    /// The positions of factors that change together; a factor that changes alone is a list of one.
    axes: Vec<Vec<usize>>,
    /// Combinations left out: positions of factors, each with values; a combination is left out if
    /// all match.
    holes: Vec<Vec<(usize, Vec<String>)>>,
}

#[derive(Clone, Debug)]
struct Varied {
    name: String,
    at: At,
    /// For factors that change together, lists may repeat values.
    values: Values,
    is_overridden: bool,
}

/// As text, and as written.
type Values = Vec<(String, Node)>;

/// A value by what it says: `1ms` is `1000us`. Text that is no amount is compared as it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Amount<'a> {
    Time(u64),
    Rate(u64),
    Bytes(u64),
    Text(&'a str),
}

impl<'a> Amount<'a> {
    fn of(text: &'a str) -> Self {
        // A number without a unit, as 1 and 1.0, may be any of them.
        if text.parse::<f64>().is_ok() {
            return Self::Text(text);
        }
        if let Ok(span) = text.parse::<Span>() {
            return Self::Time(span.as_nanos());
        }
        if let Ok(rate) = text.parse::<Rate>() {
            return Self::Rate(rate.as_bps());
        }
        text.parse::<Bytes>().map_or(Self::Text(text), |bytes| Self::Bytes(bytes.as_u64()))
    }
}

/// One value for every factor.
#[derive(Clone, Debug)]
pub struct Combination<'a> {
    /// In the order of the factors.
    pub values: Vec<&'a str>,
    nodes: Vec<&'a Node>,
}

impl Factors {
    /// Reads the `[factors]` table.
    ///
    /// # Errors
    /// An empty list, a value twice, a range that does not end; a group of lists of different
    /// lengths, or in which the same values go together twice.
    pub fn read(document: &Document) -> Result<Self, StudyError> {
        let mut factors = Self::default();
        let Some(entry) = document.root.entry("factors") else {
            return Ok(factors);
        };
        let Value::Table(table) = &entry.node.value else {
            let problem = SpecError::new(format!("{} does not fit", entry.node.value.kind()));
            let problem = problem.allow(["a table of addresses, each with its values"]);
            return Err(document.error(entry.node.at, "factors", problem));
        };
        for entry in &table.entries {
            match &entry.key[..] {
                "zip" => factors.read_groups(document, entry)?,
                "except" => {}
                _ => {
                    let first = factors.factors.len();
                    factors.read_factor(document, "", entry, Self::distinct_values)?;
                    factors.axes.extend((first..factors.factors.len()).map(|index| vec![index]));
                }
            }
        }
        let overridden = overridden(document);
        for factor in &mut factors.factors {
            factor.is_overridden = overridden.contains(&factor.name);
        }
        if let Some(entry) = table.entry("except") {
            factors.read_holes(document, entry)?;
        }
        Ok(factors)
    }

    /// Replaces the values of a factor, or makes a new factor of a list. Returns whether it did; if
    /// not, the value must be set in the scenario.
    ///
    /// # Errors
    /// The list is empty; or the factor changes together with others, and it is a list, or a value
    /// that it never has; or another factor would replace what is set.
    pub fn set(
        &mut self,
        document: &Document,
        address: &str,
        node: &Node,
    ) -> Result<bool, StudyError> {
        let address = address.strip_prefix("scenario.").unwrap_or(address);
        let known = self.factors.iter().position(|factor| factor.name == address);
        let is_list = matches!(node.value, Value::Array(_));
        let Some(index) = known else {
            self.check_reach(document, address, node)?;
            if is_list {
                let values = self.distinct_values(document, address, node)?;
                let name = address.to_owned();
                self.axes.push(vec![self.factors.len()]);
                self.factors.push(Varied { name, at: node.at, values, is_overridden: true });
            }
            return Ok(is_list);
        };
        let axis = self.axes.iter().find(|axis| axis.contains(&index)).cloned().unwrap_or_default();
        if axis.len() > 1 {
            self.choose(document, index, &axis, node)?;
            return Ok(true);
        }
        let values = if is_list {
            self.distinct_values(document, address, node)?
        } else {
            vec![plain(document, address, node)?]
        };
        self.factors[index].values = values;
        self.factors[index].at = node.at;
        self.factors[index].is_overridden = true;
        Ok(true)
    }

    /// Refuses an address that sets keys which a factor varies under another address.
    fn check_reach(
        &self,
        document: &Document,
        address: &str,
        node: &Node,
    ) -> Result<(), StudyError> {
        let names = self.factors.iter().map(|factor| &factor.name[..]);
        let varied: Vec<&str> = names.filter(|name| overlap(name, address)).collect();
        if varied.is_empty() {
            return Ok(());
        }
        let problem =
            format!("the study varies '{}', which would replace this", varied.join("', '"));
        let allowed = varied.iter().map(|name| format!("--set {name}=VALUE"));
        Err(document.error(node.at, address, SpecError::new(problem).allow(allowed)))
    }

    /// For factors that change together, one value of one factor selects the values of the others
    /// that go with it.
    fn choose(
        &mut self,
        document: &Document,
        index: usize,
        axis: &[usize],
        node: &Node,
    ) -> Result<(), StudyError> {
        let factor = &self.factors[index];
        let values = || factor.distinct();
        let wrong = |problem: SpecError| document.error(node.at, &factor.name, problem);
        let Some(text) = node.value.plain() else {
            let problem =
                SpecError::new("changes together with other factors; a list does not fit");
            return Err(wrong(problem.allow(values())));
        };
        let is_chosen: Vec<bool> = factor.values.iter().map(|(own, _)| *own == text).collect();
        if !is_chosen.contains(&true) {
            let problem = format!("changes together with other factors, and never is '{text}'");
            return Err(wrong(SpecError::new(problem).near(&text, values()).allow(values())));
        }
        for factor in axis {
            let factor = &mut self.factors[*factor];
            let mut row = is_chosen.iter();
            factor.values.retain(|_| row.next() == Some(&true));
            factor.is_overridden = true;
        }
        Ok(())
    }

    /// Writes the present factors into the document, so that it can be printed.
    pub fn write(&self, document: &mut Document) {
        let list = |values: &mut dyn Iterator<Item = Node>| Node {
            value: Value::Array(values.collect()),
            at: At::START,
        };
        let of = |factor: &Varied| list(&mut factor.values.iter().map(|(_, node)| node.clone()));
        let text = |text: &str| Node { value: Value::String(text.to_owned()), at: At::START };
        let mut table = Table::default();
        let mut groups = Vec::new();
        for axis in &self.axes {
            match axis[..] {
                [factor] => {
                    let factor = &self.factors[factor];
                    table.insert_value(&factor.name, factor.at, of(factor));
                }
                _ => {
                    let mut group = Table::default();
                    for factor in axis.iter().map(|factor| &self.factors[*factor]) {
                        group.insert_value(&factor.name, factor.at, of(factor));
                    }
                    groups.push(Node { value: Value::Table(group), at: At::START });
                }
            }
        }
        let holes = self.holes.iter().filter_map(|hole| {
            let mut entry = Table::default();
            for (factor, values) in hole {
                let factor = &self.factors[*factor];
                let is_there = |value: &&String| factor.values.iter().any(|(own, _)| own == *value);
                let values: Vec<Node> =
                    values.iter().filter(is_there).map(|value| text(value)).collect();
                // An exception is dropped if its combination can no longer occur.
                if values.is_empty() {
                    return None;
                }
                entry.insert_value(&factor.name, factor.at, list(&mut values.into_iter()));
            }
            Some(Node { value: Value::Table(entry), at: At::START })
        });
        let holes: Vec<Node> = holes.collect();
        for (key, items) in [("zip", groups), ("except", holes)] {
            if !items.is_empty() {
                table.insert_value(key, At::START, list(&mut items.into_iter()));
            }
        }
        let mut overridden = self
            .factors
            .iter()
            .filter(|factor| factor.is_overridden)
            .map(|factor| text(&factor.name));
        let overridden = list(&mut overridden);
        document.root.insert_value(OVERRIDDEN, At::START, overridden);
        let factors = Node { value: Value::Table(table), at: At::START };
        document.root.insert_value("factors", At::START, factors);
    }

    /// The factors for the plan.
    pub fn list(&self) -> Vec<Factor> {
        let together = |factor: usize| {
            let axis = self.axes.iter().find(|axis| axis.contains(&factor));
            axis.into_iter().flatten().copied().filter(|other| *other != factor).collect()
        };
        let factors = self.factors.iter().enumerate();
        factors
            .map(|(index, factor)| Factor {
                name: factor.name.clone(),
                values: factor.distinct().map(str::to_owned).collect(),
                together: together(index),
            })
            .collect()
    }

    /// The addresses of all factors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factors.iter().map(|factor| &factor.name[..])
    }

    pub fn count(&self) -> usize {
        self.factors.len()
    }

    /// Whether the command line replaced the values that the study has.
    pub fn is_overridden(&self, factor: usize) -> bool {
        self.factors[factor].is_overridden
    }

    /// The numbers of all combinations that are not left out; the first factor changes slowest.
    ///
    /// # Errors
    /// There are too many, or none.
    pub fn combinations(&self, document: &Document) -> Result<Vec<u32>, StudyError> {
        let length = |axis: &Vec<usize>| self.length(axis);
        let total = self.axes.iter().map(length).try_fold(1usize, |product, length| {
            product.checked_mul(length).filter(|product| *product <= MAX_SCENARIOS)
        });
        let Some(total) = total else {
            let numbers: Vec<String> = self.axes.iter().map(|a| length(a).to_string()).collect();
            let problem =
                format!("the factors combine to too many scenarios: {}", numbers.join(" × "));
            let problem = SpecError::new(problem).allow([format!("at most {MAX_SCENARIOS}")]);
            return Err(document.error_at_key("factors", problem));
        };
        let is_taken = |number: &u32| {
            let combination = self.combination(*number);
            let matches = |(factor, values): &(usize, Vec<String>)| {
                values.iter().any(|value| value == combination.values[*factor])
            };
            !self.holes.iter().any(|hole| hole.iter().all(matches))
        };
        let combinations: Vec<u32> = (0..total as u32).filter(is_taken).collect();
        if combinations.is_empty() {
            let problem = SpecError::new("every combination is left out")
                .allow(["one combination or more that is not"]);
            return Err(document.error_at_key("factors.except", problem));
        }
        Ok(combinations)
    }

    /// The combination with this number, which is one of [`Factors::combinations`].
    pub fn combination(&self, number: u32) -> Combination<'_> {
        let mut chosen = vec![0; self.factors.len()];
        let mut rest = number as usize;
        for axis in self.axes.iter().rev() {
            let length = self.length(axis);
            axis.iter().for_each(|factor| chosen[*factor] = rest % length);
            rest /= length;
        }
        let all = || self.factors.iter().zip(&chosen).map(|(factor, at)| &factor.values[*at]);
        Combination {
            values: all().map(|(text, _)| &text[..]).collect(),
            nodes: all().map(|(_, node)| node).collect(),
        }
    }

    fn length(&self, axis: &[usize]) -> usize {
        self.factors[axis[0]].values.len()
    }

    /// The `scenario` table with the values of a combination.
    ///
    /// # Errors
    /// A factor addresses what is not there.
    pub fn apply(
        &self,
        document: &Document,
        scenario: &Table,
        combination: &Combination<'_>,
    ) -> Result<Table, StudyError> {
        self.with(document, scenario, combination, document::set)
    }

    /// The `scenario` table as it is written, with missing keys taken from the combination.
    ///
    /// # Errors
    /// A factor addresses what is not there.
    pub fn fill(
        &self,
        document: &Document,
        scenario: &Table,
        combination: &Combination<'_>,
    ) -> Result<Table, StudyError> {
        self.with(document, scenario, combination, document::fill)
    }

    fn with(
        &self,
        document: &Document,
        scenario: &Table,
        combination: &Combination<'_>,
        put: fn(&mut Table, &str, At, &Node) -> Result<(), SpecError>,
    ) -> Result<Table, StudyError> {
        let mut scenario = scenario.clone();
        let all = || self.factors.iter().zip(&combination.nodes);
        // A workload brings flows that other factors change.
        let (first, rest): (Vec<_>, Vec<_>) =
            all().partition(|(factor, _)| factor.name == workload::KEY);
        for (factor, node) in first {
            put(&mut scenario, &factor.name, factor.at, node)
                .map_err(|error| factor.misses(document, error))?;
            workload::expand(document, &mut scenario)?;
        }
        for (factor, node) in rest {
            put(&mut scenario, &factor.name, factor.at, node)
                .map_err(|error| factor.misses(document, error))?;
        }
        Ok(scenario)
    }

    /// The factor that replaces what is written at `place` in `scenario`.
    pub fn replacing(&self, document: &Document, scenario: &Table, place: &Place) -> Option<usize> {
        let mut scenario = scenario.clone();
        self.factors.iter().position(|factor| {
            let places = document::written(&mut scenario, &factor.name).unwrap_or_default();
            places.into_iter().any(|at| document.place(at) == *place)
        })
    }

    /// `combination` with the values at position `value` for the factor and those that change together
    /// with it.
    fn with_value<'a>(
        &'a self,
        combination: &Combination<'a>,
        factor: usize,
        value: usize,
    ) -> Combination<'a> {
        let mut combination = combination.clone();
        let axis = self.axes.iter().find(|axis| axis.contains(&factor));
        for factor in axis.into_iter().flatten() {
            let (text, node) = &self.factors[*factor].values[value];
            combination.values[*factor] = text;
            combination.nodes[*factor] = node;
        }
        combination
    }

    /// The values that no combination has. For each, returns where it is written, and the first
    /// combination with this value in place of its own.
    pub fn untaken(&self, combinations: &[u32]) -> Vec<(At, Combination<'_>)> {
        let mut untaken = Vec::new();
        let Some(first) = combinations.first().filter(|_| !self.holes.is_empty()) else {
            return untaken;
        };
        let first = self.combination(*first);
        let mut taken = vec![BTreeSet::new(); self.factors.len()];
        for number in combinations {
            let values = self.combination(*number).values;
            values.into_iter().zip(&mut taken).for_each(|(value, taken)| {
                taken.insert(value);
            });
        }
        for (index, factor) in self.factors.iter().enumerate() {
            for (position, (text, node)) in factor.values.iter().enumerate() {
                if !taken[index].contains(&text[..]) {
                    untaken.push((node.at, self.with_value(&first, index, position)));
                }
            }
        }
        untaken
    }

    /// Copies what is at a factor's address in `other` to `scenario`.
    ///
    /// # Errors
    /// The factor addresses what is not there.
    pub fn copy(
        &self,
        document: &Document,
        factor: usize,
        scenario: &mut Table,
        other: &Table,
    ) -> Result<(), StudyError> {
        let factor = &self.factors[factor];
        document::copy(scenario, &factor.name, other)
            .map_err(|error| factor.misses(document, error))
    }

    fn read_groups(&mut self, document: &Document, entry: &Entry) -> Result<(), StudyError> {
        let wanted = "a list of tables, each of factors that change together";
        for group in tables(document, "factors.zip", entry, wanted)? {
            let first = self.factors.len();
            for entry in &group.entries {
                self.read_factor(document, "", entry, Self::values)?;
            }
            let axis: Vec<usize> = (first..self.factors.len()).collect();
            let lengths: Vec<usize> =
                axis.iter().map(|factor| self.factors[*factor].values.len()).collect();
            if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
                let problem = SpecError::new(format!(
                    "factors that change together have different numbers of values: {lengths:?}"
                ))
                .allow(["as many values of each"]);
                return Err(document.error(entry.node.at, "factors.zip", problem));
            }
            let mut seen = BTreeSet::new();
            for row in 0..lengths.first().copied().unwrap_or_default() {
                let at = |factor: &usize| &self.factors[*factor].values[row];
                let values: Vec<&str> = axis.iter().map(|factor| &at(factor).0[..]).collect();
                if !seen.insert(values.clone()) {
                    let problem = format!("'{}' is listed twice", values.join("', '"));
                    let problem = SpecError::new(problem).allow(["every row once"]);
                    return Err(document.error(at(&axis[0]).1.at, "factors.zip", problem));
                }
            }
            if !axis.is_empty() {
                self.axes.push(axis);
            }
        }
        Ok(())
    }

    /// Reads one factor. A table that is no range holds factors: `path.queue` may be written with
    /// or without quotes.
    fn read_factor(
        &mut self,
        document: &Document,
        prefix: &str,
        entry: &Entry,
        read_values: fn(&Self, &Document, &str, &Node) -> Result<Values, StudyError>,
    ) -> Result<(), StudyError> {
        let name = match prefix {
            "" => entry.key.strip_prefix("scenario.").unwrap_or(&entry.key).to_owned(),
            prefix => format!("{prefix}.{}", entry.key),
        };
        if let Value::Table(table) = &entry.node.value
            && table.entry("from").is_none()
        {
            if table.entries.is_empty() {
                let problem = SpecError::new("has no values").allow(FACTOR);
                return Err(document.error(entry.key_at, format!("factors.{name}"), problem));
            }
            let prefix = if name == "scenario" { "" } else { &name };
            return table
                .entries
                .iter()
                .try_for_each(|entry| self.read_factor(document, prefix, entry, read_values));
        }
        let values = read_values(self, document, &name, &entry.node)?;
        if self.factors.iter().any(|factor| factor.name == name) {
            let problem = SpecError::new("is varied twice").allow(["every factor once"]);
            return Err(document.error(entry.key_at, format!("factors.{name}"), problem));
        }
        if self.factors.len() >= MAX_FACTORS {
            let problem = SpecError::new("there are too many factors");
            let problem = problem.allow([format!("at most {MAX_FACTORS}")]);
            return Err(document.error(entry.key_at, format!("factors.{name}"), problem));
        }
        self.factors.push(Varied { name, at: entry.key_at, values, is_overridden: false });
        Ok(())
    }

    fn values(&self, document: &Document, name: &str, node: &Node) -> Result<Values, StudyError> {
        let key = format!("factors.{name}");
        let values = match &node.value {
            Value::Array(items) => items
                .iter()
                .map(|item| plain(document, &key, item))
                .collect::<Result<Vec<_>, _>>()?,
            Value::Table(table) => range(table)
                .map_err(|error| document.error(node.at, &key, error))?
                .into_iter()
                .map(|value| {
                    let text = value.plain().unwrap_or_default();
                    (text, Node { value, at: node.at })
                })
                .collect(),
            other => {
                let problem =
                    SpecError::new(format!("{} does not fit", other.kind())).allow(FACTOR);
                return Err(document.error(node.at, key, problem));
            }
        };
        if values.is_empty() {
            let problem = SpecError::new("the list is empty").allow(["one value or more"]);
            return Err(document.error(node.at, key, problem));
        }
        if values.len() > MAX_VALUES {
            let problem = SpecError::new(format!("{} are too many values", values.len()))
                .allow([format!("at most {MAX_VALUES}")]);
            return Err(document.error(node.at, key, problem));
        }
        Ok(values)
    }

    fn distinct_values(
        &self,
        document: &Document,
        name: &str,
        node: &Node,
    ) -> Result<Values, StudyError> {
        let values = self.values(document, name, node)?;
        let mut seen = BTreeMap::new();
        for (text, value) in &values {
            let problem = match seen.insert(Amount::of(text), text) {
                None => continue,
                Some(other) if other == text => format!("'{text}' is listed twice"),
                Some(other) => format!("'{text}' is listed twice, also as '{other}'"),
            };
            let problem = SpecError::new(problem).allow(["every value once"]);
            return Err(document.error(value.at, format!("factors.{name}"), problem));
        }
        Ok(values)
    }

    fn read_holes(&mut self, document: &Document, entry: &Entry) -> Result<(), StudyError> {
        let wanted = "a list of tables, each of factor values that do not go together";
        for table in tables(document, "factors.except", entry, wanted)? {
            let mut hole = Vec::new();
            for (name, key_at, node) in table.flat() {
                let key = "factors.except";
                let name = name.strip_prefix("scenario.").unwrap_or(&name);
                let index =
                    self.position(name).map_err(|error| document.error(key_at, key, error))?;
                let items = match &node.value {
                    Value::Array(items) => &items[..],
                    _ => std::slice::from_ref(node),
                };
                let mut values = Vec::new();
                for item in items {
                    let (text, node) = plain(document, key, item)?;
                    self.check_value(index, &text)
                        .map_err(|error| document.error(node.at, key, error))?;
                    values.push(text);
                }
                hole.push((index, values));
            }
            if !hole.is_empty() {
                self.holes.push(hole);
            }
        }
        Ok(())
    }

    /// # Errors
    /// There is no such factor.
    pub fn position(&self, name: &str) -> Result<usize, SpecError> {
        let name = name.strip_prefix("scenario.").unwrap_or(name);
        self.factors.iter().position(|factor| factor.name == name).ok_or_else(|| {
            let names = || self.factors.iter().map(|factor| &factor.name[..]);
            match self.factors.len() {
                0 => SpecError::new(format!("'{name}' is no factor; the study has none")),
                _ => SpecError::new(format!("'{name}' is no factor of this study"))
                    .near(name, names())
                    .allow(names()),
            }
        })
    }

    /// # Errors
    /// The factor never has this value. Values that the command line replaced are accepted.
    pub fn check_value(&self, factor: usize, value: &str) -> Result<(), SpecError> {
        let factor = &self.factors[factor];
        let values = || factor.distinct();
        if factor.is_overridden || values().any(|text| text == value) {
            return Ok(());
        }
        Err(SpecError::new(format!("'{}' never is '{value}'", factor.name))
            .near(value, values())
            .allow(values()))
    }
}

/// Whether two addresses can mean the same key: `cca` and `flow.a.cca`, `flow.*.rtt` and `flow.a.rtt`.
fn overlap(a: &str, b: &str) -> bool {
    fn in_full(address: &str) -> &str {
        if address == "cca" { "flow.*.cca" } else { address }
    }
    let (a, b) = (in_full(a).split('.'), in_full(b).split('.'));
    a.clone().count() == b.clone().count() && a.zip(b).all(|(a, b)| a == b || a == "*" || b == "*")
}

/// The factors whose values the command line replaced when a run wrote the study.
pub fn overridden(document: &Document) -> Vec<String> {
    match document.root.node(OVERRIDDEN).map(|node| &node.value) {
        Some(Value::Array(names)) => names.iter().filter_map(|name| name.value.plain()).collect(),
        _ => Vec::new(),
    }
}

impl Varied {
    /// Each value once, in the order of the file.
    fn distinct(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        self.values.iter().map(|(text, _)| &text[..]).filter(move |text| seen.insert(*text))
    }

    /// An error: the factor's address leads nowhere.
    fn misses(&self, document: &Document, problem: SpecError) -> StudyError {
        document.error(self.at, format!("factors.{}", self.name), problem)
    }
}

/// The tables of a list under `key`.
fn tables<'a>(
    document: &Document,
    key: &str,
    entry: &'a Entry,
    wanted: &str,
) -> Result<Vec<&'a Table>, StudyError> {
    let wrong = |node: &Node| {
        let problem = SpecError::new(format!("{} does not fit", node.value.kind()));
        document.error(node.at, key, problem.allow([wanted]))
    };
    let Value::Array(items) = &entry.node.value else {
        return Err(wrong(&entry.node));
    };
    items
        .iter()
        .map(|item| match &item.value {
            Value::Table(table) => Ok(table),
            _ => Err(wrong(item)),
        })
        .collect()
}

fn plain(document: &Document, key: &str, node: &Node) -> Result<(String, Node), StudyError> {
    match node.value.plain() {
        Some(text) => Ok((text, node.clone())),
        None => {
            let problem = SpecError::new(format!("{} does not fit", node.value.kind()))
                .allow(["a text, a number, true or false"]);
            Err(document.error(node.at, key, problem))
        }
    }
}

/// The values of `{ from, to, step }` or `{ from, to, count, scale }`.
fn range(table: &Table) -> Result<Vec<Value>, SpecError> {
    const KEYS: [&str; 5] = ["from", "to", "step", "count", "scale"];
    if let Some(entry) = table.entries.iter().find(|entry| !KEYS.contains(&&entry.key[..])) {
        return Err(SpecError::new(format!("a range has no '{}'", entry.key))
            .near(&entry.key, KEYS)
            .allow(KEYS));
    }
    let end = |key: &str| {
        let node = table
            .node(key)
            .ok_or_else(|| SpecError::new(format!("'{key}' is missing")).allow(RANGES))?;
        Quantity::of(&node.value).map_err(|error| error.within(key))
    };
    let (from, to) = (end("from")?, end("to")?);
    if !from.unit.eq_ignore_ascii_case(&to.unit) {
        return Err(differing("to", &to, &from));
    }
    let is_log = match table.node("scale").map(|node| (node, node.value.plain())) {
        None => false,
        Some((_, Some(scale))) if scale == "linear" => false,
        Some((_, Some(scale))) if scale == "log" => true,
        Some((node, scale)) => {
            let scale = scale.unwrap_or_else(|| node.value.kind().to_owned());
            return Err(SpecError::new(format!("unknown scale '{scale}'"))
                .near(&scale, ["linear", "log"])
                .allow(["linear", "log"]));
        }
    };
    let numbers = match (table.node("step"), table.node("count")) {
        (Some(_), None) if is_log => {
            return Err(SpecError::new("a logarithmic range has no 'step'").allow(["count"]));
        }
        (Some(step), None) => {
            let step = Quantity::of(&step.value).map_err(|error| error.within("step"))?;
            if !from.unit.eq_ignore_ascii_case(&step.unit) {
                return Err(differing("step", &step, &from));
            }
            stepped(from.number, to.number, step.number)?
        }
        (None, Some(count)) => {
            let count = match count.value {
                Value::Integer(count) if (2..=MAX_VALUES as i64).contains(&count) => count,
                _ => {
                    return Err(SpecError::new("'count' is out of range")
                        .allow([format!("a whole number from 2 to {MAX_VALUES}")]));
                }
            };
            counted(from.number, to.number, count as usize, is_log)?
        }
        (Some(_), Some(_)) => {
            return Err(SpecError::new("'step' and 'count' say the same; one of them must go")
                .allow(["step", "count"]));
        }
        (None, None) => {
            return Err(SpecError::new("a range needs one of the two").allow(["step", "count"]));
        }
    };
    let is_whole = from.is_whole && numbers.iter().all(|number| number.fract() == 0.0);
    Ok(numbers
        .into_iter()
        .map(|number| match &from.unit[..] {
            "" if is_whole => Value::Integer(number as i64),
            "" => Value::Float(number),
            unit => Value::String(format!("{number}{unit}")),
        })
        .collect())
}

/// What an error names as allowed for a range.
const RANGES: [&str; 2] =
    ["{ from = 1, to = 9, step = 2 }", "{ from = 1, to = 8, count = 4, scale = \"log\" }"];

fn differing(key: &str, quantity: &Quantity, from: &Quantity) -> SpecError {
    let said = |unit: &str| match unit {
        "" => "no unit".to_owned(),
        unit => format!("'{unit}'"),
    };
    let (own, wanted) = (said(&quantity.unit), said(&from.unit));
    SpecError::new(format!("'{key}' has {own} and 'from' has {wanted}")).allow([wanted])
}

fn stepped(from: f64, to: f64, step: f64) -> Result<Vec<f64>, SpecError> {
    if step == 0.0 || (to - from) / step < 0.0 {
        let allowed = match from <= to {
            true => "a step above zero",
            false => "a step below zero, such as -1",
        };
        let problem = format!("steps of {step} do not lead from 'from' {from} to 'to' {to}");
        return Err(SpecError::new(problem).allow([allowed]));
    }
    // The last value may exceed the end by half a millionth of a step, for rounding.
    let steps = ((to - from) / step + 5e-7).floor();
    if steps >= MAX_VALUES as f64 {
        return Err(SpecError::new("the range has too many values")
            .allow([format!("at most {MAX_VALUES}")]));
    }
    Ok((0..=steps as usize).map(|index| rounded(from + step * index as f64)).collect())
}

fn counted(from: f64, to: f64, count: usize, is_log: bool) -> Result<Vec<f64>, SpecError> {
    if is_log && (from <= 0.0 || to <= 0.0) {
        return Err(SpecError::new("a logarithmic range must stay above zero")
            .allow(["'from' and 'to' above zero"]));
    }
    let part = |index: usize| index as f64 / (count - 1) as f64;
    Ok((0..count)
        .map(|index| match is_log {
            // The ends are as written; values between them are rounded to few digits.
            true if index == 0 => from,
            true if index == count - 1 => to,
            true => significant(from * libm::pow(to / from, part(index))),
            false => rounded(from + (to - from) * part(index)),
        })
        .collect())
}

/// Rounds to four digits.
fn significant(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

/// Rounds to twelve digits, so that 0.1 + 0.2 becomes 0.3.
fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

/// A number and the unit that follows it.
struct Quantity {
    number: f64,
    unit: String,
    is_whole: bool,
}

impl Quantity {
    /// # Errors
    /// The value is no number, or one that no factor can have.
    fn of(value: &Value) -> Result<Self, SpecError> {
        let bare = |number, is_whole| Self { number, unit: String::new(), is_whole };
        let quantity = match value {
            Value::Integer(number) => bare(*number as f64, true),
            Value::Float(number) => bare(*number, false),
            Value::String(text) => {
                let text = text.trim();
                let split = text
                    .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
                    .unwrap_or(text.len());
                let (number, unit) = text.split_at(split);
                let number = number.parse().map_err(|_| {
                    SpecError::new(format!("'{text}' is no number with a unit"))
                        .allow(["a number with a unit, such as 10ms"])
                })?;
                Self { number, unit: unit.to_owned(), is_whole: false }
            }
            other => {
                return Err(SpecError::new(format!("{} is no number", other.kind()))
                    .allow(["a number", "a number with a unit in quotes"]));
            }
        };
        if !quantity.number.is_finite() || quantity.number.abs() > 1e15 {
            return Err(SpecError::new(format!("{} is too large", quantity.number))
                .allow(["numbers up to 1e15"]));
        }
        Ok(quantity)
    }
}
