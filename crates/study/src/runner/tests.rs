use std::cell::Cell;
use std::fs;
use std::rc::Rc;
use std::sync::Mutex;

use super::*;
use crate::digest::Digest;
use crate::engine::{self, Engine, Measured};
use crate::results::{FolderWriter, Journal, Kind, Plan, Record, Results, Verdict};
use crate::testing::Scratch;
use sojourn_core::{SpecError, StreamAddress, Time};
use sojourn_file::Overrides;
use sojourn_file::Registry;
use sojourn_metrics::Collector;
use sojourn_scenario::{App, Checked};

const STUDY_TEXT: &str = r#"
schema = 1
title = "two flows"

[scenario]
duration = "2s"
warmup = "500ms"

[scenario.path]
rate = "10Mbps"
rtt = "20ms"
queue = "pfifo limit 50"
loss = "0.1%"

[[scenario.flow]]
name = "cubic"
app = "bulk"
start_jitter = "50ms"

[[scenario.flow]]
name = "others"
app = "bulk"
cca = "bbr"
count = 2
start_jitter = "50ms"

[factors]
"path.queue" = ["pfifo limit 50", "fq_codel"]

[repeat]
seeds = 3

[[claim]]
id = "C1"
text = "the link is used"
expect = ["tcp_goodput_sum() > 8 Mbps", "share(cubic) + share(others) in 0.99..1.01"]
"#;

fn study() -> Study {
    let overrides = Overrides::default();
    Study::parse("two.toml", STUDY_TEXT, Path::new(""), &overrides).expect("the study is good")
}

fn bytes(plan: &Plan, run: u32) -> Vec<u8> {
    compute(&study(), plan, run).unwrap().encode().unwrap()
}

fn options(out: PathBuf, jobs: usize, shard: &str) -> Options {
    Options { jobs: NonZero::new(jobs), shard: shard.parse().unwrap(), ..Options::new(out) }
}

fn run_into(out: PathBuf, jobs: usize, shard: &str) -> Summary {
    run(&study(), &options(out, jobs, shard), &|_| {}).expect("the study runs")
}

fn tables(folder: &Path) -> [Vec<u8>; 3] {
    ["runs", "series", "delays"]
        .map(|name| fs::read(folder.join(format!("{name}.parquet"))).unwrap())
}

#[test]
fn threads_and_shards_change_no_byte_of_the_tables() {
    let scratch = Scratch::new("runner");
    let one = run_into(scratch.path("one"), 1, "1/1");
    assert_eq!(one.progress, Progress { total: 6, done: 6, resumed: 0, failed: 0 });
    run_into(scratch.path("eight"), 8, "1/1");
    let whole = tables(&scratch.path("one"));
    assert_eq!(tables(&scratch.path("eight")), whole);

    let shards: Vec<PathBuf> = (1..=4)
        .map(|number| {
            let out = scratch.path(&format!("shard{number}"));
            let summary = run_into(out.clone(), 2, &format!("{number}/4"));
            assert_eq!(summary.claims, None);
            out
        })
        .collect();
    let joined = join(&shards, &scratch.path("joined")).unwrap();
    assert_eq!(tables(&scratch.path("joined")), whole);
    assert_eq!(joined.claims, one.claims);

    // All shards may also share a folder.
    for number in 1..=3 {
        run_into(scratch.path("shared"), 1, &format!("{number}/3"));
    }
    assert!(Folder::open(scratch.path("shared")).unwrap().is_complete());
    join(&[scratch.path("shared")], &scratch.path("from-shared")).unwrap();
    assert_eq!(tables(&scratch.path("from-shared")), whole);
}

#[test]
fn a_folder_that_is_complete_is_used_by_many_at_once_and_stays_as_it_is() {
    let scratch = Scratch::new("runner");
    let out = scratch.path("a");
    let machine = |out: &Path| fs::read(out.join("machine.json")).unwrap();
    run_into(out.clone(), 2, "1/1");
    let first = machine(&out);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    run_into(out.clone(), 1, "1/1");
                    let results = Folder::open(&out).expect("nobody changes it");
                    assert!(results.is_complete());
                }
            });
        }
    });
    // Who did the work, and how long it took.
    assert_eq!(machine(&out), first);
}

#[test]
fn two_that_begin_the_same_folder_leave_it_whole() {
    let scratch = Scratch::new("runner");
    for attempt in 0..8 {
        let out = scratch.path(&format!("{attempt}"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| match run(&study(), &options(out.clone(), 1, "1/1"), &|_| {}) {
                    Ok(summary) => assert_eq!(summary.progress.done, 6),
                    Err(RunError::Busy { .. }) => {}
                    Err(other) => panic!("{other}"),
                });
            }
        });
        assert!(Folder::open(&out).expect("one of them has finished").is_complete());
    }
}

#[test]
fn more_jobs_than_runs_are_no_more_threads() {
    let scratch = Scratch::new("runner");
    let summary = run_into(scratch.path("a"), 1_000_000_000, "1/1");
    assert_eq!(summary.progress.done, 6);
}

#[test]
fn what_is_joined_without_a_shard_says_what_is_missing() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("a"), 2, "2/2");
    let summary = join(&[scratch.path("a")], &scratch.path("joined")).unwrap();
    assert_eq!((summary.progress.done, summary.progress.total), (3, 6));
    let claims = summary.claims.unwrap();
    assert_eq!(claims.claims[0].verdict, Verdict::Untestable);
    let reason = claims.claims[0].reason.as_deref().unwrap();
    assert!(reason.contains("of 3 runs have no result"), "{reason}");
    assert_eq!(Folder::open(scratch.path("joined")).unwrap().missing, [0, 2, 4]);
}

#[test]
fn a_second_start_goes_on_where_a_kill_stopped_the_first() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("whole"), 2, "1/1");
    let whole = tables(&scratch.path("whole"));

    // As a kill leaves it: a journal with some runs and the beginning of another.
    let out = scratch.path("killed");
    let plan = study().plan();
    make_folder(Folder::new(&out), "", &plan, study().text()).unwrap();
    let journal = out.join("journal.bin");
    {
        let mut journal = Journal::open(&journal, &plan.digest).unwrap();
        for run in [1, 4, 5] {
            journal.append(&Record::of(&bytes(&plan, run)).unwrap()).unwrap();
        }
    }
    let file = fs::OpenOptions::new().write(true).open(&journal).unwrap();
    file.set_len(file.metadata().unwrap().len() - 30).unwrap();

    let interrupted = Folder::open(&out).unwrap();
    assert_eq!(interrupted.missing, [0, 2, 3, 5]);
    let rowless = Folder::open_without_rows(&out).unwrap();
    assert_eq!((rowless.missing, rowless.table.rows.len()), (vec![0, 2, 3, 5], 0));
    assert!(interrupted.claims.is_none());
    let finished = Folder::open(scratch.path("whole")).unwrap();
    assert_eq!(interrupted.table.run(4), finished.table.run(4));
    assert_eq!(interrupted.series(4).unwrap(), finished.series(4).unwrap());
    assert!(interrupted.series(0).unwrap().is_empty());

    let summary = run_into(out.clone(), 2, "1/1");
    assert_eq!(summary.progress, Progress { total: 6, done: 6, resumed: 2, failed: 0 });
    assert_eq!(tables(&out), whole);
    assert!(!journal.exists());

    // A third start finds nothing to do.
    let summary = run_into(out.clone(), 2, "1/1");
    assert_eq!(summary.progress.resumed, 6);
    assert_eq!(tables(&out), whole);
}

/// A kill while the tables come to be: one is there and the other is not.
#[test]
fn a_kill_between_the_two_tables_loses_nothing() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("whole"), 2, "1/1");
    let whole = Folder::open(scratch.path("whole")).unwrap();

    let out = scratch.path("killed");
    let plan = study().plan();
    make_folder(Folder::new(&out), "", &plan, study().text()).unwrap();
    let mut journal = Journal::open(&out.join("journal.bin"), &plan.digest).unwrap();
    for run in 0..plan.runs.len() as u32 {
        journal.append(&Record::of(&bytes(&plan, run)).unwrap()).unwrap();
    }
    drop(journal);
    fs::copy(scratch.path("whole").join("runs.parquet"), out.join("runs.parquet")).unwrap();
    fs::write(out.join("series.parquet.part"), "torn").unwrap();

    let killed = Folder::open(&out).unwrap();
    assert!(killed.is_complete());
    assert_eq!(killed.table, whole.table);
    let (mut ours, mut theirs) = (killed.reader().unwrap(), whole.reader().unwrap());
    for run in [5, 0, 3, 3, 1] {
        assert_eq!(ours.series(run).unwrap(), theirs.series(run).unwrap(), "run {run}");
        assert_eq!(ours.delays(run).unwrap(), theirs.delays(run).unwrap(), "run {run}");
    }
    let summary = run_into(out.clone(), 1, "1/1");
    assert_eq!(summary.progress.resumed, 6);
    assert_eq!(tables(&out), tables(&scratch.path("whole")));
    assert!(!out.join("series.parquet.part").exists());
}

/// Other machines hand in results in any order, some twice, and some that are none.
#[test]
fn results_that_others_compute_make_the_same_folder() {
    let scratch = Scratch::new("runner");
    let whole = run_into(scratch.path("whole"), 2, "1/1");

    let out = scratch.path("others");
    let mut recorder = Recorder::open(&study(), &options(out.clone(), 1, "1/1")).unwrap();
    let plan = Arc::clone(recorder.plan());
    for run in [5, 3, 0] {
        assert_eq!(recorder.keep(run, &bytes(&plan, run)).unwrap(), Recorded::New);
        assert_eq!(recorder.keep(run, &bytes(&plan, run)).unwrap(), Recorded::Known);
    }
    recorder.give_up(3, "its machine died after it was done".to_owned());
    recorder.give_up(4, "its machine died".to_owned());
    assert_eq!(recorder.progress(), Progress { total: 6, done: 3, resumed: 0, failed: 1 });
    assert_eq!(recorder.pending(0).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(recorder.pending(2).collect::<Vec<_>>(), [2, 4]);
    drop(recorder);

    let mut recorder = Recorder::open(&study(), &options(out.clone(), 1, "1/1")).unwrap();
    for run in recorder.pending(0).collect::<Vec<_>>() {
        let good = bytes(&plan, run);
        let mut refused = |bytes: &[u8], why: &str| {
            let error = recorder.keep(run, bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(&bytes(&plan, 0), "this is the result of run 0");
        refused(&good[1..], "no result");
        refused(&[], "no result");
        let mut other = compute(&study(), &plan, run).unwrap();
        other.rows[1].seed += 1;
        refused(&other.encode().unwrap(), "of another run");
        assert_eq!(recorder.keep(run, &good).unwrap(), Recorded::New);
    }
    assert!(recorder.keep(6, &[]).unwrap_err().to_string().contains("has 6 runs"));
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.progress, Progress { total: 6, done: 6, resumed: 3, failed: 0 });
    assert_eq!(summary.claims, whole.claims);
    assert_eq!(tables(&out), tables(&scratch.path("whole")));
    assert!(!out.join("journal.bin").exists());
}

/// Tables are written while results come: those that wait for earlier ones, those that come in their turn, and
/// those that are left in the end, after one that never comes.
#[test]
fn tables_do_not_depend_on_the_order_in_which_results_come() {
    let scratch = Scratch::new("runner");
    let some = study();
    let plan = some.plan();
    let of = |name: &str, order: &[u32]| {
        let out = scratch.path(name);
        let mut recorder = Recorder::open(&some, &options(out.clone(), 1, "1/1")).unwrap();
        for run in order {
            recorder.keep(*run, &bytes(&plan, *run)).unwrap();
        }
        recorder.finish().unwrap();
        tables(&out)
    };
    let in_order = of("in order", &[0, 1, 2, 3, 4, 5]);
    run_into(scratch.path("run"), 2, "1/1");
    assert_eq!(tables(&scratch.path("run")), in_order);
    assert_eq!(of("backwards", &[5, 4, 3, 2, 1, 0]), in_order);
    assert_eq!(of("mixed", &[1, 0, 4, 2, 5, 3]), in_order);
    assert_eq!(of("without 1", &[5, 0, 3, 2, 4]), of("without 1 in order", &[0, 2, 3, 4, 5]));
}

#[test]
fn a_study_that_is_asked_to_stop_keeps_what_is_finished() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("whole"), 2, "1/1");
    let out = scratch.path("stopped");
    let options = options(out.clone(), 1, "1/1");
    let stop_at_two = |progress: Progress| {
        if progress.done == 2 {
            options.stop.ask();
        }
    };
    let error = run(&study(), &options, &stop_at_two).unwrap_err();
    assert!(matches!(error, RunError::Interrupted { done: 2, total: 6, stopped: None }), "{error}");
    assert_eq!(Folder::open(&out).unwrap().missing.len(), 4);
    assert_eq!(run_into(out.clone(), 2, "1/1").progress.resumed, 2);
    assert_eq!(tables(&out), tables(&scratch.path("whole")));
}

#[test]
fn a_run_ends_before_its_time_if_who_has_it_computed_wants_so() {
    for engine in ["sim", "fluid"] {
        let text = STUDY_TEXT.replace("duration =", &format!("engine = \"{engine}\"\nduration ="));
        let overrides = Overrides::default();
        let study = Study::parse("two.toml", &text, Path::new(""), &overrides).unwrap();
        let rows = Rc::new(Cell::new(0));
        let asked = Rc::clone(&rows);
        let is_over = move || {
            asked.set(asked.get() + 1);
            asked.get() > 5
        };
        let ran = engine::watched(is_over, || simulate(&study, 0, 1));
        assert_eq!((ran.unwrap_err(), rows.get()), ("stopped before its end".to_owned(), 6));
        assert!(simulate(&study, 0, 1).is_ok());
    }
}

#[test]
fn a_run_that_is_there_twice_counts_once() {
    let scratch = Scratch::new("runner");
    let whole = run_into(scratch.path("whole"), 2, "1/1");
    run_into(scratch.path("both"), 1, "1/2");
    let both = run_into(scratch.path("both"), 2, "1/1");
    assert_eq!(both.claims, whole.claims);
}

#[test]
fn folders_are_not_joined_into_one_of_them() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("a"), 2, "1/2");
    run_into(scratch.path("b"), 2, "2/2");
    let before = tables_of_shard(&scratch.path("a"), "-1-of-2");
    let folders = [scratch.path("b"), scratch.path("a")];
    let out = scratch.path("b").join("..").join("a");
    let error = join(&folders, &out).unwrap_err();
    assert!(matches!(error, RunError::JoinedIntoItself { .. }), "{error}");
    assert_eq!(tables_of_shard(&scratch.path("a"), "-1-of-2"), before);
    assert!(!scratch.path("a").join("runs.parquet").exists());
}

fn tables_of_shard(folder: &Path, label: &str) -> [Vec<u8>; 2] {
    ["runs", "series"].map(|name| fs::read(folder.join(format!("{name}{label}.parquet"))).unwrap())
}

#[test]
fn a_study_of_the_users_is_not_written_over() {
    let scratch = Scratch::new("runner");
    scratch.write("study.toml", "mine");
    let error = run(&study(), &options(scratch.path(""), 1, "1/1"), &|_| {}).unwrap_err();
    assert!(matches!(error, RunError::OwnStudy { .. }), "{error}");
    assert_eq!(fs::read_to_string(scratch.path("study.toml")).unwrap(), "mine");
    assert_eq!(fs::read_dir(scratch.path("")).unwrap().count(), 1);
}

#[test]
fn results_read_back_are_those_that_were_written() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("out"), 2, "1/1");
    let results: Results = Folder::open(scratch.path("out")).unwrap();
    let (study, plan) = (study(), study().plan());
    assert_eq!(results.plan, plan);
    assert_eq!(results.study, STUDY_TEXT);
    for run in 0..plan.runs.len() as u32 {
        let again = compute(&study, &plan, run).unwrap();
        assert_eq!(results.table.run(run), again.rows, "run {run}");
        assert_eq!(results.series(run).unwrap(), again.series(), "run {run}");
    }
    // Six things in a run: itself, three flows, two queues.
    assert_eq!(results.table.rows.len(), 36);
    let first = &results.table.run(0)[1];
    assert!(results.table.value(first, "goodput_mbps").unwrap() > 0.5);
}

/// Its time series has more rows than a piece, and is the same in the table whether it came in pieces, as
/// a whole from elsewhere, or from the folders of shards.
#[test]
fn a_long_run_leaves_the_same_tables_in_pieces_and_as_a_whole() {
    const LONG: &str = r#"
schema = 1
title = "a ping, for long"

[scenario]
duration = "25s"
step = "1ms"

[scenario.path]
rate = "10Mbps"
rtt = "20ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "ping"
app = "ping"

[[scenario.flow]]
name = "late"
app = "bulk"
start = "24s"

[repeat]
seeds = 2
"#;
    let study = Study::parse("long.toml", LONG, Path::new(""), &Overrides::default()).unwrap();
    let plan = study.plan();
    let scratch = Scratch::new("long");
    let run_shard = |out: &str, shard: &str| {
        run(&study, &options(scratch.path(out), 2, shard), &|_| {}).expect("the study runs");
    };
    run_shard("pieces", "1/1");
    let in_pieces = tables(&scratch.path("pieces"));

    let all: Vec<RunResult> = (0..2).map(|run| compute(&study, &plan, run).unwrap()).collect();
    let piece = sojourn_metrics::Series::rows_in_piece(2, 2);
    assert!(all[0].series()[0].t_s.len() > piece, "{piece} rows make a piece");
    let mut recorder = Recorder::open(&study, &options(scratch.path("whole"), 1, "1/1")).unwrap();
    for (run, result) in (0..).zip(&all) {
        recorder.keep(run, &result.encode().unwrap()).unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(tables(&scratch.path("whole")), in_pieces);

    run_shard("a", "1/2");
    run_shard("b", "2/2");
    join(&[scratch.path("a"), scratch.path("b")], &scratch.path("joined")).unwrap();
    assert_eq!(tables(&scratch.path("joined")), in_pieces);

    let mut reader = Folder::open(scratch.path("pieces")).unwrap().reader().unwrap();
    for result in &all {
        assert!(reader.series(result.run).unwrap() == result.series(), "run {}", result.run);
    }
}

#[test]
fn a_folder_of_another_study_is_left_alone() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("out"), 2, "1/1");
    let before = tables(&scratch.path("out"));
    let overrides = Overrides { set: vec!["path.rate=12Mbps".into()], ..Overrides::default() };
    let other = Study::parse("two.toml", STUDY_TEXT, Path::new(""), &overrides).unwrap();
    let error = run(&other, &options(scratch.path("out"), 1, "1/1"), &|_| {}).unwrap_err();
    assert!(matches!(error, RunError::OtherStudy { .. }), "{error}");
    assert_eq!(tables(&scratch.path("out")), before);
    let error = join(&[scratch.path("out"), scratch.path("none")], &scratch.path("j")).unwrap_err();
    assert!(matches!(error, RunError::Results(ResultsError::NoPlan { .. })), "{error}");
}

#[test]
fn claims_may_change_without_running_again() {
    let scratch = Scratch::new("runner");
    run_into(scratch.path("out"), 2, "1/1");
    let text = STUDY_TEXT.replace("> 8 Mbps", "> 80 Mbps");
    let changed = Study::parse("two.toml", &text, Path::new(""), &Overrides::default()).unwrap();
    let summary = run(&changed, &options(scratch.path("out"), 1, "1/1"), &|_| {}).unwrap();
    assert_eq!(summary.progress.resumed, 6);
    assert_eq!(summary.claims.unwrap().claims[0].verdict, Verdict::Fails);
}

sojourn_core::params! {
    /// An engine from outside, which has a mistake.
    struct Panics: "panics", "no run of it ends" {
        loudly: bool as sojourn_core::param::Switch = "on", "whether it says so";
    }
}

impl Engine for Panics {
    const VERSION: u32 = 1;

    fn check_scenario(&self, _: &Checked) -> Result<(), SpecError> {
        Ok(())
    }

    fn run(&self, _: &Checked, _: StreamAddress) -> Result<Measured, String> {
        panic!("a mistake of its author");
    }
}

sojourn_core::params! {
    /// An engine whose user loses patience in the middle of seed 2.
    struct Stops: "stops", "its second run is stopped" {
        politely: bool as sojourn_core::param::Switch = "on", "whether it says please";
    }
}

static IMPATIENCE: AtomicBool = AtomicBool::new(false);

impl Engine for Stops {
    const VERSION: u32 = 1;
    const RUNS_ALONE: bool = true;

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let is_stopped = address.run == 2 && !IMPATIENCE.swap(true, Ordering::Relaxed);
        let lasted = if is_stopped { scenario.duration / 2 } else { scenario.duration };
        let metrics = Collector::new(shape(scenario)).finish(Time::ZERO + lasted);
        Ok(Measured { metrics, end_states: Vec::new(), is_stopped, troubles: Vec::new() })
    }
}

#[test]
fn what_a_stopped_run_measured_is_kept_beside_the_results() {
    let scratch = Scratch::new("runner");
    let text = STUDY_TEXT.replace("duration =", "engine = \"stops\"\nduration =");
    let study = with_engines(&text).unwrap();
    let out = scratch.path("out");
    let mut options = options(out.clone(), 2, "1/1");
    options.stop = Stop::watching(&IMPATIENCE);
    let error = run(&study, &options, &|_| {}).unwrap_err();
    let RunError::Interrupted { done: 1, total: 6, stopped: Some(stopped) } = error else {
        panic!("{error}");
    };
    assert_eq!((stopped.run, stopped.at), (1, Time::from_nanos(1_000_000_000)));
    let aside = Folder::open(&stopped.folder).unwrap();
    assert_eq!(aside.missing, [0, 2, 3, 4, 5]);
    assert!(aside.plan.title.ends_with(": run 1, stopped after 1.0 s"), "{}", aside.plan.title);
    assert_eq!(Folder::open(&out).unwrap().missing, [1, 2, 3, 4, 5]);
    let error = join(&[out.clone(), stopped.folder.clone()], &scratch.path("both")).unwrap_err();
    assert!(matches!(error, RunError::OtherShard { .. }), "{error}");

    options.stop = Stop::default();
    let summary = run(&study, &options, &|_| {}).unwrap();
    assert_eq!(summary.progress, Progress { total: 6, done: 6, resumed: 1, failed: 0 });
    assert!(!stopped.folder.exists());
}

#[test]
fn a_run_that_panics_is_reported_and_the_others_are_kept() {
    let scratch = Scratch::new("runner");
    let text = STUDY_TEXT.replace("[factors]\n", "[factors]\nengine = [\"sim\", \"panics\"]\n");
    let broken = with_engines(&text).unwrap();
    let progress = Mutex::new(Vec::new());
    let options = options(scratch.path("out"), 2, "1/1");
    let summary = {
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let summary = run(&broken, &options, &|now| progress.lock().unwrap().push(now));
        std::panic::set_hook(quiet);
        summary.unwrap()
    };
    let broken_runs: Vec<u32> = (6..12).collect();
    assert_eq!(summary.failed.iter().map(|failed| failed.run).collect::<Vec<_>>(), broken_runs);
    assert!(summary.failed[0].problem.contains("panicked"), "{}", summary.failed[0].problem);
    assert_eq!((summary.progress.done, summary.progress.failed), (6, 6));
    assert_eq!(progress.lock().unwrap().len(), 13);
    let results = Folder::open(scratch.path("out")).unwrap();
    assert_eq!(results.missing, broken_runs);
    assert_eq!(results.machine.unwrap().failed.len(), 6);
    assert!(scratch.path("out").join("journal.bin").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_and_no_panic() {
    let scratch = Scratch::new("runner");
    let file = scratch.write("file", "in the way");
    let error = run(&study(), &options(file, 1, "1/1"), &|_| {}).unwrap_err();
    assert!(matches!(error, RunError::Io { .. } | RunError::Results(_)), "{error}");
}

#[test]
fn the_same_seed_meets_the_same_chances_in_every_scenario() {
    let study = study();
    let plan = study.plan();
    let seeds: Vec<u64> = plan.runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 1, 2, 3]);
    assert_eq!(study.address(plan.runs[0].seed), study.address(plan.runs[3].seed));
    let ids: Vec<Digest> = plan.runs.iter().map(|run| run.id).collect();
    let count = Cell::new(0);
    ids.iter().enumerate().for_each(|(index, id)| {
        count.set(count.get() + usize::from(ids[..index].contains(id)));
    });
    assert_eq!(count.get(), 0, "every run has a name of its own");
}

sojourn_core::params! {
    /// An engine that simulates nothing: flows get a share of a rate.
    struct Shares: "shares", "every flow gets the same share of a rate" {
        rate: sojourn_core::Rate = "10mbit", "what is shared";
    }
}

impl Engine for Shares {
    const VERSION: u32 = 3;

    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        match scenario.flows.iter().any(|flow| matches!(flow.app, App::Ping(_))) {
            true => Err(SpecError::new("a ping has no share").allow(["flows over TCP"])),
            false => Ok(()),
        }
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        if address.run == 3 {
            return Err("it can't do seed 3".into());
        }
        let mut metrics = Collector::new(shape(scenario)).finish(Time::ZERO + scenario.duration);
        let share = self.rate.as_bps() as f64 / 1e6 / scenario.flows.len() as f64;
        metrics.totals.tcp_goodput_sum_mbps = share * scenario.flows.len() as f64;
        Ok(Measured {
            metrics,
            end_states: Vec::new(),
            is_stopped: false,
            troubles: vec!["it fell over".to_owned()],
        })
    }
}

fn with_engines(text: &str) -> Result<Study, String> {
    let mut registry = Registry::default();
    engine::add::<Shares>(&mut registry).expect("its name is free");
    engine::add::<Shares>(&mut registry).expect_err("it is taken now");
    engine::add::<Panics>(&mut registry).expect("its name is free");
    engine::add::<Stops>(&mut registry).expect("its name is free");
    let scratch = Scratch::new("engines");
    let file = scratch.write("study.toml", text);
    Study::load_with(&registry, &file, &Overrides::default()).map_err(|error| error.to_string())
}

#[test]
fn an_engine_is_a_factor_and_a_part_of_what_a_run_is() {
    let ids = |study: &Study| -> Vec<String> {
        study.plan().runs.iter().map(|run| run.id.to_string()).collect()
    };
    let factor = "[factors]\nengine = [\"sim\", \"shares\", \"shares rate=20mbit\"]\n";
    let text = STUDY_TEXT.replace("[factors]\n", factor);
    let study = with_engines(&text).expect("both engines are known");
    let plan = study.plan();
    let engines: Vec<Option<&str>> =
        plan.scenarios.iter().map(|scenario| scenario.engine.as_deref()).collect();
    let named = [None, Some("shares version=3"), Some("shares rate=20mbit version=3")];
    assert_eq!(engines, named.map(|name| [name; 2]).as_flattened());
    let (usual, all) = (ids(&self::study()), ids(&study));
    assert_eq!(all.len(), 18);
    assert_eq!(all[..6], usual[..], "the usual engine renames no run");
    assert!(all[6..].iter().all(|id| !usual.contains(id)));
    assert!(all[6..12].iter().all(|id| !all[12..].contains(id)), "parameters are part of it");
    let explicit = STUDY_TEXT.replace("duration =", "engine = \"sim\"\nduration =");
    assert_eq!(ids(&with_engines(&explicit).expect("it is built in")), usual);

    let scratch = Scratch::new("engines");
    let summary = run(&study, &options(scratch.path("out"), 2, "1/1"), &|_| {}).expect("it runs");
    let failed: Vec<_> = summary.failed.iter().map(|failed| &failed.problem[..]).collect();
    assert_eq!(failed, ["it can't do seed 3"; 4]);
    let troubled = summary.troubled.iter().map(|own| (own.run, &own.problem[..]));
    let has_result = |run: &u32| summary.failed.iter().all(|failed| failed.run != *run);
    let of_shares = (6..18).filter(has_result).map(|run| (run, "it fell over"));
    assert!(troubled.eq(of_shares), "{:?}", summary.troubled);
    let results = Folder::open(scratch.path("out")).unwrap();
    let goodput = |run: u32| {
        let row = &results.table.run(run)[0];
        results.table.value(row, "tcp_goodput_sum_mbps").expect("it was measured")
    };
    assert!((8.0..10.0).contains(&goodput(0)));
    assert_eq!((goodput(6), goodput(12)), (10.0, 20.0));
}

#[test]
fn an_engine_that_is_not_there_or_cannot_is_answered_with_what_is_allowed() {
    let error = |engine: &str, more: &str| {
        let key = format!("engine = \"{engine}\"\nduration =");
        with_engines(&(STUDY_TEXT.replace("duration =", &key) + more)).map(|_| ()).unwrap_err()
    };
    let said = error("oracle", "");
    assert!(
        said.contains(
            "scenario.engine: unknown engine 'oracle' (allowed: sim, fluid, shares, panics, stops)"
        ),
        "{said}"
    );
    let said = error("shares rat=1mbit", "");
    assert!(said.contains("shares has no parameter 'rat'; did you mean 'rate'?"), "{said}");
    let ping = "[[scenario.flow]]\nname = \"p\"\napp = \"ping\"\n";
    let said = error("shares", ping);
    assert!(
        said.contains("scenario.engine: a ping has no share (allowed: flows over TCP)"),
        "{said}"
    );
}

/// What is divided over several row groups comes back in one piece, columns that begin late included.
#[test]
fn a_run_of_many_rows_is_read_as_it_was_written() {
    use crate::results::{Bucket, Delays, Series, SeriesColumn, SeriesRows};
    let steps = 30_000;
    let column = |name: &str, from: usize| SeriesColumn {
        name: name.into(),
        values: (0..steps).map(|step| (step >= from).then_some(step as f64)).collect(),
    };
    let series = |run, kind, name: &str| Series {
        run,
        kind,
        name: name.into(),
        t_s: (0..steps).map(|step| step as f64).collect(),
        columns: vec![column("goodput_mbps", 0), column("rtt_mean_ms", 20_000)],
        phase: (0..steps).map(|step| if step < 25_000 { "" } else { "Drain" }.into()).collect(),
    };
    let delays = |run, name: &str| Delays {
        run,
        kind: Kind::Flow,
        name: name.into(),
        metric: "rtt".into(),
        buckets: (0..100_000)
            .map(|low_ns| Bucket { low_ns, high_ns: low_ns, samples: 1 })
            .collect(),
    };
    let scratch = Scratch::new("divided");
    let folder = Folder::new(scratch.path("out"));
    fs::create_dir_all(&folder).unwrap();
    let plan = study().plan();
    let writer_of = FolderWriter::new(folder, "");
    let mut writer = StoreWriter::create(&writer_of.tables(), &plan).unwrap();
    let results: Vec<RunResult> = (0..2)
        .map(|run| RunResult {
            run,
            pieces: 0,
            rows: Vec::new(),
            series: [series(run, Kind::Flow, "cubic"), series(run, Kind::Queue, "queue")]
                .each_ref()
                .map(SeriesRows::from)
                .into(),
            delays: vec![delays(run, "cubic"), delays(run, "others.1")],
        })
        .collect();
    for result in &results {
        writer.add(result.clone().into()).unwrap();
    }
    writer_of.publish(writer.finish().unwrap()).unwrap();

    // Groups that others encode come back late, and in another order.
    let other = Folder::new(scratch.path("other"));
    fs::create_dir_all(&other).unwrap();
    let other = FolderWriter::new(other, "");
    let mut writer = StoreWriter::create(&other.tables(), &plan).unwrap();
    let mut taken = Vec::new();
    for result in &results {
        writer.add(result.clone().into()).unwrap();
        taken.extend(writer.take_full());
    }
    assert!(taken.len() > 2, "{} groups were full", taken.len());
    for group in taken.into_iter().rev() {
        writer.put(group.encode().unwrap()).unwrap();
    }
    other.publish(writer.finish().unwrap()).unwrap();
    assert!(tables(other.folder().as_ref()) == tables(writer_of.folder().as_ref()));

    let mut reader = writer_of.folder().reader(&plan).unwrap();
    for result in &results {
        assert!(reader.series(result.run).unwrap() == result.series(), "run {}", result.run);
        assert!(reader.delays(result.run).unwrap() == result.delays, "run {}", result.run);
    }
}
