//! At which interfaces of this machine hosts are heard.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sojourn_core::ETHERNET_HEADER;

use crate::address;
use crate::headers::ARP;
use crate::offload::{HEADER, LONGEST};

/// How long a host may take until it is heard.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How often hosts are asked to say something.
const TICK: Duration = Duration::from_millis(100);

/// Listens for a while. For each host `heard` has the interfaces at which it was, by their positions.
pub(super) fn hear(interfaces: &[File], heard: &mut [BTreeSet<usize>]) {
    let began = Instant::now();
    let mut room = vec![0; LONGEST];
    while let Some(left) = TICK.checked_sub(began.elapsed()) {
        let mut fds: Vec<PollFd<'_>> = interfaces
            .iter()
            .map(|own| PollFd::from_borrowed_fd(own.as_fd(), PollFlags::IN))
            .collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        // Interrupted or not, what is there is read.
        let _ = poll(&mut fds, Some(&timeout));
        for (at, mut interface) in interfaces.iter().enumerate() {
            // One without a frame says so as an error.
            let Ok(length) = interface.read(&mut room) else { continue };
            let host = asks(&room[..length]).and_then(address::host_of);
            if let Some(heard) = host.and_then(|host| heard.get_mut(host.index())) {
                heard.insert(at);
            }
        }
    }
}

/// The address of who asks for another one's device (ARP, RFC 826), of a frame as an interface gives it.
fn asks(frame: &[u8]) -> Option<Ipv4Addr> {
    let before = HEADER + ETHERNET_HEADER as usize;
    if frame.get(before - 2..before)? != ARP {
        return None;
    }
    let sender: [u8; 4] = frame.get(before + 14..before + 18)?.try_into().ok()?;
    Some(sender.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_asks_is_known_by_its_address() {
        let mut frame = vec![0; HEADER + 12];
        frame.extend(ARP);
        // Of Ethernet, IPv4, six and four bytes: a question.
        frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 1, 0, 2]);
        assert_eq!(asks(&frame), Some(Ipv4Addr::new(10, 1, 0, 2)));
        assert_eq!(asks(&frame[..frame.len() - 1]), None);
        frame[HEADER + 13] = 0;
        assert_eq!(asks(&frame), None);
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), is_arp in any::<bool>()) {
            let mut bytes = bytes;
            if is_arp && let Some(kind) = bytes.get_mut(HEADER + 12..HEADER + 14) {
                kind.copy_from_slice(&ARP);
            }
            let known = asks(&bytes);
            prop_assert!(known.is_none() || bytes.len() >= HEADER + 32);
        }
    }
}
