//! The JSON Schema of study files, with which editors complete and check them.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use sojourn_core::param::{Bounds, Switch};
use sojourn_core::{Param, ParamKind};

use crate::spec::{AppKind, StudySpec, TCP, Truth};

/// The schema (draft 2020-12) as it is committed under `schema/study.schema.json`. The command prints that file: what
/// makes it would be a quarter of a megabyte of the program.
pub fn json() -> String {
    let mut schema = keys();
    allow_what_stands_elsewhere(&mut schema);
    // Plain data from serde, so printing can't fail; the keywords come in their usual order.
    let printed = Schema::try_from(schema).and_then(|schema| serde_json::to_string_pretty(&schema));
    let mut text = printed.unwrap_or_default();
    text.push('\n');
    text
}

/// The schema of a study in which everything stands in one place.
fn keys() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<StudySpec>().to_value();
    let flow = &mut schema["$defs"]["FlowSpec"];
    flow["additionalProperties"] = json!(false);
    let properties = &mut flow["properties"];
    let names = AppKind::ALL.map(AppKind::name);
    properties["app"]["examples"] = json!(names);
    for (params, of) in settings() {
        for param in params {
            add(properties, param, of);
        }
    }
    schema
}

/// The parameters that are keys of flows, and what has them.
fn settings() -> impl Iterator<Item = (&'static [Param], &'static str)> {
    let own = AppKind::ALL.into_iter().map(|app| (app.own_params(), app.name()));
    own.chain(TCP.map(|params| (params, "TCP")))
}

/// Adds a parameter to the keys. If a key of that name is there, adds to its description what it
/// means to `of`.
fn add(properties: &mut Value, param: &Param, of: &str) {
    let default = match (param.is_needed, param.default) {
        (true, _) | (_, "") => String::new(),
        (_, default) => format!(" (default {default})"),
    };
    let doc = format!("{of}: {}.", param.doc);
    let property = &mut properties[param.name];
    if let Some(before) = property["description"].as_str() {
        // Applications may have different defaults, so each default goes into the description.
        let first = property["default"].as_str().map(|default| format!(" (default {default})"));
        let before = before.trim_end_matches('.');
        let doc =
            format!("{before}{}. {}{default}.", first.unwrap_or_default(), &doc[..doc.len() - 1]);
        property["description"] = json!(doc);
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
        return;
    }
    *property = kind_of(param);
    property["description"] = json!(doc);
    let default = param.default;
    match (param.kind, default.parse::<f64>()) {
        _ if param.is_needed || default.is_empty() => {}
        (ParamKind::Count, _) => property["default"] = json!(default.parse::<i64>().ok()),
        (ParamKind::Number, Ok(number)) => property["default"] = json!(number),
        (ParamKind::Flag | ParamKind::Switch, _) => {
            property["default"] = json!(Switch::of(default))
        }
        _ => property["default"] = json!(default),
    }
}

/// What a value of the parameter looks like.
fn kind_of(param: &Param) -> Value {
    let title = param.kind.to_string();
    match (param.kind, param.bounds) {
        (ParamKind::Count, Bounds::Whole { least, most }) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        (ParamKind::Count, _) => json!({ "type": "integer" }),
        (ParamKind::Number, Bounds::Number { least, most }) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        (ParamKind::Number, _) => json!({ "type": "number" }),
        (ParamKind::Flag | ParamKind::Switch, _) => {
            json!({ "type": ["boolean", "string"], "enum": Truth::allowed() })
        }
        (ParamKind::Choice, Bounds::Words(words)) => json!({ "type": "string", "enum": words }),
        (ParamKind::Share, _) => {
            json!({ "type": ["string", "number"], "title": title, "examples": param.examples })
        }
        _ => json!({ "type": "string", "title": title, "examples": param.examples }),
    }
}

/// A required key may be missing if the study extends another one, which may have it, or if a factor
/// gives its value. So these keys are required only where there is neither.
fn allow_what_stands_elsewhere(schema: &mut Value) {
    let mut required_of = |definition: &str| -> Value {
        let definition = match definition {
            "" => Some(&mut *schema),
            name => schema.get_mut("$defs").and_then(|all| all.get_mut(name)),
        };
        definition
            .and_then(Value::as_object_mut)
            .and_then(|definition| definition.remove("required"))
            .unwrap_or_else(|| json!([]))
    };
    let [study, view] = ["", "ViewSpec"].map(&mut required_of);
    let [scenario, path, gateway, parking_lot, link, carrier, port, radio, station, flow] = [
        "ScenarioSpec",
        "PathSpec",
        "GatewaySpec",
        "ParkingLotSpec",
        "LinkSpec",
        "CarrierSpec",
        "PortSpec",
        "RadioSpec",
        "StationSpec",
        "FlowSpec",
    ]
    .map(required_of);
    let extends = json!({ "required": ["extends"] });
    let varies = json!({ "required": ["factors"] });
    schema["allOf"] = json!([
        {
            "if": { "not": extends },
            "then": {
                "required": study,
                "properties": {
                    "views": { "additionalProperties": { "required": view } },
                },
            },
        },
        {
            "if": { "not": { "anyOf": [extends, varies] } },
            "then": {
                "properties": {
                    "scenario": {
                        "required": scenario,
                        "properties": {
                            "path": { "required": path },
                            "gateway": { "required": gateway },
                            "parking_lot": { "required": parking_lot },
                            "link": { "items": { "required": link } },
                            "carrier": {
                                "items": {
                                    "required": carrier,
                                    "properties": { "port": { "items": { "required": port } } },
                                },
                            },
                            "radio": {
                                "items": {
                                    "required": radio,
                                    "properties": { "station": { "items": { "required": station } } },
                                },
                            },
                            "flow": { "items": { "required": flow } },
                        },
                    },
                },
            },
        },
    ]);
    // Factors find these by their names.
    for definition in
        ["LinkSpec", "CarrierSpec", "PortSpec", "RadioSpec", "StationSpec", "FlowSpec"]
    {
        schema["$defs"][definition]["required"] = json!(["name"]);
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::FlowSpec;

    use super::*;

    #[test]
    fn the_keys_of_all_flows_are_those_of_the_schema() {
        let schema = SchemaSettings::draft2020_12()
            .into_generator()
            .into_root_schema_for::<FlowSpec>()
            .to_value();
        let properties = schema["properties"].as_object().expect("a flow has keys");
        assert!(properties.keys().eq(FlowSpec::KEYS));
    }
}
