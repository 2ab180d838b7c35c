//! The loop, and the invariants that every run must keep.

use alloc::vec::Vec;

use sojourn_core::{
    Direction, Event, FlowId, FlowSample, Observer, Packet, PortId, QueueSample, Queued, Span,
    StreamAddress, Time, Who,
};
use sojourn_link::DelayLine;
use sojourn_scenario::Scenario;
use sojourn_wire::{Books, Exit, Wire};

use crate::agenda::{Agenda, Place};
use crate::ends::Ends;

/// Runs `scenario` to its end and tells `observer` of every event.
///
/// # Errors
/// A [`Violation`] when the run broke an invariant: then the model is wrong, not the scenario.
pub fn run<O: Observer>(
    scenario: &Scenario,
    address: StreamAddress,
    observer: &mut O,
) -> Result<Outcome, Violation> {
    let mut engine = Engine::new(scenario, address, observer);
    engine.run()?;
    Ok(engine.outcome())
}

/// What is left at the end of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: Time,
    /// What `ss` would show of each flow; `None` if it is not TCP.
    pub flows: Vec<Option<FlowSample>>,
    /// What `tc -s` would show of each link.
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
    #[error("time went back from {from} to {to}")]
    Time { from: Time, to: Time },
    #[error("at {at}: nothing moves on: {wakes} wakes without time passing")]
    Standstill { at: Time, wakes: u64 },
}

/// More wakes than this at one moment mean that two machines call each other for ever.
const MOST_WAKES_AT_ONCE: u64 = 10_000_000;

struct Engine<'a, O> {
    now: Time,
    /// Links, two ends of each flow, the step of the time series, and two pipes of each flow, if any
    /// flow has a propagation of its own.
    agenda: Agenda,
    links: Vec<Wire<Packet>>,
    flows: Vec<FlowState>,
    /// The first link of each flow's way forward and back.
    entries: Vec<[Option<PortId>; 2]>,
    scenario: &'a Scenario,
    observer: &'a mut O,
    /// Bytes that left an end and that reached one.
    sent: u64,
    arrived: u64,
    wakes: u64,
    next_step: Time,
    steps: u64,
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

/// The links of one direction of a flow, and the propagation that only this flow has behind them.
struct Way {
    links: Vec<PortId>,
    delay: Span,
    pipe: DelayLine<Packet>,
}

impl Way {
    fn new(links: &[PortId], delay: Span) -> Self {
        Self { links: links.to_vec(), delay, pipe: DelayLine::default() }
    }

    /// Nothing ever enters the pipe.
    fn ends_with_its_links(&self) -> bool {
        !self.links.is_empty() && self.delay.is_zero()
    }
}

/// What comes behind `link`, and propagation that every packet has there, because the ways of all
/// who use it end there and are equally long. It can as well be the link's own: then one pipe
/// holds them all.
fn exit_of(flows: &mut [FlowState], link: PortId) -> (Exit, Span) {
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

fn bytes_in(pipe: &DelayLine<Packet>) -> u64 {
    pipe.iter().map(|packet| u64::from(packet.wire_len())).sum()
}

/// To count a window is much work beside a step.
const STEPS_BETWEEN_COUNTS: u64 = 16;

/// Ends of a flow in the agenda, relative to its first; its pipes are in the same order.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;

impl<'a, O: Observer> Engine<'a, O> {
    fn new(scenario: &'a Scenario, address: StreamAddress, observer: &'a mut O) -> Self {
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
                let (exit, delay) = exit_of(&mut flows, port);
                let mut link = Wire::new(config, port, exit, address);
                link.lengthen(delay);
                link
            })
            .collect();
        let ways = flows.iter().flat_map(|flow| [&flow.forward, &flow.reverse]);
        let pipes =
            if ways.into_iter().all(Way::ends_with_its_links) { 0 } else { 2 * flows.len() };
        let places = links.len() + 2 * flows.len() + 1 + pipes;
        let mut engine = Self {
            now: Time::ZERO,
            agenda: Agenda::new(links.len(), places, end),
            links,
            entries: flows
                .iter()
                .map(|flow| [&flow.forward, &flow.reverse].map(|way| way.links.first().copied()))
                .collect(),
            flows,
            scenario,
            observer,
            sent: 0,
            arrived: 0,
            wakes: 0,
            next_step: Time::ZERO + scenario.step,
            steps: 0,
        };
        for flow in 0..engine.flows.len() {
            engine.reschedule_sender(flow);
        }
        engine.set_step();
        engine
    }

    fn run(&mut self) -> Result<(), Violation> {
        let end = Time::ZERO + self.scenario.duration;
        self.sample();
        let mut at_once = 0;
        while self.turn(end, &mut at_once)? {}
        self.now = end;
        self.settle_before(end + Span::from_nanos(1));
        if self.next_step - self.scenario.step < end {
            self.sample();
        }
        self.check_counts()?;
        self.check()
    }

    /// Wakes whoever comes first; false when that is after `end`. Counts wakes `at_once`, without time
    /// passing.
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

    #[inline]
    fn wake(&mut self, place: Place) -> Result<(), Violation> {
        let links = self.links.len() as u32;
        let index = place.0;
        if index < links {
            self.wake_link(index as usize);
            return Ok(());
        }
        let flow = ((index - links) / 2) as usize;
        if flow >= self.flows.len() {
            return self.wake_other(index);
        }
        match (index - links) % 2 {
            SENDER => self.wake_sender(flow),
            _ => self.wake_receiver(flow),
        }
        Ok(())
    }

    /// Neither a link nor an end.
    fn wake_other(&mut self, index: u32) -> Result<(), Violation> {
        let first_pipe = self.step_place().0 + 1;
        if index < first_pipe {
            return self.step();
        }
        let flow = ((index - first_pipe) / 2) as usize;
        match (index - first_pipe) % 2 {
            0 => self.deliver(flow, Direction::Forward),
            _ => self.deliver(flow, Direction::Reverse),
        }
        Ok(())
    }

    fn step_place(&self) -> Place {
        Place((self.links.len() + 2 * self.flows.len()) as u32)
    }

    #[inline]
    fn end_place(&self, flow: usize, end: u32) -> Place {
        Place((self.links.len() + 2 * flow) as u32 + end)
    }

    fn pipe_place(&self, flow: usize, direction: Direction) -> Place {
        Place(self.step_place().0 + 1 + 2 * flow as u32 + direction as u32)
    }

    /// The agenda may call a sender at a time that it has put off since; then nothing happens.
    fn wake_sender(&mut self, flow: usize) {
        if self.flows[flow].ends.next_sender_wake() <= self.now {
            self.flows[flow].ends.wake_sender(self.now, self.observer);
            self.drain_sender(flow);
        }
        let wake = self.flows[flow].ends.next_sender_wake();
        let place = self.end_place(flow, SENDER);
        self.agenda.set(place, wake);
    }

    fn wake_receiver(&mut self, flow: usize) {
        if let Some(answer) = &self.flows[flow].ends.wake_receiver(self.now) {
            self.depart(flow, answer);
        }
        let wake = self.flows[flow].ends.next_receiver_wake();
        let place = self.end_place(flow, RECEIVER);
        self.agenda.set(place, wake);
    }

    /// Sends what the sender may send.
    #[inline]
    fn drain_sender(&mut self, flow: usize) {
        // Shown where it was made: taken out of its option, each packet would be copied again.
        while let Some(packet) = &self.flows[flow].ends.poll_transmit(self.now) {
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
            Some(link) => self.offer(link.index(), packet),
            None => self.propagate(packet, self.now),
        }
    }

    #[inline(always)]
    fn offer(&mut self, link: usize, packet: &Packet) {
        let now = self.now;
        let state = &mut self.links[link];
        if state.exit() == Exit::OwnDelays {
            self.offer_slowly(link, packet);
            return;
        }
        // As long as something is under way, its arrival comes first.
        let is_asleep = state.under_way().is_empty();
        state.settle(now, self.observer);
        state.offer(now, packet, self.observer);
        state.settle(now, self.observer);
        if is_asleep {
            let wake = state.next_wake();
            self.agenda.set(Place(link as u32), wake);
        }
    }

    /// To a link behind which a flow's own propagation may begin.
    #[inline(never)]
    fn offer_slowly(&mut self, link: usize, packet: &Packet) {
        self.settle(link);
        self.links[link].offer(self.now, packet, self.observer);
        self.settle(link);
        let wake = self.links[link].next_wake();
        self.agenda.set(Place(link as u32), wake);
    }

    /// Pulls all that is due by now.
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

    /// All links do what was due before `time`.
    fn settle_before(&mut self, time: Time) {
        for link in 0..self.links.len() {
            while self.links[link].due() < time {
                self.pull(link);
            }
        }
    }

    /// The same, what is due first on any link before what is due later on another.
    fn settle_in_order_before(&mut self, time: Time) {
        let first_due =
            |links: &[Wire<Packet>]| (0..links.len()).min_by_key(|link| links[*link].due());
        while let Some(link) = first_due(&self.links)
            && self.links[link].due() < time
        {
            self.pull(link);
        }
    }

    /// What `link` just sent, if it sent anything, goes on by its flow's own propagation, if it
    /// has one.
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
        }
    }

    /// The flow's own propagation begins at `from`.
    #[inline(never)]
    fn propagate(&mut self, packet: &Packet, from: Time) {
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        let way = flow.way_mut(packet.direction);
        let was_empty = way.pipe.is_empty();
        way.pipe.push(from + way.delay, *packet);
        if was_empty {
            let at = from + way.delay;
            let place = self.pipe_place(index, packet.direction);
            self.agenda.set(place, at);
        }
    }

    /// What has crossed `link` enters the next one, or reaches its end.
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

    /// The link was woken for what is due, or it may have been.
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

    /// What has crossed a flow's last part reaches its end.
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
        match packet.direction {
            Direction::Forward => {
                let ends = &mut self.flows[flow].ends;
                let answer = &ends.on_forward(now, packet, self.observer);
                let wake = ends.next_receiver_wake();
                if let Some(answer) = answer {
                    self.depart(flow, answer);
                }
                let place = self.end_place(flow, RECEIVER);
                self.agenda.set_quiet_if_sooner(place, wake);
            }
            Direction::Reverse => {
                self.flows[flow].ends.on_reverse(now, packet, self.observer);
                self.drain_sender(flow);
                self.reschedule_sender(flow);
            }
        }
    }

    /// A row of the time series ends, or the warm-up: what was before has happened.
    fn step(&mut self) -> Result<(), Violation> {
        self.settle_before(self.now);
        if self.now < self.next_step {
            for index in 0..self.links.len() {
                let sample = self.links[index].sample(self.now);
                let who = Who::Port(PortId(index as u16));
                self.observer.record(self.now, who, &Event::WarmQueueSample(&sample));
            }
            self.set_step();
            return Ok(());
        }
        self.sample();
        self.next_step += self.scenario.step;
        self.set_step();
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_COUNTS) {
            self.check_counts()?;
        }
        self.check()
    }

    fn set_step(&mut self) {
        let warm = Time::ZERO + self.scenario.warmup;
        let next = if warm > self.now { warm.min(self.next_step) } else { self.next_step };
        self.agenda.set(self.step_place(), next);
    }

    /// Tells the state of every sender and queue.
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
    }

    /// Senders count as selectively acknowledged, lost and retransmitted what is.
    fn check_counts(&self) -> Result<(), Violation> {
        match self.flows.iter().position(|flow| !flow.ends.have_counted_right()) {
            Some(flow) => Err(Violation::Miscount { at: self.now, flow }),
            None => Ok(()),
        }
    }

    /// Bytes neither appear nor vanish, on any link and on the whole; what is acknowledged has
    /// been received, and what is received has been sent.
    fn check(&self) -> Result<(), Violation> {
        let at = self.now;
        let mut inside = 0;
        let mut dropped = 0;
        for (index, link) in self.links.iter().enumerate() {
            let books = link.books();
            inside += books.waiting + books.under_way;
            dropped += books.dropped + books.lost;
            if !books.balance() {
                return Err(Violation::PortConservation { at, port: PortId(index as u16), books });
            }
        }
        for (index, flow) in self.flows.iter().enumerate() {
            inside += bytes_in(&flow.forward.pipe) + bytes_in(&flow.reverse.pipe);
            if let Some([una, next, sent]) = flow.ends.out_of_sequence() {
                return Err(Violation::Sequence { at, flow: index, una, next, sent });
            }
        }
        let (sent, arrived) = (self.sent, self.arrived);
        if sent != arrived + dropped + inside {
            return Err(Violation::Conservation { at, sent, arrived, dropped, inside });
        }
        Ok(())
    }

    fn outcome(&self) -> Outcome {
        let now = self.now;
        Outcome {
            end: now,
            flows: self.flows.iter().map(|flow| flow.ends.sample(now)).collect(),
            links: self.links.iter().map(|link| link.sample(now)).collect(),
            queue_details: self.links.iter().map(Wire::queue_details).collect(),
            wakes: self.wakes,
        }
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, Rate};
    use sojourn_host::tcp::Config as Transport;
    use sojourn_link::RateConfig;
    use sojourn_scenario::{App, Flow, Host, Link as LinkConfig};

    use super::*;

    /// All that happened, in words.
    #[derive(Default)]
    struct Story(Vec<String>);

    impl Observer for Story {
        fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
            self.0.push(format!("{now} {who:?} {event:?}"));
        }
    }

    /// Offloaded flows so fast that a burst seldom waits a millisecond for the next one, over a
    /// queue that overflows.
    fn scenario() -> Scenario {
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
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links: vec![link("queue", "bfifo limit 750000"), link("back", "pfifo limit 1000")],
            flows: flows.collect(),
        }
    }

    fn story(scenario: &Scenario, mut disturb: impl FnMut(&mut Engine<'_, Story>)) -> Vec<String> {
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
