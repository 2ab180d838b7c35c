//! Reading a result folder, finished or not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::journal::Records;
use super::store::{self, RunReader, TablePaths};
use super::{Delays, Machine, Plan, Results, Row, Series};
use crate::shard::Shard;

pub(crate) const STUDY: &str = "study.toml";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const CLAIMS: &str = "claims.json";

/// Why a result folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{folder}: not a result folder: {PLAN} is missing")]
    NoPlan { folder: PathBuf },
    #[error("{path}: not what sojourn writes: {problem}")]
    Malformed { path: PathBuf, problem: String },
}

/// The files of a result folder.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Reads everything but the time series. Of a folder whose runs are not all done, what is
    /// there.
    ///
    /// # Errors
    /// There is no result folder, or a file in it is not what it should be.
    pub fn open(path: impl Into<PathBuf>) -> Result<Results, ResultsError> {
        let folder = Self::new(path);
        let plan = folder.plan()?;
        let (rows, missing) = folder.rows(&plan)?;
        Ok(Results {
            study: folder.optional_text(STUDY)?.unwrap_or_default(),
            table: store::table(&plan, rows),
            claims: folder.json(CLAIMS)?,
            machine: folder.machine()?,
            folder: folder.path,
            plan,
            missing,
        })
    }

    /// The rows of every run that is there, each run once, and the runs that are not.
    pub(crate) fn rows(&self, plan: &Plan) -> Result<(Vec<Row>, Vec<u32>), ResultsError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut is_there = vec![false; plan.runs.len()];
        for part in self.parts()? {
            for of_run in part.rows(plan)?.chunk_by(|a, b| a.run == b.run) {
                // What the plan does not know is of a damaged file.
                if let Some(is_there @ false) = is_there.get_mut(of_run[0].run as usize) {
                    *is_there = true;
                    rows.extend_from_slice(of_run);
                }
            }
        }
        let missing = (0..plan.runs.len() as u32).filter(|run| !is_there[*run as usize]).collect();
        Ok((rows, missing))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn plan(&self) -> Result<Plan, ResultsError> {
        self.json(PLAN)?.ok_or_else(|| ResultsError::NoPlan { folder: self.path.clone() })
    }

    /// The tables of a shard, by its label.
    pub(crate) fn tables(&self, label: &str) -> TablePaths {
        TablePaths {
            runs: self.path(&format!("runs{label}.parquet")),
            series: self.path(&format!("series{label}.parquet")),
            delays: self.path(&format!("delays{label}.parquet")),
        }
    }

    /// Of the whole, or else of the first shard.
    fn machine(&self) -> Result<Option<Machine>, ResultsError> {
        for name in self.names()? {
            if name.starts_with("machine") && name.ends_with(".json") {
                return self.json(&name);
            }
        }
        Ok(None)
    }

    pub(crate) fn write_json<T: serde::Serialize>(
        &self,
        name: &str,
        label: &str,
        value: &T,
    ) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        text.push(b'\n');
        store::write_whole(&self.path(name), label, &text)
    }

    /// What holds runs: finished tables first, then journals.
    pub(crate) fn parts(&self) -> Result<Vec<Part>, ResultsError> {
        let mut parts = Vec::new();
        for name in self.names()? {
            if let Some(label) = between(&name, "runs", ".parquet") {
                let tables = self.tables(label);
                // A kill may come between the two; all is in the journal then.
                if tables.series.exists() {
                    parts.push(Part::Tables(tables));
                }
            }
        }
        for name in self.names()? {
            if between(&name, "journal", ".bin").is_some() {
                parts.push(Part::Journal { path: self.path(&name) });
            }
        }
        Ok(parts)
    }

    /// Names of the files, sorted.
    fn names(&self) -> Result<Vec<String>, ResultsError> {
        let error = |source| ResultsError::Io { path: self.path.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(error)? {
            names.extend(entry.map_err(error)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, ResultsError> {
        let path = self.path(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ResultsError::Io { path, source }),
        }
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ResultsError> {
        let Some(text) = self.optional_text(name)? else {
            return Ok(None);
        };
        serde_json::from_str(&text).map(Some).map_err(|error| ResultsError::Malformed {
            path: self.path(name),
            problem: error.to_string(),
        })
    }
}

/// What follows a file's first word: nothing, or `-1-of-3`.
fn between<'a>(name: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let label = name.strip_prefix(start)?.strip_suffix(end)?;
    (label.is_empty() || Shard::from_label(label).is_some()).then_some(label)
}

/// Files that hold the results of some runs.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Tables(TablePaths),
    Journal { path: PathBuf },
}

impl Part {
    pub(crate) fn rows(&self, plan: &Plan) -> Result<Vec<Row>, ResultsError> {
        match self {
            Self::Tables(TablePaths { runs, .. }) => store::read_rows(runs, plan)
                .map_err(|source| ResultsError::Io { path: runs.clone(), source }),
            Self::Journal { path } => {
                let read = || -> io::Result<Vec<Row>> {
                    let mut file = File::open(path)?;
                    let records = Records::scan(&mut file, &plan.digest)?;
                    let mut rows = Vec::new();
                    for run in records.runs() {
                        rows.extend(records.read_rows(&mut file, run)?.unwrap_or_default());
                    }
                    Ok(rows)
                };
                read().map_err(|source| ResultsError::Io { path: path.clone(), source })
            }
        }
    }

    /// Opens what is read run by run.
    pub(crate) fn open(&self, plan: &Plan) -> Result<OpenPart, ResultsError> {
        let (path, opened) = match self {
            Self::Tables(paths) => (&paths.series, open_tables(paths)),
            Self::Journal { path } => {
                let open = || -> io::Result<Opened> {
                    let mut file = File::open(path)?;
                    let records = Records::scan(&mut file, &plan.digest)?;
                    Ok(Opened::Journal { file, records })
                };
                (path, open())
            }
        };
        let path = path.clone();
        match opened {
            Ok(opened) => Ok(OpenPart { path, opened }),
            Err(source) => Err(ResultsError::Io { path, source }),
        }
    }
}

fn open_tables(paths: &TablePaths) -> io::Result<Opened> {
    Ok(Opened::Tables {
        series: Box::new(RunReader::open(&paths.series)?),
        delays: match paths.delays.exists() {
            true => Some(Box::new(RunReader::open(&paths.delays)?)),
            // A folder of an older version has none.
            false => None,
        },
    })
}

/// What some runs left behind, open for reading.
pub(crate) struct OpenPart {
    path: PathBuf,
    opened: Opened,
}

enum Opened {
    Tables { series: Box<RunReader<Series>>, delays: Option<Box<RunReader<Delays>>> },
    Journal { file: File, records: Records },
}

impl OpenPart {
    /// Empty when the run is not here.
    pub(crate) fn series(&mut self, run: u32) -> Result<Vec<Series>, ResultsError> {
        match &mut self.opened {
            Opened::Tables { series, .. } => series.of(run),
            Opened::Journal { file, records } => records
                .read(file, run)
                .map(|result| result.map(|result| result.series).unwrap_or_default()),
        }
        .map_err(|source| ResultsError::Io { path: self.path.clone(), source })
    }

    /// Empty when the run is not here.
    pub(crate) fn delays(&mut self, run: u32) -> Result<Vec<Delays>, ResultsError> {
        match &mut self.opened {
            Opened::Tables { delays, .. } => {
                delays.as_mut().map_or(Ok(Vec::new()), |delays| delays.of(run))
            }
            Opened::Journal { file, records } => records
                .read(file, run)
                .map(|result| result.map(|result| result.delays).unwrap_or_default()),
        }
        .map_err(|source| ResultsError::Io { path: self.path.clone(), source })
    }
}

/// Reads run by run what is too much to hold at once. Fastest in the order of the plan.
pub struct Reader {
    parts: Vec<OpenPart>,
}

impl Reader {
    /// The time series of a run: of every flow, then of every queue. Empty when the run is
    /// missing.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn series(&mut self, run: u32) -> Result<Vec<Series>, ResultsError> {
        for part in &mut self.parts {
            let series = part.series(run)?;
            if !series.is_empty() {
                return Ok(series);
            }
        }
        Ok(Vec::new())
    }

    /// The distributions of delays of a run, in the same order.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn delays(&mut self, run: u32) -> Result<Vec<Delays>, ResultsError> {
        for part in &mut self.parts {
            let delays = part.delays(run)?;
            if !delays.is_empty() {
                return Ok(delays);
            }
        }
        Ok(Vec::new())
    }
}

impl Results {
    /// Opens what is read run by run.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn reader(&self) -> Result<Reader, ResultsError> {
        let parts = Folder::new(&self.folder).parts()?;
        let parts = parts.iter().map(|part| part.open(&self.plan)).collect::<Result<_, _>>()?;
        Ok(Reader { parts })
    }

    /// The time series of one run, as [`Reader::series`].
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn series(&self, run: u32) -> Result<Vec<Series>, ResultsError> {
        self.reader()?.series(run)
    }

    /// Whether every run has a result.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
