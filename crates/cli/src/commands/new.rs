//! `sojourn new`: a study to begin with.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use sojourn_file::FILE_NAME;

use crate::args::NewArgs;
use crate::failure::Failure;
use crate::output::{Output, shell_line};

pub(super) const TEMPLATE: &str = include_str!("new/study.toml");

pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
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
    file.write_all(TEMPLATE.as_bytes()).map_err(|error| Failure::writing(&path, &error))?;
    output.log(&format_args!(
        "wrote {}; run it with: {}",
        path.display(),
        shell_line(["sojourn", "run", &args.name.display().to_string()])
    ));
    Ok(())
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
