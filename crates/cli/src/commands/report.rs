//! `sojourn report`: the page of a result folder.

use std::path::{Path, PathBuf};

use sojourn_report::{Options, figure, html};
use sojourn_study::results::Results;

use super::open;
use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::Output;

const FILE_NAME: &str = "report.html";

pub(super) fn report(args: &ReportArgs, output: Output) -> Result<(), Failure> {
    if let Some(name) = &args.figure {
        let results = open(&args.folder, output)?;
        let svg = figure(&results, &mut results.reader()?, name)
            .map_err(|error| Failure::input(error.within("--figure")))?;
        return output.to(args.out.as_deref(), svg.as_bytes());
    }
    match &args.out {
        Some(out) if out == Path::new("-") => output.data(&page(&open(&args.folder, output)?)?),
        Some(out) => {
            output.to(Some(out), page(&open(&args.folder, output)?)?.as_bytes())?;
            output.data(&format!("{}\n", out.display()))
        }
        None => {
            let path = write(&args.folder, output)?;
            output.data(&format!("{}\n", path.display()))
        }
    }
}

/// Puts the page into the folder.
pub(super) fn write(folder: &Path, output: Output) -> Result<PathBuf, Failure> {
    let path = folder.join(FILE_NAME);
    output.to(Some(&path), page(&open(folder, output)?)?.as_bytes())?;
    Ok(path)
}

fn page(results: &Results) -> Result<String, Failure> {
    Ok(html(results, &mut results.reader()?, &Options::default()))
}
