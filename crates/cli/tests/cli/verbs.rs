//! What each verb does when all is well.

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::scratch::{Ended, Scratch};

#[test]
fn a_run_ends_with_claims_a_report_and_the_line_that_repeats_it() {
    let scratch = Scratch::new();
    let ended = scratch.must(&["run", "study.toml"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("verdict"), "{}", ended.stdout);
    assert!(lines[1].contains("held   busy"), "{}", ended.stdout);
    let fact = |name: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}: {}", ended.stdout)).trim()
    };
    assert!(fact("runs").starts_with("6 of 6 done"), "{}", ended.stdout);
    assert_eq!(fact("repeat"), "sojourn run study.toml");
    let report = scratch.read(fact("report"));
    assert!(report.contains("Two flows and a queue"));
    assert!(report.contains("The link is used"));
}

#[test]
fn a_folder_stands_for_the_study_in_it() {
    let scratch = Scratch::new();
    let ended = scratch.must(&["run", ".", "--dry-run"]);
    assert!(ended.stdout.contains("2 scenarios × 3 seeds = 6 runs"), "{}", ended.stdout);
}

#[test]
fn a_claim_that_fails_ends_with_1() {
    let scratch = Scratch::new();
    scratch.study_with("> 5 Mbps", "> 50 Mbps");
    let ended = scratch.sojourn(&["run", "study.toml", "--out", "out"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("✗ not held  busy"), "{}", ended.stdout);
    assert!(ended.stdout.contains("1 claim: 0 held, 1 not held, 0 untestable"), "{}", ended.stdout);
    assert!(scratch.path("out/report.html").exists());
}

/// Those that do not hold are seen at once: up to fifty claims stand as the study has them, with what failed named below; of more, they come first.
#[test]
fn what_fails_is_seen_among_many_claims() {
    for (all, first, left_out) in [
        (30, "C1", None),
        (
            300,
            "C7",
            Some(
                "250 claims more are not listed (250 held, 0 not held, 0 untestable): 'sojourn show out --all' lists all\n",
            ),
        ),
    ] {
        let scratch = Scratch::new();
        let mut study = "schema = 1\ntitle = \"t\"\n[scenario]\nduration = \"2s\"\n\
                         path = { rate = \"10Mbps\", rtt = \"20ms\", queue = \"pfifo limit 50\" }\n\
                         [[scenario.flow]]\nname = \"a\"\napp = \"bulk\"\n"
            .to_owned();
        for number in 1..=all {
            let least = if number % 100 == 0 || number == 7 { 50 } else { 1 };
            study += &format!(
                "[[claim]]\nid = \"C{number}\"\ntext = \"t\"\nexpect = \"goodput(a) > {least} Mbps\"\n"
            );
        }
        scratch.write("study.toml", &study);
        let ended = scratch.sojourn(&["run", "study.toml", "--out", "out", "--no-report"]);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let row = ended.stdout.lines().nth(1).expect("there are rows");
        assert!(row.split_whitespace().any(|word| word == first), "{row}");
        let failing = if all == 30 { "C7" } else { "C7, C100, C200, C300" };
        assert!(
            ended.stdout.contains(&format!(" untestable\nnot held: {failing}\n")),
            "{}",
            ended.stdout
        );
        match left_out {
            Some(line) => assert!(ended.stdout.contains(line), "{}", ended.stdout),
            None => assert!(!ended.stdout.contains("not listed"), "{}", ended.stdout),
        }
        assert!(ended.stdout.lines().count() < 65);
    }
}

/// Of two transfers one does not end; of the pings some find no way.
#[test]
fn a_claim_that_is_open_in_some_scenarios_does_not_hold_and_rows_say_what_they_lack() {
    let scratch = Scratch::new();
    let claim = |id: &str, expect: &str| {
        format!("[[claim]]\nid = \"{id}\"\ntext = \"t\"\nexpect = \"{expect}\"\n")
    };
    let study = r#"
schema = 1
title = "t"
[scenario]
duration = "4s"
path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 100", loss = "steps 0% 2s 100% 100s" }
[[scenario.flow]]
name = "t"
app = "bulk"
[[scenario.flow]]
name = "p"
app = "ping"
[factors]
"flow.t.bytes" = ["100kB", "1GB"]
"#;
    let claims = [
        claim("all", "completion_max(t) < 10 s"),
        claim("ping", "ping_max(p) < 2 s"),
        claim("same", "goodput(t) <= goodput(t)"),
    ];
    scratch.write("study.toml", &format!("{study}{}", claims.concat()));
    let ended = scratch.must(&["run", "study.toml", "--out", "out"]);
    let row = |mark: &str, id: &str| {
        let start = format!("{mark}{id}");
        let rows = ended.stdout.lines();
        let mut found = rows.filter(|row| row.replace(' ', "").starts_with(&start));
        found.next().unwrap_or_else(|| panic!("no {start}: {}", ended.stdout))
    };
    let all = row("?untestable", "all");
    assert!(all.contains("1/2"), "{all}");
    assert!(all.contains("held in 1 scenario, untestable in 1: 'completion_max"), "{all}");
    assert!(all.contains("0 of 1 transfers had ended"), "{all}");
    let ping = row("✓held", "ping");
    assert!(ping.contains("samples: the others were lost, or under way at the end"), "{ping}");
    let note = "note: claim 'same': 'goodput(t) <= goodput(t)' compares a metric with itself";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
}

#[test]
fn a_dry_run_writes_nothing() {
    let scratch = Scratch::new();
    let ended = scratch.must(&["run", "study.toml", "--dry-run"]);
    assert!(ended.stdout.contains("6 runs to run"), "{}", ended.stdout);
    assert!(ended.stdout.contains("12 s of virtual time"), "{}", ended.stdout);
    assert_eq!(scratch.names(), ["study.toml"]);
}

#[test]
fn a_figure_of_the_report_is_written_as_svg() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    let svg = scratch.must(&["report", "out", "--figure", "goodput"]).stdout;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    scratch.must(&["report", "out", "--figure", "goodput", "--out", "goodput.svg"]);
    assert_eq!(scratch.read("goodput.svg"), svg);
    assert!(!scratch.path("out/report.html").exists());
    let ended = scratch.sojourn(&["report", "out", "--figure", "godput"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("did you mean 'goodput'"), "{}", ended.stderr);
    let ended = scratch.sojourn(&["report", "out", "--figure", "goodput", "--out", "goodput.png"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("(allowed: a name that ends with .svg)"), "{}", ended.stderr);
    assert!(!scratch.path("goodput.png").exists());
}

#[test]
fn a_table_of_the_report_is_written_as_markdown_or_for_latex() {
    let scratch = Scratch::new();
    let text = scratch.read("study.toml");
    let view = "\n[views.numbers]\nkind = \"table\"\ny = [\"goodput\", \"rtt_p50\"]\n";
    scratch.write("study.toml", &(text + view));
    scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    let markdown = scratch.must(&["report", "out", "--figure", "numbers"]).stdout;
    assert!(markdown.starts_with("| ") && markdown.contains("|---|"), "{markdown}");
    assert!(markdown.contains("goodput (Mbit/s)"), "{markdown}");
    scratch.must(&["report", "out", "--figure", "numbers", "--out", "numbers.md"]);
    assert_eq!(scratch.read("numbers.md"), markdown);
    scratch.must(&["report", "out", "--figure", "numbers", "--out", "numbers.tex"]);
    let latex = scratch.read("numbers.tex");
    assert!(latex.starts_with("\\begin{tabular}"), "{latex}");
    assert_eq!(
        latex.lines().filter(|line| line.ends_with("\\\\")).count(),
        markdown.lines().count()
    );
    let ended = scratch.sojourn(&["report", "out", "--figure", "numbers", "--out", "numbers.svg"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("is a table, and not written as .svg"), "{}", ended.stderr);
}

#[test]
fn a_report_can_be_left_out_and_made_later() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    assert!(!scratch.path("out/report.html").exists());
    let ended = scratch.must(&["report", "out"]);
    assert_eq!(ended.stdout, "out/report.html\n");
    let page = scratch.read("out/report.html");
    assert_eq!(scratch.must(&["report", "out", "--out", "-"]).stdout, page);
    scratch.must(&["report", "out", "--out", "elsewhere.html"]);
    assert_eq!(scratch.read("elsewhere.html"), page);
}

#[test]
fn no_file_of_a_result_folder_is_written_over() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let names = ["runs.parquet", "plan.json", "study.toml", "SHA256SUMS", "machine.json"];
    for name in names.into_iter().chain(["runs-1-of-2.parquet", "journal.bin"]) {
        let out = format!("out/{name}");
        for words in [
            &["report", "out", "--out", &out][..],
            &["export", "out", "--format", "csv", "--out", &out],
            &["compare", "out", "out", "--html", &out],
        ] {
            let ended = scratch.sojourn(words);
            assert_eq!(ended.code, Some(2), "{words:?}");
            assert!(ended.stderr.contains("(allowed: another name)"), "{}", ended.stderr);
        }
    }
    scratch.must(&["export", "out", "--format", "csv", "--out", "out/mine.csv"]);
    scratch.must(&["report", "out", "--out", "runs.parquet"]);
    scratch.must(&["show", "out"]);
}

#[test]
fn a_run_is_found_by_its_number_and_not_by_a_name_that_begins_so() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out", "--seeds", "60", "--no-report"]);
    let rows = scratch.must(&["show", "out", "--format", "json"]).json();
    let mut ids = rows.as_array().expect("rows").iter().filter_map(|row| row["id"].as_str());
    // It begins with three decimal digits, which are the number of no run.
    let is_wanted = |id: &&str| id[..3].parse::<u32>().is_ok_and(|number| number >= 200);
    let named = ids.find(is_wanted).expect("one of so many names");
    for words in [&["show"][..], &["export", "--format", "flent"]] {
        let ended = scratch.sojourn(&[words, &["out", &named[..3]]].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        let wanted = format!("there is no run {} (allowed: 0 to 119, ", &named[..3]);
        assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
    }
    let shown = scratch.must(&["show", "out", &named[..12], "--format", "json"]).json();
    assert_eq!(shown["id"], named);
}

#[test]
fn a_scenario_is_shown_in_every_format() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    let words = ["show", "out", "--scenario", "1", "--format"];
    let rows = scratch.must(&[&words[..], &["json"]].concat()).json();
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["path.queue"].as_str()).collect::<BTreeSet<_>>().len(), 1);
    let seeds: BTreeSet<u64> = rows.iter().filter_map(|row| row["seed"].as_u64()).collect();
    assert_eq!(seeds, BTreeSet::from([1, 2, 3]));
    let csv = scratch.must(&[&words[..], &["csv"]].concat()).csv();
    assert_eq!(csv.len(), rows.len() + 1);
}

#[test]
fn a_claim_shows_the_scenario_that_is_nearest_to_its_bound() {
    let scratch = Scratch::new();
    scratch.study_with("goodput(alice) + goodput(bob) > 5 Mbps", "sojourn_p95(queue) < 1 s");
    let ended = scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    assert!(ended.stdout.contains("The link is used (with queue = pfifo limit 50)"));
    let json = scratch.must(&["run", "study.toml", "--out", "out", "--format", "json"]).json();
    let largest = json["claims"][0]["checks"][0]["value"]["mean"].as_f64().expect("a mean");
    let shown = format!("{largest:.0}");
    assert!(ended.stdout.contains(&shown), "{shown} {}", ended.stdout);
}

#[test]
fn nothing_of_a_study_reaches_the_terminal_as_a_control_sequence() {
    let scratch = Scratch::new();
    let wild = r"\u001b[31mred\u001b]0;mine\u0007\u009b1m\u202e";
    let text = crate::scratch::STUDY
        .replace("Two flows and a queue", wild)
        .replace("\"busy\"", &format!("\"{wild}\""))
        .replace("The link is used", wild)
        .replace("[factors]\n", &format!("[factors]\ncase = [\"{wild}\", \"b\"]\n"));
    scratch.write("study.toml", &text);
    let is_wild = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for words in [
        &["check", "study.toml"][..],
        &["run", "study.toml", "--dry-run"],
        &["run", "study.toml", "--out", "out"],
        &["show", "out"],
        &["show", "out", "-m", "goodput"],
        &["show", "out", "0"],
        &["show", "out", "--scenario", "0"],
        &["compare", "out", "out"],
    ] {
        let ended = scratch.must(words);
        assert!(!ended.stdout.contains(is_wild), "{words:?}: {:?}", ended.stdout);
        assert!(!ended.stderr.contains(is_wild), "{words:?}: {:?}", ended.stderr);
    }
    let ended = scratch.sojourn(&["check", "study.toml", "--set", "path.queue=\u{1b}[31m"]);
    assert!(!ended.stderr.contains(is_wild), "{:?}", ended.stderr);
}

#[test]
fn a_setting_changes_the_world_and_the_folder() {
    let scratch = Scratch::new();
    let goodput = |words: &[&str]| {
        let json = scratch.must(&[&["run", "study.toml", "--format", "json"], words].concat());
        let json = json.json();
        let value = json["claims"][0]["checks"][0]["value"]["mean"].as_f64();
        (value.expect("a mean"), json["folder"].as_str().expect("a path").to_owned())
    };
    let (plain, folder) = goodput(&[]);
    let (faster, other_folder) = goodput(&["--set", "path.rate=20mbps"]);
    assert!(faster > 1.5 * plain, "{plain} {faster}");
    assert_ne!(folder, other_folder);
    assert_eq!(goodput(&[]), (plain, folder));
}

#[test]
fn seeds_can_be_counted_or_named() {
    let scratch = Scratch::new();
    let seeds = |words: &[&str]| {
        let words = [&["run", "study.toml", "-n", "--format", "json"], words].concat();
        scratch.must(&words).json()["plan"]["seeds"].to_string()
    };
    assert_eq!(seeds(&[]), "[1,2,3]");
    assert_eq!(seeds(&["--seeds", "2"]), "[1,2]");
    assert_eq!(seeds(&["--seeds", "7,3-4"]), "[7,3,4]");
    assert_eq!(seeds(&["--seed", "9"]), "[9]");
}

#[test]
fn one_seed_of_many_is_the_same_run_alone() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "all"]);
    scratch.must(&["run", "study.toml", "--out", "one", "--seed", "2"]);
    let digests = |folder: &str| -> Vec<String> {
        let rows = scratch.must(&["show", folder, "--format", "json"]).json();
        let rows = rows.as_array().expect("rows").iter();
        rows.filter(|row| row["seed"] == 2).map(|row| row["digest"].to_string()).collect()
    };
    assert_eq!(digests("all"), digests("one"));
    assert!(!digests("one").is_empty());
}

#[test]
fn the_line_that_repeats_a_run_repeats_it() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "all", "--set", "path.rate=12 mbps"]);
    assert_is_repeated_by_its_line(&scratch, "4");
}

/// The command that `show` prints for a run of the folder 'all', given to a shell, makes that run
/// again.
fn assert_is_repeated_by_its_line(scratch: &Scratch, run: &str) {
    let shown = scratch.must(&["show", "all", run, "--format", "json"]).json();
    let line = shown["repeat"].as_str().expect("a line");
    let words = line.strip_prefix("sojourn ").expect("a command of ours");
    let script = format!("exec \"$0\" {words} --out again");
    let output = std::process::Command::new("sh")
        .args(["-c", &script, crate::scratch::PROGRAM])
        .current_dir(scratch.path(""))
        .output();
    let ended = Ended::of(output.expect("there is a shell"));
    assert_eq!(ended.code, Some(0), "{line}\n{}", ended.stderr);
    let again = scratch.must(&["show", "again", "0", "--format", "json"]).json();
    assert_eq!(again["id"], shown["id"], "{line}");
    assert_eq!(again["rows"][0]["digest"], shown["rows"][0]["digest"], "{line}");
}

#[test]
fn the_study_in_a_result_folder_is_the_one_that_ran() {
    let scratch = Scratch::new();
    let set = "flow.alice.cca=bbr3 probe_rtt_interval=7s";
    let words = ["--set", set, "--shorten", "700ms", "--seeds", "2,5"];
    scratch.must(&[&["run", "study.toml", "--out", "first"], &words[..]].concat());
    scratch.must(&["run", "first/study.toml", "--out", "second"]);
    let digest = |folder: &str| {
        let plan: serde_json::Value =
            serde_json::from_str(&scratch.read(&format!("{folder}/plan.json"))).expect("JSON");
        (plan["digest"].clone(), plan["scenarios"][0]["duration_s"].clone())
    };
    assert_eq!(digest("first"), digest("second"));
    assert_eq!(digest("first").1, 0.7);
    // And packets can be had of it again.
    scratch.must(&["export", "first", "1", "--format", "pcap", "--out", "one.pcapng"]);
}

#[test]
fn a_run_of_factors_that_change_together_can_be_repeated() {
    let scratch = Scratch::new();
    scratch.study_with(
        "\"path.queue\" = [\"pfifo limit 50\", \"fq_codel\"]",
        "zip = [{ \"path.queue\" = [\"pfifo limit 50\", \"codel\"], \"path.rate\" = [\"10Mbps\", \"9Mbps\"] }]",
    );
    scratch.must(&["run", "study.toml", "--out", "all"]);
    assert_is_repeated_by_its_line(&scratch, "4");
}

#[test]
fn a_study_without_claims_shows_its_numbers() {
    let scratch = Scratch::new();
    let claim = crate::scratch::STUDY.find("[[claim]]").expect("there is one");
    scratch.write("study.toml", &crate::scratch::STUDY[..claim]);
    let ended = scratch.must(&["run", "study.toml"]);
    assert!(ended.stdout.contains("goodput_mbps"), "{}", ended.stdout);
    assert!(ended.stdout.contains("alice"), "{}", ended.stdout);
}

#[test]
fn several_studies_are_checked_and_all_mistakes_told() {
    let scratch = Scratch::new();
    scratch.write("bad.toml", "schema = 1\n");
    scratch.write("worse.toml", "what?\n");
    let ended = scratch.sojourn(&["check", "study.toml", "bad.toml", "worse.toml"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stdout.starts_with("study.toml: 2 scenarios"), "{}", ended.stdout);
    assert!(ended.stderr.contains("error: bad.toml"), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: worse.toml"), "{}", ended.stderr);
}

#[test]
fn a_run_is_shown_by_its_number_or_its_name() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let by_number = scratch.must(&["show", "out", "5"]);
    assert!(by_number.stdout.contains("run 5, seed 3, path.queue = fq_codel"));
    assert!(by_number.stdout.contains("goodput_mbps"), "{}", by_number.stdout);
    assert!(by_number.stdout.contains("cwnd (packets)"), "{}", by_number.stdout);
    let json = scratch.must(&["show", "out", "5", "--format", "json"]).json();
    let name = json["id"].as_str().expect("a name");
    assert_eq!(scratch.must(&["show", "out", &name[..12]]).stdout, by_number.stdout);
    for wrong in ["100006", "xyz", ""] {
        let ended = scratch.sojourn(&["show", "out", wrong]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("allowed: 0 to 5"), "{}", ended.stderr);
    }
}

#[test]
fn a_metric_of_runs_is_shown_of_all_flows() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let shown = scratch.must(&["show", "out", "--metric", "jain"]).stdout;
    let lines = shown.lines().filter(|line| line.starts_with("all flows ")).count();
    assert_eq!(lines, 2, "{shown}");
}

#[test]
fn shares_are_shown_as_percentages_and_tiny_ones_without_an_exponent() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out", "--set", "path.reverse_rate=100gbit"]);
    for of in [
        &["show", "out"][..],
        &["show", "out", "0"],
        &["show", "out", "--scenario", "0"],
        &["show", "out", "--metric", "utilisation"],
    ] {
        let shown = scratch.must(of).stdout;
        let back = shown.lines().find(|line| line.contains("reverse_queue") && line.contains('%'));
        assert!(back.is_some_and(|line| line.contains("<0.01 %")), "{of:?}\n{shown}");
    }
}

#[test]
fn an_unknown_metric_is_answered_with_the_nearest_one_and_the_command_that_lists_them() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    for (asked, expected) in [
        ("nope", "no metric is named 'nope' (allowed: what `sojourn list metrics` prints)"),
        ("godput", "did you mean 'goodput'? (allowed: what `sojourn list metrics` prints)"),
        ("rtt_p50_s", "did you mean 'rtt_p50_ms'?"),
    ] {
        let ended = scratch.sojourn(&["show", "out", "--metric", asked]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn the_list_is_a_summary_and_every_heading_of_it_can_be_asked_for() {
    let scratch = Scratch::new();
    let all = scratch.must(&["list"]).stdout;
    assert!(all.lines().count() < 24, "{all}");
    for name in [
        "cubic",
        "fq_codel",
        "on_off",
        "scream-v2",
        "statistical",
        "opus",
        "he",
        "gemodel",
        "goodput",
    ] {
        assert!(all.contains(name), "{name} is not in the summary");
    }
    let kinds: Vec<&str> = all
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected = [
        "cca", "queue", "carrier", "app", "control", "source", "voice", "sizes", "engine", "model",
        "radio", "mode", "rate", "loss", "jitter", "reorder", "policer", "metric",
    ];
    assert_eq!(kinds, expected);
    for kind in kinds {
        let listed = scratch.must(&["list", kind]).stdout;
        let head = listed.lines().next().expect("a heading");
        assert!(head.ends_with(&format!("({kind})")), "{head}");
        assert!(listed.lines().count() > 3, "{listed}");
        // And by its plural.
        assert_eq!(scratch.must(&["list", &format!("{kind}s").replace("ss", "s")]).stdout, listed);
    }
    // Output for programs holds everything.
    let json = scratch.must(&["list", "--format", "json"]).json();
    assert!(json.as_array().expect("a list").len() > 150);
}

#[test]
fn what_has_a_name_is_listed_with_its_parameters() {
    let scratch = Scratch::new();
    let cake = scratch.must(&["list", "queue", "cake"]).stdout;
    assert!(cake.contains("bandwidth") && cake.contains("ack-filter"), "{cake}");
    // A name is enough.
    assert_eq!(scratch.must(&["list", "cake"]).stdout, cake);
    for words in [&["list", "fq_coddel"][..], &["list", "queu"], &["list", "queu", "cake"]] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2));
        let said = &ended.stderr;
        assert!(said.contains("did you mean") && said.contains("allowed: cca, queue"), "{said}");
    }
    let ended = scratch.sojourn(&["list", "queue", "fq_coddel"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("did you mean 'fq_codel'?"), "{}", ended.stderr);
}

#[test]
fn what_people_call_something_finds_it() {
    let scratch = Scratch::new();
    for (word, names) in [
        ("fct", &["fct_p50_ms", "completion_mean_ms"][..]),
        ("completion", &["completion_mean_ms", "fct_p95_ms"]),
        ("latency", &["rtt_p95_ms", "owd_p99_ms", "sojourn_p50_ms", "ping_p95_ms"]),
        ("Throughput", &["goodput_mbps", "throughput_mbps"]),
        ("fairness", &["jain"]),
        ("retransmissions", &["retransmits"]),
        ("ecn", &["marks", "marked_packets"]),
        ("voip", &["mos"]),
        ("bbr2", &["bbr2"]),
        ("qdisc", &["fq_codel", "cake"]),
        ("tcp", &["cubic", "prague"]),
        ("link", &["mahimahi", "gemodel", "normal"]),
        ("fct", &["fct_p95_ms", "completion_mean_ms"]),
        ("bufferbloat", &["sojourn_p95_ms", "rtt_p95_ms"]),
        ("window", &["cwnd_p50_pkts"]),
        // Only the description has that word, or these.
        ("cellular", &["brownian"]),
        ("kaplan meier", &["completion_km_p50_ms"]),
    ] {
        let found = scratch.must(&["list", word]).stdout;
        for name in names {
            let is_there = found.lines().any(|line| line.split([' ', ':']).next() == Some(name));
            assert!(is_there, "list {word} has no {name}:\n{found}");
        }
    }
    let jitters = scratch.must(&["list", "jitter"]).stdout;
    assert!(jitters.ends_with("Metrics: sojourn list metric jitter\n"), "{jitters}");
    let found = scratch.must(&["list", "metric", "jitter"]).stdout;
    assert!(found.contains("jitter_mean_ms"), "{found}");
    let found = scratch.must(&["list", "metric", "latency"]).stdout;
    assert!(found.starts_with("Metrics (metric)"), "{found}");
}

#[test]
fn a_new_study_runs() {
    let scratch = Scratch::new();
    let ended = scratch.must(&["new", "mine"]);
    assert!(ended.stderr.contains("sojourn run mine"), "{}", ended.stderr);
    scratch.must(&["check", "mine"]);
    scratch.must(&["run", "mine", "--no-report"]);
    let text = scratch.read("mine/study.toml");
    let ended = scratch.sojourn(&["new", "mine"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(scratch.read("mine/study.toml"), text);
    scratch.must(&["new", "file.toml"]);
    assert_eq!(scratch.read("file.toml"), text);
}

#[test]
fn a_new_study_asks_a_working_groups_questions_of_any_congestion_control() {
    let scratch = Scratch::new();
    let cca = "bbr3-linux probe_rtt_mode_ms=100";
    let known = scratch.sojourn(&["new", "mine", "--template", "ccwg", "--cca", cca]);
    assert_eq!(known.code, Some(2), "no such parameter: {}", known.stderr);
    scratch.must(&["new", "mine", "--template", "ccwg", "--cca", "dctcp dctcp_shift_g=3"]);
    let text = scratch.read("mine/study.toml");
    assert!(text.contains("dctcp_shift_g=3 by the criteria") && !text.contains("bbr3"), "{text}");
    scratch.must(&["check", "mine"]);
    let ran = scratch.sojourn(&["run", "mine", "--no-report", "--seeds", "1", "--shorten", "4s"]);
    assert!(ran.code == Some(0) || ran.code == Some(1), "{}", ran.stderr);
    for (words, says) in [
        (&["new", "a", "--template", "ccwg", "--cca", "cubic"][..], "compared with"),
        (&["new", "a", "--template", "ccwg", "--cca", "cubik"], "did you mean 'cubic'"),
        (&["new", "a", "--template", "ccwg", "--cca", "bbr3' \""], "quotation marks"),
        (&["new", "a", "--cca", "bbr3"], "--template ccwg"),
    ] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_trace_goes_to_mahimahi_and_back() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "12,1\n0,0.5\n24,0.5\n");
    let info =
        scratch.must(&["trace", "info", "trace.csv", "--below", "1mbps", "--format", "json"]);
    let info = info.json();
    assert_eq!(info["duration_s"], 2.0);
    assert_eq!(info["mean_mbps"], 12.0);
    assert_eq!(info["outage_s"], 0.5);
    assert_eq!(info["below_1_mbps_share"], 0.25);

    scratch.must(&["trace", "convert", "trace.csv", "--to", "mahimahi", "--out", "trace.up"]);
    // 1000 packets of 1500 bytes a second are 12 Mbit/s.
    assert_eq!(scratch.read("trace.up").lines().count(), 2000);
    let back = scratch.must(&["trace", "convert", "trace.up", "--to", "steps", "--step", "500ms"]);
    assert_eq!(back.stdout, "12,0.5\n12,0.5\n0,0.5\n24,0.5\n");

    let plot = scratch.must(&["trace", "plot", "trace.csv", "--width", "51", "--height", "4"]);
    let lines: Vec<&str> = plot.stdout.lines().collect();
    let columns = |line: &str| line.chars().filter(|c| *c == '█').count();
    assert_eq!(columns(lines[0]), 10, "a quarter of the time at 24 Mbit/s\n{}", plot.stdout);
    assert_eq!(columns(lines[3]), 30, "and half at 12, a quarter at nothing\n{}", plot.stdout);
}

#[test]
fn a_trace_goes_from_any_format_to_any_other() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "12,1\n0,0.5\n24,0.5\n");
    for format in ["steps", "samples", "csv", "gym", "mahimahi"] {
        let words = ["trace", "convert", "trace.csv", "--to", format, "--out", "other"];
        scratch.must(&words);
        let info = scratch.must(&["trace", "info", "other", "--format", "json"]).json();
        assert_eq!(info["format"], format);
        assert_eq!(info["mean_mbps"], 12.0, "{format}");
        assert_eq!(info["duration_s"], 2.0, "{format}");
        let back = ["trace", "convert", "other", "--to", "steps", "--step", "500ms"];
        let back = scratch.must(&back).stdout;
        let whole = if format == "mahimahi" { "12,0.5\n12,0.5\n" } else { "12,1\n" };
        assert_eq!(back, format!("{whole}0,0.5\n24,0.5\n"), "{format}");
    }
}

#[test]
fn a_trace_says_when_it_is_blocked() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "100,10\n40,1\n0,0.5\n100,8\n30,0.25\n100,10\n");
    let json = |more: &[&str]| {
        let words = [&["trace", "info", "trace.csv", "--format", "json"], more].concat();
        scratch.must(&words).json()
    };
    let info = json(&[]);
    assert_eq!(info["below_half_times"], 2);
    assert_eq!(info["below_half_onsets_s"], serde_json::json!([10.0, 19.5]));
    assert_eq!(info["below_half_longest_s"], 1.5);
    assert_eq!(info["outages"], 1);
    assert_eq!(info["longest_outage_s"], 0.5);
    assert_eq!(info["p1_mbps"], 0.0);
    assert_eq!(info["p5_mbps"], 40.0);
    assert_eq!(info["p50_mbps"], 100.0);
    let below = json(&["--below", "35mbps"]);
    assert_eq!(below["below_35_mbps_onsets_s"], serde_json::json!([11.0, 19.5]));
    let text = scratch.must(&["trace", "info", "trace.csv"]).stdout;
    assert!(text.contains("from 10.0, 19.5 s"), "{text}");
    let csv = scratch.must(&["trace", "info", "trace.csv", "--format", "csv"]).stdout;
    assert_eq!(csv.lines().count(), 2, "{csv}");
}

#[test]
fn a_column_of_a_measurement_is_taken_as_the_rate() {
    let scratch = Scratch::new();
    let rows = "Timestamp,DL_bitrate,UL_bitrate\n2019.12.16_13.40.04,3000,500\n\
                2019.12.16_13.40.05,1000,700\n";
    scratch.write("irish.csv", rows);
    let convert = |more: &[&str]| {
        scratch.sojourn(&[&["trace", "convert", "irish.csv", "--to", "steps"], more].concat())
    };
    assert_eq!(convert(&[]).stdout, "3,1\n1,1\n");
    assert_eq!(convert(&["--column", "UL_bitrate"]).stdout, "0.5,1\n0.7,1\n");
    let ended = convert(&["--column", "UP_bitrate"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("irish.csv: line 1: there is no column"), "{}", ended.stderr);
    // And in a study.
    let rate = "path.rate=trace irish.csv column DL_bitrate";
    scratch.must(&["check", "study.toml", "--set", rate]);
}

#[test]
fn a_picture_of_a_trace_is_an_svg() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "12,1\n0,0.5\n24,0.5\n");
    let ended = scratch.must(&["trace", "plot", "trace.csv", "--svg", "trace.svg"]);
    assert_eq!(ended.stdout, "");
    let svg = scratch.read("trace.svg");
    assert!(svg.starts_with("<svg ") && svg.contains("Mbit/s"), "{svg}");
}

#[test]
fn test_cases_and_cellular_links_are_made_too() {
    let scratch = Scratch::new();
    let synth = |words: &[&str]| scratch.must(&[&["trace", "synth"], words].concat()).stdout;
    assert_eq!(synth(&["rfc8867", "5.1"]), "1,40\n2.5,20\n0.6,20\n1,20\n");
    assert_eq!(synth(&["rfc8867", "5.3", "backward"]), "2,35\n0.8,35\n2,30\n");
    assert_eq!(synth(&["rfc8867", "6.3", "C-D"]), "1.5,300\n");
    assert_eq!(
        synth(&["steps", "10mbit", "5s", "0", "500ms", "1mbit", "1s"]),
        "10,5\n0,0.5\n1,1\n"
    );
    assert_eq!(synth(&["blockage static duration 1s"]).lines().count(), 4);
    let cell = synth(&["brownian", "max", "12mbit", "--duration", "2s"]);
    assert_eq!(cell.lines().last(), Some("2000"), "opportunities");
    assert_eq!(cell, synth(&["brownian", "--duration", "2s"]));
    assert_ne!(cell, synth(&["brownian", "--duration", "2s", "--seed", "2"]));
    for (words, says) in [
        (&["rfc8867", "5.9"][..], "no test case '5.9' (allowed: 5.1"),
        (&["statik"], "did you mean 'static'"),
        (&["10mbit"], "no trace can be made of '10mbit'"),
        (&["trace", "x.csv"], "no trace can be made of 'trace'"),
        (&["rfc8867", "5.1", "--duration", "5s"], "has a length of its own"),
        (&["brownian", "--no-outages"], "--no-outages"),
        (&["static", "--duration", "0s"], "--duration: duration 0s is out of range"),
    ] {
        let ended = scratch.sojourn(&[&["trace", "synth"], words].concat());
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
}

/// What `trace synth` writes, `trace` reads as the same capacity, and so does a study.
#[test]
fn every_synthetic_trace_is_read_back() {
    let scratch = Scratch::new();
    for model in [
        &["static", "--duration", "3s"][..],
        &["short-blockages", "--duration", "3s"],
        &["long-blockages", "--duration", "3s", "--no-outages"],
        &["mobility-and-blockages", "--duration", "3s"],
        &["brownian", "--duration", "3s"],
        &["steps", "10mbit", "2s", "0", "500ms", "3mbit", "1s"],
        &["steps", "10mbit", "2s"],
        &["rfc8867", "5.1"],
        &["rfc8867", "5.3", "backward"],
        &["rfc8867", "6.3", "C-D"],
    ] {
        let info = |file: &str| scratch.must(&["trace", "info", file, "--format", "json"]).json();
        let made = [&["trace", "synth"], model].concat();
        scratch.must(&[&made[..], &["--out", "made"]].concat());
        let whole = info("made");
        for format in ["steps", "samples", "csv", "gym", "mahimahi"] {
            if format == "mahimahi" && whole["mean_mbps"].as_f64() > Some(1000.0) {
                // Allowed, and a file of a million lines.
                continue;
            }
            scratch.must(&[&made[..], &["--to", format, "--out", "other"]].concat());
            let read = info("other");
            assert_eq!(read["format"], format, "{model:?}");
            // How long the last sample lasts, and when in its millisecond an opportunity was
            // complete, these formats cannot say.
            let is_exact = !matches!(format, "samples" | "mahimahi") && whole["format"] == "steps";
            for key in ["duration_s", "mean_mbps", "largest_mbps", "outage_s", "p50_mbps"] {
                assert!(!is_exact || read[key] == whole[key], "{model:?} {format} {key}");
            }
            for rate in ["trace", "mahimahi"] {
                if rate == "trace" || format == "mahimahi" {
                    let set = format!("path.rate={rate} other");
                    scratch.must(&["check", "study.toml", "--set", &set]);
                }
            }
        }
    }
}

#[test]
fn a_trace_that_never_ends_is_refused() {
    let scratch = Scratch::new();
    for words in [
        &["trace", "info", "/dev/zero"][..],
        &["trace", "plot", "/dev/urandom"],
        &["check", "study.toml", "--set", "path.rate=trace /dev/zero"],
        &["check", "study.toml", "--set", "path.rate=mahimahi /dev/zero"],
    ] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert!(ended.stderr.contains("a pipe or a device"), "{words:?}: {}", ended.stderr);
    }
    let input = std::fs::File::open("/dev/zero").expect("it is there");
    let mut command = scratch.command(["trace", "info", "-"]);
    let ended = Ended::of(command.stdin(Stdio::from(input)).output().expect("the program starts"));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("no text"), "{}", ended.stderr);
}

/// A line for each tenth where there is no terminal.
#[test]
fn progress_is_told_in_tenths() {
    let scratch = Scratch::new();
    let ended =
        scratch.must(&["run", "study.toml", "--seeds", "50", "--shorten", "100ms", "--jobs", "2"]);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.ends_with(" runs")).collect();
    let told: Vec<String> = (1..=10).map(|tenth| format!("{} of 100 runs", tenth * 10)).collect();
    assert_eq!(lines, told, "{}", ended.stderr);
    // What an earlier start has done is not told again.
    let again = scratch.must(&["run", "study.toml", "--seeds", "50", "--shorten", "100ms"]);
    assert!(!again.stderr.contains(" of 100 runs"), "{}", again.stderr);
}

#[test]
fn a_trace_that_is_wrong_is_refused_with_its_line() {
    let scratch = Scratch::new();
    for (text, parts) in [
        ("12,1\n12,-1\n", &["line 2", "negative", "allowed"][..]),
        ("12,1\n-12,1\n", &["line 2", "negative", "allowed"]),
        ("12,1\nNaN,1\n", &["line 2", "not a number", "allowed"]),
        ("12,1\n1e30,1\n", &["line 2", "too large", "allowed"]),
        ("0 12\n2 12\n1 12\n", &["line 3", "time runs backwards", "allowed"]),
        ("1\n5\n4\n", &["line 3", "time runs backwards", "allowed"]),
        ("time_s,rate_mbps\n0,1\n1,-1\n", &["line 3", "negative", "allowed"]),
        ("", &["no lines", "allowed"]),
        ("0,1\n", &["every rate is zero", "allowed"]),
    ] {
        scratch.write("bent.csv", text);
        for words in [
            &["info", "bent.csv"][..],
            &["plot", "bent.csv"],
            &["convert", "bent.csv", "--to", "gym"],
        ] {
            let ended = scratch.sojourn(&[&["trace"], words].concat());
            assert_eq!(ended.code, Some(2), "{text:?}");
            assert_eq!(ended.stderr.matches("bent.csv").count(), 1, "{}", ended.stderr);
            for part in parts {
                assert!(ended.stderr.contains(part), "{text:?}: {}", ended.stderr);
            }
        }
    }
    assert_eq!(scratch.sojourn(&["trace", "info", "nowhere"]).code, Some(2));
}

#[test]
fn a_synthetic_trace_is_the_one_that_a_run_meets() {
    let scratch = Scratch::new();
    let synth = ["trace", "synth", "short-blockages", "--duration", "2s", "--seed", "2"];
    let first = scratch.must(&synth).stdout;
    assert_eq!(scratch.must(&synth).stdout, first);
    scratch.write("drawn.csv", &first);
    // The same capacity, once drawn in the run and once read from the file, gives the same run.
    let digest = |rate: &str| {
        let rate = format!("path.rate={rate}");
        // Else the reverse direction would draw a trace of its own.
        let reverse = "path.reverse_rate=1gbps";
        let words = ["run", "study.toml", "--seed", "2", "--no-report", "--out", "out", "--set"];
        let _ = std::fs::remove_dir_all(scratch.path("out"));
        scratch.must(&[&words[..], &[reverse, "--set", &rate]].concat());
        let rows = scratch.must(&["show", "out", "--format", "json"]).json();
        rows[0]["digest"].to_string()
    };
    assert_eq!(digest("blockage short-blockages duration 2s"), digest("trace drawn.csv"));
}

#[test]
fn a_trace_is_read_from_standard_input() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "12,1\n");
    let input = std::fs::File::open(scratch.path("trace.csv")).expect("it was written");
    let mut command = scratch.command(["trace", "info", "-"]);
    let output = command.stdin(Stdio::from(input)).output().expect("the program starts");
    assert!(Ended::of(output).stdout.contains("12 Mbit/s"));
}

#[test]
fn the_trial_of_the_doctor_is_the_same_every_time() {
    let scratch = Scratch::new();
    let trial = || scratch.must(&["doctor", "--format", "json"]).json()["trial_digest"].clone();
    assert!(trial().is_string());
    assert_eq!(trial(), trial());
}

#[test]
fn completions_name_every_verb() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.must(&["completions", shell]).stdout;
        for verb in ["run", "check", "join", "report", "show", "list", "new", "trace", "doctor"] {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
}

#[test]
fn quiet_says_nothing_but_errors() {
    let scratch = Scratch::new();
    let ended = scratch.must(&["run", "study.toml", "--quiet"]);
    assert_eq!(ended.stderr, "");
    assert!(!ended.stdout.is_empty());
    assert_ne!(scratch.sojourn(&["run", "nowhere", "--quiet"]).stderr, "");
}

#[test]
fn shipped_studies_are_right() {
    let scratch = Scratch::new();
    let studies = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(studies).expect("the repository has studies") {
        paths.push(entry.expect("it can be read").path().display().to_string());
    }
    let words: Vec<&str> = paths.iter().map(String::as_str).collect();
    scratch.must(&[&["check"], &words[..]].concat());
}

#[test]
fn a_closed_form_is_evaluated_at_one_point_or_at_many() {
    let scratch = Scratch::new();
    // Half a load waits half a packet; 1000 octets take 2 ms at 4 Mbit/s.
    let point = scratch.must(&["model", "md1", "load=0.5", "rate=4mbit", "packet=1000"]).stdout;
    assert!(point.contains("wait") && point.contains("1.0000"), "{point}");
    let table =
        scratch.must(&["model", "md1", "load=0.5,0.9", "packet=500,1000", "--format", "csv"]);
    assert_eq!(table.stdout.lines().count(), 5, "{}", table.stdout);
    assert!(table.stdout.starts_with("load,packet,wait_ms,sojourn_ms,queue_packets"));
    for (words, said) in [
        (&["model", "md2"][..], "unknown closed form 'md2'; did you mean 'md1'?"),
        (&["model", "md1", "lod=1"], "'lod'"),
        (&["model", "md1", "load=2"], "load"),
        (&["model", "md1", "load"], "'load' is no parameter (allowed: KEY=VALUE)"),
        (&["model", "md1", "load=0.1", "load=0.2"], "'load' is given twice"),
        (&["model", "anomaly", "load=1"], "has no parameters"),
        (&["model", "anomoly"], "did you mean 'anomaly'?"),
        (&["model", "nosuch"], "ofdma, anomaly)"),
    ] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn an_equilibrium_is_a_row_for_each_scenario_or_a_sentence() {
    let scratch = Scratch::new();
    let example = |name: &str| format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let pie = example("examples/where-pie-swings.toml");
    let rows = scratch.must(&["fluid", "equilibrium", &pie, "--format", "json"]).json();
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 12);
    // Two flows over 20 ms stand still, and over 200 ms they do not.
    assert_eq!([&rows[0]["stable"], &rows[9]["stable"]], [true, false]);
    let lossy = scratch.must(&["fluid", "equilibrium", &pie, "--set", "path.loss=1%"]);
    assert!(lossy.stdout.contains("the flows can't fill the link: "), "{}", lossy.stdout);
    let path =
        scratch.must(&["fluid", "portrait", &pie, "--rows", "10", "--time", "1s", "--start", "2"]);
    assert!(path.stdout.starts_with("start,t_s,queue_pkts,window_reno.1_pkts"), "{}", path.stdout);
    let refused = scratch.sojourn(&["fluid", "equilibrium", &example("studies/home-router")]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("flow 'page'"), "{}", refused.stderr);
}
