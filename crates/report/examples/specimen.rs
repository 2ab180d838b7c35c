//! Writes pages of made-up results for the browser tests: `specimen FOLDER`.

#[path = "../tests/specimen/mod.rs"]
mod specimen;

use std::path::PathBuf;
use std::sync::Arc;

use sojourn_report::{Options, ReadRuns, compare, export, html};
use sojourn_study::results::{Delays, Kind, Series, SeriesColumn};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&folder)?;
    let results = specimen::results();
    std::fs::write(
        folder.join("report.html"),
        html(&results, &mut specimen::Made, &Options::default()),
    )?;

    let series = specimen::series(0).map_err(std::io::Error::other)?;
    std::fs::write(folder.join("run.flent.gz"), export::flent(&results, 0, &series))?;
    std::fs::write(folder.join("iperf3.json"), export::iperf3(&results, 0, &series))?;
    std::fs::write(folder.join("runs.csv"), export::runs_csv(&results))?;
    std::fs::write(folder.join("series.csv"), export::series_csv(&series))?;

    let mut changed = specimen::results();
    changed.folder = "results/router-changed".into();
    let column = changed.table.metrics.iter().position(|metric| metric == "rtt_p95_ms");
    for row in changed.table.rows.iter_mut().filter(|row| row.scenario == 4) {
        if let Some(column) = column {
            let value = row.values.get(column).map(|value| value * 1.5);
            row.values.set(column, value);
        }
    }
    std::fs::write(folder.join("compare.html"), compare::compare(&results, &changed).html())?;

    let mut interrupted = specimen::results();
    interrupted.claims = None;
    interrupted.machine = None;
    interrupted.missing = (37..60).collect();
    interrupted.table.rows.retain(|row| row.run < 37);
    std::fs::write(
        folder.join("interrupted.html"),
        html(&interrupted, &mut specimen::Made, &Options::default()),
    )?;

    std::fs::write(
        folder.join("hostile.html"),
        html(&specimen::hostile(), &mut specimen::Hostile, &Options::default()),
    )?;

    let mut long = specimen::results();
    Arc::make_mut(&mut long.plan.scenarios).truncate(1);
    Arc::make_mut(&mut long.plan.runs).truncate(1);
    long.table.rows.retain(|row| row.run == 0);
    long.claims = None;
    std::fs::write(folder.join("million.html"), html(&long, &mut Million, &Options::default()))?;
    Ok(())
}

/// A queue at every millisecond of a quarter of an hour, with one peak.
struct Million;

impl ReadRuns for Million {
    fn series(&mut self, _run: u32) -> Result<Vec<Series>, String> {
        let mut noise = specimen::Noise(9);
        let mut level = 50.0f64;
        let values = (0..1_000_000)
            .map(|at| {
                level = (level + (noise.next() - 0.5) * 3.0).clamp(0.0, 100.0);
                Some(if at == 654_321 { 1000.0 } else { level.round() })
            })
            .collect();
        Ok(vec![Series {
            run: 0,
            kind: Kind::Queue,
            name: "bottleneck".into(),
            t_s: (1..=1_000_000).map(|at| f64::from(at) * 0.001).collect(),
            columns: vec![SeriesColumn { name: "queue_peak_pkts".into(), values }],
            phase: vec![],
        }])
    }

    fn delays(&mut self, _run: u32) -> Result<Vec<Delays>, String> {
        Ok(vec![])
    }
}
