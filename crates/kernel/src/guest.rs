//! A guest: the processes of a user-mode kernel, its clock and its network card.
//!
//! The guest runs only while [`Guest::run`] or [`Guest::deliver`] is under way, and then everything that it says on one of its
//! sockets waits for an answer. So there is one message at a time, and what happens follows from what was said before.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::card_messages::{self, CardMessage, Header};
use crate::clock_messages::{ClockMessage, Says};
use crate::fault::Fault;
use crate::install::Installed;
use crate::rings::{CARD_HEADER, Memory, Ring};
use crate::scratch::{self, Folder};

/// What a guest is started with.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) kernel: &'a Path,
    pub(crate) installed: &'a Installed,
    /// What its kernel draws at random follows from this.
    pub(crate) seed: u64,
    /// Its cards, by the last byte of their addresses.
    pub(crate) cards: &'a [u8],
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
    is_waiting: bool,
    /// Its acknowledgements that have not come yet.
    owed: u32,
    next_number: u32,
    /// What it has sent, when, and by which of its cards.
    sent: VecDeque<(u64, usize, Vec<u8>)>,
    patience: Duration,
    /// When, in real time, its clock entered the present millisecond.
    entered: (u64, Instant),
    /// How often it was told to run.
    runs: u64,
}

#[derive(Debug, Default)]
struct Card {
    listener: Option<UnixListener>,
    socket: Option<UnixStream>,
    back: Option<UnixStream>,
    memory: Memory,
    /// Arrivals, and what is sent.
    rings: [Ring; 2],
    number: u8,
}

const ARRIVALS: u32 = 0;
const SENT: u32 = 1;

/// The time of day at which every guest starts, in nanoseconds since 1970.
const TIME_OF_DAY: u64 = 1_800_000_000_000_000_000;

impl Guest {
    /// Starts a guest and lets it run until it has sent its first frame.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self, Fault> {
        let mut folder = Folder::named();
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
            Ok(Card { listener, number: *number, ..Card::default() })
        };
        let cards = start.cards.iter().enumerate().map(card).collect::<Result<_, Fault>>()?;
        keeper.go()?;
        let clock = accept(&listener, &keeper, start.patience)?;
        let mut guest = Self {
            keeper,
            clock,
            cards,
            now: 0,
            request: None,
            is_waiting: false,
            owed: 0,
            next_number: 0,
            sent: VecDeque::new(),
            patience: start.patience,
            entered: (0, Instant::now()),
            runs: 0,
        };
        guest.boot()?;
        Ok(guest)
    }

    /// Until it has sent something, which is after everything in it is set up.
    fn boot(&mut self) -> Result<(), Fault> {
        const AT_ONCE: u64 = 10_000_000;
        const LONGEST: u64 = 60_000_000_000;
        self.serve_until_waiting()?;
        while self.sent.is_empty() {
            let Some(next) = self.request else {
                return Err(Fault::Ended(self.keeper.console()));
            };
            if next > LONGEST {
                let console = self.keeper.console();
                return Err(Fault::Silent { seconds: LONGEST as f64 / 1e9, console });
            }
            self.run(next, next + AT_ONCE)?;
        }
        // It has opened its sockets and its memory, so their names can go.
        self.cards.iter_mut().for_each(|card| card.listener = None);
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
        let mut said = Vec::with_capacity(2 * ClockMessage::LEN);
        if free_until > at {
            said.extend(self.message(Says::FreeUntil, free_until));
        }
        said.extend(self.message(Says::Run, at));
        (self.is_waiting, self.request) = (false, None);
        self.runs += 1;
        write(&mut self.clock, &said, &self.keeper)?;
        self.serve_until_waiting()?;
        // It may have gone on by itself until then.
        self.now = self.now.max(free_until);
        Ok(())
    }

    /// A frame reaches one of its cards at `at`, and it runs until it waits. False if that card has no room.
    pub(crate) fn deliver(
        &mut self,
        card: usize,
        at: u64,
        frame: &[u8],
        free_until: u64,
    ) -> Result<bool, Fault> {
        let at = at.max(self.now);
        self.now = at;
        let Card { rings, memory, .. } = &mut self.cards[card];
        let arrivals = &mut rings[ARRIVALS as usize];
        let has_room = arrivals.put(memory, frame)?;
        if !has_room {
            return Ok(false);
        }
        if arrivals.wants_interrupt(memory)? {
            self.interrupt(card, ARRIVALS)?;
        }
        match self.request {
            Some(request) if request <= at => self.run(request, free_until)?,
            // It is busy and looks for frames by itself, or does so later.
            _ => {}
        }
        Ok(true)
    }

    fn interrupt(&mut self, card: usize, ring: u32) -> Result<(), Fault> {
        let back = self.cards[card].back.as_mut();
        let back =
            back.ok_or_else(|| Fault::Nonsense("its card has no back channel".to_owned()))?;
        write(back, &card_messages::interrupt(ring), &self.keeper)?;
        while !self.serve()? {}
        Ok(())
    }

    fn message(&mut self, says: Says, time: u64) -> [u8; ClockMessage::LEN] {
        self.next_number = self.next_number.wrapping_add(1);
        self.owed += 1;
        ClockMessage { says, number: self.next_number, time }.bytes()
    }

    fn serve_until_waiting(&mut self) -> Result<(), Fault> {
        while !self.is_waiting || self.owed > 0 {
            self.serve()?;
        }
        Ok(())
    }

    /// A guest that is busy for long within a millisecond of its own spins.
    fn enter(&mut self, at: u64) -> Result<(), Fault> {
        let millisecond = at / 1_000_000;
        if millisecond != self.entered.0 {
            self.entered = (millisecond, Instant::now());
        } else if self.runs.is_multiple_of(1024) && self.entered.1.elapsed() > self.patience {
            return Err(Fault::Spins { seconds: self.patience.as_secs_f64() });
        }
        Ok(())
    }

    /// Waits for the next message and answers it; true if it was the reply to an interrupt.
    fn serve(&mut self) -> Result<bool, Fault> {
        // The kinds in the order in which they are looked at: what a card says comes before the next message of the clock.
        let mut watched = Vec::with_capacity(2 * self.cards.len() + 2);
        for (index, card) in self.cards.iter().enumerate() {
            let mut watch = |said, fd| watched.push((said, fd));
            if let Some(socket) = &card.socket {
                watch(Said::Card(index), PollFd::new(socket, PollFlags::IN));
            }
            if let Some(back) = &card.back {
                watch(Said::Back(index), PollFd::new(back, PollFlags::IN));
            }
        }
        watched.push((Said::Clock, PollFd::new(&self.clock, PollFlags::IN)));
        for (index, card) in self.cards.iter().enumerate().filter(|(_, card)| card.socket.is_none())
        {
            let new = card.listener.as_ref().map(|listener| PollFd::new(listener, PollFlags::IN));
            watched.extend(new.map(|new| (Said::New(index), new)));
        }
        let (kinds, mut fds): (Vec<Said>, Vec<PollFd<'_>>) = watched.into_iter().unzip();
        wait(&mut fds, self.patience, &self.keeper)?;
        let first = fds.iter().position(|fd| !fd.revents().is_empty());
        let said = kinds[first.expect("the wait ended because one is ready")];
        match said {
            Said::Card(card) => self.serve_card(card)?,
            Said::Back(card) => {
                let back = self.cards[card].back.as_mut().expect("it was watched");
                let mut reply = [0; card_messages::INTERRUPT_REPLY];
                read(back, &mut reply, &self.keeper)?;
                return Ok(true);
            }
            Said::Clock => self.serve_clock()?,
            Said::New(card) => {
                let listener = self.cards[card].listener.as_ref().expect("it was watched");
                let (socket, _) = listener
                    .accept()
                    .map_err(|why| Fault::Machine("accepting a guest's card", why))?;
                limit(&socket, self.patience)?;
                self.cards[card].socket = Some(socket);
            }
        }
        Ok(false)
    }

    fn serve_clock(&mut self) -> Result<(), Fault> {
        let mut bytes = [0; ClockMessage::LEN];
        read(&mut self.clock, &mut bytes, &self.keeper)?;
        let message = ClockMessage::read(&bytes)?;
        let mut answer = 0;
        match message.says {
            Says::Ack => {
                self.owed = self.owed.checked_sub(1).ok_or_else(|| {
                    Fault::Nonsense("it acknowledges what was not said".to_owned())
                })?;
                return Ok(());
            }
            Says::Start => {}
            Says::Request => self.request = Some(message.time),
            Says::Wait => self.is_waiting = true,
            Says::Get => answer = self.now,
            Says::Update => self.now = self.now.max(message.time),
            Says::TimeOfDay => answer = TIME_OF_DAY,
            Says::Run | Says::FreeUntil => {
                let problem = format!("{:?} is not for a guest to say", message.says);
                return Err(Fault::Nonsense(problem));
            }
        }
        let answer = ClockMessage { says: Says::Ack, number: message.number, time: answer };
        write(&mut self.clock, &answer.bytes(), &self.keeper)
    }

    fn serve_card(&mut self, card: usize) -> Result<(), Fault> {
        let socket = self.cards[card].socket.as_mut().expect("it was watched");
        let mut bytes = [0; Header::LEN];
        let files = read_with_files(socket, &mut bytes, &self.keeper)?;
        let header = Header::read(&bytes)?;
        let mut payload = vec![0; header.len];
        read(socket, &mut payload, &self.keeper)?;
        let message = CardMessage::read(header.kind, &payload)?;
        if let CardMessage::Kick { ring: SENT } = message {
            self.take_frames(card)?;
        }
        let answer = self.cards[card].answer(&message, files)?;
        let answer = match answer {
            Some(answer) => answer,
            None if header.wants_reply => vec![0; 8],
            None => return Ok(()),
        };
        let socket = self.cards[card].socket.as_mut().expect("it has just spoken");
        write(socket, &header.answer(&answer), &self.keeper)
    }

    /// Everything that waits to be sent leaves at the present time of the guest.
    fn take_frames(&mut self, card: usize) -> Result<(), Fault> {
        let Card { rings, memory, .. } = &mut self.cards[card];
        while let Some(frame) = rings[SENT as usize].take(memory)? {
            if frame.len() < CARD_HEADER + 14 {
                return Err(Fault::Nonsense(format!("a frame of {} bytes", frame.len())));
            }
            self.sent.push_back((self.now, card, frame));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Said {
    Card(usize),
    Back(usize),
    Clock,
    New(usize),
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
        /// Replies, a back channel, a configuration, and kicks as messages.
        const PROTOCOL: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;
        Ok(match message {
            CardMessage::AskFeatures => Some(FEATURES.to_ne_bytes().to_vec()),
            CardMessage::AskProtocolFeatures => Some(PROTOCOL.to_ne_bytes().to_vec()),
            CardMessage::SetFeatures(features) if features & !FEATURES != 0 => {
                let problem = format!("it wants features {features:#x} of its card");
                return Err(Fault::Nonsense(problem));
            }
            CardMessage::Memory(regions) => {
                if regions.len() != files.len() {
                    let problem =
                        format!("{} regions of memory in {} files", regions.len(), files.len());
                    return Err(Fault::Nonsense(problem));
                }
                let files = files.into_iter().map(File::from);
                self.memory = Memory::new(regions.iter().copied().zip(files).collect());
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
    alive: Option<ChildStdin>,
    /// First the number of the kernel's process group, then what the kernel prints.
    output: File,
}

impl Keeper {
    fn start(start: &Start<'_>, folder: &Path) -> Result<Self, Fault> {
        let machine = |why| Fault::Machine("starting a guest", why);
        let output = scratch::file().map_err(machine)?;
        let files = start.installed;
        // The kernel draws from its command line too, so that is the same for every guest.
        let mut process =
            Command::new(files.program())
                .arg(folder)
                .arg(start.kernel)
                .args([
                    "mem=128M",
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
                .stdin(Stdio::piped())
                .stdout(output.try_clone().map_err(machine)?)
                .stderr(output.try_clone().map_err(machine)?)
                .spawn()
                .map_err(machine)?;
        let alive = process.stdin.take();
        Ok(Self { process, alive, output })
    }

    /// Now it starts the kernel.
    fn go(&mut self) -> Result<(), Fault> {
        let told = self.alive.as_mut().map_or(Ok(()), |alive| alive.write_all(b"g"));
        told.map_err(|why| Fault::Machine("starting a guest", why))
    }

    /// The end of what the kernel printed.
    fn console(&self) -> String {
        const MOST: u64 = 16_384;
        let len = self.output.metadata().map_or(0, |metadata| metadata.len());
        let from = len.saturating_sub(MOST).max(4);
        let mut text = vec![0; len.saturating_sub(from) as usize];
        let got = self.output.read_at(&mut text, from).unwrap_or(0);
        String::from_utf8_lossy(&text[..got]).into_owned()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.alive = None;
        let was_killed = self.process.wait().is_ok_and(|status| status.code().is_none());
        if was_killed {
            // Its own work is left to be done.
            let mut group = [0; 4];
            if self.output.read_exact_at(&mut group, 0).is_ok()
                && let Some(group) = rustix::process::Pid::from_raw(i32::from_le_bytes(group))
            {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
        }
    }
}

fn accept(
    listener: &UnixListener,
    keeper: &Keeper,
    patience: Duration,
) -> Result<UnixStream, Fault> {
    let until = Instant::now() + patience;
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        match wait(&mut fds, Duration::from_millis(200), keeper) {
            Ok(()) => {
                let accepted = listener.accept().map(|(socket, _)| socket);
                let socket = accepted.map_err(|why| Fault::Machine("accepting a guest", why))?;
                limit(&socket, patience)?;
                return Ok(socket);
            }
            Err(Fault::Silent { .. }) if Instant::now() < until && !keeper.is_alone() => {}
            Err(Fault::Silent { .. }) => return Err(Fault::Ended(keeper.console())),
            Err(fault) => return Err(fault),
        }
    }
}

impl Keeper {
    /// Whether the kernel that it started is gone.
    fn is_alone(&self) -> bool {
        let mut group = [0; 4];
        if self.output.read_exact_at(&mut group, 0).is_err() {
            return false;
        }
        let state = std::fs::read_to_string(format!("/proc/{}/stat", u32::from_le_bytes(group)));
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
    let limit = Timespec::try_from(patience).expect("patience is short");
    loop {
        match poll(fds, Some(&limit)) {
            Ok(0) => {
                return Err(Fault::Silent {
                    seconds: patience.as_secs_f64(),
                    console: keeper.console(),
                });
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(Fault::Machine("waiting for a guest", why.into())),
        }
    }
}

fn read(socket: &mut UnixStream, to: &mut [u8], keeper: &Keeper) -> Result<(), Fault> {
    socket.read_exact(to).map_err(|why| gone(why, keeper))
}

fn write(socket: &mut UnixStream, bytes: &[u8], keeper: &Keeper) -> Result<(), Fault> {
    socket.write_all(bytes).map_err(|why| gone(why, keeper))
}

/// A socket broke: the guest has ended, or says half a message and no more.
fn gone(why: io::Error, keeper: &Keeper) -> Fault {
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Fault::Nonsense("half a message on one of its sockets".to_owned())
        }
        _ => Fault::Ended(keeper.console()),
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
        0 => Err(Fault::Ended(keeper.console())),
        some => read(socket, &mut to[some..], keeper).map(|()| files),
    }
}
