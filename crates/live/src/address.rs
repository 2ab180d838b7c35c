//! Addresses and ports: what a host and a flow are called in packets.

use std::net::Ipv4Addr;

use sojourn_core::{FlowId, HostId};

/// The addresses of all hosts begin with 10.
pub(crate) const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 0, 0, 0);

/// The receiver of the first flow listens here, that of the second at the next port. Its echo requests have that
/// number, too. Linux gives senders ports from 32768 on.
pub(crate) const FIRST_PORT: u16 = 10_000;

/// So many flows have ports of their own.
pub(crate) const MOST_FLOWS: usize = 20_000;

/// What a full segment carries if nothing else is said.
pub(crate) const MSS: u32 = 1448;

/// `10.1.0.1` is the first host.
pub(crate) fn of_host(host: HostId) -> Ipv4Addr {
    let [high, low] = host.0.to_be_bytes();
    // No address ends in 0 or 255, which would be a network's.
    Ipv4Addr::new(10, 1 + high, low / 200, 1 + low % 200)
}

pub(crate) fn host_of(address: Ipv4Addr) -> Option<HostId> {
    let [ten, high, middle, low] = address.octets();
    let low = u16::from(middle) * 200 + u16::from(low.checked_sub(1)?);
    let host = HostId(u16::from(high.checked_sub(1)?) << 8 | u16::from(u8::try_from(low).ok()?));
    (ten == 10 && of_host(host) == address).then_some(host)
}

/// Where the receiver of a flow listens.
pub(crate) fn port_of(flow: FlowId) -> u16 {
    FIRST_PORT.saturating_add(flow.0.min(MOST_FLOWS as u32) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_address_of_its_own() {
        for host in (0..=250 * 256).map(HostId) {
            assert_eq!(host_of(of_host(host)), Some(host));
        }
        assert_eq!(of_host(HostId(0)), Ipv4Addr::new(10, 1, 0, 1));
        for other in ["10.0.0.1", "10.1.0.0", "10.1.0.255", "11.1.0.1", "10.1.2.1", "0.0.0.0"] {
            let other: Ipv4Addr = other.parse().expect("an address");
            assert_eq!(host_of(other), None, "{other}");
        }
    }
}
