use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::digest::Digest;
use crate::results::{
    Check, ClaimReport, Factor, Kind, Plan, PlannedFlow, PlannedQueue, PlannedRun, PlannedScenario,
    Remark, Row, Series, SeriesColumn, Table, Verdict,
};

/// Two queues, two seeds; a flow `a` and a group `b` of two.
fn plan() -> Plan {
    let flow = |name: &str, group: &str| PlannedFlow {
        name: name.into(),
        group: group.into(),
        app: "bulk".into(),
        cca: None,
        base_rtt_ms: 20.0,
        bytes: None,
        is_up: false,
    };
    let scenario = |queue: &str| PlannedScenario {
        factors: vec![queue.into()],
        duration_s: 10.0,
        until: None,
        engine: None,
        warmup_s: 1.0,
        step_s: 0.1,
        flows: [flow("a", "a"), flow("b.1", "b"), flow("b.2", "b")].into(),
        queues: [PlannedQueue { name: "queue".into(), queue: queue.into(), rate: "10Mbps".into() }]
            .into(),
    };
    Plan {
        schema: 1,
        title: "t".into(),
        source: None,
        question: None,
        path: "t.toml".into(),
        overrides: Vec::new(),
        digest: String::new(),
        model: String::new(),
        study_seed: 1,
        seeds: vec![1, 2],
        factors: vec![Factor {
            name: "path.queue".into(),
            values: vec!["fifo".into(), "fq".into()],
            together: Vec::new(),
        }],
        scenarios: Arc::new(vec![scenario("fifo"), scenario("fq")]),
        runs: Arc::new(
            [(0, 1), (0, 2), (1, 1), (1, 2)]
                .map(|(scenario, seed)| PlannedRun { id: Digest::of(b""), scenario, seed })
                .into(),
        ),
        views: Vec::new(),
        metrics: crate::metrics::columns(),
    }
}

/// Goodput of `a` is 6 and 8 in the seeds of `fifo`, 5 and 5 in those of `fq`; `b.1` and `b.2` have
/// 1 and 2; the median RTT of all flows is 60 and 25 ms.
fn table(plan: &Plan) -> Table {
    let metrics: Vec<String> = plan.metrics.iter().map(|metric| metric.name.clone()).collect();
    let mut rows = Vec::new();
    for (run, planned) in plan.runs.iter().enumerate() {
        let is_fifo = planned.scenario == 0;
        let goodput =
            [[6.0, 8.0], [5.0, 5.0]][planned.scenario as usize][planned.seed as usize - 1];
        let rtt = if is_fifo { 60.0 } else { 25.0 };
        let flow =
            |goodput| vec![("goodput_mbps", goodput), ("rtt_p50_ms", rtt), ("retransmits", 0.0)];
        for (kind, name, values) in [
            (Kind::Run, "", vec![("jain", 0.9)]),
            (Kind::Flow, "a", flow(goodput)),
            (Kind::Flow, "b.1", flow(1.0)),
            (Kind::Flow, "b.2", flow(2.0)),
            (Kind::Queue, "queue", vec![("sojourn_p95_ms", 2.0 * rtt)]),
        ] {
            rows.push(Row {
                run: run as u32,
                scenario: planned.scenario,
                seed: planned.seed,
                kind,
                name: name.into(),
                digest: String::new(),
                end_state: String::new(),
                freezes: Vec::new(),
                values: metrics
                    .iter()
                    .map(|metric| {
                        values.iter().find(|(name, _)| name == metric).map(|(_, value)| *value)
                    })
                    .collect(),
            });
        }
    }
    Table { metrics, rows }
}

/// Five steps of 2 s of `a` in every run: 10 segments, then 30 from 4 s on in scenario 0 and 50 in
/// scenario 1; STARTUP, then DRAIN from the third step on. The other flows have none.
fn series(run: u32) -> Vec<Series> {
    let window = if run < 2 { 30.0 } else { 50.0 };
    vec![Series {
        run,
        kind: Kind::Flow,
        name: "a".into(),
        t_s: vec![2.0, 4.0, 6.0, 8.0, 10.0],
        columns: vec![SeriesColumn {
            name: "cwnd_pkts".into(),
            values: [10.0, 10.0, window, window, window].into_iter().map(Some).collect(),
        }],
        phase: ["STARTUP", "STARTUP", "DRAIN", "DRAIN", "DRAIN"].map(Arc::from).into(),
    }]
}

/// Says the same in whatever order runs come, and of rows that have only the metrics that claims need.
fn checked(claims: &[Claim], plan: &Plan, table: &Table) -> ClaimReport {
    let of = |rows: &[Row], order: &dyn Fn(&mut Vec<u32>)| {
        let mut checker = Checker::new(claims, plan);
        let mut runs: Vec<u32> = (0..plan.runs.len() as u32).collect();
        order(&mut runs);
        for run in runs {
            let of_run: Vec<Row> = rows.iter().filter(|row| row.run == run).cloned().collect();
            checker.add_rows(&of_run);
            if checker.needs_series() {
                checker.add_series(run, &series(run));
            }
        }
        checker.check()
    };
    let needed = metrics(claims);
    let is_needed: Vec<bool> =
        table.metrics.iter().map(|metric| needed.contains(&metric[..])).collect();
    let some: Vec<Row> = table.rows.iter().map(|row| row.clone().only(&is_needed)).collect();
    let report = of(&table.rows, &|_| {});
    assert_eq!(of(&some, &|runs| runs.reverse()), report);
    report
}

fn claim(expression: &str, filter: &[&str]) -> Claim {
    let plan = plan();
    let names =
        Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
    Claim {
        id: "C".into(),
        text: String::new(),
        source: None,
        note: None,
        untestable: None,
        filter: filter
            .iter()
            .map(|value| Where { factor: "path.queue".into(), values: vec![(*value).into()] })
            .collect(),
        expect: vec![
            Expectation::parse(expression, names)
                .unwrap_or_else(|error| panic!("{expression}: {}", error.problem)),
        ],
    }
}

fn checks(expression: &str, filter: &[&str]) -> Vec<Check> {
    let plan = plan();
    checked(&[claim(expression, filter)], &plan, &table(&plan)).claims.remove(0).checks
}

fn mean(expression: &str, queue: &str) -> f64 {
    let checks = checks(expression, &[queue]);
    assert_eq!(checks.len(), 1);
    checks[0].value.as_ref().unwrap_or_else(|| panic!("{:?}", checks[0].reason)).mean
}

#[test]
fn a_value_is_the_mean_over_seeds_with_students_interval() {
    let checks = checks("goodput(a) in 6..8 Mbps", &["fifo"]);
    let value = checks[0].value.clone().unwrap();
    assert_eq!((value.mean, value.seeds, &value.unit[..]), (7.0, 2, "Mbit/s"));
    // 12.706 is the 97.5 % quantile of one degree of freedom; the standard error is 1.
    assert!((value.half_width.unwrap() - 12.706_204_736).abs() < 1e-6);
    assert_eq!(checks[0].verdict, Verdict::Holds);
    assert_eq!(checks[0].wanted, "6..8 Mbit/s");
    assert_eq!(checks[0].label, "path.queue = fifo");
}

/// `fifo` stands for the solo run: 6 and 8 Mbit/s at 60 ms, in `fq` 5 and 5 at 25 ms.
#[test]
fn harm_is_the_part_that_is_lost_against_the_solo_run() {
    let goodput = mean("harm(goodput(a), path.queue = 'fifo') > 0", "fq");
    assert!((goodput - (1.0 / 6.0 + 3.0 / 8.0) / 2.0).abs() < 1e-12, "{goodput}");
    // Less is better: a delay that went down is a benefit.
    let delay = mean("harm(rtt_p50(a), path.queue = 'fifo') < 0", "fq");
    assert!((delay + 1.4).abs() < 1e-12, "{delay}");
    assert_eq!(mean("harm(min(goodput(b)), path.queue = 'fifo') in 0..0", "fq"), 0.0);
    assert_eq!(mean("harm(goodput(a), path.queue = 'fifo') in 0..0", "fifo"), 0.0);
}

/// M/D/1 at half a load waits half a packet: 1 ms for 1000 octets at 4 Mbit/s.
#[test]
fn a_claim_may_compare_with_a_closed_form() {
    let wait = "model(md1.wait, load = 0.5, rate = 4mbit, packet = 1000)";
    assert_eq!(mean(&format!("{wait} >= 0"), "fq"), 1.0);
    let near = |expression: &str| checks(expression, &["fq"]).remove(0);
    // 25 ms measured.
    let check = near(&format!("rtt_p50(a) in 26 * {wait} ± 4 %"));
    assert_eq!((check.verdict, &check.wanted[..]), (Verdict::Holds, "24.96..27.04 ms"));
    let check = near(&format!("rtt_p50(a) in 28 * {wait} +/- 2 ms"));
    assert_eq!((check.verdict, &check.wanted[..]), (Verdict::Fails, "26..30 ms"));
    let miss = check.miss.expect("it is outside");
    assert!((miss.by - 1.0).abs() < 1e-9 && miss.unit == "ms", "{miss:?}");
    let check = near("goodput(a) in (goodput(b) + 2 Mbps) ± 5 %");
    let bound = check.bound.as_ref().map(|bound| bound.mean);
    assert_eq!((check.verdict, bound), (Verdict::Holds, Some(5.0)));
    assert_eq!(check.wanted, "±5% (goodput(b) + 2 Mbps)");
}

#[test]
fn a_closed_form_takes_its_parameters_from_factors() {
    let plan = zipped();
    let names =
        Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
    let text = "rtt_p50(a) >= 0 * model(bbr-queue.rtt, rtt = path.rtt) + model(bbr-queue.rtt, rtt = path.rtt)";
    let expectation = Expectation::parse(text, names).unwrap_or_else(|e| panic!("{}", e.problem));
    let claim = Claim { expect: vec![expectation], ..claim("jain() > 0", &[]) };
    let report = checked(&[claim], &plan, &table(&plan));
    let bounds: Vec<f64> = report.claims[0]
        .checks
        .iter()
        .map(|check| check.bound.as_ref().expect("it differs").mean)
        .collect();
    // Twice the round trip, which is 10 and 20 ms.
    assert!((bounds[0] - 20.0).abs() < 1e-9 && (bounds[1] - 40.0).abs() < 1e-9, "{bounds:?}");
}

#[test]
fn what_is_wrong_with_a_closed_form_is_named() {
    for (text, problem) in [
        ("goodput(a) in model(ware, rate = 1mbit) ± 1 %", "unknown closed form 'ware'"),
        ("goodput(a) in model(ware-bbr.shar) ± 1 %", "the formula gives no 'shar'"),
        (
            "goodput(a) in model(ware-bbr.goodput, flow = 2) ± 1 %",
            "ware-bbr has no parameter 'flow'",
        ),
        (
            "goodput(a) in model(ware-bbr.share) ± 1 %",
            "goodput is a rate, such as 5Mbps, and model(ware-bbr) is a plain number",
        ),
        ("goodput(a) in model(ware-bbr.goodput)", "a tolerance is missing"),
        (
            "goodput(a) in model(ware-bbr.goodput) ± 2 ms",
            "goodput is a rate, such as 5Mbps, and 2ms is a time, such as 30ms",
        ),
        ("goodput(a) in model(ware-bbr.goodput, = 2) ± 1 %", "a parameter is missing"),
    ] {
        let plan = plan();
        let names =
            Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
        let error = Expectation::parse(text, names).expect_err(text);
        assert!(error.problem.to_string().contains(problem), "{text}: {}", error.problem);
    }
}

#[test]
fn a_failure_says_by_how_much() {
    let checks = checks("goodput(a) <= 4 Mbps", &["fq"]);
    assert_eq!(checks[0].verdict, Verdict::Fails);
    let miss = checks[0].miss.clone().unwrap();
    assert_eq!((miss.by, &miss.unit[..], miss.share), (1.0, "Mbit/s", Some(0.25)));
}

#[test]
fn groups_add_amounts_and_average_delays() {
    assert_eq!(mean("goodput(b) > 0", "fq"), 3.0);
    assert_eq!(mean("rtt_p50(b) > 0", "fq"), 25.0);
    assert_eq!(mean("min(goodput(b)) > 0", "fq"), 1.0);
    assert_eq!(mean("mean(goodput(b)) > 0", "fq"), 1.5);
    assert_eq!(mean("jain(goodput(b)) > 0.5", "fq"), 0.9);
    assert_eq!(mean("goodput(b.2) > 0", "fq"), 2.0);
}

#[test]
fn units_and_dimensions_are_carried_through() {
    assert_eq!(mean("rtt_p50(a) < 30 ms", "fq"), 25.0);
    assert_eq!(mean("rtt_p50(a) < 0.03 s", "fq"), 0.025);
    assert_eq!(mean("sojourn_p95(queue) > 0", "fifo"), 120.0);
    assert_eq!(mean("goodput(a) / goodput(b) > 1", "fq"), 5.0 / 3.0);
    // 5 Mbit/s for 25 ms are 15.625 kB.
    let product = mean("goodput(a) * rtt_p50(a) in 15..16 kB", "fq");
    assert!((product - 15.625).abs() < 1e-9, "{product}");
    assert_eq!(mean("2 * goodput(a) - goodput(b) > 0", "fq"), 7.0);
    assert_eq!(mean("7.5 MB / 3 Gbps in 19..21 ms", "fq"), 20.0);
    assert!((mean("goodput(a) / (goodput(a) + goodput(b)) in 60..65 %", "fq") - 62.5).abs() < 1e-9);
}

#[test]
fn a_claim_is_checked_in_every_scenario_that_it_speaks_of() {
    assert_eq!(checks("goodput(a) > 5.5 Mbps", &[]).len(), 2);
    let plan = plan();
    let report = checked(&[claim("goodput(a) > 5.5 Mbps", &[])], &plan, &table(&plan));
    assert_eq!(report.claims[0].verdict, Verdict::Fails);
    let verdicts: Vec<Verdict> =
        report.claims[0].checks.iter().map(|check| check.verdict).collect();
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Fails]);
}

#[test]
fn scenarios_are_compared_under_the_same_seed_and_only_once() {
    let checks =
        checks("rtt_p50(a, path.queue = 'fq') < 0.5 * rtt_p50(a, path.queue = 'fifo')", &[]);
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0].verdict, Verdict::Holds);
    assert_eq!(checks[0].label, "");
    let bound = checks[0].bound.clone().unwrap();
    assert!((bound.mean - 30.0).abs() < 1e-9);
    assert_eq!(bound.unit, "ms");
}

/// The plan with a second factor that changes together with the queue.
fn zipped() -> Plan {
    let mut plan = plan();
    plan.factors[0].together = vec![1];
    plan.factors.push(Factor {
        name: "path.rtt".into(),
        values: vec!["10ms".into(), "20ms".into()],
        together: vec![0],
    });
    for (scenario, rtt) in Arc::make_mut(&mut plan.scenarios).iter_mut().zip(["10ms", "20ms"]) {
        scenario.factors.push(rtt.into());
    }
    plan
}

#[test]
fn a_value_of_one_factor_chooses_those_that_change_together_with_it() {
    let plan = zipped();
    let check_one = |expression: &str| {
        let names =
            Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
        let expect = vec![Expectation::parse(expression, names).map_err(|e| e.problem).unwrap()];
        let claim = Claim { expect, ..claim("goodput(a) > 0", &[]) };
        checked(&[claim], &plan, &table(&plan)).claims.remove(0).checks
    };
    let one = check_one("rtt_p50(a, path.queue = 'fq') < 0.5 * rtt_p50(a, path.rtt = '10ms')");
    assert_eq!((one.len(), one[0].verdict, &one[0].label[..]), (1, Verdict::Holds, ""));
    let bad = check_one("rtt_p50(a, path.queue = 'fq', path.rtt = '10ms') < 1 s");
    let reason = "the study has no scenario with path.queue = fq, path.rtt = 10ms";
    assert_eq!(bad[0].reason.as_deref(), Some(reason));
}

/// Where a third scenario shares its queue, the queue says nothing of the round-trip time.
#[test]
fn a_value_that_goes_with_several_chooses_none() {
    let mut plan = zipped();
    let mut third = plan.scenarios[1].clone();
    third.factors[1] = "30ms".into();
    Arc::make_mut(&mut plan.scenarios).push(third);
    assert_eq!(plan.companion(0, "fifo", 1), Some("10ms"));
    assert_eq!(plan.companion(0, "fq", 1), None);
    assert_eq!(plan.companion(1, "30ms", 0), Some("fq"));
}

#[test]
fn what_was_not_measured_cannot_be_tested() {
    let checks = checks("mos(a) > 3", &["fq"]);
    assert_eq!(checks[0].verdict, Verdict::Untestable);
    assert_eq!(checks[0].reason.as_deref(), Some("'mos' of 'a' was not measured with seed 1"));
    let checks = self::checks("goodput(a) / retransmits(a) > 1 Mbps", &["fq"]);
    assert_eq!(checks[0].reason.as_deref(), Some("a quantity was divided by zero"));
    // It is written as JSON, which has no such numbers.
    assert_eq!((&checks[0].value, &checks[0].bound), (&None, &None));
}

/// Sets a metric of a flow in every run.
fn set(table: &mut Table, name: &str, metric: &str, value: f64) {
    let column = table.metrics.iter().position(|own| own == metric).expect("a metric");
    for row in table.rows.iter_mut().filter(|row| row.name == name) {
        row.values.set(column, Some(value));
    }
}

/// The check of an expression where `a` had 10 of 20 transfers end in each of two runs.
fn check_of_survivors(expression: &str, completed: f64) -> Check {
    let plan = plan();
    let mut table = table(&plan);
    for (metric, value) in [("completion_n", completed), ("completion_of", 20.0)] {
        set(&mut table, "a", metric, value);
    }
    if completed > 0.0 {
        set(&mut table, "a", "completion_mean_ms", 700.0);
        set(&mut table, "a", "completion_km_p50_ms", 900.0);
    }
    checked(&[claim(expression, &["fq"])], &plan, &table).claims.remove(0).checks.remove(0)
}

#[test]
fn a_mean_over_those_that_ended_says_how_many_did_not() {
    let check = check_of_survivors("completion_mean(a) < 1 s", 10.0);
    assert_eq!(check.verdict, Verdict::Holds);
    let note = "'completion_mean_ms' of 'a' is over 20 of 40 samples: the others had not ended";
    assert_eq!(check.reason.as_deref(), Some(note));
    // All ended, or the estimate allows for those that did not.
    assert_eq!(check_of_survivors("completion_mean(a) < 1 s", 20.0).reason, None);
    assert_eq!(check_of_survivors("completion_km_p50(a) < 1 s", 10.0).reason, None);
}

#[test]
fn samples_of_a_value_count_once_however_often_it_is_named() {
    for twice in [
        "completion_mean(a) < 2 * completion_mean(a)",
        "completion_mean(a) + completion_mean(a) < 3 s",
        "min(completion_mean(a)) < 2 * max(completion_mean(a))",
    ] {
        let note = "'completion_mean_ms' of 'a' is over 20 of 40 samples: the others had not ended";
        assert_eq!(check_of_survivors(twice, 10.0).reason.as_deref(), Some(note), "{twice}");
    }
    // With the other queue there are as many again.
    let both =
        check_of_survivors("completion_mean(a) <= completion_mean(a, path.queue = 'fifo')", 10.0);
    assert!(both.reason.unwrap().contains("over 40 of 80 samples"));
}

#[test]
fn transfers_that_were_refused_are_not_said_to_be_open() {
    let plan = plan();
    let reason = |metric: &str, known: f64, refused: f64| {
        let mut table = table(&plan);
        for family in ["fct", "fct_small"] {
            set(&mut table, "a", &format!("{family}_n"), known);
            set(&mut table, "a", &format!("{family}_of"), 20.0);
            set(&mut table, "a", &format!("{family}_mean_ms"), 70.0);
        }
        set(&mut table, "a", "transfers_refused", refused);
        let claim = claim(&format!("{metric}(a) < 1 s"), &["fq"]);
        checked(&[claim], &plan, &table).claims.remove(0).checks.remove(0).reason.unwrap()
    };
    for (metric, refused, others) in [
        ("fct_mean", 0.0, "the others had not ended"),
        ("fct_mean", 8.0, "the others were refused"),
        ("fct_mean", 5.0, "of the others 6 had not ended and 10 were refused"),
        ("fct_small_mean", 5.0, "the others had not ended or were refused"),
    ] {
        let note = format!("'{metric}_ms' of 'a' is over 24 of 40 samples: {others}");
        assert_eq!(reason(metric, 12.0, refused), note);
    }
}

#[test]
fn an_open_claim_says_which_values_are_missing() {
    let check = check_of_survivors("completion_mean(a) < 1 s", 0.0);
    assert_eq!(check.verdict, Verdict::Untestable);
    let reason =
        "'completion_mean_ms' of 'a' was not measured: 0 of 20 transfers had ended with seed 1";
    assert_eq!(check.reason.as_deref(), Some(reason));
}

#[test]
fn a_claim_over_nothing_says_that_nothing_began() {
    let plan = plan();
    let reason_of = |expression: &str, counts: [&str; 2]| {
        let mut table = table(&plan);
        for metric in counts {
            set(&mut table, "a", metric, 0.0);
        }
        checked(&[claim(expression, &["fq"])], &plan, &table)
            .claims
            .remove(0)
            .checks
            .remove(0)
            .reason
    };
    let of_fct = reason_of("fct_p50(a) < 1 s", ["fct_n", "fct_of"]);
    let began =
        "'fct_p50_ms' of 'a' was not measured: no transfer began after the warm-up with seed 1";
    assert_eq!(of_fct.as_deref(), Some(began));
    let of_all = reason_of("completion_mean(a) < 1 s", ["completion_n", "completion_of"]);
    let samples = "'completion_mean_ms' of 'a' was not measured: it has no samples with seed 1";
    assert_eq!(of_all.as_deref(), Some(samples));
}

#[test]
fn a_percentile_by_kaplan_and_meier_is_not_averaged_over_the_flows_that_reach_it() {
    let plan = plan();
    let mut table = table(&plan);
    for flow in ["b.1", "b.2"] {
        set(&mut table, flow, "completion_of", 20.0);
    }
    set(&mut table, "b.1", "completion_km_p50_ms", 900.0);
    let claims = [claim("completion_km_p50(b) < 1 s", &["fq"])];
    let check = checked(&claims, &plan, &table).claims.remove(0).checks.remove(0);
    assert_eq!(check.verdict, Verdict::Untestable);
    let reason =
        "'completion_km_p50_ms' of 'b' is out of reach, as too few transfers ended with seed 1";
    assert_eq!(check.reason.as_deref(), Some(reason));
}

#[test]
fn a_group_of_which_some_have_no_value_says_so() {
    let plan = plan();
    let mut table = table(&plan);
    set(&mut table, "b.1", "mos", 4.0);
    let check = checked(&[claim("mos(b) > 3", &["fq"])], &plan, &table).claims.remove(0);
    let note = "'mos' of 'b' is over 2 of 4 flows: the other flows have no value";
    assert_eq!(check.checks[0].reason.as_deref(), Some(note));
}

#[test]
fn a_scenario_that_is_not_there_cannot_be_tested() {
    let plan = plan();
    let mut claim = claim("goodput(a) > 5.5 Mbps", &[]);
    claim.filter = vec![Where { factor: "path.queue".into(), values: vec!["gone".into()] }];
    let result = checked(&[claim], &plan, &table(&plan)).claims.remove(0);
    assert_eq!(result.verdict, Verdict::Untestable);
    assert!(result.reason.unwrap().contains("no scenario"));
}

#[test]
fn missing_runs_cannot_be_tested() {
    let plan = plan();
    let mut table = table(&plan);
    table.rows.retain(|row| row.run != 1);
    let result = checked(&[claim("goodput(a) > 1 Mbps", &[])], &plan, &table).claims.remove(0);
    let reason = "held in 1 scenario, untestable in 1: 1 of 2 runs have no result";
    assert_eq!((result.verdict, result.reason.as_deref()), (Verdict::Untestable, Some(reason)));
    assert_eq!(result.checks[0].reason.as_deref(), Some("1 of 2 runs have no result"));
    assert_eq!(result.checks[1].verdict, Verdict::Holds, "the other scenario is whole");
}

/// So many transfers of `a` begin in each run, and all end in `fq`, in 700 ms; in `fifo` as many as `ended`.
fn transfers(plan: &Plan, metric: &str, begun: f64, ended: f64) -> Table {
    let mut table = table(plan);
    for (metric, value) in [("completion_of", begun), ("completion_n", begun), (metric, 700.0)] {
        set(&mut table, "a", metric, value);
    }
    let number = |metric| table.metrics.iter().position(|own| own == metric).unwrap();
    let (time, n) = (number(metric), number("completion_n"));
    for row in table.rows.iter_mut().filter(|row| row.name == "a" && row.scenario == 0) {
        row.values.set(n, Some(ended));
        if ended == 0.0 {
            row.values.set(time, None);
        }
    }
    table
}

/// In `fifo` no transfer ends.
#[test]
fn a_claim_holds_only_if_it_could_be_tested_everywhere() {
    let plan = plan();
    let table = transfers(&plan, "completion_max_ms", 1.0, 0.0);
    let of = |claim| checked(&[claim], &plan, &table).claims.remove(0);
    let result = of(claim("completion_max(a) < 10 s", &[]));
    let reason = "held in 1 scenario, untestable in 1: 'completion_max_ms' of 'a' was not \
                  measured: 0 of 1 transfers had ended with seed 1";
    assert_eq!((result.verdict, result.reason.as_deref()), (Verdict::Untestable, Some(reason)));
    assert_eq!(result.remark(None), Some(Remark { reason, elsewhere: None }));
    assert_eq!(result.telling(), None);
    assert_eq!(of(claim("completion_max(a) < 10 s", &["fq"])).verdict, Verdict::Holds);
    assert_eq!(of(claim("completion_max(a) < 10 ms", &[])).verdict, Verdict::Fails);
    let mut two = claim("goodput(a) > 0", &["fifo"]);
    two.expect.extend(claim("completion_max(a) < 10 s", &[]).expect);
    let reason = of(two).reason.unwrap();
    assert!(reason.starts_with("1 of 2 bounds held, the others are untestable"), "{reason}");
}

#[test]
fn the_check_that_is_nearest_to_failing_or_failed_most_tells_most() {
    let plan = plan();
    let table = table(&plan);
    let value = |expression: &str| {
        let result = checked(&[claim(expression, &[])], &plan, &table).claims.remove(0);
        let check = result.telling().expect("it was tested");
        (result.verdict, check.label.clone(), check.value.as_ref().unwrap().mean)
    };
    let (fifo, fq) = ("path.queue = fifo".to_owned(), "path.queue = fq".to_owned());
    assert_eq!(value("goodput(a) > 1 Mbps"), (Verdict::Holds, fq.clone(), 5.0));
    assert_eq!(value("goodput(a) < 10 Mbps"), (Verdict::Holds, fifo.clone(), 7.0));
    assert_eq!(value("goodput(a) > 8 Mbps"), (Verdict::Fails, fq, 5.0));
    assert_eq!(value("goodput(a) > 6 Mbps").0, Verdict::Fails);
    assert_eq!(value("goodput(a) < 0.5 Mbps"), (Verdict::Fails, fifo, 7.0));
}

/// In `fifo` half of the transfers ended, in `fq` all.
#[test]
fn a_remark_on_another_scenario_than_the_one_shown_names_it() {
    let plan = plan();
    let table = transfers(&plan, "completion_mean_ms", 20.0, 10.0);
    let result = checked(&[claim("completion_mean(a) < 1 s", &[])], &plan, &table).claims.remove(0);
    let [fifo, fq] = &result.checks[..] else { panic!("two scenarios") };
    let reason = "'completion_mean_ms' of 'a' is over 20 of 40 samples: the others had not ended";
    assert_eq!(result.remark(Some(fifo)), Some(Remark { reason, elsewhere: None }));
    assert_eq!(result.remark(Some(fq)), Some(Remark { reason, elsewhere: Some(fifo) }));
}

#[test]
fn jains_index_of_zeros_is_said_to_be_undefined() {
    let plan = plan();
    let mut table = table(&plan);
    set(&mut table, "b.1", "goodput_mbps", 0.0);
    set(&mut table, "b.2", "goodput_mbps", 0.0);
    let result =
        checked(&[claim("jain(goodput(b)) >= 0", &["fq"])], &plan, &table).claims.remove(0);
    let reason = "Jain's index is not defined, as 'goodput_mbps' of all of 'b' is 0 with seed 1";
    assert_eq!((result.verdict, result.reason.as_deref()), (Verdict::Untestable, Some(reason)));
}

proptest! {
    #[test]
    fn no_expression_makes_the_reader_or_the_check_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "goodput", "rtt_p50", "jain", "(", ")", "a", "b", "queue", " in ", "..", "0", "6", ".5",
                "1e9", "Mbps", "ms", "%", "kB", "<=", ">", "-", "+", "*", "/", ",", "path.queue", "=",
                "'fq'", "min", "goodput(a)", "rtt_p50(b)", "sojourn_p95(queue)", "tcp_goodput_sum()",
                "harm(",
            ]),
            0..16,
        )
    ) {
        let plan = plan();
        let names = Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
        if let Ok(expectation) = Expectation::parse(&words.concat(), names) {
            let mut claim = claim("goodput(a) > 0", &[]);
            claim.expect = vec![expectation];
            let report = checked(&[claim], &plan, &table(&plan));
            // A division by zero fails or cannot be tested, but a reason is given.
            for check in &report.claims[0].checks {
                prop_assert_eq!(check.verdict == Verdict::Untestable, check.reason.is_some());
            }
            let text = serde_json::to_string(&report).unwrap();
            prop_assert!(serde_json::from_str::<ClaimReport>(&text).is_ok(), "{}", text);
        }
    }
}

#[test]
fn a_sum_without_end_is_refused_and_overflows_nothing() {
    let plan = plan();
    let names =
        Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
    let text = format!("goodput(a){} > 0", " + goodput(a)".repeat(100_000));
    let error = Expectation::parse(&text, names).unwrap_err();
    assert!(error.problem.to_string().contains("too long (allowed: at most 500 operators)"));
    let text = format!("goodput(a) > {}", "9".repeat(400));
    assert!(
        Expectation::parse(&text, names).unwrap_err().problem.to_string().contains("no number")
    );
}

#[test]
fn a_column_of_the_series_is_taken_over_a_part_of_the_run() {
    assert_eq!(mean("cwnd(a) during 5s..10s > 1", "fifo"), 30.0);
    assert_eq!(mean("cwnd(a) during 3s..6s > 1", "fq"), 30.0);
    let other = "cwnd(a) during 5s..10s > cwnd(a, path.queue = 'fq') during 1s..2500ms";
    assert_eq!(checks(other, &["fifo"])[0].bound.as_ref().expect("a bound").mean, 10.0);
    let late = &checks("cwnd(a) during 11s..12s > 1", &["fifo"])[0];
    assert!(late.reason.as_deref().unwrap().contains("no value in that time"), "{late:?}");
}

#[test]
fn a_phase_has_a_share_of_the_time_and_a_beginning() {
    assert_eq!(mean("phase_share(a, phase = 'DRAIN') > 50 %", "fifo"), 60.0);
    assert_eq!(mean("phase_begins(a, phase = 'DRAIN') < 7 s", "fifo"), 6.0);
    assert_eq!(mean("phase_entries(a, phase = 'STARTUP') in 1..1", "fq"), 1.0);
    assert_eq!(mean("phase_begins(a, phase = 'DRAIN', entry = '1') < 7 s", "fifo"), 6.0);
    let never = &checks("phase_begins(a, phase = 'DRAIN', entry = '2') < 7 s", &["fifo"])[0];
    assert!(never.verdict != Verdict::Holds, "{never:?}");
    let misspelt = &checks("phase_share(a, phase = 'DRIAN') < 1 %", &["fifo"])[0];
    assert_eq!(misspelt.verdict, Verdict::Untestable);
    assert!(
        misspelt.reason.as_deref().unwrap().contains("there are DRAIN, STARTUP"),
        "{misspelt:?}"
    );
}

#[test]
fn what_has_no_time_is_refused_where_it_stands() {
    let plan = plan();
    let names =
        Names { plan: &plan, is_overridden: &|_| false, removed: &|_| Vec::new(), known: None };
    for (text, at, words) in [
        ("cwnd(a) during 5..6 > 1", 15, "no time of the run"),
        ("cwnd(a) during 5kB..6kB > 1", 15, "no time of the run"),
        ("cwmd(a) during 5s..6s > 1", 0, "did you mean 'cwnd'"),
        ("cwnd() during 5s..6s > 1", 0, "of a flow or a queue"),
        ("phase_share(a) > 1", 0, "of one phase"),
        ("phase_begins(a, phase = 'DRAIN', entry = '0') > 1 s", 33, "no number of an entry"),
        ("phase_share(a, phase = 'DRAIN', entry = '1') > 1", 32, "no factor"),
        ("phase_share(queue, phase = 'DRAIN') > 1", 12, "only flows have phases"),
    ] {
        let error = Expectation::parse(text, names).unwrap_err();
        assert!(error.problem.to_string().contains(words), "{text}: {}", error.problem);
        assert_eq!(error.at, at, "{text}: {}", error.problem);
    }
}

#[test]
fn a_part_of_the_run_has_a_length_and_ends_with_the_run() {
    let plan = plan();
    let known = Known { longest_s: 10.0, phases: BTreeMap::new() };
    let names = Names {
        plan: &plan,
        is_overridden: &|_| false,
        removed: &|_| Vec::new(),
        known: Some(&known),
    };
    for (text, at, words) in [
        ("cwnd(a) during 2s..2s > 1", 15, "has no length (allowed: an end after the start"),
        ("cwnd(a) during 1s..11s > 1", 19, "no run lasts longer than 10s (allowed: a part within"),
        ("phase_share(a, phase = 'X') during 1s..11s > 1", 39, "no run lasts longer than 10s"),
    ] {
        let error = Expectation::parse(text, names).unwrap_err();
        assert!(error.problem.to_string().contains(words), "{text}: {}", error.problem);
        assert_eq!(error.at, at, "{text}");
    }
    assert!(Expectation::parse("cwnd(a) during 1s..10s > 1", names).is_ok());
}

#[test]
fn a_phase_that_no_controller_of_the_flow_has_is_refused() {
    let plan = plan();
    let of_a = Some(BTreeSet::from(["DRAIN", "PROBE_BW:UP"]));
    let phases = BTreeMap::from([("a".to_owned(), of_a), ("b".to_owned(), None)]);
    let known = Known { longest_s: 10.0, phases };
    let names = Names {
        plan: &plan,
        is_overridden: &|_| false,
        removed: &|_| Vec::new(),
        known: Some(&known),
    };
    let error = Expectation::parse("phase_share(a, phase = 'NOPE') < 1 %", names).unwrap_err();
    let words = "'a' has no phase 'NOPE' (allowed: DRAIN, PROBE_BW:UP)";
    assert!(error.problem.to_string().contains(words), "{}", error.problem);
    for text in ["phase_share(a, phase = 'PROBE_BW') < 1 %", "phase_share(b, phase = 'X') < 1 %"] {
        assert!(Expectation::parse(text, names).is_ok(), "{text}");
    }
}

#[test]
fn what_no_run_can_change_is_known() {
    let of = |text| claim(text, &[]).expect[0].why_fixed();
    assert_eq!(of("2 > 1"), Some("has nothing that is measured"));
    assert_eq!(of("2 in 1..3"), Some("has nothing that is measured"));
    assert_eq!(of("goodput(a) <= goodput(a)"), Some("compares a metric with itself"));
    assert_eq!(of("goodput(a) in goodput(a) ± 1 %"), Some("compares a metric with itself"));
    for text in [
        "goodput(a) <= goodput(b)",
        "goodput(a) <= goodput(a, path.queue = 'fq')",
        "cwnd(a) during 1s..2s <= cwnd(a) during 2s..3s",
        "goodput(a) > 0",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
}
