//! What a page holds, and what it must never hold.

mod specimen;

use std::num::NonZero;
use std::sync::Arc;

use sojourn_report::ReadRuns;
use sojourn_report::{Alone, Options, compare, export, figure, html, repeat, terminal};
use sojourn_study::results::{
    Check, Delays, FailedRun, Freeze, Kind, LostPacket, Plan, PlannedFlow, PlannedRun, RepairStep,
    Results, Row, Series, Verdict, View, ViewKind, Where,
};

fn page(results: &Results) -> String {
    html(results, &mut specimen::Made, &Options::default())
}

/// The page without the data that its script reads and without style and script.
fn markup(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(start) = rest.find("<script") {
        out += &rest[..start];
        rest = &rest[start..];
        let end = rest.find("</script>").expect("a script ends");
        rest = &rest[end + "</script>".len()..];
    }
    out + rest
}

#[test]
fn runs_that_failed_for_one_reason_share_a_line_and_are_not_said_to_go_on() {
    let mut results = specimen::results();
    results.missing = vec![4, 5, 6, 7];
    let failed = |run: &u32| FailedRun { run: *run, problem: "no such law".into() };
    let failed: Vec<FailedRun> = results.missing.iter().map(failed).collect();
    results.machine.as_mut().unwrap().failed = failed;
    let page = page(&results);
    assert_eq!(page.matches("ended without a result: no such law").count(), 1);
    assert!(page.contains("runs have no result: ") && !page.contains("The same command goes on"));
}

#[test]
fn a_terminal_gets_a_bounded_number_of_lines_and_how_to_have_all() {
    let results = specimen::results();
    let of = |most| [terminal::claims(&results, most), terminal::metrics(&results, most)];
    for (some, all) in of(0).iter().zip(of(usize::MAX)) {
        assert!(some.contains(" more ") && some.contains(" --all' lists all"), "{some}");
        assert!(!all.contains("--all"));
    }
}

/// What is said of all lines where some are left out is what a table of all has.
#[test]
fn the_least_and_the_largest_of_lines_that_are_left_out_are_told() {
    let results = specimen::results();
    let metrics = ["goodput_mbps".to_owned()];
    let all = terminal::means(&results, Kind::Flow, &metrics, usize::MAX);
    assert!(all.below.is_empty());
    let value = |line: &terminal::MeansLine| -> f64 {
        line.cells[0].split_whitespace().next().unwrap().parse().unwrap()
    };
    let values: Vec<f64> = all.lines.iter().map(value).collect();
    let (least, largest) = values.iter().fold((f64::MAX, f64::MIN), |(least, largest), value| {
        (least.min(*value), largest.max(*value))
    });
    let some = terminal::means(&results, Kind::Flow, &metrics, 1);
    assert_eq!(some.lines.len(), 1);
    let told = some.below.lines().find(|line| line.starts_with("goodput_mbps ")).unwrap();
    let told: Vec<f64> = told.split_whitespace().rev().take(3).flat_map(str::parse).collect();
    let is_near = |one: f64, other: f64| (one - other).abs() <= 0.01 * other;
    assert!(is_near(told[0], largest) && is_near(told[2], least), "{} {values:?}", some.below);
    assert!(least < told[1] && told[1] < largest, "{}", some.below);
}

#[test]
fn the_page_without_data_weighs_less_than_150_kb() {
    let mut empty = specimen::results();
    empty.missing = (0..60).collect();
    empty.table.rows.clear();
    empty.claims = None;
    let page = page(&empty);
    assert!(page.len() < 150_000, "{}", page.len());
}

#[test]
fn twelve_scenarios_of_five_seeds_and_a_minute_fit_in_3_mb() {
    let page = page(&specimen::results());
    assert!(page.len() < 3_000_000, "{}", page.len());
    let whole = page.matches("id=\"series-").count();
    assert_eq!(whole, 60, "every run can be looked at over time");
}

#[test]
fn a_page_asks_nothing_of_the_network() {
    let page = page(&specimen::results());
    for word in ["src=\"http", "href=\"//", "@import", "url(http", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_hostile_study_injects_nothing() {
    let results = specimen::hostile();
    let page = html(&results, &mut specimen::Hostile, &Options::default());
    let markup = markup(&page);
    assert!(!markup.contains("<img"), "{}", around(&markup, "<img"));
    assert!(!markup.contains("onerror=alert(1)>'"), "{}", around(&markup, "onerror"));
    // One script for the plan, one for metrics, one for each run that can be read, and two of code.
    assert_eq!(page.matches("<script").count(), 2 + 59 + 2);
    assert!(!page.contains("alert(2)</script>"));
    let comparison = compare::compare(&results, &results).html();
    assert!(!self::markup(&comparison).contains("<img"));
    for text in
        [terminal::claims(&results, terminal::MOST), terminal::metrics(&results, terminal::MOST)]
    {
        assert!(!text.contains('\u{1b}'));
    }
}

fn around<'a>(text: &'a str, word: &str) -> &'a str {
    let at = text.find(word).unwrap_or(0);
    let from = (at.saturating_sub(200)..=at).find(|at| text.is_char_boundary(*at)).unwrap_or(at);
    let to = (at + 100..).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..to.min(text.len())]
}

#[test]
fn every_kind_of_view_is_drawn_with_its_caption() {
    let mut results = specimen::results();
    for (name, kind, x, y, split) in [
        ("bars", ViewKind::Bars, Some("path.queue"), "goodput", Some("flow")),
        ("boxes", ViewKind::Boxes, Some("path.queue"), "goodput", Some("flow")),
        ("shares", ViewKind::Bars, None, "share", None),
        ("cdf", ViewKind::Cdf, None, "rtt_p95", Some("path.queue")),
        ("delays", ViewKind::Cdf, None, "sojourn", Some("path.queue")),
        ("scatter", ViewKind::Scatter, Some("sojourn_p95"), "utilisation", None),
        ("heat", ViewKind::Heatmap, Some("path.rtt"), "jain", Some("path.queue")),
        ("time", ViewKind::Series, None, "cwnd_pkts", None),
        ("line", ViewKind::Line, Some("path.rtt"), "rtt_p95", Some("path.queue")),
    ] {
        results.plan.views.push(View {
            log: None,
            solo: vec![],
            name: name.into(),
            kind,
            title: Some(format!("Title of {name}")),
            caption: Some(format!("Caption of {name}.")),
            x: x.map(str::to_owned),
            y: vec![y.into()],
            split: split.map(str::to_owned),
            of: vec![],
            filter: vec![],
        });
    }
    let page = page(&results);
    for at in 0..9 {
        let figure = page.split(&format!("<figure id=\"view-{at}\">")).nth(1).expect("it is there");
        let figure = figure.split("</figure>").next().unwrap();
        let view = &results.plan.views[at];
        assert!(figure.contains(view.title.as_ref().unwrap()), "{figure}");
        assert!(figure.contains(view.caption.as_ref().unwrap()));
        assert!(figure.contains("<svg class=\"chart") || figure.contains("<table"), "{figure}");
    }
}

#[test]
fn an_interrupted_study_says_what_is_missing() {
    let mut results = specimen::results();
    results.claims = None;
    results.machine = None;
    results.missing = (37..60).collect();
    results.table.rows.retain(|row| row.run < 37);
    let page = page(&results);
    assert!(page.contains("23 of 60 runs have no result yet"));
    assert!(page.contains("Claims were not checked"));
    assert!(page.contains("No run of this scenario has a result yet"));
    assert!(page.contains("fq_codel · rtt 40ms (3)"), "a scenario that is there in part");
    assert!(page.contains("2 of 5 runs"), "its cell says so");
    let part = page.matches("class=\"mean part\"").count();
    let whole = page.matches("class=\"mean\"").count();
    assert!(part > 0 && whole > part, "{part} means of fewer runs, {whole} of all");
    assert!(page.contains(", over 2 of 5 runs") && page.contains("A hollow mean lacks runs"));
}

#[test]
fn a_claim_that_fails_shows_by_how_much() {
    let page = page(&specimen::results());
    assert!(page.contains("1 of 3 claims are held. Not held: "));
    assert!(page.contains("0.88 Mbit/s (22 %) too low"));
    assert!(page.contains("the paper does not say at which MCS the stations are"));
    let text = terminal::claims(&specimen::results(), terminal::MOST);
    assert!(text.contains("off by 0.88 Mbit/s (22 %)"), "{text}");
    assert!(text.contains("3 claims: 1 held, 1 not held, 1 untestable"));
}

/// A claim that one scenario leaves open, and one whose value lacks samples.
#[test]
fn a_claim_says_what_it_lacks() {
    let mut results = specimen::results();
    let claims = &mut results.claims.as_mut().expect("the specimen has claims").claims;
    let held = claims.iter().position(|claim| claim.verdict == Verdict::Holds).unwrap();
    let note = "'ping_max_ms' of 'p' is over 60 of 606 samples: the others were lost, or under way at the end";
    claims[held].checks[0].reason = Some(note.into());
    let lacking = claims[held].checks[0].clone();
    let open = claims.iter_mut().find(|claim| claim.verdict == Verdict::Untestable).unwrap();
    open.reason = Some("held in 1 scenario, untestable in 1: nothing ended".into());
    open.checks = vec![
        Check { reason: None, ..lacking.clone() },
        Check { verdict: Verdict::Untestable, value: None, bound: None, miss: None, ..lacking },
    ];
    let page = page(&results);
    let sentence = "<p>Held in 1 scenario, untestable in 1: nothing ended.</p>";
    assert!(page.contains(sentence));
    let sentences = page.split("<div class=\"measured\"><p>").skip(1);
    let sentences = sentences.filter_map(|rest| rest.split("</p>").next());
    let lacks = sentences.filter(|sentence| sentence.contains("is over 60 of 606 samples")).count();
    assert_eq!(lacks, 1);
}

#[test]
fn every_run_gives_the_command_that_repeats_it() {
    let results = specimen::results();
    let command = repeat(&results.plan, &results.plan.runs[1]);
    assert_eq!(
        command,
        "sojourn run studies/home-router/study.toml --set path.rate=10Mbps --set 'path.queue=pfifo \
         limit 50' --set path.rtt=10ms --seed 2"
    );
    let page = page(&results);
    assert_eq!(page.matches("<code>sojourn run studies").count(), 60 + 1);
}

#[test]
fn two_equal_folders_are_the_same_and_a_worse_one_is_found() {
    let before = specimen::results();
    let same = compare::compare(&before, &before);
    assert_eq!((same.paired, same.identical), (60, 60));
    assert!(same.summary().contains("All 60 runs are the same"));

    let mut after = specimen::results();
    let column = after.table.metrics.iter().position(|metric| metric == "rtt_p95_ms").unwrap();
    for row in after.table.rows.iter_mut().filter(|row| row.scenario == 4 && row.name == "bbr3") {
        let value = row.values.get(column).map(|value| value * 1.5 + row.seed as f64);
        row.values.set(column, value);
        row.digest = "other".into();
    }
    let comparison = compare::compare(&before, &after);
    let worst = comparison.changes.iter().next().unwrap();
    assert_eq!(worst.judgement, compare::Judgement::Worse);
    assert_eq!((&*worst.subject, worst.metric), ("bbr3", "rtt_p95_ms"));
    assert_eq!(&*worst.scenario, "pfifo limit 1000 · rtt 40ms");
    assert_eq!(worst.pairs, 5);
    let share = worst.share().unwrap();
    assert!((0.5..0.53).contains(&share), "{share}");
    assert!(worst.corrected_p.unwrap() <= 0.05 && worst.corrected_p >= worst.p);
    assert!(comparison.changes.iter().nth(1).unwrap().judgement > compare::Judgement::Worse);
    assert!(comparison.terminal().lines().nth(2).unwrap().starts_with("worse"));

    // Only some scenarios are in both.
    Arc::make_mut(&mut after.plan.scenarios).truncate(6);
    Arc::make_mut(&mut after.plan.runs).truncate(30);
    after.table.rows.retain(|row| row.run < 30);
    let comparison = compare::compare(&before, &after);
    assert_eq!((comparison.paired, comparison.unpaired.len()), (30, 6));
}

/// The same study with seeds that the other has not: nothing differs but chance.
fn other_seeds() -> Results {
    let mut results = specimen::results_of_seeds(100);
    results.folder = "results/other-seeds".into();
    results
}

#[test]
fn two_sets_of_seeds_of_one_study_differ_by_chance_only() {
    let comparison = compare::compare(&specimen::results(), &other_seeds());
    assert_eq!((comparison.paired, comparison.by_samples), (0, 12));
    let flagged = comparison.changes.iter().filter(|change| {
        matches!(
            change.judgement,
            compare::Judgement::Worse | compare::Judgement::Better | compare::Judgement::Different
        )
    });
    assert_eq!(flagged.count(), 0, "{}", comparison.terminal());
    assert!(comparison.summary().starts_with("Nothing changed that anybody would act on."));
    // Without the correction some would be called changed.
    let alone = comparison.changes.iter().filter(|change| change.p.is_some_and(|p| p <= 0.05));
    assert!(alone.count() > 0, "the test would not show what the correction is for");
}

#[test]
fn a_real_change_is_found_between_two_sets_of_seeds() {
    let mut after = other_seeds();
    let column = after.table.metrics.iter().position(|metric| metric == "rtt_p95_ms").unwrap();
    for row in after.table.rows.iter_mut().filter(|row| row.name == "bbr3") {
        let value = row.values.get(column).map(|value| value * 1.6);
        row.values.set(column, value);
    }
    let comparison = compare::compare(&specimen::results(), &after);
    let worse: Vec<_> = comparison
        .changes
        .iter()
        .filter(|change| change.judgement == compare::Judgement::Worse)
        .collect();
    assert!(worse.len() >= 8, "{}", comparison.terminal());
    assert!(worse.iter().all(|change| &*change.subject == "bbr3" && change.metric == "rtt_p95_ms"));
}

#[test]
fn a_sure_difference_that_nobody_would_act_on_is_no_change() {
    let before = specimen::results();
    let mut after = specimen::results();
    let column = after.table.metrics.iter().position(|metric| metric == "rtt_p95_ms").unwrap();
    for row in after.table.rows.iter_mut().filter(|row| row.name == "bbr3") {
        let value = row.values.get(column).map(|value| value * 1.01 + row.seed as f64 * 1e-3);
        row.values.set(column, value);
    }
    let comparison = compare::compare(&before, &after);
    let slight = |change: &compare::Change| change.judgement == compare::Judgement::Slight;
    assert_eq!(comparison.changes.iter().filter(slight).count(), 12);
    assert!(comparison.changes.iter().next().unwrap().judgement == compare::Judgement::Slight);
}

#[test]
fn two_names_of_one_quantity_are_one_row() {
    let with_twin = |factor: f64| {
        let mut results = specimen::results();
        let column = results.table.metrics.iter().position(|m| m == "rtt_p95_ms").unwrap();
        results.table.metrics.push("frame_delay_p95_ms".into());
        for row in &mut results.table.rows {
            let value = row.values.get(column).map(|value| value * factor);
            row.values.set(column, value);
            let value = row.values.get(column);
            row.values.push(value);
        }
        results
    };
    let comparison = compare::compare(&with_twin(1.0), &with_twin(1.7));
    let worse = comparison.changes.iter().find(|c| &*c.subject == "bbr3").unwrap();
    assert_eq!(worse.metrics(), "rtt_p95_ms = frame_delay_p95_ms");
    assert!(comparison.changes.iter().all(|change| change.metric != "frame_delay_p95_ms"));
}

#[test]
fn a_run_is_exported_to_csv_and_iperf3() {
    let results = specimen::results();
    let series = specimen::series(0).unwrap();
    let csv = export::runs_csv(&results);
    assert_eq!(csv.lines().count(), 1 + results.table.rows.len());
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    // As in runs.parquet and in `show --format csv`, a run is its number.
    assert!(csv.starts_with("run,id,scenario,seed,"));
    assert!(csv.lines().nth(1).unwrap().starts_with("0,"));
    assert!(
        export::series_csv(&series)
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("0.1,flow,cubic,slow_start,")
    );

    let iperf: serde_json::Value =
        serde_json::from_str(&export::iperf3(&results, 0, &series)).unwrap();
    let intervals = iperf["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 60);
    // The warm-up of 5 s, after which time begins again.
    let omitted = intervals.iter().take_while(|interval| interval["sum"]["omitted"] == true);
    assert_eq!((omitted.count(), &iperf["start"]["test_start"]["omit"]), (5, &5.into()));
    assert_eq!(intervals[5]["sum"]["start"], 0.0);
    assert_eq!(
        (&iperf["end"]["sum_sent"]["end"], &intervals[59]["sum"]["end"]),
        (&55.0.into(), &55.0.into())
    );
    assert_eq!(iperf["end"]["streams"].as_array().unwrap().len(), 2, "pings are no streams");
    let goodput = results.table.value(&results.table.rows[1], "goodput_mbps").unwrap();
    let told = iperf["end"]["streams"][0]["sender"]["bits_per_second"].as_f64().unwrap() / 1e6;
    assert!((told - goodput).abs() < 0.01, "{told} {goodput}");
    // Like those of the intervals, they are of what the sender's smoothed round-trip time was.
    let sender = &iperf["end"]["streams"][0]["sender"];
    let rtt = |key: &str| sender[key].as_u64().unwrap();
    let of_intervals = iperf["intervals"].as_array().unwrap().iter();
    for seen in of_intervals.filter_map(|interval| interval["streams"][0]["rtt"].as_u64()) {
        assert!((rtt("min_rtt")..=rtt("max_rtt")).contains(&seen), "{seen}: {sender}");
    }
    assert!((rtt("min_rtt")..=rtt("max_rtt")).contains(&rtt("mean_rtt")), "{sender}");
    assert!(export::iperf3(&results, 99, &series).is_empty());
    assert!(export::flent(&results, 99, &series).is_empty());
}

#[test]
fn flent_reads_downloads_and_uploads_under_their_names() {
    let mut results = specimen::results();
    let exported = |results: &Results| -> serde_json::Value {
        let bytes = export::flent(results, 0, &specimen::series(0).unwrap());
        serde_json::from_reader(flate2::read::GzDecoder::new(&bytes[..])).unwrap()
    };
    let names = |value: &serde_json::Value| -> Vec<String> {
        let results = value["results"].as_object().unwrap();
        let mut names: Vec<String> =
            results.keys().filter(|name| !name.starts_with("Queue")).cloned().collect();
        names.sort();
        names
    };
    let value = exported(&results);
    assert_eq!(value["metadata"]["NAME"], "tcp_ndown");
    assert_eq!(value["metadata"]["TEST_PARAMETERS"]["download_streams"], "2");
    let down = ["TCP download avg", "TCP download sum", "TCP download::1", "TCP download::2"];
    assert_eq!(names(&value), [&["Ping (ms) ICMP"], &down[..]].concat());
    flows(&mut results.plan).filter(|flow| flow.name == "bbr3").for_each(|flow| flow.is_up = true);
    let value = exported(&results);
    assert_eq!(value["metadata"]["NAME"], "rrul_be_nflows");
    let (sum, one) = (&value["results"]["TCP upload sum"], &value["results"]["TCP upload::1"]);
    assert_eq!(sum, one, "a sum holds one direction");
    flows(&mut results.plan).filter(|flow| flow.name == "bbr3").for_each(|flow| {
        flow.app = "requests".into();
    });
    let value = exported(&results);
    assert!(names(&value).contains(&"Flow bbr3 goodput".to_owned()), "{:?}", names(&value));
    assert!(!names(&value).contains(&"TCP upload sum".to_owned()), "{:?}", names(&value));
}

#[test]
fn the_terminal_has_the_same_tables() {
    let results = specimen::results();
    let metrics = terminal::metrics(&results, terminal::MOST);
    assert!(metrics.contains("goodput_mbps") && metrics.contains("pfifo limit 1000 · rtt 160ms"));
    let plot = terminal::series(&specimen::series(0).unwrap(), 100, 8, terminal::MOST);
    assert!(plot.contains("cwnd (packets)") && plot.contains("PROBE_BW_CRUISE"));
    assert!(plot.lines().all(|line| line.chars().count() <= 120), "{plot}");
    assert!(terminal::runs(&results, 3).contains("seed by seed"));
    for (value, text) in [(1.0, "100 %"), (0.25, "25 %"), (1.23e-5, "<0.01 %"), (0.0, "0 %")] {
        assert_eq!(terminal::share(&results, "utilisation", value).as_deref(), Some(text));
    }
    assert_eq!(terminal::share(&results, "goodput_mbps", 1.0), None);
    assert!(terminal::runs(&results, 99).is_empty());
}

/// A view that leaves to the page what it can.
fn view(name: &str, kind: ViewKind, y: &str, of: &[&str]) -> View {
    View {
        log: None,
        solo: vec![],
        name: name.into(),
        kind,
        title: Some(format!("The {name} & all")),
        caption: None,
        x: None,
        y: vec![y.into()],
        split: None,
        of: of.iter().map(|name| (*name).to_owned()).collect(),
        filter: Vec::new(),
    }
}

#[test]
fn a_figure_stands_alone_as_a_drawing() {
    let mut results = specimen::results();
    results.plan.views = vec![
        view("rates", ViewKind::Bars, "goodput_mbps", &[]),
        view("table", ViewKind::Heatmap, "goodput_mbps", &["cubic"]),
        view("window", ViewKind::Series, "cwnd_pkts", &["cubic"]),
    ];
    let alone = |name: &str| sojourn_report::figure(&results, &mut specimen::Made, name);
    let draw = |name: &str| match alone(name) {
        Ok(Alone::Drawing(svg)) => svg,
        other => panic!("{name}: {other:?}"),
    };
    for name in ["rates", "window", "throughput-delay"] {
        let svg = draw(name);
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
        assert_eq!(svg.matches("http").count(), 1, "nothing is loaded");
        assert!(svg.contains("prefers-color-scheme:dark"));
        // Elements are closed, so that it is XML, which an image has to be.
        for element in ["svg", "g", "text", "title", "style"] {
            let opened = svg.matches(&format!("<{element} ")).count()
                + svg.matches(&format!("<{element}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{element}>")).count(), "{element}");
        }
        for html in ["<p>", "<p ", "<li", "<div", "<ul", " & "] {
            assert!(!svg.contains(html), "{html} in {name}");
        }
    }
    assert!(draw("rates").contains(">The rates &amp; all</text>"));
    let error = alone("ratse").expect_err("it is misspelt").to_string();
    assert!(
        error.contains("did you mean 'rates'") && error.contains("throughput-delay"),
        "{error}"
    );
}

/// The view as Markdown.
fn table(results: &Results, view: View) -> String {
    let mut results = results.clone();
    let name = view.name.clone();
    results.plan.views = vec![view];
    match figure(&results, &mut specimen::Made, &name) {
        Ok(Alone::Tables { markdown, .. }) => markdown,
        other => panic!("{other:?}"),
    }
}

/// A line's cells, without the bars around them.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches(['|', ' ']).split('|').map(str::trim).collect()
}

#[test]
fn a_table_has_rows_of_factors_and_columns_of_metrics() {
    let results = specimen::results();
    let mut asked = view("numbers", ViewKind::Table, "goodput_mbps", &["cubic", "bbr3"]);
    asked.y.push("jain".into());
    let text = table(&results, asked.clone());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        cells(lines[0]),
        ["queue", "rtt", "goodput (Mbit/s): cubic", "bbr3", "Jain's index"]
    );
    assert_eq!(lines.len(), 2 + results.plan.scenarios.len());
    // The second line of a queue does not repeat its name.
    assert_eq!(cells(lines[2])[..2], ["pfifo limit 50", "10ms"]);
    assert!(lines[3].starts_with("|  | "), "{}", lines[3]);
    let column = results.table.metrics.iter().position(|name| name == "goodput_mbps").unwrap();
    let of_cubic = |row: &&Row| row.scenario == 0 && row.kind == Kind::Flow && row.name == "cubic";
    let rows = results.table.rows.iter().filter(of_cubic);
    let values: Vec<f64> = rows.filter_map(|row| row.values.get(column)).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let said = cells(lines[2])[2].split(" ± ").next().unwrap().parse::<f64>().unwrap();
    assert!((said - mean).abs() < 0.06, "{said} for {mean}");

    // A factor whose values are columns.
    asked.split = Some("path.rtt".into());
    asked.of = vec!["cubic".into()];
    asked.y.truncate(1);
    let text = table(&results, asked.clone());
    let head = cells(text.lines().next().unwrap()).join(" | ");
    assert_eq!(head, "queue | goodput (Mbit/s), by rtt: 10ms | 40ms | 160ms");
    assert_eq!(text.lines().count(), 2 + specimen::QUEUES.len());

    // Metrics that name what they are of.
    let mut named = asked.clone();
    (named.split, named.of) = (None, vec![]);
    named.y = vec!["goodput(bbr3)".into(), "goodput(cubic)".into(), "rtt_p50(cubic)".into()];
    let text = table(&results, named);
    let head = cells(text.lines().next().unwrap())[2..].join(" | ");
    assert_eq!(head, "goodput (Mbit/s): bbr3 | cubic | RTT, median (ms): cubic");

    // Another one first, of some scenarios.
    asked.split = None;
    asked.x = Some("path.rtt".into());
    asked.filter =
        vec![Where { factor: "path.rtt".into(), values: vec!["10ms".into(), "40ms".into()] }];
    let text = table(&results, asked.clone());
    assert_eq!(cells(text.lines().next().unwrap()), ["rtt", "queue", "goodput (Mbit/s)"]);
    assert_eq!(text.lines().count(), 2 + 2 * specimen::QUEUES.len());

    // A row for each flow.
    asked.x = Some("flow".into());
    asked.of.clear();
    let text = table(&results, asked);
    assert_eq!(cells(text.lines().next().unwrap())[..2], ["of", "queue"]);
    assert!(text.lines().filter(|line| line.starts_with("| cubic |")).count() == 1, "{text}");
}

#[test]
fn a_table_says_what_is_missing() {
    let mut results = specimen::results();
    // A run without a result, and another that lacks the number.
    let runs = |scenario: u32| {
        let runs = results.plan.runs.iter().enumerate();
        runs.filter(move |(_, run)| run.scenario == scenario).map(|(at, _)| at as u32)
    };
    let gone = runs(0).next().expect("it has runs");
    let all = runs(0).count();
    results.missing = vec![gone];
    results.table.rows.retain(|row| row.run != gone);
    let text = table(&results, view("numbers", ViewKind::Table, "goodput_mbps", &["cubic"]));
    let first = text.lines().nth(2).unwrap();
    assert!(first.contains(&format!("({} of {all} runs)", all - 1)), "{first}");
    assert!(!text.lines().nth(3).unwrap().contains("runs"), "{text}");
    // Nothing is measured: a sentence, which is no table.
    results.plan.views = vec![view("none", ViewKind::Table, "mos", &["cubic"])];
    assert!(figure(&results, &mut specimen::Made, "none").is_err());
    assert!(page(&results).contains("Nothing that this view asks for (mos) was measured"));
}

#[test]
fn a_view_of_one_flow_of_a_group_shows_that_flow() {
    let mut results = specimen::results();
    // The flow of cubic becomes two, of which the second has twice the rate.
    for scenario in Arc::make_mut(&mut results.plan.scenarios) {
        let mut flows = scenario.flows.to_vec();
        let at = flows.iter().position(|flow| flow.name == "cubic").unwrap();
        let mut second = flows[at].clone();
        (flows[at].name, second.name) = ("cubic.1".into(), "cubic.2".into());
        flows.insert(at + 1, second);
        scenario.flows = flows.into();
    }
    let column = results.table.metrics.iter().position(|name| name == "goodput_mbps").unwrap();
    let mut rows = Vec::new();
    for mut row in std::mem::take(&mut results.table.rows) {
        if row.kind == Kind::Flow && row.name == "cubic" {
            row.name = "cubic.1".into();
            row.values.set(column, Some(3.0));
            rows.push(row.clone());
            row.name = "cubic.2".into();
            row.values.set(column, Some(6.0));
        }
        rows.push(row);
    }
    results.table.rows = rows;
    let mut asked = view("numbers", ViewKind::Table, "goodput_mbps", &["cubic.2", "cubic"]);
    let text = table(&results, asked.clone());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(cells(lines[0])[2..], ["goodput (Mbit/s): cubic", "cubic.2"]);
    assert_eq!(cells(lines[2])[2..], ["9", "6"], "a group has the sum, its flow its own");
    asked.of = vec!["cubic.1".into()];
    assert_eq!(cells(table(&results, asked.clone()).lines().nth(2).unwrap())[2..], ["3"]);
    asked.of.clear();
    let head = table(&results, asked).lines().next().unwrap().to_owned();
    assert!(!head.contains("cubic.1"), "without names there are groups: {head}");
}

#[test]
fn a_line_over_a_single_value_that_is_no_number_is_a_bar() {
    let mut results = specimen::results();
    let mut asked = view("rates", ViewKind::Line, "goodput_mbps", &["cubic"]);
    asked.x = Some("path.queue".into());
    results.plan.views = vec![asked];
    let page = page(&results);
    let figure = page.split("<figure id=\"view-0\">").nth(1).expect("it is the first");
    assert!(figure.split("</figure>").next().unwrap().contains("class=\"chart bars\""));
}

#[test]
fn a_figure_says_what_it_leaves_out() {
    let mut results = specimen::results();
    // So many round-trip times that bars have no room for all.
    let scenario = results.plan.scenarios[0].clone();
    let rows: Vec<Row> = results.table.rows.iter().filter(|row| row.run == 0).cloned().collect();
    let run = results.plan.runs[0].clone();
    results.plan.factors.retain(|factor| factor.name == "path.rtt");
    results.plan.factors[0].values = (1..=30).map(|rtt| format!("{rtt}ms")).collect();
    results.plan.factors[0].together.clear();
    let made = (0..30u32).map(|at| {
        let mut scenario = scenario.clone();
        scenario.factors = vec![format!("{}ms", at + 1).into()];
        scenario
    });
    results.plan.scenarios = Arc::new(made.collect());
    let made = (0..30u32).map(|at| PlannedRun { scenario: at, ..run.clone() });
    results.plan.runs = Arc::new(made.collect());
    results.plan.seeds.truncate(1);
    let of = |at: u32| rows.iter().map(move |row| Row { run: at, scenario: at, ..row.clone() });
    results.table.rows = (0..30).flat_map(of).collect();
    results.claims = None;
    let mut asked = view("rates", ViewKind::Bars, "goodput_mbps", &["cubic"]);
    asked.x = Some("path.rtt".into());
    results.plan.views = vec![asked];
    let page = page(&results);
    let figure = page.split("<figure id=\"view-0\">").nth(1).expect("it is the first");
    assert!(figure.contains("The first 24 of 30 rows are drawn."), "it says how many");
}

#[test]
fn a_scenario_in_which_nothing_came_is_named() {
    let mut results = specimen::results();
    let [median, n, of] = ["ping_p50_ms", "ping_n", "ping_of"].map(|name| {
        results.table.metrics.iter().position(|own| own == name).unwrap_or_else(|| {
            results.table.metrics.push(name.into());
            results.table.metrics.len() - 1
        })
    });
    let all = results.table.metrics.len();
    for row in &mut results.table.rows {
        (row.values.len()..all).for_each(|_| row.values.push(None));
        if row.name != "ping" {
            continue;
        }
        let lost = row.scenario == 0;
        row.values.set(of, Some(20.0));
        row.values.set(n, Some(if lost { 0.0 } else { 20.0 }));
        if lost {
            row.values.set(median, None);
        }
    }
    let mut asked = view("echoes", ViewKind::Line, "ping_p50", &["ping"]);
    asked.x = Some("path.rtt".into());
    asked.split = Some("path.queue".into());
    results.plan.views = vec![asked];
    let whole = page(&results);
    let findings = whole.split("<ul class=\"findings\">").nth(1).unwrap();
    let findings = findings.split("</ul>").next().unwrap();
    let sentence = findings.split("<li>").find(|one| one.contains("ing")).unwrap_or_default();
    assert!(sentence.contains("; unknown with <a"), "{findings}");
    assert!(
        !sentence.contains("and highest"),
        "an echo that was lost may have been later: {sentence}"
    );
    let figure = whole.split("<figure id=\"view-0\">").nth(1).expect("it is the first");
    let caption = figure.split("</figcaption>").next().unwrap();
    assert!(caption.contains("No value, so not drawn: ping, "), "{caption}");
}

#[test]
fn heat_maps_harm_and_verdicts_are_tables_too() {
    let results = specimen::results();
    let mut heat = view("heat", ViewKind::Heatmap, "goodput_mbps", &["cubic"]);
    heat.x = Some("path.queue".into());
    heat.split = Some("path.rtt".into());
    let text = table(&results, heat);
    assert!(text.starts_with("goodput (Mbit/s) of cubic\n\n| rtt | path.queue: pfifo"), "{text}");
    let mut verdicts = view("verdicts", ViewKind::Verdicts, "", &[]);
    verdicts.y.clear();
    let text = table(&results, verdicts.clone());
    let claims = &results.claims.as_ref().unwrap().claims;
    assert_eq!(text.lines().count(), 2 + claims.len(), "a row for each");
    assert_eq!(text.lines().next(), Some("| claim | verdict | bounds met | measured | claimed |"));
    for (claim, line) in claims.iter().zip(text.lines().skip(2)) {
        let sign = match claim.verdict {
            Verdict::Holds => "✓",
            Verdict::Fails => "✗",
            Verdict::Untestable => "?",
        };
        assert!(line.starts_with(&format!("| **{}** ", claim.id)), "{line}");
        assert_eq!(cells(line)[1], sign, "{line}");
    }
    verdicts.x = Some("path.queue".into());
    let text = table(&results, verdicts);
    assert!(
        text.starts_with("| claim | ") && text.contains("| **") && text.contains('✓'),
        "{text}"
    );
}

#[test]
fn what_is_true_of_several_flows_is_said_once() {
    let results = results_with_rtts(&["cubic", "bbr3"], |scenario, _| 10.0 + f64::from(scenario));
    let html = page(&results);
    let html = markup(&html);
    let findings = html.split("<ul class=\"findings\">").nth(1).unwrap();
    let findings = findings.split("</ul>").next().unwrap();
    assert_eq!(findings.matches("RTT (95th percentile) of").count(), 1, "{findings}");
    assert!(findings.contains("So it is with"), "{findings}");
}

#[test]
fn the_matrix_begins_with_a_metric_that_no_heat_map_of_the_study_shows() {
    let mut results = specimen::results();
    let mut begins = |kind| {
        results.plan.views = vec![view("goodput", kind, "goodput_mbps", &["cubic"])];
        let page = page(&results);
        let matrix = page.split("<table class=\"matrix live\"><caption>").nth(1).expect("a matrix");
        matrix.split("</caption>").next().unwrap().to_owned()
    };
    assert!(begins(ViewKind::Bars).contains("oodput"), "{}", begins(ViewKind::Bars));
    assert!(!begins(ViewKind::Heatmap).contains("oodput"), "{}", begins(ViewKind::Heatmap));
}

#[test]
fn tiny_shares_are_percentages_and_hardly_coloured() {
    let mut results = specimen::results();
    results.table.metrics.push("loss_share".into());
    for row in &mut results.table.rows {
        let share = if row.scenario == 0 { 6.08e-5 } else { 1.0e-6 * f64::from(row.scenario) };
        row.values.push((row.name == "ping").then_some(share));
    }
    results.plan.views = vec![view("loss", ViewKind::Bars, "loss_share", &["ping"])];
    let html = page(&results);
    let html = markup(&html);
    let matrix = html.split("<table class=\"matrix live\">").nth(1).expect("a matrix");
    let matrix = matrix.split("</table>").next().unwrap();
    assert!(matrix.contains("(%)"), "{matrix}");
    assert!(matrix.contains("&lt;0.01</a>") && !matrix.contains("e-5"), "{matrix}");
    let colours: Vec<&str> = matrix
        .split("background:rgb(")
        .skip(1)
        .map(|after| after.split(' ').next().unwrap())
        .collect();
    assert_eq!(colours.len(), 12);
    // Red falls from 255 to 14 along the ramp.
    assert!(colours.iter().all(|red| red.parse::<u32>().unwrap() > 240), "{colours:?}");
}

/// The flows of all scenarios.
fn flows(plan: &mut Plan) -> impl Iterator<Item = &mut PlannedFlow> {
    let scenarios = Arc::make_mut(&mut plan.scenarios).iter_mut();
    scenarios.flat_map(|scenario| Arc::make_mut(&mut scenario.flows))
}

/// The specimen, in which every `ping` is a flow of arriving transfers. `ended` of 20 have ended in
/// each run, and take `took` milliseconds.
fn with_transfers(ended: u64, took: f64) -> Results {
    let mut results = specimen::results();
    for flow in flows(&mut results.plan) {
        if flow.name == "ping" {
            flow.app = "arrivals".into();
        }
    }
    let numbers = [
        ("fct_n", Some(ended as f64)),
        ("fct_of", Some(20.0)),
        ("fct_mean_ms", (ended > 0).then_some(took)),
        ("fct_p50_ms", (ended > 0).then_some(took)),
        ("fct_km_p50_ms", (ended >= 10).then_some(took * 2.0)),
    ];
    for (name, value) in numbers {
        results.table.metrics.push(name.into());
        for row in &mut results.table.rows {
            let jitter = (row.seed % 5) as f64 * if name.ends_with("_ms") { 0.1 } else { 0.0 };
            row.values.push(value.filter(|_| row.name == "ping").map(|value| value + jitter));
        }
    }
    results
}

#[test]
fn a_number_that_lacks_samples_says_of_how_many_it_is() {
    let some = with_transfers(12, 800.0);
    let terminal = terminal::metrics(&some, terminal::MOST);
    assert!(terminal.contains("fct_km_p50_ms"), "the estimate stands beside it: {terminal}");
    assert_eq!(terminal.matches("(60 of 100)").count(), 12, "{terminal}");
    assert!(terminal.contains("(n of N), (%): of so many samples"), "{terminal}");
    let asked =
        terminal::means(&some, Kind::Flow, &["fct_p50_ms".to_owned()], terminal::MOST).lines;
    assert_eq!(asked.len(), 12);
    assert!(asked.iter().all(|means| means.cells[0].ends_with("(60 of 100)")));
    let html = page(&some);
    assert!(markup(&html).matches("<small>60 of 100</small>").count() >= 12);

    // Where all ended, nothing is said.
    let all = with_transfers(20, 800.0);
    assert!(
        !terminal::metrics(&all, terminal::MOST).contains(" of 100")
            && !page(&all).contains(" of 100")
    );
    assert!(!terminal::metrics(&all, terminal::MOST).contains("fct_km_p50_ms"));

    // Where none ended, that is all there is to say.
    let none = with_transfers(0, 800.0);
    let terminal = terminal::metrics(&none, terminal::MOST);
    assert_eq!(terminal.matches("- (0 of 100)").count(), 12, "{terminal}");
}

/// The same, where the median by Kaplan and Meier is out of reach of seeds 1 and 2 in the first
/// scenario.
fn with_a_median_out_of_reach() -> Results {
    let mut results = with_transfers(12, 800.0);
    let column = results.table.metrics.iter().position(|metric| metric == "fct_km_p50_ms").unwrap();
    for row in &mut results.table.rows {
        if row.scenario == 0 && row.seed <= 2 {
            row.values.set(column, None);
        }
    }
    results
}

#[test]
fn a_median_that_some_seeds_do_not_reach_has_no_mean_over_the_others() {
    let results = with_a_median_out_of_reach();
    let text = terminal::metrics(&results, terminal::MOST);
    assert_eq!(text.matches("- (reached by 3 of 5 runs)").count(), 1, "{text}");
    let metrics = ["fct_km_p50_ms".to_owned()];
    let asked = terminal::means(&results, Kind::Flow, &metrics, terminal::MOST).lines;
    let cells: Vec<&str> = asked.iter().map(|means| &means.cells[0][..]).collect();
    assert_eq!(cells.iter().filter(|cell| cell.starts_with("1600")).count(), 11, "{cells:?}");
    assert_eq!(cells[0], "- (reached by 3 of 5 runs)");

    let mut asked = results.clone();
    asked.plan.views = vec![view("median", ViewKind::Bars, "fct_km_p50_ms", &["ping"])];
    let html = page(&asked);
    let html = markup(&html);
    let bar = "<text class=\"none\"";
    assert!(html.split(bar).any(|after| {
        after.split('<').next().is_some_and(|text| text.ends_with(">reached by 3 of 5 runs"))
    }));
    assert!(html.contains("<small class=\"counted\">reached by 3 of 5 runs</small>"), "matrix");
    assert!(html.contains("<td class=\"none\">– <small>reached by 3 of 5 runs</small>"), "table");
    assert!(html.contains("not every run reaches it with"), "sentence");

    let comparison = compare::compare(&with_transfers(12, 800.0), &results);
    let changes: Vec<_> =
        comparison.changes.iter().filter(|change| change.metric == "fct_km_p50_ms").collect();
    assert_eq!(changes[0].judgement, compare::Judgement::Incomparable);
    assert_eq!(changes[0].after_counted.as_deref(), Some("3 of 5"));
    assert!(changes[0].after.is_nan() && changes[0].difference.is_nan());
    assert!(changes[1..].iter().all(|change| change.judgement == compare::Judgement::Same));
    let itself = compare::compare(&results, &results);
    assert!(itself.changes.iter().all(|change| change.judgement == compare::Judgement::Same));
}

#[test]
fn times_of_other_transfers_are_not_compared() {
    let comparison = compare::compare(&with_transfers(20, 800.0), &with_transfers(12, 300.0));
    let of = |metric: &str| {
        let found = comparison.changes.iter().filter(|change| change.metric == metric);
        found.map(|change| (change.judgement, change.after_counted.clone())).collect::<Vec<_>>()
    };
    let incomparable = (compare::Judgement::Incomparable, Some("60 of 100".to_owned()));
    assert_eq!(of("fct_p50_ms"), vec![incomparable; 12]);
    assert_eq!(of("fct_km_p50_ms"), vec![(compare::Judgement::Better, None); 12]);
    assert!(comparison.terminal().contains("not comparable"));
    assert!(
        comparison.summary().contains("12 are times of transfers of which another share ended")
    );
}

#[test]
fn a_first_view_over_time_is_the_figure_of_the_answer() {
    let mut results = specimen::results();
    results.plan.views.push(View {
        log: None,
        solo: vec![],
        name: "time".into(),
        kind: ViewKind::Series,
        title: Some("The window over time".into()),
        caption: None,
        x: None,
        y: vec!["cwnd_pkts".into()],
        split: None,
        of: vec!["bbr3".into()],
        filter: vec![],
    });
    let page = page(&results);
    assert_eq!(page.matches("<figure id=\"view-0\">").count(), 1, "no figure is there twice");
    let answer = page.split("<section id=\"answer\">").nth(1).expect("there is an answer");
    let answer = answer.split("</section>").next().unwrap();
    let figure = answer.split("<figure id=\"view-0\">").nth(1).expect("the view is in it");
    // The first runs of four scenarios, as curves over each other, for a page and for a phone.
    assert_eq!(figure.matches("<svg class=\"chart time fits\"").count(), 2);
    assert_eq!(figure.matches("data-open=").count(), 4);
    assert_eq!(figure.matches("<path class=\"line k").count(), 8, "{figure}");
}

#[test]
fn a_view_over_time_of_some_scenarios_says_of_how_many() {
    let mut results = specimen::results();
    results.plan.views = vec![view("time", ViewKind::Series, "srtt_ms", &["cubic", "bbr3"])];
    let told = "The first 4 of 12 scenarios.";
    let page = page(&results);
    let caption = page.split("<figure id=\"view-0\">").nth(1).expect("the view is there");
    assert!(caption.split("</figcaption>").next().unwrap().contains(told));
    let Ok(Alone::Drawing(alone)) = figure(&results, &mut specimen::Made, "time") else {
        panic!("it is drawn")
    };
    assert_eq!(alone.matches("class=\"name\"").count(), 4, "each of them is drawn");
    assert!(alone.contains(told));
    assert!(alone.contains(">bbr3</text>"), "the key names what is asked for");
    assert!(!alone.contains("(queue)"), "and nothing else");
}

#[test]
fn a_factor_that_follows_from_another_makes_no_rows_of_its_own() {
    let mut results = specimen::results();
    let plan = &mut results.plan;
    let mut ingress = plan.factors[0].clone();
    ingress.name = "path.ingress".into();
    ingress.together = vec![0];
    plan.factors[0].together = vec![2];
    plan.factors.push(ingress);
    for scenario in Arc::make_mut(&mut plan.scenarios) {
        scenario.factors.push(scenario.factors[0].clone());
    }
    let page = page(&results);
    let matrix = page.split("<section id=\"matrix\">").nth(1).expect("there is a matrix");
    let matrix = matrix.split("</section>").next().unwrap();
    assert!(!matrix.contains("class=\"none\""), "every cell is a scenario: {matrix}");
    assert_eq!(matrix.matches("<td data-s=").count(), 12);
}

#[test]
fn a_view_of_all_flows_leaves_out_those_that_are_always_zero() {
    let mut results = specimen::results();
    let column = results.table.metrics.iter().position(|metric| metric == "goodput_mbps").unwrap();
    for row in results.table.rows.iter_mut().filter(|row| row.name == "ping") {
        row.values.set(column, Some(0.0));
    }
    let shown = |of: &[&str]| {
        let mut results = results.clone();
        results.plan.views.push(View {
            log: None,
            solo: vec![],
            name: "goodput".into(),
            kind: ViewKind::Bars,
            title: None,
            caption: None,
            x: Some("path.queue".into()),
            y: vec!["goodput".into()],
            split: Some("flow".into()),
            of: of.iter().map(|name| (*name).to_owned()).collect(),
            filter: vec![],
        });
        let page = page(&results);
        let figure = page.split("<figure id=\"view-0\">").nth(1).expect("it is there").to_owned();
        figure.split("</figure>").next().unwrap().to_owned()
    };
    let of_all = shown(&[]);
    assert!(!of_all.contains(", ping"), "nobody asked for the ping's goodput");
    // A transfer that starves is zero as well, and who reads must learn that it was there.
    assert!(of_all.contains("Zero in every run, so not drawn: ping."), "{of_all}");
    let named = shown(&["bbr3", "ping"]);
    assert!(named.contains(", ping") && !named.contains("not drawn"), "{named}");
}

/// The answer's list of sentences.
fn findings(results: &Results) -> String {
    let page = page(results);
    let findings = page.split("<ul class=\"findings\">").nth(1).expect("there are sentences");
    findings.split("</ul>").next().unwrap().to_owned()
}

/// Results whose first view shows the round-trip times of these flows, which are this, by scenario and by the place of
/// the seed among five.
fn results_with_rtts(flows: &[&str], value: impl Fn(u32, u32) -> f64) -> Results {
    let mut results = specimen::results();
    results.plan.views = vec![view("rtt", ViewKind::Bars, "rtt_p95_ms", flows)];
    let column = rtt_column(&results);
    for row in results.table.rows.iter_mut().filter(|row| flows.contains(&&*row.name)) {
        row.values.set(column, Some(value(row.scenario, row.run % 5)));
    }
    results
}

fn rtt_column(results: &Results) -> usize {
    results.table.metrics.iter().position(|one| one == "rtt_p95_ms").unwrap()
}

/// The answer where the round-trip time of `cubic` is this, by scenario and by the place of the seed
/// among five.
fn findings_of(value: impl Fn(u32, u32) -> f64) -> String {
    let mut results = results_with_rtts(&["cubic"], value);
    let column = rtt_column(&results);
    // Nothing else has a value, so there is one sentence.
    let metrics = results.table.metrics.len();
    for row in &mut results.table.rows {
        let is_cubic = row.name == "cubic";
        for metric in (0..metrics).filter(|metric| !is_cubic || *metric != column) {
            row.values.set(metric, None);
        }
    }
    let text = findings(&results);
    let sentence =
        text.split("<li>").find(|one| one.starts_with("RTT (95th percentile) of cubic")).unwrap();
    sentence.to_owned()
}

#[test]
fn one_noisy_scenario_hides_no_difference() {
    let spread = |seed: u32| f64::from(seed) - 2.0;
    let text = findings_of(|scenario, seed| match scenario {
        0 => 35.0 + 0.1 * spread(seed),
        11 => 94.0 + 80.0 * spread(seed),
        _ => 55.0 + 0.1 * spread(seed),
    });
    assert!(text.contains("is lowest with <a href=\"#s-0\">"), "{text}");
    assert!(text.contains("highest with 10 of 12 scenarios alike"), "{text}");
    assert!(text.contains("#s-11") && text.contains("is too uncertain to rank."), "{text}");
    assert!(!text.contains("decides"), "a mean that nobody knows decides nothing: {text}");
    // Half the width of one interval is 0.9, and of intervals that all hold at once 2.
    let text = findings_of(|scenario, seed| {
        let mean = if scenario == 0 { 10.0 } else { 12.0 };
        mean + 0.4585 * spread(seed)
    });
    assert!(text.contains("among 12 scenarios chance alone can bring about as much"), "{text}");
    let text = findings_of(|scenario, seed| f64::from(scenario) + 100.0 * spread(seed));
    assert!(text.contains("no more than chance explains"), "{text}");
}

#[test]
fn scenarios_whose_intervals_lie_apart_are_not_called_alike() {
    let spread = |seed: u32| f64::from(seed) - 2.0;
    // Half the width of one interval is 2, and of intervals that all hold at once 4.4: nothing tells surely which
    // of 10 and 17 is the lowest, and yet they are not alike.
    let of = |second: f64| {
        findings_of(|scenario, seed| match scenario {
            0 => 10.0 + spread(seed),
            1 => second + spread(seed),
            _ => 60.0 + 0.1 * spread(seed),
        })
    };
    let apart = of(17.0);
    assert!(apart.contains("#s-1\"") && !apart.contains("</a> alike"), "{apart}");
    assert!(apart.contains("10 of 12 scenarios alike"), "{apart}");
    let overlapping = of(12.0);
    assert!(overlapping.contains("</a> alike (<b>10"), "{overlapping}");
}

#[test]
fn what_the_first_view_shows_is_said_first_even_if_it_does_not_differ() {
    let text = findings(&results_with_rtts(&["cubic"], |_, seed| 50.0 + f64::from(seed)));
    let first = text.split("<li>").nth(1).expect("there are sentences");
    assert!(first.starts_with("RTT (95th percentile) of cubic is the same everywhere"), "{first}");
}

#[test]
fn scenarios_that_tie_are_no_winner() {
    // Scenarios are queues times three round-trip times.
    let text = findings_of(|scenario, _| [10.0, 20.0, 40.0][scenario as usize % 3]);
    assert_eq!(text.matches("all 4 scenarios with rtt").count(), 2, "{text}");
    assert!(!text.contains("href"), "no scenario is named: {text}");
    let text = findings_of(|scenario, _| if [1, 5].contains(&scenario) { 10.0 } else { 40.0 });
    assert!(text.contains("#s-1\"") && text.contains("#s-5\""), "{text}");
    assert!(text.contains("10 of 12 scenarios alike (<b>40 ms"), "{text}");
}

#[test]
fn the_answer_says_which_factor_decides() {
    let of = |value: &dyn Fn(u32) -> f64| {
        findings(&results_with_rtts(&["cubic"], |scenario, _| value(scenario)))
    };
    // Scenarios are queues times three round-trip times.
    let text = of(&|scenario| [10.0, 20.0, 40.0][scenario as usize % 3]);
    assert!(text.contains("4 times as much); rtt decides 100 % of it."), "{text}");
    // Plus and minus over a chequerboard: every mean of a row or column is the same.
    let text = of(&|scenario| match (scenario / 3 % 2, scenario % 3) {
        (0, 0) | (1, 1) => 20.0,
        (0, 1) | (1, 0) => 5.0,
        _ => 10.0,
    });
    assert!(text.contains("; no factor alone decides it."), "{text}");
}

#[test]
fn where_scenarios_can_only_be_counted_the_answer_says_what_their_factors_do() {
    // Scenarios are queues times three round-trip times, of which two differ by less than seeds do.
    let noisy = |scenario: u32, seed: u32| {
        [10.0, 11.5, 40.0][scenario as usize % 3] + 0.4 * f64::from(scenario / 3 + seed)
    };
    let results = results_with_rtts(&["cubic"], noisy);
    let text = findings(&results);
    let wanted = "of cubic: <b>10.8 ± 0.8 ms</b> to <b>42.0 ± 0.8 ms</b>; rtt decides 99.71 % of it, from \
                  11.4 ms on average with 10ms to 41.4 ms with 160ms.";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn a_distribution_of_what_arrived_says_how_much_did_not() {
    let mut results = specimen::results();
    assert!(!page(&results).contains("is in no curve"));
    for (name, last) in [("ping_n", 147.0), ("ping_of", 401.0)] {
        results.table.metrics.push(name.into());
        for row in &mut results.table.rows {
            let value = if row.scenario == 11 { last } else { 401.0 };
            row.values.push((row.name == "ping").then_some(value));
        }
    }
    let page = page(&results);
    let caption = page.split("What was lost is in no curve").nth(1).expect("it is said");
    let caption: String = caption.chars().take(300).collect();
    assert!(caption.starts_with("; most was lost of ping, "), "{caption}");
    // Of five seeds.
    assert!(caption.contains(": 36.7 % arrived."), "{caption}");
}

#[test]
fn a_run_in_a_line_has_what_its_flows_have() {
    let mut results = specimen::results();
    let goodput = results.table.metrics.iter().position(|one| one == "goodput_mbps").unwrap();
    for row in results.table.rows.iter_mut().filter(|row| row.name == "ping") {
        row.values.set(goodput, Some(0.0));
    }
    for scenario in Arc::make_mut(&mut results.plan.scenarios) {
        scenario.warmup_s = 0.0;
    }
    let page = page(&results);
    let brief = page.split("<span class=\"brief\">").nth(1).expect("there are runs");
    let brief = brief.split("</span>").next().unwrap();
    assert!(brief.contains("ping p95 ") && !brief.contains(" 0 Mbit/s"), "{brief}");
    assert!(!page.contains("not counted."), "without a warm-up all is counted");
}

#[test]
fn many_scenarios_are_a_line_each() {
    let page = page(&specimen::results());
    assert_eq!(page.matches("<details class=\"scenario\"><summary><h3>").count(), 12);
    assert!(page.contains("<div id=\"s-11\">"), "a cell of the matrix leads into the twelfth");
}

#[test]
fn no_line_is_drawn_over_a_factor_that_another_one_fixes() {
    let mut results = specimen::results();
    let rtt = results.plan.factors.iter().position(|factor| factor.name.ends_with("rtt")).unwrap();
    assert!(page(&results).contains("id=\"line-"), "round-trip times cross with queues");
    // A case for each round-trip time.
    let values = results.plan.factors[rtt].values.clone();
    let mut case = results.plan.factors[rtt].clone();
    case.name = "case".into();
    case.values = values.iter().map(|value| format!("a path of {value}")).collect();
    results.plan.factors.push(case);
    for scenario in Arc::make_mut(&mut results.plan.scenarios) {
        let value = scenario.factors[rtt].clone();
        scenario.factors.push(format!("a path of {value}").into());
    }
    let page = page(&results);
    assert!(!page.contains("id=\"line-"));
    assert!(
        page.contains("<h3>") && !page.contains(">case a path of"),
        "a case's name stands alone"
    );
}

#[test]
fn verdicts_stand_by_claim_and_value() {
    let mut results = specimen::results();
    let mut asked = view("verdicts", ViewKind::Verdicts, "", &[]);
    asked.y.clear();
    asked.x = Some("path.queue".into());
    results.plan.views = vec![asked];
    let text = |results: &Results| {
        let page = page(results);
        let figure =
            page.split("<figure id=\"view-0\">").nth(1).expect("it is the first").to_owned();
        figure.split("</figure>").next().unwrap().to_owned()
    };
    let report = results.claims.as_mut().expect("the specimen has claims");
    let claim = &mut report.claims[0];
    let check = claim.checks[0].clone();
    let of = |scenario: u32, queue: &str, verdict: Verdict| Check {
        scenario,
        label: format!("path.queue = {queue}, path.rtt = 10ms"),
        verdict,
        ..check.clone()
    };
    claim.checks = vec![
        of(0, specimen::QUEUES[0], Verdict::Holds),
        of(1, specimen::QUEUES[0], Verdict::Fails),
        of(6, specimen::QUEUES[2], Verdict::Holds),
        of(9, specimen::QUEUES[3], Verdict::Untestable),
        // It compares queues, so it is of none.
        Check { label: "path.rtt = 10ms".into(), ..of(3, "", Verdict::Fails) },
    ];
    report.claims.truncate(1);
    let figure = text(&results);
    let row = figure.split("<tbody>").nth(1).expect("there is a row");
    let cells: Vec<&str> = row.split("<td>").skip(1).collect();
    assert_eq!(cells.len(), 4, "{row}");
    assert!(cells[0].contains('✗') && cells[0].contains("1 of 2"), "{}", cells[0]);
    assert!(cells[1].starts_with("</td>"), "{}", cells[1]);
    assert!(cells[2].contains('✓') && !cells[2].contains("small"), "{}", cells[2]);
    assert!(cells[3].contains('?'), "{}", cells[3]);
    results.claims = None;
    assert!(text(&results).contains("Nothing that this view asks for (verdicts)"));
    // The ping has the one, and other flows have the other.
    results.plan.views = vec![view("apart", ViewKind::Scatter, "rtt_p95", &[])];
    results.plan.views[0].x = Some("ping_p50".into());
    assert!(text(&results).contains("Nothing has both ping_p50 and rtt_p95, so there is no point"));
}

#[test]
fn rows_of_a_heat_map_leave_out_what_all_of_them_share() {
    let mut results = specimen::results();
    let mut asked = view("goodput", ViewKind::Heatmap, "goodput_mbps", &["cubic"]);
    asked.x = Some("path.queue".into());
    asked.split = Some("path.rtt".into());
    asked.filter = vec![Where { factor: "path.rtt".into(), values: vec!["40ms".into()] }];
    results.plan.views = vec![asked];
    let page = page(&results);
    let figure = page.split("<figure id=\"view-0\">").nth(1).expect("it is the first");
    let figure = figure.split("</figure>").next().unwrap();
    assert_eq!(figure.matches("<td data-s=").count(), 4, "{figure}");
    assert!(!figure.contains("40ms"), "{figure}");
}

/// Pings become another application, whose metrics have these names.
fn make_of_pings(results: &mut Results, app: &str, names: &[(&str, &str)]) {
    for metric in results.table.metrics.iter_mut() {
        for (old, new) in names {
            *metric = metric.replace(old, new);
        }
    }
    for flow in flows(&mut results.plan).filter(|flow| flow.app == "ping") {
        flow.app = app.into();
    }
}

#[test]
fn the_first_column_of_requests_is_how_long_they_took() {
    let mut results = specimen::results();
    make_of_pings(&mut results, "requests", &[("ping_", "fct_")]);
    let page = page(&results);
    let head = "<th scope=\"col\">requests</th><th scope=\"col\" title=\"";
    let first = page.split(head).nth(1).expect("requests have a table").split('"').next();
    assert_eq!(first, Some("fct_p50_ms"));
}

/// A minute of dead picture is a pause and no freeze.
#[test]
fn pauses_have_a_column_where_there_are_any() {
    let mut results = specimen::results();
    let names = [("ping_p50_ms", "freeze_ms"), ("ping_p95_ms", "pause_ms")];
    make_of_pings(&mut results, "call", &names);
    let columns = |results: &Results| {
        let page = page(results);
        ["freeze_ms", "pause_ms"]
            .map(|metric| page.contains(&format!("<th scope=\"col\" title=\"{metric}\"")))
    };
    assert_eq!(columns(&results), [true, true]);
    let pauses = results.table.metrics.iter().position(|name| name == "pause_ms").unwrap();
    for row in results.table.rows.iter_mut().filter(|row| row.values.get(pauses).is_some()) {
        row.values.set(pauses, Some(0.0));
    }
    assert_eq!(columns(&results), [true, false]);
}

#[test]
fn harm_is_against_solo_runs_and_by_seed() {
    let mut results = specimen::results();
    let mut asked = view("harm", ViewKind::Harm, "goodput_mbps", &["cubic"]);
    asked.x = Some("path.queue".into());
    asked.split = Some("path.rtt".into());
    asked.solo =
        vec![Where { factor: "path.queue".into(), values: vec![specimen::QUEUES[0].into()] }];
    results.plan.views = vec![asked];
    let page = page(&results);
    let figure = page.split("<figure id=\"view-0\">").nth(1).expect("it is the first");
    let figure = figure.split("</figure>").next().unwrap();
    assert!(figure.contains("hurt by: path.queue") && figure.contains("who is hurt: path.rtt"));
    // The solo queue does no harm to itself and has no column.
    assert!(!figure.contains(&format!("<th scope=\"col\">{}</th>", specimen::QUEUES[0])));
    let column = results.table.metrics.iter().position(|name| name == "goodput_mbps").unwrap();
    let value = |scenario: u32, seed: u64| {
        let is_it = |row: &&Row| {
            (row.scenario, row.seed, row.kind, &row.name[..])
                == (scenario, seed, Kind::Flow, "cubic")
        };
        results.table.rows.iter().find(is_it).and_then(|row| row.values.get(column)).unwrap()
    };
    let scenario = |queue: &str, rtt: &str| {
        let mut all = results.plan.scenarios.iter();
        all.position(|one| one.factors.iter().map(|value| &value[..]).eq([queue, rtt]))
            .expect("it is planned") as u32
    };
    let rtt = &results.plan.factors[1].values[0];
    let (alone, beside) = (scenario(specimen::QUEUES[0], rtt), scenario(specimen::QUEUES[1], rtt));
    let seeds = &results.plan.seeds;
    let harms = seeds.iter().map(|seed| 1.0 - value(beside, *seed) / value(alone, *seed));
    let mean = harms.sum::<f64>() / seeds.len() as f64;
    let said = format!("{mean:.2}").replace('-', "−");
    let cell = format!("<a href=\"#s-{beside}\">");
    let cell = figure.split(&cell).nth(1).expect("there is a cell");
    assert!(cell.starts_with(&said), "{said}: {}", &cell[..12]);
    assert!(!figure.contains(" seeds</small>"), "each is the mean of all seeds");

    // A seed without the number is counted; and what had something alone, and has nothing beside, lost all bounds.
    let mut results = results.clone();
    let (first, rest) = (seeds[0], seeds.len() - 1);
    for row in results.table.rows.iter_mut().filter(|row| row.name == "cubic") {
        if row.scenario == beside && row.seed == first {
            row.values.set(column, None);
        }
    }
    let text = self::table(&results, results.plan.views[0].clone());
    assert!(text.contains(&format!("({rest} of {} seeds)", rest + 1)), "{text}");
}

#[test]
fn a_page_is_the_same_with_any_number_of_threads() {
    let results = specimen::results();
    let made = |jobs, series_budget| {
        let options = Options { jobs: NonZero::new(jobs), series_budget, ..Options::default() };
        html(&results, &mut specimen::Made, &options)
    };
    // Runs fit the budget, or some have to be packed coarsely.
    for budget in [Options::default().series_budget, 60_000] {
        let alone = made(1, budget);
        assert!(alone.contains("id=\"series-"));
        assert!([2, 7].into_iter().all(|jobs| made(jobs, budget) == alone), "{budget}");
    }
}

/// Series whose goodput is a call's target.
struct WithTargets<R>(R);

impl<R: ReadRuns> ReadRuns for WithTargets<R> {
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String> {
        let mut series = self.0.series(run)?;
        for column in series.iter_mut().flat_map(|one| &mut one.columns) {
            column.name = column.name.replace("goodput_mbps", "target_mbps");
        }
        Ok(series)
    }

    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String> {
        self.0.delays(run)
    }
}

/// Half a second, for want of a packet.
fn freeze() -> Freeze {
    let lost = LostPacket {
        sequence: 812,
        frame: 97,
        is_repair: false,
        sent_s: 3.2,
        lost_s: 3.201,
        queue: "<queue>".into(),
        why: "full".into(),
    };
    Freeze {
        from_s: 3.2,
        to_s: 3.7,
        after_frame: 96,
        frame: 97,
        captured_s: 3.19,
        sent_s: Some(3.2),
        received_s: Some(3.69),
        last: None,
        never_shown: 0,
        lost: vec![lost],
        lost_packets: 1,
        repairs: vec![RepairStep { sequence: 812, at_s: 3.234, is_copy: false }],
    }
}

#[test]
fn a_freeze_leads_to_the_packets_that_made_it() {
    let mut results = specimen::results();
    for flow in flows(&mut results.plan) {
        if flow.name == "cubic" {
            flow.app = "call".into();
        }
    }
    let freeze = freeze();
    for row in results.table.rows.iter_mut().filter(|row| row.run == 0 && row.name == "cubic") {
        row.freezes = vec![freeze.clone()];
    }
    let page = html(&results, &mut WithTargets(specimen::Made), &Options::default());
    let section = page.split("<section id=\"calls\">").nth(1).expect("there is a call");
    let section = section.split("</section>").next().unwrap();
    assert!(section.contains("The call that stood still longest"), "{section}");
    assert!(section.contains("its picture stood still once"));
    assert!(section.contains("<a href=\"#freeze-0-0\"><rect class=\"freeze\""));
    assert_eq!(page.matches("<tr id=\"freeze-0-0\">").count(), 1);
    assert!(page.contains("812 of frame 97: &lt;queue&gt; full, 3.201 s"));
    assert!(page.contains("sojourn show ") && page.contains("--format pcap"));
    assert!(page.contains("812 asked for at 3.234 s"));
    let text = terminal::freezes(&results, 0);
    assert!(
        text.starts_with("cubic 3.200 s for 500 ms (warm-up, not counted): packet 812 of frame 97 lost at <queue> (full)"),
        "{text}"
    );
}

/// In place of each `cubic` so many flows, all alike.
fn crowd(flows: usize) -> (Results, Crowd) {
    let mut results = specimen::results();
    let name = |at: usize| format!("cubic.{at}");
    for scenario in Arc::make_mut(&mut results.plan.scenarios) {
        let (many, others): (Vec<_>, Vec<_>) =
            scenario.flows.iter().cloned().partition(|flow| flow.name == "cubic");
        let many = many.iter().flat_map(|flow| {
            (0..flows).map(move |at| PlannedFlow { name: name(at), ..flow.clone() })
        });
        scenario.flows = many.chain(others).collect();
    }
    let rows = std::mem::take(&mut results.table.rows).into_iter().flat_map(|row| {
        let times = if row.name == "cubic" { flows } else { 1 };
        (0..times).map(move |at| match times {
            1 => row.clone(),
            _ => Row { name: name(at), ..row.clone() },
        })
    });
    results.table.rows = rows.collect();
    (results, Crowd(flows))
}

/// Has the series of that many flows.
struct Crowd(usize);

impl ReadRuns for Crowd {
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String> {
        let (many, others): (Vec<_>, Vec<_>) =
            specimen::Made.series(run)?.into_iter().partition(|one| one.name == "cubic");
        let many = many.iter().flat_map(|one| {
            (0..self.0).map(move |at| Series { name: format!("cubic.{at}"), ..one.clone() })
        });
        Ok(many.chain(others).collect())
    }

    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String> {
        specimen::Made.delays(run)
    }
}

#[test]
fn of_very_many_flows_the_first_of_each_group_are_shown_and_it_is_said() {
    let sizes = [100, 400].map(|flows| {
        let (results, mut series) = crowd(flows);
        let html = html(&results, &mut series, &Options::default());
        let others = results.plan.scenarios[0].flows.len() - flows;
        let said =
            format!("Of {} flows a panel has at most 8, the first of each group.", flows + others);
        assert!(html.contains(&said), "{said}");
        // A third of 16 for each of the three groups, of which two have one flow.
        let of_states = format!("of 7 flows of {}", flows + others);
        assert!(html.contains(&of_states), "{of_states}");
        assert!(html.contains("\ncubic.4 bulk") && !html.contains("\ncubic.5 bulk"));
        assert!(html.contains("Zoom into it") && html.contains("\"cubic.4\":["));
        assert!(!html.contains("\"cubic.5\":["));
        let all = terminal::end_state(&results, 0);
        assert!(all.contains(&format!("cubic.{} bulk", flows - 1)));
        html.len()
    });
    // What grows are the numbers of flows, by a digit.
    assert!(sizes[1] < sizes[0] + sizes[0] / 100, "{sizes:?}");
}

#[test]
fn an_end_state_says_what_is_of_the_time_after_the_warm_up() {
    let mut results = specimen::results();
    let of_ping = |results: &Results| {
        let all = terminal::end_state(results, 0);
        let mut lines = all.lines().skip_while(|line| !line.starts_with("ping ping"));
        lines.nth(1).expect("its line").trim().to_owned()
    };
    let warm = of_ping(&results);
    assert!(warm.starts_with("after the warm-up: transmitted:"), "{warm}");
    assert!(!warm.contains("datagrams"), "{warm}");
    let scenarios = Arc::make_mut(&mut results.plan.scenarios);
    scenarios.iter_mut().for_each(|scenario| scenario.warmup_s = 0.0);
    assert!(of_ping(&results).starts_with("transmitted:"));
}

#[test]
fn a_tcp_flow_without_a_state_is_no_stream_of_datagrams() {
    let (mut results, _) = crowd(8);
    assert!(terminal::end_state(&results, 0).contains("cubic.3 bulk"));
    let is_it = |row: &&mut Row| row.run == 0 && row.name == "cubic.3";
    let row = results.table.rows.iter_mut().find(is_it).expect("it is planned");
    row.end_state = String::new();
    let state = terminal::end_state(&results, 0);
    assert!(!state.contains("cubic.3 bulk") && state.contains("cubic.4 bulk"), "{state}");
}

#[test]
fn of_many_calls_those_that_stood_still_longest_are_drawn() {
    let (mut results, series) = crowd(100);
    for flow in flows(&mut results.plan).filter(|flow| flow.group == "cubic") {
        flow.app = "call".into();
    }
    for (name, times) in [("cubic.3", 1), ("cubic.77", 2)] {
        let is_it = |row: &&mut Row| row.run == 0 && row.name == name;
        let row = results.table.rows.iter_mut().find(is_it).expect("it is planned");
        row.freezes = vec![freeze(); times];
    }
    let page = html(&results, &mut WithTargets(series), &Options::default());
    let section = page.split("<section id=\"calls\">").nth(1).expect("there are calls");
    let section = section.split("</section>").next().unwrap();
    assert!(section.contains("4 of 100 calls: those that stood still longest."), "{section}");
    let drawn: Vec<&str> = section
        .split("<figcaption><b>")
        .skip(1)
        .filter_map(|rest| rest.split("</b>").next())
        .collect();
    assert_eq!(drawn, ["cubic.77", "cubic.3", "cubic.0", "cubic.1"]);
    assert!(
        section.contains("<a href=\"#freeze-0-1\">") && page.contains("<tr id=\"freeze-0-2\">")
    );
}
