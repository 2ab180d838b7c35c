//! The same run gives the same digest, with any number of threads and shards. That it does so in every profile and
//! on other machines is held by `tests/targets`.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use sojourn_core::Span;
use sojourn_study::results::Folder;
use sojourn_study::runner::{self, Options};
use sojourn_study::{Overrides, Study};

/// Digest of the first run of the shortened study below. If it changes because the model does,
/// `sojourn_sim::MODEL_VERSION` must be raised.
const FIRST_DIGEST: &str = "6ea9fa116c252594";

fn study() -> Study {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/wifi6-aqm");
    let overrides =
        Overrides { seeds: Some(2), shorten: Some(Span::from_secs(4)), ..Overrides::default() };
    Study::load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// The tables of a whole study, as bytes.
fn tables(folder: &Path) -> [Vec<u8>; 2] {
    ["runs.parquet", "series.parquet"]
        .map(|name| std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}")))
}

fn run(out: &Path, jobs: usize, shard: &str) {
    let mut options = Options::new(out);
    options.jobs = NonZero::new(jobs);
    options.shard = shard.parse().expect("a shard");
    let summary = runner::run(&study(), &options, &|_| {}).expect("the study runs");
    assert_eq!(summary.failed, []);
}

#[test]
fn threads_and_shards_change_nothing() {
    let temp = tempfile::tempdir().expect("a folder for results");
    let folder = |name: &str| temp.path().join(name);
    run(&folder("one"), 1, "1/1");
    let expected = tables(&folder("one"));
    for jobs in [2, 8] {
        let out = folder(&format!("jobs-{jobs}"));
        run(&out, jobs, "1/1");
        assert!(tables(&out) == expected, "{jobs} threads give other tables");
    }
    for shards in [2, 3] {
        let parts: Vec<PathBuf> = (1..=shards)
            .map(|k| {
                let out = folder(&format!("shard-{k}-of-{shards}"));
                run(&out, 2, &format!("{k}/{shards}"));
                out
            })
            .collect();
        let joined = folder(&format!("joined-{shards}"));
        runner::join(&parts, &joined).expect("shards join");
        assert!(tables(&joined) == expected, "{shards} shards give other tables");
    }
}

#[test]
fn a_shipped_study_keeps_its_digest() {
    let temp = tempfile::tempdir().expect("a folder for results");
    run(temp.path(), 1, "1/1");
    let results = Folder::open(temp.path()).expect("results are readable");
    let row = results.table.rows.first().expect("there is a run");
    assert_eq!(row.digest, FIRST_DIGEST);
}
