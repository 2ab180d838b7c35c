//! The method of steps: every step looks back for what arrives in it, and adds a row to the past.

mod kinks;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{Purpose, Stream as Random, StreamAddress};

use crate::cca::{self, Allowed, Cca, Sample, Setup, Told};
use crate::curves::{
    ACKED, CAME, Curves, DROPPED, Drops, FLIGHT, IN, LOST, MARKED, MARKED_IN, MARKED_OUT, OF_FLOW,
    OF_HOP, OUT, Passed, RECEIVED, REFUSED, SENT, SENT_AT, Sending, Sparse,
};
use crate::history::{Cursor, History, Moment, Recent, TIME};
use crate::queue::{self, Due, Fate, Queue, Seen, Step};
use crate::world::{Source, Stream, World};

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Steps taken, and tried again shorter.
    pub steps: u64,
    pub retries: u64,
    /// The longest past that was kept, in rows, and the length of a row.
    pub rows: usize,
    pub columns: usize,
}

/// Columns of a class of a queue: let in, departed, when what departs came, and by how much what comes of a flow for
/// each byte that is let in changed at the row before, at most.
const CLASS_IN: usize = 0;
const CLASS_OUT: usize = 1;
const CLASS_CAME: usize = 2;
const CLASS_KINK: usize = 3;
const OF_CLASS: usize = 4;

/// Of [`Engine::tolerance`], unless it is refined.
const TOLERANCE: f64 = 0.65;
/// A window that changes by more than this share in a step does so at a moment.
const JUMP: f64 = 0.1;
/// Steps are at most this part of the shortest round trip, and at least that part, unless something
/// is due sooner.
const LONGEST: f64 = 1.0 / 8.0;
const SHORTEST: f64 = 1.0 / 96.0;
const LEAST_STEP: f64 = 20e-6;
const MOST_STEP: f64 = 10e-3;
/// Timers act after their time, not at it.
const JUST: f64 = 1e-9;
/// A wait grows no faster than time goes on. If so many seconds pass in which nothing leaves two queues on a way back, it is
/// longer by twice that.
const STAND_STILL: f64 = 1.0;
/// Bytes that are nothing.
const NOTHING: f64 = 1e-6;

/// Where the columns of things are.
#[derive(Clone, Debug)]
struct Layout {
    flows: Vec<usize>,
    /// By flow, then by hop.
    hops: Vec<Vec<usize>>,
    /// By link, then by class.
    classes: Vec<Vec<usize>>,
    /// The class in which a flow waits, by flow, then by hop.
    waits_in: Vec<Vec<usize>>,
    /// The member that it is there, by flow, then by hop.
    members: Vec<Vec<usize>>,
    /// The first of the TCP flows to which the same comes back at the same time.
    listeners: Vec<usize>,
    columns: usize,
}

/// A flow that sends over TCP.
#[derive(Clone, Debug)]
struct Sender {
    /// From the first data on.
    cca: Option<Cca>,
    begins: f64,
    /// Losses and marks are counted in whole packets from this part of one on.
    phase: f64,
    rtt: f64,
    least_rtt: f64,
    sample: Sample,
}

/// Bytes a second in a step.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    sent: f64,
    heard: f64,
}

#[derive(Clone, Debug, Default)]
struct Cursors {
    receiver: Cursor,
    sender: Cursor,
    sample: Cursor,
    enters: Cursor,
    /// Of the rows whose kinks come back, and of when they left the last queue.
    kink: Cursor,
    departs: Cursor,
    /// By hop: of what departs, of what came.
    out: Vec<Cursor>,
    came: Vec<Cursor>,
}

/// What flows with the same delays look up at the same time.
#[derive(Clone, Copy, Debug, Default)]
struct Recents {
    receiver: Recent,
    sample: Recent,
    passage: Passage,
}

/// What a class of a queue sends at a time, and when that came, by [`Engine::passage`].
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    /// Rows there had ever been, when it was found.
    rows: usize,
    class: usize,
    time: f64,
    left: Moment,
    came: Moment,
    came_at: f64,
    cursors: [Cursor; 2],
}

/// What is due at the head of a queue or of what comes to it, in bytes, by member.
#[derive(Clone, Debug)]
struct Owed {
    drops: Vec<f64>,
    marks: Vec<f64>,
    /// Of these, what the step took.
    dropped: Vec<f64>,
    marked: Vec<f64>,
}

impl Owed {
    fn new(members: usize) -> Self {
        let none = vec![0.0; members];
        Self { drops: none.clone(), marks: none.clone(), dropped: none.clone(), marked: none }
    }

    /// The step is made.
    fn settle(&mut self) {
        let pay = |owed: &mut [f64], paid: &[f64]| {
            owed.iter_mut().zip(paid).for_each(|(owed, paid)| *owed = (*owed - paid).max(0.0));
        };
        pay(&mut self.drops, &self.dropped);
        pay(&mut self.marks, &self.marked);
    }
}

/// What a class of a queue does in a step.
#[derive(Clone, Copy, Debug, Default)]
struct Passing {
    /// What had been let in before, what comes in, and what of its head is due to be dropped.
    entered: f64,
    arrived: f64,
    due: f64,
    /// Of what is due, this share is dropped.
    share: f64,
    /// Of what leaves, this share is dropped and was not due, and that share to make room.
    beyond: f64,
    excess: f64,
    /// When what leaves last came: at a moment of the past, or else after a part of the step.
    moment: Option<Moment>,
    part: f64,
    came: f64,
    /// One over what comes in, and the largest change of what comes of a member for each byte of it.
    each: f64,
    kink: f64,
}

struct Link {
    queue: Queue,
    classes: Vec<usize>,
    /// Flow and hop of each member.
    members: Vec<(usize, usize)>,
    head: Owed,
    tail: Owed,
    class_cursors: Vec<Cursor>,
    passing: Vec<Passing>,
    fate: Fate,
    random: Random,
    due: Vec<Due>,
    /// When its discipline last had something due.
    acted: f64,
    arrivals: Vec<f64>,
    backlogs: Vec<f64>,
    dropped: Vec<f64>,
    sojourns: Vec<f64>,
    /// What came of each member in the last step, for each byte that its class let in.
    shares: Vec<f64>,
    /// What was lost of each member in the step, and before it.
    lost_now: Vec<Drops>,
    lost: Vec<Drops>,
    loses: bool,
}

pub(crate) struct Engine<'a> {
    world: &'a World,
    layout: Layout,
    history: History,
    links: Vec<Link>,
    senders: Vec<Option<Sender>>,
    trial: Vec<Option<Sender>>,
    cursors: Vec<Cursors>,
    recents: Recents,
    new: Vec<f64>,
    /// What each flow sent, and heard to have been delivered or lost, in the last step.
    rates: Vec<Rates>,
    /// Steps are no shorter and no longer, unless something is due sooner.
    pub(crate) shortest: f64,
    /// The change of a rate that a step may straighten out, in packets.
    tolerance: f64,
    /// By how much a step of two flows may straighten out a kink in what comes back, in packets.
    kink: f64,
    /// The flow for which a step was last found too long.
    hardest: usize,
    pub(crate) longest: f64,
    pub(crate) now: f64,
    pub(crate) work: Work,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(world: &'a World, address: StreamAddress) -> Self {
        let mut column = 1;
        let mut take = |count: usize| {
            column += count;
            column - count
        };
        let flows = world.flows.iter().map(|_| take(OF_FLOW)).collect();
        let hops = world
            .flows
            .iter()
            .map(|flow| flow.hops.iter().map(|_| take(OF_HOP)).collect())
            .collect();
        let mut links: Vec<Link> = world
            .links
            .iter()
            .map(|link| {
                let random = address.stream(link.port as u64, Purpose::Loss);
                let queue = queue::build(&link.queue, &link.members, link.packet, random);
                let classes = queue.classes(&link.members);
                let count = match &queue {
                    Queue::DualPi2(_) => 2,
                    _ => classes.iter().max().map_or(1, |most| most + 1),
                };
                let none = vec![0.0; link.members.len()];
                Link {
                    queue,
                    classes,
                    members: Vec::new(),
                    head: Owed::new(none.len()),
                    tail: Owed::new(none.len()),
                    class_cursors: vec![Cursor::default(); count],
                    passing: vec![Passing::default(); count],
                    fate: Fate::default(),
                    random: address.stream(link.port as u64, Purpose::Queue),
                    due: Vec::new(),
                    acted: f64::NEG_INFINITY,
                    lost_now: vec![Drops::default(); none.len()],
                    lost: vec![Drops::default(); none.len()],
                    loses: false,
                    shares: none.clone(),
                    arrivals: none,
                    backlogs: vec![0.0; count],
                    dropped: vec![0.0; count],
                    sojourns: vec![0.0; count],
                }
            })
            .collect();
        let classes: Vec<Vec<usize>> = links
            .iter()
            .map(|link| link.backlogs.iter().map(|_| take(OF_CLASS)).collect())
            .collect();
        let mut waits_in = vec![Vec::new(); world.flows.len()];
        let mut members = waits_in.clone();
        for (at, flow) in world.flows.iter().enumerate() {
            for (index, hop) in flow.hops.iter().enumerate() {
                let link = &mut links[hop.link];
                let class = link.classes[link.members.len()];
                members[at].push(link.members.len());
                link.members.push((at, index));
                waits_in[at].push(classes[hop.link][class]);
            }
        }
        let listeners = kinks::listeners(world, &waits_in);
        let layout = Layout { flows, hops, classes, waits_in, members, listeners, columns: column };
        let tcp = || world.flows.iter().filter(|flow| matches!(flow.source, Source::Tcp { .. }));
        let shortest_rtt = tcp().map(|flow| flow.base_rtt()).fold(f64::INFINITY, f64::min);
        let shortest_rtt = if shortest_rtt.is_finite() { shortest_rtt } else { 0.05 };
        let longest = (shortest_rtt * LONGEST).clamp(LEAST_STEP, MOST_STEP);
        let senders: Vec<Option<Sender>> = world
            .flows
            .iter()
            .map(|flow| match flow.source {
                Source::Tcp { .. } => Some(Sender {
                    cca: None,
                    begins: flow.begins + flow.base_rtt(),
                    phase: address.stream(flow.id as u64, Purpose::Loss).unit(),
                    rtt: flow.base_rtt(),
                    least_rtt: f64::INFINITY,
                    sample: Sample::default(),
                }),
                Source::Udp(_) | Source::Ping(_) => None,
            })
            .collect();
        let cursors = world
            .flows
            .iter()
            .map(|flow| {
                let each = vec![Cursor::default(); flow.hops.len()];
                Cursors { out: each.clone(), came: each, ..Cursors::default() }
            })
            .collect();
        let new = vec![0.0; layout.columns];
        let mut engine = Self {
            world,
            history: History::new(&new),
            links,
            trial: senders.clone(),
            senders,
            cursors,
            recents: Recents::default(),
            rates: vec![Rates::default(); world.flows.len()],
            tolerance: TOLERANCE,
            kink: kinks::KINK,
            hardest: 0,
            shortest: (shortest_rtt * SHORTEST).clamp(LEAST_STEP, longest),
            longest,
            now: 0.0,
            work: Work { columns: layout.columns, ..Work::default() },
            new,
            layout,
        };
        for at in 0..world.flows.len() {
            engine.build_cca(at, address);
        }
        engine
    }

    /// Halves, with 2, the error that a step may make and the shortest step.
    pub(crate) fn refine(&mut self, fineness: f64) {
        self.tolerance = TOLERANCE / fineness;
        self.kink = kinks::KINK / fineness;
        self.shortest = (self.shortest / fineness).max(LEAST_STEP);
    }

    /// The controller is there from the beginning, and is told of nothing before its flow begins.
    fn build_cca(&mut self, at: usize, address: StreamAddress) {
        let flow = &self.world.flows[at];
        let Source::Tcp { cca, has_ecn, initial_window, .. } = &flow.source else { return };
        let setup = Setup {
            now: flow.begins + flow.base_rtt(),
            initial_window: *initial_window,
            packet: flow.packet,
            at_once: flow.member.burst * flow.packet,
            rtt: flow.base_rtt(),
            has_ecn: *has_ecn,
        };
        let random = address.stream(flow.id as u64, Purpose::Controller);
        if let Some(sender) = &mut self.senders[at] {
            sender.cca = Some(cca::build(cca, setup, random));
        }
        self.trial[at].clone_from(&self.senders[at]);
    }

    /// The next moment at which something is known to change.
    pub(crate) fn next_stop(&self, row: f64, end: f64) -> f64 {
        let mut stop = row.min(end);
        let mut note = |time: f64| {
            if time > self.now + JUST / 2.0 && time < stop {
                stop = time;
            }
        };
        for link in &self.world.links {
            note(link.capacity.next_change(self.now));
        }
        for link in &self.links {
            // A law that acts more and more often does so several times in a step.
            note((link.queue.timer() + JUST).max(link.acted + self.shortest));
        }
        for (flow, sender) in self.world.flows.iter().zip(&self.senders) {
            note(flow.begins);
            note(flow.ends);
            let Some(sender) = sender else { continue };
            note(sender.begins);
            if let Some(cca) = sender.cca.as_ref().filter(|_| sender.begins <= self.now) {
                note(cca.timer() + JUST);
            }
        }
        stop
    }

    /// Computes the row at the end of a step, and how much of the tolerance its error takes. Beyond `most` it
    /// leaves the row unfinished, because the step will be tried again. The flow that took most of it last is asked first: flows
    /// don't see each other within a step, and most steps that fail do so for the same flow again.
    pub(crate) fn attempt(&mut self, length: f64, most: f64) -> f64 {
        let mut error: f64 = 0.0;
        self.new.copy_from_slice(self.history.last());
        self.new[TIME] = self.now + length;
        let flows = self.world.flows.len();
        for at in (self.hardest..flows).chain(0..self.hardest) {
            error = error.max(self.send(at, length));
            if error > most {
                self.hardest = at;
                return error;
            }
        }
        for link in 0..self.links.len() {
            self.pass(link, length);
        }
        for at in 0..self.world.flows.len() {
            self.receive(at);
        }
        error
    }

    /// What comes back to a sender in the step, and what it sends on that.
    fn send(&mut self, at: usize, length: f64) -> f64 {
        let flow = &self.world.flows[at];
        let column = self.layout.flows[at];
        let (now, end) = (self.now, self.now + length);
        let (most, rate, held) = match &flow.source {
            Source::Udp(rate) => {
                let time = end.min(flow.ends) - now.max(flow.begins);
                self.new[column + SENT] = self.history.last()[column + SENT] + rate * time.max(0.0);
                return 0.0;
            }
            Source::Ping(_) => return 0.0,
            Source::Tcp { most, rate, held, .. } => (*most, *rate, *held),
        };
        let Some(sender) = self.senders[at].as_ref().filter(|sender| sender.begins < end) else {
            return 0.0;
        };
        let (begins, part) = (sender.begins, sender.phase);
        let back = self.way_back(flow);
        let news = self.look_back(at, end - back);
        let old = &self.history.last()[column..][..OF_FLOW];
        let [sent, acked, lost, marked, sent_at] =
            [SENT, ACKED, LOST, MARKED, SENT_AT].map(|of| old[of]);
        let acked_now = news.out.max(acked);
        let lost_now = news.lost.max(lost);
        let marked_now = news.marked.max(marked);
        let whole = |from: f64, to: f64| {
            let packets = |bytes: f64| packets(bytes, flow.packet, part);
            if to > from { (packets(to) - packets(from)) as u32 } else { 0 }
        };
        let is_heard = acked_now > acked + NOTHING;
        let sample = is_heard.then(|| self.sample(at, &news, acked_now, lost_now, begins, part));
        self.trial[at].clone_from(&self.senders[at]);
        let Some(trial) = &mut self.trial[at] else { return 0.0 };
        if let Some(sample) = sample {
            trial.rtt = end - news.sent_at;
            trial.least_rtt = trial.least_rtt.min(trial.rtt);
            trial.sample = sample;
        }
        let Some(cca) = &mut trial.cca else { return 0.0 };
        let known = acked_now + lost_now;
        let time = end.min(flow.ends) - now.max(begins);
        // What the application has written by then, and what must be sent again.
        let written = rate * (end.min(flow.ends) - flow.begins);
        let until = |allowed: Allowed| {
            let mut to = known + allowed.window.min(most) - held;
            if let Some(pacing) = allowed.pacing {
                to = to.min(sent + pacing * time.max(0.0));
            }
            to = if end > flow.ends + length { sent } else { to.min(written + lost_now) };
            to.max(sent)
        };
        let (before, phase, timer) = (cca.allowed(), cca.phase(), cca.timer());
        let sent_before = until(before);
        let in_flight = sent_before - known + held;
        let told = Told {
            now: end,
            acked: acked_now - acked,
            marked: marked_now - marked,
            losses: whole(lost, lost_now),
            marks: whole(marked, marked_now),
            delivered: acked_now,
            sent: sent_before,
            rtt: trial.rtt,
            in_flight,
            is_limited: in_flight + flow.packet >= before.window,
            sample: trial.sample,
        };
        if told.acked + lost_now - lost > NOTHING {
            cca.on_step(&told);
        }
        let allowed = cca.allowed();
        let mut is_jump = !is_same(cca.phase(), phase)
            || (allowed.window - before.window).abs() > JUMP * before.window;
        let mut sent_now = until(allowed);
        if is_jump && timer > now && timer <= end {
            // The step ends at the timer, so what it changes begins with the next one.
            sent_now = sent_before;
            is_jump = false;
        }
        let new = &mut self.new[column..][..OF_FLOW];
        new[SENT] = sent_now;
        new[ACKED] = acked_now;
        new[LOST] = lost_now;
        new[MARKED] = marked_now;
        // When a flow has stopped, nothing stays at the receiver.
        let under_way = sent_now - known;
        new[FLIGHT] = under_way + held.min(under_way);
        new[SENT_AT] = news.sent_at.max(sent_at);
        // Half of the change, over half of the step. What follows a kink in what comes back is no error, as a step ends there.
        let rate = (sent_now - sent) / length;
        let bend = rate - self.rates[at].sent;
        let heard = (known - acked - lost) / length - self.rates[at].heard;
        let bend = bend.abs().min((bend - heard).abs()) * length / 4.0;
        let error = bend / (self.tolerance * flow.packet.max(rate * self.shortest));
        if is_jump { error.max(4.0) } else { error }
    }

    /// What leaves a queue of a flow at a time, and when it came: the time at which as much had been let in as has
    /// left. Read from what was let in, whose rows are where it bends, a kink is as sharp when it leaves as when it came.
    #[inline]
    fn passage(&mut self, flow: usize, hop: usize, time: f64) -> Passage {
        let class = self.layout.waits_in[flow][hop];
        let (history, cursors) = (&self.history, &mut self.cursors[flow]);
        let recent = &mut self.recents.passage;
        let rows = history.ever();
        if recent.rows == rows && recent.class == class && recent.time == time {
            [cursors.out[hop], cursors.came[hop]] = recent.cursors;
            return *recent;
        }
        let left = history.at(time, &mut cursors.out[hop]);
        let bytes = history.value(left, class + CLASS_OUT);
        let mut came = history.find(class + CLASS_IN, bytes, &mut cursors.came[hop]);
        let mut came_at = history.value(came, TIME);
        let time_left = time.min(self.now);
        if came_at > time_left {
            // Nothing waited.
            (came, came_at) = (left, time_left);
        }
        let cursors = [cursors.out[hop], cursors.came[hop]];
        *recent = Passage { rows, class, time, left, came, came_at, cursors };
        *recent
    }

    /// Follows what left the last queue of a flow at `time` back to its sender. What this takes in all is the
    /// round trip, equation (15): each queue adds t − e(t). Inlined where senders look back, although not only they do.
    #[inline(always)]
    fn look_back(&mut self, at: usize, time: f64) -> News {
        let flow = &self.world.flows[at];
        let mut news = News { out: 0.0, lost: 0.0, marked: 0.0, sent_at: time.min(self.now) };
        if flow.hops.is_empty() {
            let moment = self.history.at(time, &mut self.cursors[at].sender);
            news.out = self.history.value(moment, self.layout.flows[at] + SENT);
            return news;
        }
        let mut time = time;
        for (index, hop) in flow.hops.iter().enumerate().rev() {
            let passage = self.passage(at, index, time);
            let column = self.layout.hops[at][index];
            let [dropped, marked_out] = self.history.values(passage.left, column + DROPPED);
            let [let_in, refused, marked_in] = self.history.values(passage.came, column + IN);
            if index + 1 == flow.hops.len() {
                news.out = let_in - dropped;
            }
            news.lost += dropped + refused;
            news.marked += marked_out + marked_in;
            time = passage.came_at - hop.before;
        }
        news.sent_at = time;
        news
    }

    /// `begins` and `part` are the sender's.
    fn sample(
        &mut self,
        at: usize,
        news: &News,
        acked: f64,
        lost: f64,
        begins: f64,
        part: f64,
    ) -> Sample {
        let column = self.layout.flows[at];
        let cursor = &mut self.cursors[at].sample;
        let moment = self.history.at_again(news.sent_at, cursor, &mut self.recents.sample);
        let [prior_delivered, lost_then, _, flight, sent_at] =
            self.history.values(moment, column + ACKED);
        let end = self.new[TIME];
        let packet = self.world.flows[at].packet;
        let delivered = acked - prior_delivered;
        // What is acknowledged is a packet at least, so an estimate never fades away.
        let counted = delivered.max(packet);
        let sending = news.sent_at - sent_at.max(begins);
        let interval = (end - news.sent_at).max(sending);
        Sample {
            bw: if interval > 0.0 { counted / interval } else { 0.0 },
            delivered,
            prior_delivered,
            tx_in_flight: flight,
            lost: packet * (packets(lost, packet, part) - packets(lost_then, packet, part)),
        }
    }

    /// What a link's queue does with what comes in the step: equations (16) and (24), with what leaves by (17).
    fn pass(&mut self, at: usize, length: f64) {
        let now = self.now;
        let world = &self.world.links[at];
        for member in 0..self.links[at].members.len() {
            let (flow, hop) = self.links[at].members[member];
            let column = self.layout.hops[flow][hop];
            let came = self.enters(flow, hop);
            let before = self.new[column + IN] + self.new[column + REFUSED];
            let link = &mut self.links[at];
            let arrived = (came - before).max(0.0);
            link.tail.dropped[member] = link.tail.drops[member].min(arrived);
            // What the discipline sees.
            link.arrivals[member] = arrived - link.tail.dropped[member];
        }
        let link = &mut self.links[at];
        let capacity = world.capacity.until(now + length) - world.capacity.until(now);
        for (class, column) in link.passing.iter_mut().zip(&self.layout.classes[at]) {
            *class = Passing { entered: self.new[column + CLASS_IN], ..Passing::default() };
        }
        for (class, drops) in link.classes.iter().zip(&link.head.drops) {
            link.passing[*class].due += drops;
        }
        for (class, column) in self.layout.classes[at].iter().enumerate() {
            let Passing { entered, due, .. } = link.passing[class];
            link.backlogs[class] = entered - self.new[column + CLASS_OUT];
            link.dropped[class] = due.min(capacity).min(link.backlogs[class]);
        }
        link.fate.clear(link.members.len(), link.backlogs.len());
        if core::mem::take(&mut link.loses) {
            link.lost_now.fill(Drops::default());
        }
        let step = Step {
            length,
            capacity,
            arrivals: &link.arrivals,
            members: &world.members,
            backlogs: &link.backlogs,
            dropped: &link.dropped,
        };
        link.queue.advance(&step, &mut link.fate);
        for (member, class) in link.classes.iter().enumerate() {
            let let_in = link.arrivals[member] - link.fate.lost[member];
            link.tail.marked[member] = link.tail.marks[member].min(let_in);
            link.fate.marked[member] += link.tail.marked[member];
            link.passing[*class].arrived += let_in;
        }
        for (class, column) in self.layout.classes[at].iter().enumerate() {
            let passing = &mut link.passing[class];
            let Passing { entered, arrived, due, .. } = *passing;
            let left =
                (self.new[column + CLASS_OUT] + link.fate.departures[class]).min(entered + arrived);
            self.new[column + CLASS_IN] = entered + arrived;
            self.new[column + CLASS_OUT] = left;
            let came = if left >= entered {
                // What leaves came in this step.
                let is_empty = entered + arrived - left < NOTHING;
                passing.part = if is_empty { 1.0 } else { (left - entered) / arrived };
                passing.moment = None;
                now + passing.part * length
            } else {
                let cursor = &mut link.class_cursors[class];
                let moment = self.history.find(column + CLASS_IN, left, cursor);
                passing.moment = Some(moment);
                self.history.value(moment, TIME)
            };
            passing.came = came.max(self.new[column + CLASS_CAME]);
            self.new[column + CLASS_CAME] = passing.came;
            passing.share = if due > 0.0 { link.dropped[class] / due } else { 0.0 };
            let beyond = link.fate.beyond[class];
            if beyond > 0.0 {
                let share = |bytes: f64| bytes / link.fate.departures[class];
                passing.beyond = share(beyond);
                passing.excess = share(link.fate.excess[class]);
            }
        }
        for (member, (flow, hop)) in link.members.iter().enumerate() {
            let passing = &link.passing[link.classes[member]];
            let column = self.layout.hops[*flow][*hop];
            let row = &mut self.new[column..][..OF_HOP];
            let lost = link.fate.lost[member];
            let entered = row[IN];
            row[IN] += link.arrivals[member] - lost;
            row[REFUSED] += lost + link.tail.dropped[member];
            row[MARKED_IN] += link.fate.marked[member];
            let out = match passing.moment {
                Some(moment) => self.history.value(moment, column + IN),
                None => entered + passing.part * (row[IN] - entered),
            };
            let left = (out - row[OUT]).max(0.0);
            row[OUT] += left;
            // The packet at the head may be more than what leaves of its flow in the step; then what
            // has left without it falls back for a while, which readers of the curve pass over.
            let dropped = link.head.drops[member] * passing.share;
            let beyond = left * passing.beyond;
            let passed = (left - dropped - beyond).max(0.0);
            let marked = link.head.marks[member].min(passed);
            link.head.dropped[member] = dropped;
            link.head.marked[member] = marked;
            row[DROPPED] += dropped + beyond + passed * world.loss;
            let medium = passed * world.loss;
            let late = link.tail.dropped[member];
            if lost + late + dropped + beyond + medium > 0.0 {
                link.loses = true;
                let early = link.fate.early(member);
                let excess = left * passing.excess;
                link.lost_now[member] = Drops {
                    tail: [(lost - early).max(0.0), early + late, 0.0],
                    head: [excess, dropped + (beyond - excess).max(0.0), medium],
                };
            }
            row[MARKED_OUT] += marked;
            row[CAME] = passing.came;
        }
    }

    /// What of a flow has come to one of its queues by the end of the step.
    fn enters(&mut self, flow: usize, hop: usize) -> f64 {
        let end = self.new[TIME];
        let time = end - self.world.flows[flow].hops[hop].before;
        let is_here = time > self.now;
        let part = (time - self.now) / (end - self.now);
        let last = self.history.last();
        // With a delay shorter than the step.
        let value = |column: usize| last[column] + part * (self.new[column] - last[column]);
        match hop.checked_sub(1) {
            None => {
                let column = self.layout.flows[flow] + SENT;
                if is_here {
                    return value(column);
                }
                let moment = self.history.at(time, &mut self.cursors[flow].enters);
                self.history.value(moment, column)
            }
            Some(before) => {
                let column = self.layout.hops[flow][before];
                if is_here {
                    return value(column + OUT) - value(column + DROPPED);
                }
                let passage = self.passage(flow, before, time);
                let let_in = self.history.value(passage.came, column + IN);
                let_in - self.history.value(passage.left, column + DROPPED)
            }
        }
    }

    fn receive(&mut self, at: usize) {
        let flow = &self.world.flows[at];
        let (end, now) = (self.new[TIME], self.now);
        let time = end - flow.to_receiver;
        let (column, dropped) = match flow.hops.len().checked_sub(1) {
            None => (self.layout.flows[at] + SENT, None),
            Some(last) => {
                let column = self.layout.hops[at][last];
                (column + OUT, Some(column + DROPPED))
            }
        };
        let received = if time > now {
            let part = (time - now) / (end - now);
            let last = self.history.last();
            let value = |column: usize| last[column] + part * (self.new[column] - last[column]);
            value(column) - dropped.map_or(0.0, value)
        } else {
            let cursor = &mut self.cursors[at].receiver;
            let moment = self.history.at_again(time, cursor, &mut self.recents.receiver);
            let value = |column: usize| self.history.value(moment, column);
            value(column) - dropped.map_or(0.0, value)
        };
        let cell = &mut self.new[self.layout.flows[at] + RECEIVED];
        *cell = cell.max(received);
    }

    /// From a flow's last queue to its receiver and back to its sender, in seconds.
    fn way_back(&self, flow: &Stream) -> f64 {
        let wait = |link: &usize| {
            let class = self.links[*link].queue.class_of_sparse();
            class.map_or(0.0, |class| self.links[*link].sojourns[class])
        };
        let waits: f64 = flow.way_back.iter().map(wait).sum();
        flow.to_receiver + flow.to_sender + waits
    }

    /// Makes the row that was computed the last one.
    pub(crate) fn accept(&mut self, now: f64) -> Result<(), String> {
        // Without an early end, which takes longer than to look at all.
        let is_finite = self.new.iter().fold(true, |all, value| all & value.is_finite());
        if !is_finite {
            let at = self.new.iter().position(|value| !value.is_finite()).unwrap_or_default();
            return Err(format!("the equations diverge at {now:.6} s (column {at})"));
        }
        if self.history.is_full() {
            let oldest = self.oldest();
            self.history.forget_before(oldest);
        }
        let length = now - self.now;
        let last = self.history.last();
        for (rates, column) in self.rates.iter_mut().zip(&self.layout.flows) {
            let by = |of: usize| (self.new[column + of] - last[column + of]) / length;
            *rates = Rates { sent: by(SENT), heard: by(ACKED) + by(LOST) };
        }
        // Those that have not begun are the same in both.
        core::mem::swap(&mut self.senders, &mut self.trial);
        self.new[TIME] = now;
        for at in 0..self.links.len() {
            self.note_kinks(at);
            self.settle(at, now, length);
        }
        self.history.push(&self.new);
        self.now = now;
        self.work.steps += 1;
        self.work.rows = self.work.rows.max(self.history.rows());
        Ok(())
    }

    /// What a queue's discipline makes of the step.
    fn settle(&mut self, at: usize, now: f64, length: f64) {
        let last = self.history.last();
        let link = &mut self.links[at];
        link.head.settle();
        link.tail.settle();
        if link.loses {
            link.lost.iter_mut().zip(&link.lost_now).for_each(|(lost, now)| lost.add(now));
        }
        for class in 0..link.backlogs.len() {
            let column = self.layout.classes[at][class];
            link.backlogs[class] = self.new[column + CLASS_IN] - self.new[column + CLASS_OUT];
            link.sojourns[class] = (now - self.new[column + CLASS_CAME]).max(0.0);
        }
        link.due.clear();
        let world = &self.world.links[at];
        let seen = Seen {
            now,
            arrived: link.arrivals.iter().sum(),
            capacity: world.capacity.until(now) - world.capacity.until(now - length),
            sojourns: &link.sojourns,
            backlogs: &link.backlogs,
            left: &link.fate.departures,
            excess: &link.fate.excess,
        };
        link.queue.observe(&seen, &mut link.due);
        // While the link stands still, so does a law that acts on what leaves.
        let is_late = link.queue.timer() <= now && seen.capacity > 0.0;
        if is_late || link.due.iter().any(|due| due.packets > 0) {
            link.acted = now;
        }
        for due in &link.due {
            for _ in 0..due.packets {
                let passed = |member: usize| {
                    if due.at_tail {
                        return link.arrivals[member];
                    }
                    let (flow, hop) = link.members[member];
                    let column = self.layout.hops[flow][hop] + OUT;
                    self.new[column] - last[column]
                };
                let of = |member: &usize| link.classes[*member] == due.class;
                let members = || (0..link.members.len()).filter(of);
                let all: f64 = members().map(passed).sum();
                // The packet is of a flow with the probability of its share.
                let mut pick = link.random.unit() * all;
                let chosen = members().find(|member| {
                    pick -= passed(*member);
                    pick < 0.0
                });
                let Some(member) = chosen.or_else(|| members().next()) else { continue };
                let packet = world.members[member].packet;
                let owed = if due.at_tail { &mut link.tail } else { &mut link.head };
                if due.may_mark && world.members[member].is_capable {
                    owed.marks[member] += packet;
                } else {
                    owed.drops[member] += packet;
                }
            }
        }
    }

    /// The earliest time that a look-up may still ask for: when that was sent of which the end of a flow hears. Later it
    /// hears of what was sent later.
    #[cold]
    fn oldest(&mut self) -> f64 {
        let world = self.world;
        let mut oldest = self.now;
        for (at, flow) in world.flows.iter().enumerate() {
            let back = match flow.source {
                Source::Tcp { .. } => self.way_back(flow),
                Source::Udp(_) => flow.to_receiver,
                Source::Ping(_) => continue,
            };
            let mut sent_at = self.look_back(at, self.now - back).sent_at;
            if flow.way_back.len() > 1 {
                sent_at -= STAND_STILL;
            }
            oldest = oldest.min(sent_at);
        }
        oldest - JUST
    }
}

impl Curves for Engine<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn of_flow(&self, flow: usize) -> &[f64] {
        &self.new[self.layout.flows[flow]..][..OF_FLOW]
    }

    fn of_hop(&self, flow: usize, hop: usize) -> &[f64] {
        &self.new[self.layout.hops[flow][hop]..][..OF_HOP]
    }

    fn sender(&self, flow: usize) -> Option<Sending> {
        let sender = self.senders[flow].as_ref().filter(|sender| sender.begins <= self.now)?;
        let cca = sender.cca.as_ref()?;
        let allowed = cca.allowed();
        Some(Sending {
            window: allowed.window,
            pacing: allowed.pacing,
            rtt: sender.rtt,
            least_rtt: sender.least_rtt,
            bw: sender.sample.bw,
            phase: cca.phase(),
            shown: cca.shown(),
        })
    }

    fn backlog(&self, link: usize) -> f64 {
        self.links[link].backlogs.iter().sum()
    }

    fn sojourn(&self, link: usize) -> f64 {
        self.links[link].sojourns.iter().copied().fold(0.0, f64::max)
    }

    fn sparse(&self, link: usize) -> Sparse {
        let it = &self.links[link];
        let Some(class) = it.queue.class_of_sparse() else {
            return Sparse { came_at: self.now, ..Sparse::default() };
        };
        let came_at = self.new[self.layout.classes[link][class] + CLASS_CAME];
        let (mut tail, mut head) = (Passed::default(), Passed::default());
        let members = it.members.iter().zip(&it.lost).zip(&it.classes);
        for (((flow, hop), lost), _) in members.filter(|(_, of)| **of == class) {
            let row = self.of_hop(*flow, *hop);
            tail.came += row[IN] + row[REFUSED];
            head.came += row[OUT];
            let marked = [row[MARKED_IN], row[MARKED_OUT]];
            for (end, (lost, marked)) in [&mut tail, &mut head]
                .into_iter()
                .zip([lost.tail, lost.head].into_iter().zip(marked))
            {
                end.lost[0] += lost[0];
                end.lost[1] += lost[1] + marked;
            }
        }
        Sparse { came_at, tail, head }
    }

    fn drops(&self, flow: usize, hop: usize) -> Drops {
        let link = self.world.flows[flow].hops[hop].link;
        self.links[link].lost[self.layout.members[flow][hop]]
    }
}

/// What a sender learns from what left the last queue at a time.
#[derive(Clone, Copy, Debug)]
struct News {
    /// What left it, and what was lost and marked among what was sent before.
    out: f64,
    lost: f64,
    marked: f64,
    sent_at: f64,
}

/// Whole packets of so many bytes, counted from this part of one on.
fn packets(bytes: f64, packet: f64, part: f64) -> f64 {
    (bytes / packet + part) as i64 as f64
}

/// Phases are mostly the same text at the same place.
fn is_same(phase: &'static str, other: &'static str) -> bool {
    core::ptr::eq(phase, other) || phase == other
}
