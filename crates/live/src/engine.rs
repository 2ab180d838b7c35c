//! The engine as a study names it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use sojourn_core::param::{Maybe, Style, number, time};
use sojourn_core::{ETHERNET_HEADER, Params as _, Span, SpecError, StreamAddress, Time};
use sojourn_host::apps::UdpConfig;
use sojourn_host::tcp::{self, EcnOffer, EcnSupport};
use sojourn_metrics::{Collector, RunMetrics, Timing};
use sojourn_scenario::{App, Checked, Flow, Scenario, Traffic as AppTraffic};
use sojourn_study::engine::{Engine, Measured, end_states};
use sojourn_study::runner::shape;

use crate::address::{self, MOST_FLOWS};
use crate::bottleneck::{self, Between, Bottleneck, Ends, Known, Passed};
use crate::cca::{self, Control, kernel_name};
use crate::clock::Clock;
use crate::elsewhere::{self, Elsewhere, Ending};
use crate::frame::MTU;
use crate::machine::{self, Stolen};
use crate::programs::{self, AllLeft, Programs, exec_of};
use crate::sys;
use crate::testbed::{Host, Kernel};
use crate::traffic::{TcpSettings, Traffic};

sojourn_core::params! {
    /// When a run is marked as one whose times can't be trusted.
    pub struct Live: "live", "Real packets of this machine's kernel through the same queues and links, in real time; not deterministic" {
        pub lateness: Span = "1ms", time(Span::from_micros(1), Span::from_secs(10)),
            "a run is marked as late if one of a hundred packets left the last link later than computed by more than this";
        pub stolen: f64 = "0.02", number(0.0, 1.0),
            "a run is marked as late if the hypervisor took more than this share of the processors' time";
        pub hosts: Option<String> as Maybe<String> = "",
            "a file that says which machines the study's hosts are, reached by ssh, with the bottleneck on this one; without it they are namespaces of this one";
    }
}

impl Engine for Live {
    const VERSION: u32 = 2;
    const RUNS_ALONE: bool = true;

    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        check(scenario)?;
        match &self.hosts {
            Some(path) => elsewhere::check(path, scenario),
            None => Ok(()),
        }
    }

    fn prepare(&self, scenario: &Checked) -> Result<(), String> {
        match &self.hosts {
            // Nothing is begun before every host has been reached once.
            Some(path) => {
                let address = StreamAddress { seed: 0, run: 0 };
                let hosts = self.reach(path, scenario, address, true)?;
                hosts.open_interfaces().and_then(|interfaces| hosts.check_wires(&interfaces))
            }
            None => {
                let controls = controls(scenario);
                machine::can_run(&controls)?;
                controls.into_iter().try_for_each(|name| Control::found(name).map(drop))?;
                let models = scenario.flows.iter().filter_map(|flow| match &flow.app {
                    App::Tcp { cca, .. } => Some(cca.name()),
                    _ => None,
                });
                models.into_iter().try_for_each(cca::check_is_kernels_own)
            }
        }
    }

    fn depends_on(&self) -> Option<String> {
        let path = self.hosts.as_ref()?;
        Some(elsewhere::text(path).unwrap_or_else(|problem| problem.to_string()))
    }

    fn forget(&self, run: &mut RunMetrics) {
        run.links.iter_mut().for_each(|link| link.rest = None);
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        // Nothing that the runner's thread has is changed: what is done to a thread dies with this one.
        thread::scope(|scope| {
            let run = scope.spawn(|| match &self.hosts {
                Some(path) => self.run_elsewhere(path, scenario, address),
                None => self.run_here(scenario, address),
            });
            run.join().unwrap_or_else(|_| Err("the live engine panicked".to_owned()))
        })
    }
}

impl Live {
    fn run_here(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let hosts = hosts(scenario)?;
        let namespaces: Vec<_> = hosts.iter().map(|host| Some(host.namespace())).collect();
        let mut programs = Programs::new(scenario, namespaces.clone(), address);
        programs.start_receivers()?;
        let settings: Vec<_> = scenario.flows.iter().map(settings).collect::<Result<_, _>>()?;
        let mut traffic = Traffic::new(scenario, namespaces, &settings, address)?;
        let bottleneck = Bottleneck::new(scenario, between(scenario, &hosts), address);
        let mut collector = Collector::new(shape(scenario));
        let is_over = AtomicBool::new(false);
        let lingers = AtomicBool::new(!programs.is_empty());
        let stolen = Stolen::now();
        let (sender, receiver) = channel();
        let clock = Clock::from(Instant::now());
        let (passed, sent) = thread::scope(|scope| {
            let apps = scope.spawn(|| {
                let done = traffic.run(&clock, &sender, &is_over, &is_over);
                is_over.fetch_or(done.is_err(), Ordering::Relaxed);
                drop(sender);
                done
            });
            let ran = scope.spawn(|| {
                let done = programs.run(&clock, &is_over);
                is_over.fetch_or(done.is_err(), Ordering::Relaxed);
                if done.is_ok() {
                    programs.finish(&clock, |has_time| has_time && !sys::is_interrupted());
                }
                lingers.store(false, Ordering::Relaxed);
                done
            });
            let passed = bottleneck.run(
                &clock,
                &receiver,
                &Ends { is_over: &is_over, lingers: &lingers },
                &mut collector,
            );
            is_over.store(true, Ordering::Relaxed);
            let panicked = |what: &str| Err(format!("the {what} panicked"));
            let sent = apps.join().unwrap_or_else(|_| panicked("applications"));
            let ran = ran.join().unwrap_or_else(|_| panicked("keeper of programs"));
            (passed, sent.and(ran))
        });
        sent?;
        let passed = passed?;
        let end = passed.end;
        let mut measured = self.measured(scenario, collector, passed, &stolen);
        add_reports(&mut measured, scenario, address, &programs.into_left(), end);
        Ok(measured)
    }

    fn reach(
        &self,
        path: &str,
        scenario: &Scenario,
        address: StreamAddress,
        is_trial: bool,
    ) -> Result<Elsewhere, String> {
        let kernels = kernels(scenario).map_err(|error| error.to_string())?;
        let offloads = bottleneck::has_offloads(scenario);
        Elsewhere::reach(path, scenario, &kernels, offloads, address, is_trial)
    }

    /// The hosts are other machines, and the bottleneck is here.
    fn run_elsewhere(
        &self,
        path: &str,
        scenario: &Checked,
        address: StreamAddress,
    ) -> Result<Measured, String> {
        let mut elsewhere = self.reach(path, scenario, address, false)?;
        let devices = elsewhere.open_interfaces()?;
        let between = Between {
            devices: devices.iter().collect(),
            offloads: true,
            before: ETHERNET_HEADER as usize,
            who: Known::Flows(scenario),
        };
        let bottleneck = Bottleneck::new(scenario, between, address);
        let mut collector = Collector::new(shape(scenario));
        let is_over = AtomicBool::new(false);
        let lingers =
            AtomicBool::new(scenario.flows.iter().any(|flow| exec_of(&flow.app).is_some()));
        let problem = Mutex::new(None);
        let troubles = Mutex::new(Vec::new());
        let stolen = Stolen::now();
        let (sender, receiver) = channel();
        let clock = Clock::from(elsewhere.begin()?);
        let passed = thread::scope(|scope| {
            let (is_over, lingers, collector) = (&is_over, &lingers, &mut collector);
            // A thread of its own, since it gives up what rights it has.
            let carries = scope.spawn(move || {
                let ends = Ends { is_over, lingers };
                let passed = bottleneck.run(&clock, &receiver, &ends, collector);
                is_over.store(true, Ordering::Relaxed);
                passed
            });
            let ending = Ending { is_over, lingers, problem: &problem, troubles: &troubles };
            elsewhere.listen(scenario, sender, &ending);
            carries.join().unwrap_or_else(|_| Err("the bottleneck panicked".to_owned()))
        });
        if let Some(problem) = problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(problem.text);
        }
        let passed = passed?;
        let end = passed.end;
        let mut measured = self.measured(scenario, collector, passed, &stolen);
        measured.troubles = troubles.into_inner().unwrap_or_else(PoisonError::into_inner);
        add_reports(&mut measured, scenario, address, &elsewhere.take_left(), end);
        for (flow, text) in scenario.flows.iter().zip(&mut measured.end_states) {
            text.push_str(&elsewhere.end_state(flow));
        }
        Ok(measured)
    }

    /// What a run has shown.
    fn measured(
        &self,
        scenario: &Scenario,
        collector: Collector,
        passed: Passed,
        stolen: &Stolen,
    ) -> Measured {
        let Passed { end, is_stopped, lateness, strays, refused, queues } = passed;
        let stolen_share = stolen.share_since();
        let mut metrics = collector.finish(end);
        let lateness = lateness.distribution();
        let p99 = lateness.quantile(0.99).map_or(Span::ZERO, |ns| Span::from_nanos(ns as u64));
        metrics.timing = Timing {
            lateness,
            stolen_share,
            strays: Some(strays),
            is_late: Some(
                p99 > self.lateness
                    || refused > 0
                    || stolen_share.is_some_and(|share| share > self.stolen),
            ),
        };
        let flows: Vec<_> = metrics.flows.iter().map(|flow| flow.last).collect();
        let queues = queues.iter().map(|(sample, details)| (sample, &details[..]));
        let end_states = end_states(scenario, &metrics, &flows, queues);
        Measured { metrics, end_states, is_stopped, troubles: Vec::new() }
    }
}

/// Adds what programs of the user's own say of themselves, and which of them failed.
fn add_reports(
    measured: &mut Measured,
    scenario: &Scenario,
    address: StreamAddress,
    left: &AllLeft,
    end: Time,
) {
    for (flow, reported, text) in programs::reports(scenario, address, left, end) {
        measured.metrics.flows[flow.index()].reported = reported;
        measured.end_states[flow.index()] = text;
    }
    // Then programs lose each other.
    if measured.is_stopped {
        measured.troubles.clear();
        return;
    }
    // One that failed before its host had heard of the end was said by that already.
    for problem in programs::failures(scenario, left) {
        if !measured.troubles.iter().any(|own| own.ends_with(&problem)) {
            measured.troubles.push(problem);
        }
    }
}

/// The names by which the kernel must know the scenario's congestion controls.
fn controls(scenario: &Scenario) -> Vec<&'static str> {
    let flows = scenario.flows.iter().filter_map(|flow| match &flow.app {
        App::Tcp { cca, .. } => Some(kernel_name(cca)),
        _ => None,
    });
    let mut names: Vec<&str> = flows.collect();
    names.sort_unstable();
    names.dedup();
    names
}

pub(crate) fn hosts(scenario: &Scenario) -> Result<Vec<Host>, String> {
    let kernels = kernels(scenario).map_err(|error| error.to_string())?;
    let ids = (0..).map(sojourn_core::HostId);
    let offloads = bottleneck::has_offloads(scenario);
    ids.zip(&kernels).map(|(id, kernel)| Host::new(id, kernel, offloads)).collect()
}

/// The devices of the scenario's hosts, for the bottleneck.
pub(crate) fn between<'a>(scenario: &'a Scenario, hosts: &'a [Host]) -> Between<'a> {
    Between {
        devices: hosts.iter().map(|host| &host.device).collect(),
        offloads: bottleneck::has_offloads(scenario),
        before: 0,
        who: Known::Flows(scenario),
    }
}

fn settings(flow: &Flow) -> Result<Option<TcpSettings>, String> {
    let App::Tcp { cca, transport, .. } = &flow.app else { return Ok(None) };
    Ok(Some(TcpSettings {
        cca: Control::found(kernel_name(cca))?,
        dscp: flow.dscp,
        mss: (transport.mss != address::MSS).then_some(transport.mss),
        receive_buffer: transport.receive_buffer,
        most_unsent: transport.notsent_lowat,
        blocking: transport.blocking,
    }))
}

/// Each has up to six processes.
const MOST_PROGRAMS: usize = 200;

/// Refuses what this engine can't do, on any machine.
fn check(scenario: &Scenario) -> Result<(), SpecError> {
    if !scenario.carriers.is_empty() {
        return Err(
            SpecError::new("the live engine has no radios and no switches").allow(["links"])
        );
    }
    if !scenario.changes.is_empty() {
        let problem = "the live engine can't change the world while a run lasts";
        return Err(
            SpecError::new(problem).allow(["a rate that changes, such as 'steps' or a trace"])
        );
    }
    if scenario.flows.len() > MOST_FLOWS {
        let problem = format!("the live engine can't run {} flows", scenario.flows.len());
        return Err(SpecError::new(problem).allow([format!("at most {MOST_FLOWS}")]));
    }
    let programs = scenario.flows.iter().filter(|flow| exec_of(&flow.app).is_some());
    if programs.count() > MOST_PROGRAMS {
        let problem = "too many flows of programs";
        return Err(SpecError::new(problem).allow([format!("at most {MOST_PROGRAMS}")]));
    }
    for flow in &scenario.flows {
        check_flow(flow).map_err(|error| error.within(&format!("flow '{}'", flow.name)))?;
    }
    kernels(scenario).map(|_| ())
}

fn check_flow(flow: &Flow) -> Result<(), SpecError> {
    const APPS: [&str; 9] =
        ["bulk", "on_off", "arrivals", "page", "requests", "rpm", "udp", "ping", "exec"];
    match &flow.app {
        App::External(_) if exec_of(&flow.app).is_some() => Ok(()),
        App::External(app) if app.0.carries_bytes() => Ok(()),
        App::External(_) => {
            Err(SpecError::new("the live engine can't run an application that is simulated")
                .allow(APPS))
        }
        App::Tcp { .. } if flow.reads.is_some() => {
            Err(SpecError::new("the live engine's receivers read at once").allow(["no 'reads'"]))
        }
        App::Tcp { cca, transport, .. } => {
            let written = cca.canonical();
            if written != cca.name() {
                let problem =
                    format!("the kernel's congestion control can't be set to '{written}'");
                return Err(SpecError::new(problem).allow([cca.name()]));
            }
            check_transport(transport)
        }
        App::Udp(config) => check_datagrams(config),
        App::Ping(config) if config.size as usize + 28 > MTU => {
            let problem = format!("an echo request of {} bytes does not fit a packet", config.size);
            Err(SpecError::new(problem).allow([format!("at most {}", MTU - 28)]))
        }
        App::Ping(_) => Ok(()),
    }
}

fn check_datagrams(config: &UdpConfig) -> Result<(), SpecError> {
    let largest = config.frame.div_ceil(config.datagrams) + config.header;
    if largest as usize > MTU {
        let problem = format!("datagrams of {largest} bytes do not fit a packet");
        return Err(SpecError::new(problem).allow([format!("at most {MTU} with headers")]));
    }
    Ok(())
}

/// What of TCP is not the kernel's own affair.
fn check_transport(transport: &tcp::Config) -> Result<(), SpecError> {
    let usual = tcp::Config::default();
    let rest = tcp::Config {
        mss: usual.mss,
        receive_buffer: usual.receive_buffer,
        most_receive_buffer: usual.most_receive_buffer,
        send_buffer: usual.send_buffer,
        most_send_buffer: usual.most_send_buffer,
        notsent_lowat: usual.notsent_lowat,
        blocking: usual.blocking,
        ecn: usual.ecn,
        receiver_ecn: usual.receiver_ecn,
        offload: usual.offload,
        ..transport.clone()
    };
    if rest != usual {
        let written = rest.written(Style::Canonical);
        let problem =
            format!("the live engine leaves TCP to the kernel, and can't set '{written}'");
        return Err(SpecError::new(problem).allow([
            "mss",
            "receive_buffer",
            "most_receive_buffer",
            "send_buffer",
            "most_send_buffer",
            "notsent_lowat",
            "blocking",
            "ecn",
            "receiver_ecn",
            "offload",
        ]));
    }
    if transport.mss > address::MSS {
        let problem = format!("segments of {} bytes do not fit a packet", transport.mss);
        return Err(SpecError::new(problem).allow([format!("at most {}", address::MSS)]));
    }
    Ok(())
}

/// How the kernel of each host must do TCP. All connections of a host share that.
fn kernels(scenario: &Scenario) -> Result<Vec<Kernel>, SpecError> {
    let mut wanted: Vec<Option<Kernel>> = vec![None; scenario.hosts.len()];
    for flow in &scenario.flows {
        let App::Tcp { traffic, cca, transport } = &flow.app else { continue };
        let offer = transport.ecn_offer(cca.ecn_request());
        // 2 asks for nothing and takes what is asked for (`tcp_ecn` in the kernel's ip-sysctl).
        let sends = match offer {
            EcnOffer::Off => 2,
            EcnOffer::Classic => 1,
            EcnOffer::Accurate => 3,
        };
        let takes = match (offer, transport.receiver_ecn) {
            (EcnOffer::Off, _) => 2,
            (_, EcnSupport::Off) => 0,
            (_, EcnSupport::Classic | EcnSupport::MarkByMark) => 2,
            (EcnOffer::Classic, EcnSupport::Accurate) => 2,
            (EcnOffer::Accurate, EcnSupport::Accurate) => 3,
        };
        let usual = tcp::Config::default();
        let unless = |bytes: u64, usual: u64| (bytes != usual).then_some(bytes);
        let sends_most = transport.send_buffer.most(transport.most_send_buffer);
        let kernel = |ecn| Kernel {
            ecn,
            most_receive_buffer: unless(transport.most_receive_buffer, usual.most_receive_buffer),
            most_send_buffer: sends_most.and_then(|bytes| unless(bytes, usual.most_send_buffer)),
        };
        let (connects, accepts) = match traffic {
            AppTraffic::Page(_) | AppTraffic::Requests(_) | AppTraffic::Rpm(_) => {
                (flow.dst, flow.src)
            }
            AppTraffic::Bulk(_) | AppTraffic::OnOff(_) | AppTraffic::Arrivals(_) => {
                (flow.src, flow.dst)
            }
        };
        for (host, ecn) in [(connects, sends), (accepts, takes)] {
            let known = wanted[host.index()].get_or_insert(kernel(ecn));
            if *known != kernel(ecn) {
                let problem = format!(
                    "host '{}' has one kernel, and flow '{}' wants other buffers or another ECN of it than an \
                     earlier flow",
                    scenario.hosts[host.index()].name,
                    flow.name
                );
                return Err(SpecError::new(problem).allow(["hosts of its own: src, dst"]));
            }
        }
    }
    Ok(wanted.into_iter().map(|kernel| kernel.unwrap_or(Kernel::USUAL)).collect())
}
