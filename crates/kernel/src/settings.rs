//! What a flow between two guests is set to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use sojourn_core::{Rate, Span, SpecError};

use crate::fault::Fault;
use crate::frame::SENDING;
use crate::install;
use crate::memory::Memory;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Without it, the usual one.
    pub(crate) kernel: Option<String>,
    pub(crate) cc: String,
    pub(crate) traffic: Traffic,
    pub(crate) sysctls: Vec<(String, String)>,
    pub(crate) send_buffer: Option<u32>,
    pub(crate) receive_buffer: Option<u32>,
    /// The card cuts what is longer than a frame.
    pub(crate) offload: bool,
    /// How long an arrival waits for more before the kernel is interrupted.
    pub(crate) coalesce: Span,
    /// Between two reports of the socket.
    pub(crate) step: Span,
    pub(crate) patience: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Traffic {
    Bulk { bytes: Option<u64>, rate: Option<Rate> },
    Ping { pause: Span },
}

/// What a kernel of 128 MB would not set by itself: the buffers of one with a gigabyte or more.
const USUAL: [(&str, &str); 3] = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_mem", "65536 131072 262144"),
];

/// The first number of its `tcp_mem`.
const USUAL_PAGES: u64 = 65_536;

impl Settings {
    pub(crate) fn kernel(&self) -> Result<PathBuf, Fault> {
        install::kernel(self.kernel.as_deref())
    }

    /// In the order in which they are set.
    pub(crate) fn sysctls(&self, number: u8) -> impl Iterator<Item = (&str, String)> {
        let own = self.sysctls.iter().map(|(path, value)| (path.as_str(), value.clone()));
        let usual = USUAL.into_iter().map(|(path, value)| (path, value.to_owned()));
        // All sockets together may have as much as this one, without being short of memory.
        const PAGE: u64 = 4096;
        let pages = self.buffers(number) / PAGE * 2;
        let room = (pages > USUAL_PAGES)
            .then(|| ("net.ipv4.tcp_mem", format!("{pages} {} {}", 2 * pages, 4 * pages)));
        usual.chain(room).chain(own)
    }

    /// Enough for the buffer of the end of this number.
    pub(crate) fn memory(&self, number: u8) -> Memory {
        Memory::for_buffers(self.buffers(number))
    }

    /// What the buffer of the end of this number may take, in bytes as the kernel counts them.
    fn buffers(&self, number: u8) -> u64 {
        if let Traffic::Ping { .. } = self.traffic {
            return 0;
        }
        let (name, asked) = match number {
            SENDING => ("net.ipv4.tcp_wmem", self.send_buffer),
            _ => ("net.ipv4.tcp_rmem", self.receive_buffer),
        };
        // The kernel doubles what an application asks for.
        if let Some(asked) = asked {
            return 2 * u64::from(asked);
        }
        let own = self.sysctls.iter().rev().find(|(path, _)| path.replace('/', ".") == name);
        let most = own.and_then(|(_, value)| value.split_whitespace().nth(2)?.parse().ok());
        most.unwrap_or(0)
    }
}

/// What stands for a kernel in the name of a run: a digest, so that another build at the same place is another kernel.
pub(crate) fn kernel_digest(kernel: Option<&str>) -> String {
    let digest = install::kernel(kernel).ok().and_then(|path| digest_of(&path));
    digest.map_or_else(|| "none".to_owned(), |digest| format!("{digest:016x}"))
}

fn digest_of(path: &Path) -> Option<u64> {
    type Known = BTreeMap<PathBuf, (Option<SystemTime>, u64, u64)>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let metadata = path.metadata().ok()?;
    let state = (metadata.modified().ok(), metadata.len());
    let mut known = KNOWN.lock().ok()?;
    if let Some((time, len, digest)) = known.get(path)
        && (*time, *len) == state
    {
        return Some(*digest);
    }
    let digest = install::digest(&std::fs::read(path).ok()?);
    known.insert(path.to_owned(), (state.0, state.1, digest));
    Some(digest)
}

/// Reads `net.ipv4.tcp_ecn:1,net.ipv4.tcp_sack:0`; several values of one are joined with `+`.
pub(crate) fn sysctls(text: &str) -> Result<Vec<(String, String)>, SpecError> {
    let read = |part: &str| {
        let (path, value) = part.split_once(':')?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let is_path = !path.is_empty() && path.bytes().all(is_name) && !path.contains("..");
        let is_value = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        let long = path.len() + value.len() > 200;
        (is_path && is_value && !long).then(|| (path.to_owned(), value.replace('+', " ")))
    };
    text.split(',')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let problem = || {
                SpecError::new(format!("sysctl '{part}'"))
                    .allow(["net.ipv4.tcp_ecn:1", "net.ipv4.tcp_rmem:4096+131072+6291456"])
            };
            read(part).ok_or_else(problem)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sysctls_are_paths_and_values() {
        let read = sysctls("net.ipv4.tcp_ecn:1,net.ipv4.tcp_rmem:1+2+3").expect("both are right");
        assert_eq!(read[1], ("net.ipv4.tcp_rmem".to_owned(), "1 2 3".to_owned()));
        for wrong in ["tcp_ecn", "../x:1", "a b:1", ":1", "x:"] {
            assert!(sysctls(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_guest_has_room_for_its_buffer() {
        let settings = |sysctl: &str, send_buffer: Option<u32>| Settings {
            kernel: None,
            cc: "cubic".to_owned(),
            traffic: Traffic::Bulk { bytes: None, rate: None },
            sysctls: sysctls(sysctl).expect("it is right"),
            send_buffer,
            receive_buffer: None,
            offload: false,
            coalesce: Span::ZERO,
            step: Span::from_millis(100),
            patience: Duration::from_secs(20),
        };
        let large = settings("net.ipv4.tcp_rmem:4096+131072+268435456", None);
        assert_eq!(large.memory(SENDING), Memory::USUAL);
        assert_eq!(large.memory(SENDING + 1).to_string(), "512 MB");
        let settings = settings("", Some(1 << 30));
        assert_eq!(settings.memory(SENDING).to_string(), "3200 MB");
        let tcp_mem = settings.sysctls(SENDING).filter(|(path, _)| path.ends_with("tcp_mem"));
        assert_eq!(tcp_mem.last().expect("it has one").1, "1048576 2097152 4194304");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            if let Ok(all) = sysctls(&text) {
                prop_assert!(all.iter().all(|(path, _)| !path.contains('\0')));
            }
        }
    }
}
