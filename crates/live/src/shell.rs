//! A world that stands for as long as its user plays in it.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use sojourn_core::{HostId, NoObserver, QueueSample, Span, StreamAddress};
use sojourn_scenario::{Checked, Scenario};

use crate::bottleneck::{Bottleneck, Ends, Passed};
use crate::clock::Clock;
use crate::{address, engine, sys};

/// No one plays for longer.
const LONGEST: Span = Span::from_secs(1_000_000);

/// Runs `command` in a host of the scenario, whose links carry what it sends to other hosts; no flow sends by
/// itself. The command has in its environment `SOJOURN_HOST`, the name of its host, and of each host its address,
/// `SOJOURN_ADDRESS_NAME`, and its namespace as `nsenter --net=` takes it, `SOJOURN_NET_NAME`.
///
/// Gives back how the command ended, and what `tc -s` would then show of each queue.
///
/// # Errors
/// What the machine lacks, or why the command could not be started.
pub fn run(
    scenario: &Checked,
    seed: StreamAddress,
    host: usize,
    command: &[OsString],
) -> Result<(ExitStatus, Vec<String>), String> {
    let mut world = scenario.clone().into_inner();
    world.duration = LONGEST;
    world.step = LONGEST;
    world.warmup = Span::ZERO;
    let hosts = engine::hosts(&world)?;
    let here = hosts.get(host).ok_or("no such host")?;
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).env("SOJOURN_HOST", &world.hosts[host].name);
    for ((named, own), id) in world.hosts.iter().zip(&hosts).zip((0..).map(HostId)) {
        let name = named.name.replace('-', "_");
        let file = own.namespace().as_raw_fd();
        let path = format!("/proc/{}/fd/{file}", std::process::id());
        command.env(format!("SOJOURN_ADDRESS_{name}"), address::of_host(id).to_string());
        command.env(format!("SOJOURN_NET_{name}"), path);
    }
    let is_over = AtomicBool::new(false);
    let (sender, notices) = channel();
    drop(sender);
    let clock = Clock::from(Instant::now());
    let bottleneck = Bottleneck::new(&world, engine::between(&world, &hosts), seed);
    let never = AtomicBool::new(false);
    let (status, passed) = thread::scope(|scope| {
        let ends = Ends { is_over: &is_over, lingers: &never };
        let carries = scope.spawn(move || bottleneck.run(&clock, &notices, &ends, &mut NoObserver));
        let plays = scope.spawn(|| {
            sys::enter_network(here.namespace()).map_err(|error| format!("the host: {error}"))?;
            command
                .status()
                .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))
        });
        let status = plays.join();
        is_over.store(true, Ordering::Relaxed);
        (status, carries.join())
    });
    let passed = passed.map_err(|_| "the bottleneck panicked".to_owned())??;
    let status = status.map_err(|_| "the host's thread panicked".to_owned())??;
    let shown = shown(&world, &passed);
    Ok((status, shown))
}

/// What `tc -s` would show of each queue, below how late packets were.
pub(crate) fn shown(world: &Scenario, passed: &Passed) -> Vec<String> {
    let late = passed.lateness.distribution().quantile(0.99).unwrap_or_default() / 1e6;
    let mut shown = vec![format!("99 % of the packets were at most {late:.3} ms late")];
    for (link, (sample, details)) in world.links.iter().zip(&passed.queues) {
        let QueueSample { sent_packets, sent_bytes, dropped, marked, .. } = sample;
        let mut line = format!(
            "{}: {}: sent {sent_bytes} bytes {sent_packets} pkt (dropped {dropped}, marked {marked})",
            link.name,
            link.queue.name()
        );
        let words = details.iter().filter(|(_, value)| *value > 0);
        words.for_each(|(name, value)| line += &format!(", {name} {value}"));
        shown.push(line);
    }
    shown
}

/// The name and address of every host, in the order of their numbers.
pub fn addresses(scenario: &Checked) -> Vec<(String, String)> {
    let hosts = scenario.hosts.iter().zip((0..).map(HostId));
    hosts.map(|(host, id)| (host.name.clone(), address::of_host(id).to_string())).collect()
}
