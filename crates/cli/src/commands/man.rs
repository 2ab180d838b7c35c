//! `sojourn man`: what `--help` says, as man pages.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn man(args: &ManArgs, output: Output) -> Result<(), Failure> {
    let command = Cli::command().name(super::program()).disable_help_subcommand(true);
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(|error| Failure::stdout(&error))?;
        return output.data(&String::from_utf8_lossy(&page));
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| Failure::writing(folder, &error))?;
    output.log(&format_args!("wrote {}", folder.display()));
    Ok(())
}
