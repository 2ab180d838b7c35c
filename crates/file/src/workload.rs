//! Workloads that have a name: flows as flent's tests of that name start them.
//!
//! What the tests do is told in flent's documentation and their definitions (`flent/tests`): TCP
//! connections that begin 5 s after the pings and last 60 s, and end 5 s before them.

use sojourn_core::param::{Needed, time, whole};
use sojourn_core::{Kind, Kinds, Params, Span, SpecError};

use crate::document::{At, Document, Entry, Node, Table, Value};
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

/// The flows of a workload, from its parameters.
trait Workload: Params {
    fn flows(&self) -> Vec<Flow>;
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
fn workloads() -> Kinds<Vec<Flow>> {
    fn kind<W: Workload>() -> Kind<Vec<Flow>> {
        Kind::of::<W>(|words| Ok(W::parse(words)?.flows()))
    }
    let all = [
        kind::<Rrul>(),
        kind::<RrulBe>(),
        kind::<TcpNup>(),
        kind::<TcpNdown>(),
        kind::<RttFair>(),
        kind::<Http>(),
    ];
    Kinds::new("workload", all)
}

/// Adds the flows of the workload that the scenario names, except those that it has itself, and
/// flent's times where it has none.
///
/// # Errors
/// An unknown workload or parameter; a scenario without two sides.
pub(crate) fn expand(document: &mut Document) -> Result<(), StudyError> {
    let Some(node) = document.node("scenario.workload") else { return Ok(()) };
    let (at, value) = (node.at, node.value.clone());
    let wrong =
        |document: &Document, problem| Err(document.error(at, "scenario.workload", problem));
    let Value::String(text) = value else {
        let problem = SpecError::new(format!("{} does not fit", value.kind()));
        return wrong(document, problem.allow(["the name of a workload, in quotes"]));
    };
    let flows = match workloads().parse(&text) {
        Ok(flows) => flows,
        Err(problem) => return wrong(document, problem),
    };
    let has = |key: &str| document.node(&format!("scenario.{key}")).is_some();
    if ["node", "link", "carrier", "radio"].into_iter().any(has) {
        let problem = SpecError::new("between free nodes a workload does not know its ends");
        let sides = ["[scenario.path]", "[scenario.gateway]", "[scenario.parking_lot]"];
        return wrong(document, problem.allow(sides));
    }
    let Some(Entry { node: Node { value: Value::Table(scenario), .. }, .. }) =
        document.root.entries.iter_mut().find(|entry| entry.key == "scenario")
    else {
        return Ok(());
    };
    add_times(scenario, at);
    add_flows(scenario, flows, at);
    Ok(())
}

fn add_times(scenario: &mut Table, at: At) {
    let whole = LOADED + ALONE * 2;
    for (key, value) in [("duration", whole), ("warmup", ALONE)] {
        if scenario.entry(key).is_none() {
            scenario.insert_value(key, at, Node { value: Value::String(value.to_string()), at });
        }
    }
}

fn add_flows(scenario: &mut Table, flows: Vec<Flow>, at: At) {
    // Without a duration that can be read there will be an error, and no stop.
    let duration = scenario.node("duration").and_then(|node| node.value.plain());
    let duration: Option<Span> = duration.and_then(|text| text.parse().ok());
    let stop = duration.filter(|duration| *duration > ALONE * 2).map(|whole| whole - ALONE);
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
        study(rest).expect("a good study").scenarios.remove(0).scenario.into_inner()
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
        let again = StudyFile::parse("t.toml", &study.text, Path::new(""), &Overrides::default());
        assert_eq!(again.expect("as it is kept").scenarios[0].flows.len(), 12);
    }

    #[test]
    fn what_is_no_workload_is_refused() {
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
