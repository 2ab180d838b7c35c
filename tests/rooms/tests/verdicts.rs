//! What whole shipped studies come to: which claims hold and what was measured, in `verdicts.toml` beside this file, and the figures of
//! their pages, `FILE.VIEW.svg` beside the study or a table between marks. `bash .ci/test verdicts` renews both. The verdicts are of today's models and studies,
//! and pages count the claims that hold as they do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sojourn_report::Alone;
use sojourn_study::digest::Digest;
use sojourn_study::results::{ClaimResult, Folder, Verdict};
use sojourn_study::{Overrides, Study, runner};

/// Studies that no machine can be asked to run whole, and why.
const SKIPPED: &[(&str, &str)] = &[
    ("live-first/study.toml", "real packets of this machine, which take real time and root"),
    ("live-first/iperf3.toml", "real packets of this machine, which take real time and root"),
    ("webrtc-coexistence/live.toml", "real packets of this machine, which take real time and root"),
    ("patch-check/study.toml", "two kernels, which have to be built first"),
    ("mmwave/measured.toml", "measured traces, which are no part of the repository"),
];

/// By the file's path within `studies`.
type Verdicts = BTreeMap<String, Whole>;

/// `verdicts.toml`, beside this file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Kept {
    /// Studies that nobody has run whole since this file is kept. Nothing is known of them.
    #[serde(default)]
    waiting: BTreeSet<String>,
    #[serde(flatten)]
    verdicts: Verdicts,
}

/// What a whole study came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Whole {
    /// [`sojourn_sim::MODEL_VERSION`] of then.
    models: u32,
    /// Of what was run and claimed: see [`digest`].
    digest: String,
    holds: Vec<String>,
    fails: Vec<String>,
    /// Could not be tested, such as for want of samples.
    open: Vec<String>,
    /// Means over seeds by claim, one for each comparison: `0.41, 2.56 Mbit/s`.
    #[serde(default)]
    measured: BTreeMap<String, String>,
}

impl Whole {
    fn claims(&self) -> usize {
        self.holds.len() + self.fails.len() + self.open.len()
    }
}

fn studies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

/// The shipped files that claim something and can be run whole, with their names.
fn shipped() -> Vec<(String, Study)> {
    let mut files: Vec<PathBuf> = sorted(&studies()).iter().flat_map(|it| sorted(it)).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    let named = files.iter().map(|path| (name_of(path), path));
    named
        .filter(|(name, _)| !SKIPPED.iter().any(|(skipped, _)| skipped == name))
        .map(|(name, path)| {
            let study = Study::load(path, &Overrides::default());
            (name, study.unwrap_or_else(|error| panic!("{error}")))
        })
        .filter(|(_, study)| !study.claims.is_empty())
        .collect()
}

/// What is in a folder; nothing, if it is a file.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    let name = path.strip_prefix(studies()).unwrap();
    name.to_string_lossy().replace('\\', "/")
}

/// Of the worlds, seeds and bounds, without the version of models. Titles, figures and notes do not change it.
fn digest(study: &Study) -> String {
    let world = |at: usize| {
        let scenario = study.scenarios.get(at).expect("it is counted");
        let engine = scenario.engine.as_ref().and_then(|engine| engine.canonical());
        (scenario.scenario.canonical(), engine, scenario.factors.clone())
    };
    let worlds: Vec<_> = (0..study.scenarios.len()).map(world).collect();
    let factors: Vec<_> = study.factors.iter().map(|factor| &factor.name).collect();
    let claims: Vec<_> = study
        .claims
        .iter()
        .map(|claim| {
            let bounds: Vec<_> = claim.expect.iter().map(|bound| &bound.text).collect();
            (&claim.id, &claim.filter, bounds, claim.untestable.is_some())
        })
        .collect();
    Digest::of_json(&(worlds, factors, study.study_seed, &study.seeds, claims)).to_string()
}

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verdicts.toml");

fn committed() -> Kept {
    let text = std::fs::read_to_string(KEPT).unwrap_or_default();
    toml::from_str(&text).expect("verdicts.toml is as it was written")
}

/// Why an entry is not of today; `None` if it is.
fn stale(kept: Option<&Whole>, study: &Study) -> Option<String> {
    let Some(kept) = kept else {
        return Some("was never run whole".to_owned());
    };
    if kept.models != sojourn_sim::MODEL_VERSION {
        let now = sojourn_sim::MODEL_VERSION;
        return Some(format!("was run with models {}, and today's are {now}", kept.models));
    }
    (kept.digest != digest(study)).then(|| "has other worlds, seeds or bounds than then".to_owned())
}

#[test]
fn the_verdicts_are_of_todays_models_and_studies() {
    let kept = committed();
    let shipped = shipped();
    let mut wrong: Vec<String> = shipped
        .iter()
        .filter(|(name, _)| !kept.waiting.contains(name))
        .filter_map(|(name, study)| Some((name, stale(kept.verdicts.get(name), study)?)))
        .map(|(name, why)| format!("studies/{name} {why}: bash .ci/test verdicts {name}"))
        .collect();
    let named = kept.verdicts.keys().chain(&kept.waiting);
    let gone = named.filter(|name| !shipped.iter().any(|(own, _)| own == *name));
    wrong.extend(gone.map(|name| format!("studies/{name} is gone: bash .ci/test verdicts {name}")));
    assert!(
        wrong.is_empty(),
        "`bash .ci/test verdicts` renews all of these:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn what_is_skipped_is_there() {
    for (name, _) in SKIPPED {
        assert!(studies().join(name).exists(), "{name}");
    }
}

/// Runs what `STUDIES` names, by parts of names; without it, what is stale. Finished runs of a study are kept, so it goes on
/// where it was stopped.
#[expect(clippy::print_stdout, reason = "whoever waits for it sees how far it is")]
#[test]
#[ignore = "minutes to an hour: bash .ci/test verdicts"]
fn renewed() {
    let wanted = std::env::var("STUDIES").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let shipped = shipped();
    let unknown: Vec<_> = wanted
        .iter()
        .filter(|part| !shipped.iter().any(|(name, _)| name.contains(**part)))
        .collect();
    let Kept { mut waiting, mut verdicts } = committed();
    verdicts.retain(|name, _| shipped.iter().any(|(own, _)| own == name));
    waiting.retain(|name| shipped.iter().any(|(own, _)| own == name));
    for (name, why) in SKIPPED {
        println!("skipped: {name}, as it needs {why}");
    }
    for (name, study) in &shipped {
        let is_wanted = match wanted.is_empty() {
            true => stale(verdicts.get(name), study).is_some(),
            false => wanted.iter().any(|part| name.contains(part)),
        };
        if is_wanted {
            let began = Instant::now();
            let (whole, changed) = run(name, study);
            let (held, of) = (whole.holds.len(), whole.claims());
            println!(
                "{name}: {held} of {of} claims hold, in {:.0} s",
                began.elapsed().as_secs_f64()
            );
            for figure in changed {
                println!("    changes studies/{figure}");
            }
            verdicts.insert(name.clone(), whole);
            waiting.remove(name);
            write(&waiting, &verdicts);
        }
    }
    write(&waiting, &verdicts);
    assert!(unknown.is_empty(), "no study that is run whole has such a name: {unknown:?}");
}

/// What it came to, and the figures that became others.
fn run(name: &str, study: &Study) -> (Whole, Vec<String>) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace(['/', '.'], "-"));
    let options = runner::Options::new(&out);
    let summary = runner::run(study, &options, &|_| {}).or_else(|error| match error {
        // Of other models, or as the file was then.
        runner::RunError::OtherStudy { .. } => {
            std::fs::remove_dir_all(&out).unwrap();
            runner::run(study, &options, &|_| {})
        }
        error => Err(error),
    });
    let summary = summary.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(summary.failed, [], "{name}");
    let changed = renew(name, &out);
    std::fs::remove_dir_all(&out).unwrap();
    let claims = summary.claims.expect("it is no shard").claims;
    let of = |verdict: Verdict| {
        let those = claims.iter().filter(|claim| claim.verdict == verdict);
        those.map(|claim| claim.id.clone()).collect()
    };
    let whole = Whole {
        models: sojourn_sim::MODEL_VERSION,
        digest: digest(study),
        holds: of(Verdict::Holds),
        fails: of(Verdict::Fails),
        open: of(Verdict::Untestable),
        measured: claims.iter().map(|claim| (claim.id.clone(), measured(claim))).collect(),
    };
    (whole, changed)
}

/// With three digits, so that a difference is one that a page would show.
fn measured(claim: &ClaimResult) -> String {
    let values = claim.checks.iter().map(|check| check.value.as_ref());
    let unit = values.clone().flatten().next().map_or("", |value| &value.unit);
    let means: Vec<String> = values
        .map(|value| match value {
            Some(value) => three_digits(value.mean),
            None => "?".to_owned(),
        })
        .collect();
    format!("{} {unit}", means.join(", ")).trim_end().to_owned()
}

fn three_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().expect("it is a number");
    rounded.to_string()
}

/// A figure of a study's page.
struct Shown {
    /// The file that has it: the drawing, or the page with the table.
    path: PathBuf,
    /// Of the study, within `studies`: `home-router/study.toml`.
    study: String,
    view: String,
    is_table: bool,
}

/// The drawings of all pages, `FILE.VIEW.svg` in the folder of `FILE.toml`, and their tables, which stand between
/// `<!-- FILE.VIEW -->` and [`END`].
fn figures() -> Vec<Shown> {
    let files = sorted(&studies()).into_iter().flat_map(|folder| sorted(&folder));
    files.flat_map(|path| figures_of(&path)).collect()
}

fn figures_of(path: &Path) -> Vec<Shown> {
    let shown = |name: &str, is_table: bool| {
        let Some((file, view)) = name.split_once('.') else {
            panic!("{}: {name} is not FILE.VIEW, so nothing makes it", path.display())
        };
        let study = name_of(&path.with_file_name(format!("{file}.toml")));
        Shown { path: path.to_owned(), study, view: view.to_owned(), is_table }
    };
    match path.extension().and_then(|end| end.to_str()) {
        Some("svg") => {
            vec![shown(&path.file_stem().expect("it has an end").to_string_lossy(), false)]
        }
        Some("md") => {
            let page = std::fs::read_to_string(path).unwrap();
            let begins = page.lines().filter_map(|line| line.strip_prefix("<!-- "));
            let names = begins.filter_map(|line| line.strip_suffix(" -->"));
            names.filter(|name| *name != "end").map(|name| shown(name, true)).collect()
        }
        _ => Vec::new(),
    }
}

/// Behind a table of a page.
const END: &str = "<!-- end -->";

/// Makes the figures of a study that its page has, and returns those that became others.
fn renew(name: &str, out: &Path) -> Vec<String> {
    let own = figures().into_iter().filter(|shown| shown.study == name);
    own.filter_map(|Shown { path, view, is_table, study }| {
        let results = Folder::open(out).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut rows = results.reader().unwrap_or_else(|error| panic!("{name}: {error}"));
        let figure = sojourn_report::figure(&results, &mut rows, &view)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        let new = match (figure, is_table) {
            (Alone::Drawing(svg), false) => svg,
            (Alone::Tables { markdown, .. }, true) => {
                let file = Path::new(&study).file_stem().expect("it is a file").to_string_lossy();
                with_table(&old, &format!("{file}.{view}"), &markdown)
                    .unwrap_or_else(|| panic!("{}: {view} has no end", path.display()))
            }
            (_, true) => panic!("{}: {view} is a drawing", path.display()),
            (_, false) => panic!("{}: {view} is a table", path.display()),
        };
        let is_same = old == new;
        std::fs::write(&path, new).unwrap();
        (!is_same).then(|| format!("{}, view {view}", name_of(&path)))
    })
    .collect()
}

/// The page with this table between its marks; `None` if there are none.
fn with_table(page: &str, name: &str, table: &str) -> Option<String> {
    let begin = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, behind) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n{table}\n{END}{behind}"))
}

#[test]
fn a_table_goes_between_its_marks() {
    let page =
        "a\n<!-- study.rates -->\n| old |\n<!-- end -->\nb\n<!-- study.waits -->\n<!-- end -->\n";
    let whole = with_table(page, "study.rates", "| new |\n").unwrap();
    let expected = "a\n<!-- study.rates -->\n\n| new |\n\n<!-- end -->\nb\n<!-- study.waits -->\n<!-- end -->\n";
    assert_eq!(whole, expected);
    assert_eq!(with_table(&whole, "study.rates", "| new |\n").as_ref(), Some(&whole));
    assert_eq!(with_table(page, "study.other", ""), None);
}

#[test]
fn pages_show_figures_that_their_studies_make() {
    let figures = figures();
    for Shown { path, study, view, is_table } in &figures {
        let file = studies().join(study);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
            panic!("{}: {}: {error}", path.display(), file.display());
        });
        assert!(
            text.contains(&format!("[views.{view}]")),
            "{}: no view of {study} is named {view}",
            path.display()
        );
        if !is_table {
            let page = std::fs::read_to_string(path.with_file_name("README.md")).unwrap();
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(page.contains(&format!("]({name})")), "{} is on no page", path.display());
        }
    }
    let tables = figures.iter().filter(|shown| shown.is_table).count();
    assert!(
        tables >= 6 && figures.len() - tables >= 15,
        "only {tables} of {} are tables",
        figures.len()
    );
}

fn write(waiting: &BTreeSet<String>, verdicts: &Verdicts) {
    let mut text = "# Which claims of the shipped studies hold, fail or can't be tested (open), run whole, and what was measured: the mean of each \
                    comparison.\n# `bash .ci/test verdicts` writes it; CONTRIBUTING.md says when.\n"
        .to_owned();
    if !waiting.is_empty() {
        let names: Vec<String> = waiting.iter().map(|name| format!("    \"{name}\",\n")).collect();
        text += &format!("\n# Not run whole yet.\nwaiting = [\n{}]\n", names.concat());
    }
    for (name, whole) in verdicts {
        let of =
            |ids: &[String]| serde_json::to_string(ids).expect("names are text").replace(',', ", ");
        let Whole { models, digest, .. } = whole;
        text += &format!("\n[\"{name}\"]\nmodels = {models}\ndigest = \"{digest}\"\n");
        text += &format!("holds = {}\n", of(&whole.holds));
        text += &format!("fails = {}\nopen = {}\n", of(&whole.fails), of(&whole.open));
        text += &format!("\n[\"{name}\".measured]\n");
        for (id, measured) in &whole.measured {
            text += &format!("{id:?} = {measured:?}\n");
        }
    }
    std::fs::write(KEPT, text).unwrap();
}

/// Where a page counts claims: `6 of 7 claims hold (not W3)`.
#[derive(Clone, Debug, PartialEq)]
struct Count {
    line: usize,
    number: usize,
    of: usize,
    /// Hold, or else do not.
    hold: bool,
    /// In brackets behind it, if there are any: those that do, or behind `not` those that do not.
    names: Vec<String>,
    are_others: bool,
}

/// The counts in a page, and what reads like one and is not written in this form.
fn counts(page: &str) -> (Vec<Count>, Vec<String>) {
    let (mut found, mut odd) = (Vec::new(), Vec::new());
    // Sentences go over ends of lines.
    let lines = page.lines().enumerate();
    let words: Vec<(usize, &str)> = lines
        .flat_map(|(at, line)| line.split_whitespace().map(move |word| (at + 1, word)))
        .collect();
    let word = |at: usize| words.get(at).map_or("", |(_, word)| bare(word));
    let is_noun = |at: usize| matches!(word(at), "claims" | "hypotheses");
    for at in 0..words.len() {
        let line = words[at].0;
        let (number, of, noun) = match (number(word(at)), word(at + 1), number(word(at + 2))) {
            (Some(count), "of", Some(of)) => (count, of, at + 3),
            _ if word(at).eq_ignore_ascii_case("all") && number(word(at + 1)).is_some() => {
                let all = number(word(at + 1)).unwrap_or_default();
                (all, all, at + 2)
            }
            (Some(_), _, _) if is_noun(at + 1) && verb(&word, at + 2).is_some() => {
                let is_counted =
                    at >= 2 && word(at - 1) == "of" && self::number(word(at - 2)).is_some();
                if !is_counted && !word(at.wrapping_sub(1)).eq_ignore_ascii_case("all") {
                    odd.push(format!("{line}: {} {}", word(at), word(at + 1)));
                }
                continue;
            }
            _ => continue,
        };
        let Some((hold, last)) = verb(&word, noun + usize::from(is_noun(noun))) else {
            continue;
        };
        let rest: Vec<&str> = words[last + 1..].iter().map(|(_, word)| *word).collect();
        let (names, are_others) = in_brackets(&rest);
        found.push(Count { line, number, of, hold, names, are_others });
    }
    (found, odd)
}

/// Whether something holds, and the last word that says so.
fn verb<'a>(word: &impl Fn(usize) -> &'a str, at: usize) -> Option<(bool, usize)> {
    match (word(at), word(at + 1), word(at + 2)) {
        ("hold" | "holds", ..) => Some((true, at)),
        ("fail" | "fails", ..) => Some((false, at)),
        ("do" | "does", "not", "hold") => Some((false, at + 2)),
        _ => None,
    }
}

fn in_brackets(words: &[&str]) -> (Vec<String>, bool) {
    if !words.first().is_some_and(|word| word.starts_with('(')) {
        return (Vec::new(), false);
    }
    let Some(end) = words.iter().position(|word| word.contains(')')) else {
        return (Vec::new(), false);
    };
    let names: Vec<String> = words[..=end].iter().map(|word| bare(word).to_owned()).collect();
    let are_others = names[0] == "not";
    (names.into_iter().filter(|name| name != "not" && name != "and").collect(), are_others)
}

/// Without what stands around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|it: char| ".,:;()*#`\"".contains(it))
}

fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 13] = [
        "none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let of_word = WORDS.iter().position(|own| own.eq_ignore_ascii_case(word));
    of_word.or_else(|| word.parse().ok())
}

/// What is wrong with a count on a page of `folder`; its line may name the file, else it is of `study.toml` or of all files.
/// `None` if it can't be said, as not all of the studies were run.
fn check(count: &Count, line: &str, folder: &str, kept: &Kept) -> Option<Result<(), String>> {
    let Kept { waiting, verdicts } = kept;
    let of_folder = |name: &str| name.split('/').next() == Some(folder);
    let own: Vec<(&String, &Whole)> = verdicts.iter().filter(|(name, _)| of_folder(name)).collect();
    let file = |name: &str| name.split('/').nth(1).unwrap_or_default().to_owned();
    let is_named = |name: &str| {
        line.split(|it: char| it.is_whitespace() || "`()".contains(it))
            .any(|word| word == file(name) || word.ends_with(&format!("/{}", file(name))))
    };
    let unknown =
        || waiting.iter().map(String::as_str).chain(SKIPPED.iter().map(|(name, _)| *name));
    if unknown().any(|name| of_folder(name) && is_named(name)) {
        return None;
    }
    let named = own.iter().find(|(name, _)| is_named(name));
    let first = own.iter().find(|(name, _)| file(name) == "study.toml");
    let all: usize = own.iter().map(|(_, whole)| whole.claims()).sum();
    if named.is_none() && waiting.iter().any(|name| of_folder(name)) {
        let is_first = first.is_some_and(|(_, first)| first.claims() == count.of);
        if !is_first {
            return None;
        }
    }
    let whole: Vec<&Whole> = match (named, first) {
        (Some((_, named)), _) => vec![named],
        (None, Some((_, first))) if count.of != all || first.claims() == all => vec![first],
        _ => own.iter().map(|(_, whole)| *whole).collect(),
    };
    let ids = |of: fn(&Whole) -> Vec<String>| -> BTreeSet<String> {
        whole.iter().flat_map(|whole| of(whole)).collect()
    };
    let holds = ids(|whole| whole.holds.clone());
    let fails = ids(|whole| whole.fails.clone());
    let others = ids(|whole| [&whole.fails[..], &whole.open].concat());
    let sum = |of: fn(&Whole) -> usize| -> usize { whole.iter().map(|whole| of(whole)).sum() };
    let (held, failed) = (sum(|whole| whole.holds.len()), sum(|whole| whole.fails.len()));
    let (right, total) = (if count.hold { held } else { failed }, sum(Whole::claims));
    if (count.number, count.of) != (right, total) {
        return Some(Err(format!(
            "{held} of {total} claims hold and {failed} fail; not {others:?}"
        )));
    }
    let wanted = match (count.hold, count.are_others) {
        (true, false) => holds,
        (true, true) => others,
        (false, _) => fails,
    };
    let names: BTreeSet<String> = count.names.iter().cloned().collect();
    // Brackets may say something else.
    let known = ids(|whole| [&whole.holds[..], &whole.fails, &whole.open].concat());
    let are_claims = !names.is_empty() && names.iter().all(|name| known.contains(name));
    if are_claims && names != wanted {
        return Some(Err(format!("it is {wanted:?} and not {names:?}")));
    }
    Some(Ok(()))
}

#[test]
fn pages_count_the_claims_that_hold_as_whole_runs_do() {
    let kept = committed();
    let mut wrong = Vec::new();
    let mut found = 0;
    for folder in sorted(&studies()) {
        let Ok(page) = std::fs::read_to_string(folder.join("README.md")) else { continue };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let (counts, odd) = counts(&page);
        let lines: Vec<&str> = page.lines().collect();
        for count in counts {
            found += 1;
            if let Some(Err(problem)) = check(&count, lines[count.line - 1], &name, &kept) {
                wrong.push(format!("studies/{name}/README.md:{}: {problem}", count.line));
            }
        }
        wrong.extend(odd.iter().map(|odd| {
            format!("studies/{name}/README.md:{odd}: write of how many: '2 of 9 claims fail'")
        }));
    }
    assert!(wrong.is_empty(), "verdicts.toml has it otherwise:\n{}", wrong.join("\n"));
    assert!(found >= 20, "only {found} counts were found");
}

#[test]
fn counts_are_found_as_people_write_them() {
    let page = "**Three of five claims\nfail**: `a`. Of the claims 6 of 7 hold (not W3).\nAll nine claims hold. 1 of 2 hold (A, B)\n";
    let (found, odd) = counts(page);
    let short: Vec<_> = found.iter().map(|it| (it.line, it.number, it.of, it.hold)).collect();
    assert_eq!(short, [(1, 3, 5, false), (2, 6, 7, true), (3, 9, 9, true), (3, 1, 2, true)]);
    assert_eq!((&found[1].names[..], found[1].are_others), (&["W3".to_owned()][..], true));
    assert_eq!(found[3].names, ["A", "B"]);
    assert!(odd.is_empty(), "{odd:?}");
    // Of how many is not said.
    assert_eq!(counts("ends with 1, as two claims fail").1, ["1: two claims"]);
    assert_eq!(counts("Some claims fail, and half of 30 runs end").0, []);
}

#[test]
fn a_wrong_count_and_a_wrong_name_are_found() {
    let ids = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let of = |holds: &[&str], fails: &[&str]| Whole {
        models: 1,
        digest: String::new(),
        holds: ids(holds),
        fails: ids(fails),
        open: vec![],
        measured: BTreeMap::new(),
    };
    let verdicts = Verdicts::from([
        ("a/study.toml".to_owned(), of(&["A", "B"], &["C"])),
        ("a/more.toml".to_owned(), of(&["D"], &[])),
    ]);
    let kept = Kept { waiting: BTreeSet::new(), verdicts };
    let is_right = |line: &str| {
        let (found, _) = counts(line);
        assert_eq!(found.len(), 1, "{line}");
        check(&found[0], line, "a", &kept).is_some_and(|right| right.is_ok())
    };
    assert!(is_right("2 of 3 claims hold (A, B)") && is_right("2 of 3 claims hold (not C)"));
    assert!(is_right("1 of 3 claims fail (C)") && is_right("3 of 4 claims hold"));
    assert!(is_right("`more.toml`: all one claims hold") && !is_right("`more.toml`: 2 of 3 hold"));
    assert!(!is_right("3 of 3 claims hold") && !is_right("2 of 3 claims hold (A, C)"));
    assert!(!is_right("2 of 3 claims hold (not B)") && is_right("2 of 3 hold (seeds: 5)"));
    let waiting = BTreeSet::from(["a/late.toml".to_owned()]);
    let later = Kept { waiting, ..kept.clone() };
    for (line, is_known) in
        [("2 of 3 hold", true), ("3 of 9 hold", false), ("`late.toml`: 1 of 2 hold", false)]
    {
        let (found, _) = counts(line);
        assert_eq!(check(&found[0], line, "a", &later).is_some(), is_known, "{line}");
    }
}
