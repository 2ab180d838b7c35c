//! The loop, and the invariants that every run must keep.

use sojourn_core::{
    Direction, Event, FlowId, FlowSample, Observer, Packet, QueueSample, Queued, Span,
    StreamAddress, Time, Who,
};
use sojourn_link::DelayLine;
use sojourn_scenario::Scenario;

use crate::agenda::{Agenda, Place};
use crate::ends::Ends;
use crate::link::Link;

/// Runs `scenario` to its end. Every event is told to `observer`, in order of time.
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
    #[error(
        "at {at}: link {link} was offered {offered} bytes, but sent {sent}, dropped {dropped} and holds {backlog}"
    )]
    LinkConservation { at: Time, link: usize, offered: u64, sent: u64, dropped: u64, backlog: u64 },
    #[error(
        "at {at}: flow {flow} has acknowledged segment {una} of {next} received and {sent} sent"
    )]
    Sequence { at: Time, flow: usize, una: u32, next: u32, sent: u32 },
    #[error("time went back from {from} to {to}")]
    Time { from: Time, to: Time },
    #[error("at {at}: nothing moves on: {wakes} wakes without time passing")]
    Standstill { at: Time, wakes: u64 },
}

/// More wakes than this at one moment mean that two machines call each other for ever.
const MOST_WAKES_AT_ONCE: u64 = 10_000_000;

struct Engine<'a, O> {
    now: Time,
    /// Links that pull, links' pipes, four places for each flow, the step of the time series.
    agenda: Agenda,
    links: Vec<Link>,
    flows: Vec<FlowState>,
    /// The first link of each flow's way forward and back.
    entries: Vec<[Option<u16>; 2]>,
    scenario: &'a Scenario,
    observer: &'a mut O,
    /// Bytes that left an end and that reached one.
    sent: u64,
    arrived: u64,
    wakes: u64,
    next_step: Time,
}

struct FlowState {
    ends: Ends,
    forward: Way,
    reverse: Way,
}

/// The links of one direction of a flow, and the propagation that only this flow has behind them.
struct Way {
    links: Vec<u16>,
    delay: Span,
    pipe: DelayLine<Packet>,
}

impl Way {
    fn new(links: &[u16], delay: Span) -> Self {
        Self { links: links.to_vec(), delay, pipe: DelayLine::default() }
    }
}

/// Propagation that every packet has behind `link`, because the ways of all who use it end there
/// and are equally long. It can as well be the link's own: then one pipe holds them all.
fn take_common_delay(flows: &mut [FlowState], link: u16) -> Option<Span> {
    let mut ways: Vec<&mut Way> = flows
        .iter_mut()
        .flat_map(|flow| [&mut flow.forward, &mut flow.reverse])
        .filter(|way| way.links.contains(&link))
        .collect();
    let delay = ways.first()?.delay;
    let is_common = ways.iter().all(|way| way.delay == delay && way.links.last() == Some(&link));
    is_common.then(|| {
        ways.iter_mut().for_each(|way| way.delay = Span::ZERO);
        delay
    })
}

fn bytes_in(pipe: &DelayLine<Packet>) -> u64 {
    pipe.iter().map(|packet| u64::from(packet.wire_len())).sum()
}

/// Places of a flow in the agenda, relative to its first.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;
const FORWARD_PIPE: u32 = 2;
const REVERSE_PIPE: u32 = 3;

impl<'a, O: Observer> Engine<'a, O> {
    fn new(scenario: &'a Scenario, address: StreamAddress, observer: &'a mut O) -> Self {
        let end = Time::ZERO + scenario.duration;
        let mut links: Vec<Link> = scenario
            .links
            .iter()
            .enumerate()
            .map(|(index, config)| Link::new(config, index as u16, address))
            .collect();
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
        for (index, link) in links.iter_mut().enumerate() {
            if let Some(delay) = take_common_delay(&mut flows, index as u16) {
                link.line.delay += delay;
                link.line.leads_to_ends = true;
            }
        }
        let places = 1 + 2 * links.len() + 4 * flows.len();
        let mut engine = Self {
            now: Time::ZERO,
            agenda: Agenda::new(2 * links.len(), places),
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
        };
        for flow in 0..engine.flows.len() {
            engine.reschedule_sender(flow);
        }
        let first_step = engine.next_step;
        engine.agenda.set(engine.step_place(), first_step);
        engine
    }

    fn run(&mut self) -> Result<(), Violation> {
        let end = Time::ZERO + self.scenario.duration;
        let mut wakes_at_once = 0;
        self.sample();
        loop {
            let (at, place) = self.agenda.first();
            if at > end {
                break;
            }
            if at <= self.now {
                if at < self.now {
                    return Err(Violation::Time { from: self.now, to: at });
                }
                wakes_at_once += 1;
                if wakes_at_once > MOST_WAKES_AT_ONCE {
                    return Err(Violation::Standstill { at, wakes: wakes_at_once });
                }
            } else {
                wakes_at_once = 0;
            }
            self.now = at;
            self.wakes += 1;
            self.wake(place)?;
        }
        self.now = end;
        if self.next_step - self.scenario.step < end {
            self.sample();
        }
        self.check()
    }

    #[inline]
    fn wake(&mut self, place: Place) -> Result<(), Violation> {
        let links = self.links.len() as u32;
        let index = place.0;
        if index >= 2 * links {
            let flow = ((index - 2 * links) / 4) as usize;
            if flow == self.flows.len() {
                return self.step();
            }
            match (index - 2 * links) % 4 {
                SENDER => self.wake_sender(flow),
                RECEIVER => self.wake_receiver(flow),
                FORWARD_PIPE => self.deliver(flow, Direction::Forward),
                _ => self.deliver(flow, Direction::Reverse),
            }
        } else if index < links {
            self.pull(index as usize);
        } else {
            self.pass_on((index - links) as usize);
        }
        Ok(())
    }

    fn step_place(&self) -> Place {
        Place((2 * self.links.len() + 4 * self.flows.len()) as u32)
    }

    #[inline]
    fn pipe_place(&self, link: usize) -> Place {
        Place((self.links.len() + link) as u32)
    }

    #[inline]
    fn flow_place(&self, flow: usize, part: u32) -> Place {
        Place((2 * self.links.len() + 4 * flow) as u32 + part)
    }

    fn wake_sender(&mut self, flow: usize) {
        self.flows[flow].ends.wake_sender(self.now, self.observer);
        self.drain_sender(flow);
        let wake = self.flows[flow].ends.next_sender_wake();
        let place = self.flow_place(flow, SENDER);
        self.agenda.set(place, wake);
    }

    fn wake_receiver(&mut self, flow: usize) {
        if let Some(answer) = &self.flows[flow].ends.wake_receiver(self.now) {
            self.depart(flow, answer);
        }
        let wake = self.flows[flow].ends.next_receiver_wake();
        let place = self.flow_place(flow, RECEIVER);
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

    fn reschedule_sender(&mut self, flow: usize) {
        let wake = self.flows[flow].ends.next_sender_wake();
        let place = self.flow_place(flow, SENDER);
        self.agenda.set_if_sooner(place, wake);
    }

    /// A packet leaves its end.
    #[inline(never)]
    fn depart(&mut self, flow: usize, packet: &Packet) {
        self.sent += u64::from(packet.wire_len());
        let who = Who::Flow(packet.flow);
        self.observer.record(self.now, who, &Event::Sent { packet });
        match self.entries[flow][packet.direction as usize] {
            Some(link) => self.offer(usize::from(link), packet),
            None => self.propagate(packet, self.now),
        }
    }

    #[inline(always)]
    fn offer(&mut self, link: usize, packet: &Packet) {
        self.links[link].offer(self.now, packet, self.observer);
        if self.agenda.wake_of(Place(link as u32)).is_never() {
            self.pull(link);
        }
    }

    /// Takes from the queue of `link` what its transmitter is ready for.
    #[inline(never)]
    fn pull(&mut self, link: usize) {
        let now = self.now;
        let at = loop {
            let state = &mut self.links[link];
            let was_empty = state.line.pipe.is_empty();
            let again = state.pull(now, self.observer);
            if !state.line.leads_to_ends {
                self.hand_on(link);
            } else if was_empty && !state.line.pipe.is_empty() {
                let out = state.line.pipe.next();
                self.agenda.set(self.pipe_place(link), out);
            }
            if again > now {
                break again;
            }
        };
        let place = Place(link as u32);
        if at != self.agenda.wake_of(place) {
            self.agenda.set(place, at);
        }
    }

    /// What `link` just sent, if it sent anything, reaches the far end: the next link, or the
    /// flow's own last part.
    #[inline(never)]
    fn hand_on(&mut self, link: usize) {
        let Some((at, mut packet)) = self.links[link].line.passing.take() else {
            return;
        };
        let flow = &self.flows[packet.flow.0 as usize];
        let way = match packet.direction {
            Direction::Forward => &flow.forward,
            Direction::Reverse => &flow.reverse,
        };
        packet.hop += 1;
        if usize::from(packet.hop) == way.links.len() && !way.delay.is_zero() {
            self.propagate(&packet, at);
            return;
        }
        let pipe = &mut self.links[link].line.pipe;
        let was_empty = pipe.is_empty();
        pipe.push(at, packet);
        if was_empty {
            self.agenda.set(self.pipe_place(link), at);
        }
    }

    /// The flow's own propagation begins at `from`.
    #[inline(never)]
    fn propagate(&mut self, packet: &Packet, from: Time) {
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        let (way, part) = match packet.direction {
            Direction::Forward => (&mut flow.forward, FORWARD_PIPE),
            Direction::Reverse => (&mut flow.reverse, REVERSE_PIPE),
        };
        let was_empty = way.pipe.is_empty();
        way.pipe.push(from + way.delay, *packet);
        if was_empty {
            let at = from + way.delay;
            let place = self.flow_place(index, part);
            self.agenda.set(place, at);
        }
    }

    /// What has crossed `link` enters the next one, or reaches its end.
    #[inline]
    fn pass_on(&mut self, link: usize) {
        let state = &mut self.links[link].line;
        debug_assert!(state.pipe.next() <= self.now);
        let packet = state.pipe.pop();
        let leads_to_ends = state.leads_to_ends;
        let next = state.pipe.next();
        self.agenda.set(self.pipe_place(link), next);
        if leads_to_ends {
            self.arrive(&packet);
            return;
        }
        let flow = &self.flows[packet.flow.0 as usize];
        let way = match packet.direction {
            Direction::Forward => &flow.forward,
            Direction::Reverse => &flow.reverse,
        };
        match way.links.get(usize::from(packet.hop)) {
            Some(next) => self.offer(usize::from(*next), &packet),
            None => self.arrive(&packet),
        }
    }

    /// What has crossed a flow's last part reaches its end.
    #[inline(never)]
    fn deliver(&mut self, flow: usize, direction: Direction) {
        let state = &mut self.flows[flow];
        let (way, part) = match direction {
            Direction::Forward => (&mut state.forward, FORWARD_PIPE),
            Direction::Reverse => (&mut state.reverse, REVERSE_PIPE),
        };
        let Some(packet) = way.pipe.pop_due(self.now) else {
            return;
        };
        let next = way.pipe.next();
        let place = self.flow_place(flow, part);
        self.agenda.set(place, next);
        self.arrive(&packet);
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet) {
        let now = self.now;
        let flow = packet.flow.0 as usize;
        self.arrived += u64::from(packet.wire_len());
        let who = Who::Flow(packet.flow);
        self.observer.record(now, who, &Event::Arrived { packet });
        match packet.direction {
            Direction::Forward => {
                let answer = &self.flows[flow].ends.on_forward(now, packet, self.observer);
                if let Some(answer) = answer {
                    self.depart(flow, answer);
                }
                let wake = self.flows[flow].ends.next_receiver_wake();
                let place = self.flow_place(flow, RECEIVER);
                self.agenda.set_if_sooner(place, wake);
            }
            Direction::Reverse => {
                self.flows[flow].ends.on_reverse(now, packet, self.observer);
                self.drain_sender(flow);
                self.reschedule_sender(flow);
            }
        }
    }

    /// One step of the time series.
    fn step(&mut self) -> Result<(), Violation> {
        self.sample();
        self.next_step += self.scenario.step;
        let next = self.next_step;
        self.agenda.set(self.step_place(), next);
        self.check()
    }

    /// Tells the state of every sender and queue.
    fn sample(&mut self) {
        let now = self.now;
        for (index, flow) in self.flows.iter().enumerate() {
            if let Ends::Tcp { sender, .. } = &flow.ends {
                let sample = sender.sample(now);
                let who = Who::Flow(FlowId(index as u32));
                self.observer.record(now, who, &Event::FlowSample(&sample));
            }
        }
        for (index, link) in self.links.iter().enumerate() {
            let sample = link.sample(now);
            let who = Who::Link(index as u16);
            self.observer.record(now, who, &Event::QueueSample(&sample));
        }
    }

    /// Bytes neither appear nor vanish, on any link and on the whole; what is acknowledged has
    /// been received, and what is received has been sent.
    fn check(&self) -> Result<(), Violation> {
        let at = self.now;
        let mut inside = 0;
        let mut dropped = 0;
        for (index, link) in self.links.iter().enumerate() {
            let backlog = link.backlog_bytes();
            let counts = link.line.counts;
            inside += backlog + bytes_in(&link.line.pipe);
            dropped += counts.dropped_bytes + counts.lost_bytes;
            if counts.offered_bytes != counts.sent_bytes + counts.dropped_bytes + backlog {
                return Err(Violation::LinkConservation {
                    at,
                    link: index,
                    offered: counts.offered_bytes,
                    sent: counts.sent_bytes,
                    dropped: counts.dropped_bytes,
                    backlog,
                });
            }
        }
        for (index, flow) in self.flows.iter().enumerate() {
            inside += bytes_in(&flow.forward.pipe) + bytes_in(&flow.reverse.pipe);
            if let Ends::Tcp { sender, receiver } = &flow.ends {
                let (una, sent) = sender.outstanding();
                let next = receiver.next_expected();
                if una > next || next > sent {
                    return Err(Violation::Sequence { at, flow: index, una, next, sent });
                }
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
            flows: self
                .flows
                .iter()
                .map(|flow| match &flow.ends {
                    Ends::Tcp { sender, .. } => Some(sender.sample(now)),
                    Ends::Ping(_) | Ends::Udp(_) => None,
                })
                .collect(),
            links: self.links.iter().map(|link| link.sample(now)).collect(),
            queue_details: self.links.iter().map(Link::queue_details).collect(),
            wakes: self.wakes,
        }
    }
}
