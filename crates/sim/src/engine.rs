//! The event loop, and the invariants that every run must keep.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{
    Body, Direction, Event, FlowId, FlowSample, Observer, Packet, PortId, QueueSample, Queued,
    Span, StreamAddress, Time, Who,
};
use sojourn_host::Contents;
use sojourn_link::{DelayLine, ReorderConfig};
use sojourn_scenario::{Checked, Offer, Scenario, Until};
use sojourn_wire::{Books, Carrier, Exit, Link as LinkConfig, Wire};

use crate::agenda::{Agenda, Place};
use crate::ends::Ends;

/// Runs `scenario` to its end and tells `observer` of every event.
///
/// # Errors
/// A [`Violation`] if the run broke an invariant: then the model is wrong, not the scenario.
pub fn run<O: Observer>(
    scenario: &Checked,
    address: StreamAddress,
    observer: &mut O,
) -> Result<Outcome, Violation> {
    let mut engine = Engine::new(scenario, address, observer);
    engine.run_until(engine.end())?;
    Ok(engine.outcome())
}

/// The state at the end of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: Time,
    /// What `ss` would show of each flow; `None` if it is not TCP.
    pub flows: Vec<Option<FlowSample>>,
    /// What `tc -s` would show of each port.
    pub links: Vec<QueueSample>,
    pub queue_details: Vec<Vec<(&'static str, u64)>>,
    pub wakes: u64,
}

/// An invariant that a run broke.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Violation {
    #[error(
        "at {at}: {sent} bytes sent, but {arrived} arrived, {dropped} dropped and {inside} still inside"
    )]
    Conservation { at: Time, sent: u64, arrived: u64, dropped: u64, inside: u64 },
    #[error("at {at}: port {} has other bytes than were offered to it: {books:?}", port.0)]
    PortConservation { at: Time, port: PortId, books: Books },
    #[error(
        "at {at}: flow {flow} has acknowledged segment {una} of {next} received and {sent} sent"
    )]
    Sequence { at: Time, flow: usize, una: u32, next: u32, sent: u32 },
    #[error("at {at}: flow {flow} counts other segments as in flight than its scoreboard shows")]
    Miscount { at: Time, flow: usize },
    #[error("at {at}: flow {flow}: {problem}")]
    Endpoint { at: Time, flow: usize, problem: String },
    #[error("at {at}: carrier {carrier}: {problem}")]
    Carrier { at: Time, carrier: usize, problem: String },
    #[error("at {at}: a packet of flow {} came out at port {} and not where its route says", flow.0, port.0)]
    Route { at: Time, flow: FlowId, port: PortId },
    #[error("time went back from {from} to {to}")]
    Time { from: Time, to: Time },
    #[error("at {at}: nothing moves on: {wakes} wakes without time passing")]
    Standstill { at: Time, wakes: u64 },
}

/// More wakes than this at one moment mean that two machines call each other for ever.
const MOST_WAKES_AT_ONCE: u64 = 10_000_000;

/// A world and its time. It can be run step by step, and inspected in between.
pub struct Engine<'a, O> {
    now: Time,
    /// Wakes of links, other carriers, the two ends of each flow, the step of the time series, and,
    /// if any flow has a propagation of its own, two pipes for each flow.
    agenda: Agenda,
    links: Vec<Wire<Packet>>,
    carriers: Vec<Box<dyn Carrier<Packet>>>,
    /// For each port that is no link, the position of its carrier.
    carrier_of: Vec<u32>,
    /// The number of links and carriers, whose places come before those of flows.
    ways: u32,
    flows: Vec<FlowState>,
    /// The first link of each flow's way forward and back.
    entries: Vec<[Option<PortId>; 2]>,
    contents: Contents,
    scenario: &'a Checked,
    observer: &'a mut O,
    /// Bytes that left an end, and bytes that reached one.
    sent: u64,
    arrived: u64,
    wakes: u64,
    /// Wakes since the time last advanced.
    at_once: u64,
    next_step: Time,
    steps: u64,
    stage: Stage,
    /// The latest that the run is over; earlier when its transfers are done, if it lasts so long.
    end: Time,
    /// Flows whose transfers it waits for.
    awaited: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Running,
    Over,
}

struct FlowState {
    ends: Ends,
    forward: Way,
    reverse: Way,
}

impl FlowState {
    fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    fn way_mut(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Reverse => &mut self.reverse,
        }
    }
}

/// The links of one direction of a flow, and the propagation after them that only this flow has.
struct Way {
    links: Vec<PortId>,
    delay: Span,
    pipe: DelayLine<Packet>,
}

impl Way {
    fn new(links: &[PortId], delay: Span) -> Self {
        Self { links: links.to_vec(), delay, pipe: DelayLine::default() }
    }

    /// True if nothing ever enters the pipe.
    fn ends_with_its_links(&self) -> bool {
        !self.links.is_empty() && self.delay.is_zero()
    }
}

/// Where packets go after `link`, and propagation that every packet has there. If the ways of all
/// flows that use the link end there and their propagation is equal, the link can have that
/// propagation itself: then one pipe holds all packets.
fn exit_of(flows: &mut [FlowState], link: PortId, config: &LinkConfig) -> (Exit, Span) {
    // A packet that overtakes others skips the link's propagation but not its flow's.
    if config.reorder != ReorderConfig::None {
        return (Exit::OwnDelays, Span::ZERO);
    }
    let mut ways: Vec<&mut Way> = flows
        .iter_mut()
        .flat_map(|flow| [&mut flow.forward, &mut flow.reverse])
        .filter(|way| way.links.contains(&link))
        .collect();
    let ends_here = |way: &Way| way.links.last() == Some(&link);
    let common = ways.first().map_or(Span::ZERO, |way| way.delay);
    if ways.iter().all(|way| ends_here(way) && way.delay == common) {
        ways.iter_mut().for_each(|way| way.delay = Span::ZERO);
        (Exit::Ends, common)
    } else if ways.iter().any(|way| ends_here(way) && !way.delay.is_zero()) {
        (Exit::OwnDelays, Span::ZERO)
    } else {
        (Exit::Onward, Span::ZERO)
    }
}

/// The packet has arrived or is lost, so its contents are freed.
fn release(contents: &mut Contents, packet: &Packet) {
    if let Body::Opaque { content, .. } = packet.body {
        contents.release(content, packet.segments);
    }
}

fn bytes_in(pipe: &DelayLine<Packet>) -> u64 {
    pipe.iter().map(|packet| u64::from(packet.wire_len())).sum()
}

/// The flows whose transfers a run waits for; none if it does not wait.
fn awaited(scenario: &Scenario) -> Vec<usize> {
    if scenario.until != Until::TransfersDone {
        return Vec::new();
    }
    let flows = scenario.flows.iter().enumerate();
    flows
        .filter(|(_, flow)| flow.offer(scenario.duration) == Offer::Transfers)
        .map(|(index, _)| index)
        .collect()
}

/// Counting a window takes long compared with a step, so it is not done at every step.
const STEPS_BETWEEN_COUNTS: u64 = 16;

/// The places of a flow's ends in the agenda, relative to its first; its pipes have the same order.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;

impl<'a, O: Observer> Engine<'a, O> {
    /// The world before anything happens. All that is random comes from `address`.
    pub fn new(scenario: &'a Checked, address: StreamAddress, observer: &'a mut O) -> Self {
        let end = Time::ZERO + scenario.duration;
        let mut flows: Vec<FlowState> = scenario
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| FlowState {
                ends: Ends::new(flow, FlowId(index as u32), address, end),
                forward: Way::new(&flow.forward, flow.forward_delay),
                reverse: Way::new(&flow.reverse, flow.reverse_delay),
            })
            .collect();
        let links: Vec<Wire<Packet>> = scenario
            .links
            .iter()
            .zip((0..).map(PortId))
            .map(|(config, port)| {
                let (exit, delay) = exit_of(&mut flows, port, config);
                let mut link = Wire::new(config, port, exit, address);
                link.lengthen(delay);
                link
            })
            .collect();
        let mut carriers = Vec::new();
        let mut carrier_of = Vec::new();
        for config in &scenario.carriers {
            let first = PortId((links.len() + carrier_of.len()) as u16);
            let ports = config.ports().len();
            carrier_of.extend(core::iter::repeat_n(carriers.len() as u32, ports));
            carriers.push(config.build(first, address));
        }
        let has_pipes = flows
            .iter()
            .flat_map(|flow| [&flow.forward, &flow.reverse])
            .any(|way| !way.ends_with_its_links());
        let pipes = if has_pipes { 2 * flows.len() } else { 0 };
        let ways = links.len() + carriers.len();
        let places = ways + 2 * flows.len() + 1 + pipes;
        let mut engine = Self {
            now: Time::ZERO,
            agenda: Agenda::new(ways, places, end),
            links,
            carriers,
            carrier_of,
            ways: ways as u32,
            entries: flows
                .iter()
                .map(|flow| [&flow.forward, &flow.reverse].map(|way| way.links.first().copied()))
                .collect(),
            flows,
            contents: Contents::default(),
            scenario,
            observer,
            sent: 0,
            arrived: 0,
            wakes: 0,
            at_once: 0,
            next_step: Time::ZERO + scenario.step,
            steps: 0,
            stage: Stage::New,
            end,
            awaited: awaited(scenario),
        };
        for flow in 0..engine.flows.len() {
            engine.reschedule_sender(flow);
            let wake = engine.flows[flow].ends.next_receiver_wake();
            engine.agenda.set_quiet_if_sooner(engine.end_place(flow, RECEIVER), wake);
        }
        engine.set_step();
        engine
    }

    /// The present time: that of the last event, or the time until which it was run.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the run is over, as far as is known.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Processes the next event; false if the run is over.
    ///
    /// # Errors
    /// An invariant is broken.
    pub fn step(&mut self) -> Result<bool, Violation> {
        self.begin();
        let mut at_once = self.at_once;
        let goes_on = self.turn(self.end, &mut at_once)?;
        self.at_once = at_once;
        self.look_for_end();
        if !goes_on {
            self.finish()?;
        }
        Ok(goes_on)
    }

    /// Processes all events until `time`, or until the run is over.
    ///
    /// # Errors
    /// An invariant is broken.
    pub fn run_until(&mut self, time: Time) -> Result<(), Violation> {
        self.begin();
        let mut at_once = self.at_once;
        // One loop, so that everything that a wake does is inlined into it.
        let awaits = !self.awaited.is_empty();
        let mut until = time.min(self.end);
        while self.turn(until, &mut at_once)? {
            if awaits {
                self.look_for_end();
                until = time.min(self.end);
            }
        }
        self.at_once = at_once;
        self.now = self.now.max(until);
        if until == self.end {
            self.finish()?;
        }
        Ok(())
    }

    /// The run is over now if it waited for transfers and all are done. What else happens at this
    /// moment still does.
    fn look_for_end(&mut self) {
        while let Some(flow) = self.awaited.last()
            && self.flows[*flow].ends.is_done()
        {
            self.awaited.pop();
            if self.awaited.is_empty() {
                self.end = self.now;
            }
        }
    }

    fn begin(&mut self) {
        if self.stage == Stage::New {
            self.stage = Stage::Running;
            self.sample();
        }
    }

    fn finish(&mut self) -> Result<(), Violation> {
        if self.stage == Stage::Over {
            return Ok(());
        }
        self.stage = Stage::Over;
        let end = self.end;
        self.now = end;
        self.settle_before(end + Span::from_nanos(1));
        if self.next_step - self.scenario.step < end {
            self.sample();
        }
        self.check_counts()?;
        self.check()
    }

    /// Wakes the component that comes first; false if that would be after `end`. `at_once` counts
    /// wakes at one time.
    #[inline(always)]
    fn turn(&mut self, end: Time, at_once: &mut u64) -> Result<bool, Violation> {
        let (at, place) = self.agenda.first();
        if at > end {
            return Ok(false);
        }
        if at <= self.now {
            if at < self.now {
                return Err(Violation::Time { from: self.now, to: at });
            }
            *at_once += 1;
            if *at_once > MOST_WAKES_AT_ONCE {
                return Err(Violation::Standstill { at, wakes: *at_once });
            }
        } else {
            *at_once = 0;
        }
        if self.observer.needs_order() {
            self.settle_in_order_before(at);
        }
        self.now = at;
        self.wakes += 1;
        self.wake(place)?;
        Ok(true)
    }

    #[inline(always)]
    fn wake(&mut self, place: Place) -> Result<(), Violation> {
        let index = place.0;
        if (index as usize) < self.links.len() {
            self.wake_link(index as usize);
            return Ok(());
        }
        // Places of carriers come before those of flows, so the difference wraps for them to a
        // number above that of any flow.
        let end = index.wrapping_sub(self.ways);
        let flow = (end / 2) as usize;
        if flow >= self.flows.len() {
            return self.wake_other(index);
        }
        match end % 2 {
            SENDER => self.wake_sender(flow),
            _ => self.wake_receiver(flow),
        }
        Ok(())
    }

    /// Wakes a place that is neither a link nor an end.
    fn wake_other(&mut self, index: u32) -> Result<(), Violation> {
        if index < self.ways {
            return self.wake_carrier(index as usize - self.links.len());
        }
        let first_pipe = self.step_place().0 + 1;
        if index < first_pipe {
            return self.end_row();
        }
        let flow = ((index - first_pipe) / 2) as usize;
        match (index - first_pipe) % 2 {
            0 => self.deliver(flow, Direction::Forward),
            _ => self.deliver(flow, Direction::Reverse),
        }
        Ok(())
    }

    fn step_place(&self) -> Place {
        Place(self.ways + 2 * self.flows.len() as u32)
    }

    #[inline]
    fn end_place(&self, flow: usize, end: u32) -> Place {
        Place(self.ways + 2 * flow as u32 + end)
    }

    fn pipe_place(&self, flow: usize, direction: Direction) -> Place {
        Place(self.step_place().0 + 1 + 2 * flow as u32 + direction as u32)
    }

    /// The agenda may call a sender at a time that the sender has put off since; then nothing
    /// happens.
    fn wake_sender(&mut self, flow: usize) {
        if self.flows[flow].ends.next_sender_wake() <= self.now {
            match &mut self.flows[flow].ends {
                Ends::Tcp { sender, .. } => {
                    sender.on_wake(self.now, self.observer);
                    self.drain_sender(flow);
                }
                Ends::Other(_) => self.wake_other_end(flow, Direction::Forward),
            }
        }
        let wake = self.flows[flow].ends.next_sender_wake();
        let place = self.end_place(flow, SENDER);
        self.agenda.set(place, wake);
    }

    fn wake_receiver(&mut self, flow: usize) {
        match &mut self.flows[flow].ends {
            Ends::Tcp { receiver, .. } => {
                let bytes = receiver.on_wake(self.now);
                if bytes > 0 {
                    report_read(self.observer, self.now, flow, bytes);
                }
                if let Some(answer) = &receiver.poll_transmit(self.now) {
                    self.depart(flow, answer);
                }
            }
            Ends::Other(_) => self.wake_other_end(flow, Direction::Reverse),
        }
        let wake = self.flows[flow].ends.next_receiver_wake();
        let place = self.end_place(flow, RECEIVER);
        self.agenda.set(place, wake);
    }

    /// Wakes the end that sends in that direction, of a flow that is no lone TCP connection.
    #[inline(never)]
    fn wake_other_end(&mut self, flow: usize, sends: Direction) {
        let (contents, observer) = (&mut self.contents, &mut *self.observer);
        if let Ends::Other(other) = &mut self.flows[flow].ends {
            let first = other.on_wake(self.now, sends, contents, observer);
            self.drain_other_end(flow, sends, first);
        }
    }

    /// Sends `first`, and what the end sends after it.
    fn drain_other_end(&mut self, flow: usize, sends: Direction, first: Option<Packet>) {
        let mut next = first;
        while let Some(packet) = &next {
            self.depart(flow, packet);
            let (contents, observer) = (&mut self.contents, &mut *self.observer);
            next = match &mut self.flows[flow].ends {
                Ends::Other(other) => other.poll_more(self.now, sends, contents, observer),
                Ends::Tcp { .. } => None,
            };
        }
    }

    /// Sends everything that a TCP sender may send now.
    #[inline]
    fn drain_sender(&mut self, flow: usize) {
        // Used inside the `Option` in which it was made; taking it out would copy each packet
        // again.
        while let Ends::Tcp { sender, .. } = &mut self.flows[flow].ends
            && let Some(packet) = &sender.poll_transmit(self.now)
        {
            self.depart(flow, packet);
        }
    }

    #[inline(always)]
    fn reschedule_sender(&mut self, flow: usize) {
        let wake = self.flows[flow].ends.next_sender_wake();
        let place = self.end_place(flow, SENDER);
        self.agenda.set_quiet_if_sooner(place, wake);
    }

    /// A packet leaves its end.
    #[inline(never)]
    fn depart(&mut self, flow: usize, packet: &Packet) {
        self.sent += u64::from(packet.wire_len());
        let who = Who::Flow(packet.flow);
        self.observer.record(self.now, who, &Event::Sent { packet });
        match self.entries[flow][packet.direction as usize] {
            Some(port) => self.offer(port.index(), packet),
            None => self.propagate(packet, self.now),
        }
    }

    #[inline(always)]
    fn offer(&mut self, link: usize, packet: &Packet) {
        let now = self.now;
        let Some(state) = self.links.get_mut(link) else {
            return self.offer_to_carrier(link, packet);
        };
        if state.exit() == Exit::OwnDelays {
            self.offer_slowly(link, packet);
            return;
        }
        // If something is under way, its arrival comes first and the link's wake stays.
        let is_asleep = state.under_way().is_empty();
        state.settle(now, self.observer);
        state.offer(now, packet, self.observer);
        state.settle(now, self.observer);
        if is_asleep {
            let wake = state.next_wake();
            self.agenda.set(Place(link as u32), wake);
        }
    }

    /// Offers a packet to a link after which a flow's own propagation may begin.
    #[inline(never)]
    fn offer_slowly(&mut self, link: usize, packet: &Packet) {
        self.settle(link);
        self.links[link].offer(self.now, packet, self.observer);
        self.settle(link);
        let wake = self.links[link].next_wake();
        self.agenda.set(Place(link as u32), wake);
    }

    #[cold]
    #[inline(never)]
    fn offer_to_carrier(&mut self, port: usize, packet: &Packet) {
        let carrier = self.carrier_of[port - self.links.len()] as usize;
        let port = PortId(port as u16);
        self.carriers[carrier].offer(self.now, port, *packet, self.observer);
        self.reschedule_carrier(carrier);
    }

    /// Packets that come out at one moment are taken at that moment, one for each wake.
    fn reschedule_carrier(&mut self, carrier: usize) {
        let wake = self.carriers[carrier].next_wake().max(self.now);
        self.agenda.set(Place((self.links.len() + carrier) as u32), wake);
    }

    /// Passes on what has crossed `carrier`.
    #[inline(never)]
    fn wake_carrier(&mut self, carrier: usize) -> Result<(), Violation> {
        let now = self.now;
        self.carriers[carrier].on_wake(now, self.observer);
        let delivered = self.carriers[carrier].poll_deliver(now);
        self.reschedule_carrier(carrier);
        let Some((port, packet)) = &delivered else { return Ok(()) };
        let way = self.flows[packet.flow.index()].way(packet.direction);
        let passed = usize::from(packet.hop);
        if passed == 0 || way.links.get(passed - 1) != Some(port) {
            return Err(Violation::Route { at: now, flow: packet.flow, port: *port });
        }
        if passed == way.links.len() && !way.delay.is_zero() {
            self.propagate(packet, now);
        } else {
            self.pass_on(packet);
        }
        Ok(())
    }

    /// Pulls everything due by now.
    fn settle(&mut self, link: usize) {
        while self.links[link].due() <= self.now {
            self.pull(link);
        }
    }

    fn pull(&mut self, link: usize) {
        let state = &mut self.links[link];
        state.pull(self.observer);
        if state.exit() == Exit::OwnDelays {
            self.hand_on(link);
        }
    }

    /// Lets all links do what was due before `time`.
    fn settle_before(&mut self, time: Time) {
        for link in 0..self.links.len() {
            while self.links[link].due() < time {
                self.pull(link);
            }
        }
    }

    /// The same, but in order of time over all links.
    fn settle_in_order_before(&mut self, time: Time) {
        let first_due =
            |links: &[Wire<Packet>]| (0..links.len()).min_by_key(|link| links[*link].due());
        while let Some(link) = first_due(&self.links)
            && self.links[link].due() < time
        {
            self.pull(link);
        }
    }

    /// If `link` has just sent a packet whose flow has a propagation of its own, passes the packet
    /// on to that.
    #[inline(never)]
    fn hand_on(&mut self, link: usize) {
        let pipe = self.links[link].under_way();
        let Some((at, packet)) = pipe.back().copied() else {
            return;
        };
        let flow = &self.flows[packet.flow.0 as usize];
        let way = flow.way(packet.direction);
        if usize::from(packet.hop) == way.links.len() && !way.delay.is_zero() {
            pipe.withdraw();
            self.propagate(&packet, at);
        } else {
            pipe.sort_last();
        }
    }

    /// The flow's own propagation of the packet begins at `from`.
    #[inline(never)]
    fn propagate(&mut self, packet: &Packet, from: Time) {
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        let way = flow.way_mut(packet.direction);
        let at = from + way.delay;
        let comes_first = at < way.pipe.next();
        way.pipe.insert(at, *packet);
        if comes_first {
            let place = self.pipe_place(index, packet.direction);
            self.agenda.set(place, at);
        }
    }

    /// What has crossed `link` enters the next link, or reaches its end.
    #[inline]
    fn wake_link(&mut self, link: usize) {
        let state = &mut self.links[link];
        if state.exit() == Exit::OwnDelays || state.under_way().is_empty() {
            self.wake_link_slowly(link);
            return;
        }
        let packet = &state.under_way().pop();
        let mut wake = state.under_way().next();
        if wake.is_never() {
            state.settle(self.now, self.observer);
            wake = state.next_wake();
        }
        self.agenda.set(Place(link as u32), wake);
        if state.exit() == Exit::Ends {
            self.arrive(packet);
        } else {
            self.pass_on(packet);
        }
    }

    /// Wakes a link that may have to be pulled.
    #[inline(never)]
    fn wake_link_slowly(&mut self, link: usize) {
        let arrived = self.links[link].under_way().pop_due(self.now);
        self.settle(link);
        let wake = self.links[link].next_wake();
        self.agenda.set(Place(link as u32), wake);
        if let Some(packet) = &arrived {
            self.pass_on(packet);
        }
    }

    /// A packet enters the next link of its way, or reaches its end.
    #[inline(never)]
    fn pass_on(&mut self, packet: &Packet) {
        let flow = &self.flows[packet.flow.0 as usize];
        let way = flow.way(packet.direction);
        match way.links.get(usize::from(packet.hop)) {
            Some(next) => self.offer(next.index(), packet),
            None => self.arrive(packet),
        }
    }

    /// A packet that has crossed a flow's own propagation reaches its end.
    #[inline(never)]
    fn deliver(&mut self, flow: usize, direction: Direction) {
        let state = &mut self.flows[flow];
        let way = state.way_mut(direction);
        let Some(packet) = way.pipe.pop_due(self.now) else {
            return;
        };
        let next = way.pipe.next();
        let place = self.pipe_place(flow, direction);
        self.agenda.set(place, next);
        self.arrive(&packet);
    }

    #[inline(always)]
    fn arrive(&mut self, packet: &Packet) {
        let now = self.now;
        let flow = packet.flow.0 as usize;
        self.arrived += u64::from(packet.wire_len());
        let who = Who::Flow(packet.flow);
        self.observer.record(now, who, &Event::Arrived { packet });
        match &mut self.flows[flow].ends {
            Ends::Tcp { sender, receiver } => match packet.direction {
                Direction::Forward => {
                    receiver.on_packet(now, packet, self.observer);
                    let answer = &receiver.poll_transmit(now);
                    let wake = receiver.next_wake();
                    if let Some(answer) = answer {
                        self.depart(flow, answer);
                    }
                    let place = self.end_place(flow, RECEIVER);
                    self.agenda.set_quiet_if_sooner(place, wake);
                }
                Direction::Reverse => {
                    sender.on_packet(now, packet, self.observer);
                    self.drain_sender(flow);
                    self.reschedule_sender(flow);
                }
            },
            Ends::Other(_) => self.arrive_at_other_end(flow, packet),
        }
    }

    #[inline(never)]
    fn arrive_at_other_end(&mut self, flow: usize, packet: &Packet) {
        let (contents, observer) = (&mut self.contents, &mut *self.observer);
        let Ends::Other(other) = &mut self.flows[flow].ends else { return };
        let first = other.on_packet(self.now, packet, contents, observer);
        release(&mut self.contents, packet);
        let (sends, end) = match packet.direction {
            Direction::Forward => (Direction::Reverse, RECEIVER),
            Direction::Reverse => (Direction::Forward, SENDER),
        };
        self.drain_other_end(flow, sends, first);
        let wake = match sends {
            Direction::Forward => self.flows[flow].ends.next_sender_wake(),
            Direction::Reverse => self.flows[flow].ends.next_receiver_wake(),
        };
        let place = self.end_place(flow, end);
        self.agenda.set_quiet_if_sooner(place, wake.max(self.now));
    }

    /// A row of the time series ends, or the warm-up. Everything before has happened.
    fn end_row(&mut self) -> Result<(), Violation> {
        self.settle_before(self.now);
        if self.now < self.next_step {
            for index in 0..self.links.len() {
                let sample = self.links[index].sample(self.now);
                let who = Who::Port(PortId(index as u16));
                self.observer.record(self.now, who, &Event::WarmQueueSample(&sample));
            }
            for (port, carrier) in self.carrier_ports() {
                let sample = self.carriers[carrier].sample(self.now, port);
                self.observer.record(self.now, Who::Port(port), &Event::WarmQueueSample(&sample));
            }
            self.set_step();
            return Ok(());
        }
        self.free_lost();
        self.sample();
        self.next_step += self.scenario.step;
        self.set_step();
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_COUNTS) {
            self.check_counts()?;
        }
        self.check()
    }

    /// Frees the contents of packets that were dropped or lost.
    fn free_lost(&mut self) {
        let contents = &mut self.contents;
        let mut free = |packet: Packet| release(contents, &packet);
        self.links.iter_mut().for_each(|link| link.take_lost(&mut free));
        self.carriers.iter_mut().for_each(|carrier| carrier.take_lost(&mut free));
    }

    fn set_step(&mut self) {
        let warm = Time::ZERO + self.scenario.warmup;
        let next = if warm > self.now { warm.min(self.next_step) } else { self.next_step };
        self.agenda.set(self.step_place(), next);
    }

    /// Reports the state of every sender and queue.
    fn sample(&mut self) {
        let now = self.now;
        for (index, flow) in self.flows.iter().enumerate() {
            if let Some(sample) = flow.ends.sample(now) {
                let who = Who::Flow(FlowId(index as u32));
                self.observer.record(now, who, &Event::FlowSample(&sample));
            }
        }
        for (index, link) in self.links.iter().enumerate() {
            let sample = link.sample(now);
            let who = Who::Port(PortId(index as u16));
            self.observer.record(now, who, &Event::QueueSample(&sample));
        }
        for (port, carrier) in self.carrier_ports() {
            let sample = self.carriers[carrier].sample(now, port);
            self.observer.record(now, Who::Port(port), &Event::QueueSample(&sample));
        }
    }

    /// The ports that are no links, and the position of the carrier of each.
    fn carrier_ports(&self) -> impl Iterator<Item = (PortId, usize)> + use<O> {
        let first = self.links.len() as u16;
        let carriers: Vec<u32> = self.carrier_of.clone();
        (first..).map(PortId).zip(carriers.into_iter().map(|carrier| carrier as usize))
    }

    /// Checks that senders count what is selectively acknowledged, lost and retransmitted.
    fn check_counts(&self) -> Result<(), Violation> {
        match self.flows.iter().position(|flow| !flow.ends.have_counted_right()) {
            Some(flow) => Err(Violation::Miscount { at: self.now, flow }),
            None => Ok(()),
        }
    }

    /// Checks that bytes neither appear nor vanish, on any link and in total; that what is
    /// acknowledged has been received, and what is received has been sent.
    fn check(&self) -> Result<(), Violation> {
        let at = self.now;
        let mut inside = 0;
        let mut dropped = 0;
        let links = (0..).map(PortId).zip(self.links.iter().map(Wire::books));
        let others =
            self.carrier_ports().map(|(port, carrier)| (port, self.carriers[carrier].books(port)));
        for (port, books) in links.chain(others) {
            inside += books.waiting + books.under_way;
            dropped += books.dropped + books.lost;
            if !books.balance() {
                return Err(Violation::PortConservation { at, port, books });
            }
        }
        for (carrier, state) in self.carriers.iter().enumerate() {
            state.check(at).map_err(|problem| Violation::Carrier { at, carrier, problem })?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            inside += bytes_in(&flow.forward.pipe) + bytes_in(&flow.reverse.pipe);
            if let Some([una, next, sent]) = flow.ends.out_of_sequence() {
                return Err(Violation::Sequence { at, flow: index, una, next, sent });
            }
            flow.ends.check().map_err(|problem| Violation::Endpoint {
                at,
                flow: index,
                problem,
            })?;
        }
        let (sent, arrived) = (self.sent, self.arrived);
        if sent != arrived + dropped + inside {
            return Err(Violation::Conservation { at, sent, arrived, dropped, inside });
        }
        Ok(())
    }

    /// The present state of the world.
    pub fn outcome(&self) -> Outcome {
        let now = self.now;
        let others: Vec<(PortId, usize)> = self.carrier_ports().collect();
        let sample = |&(port, carrier): &(PortId, usize)| self.carriers[carrier].sample(now, port);
        let details = |&(port, carrier): &(PortId, usize)| self.carriers[carrier].details(port);
        Outcome {
            end: now,
            flows: self.flows.iter().map(|flow| flow.ends.sample(now)).collect(),
            links: self
                .links
                .iter()
                .map(|link| link.sample(now))
                .chain(others.iter().map(sample))
                .collect(),
            queue_details: self
                .links
                .iter()
                .map(Wire::queue_details)
                .chain(others.iter().map(details))
                .collect(),
            wakes: self.wakes,
        }
    }
}

/// Few applications read so; out of line, because what is inlined into the loop of a run is all its speed.
#[cold]
#[inline(never)]
fn report_read<O: Observer>(observer: &mut O, now: Time, flow: usize, bytes: u64) {
    observer.record(now, Who::Flow(FlowId(flow as u32)), &Event::Delivered { bytes });
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, Rate};
    use sojourn_host::tcp::Config as Transport;
    use sojourn_link::RateConfig;
    use sojourn_scenario::{App, Flow, Host, Link as LinkConfig};

    use super::*;

    /// Every event, in words.
    #[derive(Default)]
    struct Story(Vec<String>);

    impl Observer for Story {
        fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
            self.0.push(format!("{now} {who:?} {event:?}"));
        }
    }

    /// Offloaded flows so fast that the next burst usually comes within a millisecond, over a queue
    /// that overflows.
    fn scenario() -> Checked {
        let link = |name, queue| {
            let rate = RateConfig::fixed(Rate::from_bps(300_000_000)).expect("a positive rate");
            let queue = sojourn_qdisc::Config::parse(queue).expect("a discipline");
            LinkConfig::new(name, queue, rate, Span::from_micros(100))
        };
        let ccas = ["cubic", "cubic", "bbr", "reno"];
        let flows = ccas.iter().enumerate().map(|(index, cca)| {
            let cca = sojourn_cca::Config::parse(cca).expect("a controller");
            let transport = Transport {
                offload: true,
                offload_segments: 17,
                tso_rtt_log: 0,
                deferral: Span::from_secs(1),
                ..Transport::default()
            };
            let app = App::bulk(cca, transport);
            Flow::new(&format!("flow {index}"), app, &[0], &[1])
        });
        Scenario {
            duration: Span::from_millis(1500),
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links: vec![link("queue", "bfifo limit 750000"), link("back", "pfifo limit 1000")],
            flows: flows.collect(),
            carriers: Vec::new(),
        }
        .checked()
        .expect("a sound world")
    }

    fn story(scenario: &Checked, mut disturb: impl FnMut(&mut Engine<'_, Story>)) -> Vec<String> {
        let mut story = Story::default();
        let address = StreamAddress { seed: 1, run: 1 };
        let mut engine = Engine::new(scenario, address, &mut story);
        let end = Time::ZERO + scenario.duration;
        let mut at_once = 0;
        while engine.turn(end, &mut at_once).expect("invariants hold") {
            disturb(&mut engine);
        }
        story.0
    }

    #[test]
    fn an_end_that_is_called_when_it_did_not_ask_does_nothing() {
        let scenario = scenario();
        let undisturbed = story(&scenario, |_| ());
        assert!(undisturbed.len() > 20_000, "{} events", undisturbed.len());
        let mut random = StreamAddress { seed: 2, run: 1 }.stream(0, Purpose::Start);
        let mut calls = 0;
        let disturbed = story(&scenario, |engine| {
            if random.below(8) == 0 {
                let place = engine.end_place(random.below(4) as usize, random.below(2) as u32);
                let at = engine.now + Span::from_nanos(1 + random.below(1_000_000));
                engine.agenda.set_quiet_if_sooner(place, at);
                calls += 1;
            }
        });
        assert!(calls > 1000, "{calls} calls");
        let first = undisturbed.iter().zip(&disturbed).find(|(a, b)| a != b);
        assert_eq!(first, None);
        assert_eq!(undisturbed.len(), disturbed.len());
    }
}
