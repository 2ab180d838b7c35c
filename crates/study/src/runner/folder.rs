//! The result folder of a plan: its usual place, making it, and its claims.

use std::path::{Path, PathBuf};

use sojourn_file::FILE_NAME;

use super::{RunError, Shard};
use crate::claims;
use crate::results::{CLAIMS, ClaimReport, Folder, FolderWriter, PLAN, Plan, ResultsError, STUDY};

/// Where results go if nobody says where: a name made of the study and what is run of it, so that
/// different results get different folders.
pub fn default_folder(plan: &Plan, shard: Shard) -> PathBuf {
    let digest = plan.digest.get(..8).unwrap_or(&plan.digest);
    let shard = match shard.is_whole() {
        true => String::new(),
        false => format!("-{}", shard.to_string().replace('/', "-of-")),
    };
    Path::new("results").join(format!("{}-{digest}{shard}", study_name(Path::new(&plan.path))))
}

/// The folder's name for a `study.toml`, otherwise that of the file.
fn study_name(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let named = match absolute.file_name() {
        Some(name) if name == FILE_NAME => absolute.parent().and_then(Path::file_name),
        _ => absolute.file_stem(),
    };
    named.map_or_else(|| "study".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Makes a result folder, or checks that the folder is one of this plan. Claims and figures may
/// have changed since.
pub(super) fn make_folder(
    folder: Folder,
    label: &str,
    plan: &Plan,
    text: &str,
) -> Result<FolderWriter, RunError> {
    let path: &Path = folder.as_ref();
    let error = |source| RunError::Io { path: path.to_owned(), source };
    match folder.plan() {
        Ok(old) if old.differs_in_digests(plan) => {
            return Err(RunError::OtherKernel { folder: path.to_owned() });
        }
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
    let _held = writer.hold();
    // The plan comes first: it marks the folder as one of results.
    writer.write_json(PLAN, plan)?;
    writer.write_text(STUDY, text)?;
    Ok(writer)
}

pub(super) fn check_claims(
    folder: &FolderWriter,
    claims: &[claims::Claim],
    plan: &Plan,
) -> Result<ClaimReport, RunError> {
    let mut checker = claims::Checker::new(claims, plan);
    if checker.needs_rows() {
        let mut runs = folder.folder().run_rows(plan, Some(&claims::metrics(claims)))?;
        while let Some(rows) = runs.next()? {
            checker.add_rows(&rows);
        }
    }
    if checker.needs_series() {
        let mut parts = folder.folder().reader(plan)?;
        for run in 0..plan.runs.len() as u32 {
            checker.add_series(run, &parts.series(run)?);
        }
    }
    let report = checker.check();
    folder.write_json(CLAIMS, &report)?;
    Ok(report)
}
