//! The result folder: what is in it, and how it is written and read.
//!
//! | file | what |
//! |---|---|
//! | `study.toml` | the study as run, overrides applied |
//! | `plan.json` | [`Plan`]: scenarios, factors, seeds, runs, views |
//! | `runs.parquet` | [`Table`]: a row per run, flow and queue |
//! | `series.parquet` | [`Series`]: time series of every flow and queue |
//! | `delays.parquet` | [`Delays`]: how often each value of a delay was measured |
//! | `claims.json` | [`ClaimReport`] |
//! | `machine.json` | [`Machine`] |
//! | `SHA256SUMS` | the checksum of every file above, held against what is read of it |
//! | `journal.bin` | runs that are finished while others are not; gone in the end |
//!
//! A shard adds `-1-of-3` to the names of its tables, its journal, its `machine.json` and its
//! `SHA256SUMS`.

mod buckets;
mod checksums;
mod chunk;
mod codec;
mod column;
mod dictionary;
mod files;
mod folder;
mod frame;
mod hybrid;
mod journal;
mod model;
mod numbers;
mod rows;
mod series_rows;
mod step_values;
mod store;
mod values;

pub use buckets::Bucket;
pub(crate) use codec::Piece;
pub use codec::RunResult;
pub(crate) use files::{CLAIMS, PLAN, STUDY};
pub use files::{ResultsError, is_of_machine};
pub(crate) use folder::FolderWriter;
pub use folder::{Folder, Reader, RunRows};
pub(crate) use journal::{Journal, Record};
pub(crate) use model::Common;
pub use model::{
    Axis, Cause, Check, ClaimReport, ClaimResult, CompletingPacket, Delays, Estimate, FailedRun,
    Freeze, Kind, LostPacket, Machine, MetricColumn, Miss, Plan, PlannedRun, PlannedScenario,
    Remark, RepairStep, Results, Row, Series, SeriesColumn, Table, Verdict, View, Where,
};
pub(crate) use rows::TableRows;
pub(crate) use series_rows::{FLOW_PLACES, LINK_PLACES, SeriesRows};
/// What the plan takes from the study file as it is.
pub use sojourn_file::numbers::Numbers;
pub use sojourn_file::plan::{Factor, PlannedFlow, PlannedQueue};
pub use sojourn_file::spec::ViewKind;
pub use step_values::StepValues;
pub(crate) use store::{EncodedGroup, FullGroup, StoreWriter, TablePaths, Whole};
pub use values::Values;
