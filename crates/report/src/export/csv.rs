//! Comma-separated values (RFC 4180), a header line first.

use sojourn_study::results::{Results, Series, StepValues};

/// A row for each run, flow and queue: run, its name, scenario, seed, factors, kind, name, metrics.
pub fn runs_csv(results: &Results) -> String {
    let plan = &results.plan;
    let mut out = String::new();
    let fixed = ["run", "id", "scenario", "seed"];
    let factors = plan.factors.iter().map(|factor| factor.name.as_str());
    let metrics = results.table.metrics.iter().map(String::as_str);
    let of = ["kind", "name", "digest"];
    line(&mut out, fixed.into_iter().chain(factors).chain(of).chain(metrics).map(str::to_owned));
    for row in &results.table.rows {
        let id = plan.runs.get(row.run as usize).map_or(String::new(), |run| run.id.to_string());
        let values = plan.scenarios.get(row.scenario as usize);
        let factors = values
            .map_or(&[][..], |scenario| &scenario.factors[..])
            .iter()
            .map(|value| value.to_string());
        let fixed =
            [row.run.to_string(), id, row.scenario.to_string(), row.seed.to_string()].into_iter();
        let of = [row.kind.name().to_owned(), row.name.clone(), row.digest.clone()];
        line(&mut out, fixed.chain(factors).chain(of).chain(row.values.iter().map(text)));
    }
    out
}

/// A row for each step of each flow and queue of a run: time, kind, name, phase, columns.
pub fn series_csv(series: &[Series]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for column in series.iter().flat_map(|one| &one.columns) {
        if column.name != "phase" && !columns.contains(&column.name.as_str()) {
            columns.push(&column.name);
        }
    }
    let mut out = String::new();
    let fixed = ["t_s", "kind", "name", "phase"];
    line(&mut out, fixed.into_iter().chain(columns.iter().copied()).map(str::to_owned));
    for one in series {
        let values: Vec<Option<&StepValues>> =
            columns.iter().map(|column| one.column(column)).collect();
        for (at, t_s) in one.t_s.iter().enumerate() {
            let phase = one.phase.get(at).map(|phase| phase.to_string()).unwrap_or_default();
            let fixed = [number(*t_s), one.kind.name().to_owned(), one.name.clone(), phase];
            let row = values.iter().map(|column| text(column.and_then(|c| c.get(at))));
            line(&mut out, fixed.into_iter().chain(row));
        }
    }
    out
}

fn text(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or(String::new(), number)
}

/// The shortest text that reads back to the same number.
fn number(value: f64) -> String {
    format!("{value}")
}

fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&cell);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_commas_are_quoted() {
        let mut out = String::new();
        line(&mut out, ["a,b", "say \"x\"", "plain"].map(str::to_owned).into_iter());
        assert_eq!(out, "\"a,b\",\"say \"\"x\"\"\",plain\r\n");
    }
}
