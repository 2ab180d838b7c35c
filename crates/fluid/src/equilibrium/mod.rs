//! Where a world comes to rest, and whether it stays there.
//!
//! Windows and queues are mean values that follow smooth laws: each control's ([`control`]), each
//! queue's ([`aqm`]). At rest no slope is left, which is solved by bisection. Around that point the laws
//! are linear with delays, and the roots of their characteristic equation ([`spectrum`]) say whether
//! a disturbance dies away, how fast, and with what period. What acts at a moment, such as
//! CoDel's drops or BBR's phases, has no such law.

mod aqm;
mod control;
mod spectrum;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_cca::Config as Cca;
use sojourn_core::{SpecError, StreamAddress};
use sojourn_qdisc::Config as Qdisc;
use sojourn_scenario::{Flow, Scenario};

use crate::world::{self, Bottleneck, Source, Stream, World};

use aqm::Aqm;
use control::Control;

/// A world at rest.
#[derive(Clone, Debug)]
pub struct Equilibrium {
    /// The port of the queue.
    pub port: usize,
    /// Packets that wait, and how long, in seconds.
    pub queue: f64,
    pub wait: f64,
    /// The share of packets that the queue signals, of all flows together.
    pub signalled: f64,
    /// The part of the link's rate that the flows take; below 1 their windows can't fill it.
    pub utilisation: f64,
    pub flows: Vec<AtRest>,
    /// `None` where only a closed form is known, without the laws around it, and where buffers keep all
    /// windows of a link that is not full, so that nothing can move.
    pub stability: Option<Stability>,
}

impl Equilibrium {
    /// The flows fill the link.
    pub fn is_full(&self) -> bool {
        self.utilisation > 1.0 - 1e-6
    }
}

/// A flow at rest.
#[derive(Clone, Copy, Debug)]
pub struct AtRest {
    /// Its place in the scenario.
    pub flow: usize,
    /// Packets.
    pub window: f64,
    /// Payload in bits a second.
    pub goodput: f64,
    /// Seconds.
    pub rtt: f64,
    /// The share of its packets that the queue signals; under DualPI2 flows of both queues differ in it.
    pub signalled: f64,
}

/// The rightmost roots of the characteristic equation.
#[derive(Clone, Debug)]
pub struct Stability {
    /// Real and imaginary part in 1/s, the rightmost first; of a pair the one above the axis.
    pub roots: Vec<(f64, f64)>,
}

impl Stability {
    /// A small disturbance dies away.
    pub fn is_stable(&self) -> bool {
        self.roots.first().is_some_and(|root| root.0 < 0.0)
    }

    /// How fast a small disturbance dies away, in 1/s; below zero it grows.
    pub fn damping(&self) -> Option<f64> {
        self.roots.first().map(|root| -root.0)
    }

    /// Seconds in which a small disturbance falls to 2 %; of an unstable world, in which it grows
    /// fiftyfold.
    pub fn settles_in(&self) -> Option<f64> {
        let root = self.roots.first()?;
        (root.0 != 0.0).then(|| FIFTY / root.0.abs())
    }

    /// Seconds of one oscillation; `None` if it does not oscillate.
    pub fn period(&self) -> Option<f64> {
        let root = self.roots.first()?;
        (root.1 > 1e-9).then(|| 2.0 * core::f64::consts::PI / root.1)
    }
}

/// ln 50.
const FIFTY: f64 = 3.912_023_005_428_146;

/// Flows that are alike in everything share their state.
const MOST_CLASSES: usize = 16;

/// Steps of a trajectory, all of which are kept.
const MOST_STEPS: usize = 1_000_000;

/// Where `scenario` comes to rest.
///
/// # Errors
/// The world has no smooth laws, or none of its points is at rest; says why.
pub fn equilibrium(scenario: &Scenario) -> Result<Equilibrium, SpecError> {
    world::check(scenario)?;
    let world = World::new(scenario, StreamAddress { seed: 1, run: 0 });
    match Laws::of(scenario, &world)? {
        Rest::Closed(closed) => Ok(closed),
        Rest::Smooth(mut laws) => {
            let point = laws.rest()?;
            Ok(laws.describe(&world, &point, laws.stability(&point)))
        }
    }
}

/// How windows and queue move after a start away from rest: rows of time in seconds, packets that wait,
/// and the window of each flow in packets. `start` multiplies the state at rest.
///
/// # Errors
/// As [`equilibrium`], or only a closed form is known.
pub fn trajectory(
    scenario: &Scenario,
    start: f64,
    seconds: f64,
    rows: usize,
) -> Result<Vec<Vec<f64>>, SpecError> {
    world::check(scenario)?;
    let world = World::new(scenario, StreamAddress { seed: 1, run: 0 });
    match Laws::of(scenario, &world)? {
        Rest::Closed(_) => Err(none("only a closed form of this equilibrium is known")),
        Rest::Smooth(mut laws) => {
            let point = laws.rest()?;
            laws.trajectory(&world, &point, start, seconds, rows)
        }
    }
}

fn none(problem: &str) -> SpecError {
    SpecError::new(problem).allow(["engine = \"fluid\" without rest, which computes it over time"])
}

/// What is known of a world.
enum Rest {
    Closed(Equilibrium),
    Smooth(Laws),
}

/// Flows that are alike: their control, how many, the round trip without queue.
#[derive(Clone, Debug)]
struct Class {
    control: Control,
    flows: Vec<usize>,
    delay: f64,
    /// Packets that buffers at both ends allow.
    most: f64,
    is_marked: bool,
    /// It waits in the low-latency queue of DualPI2, which is next to empty.
    is_low: bool,
}

/// Smooth laws of one bottleneck. The state: of each class what its control has, then the queue in
/// packets unless it stands at its limit, then what the queue's law has.
struct Laws {
    port: usize,
    classes: Vec<Class>,
    /// Packets a second.
    capacity: f64,
    /// The share of what leaves the queue that is lost on the medium.
    lost: f64,
    aqm: Aqm,
}

/// A point at rest: the state, and the delay of each class there.
struct Point {
    state: Vec<f64>,
    delays: Vec<f64>,
}

impl Laws {
    /// What is known of a world.
    fn of(scenario: &Scenario, world: &World) -> Result<Rest, SpecError> {
        let tcp = || world.flows.iter().filter(|flow| matches!(flow.source, Source::Tcp { .. }));
        meet(scenario, world)?;
        if world.flows.iter().any(|flow| matches!(flow.source, Source::Udp(_))) {
            return Err(none("a flow of constant rate is no part of an equilibrium of windows"));
        }
        let [link] = &world.links[..] else {
            return Err(none("an equilibrium is computed for one bottleneck"));
        };
        if tcp().any(|flow| flow.hops.len() != 1) || tcp().next().is_none() {
            return Err(none("an equilibrium is computed for flows through one bottleneck"));
        }
        let rate = link.capacity.rate_at(0.0);
        if link.capacity.next_change(0.0).is_finite() {
            return Err(none("a rate that changes has no equilibrium"));
        }
        let capacity = rate / link.packet;
        if let Some(closed) = closed(world, capacity, link) {
            return closed.map(Rest::Closed);
        }
        let aqm = Aqm::new(&link.queue, capacity, link.packet)?;
        let mut classes: Vec<Class> = Vec::new();
        for flow in tcp() {
            let Source::Tcp { cca, has_ecn, rate, .. } = &flow.source else { continue };
            if rate.is_finite() {
                return Err(none(
                    "a flow whose application has a rate has no equilibrium of windows",
                ));
            }
            let name = &scenario.flows[flow.id].name;
            let is_marked = *has_ecn && aqm.marks();
            let control = Control::new(cca, is_marked)
                .map_err(|error| error.within(&format!("flow '{name}'")))?;
            let (delay, is_low) = (flow.base_rtt(), aqm.is_coupled() && flow.member.is_l4s);
            let most = most(flow);
            let alike = classes.iter_mut().find(|class| {
                class.control == control
                    && (class.delay - delay).abs() < 1e-9
                    && (class.most - most).abs() < 1e-9
                    && class.is_marked == is_marked
                    && class.is_low == is_low
            });
            match alike {
                Some(class) => class.flows.push(flow.id),
                None => {
                    let flows = vec![flow.id];
                    classes.push(Class { control, flows, delay, most, is_marked, is_low });
                }
            }
        }
        if classes.len() > MOST_CLASSES {
            let problem = format!("{} kinds of flows are too many", classes.len());
            return Err(SpecError::new(problem).allow([format!("up to {MOST_CLASSES}")]));
        }
        if aqm.is_coupled() && classes.iter().all(|class| class.is_low) {
            let problem = "the step threshold of an L4S queue is no smooth law, and nothing else of DualPI2 \
                           acts without Classic flows";
            return Err(none(problem));
        }
        let (port, lost) = (link.port, link.loss);
        Ok(Rest::Smooth(Self { port, classes, capacity, lost, aqm }))
    }

    /// Where of the state a class begins, the queue stands and its law begins.
    fn places(&self) -> (Vec<usize>, Option<usize>, usize) {
        let mut next = 0;
        let mut take = |count: usize| {
            next += count;
            next - count
        };
        let classes = self.classes.iter().map(|class| take(class.control.states())).collect();
        let queue = self.aqm.limit().is_none().then(|| take(1));
        (classes, queue, take(self.aqm.states()))
    }

    fn size(&self) -> usize {
        let (_, _, law) = self.places();
        law + self.aqm.states()
    }

    /// Packets a second that come to the queue and are not dropped there, less what the link carries.
    fn excess(&self, wait: f64, p: f64) -> f64 {
        let arrives = |class: &Class| {
            let rtt = class.delay + if class.is_low { 0.0 } else { wait };
            let p = self.aqm.signal(p, class.is_low);
            let window = class.control.window_at(p, self.lost, rtt).min(class.most);
            let rate = window / rtt * class.flows.len() as f64;
            if class.is_marked { rate } else { rate * (1.0 - p) }
        };
        self.classes.iter().map(arrives).sum::<f64>() - self.capacity
    }

    /// Solves for no slope: the more is signalled, the less is sent. Where losses on the medium or buffers keep
    /// windows so small that the queue has nothing to signal, it becomes silent; classes whose buffers
    /// keep their windows become limited.
    fn rest(&mut self) -> Result<Point, SpecError> {
        let [low, _] = self.aqm.levels();
        let (longest, _) = self.aqm.at_rest(low, self.capacity);
        let (wait, level) = if self.excess(longest, 0.0) <= 0.0 {
            let wait = self.silent_wait(longest);
            self.aqm = Aqm::Silent { is_empty: wait.is_none() };
            (wait.unwrap_or(0.0), 0.0)
        } else {
            let level = self.level()?;
            (self.aqm.at_rest(level, self.capacity).0, level)
        };
        let (_, p) = self.aqm.at_rest(level, self.capacity);
        let mut state = Vec::new();
        let mut delays = Vec::new();
        let mut of_low = 0.0;
        for class in &mut self.classes {
            let rtt = class.delay + if class.is_low { 0.0 } else { wait };
            let p = self.aqm.signal(p, class.is_low);
            if class.control.window_at(p, self.lost, rtt) > class.most {
                class.control = Control::Limited(class.most);
            }
            let own = class.control.at_rest(p, self.lost, rtt);
            if class.is_low {
                of_low += class.control.window(&own) / rtt * class.flows.len() as f64;
            }
            state.extend(own);
            delays.push(rtt);
        }
        if self.aqm.limit().is_none() {
            state.push(wait * (self.capacity - of_low));
        }
        state.extend(self.aqm.state_at(level));
        Ok(Point { state, delays })
    }

    /// The wait of less than `longest` at which a queue that signals nothing stands; `None` if the link is
    /// not full.
    fn silent_wait(&self, longest: f64) -> Option<f64> {
        if self.excess(0.0, 0.0) <= 0.0 {
            return None;
        }
        let (mut low, mut high) = (0.0, longest);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.excess(middle, 0.0) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }

    /// The level at which the queue signals what keeps the link full.
    fn level(&self) -> Result<f64, SpecError> {
        let excess = |level: f64| {
            let (wait, p) = self.aqm.at_rest(level, self.capacity);
            self.excess(wait, p)
        };
        let [mut low, mut high] = self.aqm.levels();
        if excess(high) > 0.0 {
            let sent = 100.0 * (excess(high) / self.capacity + 1.0);
            let problem = format!(
                "no equilibrium: at the most that the queue signals, the flows still send {sent:.0} % of \
                 the link"
            );
            return Err(none(&problem));
        }
        for _ in 0..200 {
            let middle = self.aqm.middle(low, high);
            if excess(middle) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(high)
    }

    /// What the queue holds, how long what leaves it has waited, and what it signals.
    fn seen(&self, state: &[f64]) -> Seen {
        let (classes, queue, law) = self.places();
        let low = self.classes.iter().zip(&classes).filter(|(class, _)| class.is_low);
        let of_low: f64 = low
            .map(|(class, place)| {
                class.control.window(&state[*place..]) / class.delay * class.flows.len() as f64
            })
            .sum();
        let service = (self.capacity - of_low).max(1e-3 * self.capacity);
        let held = queue.map_or(self.aqm.limit().unwrap_or(0.0), |place| state[place]).max(0.0);
        let wait = held / service;
        let sends = |(class, place): (&Class, &usize)| {
            let rtt = class.delay + if class.is_low { 0.0 } else { wait };
            class.control.window(&state[*place..]) / rtt * class.flows.len() as f64
        };
        let arrives: f64 = self.classes.iter().zip(&classes).map(sends).sum();
        let p = self.aqm.probability(&state[law..], arrives, self.capacity);
        Seen { held, wait, service, p }
    }

    /// The slopes of a state, given the states that each class hears of.
    fn slopes(&self, state: &[f64], heard: &[&[f64]], slopes: &mut [f64]) {
        let (places, queue, law) = self.places();
        let now = self.seen(state);
        let mut enters = 0.0;
        for ((class, place), heard) in self.classes.iter().zip(&places).zip(heard) {
            let then = self.seen(heard);
            let own = &state[*place..*place + class.control.states()];
            let old = &heard[*place..*place + class.control.states()];
            let rtt = |wait: f64| class.delay + if class.is_low { 0.0 } else { wait };
            let p = self.aqm.signal(then.p, class.is_low);
            let back = control::Back {
                rate: class.control.window(old) / rtt(then.wait),
                window: class.control.window(old),
                marked: p,
                signalled: control::either(p, self.lost),
                lost: self.lost,
                rtt: rtt(now.wait),
            };
            let slope = &mut slopes[*place..*place + class.control.states()];
            class.control.slopes(own, &back, slope);
            if !class.is_low {
                let rate = class.control.window(own) / rtt(now.wait) * class.flows.len() as f64;
                let p = self.aqm.signal(now.p, false);
                enters += if class.is_marked { rate } else { rate * (1.0 - p) };
            }
        }
        if let Some(place) = queue {
            let net = enters - now.service;
            slopes[place] = if now.held <= 0.0 { net.max(0.0) } else { net };
            let trend = slopes[place] / now.service;
            let own = &state[law..law + self.aqm.states()];
            self.aqm.slopes(own, &now, trend, self.capacity, &mut slopes[law..]);
        }
    }

    /// `None` if nothing can move.
    fn stability(&self, point: &Point) -> Option<Stability> {
        let size = self.size();
        if size == 0 {
            return None;
        }
        // Part 0 is the present, part k what class k hears of.
        let slopes = |part: usize, state: &[f64]| {
            let at = |own: usize| if own == part { state } else { &point.state[..] };
            let heard: Vec<&[f64]> = (1..=self.classes.len()).map(at).collect();
            let mut slopes = vec![0.0; size];
            self.slopes(at(0), &heard, &mut slopes);
            slopes
        };
        let jacobian = |part: usize| spectrum::jacobian(&point.state, |state| slopes(part, state));
        let present = jacobian(0);
        let delayed: Vec<_> =
            point.delays.iter().enumerate().map(|(at, delay)| (*delay, jacobian(at + 1))).collect();
        Some(Stability { roots: spectrum::rightmost(&present, &delayed) })
    }

    fn describe(&self, world: &World, point: &Point, stability: Option<Stability>) -> Equilibrium {
        let seen = self.seen(&point.state);
        let (places, ..) = self.places();
        let mut flows = Vec::new();
        let (mut carried, mut came, mut signals) = (0.0, 0.0, 0.0);
        for ((class, place), rtt) in self.classes.iter().zip(&places).zip(&point.delays) {
            let window = class.control.window(&point.state[*place..]);
            let p = self.aqm.signal(seen.p, class.is_low);
            let kept = if class.is_marked { 1.0 } else { 1.0 - p };
            let rate = window / rtt * kept;
            let count = class.flows.len() as f64;
            carried += rate * count;
            came += window / rtt * count;
            signals += window / rtt * count * p;
            for flow in &class.flows {
                let payload = 8.0 * f64::from(world.flows[*flow].payload);
                flows.push(AtRest {
                    flow: *flow,
                    window,
                    goodput: rate * (1.0 - self.lost) * payload,
                    rtt: *rtt,
                    signalled: p,
                });
            }
        }
        flows.sort_by_key(|flow| flow.flow);
        Equilibrium {
            port: self.port,
            queue: seen.held,
            wait: seen.wait,
            signalled: signals / came,
            utilisation: (carried / self.capacity).min(1.0),
            flows,
            stability,
        }
    }

    /// Heun's method with steps of a fiftieth of the shortest delay.
    fn trajectory(
        &self,
        world: &World,
        point: &Point,
        start: f64,
        seconds: f64,
        rows: usize,
    ) -> Result<Vec<Vec<f64>>, SpecError> {
        let shortest = point.delays.iter().copied().fold(f64::INFINITY, f64::min);
        let step = (shortest / 50.0).min(seconds / rows.max(1) as f64);
        let steps = libm::ceil(seconds / step) as usize;
        if steps > MOST_STEPS {
            let most = MOST_STEPS as f64 * step;
            let problem = format!("{seconds} s are too long for round trips of {shortest:.4} s");
            return Err(SpecError::new(problem).allow([format!("up to {most:.0} s")]));
        }
        let mut past: Vec<Vec<f64>> =
            vec![point.state.iter().map(|value| value * start).collect::<Vec<f64>>()];
        let size = self.size();
        let mut table = Vec::new();
        let (places, ..) = self.places();
        for at in 0..=steps {
            let now = past[at].clone();
            if at * rows / steps.max(1) > (at.max(1) - 1) * rows / steps.max(1) || at == 0 {
                let mut row = vec![at as f64 * step, self.seen(&now).held];
                for flow in 0..world.flows.len() {
                    let mut classes = self.classes.iter().zip(&places);
                    let own = classes.find(|(class, _)| class.flows.contains(&flow));
                    row.extend(own.map(|(class, place)| class.control.window(&now[*place..])));
                }
                table.push(row);
            }
            let heard = |more: usize| -> Vec<&[f64]> {
                let ago = |delay: &f64| (at + more).saturating_sub((delay / step) as usize);
                point.delays.iter().map(|delay| &past[ago(delay).min(at)][..]).collect()
            };
            let mut first = vec![0.0; size];
            self.slopes(&now, &heard(0), &mut first);
            let ahead: Vec<f64> =
                now.iter().zip(&first).map(|(z, slope)| z + step * slope).collect();
            let mut second = vec![0.0; size];
            self.slopes(&ahead, &heard(1), &mut second);
            let next = now.iter().zip(first.iter().zip(&second));
            let next =
                next.map(|(z, (first, second))| (z + step * 0.5 * (first + second)).max(0.0));
            past.push(next.collect());
        }
        Ok(table)
    }
}

/// What a state means at the queue.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Packets, seconds, packets a second.
    held: f64,
    wait: f64,
    service: f64,
    p: f64,
}

/// Packets in flight that the buffers at both ends allow, less what the receiver has not acknowledged yet.
fn most(flow: &Stream) -> f64 {
    match flow.source {
        Source::Tcp { most, held, .. } => (most - held).max(0.0) / flow.packet,
        Source::Udp(_) | Source::Ping(_) => f64::INFINITY,
    }
}

/// Refuses flows of which some are gone before others come: nothing that holds for all of them is at rest.
fn meet(scenario: &Scenario, world: &World) -> Result<(), SpecError> {
    let tcp = || {
        let tcp = world.flows.iter().filter(|flow| matches!(flow.source, Source::Tcp { .. }));
        tcp.map(|flow| &scenario.flows[flow.id])
    };
    let end = |flow: &Flow| flow.stop.unwrap_or(scenario.duration).min(scenario.duration);
    let last = tcp().max_by_key(|flow| flow.start);
    let first = tcp().min_by_key(|flow| end(flow));
    match (first, last) {
        (Some(first), Some(last)) if end(first) <= last.start => {
            let problem = format!(
                "flow '{}' ends at {}, before flow '{}' begins at {}: they are never at rest together",
                first.name,
                end(first),
                last.name,
                last.start
            );
            Err(none(&problem))
        }
        _ => Ok(()),
    }
}

/// Flows of one BBR among themselves (Scherrer et al., IMC 2022); `None` if some flow is no BBR.
fn closed(
    world: &World,
    capacity: f64,
    link: &Bottleneck,
) -> Option<Result<Equilibrium, SpecError>> {
    let name = |source: &Source| match source {
        Source::Tcp { cca, .. } => cca.name(),
        Source::Udp(_) | Source::Ping(_) => "",
    };
    let flows: Vec<_> =
        world.flows.iter().filter(|flow| matches!(flow.source, Source::Tcp { .. })).collect();
    let is_bbr = |cca: &Cca| matches!(cca, Cca::Bbr(_) | Cca::Bbr2(_) | Cca::Bbr3(_));
    let has = |flow: &&&Stream| matches!(&flow.source, Source::Tcp { cca, .. } if is_bbr(cca));
    let first = *flows.iter().find(has)?;
    let refuse = |problem: String| Some(Err(none(&problem)));
    if flows.iter().any(|flow| name(&flow.source) != name(&first.source)) {
        let name = name(&first.source);
        let closed_form = match name {
            "bbr" => "; 'sojourn model ware-bbr' has a closed form",
            _ => "",
        };
        return refuse(format!("no smooth law of '{name}' beside others is known{closed_form}"));
    }
    let delay = first.base_rtt();
    if flows.iter().any(|flow| (flow.base_rtt() - delay).abs() > 1e-6) {
        return refuse("flows of BBR with different round trips have no known equilibrium".into());
    }
    let n = flows.len() as f64;
    let bdp = match &first.source {
        Source::Tcp { cca: Cca::Bbr(_), .. } if flows.len() >= 2 => 1.0,
        Source::Tcp { cca: Cca::Bbr2(_), .. } => (n - 1.0) / (4.0 * n + 1.0),
        Source::Tcp { cca: Cca::Bbr(_), .. } => {
            return refuse("one flow of BBR holds no queue between its probes".into());
        }
        _ => return refuse("no equilibrium of BBR version 3 is known".into()),
    };
    let held = bdp * capacity * delay;
    let packet = first.packet;
    if link.loss > 0.0 {
        return refuse("no equilibrium of BBR with losses on the medium is known".into());
    }
    let limit = match &link.queue {
        Qdisc::Fifo(sojourn_qdisc::fifo::Config::Packets(packets)) => f64::from(*packets),
        Qdisc::Fifo(sojourn_qdisc::fifo::Config::Bytes(bytes)) => bytes.as_u64() as f64 / packet,
        _ => return refuse("the equilibrium of BBR is known in a FIFO only".into()),
    };
    if limit < held {
        let problem =
            format!("the equilibrium of BBR holds {held:.0} packets, more than the queue");
        return refuse(problem);
    }
    let rtt = delay * (1.0 + bdp);
    let window = capacity * rtt / n;
    if let Some(flow) = flows.iter().find(|flow| most(flow) < window) {
        let problem = format!(
            "the equilibrium of BBR has windows of {window:.0} packets, and buffers allow one of {:.0}",
            most(flow)
        );
        return refuse(problem);
    }
    let at_rest = flows.iter().map(|flow| AtRest {
        flow: flow.id,
        window,
        goodput: capacity / n * 8.0 * f64::from(flow.payload),
        rtt,
        signalled: 0.0,
    });
    Some(Ok(Equilibrium {
        port: world.links[0].port,
        queue: held,
        wait: delay * bdp,
        signalled: 0.0,
        utilisation: 1.0,
        flows: at_rest.collect(),
        stability: None,
    }))
}
