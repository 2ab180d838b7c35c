//! Results that were made up, in the shape of a study of two flows and a ping behind a router:
//! twelve scenarios, five seeds, a minute each.

use std::path::PathBuf;
use std::sync::Arc;

use sojourn_report::ReadRuns;
use sojourn_study::digest::Digest;
use sojourn_study::results::{
    Bucket, Check, ClaimReport, ClaimResult, Delays, Estimate, Factor, FailedRun, Kind, Machine,
    MetricColumn, Miss, Plan, PlannedFlow, PlannedQueue, PlannedRun, PlannedScenario, Results, Row,
    Series, SeriesColumn, Table, Verdict, View, ViewKind,
};

pub(crate) const QUEUES: [&str; 4] =
    ["pfifo limit 50", "pfifo limit 1000", "fq_codel", "cake bandwidth 10mbit"];
pub(crate) const RTTS: [&str; 3] = ["10ms", "40ms", "160ms"];
pub(crate) const SEEDS: u64 = 5;
const STEPS: usize = 600;

/// Pseudo-random numbers, the same in every run of the tests.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Mixes the bits (the last step of SplitMix64), so that neighbouring seeds give independent
/// numbers.
fn scrambled(seed: u64) -> u64 {
    let a = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ a >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ b >> 31
}

/// The results of a flow in a run: goodput, and the wait in the queue.
fn outcome(scenario: usize, seed: u64, flow: usize) -> (f64, f64) {
    let mut noise = Noise(scrambled(seed * 7919 + scenario as u64 * 104_729 + flow as u64 * 31));
    noise.next();
    let queue = scenario / RTTS.len();
    let (cubic, wait) = [(6.4, 48.0), (7.3, 420.0), (4.7, 6.5), (4.75, 4.2)][queue];
    let goodput = if flow == 0 { cubic } else { 9.5 - cubic };
    (goodput + (noise.next() - 0.5) * 0.7, wait * (0.85 + 0.3 * noise.next()))
}

fn base_rtt(scenario: usize) -> f64 {
    [10.0, 40.0, 160.0][scenario % RTTS.len()]
}

fn quantiles(base: f64, wait: f64) -> [f64; 11] {
    let at = |share: f64| base + wait * share;
    [
        at(0.01),
        at(0.55),
        at(0.03),
        at(0.08),
        at(0.35),
        at(0.55),
        at(0.78),
        at(1.0),
        at(1.35),
        at(2.2),
        at(3.1),
    ]
}

const QUANTILES: [&str; 11] =
    ["min", "mean", "p1", "p5", "p25", "p50", "p75", "p95", "p99", "p999", "max"];

fn metric_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "goodput_mbps",
        "share",
        "retransmits",
        "delivered_bytes",
        "sent_packets",
        "sent_bytes",
        "lost_total",
        "timeouts",
        "busy_ms",
        "throughput_mbps",
        "utilisation",
        "drops",
        "drops_full",
        "drops_aqm",
        "marks",
        "goodput_sum_mbps",
        "jain",
        "ping_sent",
        "ping_lost",
    ]
    .map(str::to_owned)
    .to_vec();
    for prefix in ["rtt", "ping", "sojourn"] {
        names.extend(QUANTILES.map(|quantile| format!("{prefix}_{quantile}_ms")));
    }
    names
}

pub(crate) fn results() -> Results {
    results_of_seeds(0)
}

/// Five seeds, beginning after `after`.
pub(crate) fn results_of_seeds(after: u64) -> Results {
    let mut scenarios = Vec::new();
    for queue in QUEUES {
        for rtt in RTTS {
            let flow = |name: &str, app: &str, cca: Option<&str>| PlannedFlow {
                name: name.into(),
                group: name.into(),
                app: app.into(),
                cca: cca.map(str::to_owned),
                base_rtt_ms: rtt.trim_end_matches("ms").parse().unwrap(),
                bytes: None,
                is_up: false,
            };
            scenarios.push(PlannedScenario {
                factors: vec![queue.into(), rtt.into()],
                duration_s: 60.0,
                until: None,
                engine: None,
                warmup_s: 5.0,
                step_s: 0.1,
                flows: [
                    flow("cubic", "bulk", Some("cubic")),
                    flow("bbr3", "bulk", Some("bbr3")),
                    flow("ping", "ping", None),
                ]
                .into(),
                queues: [PlannedQueue {
                    name: "bottleneck".into(),
                    queue: queue.into(),
                    rate: "10Mbps".into(),
                }]
                .into(),
            });
        }
    }
    let mut runs = Vec::new();
    let mut rows = Vec::new();
    let names = metric_names();
    for scenario in 0..scenarios.len() {
        for seed in after + 1..=after + SEEDS {
            let run = runs.len() as u32;
            runs.push(PlannedRun {
                id: Digest(((u128::from(run) + 1) * 0x9e37_79b9_7f4a_7c15_f39c_c060).to_be_bytes()),
                scenario: scenario as u32,
                seed,
            });
            rows.extend(rows_of(run, scenario, seed, &names));
        }
    }
    let metrics = names
        .iter()
        .map(|name| MetricColumn {
            name: name.clone(),
            unit: match name {
                name if name.ends_with("_mbps") => "Mbit/s".into(),
                name if name.ends_with("_ms") => "ms".into(),
                name if name.ends_with("_bytes") => "bytes".into(),
                _ => String::new(),
            },
            doc: format!("What {name} means"),
        })
        .collect();
    Results {
        folder: PathBuf::from("results/router"),
        study: "schema = 1\ntitle = \"A router\"\n\n[factors]\n\"path.queue\" = [\"pfifo limit 50\"]\n".into(),
        plan: Plan {
            schema: 1,
            title: "CUBIC and BBRv3 behind a home router".into(),
            source: Some("TCP BBR Performance over Wi-Fi 6, section 5.3".into()),
            question: Some("Who wins, and how long does everybody wait, when the router’s queue is a plain FIFO, fq_codel or CAKE?".into()),
            path: "studies/home-router/study.toml".into(),
            overrides: vec!["path.rate=10Mbps".into()],
            digest: "0123456789abcdef0123456789abcdef".into(),
            model: "1".into(),
            study_seed: 1,
            seeds: (after + 1..=after + SEEDS).collect(),
            factors: vec![
                factor("path.queue", &QUEUES),
                factor("path.rtt", &RTTS),
            ],
            scenarios: Arc::new(scenarios),
            runs: Arc::new(runs),
            views: vec![],
            metrics,
        },
        table: Table { metrics: names, rows },
        claims: Some(claims()),
        machine: Some(Machine {
            kernels: Vec::new(),
            sojourn: "0.1.0".into(),
            model: "1".into(),
            os: "linux".into(),
            arch: "x86_64".into(),
            cores: 8,
            jobs: 8,
            command: ["sojourn", "run", "studies/home-router/study.toml"].map(str::to_owned).to_vec(),
            wall_s: 12.3,
            resumed: 0,
            failed: vec![],
        }),
        missing: vec![],
    }
}

fn factor(name: &str, values: &[&str]) -> Factor {
    let values = values.iter().map(|value| (*value).into()).collect();
    Factor { name: name.into(), values, together: Vec::new() }
}

fn rows_of(run: u32, scenario: usize, seed: u64, names: &[String]) -> Vec<Row> {
    let base = base_rtt(scenario);
    let row = |kind: Kind, name: &str, known: Vec<(String, f64)>| Row {
        run,
        scenario: scenario as u32,
        seed,
        kind,
        name: name.into(),
        digest: format!("{:032x}", u128::from(run) * 0x1234_5678_9abc_def1),
        end_state: match kind {
            Kind::Run => String::new(),
            Kind::Flow if name == "ping" => String::new(),
            Kind::Flow => "\trto:248 rtt:45.12/3.2 mss:1448 cwnd:30 unacked:1\n".into(),
            Kind::Queue => " Sent 1514 bytes 1 pkt (dropped 0, overlimits 7 requeues 0)\n".into(),
        },
        freezes: vec![],
        values: names
            .iter()
            .map(|name| known.iter().find(|(known, _)| known == name).map(|(_, value)| *value))
            .collect(),
    };
    let delays = |prefix: &str, base: f64, wait: f64| {
        QUANTILES
            .iter()
            .zip(quantiles(base, wait))
            .map(|(quantile, value)| (format!("{prefix}_{quantile}_ms"), value))
            .collect::<Vec<_>>()
    };
    let both: Vec<(f64, f64)> = (0..2).map(|flow| outcome(scenario, seed, flow)).collect();
    let sum = both[0].0 + both[1].0;
    let jain = sum * sum / (2.0 * (both[0].0 * both[0].0 + both[1].0 * both[1].0));
    let wait = (both[0].1 + both[1].1) / 2.0;
    let drops = (3000.0 / (wait + 5.0)).round();
    let mut rows =
        vec![row(Kind::Run, "", vec![("goodput_sum_mbps".into(), sum), ("jain".into(), jain)])];
    for (name, (goodput, wait)) in ["cubic", "bbr3"].iter().zip(&both) {
        let mut known = delays("rtt", base, *wait);
        for (metric, value) in [
            ("goodput_mbps", *goodput),
            ("share", goodput / sum),
            ("retransmits", (drops * goodput / sum).round()),
            ("delivered_bytes", (goodput * 1e6 / 8.0 * 60.0).round()),
            ("sent_packets", (goodput * 1e6 / 8.0 * 60.0 / 1448.0).round()),
            ("lost_total", (drops * goodput / sum).round()),
            ("timeouts", 0.0),
            ("busy_ms", 60_000.0),
        ] {
            known.push((metric.into(), value));
        }
        rows.push(row(Kind::Flow, name, known));
    }
    let mut known = delays("ping", base, wait * 0.8);
    known.push(("ping_sent".into(), 550.0));
    known.push(("ping_lost".into(), 2.0));
    rows.push(row(Kind::Flow, "ping", known));
    let mut known = delays("sojourn", 0.0, wait);
    for (metric, value) in [
        ("throughput_mbps", sum * 1.045),
        ("utilisation", sum * 0.1045),
        ("sent_packets", (sum * 5180.0).round()),
        ("sent_bytes", (sum * 5180.0 * 1514.0).round()),
        ("drops", drops),
        (if scenario / RTTS.len() < 2 { "drops_full" } else { "drops_aqm" }, drops),
        ("marks", 0.0),
    ] {
        known.push((metric.into(), value));
    }
    rows.push(row(Kind::Queue, "bottleneck", known));
    rows
}

/// Markup where a study, its results or an error can have text.
pub(crate) const HOSTILE: &str =
    "<img src=x onerror=alert(1)>'\"&</script><script>alert(2)</script>";

/// The specimen, with markup for every text.
pub(crate) fn hostile() -> Results {
    let mut results = results();
    let plan = &mut results.plan;
    plan.title = HOSTILE.into();
    plan.question = Some(HOSTILE.into());
    plan.source = Some(HOSTILE.into());
    plan.path = HOSTILE.into();
    plan.model = HOSTILE.into();
    plan.digest = HOSTILE.into();
    plan.overrides = vec![HOSTILE.into()];
    plan.factors[0] = factor(HOSTILE, &[HOSTILE]);
    for scenario in Arc::make_mut(&mut plan.scenarios) {
        scenario.factors[0] = format!("{}{HOSTILE}", scenario.factors[0]).into();
        for flow in Arc::make_mut(&mut scenario.flows) {
            flow.name += HOSTILE;
            flow.group += HOSTILE;
            flow.app += HOSTILE;
            flow.cca = Some(HOSTILE.into());
        }
        for queue in Arc::make_mut(&mut scenario.queues) {
            queue.name += HOSTILE;
            queue.queue = HOSTILE.into();
            queue.rate = HOSTILE.into();
        }
    }
    for metric in &mut plan.metrics {
        metric.unit = HOSTILE.into();
        metric.doc = HOSTILE.into();
    }
    for kind in [
        ViewKind::Bars,
        ViewKind::Boxes,
        ViewKind::Series,
        ViewKind::Cdf,
        ViewKind::Scatter,
        ViewKind::Heatmap,
        ViewKind::Line,
    ] {
        plan.views.push(View {
            log: None,
            solo: vec![],
            name: HOSTILE.into(),
            kind,
            title: Some(HOSTILE.into()),
            caption: Some(HOSTILE.into()),
            x: None,
            y: vec!["goodput_mbps".into(), HOSTILE.into()],
            split: None,
            of: vec![],
            filter: vec![],
        });
    }
    for row in &mut results.table.rows {
        row.name = if row.name.is_empty() { String::new() } else { row.name.clone() + HOSTILE };
        row.digest = HOSTILE.into();
        row.end_state = HOSTILE.into();
    }
    results.folder = HOSTILE.into();
    results.study = HOSTILE.into();
    let claims = results.claims.as_mut().unwrap();
    for claim in &mut claims.claims {
        for text in [&mut claim.id, &mut claim.text] {
            *text += HOSTILE;
        }
        claim.source = Some(HOSTILE.into());
        claim.note = Some(HOSTILE.into());
        claim.reason = claim.reason.as_ref().map(|_| HOSTILE.into());
        for check in &mut claim.checks {
            check.expression += HOSTILE;
            check.label += HOSTILE;
            check.wanted += HOSTILE;
            check.reason = Some(HOSTILE.into());
            check.value.as_mut().unwrap().unit = HOSTILE.into();
        }
    }
    let machine = results.machine.as_mut().unwrap();
    machine.command = vec![HOSTILE.into()];
    for text in [&mut machine.os, &mut machine.arch, &mut machine.sojourn, &mut machine.model] {
        *text = HOSTILE.into();
    }
    machine.failed = vec![FailedRun { run: 3, problem: HOSTILE.into() }];
    results
}

/// Reads names that are markup, and fails with a text that is.
pub(crate) struct Hostile;

impl ReadRuns for Hostile {
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String> {
        let mut series: Vec<Series> = series(run)?;
        for one in &mut series {
            one.name += HOSTILE;
            one.phase.iter_mut().for_each(|phase| *phase = format!("{phase}{HOSTILE}").into());
            if run % 2 == 1 {
                one.columns.iter_mut().for_each(|column| column.name += HOSTILE);
            }
        }
        if run == 7 { Err(HOSTILE.to_owned()) } else { Ok(series) }
    }

    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String> {
        let mut delays = delays(run);
        delays.iter_mut().for_each(|one| one.name += HOSTILE);
        if run == 8 { Err(HOSTILE.to_owned()) } else { Ok(delays) }
    }
}

/// Everything that a page reads run by run.
pub(crate) struct Made;

impl ReadRuns for Made {
    fn series(&mut self, run: u32) -> Result<Vec<Series>, String> {
        series(run)
    }

    fn delays(&mut self, run: u32) -> Result<Vec<Delays>, String> {
        Ok(delays(run))
    }
}

/// As rows have their quantiles, in three hundred buckets each.
pub(crate) fn delays(run: u32) -> Vec<Delays> {
    let scenario = (run / SEEDS as u32) as usize;
    let seed = u64::from(run) % SEEDS + 1;
    let base = base_rtt(scenario);
    let waits = [outcome(scenario, seed, 0).1, outcome(scenario, seed, 1).1];
    let mean = (waits[0] + waits[1]) / 2.0;
    let of = |kind: Kind, name: &str, metric: &str, base: f64, wait: f64| Delays {
        run,
        kind,
        name: name.into(),
        metric: metric.into(),
        buckets: (0..300)
            .map(|at| {
                let place = f64::from(at) / 100.0;
                let low_ns = ((base + wait * (0.01 + place)) * 1e6) as u64;
                let samples = (4000.0 * (-((place - 0.6) * 3.0).powi(2)).exp()) as u64 + 1;
                Bucket { low_ns, high_ns: low_ns + (wait * 0.009 * 1e6) as u64, samples }
            })
            .collect(),
    };
    vec![
        of(Kind::Flow, "cubic", "rtt", base, waits[0]),
        of(Kind::Flow, "bbr3", "rtt", base, waits[1]),
        of(Kind::Flow, "ping", "ping", base, mean * 0.8),
        of(Kind::Queue, "bottleneck", "sojourn", 0.0, mean),
    ]
}

pub(crate) fn series(run: u32) -> Result<Vec<Series>, String> {
    let scenario = (run / SEEDS as u32) as usize;
    let seed = u64::from(run) % SEEDS + 1;
    Ok(series_of(run, scenario, seed, STEPS, 0.1))
}

pub(crate) fn series_of(
    run: u32,
    scenario: usize,
    seed: u64,
    steps: usize,
    step_s: f64,
) -> Vec<Series> {
    let mut noise = Noise(u64::from(run) * 977 + 5);
    let base = base_rtt(scenario);
    let t_s: Vec<f64> = (1..=steps).map(|at| at as f64 * step_s).collect();
    let column = |name: &str, values: Vec<Option<f64>>| SeriesColumn {
        name: name.into(),
        values: values.into_iter().collect(),
    };
    let mut out = Vec::new();
    let mut wait = vec![0.0; steps];
    for (flow, name) in ["cubic", "bbr3"].iter().enumerate() {
        let (goodput, top) = outcome(scenario, seed, flow);
        let period = (50.0 + base) * 10.0 / (flow + 1) as f64 / step_s / 100.0;
        let mut columns: [Vec<Option<f64>>; 8] = Default::default();
        let mut phase = Vec::new();
        for (at, wait) in wait.iter_mut().enumerate() {
            let tooth = (at as f64 / period).fract();
            let shape = if flow == 0 {
                tooth * tooth * tooth
            } else if tooth < 0.15 {
                1.2
            } else {
                0.6
            };
            *wait = top * (0.4 + 0.6 * shape) * (0.9 + 0.2 * noise.next());
            let jump = if noise.next() > 0.995 { 2.0 } else { 1.0 };
            let rtt = base + *wait * jump;
            let cwnd = (goodput * 1e6 / 8.0 / 1514.0 * rtt / 1e3 + 4.0).round();
            let values = [
                goodput * (0.8 + 0.4 * noise.next()),
                base + *wait * 0.9,
                rtt,
                if tooth > 0.97 { (noise.next() * 6.0).floor() } else { 0.0 },
                base + *wait * 0.92,
                cwnd,
                (cwnd * 0.9).floor(),
                goodput * 1.1,
            ];
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(Some(value));
            }
            phase.push(match (flow, at * 100 / steps, tooth) {
                (0, 0, _) => "slow_start".to_owned(),
                (0, _, tooth) if tooth < 0.06 => "recovery".to_owned(),
                (0, ..) => "congestion_avoidance".to_owned(),
                (_, 0, _) => "STARTUP".to_owned(),
                (_, 1, _) => "DRAIN".to_owned(),
                (_, 50..=51, _) => "PROBE_RTT".to_owned(),
                (_, _, tooth) if tooth < 0.15 => "PROBE_BW_UP".to_owned(),
                (_, _, tooth) if tooth < 0.3 => "PROBE_BW_DOWN".to_owned(),
                _ => "PROBE_BW_CRUISE".to_owned(),
            });
        }
        let names = [
            "goodput_mbps",
            "rtt_mean_ms",
            "rtt_max_ms",
            "retransmits",
            "srtt_ms",
            "cwnd_pkts",
            "inflight_pkts",
            "pacing_mbps",
        ];
        out.push(Series {
            run,
            kind: Kind::Flow,
            name: (*name).into(),
            t_s: t_s.clone(),
            columns: names.iter().zip(columns).map(|(name, values)| column(name, values)).collect(),
            phase: phase.into_iter().map(Arc::from).collect(),
        });
    }
    let pings =
        (0..steps).map(|at| (at % 2 == 0).then(|| base + wait[at] * noise.next())).collect();
    out.push(Series {
        run,
        kind: Kind::Flow,
        name: "ping".into(),
        t_s: t_s.clone(),
        columns: vec![column("rtt_max_ms", pings)],
        phase: vec![],
    });
    let some = |values: Vec<f64>| values.into_iter().map(Some).collect::<Vec<_>>();
    let packets: Vec<f64> = wait.iter().map(|wait| (wait / 1.2).round()).collect();
    let drops: Vec<f64> = (0..steps)
        .map(|_| if noise.next() > 0.97 { (noise.next() * 9.0).ceil() } else { 0.0 })
        .collect();
    out.push(Series {
        run,
        kind: Kind::Queue,
        name: "bottleneck".into(),
        t_s,
        columns: vec![
            column("throughput_mbps", some(vec![9.9; steps])),
            column("capacity_mbps", some(vec![10.0; steps])),
            column("sojourn_mean_ms", some(wait.clone())),
            column("sojourn_max_ms", some(wait.iter().map(|wait| wait * 1.2).collect())),
            column("queue_pkts", some(packets.clone())),
            column("queue_bytes", some(packets.iter().map(|packets| packets * 1514.0).collect())),
            column("queue_peak_pkts", some(packets.iter().map(|packets| packets + 3.0).collect())),
            column("drops", some(drops)),
            column("marks", some(vec![0.0; steps])),
        ],
        phase: vec![],
    });
    out
}

fn claims() -> ClaimReport {
    let estimate = |mean: f64, half: f64, unit: &str| {
        Some(Estimate { mean, half_width: Some(half), seeds: 5, unit: unit.into() })
    };
    let check =
        |expression: &str, scenario: u32, label: &str, verdict: Verdict, value, wanted: &str| {
            Check {
                expression: expression.into(),
                scenario,
                label: label.into(),
                verdict,
                reason: None,
                value,
                bound: None,
                wanted: wanted.into(),
                miss: None,
                room: None,
            }
        };
    let at = "path.queue = pfifo limit 50, path.rtt = 10ms";
    let mut low = check(
        "goodput(bbr3) in 4..6 Mbps",
        0,
        at,
        Verdict::Fails,
        estimate(3.12, 0.24, "Mbit/s"),
        "4..6 Mbit/s",
    );
    low.miss = Some(Miss { by: 0.88, unit: "Mbit/s".into(), share: Some(0.22) });
    let mut relative = check(
        "sojourn_p95(bottleneck) < sojourn_p99(bottleneck)",
        6,
        "path.queue = fq_codel, path.rtt = 10ms",
        Verdict::Holds,
        estimate(6.4, 0.5, "ms"),
        "< sojourn_p99(bottleneck)",
    );
    relative.bound = estimate(8.7, 0.6, "ms");
    ClaimReport {
        claims: vec![
            ClaimResult {
                id: "C1".into(),
                text: "Under PFIFO, CUBIC takes 6 to 8 Mbit/s and the wait stays below 100 ms"
                    .into(),
                source: Some("https://example.org/paper?section=5.3&figure=7".into()),
                note: None,
                verdict: Verdict::Holds,
                reason: None,
                checks: vec![
                    check(
                        "goodput(cubic) in 6..8 Mbps",
                        0,
                        at,
                        Verdict::Holds,
                        estimate(6.41, 0.31, "Mbit/s"),
                        "6..8 Mbit/s",
                    ),
                    check(
                        "sojourn_p95(bottleneck) <= 100 ms",
                        0,
                        at,
                        Verdict::Holds,
                        estimate(48.2, 3.4, "ms"),
                        "<= 100 ms",
                    ),
                    relative,
                ],
            },
            ClaimResult {
                id: "C2".into(),
                text: "BBRv3 keeps 4 Mbit/s beside CUBIC under PFIFO".into(),
                source: Some("Section 5.3, figure 8".into()),
                note: Some("The paper does not state the buffer; 50 packets are our guess.".into()),
                verdict: Verdict::Fails,
                reason: None,
                checks: vec![
                    low,
                    check(
                        "goodput(bbr3) in 4..6 Mbps",
                        6,
                        "path.queue = fq_codel, path.rtt = 10ms",
                        Verdict::Holds,
                        estimate(4.8, 0.2, "Mbit/s"),
                        "4..6 Mbit/s",
                    ),
                ],
            },
            ClaimResult {
                id: "C3".into(),
                text: "Eight stations share the air fairly".into(),
                source: Some("Section 6".into()),
                note: None,
                verdict: Verdict::Untestable,
                reason: Some("the paper does not say at which MCS the stations are".into()),
                checks: vec![],
            },
        ],
    }
}
