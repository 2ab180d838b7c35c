use std::path::Path;

use sojourn_core::{HostId, PortId, Span};
use sojourn_host::apps::{BulkConfig, OnOffConfig, PingConfig, UdpConfig};
use sojourn_host::tcp;
use sojourn_link::RateConfig;
use sojourn_scenario::{App, Checked, Traffic};

use crate::study_file::{Overrides, StudyFile};

mod calls;
mod radios;

fn study_in(folder: &Path, scenario: &str) -> Result<StudyFile, String> {
    let text = format!("schema = 1\ntitle = \"t\"\n[scenario]\nduration = \"10s\"\n{scenario}");
    StudyFile::parse("t.toml", &text, folder, &Overrides::default())
        .map_err(|error| error.to_string())
}

fn scenario(text: &str) -> Checked {
    let study = study_in(Path::new(""), text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.scenarios.len(), 1);
    study.scenarios.first().expect("there is one").scenario.clone()
}

fn error(text: &str) -> String {
    study_in(Path::new(""), text).map(|_| ()).expect_err("the study is wrong")
}

/// The error of `text` has these words.
#[track_caller]
fn is_refused(text: &str, words: &str) {
    let error = error(text);
    assert!(error.contains(words), "\n  wanted: {words}\n  found:  {error}");
}

/// `base` with another text in one place.
#[track_caller]
fn changed(base: &str, from: &str, to: &str) -> String {
    assert!(base.contains(from), "{from}");
    base.replacen(from, to, 1)
}

const PATH: &str =
    "[scenario.path]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = \"pfifo limit 50\"\n";

fn on_path(flows: &str) -> Checked {
    scenario(&format!("{PATH}{flows}"))
}

const BULK: &str = "[[scenario.flow]]\nname = \"a\"\napp = \"bulk\"\n";

fn ports<const N: usize>(numbers: [u16; N]) -> [PortId; N] {
    numbers.map(PortId)
}

#[test]
fn what_is_left_out_is_as_linux_has_it() {
    let world = on_path(BULK);
    assert_eq!((world.warmup, world.step), (Span::ZERO, Span::from_millis(100)));
    let App::Tcp { traffic, cca, transport } = &world.flows[0].app else { panic!() };
    assert_eq!(*traffic, Traffic::Bulk(BulkConfig::default()));
    assert_eq!(cca.name(), "cubic");
    assert_eq!(*transport, tcp::Config::default());
}

#[test]
fn rows_of_many_flows_or_of_a_long_run_are_fewer_unless_the_step_is_given() {
    let step = |flows: u32, duration: &str, given: &str| {
        let world = format!("{given}{PATH}{BULK}count = {flows}\n");
        let text =
            format!("schema = 1\ntitle = \"t\"\n[scenario]\nduration = \"{duration}\"\n{world}");
        let study = StudyFile::parse("t.toml", &text, Path::new(""), &Overrides::default());
        study
            .unwrap_or_else(|error| panic!("{error}"))
            .scenarios
            .first()
            .expect("one")
            .scenario
            .step
    };
    for (flows, duration, expected) in [
        (1_000, "10s", Span::from_millis(100)),
        (1_001, "10s", Span::from_secs(1)),
        (10_000, "1h", Span::from_secs(10)),
        (10_000, "600ms", Span::from_millis(600)),
        // An hour of a thousand flows at 100 ms would have 36 million rows.
        (1_000, "1h", Span::from_secs(1)),
        (1, "50ms", Span::from_millis(50)),
    ] {
        assert_eq!(step(flows, duration, ""), expected, "{flows} for {duration}");
    }
    assert_eq!(step(1_001, "10s", "step = \"10ms\"\n"), Span::from_millis(10));
}

#[test]
fn a_path_has_a_queue_and_half_the_delay_in_each_direction() {
    let world = on_path(BULK);
    let names: Vec<&str> = world.links.iter().map(|link| &link.name[..]).collect();
    assert_eq!(names, ["queue", "reverse_queue"]);
    for link in &world.links {
        assert_eq!(link.delay, Span::from_millis(10));
        assert_eq!(link.queue, sojourn_qdisc::Config::parse("pfifo limit 50").unwrap());
        assert_eq!(link.rate, RateConfig::fixed("10Mbps".parse().unwrap()).unwrap());
    }
    let hosts: Vec<&str> = world.hosts.iter().map(|host| &host.name[..]).collect();
    assert_eq!(hosts, ["server", "client"]);
}

#[test]
fn the_reverse_direction_may_differ_in_everything() {
    let world = scenario(&format!(
        "[scenario.path]\nrate = \"10Mbps\"\ndelay = \"0s\"\nreverse_delay = \"20ms\"\n\
         queue = \"fq_codel\"\nreverse_rate = \"unlimited\"\nreverse_queue = \"pfifo limit 1000\"\n\
         entry_loss = \"1%\"\nreverse_loss = \"2%\"\nreverse_jitter = \"uniform 1ms\"\n{BULK}"
    ));
    let [forward, reverse] = &world.links[..] else { panic!() };
    assert_eq!((forward.delay, reverse.delay), (Span::ZERO, Span::from_millis(20)));
    assert_eq!(reverse.rate, RateConfig::Unlimited);
    assert_eq!(reverse.queue.name(), "pfifo");
    assert_eq!(forward.entry_loss, sojourn_link::LossConfig::parse("1%").unwrap());
    assert_eq!(forward.loss, sojourn_link::LossConfig::None);
    assert_eq!(reverse.loss, sojourn_link::LossConfig::parse("2%").unwrap());
    assert_eq!(reverse.jitter, sojourn_link::JitterConfig::parse("uniform 1ms").unwrap());
}

#[test]
fn an_upward_flow_sends_its_data_through_the_reverse_queue() {
    let world = on_path(&format!("{BULK}direction = \"up\"\nsrc = \"camera\"\n"));
    let flow = &world.flows[0];
    assert_eq!((&flow.forward[..], &flow.reverse[..]), (&ports([1])[..], &ports([0])[..]));
    assert_eq!(&world.hosts[flow.src.index()].name, "camera");
    assert_eq!(&world.hosts[flow.dst.index()].name, "server");
}

#[test]
fn a_flow_may_have_more_propagation_than_the_path_but_not_less() {
    let world = on_path(&format!("{BULK}rtt = \"50ms\"\n"));
    let flow = &world.flows[0];
    assert_eq!(
        (flow.forward_delay, flow.reverse_delay),
        (Span::from_millis(15), Span::from_millis(15))
    );
    let error = error(&format!("{PATH}{BULK}rtt = \"5ms\"\n"));
    assert!(
        error.contains("t.toml:12:7: scenario.flow.0.rtt: 5ms is less than the 20ms"),
        "{error}"
    );
}

#[test]
fn a_count_makes_a_group() {
    let world = on_path(&format!("{BULK}count = 3\n"));
    let names: Vec<&str> = world.flows.iter().map(|flow| &flow.name[..]).collect();
    assert_eq!(names, ["a.1", "a.2", "a.3"]);
}

#[test]
fn a_parking_lot_has_long_flows_and_cross_flows() {
    let world = scenario(&format!(
        "[scenario.parking_lot]\nhops = 3\nrate = \"10Mbps\"\nrtt = \"60ms\"\nqueue = \"fq_codel\"\n\
         {BULK}[[scenario.flow]]\nname = \"cross\"\napp = \"bulk\"\nhop = 2\n"
    ));
    let names: Vec<&str> = world.links.iter().map(|link| &link.name[..]).collect();
    assert_eq!(names[..4], ["queue1", "reverse_queue1", "queue2", "reverse_queue2"]);
    assert_eq!(world.links[0].delay, Span::from_millis(10));
    assert_eq!(
        (&world.flows[0].forward[..], &world.flows[0].reverse[..]),
        (&ports([0, 2, 4])[..], &ports([5, 3, 1])[..])
    );
    assert_eq!(
        (&world.flows[1].forward[..], &world.flows[1].reverse[..]),
        (&ports([2])[..], &ports([3])[..])
    );
    let error = error(&format!(
        "[scenario.parking_lot]\nhops = 3\nrate = \"10Mbps\"\nrtt = \"60ms\"\nqueue = \"fq_codel\"\n{BULK}hop = 4\n"
    ));
    assert!(
        error.contains("scenario.flow.0.hop: there is no bottleneck 4 (allowed: 1 to 3)"),
        "{error}"
    );
}

const GATEWAY: &str = "[scenario.gateway]\ndown = \"50Mbps\"\nup = \"10Mbps\"\nrtt = \"20ms\"\n";

#[test]
fn a_gateway_has_the_buffers_of_router_modem_and_provider() {
    let world = scenario(&format!(
        "{GATEWAY}{BULK}[[scenario.flow]]\nname = \"b\"\napp = \"bulk\"\ndirection = \"up\"\n"
    ));
    let links: Vec<(&str, String)> =
        world.links.iter().map(|link| (&link.name[..], link.queue.to_string())).collect();
    let links: Vec<(&str, &str)> = links.iter().map(|(name, queue)| (*name, &queue[..])).collect();
    let (provider, modem) = ("bfifo limit 1562500b", "bfifo limit 312500b");
    let router = "pfifo limit 1000p";
    assert_eq!(
        links,
        [("provider", provider), ("ingress", router), ("router", router), ("modem", modem)]
    );
    let delays: Vec<Span> = world.links.iter().map(|link| link.delay).collect();
    let half = Span::from_millis(10);
    assert_eq!(delays, [half, Span::ZERO, Span::ZERO, half]);
    let [down, up] = &world.flows[..] else { panic!("two flows") };
    for (flow, forward, reverse) in [(down, [0, 1], [2, 3]), (up, [2, 3], [0, 1])] {
        assert_eq!(
            (&flow.forward[..], &flow.reverse[..]),
            (&ports(forward)[..], &ports(reverse)[..])
        );
    }
    let error = error(&format!("{GATEWAY}modem_queue = \"cake limit 1s\"\n{BULK}"));
    assert!(error.contains("scenario.gateway.modem_queue: cake has no limit"), "{error}");
}

#[test]
fn a_buffer_follows_from_the_line() {
    let path =
        "[scenario.path]\nrate = \"12112kbit\"\nrtt = \"100ms\"\nreverse_rate = \"1211200bit\"\n";
    let queues = |keys: &str| {
        let world = scenario(&format!("{path}{keys}{BULK}"));
        world.links.iter().map(|link| link.queue.to_string()).collect::<Vec<_>>()
    };
    let both = |forward: &str, reverse: &str| vec![forward.to_owned(), reverse.to_owned()];
    assert_eq!(
        queues("queue = \"pfifo\"\nbuffer = \"2bdp\"\n"),
        both("pfifo limit 200p", "pfifo limit 20p"),
        "each direction by its own rate"
    );
    assert_eq!(
        queues("queue = \"pfifo limit 50ms\"\nreverse_queue = \"pfifo limit 7\"\n"),
        both("pfifo limit 50p", "pfifo limit 7p")
    );
    assert_eq!(
        queues("queue = \"pfifo\"\nbuffer = \"9\"\nreverse_buffer = \"1s\"\n"),
        both("pfifo limit 9p", "pfifo limit 100p")
    );
    let error = error(&format!("{path}queue = \"cake\"\nbuffer = \"1bdp\"\n{BULK}"));
    assert!(error.contains("scenario.path.buffer: cake has no limit"), "{error}");
}

fn notices(text: &str) -> Vec<String> {
    let study = study_in(Path::new(""), text).unwrap_or_else(|error| panic!("{error}"));
    study.scenarios.first().expect("there is one").notices.clone()
}

#[test]
fn a_change_that_comes_after_the_end_is_noticed() {
    let change = |flow: &str, after: &str| {
        let when = "when = \"a enters slow_start\"\nqueue = \"queue\"\nrate = \"1mbit\"";
        notices(&format!(
            "{PATH}{BULK}{flow}\n[[scenario.change]]\nname = \"c\"\n{when}\nafter = \"{after}\"\n"
        ))
    };
    assert_eq!(change("", "9s"), [""; 0]);
    assert_eq!(change("", "10s"), ["change 'c' never comes: its 'after' is 10s of 10s"]);
    assert_eq!(
        change("start = \"3s\"", "8s"),
        ["change 'c' never comes: flow 'a' starts at 3s, and 'after' is 8s, of 10s"]
    );
}

#[test]
fn a_shaper_that_holds_no_queue_is_noticed() {
    let path = |queue: &str| {
        format!("[scenario.path]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = \"{queue}\"\n{BULK}")
    };
    let first = |text: &str| notices(text).into_iter().next().unwrap_or_default();
    assert!(first(&path("cake bandwidth 10mbit")).starts_with("queue 'queue' shapes at 10mbit"));
    for quiet in ["cake bandwidth 9mbit", "cake", "fq_codel"] {
        assert_eq!(notices(&path(quiet)), [""; 0], "{quiet}");
    }
    let gateway = |keys: &str| format!("{GATEWAY}{keys}{BULK}");
    assert_eq!(notices(&gateway("queue = \"cake bandwidth 9mbit\"\n")), [""; 0]);
    let notice = first(&gateway("queue = \"cake bandwidth 12mbit\"\n"));
    assert!(
        notice.contains("'modem' on the way of flow 'a' sends no more than 10mbit"),
        "{notice}"
    );
}

#[test]
fn free_nodes_and_links_are_routed() {
    let link = |name: &str, from: &str, to: &str| {
        format!(
            "[[scenario.link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10Mbps\"\n\
             delay = \"1ms\"\nqueue = \"fq_codel\"\n"
        )
    };
    let nodes: String =
        ["a", "r", "b"].map(|name| format!("[[scenario.node]]\nname = \"{name}\"\n")).concat();
    let links = link("access", "a", "r") + &link("core", "r", "b");
    let world = scenario(&format!("{nodes}{links}{BULK}src = \"b\"\ndst = \"a\"\n"));
    let flow = &world.flows[0];
    assert_eq!((&flow.forward[..], &flow.reverse[..]), (&ports([3, 1])[..], &ports([0, 2])[..]));
    assert_eq!(world.links[1].name, "reverse_access");
    assert_eq!((flow.src, flow.dst), (HostId(2), HostId(0)));

    let error = error(&format!("{nodes}{}{BULK}src = \"b\"\ndst = \"a\"\n", link("l", "a", "q")));
    assert!(error.contains("scenario.link.0.to: no node is named 'q'"), "{error}");
    let error =
        self::error(&format!("{nodes}{}{BULK}src = \"b\"\ndst = \"a\"\n", link("l", "a", "r")));
    assert!(error.contains("no way leads from 'b' to 'a'"), "{error}");
}

#[test]
fn applications_become_what_they_send() {
    let world = on_path(
        "[[scenario.flow]]\nname = \"echo\"\napp = \"ping\"\ninterval = \"50ms\"\n\
         [[scenario.flow]]\nname = \"video\"\napp = \"frames\"\nframes_per_second = 60\nsize = \"2083B\"\n\
         [[scenario.flow]]\nname = \"voice\"\napp = \"udp\"\nrate = \"64kbps\"\nsize = \"160B\"\n\
         [[scenario.flow]]\nname = \"web\"\napp = \"on_off\"\non = \"1s\"\noff = \"2s\"\nrandom = true\n\
         [[scenario.flow]]\nname = \"file\"\napp = \"bulk\"\nbytes = \"1MB\"\nreceive_window = \"58kB\"\n",
    );
    let app = |index: usize| world.flows[index].app.clone();
    assert_eq!(app(0), App::Ping(PingConfig { interval: Span::from_millis(50), size: 56 }));
    assert_eq!(
        app(1),
        App::Udp(UdpConfig {
            interval: Span::from_nanos(16_666_667),
            frame: 2083,
            datagrams: 2,
            header: 28
        })
    );
    assert_eq!(
        app(2),
        App::Udp(UdpConfig {
            interval: Span::from_millis(20),
            frame: 160,
            datagrams: 1,
            header: 28
        })
    );
    let App::Tcp { traffic, .. } = app(3) else { panic!() };
    assert_eq!(
        traffic,
        Traffic::OnOff(OnOffConfig {
            on: Span::from_secs(1),
            off: Span::from_secs(2),
            random: true
        })
    );
    let App::Tcp { traffic, transport, .. } = app(4) else { panic!() };
    assert_eq!(traffic, Traffic::Bulk(BulkConfig { rate: None, bytes: Some(1_000_000) }));
    assert_eq!(transport.receive_window, Some(58_000.into()));
}

#[test]
fn values_that_no_application_can_live_with_are_refused() {
    for (flow, words) in [
        (
            "app = \"udp\"\nrate = \"0bps\"",
            "scenario.flow.0.rate: is 0bit (allowed: a rate from 1bit",
        ),
        (
            "app = \"udp\"\nrate = \"1Mbps\"\nsize = \"0B\"",
            "flow.0.size: is 0 bytes (allowed: 1 to 65507 bytes)",
        ),
        ("app = \"frames\"\nsize = \"1kB\"", "frames needs 'frames_per_second'"),
        (
            "app = \"frames\"\nsize = \"2B\"\nframes_per_second = 60\ndatagrams = 3",
            "cannot be cut into 3",
        ),
        ("app = \"on_off\"\non = \"1s\"", "flow.0.off: on_off needs 'off' (allowed: off = "),
        (
            "app = \"on_off\"\non = \"0s\"\noff = \"1s\"",
            "scenario.flow.0.on: is 0s (allowed: a time from 1ns",
        ),
        ("app = \"ping\"\ninterval = \"0s\"", "interval: is 0s (allowed: a time from 1us"),
        (
            "app = \"bulk\"\ncount = 1.5",
            "count: the number 1.5 does not fit (allowed: a whole number from 0 to 100000)",
        ),
        ("app = \"bulk\"\nmss = 1e1", "mss: is '10' (allowed: a whole number from 64 to 65000)"),
        ("app = \"bulk\"\nmss = 10", "mss: is '10' (allowed: a whole number from 64 to 65000)"),
        (
            "app = \"bulk\"\nreceive_window = \"10B\"",
            "receive_window: is 10 bytes (allowed: 2304 to",
        ),
        ("app = \"bulk\"\nreceive_window = \"1MB\"\nreceive_buffer = \"1MB\"", "say the same"),
        ("app = \"bulk\"\ndscp = 64", "dscp: 64 is out of range"),
        (
            "app = \"bulk\"\nstart = \"11s\"",
            "scenario.flow.0.start: starts at 11s when the run is over (allowed: less than 10s)",
        ),
        (
            "app = \"bulk\"\nstart = \"9s\"\nstart_jitter = \"2s\"",
            "start_jitter: may start at 11s, later than it ends at 10s (allowed: 0s to 1s)",
        ),
        ("app = \"bulk\"\nstart = \"5s\"\nstop = \"4s\"", "flow.0.stop: stops at 4s, before"),
        ("app = \"bulk\"\nbytes = \"0B\"", "bytes: is 0 bytes (allowed: 1 to"),
        ("app = \"bulk\"\nsrc = \"x\"\ndst = \"x\"", "dst: 'x' is both ends"),
        ("app = \"bulk\"\nhop = 1", "hop: only a parking lot"),
    ] {
        is_refused(&format!("{PATH}[[scenario.flow]]\nname = \"a\"\n{flow}\n"), words);
    }
}

#[test]
fn a_list_is_no_table() {
    for (text, key) in [
        ("repeat = [5, 7]", "repeat"),
        ("[scenario]\npath = [\"10Mbps\"]", "scenario.path"),
        ("claim = [[\"C1\"]]", "claim.0"),
    ] {
        let text = format!("schema = 1\ntitle = \"t\"\n{text}\n");
        let path = std::path::Path::new("");
        let error = crate::StudyFile::parse("t.toml", &text, path, &crate::Overrides::default());
        let error = error.expect_err("a list is not a table").to_string();
        let says = format!("{key}: a list does not fit (allowed: a table)");
        assert!(error.contains(&says), "{error}");
    }
}

#[test]
fn arrivals_are_given_by_their_number_or_by_the_load_they_bring() {
    let web = |keys: &str| {
        let flow = format!("[[scenario.flow]]\nname = \"web\"\napp = \"arrivals\"\n{keys}\n");
        let world = on_path(&flow);
        let App::Tcp { traffic: Traffic::Arrivals(config), .. } = &world.flows[0].app else {
            panic!()
        };
        config.clone()
    };
    let counted = web("arrivals_per_second = 12.5\nsizes = \"100kB\"\nmax_connections = 7");
    assert_eq!((counted.per_second, counted.most), (12.5, 7));
    // 5 Mbit/s in transfers of 0.8 Mbit.
    assert_eq!(web("load = \"5Mbps\"\nsizes = \"100kB\"").per_second, 6.25);
    assert_eq!(web("load = \"50%\"\nsizes = \"100kB\"").per_second, 6.25);
    assert_eq!(web("load = \"50%\"\nsizes = \"100kB\"").most, 1000);
}

#[test]
fn arrivals_that_cannot_be_are_refused() {
    for (keys, words) in [
        ("load = \"1Mbps\"", "scenario.flow.0.sizes: arrivals needs 'sizes' (allowed: sizes = "),
        ("sizes = \"1kB\"", "scenario.flow.0.app: arrivals needs 'arrivals_per_second' or 'load'"),
        (
            "load = \"1Mbps\"\narrivals_per_second = 1\nsizes = \"1kB\"",
            "scenario.flow.0.load: arrivals_per_second and load say the same",
        ),
        ("arrivals_per_second = 0\nsizes = \"1kB\"", "'0' is out of range (allowed: a number from"),
        ("load = \"-3Mbps\"\nsizes = \"1kB\"", "scenario.flow.0.load: "),
        (
            "load = \"120%\"\nsizes = \"1kB\"",
            "'120%' is out of range (allowed: a share of the link from 0% to 100%",
        ),
        (
            "load = \"0%\"\nsizes = \"1kB\"",
            "load: '0%' makes 0 transfers a second (allowed: 0.000001 to 1000000 transfers",
        ),
        ("load = \"unlimited\"\nsizes = \"1kB\"", "an unlimited load"),
        (
            "load = \"1Mbps\"\nsizes = \"1kB\"\nmax_connections = 0",
            "scenario.flow.0.max_connections: is '0' (allowed: a whole number from 1 to 65536)",
        ),
        ("load = \"1Mbps\"\nsizes = \"paretto\"", "did you mean 'pareto'?"),
        (
            "load = \"1Mbps\"\nsizes = \"1kB\"\nbytes = \"1kB\"",
            "has no meaning for the application",
        ),
        (
            "load = \"1Mbps\"\nsizes = \"cdf nowhere.txt\"",
            "scenario.flow.0.sizes: the distribution 'nowhere.txt': cannot be read",
        ),
    ] {
        let flow = format!("[[scenario.flow]]\nname = \"a\"\napp = \"arrivals\"\n{keys}\n");
        is_refused(&format!("{PATH}{flow}"), words);
    }
    let blocked = PATH.replace("10Mbps", "blockage static");
    let flow =
        "[[scenario.flow]]\nname = \"a\"\napp = \"arrivals\"\nload = \"20%\"\nsizes = \"1kB\"\n";
    let error = error(&format!("{blocked}{flow}"));
    assert!(error.contains("drawn for each run (allowed: a rate such as 300Mbps)"), "{error}");
}

#[test]
fn a_distribution_of_sizes_is_found_beside_the_study_and_a_malformed_one_is_blamed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.txt"), "1000 50\n2000 100\n").unwrap();
    std::fs::write(folder.path().join("bad.txt"), "1000 50\n2000\n").unwrap();
    let read = |file: &str| {
        let flow = format!(
            "[[scenario.flow]]\nname = \"a\"\napp = \"arrivals\"\nload = \"1Mbps\"\n\
             sizes = \"cdf {file}\"\n"
        );
        study_in(folder.path(), &format!("{PATH}{flow}"))
    };
    let study = read("good.txt").unwrap();
    let App::Tcp { traffic: Traffic::Arrivals(config), .. } =
        &study.scenarios.get(0).expect("it is one of them").scenario.flows[0].app
    else {
        panic!()
    };
    assert_eq!(config.sizes.mean(), 0.5 * 1000.0 + 0.5 * 1500.0);
    let error = read("bad.txt").map(|_| ()).unwrap_err();
    assert!(error.starts_with("t.toml:13:"), "{error}");
    assert!(error.contains("bad.txt: line 2: 1 fields"), "{error}");
}

#[test]
fn a_trace_is_found_beside_the_study_and_a_malformed_one_is_blamed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.csv"), "10,1.0\n20,1.0\n").unwrap();
    std::fs::write(folder.path().join("bad.csv"), "10,1.0\nten,1.0\n").unwrap();
    let read =
        |file: &str| study_in(folder.path(), &format!("{}{BULK}", PATH.replace("10Mbps", file)));
    let study = read("trace good.csv").unwrap();
    assert!(matches!(
        study.scenarios.get(0).expect("it is one of them").scenario.links[0].rate,
        RateConfig::Trace { .. }
    ));
    assert_eq!(study.scenarios.get(0).expect("it is one of them").queues[0].rate, "trace good.csv");
    let error = read("trace bad.csv").map(|_| ()).unwrap_err();
    assert!(error.starts_with("t.toml:6:8: scenario.path.rate: "), "{error}");
    assert_eq!(error.matches("bad.csv").count(), 1, "{error}");
    assert!(error.contains("bad.csv: line 2: rate 'ten' is not a number"), "{error}");
}

#[test]
fn a_study_without_flows_is_refused() {
    let error = error(PATH);
    assert!(error.contains("no flow is defined"), "{error}");
}

/// Three nodes around a switch, two of which send to the third.
const SWITCH: &str = r#"
[[scenario.node]]
name = "a"
[[scenario.node]]
name = "b"
[[scenario.node]]
name = "c"
[[scenario.carrier]]
name = "lan"
kind = "switch buffer 100kB"
[[scenario.carrier.port]]
name = "to-a"
to = "a"
rate = "100Mbps"
queue = "pfifo limit 50"
delay = "10us"
[[scenario.carrier.port]]
name = "to-b"
to = "b"
rate = "100Mbps"
queue = "fq_codel"
[[scenario.carrier.port]]
name = "to-c"
to = "c"
rate = "10Mbps"
buffer = "1bdp"
delay = "30ms"
queue = "pfifo"
[[scenario.flow]]
name = "first"
app = "bulk"
src = "a"
dst = "c"
"#;

#[test]
fn a_switch_joins_the_nodes_at_its_ports() {
    let world = scenario(&format!(
        "{SWITCH}[[scenario.flow]]\nname = \"web\"\napp = \"arrivals\"\nload = \"50%\"\nsizes = \"100kB\"\n\
         src = \"b\"\ndst = \"c\"\n"
    ));
    let names: Vec<String> = world.ports().into_iter().map(|port| port.name).collect();
    assert_eq!(names, ["lan.to-a", "lan.to-b", "lan.to-c"]);
    let routes: Vec<_> =
        world.flows.iter().map(|flow| (&flow.forward[..], &flow.reverse[..])).collect();
    assert_eq!(routes[0], (&ports([2])[..], &ports([0])[..]));
    assert_eq!(routes[1], (&ports([2])[..], &ports([1])[..]));
    let port = world.link(PortId(2)).expect("a switch's port is a queue and a line");
    assert_eq!(port.queue.to_string(), "pfifo limit 50p", "two times 30 ms at 10 Mbit/s");
    let App::Tcp { traffic: Traffic::Arrivals(config), .. } = &world.flows[1].app else { panic!() };
    assert_eq!(config.per_second, 6.25, "half of 10 Mbit/s in transfers of 0.8 Mbit");
    let canonical = world.canonical();
    let line = "switch ports=3 buffer=100kB alpha=1
link \"lan.to-a\" ";
    assert!(canonical.contains(line), "{canonical}");
}

#[test]
fn factors_reach_carriers_and_their_ports() {
    let factors = "[factors]\n\"carrier.lan.kind\" = [\"switch alpha 8\", \"switch alpha 0.5\"]\n\
                   \"carrier.lan.port.to-c.rate\" = [\"20Mbps\", \"40Mbps\"]\n\
                   \"carrier.*.port.*.queue\" = [\"pfifo limit 7\", \"codel\"]\n";
    let study =
        study_in(Path::new(""), &format!("{SWITCH}{factors}")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(study.scenarios.len(), 8);
    let last = &study.scenarios.get(7).expect("it is one of them");
    let links = last.scenario.carriers[0].links().expect("it is a switch");
    assert!(links.iter().all(|link| link.queue.name() == "codel"));
    assert_eq!(last.queues[2].rate, "40Mbps");
    assert!(last.scenario.canonical().contains("alpha=0.5"));
}

#[test]
fn a_route_names_the_queues_that_a_flow_crosses() {
    let routed = |keys: &str| format!("{SWITCH}{keys}");
    let two = "[[scenario.link]]\nname = \"direct\"\nfrom = \"c\"\nto = \"a\"\nrate = \"1Mbps\"\n\
               delay = \"1ms\"\nqueue = \"pfifo\"\n";
    // The flow's keys come first, as they follow its table.
    let by = |route: &str| scenario(&routed(&format!("{route}\n{two}")));
    let flow =
        by("route = [\"lan.to-b\", \"lan.to-c\"]\nreverse_route = \"direct\"").flows[0].clone();
    assert_eq!((&flow.forward[..], &flow.reverse[..]), (&ports([3, 4])[..], &ports([0])[..]));
    assert_eq!(by("route = \"lan.to-b lan.to-c\"\nreverse_route = \"direct\"").flows[0], flow);
    for (route, words) in [
        ("route = [\"lan.to-x\"]", "route: no queue is named 'lan.to-x'; did you mean 'lan.to-a'"),
        (
            "route = [\"direct\"]",
            "'direct' does not begin at 'a' (allowed: reverse_direct, lan.to-b, lan.to-c)",
        ),
        ("route = [\"lan.to-b\"]", "the route ends at 'b' (allowed: queues that lead to 'c')"),
        ("route = []", "the route ends at 'a'"),
    ] {
        is_refused(&routed(&format!("{route}\n{two}")), words);
    }
    let error = error(&format!("{PATH}{BULK}route = \"queue\"\n"));
    assert!(error.contains("flow.0.route: only between free nodes"), "{error}");
}

#[test]
fn carriers_that_cannot_be_are_refused() {
    for (from, to, words) in [
        (
            "switch buffer 100kB",
            "swich",
            "carrier.0.kind: unknown carrier 'swich'; did you mean 'switch'",
        ),
        (
            "switch buffer 100kB",
            "switch bufer 1MB",
            "kind: switch has no parameter 'bufer'; did you mean 'buffer'?",
        ),
        ("buffer 100kB", "alpha 0", "carrier.0.kind: alpha: '0' is out of range"),
        ("name = \"lan\"", "name = \"l.n\"", "carrier.0.name: 'l.n' is no name"),
        ("name = \"to-b\"", "name = \"to-a\"", "port.1.name: another port is named 'to-a' already"),
        ("to = \"b\"", "to = \"x\"", "carrier.0.port.1.to: no node is named 'x'"),
        ("to = \"b\"", "to = \"b\"\nfrom = \"x\"", "carrier.0.port.1.from: no node is named 'x'"),
        ("to = \"b\"", "to = \"b\"\nfrom = \"b\"", "port.1.from: port 'to-b' ends where it begins"),
        (
            "buffer = \"1bdp\"\ndelay",
            "buffer = \"0bdp\"\ndelay",
            "port.2.buffer: a queue of 0bdp is out of range",
        ),
        ("fq_codel", "fq_coddel", "carrier.0.port.1.queue: unknown queue discipline 'fq_coddel'"),
    ] {
        is_refused(&changed(SWITCH, from, to), words);
    }
    let bare = SWITCH.split("[[scenario.carrier.port]]").next().unwrap_or_default();
    let error = error(&format!("{bare}{BULK}src = \"a\"\ndst = \"c\"\n"));
    assert!(error.contains("the switch 'lan' has no port"), "{error}");
}

#[test]
fn an_application_reads_at_a_rate_in_steps() {
    let reads = |text: &str| {
        let world = on_path(&format!("{BULK}reads = \"{text}\"\n"));
        world.flows[0].reads.as_ref().map(ToString::to_string)
    };
    assert_eq!(reads("2Mbps"), Some("steps 2mbit 1s end hold".into()));
    assert_eq!(
        reads("steps 10Mbps 5s 0 3s end hold"),
        Some("steps 10mbit 5s 0bit 3s end hold".into())
    );
    assert_eq!(reads("unlimited"), None);
    let ping = BULK.replace("bulk", "ping");
    for (flow, text, says) in [
        (&ping[..], "2Mbps", "'ping' does not have it"),
        (BULK, "blockage static", "an application does not read as 'blockage static'"),
        (BULK, "2Mbps overhead 4", "an application does not read as"),
    ] {
        let error = error(&format!("{PATH}{flow}reads = \"{text}\"\n"));
        assert!(error.contains("scenario.flow.0.reads") && error.contains(says), "{error}");
    }
}
