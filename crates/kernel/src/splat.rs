//! What a kernel prints when something is wrong in it.

/// A warning, an oops or a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splat {
    /// The line that says what it is, and those that follow it and say more.
    pub(crate) lines: Vec<String>,
    /// The functions of its trace, the innermost first.
    pub(crate) functions: Vec<String>,
}

impl Splat {
    /// All on one line.
    pub(crate) fn told(&self) -> String {
        let lines = self.lines.join(" | ");
        match self.functions.is_empty() {
            true => lines,
            false => format!("{lines} (in {})", self.functions.join(" < ")),
        }
    }
}

/// What a line of a splat begins with or has, behind a time in brackets.
const BEGIN: [&str; 12] = [
    "WARNING: ",
    "BUG: ",
    "kernel BUG at",
    "INFO: ",
    "Oops",
    "Kernel panic",
    "general protection fault",
    "UBSAN: ",
    "KASAN: ",
    "possible circular locking",
    "suspicious RCU usage",
    "inconsistent lock state",
];

/// What looks like one and is none.
const HARMLESS: [&str; 2] = ["INFO: lockdep is turned off", "INFO: task init"];

/// Every splat of a console, in order.
pub(crate) fn splats(console: &str) -> Vec<Splat> {
    const LINES: usize = 3;
    const FUNCTIONS: usize = 8;
    let mut all: Vec<Splat> = Vec::new();
    let mut in_trace = false;
    let mut is_open = false;
    for line in console.lines().map(without_time) {
        let begins = BEGIN.iter().any(|begin| line.starts_with(begin))
            && !HARMLESS.iter().any(|harmless| line.starts_with(harmless));
        // A panic that follows an oops, and a second line of lockdep, belong to what was said before.
        let goes_on = is_open && all.last().is_some_and(|last| last.functions.is_empty());
        if begins && !goes_on {
            all.push(Splat { lines: vec![line.to_owned()], functions: Vec::new() });
            (in_trace, is_open) = (false, true);
            continue;
        }
        let Some(last) = all.last_mut().filter(|_| is_open) else { continue };
        if line.starts_with("---[ end") {
            is_open = false;
        } else if line.starts_with("Call Trace:") {
            in_trace = true;
        } else if let Some(function) = function(line).filter(|_| in_trace) {
            // The beginning of a function is not where a call returns to.
            let is_begin = function.ends_with("+0x0");
            if last.functions.len() < FUNCTIONS && !is_begin && !is_of_printing(function) {
                last.functions.push(function.to_owned());
            }
        } else if in_trace {
            is_open = false;
        } else if last.lines.len() < LINES && says_more(line) {
            last.lines.push(line.to_owned());
        }
    }
    all
}

/// Lines of messages have no time, or `[    1.234567]` before them; those that a kernel that ends early had not printed have a level.
fn without_time(line: &str) -> &str {
    let line = line.trim();
    let line = match line.as_bytes() {
        [b'<', b'0'..=b'7', b'>', ..] => &line[3..],
        _ => line,
    };
    let time = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match time {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest.trim(),
        _ => line,
    }
}

/// ` [<600b1c2a>] ? tcp_sendmsg+0x30/0x50`.
fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix("[<")?.split_once(">]")?;
    let name = rest.trim().trim_start_matches("? ");
    name.split('/').next().filter(|name| name.contains('+'))
}

/// What prints a splat is in its trace.
pub(crate) fn is_of_printing(function: &str) -> bool {
    const OWN: [&str; 17] = [
        "dump_stack",
        "_printk",
        "vprintk",
        "show_stack",
        "panic",
        "um_set_signals",
        "get_signals",
        "set_signals",
        "__warn",
        "warn_slowpath",
        "block_signals",
        "unblock_signals",
        "printk",
        "um_get_signals",
        "report_bug",
        "dump_header",
        "bust_spinlocks",
    ];
    OWN.iter().any(|own| function.starts_with(own))
}

/// Registers, words of the stack and names of processes say little in one line.
fn says_more(line: &str) -> bool {
    const LITTLE: [&str; 11] = [
        "Modules linked in",
        "CPU:",
        "Stack:",
        "-----",
        "=====",
        "Pid:",
        "Hardware name",
        "RSP:",
        "sojourn:",
        "Received SIGSEGV",
        "RAX:",
    ];
    let is_hex = |word: &str| word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
    !line.is_empty()
        && !LITTLE.iter().any(|little| line.starts_with(little))
        && !line.split_whitespace().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_has_its_place_and_its_trace() {
        let console = "Linux version 6.1\n------------[ cut here ]------------\n\
            WARNING: CPU: 0 PID: 17 at net/ipv4/tcp.c:1234 tcp_sendmsg+0x12/0x50\nModules linked in:\n\
            CPU: 0 PID: 17 Comm: init Not tainted 6.1 #1\nStack:\n 00000000 609ef970 603ec089 603410fe\n\
            Call Trace:\n [<6002bd70>] ? um_set_signals+0x0/0x60\n [<603410fe>] ? _printk+0x0/0x9b\n\
            [<602ad470>] ? tcp_sendmsg+0x30/0x50\n [<601f87aa>] ? __sys_sendto+0x12a/0x170\n---[ end trace 0 ]---\n\
            something else\n";
        let all = splats(console);
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0].told(),
            "WARNING: CPU: 0 PID: 17 at net/ipv4/tcp.c:1234 tcp_sendmsg+0x12/0x50 (in tcp_sendmsg+0x30 < __sys_sendto+0x12a)"
        );
    }

    #[test]
    fn lockdep_and_times_are_understood() {
        let console = "[    0.010000] WARNING: possible circular locking dependency detected\n\
            [    0.010000] 6.1 #1 Not tainted\n[    0.010000] init/17 is trying to acquire lock:\n";
        let told = splats(console)[0].told();
        assert!(
            told.starts_with("WARNING: possible circular locking dependency detected | 6.1"),
            "{told}"
        );
        assert_eq!(splats("all is well\n0.00 BogoMIPS (lpj=1)\n"), []);
    }
}
