//! The result folder: what is in it, and how it is written and read.
//!
//! | file | what |
//! |---|---|
//! | `study.toml` | the study as run, overrides applied |
//! | `plan.json` | [`Plan`]: scenarios, factors, seeds, runs, views |
//! | `runs.parquet` | [`Table`]: a row per run, flow and queue |
//! | `series.parquet` | [`Series`]: time series of every flow and queue |
//! | `claims.json` | [`ClaimReport`] |
//! | `machine.json` | [`Machine`] |

mod model;

pub use model::{
    Check, ClaimReport, ClaimResult, Estimate, Factor, FailedRun, Kind, Machine, MetricColumn,
    Miss, Plan, PlannedFlow, PlannedQueue, PlannedRun, PlannedScenario, Results, Row, Series,
    SeriesColumn, Table, Verdict, View, ViewKind, Where,
};
