//! `sojourn join`: joins the result folders of shards into one.

use sojourn_study::results::Folder;
use sojourn_study::runner::{self, Shard, default_folder};

use super::{open_without_rows, run, warn_of_no_checksums};
use crate::args::JoinArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

pub(super) fn join(args: &JoinArgs, output: Output) -> Result<Outcome, Failure> {
    let Some((first, others)) = args.folders.split_first() else {
        return Err(Failure::input("nothing to join: no folder is given"));
    };
    let plan = open_without_rows(first, output)?.plan;
    for folder in others {
        warn_of_no_checksums(&Folder::new(folder), output);
    }
    allow_many_open_files();
    let out = args.out.clone().unwrap_or_else(|| default_folder(&plan, Shard::WHOLE));
    let summary = runner::join(&args.folders, &out)?;
    let missing = summary.progress.total - summary.progress.done;
    if missing > 0 {
        output.log(&format_args!(
            "{missing} of {} runs are in none of the folders; claims were checked without them",
            summary.progress.total
        ));
    }
    run::finish(&plan, &summary, !args.no_report, None, args.format, output)
}

/// The tables of all shards are open at a time. Systems allow 1024 open files, or 256, until a program asks for more; if it may
/// not have more, joining says which file was one too many.
fn allow_many_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
