//! `queue = "kernel …"`: a queue of a Linux kernel that forwards packets from one card to another.
//!
//! The kernel's HTB gives the discipline as much as the link can carry, so that the queue is in the kernel, and what comes out
//! can be sent at once. What is dropped in there never comes out. A discipline keeps the order of a flow, so a packet is known
//! to be lost when a later one of its flow has come out, or when nothing comes out though the link is idle.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use sojourn_core::param::{Maybe, time};
use sojourn_core::{DropReason, Ecn, Queued, Rate, Span, SpecError, Stream, Time};
use sojourn_qdisc::{Backlog, Dequeue, Discipline, Enqueue, Qdisc, Sink, Ticket};

use crate::ends;
use crate::fault::Fault;
use crate::frame::{self, Forwarded};
use crate::guest::{Guest, Start};
use crate::install::{self, Installed};
use crate::memory::Memory;
use crate::orders::{self, ORIGIN};
use crate::seat::Seat;
use crate::settings::kernel_digest;

sojourn_core::params! {
    /// A discipline of a kernel.
    pub struct Router: "kernel", "a discipline of a Linux kernel that forwards packets between two cards, in virtual time; on Linux with tc and a kernel from `sojourn kernel build`", check is_sound {
        pub qdisc: String = "fq_codel", "the discipline as tc has it, words joined with `+`: `fq_codel+target+5ms`";
        pub rate: Option<Rate> as Maybe<Rate> = "", "how fast its packets leave (by HTB): the rate of the link, as without it";
        pub kernel: Option<String> as Maybe<String> = "", "a kernel built for user mode: its path, or its name from `sojourn kernel build --name`; without it that of SOJOURN_KERNEL or of `sojourn kernel build`";
        pub digest: Option<String> as Maybe<String> = "", "which build that kernel must be; it is filled in, so that it is part of a run's name";
        pub patience: Span = "20s", time(Span::from_millis(10), Span::from_secs(1000)), "real time after which a kernel that says nothing has hung";
    }
}

fn is_sound(router: &Router) -> Result<(), SpecError> {
    let problem = |problem: String, allowed: &str| {
        Err(SpecError::new(problem).allow([allowed]).about("qdisc"))
    };
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    if router.qdisc.len() > 400 || router.words().count() > 24 || !router.words().all(is_word) {
        return problem(format!("qdisc '{}'", router.qdisc), "fq_codel+limit+1000+target+5ms");
    }
    if router.qdisc.starts_with("netem") {
        return problem("netem as a queue".to_owned(), "the link's own delay, loss and jitter");
    }
    Ok(())
}

/// The last bytes of the addresses of the card where packets arrive, of the one where they leave, and of whoever is behind it.
const IN: u8 = 3;
const OUT: u8 = 4;
const BEHIND: u8 = 5;

impl Router {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.qdisc.split('+')
    }

    fn start(&self, rate: Option<Rate>, seed: u64, origin: u64) -> Result<Guest, Fault> {
        let no_rate = || Fault::Refused("a queue of a kernel without a rate".to_owned());
        let rate = rate.ok_or_else(no_rate)?;
        let digest = kernel_digest(self.kernel.as_deref());
        if let Some(wanted) = self.digest.as_ref().filter(|wanted| **wanted != digest) {
            let problem =
                format!("the guest kernel has digest {digest}, and {wanted} is asked for");
            return Err(Fault::Refused(problem));
        }
        let (tc, ip) = (program("tc")?, program("ip")?);
        let mut guest = Guest::start(&Start {
            name: &format!("the queue {}", self.qdisc),
            kernel: &install::kernel(self.kernel.as_deref())?,
            installed: &Installed::new()?,
            seed,
            cards: &[IN, OUT],
            offload: false,
            memory: self.memory(),
            patience: Duration::from_nanos(self.patience.as_nanos()),
        })?;
        ends::tell_all(&mut guest, IN)?;
        let (error, _) = orders::ask(&mut guest, IN, b"S/proc/sys/net/ipv4/ip_forward\x001")?;
        if error != 0 {
            return Err(Fault::Refused(format!(
                "the guest kernel doesn't forward (error {error})"
            )));
        }
        // HTB forgets what it may send beyond its burst, so what its timer is late must fit in: the guest is a few microseconds ahead.
        const LATE: u64 = 8;
        let burst = (rate.as_bps() / 8 * LATE / 1_000_000).max(100);
        let rate = format!("{}bit", rate.as_bps());
        let shared =
            format!("htb rate {rate} ceil {rate} burst {burst} cburst {burst} quantum 1514");
        for line in [
            format!("{ip} link set eth1 up"),
            format!("{ip} addr add 10.3.0.1/24 dev eth1"),
            format!(
                "{ip} neigh add 10.3.0.2 lladdr 02:00:00:00:00:{BEHIND:02x} dev eth1 nud permanent"
            ),
            format!("{ip} route add 10.1.0.0/16 via 10.3.0.2"),
            format!("{tc} qdisc add dev eth1 root handle 1: htb default 1"),
            format!("{tc} class add dev eth1 parent 1: classid 1:1 {shared}"),
            format!(
                "{tc} qdisc add dev eth1 parent 1:1 handle 10: {}",
                self.qdisc.replace('+', " ")
            ),
        ] {
            let words: String = line.split(' ').flat_map(|word| [word, "\0"]).collect();
            let (status, text) = orders::ask(&mut guest, IN, format!("C{words}").as_bytes())?;
            if status != 0 {
                let text = String::from_utf8_lossy(&text);
                let said = text.trim().lines().next().unwrap_or("it says nothing").to_owned();
                let problem = match line.contains("handle 10:") {
                    false => format!("in the guest kernel `{line}` fails: {said}"),
                    true => format!(
                        "qdisc {} fails in the guest kernel: {said} (allowed: what its tc has, such as fq_codel+target+5ms, \
                         pfifo+limit+100, cake)",
                        self.qdisc
                    ),
                };
                return Err(Fault::Refused(problem));
            }
        }
        orders::wait_until(&mut guest, origin)?;
        Ok(guest)
    }

    /// Enough for as many packets or bytes as the discipline's words allow, whatever they count.
    fn memory(&self) -> Memory {
        /// What a frame of 1514 bytes takes that came through a card, and the least that one has.
        const PACKET: u64 = 2304;
        const LEAST: u64 = 60;
        let mut words = self.words().skip_while(|word| *word != "limit").skip(1);
        let Some(limit) = words.next() else { return Memory::USUAL };
        let digits = limit.trim_end_matches(|c: char| !c.is_ascii_digit());
        let Ok(number) = digits.parse::<u64>() else { return Memory::USUAL };
        let factor = match limit[digits.len()..].to_ascii_lowercase().as_bytes() {
            [b'k', ..] => 1 << 10,
            [b'm', ..] => 1 << 20,
            [b'g', ..] => 1 << 30,
            _ => 1,
        };
        let number = number.saturating_mul(factor);
        let packets = match self.words().next() {
            Some("bfifo" | "red" | "tbf") => number / LEAST,
            _ => number,
        };
        Memory::for_buffers(packets.saturating_mul(PACKET).min(1 << 40))
    }

    /// What a packet that is lost was most likely lost to.
    fn reason(&self) -> DropReason {
        match self.words().next() {
            Some("pfifo" | "bfifo" | "pfifo_fast") => DropReason::Full,
            _ => DropReason::Aqm,
        }
    }
}

/// A program of this machine, which the guest finds at the same place.
fn program(name: &str) -> Result<String, Fault> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/sbin", "/usr/sbin"].map(PathBuf::from);
    let found = std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && path.is_absolute());
    let none =
        || Fault::Missing(format!("there is no {name}; for example: apt-get install iproute2"));
    Ok(found.ok_or_else(none)?.display().to_string())
}

impl Discipline for Router {
    type Queue = Forwarding;

    fn complete(self) -> Self {
        let digest = self.digest.clone().unwrap_or_else(|| kernel_digest(self.kernel.as_deref()));
        Self { digest: Some(digest), ..self }
    }

    fn check_on(&self, rate: Option<Rate>) -> Result<(), SpecError> {
        let Some(rate) = rate else {
            let problem = "a queue of a kernel in front of a rate that varies, has no limit or counts more than packets with their Ethernet headers";
            return Err(SpecError::new(problem).allow(["a link of one fixed rate, such as 20Mbps"]));
        };
        match self.rate.filter(|own| *own != rate) {
            None => install::check(self.kernel.as_deref()),
            Some(own) => {
                let problem =
                    format!("rate {own} of a kernel's queue in front of a link of {rate}");
                let problem = SpecError::new(problem).about("rate");
                Err(problem.allow([format!("rate {rate}, or none, which means the link's")]))
            }
        }
    }

    fn build(&self, random: Stream) -> Forwarding {
        self.build_on(self.rate, random)
    }

    fn build_on(&self, rate: Option<Rate>, mut random: Stream) -> Forwarding {
        const TICK: u64 = 10_000_000;
        let seed = random.next_u64();
        let origin = ORIGIN + random.below(TICK);
        let seat = Seat::take();
        let (guest, fault) = match self.start(rate, seed, origin) {
            Ok(guest) => (Some(guest), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        Forwarding {
            guest,
            fault,
            origin,
            reason: self.reason(),
            quiet: rate.map_or(Span::ZERO, |rate| rate.time_for(3 * 1514)) + Span::from_millis(30),
            next: 0,
            inside: BTreeMap::new(),
            order: BTreeMap::new(),
            out: VecDeque::new(),
            lost: Vec::new(),
            held: Backlog::default(),
            active: Time::ZERO,
            _seat: seat,
        }
    }
}

/// What keeps its order: one flow's packets that a discipline treats alike.
type Kind = (u32, u32, u64, u8, bool);

fn kind(ticket: &Ticket) -> Kind {
    let flow = ticket.flow_key();
    (flow.src, flow.dst, flow.ports, ticket.dscp(), ticket.ecn() != Ecn::NotEct)
}

/// The queue at work.
#[derive(Debug)]
pub struct Forwarding {
    guest: Option<Guest>,
    fault: Option<String>,
    /// What the guest's clock shows when the run begins.
    origin: u64,
    reason: DropReason,
    /// If nothing comes out for so long, nothing is inside.
    quiet: Span,
    /// The number of the next packet.
    next: u32,
    /// Packets in the kernel, with when they arrived.
    inside: BTreeMap<u32, (Time, Ticket)>,
    order: BTreeMap<Kind, VecDeque<u32>>,
    /// Packets that have come out: when, when they arrived, and whether they were marked.
    out: VecDeque<(Time, Time, Ticket, bool)>,
    lost: Vec<Ticket>,
    /// All of these.
    held: Backlog,
    /// When something last came or went.
    active: Time,
    _seat: Seat,
}

impl Forwarding {
    /// The guest and all its processes end, and with it the queue; the run learns why at the next check.
    fn fail(&mut self, fault: String) {
        self.guest = None;
        self.fault.get_or_insert(fault);
    }

    /// Everything that is due in the guest by now.
    fn advance(&mut self, now: Time) {
        let at = self.origin + now.as_nanos();
        while let Some(guest) = &mut self.guest {
            match orders::take_turn(guest, at) {
                Ok(true) => self.collect(),
                Ok(false) => break,
                Err(fault) => self.fail(fault.to_string()),
            }
        }
    }

    fn collect(&mut self) {
        while let Some((time, card, bytes)) = self.guest.as_mut().and_then(Guest::take_sent) {
            let Some((number, tos)) = frame::number_of(&bytes).filter(|_| card == 1) else {
                continue;
            };
            let Some((arrived, mut ticket)) = self.inside.remove(&number) else {
                return self
                    .fail("it sends a packet that it has sent, or that seemed lost".to_owned());
            };
            let left = Time::from_nanos(time.saturating_sub(self.origin));
            let order = self.order.entry(kind(&ticket)).or_default();
            // Earlier ones would have come first.
            while let Some(earlier) = order.pop_front().filter(|earlier| *earlier != number) {
                self.lost.extend(self.inside.remove(&earlier).map(|(_, ticket)| ticket));
            }
            let is_marked = tos & 3 == 3 && ticket.ecn() != Ecn::Ce;
            if is_marked {
                ticket.mark_ce();
            }
            self.active = self.active.max(left);
            self.out.push_back((left, arrived, ticket, is_marked));
        }
    }

    fn tell_lost(&mut self, now: Time, sink: &mut dyn Sink<Ticket>) {
        for lost in std::mem::take(&mut self.lost) {
            self.let_go(&lost);
            sink.dropped(now, lost, self.reason);
        }
    }

    fn let_go(&mut self, ticket: &Ticket) {
        self.held.packets -= 1;
        self.held.bytes -= u64::from(ticket.wire_len());
    }

    /// Nothing that is inside will come out.
    fn give_up(&mut self) {
        self.lost.extend(std::mem::take(&mut self.inside).into_values().map(|(_, ticket)| ticket));
        self.order.clear();
    }
}

impl Qdisc<Ticket> for Forwarding {
    fn enqueue(
        &mut self,
        now: Time,
        ticket: Ticket,
        sink: &mut dyn Sink<Ticket>,
    ) -> Enqueue<Ticket> {
        /// What fits in one frame of Ethernet.
        const LONGEST: u32 = 1500;
        self.advance(now);
        self.tell_lost(now, sink);
        if ticket.ip_len() > LONGEST {
            self.fail(format!(
                "a packet of {} bytes: a kernel's queue takes no offloaded ones",
                ticket.ip_len()
            ));
        }
        let Some(guest) = &mut self.guest else {
            return Enqueue::Dropped(ticket, DropReason::Full);
        };
        let (flow, number) = (ticket.flow_key(), self.next);
        self.next = self.next.wrapping_add(1);
        let ecn = match ticket.ecn() {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        };
        let packet = Forwarded {
            number,
            len: ticket.ip_len(),
            tos: ticket.dscp() << 2 | ecn,
            from: flow.src,
            to: flow.dst,
            ports: flow.ports,
        };
        self.held.packets += 1;
        self.held.bytes += u64::from(ticket.wire_len());
        self.inside.insert(number, (now, ticket));
        self.order.entry(kind(&ticket)).or_default().push_back(number);
        self.active = self.active.max(now);
        let at = self.origin + now.as_nanos();
        match orders::deliver(guest, 0, at, &[frame::forwarded(IN, &packet)]) {
            Ok(()) => self.collect(),
            Err(fault) => self.fail(fault.to_string()),
        }
        Enqueue::Queued
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<Ticket>) -> Dequeue<Ticket> {
        self.advance(now);
        if self.guest.is_none() || now > self.active + self.quiet {
            self.give_up();
        }
        self.tell_lost(now, sink);
        if let Some((_, arrived, ticket, is_marked)) =
            self.out.pop_front_if(|(left, ..)| *left <= now)
        {
            if is_marked {
                sink.marked(now, &ticket);
            }
            self.let_go(&ticket);
            return Dequeue::Packet(ticket, now.since(arrived));
        }
        if let Some((left, ..)) = self.out.front() {
            return Dequeue::NotBefore(*left);
        }
        if self.inside.is_empty() {
            return Dequeue::Empty;
        }
        let later = self.active + self.quiet + Span::from_nanos(1);
        let next = self.guest.as_ref().and_then(Guest::request);
        let next = next.map_or(later, |next| Time::from_nanos(next.saturating_sub(self.origin)));
        Dequeue::NotBefore(next.min(later).max(now + Span::from_nanos(1)))
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn oldest(&self) -> Option<Time> {
        let inside = self.inside.first_key_value().map(|(_, (arrived, _))| *arrived);
        let out = self.out.front().map(|(_, arrived, ..)| *arrived);
        inside.into_iter().chain(out).min()
    }

    fn check(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }
}
