//! What there is to observe in a scenario.

use sojourn_core::{PortId, Rate};
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::{self, SendBuffer};
use sojourn_metrics::qoe::EmptyPath;
use sojourn_metrics::{FlowShape, LinkShape, Shape};
use sojourn_scenario::{App, Flow, PortShape, Scenario, Traffic};

/// What there is to observe in a scenario.
pub fn shape(scenario: &Scenario) -> Shape {
    let ports = scenario.ports();
    Shape {
        flows: scenario
            .flows
            .iter()
            .map(|flow| FlowShape { stop: flow.stop, ..of_app(&ports, flow) })
            .collect(),
        links: ports.iter().map(|port| LinkShape { name: port.name.clone() }).collect(),
        duration: scenario.duration,
        warmup: scenario.warmup,
        step: scenario.step,
    }
}

/// Of a flow, without the time at which it stops.
fn of_app(ports: &[PortShape], flow: &Flow) -> FlowShape {
    match &flow.app {
        App::Tcp { traffic, transport, .. } => FlowShape {
            // These share connections, so they are not compared with a transfer alone.
            empty: (!matches!(traffic, Traffic::Page(_) | Traffic::Requests(_) | Traffic::Rpm(_)))
                .then(|| empty_path(ports, flow, transport)),
            transfer: match traffic {
                Traffic::Bulk(config) => config.bytes,
                Traffic::OnOff(_)
                | Traffic::Arrivals(_)
                | Traffic::Page(_)
                | Traffic::Requests(_)
                | Traffic::Rpm(_) => None,
            },
            writes_without_limit: transport.send_buffer == SendBuffer::UNLIMITED
                && matches!(
                    traffic,
                    Traffic::OnOff(_) | Traffic::Bulk(BulkConfig { rate: None, bytes: None })
                ),
            ..match traffic {
                Traffic::Arrivals(_) => FlowShape::arrivals(&flow.name),
                Traffic::Page(_) => FlowShape::page(&flow.name),
                Traffic::Requests(_) => FlowShape::requests(&flow.name),
                Traffic::Rpm(_) => FlowShape::rpm(&flow.name),
                Traffic::Bulk(_) | Traffic::OnOff(_) => FlowShape::tcp(&flow.name),
            }
        },
        App::Ping(_) => FlowShape::ping(&flow.name),
        App::External(app) if app.0.is_tcp() => {
            FlowShape { transfer: app.0.transfer(), ..FlowShape::tcp(&flow.name) }
        }
        App::Udp(_) | App::External(_) => FlowShape::udp(&flow.name),
    }
}

/// The path of a flow's transfers without other traffic.
fn empty_path(ports: &[PortShape], flow: &Flow, transport: &tcp::Config) -> EmptyPath {
    let port = |id: &PortId| &ports[id.index()];
    let of_links = flow.forward.iter().chain(&flow.reverse).map(|id| port(id).delay);
    EmptyPath {
        rtt: of_links.fold(flow.forward_delay + flow.reverse_delay, |sum, delay| sum + delay),
        rate: flow.forward.iter().map(|id| port(id).rate).min().unwrap_or(Rate::UNLIMITED),
        initial_window: u64::from(transport.initial_cwnd) * u64::from(transport.mss),
    }
}
