//! Congestion controls of the project's own in this machine's kernel, as BPF programs.
//!
//! A control that is loaded is like a module: it stays until it is unloaded or the machine is started anew, and any program may use it
//! (`TCP_CONGESTION`). Nobody else's maps are touched: one of ours is known by its two, the control itself and the state of its connections,
//! whose name has a number of the sources in it.

mod build;
mod control;
mod state;
mod tools;

use std::{fs, io};

pub(crate) use self::control::{Control, kernel_name};
pub use self::tools::{Tool, tools};
use crate::sys::bpf::{self, Map};

/// A congestion control that can be loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct Own {
    /// What studies call it.
    pub name: &'static str,
    /// What the kernel calls it, whose names have letters, digits and underscores.
    pub kernel_name: &'static str,
    /// How the name of its state's map begins.
    state: &'static str,
    /// What its source is compiled with.
    defines: &'static [&'static str],
}

/// All of them.
pub const CONTROLS: [Own; 2] = [
    Own { name: "bbr3", kernel_name: "bbr3", state: "sj_bbr3_", defines: &[] },
    Own { name: "bbr-n+", kernel_name: "bbr_n_plus", state: "sj_bbrn_", defines: &["-DSMART"] },
];

/// What is loaded of one.
#[derive(Debug)]
pub struct Loaded {
    pub own: &'static Own,
    /// It was loaded by this version of the program.
    pub is_current: bool,
    /// Sockets that use it; `None` if the kernel doesn't say. Another network whose default it is counts as one.
    pub sockets: Option<u32>,
    /// New connections of this network have it where nothing else is asked for, also when it is unloaded.
    pub is_default: bool,
    /// New connections can have it; otherwise it is unloaded, and stays for the sockets that have it.
    pub is_registered: bool,
    map: Map,
    /// The state of its connections.
    states: Map,
}

/// Whose a control is that has the name of one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// The kernel's: built in, or of a module.
    Kernel,
    /// Programs that somebody else has loaded.
    Programs,
}

/// What a call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Loaded,
    /// The one of another version was unloaded before.
    Replaced,
    WasLoaded,
    /// Another call has loaded it in the same moment.
    LoadedMeanwhile,
    /// So many sockets go on with it, and new ones if it is the default.
    Unloaded {
        sockets: u32,
        is_default: bool,
    },
    WasNotLoaded,
}

impl Own {
    /// By either name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CONTROLS.iter().find(|own| own.name == name || own.kernel_name == name)
    }

    /// The name of its state's map.
    fn state_name(&self) -> String {
        // A name has at most 15 characters.
        format!("{}{:07x}", self.state, build::VERSION & 0x0fff_ffff)
    }
}

/// The congestion controls that the kernel has loaded.
///
/// # Errors
/// The file of the kernel that has them can't be read.
pub fn congestion_controls() -> Result<Vec<String>, String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// What is loaded.
///
/// # Errors
/// That only root may ask, or that the kernel can't.
pub fn loaded() -> Result<Vec<Loaded>, String> {
    asked_for("list")
}

/// The same for a call, which is named where it is refused.
fn asked_for(command: &str) -> Result<Vec<Loaded>, String> {
    bpf::maps().map(of_maps).map_err(|error| refused(command, &error))
}

fn of_maps(maps: Vec<Map>) -> Vec<Loaded> {
    let (mut states, others): (Vec<Map>, Vec<Map>) =
        maps.into_iter().partition(|map| map.kind == bpf::SOCKET_STORAGE);
    let controls = others.into_iter().filter(|map| map.kind == bpf::STRUCT_OPS);
    let known = controls.filter_map(|map| {
        let own = CONTROLS.iter().find(|own| own.kernel_name == map.name)?;
        // Sockets can keep several copies of a control, whose maps have the same names. What was loaded together has the same types.
        let is_its_own =
            |state: &Map| state.types == map.types && state.name.starts_with(own.state);
        let states = states.swap_remove(states.iter().position(is_its_own)?);
        let is_current = states.name == own.state_name();
        let value = map.value(0).unwrap_or_default();
        let (references, is_registered) = state::of_control(&value);
        // The registration is a reference, too.
        let sockets = references.map(|own| own.saturating_sub(u32::from(is_registered)));
        let is_default = false;
        Some(Loaded { own, is_current, sockets, is_default, is_registered, map, states })
    });
    let mut known: Vec<Loaded> = known.collect();
    let names = known.iter().map(|copy| copy.own.kernel_name);
    if let Some(copy) = holder(names, &default()) {
        let loaded = &mut known[copy];
        loaded.is_default = true;
        loaded.sockets = loaded.sockets.map(|sockets| sockets.saturating_sub(1));
    }
    known
}

/// What new connections of this network have where nothing else is asked for.
fn default() -> String {
    let name = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    name.unwrap_or_default().trim().to_owned()
}

/// Which of these copies is the default, which keeps it as a socket does. Of several it is not known which one had the name when the default
/// was set.
fn holder<'a>(names: impl Iterator<Item = &'a str>, default: &str) -> Option<usize> {
    let mut copies = names.enumerate().filter(|(_, name)| *name == default);
    let (copy, _) = copies.next()?;
    copies.next().is_none().then_some(copy)
}

fn registered(own: &Own, command: &str) -> Result<Option<Loaded>, String> {
    Ok(asked_for(command)?.into_iter().find(|other| other.own == own && other.is_registered))
}

/// Loads a control, unless it is.
///
/// # Errors
/// What is missing, and what to type.
pub fn load(own: &'static Own) -> Result<Done, String> {
    let command = format!("load {}", own.name);
    let before = registered(own, &command)?;
    if before.as_ref().is_some_and(|before| before.is_current) {
        return Ok(Done::WasLoaded);
    }
    if before.is_none() && is_known(own)? {
        return Err(not_ours(own));
    }
    let program = build::build(own)?;
    let done = match &before {
        Some(before) => before.map.delete(0).map_err(|error| refused(&command, &error)),
        None => Ok(()),
    };
    let done = done.and_then(|()| program.register());
    let now = registered(own, &command)?;
    let is_loaded = now.as_ref().is_some_and(|now| now.is_current);
    match done {
        Ok(()) if is_loaded && before.is_some() => Ok(Done::Replaced),
        Ok(()) if is_loaded => Ok(Done::Loaded),
        Ok(()) => {
            Err(format!("bpftool says that '{}' is registered, but it isn't", own.kernel_name))
        }
        // The kernel takes a name only once, and doesn't say so.
        Err(_) if is_loaded => Ok(Done::LoadedMeanwhile),
        Err(_) if before.is_none() && now.is_some() => Err(
            "another version of this program has loaded it meanwhile; the same command replaces it"
                .to_owned(),
        ),
        Err(problem) if before.is_none() && is_known(own)? => {
            Err(format!("{}, since a moment ago: {problem}", not_ours(own)))
        }
        Err(problem) => Err(problem),
    }
}

/// Whether the kernel has one of that name, whosever.
fn is_known(own: &Own) -> Result<bool, String> {
    Ok(congestion_controls()?.iter().any(|known| known == own.kernel_name))
}

fn not_ours(own: &Own) -> String {
    let Own { name, kernel_name, .. } = own;
    let whose = match other(own) {
        Ok(Some(Other::Programs)) => "of BPF programs that somebody else has loaded",
        _ => "that is not of this project",
    };
    format!(
        "this kernel has a congestion control '{kernel_name}' {whose}; a study with cca = \"{name}\" runs with it"
    )
}

/// Whose the control is that has the name of one of ours and is not ours; `None` if there is none.
///
/// # Errors
/// That only root may ask, or that the kernel can't.
pub fn other(own: &Own) -> Result<Option<Other>, String> {
    let maps = bpf::maps().map_err(|error| refused("list", &error))?;
    let has_programs = maps.iter().filter(|map| map.kind == bpf::STRUCT_OPS).any(|map| {
        let value = map.value(0).unwrap_or_default();
        state::of_control(&value).1 && state::is_named(&value, own.kernel_name)
    });
    let is_ours = |copy: &Loaded| copy.own == own && copy.is_registered;
    if of_maps(maps).iter().any(is_ours) || !is_known(own)? {
        return Ok(None);
    }
    Ok(Some(if has_programs { Other::Programs } else { Other::Kernel }))
}

/// Unloads a control, if it is loaded.
///
/// # Errors
/// What the kernel refused.
pub fn unload(own: &'static Own) -> Result<Done, String> {
    let command = format!("unload {}", own.name);
    let Some(loaded) = registered(own, &command)? else { return Ok(Done::WasNotLoaded) };
    loaded.map.delete(0).map_err(|error| refused(&command, &error))?;
    Ok(Done::Unloaded {
        sockets: loaded.sockets.unwrap_or(0),
        is_default: default() == own.kernel_name,
    })
}

/// A study's `NAME-linux` is the kernel's own control of that name.
///
/// # Errors
/// The kernel has ours by that name.
pub(crate) fn check_is_kernels_own(name: &str) -> Result<(), String> {
    let Some(own) = name.strip_suffix("-linux").and_then(Own::named) else { return Ok(()) };
    // Who may not ask has not loaded it either; then it is as good as the kernel's.
    match loaded().unwrap_or_default().iter().any(|other| other.own == own && other.is_registered) {
        true => Err(format!(
            "'{name}' is a model of the kernel's own, and the '{}' of this kernel is this project's: write cca = \"{}\", or unload it: sudo sojourn live cca unload {}",
            own.kernel_name, own.name, own.name
        )),
        false => Ok(()),
    }
}

/// What to type for congestion controls that a kernel lacks.
pub(crate) fn advice(missing: &[&str]) -> String {
    let (own, others): (Vec<&str>, Vec<&str>) =
        missing.iter().partition(|name| Own::named(name).is_some());
    let load = (!own.is_empty()).then(|| {
        let names = own.iter().filter_map(|name| Own::named(name)).map(|own| own.name);
        format!("sudo sojourn live cca load {}", names.collect::<Vec<_>>().join(" "))
    });
    let module = others.first().map(|first| format!("If it is a module: modprobe tcp_{first}"));
    load.into_iter().chain(module).collect::<Vec<_>>().join(". ")
}

/// Why a call failed, and what to type.
fn refused(command: &str, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            format!("only root may do this: sudo sojourn live cca {command}")
        }
        Some(libc::ENOSYS) => "this kernel has no BPF (CONFIG_BPF_SYSCALL)".to_owned(),
        _ => format!("the kernel's BPF: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::net::{
        AddressFamily, SocketType, accept, bind, connect, connect_unspec, getsockname, listen,
        sockopt,
    };
    use sojourn_core::FlowSample;

    use super::*;
    use crate::{sys, tcp_info, testbed};

    /// The kernel has a control only once.
    static KERNEL: Mutex<()> = Mutex::new(());

    /// Unloads a control that a test has loaded.
    struct Unloads(
        &'static Own,
        #[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>,
    );

    impl Drop for Unloads {
        fn drop(&mut self) {
            let _ = unload(self.0);
        }
    }

    /// Loads a control for a test; `None`, and a word about it, where that can't be done or another has done it.
    fn loaded_for_test(own: &'static Own) -> Option<Unloads> {
        let kernel = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has loaded one, of whichever version, wants to keep it.
        if is_known(own) != Ok(false) {
            eprintln!("skipped: the kernel has '{}' already", own.kernel_name);
            return None;
        }
        match load(own) {
            Ok(Done::Loaded) => Some(Unloads(own, kernel)),
            other => {
                eprintln!("skipped: {other:?}");
                None
            }
        }
    }

    fn stream_with(control: &str) -> OwnedFd {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
        let socket = socket.expect("it is made");
        sockopt::set_tcp_congestion(&socket, control).expect("it is loaded");
        socket
    }

    /// Connects a socket, and sends so many bytes that a control has a model.
    fn send_over(socket: OwnedFd) -> OwnedFd {
        const BYTES: usize = 300_000;
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
        let at: SocketAddr = listener.local_addr().expect("it has one");
        connect(&socket, &at).expect("it listens");
        let mut sender = TcpStream::from(socket);
        let (mut receiver, _) = listener.accept().expect("it has come");
        let (said, heard) = std::sync::mpsc::channel();
        // It reads on until the sender has closed.
        std::thread::spawn(move || {
            receiver.read_exact(&mut vec![0; BYTES]).expect("it comes");
            let _ = said.send(());
            let _ = std::io::copy(&mut receiver, &mut std::io::sink());
        });
        sender.write_all(&[0; BYTES]).expect("it is sent");
        heard.recv().expect("it reads all");
        sender.into()
    }

    #[test]
    fn the_default_is_the_only_copy_of_its_name() {
        assert_eq!(holder(["bbr3", "bbr_n_plus"].into_iter(), "bbr_n_plus"), Some(1));
        assert_eq!(holder(["bbr3", "bbr_n_plus"].into_iter(), "cubic"), None);
        assert_eq!(holder(["bbr3", "bbr3"].into_iter(), "bbr3"), None);
    }

    #[test]
    fn who_is_not_root_is_told_what_to_type() {
        let error = io::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(
            refused("load bbr-n+", &error),
            "only root may do this: sudo sojourn live cca load bbr-n+"
        );
    }

    #[test]
    fn a_socket_that_gets_a_control_again_begins_anew() {
        let own = &CONTROLS[0];
        let Some(_unloads) = loaded_for_test(own) else { return };
        let control = Control::found(own.kernel_name).expect("it can be read");
        let state = |socket: &OwnedFd| {
            let mut sample = FlowSample::default();
            control.add_state(socket, true, &mut sample);
            control.check().expect("it has a state");
            (sample.phase, sample.rounds, sample.bw.is_some())
        };
        let begins = ("STARTUP", Some(0), false);
        let set = |socket: &OwnedFd, name| sockopt::set_tcp_congestion(socket.as_fd(), name);
        let socket = send_over(stream_with(own.kernel_name));
        let (_, rounds, has_bw) = state(&socket);
        assert!(rounds.is_some_and(|rounds| rounds > 0) && has_bw, "{:?}", state(&socket));
        set(&socket, "reno").expect("each kernel has it");
        set(&socket, own.kernel_name).expect("it is loaded");
        assert_eq!(state(&socket), begins);
        // Over another connection.
        connect_unspec(&socket).expect("it can be ended");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
        let at: SocketAddr = listener.local_addr().expect("it has one");
        let socket = send_over(socket);
        assert!(state(&socket).1.is_some_and(|rounds| rounds > 0));
        connect_unspec(&socket).expect("it can be ended");
        connect(&socket, &at).expect("it listens");
        assert_eq!(state(&socket), begins);
    }

    #[test]
    fn the_time_of_a_repeated_syn_is_no_smallest_round_trip_time() {
        let own = &CONTROLS[0];
        let Some(_unloads) = loaded_for_test(own) else { return };
        let control = Control::found(own.kernel_name).expect("it can be read");
        let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
        let listener = listener.expect("it is made");
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        // Then only one connection waits to be accepted, and a SYN that comes meanwhile is dropped.
        listen(&listener, 0).expect("it can");
        let at = SocketAddrV4::try_from(getsockname(&listener).expect("it has one"));
        let at = at.expect("it is of this family");
        let (first, second) = (stream_with(own.kernel_name), stream_with(own.kernel_name));
        connect(&first, &at).expect("it listens");
        std::thread::scope(|scope| {
            let connects = scope.spawn(|| connect(&second, &at));
            wait_until(|| {
                let (mut room, level) = ([0; tcp_info::ROOM], libc::IPPROTO_TCP);
                let info = sys::socket_option(second.as_fd(), level, libc::TCP_INFO, &mut room);
                let info = info.map_err(|error| error.to_string())?;
                Ok(tcp_info::sample(info, "bbr3", &[]).retrans_total > 0)
            })
            .expect("it waits");
            let _accepted = accept(&listener).expect("it has come");
            connects.join().expect("it ends").expect("it is accepted");
        });
        let mut sample = FlowSample::default();
        control.add_state(&second, true, &mut sample);
        control.check().expect("it has a state");
        assert_eq!((sample.phase, sample.model_min_rtt), ("STARTUP", None));
    }

    #[test]
    fn a_connection_without_state_grows_to_its_initial_window_again() {
        let own = &CONTROLS[0];
        let Some(_unloads) = loaded_for_test(own) else { return };
        let done = testbed::on_thread(|| {
            sys::unshare(sys::Own::Network).map_err(|error| error.to_string())?;
            // Of each network since Linux 6.7.
            let has_own = std::fs::write("/proc/sys/net/core/optmem_max", "4096");
            if let Err(problem) = has_own.map_err(|error| error.to_string()).and(set_loopback("up"))
            {
                eprintln!("skipped: {problem}");
                return Ok(());
            }
            let socket = send_over(stream_with(own.kernel_name));
            let control = Control::found(own.kernel_name)?;
            let sample = || {
                let mut room = [0; tcp_info::ROOM];
                let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
                let info = sys::socket_option(socket.as_fd(), level, option, &mut room);
                let info = info.map_err(|error| error.to_string())?;
                let mut sample = tcp_info::sample(info, own.kernel_name, &[]);
                control.add_state(&socket, tcp_info::is_established(info), &mut sample);
                Ok::<_, String>(sample)
            };
            assert_eq!(sample()?.cwnd, 10);
            // So that a run with it ends with the reason.
            assert!(control.check().is_err_and(|problem| problem.contains("optmem_max")));
            set_loopback("down")?;
            rustix::net::send(&socket, &[0; 5000], rustix::net::SendFlags::empty())
                .map_err(|error| error.to_string())?;
            wait_until(|| Ok(sample()?.timeouts_total > 0))?;
            assert_eq!(sample()?.cwnd, 1);
            set_loopback("up")?;
            wait_until(|| {
                rustix::net::send(&socket, &[0; 5000], rustix::net::SendFlags::DONTWAIT)
                    .map_err(|error| error.to_string())?;
                Ok(sample()?.cwnd == 10)
            })
        });
        done.expect("it does");
    }

    fn set_loopback(state: &str) -> Result<(), String> {
        let status = std::process::Command::new("ip").args(["link", "set", "lo", state]).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("ip: {other:?}")),
        }
    }

    /// It is looked at often, and long.
    fn wait_until(mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
        for _ in 0..2000 {
            if is_so()? {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Err("it never is".to_owned())
    }
}
