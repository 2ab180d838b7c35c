//! Runs a study: in parallel, in shards, and on from where a kill stopped it.
//!
//! Every finished run is appended to a journal, and the time series of a long one in pieces while it goes on. In the order of the plan, as far as all before
//! are there, runs are written into the tables of the result folder, which appear when they are complete; so the tables do not depend on threads, shards or kills.

mod execute;
mod folder;
mod recorder;
mod tables;

#[cfg(test)]
mod tests;

pub use crate::shape::shape;
pub use crate::shard::Shard;
use execute::{Computed, compute_in_pieces};
pub use execute::{Fault, compute, simulate};
pub use folder::default_folder;
pub use recorder::{Recorded, Recorder};

use std::fmt;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use sojourn_core::Time;

use crate::engine;
use crate::results::{
    ClaimReport, FailedRun, Folder, FullGroup, Machine, Piece, Record, ResultsError, RunResult,
    RunRows, STUDY, SeriesRows, StoreWriter, TableRows, is_of_machine,
};
use crate::study::Study;
use folder::{check_claims, make_folder};
use sojourn_file::StudyError;

/// Asks a study that is being run to stop; clones ask the same.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    own: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
    other: Option<&'static AtomicBool>,
}

impl Stop {
    /// Asked when `flag` is set, too, which also an engine may look at to end the run that is under way.
    pub fn watching(flag: &'static AtomicBool) -> Self {
        Self { other: Some(flag), ..Self::default() }
    }

    /// No more runs are begun; those under way end and are kept.
    pub fn ask(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Those under way end, too, at the next row of their time series, and count as not done.
    pub fn ask_at_once(&self) {
        self.ask();
        self.at_once.store(true, Ordering::Relaxed);
    }

    fn is_asked(&self) -> bool {
        self.own.load(Ordering::Relaxed)
            || self.other.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// How a study is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many runs at the same time, at most 1 024; with `None` as many as there are cores.
    pub jobs: Option<NonZero<usize>>,
    pub shard: Shard,
    /// The result folder; it is made if it is not there.
    pub out: PathBuf,
    /// The command as given, for `machine.json`.
    pub command: Vec<String>,
    /// Guest kernels that take part, for `machine.json`.
    pub kernels: Vec<String>,
    pub stop: Stop,
}

impl Options {
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            jobs: None,
            shard: Shard::WHOLE,
            out: out.into(),
            command: Vec::new(),
            kernels: Vec::new(),
            stop: Stop::default(),
        }
    }
}

/// Reported after every run, from the thread in which it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs of this shard.
    pub total: usize,
    /// Of them, with a result; those of an earlier start included.
    pub done: usize,
    /// Of them, from an earlier start.
    pub resumed: usize,
    pub failed: usize,
}

/// The outcome.
#[derive(Clone, Debug)]
pub struct Summary {
    pub folder: PathBuf,
    pub progress: Progress,
    /// Runs that broke an invariant or panicked. They are tried again by the next start.
    pub failed: Vec<FailedRun>,
    /// Runs of this start that have a result, and what went wrong when they were over.
    pub troubled: Vec<FailedRun>,
    /// `None` for a shard: its claims are checked when the shards are joined.
    pub claims: Option<ClaimReport>,
    pub wall_s: f64,
}

/// Why a study could not be run, or not to its end. What was finished is kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{folder} holds results of another study, or of this one with other settings or another build of a kernel; \
         choose another folder"
    )]
    OtherStudy { folder: PathBuf },
    #[error(
        "{folder} holds results of this study with another build of a kernel that it names; choose another folder"
    )]
    OtherKernel { folder: PathBuf },
    #[error(
        "{folder} was joined from shards that lack {missing} of its {total} runs, and `run` adds none to it; join it \
         again with the folders of all shards, or choose another folder"
    )]
    JoinedInPart { folder: PathBuf, missing: usize, total: usize },
    #[error("{path} is in use: another process runs this study into the same folder")]
    Busy { path: PathBuf },
    #[error("{path}: {} finished and kept, then: {source}", runs_are(*.done))]
    Stopped { path: PathBuf, done: usize, source: io::Error },
    #[error(
        "stopped: {done} of {total} runs are finished and kept; the same call goes on from there{}",
        .stopped.as_ref().map(|run| format!("; {run}")).unwrap_or_default()
    )]
    Interrupted { done: usize, total: usize, stopped: Option<StoppedRun> },
    #[error("what was handed in as run {run} is not its result: {problem}")]
    NotItsResult { run: u32, problem: String },
    #[error("no threads to run in: {0}")]
    Threads(String),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error(
        "{folder} holds results of another study than {first}, or of it with other settings; the folders to join are \
         shards of one"
    )]
    OtherShard { folder: PathBuf, first: PathBuf },
    #[error("nothing to join: no folder is given")]
    NoFolders,
    #[error("{folder}: is one of the folders to join; choose another with --out")]
    JoinedIntoItself { folder: PathBuf },
    #[error(
        "{folder} holds a {STUDY} and no results; it would be written over: choose another folder"
    )]
    OwnStudy { folder: PathBuf },
    #[error(transparent)]
    Study(#[from] StudyError),
    #[error("this machine can't run it: {0}")]
    Incapable(String),
    #[error(
        "stopped before a run had begun; the same call begins again, and what an earlier one finished is kept"
    )]
    NotBegun,
}

fn runs_are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "run is" } else { "runs are" })
}

/// A run that was stopped before its time, and counts as not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedRun {
    pub run: u32,
    pub at: Time,
    /// A result folder of this run alone: what it had measured until then.
    pub folder: PathBuf,
}

impl fmt::Display for StoppedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, at, folder) = (self.run, self.at.as_secs_f64(), self.folder.display());
        write!(f, "what run {run} measured in its first {at:.1} s is in {folder}")
    }
}

impl RunError {
    /// Whether this machine is to blame (a full disk, no permission) and not what was given.
    pub fn is_of_machine(&self) -> bool {
        match self {
            Self::Results(error) => error.is_of_machine(),
            Self::Io { source, .. } => is_of_machine(source),
            Self::Study(_)
            | Self::OtherStudy { .. }
            | Self::OtherKernel { .. }
            | Self::JoinedInPart { .. }
            | Self::OtherShard { .. }
            | Self::NoFolders
            | Self::JoinedIntoItself { .. }
            | Self::OwnStudy { .. } => false,
            Self::Busy { .. }
            | Self::Stopped { .. }
            | Self::Interrupted { .. }
            | Self::NotItsResult { .. }
            | Self::Threads(_)
            | Self::Incapable(_)
            | Self::NotBegun => true,
        }
    }
}

/// Runs what is not done yet, and writes the result folder.
///
/// # Errors
/// The machine lacks what an engine needs; the folder cannot be written to, holds something else or is
/// in use; a full disk. What was finished before stays readable, and the same call goes on from there.
pub fn run(
    study: &Study,
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Summary, RunError> {
    let plan = study.plan();
    // Others are simulated, for which nothing is to be prepared.
    let with_engine = (0..plan.scenarios.len()).filter(|at| plan.scenarios[*at].engine.is_some());
    let mut with_engine = with_engine.filter_map(|at| study.scenarios.get(at));
    let prepared = with_engine.try_for_each(|one| engine::prepare(&one));
    prepared.map_err(|problem| match options.stop.is_asked() {
        true => RunError::NotBegun,
        false => RunError::Incapable(problem),
    })?;
    let mut recorder = Recorder::open(study, options)?;
    progress(recorder.progress());
    work(study, options, &mut recorder, progress)?;
    recorder.finish()
}

/// Joins the result folders of shards into one, and checks the claims. Runs that are missing in the
/// shards are missing in the result too.
///
/// # Errors
/// The folders are of different studies, `out` is one of them, or a file cannot be read or written.
pub fn join(folders: &[PathBuf], out: &Path) -> Result<Summary, RunError> {
    let began = Instant::now();
    let first = Folder::new(folders.first().ok_or(RunError::NoFolders)?);
    let plan = first.plan()?;
    let same_plan = first.plan_text()?;
    if folders.iter().any(|folder| is_same(folder, out)) {
        return Err(RunError::JoinedIntoItself { folder: out.to_owned() });
    }
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    for path in folders {
        let folder = Folder::new(path);
        // Each shard has the whole plan, mostly with the same bytes. It is long, so it is parsed once.
        if folder.plan_text()? != same_plan && folder.plan()?.digest != plan.digest {
            return Err(RunError::OtherShard { folder: path.clone(), first: folders[0].clone() });
        }
        for part in folder.parts()? {
            rows.push(part.rows(&plan, None)?);
            parts.push(part.open(&plan)?);
        }
    }
    // A run that an earlier part has is taken from there.
    let mut runs = RunRows::of(rows, &plan);
    let text = first.optional_text(STUDY)?.ok_or_else(|| RunError::Io {
        path: first.path(STUDY),
        source: io::ErrorKind::NotFound.into(),
    })?;
    let folder = make_folder(Folder::new(out), "", &plan, &text)?;

    let tables = folder.tables();
    let io_error = |source| RunError::Io { path: tables.runs.clone(), source };
    let mut writer = StoreWriter::create(&tables, &plan).map_err(io_error)?;
    let mut done = 0;
    while let Some((part, rows)) = runs.next_of_part()? {
        let Some(run) = rows.first().map(|row| row.run) else { continue };
        let delays = parts[part].delays(run)?;
        // As they stand in the part, so that the table does not depend on how runs were shared out.
        parts[part].each_series(run, |piece| {
            writer.add_series(piece.iter().map(SeriesRows::from).collect())
        })?;
        let result = RunResult { run, pieces: 0, rows, series: Vec::new(), delays };
        writer.add(result.into()).map_err(io_error)?;
        done += 1;
    }
    let _held = folder.hold();
    folder.publish(writer.finish().map_err(io_error)?)?;

    let claims = check_claims(&folder, &Study::claims_of(&text, &plan)?, &plan)?;
    let total = plan.runs.len();
    let mut machine = Machine::here(&Options::new(out));
    machine.wall_s = began.elapsed().as_secs_f64();
    machine.resumed = done;
    folder.write_json("machine.json", &machine)?;
    Ok(Summary {
        folder: out.to_owned(),
        progress: Progress { total, done, resumed: done, failed: 0 },
        failed: Vec::new(),
        troubled: Vec::new(),
        claims: Some(claims),
        wall_s: machine.wall_s,
    })
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Data that the threads share.
struct Shared<'a> {
    recorder: &'a mut Recorder,
    broken: Option<RunError>,
}

/// However many jobs are asked for: each has a stack, and beyond the cores of a machine none is of use.
const MOST_THREADS: usize = 1024;

/// Runs what is pending, one after the other in the order of the plan, because runs are long and
/// differ in length.
fn work(
    study: &Study,
    options: &Options,
    recorder: &mut Recorder,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), RunError> {
    let pending: Vec<u32> = recorder.pending(0).collect();
    if pending.is_empty() {
        return Ok(());
    }
    let plan = Arc::clone(recorder.plan());
    let shared = Mutex::new(Shared { recorder, broken: None });
    let is_stopped = AtomicBool::new(false);
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = options.jobs.map_or_else(cores, NonZero::get);
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads.min(pending.len()).min(MOST_THREADS))
        .build()
        .map_err(|error| RunError::Threads(error.to_string()))?;
    let one = |run: &u32| {
        if is_stopped.load(Ordering::Relaxed) || options.stop.is_asked() {
            return;
        }
        // What takes long is done without the lock: pieces and the result become bytes and rows before it is taken,
        // and full row groups of the tables columns after it is given back.
        let keep = |piece: &Piece| {
            let record = Record::written(|bytes| piece.write(bytes));
            let mut shared = locked(&shared);
            if shared.broken.is_none()
                && let Err(error) = shared.recorder.append_piece(record)
            {
                is_stopped.store(true, Ordering::Relaxed);
                shared.broken = Some(error);
            }
        };
        let at_once = Arc::clone(&options.stop.at_once);
        let computed = engine::watched(
            move || at_once.load(Ordering::Relaxed),
            || compute_in_pieces(study, &plan, *run, &keep),
        );
        let computed = computed.and_then(|computed| {
            let Computed { result, stopped_at } = computed;
            let record = Record::written(|bytes| result.write(bytes));
            Ok((record.map_err(|error| error.to_string())?, TableRows::from(result), stopped_at))
        });
        let mut held = locked(&shared);
        if held.broken.is_some() {
            return;
        }
        let kept = match computed {
            Ok((record, rows, None)) => held.recorder.append(&record, rows),
            Ok((_, rows, Some(at))) => held.recorder.set_aside(rows, at).map(|()| Vec::new()),
            // It ended because it was asked to, or the next start will say what is wrong with it.
            Err(_) if options.stop.is_asked() => return,
            Err(problem) => {
                held.recorder.give_up(*run, problem);
                Ok(Vec::new())
            }
        };
        let full = match kept {
            Ok(full) => full,
            Err(error) => {
                is_stopped.store(true, Ordering::Relaxed);
                held.broken = Some(error);
                return;
            }
        };
        progress(held.recorder.progress());
        drop(held);
        if !full.is_empty() {
            let encoded = full.into_iter().map(FullGroup::encode).collect();
            locked(&shared).recorder.put_groups(encoded);
        }
    };
    let runs_alone = |run: &u32| {
        let scenario = plan.runs[*run as usize].scenario as usize;
        plan.scenarios[scenario].engine.is_some()
            && study.scenarios.get(scenario).is_some_and(|one| engine::runs_alone(&one))
    };
    let (alone, beside): (Vec<u32>, Vec<u32>) = pending.into_iter().partition(runs_alone);
    // In the order of the plan, in which the tables are written.
    let next = AtomicUsize::new(0);
    pool.broadcast(|_| {
        while let Some(run) = beside.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(run);
        }
    });
    alone.iter().for_each(one);
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.broken {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// A thread that panicked while holding the lock did so in the progress callback, after its work.
fn locked<'a, T>(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
