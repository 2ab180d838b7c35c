//! The file of hosts.

use std::collections::BTreeMap;

use serde::Deserialize;
use sojourn_core::SpecError;
use sojourn_scenario::Scenario;

/// Every host of a study by its name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hosts {
    #[serde(default)]
    host: BTreeMap<String, Host>,
}

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// As `ssh` takes it.
    pub(super) ssh: String,
    /// More arguments of `ssh`.
    #[serde(default)]
    pub(super) ssh_options: Vec<String>,
    /// Its interface to this machine.
    pub(super) interface: String,
    /// The interface of this machine to it.
    pub(super) here: String,
    /// Where this program is there; without it it is copied.
    pub(super) sojourn: Option<String>,
    /// In which folder it is put then.
    #[serde(default = "folder")]
    pub(super) folder: String,
}

fn folder() -> String {
    "/tmp".to_owned()
}

/// Longest name of an interface (`IFNAMSIZ` without its end).
const LONGEST_NAME: usize = 15;

/// # Errors
/// Where the file is wrong, and what is allowed.
pub(super) fn read(path: &str, text: &str) -> Result<Hosts, SpecError> {
    let hosts: Hosts = toml::from_str(text).map_err(|error| {
        let place = match error.span() {
            Some(span) => {
                let before = text.get(..span.start).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                format!("{path}, line {line}")
            }
            None => path.to_owned(),
        };
        SpecError::new(error.message().replace('\n', ", ")).within(&place)
    })?;
    let problem = |name: &str, what: &str| SpecError::new(format!("{path}: host '{name}': {what}"));
    for (name, host) in &hosts.host {
        if host.ssh.is_empty()
            || host.ssh.starts_with('-')
            || host.ssh.contains(char::is_whitespace)
        {
            let problem = problem(name, &format!("ssh = '{}' is no machine", host.ssh));
            return Err(problem.allow(["what stands after 'ssh' on a command line: user@machine"]));
        }
        for (key, own) in [("interface", &host.interface), ("here", &host.here)] {
            if !is_interface(own) {
                let problem = problem(name, &format!("{key} = '{own}' is no interface's name"));
                return Err(problem.allow(["a name that 'ip link' shows"]));
            }
        }
        for (key, own) in [("folder", Some(&host.folder)), ("sojourn", host.sojourn.as_ref())] {
            if own.is_some_and(String::is_empty) {
                let problem = problem(name, &format!("{key} = '' is no path"));
                return Err(problem.allow(["a path on the host", "nothing, without the key"]));
            }
        }
        let texts = host.ssh_options.iter().chain([&host.ssh, &host.folder]).chain(&host.sojourn);
        if texts.into_iter().any(|own| own.contains('\0')) {
            return Err(problem(name, "there is a zero in a text"));
        }
    }
    Ok(hosts)
}

/// Whether an interface can have that name.
pub(super) fn is_interface(name: &str) -> bool {
    let is_wrong = |c: char| c.is_whitespace() || c == '/' || c == '\0';
    !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(is_wrong)
}

impl Hosts {
    /// Whether they are those of the scenario.
    pub(super) fn check(&self, path: &str, scenario: &Scenario) -> Result<(), SpecError> {
        let names: Vec<&str> = scenario.hosts.iter().map(|host| &host.name[..]).collect();
        let known = || names.iter().map(|name| format!("[host.{name}]"));
        if let Some(other) = self.host.keys().find(|name| !names.contains(&&name[..])) {
            let problem = SpecError::new(format!("{path}: the study has no host '{other}'"));
            return Err(problem.allow(known()).near(other, names.iter().copied()));
        }
        if let Some(missing) = names.iter().find(|name| !self.host.contains_key(**name)) {
            let problem = format!("{path}: [host.{missing}] is missing, a host of the study");
            return Err(SpecError::new(problem).allow(known()));
        }
        let mut here: Vec<&str> = self.host.values().map(|host| &host.here[..]).collect();
        here.sort_unstable();
        match here.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => {
                let problem = format!(
                    "{path}: two hosts have here = '{}', and would reach each other past the bottleneck",
                    two[0]
                );
                Err(SpecError::new(problem).allow(["an interface of this machine for each host"]))
            }
            None => Ok(()),
        }
    }

    /// In the order of the scenario, which has them all.
    pub(super) fn in_order(&self, scenario: &Scenario) -> impl Iterator<Item = &Host> {
        scenario.hosts.iter().filter_map(|host| self.host.get(&host.name))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use sojourn_core::Span;
    use sojourn_scenario::{Host as Name, Until};

    use super::*;

    pub(in super::super) fn host(name: &str, more: &str) -> String {
        format!(
            "[host.{name}]\nssh = \"{name}\"\ninterface = \"eth1\"\nhere = \"to-{name}\"\n{more}\n"
        )
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = host("a", "");
        assert!(read("f", &good).is_ok());
        for (text, problem) in [
            (host("a", "folders = \"/\""), "f, line 5: unknown field `folders`, expected one of"),
            ("[hosts.a]".to_owned(), "f, line 1: unknown field `hosts`, expected `host`"),
            (good.replace("\"a\"", "\"-oProxyCommand=x\""), "'-oProxyCommand=x' is no machine"),
            (
                good.replace("\"a\"", "\"a -p 9\""),
                "'a -p 9' is no machine (allowed: what stands after",
            ),
            (host("a", "folder = \"\""), "f: host 'a': folder = '' is no path"),
            (host("a", "sojourn = \"\""), "f: host 'a': sojourn = '' is no path"),
            (good.replace("eth1", "an interface"), "interface = 'an interface' is no"),
            (good.replace("ssh = \"a\"", ""), "missing field `ssh`"),
            (good.replace("ssh = \"a\"", "ssh = 5"), "f, line 2: invalid type: integer `5`"),
            (good.replace("[host.a]", "[host.a"), "f, line 1: "),
        ] {
            let error = read("f", &text).expect_err(&text).to_string();
            assert!(error.contains(problem) && error.starts_with('f'), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn every_host_of_the_study_has_a_machine() {
        let scenario = Scenario {
            duration: Span::from_secs(1),
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Name { name: name.to_owned() }).to_vec(),
            links: Vec::new(),
            carriers: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
        };
        let both = [host("server", ""), host("client", "")].concat();
        let check = |text: &str| read("f", text).expect("it is good").check("f", &scenario);
        assert_eq!(check(&both), Ok(()));
        for (text, problem) in [
            (host("server", ""), "f: [host.client] is missing, a host of the study (allowed: [ho"),
            (String::new(), "f: [host.server] is missing"),
            (both.replace("[host.client]", "[host.clint]"), "'clint'; did you mean 'client'?"),
            (both.replace("to-client", "to-server"), "f: two hosts have here = 'to-server'"),
        ] {
            let error = check(&text).expect_err(&text).to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\[host\\.[a-z]?\\]\n)?([a-z_]{0,9} = (\"[^\"]{0,9}\"|[0-9]|\\[\\])\n){0,6}|\\PC{0,60}") {
            let _ = read("f", &text);
        }
    }
}
