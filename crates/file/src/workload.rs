//! Workloads that have a name: flows as flent's tests of that name start them.
//!
//! What the tests do is told in flent's documentation and their definitions (`flent/tests`): TCP
//! connections that begin 5 s after the pings and last 60 s, and end 5 s before them.

use sojourn_core::param::{Needed, time, whole};
use sojourn_core::{Kind, Kinds, Params, Span, SpecError};

use crate::document::{At, Document, Node, Table, Value};
use crate::error::StudyError;

/// How long flent measures before and after its load, and with it (`DELAY` and `LENGTH`).
const ALONE: Span = Span::from_secs(5);
const LOADED: Span = Span::from_secs(60);

/// How often its pings ask (`STEP_SIZE`).
const INTERVAL: &str = "200ms";

/// The marks of `rrul`, with their code points (RFC 2474, RFC 3246, RFC 4594).
const MARKS: [(&str, u8); 4] = [("BE", 0), ("BK", 8), ("CS5", 40), ("EF", 46)];

/// A flow: its name and its keys.
struct Flow {
    name: String,
    keys: Vec<(&'static str, Value)>,
}

/// The flows of a workload, from its parameters, and its times.
trait Workload: Params {
    fn flows(&self) -> Vec<Flow>;

    /// How long it takes.
    fn duration(&self) -> Span {
        LOADED + ALONE * 2
    }

    /// How long flent measures before and after its load.
    fn alone(&self) -> Span {
        ALONE
    }
}

/// What a workload starts, and when.
struct Load {
    flows: Vec<Flow>,
    duration: Span,
    alone: Span,
}

sojourn_core::params! {
    /// `rrul.conf`.
    struct Rrul: "rrul", "flent's Realtime Response Under Load: four TCP connections up and four down, marked BE, BK (CS1), CS5 and EF, a ping of each kind but CS5 and one more" {}
}

sojourn_core::params! {
    /// `rrul_be.conf`.
    struct RrulBe: "rrul_be", "the same without marks" {}
}

sojourn_core::params! {
    /// `tcp_nup.conf`.
    struct TcpNup: "tcp_nup", "flent's n TCP connections up, and a ping" {
        n: u32 = "1", whole(1, 10_000), "connections";
    }
}

sojourn_core::params! {
    /// `tcp_ndown.conf`.
    struct TcpNdown: "tcp_ndown", "flent's n TCP connections down, and a ping" {
        n: u32 = "1", whole(1, 10_000), "connections";
    }
}

sojourn_core::params! {
    /// `rtt_fair.conf`.
    struct RttFair: "rtt_fair", "flent's RTT fairness: a TCP connection up and one down to each of four hosts, two marked BE and two BK, and a ping to each" {
        rtt1: Span as Needed<Span> = "", time(Span::ZERO, Span::from_secs(1_000)), "round trip to the first host, marked BE";
        rtt2: Span as Needed<Span> = "", time(Span::ZERO, Span::from_secs(1_000)), "to the second, marked BE";
        rtt3: Span as Needed<Span> = "", time(Span::ZERO, Span::from_secs(1_000)), "to the third, marked BK";
        rtt4: Span as Needed<Span> = "", time(Span::ZERO, Span::from_secs(1_000)), "to the fourth, marked BK";
    }
}

sojourn_core::params! {
    /// `http.conf`.
    struct Http: "http", "flent's HTTP latency: a page again and again, without other load" {
        bytes: u64 as sojourn_core::param::Octets = "56kB", sojourn_core::param::size(1, 1_000_000_000_000), "all objects of the page";
        requests: u32 = "3", whole(1, 100_000), "objects";
    }
}

sojourn_core::params! {
    /// Down first, then up, as the draft recommends.
    struct Rpm: "rpm", "a test of responsiveness down, and then one up (draft-ietf-ippm-responsiveness)" {
        limit: Span = "20s", time(Span::from_millis(10), Span::from_secs(10_000)), "longest time of each test";
    }
}

impl Workload for Rrul {
    fn flows(&self) -> Vec<Flow> {
        let loads = [("up", "up"), ("down", "down")].into_iter().flat_map(|(name, direction)| {
            MARKS.map(|(mark, dscp)| tcp(format!("{name}-{mark}"), direction, dscp))
        });
        let pings = [("BE", 0), ("BK", 8), ("EF", 46)];
        let pings = pings.map(|(mark, dscp)| ping(format!("ping-{mark}"), dscp));
        loads.chain(pings).chain([ping("ping".into(), 0)]).collect()
    }
}

impl Workload for RrulBe {
    fn flows(&self) -> Vec<Flow> {
        let mut flows = vec![tcp("up".into(), "up", 0), tcp("down".into(), "down", 0)];
        flows.iter_mut().for_each(|flow| flow.keys.push(("count", Value::Integer(4))));
        let mut pings = ping("ping".into(), 0);
        pings.keys.push(("count", Value::Integer(4)));
        flows.push(pings);
        flows
    }
}

impl Workload for TcpNup {
    fn flows(&self) -> Vec<Flow> {
        many("up", self.n)
    }
}

impl Workload for TcpNdown {
    fn flows(&self) -> Vec<Flow> {
        many("down", self.n)
    }
}

impl Workload for RttFair {
    fn flows(&self) -> Vec<Flow> {
        let hosts = [
            (1, "BE1", 0, self.rtt1),
            (2, "BE2", 0, self.rtt2),
            (3, "BK1", 8, self.rtt3),
            (4, "BK2", 8, self.rtt4),
        ];
        hosts
            .into_iter()
            .flat_map(|(number, mark, dscp, rtt)| {
                let mut flows = [
                    tcp(format!("up-{mark}"), "up", dscp),
                    tcp(format!("down-{mark}"), "down", dscp),
                    ping(format!("ping-{number}"), 0),
                ];
                for flow in &mut flows {
                    flow.keys.push(("rtt", Value::String(rtt.to_string())));
                }
                flows
            })
            .collect()
    }
}

impl Workload for Http {
    fn flows(&self) -> Vec<Flow> {
        let keys = vec![
            ("app", Value::String("page".into())),
            ("bytes", Value::String(format!("{}B", self.bytes))),
            ("requests", Value::Integer(self.requests.into())),
        ];
        vec![Flow { name: "page".into(), keys }]
    }
}

impl Workload for Rpm {
    fn flows(&self) -> Vec<Flow> {
        let limit = self.limit.to_string();
        let test = |direction: &str, start: Span| Flow {
            name: format!("rpm-{direction}"),
            keys: vec![
                ("app", Value::String("rpm".into())),
                ("direction", Value::String(direction.into())),
                ("start", Value::String(start.to_string())),
                ("limit", Value::String(limit.clone())),
            ],
        };
        vec![test("down", Span::ZERO), test("up", self.limit)]
    }

    fn duration(&self) -> Span {
        self.limit * 2
    }

    fn alone(&self) -> Span {
        Span::ZERO
    }
}

fn many(direction: &'static str, n: u32) -> Vec<Flow> {
    let mut flow = tcp(direction.into(), direction, 0);
    flow.keys.push(("count", Value::Integer(n.into())));
    vec![flow, ping("ping".into(), 0)]
}

fn tcp(name: String, direction: &str, dscp: u8) -> Flow {
    let mut keys = vec![
        ("app", Value::String("bulk".into())),
        ("direction", Value::String(direction.into())),
        ("start", Value::String(ALONE.to_string())),
    ];
    keys.extend((dscp > 0).then_some(("dscp", Value::Integer(dscp.into()))));
    Flow { name, keys }
}

/// The client asks.
fn ping(name: String, dscp: u8) -> Flow {
    let mut keys = vec![
        ("app", Value::String("ping".into())),
        ("direction", Value::String("up".into())),
        ("interval", Value::String(INTERVAL.into())),
    ];
    keys.extend((dscp > 0).then_some(("dscp", Value::Integer(dscp.into()))));
    Flow { name, keys }
}

/// Every workload, in the order of the documentation.
fn workloads() -> Kinds<Load> {
    fn kind<W: Workload>() -> Kind<Load> {
        Kind::of::<W>(|words| {
            let load = W::parse(words)?;
            Ok(Load { flows: load.flows(), duration: load.duration(), alone: load.alone() })
        })
    }
    let all = [
        kind::<Rrul>(),
        kind::<RrulBe>(),
        kind::<TcpNup>(),
        kind::<TcpNdown>(),
        kind::<RttFair>(),
        kind::<Http>(),
        kind::<Rpm>(),
    ];
    Kinds::new("workload", all)
}

/// The key of a scenario, and the factor that gives it.
pub(crate) const KEY: &str = "workload";

/// Adds the flows of the workload that the scenario names, except those that it has itself, and
/// its times where the scenario has none.
///
/// # Errors
/// An unknown workload or parameter; a scenario without two sides.
pub(crate) fn expand(document: &Document, scenario: &mut Table) -> Result<(), StudyError> {
    let Some(node) = scenario.node(KEY) else { return Ok(()) };
    let at = node.at;
    let wrong = |problem| Err(document.error(at, "scenario.workload", problem));
    let Value::String(text) = &node.value else {
        let problem = SpecError::new(format!("{} does not fit", node.value.kind()));
        return wrong(problem.allow(["the name of a workload, in quotes"]));
    };
    let load = match workloads().parse(text) {
        Ok(load) => load,
        Err(problem) => return wrong(problem),
    };
    let has = |key: &&str| scenario.node(key).is_some();
    if ["node", "link", "carrier", "radio"].iter().any(has) {
        let problem = SpecError::new("between free nodes a workload does not know its ends");
        let sides = ["[scenario.path]", "[scenario.gateway]", "[scenario.parking_lot]"];
        return wrong(problem.allow(sides));
    }
    add_times(scenario, &load, at);
    add_flows(scenario, load, at);
    Ok(())
}

fn add_times(scenario: &mut Table, load: &Load, at: At) {
    for (key, value) in [("duration", load.duration), ("warmup", load.alone)] {
        if scenario.entry(key).is_none() {
            scenario.insert_value(key, at, Node { value: Value::String(value.to_string()), at });
        }
    }
}

fn add_flows(scenario: &mut Table, load: Load, at: At) {
    let Load { flows, alone, .. } = load;
    // Without a duration that can be read there will be an error, and no stop.
    let duration = scenario.node("duration").and_then(|node| node.value.plain());
    let duration: Option<Span> = duration.and_then(|text| text.parse().ok());
    let stop = duration.filter(|duration| !alone.is_zero() && *duration > alone * 2);
    let stop = stop.map(|whole| whole - alone);
    let mut own = match scenario.node("flow").map(|node| &node.value) {
        Some(Value::Array(flows)) => flows.clone(),
        Some(_) => return,
        None => Vec::new(),
    };
    let named: Vec<String> = own.iter().filter_map(name_of).collect();
    for Flow { name, keys } in flows {
        if named.contains(&name) {
            continue;
        }
        let is_load = keys.iter().any(|(key, _)| *key == "start");
        let stop = stop.filter(|_| is_load).map(|stop| ("stop", Value::String(stop.to_string())));
        let name = ("name", Value::String(name));
        let mut table = Table::default();
        for (key, value) in [name].into_iter().chain(keys).chain(stop) {
            table.insert_value(key, at, Node { value, at });
        }
        own.push(Node { value: Value::Table(table), at });
    }
    scenario.insert_value("flow", at, Node { value: Value::Array(own), at });
}

fn name_of(flow: &Node) -> Option<String> {
    match &flow.value {
        Value::Table(table) => table.node("name")?.value.plain(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sojourn_scenario::{App, Scenario};

    use super::*;
    use crate::{Overrides, StudyFile};

    fn study(rest: &str) -> Result<StudyFile, String> {
        let path = "[scenario.path]\nrate = \"20mbit\"\nrtt = \"20ms\"\nqueue = \"fq_codel\"\n";
        let text = format!("schema = 1\ntitle = \"a test\"\n[scenario]\n{rest}\n{path}");
        StudyFile::parse("t.toml", &text, Path::new(""), &Overrides::default())
            .map_err(|error| error.to_string())
    }

    fn world(rest: &str) -> Scenario {
        study(rest)
            .expect("a good study")
            .scenarios
            .first()
            .expect("there is one")
            .scenario
            .clone()
            .into_inner()
    }

    #[test]
    fn rrul_is_four_marked_connections_each_way_and_four_pings() {
        let world = world("workload = \"rrul\"");
        assert_eq!((world.duration, world.warmup), (Span::from_secs(70), ALONE));
        let of = |name: &str| {
            let flows = world.flows.iter().filter(|flow| flow.name.starts_with(name));
            flows.map(|flow| (&flow.name[name.len()..], flow.dscp)).collect::<Vec<_>>()
        };
        let marks = [("-BE", 0), ("-BK", 8), ("-CS5", 40), ("-EF", 46)];
        assert_eq!(of("up"), marks);
        assert_eq!(of("down"), marks);
        assert_eq!(of("ping"), [("-BE", 0), ("-BK", 8), ("-EF", 46), ("", 0)]);
        for flow in &world.flows {
            let is_tcp = matches!(flow.app, App::Tcp { .. });
            let times = (flow.start, flow.stop);
            let of_load = (Span::from_secs(5), Some(Span::from_secs(65)));
            assert_eq!(times, if is_tcp { of_load } else { (Span::ZERO, None) }, "{}", flow.name);
            assert_eq!(flow.forward[0].0, u16::from(!flow.name.starts_with("down")));
        }
    }

    #[test]
    fn the_others_are_what_flent_starts() {
        let names = |text: &str| {
            let world = world(&format!("workload = \"{text}\""));
            world.flows.iter().map(|flow| flow.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names("rrul_be"),
            "up.1 up.2 up.3 up.4 down.1 down.2 down.3 down.4 ping.1 ping.2 ping.3 ping.4"
        );
        assert_eq!(names("tcp_nup n=2"), "up.1 up.2 ping");
        assert_eq!(names("tcp_ndown n=2"), "down.1 down.2 ping");
        assert_eq!(names("http"), "page");
        let rpm = world("workload = \"rpm limit=30s\"");
        let times = |flow: &sojourn_scenario::Flow| (flow.start, flow.stop, flow.forward[0].0);
        assert_eq!((rpm.duration, rpm.warmup), (Span::from_secs(60), Span::ZERO));
        assert_eq!(times(&rpm.flows[0]), (Span::ZERO, None, 0), "down first");
        assert_eq!(times(&rpm.flows[1]), (Span::from_secs(30), None, 1));
        let fair = world("workload = \"rtt_fair rtt1=20ms rtt2=50ms rtt3=100ms rtt4=200ms\"");
        let rtts: Vec<u64> = fair
            .flows
            .iter()
            .filter(|flow| flow.name.starts_with("up"))
            .map(|flow| (flow.forward_delay + flow.reverse_delay).as_millis())
            .collect();
        assert_eq!(rtts, [0, 30, 80, 180], "beyond the 20 ms of the path");
    }

    #[test]
    fn what_the_file_says_itself_counts() {
        let own = "workload = \"tcp_nup n=3\"\nduration = \"30s\"\nwarmup = \"10s\"\n\
                   [[scenario.flow]]\nname = \"ping\"\napp = \"ping\"\ninterval = \"1s\"\n";
        let world = world(own);
        assert_eq!((world.duration, world.flows.len()), (Span::from_secs(30), 4));
        assert_eq!(world.flows[1].stop, Some(Span::from_secs(25)));
        let study = study("workload = \"rrul\"\n").expect("a good study");
        let again = StudyFile::parse("t.toml", &study.text(), Path::new(""), &Overrides::default());
        assert_eq!(
            again.expect("as it is kept").scenarios.get(0).expect("it is one of them").flows.len(),
            12
        );
    }

    #[test]
    fn a_workload_is_a_factor_as_any_other_key() {
        let both = "[factors]\nworkload = [\"tcp_nup n=2\", \"rrul_be\"]\n\"flow.up.cca\" = [\"reno\", \"bbr\"]\n[scenario]\n";
        let names = |study: &StudyFile| {
            let names = |one: &crate::StudyScenario| {
                let names = one.scenario.flows.iter().map(|flow| flow.name.as_str());
                (one.factors.join(", "), names.collect::<Vec<_>>().join(" "))
            };
            study.scenarios.iter().map(|one| names(&one)).collect::<Vec<_>>()
        };
        let path = "[scenario.path]\nrate = \"20mbit\"\nrtt = \"20ms\"\nqueue = \"fq_codel\"\n";
        let read = |text: &str, set: &[&str]| {
            let overrides = Overrides {
                set: set.iter().map(|set| (*set).to_owned()).collect(),
                ..Overrides::default()
            };
            let text = format!("schema = 1\ntitle = \"a test\"\n{text}{path}");
            StudyFile::parse("t.toml", &text, Path::new(""), &overrides)
                .map_err(|error| error.to_string())
        };
        let study = read(both, &[]).expect("a good study");
        let four = "up.1 up.2 up.3 up.4 down.1 down.2 down.3 down.4 ping.1 ping.2 ping.3 ping.4";
        assert_eq!(
            names(&study),
            [
                ("tcp_nup n=2, reno", "up.1 up.2 ping"),
                ("tcp_nup n=2, bbr", "up.1 up.2 ping"),
                ("rrul_be, reno", four),
                ("rrul_be, bbr", four),
            ]
            .map(|(values, names)| (values.to_owned(), names.to_owned()))
        );
        // A value that a factor replaces counts no more, and neither does one that is set.
        let one = "[scenario]\nworkload = \"rrul\"\n";
        let replaced = format!("[factors]\nworkload = [\"http\"]\n{one}");
        assert_eq!(names(&read(&replaced, &[]).expect("good"))[0].1, "page");
        assert_eq!(names(&read(one, &["workload=http"]).expect("good"))[0].1, "page");
        let lists = read(one, &["workload=[\"http\", \"tcp_nup\"]", "flow.ping.interval=1s"]);
        let wrong = lists.unwrap_err();
        assert!(wrong.contains("ping"), "{wrong}");
        let lists = read(one, &["workload=[\"http\", \"tcp_nup\"]"]).expect("good");
        assert_eq!(names(&lists)[1].1, "up.1 ping");
        let again = StudyFile::parse("t.toml", &lists.text(), Path::new(""), &Overrides::default());
        assert_eq!(names(&again.expect("as it is kept")), names(&lists));
    }

    #[test]
    fn what_is_no_workload_is_refused() {
        let factor = "schema = 1\ntitle = \"t\"\n[factors]\nworkload = [\"rrul\", \"rrull\"]\n[scenario]\n\
                      [scenario.path]\nrate = \"20mbit\"\nrtt = \"20ms\"\nqueue = \"fq_codel\"\n";
        let wrong = StudyFile::parse("t.toml", factor, Path::new(""), &Overrides::default());
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.starts_with("t.toml:4:21: scenario.workload: unknown workload"), "{wrong}");
        let replaced = factor.replace("\"rrul\", \"rrull\"", "\"rrul\"");
        let replaced = replaced.replace("[scenario]\n", "[scenario]\nworkload = \"rrull\"\n");
        let wrong = StudyFile::parse("t.toml", &replaced, Path::new(""), &Overrides::default());
        assert!(wrong.unwrap_err().to_string().starts_with("t.toml:6:12: scenario.workload"));
        let wrong = study("workload = \"rrull\"").unwrap_err();
        assert!(wrong.contains("unknown workload 'rrull'; did you mean 'rrul'?"), "{wrong}");
        assert!(wrong.starts_with("t.toml:4:12: scenario.workload"), "{wrong}");
        let wrong = study("workload = \"tcp_nup n=0\"").unwrap_err();
        assert!(wrong.contains("'n' is '0' (allowed: a whole number from 1 to 10000)"), "{wrong}");
        assert!(study("workload = \"rtt_fair\"").unwrap_err().contains("rtt1"));
        assert!(study("workload = 3").unwrap_err().contains("a whole number does not fit"));
        let free = "schema = 1\ntitle = \"t\"\n[scenario]\nworkload = \"rrul\"\n[[scenario.node]]\nname = \"a\"";
        let wrong = StudyFile::parse("t.toml", free, Path::new(""), &Overrides::default());
        assert!(wrong.unwrap_err().to_string().contains("does not know its ends"));
    }
}
