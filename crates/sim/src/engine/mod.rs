//! The event loop: which component comes next, and the state that all share.
//!
//! | file | what |
//! |---|---|
//! | `leave` | an end is woken, and its packets leave |
//! | `cross` | packets cross links and other carriers |
//! | `late` | what nobody needs to know at once is done later |
//! | `ahead` | what is known already is done at once |
//! | `arrive` | packets reach an end, which may answer |
//! | `rows` | samples for the time series, and the invariants |
//! | `change` | a sender has entered a phase, and something in the world changes |
//! | `way` | a flow's ends, its routes and its own propagation |
//! | `violation` | what a broken invariant looks like |

mod ahead;
mod arrive;
mod change;
mod cross;
mod late;
mod leave;
mod rows;
#[cfg(test)]
mod tests;
mod violation;
mod way;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{
    Body, Direction, FlowId, FlowSample, Observer, Packet, PortId, QueueSample, Span,
    StreamAddress, Time,
};
use sojourn_host::Contents;
use sojourn_scenario::{Checked, Offer, Scenario, Until};
use sojourn_wire::{Carrier, Wire};

use self::ahead::Ahead;
use self::change::Pending;
use self::late::Late;
pub use self::violation::Violation;
use self::way::{FlowState, Way, exit_of, stop_of};
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
    #[cfg(debug_assertions)]
    let run = run_any;
    #[cfg(not(debug_assertions))]
    let run = run_for::<O>;
    run(scenario, address, observer)
}

/// As [`run`], but compiled once, here, for all observers, which are called for each event: `run` compiles an engine
/// for each kind of them, of a quarter of a megabyte. Tests of a dozen rooms would take minutes to compile theirs.
///
/// # Errors
/// As [`run`].
pub fn run_any(
    scenario: &Checked,
    address: StreamAddress,
    mut observer: &mut dyn Observer,
) -> Result<Outcome, Violation> {
    run_for(scenario, address, &mut observer)
}

fn run_for<O: Observer>(
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
    /// The positions of the scenario's changes that have not come.
    pub missed: Vec<usize>,
}

/// More wakes than this at one moment mean that two machines call each other for ever.
const MOST_WAKES_AT_ONCE: u64 = 10_000_000;

/// A world and its time. It can be run step by step, and inspected in between.
pub struct Engine<'a, O> {
    now: Time,
    /// Wakes of links, other carriers, the two ends of each flow, the step of the time series, and,
    /// if any flow has a propagation of its own or something changes, two pipes for each flow, and
    /// the next change.
    agenda: Agenda,
    links: Vec<Wire<Packet>>,
    carriers: Vec<Box<dyn Carrier<Packet>>>,
    /// When each of them is to be woken, as the agenda has it.
    carrier_wakes: Vec<Time>,
    /// For each port that is no link, the position of its carrier.
    carrier_of: Vec<u32>,
    /// The number of links and carriers, whose places come before those of flows.
    ways: u32,
    flows: Vec<FlowState>,
    /// The first port of each flow's way forward and back; [`way::NO_PORT`] where a way has none.
    entries: Vec<[u32; 2]>,
    contents: Contents,
    late: Late,
    ahead: Ahead,
    scenario: &'a Checked,
    address: StreamAddress,
    /// Changes that a phase brings about; none in most worlds.
    pending: Vec<Pending<'a>>,
    /// In which phase each flow was when it was last looked at; empty where no change waits for one.
    phases: Vec<&'static str>,
    observer: &'a mut O,
    /// Bytes that left an end, and bytes that reached one.
    sent: u64,
    arrived: u64,
    wakes: u64,
    /// Wakes since the time last advanced.
    at_once: u64,
    /// Before when whoever is woken may go on if it is next again; zero: never, because somebody looks after every wake.
    goes_on_before: Time,
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

/// The places of a flow's ends in the agenda, relative to its first; its pipes have the same order.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;

/// The number of an end among all ends.
#[inline]
const fn end_of(flow: usize, end: u32) -> u32 {
    2 * flow as u32 + end
}

impl<'a, O: Observer> Engine<'a, O> {
    /// The world before anything happens. All that is random comes from `address`.
    pub fn new(scenario: &'a Checked, address: StreamAddress, observer: &'a mut O) -> Self {
        let end = Time::ZERO + scenario.duration;
        let mut flows: Vec<FlowState> = scenario
            .flows
            .iter()
            .zip((0..).map(FlowId))
            .map(|(flow, id)| FlowState {
                ends: match scenario.changes.iter().any(|change| change.starts() == Some(id)) {
                    true => Ends::waiting(flow, id),
                    false => Ends::new(flow, id, address, end, scenario.is_watched(id)),
                },
                forward: Way::new(&flow.forward, flow.forward_delay),
                reverse: Way::new(&flow.reverse, flow.reverse_delay),
                stop: stop_of(flow),
                is_over: false,
            })
            .collect();
        let has_offload = scenario.has_offload();
        let mut links: Vec<Wire<Packet>> = scenario
            .links
            .iter()
            .zip((0..).map(PortId))
            .map(|(config, port)| {
                let (exit, delay) = exit_of(&mut flows, port, config);
                let may_lose = config.loss.may_lose() || scenario.may_lose(port);
                let mut link = Wire::that_may_lose(may_lose, config, port, exit, address);
                link.lengthen(delay);
                if has_offload {
                    link.expect_offload();
                }
                link
            })
            .collect();
        let mut carriers = Vec::new();
        let mut carrier_of = Vec::new();
        for config in &scenario.carriers {
            let first = PortId((links.len() + carrier_of.len()) as u16);
            let ports = config.port_count();
            carrier_of.extend(core::iter::repeat_n(carriers.len() as u32, ports));
            carriers.push(config.build(first, address));
        }
        let (late, ahead) = match observer.needs_order() || !scenario.changes.is_empty() {
            true => (Late::nothing(), Ahead::nothing()),
            false => {
                let late = Late::new(&mut flows, &mut links, &carrier_of);
                (late, Ahead::new(scenario, &links, &carrier_of))
            }
        };
        let has_pipes = flows
            .iter()
            .flat_map(|flow| [&flow.forward, &flow.reverse])
            .any(|way| !way.ends_with_its_links());
        let changes = usize::from(!scenario.changes.is_empty());
        let pipes = if has_pipes || changes > 0 { 2 * flows.len() } else { 0 };
        let ways = links.len() + carriers.len();
        let ends = 2 * flows.len();
        let places = ways + ends + 1 + pipes + changes;
        let mut engine = Self {
            now: Time::ZERO,
            agenda: Agenda::new(ways, ends, places, end),
            links,
            carrier_wakes: carriers.iter().map(|_| Time::NEVER).collect(),
            carriers,
            carrier_of,
            ways: ways as u32,
            entries: flows
                .iter()
                .map(|flow| [&flow.forward, &flow.reverse].map(Way::entry))
                .collect(),
            flows,
            contents: Contents::default(),
            late,
            ahead,
            scenario,
            address,
            pending: scenario.changes.iter().map(Pending::new).collect(),
            phases: if scenario.changes.is_empty() {
                Vec::new()
            } else {
                vec![""; scenario.flows.len()]
            },
            observer,
            sent: 0,
            arrived: 0,
            wakes: 0,
            at_once: 0,
            goes_on_before: Time::ZERO,
            next_step: Time::ZERO + scenario.step,
            steps: 0,
            stage: Stage::New,
            end,
            awaited: awaited(scenario),
        };
        for flow in 0..engine.flows.len() {
            engine.reschedule_sender(flow);
            let wake = engine.flows[flow].ends.next_receiver_wake();
            engine.agenda.set_end_if_sooner(end_of(flow, RECEIVER), wake);
        }
        engine.set_step();
        engine.begin_late();
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
        (self.ahead.until, self.goes_on_before) = (Time::ZERO, Time::ZERO);
        let mut at_once = self.at_once;
        self.catch_up((self.agenda.first().0.min(self.end), 0));
        let goes_on = self.turn(self.end, &mut at_once)?;
        self.at_once = at_once;
        self.catch_up(self.moment());
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
        let awaits = !self.awaited.is_empty();
        let mut until = time.min(self.end);
        // A run that waits for transfers is over at any time.
        self.ahead.until = if awaits { Time::ZERO } else { until };
        loop {
            // What is put off is caught up with before and at the end of every row.
            let next = self.late.next_stop(self.now);
            let mut stop = until.min(next);
            self.goes_on_before = if awaits { Time::ZERO } else { stop + Span::from_nanos(1) };
            // One loop, so that everything that a wake does is inlined into it.
            while self.turn(stop, &mut at_once)? {
                if awaits {
                    self.look_for_end();
                    until = time.min(self.end);
                    stop = until.min(next);
                }
            }
            if stop == until {
                break;
            }
            self.now = stop;
            self.catch_up((stop, u32::MAX));
        }
        self.at_once = at_once;
        self.now = self.now.max(until);
        self.catch_up((until, u32::MAX));
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
        self.catch_up((end, u32::MAX));
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
        self.advance(at, at_once)?;
        self.wake(place, at_once)?;
        Ok(true)
    }

    /// It is `at` now, and something is woken.
    #[inline(always)]
    fn advance(&mut self, at: Time, at_once: &mut u64) -> Result<(), Violation> {
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
        Ok(())
    }

    #[inline(always)]
    fn wake(&mut self, place: Place, at_once: &mut u64) -> Result<(), Violation> {
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
            return self.wake_other(index, at_once);
        }
        match end % 2 {
            SENDER => self.wake_sender(flow, at_once),
            _ => {
                self.wake_receiver(flow);
                Ok(())
            }
        }
    }

    /// Wakes a place that is neither a link nor an end.
    fn wake_other(&mut self, index: u32, at_once: &mut u64) -> Result<(), Violation> {
        if index < self.ways {
            return self.wake_carrier(index as usize - self.links.len(), at_once);
        }
        self.late.pass(self.now, index);
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
        Place(self.ways + end_of(flow, end))
    }

    fn pipe_place(&self, flow: usize, direction: Direction) -> Place {
        Place(self.step_place().0 + 1 + 2 * flow as u32 + direction as u32)
    }

    fn change_place(&self) -> Place {
        Place(self.step_place().0 + 1 + 2 * self.flows.len() as u32)
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
            missed: (0..self.pending.len()).filter(|at| !self.pending[*at].has_come()).collect(),
        }
    }
}

/// The packet has arrived or is lost, so its contents are freed.
fn release(contents: &mut Contents, packet: &Packet) {
    if let Body::Opaque { content, .. } = packet.body {
        contents.release(content, packet.segments);
    }
}
