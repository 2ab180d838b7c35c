//! `sojourn list`: what studies are made of.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use sojourn_core::{Kinds, Param, SpecError};
use sojourn_file::FILE_NAME;
use sojourn_file::spec::{self, AppKind};
use sojourn_link::Model;
use sojourn_metrics::{METRICS, Scope};
use sojourn_study::{Overrides, Registry, Study};

use super::{model, run};
use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Grid, Records};

/// Where shipped studies are, relative to the folder in which the command is run.
const STUDIES: &str = "studies";

pub(super) fn list(args: &ListArgs, registry: &Registry, output: Output) -> Result<(), Failure> {
    let kind = args.kind.as_deref().map(|kind| (kind, Listed::of(kind)));
    let (headings, name) = match (kind, &args.name) {
        (None, _) => (Heading::ALL.to_vec(), None),
        (Some((_, Some(kind))), name) => (kind.headings().to_vec(), name.as_deref()),
        // A name alone, of whatever kind.
        (Some((name, None)), None) => (Heading::ALL.to_vec(), Some(name)),
        (Some((kind, None)), Some(_)) => {
            let error = SpecError::new(format!("there is no kind '{kind}'"));
            return Err(Failure::input(error.near(kind, kinds()).allow(kinds())));
        }
    };
    let mut sections = Vec::new();
    for heading in headings {
        sections.push(heading.section(registry)?);
    }
    let mut shown = Shown::Names;
    if let Some(name) = name {
        shown = select(&mut sections, name, args.name.is_none())?;
    }
    match args.format {
        Format::Table if args.kind.is_none() => output.text(&summary(&sections)),
        Format::Table => {
            let texts = sections.iter().map(|section| section.text(shown));
            let mut text = texts.collect::<Vec<_>>().join("\n");
            let has_params = |entry: &Entry| !entry.params.is_empty();
            let hidden =
                sections.iter().flat_map(|section| &section.entries).find(|e| has_params(e));
            if let Some(entry) = hidden.filter(|_| shown == Shown::Names) {
                let _ = write!(text, "\nParameters and defaults: sojourn list {}\n", entry.name);
            }
            if let (Some((_, Some(Listed::One(heading)))), None) = (kind, &args.name) {
                let word = heading.word();
                if metrics().iter().any(|metric| metric.name.split('_').any(|own| own == word)) {
                    let _ = write!(text, "\nMetrics: sojourn list metric {word}\n");
                }
            }
            output.text(&text)
        }
        Format::Json => {
            let entries = sections.iter().flat_map(|section| &section.entries);
            output.json(&entries.map(Entry::json).collect::<Vec<_>>())
        }
        Format::Csv => output.data(&records(&sections).csv()),
    }
}

/// What a user can ask for: a heading, or `link` for the three headings of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    One(Heading),
    Link,
}

impl Listed {
    /// Finds a heading by its word, its plural, or an everyday word for it.
    fn of(word: &str) -> Option<Self> {
        const OTHERS: [(&str, Listed); 24] = [
            ("link", Listed::Link),
            ("links", Listed::Link),
            ("tcp", Listed::One(Heading::Cca)),
            ("algorithm", Listed::One(Heading::Cca)),
            ("algorithms", Listed::One(Heading::Cca)),
            ("congestion", Listed::One(Heading::Cca)),
            ("qdisc", Listed::One(Heading::Queue)),
            ("qdiscs", Listed::One(Heading::Queue)),
            ("aqm", Listed::One(Heading::Queue)),
            ("application", Listed::One(Heading::App)),
            ("applications", Listed::One(Heading::App)),
            ("traffic", Listed::One(Heading::App)),
            ("studies", Listed::One(Heading::Study)),
            ("losses", Listed::One(Heading::Loss)),
            ("reordering", Listed::One(Heading::Reorder)),
            ("size", Listed::One(Heading::Sizes)),
            ("codec", Listed::One(Heading::Voice)),
            ("codecs", Listed::One(Heading::Voice)),
            ("audio", Listed::One(Heading::Voice)),
            ("mcs", Listed::One(Heading::Mode)),
            ("wifi", Listed::One(Heading::Radio)),
            ("wi-fi", Listed::One(Heading::Radio)),
            ("formula", Listed::One(Heading::Model)),
            ("formulas", Listed::One(Heading::Model)),
        ];
        let word = word.to_ascii_lowercase();
        let heading = Heading::ALL.into_iter().find(|heading| {
            word.strip_prefix(heading.word()).is_some_and(|s| s.is_empty() || s == "s")
        });
        let other = || OTHERS.iter().find(|(other, _)| *other == word).map(|(_, listed)| *listed);
        heading.map(Self::One).or_else(other)
    }

    fn headings(self) -> &'static [Heading] {
        match self {
            Self::One(heading) => {
                let position = Heading::ALL.iter().position(|other| *other == heading);
                position.map_or(&[], |position| &Heading::ALL[position..=position])
            }
            Self::Link => {
                &[Heading::Rate, Heading::Loss, Heading::Jitter, Heading::Reorder, Heading::Policer]
            }
        }
    }
}

/// A heading of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    Cca,
    Queue,
    Carrier,
    App,
    Control,
    Source,
    Voice,
    Sizes,
    Engine,
    Model,
    Radio,
    Mode,
    Rate,
    Loss,
    Jitter,
    Reorder,
    Policer,
    Metric,
    Study,
}

impl Heading {
    const ALL: [Self; 19] = [
        Self::Cca,
        Self::Queue,
        Self::Carrier,
        Self::App,
        Self::Control,
        Self::Source,
        Self::Voice,
        Self::Sizes,
        Self::Engine,
        Self::Model,
        Self::Radio,
        Self::Mode,
        Self::Rate,
        Self::Loss,
        Self::Jitter,
        Self::Reorder,
        Self::Policer,
        Self::Metric,
        Self::Study,
    ];

    /// The word with which users ask for it.
    const fn word(self) -> &'static str {
        match self {
            Self::Cca => "cca",
            Self::Queue => "queue",
            Self::Carrier => "carrier",
            Self::App => "app",
            Self::Control => "control",
            Self::Source => "source",
            Self::Voice => "voice",
            Self::Sizes => "sizes",
            Self::Engine => "engine",
            Self::Model => "model",
            Self::Radio => "radio",
            Self::Mode => "mode",
            Self::Rate => "rate",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
            Self::Reorder => "reorder",
            Self::Policer => "policer",
            Self::Metric => "metric",
            Self::Study => "study",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Cca => "Congestion controls",
            Self::Queue => "Queues",
            Self::Carrier => "Carriers",
            Self::App => "Applications",
            Self::Control => "Rate controllers of calls",
            Self::Source => "Sources of video",
            Self::Voice => "Voices of calls, and a player's input (audio)",
            Self::Sizes => "Sizes of transfers",
            Self::Engine => "Engines",
            Self::Model => "Closed forms",
            Self::Radio => "Radios",
            Self::Mode => "Modes of stations",
            Self::Rate => "Link rates",
            Self::Loss => "Losses of links",
            Self::Jitter => "Jitters of links",
            Self::Reorder => "Reordering by links",
            Self::Policer => "Policers of links",
            Self::Metric => "Metrics",
            Self::Study => "Studies",
        }
    }

    fn section(self, registry: &Registry) -> Result<Section, Failure> {
        let models = |models: &[Model]| -> Vec<Entry> {
            let entry = |model: &Model| Entry::new(self, model.name, model.doc, model.params);
            models.iter().map(entry).collect()
        };
        let entries = match self {
            Self::Cca => self.kinds(registry.controllers()),
            Self::Queue => self.kinds(registry.queues()),
            Self::Carrier => self.kinds(registry.carriers()),
            Self::App => {
                let external = self.kinds(registry.applications());
                applications().into_iter().chain(external).collect()
            }
            Self::Control => self.kinds(registry.rate_controllers()),
            Self::Source | Self::Voice => {
                let sources = registry.sources();
                // A source that needs a file is one of video.
                let is_audio =
                    |name: &str| sources.parse(name).is_ok_and(|source| source.is_audio());
                let mut entries = self.kinds(sources);
                entries.retain(|entry| is_audio(&entry.name) == (self == Self::Voice));
                entries
            }
            Self::Sizes => {
                let sizes = sojourn_host::apps::arrivals::sizes().iter();
                sizes.map(|s| Entry::new(self, s.name, s.doc, s.params)).collect()
            }
            Self::Engine => self.kinds(registry.engines()),
            Self::Model => {
                let all = model::listed().into_iter();
                all.map(|(name, doc, params)| Entry::new(self, name, doc, params)).collect()
            }
            Self::Radio => {
                let parts = spec::RADIO.iter();
                parts.map(|(name, doc, params)| Entry::new(self, name, doc, *params)).collect()
            }
            Self::Mode => {
                let modes = sojourn_wifi::phy::MODES.iter();
                modes.map(|(name, doc, params)| Entry::new(self, name, doc, *params)).collect()
            }
            Self::Rate => models(sojourn_link::rates()),
            Self::Loss => models(sojourn_link::losses()),
            Self::Jitter => models(sojourn_link::jitters()),
            Self::Reorder => models(sojourn_link::reorderings()),
            Self::Policer => models(sojourn_link::policers()),
            Self::Metric => metrics(),
            Self::Study => studies(registry)?,
        };
        Ok(Section { heading: self, entries })
    }

    /// Built-in kinds and those from other crates.
    fn kinds<C>(self, kinds: &Kinds<C>) -> Vec<Entry> {
        kinds.iter().map(|kind| Entry::new(self, kind.name, kind.doc, kind.params)).collect()
    }
}

/// The words with which users ask for kinds.
fn kinds() -> impl Iterator<Item = &'static str> {
    Heading::ALL.into_iter().map(Heading::word)
}

/// How much of each entry is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// A line each.
    Names,
    /// With parameters and defaults.
    Parameters,
}

struct Section {
    heading: Heading,
    entries: Vec<Entry>,
}

struct Entry {
    kind: &'static str,
    name: String,
    doc: String,
    /// Further columns of the list, by name.
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

/// Everyday words, each with the words that names use for the same thing.
const CALLED: [(&[&str], &[&str]); 15] = [
    (
        &["latency", "delay", "lag", "bufferbloat"],
        &["rtt", "owd", "ping", "sojourn", "srtt", "delay"],
    ),
    (&["throughput", "bandwidth", "speed", "mbps"], &["goodput", "throughput"]),
    (&["fct", "completion", "completions", "flowtime"], &["fct", "completion", "completions"]),
    (&["slowdown", "stretch"], &["slowdown"]),
    (&["drop", "drops", "dropped", "loss", "lost"], &["drops", "drop", "dropped", "lost", "loss"]),
    (&["retransmission", "retransmissions", "retransmit"], &["retransmits", "retransmit"]),
    (&["fairness", "fair", "jain"], &["jain", "share", "min", "apart"]),
    (&["jitter"], &["jitter", "ipdv", "pdv", "gap"]),
    (&["ecn", "ce", "mark", "marks", "marking"], &["marks", "marked", "ce"]),
    (&["buffer", "backlog", "occupancy", "qlen"], &["queue"]),
    (&["utilization", "utilisation", "load"], &["utilisation", "busy"]),
    (&["video", "game", "gaming", "frame", "fps"], &["frame", "frames", "fps", "stall", "freeze"]),
    (&["stall", "stalls", "freeze", "freezes"], &["stall", "freeze"]),
    (&["window", "windows"], &["cwnd", "rwnd", "inflight", "ssthresh"]),
    (&["voice", "voip", "call", "quality", "qoe"], &["mos", "ping", "pdv"]),
];

/// Whether an entry is one that the user asked for.
type IsMeant<'a> = &'a dyn Fn(&Entry) -> bool;

/// Keeps the entries of that name; if there are none, those whose names contain that word or one
/// that means the same; if there are none, those whose description contains it, or
/// all of its words.
fn select(sections: &mut Vec<Section>, name: &str, of_any_kind: bool) -> Result<Shown, Failure> {
    let names: Vec<String> =
        sections.iter().flat_map(|section| &section.entries).map(|e| e.name.clone()).collect();
    let word = name.to_ascii_lowercase();
    let is_exact = |entry: &Entry| entry.name == name;
    let means: Vec<&str> = CALLED
        .iter()
        .filter(|(called, _)| called.contains(&&word[..]))
        .flat_map(|(_, words)| words.iter().copied())
        .chain([&word[..]])
        .collect();
    let is_called = |entry: &Entry| {
        let mut words = entry.name.split(['_', '-', '/']);
        words.any(|own| means.contains(&own.trim_end_matches(|c: char| c.is_ascii_digit())))
    };
    let is_described = |entry: &Entry| {
        let own = || entry.doc.split(|c: char| !c.is_alphanumeric() && c != '-');
        let has = |word: &str| own().any(|own| own.eq_ignore_ascii_case(word));
        word.split_whitespace().next().is_some() && word.split_whitespace().all(has)
    };
    let ways: [(IsMeant<'_>, Shown); 3] =
        [(&is_exact, Shown::Parameters), (&is_called, Shown::Names), (&is_described, Shown::Names)];
    let has =
        |is_meant: IsMeant<'_>| sections.iter().flat_map(|section| &section.entries).any(is_meant);
    let Some((is_meant, shown)) = ways.into_iter().find(|(is_meant, _)| has(is_meant)) else {
        let mut near: Vec<&str> = names.iter().map(String::as_str).collect();
        let error = SpecError::new(format!("nothing here is named or called '{name}'"));
        return Err(Failure::input(match of_any_kind {
            true => {
                kinds().for_each(|kind| near.push(kind));
                error.near(name, near).allow(kinds())
            }
            false => error.near(name, near).allow(&names),
        }));
    };
    for section in sections.iter_mut() {
        section.entries.retain(is_meant);
    }
    sections.retain(|section| !section.entries.is_empty());
    Ok(shown)
}

/// A line for each heading: the word that lists it, how many entries it has, and their names.
fn summary(sections: &[Section]) -> String {
    /// Longer lists of names are no summary.
    const MOST: usize = 30;
    let mut grid = Grid::new(["kind", ">how many", "are"]);
    for section in sections.iter().filter(|section| !section.entries.is_empty()) {
        let mut names = section.entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
        if names.len() > MOST {
            // For a family of names, its first word.
            names.iter_mut().for_each(|name| {
                let end = name.find('_').unwrap_or(name.len());
                name.truncate(end);
                name.truncate(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
            });
            names.sort();
            names.dedup();
        }
        grid.row([
            section.heading.word().to_owned(),
            section.entries.len().to_string(),
            format!("{}: {}", section.heading.title(), names.join(", ")),
        ]);
    }
    format!(
        "{}\nOne kind: sojourn list queue. One name, with parameters: sojourn list cake. \
         A word: sojourn list latency\n",
        grid.fitted()
    )
}

/// Built-in applications with what their flows have as keys.
fn applications() -> Vec<Entry> {
    let entry = |app: &AppKind| Entry::new(Heading::App, app.name(), app.doc(), app.params());
    AppKind::ALL.iter().map(entry).collect()
}

fn metrics() -> Vec<Entry> {
    let entry = |metric: &sojourn_metrics::Metric| {
        let of = match metric.scope {
            Scope::Link => "queue",
            scope @ (Scope::Flow | Scope::Run) => scope.name(),
        };
        Entry {
            kind: Heading::Metric.word(),
            name: metric.name.to_owned(),
            doc: one_line(metric.doc),
            facts: vec![("of", json!(of)), ("unit", json!(metric.unit))],
            params: Vec::new(),
        }
    };
    METRICS.iter().map(entry).collect()
}

fn studies(registry: &Registry) -> Result<Vec<Entry>, Failure> {
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
        let study = Study::load_with(registry, &path, &Overrides::default())?;
        entries.push(Entry {
            kind: Heading::Study.word(),
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
    fn new<'a>(
        heading: Heading,
        name: &str,
        doc: &str,
        params: impl IntoIterator<Item = &'a Param>,
    ) -> Self {
        let parameter = |param: Param| Parameter {
            name: param.name.to_owned(),
            kind: param.kind.to_string(),
            default: param.said_default().to_owned(),
            allowed: param.allowed(),
            doc: with_aliases(&param),
        };
        Self {
            kind: heading.word(),
            name: name.to_owned(),
            doc: one_line(doc),
            facts: Vec::new(),
            params: params.into_iter().flat_map(Param::rows).map(parameter).collect(),
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
    fn text(&self, shown: Shown) -> String {
        let mut text = format!("{} ({})\n\n", self.heading.title(), self.heading.word());
        let has_params = self.entries.iter().any(|entry| !entry.params.is_empty());
        if shown == Shown::Names || !has_params {
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

/// A row for each parameter; one row for an entry that has none.
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

/// What a parameter does, and its other names.
fn with_aliases(param: &Param) -> String {
    match param.aliases {
        [] => one_line(param.doc),
        aliases => format!("{}; also written {}", one_line(param.doc), aliases.join(", ")),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
