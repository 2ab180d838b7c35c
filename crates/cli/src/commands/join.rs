//! `sojourn join`: joins the result folders of shards into one.

use sojourn_study::runner::{self, Shard, default_folder};

use super::{open, run};
use crate::args::JoinArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

pub(super) fn join(args: &JoinArgs, output: Output) -> Result<Outcome, Failure> {
    let mut plan = None;
    for folder in &args.folders {
        let results = open(folder, output)?;
        plan.get_or_insert(results.plan);
    }
    let plan = plan.ok_or_else(|| Failure::input("nothing to join: no folder is given"))?;
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
