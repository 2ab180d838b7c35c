//! Whole runs with real packets. They need the right to make networks; where that is missing, each says so and
//! does nothing. No test asks for a tail of real time: only for rates, medians and what holds whatever the
//! machine does.

#![cfg(target_os = "linux")]

mod tries;

use std::path::Path;

use sojourn_core::param::{Style, Switch};
use sojourn_core::{
    Body, Ecn, Event, FrameEvent, FrameStage, Packet, Params as _, Span, Time, Who,
};
use sojourn_host::{AppModel, Around, Endpoint, Endpoints, FlowSetup};
use sojourn_live::{Live, machine};
use sojourn_study::results::{Folder, Kind, Results};
use sojourn_study::runner::{self, Options};
use sojourn_study::{Overrides, Registry, Study, engine};

/// Whether live runs are possible here; says why not.
fn can_run() -> bool {
    for capability in machine::capabilities().iter().filter(|own| own.is_needed) {
        if let Err(why) = &capability.found {
            eprintln!("skipped: {}: {why}", capability.name);
            return false;
        }
    }
    true
}

fn has_control(name: &str) -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let has = known.is_ok_and(|known| known.split_whitespace().any(|own| own == name));
    if !has {
        eprintln!("skipped: the kernel has no {name}");
    }
    has
}

fn study(text: &str) -> Study {
    let mut registry = Registry::default();
    engine::add::<Live>(&mut registry).expect("the name is free");
    registry.add_application::<Told>().expect("the name is free");
    let text = format!("schema = 1\ntitle = \"t\"\n{text}");
    Study::parse_with(&registry, "t.toml", &text, Path::new(""), &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Runs the study until `check` passes what it measured.
fn expect(text: &str, check: impl Fn(&Results)) {
    if !can_run() {
        return;
    }
    let study = study(text);
    tries::until_it_passes(|_| {
        let scratch = tempfile::tempdir().expect("there is room");
        let summary = runner::run(&study, &Options::new(scratch.path()), &|_| {}).expect("it runs");
        assert_eq!(summary.failed, []);
        check(&Folder::open(scratch.path()).expect("it was written"));
    });
}

fn value(results: &Results, run: u32, kind: Kind, name: &str, metric: &str) -> Option<f64> {
    let rows = results.table.run(run);
    let row = rows.iter().find(|row| row.kind == kind && row.name == name);
    results.table.value(row.unwrap_or_else(|| panic!("no {name}")), metric)
}

fn flow(results: &Results, run: u32, name: &str, metric: &str) -> f64 {
    let value = value(results, run, Kind::Flow, name, metric);
    value.unwrap_or_else(|| panic!("no {metric} of {name}"))
}

fn is_near(value: f64, wanted: f64, share: f64) -> bool {
    (value - wanted).abs() <= share * wanted
}

const ONE_LINK: &str = r#"
    [scenario]
    duration = "5s"
    warmup = "2s"
    path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 50" }
    [[scenario.flow]]
    name = "bulk"
    app = "bulk"
    cca = "cubic-linux"
    [[scenario.flow]]
    name = "ping"
    app = "ping"
    [factors]
    engine = ["sim", "live"]
"#;

#[test]
fn a_download_fills_the_link_and_its_buffer_as_in_simulation() {
    expect(ONE_LINK, |results| {
        let [simulated, live] = [0, 1].map(|run| {
            ["goodput_mbps", "srtt_p50_ms"].map(|metric| flow(results, run, "bulk", metric))
        });
        assert!(is_near(live[0], simulated[0], 0.03), "{live:?} {simulated:?}");
        assert!(is_near(live[1], simulated[1], 0.1), "{live:?} {simulated:?}");
        let ping = [0, 1].map(|run| flow(results, run, "ping", "ping_p50_ms"));
        assert!(is_near(ping[1], ping[0], 0.1), "{ping:?}");
        let longest = value(results, 1, Kind::Queue, "queue", "queue_max_pkts");
        assert_eq!(longest, Some(50.0), "CUBIC fills the buffer, which holds no more");
        // What the kernel counts and what was seen of its packets is the same.
        let delivered = flow(results, 1, "bulk", "delivered_bytes");
        assert!(is_near(flow(results, 1, "bulk", "acked_mbps"), live[0], 0.03) && delivered > 4e6);
        let rows = results.table.run(1);
        let queue = rows.iter().find(|row| row.name == "queue").expect("there is a queue");
        assert!(queue.end_state.contains(" Sent "), "{}", queue.end_state);
        let bulk = rows.iter().find(|row| row.name == "bulk").expect("there is a flow");
        assert!(bulk.end_state.contains("bytes_acked:"), "{}", bulk.end_state);
        for metric in ["lateness_p50_ms", "lateness_max_ms", "stolen_share", "strays"] {
            assert!(value(results, 1, Kind::Run, "", metric).is_some(), "{metric}");
            assert!(value(results, 0, Kind::Run, "", metric).is_none(), "{metric} of a simulation");
        }
        let series = results.series(1).expect("it was written");
        let cwnd = series.iter().find(|series| series.name == "bulk").expect("of the flow");
        let column = cwnd.columns.iter().find(|column| column.name == "cwnd_pkts");
        let known = column.expect("there is one").values.iter().flatten().count();
        assert!(known >= 45, "{known} of 50 steps have a window");
    });
}

sojourn_core::params! {
    /// An application of another crate that knows its bytes: a frame in each datagram, which says when it was made, and an answer
    /// to each.
    struct Told: "told", "says the time" {
        every: Span = "10ms", "how often";
        marks: bool as Switch = "off", "its packets are capable of ECN (ECT(1)), and each that comes marked is told as a byte delivered";
    }
}

impl AppModel for Told {
    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        let end = |next| TellsTime {
            ends: flow.ends,
            every: self.every,
            next,
            stop: flow.stop,
            marks: self.marks,
            made: None,
            asks: next != Time::NEVER,
        };
        [Box::new(end(flow.start)), Box::new(end(Time::NEVER))]
    }

    fn canonical(&self) -> String {
        self.written(Style::Canonical)
    }

    fn carries_bytes(&self) -> bool {
        true
    }
}

struct TellsTime {
    ends: Endpoints,
    every: Span,
    next: Time,
    stop: Time,
    marks: bool,
    made: Option<Vec<u8>>,
    asks: bool,
}

impl TellsTime {
    fn tell(&self, now: Time, stage: FrameStage, captured: Time, around: &mut Around<'_>) {
        let (bytes, is_key, buffered) = (200, false, Span::ZERO);
        let event = FrameEvent { stage, captured, bytes, is_key, buffered };
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::Frame(&event));
    }
}

impl Endpoint for TellsTime {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        let Body::Opaque { content, .. } = packet.body else { panic!("{packet:?}") };
        let bytes = around.contents.bytes(content).to_vec();
        assert_eq!(packet.ecn.is_capable(), self.marks);
        if packet.ecn == Ecn::Ce {
            around.observer.record(now, Who::Flow(self.ends.flow), &Event::Delivered { bytes: 1 });
        }
        assert_eq!(packet.wire_len as usize, if self.asks { 10 } else { 200 } + 42);
        if !self.asks {
            let made = u64::from_be_bytes(*bytes.first_chunk().expect("it holds a time"));
            for stage in [FrameStage::Received, FrameStage::Rendered] {
                self.tell(now, stage, Time::from_nanos(made), around);
            }
            self.made = Some(vec![1; 10]);
        }
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        if now < self.next || now >= self.stop {
            return;
        }
        self.next += self.every;
        let mut frame = vec![0; 200];
        frame[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        self.made = Some(frame);
        self.tell(now, FrameStage::Encoded, now, around);
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let bytes = self.made.take()?;
        let length = 28 + bytes.len() as u32;
        let content = around.contents.put(bytes, 1);
        let packet = self.ends.packet(now, length, Body::Opaque { number: 0, content });
        let ecn = if self.marks { Ecn::Ect1 } else { Ecn::NotEct };
        Some(Packet { ecn, ..packet })
    }

    fn next_wake(&self) -> Time {
        self.next
    }
}

#[test]
fn an_application_of_another_crate_sends_its_own_bytes() {
    expect(
        &ONE_LINK.replace(
            "app = \"ping\"",
            "app = \"ping\"\n[[scenario.flow]]\nname = \"own\"\napp = \"told\"",
        ),
        |results| {
            // A frame each 10 ms for three seconds; those that find no room in the buffer are lost.
            let of = |run, metric: &str| flow(results, run, "own", metric);
            let [simulated, live] = [0, 1].map(|run| of(run, "frame_delay_p50_ms"));
            assert!(is_near(live, simulated, 0.1), "{live} {simulated}");
            for run in [0, 1] {
                let shown = of(run, "frames_complete");
                assert!((280.0..=302.0).contains(&shown), "{shown} of 300 in run {run}");
            }
        },
    );
}

#[test]
fn an_application_of_another_crate_is_told_of_marks() {
    expect(
        &ONE_LINK.replace("pfifo limit 50", "dualpi2").replace("warmup = \"2s\"", "").replace(
            "app = \"ping\"",
            "app = \"ping\"\n[[scenario.flow]]\nname = \"own\"\napp = \"told every=1ms marks=on\"",
        ),
        |results| {
            // Its packets are in the queue with little delay, which marks them because CUBIC fills the other.
            for run in [0, 1] {
                let [marked, told] =
                    ["marked_packets", "delivered_bytes"].map(|m| flow(results, run, "own", m));
                assert!(
                    marked > 20.0 && (told - marked).abs() <= 0.05 * marked,
                    "{told} of {marked} in run {run}"
                );
            }
        },
    );
}

#[test]
fn bbr_leaves_the_buffer_empty() {
    if !has_control("bbr") {
        return;
    }
    let live = "[factors]\nengine = [\"live\"]\n\"flow.bulk.cca\" = [\"bbr\"]\n";
    expect(&ONE_LINK.replace("[factors]\n    engine = [\"sim\", \"live\"]\n", live), |results| {
        assert!(flow(results, 0, "bulk", "goodput_mbps") > 9.0);
        assert!(flow(results, 0, "ping", "ping_p50_ms") < 45.0, "a full buffer takes 80 ms");
    });
}

#[test]
fn transfers_and_datagrams_come_as_they_were_offered() {
    expect(
        r#"
        [scenario]
        duration = "4s"
        path = { rate = "20Mbps", rtt = "10ms", queue = "fq_codel" }
        [[scenario.flow]]
        name = "web"
        app = "arrivals"
        arrivals_per_second = 20
        sizes = "lognormal mean 20kB sigma 1 max 200kB"
        stop = "3s"
        [[scenario.flow]]
        name = "voice"
        app = "udp"
        size = "172B"
        rate = "68.8kbps"
        [[scenario.flow]]
        name = "file"
        app = "bulk"
        bytes = "500kB"
        direction = "up"
        start = "500ms"
        [[scenario.flow]]
        name = "paced"
        app = "bulk"
        rate = "1Mbps"
        [factors]
        engine = ["sim", "live"]
    "#,
        |results| {
            let both = |name, metric| [0, 1].map(|run| flow(results, run, name, metric));
            let [offered, came] = both("web", "transfers_started");
            assert!(offered == came && offered > 20.0, "{offered} {came}");
            assert_eq!(both("web", "transfers_completed"), [offered; 2]);
            assert_eq!(both("file", "completion_n"), [1.0; 2]);
            let [simulated, live] = both("file", "completion_p50_ms");
            assert!(is_near(live, simulated, 0.2), "{live} {simulated}");
            let [simulated, live] = both("voice", "owd_p50_ms");
            assert!(is_near(live, simulated, 0.1), "{live} {simulated}");
            let [simulated, live] = both("voice", "sent_packets");
            assert!((simulated - live).abs() <= 2.0, "{live} {simulated}");
            let [simulated, live] = both("paced", "goodput_mbps");
            assert!(is_near(live, simulated, 0.03), "{live} {simulated}");
        },
    );
}

#[test]
fn pages_and_requests_take_as_long_as_in_simulation() {
    // The median of one run's hundred exchanges is 64 to 83 ms, by the seed.
    expect(
        r#"
        repeat = { seeds = 3 }
        [scenario]
        duration = "5s"
        path = { rate = "20Mbps", rtt = "20ms", queue = "fq_codel" }
        [[scenario.flow]]
        name = "page"
        app = "page"
        cca = "cubic-linux"
        bytes = "300kB"
        requests = 10
        pause = "500ms"
        [[scenario.flow]]
        name = "asks"
        app = "requests"
        cca = "cubic-linux"
        bytes = "50kB"
        streams = 4
        connections = 2
        think = "300ms"
        random = true
        server_delay = "10ms"
        [[scenario.flow]]
        name = "other"
        app = "bulk"
        cca = "cubic-linux"
        direction = "up"
        [factors]
        engine = ["sim", "live"]
    "#,
        |results| {
            let both = |name, metric| {
                [0..3, 3..6]
                    .map(|runs| runs.map(|run| flow(results, run, name, metric)).sum::<f64>() / 3.0)
            };
            for name in ["page", "asks"] {
                let [simulated, live] = both(name, "fct_p50_ms");
                assert!(is_near(live, simulated, 0.2), "{name}: {live} {simulated}");
                // Every one that was complete was delivered, and requests are no data.
                let bytes = if name == "page" { 300e3 } else { 50e3 };
                for run in 3..6 {
                    let [begun, ended, delivered] =
                        ["completion_of", "completion_n", "delivered_bytes"]
                            .map(|metric| flow(results, run, name, metric));
                    assert!(
                        (bytes * ended..=bytes * begun).contains(&delivered),
                        "{name}: {delivered} {ended} {begun}"
                    );
                }
            }
            let [simulated, live] = both("page", "completion_n");
            assert!((live - simulated).abs() <= 1.0 && live >= 4.0, "{live} {simulated}");
            let [simulated, live] = both("asks", "completion_n");
            assert!(is_near(live, simulated, 0.1), "{live} {simulated}");
            for run in 3..6 {
                assert_eq!(value(results, run, Kind::Run, "", "strays"), Some(0.0));
            }
        },
    );
}

#[test]
fn responsiveness_is_measured_as_in_simulation() {
    expect(
        r#"
        [scenario]
        duration = "8s"
        path = { rate = "20Mbps", rtt = "20ms", queue = "fq_codel" }
        [[scenario.flow]]
        name = "rpm"
        app = "rpm"
        cca = "cubic-linux"
        interval = "500ms"
        limit = "6s"
        [factors]
        engine = ["sim", "live"]
    "#,
        |results| {
            for metric in ["rpm", "rpm_foreign", "rpm_loaded"] {
                let [simulated, live] = [0, 1].map(|run| flow(results, run, "rpm", metric));
                assert!(is_near(live, simulated, 0.15), "{metric}: {live} {simulated}");
            }
            // The connections are given up in the end, so that nothing is sent after the test.
            for run in [0, 1] {
                let [bytes, at] =
                    ["delivered_bytes", "rpm_at_ms"].map(|m| flow(results, run, "rpm", m));
                assert!(bytes * 8.0 < 20e3 * (at + 100.0), "{bytes} bytes in {at} ms");
            }
        },
    );
}

#[test]
fn loss_delay_and_shaping_are_those_of_the_links() {
    expect(
        r#"
        [scenario]
        duration = "4s"
        [scenario.path]
        rate = "10Mbps"
        rtt = "40ms"
        queue = "cake bandwidth 5mbit"
        loss = "5%"
        [[scenario.flow]]
        name = "stream"
        app = "udp"
        rate = "6Mbps"
        [[scenario.flow]]
        name = "ping"
        app = "ping"
        interval = "20ms"
        [factors]
        engine = ["sim", "live"]
    "#,
        |results| {
            let both = |name, metric| [0, 1].map(|run| flow(results, run, name, metric));
            let [simulated, live] = both("stream", "goodput_mbps");
            assert!(is_near(live, simulated, 0.03), "{live} {simulated}");
            let [simulated, live] = both("ping", "ping_p50_ms");
            assert!(is_near(live, simulated, 0.1), "{live} {simulated}");
            assert_eq!(value(results, 1, Kind::Run, "", "strays"), Some(0.0));
        },
    );
}

#[test]
fn packets_of_many_segments_pass_the_queues_as_in_simulation() {
    expect(
        r#"
        [scenario]
        duration = "5s"
        warmup = "2s"
        path = { rate = "100Mbps", rtt = "10ms", queue = "fq_codel" }
        [[scenario.flow]]
        name = "bulk"
        app = "bulk"
        cca = "cubic-linux"
        offload = true
        [[scenario.flow]]
        name = "file"
        app = "bulk"
        cca = "cubic-linux"
        bytes = "3MB"
        offload = true
        start = "500ms"
        [factors]
        "path.queue" = ["fq_codel", "cake bandwidth 95mbit"]
        engine = ["sim", "live"]
    "#,
        |results| {
            for [simulated, live] in [[0, 1], [2, 3]] {
                let filled = [simulated, live]
                    .map(|run| value(results, run, Kind::Queue, "queue", "throughput_mbps"))
                    .map(|mbps| mbps.expect("it counts"));
                assert!(is_near(filled[1], filled[0], 0.03), "{filled:?}");
                let both =
                    |name, metric| [simulated, live].map(|run| flow(results, run, name, metric));
                let [simulated, live] = both("bulk", "srtt_p50_ms");
                assert!(is_near(live, simulated, 0.15), "{live} {simulated}");
                // Every byte of the file, and each once.
                assert_eq!(both("file", "completion_n"), [1.0; 2]);
                assert_eq!(both("file", "delivered_bytes"), [3e6; 2]);
            }
            // FQ-CoDel passes them whole and CAKE cuts them, so that the receiver has less to acknowledge behind the first.
            let acknowledgements = |run| {
                let packets = value(results, run, Kind::Queue, "reverse_queue", "sent_packets");
                packets.expect("it counts")
            };
            let [whole, cut] = [1, 3].map(acknowledgements);
            assert!(whole < 0.8 * cut, "{whole} {cut}");
        },
    );
}

#[test]
fn what_the_kernel_lacks_is_named_before_anything_starts() {
    if !can_run() {
        return;
    }
    let text = ONE_LINK.replace("\"cubic-linux\"", "\"bbr2\"");
    let scratch = tempfile::tempdir().expect("there is room");
    let out = scratch.path().join("out");
    let error = runner::run(&study(&text), &Options::new(&out), &|_| {})
        .expect_err("no kernel has it")
        .to_string();
    assert!(error.contains("no congestion control 'bbr2'; it has "), "{error}");
    assert!(!out.exists(), "a folder was made");
}

#[test]
fn what_can_t_be_live_is_refused_with_its_reason() {
    let mut registry = Registry::default();
    engine::add::<Live>(&mut registry).expect("the name is free");
    let base = "schema = 1\ntitle = \"t\"\n[scenario]\nengine = \"live\"\nduration = \"1s\"\n\
                path = { rate = \"10Mbps\", rtt = \"20ms\", queue = \"pfifo\" }\n[[scenario.flow]]\nname = \"a\"\n";
    for (flow, problem) in [
        ("app = \"bulk\"\ncca = \"cubic beta=0.5\"", "can't be set to 'cubic beta=0.5'"),
        ("app = \"bulk\"\ninitial_cwnd = 20", "can't set 'tcp initial_cwnd=20'"),
        ("app = \"udp\"\nsize = \"3kB\"\nrate = \"1Mbps\"", "do not fit a packet"),
        ("app = \"ping\"\nsize = \"3kB\"", "does not fit a packet"),
        ("app = \"bulk\"\nreads = \"1Mbps\"", "read at once"),
        ("app = \"exec\"", "no program is named"),
        ("app = \"exec\"\nsender = \"nc {reciever}\"", "unknown placeholder '{reciever}'"),
    ] {
        let text = format!("{base}{flow}\n");
        let error = Study::parse_with(&registry, "t", &text, Path::new(""), &Overrides::default())
            .map(|_| ())
            .expect_err(flow)
            .to_string();
        let is_named = error.contains("flow 'a'") || error.contains("scenario.flow.0");
        assert!(is_named && error.contains(problem), "{flow}: {error}");
    }
}

#[test]
fn programs_of_the_user_s_own_are_flows() {
    if !can_run() {
        return;
    }
    let text = |receiver: &str, sender: &str| {
        format!(
            r#"
            [scenario]
            engine = "live"
            duration = "2s"
            path = {{ rate = "10Mbps", rtt = "20ms", queue = "pfifo" }}
            [[scenario.flow]]
            name = "own"
            app = "exec"
            receiver = "{receiver}"
            sender = "{sender}"
            "#
        )
    };
    let listens = "echo waits; exec python3 -c 'import socket; s = socket.create_server((\\\"\\\", {port})); \
                   c = s.accept()[0]; print(sum(iter(lambda: len(c.recv(65536)), 0)), flush=True)'";
    let sends = "head -c 200000 /dev/zero > /dev/tcp/{receiver}/{port}; test -z \\\"$(ls /proc | grep -v -x -E \
                 '[a-z].*|[0-9]{{1,2}}')\\\" && ls $TMPDIR | wc -l";
    let sends = format!("exec bash -c '{}'", sends.replace('\'', "'\\\\''"));
    expect(&text(listens, &sends), |results| {
        assert_eq!(flow(results, 0, "own", "delivered_bytes"), 200_000.0);
        let rows = results.table.run(0);
        let own = rows.iter().find(|row| row.name == "own").expect("there is a flow");
        assert!(own.end_state.contains("200000"), "{}", own.end_state);
        // The sender sees no other processes, and none of others' files.
        assert!(own.end_state.contains("\n  0\n"), "{}", own.end_state);
    });

    let ended = |study: &Study| {
        let scratch = tempfile::tempdir().expect("there is room");
        runner::run(study, &Options::new(scratch.path()), &|_| {}).expect("it ends")
    };
    // One that prints without a pause keeps nobody from noticing the end; one that fails after it is said.
    let summary = ended(&study(&text("exec yes", "sleep 2.5; echo too late >&2; exit 7")));
    assert_eq!((summary.failed.len(), summary.progress.done), (0, 1));
    let trouble = &summary.troubled[0].problem;
    assert!(trouble.contains("flow 'own'") && trouble.contains("too late"), "{trouble}");

    let summary = ended(&study(&text("sleep 60", "echo oh no >&2; exit 7")));
    let problem = &summary.failed[0].problem;
    assert!(problem.contains("flow 'own'") && problem.contains("oh no"), "{problem}");
}
