//! A guest: the processes of a user-mode kernel, its clock and its network card.
//!
//! The guest runs only while [`Guest::run`] or [`Guest::deliver`] is under way. Everything that it says on one of its sockets waits
//! for an answer. What its card says is answered when all that it said of its clock before has been read, so what happens follows
//! from what was said before.
//!
//! Each answer that a guest waits for costs two changes of the process at work, and these are most of what a run takes. So an answer
//! that says nothing but that a message was read, and that the guest needs in any case, is sent ahead, with what wakes the guest:
//! its next message then goes on without a pause. A guest that is told to wait gets its answer only with the next thing that happens
//! to it: until then it is deaf to interrupts, so the answers to what an interrupt makes it ask can be sent ahead, too. What it says
//! after a frame is mostly that it waits, so nothing is sent ahead behind the reply of its card.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recv, recvmsg};

use crate::card_messages::{self, CardMessage, Header};
use crate::clock_messages::{ClockMessage, Says};
use crate::console::{self, Console};
use crate::fault::{Fault, Last, State};
use crate::install::{self, Installed};
use crate::memory::Memory;
use crate::rings::{self, CARD_HEADER, Ring};
use crate::scratch::{self, Folder};
use crate::segments;
use crate::splat;
use crate::symbols::Symbols;

/// What a guest is started with.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    /// Whose kernel it is, in words: `the sender of flow 'a'`.
    pub(crate) name: &'a str,
    pub(crate) kernel: &'a Path,
    pub(crate) installed: &'a Installed,
    /// What its kernel draws at random follows from this.
    pub(crate) seed: u64,
    /// Its cards, by the last byte of their addresses.
    pub(crate) cards: &'a [u8],
    /// Its cards cut what is longer than a frame.
    pub(crate) offload: bool,
    pub(crate) memory: Memory,
    /// After so much real time without a word it has hung.
    pub(crate) patience: Duration,
}

#[derive(Debug)]
pub(crate) struct Guest {
    keeper: Keeper,
    clock: UnixStream,
    cards: Vec<Card>,
    /// No earlier than the guest's own clock, in nanoseconds of that.
    now: u64,
    /// When it wants to run next.
    request: Option<u64>,
    rest: Rest,
    /// Until when it need not ask for the time.
    free_until: u64,
    /// Its acknowledgements that have not come yet.
    owed: u32,
    next_number: u32,
    /// What has come on the socket of its clock and is not a whole message yet.
    heard: Vec<u8>,
    /// The number of its last message.
    heard_number: u32,
    /// How many of its next messages have been answered already.
    answered_ahead: u32,
    /// Since it has started nothing is said of its card but kicks.
    has_started: bool,
    interrupt: Interrupt,
    /// What it has sent, when, and by which of its cards.
    sent: VecDeque<(u64, usize, Vec<u8>)>,
    patience: Duration,
    memory: Memory,
    /// How many messages it has sent while its clock shows this.
    messages: (u64, u32),
    /// When, in real time, its clock entered the present millisecond.
    entered: (u64, Instant),
    /// How often it was told to run.
    runs: u64,
    /// When, by its own clock, it last had nothing to do, or sent something.
    got_on: u64,
    /// How often it has run since then, and whether that is for so long that it is asked at each step.
    busy_steps: u32,
    is_doubted: bool,
}

#[derive(Debug, Default)]
struct Card {
    listener: Option<UnixListener>,
    socket: Option<UnixStream>,
    back: Option<UnixStream>,
    memory: rings::Memory,
    /// Arrivals, and what is sent.
    rings: [Ring; 2],
    number: u8,
    /// It cuts what is longer than a frame.
    offload: bool,
    /// Its last kick that was replied to when it came.
    kick: Option<Header>,
    /// How many of its next kicks have been replied to already.
    replied_ahead: u32,
}

/// Whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Runs,
    /// It waits for the answer to its message of this number, which says that it waits.
    Unanswered(u32),
    /// It waits to be told to run, and hears interrupts.
    Answered,
}

/// What a guest says when it is interrupted.
#[derive(Clone, Copy, Debug, Default)]
struct Interrupt {
    /// It has been told, and has not replied.
    is_under_way: bool,
    /// How many of [`ON_INTERRUPT`] are still to come, and have been answered ahead.
    ahead: usize,
    /// How many messages it has sent since it was told, and whether they were those of [`ON_INTERRUPT`].
    said: usize,
    is_as_known: bool,
    /// The last interrupt had just these, so the next one has: their answers can be sent ahead.
    is_known: bool,
}

/// It asks for the time, and wants to run then.
const ON_INTERRUPT: [Says; 2] = [Says::Get, Says::Request];

/// The payload of a reply that says that a message of a card was understood.
const NOTHING_MORE: [u8; 8] = [0; 8];

const ARRIVALS: u32 = 0;
const SENT: u32 = 1;

/// The time of day at which every guest starts, in nanoseconds since 1970.
const TIME_OF_DAY: u64 = 1_800_000_000_000_000_000;

impl Guest {
    /// Starts a guest and lets it run until it has sent its first frame.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self, Fault> {
        let folder = Folder::named(start.memory.room());
        let mut folder =
            folder.map_err(|why| Fault::Machine("finding room for a guest's memory", why))?;
        // Whoever removes what is left of this process is there before there is anything.
        let mut keeper = Keeper::start(start, folder.path())?;
        folder.create().map_err(|why| Fault::Machine("making a folder for sockets", why))?;
        let bind = |name: &str| {
            let listener = UnixListener::bind(folder.path().join(name));
            listener.map_err(|why| Fault::Machine("opening a socket for a guest", why))
        };
        let listener = bind("clock")?;
        let card = |(index, number): (usize, &u8)| {
            let listener = Some(bind(&card_name(index))?);
            Ok(Card { listener, number: *number, offload: start.offload, ..Card::default() })
        };
        let cards = start.cards.iter().enumerate().map(card).collect::<Result<_, Fault>>()?;
        keeper.go()?;
        let knows_release = |kernel: &Path| install::release(kernel).is_ok();
        let of_start = |fault: Fault| fault.of_start(start.kernel, knows_release);
        let clock = accept(&listener, &keeper, start.patience).map_err(of_start)?;
        let mut guest = Self {
            keeper,
            clock,
            cards,
            now: 0,
            request: None,
            rest: Rest::Runs,
            free_until: 0,
            owed: 0,
            next_number: 0,
            heard: Vec::new(),
            heard_number: 0,
            answered_ahead: 0,
            has_started: false,
            interrupt: Interrupt::default(),
            sent: VecDeque::new(),
            patience: start.patience,
            memory: start.memory,
            messages: (0, 0),
            entered: (0, Instant::now()),
            runs: 0,
            got_on: 0,
            busy_steps: 0,
            is_doubted: false,
        };
        guest.boot().map_err(of_start)?;
        Ok(guest)
    }

    /// Until it has sent something, which is after everything in it is set up.
    fn boot(&mut self) -> Result<(), Fault> {
        const AT_ONCE: u64 = 10_000_000;
        const LONGEST: u64 = 60_000_000_000;
        self.serve_until_waiting()?;
        while self.sent.is_empty() {
            let Some(next) = self.request else {
                return Err(self.keeper.ended());
            };
            if next > LONGEST {
                return Err(self.keeper.silent(LONGEST as f64 / 1e9));
            }
            self.run(next, next + AT_ONCE)?;
        }
        // It has opened its sockets and its memory, so their names can go.
        self.cards.iter_mut().for_each(|card| card.listener = None);
        self.has_started = true;
        Ok(())
    }

    /// When it next has something to do.
    pub(crate) fn request(&self) -> Option<u64> {
        self.request
    }

    /// No earlier than its clock.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// What it has sent, when, and by which of its cards.
    pub(crate) fn take_sent(&mut self) -> Option<(u64, usize, Vec<u8>)> {
        self.sent.pop_front()
    }

    /// Lets it run from `at`, the time that it asked for, until it waits. It need not ask for the time before `free_until`.
    pub(crate) fn run(&mut self, at: u64, free_until: u64) -> Result<(), Fault> {
        self.enter(at)?;
        self.now = at;
        let free_until = if self.is_doubted { at } else { free_until };
        let mut said = self.answer_to_wait();
        self.say_run(&mut said, at, free_until);
        write(&mut self.clock, &said, &self.keeper)?;
        self.serve_until_waiting()
    }

    /// The answer that a waiting guest has not got yet.
    fn answer_to_wait(&mut self) -> Vec<u8> {
        let mut said = Vec::with_capacity(6 * ClockMessage::LEN);
        if let Rest::Unanswered(number) = self.rest {
            said.extend(answer(number, 0));
            self.rest = Rest::Answered;
        }
        said
    }

    fn say_run(&mut self, said: &mut Vec<u8>, at: u64, free_until: u64) {
        if free_until > at {
            said.extend(self.message(Says::FreeUntil, free_until));
        }
        said.extend(self.message(Says::Run, at));
        (self.rest, self.request, self.free_until) = (Rest::Runs, None, free_until.max(at));
        self.runs += 1;
        // That of its first message, which is mostly a request or tells the time.
        self.answer_ahead(said, at);
    }

    /// Answers one more of its next messages.
    fn answer_ahead(&mut self, said: &mut Vec<u8>, time: u64) {
        if self.has_started {
            self.answered_ahead += 1;
            said.extend(answer(self.heard_number.wrapping_add(self.answered_ahead), time));
        }
    }

    /// Frames reach one of its cards at `at`, and it runs until it waits. Says for how many of them that card had room.
    pub(crate) fn deliver(
        &mut self,
        card: usize,
        at: u64,
        frames: &[Vec<u8>],
        free_until: u64,
    ) -> Result<usize, Fault> {
        let at = at.max(self.now);
        self.now = at;
        let Card { rings, memory, .. } = &mut self.cards[card];
        let arrivals = &mut rings[ARRIVALS as usize];
        let mut taken = 0;
        for frame in frames {
            if !arrivals.put(memory, frame)? {
                break;
            }
            taken += 1;
        }
        if taken == 0 {
            return Ok(0);
        }
        if arrivals.wants_interrupt(memory)? {
            if self.interrupt.is_known && self.is_idle(at) {
                self.enter(at)?;
                self.interrupt_and_run(card, at, free_until)?;
                return Ok(taken);
            }
            self.interrupt(card)?;
        }
        match self.request {
            Some(request) if request <= at => self.run(request, free_until)?,
            // It is busy and looks for frames by itself, or does so later.
            _ => {}
        }
        Ok(taken)
    }

    /// Whether it does nothing, and has done all that earlier interrupts were about. One that is busy waits because it reads its clock
    /// behind the time until which it was free to; it does so once more and goes on.
    fn is_idle(&self, at: u64) -> bool {
        const LONGEST_READING: u64 = 10_000;
        let beyond = at.max(self.free_until) + LONGEST_READING;
        matches!(self.rest, Rest::Unanswered(_))
            && self.request.is_some_and(|request| request > beyond)
    }

    /// Tells it of an arrival and waits for the reply.
    fn interrupt(&mut self, card: usize) -> Result<(), Fault> {
        let said = self.answer_to_wait();
        write(&mut self.clock, &said, &self.keeper)?;
        self.say_interrupt(card)?;
        while self.interrupt.is_under_way {
            self.serve()?;
        }
        Ok(())
    }

    /// The same, and it runs from then on: all that it asks is answered before it asks.
    fn interrupt_and_run(&mut self, card: usize, at: u64, free_until: u64) -> Result<(), Fault> {
        // The signal that goes with it is there before the answer, and the guest acts on it when it has that.
        self.say_interrupt(card)?;
        let mut said = self.answer_to_wait();
        for _ in ON_INTERRUPT {
            self.answer_ahead(&mut said, at);
            self.interrupt.ahead += 1;
        }
        (self.interrupt.said, self.interrupt.is_as_known) = (ON_INTERRUPT.len(), true);
        self.say_run(&mut said, at, free_until);
        write(&mut self.clock, &said, &self.keeper)?;
        self.serve_until_waiting()
    }

    fn say_interrupt(&mut self, card: usize) -> Result<(), Fault> {
        let back = self.cards[card].back.as_mut();
        let back =
            back.ok_or_else(|| Fault::Nonsense("its card has no back channel".to_owned()))?;
        write(back, &card_messages::interrupt(ARRIVALS), &self.keeper)?;
        let is_known = self.interrupt.is_known;
        self.interrupt =
            Interrupt { is_under_way: true, is_as_known: true, is_known, ..Interrupt::default() };
        Ok(())
    }

    fn message(&mut self, says: Says, time: u64) -> [u8; ClockMessage::LEN] {
        self.next_number = self.next_number.wrapping_add(1);
        self.owed += 1;
        ClockMessage { says, number: self.next_number, time }.bytes()
    }

    fn serve_until_waiting(&mut self) -> Result<(), Fault> {
        while self.rest == Rest::Runs || self.owed > 0 || self.interrupt.is_under_way {
            self.serve()?;
        }
        // It may have gone on by itself until then.
        self.now = self.now.max(self.free_until);
        self.busy_steps += 1;
        if self.is_idle(self.now) {
            (self.got_on, self.busy_steps) = (self.now, 0);
        }
        Ok(())
    }

    /// A guest that never waits would be listened to for ever.
    fn count_message(&mut self) -> Result<(), Fault> {
        /// Far more than any kernel has to say at one moment.
        const MOST: u32 = 100_000;
        if self.messages.0 != self.now {
            self.messages = (self.now, 0);
        }
        self.messages.1 += 1;
        match self.messages.1 > MOST {
            false => Ok(()),
            true => Err(Fault::Nonsense(format!(
                "more than {MOST} messages at one moment, and it doesn't wait"
            ))),
        }
    }

    /// A guest that is busy for long within a millisecond of its own spins, and so does one that gets nowhere though its clock moves on:
    /// a kernel's loops that wait tell the time.
    fn enter(&mut self, at: u64) -> Result<(), Fault> {
        /// A kernel reads its clock some hundred thousand times in this.
        const LONGEST: u64 = 100_000_000;
        const LONGEST_AT_START: u64 = 1_000_000_000;
        /// One that does nothing looks busy if its next timer is due just when it had to ask again; then it is asked at each step.
        const STEPS: u32 = 1000;
        let millisecond = at / 1_000_000;
        if millisecond != self.entered.0 {
            self.entered = (millisecond, Instant::now());
            self.check_memory()?;
        } else if self.runs.is_multiple_of(1024) && self.entered.1.elapsed() > self.patience {
            let busy = format!(
                "{} s of real time in a millisecond of its own",
                self.patience.as_secs_f64()
            );
            return Err(Fault::Spins { busy, last: self.keeper.last() });
        }
        let longest = if self.has_started { LONGEST } else { LONGEST_AT_START };
        self.is_doubted = at.saturating_sub(self.got_on) > longest && !self.is_idle(self.now);
        if self.is_doubted && self.busy_steps > STEPS {
            let busy =
                format!("{} ms of its own time without a pause or a packet", longest / 1_000_000);
            return Err(Fault::Spins { busy, last: self.keeper.last() });
        }
        Ok(())
    }

    /// A kernel without memory drops packets and kills programs, and says so on its console only.
    pub(crate) fn check_memory(&self) -> Result<(), Fault> {
        let Some(news) = self.keeper.console.news() else { return Ok(()) };
        match console::lack_of_memory(&news) {
            None => Ok(()),
            Some(line) => Err(Fault::Full { memory: self.memory, line: line.to_owned() }),
        }
    }

    /// Waits for the next messages and answers them.
    fn serve(&mut self) -> Result<(), Fault> {
        // The kinds in the order in which they are looked at.
        let mut watched = Vec::with_capacity(2 * self.cards.len() + 2);
        watched.push((Said::Clock, PollFd::new(&self.clock, PollFlags::IN)));
        for (index, card) in self.cards.iter().enumerate() {
            let mut watch = |said, fd| watched.push((said, fd));
            if let Some(socket) = &card.socket {
                watch(Said::Card(index), PollFd::new(socket, PollFlags::IN));
            }
            if let Some(back) = &card.back {
                watch(Said::Back(index), PollFd::new(back, PollFlags::IN));
            }
            if card.socket.is_none()
                && let Some(listener) = &card.listener
            {
                watch(Said::New(index), PollFd::new(listener, PollFlags::IN));
            }
        }
        let (kinds, mut fds): (Vec<Said>, Vec<PollFd<'_>>) = watched.into_iter().unzip();
        if !is_ready(&mut fds, self.patience, &self.keeper)? {
            let is_half = !self.heard.is_empty();
            let seconds = self.patience.as_secs_f64();
            return Err(if is_half { half() } else { self.keeper.silent(seconds) });
        }
        let ready: Vec<Said> = kinds
            .into_iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(said, _)| said)
            .collect();
        // What it said of its clock it said first, maybe since its socket was looked at.
        self.hear_clock(ready.first() == Some(&Said::Clock))?;
        for said in ready {
            self.serve_socket(said)?;
        }
        Ok(())
    }

    fn serve_socket(&mut self, said: Said) -> Result<(), Fault> {
        match said {
            Said::Clock => {}
            Said::Card(card) => self.serve_card(card)?,
            Said::Back(card) => {
                let back = self.cards[card].back.as_mut().expect("it was watched");
                let mut reply = [0; card_messages::INTERRUPT_REPLY];
                read(back, &mut reply, &self.keeper)?;
                self.replied()?;
            }
            Said::New(card) => {
                let listener = self.cards[card].listener.as_ref().expect("it was watched");
                let (socket, _) = listener
                    .accept()
                    .map_err(|why| Fault::Machine("accepting a guest's card", why))?;
                limit(&socket, self.patience)?;
                self.cards[card].socket = Some(socket);
            }
        }
        Ok(())
    }

    /// Reads all that has come on the socket of its clock, of which there is something if it `is_ready`.
    fn hear_clock(&mut self, is_ready: bool) -> Result<(), Fault> {
        const AT_ONCE: usize = 16 * ClockMessage::LEN;
        let mut bytes = [0; AT_ONCE];
        match recv(&self.clock, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) if is_ready => return Err(self.keeper.ended()),
            Ok((some, _)) => self.heard.extend(&bytes[..some]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(why) => return Err(gone(why.into(), &self.keeper)),
        }
        let heard = std::mem::take(&mut self.heard);
        let (messages, half) = heard.as_chunks::<{ ClockMessage::LEN }>();
        for message in messages {
            self.serve_clock(ClockMessage::read(message)?)?;
        }
        self.heard.extend(half);
        Ok(())
    }

    fn serve_clock(&mut self, message: ClockMessage) -> Result<(), Fault> {
        if message.says == Says::Ack {
            let unasked = || Fault::Nonsense("it acknowledges what was not said".to_owned());
            self.owed = self.owed.checked_sub(1).ok_or_else(unasked)?;
            return Ok(());
        }
        self.count_message()?;
        self.heard_number = message.number;
        let is_answered = self.answered_ahead > 0;
        self.answered_ahead = self.answered_ahead.saturating_sub(1);
        if self.interrupt.ahead > 0 {
            return self.pass_interrupt(message);
        }
        if self.interrupt.is_under_way && self.rest != Rest::Runs {
            self.note_interrupt(message.says);
        }
        let mut time = 0;
        match message.says {
            Says::Start => {}
            Says::Request => self.request = Some(message.time),
            Says::Wait => {
                self.rest = Rest::Answered;
                if !is_answered {
                    self.rest = Rest::Unanswered(message.number);
                    return Ok(());
                }
            }
            Says::Get => time = self.now,
            Says::Update => {
                self.now = self.now.max(message.time);
                self.take_before_kick()?;
            }
            Says::TimeOfDay => time = TIME_OF_DAY,
            Says::Ack | Says::Run | Says::FreeUntil => {
                let problem = format!("{:?} is not for a guest to say", message.says);
                return Err(Fault::Nonsense(problem));
            }
        }
        match is_answered {
            true => Ok(()),
            false => write(&mut self.clock, &answer(message.number, time), &self.keeper),
        }
    }

    /// What an interrupt makes it say while it waits.
    fn note_interrupt(&mut self, says: Says) {
        self.interrupt.is_as_known &= ON_INTERRUPT.get(self.interrupt.said) == Some(&says);
        self.interrupt.said += 1;
    }

    /// What an interrupt makes it say when it has been answered ahead and told to run: nothing that is not known.
    fn pass_interrupt(&mut self, message: ClockMessage) -> Result<(), Fault> {
        let expected = ON_INTERRUPT[ON_INTERRUPT.len() - self.interrupt.ahead];
        self.interrupt.ahead -= 1;
        if message.says != expected || (expected == Says::Request && message.time != self.now) {
            let problem = format!("{:?} on an interrupt, unlike before", message.says);
            return Err(Fault::Nonsense(problem));
        }
        Ok(())
    }

    /// It has understood an interrupt.
    fn replied(&mut self) -> Result<(), Fault> {
        if !self.interrupt.is_under_way || self.interrupt.ahead > 0 {
            return Err(Fault::Nonsense("a reply before or without its interrupt".to_owned()));
        }
        self.interrupt.is_known =
            self.interrupt.is_as_known && self.interrupt.said == ON_INTERRUPT.len();
        self.interrupt.is_under_way = false;
        Ok(())
    }

    /// A guest that waits for its card's answer may read, and lose, what was answered ahead. It is given something behind that which it
    /// acknowledges, and then it has lost it for certain.
    fn take_answers_back(&mut self) -> Result<(), Fault> {
        if self.answered_ahead == 0 {
            return Ok(());
        }
        let said = self.message(Says::FreeUntil, self.free_until);
        write(&mut self.clock, &said, &self.keeper)?;
        while self.owed > 0 {
            wait(&mut [PollFd::new(&self.clock, PollFlags::IN)], self.patience, &self.keeper)?;
            self.hear_clock(true)?;
        }
        self.answered_ahead = 0;
        Ok(())
    }

    fn serve_card(&mut self, card: usize) -> Result<(), Fault> {
        let socket = self.cards[card].socket.as_mut().expect("it was watched");
        let mut bytes = [0; Header::LEN];
        let files = read_with_files(socket, &mut bytes, &self.keeper)?;
        let header = Header::read(&bytes)?;
        let mut payload = vec![0; header.len];
        read(socket, &mut payload, &self.keeper)?;
        let message = CardMessage::read(header.kind, &payload)?;
        self.count_message()?;
        if let CardMessage::Kick { ring: SENT } = message {
            if self.cards[card].replied_ahead > 0 {
                self.cards[card].replied_ahead -= 1;
                return Ok(());
            }
            self.cards[card].kick = header.wants_reply.then_some(header);
            self.take_frames(card)?;
        }
        if header.wants_reply || message.is_question() {
            self.take_answers_back()?;
        }
        let answer = self.cards[card].answer(&message, files)?;
        let answer = match answer {
            Some(answer) => answer,
            None if header.wants_reply => NOTHING_MORE.to_vec(),
            None => return Ok(()),
        };
        let socket = self.cards[card].socket.as_mut().expect("it has just spoken");
        write(socket, &header.answer(&answer), &self.keeper)
    }

    /// It tells the time because it is about to say that it has frames to send, which are in their ring already. They are taken now,
    /// and the reply to the kick, which it waits for next, is sent ahead.
    fn take_before_kick(&mut self) -> Result<(), Fault> {
        for card in 0..self.cards.len() {
            let Some(kick) = self.cards[card].kick.filter(|_| self.has_started) else { continue };
            let before = self.sent.len();
            self.take_frames(card)?;
            if self.sent.len() > before {
                let Card { socket, replied_ahead, .. } = &mut self.cards[card];
                let socket = socket.as_mut().expect("it has kicked before");
                write(socket, &kick.answer(&NOTHING_MORE), &self.keeper)?;
                *replied_ahead += 1;
            }
        }
        Ok(())
    }

    /// Everything that waits to be sent leaves at the present time of the guest.
    fn take_frames(&mut self, card: usize) -> Result<(), Fault> {
        let Card { rings, memory, offload, .. } = &mut self.cards[card];
        while let Some(frame) = rings[SENT as usize].take(memory)? {
            if frame.len() < CARD_HEADER + 14 {
                return Err(Fault::Nonsense(format!("a frame of {} bytes", frame.len())));
            }
            (self.got_on, self.busy_steps) = (self.now, 0);
            match segments::cut(&frame, *offload)? {
                Some(all) => self.sent.extend(all.into_iter().map(|one| (self.now, card, one))),
                None => self.sent.push_back((self.now, card, frame)),
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Card(usize),
    Back(usize),
    Clock,
    New(usize),
}

fn answer(number: u32, time: u64) -> [u8; ClockMessage::LEN] {
    ClockMessage { says: Says::Ack, number, time }.bytes()
}

/// What the socket of a guest's card is called.
fn card_name(index: usize) -> String {
    if index == 0 { "card".to_owned() } else { format!("card{index}") }
}

impl Card {
    /// What it answers with, where that is more than that it was understood.
    fn answer(
        &mut self,
        message: &CardMessage,
        files: Vec<OwnedFd>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        /// Checksums that one guest leaves out and the other needs not look at, a hardware address, version 1 of virtio,
        /// and negotiation of what follows.
        const FEATURES: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 30 | 1 << 32;
        /// Cutting of TCP over IPv4, also where it says that it has slowed down because of marks.
        const OFFLOAD: u64 = 1 << 11 | 1 << 13;
        /// Replies, a back channel, a configuration, and kicks as messages.
        const PROTOCOL: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;
        let features = if self.offload { FEATURES | OFFLOAD } else { FEATURES };
        Ok(match message {
            CardMessage::AskFeatures => Some(features.to_ne_bytes().to_vec()),
            CardMessage::AskProtocolFeatures => Some(PROTOCOL.to_ne_bytes().to_vec()),
            CardMessage::SetFeatures(wanted) if wanted & !features != 0 => {
                let problem = format!("it wants features {wanted:#x} of its card");
                return Err(Fault::Nonsense(problem));
            }
            CardMessage::Memory(regions) => {
                if regions.len() != files.len() {
                    let problem =
                        format!("{} regions of memory in {} files", regions.len(), files.len());
                    return Err(Fault::Nonsense(problem));
                }
                let files = files.into_iter().map(File::from);
                self.memory = rings::Memory::new(regions.iter().copied().zip(files).collect());
                None
            }
            CardMessage::RingSize { ring, size } => {
                let size = u16::try_from(*size).ok().filter(|size| size.is_power_of_two());
                let wrong = || Fault::Nonsense("the size of a ring is no power of two".to_owned());
                self.ring(*ring)?.size = size.ok_or_else(wrong)?;
                None
            }
            CardMessage::RingPlaces { ring, descriptors, used, available } => {
                let place = self.ring(*ring)?;
                (place.descriptors, place.used, place.available) =
                    (*descriptors, *used, *available);
                if *ring == ARRIVALS {
                    self.rings[ARRIVALS as usize].want_no_kicks(&self.memory)?;
                }
                None
            }
            CardMessage::RingBase { ring, base } => {
                self.ring(*ring)?.taken = *base as u16;
                None
            }
            CardMessage::AskRingBase { ring } => {
                let taken = u32::from(self.ring(*ring)?.taken);
                Some([ring.to_ne_bytes(), taken.to_ne_bytes()].concat())
            }
            CardMessage::BackChannel => {
                let channel = files.into_iter().next();
                let none = || Fault::Nonsense("a back channel without a socket".to_owned());
                self.back = Some(UnixStream::from(channel.ok_or_else(none)?));
                None
            }
            CardMessage::AskConfig { offset, size } => {
                let address = [2, 0, 0, 0, 0, self.number];
                let byte = |at: u32| address.get(at as usize).copied().unwrap_or(0);
                let bytes = (*offset..offset.saturating_add(*size).min(256)).map(byte);
                let head = [offset.to_ne_bytes(), size.to_ne_bytes(), [0; 4]].concat();
                Some(head.into_iter().chain(bytes).collect())
            }
            CardMessage::SetFeatures(_)
            | CardMessage::SetProtocolFeatures
            | CardMessage::Kick { .. }
            | CardMessage::Other => None,
        })
    }

    fn ring(&mut self, ring: u32) -> Result<&mut Ring, Fault> {
        let none = || Fault::Nonsense(format!("ring {ring} of a card with two"));
        self.rings.get_mut(ring as usize).ok_or_else(none)
    }
}

/// The process that starts a guest's kernel and ends it, with all that the kernel started, when this process ends.
#[derive(Debug)]
struct Keeper {
    process: Child,
    /// When it is closed, the keeper ends the guest.
    alive: Option<UnixStream>,
    /// Whose kernel it is.
    name: String,
    seed: u64,
    kernel: PathBuf,
    console: Console,
}

impl Keeper {
    fn start(start: &Start<'_>, folder: &Path) -> Result<Self, Fault> {
        let machine = |why| Fault::Machine("starting a guest", why);
        let output = scratch::file().map_err(machine)?;
        let files = start.installed;
        // The kernel draws from its command line too, so that is the same for every guest.
        let (own, its) = UnixStream::pair().map_err(machine)?;
        let process =
            Command::new(files.program())
                .arg(folder)
                .arg(start.kernel)
                .arg(start.memory.argument())
                .args([
                    "umid=guest",
                    "uml_dir=/proc/self/fd/9",
                    "time-travel=ext:0:/proc/self/fd/9/clock",
                ])
                .args((0..start.cards.len()).map(|index| {
                    format!("virtio_uml.device=/proc/self/fd/9/{}:1", card_name(index))
                }))
                .args([
                    "virtio_net.napi_tx=0",
                    "root=/dev/root",
                    "rootfstype=hostfs",
                    "rootflags=/proc/self/cwd/root",
                    "rw",
                    "init=/init",
                    "con=null",
                    "con0=null,fd:1",
                    "panic=-1",
                    "random.trust_cpu=1",
                    "random.trust_bootloader=1",
                    "loglevel=6",
                ])
                .env_clear()
                .env("LD_PRELOAD", files.seeded())
                .env("SOJOURN_SEED", start.seed.to_string())
                .env("TMPDIR", folder)
                .current_dir(files.folder())
                .stdin(Stdio::from(OwnedFd::from(its)))
                .stdout(output.try_clone().map_err(machine)?)
                .stderr(output.try_clone().map_err(machine)?)
                .spawn()
                .map_err(machine)?;
        let kernel = start.kernel.to_owned();
        let (name, console) = (start.name.to_owned(), Console::new(output));
        let seed = start.seed;
        Ok(Self { process, alive: Some(own), name, seed, kernel, console })
    }

    /// Now it starts the kernel.
    fn go(&mut self) -> Result<(), Fault> {
        let told = self.alive.as_mut().map_or(Ok(()), |alive| alive.write_all(b"g"));
        told.map_err(|why| Fault::Machine("starting a guest", why))
    }

    fn ended(&self) -> Fault {
        Fault::Ended(self.last())
    }

    fn silent(&self, seconds: f64) -> Fault {
        Fault::Silent { seconds, last: self.last() }
    }

    fn last(&self) -> Last {
        let console = self.console.text();
        let state = match place_of_signal(&console) {
            Some(address) => Symbols::of(&self.kernel).name(address).map(State::Faulted),
            None => None,
        };
        Last { console, state: state.or_else(|| self.state()).unwrap_or_default() }
    }

    /// What the keeper says of its kernel's process.
    fn state(&self) -> Option<State> {
        const STACK: usize = 256;
        const EXITED: u64 = 1;
        const FUNCTIONS: usize = 6;
        /// Where a guest is that asks for the time: not what it asks for.
        const OF_TIME: [&str; 5] =
            ["time_travel_", "os_read_file", "os_write_file", "os_poll", "__ndelay"];
        const PATIENCE: Duration = Duration::from_secs(1);
        let mut keeper = self.alive.as_ref()?;
        let mut told = [0; 8 * (4 + STACK)];
        keeper.set_read_timeout(Some(PATIENCE)).ok()?;
        keeper.write_all(b"w").ok()?;
        keeper.read_exact(&mut told).ok()?;
        let (words, _) = told.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        let [has_ended, how, number, instruction] = [(); 4].map(|()| words.next().unwrap_or(0));
        if has_ended != 0 {
            return Some(if how == EXITED { State::Exited(number) } else { State::Killed(number) });
        }
        let symbols = Symbols::of(&self.kernel);
        let mut functions: Vec<String> = Vec::new();
        // Words of the stack may be addresses to return to.
        let words = [(instruction, true)].into_iter().chain(words.map(|word| (word, false)));
        for (word, is_instruction) in words {
            let Some(name) = symbols.name(word) else { continue };
            // The beginning of a function is not where a call returns to.
            let is_begin = name.ends_with("+0x0") && !is_instruction;
            let is_of_time = OF_TIME.iter().any(|own| name.starts_with(own));
            if functions.len() < FUNCTIONS
                && !is_begin
                && !is_of_time
                && !splat::is_of_printing(&name)
                && !functions.contains(&name)
            {
                functions.push(name);
            }
        }
        Some(State::At(functions))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.alive = None;
        let was_killed = self.process.wait().is_ok_and(|status| status.code().is_none());
        if was_killed {
            // Its own work is left to be done.
            if let Some(group) = self.console.group().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
        }
        console::close(&self.console.text(), &self.name, self.seed);
    }
}

/// Where a kernel was that met an instruction it can't execute, a division by zero or an address that is none: said by what stands
/// before its C library, or by itself.
fn place_of_signal(console: &str) -> Option<u64> {
    let said = |begin: &str| {
        let (_, rest) = console.rsplit_once(begin)?;
        let digits =
            rest.trim_start_matches("0x").split(|c: char| !c.is_ascii_hexdigit()).next()?;
        u64::from_str_radix(digits, 16).ok()
    };
    said("sojourn: signal at ").or_else(|| said(", ip "))
}

fn accept(
    listener: &UnixListener,
    keeper: &Keeper,
    patience: Duration,
) -> Result<UnixStream, Fault> {
    let until = Instant::now() + patience;
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        if is_ready(&mut fds, Duration::from_millis(200), keeper)? {
            let accepted = listener.accept().map(|(socket, _)| socket);
            let socket = accepted.map_err(|why| Fault::Machine("accepting a guest", why))?;
            limit(&socket, patience)?;
            return Ok(socket);
        }
        if keeper.is_alone() {
            return Err(keeper.ended());
        }
        if Instant::now() >= until {
            return Err(keeper.silent(patience.as_secs_f64()));
        }
    }
}

impl Keeper {
    /// Whether the kernel that it started is gone.
    fn is_alone(&self) -> bool {
        let Some(group) = self.console.group() else { return false };
        let state = std::fs::read_to_string(format!("/proc/{group}/stat"));
        state.is_err() || state.is_ok_and(|state| state.contains(") Z"))
    }
}

fn limit(socket: &UnixStream, patience: Duration) -> Result<(), Fault> {
    let both = socket
        .set_read_timeout(Some(patience))
        .and_then(|()| socket.set_write_timeout(Some(patience)));
    both.map_err(|why| Fault::Machine("setting up a socket", why))
}

fn wait(fds: &mut [PollFd<'_>], patience: Duration, keeper: &Keeper) -> Result<(), Fault> {
    match is_ready(fds, patience, keeper)? {
        true => Ok(()),
        false => Err(keeper.silent(patience.as_secs_f64())),
    }
}

/// Whether one of them has something to say before patience ends.
fn is_ready(fds: &mut [PollFd<'_>], patience: Duration, keeper: &Keeper) -> Result<bool, Fault> {
    const SLICE: Duration = Duration::from_millis(250);
    let until = Instant::now() + patience;
    let mut slice = patience.min(SLICE);
    loop {
        let limit = Timespec::try_from(slice).expect("it is short");
        match poll(fds, Some(&limit)) {
            Ok(0) if Instant::now() >= until => return Ok(false),
            // It may print for ever meanwhile.
            Ok(0) => keeper.console.forget(),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(Fault::Machine("waiting for a guest", why.into())),
        }
        slice = until.saturating_duration_since(Instant::now()).min(SLICE);
    }
}

fn read(socket: &mut UnixStream, to: &mut [u8], keeper: &Keeper) -> Result<(), Fault> {
    socket.read_exact(to).map_err(|why| gone(why, keeper))
}

fn write(socket: &mut UnixStream, bytes: &[u8], keeper: &Keeper) -> Result<(), Fault> {
    socket.write_all(bytes).map_err(|why| gone(why, keeper))
}

fn half() -> Fault {
    Fault::Nonsense("half a message on one of its sockets".to_owned())
}

/// A socket broke: the guest has ended, or says half a message and no more.
fn gone(why: io::Error, keeper: &Keeper) -> Fault {
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => half(),
        _ => keeper.ended(),
    }
}

fn read_with_files(
    socket: &mut UnixStream,
    to: &mut [u8],
    keeper: &Keeper,
) -> Result<Vec<OwnedFd>, Fault> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(socket.as_fd(), &mut [IoSliceMut::new(to)], &mut control, flags)
        .map_err(|why| gone(why.into(), keeper))?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    match got.bytes {
        0 => Err(keeper.ended()),
        some => read(socket, &mut to[some..], keeper).map(|()| files),
    }
}
