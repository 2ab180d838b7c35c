//! The engine from outside, in worlds that are built in code.

mod backlog;
mod changes;
mod ecn;
mod handshake;
mod order;
mod outage;
mod outside;
mod reads;
mod repair;
mod until;
mod utilisation;
mod words;
mod worlds;

use sojourn_core::param::Form as _;
use sojourn_core::{Params as _, Span};
use sojourn_host::tcp::{Config as Transport, Windows};
use sojourn_scenario::{Flow, Host, Link, Scenario, Until};

/// A server and a client with these links between them, and nothing that changes.
fn two_hosts(duration: Span, links: Vec<Link>, flows: Vec<Flow>) -> Scenario {
    Scenario {
        duration,
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
        links,
        carriers: Vec::new(),
        changes: Vec::new(),
        flows,
    }
}

/// Sizes in bytes, and for how many milliseconds each holds.
fn windows(steps: &[(u64, u64)]) -> Windows {
    let mut from = 0;
    let mut text = String::new();
    for (bytes, ms) in steps {
        text += &format!("{bytes} at {from}ms ");
        from += ms;
    }
    let param = Transport::PARAMS.iter().find(|param| param.name == "receive_window");
    Windows::read(text.trim(), param.expect("it is one")).expect("windows")
}
