//! `sojourn new`: a study to begin with.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use sojourn_file::FILE_NAME;
use sojourn_study::Registry;

use crate::args::{NewArgs, Template};
use crate::failure::Failure;
use crate::output::{Output, shell_line};

pub(super) const TEMPLATE: &str = include_str!("new/study.toml");

/// The shipped study, which is about [`CCWG_IS_ABOUT`].
const CCWG: &str = include_str!("../../../../studies/ccwg/study.toml");
const CCWG_IS_ABOUT: &str = "bbr3";
/// What it is compared with.
const CCWG_BESIDE: &str = "cubic";

pub(super) fn new(args: &NewArgs, registry: &Registry, output: Output) -> Result<(), Failure> {
    let text = match (args.template, &args.cca) {
        (Template::Study, None) => TEMPLATE.to_owned(),
        (Template::Study, Some(_)) => {
            return Err(Failure::input("--cca is for --template ccwg"));
        }
        (Template::Ccwg, cca) => ccwg(cca.as_deref().unwrap_or(CCWG_IS_ABOUT), registry)?,
    };
    let is_file = args.name.extension().is_some_and(|extension| extension == "toml");
    let path = if is_file { args.name.clone() } else { args.name.join(FILE_NAME) };
    if !is_file {
        std::fs::create_dir_all(&args.name).map_err(|error| failure(&args.name, &error))?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| failure(&path, &error))?;
    file.write_all(text.as_bytes()).map_err(|error| Failure::writing(&path, &error))?;
    output.log(&format_args!(
        "wrote {}; run it with: {}",
        path.display(),
        shell_line(["sojourn", "run", &args.name.display().to_string()])
    ));
    Ok(())
}

/// RFC 9743's criteria asked of this congestion control.
fn ccwg(cca: &str, registry: &Registry) -> Result<String, Failure> {
    let problem = |text: String| Failure::input(format!("--cca {cca}: {text}"));
    if cca.split_whitespace().eq([CCWG_BESIDE]) {
        return Err(problem("it is what the others are compared with; choose another".into()));
    }
    // In the file it stands within quotation marks of both kinds.
    if cca.contains(['"', '\'', '\\']) || cca.contains(char::is_control) {
        return Err(problem("a congestion control has no quotation marks".into()));
    }
    registry.controller(cca).map_err(|error| problem(error.to_string()))?;
    let text = CCWG.strip_prefix("#:schema ../../schema/study.schema.json\n").unwrap_or(CCWG);
    Ok(text.replace(CCWG_IS_ABOUT, cca))
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::Input(format!("{}: is there already; choose another name", path.display()))
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Failure::Input(format!("{}: cannot be made: {error}", path.display()))
        }
        _ => Failure::writing(path, error),
    }
}
