//! `sojourn report`: the page of a result folder.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use sojourn_core::SpecError;
use sojourn_report::{Alone, Options, figure, html};
use sojourn_study::results::Results;

use super::open;
use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::Output;

const FILE_NAME: &str = "report.html";

pub(super) fn report(args: &ReportArgs, output: Output) -> Result<(), Failure> {
    if let Some(name) = &args.figure {
        let results = open(&args.folder, output)?;
        let text = figure(&results, &mut results.reader()?, name)
            .and_then(|figure| in_form_of(figure, args.out.as_deref()))
            .map_err(|error| Failure::input(error.within("--figure")))?;
        return output.to(args.out.as_deref(), text.as_bytes());
    }
    match &args.out {
        Some(out) if out == Path::new("-") => {
            output.data(&page(&open(&args.folder, output)?, None)?)
        }
        Some(out) => {
            output.to(Some(out), page(&open(&args.folder, output)?, None)?.as_bytes())?;
            output.data(&format!("{}\n", out.display()))
        }
        None => {
            let path = write(&args.folder, None, output)?;
            output.data(&format!("{}\n", path.display()))
        }
    }
}

/// The figure as the end of the file's name asks for; otherwise SVG, or Markdown if it is a table.
fn in_form_of(figure: Alone, out: Option<&Path>) -> Result<String, SpecError> {
    let end = out.and_then(Path::extension).map(|end| end.to_string_lossy().to_lowercase());
    match (figure, end.as_deref()) {
        (Alone::Drawing(svg), None | Some("svg")) => Ok(svg),
        (Alone::Drawing(_), Some(end)) => {
            Err(SpecError::new(format!("this figure is a drawing, and not written as .{end}"))
                .allow(["a name that ends with .svg"]))
        }
        (Alone::Tables { markdown, .. }, None | Some("md")) => Ok(markdown),
        (Alone::Tables { latex, .. }, Some("tex")) => Ok(latex),
        (Alone::Tables { .. }, Some(end)) => {
            Err(SpecError::new(format!("this figure is a table, and not written as .{end}"))
                .allow(["a name that ends with .md", "with .tex"]))
        }
    }
}

/// Puts the page into the folder, with so many threads or one for each core.
pub(super) fn write(
    folder: &Path,
    jobs: Option<NonZero<usize>>,
    output: Output,
) -> Result<PathBuf, Failure> {
    let path = folder.join(FILE_NAME);
    output.to(Some(&path), page(&open(folder, output)?, jobs)?.as_bytes())?;
    Ok(path)
}

fn page(results: &Results, jobs: Option<NonZero<usize>>) -> Result<String, Failure> {
    let options = Options { jobs, ..Options::default() };
    Ok(html(results, &mut results.reader()?, &options))
}
