//! A scenario as an order for one of its hosts, and an order as a scenario of which one host is here.

use std::cell::Cell;
use std::sync::Arc;

use sojourn_core::param::Style;
use sojourn_core::{FlowId, HostId, Params, Rate, Span, SpecError, StreamAddress, Words};
use sojourn_host::apps::exec::{ExecSpec, filled};
use sojourn_host::apps::{
    ArrivalsConfig, BulkConfig, Exec, OnOffConfig, PageConfig, PingConfig, RequestsConfig,
    RpmConfig, SizesSpec, UdpConfig,
};
use sojourn_host::tcp;
use sojourn_scenario::{App, ExternalApp, Flow, Host, Scenario, Traffic, Until};

use super::file;
use super::message::{AppOrder, FlowOrder, Order, TcpOrder};
use crate::address::MOST_FLOWS;
use crate::cca::{Control, kernel_name};
use crate::frame::MTU;
use crate::programs;
use crate::testbed::Kernel;
use crate::traffic::TcpSettings;

/// What runs on hosts elsewhere.
const APPS: [&str; 10] =
    ["bulk", "on_off", "arrivals", "page", "requests", "rpm", "udp", "frames", "ping", "exec"];

pub(crate) fn check_scenario(scenario: &Scenario) -> Result<(), SpecError> {
    for flow in &scenario.flows {
        if app_of(flow).is_none() {
            let problem = format!(
                "flow '{}': its application is another crate's, and does not run on hosts elsewhere",
                flow.name
            );
            return Err(SpecError::new(problem).allow(APPS));
        }
        let Some(Exec { spec, .. }) = programs::exec_of(&flow.app) else { continue };
        let of_study = Cell::new(false);
        for command in spec.sender.iter().chain(&spec.receiver) {
            filled(command, |name| {
                of_study.set(of_study.get() || name == "study");
                Some(String::new())
            })?;
        }
        if of_study.get() {
            let problem = format!(
                "flow '{}': {{study}} is a folder of this machine, and hosts elsewhere do not have it",
                flow.name
            );
            return Err(SpecError::new(problem).allow(["a path that is on the host"]));
        }
    }
    Ok(())
}

pub(super) fn of(
    scenario: &Scenario,
    host: usize,
    interface: &str,
    kernel: &Kernel,
    offloads: bool,
    address: StreamAddress,
    is_trial: bool,
) -> Order {
    let flows = scenario.flows.iter().filter_map(|flow| {
        Some(FlowOrder {
            name: flow.name.clone(),
            src: flow.src.0,
            dst: flow.dst.0,
            start: flow.start.as_nanos(),
            start_jitter: flow.start_jitter.as_nanos(),
            stop: flow.stop.map(Span::as_nanos),
            dscp: flow.dscp,
            app: app_of(flow)?,
        })
    });
    Order {
        host: host as u16,
        interface: interface.to_owned(),
        offloads,
        ecn: kernel.ecn,
        most_receive_buffer: kernel.most_receive_buffer,
        most_send_buffer: kernel.most_send_buffer,
        duration: scenario.duration.as_nanos(),
        until_transfers_done: scenario.until == Until::TransfersDone,
        step: scenario.step.as_nanos(),
        seed: address.seed,
        run: address.run,
        is_trial,
        flows: flows.collect(),
    }
}

fn app_of(flow: &Flow) -> Option<AppOrder> {
    Some(match &flow.app {
        App::Tcp { traffic, cca, transport } => {
            let tcp = TcpOrder {
                cca: kernel_name(cca).to_owned(),
                mss: transport.mss,
                receive_buffer: transport.receive_buffer,
                most_unsent: transport.notsent_lowat,
                blocking: transport.blocking,
            };
            match traffic {
                Traffic::Bulk(BulkConfig { rate, bytes }) => {
                    AppOrder::Bulk { tcp, rate: rate.map(|rate| rate.as_bps()), bytes: *bytes }
                }
                Traffic::OnOff(OnOffConfig { on, off, random }) => {
                    AppOrder::OnOff { tcp, on: on.as_nanos(), off: off.as_nanos(), random: *random }
                }
                Traffic::Arrivals(ArrivalsConfig { per_second, sizes, most, transfers }) => {
                    AppOrder::Arrivals {
                        tcp,
                        per_second: per_second.to_bits(),
                        sizes: sizes.to_string(),
                        most: *most,
                        transfers: *transfers,
                    }
                }
                Traffic::Page(config) => AppOrder::Page { tcp, values: values(config) },
                Traffic::Requests(config) => AppOrder::Requests { tcp, values: values(config) },
                Traffic::Rpm(config) => AppOrder::Rpm { tcp, values: values(config) },
            }
        }
        App::Udp(UdpConfig { interval, frame, datagrams, header }) => AppOrder::Udp {
            interval: interval.as_nanos(),
            frame: *frame,
            datagrams: *datagrams,
            header: *header,
        },
        App::Ping(PingConfig { interval, size }) => {
            AppOrder::Ping { interval: interval.as_nanos(), size: *size }
        }
        App::External(_) => {
            let Exec { spec, .. } = programs::exec_of(&flow.app)?;
            AppOrder::Exec {
                sender: spec.sender.clone(),
                receiver: spec.receiver.clone(),
                grace: spec.grace.as_nanos(),
            }
        }
    })
}

fn values(params: &impl Params) -> String {
    params.values(Style::Canonical)
}

/// What an order asks for. What comes from elsewhere is checked as what users write is.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) host: HostId,
    pub(super) interface: String,
    pub(super) offloads: bool,
    pub(super) kernel: Kernel,
    pub(super) address: StreamAddress,
    pub(super) is_trial: bool,
    pub(super) scenario: Scenario,
    pub(super) settings: Vec<Option<TcpSettings>>,
}

/// # Errors
/// What is wrong in the order.
pub(super) fn read(order: Order) -> Result<Asked, String> {
    let span = |ns: u64| Span::from_nanos(ns);
    if order.flows.is_empty() || order.flows.len() > MOST_FLOWS {
        return Err(format!("{} flows", order.flows.len()));
    }
    // A run of years, or a thousand samples a millisecond, is a mistake.
    if order.duration > 1_000_000_000_000_000 || order.step < 1_000_000 {
        return Err("a run that does not end, or is looked at too often".to_owned());
    }
    if !file::is_interface(&order.interface) || order.ecn > 5 {
        return Err("a wrong interface or ECN".to_owned());
    }
    let mut settings = Vec::new();
    let mut flows = Vec::new();
    let mut hosts = order.host;
    for flow in order.flows {
        if flow.src == flow.dst || flow.dscp > 63 {
            return Err("a flow without two ends, or with a wrong code point".to_owned());
        }
        hosts = hosts.max(flow.src).max(flow.dst);
        let (app, tcp) = app(flow.app).map_err(|error| error.to_string())?;
        settings.push(tcp.map(|tcp| TcpSettings {
            cca: Control::named(&tcp.cca),
            dscp: flow.dscp,
            mss: (tcp.mss != crate::address::MSS).then_some(tcp.mss),
            receive_buffer: tcp.receive_buffer,
            most_unsent: tcp.most_unsent,
            blocking: tcp.blocking,
        }));
        flows.push(Flow {
            src: HostId(flow.src),
            dst: HostId(flow.dst),
            start: span(flow.start),
            start_jitter: span(flow.start_jitter),
            stop: flow.stop.map(span),
            dscp: flow.dscp,
            ..Flow::new(&flow.name, app, &[], &[])
        });
    }
    Ok(Asked {
        host: HostId(order.host),
        interface: order.interface,
        offloads: order.offloads,
        kernel: Kernel {
            ecn: order.ecn,
            most_receive_buffer: order.most_receive_buffer,
            most_send_buffer: order.most_send_buffer,
        },
        address: StreamAddress { seed: order.seed, run: order.run },
        is_trial: order.is_trial,
        scenario: Scenario {
            duration: span(order.duration),
            until: match order.until_transfers_done {
                true => Until::TransfersDone,
                false => Until::Duration,
            },
            warmup: Span::ZERO,
            step: span(order.step),
            hosts: (0..=hosts).map(|number| Host { name: number.to_string() }).collect(),
            links: Vec::new(),
            carriers: Vec::new(),
            flows,
            changes: Vec::new(),
        },
        settings,
    })
}

fn app(order: AppOrder) -> Result<(App, Option<TcpOrder>), SpecError> {
    let span = |ns: u64| Span::from_nanos(ns);
    let over = |traffic, tcp: TcpOrder| {
        let transport = tcp::Config { mss: tcp.mss, ..tcp::Config::default() };
        transport.check()?;
        // Which control it is, the kernel is told by its name.
        let cca = sojourn_cca::Config::parse("cubic")?;
        Ok((App::Tcp { traffic, cca, transport }, Some(tcp)))
    };
    match order {
        AppOrder::Bulk { tcp, rate, bytes } => {
            let config = BulkConfig { rate: rate.map(Rate::from_bps), bytes };
            config.check()?;
            over(Traffic::Bulk(config), tcp)
        }
        AppOrder::OnOff { tcp, on, off, random } => {
            let config = OnOffConfig { on: span(on), off: span(off), random };
            config.check()?;
            over(Traffic::OnOff(config), tcp)
        }
        AppOrder::Udp { interval, frame, datagrams, header } => {
            let config = UdpConfig { interval: span(interval), frame, datagrams, header };
            config.check()?;
            Ok((App::Udp(config), None))
        }
        AppOrder::Ping { interval, size } => {
            let config = PingConfig { interval: span(interval), size };
            config.check()?;
            if size as usize + 28 > MTU {
                return Err(SpecError::new("an echo request that does not fit a packet"));
            }
            Ok((App::Ping(config), None))
        }
        AppOrder::Arrivals { tcp, per_second, sizes, most, transfers } => {
            let sizes = SizesSpec::parse(&sizes)?.complete(None)?;
            let per_second = f64::from_bits(per_second);
            let config = ArrivalsConfig { per_second, sizes, most, transfers };
            config.check()?;
            over(Traffic::Arrivals(config), tcp)
        }
        AppOrder::Page { tcp, values } => {
            let config = PageConfig::parse(&mut Words::new(&values))?;
            config.check_objects()?;
            over(Traffic::Page(config), tcp)
        }
        AppOrder::Requests { tcp, values } => {
            over(Traffic::Requests(RequestsConfig::parse(&mut Words::new(&values))?), tcp)
        }
        AppOrder::Rpm { tcp, values } => {
            over(Traffic::Rpm(RpmConfig::parse(&mut Words::new(&values))?), tcp)
        }
        AppOrder::Exec { sender, receiver, grace } => {
            let spec = ExecSpec { sender, receiver, grace: span(grace), ..ExecSpec::default() };
            spec.check()?;
            let zero = spec.sender.iter().chain(&spec.receiver).any(|own| own.contains('\0'));
            if zero {
                return Err(SpecError::new("there is a zero in a command"));
            }
            let exec = Exec::new(spec, String::new())?;
            Ok((App::External(ExternalApp(Arc::new(exec))), None))
        }
    }
}

/// Looks for the state of the congestion controls, in this host's kernel.
///
/// # Errors
/// One can't be read.
pub(super) fn find_states(asked: &mut Asked) -> Result<(), String> {
    for tcp in asked.settings.iter_mut().flatten() {
        tcp.cca = Control::found(&tcp.cca.name)?;
    }
    Ok(())
}

/// The names by which the host's kernel must know the congestion controls of its flows.
pub(super) fn controls(asked: &Asked) -> Vec<&str> {
    let flows = asked.scenario.flows.iter().zip((0..).map(FlowId)).zip(&asked.settings);
    let own = flows.filter_map(|((flow, _), settings)| {
        let is_here = flow.src == asked.host || flow.dst == asked.host;
        settings.as_ref().filter(|_| is_here).map(|tcp| &tcp.cca.name[..])
    });
    let mut names: Vec<&str> = own.collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::tests::order;
    use super::*;

    #[test]
    fn an_order_is_what_it_was_made_of() {
        let asked = read(order()).expect("a good order");
        assert_eq!(controls(&asked), ["cubic"]);
        let Asked { scenario, interface, kernel, offloads, address, is_trial, .. } = &asked;
        let again = of(scenario, 1, interface, kernel, *offloads, *address, *is_trial);
        assert_eq!(again, order());
    }

    proptest! {
        #[test]
        fn no_order_makes_it_panic(
            numbers in (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()),
            hosts in any::<(u16, u16, u16)>(),
            interface in "\\PC{0,17}",
            (random, ecn, dscp) in any::<(bool, u8, u8)>(),
        ) {
            let (a, b, c, d, e, f) = numbers;
            let tcp = || TcpOrder {
                cca: interface.clone(),
                mss: d,
                receive_buffer: Some(a),
                most_unsent: Some(b),
                blocking: random,
            };
            let apps = [
                AppOrder::Bulk { tcp: tcp(), rate: Some(a), bytes: Some(b) },
                AppOrder::OnOff { tcp: tcp(), on: a, off: b, random },
                AppOrder::Udp { interval: a, frame: d, datagrams: e, header: f },
                AppOrder::Ping { interval: a, size: b },
                AppOrder::Arrivals {
                    tcp: tcp(),
                    per_second: a,
                    sizes: interface.clone(),
                    most: d,
                    transfers: Some(b),
                },
                AppOrder::Page { tcp: tcp(), values: interface.clone() },
                AppOrder::Requests { tcp: tcp(), values: format!("bytes={a} streams={d}") },
                AppOrder::Rpm { tcp: tcp(), values: format!("interval={a}ns initial={d}") },
                AppOrder::Exec { sender: Some(interface.clone()), receiver: None, grace: a },
            ];
            for app in apps {
                let mut order = order();
                order.flows[0].app = app;
                let _ = read(order);
            }
            let mut order = order();
            (order.host, order.flows[0].src, order.flows[0].dst) = hosts;
            (order.duration, order.step, order.flows[0].start) = (a, b, c);
            (order.interface, order.ecn, order.flows[0].dscp) = (interface.clone(), ecn, dscp);
            let _ = read(order);
        }
    }
}
