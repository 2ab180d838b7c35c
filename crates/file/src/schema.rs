//! The JSON Schema of study files, with which editors complete and check them.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::spec::StudySpec;

/// The schema (draft 2020-12) as it is committed under `schema/study.schema.json`.
pub fn json() -> String {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<StudySpec>().to_value();
    allow_what_stands_elsewhere(&mut schema);
    // Plain data from serde, so printing can't fail; the keywords come in their usual order.
    let printed = Schema::try_from(schema).and_then(|schema| serde_json::to_string_pretty(&schema));
    let mut text = printed.unwrap_or_default();
    text.push('\n');
    text
}

/// A study that extends another may leave out keys that the other has, and a scenario keys that a
/// factor gives. So these keys are required only if there is neither.
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
    let [scenario, path, gateway, parking_lot, link, carrier, port, flow] = [
        "ScenarioSpec",
        "PathSpec",
        "GatewaySpec",
        "ParkingLotSpec",
        "LinkSpec",
        "CarrierSpec",
        "PortSpec",
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
                            "flow": { "items": { "required": flow } },
                        },
                    },
                },
            },
        },
    ]);
    // Factors find these by their names.
    for definition in ["LinkSpec", "CarrierSpec", "PortSpec", "FlowSpec"] {
        schema["$defs"][definition]["required"] = json!(["name"]);
    }
}
