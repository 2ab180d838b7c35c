//! Runs a study: in parallel, in shards, and on from where a kill stopped it.
//!
//! Every finished run is appended to a journal. When all are there, they are sorted by position and
//! become the tables of the result folder; so the tables do not depend on threads, shards or kills.

mod execute;

#[cfg(test)]
mod tests;

pub use crate::shape::shape;
pub use crate::shard::Shard;

use std::any::Any;
use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use crate::claims;
use crate::engine;
use crate::results::{
    CLAIMS, ClaimReport, FailedRun, Folder, FolderWriter, Journal, Machine, PLAN, Plan,
    ResultsError, Row, RunResult, STUDY, StoreWriter, Whole, table,
};
use crate::study::Study;
use execute::{Named, execute};
use sojourn_file::StudyError;

/// How a study is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many runs at the same time; with `None` as many as there are cores.
    pub jobs: Option<NonZero<usize>>,
    pub shard: Shard,
    /// The result folder; it is made if it is not there.
    pub out: PathBuf,
    /// The command as given, for `machine.json`.
    pub command: Vec<String>,
}

impl Options {
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self { jobs: None, shard: Shard::WHOLE, out: out.into(), command: Vec::new() }
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
        "{folder} holds results of another study, or of this one with other settings; \
         choose another folder with --out"
    )]
    OtherStudy { folder: PathBuf },
    #[error("{path} is in use: another process runs this study into the same folder")]
    Busy { path: PathBuf },
    #[error("{path}: {done} runs are finished and kept, then: {source}")]
    Stopped { path: PathBuf, done: usize, source: io::Error },
    #[error("no threads to run in: {0}")]
    Threads(String),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("nothing to join: no folder is given")]
    NoFolders,
    #[error("{folder}: is one of the folders to join; choose another with --out")]
    JoinedIntoItself { folder: PathBuf },
    #[error(
        "{folder} holds a {STUDY} and no results; it would be written over: choose another folder \
         with --out"
    )]
    OwnStudy { folder: PathBuf },
    #[error(transparent)]
    Study(#[from] StudyError),
    #[error("this machine can't run it: {0}")]
    Incapable(String),
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
    let began = Instant::now();
    let plan = study.plan();
    study.scenarios.iter().try_for_each(engine::prepare).map_err(RunError::Incapable)?;
    let label = options.shard.label();
    let folder = make_folder(Folder::new(&options.out), &label, &plan, study.text())?;
    let journal_path = folder.path(&format!("journal{label}.bin"));

    let mine: Vec<u32> =
        (0..plan.runs.len() as u32).filter(|run| options.shard.has(*run)).collect();
    let is_finished = folder.has_tables()? && !journal_path.exists();
    let mut machine = Machine::here(options);
    let failed = if is_finished {
        let done = Progress { total: mine.len(), done: mine.len(), resumed: mine.len(), failed: 0 };
        machine.resumed = mine.len();
        progress(done);
        Vec::new()
    } else {
        let mut journal = open_journal(&journal_path, &plan)?;
        machine.resumed = journal.records().runs().count();
        let failed = work(study, &plan, options, &mine, &mut journal, &journal_path, progress)?;
        let stopped = |source| RunError::Stopped {
            path: folder.tables().runs,
            done: mine.len() - failed.len(),
            source,
        };
        let tables = write_tables(&plan, &mine, &mut journal, &folder).map_err(stopped)?;
        folder.publish(tables)?;
        if failed.is_empty() {
            // The tables have everything. Removing the file also removes the lock.
            std::fs::remove_file(&journal_path)
                .map_err(|source| RunError::Io { path: journal_path, source })?;
        }
        failed
    };

    machine.wall_s = began.elapsed().as_secs_f64();
    machine.failed.clone_from(&failed);
    let progress = Progress {
        total: mine.len(),
        done: mine.len() - failed.len(),
        resumed: machine.resumed,
        failed: failed.len(),
    };
    folder.write_json(&format!("machine{label}.json"), &machine)?;
    let claims = match options.shard.is_whole() {
        true => Some(check_claims(&folder, &study.claims, &plan)?),
        false => None,
    };
    Ok(Summary { folder: options.out.clone(), progress, failed, claims, wall_s: machine.wall_s })
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
    if folders.iter().any(|folder| is_same(folder, out)) {
        return Err(RunError::JoinedIntoItself { folder: out.to_owned() });
    }
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); plan.runs.len()];
    let mut parts = Vec::new();
    // The part that has each run.
    let mut part_of: Vec<Option<usize>> = vec![None; plan.runs.len()];
    for path in folders {
        let folder = Folder::new(path);
        if folder.plan()?.digest != plan.digest {
            return Err(RunError::OtherStudy { folder: path.clone() });
        }
        for part in folder.parts()? {
            for of_run in part.rows(&plan)?.chunk_by(|a, b| a.run == b.run) {
                let run = of_run[0].run as usize;
                if part_of.get(run) == Some(&None) {
                    part_of[run] = Some(parts.len());
                    rows[run] = of_run.to_vec();
                }
            }
            parts.push(part.open(&plan)?);
        }
    }
    let text = first.optional_text(STUDY)?.ok_or_else(|| RunError::Io {
        path: first.path(STUDY),
        source: io::ErrorKind::NotFound.into(),
    })?;
    let folder = make_folder(Folder::new(out), "", &plan, &text)?;

    let tables = folder.tables();
    let io_error = |source| RunError::Io { path: tables.runs.clone(), source };
    let mut writer = StoreWriter::create(&tables, &plan).map_err(io_error)?;
    for (run, rows) in rows.into_iter().enumerate() {
        if let Some(part) = part_of[run] {
            let (series, delays) =
                (parts[part].series(run as u32)?, parts[part].delays(run as u32)?);
            let result = RunResult { run: run as u32, rows, series, delays };
            writer.add(&plan, &result).map_err(io_error)?;
        }
    }
    folder.publish(writer.finish().map_err(io_error)?)?;
    let missing = part_of.iter().filter(|part| part.is_none()).count();

    let claims = check_claims(&folder, &Study::claims_of(&text, &plan)?, &plan)?;
    let total = plan.runs.len();
    let mut machine = Machine::here(&Options::new(out));
    machine.wall_s = began.elapsed().as_secs_f64();
    machine.resumed = total - missing;
    folder.write_json("machine.json", &machine)?;
    Ok(Summary {
        folder: out.to_owned(),
        progress: Progress { total, done: total - missing, resumed: total - missing, failed: 0 },
        failed: Vec::new(),
        claims: Some(claims),
        wall_s: machine.wall_s,
    })
}

/// Makes a result folder, or checks that the folder is one of this plan. Claims and figures may
/// have changed since.
fn make_folder(
    folder: Folder,
    label: &str,
    plan: &Plan,
    text: &str,
) -> Result<FolderWriter, RunError> {
    let path: &Path = folder.as_ref();
    let error = |source| RunError::Io { path: path.to_owned(), source };
    match folder.plan() {
        Ok(old) if old.digest != plan.digest => {
            return Err(RunError::OtherStudy { folder: path.to_owned() });
        }
        Err(ResultsError::NoPlan { .. }) if folder.path(STUDY).exists() => {
            return Err(RunError::OwnStudy { folder: path.to_owned() });
        }
        Ok(_) | Err(ResultsError::NoPlan { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    std::fs::create_dir_all(path).map_err(error)?;
    let writer = FolderWriter::new(folder, label);
    // The plan comes first: it marks the folder as one of results.
    writer.write_json(PLAN, plan)?;
    writer.write(STUDY, text.as_bytes())?;
    Ok(writer)
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn open_journal(path: &Path, plan: &Plan) -> Result<Journal, RunError> {
    Journal::open(path, &plan.digest).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => RunError::Busy { path: path.to_owned() },
        io::ErrorKind::InvalidData => {
            let folder = path.parent().unwrap_or(path).to_owned();
            RunError::OtherStudy { folder }
        }
        _ => RunError::Io { path: path.to_owned(), source },
    })
}

/// Data that the threads share.
struct Shared<'a> {
    journal: &'a mut Journal,
    progress: Progress,
    failed: Vec<FailedRun>,
    broken: Option<io::Error>,
}

fn work(
    study: &Study,
    plan: &Plan,
    options: &Options,
    mine: &[u32],
    journal: &mut Journal,
    path: &Path,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<FailedRun>, RunError> {
    let mut is_done = vec![false; plan.runs.len()];
    for run in journal.records().runs() {
        if let Some(is_done) = is_done.get_mut(run as usize) {
            *is_done = true;
        }
    }
    let pending: Vec<u32> = mine.iter().copied().filter(|run| !is_done[*run as usize]).collect();
    let done = mine.len() - pending.len();
    let start = Progress { total: mine.len(), done, resumed: done, failed: 0 };
    progress(start);
    let shared = Mutex::new(Shared { journal, progress: start, failed: Vec::new(), broken: None });
    let is_stopped = AtomicBool::new(false);
    let pool = ThreadPoolBuilder::new()
        .num_threads(options.jobs.map_or(0, NonZero::get))
        .build()
        .map_err(|error| RunError::Threads(error.to_string()))?;
    let one = |run: &u32| {
        if is_stopped.load(Ordering::Relaxed) {
            return;
        }
        let planned = &plan.runs[*run as usize];
        let named = Named { run: *run, scenario: planned.scenario, seed: planned.seed };
        let result = attempt(study, plan, named);
        // Encoded before the lock is taken.
        let result = result.and_then(|result| result.encode().map_err(|error| error.to_string()));
        let mut shared = locked(&shared);
        if shared.broken.is_some() {
            return;
        }
        match result {
            Ok(bytes) => match shared.journal.append(*run, &bytes) {
                Ok(()) => shared.progress.done += 1,
                Err(error) => {
                    is_stopped.store(true, Ordering::Relaxed);
                    shared.broken.get_or_insert(error);
                    return;
                }
            },
            Err(problem) => {
                shared.progress.failed += 1;
                shared.failed.push(FailedRun { run: *run, problem });
            }
        }
        progress(shared.progress);
    };
    let runs_alone = |run: &u32| {
        engine::runs_alone(&study.scenarios[plan.runs[*run as usize].scenario as usize])
    };
    let (alone, beside): (Vec<u32>, Vec<u32>) = pending.into_iter().partition(runs_alone);
    // One at a time in the order of the plan, because runs are long and differ in length.
    pool.install(|| beside.par_iter().with_max_len(1).for_each(one));
    alone.iter().for_each(one);
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(source) = shared.broken {
        return Err(RunError::Stopped {
            path: path.to_owned(),
            done: shared.progress.done,
            source,
        });
    }
    shared.journal.sync().map_err(|source| RunError::Io { path: path.to_owned(), source })?;
    let mut failed = shared.failed;
    failed.sort_by_key(|failed| failed.run);
    Ok(failed)
}

/// If one run panics, the others go on.
fn attempt(study: &Study, plan: &Plan, named: Named) -> Result<RunResult, String> {
    let scenario = &study.scenarios[named.scenario as usize];
    catch_unwind(AssertUnwindSafe(|| {
        execute(scenario, study.address(named.seed), named, &plan.metrics)
    }))
    .unwrap_or_else(|panic| Err(format!("the model panicked: {}", panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
}

/// A thread that panicked while holding the lock did so in the progress callback, after its work.
fn locked<'a, T>(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_tables(
    plan: &Plan,
    mine: &[u32],
    journal: &mut Journal,
    folder: &FolderWriter,
) -> io::Result<[Whole; 3]> {
    let mut writer = StoreWriter::create(&folder.tables(), plan)?;
    for run in mine {
        if let Some(result) = journal.read(*run)? {
            writer.add(plan, &result)?;
        }
    }
    writer.finish()
}

fn check_claims(
    folder: &FolderWriter,
    claims: &[claims::Claim],
    plan: &Plan,
) -> Result<ClaimReport, RunError> {
    let (rows, _) = folder.folder().rows(plan)?;
    let mut parts = folder.folder().reader(plan)?;
    let table = table(plan, rows);
    let report = claims::check(claims, plan, &table, &mut |run| parts.series(run))?;
    folder.write_json(CLAIMS, &report)?;
    Ok(report)
}

impl Machine {
    fn here(options: &Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            sojourn: env!("CARGO_PKG_VERSION").to_owned(),
            model: crate::study::model_version(),
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cores,
            jobs: options.jobs.map_or(cores, NonZero::get),
            command: options.command.clone(),
            wall_s: 0.0,
            resumed: 0,
            failed: Vec::new(),
        }
    }
}
