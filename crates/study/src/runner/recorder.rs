//! Keeps the results of runs, whoever computes them: threads of this process or other machines.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sojourn_core::Time;

use super::folder::{check_claims, make_folder};
use super::tables::Tables;
use super::{Options, Progress, RunError, Shard, Stop, StoppedRun, Summary};
use crate::claims::Claim;
use crate::digest::Digest;
use crate::results::{
    EncodedGroup, FailedRun, Folder, FolderWriter, FullGroup, Journal, Kind, Machine, Plan, Record,
    RunResult, STUDY, StoreWriter, TableRows,
};
use crate::study::Study;

/// A result folder while its runs are being done. Each result is on the disk when [`Recorder::keep`]
/// returns, and counts once however often it comes.
pub struct Recorder {
    plan: Arc<Plan>,
    claims: Vec<Claim>,
    out: PathBuf,
    folder: FolderWriter,
    shard: Shard,
    stop: Stop,
    /// Runs of this shard.
    mine: Vec<u32>,
    /// For each run of the plan, whether its result is there.
    is_done: Vec<bool>,
    progress: Progress,
    problems: BTreeMap<u32, String>,
    /// Of those with a result, what went wrong when they were over.
    troubled: BTreeMap<u32, String>,
    stopped: Option<StoppedRun>,
    /// `None` if the tables are complete already.
    journal: Option<(Journal, PathBuf)>,
    /// `None` if they are complete, or could not be written so far.
    tables: Option<Tables>,
    machine: Machine,
    began: Instant,
}

/// The folder in a result folder for a run that was stopped before its time.
const STOPPED: &str = "stopped";

/// What became of a result that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    New,
    /// The run has a result already, and this one was left out.
    Known,
}

impl Recorder {
    /// Makes the result folder, or goes on with it.
    ///
    /// # Errors
    /// The folder cannot be written to, holds something else or is in use.
    pub fn open(study: &Study, options: &Options) -> Result<Self, RunError> {
        let began = Instant::now();
        let plan = study.plan();
        let label = options.shard.label();
        let folder = make_folder(Folder::new(&options.out), &label, &plan, study.text())?;
        let mine: Vec<u32> =
            (0..plan.runs.len() as u32).filter(|run| options.shard.has(*run)).collect();
        let path = folder.path(&format!("journal{label}.bin"));
        let is_finished = folder.has_tables()? && !path.exists();
        if is_finished && options.shard.is_whole() {
            check_whole(folder.folder(), &plan)?;
        }
        let mut is_done = vec![is_finished; plan.runs.len()];
        let journal = match is_finished {
            true => None,
            false => {
                let _held = folder.hold();
                Some((open_journal(&path, &plan)?, path))
            }
        };
        for run in journal.iter().flat_map(|(journal, _)| journal.records().runs()) {
            if let Some(is_done) = is_done.get_mut(run as usize) {
                *is_done = true;
            }
        }
        let done = mine.iter().filter(|run| is_done[**run as usize]).count();
        let tables = journal.as_ref().and_then(|_| Tables::create(&folder.tables(), &plan).ok());
        let mut machine = Machine::here(options);
        machine.resumed = done;
        Ok(Self {
            plan: Arc::new(plan),
            claims: study.claims.clone(),
            out: options.out.clone(),
            folder,
            shard: options.shard,
            stop: options.stop.clone(),
            progress: Progress { total: mine.len(), done, resumed: done, failed: 0 },
            mine,
            is_done,
            problems: BTreeMap::new(),
            troubled: BTreeMap::new(),
            stopped: None,
            journal,
            tables,
            machine,
            began,
        })
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Runs without a result, in the order of the plan, from a position on.
    pub fn pending(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let from = self.mine.partition_point(|run| *run < first);
        self.mine[from..].iter().copied().filter(|run| !self.is_done[*run as usize])
    }

    /// Keeps the result of a run that another process computed, as [`RunResult::encode`] wrote it.
    ///
    /// # Errors
    /// The bytes are no result of this run, or cannot be written.
    pub fn keep(&mut self, run: u32, bytes: &[u8]) -> Result<Recorded, RunError> {
        let result = self.checked(run, bytes);
        let result = result.map_err(|problem| RunError::NotItsResult { run, problem })?;
        if self.is_done[run as usize] {
            return Ok(Recorded::Known);
        }
        let record = Record::of(bytes)
            .map_err(|error| RunError::NotItsResult { run, problem: error.to_string() })?;
        let groups = self.append(&record, result.into())?;
        self.put_groups(groups.into_iter().map(FullGroup::encode).collect());
        Ok(Recorded::New)
    }

    /// Notes that a run ended without a result. If one comes later, it is kept all the same.
    pub fn give_up(&mut self, run: u32, problem: String) {
        if self.is_done.get(run as usize) == Some(&false) {
            self.problems.insert(run, problem);
            self.progress.failed = self.problems.len();
        }
    }

    /// Keeps the result of a run that has none, which is written so. Returns row groups of the tables that became
    /// full: they have to be encoded, for which nobody needs to wait, and given to [`Recorder::put_groups`].
    pub(super) fn append(
        &mut self,
        record: &Record,
        rows: TableRows,
    ) -> Result<Vec<FullGroup>, RunError> {
        let run = rows.run;
        if let Some(trouble) = rows.trouble() {
            self.troubled.insert(run, trouble.to_owned());
        }
        self.write(|journal| journal.append(record))?;
        self.is_done[run as usize] = true;
        self.problems.remove(&run);
        self.progress.failed = self.problems.len();
        self.progress.done += 1;
        if let (Some(tables), Some((journal, _))) = (&mut self.tables, &mut self.journal) {
            let runs = (&self.mine[..], &self.is_done[..]);
            let added = tables.add(rows, record.len(), runs, journal);
            match added {
                Ok(groups) => return Ok(groups),
                // A full disk may have room for the results alone. In the end it is tried again.
                Err(_) => self.tables = None,
            }
        }
        Ok(Vec::new())
    }

    /// Takes in encoded row groups, in any order.
    pub(super) fn put_groups(&mut self, groups: io::Result<Vec<EncodedGroup>>) {
        let Some(tables) = &mut self.tables else { return };
        let put = groups.and_then(|groups| groups.into_iter().try_for_each(|one| tables.put(one)));
        // As above.
        if put.is_err() {
            self.tables = None;
        }
    }

    /// Keeps a piece of a run that goes on here.
    pub(super) fn append_piece(&mut self, piece: io::Result<Record>) -> Result<(), RunError> {
        self.write(|journal| journal.append(&piece?))
    }

    /// Keeps what a run had measured when it was stopped, in a result folder of its own. Of an earlier start's such run
    /// nothing stays.
    pub(super) fn set_aside(&mut self, rows: TableRows, at: Time) -> Result<(), RunError> {
        let folder = self.out.join(STOPPED);
        self.forget_stopped()?;
        let (run, mut plan) = (rows.run, Plan::clone(&self.plan));
        plan.title = format!("{}: run {run}, stopped after {:.1} s", plan.title, at.as_secs_f64());
        // Not to be taken for results of the study.
        plan.digest = Digest::of_json(&(&plan.digest, run, at.as_nanos())).to_string();
        let text = self.folder.folder().optional_text(STUDY)?.unwrap_or_default();
        let aside = make_folder(Folder::new(&folder), "", &plan, &text)?;
        let tables = aside.tables();
        let written = StoreWriter::create(&tables, &plan).and_then(|mut writer| {
            writer.add(rows)?;
            writer.finish()
        });
        aside.publish(written.map_err(|source| RunError::Io { path: tables.runs, source })?)?;
        self.stopped = Some(StoppedRun { run, at, folder });
        Ok(())
    }

    fn forget_stopped(&self) -> Result<(), RunError> {
        let path = self.out.join(STOPPED);
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RunError::Io { path, source })
            }
            _ => Ok(()),
        }
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut Journal) -> io::Result<()>,
    ) -> Result<(), RunError> {
        let Some((journal, path)) = &mut self.journal else { return Ok(()) };
        let done = self.progress.done;
        write(journal).map_err(|source| RunError::Stopped { path: path.clone(), done, source })
    }

    /// Writes the tables and checks the claims.
    ///
    /// # Errors
    /// Runs are missing because of [`Stop`], or the folder cannot be written to. What was kept stays
    /// readable.
    pub fn finish(mut self) -> Result<Summary, RunError> {
        let listed = |problems: &mut BTreeMap<u32, String>| -> Vec<FailedRun> {
            let problems = std::mem::take(problems).into_iter();
            problems.map(|(run, problem)| FailedRun { run, problem }).collect()
        };
        let _held = self.folder.hold();
        let was_complete = self.journal.is_none();
        let failed = listed(&mut self.problems);
        let troubled = listed(&mut self.troubled);
        if let Some((mut journal, path)) = self.journal.take() {
            let Progress { done, total, .. } = self.progress;
            // Otherwise it is gone in a moment, and the disk need not have all of it before.
            if done < total {
                journal.sync().map_err(|source| RunError::Io { path: path.clone(), source })?;
            }
            if done + failed.len() < total && self.stop.is_asked() {
                return Err(RunError::Interrupted { done, total, stopped: self.stopped });
            }
            let stopped = |source| RunError::Stopped {
                path: self.folder.tables().runs,
                done: self.progress.done,
                source,
            };
            let tables = match self.tables.take() {
                Some(tables) => Ok(tables),
                None => Tables::create(&self.folder.tables(), &self.plan),
            };
            let tables = tables.and_then(|tables| tables.finish(&self.mine, &mut journal));
            let tables = tables.map_err(stopped)?;
            self.folder.publish(tables)?;
            if done == total {
                // The tables have everything. Removing the file also removes the lock.
                std::fs::remove_file(&path).map_err(|source| RunError::Io { path, source })?;
                // The system frees its blocks when it is closed, which nothing has to wait for.
                let _ = std::thread::Builder::new().spawn(move || drop(journal));
                self.forget_stopped()?;
            }
        }
        self.machine.wall_s = self.began.elapsed().as_secs_f64();
        self.machine.failed.clone_from(&failed);
        let machine = format!("machine{}.json", self.shard.label());
        // Where nothing was left to do, it says who did it.
        if !(was_complete && self.folder.path(&machine).exists()) {
            self.folder.write_json(&machine, &self.machine)?;
        }
        let claims = match self.shard.is_whole() {
            true => Some(check_claims(&self.folder, &self.claims, &self.plan)?),
            false => None,
        };
        let (folder, wall_s) = (self.out, self.machine.wall_s);
        Ok(Summary { folder, progress: self.progress, failed, troubled, claims, wall_s })
    }

    /// The result, if the bytes are one of this run.
    fn checked(&self, run: u32, bytes: &[u8]) -> Result<RunResult, String> {
        let Some(planned) = self.plan.runs.get(run as usize) else {
            return Err(format!("the study has {} runs, counted from 0", self.plan.runs.len()));
        };
        if !self.shard.has(run) {
            return Err(format!("it is not of shard {}", self.shard));
        }
        let result = RunResult::decode(bytes).ok_or("these bytes are no result of a run")?;
        if result.pieces > 0 {
            return Err("its time series is not whole".to_owned());
        }
        if result.run != run {
            return Err(format!("this is the result of run {}", result.run));
        }
        let first = result.rows.first().ok_or("it has no rows")?;
        let is_of_run = result.rows.iter().all(|row| {
            (row.run, row.scenario, row.seed) == (run, planned.scenario, planned.seed)
                && row.values.len() == self.plan.metrics.len()
        });
        let is_of_series = result.series.iter().all(|series| series.run == run);
        let is_of_delays = result.delays.iter().all(|delays| delays.run == run);
        match first.kind == Kind::Run && is_of_run && is_of_series && is_of_delays {
            true => Ok(result),
            false => Err("its rows are of another run or of another version".to_owned()),
        }
    }
}

/// # Errors
/// The folder has no journal, and yet not all runs: it was joined from some of the shards.
fn check_whole(folder: &Folder, plan: &Plan) -> Result<(), RunError> {
    let total = plan.runs.len();
    let missing = total - folder.done()?.1.len();
    let folder = || AsRef::<Path>::as_ref(folder).to_owned();
    match missing {
        0 => Ok(()),
        _ => Err(RunError::JoinedInPart { folder: folder(), missing, total }),
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

impl Machine {
    pub(super) fn here(options: &Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            sojourn: env!("CARGO_PKG_VERSION").to_owned(),
            model: crate::study::model_version(),
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cores,
            jobs: options.jobs.map_or(cores, NonZero::get),
            kernels: options.kernels.clone(),
            command: options.command.clone(),
            wall_s: 0.0,
            resumed: 0,
            failed: Vec::new(),
        }
    }
}
