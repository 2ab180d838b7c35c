//! Situations as they were measured.

use std::collections::BTreeMap;

use serde_json::Value;

/// One situation with its results.
#[derive(Clone, Debug)]
pub struct Situation {
    pub id: String,
    pub group: String,
    pub setup: Value,
    /// Means over the seeds.
    pub results: BTreeMap<String, f64>,
    pub tolerances: BTreeMap<String, Tolerance>,
}

/// A band around a mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

impl Tolerance {
    pub fn slack(&self, mean: f64) -> f64 {
        (self.relative * mean.abs()).max(self.absolute)
    }
}

/// All situations of `data/wifi.json`, and of two files of what was measured after the model was written:
/// `data/wifi-more.json`, and `data/wifi-kinds.json` with kinds that the others lack.
pub fn situations() -> Vec<Situation> {
    let files = [
        include_str!("../../data/wifi.json"),
        include_str!("../../data/wifi-more.json"),
        include_str!("../../data/wifi-kinds.json"),
    ];
    files.into_iter().flat_map(read).collect()
}

/// Situations of a file that is written like `data/wifi.json`.
///
/// # Panics
/// If it is not.
pub fn read(text: &str) -> Vec<Situation> {
    let data: Value = serde_json::from_str(text).expect("the data is JSON");
    data["situations"]
        .as_array()
        .expect("a list of situations")
        .iter()
        .map(|situation| Situation {
            id: situation["id"].as_str().expect("a name").to_owned(),
            group: situation["group"].as_str().expect("a group").to_owned(),
            setup: situation["setup"].clone(),
            results: entries(&situation["results"])
                .filter_map(|(name, value)| Some((name, value["mean"].as_f64()?)))
                .collect(),
            tolerances: entries(&situation["tolerance"])
                .map(|(name, value)| {
                    let number = |key: &str| value[key].as_f64().unwrap_or(0.0);
                    let absolute = number("absolute").max(number("or_absolute_ms"));
                    (name, Tolerance { relative: number("relative"), absolute })
                })
                .collect(),
        })
        .collect()
}

fn entries(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value))
}
