//! Damage to the tables of a result folder: noticed by their checksums, and without these, in a
//! folder of an older version, never more than an error.

use std::fs;
use std::path::Path;

use sojourn_file::Overrides;
use sojourn_study::results::{Folder, ResultsError};
use sojourn_study::{Study, runner};

const STUDY: &str = r#"
schema = 1
title = "what is damaged"

[scenario]
duration = "2s"
step = "20ms"
path = { rate = "10Mbps", rtt = "20ms", queue = "fq_codel" }

[[scenario.flow]]
name = "bulk"
app = "bulk"

[[scenario.flow]]
name = "probe"
app = "ping"

[repeat]
seeds = 2
"#;

const TABLES: [&str; 3] = ["delays.parquet", "runs.parquet", "series.parquet"];

/// Runs the study into a folder, and reads the folder after each of `flips` bits, spread evenly
/// over its tables, was another one.
fn with_flips(flips: usize, is_older: bool, then: impl Fn(&str, Result<(), ResultsError>)) {
    let study = Study::parse("damage.toml", STUDY, Path::new(""), &Overrides::default()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("out");
    runner::run(&study, &runner::Options::new(&folder), &|_| {}).unwrap();
    if is_older {
        fs::remove_file(folder.join("SHA256SUMS")).unwrap();
    }
    assert!(read(&folder).is_ok(), "what is whole can be read");
    let whole = TABLES.map(|name| fs::read(folder.join(name)).unwrap());
    let bits: usize = whole.iter().map(|table| table.len() * 8).sum();
    for flip in 0..flips {
        // The distance is an odd number of bits, so that every bit of a byte is tried.
        let mut bit = flip * ((bits / flips) | 1) % bits;
        let mut table = 0;
        while bit >= whole[table].len() * 8 {
            bit -= whole[table].len() * 8;
            table += 1;
        }
        let path = folder.join(TABLES[table]);
        let mut bytes = whole[table].clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).unwrap();
        then(&format!("bit {bit} of {}", TABLES[table]), read(&folder));
        fs::write(&path, &whole[table]).unwrap();
    }
}

/// Reads all of a folder.
fn read(folder: &Path) -> Result<(), ResultsError> {
    let results = Folder::open(folder)?;
    let mut reader = results.reader()?;
    for run in 0..results.plan.runs.len() as u32 {
        reader.series(run)?;
        reader.delays(run)?;
    }
    Ok(())
}

#[test]
fn none_of_400_flipped_bits_passes_unnoticed() {
    with_flips(400, false, |flip, read| match read {
        Err(ResultsError::Damaged { .. }) => {}
        Err(other) => panic!("{flip}: {other}"),
        Ok(()) => panic!("{flip}: nothing was noticed"),
    });
}

/// Without checksums, some damage gives other numbers and some gives an error; both occur here, and
/// nothing panics.
#[test]
fn a_damaged_folder_without_checksums_is_an_error_at_most() {
    with_flips(400, true, |flip, read| {
        if let Err(error) = read {
            let text = error.to_string();
            assert!(TABLES.iter().any(|table| text.contains(table)), "{flip}: {text}");
        }
    });
}
