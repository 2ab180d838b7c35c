//! `sojourn live`: a study's world to play in.

#[cfg(target_os = "linux")]
use std::ffi::OsString;

use sojourn_study::Registry;

use crate::args::LiveCommand;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

#[cfg(target_os = "linux")]
pub(super) fn live(
    command: &LiveCommand,
    registry: &Registry,
    output: Output,
) -> Result<Outcome, Failure> {
    use sojourn_live::{machine, shell};

    let (args, host, command) = match command {
        LiveCommand::Shell { study, host, command } => (study, host, command),
        LiveCommand::Attach { study, near, far, time } => {
            let study = study.load(registry)?;
            return attach(&study, [near, far], *time, output);
        }
        LiveCommand::Agent => {
            sojourn_live::serve(std::io::stdin(), std::io::stdout()).map_err(Failure::Machine)?;
            return Ok(Outcome::Fine);
        }
    };
    let study = args.load(registry)?;
    let Some(first) = study.scenarios.first() else {
        return Err(Failure::Input("the study has no scenario".to_owned()));
    };
    machine::become_root();
    machine::has_networks().map_err(Failure::Machine)?;
    let addresses = shell::addresses(&first.scenario);
    let here = match host {
        None => addresses.len().saturating_sub(1).min(1),
        Some(name) => addresses.iter().position(|(own, _)| own == name).ok_or_else(|| {
            let names: Vec<&str> = addresses.iter().map(|(own, _)| &own[..]).collect();
            Failure::Input(format!("no host is named '{name}' (allowed: {})", names.join(", ")))
        })?,
    };
    if study.scenarios.len() > 1 {
        output.log(&format_args!(
            "the first of {} scenarios; --set chooses another",
            study.scenarios.len()
        ));
    }
    for (at, (name, address)) in addresses.iter().enumerate() {
        let mark = if at == here { "  you are here" } else { "" };
        output.log(&format_args!("{name}  {address}{mark}"));
    }
    output.log(&format_args!(
        "a program in another host: nsenter --net=$SOJOURN_NET_{} COMMAND",
        addresses
            .iter()
            .enumerate()
            .find(|(at, _)| *at != here)
            .map_or("NAME", |(_, (name, _))| name)
    ));
    let usual = || vec![std::env::var_os("SHELL").unwrap_or_else(|| OsString::from("sh"))];
    let command = if command.is_empty() { usual() } else { command.clone() };
    let seed = study.address(study.seeds.first().copied().unwrap_or(1));
    let (status, shown) =
        shell::run(&first.scenario, seed, here, &command).map_err(Failure::Machine)?;
    shown.iter().for_each(|line| output.log(line));
    Ok(if status.success() { Outcome::Fine } else { Outcome::Failed })
}

#[cfg(target_os = "linux")]
fn attach(
    study: &sojourn_study::Study,
    between: [&str; 2],
    time: Option<sojourn_core::Span>,
    output: Output,
) -> Result<Outcome, Failure> {
    use std::time::Duration;

    let Some(first) = study.scenarios.first() else {
        return Err(Failure::Input("the study has no scenario".to_owned()));
    };
    let [near, far] = between;
    for (from, to, way) in [
        (near, far, &first.scenario.flows[0].forward),
        (far, near, &first.scenario.flows[0].reverse),
    ] {
        let links = way.iter().filter_map(|port| first.scenario.links.get(port.index()));
        let links: Vec<String> =
            links.map(|link| format!("{} ({})", link.name, link.queue.name())).collect();
        output.log(&format_args!("{from} to {to}: {}", links.join(", ")));
    }
    output.log(&"packets pass until Ctrl-C");
    let seed = study.address(study.seeds.first().copied().unwrap_or(1));
    let time = time.map(|time| Duration::from_nanos(time.as_nanos()));
    let shown = sojourn_live::attach::run(&first.scenario, seed, between, time)
        .map_err(Failure::Machine)?;
    shown.iter().for_each(|line| output.log(line));
    Ok(Outcome::Fine)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn live(_: &LiveCommand, _: &Registry, _: Output) -> Result<Outcome, Failure> {
    Err(Failure::Machine("live runs need Linux".to_owned()))
}
