//! No flipped bit of a result folder goes unnoticed: either reading the folder refuses it, or the
//! report is the same as before.

use std::fs;
use std::path::{Path, PathBuf};

use sojourn_core::{Purpose, Stream, StreamAddress};
use sojourn_report::{Options, html};
use sojourn_study::results::Folder;
use sojourn_study::runner::{self, Progress};
use sojourn_study::{Overrides, Study};

const STUDY: &str = r#"
schema = 1
title = "two flows"

[scenario]
duration = "1s"

[scenario.path]
rate = "10Mbps"
rtt = "20ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "cubic"
app = "bulk"

[[scenario.flow]]
name = "echo"
app = "ping"

[factors]
"path.queue" = ["pfifo limit 50", "fq_codel"]

[repeat]
seeds = 2

[views.delay]
kind = "cdf"
y = "rtt"

[[claim]]
id = "C1"
text = "the link is used"
expect = "goodput(cubic) > 1 Mbps"
"#;

const FLIPS: u64 = 400;

fn study() -> Study {
    Study::parse("two.toml", STUDY, Path::new(""), &Overrides::default()).expect("it is good")
}

fn run(out: &Path, told: &(dyn Fn(Progress) + Sync)) {
    let options = runner::Options::new(out);
    runner::run(&study(), &options, told).expect("the study runs");
}

/// Everything that the report reads; `None` if reading refuses it.
fn report(folder: &Path) -> Result<String, String> {
    let results = Folder::open(folder).map_err(|error| error.to_string())?;
    let mut reader = results.reader().map_err(|error| error.to_string())?;
    Ok(html(&results, &mut reader, &Options::default()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    files
}

/// Flips bits all over `folder`, equally many in every file, and returns how many changed nothing
/// of the report; panics if one changes the report unnoticed.
fn flip_everywhere(folder: &Path) -> u64 {
    let whole = report(folder).expect("the folder is sound");
    let mut files = files(folder);
    // A table that was begun: nobody reads it, and the next run writes it anew.
    files.retain(|path| path.extension().is_none_or(|name| name != "part"));
    let mut random: Stream = StreamAddress { seed: 1, run: 1 }.stream_named("flips", Purpose::Loss);
    let mut harmless = 0;
    for flip in 0..FLIPS {
        let path = &files[(flip % files.len() as u64) as usize];
        let good = fs::read(path).expect("it can be read");
        let mut bad = good.clone();
        let bit = random.below(bad.len() as u64 * 8) as usize;
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(path, &bad).expect("it can be written");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match report(folder) {
            Ok(page) => {
                assert!(page == whole, "bit {bit} of {name} changes the report unnoticed");
                harmless += 1;
            }
            Err(problem) => {
                assert!(problem.contains(folder.to_str().expect("text")), "{name}: {problem}");
                assert!(!problem.contains("panic"), "{problem}");
            }
        }
        fs::write(path, &good).expect("it can be written");
    }
    assert!(report(folder).as_ref() == Ok(&whole), "every file is as it was");
    harmless
}

#[test]
fn no_flipped_bit_of_a_finished_folder_goes_unnoticed() {
    let scratch = tempfile::tempdir().expect("there is room");
    let out = scratch.path().join("out");
    run(&out, &|_| {});
    assert_eq!(files(&out).len(), 8, "{:?}", files(&out));
    assert_eq!(flip_everywhere(&out), 0);
}

#[test]
fn no_flipped_bit_of_an_interrupted_folder_goes_unnoticed() {
    let scratch = tempfile::tempdir().expect("there is room");
    let (whole, out) = (scratch.path().join("whole"), scratch.path().join("out"));
    // A copy of the folder while it is written is what a kill would leave.
    let copied = std::sync::Once::new();
    run(&whole, &|progress| {
        if progress.done == 3 {
            copied.call_once(|| {
                fs::create_dir(&out).expect("there is room");
                for path in files(&whole) {
                    let name = path.file_name().expect("a file has a name");
                    fs::copy(&path, out.join(name)).expect("there is room");
                }
            });
        }
    });
    assert!(out.join("journal.bin").exists());
    assert_eq!(Folder::open(&out).expect("it can be read").missing.len(), 1);
    assert_eq!(flip_everywhere(&out), 0);

    // The same command repeats the damaged runs.
    let journal = out.join("journal.bin");
    let mut bytes = fs::read(&journal).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, bytes).expect("it can be written");
    run(&out, &|_| {});
    for name in ["runs.parquet", "series.parquet", "delays.parquet", "claims.json"] {
        let read = |folder: &Path| fs::read(folder.join(name)).expect("it can be read");
        assert!(read(&out) == read(&whole), "{name}");
    }
}

#[test]
fn a_folder_without_checksums_is_read_and_says_so_and_damage_makes_nothing_panic() {
    let scratch = tempfile::tempdir().expect("there is room");
    let out = scratch.path().join("out");
    run(&out, &|_| {});
    assert!(Folder::open(&out).expect("it is sound").has_checksums());
    fs::remove_file(out.join("SHA256SUMS")).expect("it is there");
    assert!(!Folder::open(&out).expect("it is sound").has_checksums());
    let mut random: Stream = StreamAddress { seed: 2, run: 1 }.stream_named("flips", Purpose::Loss);
    for path in files(&out) {
        let good = fs::read(&path).expect("it can be read");
        for _ in 0..60 {
            let mut bad = good.clone();
            let bit = random.below(bad.len() as u64 * 8) as usize;
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bad).expect("it can be written");
            // The result does not matter; a panic must come out as an error.
            if let Ok(results) = Folder::open(&out) {
                let _ = results.reader().map(|mut read| (read.series(0), read.delays(0)));
            }
        }
        fs::write(&path, &good).expect("it can be written");
    }
}
