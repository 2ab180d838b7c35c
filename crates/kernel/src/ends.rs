//! The two ends of a flow, each a guest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sojourn_core::{
    Body, Direction, Event, FlowSample, Packet, Purpose, Span, SpecError, Time, Who,
};
use sojourn_host::{Around, Endpoint, Endpoints, FlowSetup};

use crate::conversation::Conversation;
use crate::fault::Fault;
use crate::frame::{self, RECEIVING, SENDING};
use crate::guest::{Guest, Start};
use crate::install::Installed;
use crate::orders::{self, ORIGIN};
use crate::seat::Seat;
use crate::settings::{Settings, Traffic};
use crate::tcp_info;

/// A report on a socket is asked for so long before it is due.
const EARLIER: Span = Span::from_micros(200);

/// The sending and the receiving end. What goes wrong is reported when the ends are checked.
pub(crate) fn pair(settings: &Settings, setup: &FlowSetup<'_>) -> [End; 2] {
    let conversation = Arc::new(Mutex::new(Conversation::default()));
    let seat = Arc::new(Seat::take());
    let end = |number: u8| {
        let started = Started::new(settings, setup, number);
        let orders = match (&started, number) {
            (Ok(_), SENDING) => sender_orders(settings, setup),
            _ => VecDeque::new(),
        };
        let (guest, fault) = match started {
            Ok(started) => (Some(started.guest), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        End {
            guest,
            fault,
            origin: origin(setup),
            direction: if number == SENDING { Direction::Forward } else { Direction::Reverse },
            leaving: VecDeque::new(),
            arrived: Vec::new(),
            due: Time::NEVER,
            coalesce: settings.coalesce,
            orders,
            step: settings.step,
            bytes: match settings.traffic {
                Traffic::Bulk { bytes, .. } => bytes.unwrap_or(0),
                Traffic::Ping { .. } => 0,
            },
            cc: settings.cc.clone(),
            ends: setup.ends,
            sample: None,
            conversation: conversation.clone(),
            _seat: seat.clone(),
        }
    };
    // The two start at the same time.
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| end(SENDING));
        let receiving = end(RECEIVING);
        [sending.join().expect("starting a guest doesn't panic"), receiving]
    })
}

/// A kernel's tick is at another moment in each run.
fn origin(setup: &FlowSetup<'_>) -> u64 {
    const TICK: u64 = 10_000_000;
    ORIGIN + setup.address.stream_named(setup.name, Purpose::Start).below(TICK)
}

/// A number for what the kernel of a guest draws at random.
fn seed(setup: &FlowSetup<'_>, number: u8) -> u64 {
    let mut stream = setup.address.stream_named(setup.name, Purpose::Application);
    (0..number).fold(0, |_, _| stream.next_u64())
}

fn sender_orders(settings: &Settings, setup: &FlowSetup<'_>) -> VecDeque<(Time, Vec<u8>)> {
    let mut orders = VecDeque::new();
    match &settings.traffic {
        Traffic::Bulk { bytes, rate } => {
            let rate = rate.map_or(0, |rate| rate.as_bps());
            // Whole segments every 10 ms.
            const SEGMENT: u64 = 1448;
            let chunk = (rate / 800 / SEGMENT).max(1) * SEGMENT;
            let numbers = [bytes.unwrap_or(0), rate, chunk];
            orders.push_back((setup.start, command(b'G', &numbers)));
            let first = setup.start.as_nanos() / settings.step.as_nanos() + 1;
            let report = Time::ZERO + Span::from_nanos(first * settings.step.as_nanos());
            orders.push_back((report - EARLIER, vec![b'I']));
        }
        Traffic::Ping { pause } => {
            orders.push_back((setup.start, command(b'P', &[pause.as_nanos(), 64])));
        }
    }
    if !setup.stop.is_never() {
        orders.push_back((setup.stop, vec![b'X']));
    }
    orders.make_contiguous().sort_by_key(|(time, _)| *time);
    orders
}

fn command(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    [kind].into_iter().chain(numbers).collect()
}

struct Started {
    guest: Guest,
}

impl Started {
    fn new(settings: &Settings, setup: &FlowSetup<'_>, number: u8) -> Result<Self, Fault> {
        let installed = Installed::new()?;
        let end = if number == SENDING { "sender" } else { "receiver" };
        let guest = Guest::start(&Start {
            name: &format!("the {end} of flow '{}'", setup.name),
            kernel: &settings.kernel()?,
            installed: &installed,
            seed: seed(setup, number),
            cards: &[number],
            offload: settings.offload,
            memory: settings.memory(number),
            patience: settings.patience,
        })?;
        let mut started = Self { guest };
        tell_all(&mut started.guest, number)?;
        set(&mut started.guest, number, settings.sysctls(number))?;
        if let Traffic::Bulk { .. } = settings.traffic {
            let kind = if number == SENDING { b'T' } else { b'L' };
            let mut order = vec![kind];
            let mut name = settings.cc.as_bytes().to_vec();
            name.resize(16, 0);
            order.extend(name);
            order.extend(settings.send_buffer.unwrap_or(0).to_le_bytes());
            order.extend(settings.receive_buffer.unwrap_or(0).to_le_bytes());
            let (error, _) = orders::ask(&mut started.guest, number, &order)?;
            if error != 0 {
                return Err(started.has_no_control(number, &settings.cc, error));
            }
        }
        orders::wait_until(&mut started.guest, origin(setup))?;
        Ok(started)
    }

    fn has_no_control(&mut self, number: u8, cc: &str, error: u32) -> Fault {
        match controls(&mut self.guest, number) {
            Ok(known) if !known.iter().any(|own| own == cc) => lacks(cc, &known),
            _ => Fault::Refused(format!(
                "the guest kernel refuses congestion control '{cc}' (error {error})"
            )),
        }
    }
}

/// Starts a guest and looks whether it has these settings and congestion controls.
///
/// # Errors
/// What it lacks, and what it has.
pub(crate) fn try_out(settings: &Settings, wanted: &[String]) -> Result<(), Fault> {
    let mut guest = Guest::start(&Start {
        name: "a trial",
        kernel: &settings.kernel()?,
        installed: &Installed::new()?,
        seed: 1,
        cards: &[SENDING],
        offload: settings.offload,
        memory: settings.memory(SENDING),
        patience: settings.patience,
    })?;
    set(&mut guest, SENDING, settings.sysctls(SENDING))?;
    let known = controls(&mut guest, SENDING)?;
    match wanted.iter().find(|wanted| !known.contains(wanted)) {
        None => Ok(()),
        Some(cc) => Err(lacks(cc, &known)),
    }
}

fn set<'a>(
    guest: &mut Guest,
    number: u8,
    sysctls: impl Iterator<Item = (&'a str, String)>,
) -> Result<(), Fault> {
    for (path, value) in sysctls {
        let order = format!("S/proc/sys/{}\0{value}", path.replace('.', "/"));
        let (error, _) = orders::ask(guest, number, order.as_bytes())?;
        if error != 0 {
            return Err(refused_sysctl(path, &value, error));
        }
    }
    Ok(())
}

/// From now on its console has all that its kernel says, not only what is of weight. One without this setting tells less.
pub(crate) fn tell_all(guest: &mut Guest, number: u8) -> Result<(), Fault> {
    orders::ask(guest, number, b"S/proc/sys/kernel/printk\x008").map(drop)
}

/// The congestion controls that a guest has.
fn controls(guest: &mut Guest, number: u8) -> Result<Vec<String>, Fault> {
    let order = b"R/proc/sys/net/ipv4/tcp_available_congestion_control";
    let (_, text) = orders::ask(guest, number, order)?;
    Ok(String::from_utf8_lossy(&text).split_whitespace().map(str::to_owned).collect())
}

fn lacks(cc: &str, known: &[String]) -> Fault {
    let problem = format!("the guest kernel has no congestion control '{cc}'");
    Fault::Refused(
        SpecError::new(problem).near(cc, known.iter().map(String::as_str)).allow(known).to_string(),
    )
}

fn refused_sysctl(path: &str, value: &str, error: u32) -> Fault {
    const NO_SUCH_FILE: u32 = 2;
    Fault::Refused(match error {
        NO_SUCH_FILE => format!(
            "the guest kernel has no sysctl {path} (allowed: the files in its /proc/sys, such as net.ipv4.tcp_sack)"
        ),
        error => {
            let why = std::io::Error::from_raw_os_error(error as i32);
            format!("the guest kernel refuses sysctl {path} = {value}: {why}")
        }
    })
}

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    guest: Option<Guest>,
    fault: Option<String>,
    /// What the guest's clock shows when the run begins.
    origin: u64,
    /// In which its packets go.
    direction: Direction,
    /// Frames with the time at which they leave.
    leaving: VecDeque<(Time, Vec<u8>)>,
    /// Frames that wait on its card until it is interrupted, and when that is.
    arrived: Vec<Vec<u8>>,
    due: Time,
    coalesce: Span,
    /// What it is told, and when; in order of time.
    orders: VecDeque<(Time, Vec<u8>)>,
    step: Span,
    /// What a transfer of limited length has that is not over; else 0.
    bytes: u64,
    cc: String,
    ends: Endpoints,
    sample: Option<FlowSample>,
    conversation: Arc<Mutex<Conversation>>,
    _seat: Arc<Seat>,
}

impl End {
    fn number(&self) -> u8 {
        match self.direction {
            Direction::Forward => SENDING,
            Direction::Reverse => RECEIVING,
        }
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&mut self, now: Time, frames: &[Vec<u8>]) {
        let at = self.origin + now.as_nanos();
        let Some(guest) = &mut self.guest else { return };
        match orders::deliver(guest, 0, at, frames) {
            Ok(()) => self.collect(now),
            Err(fault) => self.fail(now, &fault.to_string()),
        }
    }

    /// The guest and all its processes end; the run learns why at the next check.
    fn fail(&mut self, now: Time, fault: &str) {
        self.guest = None;
        self.leaving.clear();
        self.arrived.clear();
        self.due = Time::NEVER;
        self.orders.clear();
        self.fault = Some(format!("at {now}: {fault}"));
    }

    /// What the guest has sent is for the other end, or an answer.
    fn collect(&mut self, now: Time) {
        while let Some((time, _, bytes)) = self.guest.as_mut().and_then(Guest::take_sent) {
            let Some((kind, error, more)) = orders::answer(&bytes) else {
                if frame::read(&bytes).is_some() {
                    let time = Time::from_nanos(time.saturating_sub(self.origin));
                    self.leaving.push_back((time, bytes));
                }
                continue;
            };
            match kind {
                b'I' if error == 0 => self.sample = tcp_info::read(&more, &self.cc).or(self.sample),
                _ if error != 0 => {
                    let what = char::from(kind);
                    return self
                        .fail(now, &format!("the guest answers order {what} with error {error}"));
                }
                _ => {}
            }
        }
    }

    /// Everything that is due in the guest by now.
    fn advance(&mut self, now: Time) {
        let at = self.origin + now.as_nanos();
        while let Some(guest) = &mut self.guest {
            match orders::take_turn(guest, at) {
                Ok(true) => self.collect(now),
                Ok(false) => break,
                Err(fault) => self.fail(now, &fault.to_string()),
            }
        }
    }
}

impl Endpoint for End {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        let (bytes, arrival) = {
            let mut conversation = self.conversation();
            let Some(bytes) = conversation.arrive(packet, around.contents) else { return };
            let Some(frame) = frame::read(&bytes) else { return };
            let arrival = conversation.learn(&frame, packet.direction);
            (bytes, arrival)
        };
        let who = Who::Flow(self.ends.flow);
        let mut tell = |event: Event<'_>| around.observer.record(now, who, &event);
        if arrival.delivered > 0 {
            tell(Event::Delivered { bytes: arrival.delivered });
        }
        if let Some(sent) = arrival.sample_sent_at {
            tell(Event::Rtt { rtt: now.since(sent) });
        }
        if let Some(sent) = arrival.echo_sent_at {
            tell(Event::Ping { rtt: now.since(sent) });
        }
        if self.direction == Direction::Forward && self.bytes > 0 {
            let conversation = self.conversation();
            let (acked, asked) = (conversation.acked, conversation.asked);
            drop(conversation);
            if acked >= self.bytes {
                tell(Event::Completed { bytes: self.bytes, took: now.since(asked) });
                self.bytes = 0;
            }
        }
        if self.coalesce == Span::ZERO {
            return self.deliver(now, &[bytes]);
        }
        if self.arrived.is_empty() {
            self.due = now + self.coalesce;
        }
        self.arrived.push(bytes);
    }

    fn on_wake(&mut self, now: Time, _: &mut Around<'_>) {
        if self.due <= now {
            self.due = Time::NEVER;
            let arrived = std::mem::take(&mut self.arrived);
            self.deliver(now, &arrived);
        }
        while let Some((time, order)) = self.orders.pop_front_if(|(time, _)| *time <= now) {
            if order[0] == b'I' {
                let next = (time + self.step, order.clone());
                let place = self.orders.partition_point(|(other, _)| *other <= next.0);
                self.orders.insert(place, next);
            }
            self.deliver(now, &[frame::order(self.number(), &order)]);
        }
        self.advance(now);
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let (_, bytes) = self.leaving.pop_front_if(|(time, _)| *time <= now)?;
        let frame = frame::read(&bytes)?;
        let (ends, direction) = (self.ends, self.direction);
        let like = |len: u32, body: Body| match direction {
            Direction::Forward => ends.packet(now, len, body),
            Direction::Reverse => ends.answer(now, len, body),
        };
        Some(self.conversation().leave(now, direction, bytes, &frame, like, around.contents))
    }

    fn next_wake(&self) -> Time {
        let of_guest = self.guest.as_ref().and_then(Guest::request);
        let of_guest =
            of_guest.map_or(Time::NEVER, |next| Time::from_nanos(next.saturating_sub(self.origin)));
        let frame = self.leaving.front().map_or(Time::NEVER, |(time, _)| *time);
        let order = self.orders.front().map_or(Time::NEVER, |(time, _)| *time);
        of_guest.min(frame).min(order).min(self.due)
    }

    fn sample(&self, _: Time) -> Option<FlowSample> {
        match self.direction {
            Direction::Forward => self.sample,
            Direction::Reverse => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }
}
