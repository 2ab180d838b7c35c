//! Series are in single precision, with not-a-number for missing values.

use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(
    values: &[Option<f64>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|value| value.map_or(f32::NAN, |v| v as f32)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Option<f64>>, D::Error> {
    let values = Vec::<f32>::deserialize(deserializer)?;
    let there = |value: f32| Some(f64::from(value)).filter(|value| !value.is_nan());
    Ok(values.into_iter().map(there).collect())
}
