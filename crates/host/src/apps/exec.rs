//! `exec`: programs of the user's own, which only an engine of real packets can run.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;

use sojourn_core::param::{Maybe, Style, time};
use sojourn_core::{Packet, Params, Span, SpecError, Time};

use crate::endpoint::Around;
use crate::{AppModel, Endpoint, FlowSetup};

sojourn_core::params! {
    /// What a flow of programs has as keys.
    pub struct ExecSpec: "exec", "programs of your own in the two hosts, as iperf3 or a browser; with the engine live only" {
        pub sender: Option<String> as Maybe<String> = "",
            "the shell's command in the sender's host, at the flow's start; it may have `{receiver}` and `{sender}` for \
             addresses, `{port}` for a port of the flow's own, `{seconds}` for how long the flow lasts, `{study}` for the \
             folder of the study, `{seed}`. It begins in the folder in which `sojourn` was started, over `--hosts` in that in \
             which one is on the host after logging in, and a path like `./program` is looked for there";
        pub receiver: Option<String> as Maybe<String> = "",
            "the shell's command in the receiver's host, before the run begins; if it has `{port}`, the run begins when \
             something listens there; it begins in the same folder";
        pub protocol: Protocol = "tcp", "as what the flow is measured: by TCP's acknowledgements, or by datagrams";
        pub grace: Span = "5s", time(Span::ZERO, Span::from_secs(600)),
            "how long after the end of the run the programs may take to end by themselves";
    }
}

/// What the programs speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
}

sojourn_core::choice! { Protocol { "tcp" = Protocol::Tcp, "udp" = Protocol::Udp } }

/// A flow of programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Exec {
    pub spec: ExecSpec,
    /// Where the study's file is; no part of what the flow is.
    pub folder: String,
}

/// Words that commands may have in braces.
pub const PLACEHOLDERS: [&str; 6] = ["sender", "receiver", "port", "seconds", "study", "seed"];

impl Exec {
    /// # Errors
    /// It has no program; or a command has an unknown word in braces. The error's parameter is the key.
    pub fn new(spec: ExecSpec, folder: String) -> Result<Self, SpecError> {
        if spec.sender.is_none() && spec.receiver.is_none() {
            let problem = SpecError::new("no program is named").allow(["sender", "receiver"]);
            return Err(problem.about("app"));
        }
        let both = [("sender", &spec.sender), ("receiver", &spec.receiver)];
        for (key, command) in both {
            let Some(command) = command else { continue };
            filled(command, |_| Some(String::new())).map_err(|error| error.about(key))?;
        }
        Ok(Self { spec, folder })
    }
}

/// A command with the value of each placeholder. `{{` and `}}` stand for braces, and braces around anything
/// but lower-case letters for themselves.
///
/// # Errors
/// An unknown placeholder.
pub fn filled(command: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, SpecError> {
    let mut out = String::new();
    let mut rest = command;
    while let Some(at) = rest.find(['{', '}']) {
        out += &rest[..at];
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out += brace;
            rest = after;
            continue;
        }
        let name = rest.split_once('}').map(|(name, _)| name).filter(|name| {
            brace == "{" && !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase())
        });
        let Some(name) = name else {
            out += brace;
            continue;
        };
        let known = PLACEHOLDERS.contains(&name).then(|| value(name)).flatten();
        let Some(known) = known else {
            let problem = SpecError::new(alloc::format!("unknown placeholder '{{{name}}}'"));
            let allowed = PLACEHOLDERS.iter().map(|name| alloc::format!("{{{name}}}"));
            return Err(problem
                .near(name, PLACEHOLDERS)
                .allow(allowed.chain([String::from("{{ for a brace")])));
        };
        out += &known;
        rest = &rest[name.len() + 1..];
    }
    Ok(out + rest)
}

impl AppModel for Exec {
    fn check(&self) -> Result<(), SpecError> {
        self.spec.check()
    }

    /// Ends that send nothing: what simulates refuses it.
    fn build(&self, _: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        [Box::new(Nobody), Box::new(Nobody)]
    }

    fn canonical(&self) -> String {
        self.spec.written(Style::Canonical)
    }

    fn is_tcp(&self) -> bool {
        self.spec.protocol == Protocol::Tcp
    }

    fn needs_engine(&self) -> Option<&'static str> {
        Some("live")
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

struct Nobody;

impl Endpoint for Nobody {
    fn on_packet(&mut self, _: Time, _: &Packet, _: &mut Around<'_>) {}

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Around<'_>) -> Option<Packet> {
        None
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn fill(command: &str) -> Result<String, String> {
        filled(command, |name| Some(name.to_uppercase())).map_err(|error| error.to_string())
    }

    #[test]
    fn braces_that_are_no_placeholders_stay() {
        assert_eq!(fill("nc {receiver} {port}").as_deref(), Ok("nc RECEIVER PORT"));
        assert_eq!(
            fill("awk '{{print}} ${PATH} {\"a\": 1} {'").as_deref(),
            Ok("awk '{print} ${PATH} {\"a\": 1} {'")
        );
        let problem = fill("nc {reciever}").expect_err("it is misspelt");
        assert!(problem.contains("{reciever}") && problem.contains("receiver"), "{problem}");
    }

    proptest! {
        #[test]
        fn no_command_makes_it_panic(command in "[{}a-z $é]{0,40}") {
            let _ = fill(&command);
        }
    }
}
