use sojourn_core::{Bytes, DropReason, Stream, Time};

use super::*;
use crate::testing::{packet, stream};
use crate::{Discipline, Ticket};

sojourn_core::params! {
    /// A FIFO under another name, for tests.
    struct Plain: "plain", "first in first out" {
        limit: u32 = "2", "packets that may wait";
    }
}

impl Discipline for Plain {
    type Queue = fifo::Fifo<Ticket>;

    fn build(&self, random: Stream) -> fifo::Fifo<Ticket> {
        fifo::Fifo::new(&fifo::Config::Packets(self.limit), random)
    }
}

struct Silent;

impl<P> Sink<P> for Silent {
    fn dropped(&mut self, _now: Time, _packet: P, _why: DropReason) {}

    fn marked(&mut self, _now: Time, _packet: &P) {}
}

#[test]
fn a_discipline_from_outside_is_read_printed_and_carries_packets() {
    let mut kinds = crate::kinds();
    kinds.add(external::<Plain>()).expect("its name is free");
    let config = Config::parse_of(&kinds, "plain limit 3").expect("it is registered");
    assert_eq!(config.to_string(), "plain limit 3");
    assert_ne!(Config::parse_of(&kinds, "plain"), Ok(config.clone()));
    assert!(Config::parse("plain").is_err(), "nobody else knows it");

    let mut queue = config.build(stream(1));
    let now = Time::ZERO;
    for id in 0..5 {
        let refused = matches!(
            queue.enqueue(now, packet(id), &mut Silent),
            Enqueue::Dropped(dropped, DropReason::Full) if dropped.id == id
        );
        assert_eq!(refused, id >= 3, "{id}");
    }
    for id in 0..3 {
        let Dequeue::Packet(sent, _) = queue.dequeue(now, &mut Silent) else {
            panic!("{id} waits");
        };
        assert_eq!(sent.id, id);
    }
    assert!(matches!(queue.dequeue(now, &mut Silent), Dequeue::Empty));
}

#[test]
fn what_code_sets_out_of_bounds_is_refused() {
    let bad =
        [Config::Fifo(fifo::Config::Packets(0)), Config::Fifo(fifo::Config::Bytes(Bytes::ZERO))];
    for config in bad {
        assert!(config.check().is_err(), "{config}");
    }
    for kind in disciplines() {
        let needed = match kind.name {
            "red" => "limit 100000 avpkt 1000",
            "tbf" => "rate 1mbit burst 5000 limit 9000",
            _ => "",
        };
        let config = Config::parse(&format!("{} {needed}", kind.name)).expect("it is complete");
        assert_eq!(config.check(), Ok(()), "{config}");
        assert_eq!(config.name(), kind.name);
    }
    let Ok(Config::FqCodel(mut codel)) = Config::parse("fq_codel") else {
        panic!("fq_codel is built in");
    };
    codel.flows = 0;
    let error = Config::FqCodel(codel.clone()).check().expect_err("no flows");
    assert!(error.to_string().contains("flows"), "{error}");
    (codel.flows, codel.quantum) = (1, 5);
    assert!(Config::FqCodel(codel).check().is_err(), "the kernel's least quantum is 256");
}
