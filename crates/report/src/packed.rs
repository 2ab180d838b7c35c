//! Packs time series for the page's script.
//!
//! A column becomes 16-bit steps above its least value, where a step is a round number; then
//! differences of neighbours; then low bytes apart from high bytes; and all of it is deflated. A
//! run that exceeds its part of the budget keeps the least and the largest value of every few
//! steps, so that peaks survive.
//!
//! Layout of the deflated bytes: length of the head as `u32` (little endian), the head as JSON,
//! then for each array of each column `n` low bytes and `n` high bytes.

use std::io::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use sojourn_study::results::{Kind, Series, StepValues};

/// Marks an unknown value.
const MISSING: u16 = u16::MAX;

/// How a run's series were packed.
pub(crate) struct Packed {
    pub(crate) base64: String,
    /// How many steps each pair of least and largest value covers; with 1 every value is kept.
    #[cfg(test)]
    pub(crate) steps: usize,
}

/// How many values there are.
pub(crate) fn values_in(series: &Series) -> usize {
    series.t_s.len() * series.columns.len()
}

/// Characters that a value takes if each is kept; not known before a run was packed so.
pub(crate) type Density = Option<f64>;

/// A run is packed coarsely at once if its values are expected to take so many times its part of the budget.
const CLEARLY: f64 = 1.1;

/// Packs within `budget` characters, as finely as that allows. `density` is that of a run like this one, and afterwards of
/// this one.
pub(crate) fn pack(series: &[Series], budget: usize, density: &mut Density) -> Option<Packed> {
    let rows = series.iter().map(|s| s.t_s.len()).max()?;
    if rows == 0 || budget == 0 {
        return None;
    }
    let values = series.iter().map(values_in).sum::<usize>() as f64;
    // A bin has two values, so bins of two steps save nothing.
    let coarser = |characters: f64| ((characters / budget as f64 * 2.0).ceil() as usize).max(3);
    let expected = density.map_or(0.0, |density| density * values);
    let mut steps = if expected > budget as f64 * CLEARLY { coarser(expected) } else { 1 };
    loop {
        let base64 = STANDARD.encode(deflate(&encode(series, steps)));
        if steps == 1 {
            *density = Some(base64.len() as f64 / values);
        }
        if base64.len() <= budget {
            return Some(Packed {
                base64,
                #[cfg(test)]
                steps,
            });
        }
        if steps * 16 > rows {
            return None;
        }
        steps = if steps == 1 { coarser(base64.len() as f64) } else { steps * 2 };
    }
}

/// Any JSON, deflated and in base64.
pub(crate) fn pack_json(value: &Value) -> String {
    STANDARD.encode(deflate(value.to_string().as_bytes()))
}

fn encode(series: &[Series], steps: usize) -> Vec<u8> {
    let mut arrays: Vec<Vec<u16>> = Vec::new();
    let mut heads = Vec::new();
    for one in series {
        let mut columns = Vec::new();
        for column in &one.columns {
            if column.name == "phase" || !column.values.known().any(f64::is_finite) {
                continue;
            }
            let grid = Grid::of(&column.values);
            let codes: Vec<u16> = column.values.iter().map(|value| grid.code(value)).collect();
            let envelope = steps > 1;
            if envelope {
                arrays.push(bins(&codes, steps, |a, b| a.min(b)));
                arrays.push(bins(&codes, steps, |a, b| a.max(b)));
            } else {
                arrays.push(codes);
            }
            columns.push(json!({ "name": column.name, "min": grid.min, "step": grid.step }));
        }
        heads.push(json!({
            "kind": match one.kind { Kind::Flow => "flow", Kind::Queue => "queue", Kind::Run => "run" },
            "name": one.name,
            "columns": columns,
            "phases": phases(&one.phase),
        }));
    }
    let times = series.iter().max_by_key(|one| one.t_s.len()).map_or(&[][..], |one| &one.t_s[..]);
    let bin_ends: Vec<f64> = times.chunks(steps).map(|chunk| chunk[chunk.len() - 1]).collect();
    let head =
        json!({ "steps": steps, "n": bin_ends.len(), "t": clock(&bin_ends), "series": heads });
    let head = head.to_string();
    let mut out = (head.len() as u32).to_le_bytes().to_vec();
    out.extend(head.as_bytes());
    for mut array in arrays {
        array.resize(bin_ends.len(), MISSING);
        let mut before = 0u16;
        let differences: Vec<u16> = array
            .iter()
            .map(|code| {
                let difference = code.wrapping_sub(before);
                before = *code;
                difference
            })
            .collect();
        out.extend(differences.iter().map(|d| *d as u8));
        out.extend(differences.iter().map(|d| (*d >> 8) as u8));
    }
    out
}

/// First time, distance and last time if the steps are even; otherwise every time.
fn clock(times: &[f64]) -> Value {
    if let [first, second, .., last] = times {
        let step = second - first;
        let even = times[..times.len() - 1]
            .iter()
            .enumerate()
            .all(|(at, t)| (t - first - at as f64 * step).abs() < step.abs() * 1e-3 + 1e-9);
        if even {
            return json!({ "first": first, "step": step, "last": last });
        }
    }
    json!(times)
}

/// Where each phase begins: step and name.
fn phases(phase: &[Arc<str>]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut before: Option<&str> = None;
    for (at, name) in phase.iter().enumerate() {
        if before != Some(name) {
            out.push(json!([at, &name[..]]));
            before = Some(name);
        }
    }
    out
}

/// Values as whole steps above the least one.
#[derive(Clone, Copy, Debug)]
struct Grid {
    min: f64,
    step: f64,
}

impl Grid {
    fn of(values: &StepValues) -> Self {
        let known = || values.known().filter(|value| value.is_finite());
        let (min, max) =
            known().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let most = f64::from(MISSING - 1);
        if known().all(|value| value.fract() == 0.0) && max - min <= most {
            return Self { min, step: 1.0 };
        }
        // A thousandth of the range is less than a pixel, and round steps deflate better than fine
        // ones.
        let rough = ((max - min) / 20_000.0).max(f64::MIN_POSITIVE);
        let power = 10f64.powf(rough.log10().ceil());
        let step = if power / 2.0 >= rough { power / 2.0 } else { power };
        let step = if step.is_finite() && step > 0.0 && (max - min) / step <= most {
            step
        } else {
            (max - min).max(1.0) / most
        };
        Self { min, step }
    }

    fn code(self, value: Option<f64>) -> u16 {
        match value {
            // Rounded by half a step more, of which the conversion leaves out what is behind the point.
            Some(value) if value.is_finite() => {
                ((value - self.min) / self.step + 0.5).min(f64::from(MISSING - 1)) as u16
            }
            _ => MISSING,
        }
    }
}

fn bins(codes: &[u16], steps: usize, pick: fn(u16, u16) -> u16) -> Vec<u16> {
    codes
        .chunks(steps)
        .map(|chunk| {
            chunk.iter().copied().filter(|code| *code != MISSING).reduce(pick).unwrap_or(MISSING)
        })
        .collect()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a Vec takes every byte");
    encoder.finish().expect("a Vec takes every byte")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_study::results::SeriesColumn;

    use super::*;

    #[test]
    fn counts_are_kept_exactly() {
        let values: StepValues = (0..1000).map(|n| Some(f64::from(n % 97))).collect();
        let grid = Grid::of(&values);
        for value in values.known() {
            assert_eq!(grid.min + f64::from(grid.code(Some(value))) * grid.step, value);
        }
    }

    #[test]
    fn the_budget_holds_and_the_peak_survives() {
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f64::from((state >> 52) as u32)
        };
        let mut values: Vec<Option<f64>> = (0..200_000).map(|_| Some(noise())).collect();
        values[123_456] = Some(60_000.0);
        let values: StepValues = values.into_iter().collect();
        let series = vec![Series {
            run: 0,
            kind: Kind::Queue,
            name: "bottleneck".into(),
            t_s: (1..=values.len()).map(|n| n as f64 * 0.001).collect(),
            columns: vec![SeriesColumn { name: "queue_pkts".into(), values: values.clone() }],
            phase: vec![],
        }];
        let packed = pack(&series, 100_000, &mut None).unwrap();
        assert!(packed.base64.len() <= 100_000 && packed.steps > 1);
        let grid = Grid::of(&values);
        let codes: Vec<u16> = values.iter().map(|v| grid.code(v)).collect();
        let highest = bins(&codes, packed.steps, |a, b| a.max(b));
        assert_eq!(highest.iter().max(), codes.iter().max());
        assert_eq!(highest[123_456 / packed.steps], 60_000);
    }

    proptest! {
        #[test]
        fn a_value_comes_back_within_a_step(
            values in proptest::collection::vec(proptest::option::of(-1e12f64..1e12), 1..50),
        ) {
            prop_assume!(values.iter().any(Option::is_some));
            let values: StepValues = values.into_iter().collect();
            let grid = Grid::of(&values);
            for value in values.iter() {
                match value {
                    None => prop_assert_eq!(grid.code(value), MISSING),
                    Some(value) => {
                        let back = grid.min + f64::from(grid.code(Some(value))) * grid.step;
                        prop_assert!((back - value).abs() <= grid.step, "{value} {back} {grid:?}");
                    }
                }
            }
        }
    }
}
