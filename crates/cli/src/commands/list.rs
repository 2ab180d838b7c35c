//! `sojourn list`: what studies are made of.

use std::fmt::Write;
use std::path::Path;

use clap::ValueEnum;
use serde_json::{Value, json};
use sojourn_core::{Param, SpecError};
use sojourn_file::FILE_NAME;
use sojourn_file::spec::AppKind;
use sojourn_link::Model;
use sojourn_metrics::{METRICS, Scope};
use sojourn_study::{Overrides, Study};

use super::run;
use crate::args::{Format, ListArgs, Listed};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Grid, Records};

/// Where shipped studies are, from the folder in which the command is run.
const STUDIES: &str = "studies";

pub(super) fn list(args: &ListArgs, output: Output) -> Result<(), Failure> {
    let kind = args.kind.as_deref().map(|kind| (kind, Listed::from_str(kind, true).ok()));
    let (kinds, name) = match (kind, &args.name) {
        (None, _) => (Listed::ALL.to_vec(), None),
        (Some((_, Some(kind))), name) => (vec![kind], name.as_deref()),
        // A name alone, of whatever kind.
        (Some((name, None)), None) => (Listed::ALL.to_vec(), Some(name)),
        (Some((kind, None)), Some(_)) => {
            let error = SpecError::new(format!("there is no kind '{kind}'"));
            return Err(Failure::input(error.near(kind, KINDS).allow(KINDS)));
        }
    };
    let mut sections = Vec::new();
    for kind in kinds {
        sections.extend(sections_of(kind)?);
    }
    sections.retain(|section| !section.entries.is_empty());
    if let Some(name) = name {
        select(&mut sections, name, args.name.is_none())?;
    }
    match args.format {
        Format::Table => {
            let texts = sections.iter().map(|section| section.text(args.kind.is_some()));
            output.data(&texts.collect::<Vec<_>>().join("\n"))
        }
        Format::Json => {
            let entries = sections.iter().flat_map(|section| &section.entries);
            output.json(&entries.map(Entry::json).collect::<Vec<_>>())
        }
        Format::Csv => output.data(&records(&sections).csv()),
    }
}

const KINDS: [&str; 6] = ["cca", "queue", "app", "link", "metric", "study"];

impl Listed {
    const ALL: [Self; 6] =
        [Self::Cca, Self::Queue, Self::App, Self::Link, Self::Metric, Self::Study];
}

struct Section {
    title: &'static str,
    entries: Vec<Entry>,
}

struct Entry {
    kind: &'static str,
    name: String,
    doc: String,
    /// Beside name and documentation, by name.
    facts: Vec<(&'static str, Value)>,
    params: Vec<Parameter>,
}

struct Parameter {
    name: String,
    kind: String,
    default: String,
    allowed: String,
    doc: String,
}

fn sections_of(kind: Listed) -> Result<Vec<Section>, Failure> {
    let model = |kind: &'static str, models: &[Model]| -> Vec<Entry> {
        models.iter().map(|model| Entry::new(kind, model.name, model.doc, model.params)).collect()
    };
    Ok(match kind {
        Listed::Cca => {
            let algorithms = sojourn_cca::algorithms().iter();
            let entries = algorithms.map(|a| Entry::new("cca", a.name, a.doc, a.params)).collect();
            vec![Section { title: "Congestion controls (cca)", entries }]
        }
        Listed::Queue => {
            let disciplines = sojourn_qdisc::disciplines().iter();
            let entries =
                disciplines.map(|d| Entry::new("queue", d.name, d.doc, d.params)).collect();
            vec![Section { title: "Queues (queue)", entries }]
        }
        Listed::App => {
            let sizes = sojourn_host::apps::arrivals::sizes().iter();
            let sizes = sizes.map(|s| Entry::new("sizes", s.name, s.doc, s.params)).collect();
            vec![
                Section { title: "Applications (app)", entries: applications() },
                Section { title: "Sizes of transfers (sizes)", entries: sizes },
            ]
        }
        Listed::Link => vec![
            Section { title: "Link rates (rate)", entries: model("rate", sojourn_link::rates()) },
            Section { title: "Losses (loss)", entries: model("loss", sojourn_link::losses()) },
            Section {
                title: "Jitters (jitter)",
                entries: model("jitter", sojourn_link::jitters()),
            },
        ],
        Listed::Metric => vec![Section { title: "Metrics", entries: metrics() }],
        Listed::Study => vec![Section { title: "Studies", entries: studies()? }],
    })
}

/// Leaves the entries of that name.
fn select(sections: &mut Vec<Section>, name: &str, of_any_kind: bool) -> Result<(), Failure> {
    let names: Vec<String> =
        sections.iter().flat_map(|section| &section.entries).map(|e| e.name.clone()).collect();
    for section in sections.iter_mut() {
        section.entries.retain(|entry| entry.name == name);
    }
    sections.retain(|section| !section.entries.is_empty());
    if sections.is_empty() {
        let names = || names.iter().map(String::as_str);
        let error = SpecError::new(format!("nothing here is named '{name}'"));
        return Err(Failure::input(match of_any_kind {
            true => error.near(name, names().chain(KINDS)).allow(KINDS),
            false => error.near(name, names()).allow(names()),
        }));
    }
    Ok(())
}

/// Keys of an application with what the schema says of them.
fn applications() -> Vec<Entry> {
    let schema: Value = serde_json::from_str(&sojourn_file::schema::json()).unwrap_or_default();
    let keys = &schema["$defs"]["FlowSpec"]["properties"];
    let parameter = |key: &str| {
        let text = |name: &str| match &keys[key][name] {
            Value::Null => String::new(),
            Value::String(text) => one_line(text),
            other => other.to_string(),
        };
        let kind = match &keys[key]["type"] {
            _ if !text("title").is_empty() => text("title"),
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => {
                kinds.first().and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        };
        Parameter {
            name: key.to_owned(),
            kind,
            default: text("default"),
            allowed: String::new(),
            doc: text("description"),
        }
    };
    let entry = |app: &AppKind| Entry {
        kind: "app",
        name: app.name().to_owned(),
        doc: app.doc().to_owned(),
        facts: Vec::new(),
        params: app.keys().map(parameter).collect(),
    };
    AppKind::ALL.iter().map(entry).collect()
}

fn metrics() -> Vec<Entry> {
    let entry = |metric: &sojourn_metrics::Metric| {
        let of = match metric.scope {
            Scope::Link => "queue",
            scope @ (Scope::Flow | Scope::Run) => scope.name(),
        };
        Entry {
            kind: "metric",
            name: metric.name.to_owned(),
            doc: one_line(metric.doc),
            facts: vec![("of", json!(of)), ("unit", json!(metric.unit))],
            params: Vec::new(),
        }
    };
    METRICS.iter().map(entry).collect()
}

fn studies() -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    let folder = Path::new(STUDIES);
    if !folder.is_dir() {
        return Ok(entries);
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| Failure::reading(folder, &error))? {
        let path = entry.map_err(|error| Failure::reading(folder, &error))?.path();
        if path.join(FILE_NAME).is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    for path in paths {
        let study = Study::load(&path, &Overrides::default())?;
        entries.push(Entry {
            kind: "study",
            name: path.display().to_string(),
            doc: study.title.clone(),
            facts: vec![
                ("amount", json!(run::amount(&study.plan()))),
                ("claims", json!(study.claims.len())),
            ],
            params: Vec::new(),
        });
    }
    Ok(entries)
}

impl Entry {
    fn new(kind: &'static str, name: &str, doc: &str, params: &[Param]) -> Self {
        let parameter = |param: Param| Parameter {
            name: param.name.to_owned(),
            kind: param.kind.to_string(),
            default: param.default.to_owned(),
            allowed: param.allowed(),
            doc: one_line(param.doc),
        };
        Self {
            kind,
            name: name.to_owned(),
            doc: one_line(doc),
            facts: Vec::new(),
            params: params.iter().flat_map(Param::rows).map(parameter).collect(),
        }
    }

    fn json(&self) -> Value {
        let mut object = json!({ "kind": self.kind, "name": self.name, "doc": self.doc });
        for (name, value) in &self.facts {
            object[*name] = value.clone();
        }
        let parameter = |param: &Parameter| {
            json!({
                "name": param.name,
                "type": param.kind,
                "default": param.default,
                "allowed": param.allowed,
                "doc": param.doc,
            })
        };
        object["parameters"] = self.params.iter().map(parameter).collect();
        object
    }
}

impl Section {
    fn text(&self, in_full: bool) -> String {
        let mut text = format!("{}\n\n", self.title);
        let has_params = self.entries.iter().any(|entry| !entry.params.is_empty());
        if !in_full || !has_params {
            let mut grid = Grid::new(self.head());
            for entry in &self.entries {
                let facts = entry.facts.iter().map(|(_, value)| plain(value));
                let name = std::iter::once(entry.name.clone());
                grid.row(name.chain(facts).chain([entry.doc.clone()]));
            }
            text.push_str(&grid.fitted());
            return text;
        }
        for entry in &self.entries {
            let _ = writeln!(text, "{}: {}", entry.name, entry.doc);
            if !entry.params.is_empty() {
                let mut grid = Grid::new(["  parameter", "type", "default", "meaning"]);
                for param in &entry.params {
                    grid.row([
                        format!("  {}", param.name),
                        param.kind.clone(),
                        param.default.clone(),
                        param.doc.clone(),
                    ]);
                }
                text.push_str(&grid.fitted());
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len() + 1);
        text
    }

    fn head(&self) -> Vec<&'static str> {
        let facts = self.entries.first().map_or(&[][..], |entry| &entry.facts[..]);
        let facts = facts.iter().map(|(name, _)| *name);
        std::iter::once("name").chain(facts).chain(["is"]).collect()
    }
}

/// A row for each parameter; one for what has none.
fn records(sections: &[Section]) -> Records {
    let mut records = Records::new([
        "kind",
        "name",
        "doc",
        "of",
        "unit",
        "parameter",
        "type",
        "default",
        "meaning",
    ]);
    for entry in sections.iter().flat_map(|section| &section.entries) {
        let fact = |name: &str| {
            let fact = entry.facts.iter().find(|(known, _)| *known == name);
            fact.map_or(Value::Null, |(_, value)| value.clone())
        };
        let of_entry =
            [json!(entry.kind), json!(entry.name), json!(entry.doc), fact("of"), fact("unit")];
        if entry.params.is_empty() {
            records.row(of_entry.into_iter().chain(std::iter::repeat_n(Value::Null, 4)));
            continue;
        }
        for param in &entry.params {
            let of_param =
                [&param.name, &param.kind, &param.default, &param.doc].map(|text| json!(text));
            records.row(of_entry.iter().cloned().chain(of_param));
        }
    }
    records
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
