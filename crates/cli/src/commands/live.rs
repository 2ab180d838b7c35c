//! `sojourn live`: a study's world to play in.

#[cfg(target_os = "linux")]
use std::ffi::OsString;

#[cfg(target_os = "linux")]
use sojourn_core::SpecError;
use sojourn_study::Registry;

use crate::args::LiveCommand;
#[cfg(target_os = "linux")]
use crate::args::{CcaCommand, Format};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
#[cfg(target_os = "linux")]
use crate::table::{Grid, Records, print};

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
        LiveCommand::Cca(command) => return cca(command, output),
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
fn cca(command: &CcaCommand, output: Output) -> Result<Outcome, Failure> {
    use sojourn_live::cca::{self, Done, Own};

    let (names, loads) = match command {
        CcaCommand::Load { names } => (names, true),
        CcaCommand::Unload { names } => (names, false),
        CcaCommand::List { format } => return list_cca(*format, output),
    };
    // A wrong name is told before anything is done.
    let known = |name: &String| {
        cca::CONTROLS.iter().find(|own| own.name == *name).ok_or_else(|| {
            let names = || cca::CONTROLS.iter().map(|own| own.name);
            let error = match cca::CONTROLS.iter().find(|own| own.kernel_name == *name) {
                Some(own) => SpecError::new(format!(
                    "'{name}' is what the kernel calls it; here and in studies it is '{}'",
                    own.name
                )),
                None => {
                    let problem = "no congestion control of this project is named";
                    SpecError::new(format!("{problem} '{name}'")).near(name, names())
                }
            };
            Failure::input(error.allow(names()))
        })
    };
    let owns: Vec<&'static Own> = names.iter().map(known).collect::<Result<_, _>>()?;
    for own in owns {
        let done = if loads { cca::load(own) } else { cca::unload(own) };
        let done = done.map_err(|problem| Failure::Machine(format!("{}: {problem}", own.name)))?;
        let said = match done {
            Done::Loaded | Done::Replaced => format!(
                "{} is loaded{}; the kernel calls it {}; it stays until: sudo sojourn live cca unload {}",
                own.name,
                if done == Done::Replaced { ", in place of that of another version" } else { "" },
                own.kernel_name,
                own.name
            ),
            Done::WasLoaded => format!("{} is loaded already", own.name),
            Done::LoadedMeanwhile => {
                format!("{} was loaded meanwhile, by another call of this command", own.name)
            }
            Done::WasNotLoaded => format!("{} is not loaded", own.name),
            Done::Unloaded { sockets, is_default } => {
                let sockets = match sockets {
                    0 => String::new(),
                    1 => "; one socket keeps it until it is closed".to_owned(),
                    _ => format!("; {sockets} sockets keep it until they are closed"),
                };
                let default = match is_default {
                    true => {
                        "; it is still the default, so new connections get it until that is changed: sudo sysctl net.ipv4.tcp_congestion_control=cubic"
                    }
                    false => "",
                };
                format!("{} is unloaded{sockets}{default}", own.name)
            }
        };
        output.log(&said);
    }
    Ok(Outcome::Fine)
}

#[cfg(target_os = "linux")]
fn list_cca(format: Format, output: Output) -> Result<Outcome, Failure> {
    use serde_json::{Value, json};
    use sojourn_live::cca::{self, Loaded, Other};

    let loaded = cca::loaded().map_err(Failure::Machine)?;
    let state = |copy: Result<&Loaded, Option<Other>>| match copy {
        Err(None) => "not loaded",
        Err(Some(Other::Kernel)) => "not loaded: the kernel has one of its own",
        Err(Some(Other::Programs)) => "not loaded: somebody else has loaded another",
        Ok(own) if !own.is_registered && own.is_default => "unloaded, and still the default",
        Ok(own) if !own.is_registered => "unloaded, and kept by sockets",
        Ok(own) if !own.is_current => "loaded by another version: load replaces it",
        Ok(own) if own.is_default => "loaded, and the default",
        Ok(_) => "loaded",
    };
    let mut rows = Vec::new();
    for own in &cca::CONTROLS {
        let all: Vec<&Loaded> = loaded.iter().filter(|other| other.own == own).collect();
        let is_registered = all.iter().any(|other| other.is_registered);
        if !is_registered {
            rows.push((own, Err(cca::other(own).map_err(Failure::Machine)?)));
        }
        rows.extend(all.into_iter().map(|copy| (own, Ok(copy))));
    }
    // Who uses somebody else's is not known.
    let sockets = |copy: Result<&Loaded, Option<Other>>| match copy {
        Ok(own) => own.sockets,
        Err(None) => Some(0),
        Err(Some(_)) => None,
    };
    let mut grid = Grid::new(["name", "in the kernel", "state", ">sockets"]);
    let mut records = Records::new(["name", "kernel_name", "state", "sockets"]);
    for (own, loaded) in rows {
        let text = sockets(loaded).map_or("?".to_owned(), |count| count.to_string());
        grid.row([own.name, own.kernel_name, state(loaded), &text]);
        let value = sockets(loaded).map_or(Value::Null, Value::from);
        records.row([json!(own.name), json!(own.kernel_name), json!(state(loaded)), value]);
    }
    print(output, format, || grid.fitted(), || records)?;
    Ok(Outcome::Fine)
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
