//! Two Linux kernels in the simulator's time. Without a built kernel these tests say so and do nothing.
#![cfg(target_os = "linux")]

use std::sync::Arc;

use sojourn_core::{AckFlags, Body, Direction, Event, Observer, Span, StreamAddress, Time, Who};
use sojourn_kernel::Kernel;
use sojourn_link::RateSpec;
use sojourn_scenario::{App, ExternalApp, Flow, Host, Link, Scenario, Until};

const DELAY: Span = Span::from_millis(10);
const RATE: &str = "10mbps";

/// What the tests ask about, in order of time.
#[derive(Default)]
struct Log {
    pings: Vec<Span>,
    answer: Option<Span>,
    delivered: Vec<(Time, u64)>,
    trace: Vec<(Time, u32, bool)>,
    samples: Vec<(Time, u32, Span)>,
    rtts: u64,
    retransmitted: u64,
    dropped: u64,
    /// When the transfer was done, how much it was, and what it took.
    completed: Option<(Time, u64, Span)>,
    /// When each end said that it sends no more.
    ended: [Option<Time>; 2],
    /// Packets of TCP other than the first that echo no time.
    without_echo: u64,
    unacked: Vec<(Time, u32)>,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match (who, event) {
            (_, Event::Ping { rtt }) => self.pings.push(*rtt),
            (_, Event::Rtt { .. }) => self.rtts += 1,
            (Who::Flow(_), Event::Sent { packet }) => {
                match &packet.body {
                    Body::Segment(segment) => {
                        self.retransmitted += u64::from(segment.retransmission);
                        if segment.fin {
                            self.ended[0].get_or_insert(now);
                        }
                        self.without_echo += u64::from(segment.echo == Time::ZERO);
                    }
                    Body::Ack(ack) => {
                        if ack.flags.contains(AckFlags::FIN) {
                            let at = usize::from(packet.direction == Direction::Reverse);
                            self.ended[at].get_or_insert(now);
                        }
                        self.without_echo += u64::from(ack.echo == Time::ZERO);
                    }
                    _ => {}
                }
                self.trace.push((now, packet.wire_len, false));
            }
            (Who::Flow(_), Event::Arrived { packet }) => {
                if let Body::Handshake { asked, .. } = packet.body
                    && now > asked + DELAY + DELAY
                {
                    self.answer.get_or_insert(now.since(asked));
                }
                self.trace.push((now, packet.wire_len, true));
            }
            (_, Event::Delivered { bytes }) => self.delivered.push((now, *bytes)),
            (_, Event::Dropped { .. }) => self.dropped += 1,
            (_, Event::Completed { bytes, took }) => self.completed = Some((now, *bytes, *took)),
            (_, Event::FlowSample(sample)) => {
                self.samples.push((now, sample.cwnd, sample.srtt));
                self.unacked.push((now, sample.unacked));
            }
            _ => {}
        }
    }

    fn needs_order(&self) -> bool {
        true
    }
}

/// Whether there is a kernel; where there is none, the test has nothing to say.
fn has_kernel(test: &str) -> bool {
    match sojourn_kernel::usual_kernel() {
        Ok(_) => true,
        Err(reason) => {
            eprintln!("{test} is skipped: {reason}");
            false
        }
    }
}

fn run(kernels: &[Kernel], rate: &str, seconds: u64, seed: u64) -> Result<Log, String> {
    run_until(None, kernels, rate, seconds, seed)
}

fn run_until(
    stop: Option<Span>,
    kernels: &[Kernel],
    rate: &str,
    seconds: u64,
    seed: u64,
) -> Result<Log, String> {
    let queue = sojourn_qdisc::Config::parse("pfifo limit 50").expect("a shipped discipline");
    let link = |name: &str| {
        let rate = RateSpec::parse(rate).expect("a good rate").complete(None).expect("no file");
        Link::new(name, queue.clone(), rate, DELAY)
    };
    let flow = |(index, kernel): (usize, &Kernel)| {
        let app = App::External(ExternalApp(Arc::new(kernel.clone())));
        Flow { stop, ..Flow::new(&format!("flow{index}"), app, &[0], &[1]) }
    };
    let scenario = Scenario {
        duration: Span::from_secs(seconds),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
        links: vec![link("there"), link("back")],
        carriers: Vec::new(),
        changes: Vec::new(),
        flows: kernels.iter().enumerate().map(flow).collect(),
    };
    let scenario = scenario.checked().map_err(|problem| problem.to_string())?;
    let mut log = Log::default();
    let began = std::time::Instant::now();
    let address = StreamAddress { seed, run: 1 };
    let result = sojourn_sim::run(&scenario, address, &mut log);
    eprintln!("{seconds} s of {} kernel flows at {rate}: {:?}", kernels.len(), began.elapsed());
    result.map(|_| log).map_err(|violation| sojourn_study::engine::told(&scenario, &violation))
}

/// The clock of a guest has steps of 256 ns, and reading it takes one.
const STEP: Span = Span::from_nanos(256);

#[test]
fn pings_take_the_propagation_and_the_time_on_the_wire() {
    if !has_kernel("pings_take_the_propagation_and_the_time_on_the_wire") {
        return;
    }
    let ping = Kernel { ping: Some(Span::from_millis(100)), ..Kernel::default() };
    let log = run(&[ping], "unlimited", 2, 1).expect("it runs");
    assert!((19..=21).contains(&log.pings.len()), "{}", log.pings.len());
    for rtt in &log.pings {
        assert!(*rtt >= DELAY + DELAY && *rtt <= DELAY + DELAY + STEP + STEP, "{rtt}");
    }
}

#[test]
fn a_flow_fills_the_link() {
    if !has_kernel("a_flow_fills_the_link") {
        return;
    }
    for cc in ["cubic", "bbr"] {
        // 1448 bytes of payload in 1514 on the wire.
        const LIMIT: f64 = 10.0 * 1448.0 / 1514.0;
        let kernel = Kernel { cc: cc.to_owned(), ..Kernel::default() };
        let log = run(&[kernel], RATE, 5, 1).expect("it runs");
        let from = Time::ZERO + Span::from_secs(1);
        let bytes: u64 = log.delivered.iter().filter(|(at, _)| *at > from).map(|(_, n)| n).sum();
        let goodput = bytes as f64 * 8e-6 / 4.0;
        assert!(goodput > 0.999 * LIMIT && goodput <= LIMIT, "{cc}: {goodput} of {LIMIT} Mbit/s");
        // The request and its answer have 74 bytes.
        assert_eq!(log.answer, Some(DELAY + DELAY + Span::from_nanos(2 * 59_200)), "{cc}");
        assert_eq!(log.dropped, log.retransmitted, "{cc}");
        assert!(log.rtts > 1_000 && log.samples.len() >= 48, "{cc}");
        let (_, cwnd, srtt) = log.samples.last().expect("there are samples");
        assert!(*cwnd > 10 && *srtt > DELAY + DELAY, "{cc}: {cwnd}, {srtt}");
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    if !has_kernel("the_same_seed_gives_the_same_packets") {
        return;
    }
    let kernels = ["cubic", "bbr"].map(|cc| Kernel { cc: cc.to_owned(), ..Kernel::default() });
    let first = run(&kernels, RATE, 3, 1).expect("it runs");
    let second = run(&kernels, RATE, 3, 1).expect("it runs");
    let at = first.trace.iter().zip(&second.trace).position(|(one, other)| one != other);
    assert_eq!(at, None, "of {}", first.trace.len());
    assert_eq!(first.trace.len(), second.trace.len());
    assert_eq!(first.samples, second.samples);
    let other = run(&kernels, RATE, 3, 2).expect("it runs");
    assert_ne!(first.trace, other.trace);
}

#[test]
fn a_card_that_cuts_sends_what_the_kernel_would() {
    if !has_kernel("a_card_that_cuts_sends_what_the_kernel_would") {
        return;
    }
    for cc in ["cubic", "bbr"] {
        let kernel = |offload| Kernel { cc: cc.to_owned(), offload, ..Kernel::default() };
        let whole = run(&[kernel(false)], "100mbps", 1, 1).expect("it runs");
        let cut = run(&[kernel(true)], "100mbps", 1, 1).expect("it runs");
        assert!(whole.trace.len() > 5_000, "{cc}: {}", whole.trace.len());
        assert!(cut.trace.iter().all(|(_, len, _)| *len <= 1514), "{cc}");
        let goodput = |log: &Log| log.delivered.iter().map(|(_, bytes)| bytes).sum::<u64>() as f64;
        let share = goodput(&cut) / goodput(&whole);
        assert!((0.99..1.01).contains(&share), "{cc}: {share}");
    }
}

#[test]
fn arrivals_wait_until_the_card_interrupts() {
    const WAIT: Span = Span::from_millis(1);
    if !has_kernel("arrivals_wait_until_the_card_interrupts") {
        return;
    }
    let ping = Kernel { ping: Some(Span::from_millis(100)), coalesce: WAIT, ..Kernel::default() };
    let log = run(&[ping], "unlimited", 2, 1).expect("it runs");
    assert!((19..=21).contains(&log.pings.len()), "{}", log.pings.len());
    // The request waits, and the reply is here when it reaches the card.
    let least = DELAY + DELAY + WAIT;
    for rtt in &log.pings {
        assert!(*rtt >= least && *rtt <= least + STEP + STEP, "{rtt}");
    }
    let kernel =
        |coalesce| Kernel { cc: "cubic".to_owned(), coalesce, offload: true, ..Kernel::default() };
    // Segments that are joined are acknowledged together.
    let answers_per_segment = |log: &Log| {
        let count = |is_long: bool| {
            let sent =
                log.trace.iter().filter(|(_, len, arrived)| !arrived && (*len > 1000) == is_long);
            sent.count() as f64
        };
        count(false) / count(true)
    };
    let at_once = run(&[kernel(Span::ZERO)], "100mbps", 1, 1).expect("it runs");
    let late = run(&[kernel(WAIT)], "100mbps", 1, 1).expect("it runs");
    let again = run(&[kernel(WAIT)], "100mbps", 1, 1).expect("it runs");
    let shares = [&at_once, &late].map(answers_per_segment);
    assert!(shares[0] > 0.4 && shares[1] < 0.25, "{shares:?}");
    assert_eq!(late.trace, again.trace);
}

#[test]
fn what_is_wrong_with_a_kernel_is_named() {
    let long = |path: &str| Kernel { kernel: Some(path.to_owned()), ..Kernel::default() };
    let fails = |kernel: Kernel| run(&[kernel], RATE, 1, 1).err().expect("it can't run");
    assert!(fails(long("/nowhere/linux")).contains("there is no guest kernel /nowhere/linux"));
    let problem = fails(long("/bin/true"));
    assert!(problem.contains("no release of Linux: /bin/true is no kernel"), "{problem}");
    let problem = fails(long("/etc/passwd"));
    assert!(problem.contains("/etc/passwd is no executable for 64-bit x86"), "{problem}");
    if has_kernel("what_is_wrong_with_a_kernel_is_named") {
        let unknown = Kernel { cc: "faster".to_owned(), ..Kernel::default() };
        let problem = fails(unknown);
        let start = "flow 'flow0': the guest kernel has no congestion control 'faster' (allowed: ";
        assert!(problem.starts_with(start), "{problem}");
        let sysctl = Some("net.ipv4.tcp_nonsense:1".to_owned());
        let problem = fails(Kernel { sysctl, ..Kernel::default() });
        let start = "flow 'flow0': the guest kernel has no sysctl net.ipv4.tcp_nonsense";
        assert!(problem.starts_with(start), "{problem}");
        let sysctl = Some("net.ipv4.tcp_sack:banana".to_owned());
        let problem = fails(Kernel { sysctl, ..Kernel::default() });
        assert!(
            problem.contains("refuses sysctl net.ipv4.tcp_sack = banana: Invalid"),
            "{problem}"
        );
    }
}

#[test]
fn pings_take_no_keys_of_tcp() {
    let ping = Kernel { ping: Some(Span::from_millis(100)), ..Kernel::default() };
    let problem = run(&[Kernel { bytes: Some(1), ..ping }], RATE, 1, 1).err().expect("both");
    assert!(problem.contains("bytes beside ping"), "{problem}");
}

#[test]
fn a_transfer_ends() {
    const BYTES: u64 = 300_001;
    if !has_kernel("a_transfer_ends") {
        return;
    }
    let kernel = Kernel { bytes: Some(BYTES), ..Kernel::default() };
    let log = run(&[kernel], RATE, 3, 1).expect("it runs");
    let (at, bytes, took) = log.completed.expect("it is done");
    // From when the request for the connection left, which takes a guest a few steps of its clock.
    assert!(bytes == BYTES && at.since(Time::ZERO + took) < Span::from_micros(10), "{took}");
    assert_eq!(log.delivered.iter().map(|(_, bytes)| bytes).sum::<u64>(), BYTES);
    // Its last byte has arrived one propagation before.
    let (last, _) = log.delivered.last().expect("there are some");
    assert!(at.since(*last) >= DELAY && at.since(*last) < DELAY + Span::from_millis(1));
    assert!(log.ended.iter().all(Option::is_some), "{:?}", log.ended);
    assert_eq!(log.without_echo, 0);
    let after = log.unacked.iter().filter(|(time, _)| *time > at + DELAY + DELAY);
    assert!(after.clone().count() > 10 && after.clone().all(|(_, unacked)| *unacked == 0));
}

#[test]
fn a_flow_that_was_stopped_has_nothing_in_flight() {
    if !has_kernel("a_flow_that_was_stopped_has_nothing_in_flight") {
        return;
    }
    let stop = Span::from_secs(1);
    let log = run_until(Some(stop), &[Kernel::default()], RATE, 3, 1).expect("it runs");
    let last = log.unacked.last().expect("there are samples");
    assert_eq!(last.1, 0, "{:?}", log.unacked);
    // What it had written before is still sent.
    assert!(log.ended[0].is_some_and(|at| at > Time::ZERO + stop), "{:?}", log.ended);
}

#[test]
fn a_kernel_s_queue_has_the_rate_of_its_link() {
    use std::path::Path;

    use sojourn_study::{Overrides, Registry, Study};

    let mut registry = Registry::default();
    registry.add_queue::<sojourn_kernel::Router>().expect("no other queue has its name");
    let read = |path: &str, more: &str| {
        let text = format!(
            "schema = 1\ntitle = \"Queues\"\n[scenario]\nduration = \"6s\"\n{path}\n\
             [[scenario.flow]]\nname = \"flow\"\napp = \"bulk\"\n{more}"
        );
        Study::parse_with(&registry, "router", &text, Path::new(""), &Overrides::default())
    };
    let path = |rate: &str, queue: &str| {
        format!("path = {{ rate = \"{rate}\", rtt = \"20ms\", queue = \"{queue}\" }}")
    };
    let fails = |rate: &str, queue: &str| {
        read(&path(rate, queue), "").expect_err("it is refused").to_string()
    };
    let problem = fails("20Mbps", "kernel qdisc fq_codel rate 10mbit");
    assert!(
        problem.contains("rate 10mbit of a kernel's queue in front of a link of 20mbit"),
        "{problem}"
    );
    assert!(problem.contains("queue"), "it names the place: {problem}");
    for rate in ["unlimited", "steps 10mbit 1s 20mbit 1s", "htb rate 10mbit", "10Mbps overhead 8"] {
        let problem = fails(rate, "kernel");
        assert!(problem.contains("in front of a rate that varies"), "{rate}: {problem}");
    }
    if has_kernel("a_kernel_s_queue_has_the_rate_of_its_link") {
        for queue in ["kernel", "kernel qdisc fq_codel rate 20mbit"] {
            read(&path("20Mbps", queue), "").expect("both are right");
        }
    }
}

#[test]
fn a_kernel_s_queue_does_what_the_simulated_one_does() {
    use std::path::Path;

    use sojourn_study::engine::{Engine, Sim};
    use sojourn_study::{Overrides, Registry, Study};

    if !has_kernel("a_kernel_s_queue_does_what_the_simulated_one_does") {
        return;
    }
    let mut registry = Registry::default();
    registry.add_queue::<sojourn_kernel::Router>().expect("no other queue has its name");
    let run = |queue: &str, flow: &str| {
        let text = format!(
            "schema = 1\ntitle = \"Queues\"\n[scenario]\nduration = \"6s\"\nwarmup = \"2s\"\n[scenario.path]\nrate = \"10Mbps\"\n\
             rtt = \"20ms\"\nqueue = \"{queue}\"\n[[scenario.flow]]\nname = \"flow\"\napp = \"bulk\"\n{flow}\n\
             [[scenario.flow]]\nname = \"ping\"\napp = \"ping\"\ninterval = \"20ms\"\n"
        );
        let study =
            Study::parse_with(&registry, "router", &text, Path::new(""), &Overrides::default());
        let study = study.unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        let measured = Engine::run(
            &Sim::default(),
            &study.scenarios.get(0).expect("it has one").scenario,
            study.address(1),
        )?;
        let value = |flow: usize, name: &str| {
            measured.metrics.flows[flow].value(name).unwrap_or_else(|| panic!("{name}"))
        };
        Ok::<_, String>([
            value(0, "goodput_mbps"),
            value(0, "srtt_p50_ms"),
            value(1, "ping_p50_ms"),
            value(0, "retransmits"),
        ])
    };
    let cubic = "cca = \"cubic-linux\"";
    for (ours, theirs, flow) in [
        ("pfifo limit 50", "pfifo+limit+50", cubic),
        ("fq_codel", "fq_codel", cubic),
        ("codel ecn", "codel+ecn", "cca = \"cubic-linux\"\necn = \"classic\""),
    ] {
        let simulated = run(ours, flow).expect("it runs");
        let kernel = run(&format!("kernel qdisc {theirs}"), flow).expect("it runs");
        eprintln!("router: {ours}: simulated {simulated:?}, kernel {kernel:?}");
        let is_near = |at: usize, share: f64, least: f64| {
            let (one, other) = (simulated[at], kernel[at]);
            assert!(
                (one - other).abs() <= (share * other).max(least),
                "{ours}: {at}: {one} {other}"
            );
        };
        is_near(0, 0.015, 0.0);
        is_near(1, 0.07, 1.0);
        is_near(2, 0.07, 1.0);
    }
    let problem = run("kernel qdisc fq_codle", cubic).expect_err("there is no such discipline");
    let start = "the queue of link '";
    assert!(problem.starts_with(start) && problem.contains("': qdisc fq_codle fails"), "{problem}");
}
