use sojourn_core::{Body, NoObserver, Packet, Queued, Rate, Span};
use sojourn_link::{JitterConfig, LossConfig, PolicerConfig, RateConfig};
use sojourn_qdisc::Config;

use super::*;
use crate::suite;

const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 1 };

fn link(name: &str, queue: &str) -> Link {
    let rate = RateConfig::fixed(Rate::from_bps(70_000_000)).expect("a positive rate");
    let queue = Config::parse(queue).expect("a discipline");
    Link::new(name, queue, rate, Span::from_micros(40))
}

fn switch(queue: &str, buffer: u64, alpha: f64) -> SwitchConfig {
    let ports = ["a", "b", "c"].map(|name| link(name, queue)).into();
    SwitchConfig::new(ports, sharing(buffer, alpha)).expect("a switch")
}

fn sharing(buffer: u64, alpha: f64) -> Sharing {
    Sharing { buffer: Bytes::new(buffer), alpha }
}

fn ports<const N: usize>(first: u16) -> [PortId; N] {
    std::array::from_fn(|index| PortId(first + index as u16))
}

#[test]
fn a_switch_is_a_carrier() {
    for queue in ["pfifo limit 50", "bfifo limit 9000", "fq_codel", "cake bandwidth 60mbit"] {
        for (buffer, alpha) in [(9_000, 1.0), (100_000, 0.25), (1_000_000, 8.0)] {
            let config = switch(queue, buffer, alpha);
            suite::check(&|| Box::new(config.build(PortId(4), ADDRESS)), &ports::<3>(4));
        }
    }
    let many = (0..37).map(|port| link(&format!("port{port}"), "fq_codel")).collect();
    let many = SwitchConfig::new(many, sharing(300_000, 1.0)).expect("a switch");
    suite::check(&|| Box::new(many.build(PortId(4), ADDRESS)), &ports::<37>(4));
    let mut even = switch("pfifo limit 50", 1_000_000, 1.0).build(PortId(4), ADDRESS);
    let (rate, delay) = (Rate::from_bps(70_000_000), Span::from_micros(40));
    suite::check_rate(&mut even, PortId(5), rate, delay);
}

#[test]
fn a_wire_is_a_carrier() {
    let losses = ["none", "random 5%"].map(|loss| LossConfig::parse(loss).expect("a loss"));
    let policers = ["none", "rate 60mbit burst 9kb"]
        .map(|policer| PolicerConfig::parse(policer).expect("a policer"));
    let jitter = JitterConfig::parse("normal 1ms").expect("a jitter");
    for queue in [
        "pfifo limit 50",
        "bfifo limit 9000",
        "codel",
        "fq_codel",
        "tbf rate 50mbit burst 5kb limit 90kb",
    ] {
        for (loss, policer) in losses.iter().zip(&policers) {
            for jitter in [&JitterConfig::None, &jitter] {
                let link = Link {
                    loss: loss.clone(),
                    entry_loss: loss.clone(),
                    jitter: jitter.clone(),
                    policer: policer.clone(),
                    ..link("a", queue)
                };
                for exit in [Exit::Ends, Exit::Onward] {
                    let wire = || Wire::new(&link, PortId(2), exit, ADDRESS);
                    suite::check(&|| Box::new(wire()), &[PortId(2)]);
                }
            }
        }
    }
    let mut plain = Wire::new(&link("a", "pfifo limit 50"), PortId(2), Exit::Ends, ADDRESS);
    let (rate, delay) = (Rate::from_bps(70_000_000), Span::from_micros(40));
    suite::check_rate(&mut plain, PortId(2), rate, delay);
}

/// Choudhury and Hahne 1998, section III: with `n` ports that always have something to send, each
/// holds alpha / (1 + n alpha) of the memory.
#[test]
fn busy_ports_share_the_memory_as_the_formula_says() {
    for (busy, alpha, share) in [
        (1, 1.0, 1.0 / 2.0),
        (2, 1.0, 1.0 / 3.0),
        (3, 1.0, 1.0 / 4.0),
        (1, 8.0, 8.0 / 9.0),
        (2, 0.5, 0.25),
    ] {
        let buffer = 1_000_000;
        let mut switch: Switch<Packet> =
            switch("pfifo limit 100000", buffer, alpha).build(PortId(0), ADDRESS);
        for number in 0..6000 {
            for port in &ports::<3>(0)[..busy] {
                let packet = suite::packet(Time::ZERO, *port, number, 250);
                switch.offer(Time::ZERO, *port, packet, &mut NoObserver);
            }
        }
        for port in &ports::<3>(0)[..busy] {
            let held = switch.books(*port).waiting as f64 / buffer as f64;
            assert!(
                (held - share).abs() < 0.002,
                "{busy} ports, alpha {alpha}: {held}, not {share}"
            );
        }
    }
}

#[test]
fn a_bad_switch_is_refused() {
    let ports = || vec![link("a", "pfifo")];
    let new = |ports, buffer, alpha| SwitchConfig::new(ports, sharing(buffer, alpha));
    assert!(new(Vec::new(), 100_000, 1.0).is_err());
    assert!(new(ports(), 1513, 1.0).is_err());
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY, 129.0] {
        assert!(new(ports(), 100_000, alpha).is_err(), "{alpha}");
    }
}

/// A packet may be a handle to bytes that are kept elsewhere. CAKE cuts it; every segment comes
/// out, or is reported as lost, exactly once.
#[test]
fn bytes_kept_elsewhere_can_be_freed_segment_by_segment() {
    for (queue, buffer) in [("cake bandwidth 60mbit", 1_000_000), ("fq_codel", 60_000)] {
        let mut switch: Switch<Handle> = switch(queue, buffer, 1.0).build(PortId(0), ADDRESS);
        let mut segments = vec![0u32; 100];
        for (number, count) in segments.iter_mut().enumerate() {
            *count = 1 + number as u32 % 20;
            let mut packet = suite::packet(Time::ZERO, PortId(0), number as u32, *count * 1514);
            packet.segments = *count as u16;
            switch.offer(Time::ZERO, PortId(0), Handle(packet), &mut NoObserver);
        }
        let mut free = |Handle(packet): Handle| {
            let Body::Datagram { number, .. } = packet.body else { panic!("{packet:?}") };
            segments[number as usize] -= u32::from(packet.segments);
        };
        while !switch.next_wake().is_never() {
            let now = switch.next_wake();
            switch.on_wake(now, &mut NoObserver);
            while let Some((_, packet)) = switch.poll_deliver(now) {
                free(packet);
            }
        }
        switch.take_lost(&mut free);
        assert!(segments.iter().all(|left| *left == 0), "{queue}: {segments:?}");
    }
}

/// Not a simulated packet, but a handle: headers, and a number of bytes that are kept elsewhere.
#[derive(Clone, Copy)]
struct Handle(Packet);

impl Queued for Handle {
    fn wire_len(&self) -> u32 {
        self.0.wire_len()
    }
    fn ip_len(&self) -> u32 {
        self.0.ip_len()
    }
    fn segments(&self) -> u32 {
        self.0.segments()
    }
    fn truesize(&self) -> u32 {
        self.0.truesize()
    }
    fn flow_key(&self) -> sojourn_core::FlowKey {
        self.0.flow_key()
    }
    fn ecn(&self) -> sojourn_core::Ecn {
        self.0.ecn()
    }
    fn mark_ce(&mut self) {
        self.0.mark_ce();
    }
    fn dscp(&self) -> u8 {
        self.0.dscp()
    }
    fn pure_ack(&self) -> Option<sojourn_core::packet::PureAck> {
        None
    }
}

impl sojourn_qdisc::Reshape for Handle {
    fn split_first(&mut self) -> Option<Self> {
        self.0.split_first().map(Self)
    }
    fn wash(&mut self) {
        self.0.wash();
    }
}

impl Carried for Handle {
    fn headers(&self) -> &Packet {
        &self.0
    }
    fn leave_port(&mut self) {
        self.0.leave_port();
    }
    fn has_contents(&self) -> bool {
        true
    }
}
