//! The generated part of `docs/study.md`: every key with its type, default and meaning, from the
//! schema; every queue, congestion control, rate and metric, from the registries.

use std::fmt::Write;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use sojourn_core::{Param, Params};
use sojourn_host::tcp;
use sojourn_metrics::METRICS;

use crate::metrics::{Pooling, kind_of};
use sojourn_file::spec::{self, AppKind, StudySpec};

/// The marks of the page; the generated part is between them.
pub const BEGIN: &str = "<!-- generated: begin -->";
pub const END: &str = "<!-- generated: end -->";

/// The generated part, without the marks.
pub fn markdown() -> String {
    let mut page = String::new();
    keys(&mut page);
    applications(&mut page);
    let models = |models: &[sojourn_link::Model]| -> Vec<Entry> {
        models.iter().map(|model| (model.name, model.doc, model.params)).collect()
    };
    let disciplines = sojourn_qdisc::disciplines();
    let algorithms = sojourn_cca::algorithms();
    let queues: Vec<Entry> = disciplines.iter().map(|d| (d.name, d.doc, d.params)).collect();
    let ccas: Vec<Entry> = algorithms.iter().map(|a| (a.name, a.doc, a.params)).collect();
    let engines = crate::engine::engines().iter().map(|e| (e.name, e.doc, e.params));
    registry(&mut page, "Engines", &engines.collect::<Vec<_>>());
    registry(&mut page, "Link rates", &models(sojourn_link::rates()));
    registry(&mut page, "Losses", &models(sojourn_link::losses()));
    registry(&mut page, "Jitters", &models(sojourn_link::jitters()));
    registry(&mut page, "Reorderings", &models(sojourn_link::reorderings()));
    registry(&mut page, "Policers", &models(sojourn_link::policers()));
    let sizes: Vec<Entry> = sojourn_host::apps::arrivals::sizes()
        .iter()
        .map(|sizes| (sizes.name, sizes.doc, sizes.params))
        .collect();
    registry(&mut page, "Sizes of transfers", &sizes);
    let carriers = sojourn_wire::carriers().iter().map(|c| (c.name, c.doc, c.params));
    registry(&mut page, "Radios", &spec::RADIO);
    registry(&mut page, "Queues", &queues);
    registry(&mut page, "Carriers", &carriers.collect::<Vec<_>>());
    registry(&mut page, "Congestion controls", &ccas);
    let sources = sojourn_media::source::models().iter().map(|s| (s.name, s.doc, s.params));
    let rates = sojourn_media::control::algorithms().iter().map(|a| (a.name, a.doc, a.params));
    registry(&mut page, "Sources of media", &sources.collect::<Vec<_>>());
    registry(&mut page, "Rate controllers of media", &rates.collect::<Vec<_>>());
    metrics(&mut page);
    page
}

/// `page` with its generated part renewed; `None` when the marks are not there.
pub fn renewed(page: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}{END}{after}", markdown()))
}

/// `page` of a model with its tables of parameters renewed. A table is between `<!-- parameters of
/// NAME -->` and `<!-- parameters: end -->`.
///
/// # Errors
/// Names a mark without its end, or a mark of something that has no parameters.
pub fn with_parameters(page: &str) -> Result<String, String> {
    const MARK: &str = "<!-- parameters of ";
    const MARK_END: &str = "<!-- parameters: end -->";
    let mut renewed = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(MARK) {
        let (name, after) = after.split_once(" -->").ok_or("a mark is not closed")?;
        let (_, after) = after.split_once(MARK_END).ok_or(format!("'{name}' has no end"))?;
        let params = params_of(name).ok_or(format!("'{name}' has no parameters"))?;
        let _ = writeln!(renewed, "{before}{MARK}{name} -->");
        table(&mut renewed, params);
        renewed.push_str(MARK_END);
        rest = after;
    }
    Ok(renewed + rest)
}

/// Names of controllers, queues, carriers, applications, transports, models of links, sources and rate
/// controllers of media, parts of radios, and closed forms that have parameters.
pub fn parametrised() -> Vec<String> {
    entries().filter(|(_, params)| !params.is_empty()).map(|(name, _)| name).collect()
}

fn params_of(name: &str) -> Option<&'static [Param]> {
    entries().find(|entry| entry.0 == name).map(|(_, params)| params)
}

/// A model of a link is named after what it is of: `loss random`, and a closed form `model md1`.
fn entries() -> impl Iterator<Item = (String, &'static [Param])> {
    let algorithms = sojourn_cca::algorithms().iter().map(|a| (a.name, a.params));
    let disciplines = sojourn_qdisc::disciplines().iter().map(|d| (d.name, d.params));
    let carriers = sojourn_wire::carriers().iter().map(|c| (c.name, c.params));
    let applications = AppKind::ALL.into_iter().map(|app| (app.name(), app.own_params()));
    let sources = sojourn_media::source::models().iter().map(|s| (s.name, s.params));
    let rates = sojourn_media::control::algorithms().iter().map(|a| (a.name, a.params));
    let media = sources.chain(rates);
    let tcp = (tcp::Config::NAME, tcp::Config::PARAMS);
    let radio = spec::RADIO.map(|(name, _, params)| (name, params));
    let models = algorithms.chain(disciplines).chain(carriers).chain(applications);
    let links = [
        ("rate", sojourn_link::rates()),
        ("loss", sojourn_link::losses()),
        ("jitter", sojourn_link::jitters()),
        ("reorder", sojourn_link::reorderings()),
        ("policer", sojourn_link::policers()),
    ];
    let links = links.into_iter().flat_map(|(kind, models)| {
        models.iter().map(move |model| (format!("{kind} {}", model.name), model.params))
    });
    let models = models.chain([tcp]).chain(media).chain(radio);
    let formulas = sojourn_model::formulas();
    let formulas = formulas.iter().map(|kind| (format!("model {}", kind.name), kind.params));
    let formulas: Vec<(String, &'static [Param])> = formulas.collect();
    models.map(|(name, params)| (name.to_owned(), params)).chain(links).chain(formulas)
}

type Entry = (&'static str, &'static str, &'static [Param]);

/// Tables of the file, in the order in which they are explained, with the type that describes them.
const TABLES: [(&str, &str); 17] = [
    ("Top level", ""),
    ("`[scenario]`", "ScenarioSpec"),
    ("`[scenario.path]`", "PathSpec"),
    ("`[scenario.gateway]`", "GatewaySpec"),
    ("`[scenario.parking_lot]`", "ParkingLotSpec"),
    ("`[[scenario.node]]`", "NodeSpec"),
    ("`[[scenario.link]]`", "LinkSpec"),
    ("`[[scenario.carrier]]`", "CarrierSpec"),
    ("`[[scenario.carrier.port]]`", "PortSpec"),
    ("`[[scenario.radio]]`", "RadioSpec"),
    ("`[[scenario.radio.station]]`", "StationSpec"),
    ("`[[scenario.flow]]`", "FlowSpec"),
    ("`[[scenario.change]]`", "ChangeSpec"),
    ("`[factors]`", "FactorsSchema"),
    ("`[repeat]`", "RepeatSpec"),
    ("`[views.NAME]`", "ViewSpec"),
    ("`[[claim]]`", "ClaimSpec"),
];

fn keys(page: &mut String) {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.into_root_schema_for::<StudySpec>().to_value();
    let empty = Map::new();
    let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&empty);
    page.push_str("## Keys\n\n");
    for (title, name) in TABLES {
        let table = if name.is_empty() { Some(&schema) } else { definitions.get(name) };
        let Some(table) = table else { continue };
        let required: Vec<&str> = table
            .get("required")
            .and_then(Value::as_array)
            .map(|keys| keys.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let _ = writeln!(page, "### {title}\n");
        if let Some(doc) = table.get("description").and_then(Value::as_str) {
            let _ = writeln!(page, "{}\n", one_line(doc));
        }
        page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
        for (key, value) in table.get("properties").and_then(Value::as_object).unwrap_or(&empty) {
            let default = match (value.get("default"), required.contains(&&key[..])) {
                (_, true) => "required".to_owned(),
                (Some(Value::Null) | None, _) => String::new(),
                (Some(Value::String(text)), _) => text.clone(),
                (Some(Value::Array(items)), _) if items.is_empty() => String::new(),
                (Some(Value::Object(_)), _) => String::new(),
                (Some(other), _) => format!("`{other}`"),
            };
            let doc = value.get("description").and_then(Value::as_str).unwrap_or_default();
            let kind = kind_of_value(value, definitions);
            let _ = writeln!(
                page,
                "| `{key}` | {kind} | {} | {} |",
                cell(&default),
                cell(&one_line(doc))
            );
        }
        page.push('\n');
    }
}

/// What a value is, in words.
fn kind_of_value(value: &Value, definitions: &Map<String, Value>) -> String {
    if let Some(title) = value.get("title").and_then(Value::as_str) {
        return title.to_owned();
    }
    let words = choices(value);
    if !words.is_empty() {
        return words.join(", ");
    }
    if let Some(name) = value.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        let choices = definitions.get(name).map(choices).unwrap_or_default();
        return if choices.is_empty() { "table".into() } else { choices.join(", ") };
    }
    if let Some(variants) = value.get("anyOf").and_then(Value::as_array) {
        let is_null = |v: &&Value| v.get("type").and_then(Value::as_str) == Some("null");
        if let Some(variant) = variants.iter().find(|variant| !is_null(variant)) {
            return kind_of_value(variant, definitions);
        }
    }
    let kind = match value.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    match kind {
        "string" => "text",
        "integer" => "whole number",
        "number" => "number",
        "boolean" => "switch",
        "array" => "list of tables",
        "object" => "table",
        _ => "",
    }
    .to_owned()
}

/// The words of an enumeration.
fn choices(definition: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(|word| format!("`{word}`"));
    if let Some(words) = definition.get("enum").and_then(Value::as_array) {
        return words.iter().filter_map(word).collect();
    }
    let variants = definition.get("oneOf").and_then(Value::as_array);
    variants
        .map(|variants| variants.iter().filter_map(|v| v.get("const").and_then(word)).collect())
        .unwrap_or_default()
}

fn applications(page: &mut String) {
    page.push_str(
        "## Applications\n\nA flow also has as keys the parameters of its application, and of TCP if that is what \
         it runs over.\n\n| `app` | is | keys |\n|---|---|---|\n",
    );
    for app in AppKind::ALL {
        let keys = app.own_params().iter().map(|param| format!("`{}`", param.name));
        let transport = app.is_tcp().then(|| "those of TCP".to_owned());
        let keys: Vec<String> = keys.chain(transport).collect();
        let _ = writeln!(page, "| `{}` | {} | {} |", app.name(), app.doc(), keys.join(", "));
    }
    page.push('\n');
    let with_params = AppKind::ALL.iter().filter(|app| !app.own_params().is_empty());
    for app in with_params {
        let _ = writeln!(page, "### `{}`\n", app.name());
        table(page, app.own_params());
        page.push('\n');
    }
    page.push_str("### TCP\n\n");
    table(page, spec::TCP.into_iter().flatten());
    page.push('\n');
}

fn registry(page: &mut String, title: &str, entries: &[Entry]) {
    let _ = writeln!(page, "## {title}\n\n| name | is |\n|---|---|");
    for (name, doc, _) in entries {
        let _ = writeln!(page, "| `{name}` | {} |", cell(&one_line(doc)));
    }
    page.push('\n');
    for (name, _, params) in entries.iter().filter(|(_, _, params)| !params.is_empty()) {
        let _ = writeln!(page, "### `{name}`\n");
        table(page, *params);
        page.push('\n');
    }
}

/// A row for each word that users may write.
fn table<'a>(page: &mut String, params: impl IntoIterator<Item = &'a Param>) {
    page.push_str("| parameter | type | default | allowed | meaning |\n|---|---|---|---|---|\n");
    for param in params.into_iter().flat_map(Param::rows) {
        let names = std::iter::once(&param.name).chain(param.aliases);
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            names.join(", "),
            param.kind,
            cell(param.said_default()),
            cell(&param.allowed()),
            cell(&one_line(param.doc))
        );
    }
}

fn metrics(page: &mut String) {
    page.push_str(
        "## Metrics\n\n`group` says how the flows of a group make one number in a claim.\n\n\
         | metric | of | unit | group | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let group = match (kind_of(metric.scope), Pooling::of(metric.name, metric.unit)) {
            (crate::results::Kind::Flow, Pooling::Sum) => "sum",
            (crate::results::Kind::Flow, Pooling::Least) => "least",
            (crate::results::Kind::Flow, Pooling::Largest) => "largest",
            (crate::results::Kind::Flow, Pooling::Mean) => "mean",
            _ => "",
        };
        let kind = kind_of(metric.scope).name();
        let doc = cell(&one_line(metric.doc));
        let _ =
            writeln!(page, "| `{}` | {kind} | {} | {group} | {doc} |", metric.name, metric.unit);
    }
    page.push('\n');
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A vertical bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
