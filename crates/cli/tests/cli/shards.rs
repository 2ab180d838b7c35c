//! Parts of a study, run apart and joined.

use crate::scratch::Scratch;

#[test]
fn two_shards_joined_are_the_whole() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "whole"]);
    for shard in ["1/2", "2/2"] {
        let out = format!("part-{}", &shard[..1]);
        let ended = scratch.must(&["run", "study.toml", "--shard", shard, "--out", &out]);
        assert!(ended.stdout.contains("3 of 3 done"), "{}", ended.stdout);
        assert!(ended.stdout.contains("sojourn join"), "{}", ended.stdout);
    }
    let ended = scratch.must(&["join", "part-2", "part-1", "--out", "joined"]);
    assert!(ended.stdout.contains("held"), "{}", ended.stdout);
    scratch.assert_same_results("whole", "joined");
    assert!(scratch.read("joined/report.html").contains("Two flows and a queue"));
}

#[test]
fn shards_and_the_whole_have_folders_of_their_own() {
    let scratch = Scratch::new();
    for shard in ["1/2", "2/2"] {
        scratch.must(&["run", "study.toml", "--shard", shard]);
    }
    let names = scratch.names();
    let parts: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("results/") && !name["results/".len()..].contains('/'))
        .collect();
    assert_eq!(parts.len(), 2, "{names:?}");
    assert!(parts[0].ends_with("-1-of-2") && parts[1].ends_with("-2-of-2"), "{parts:?}");

    scratch.must(&[&["join"], &parts[..]].concat());
    let whole = parts[0].strip_suffix("-1-of-2").unwrap();
    let ended = scratch.must(&["run", "study.toml", "--dry-run"]);
    assert!(ended.stdout.contains(&format!("results would go to {whole}\n")), "{}", ended.stdout);
    assert!(ended.stdout.contains("6 done already"), "{}", ended.stdout);
}

#[test]
fn a_missing_shard_is_told() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--shard", "1/2", "--out", "part"]);
    let ended = scratch.sojourn(&["join", "part", "--out", "joined"]);
    assert_eq!(ended.code, Some(1), "a claim over half of the runs is no success");
    assert!(ended.stderr.contains("3 runs have no result, hence exit code 1"), "{}", ended.stderr);
    assert!(ended.stderr.contains("3 of 6 runs are in none of the folders"), "{}", ended.stderr);
    assert!(ended.stdout.contains("3 of 6 done"), "{}", ended.stdout);
    let page = scratch.read("joined/report.html");
    assert!(page.contains("3 of 6 runs have no result yet"), "{page}");
    assert!(page.contains("<code>sojourn join</code> with the folders of all shards"));
    assert!(!page.contains("goes on where it stopped"));
    // Nor is it taken for a whole.
    let ended = scratch.sojourn(&["run", "study.toml", "--out", "joined"]);
    assert_eq!(ended.code, Some(2));
    let told = "joined was joined from shards that lack 3 of its 6 runs";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    scratch.must(&["run", "study.toml", "--shard", "2/2", "--out", "other"]);
    scratch.must(&["join", "part", "other", "--out", "joined"]);
    scratch.must(&["run", "study.toml", "--out", "joined"]);
}

#[test]
fn what_is_made_of_a_part_says_so() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "whole"]);
    scratch.must(&["run", "study.toml", "--shard", "1/2", "--out", "part"]);
    for words in [&["show", "part"][..], &["show", "part", "-m", "goodput"]] {
        let shown = scratch.must(words).stdout;
        assert!(shown.contains("(1 of 3 runs)") && shown.contains("(2 of 3 runs)"), "{shown}");
        assert!(shown.contains("(n of N runs): the other runs have no result\n"), "{shown}");
    }
    for words in [&["show", "part", "1"][..], &["export", "part", "1", "--format", "flent"]] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2));
        assert_eq!(ended.stderr, "error: run 1 is not done yet\n");
    }
    let compared = scratch.must(&["compare", "whole", "part"]).stdout;
    let all = "All 3 runs that both folders have are the same, event by event; 3 runs are in one of them alone.\n";
    assert!(compared.starts_with(all), "{compared}");
    assert!(compared.contains("pfifo limit 50: 1 run only before\n"), "{compared}");
    assert!(compared.contains("fq_codel: 2 runs only before\n"), "{compared}");
}

#[test]
fn folders_are_not_joined_into_one_of_them() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--shard", "1/2", "--out", "part"]);
    let before = scratch.names();
    let ended = scratch.sojourn(&["join", "part", "--out", "part"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("choose another"), "{}", ended.stderr);
    assert_eq!(scratch.names(), before);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let scratch = Scratch::new();
    for jobs in ["1", "2", "8"] {
        scratch.must(&["run", "study.toml", "--jobs", jobs, "--out", &format!("with-{jobs}")]);
    }
    scratch.assert_same_results("with-1", "with-2");
    scratch.assert_same_results("with-1", "with-8");
}
