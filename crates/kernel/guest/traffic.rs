//! In a guest: sets up the network and does what datagrams from outside the guest ask for. Each is answered with its
//! first byte, an error number and what was asked for.

use crate::system::{self, Text, call, call3, exit};

/// Where datagrams come from: an address that no guest has.
const OUTSIDE: [u8; 4] = [10, 0, 0, 254];
const ORDERS: u16 = 7;
const DATA: u16 = 5001;
/// The other guest of a pair: 1 is the sending end, 2 the receiving one.
const SENDING: u8 = 1;
const RECEIVING: u8 = 2;

const AF_INET: usize = 2;
const STREAM: usize = 1;
const DATAGRAM: usize = 2;
const IPPROTO_ICMP: usize = 1;
const IPPROTO_TCP: usize = 6;
const SOL_SOCKET: usize = 1;
const MSG_TRUNC: usize = 0x20;
const MSG_NOSIGNAL: usize = 0x4000;

/// The longest datagram that comes or goes.
const LONGEST: usize = 1400;
const BUFFER: usize = 128 << 10;
static mut PAYLOAD: [u8; BUFFER] = [0; BUFFER];

struct State {
    orders: usize,
    /// The connection, or whoever sends pings.
    data: Option<usize>,
    child: Option<usize>,
}

pub fn serve() -> ! {
    mount(b"proc\0", b"/proc\0");
    let orders = call3(system::SOCKET, AF_INET, DATAGRAM, 0) as usize;
    bring_up(orders);
    bind(orders, ORDERS);
    let mut state = State { orders, data: None, child: None };
    state.answer(b'H', 0, &[]);
    let mut order = [0u8; LONGEST + 1];
    loop {
        let got = call(system::RECVFROM, [orders, order.as_mut_ptr() as usize, LONGEST, 0, 0, 0]);
        if got > 0 {
            // What a text ends with.
            order[got as usize] = 0;
            state.obey(&order[..=got as usize]);
        }
    }
}

impl State {
    fn obey(&mut self, order: &[u8]) {
        let Some((kind, rest)) = order.split_first() else { return };
        match kind {
            b'S' => {
                let error = set(rest);
                self.answer(b'S', error, &[]);
            }
            b'R' => self.read(rest),
            b'T' => {
                let opened = open(rest);
                self.data = opened.ok();
                self.answer(b'T', opened.err().unwrap_or(0), &[]);
            }
            b'L' => self.listen(rest),
            b'G' => self.go(rest),
            b'I' => self.report(),
            b'X' => self.stop(),
            b'P' => self.ping(rest),
            b'C' => self.run(rest),
            _ => self.answer(*kind, 22, &[]),
        }
    }

    fn answer(&self, kind: u8, error: u32, more: &[u8]) {
        let mut answer = [0u8; LONGEST];
        answer[0] = kind;
        answer[1..5].copy_from_slice(&error.to_le_bytes());
        let more = &more[..more.len().min(LONGEST - 5)];
        answer[5..5 + more.len()].copy_from_slice(more);
        let to = address(OUTSIDE, ORDERS);
        call(
            system::SENDTO,
            [self.orders, answer.as_ptr() as usize, 5 + more.len(), 0, to.as_ptr() as usize, 16],
        );
    }

    /// Answers with the contents of a file.
    fn read(&self, path: &[u8]) {
        let file = call3(system::OPEN, path.as_ptr() as usize, 0, 0);
        if file < 0 {
            return self.answer(b'R', error_of(file), &[]);
        }
        let mut text = [0u8; LONGEST - 5];
        let got = call3(system::READ, file as usize, text.as_mut_ptr() as usize, text.len());
        call3(system::CLOSE, file as usize, 0, 0);
        self.answer(b'R', error_of(got), &text[..got.max(0) as usize]);
    }

    /// Runs a program of the host, given by its path and arguments, each with a zero byte after it. Answers with how it
    /// ended and what it printed.
    fn run(&self, words: &[u8]) {
        const MOST: usize = 32;
        const HOST: Text = Text::of(b"/host\0");
        // The host's own files; what this kernel says of itself stands in the place of what the host says.
        let folder = HOST.0 as usize;
        let (kind, all) = (Text::of(b"hostfs\0").0 as usize, Text::of(b"/\0").0 as usize);
        call(system::MOUNT, [kind, folder, kind, 0, all, 0]);
        mount(b"proc\0", b"/host/proc\0");
        let mut arguments = [core::ptr::null::<u8>(); MOST + 1];
        let mut begin = 0;
        let mut count = 0;
        for (at, byte) in words.iter().enumerate() {
            if *byte == 0 && at > begin && count < MOST {
                arguments[count] = words[begin..].as_ptr();
                count += 1;
                begin = at + 1;
            }
        }
        let mut pipe = [0u32; 2];
        call3(system::PIPE, pipe.as_mut_ptr() as usize, 0, 0);
        let [from, to] = pipe.map(|end| end as usize);
        let child = call3(system::FORK, 0, 0, 0);
        if child == 0 {
            call3(system::DUP2, to, 1, 0);
            call3(system::DUP2, to, 2, 0);
            call3(system::CLOSE, from, 0, 0);
            call3(system::CHROOT, folder, 0, 0);
            call3(system::CHDIR, all, 0, 0);
            let nothing = [0usize; 1];
            let (list, environment) = (arguments.as_ptr() as usize, nothing.as_ptr() as usize);
            call3(system::EXECVE, arguments[0] as usize, list, environment);
            exit(127);
        }
        call3(system::CLOSE, to, 0, 0);
        let mut text = [0u8; LONGEST - 5];
        let mut length = 0;
        while length < text.len() {
            let (place, room) = (text[length..].as_mut_ptr() as usize, text.len() - length);
            let got = call3(system::READ, from, place, room);
            if got <= 0 {
                break;
            }
            length += got as usize;
        }
        call3(system::CLOSE, from, 0, 0);
        let mut status = 0u32;
        call(system::WAIT4, [child as usize, (&raw mut status) as usize, 0, 0, 0, 0]);
        self.answer(b'C', status, &text[..length]);
    }

    /// Waits for one connection and reads whatever comes.
    fn listen(&mut self, rest: &[u8]) {
        let socket = match open(rest) {
            Ok(socket) => socket,
            Err(error) => return self.answer(b'L', error, &[]),
        };
        bind(socket, DATA);
        let error = call3(system::LISTEN, socket, 1, 0);
        if self.is_child() {
            let data = call3(system::ACCEPT, socket, 0, 0) as usize;
            let payload = (&raw mut PAYLOAD) as usize;
            while call(system::RECVFROM, [data, payload, BUFFER, MSG_TRUNC, 0, 0]) > 0 {}
            exit(0);
        }
        self.answer(b'L', error_of(error), &[]);
    }

    /// Connects and sends: bytes (0 is without end), bit/s (0 is as fast as possible), bytes of a write.
    fn go(&mut self, rest: &[u8]) {
        let Some(data) = self.data else { return self.answer(b'G', 107, &[]) };
        let (bytes, rate, chunk) = (number(rest, 0), number(rest, 8), number(rest, 16));
        if self.is_child() {
            let to = address([10, 0, 0, RECEIVING], DATA);
            if call3(system::CONNECT, data, to.as_ptr() as usize, 16) == 0 {
                send(data, bytes, rate, chunk.clamp(1, BUFFER as u64));
            }
            exit(0);
        }
    }

    /// `tcp_info`, and what the congestion control tells of itself, each after its length.
    fn report(&self) {
        let Some(data) = self.data else { return self.answer(b'I', 107, &[]) };
        const TCP_INFO: usize = 11;
        const TCP_CC_INFO: usize = 26;
        let mut both = [0u8; 512];
        let mut at = 0;
        for option in [TCP_INFO, TCP_CC_INFO] {
            let mut length = 240u32;
            let result = call(
                system::GETSOCKOPT,
                [
                    data,
                    IPPROTO_TCP,
                    option,
                    both[at + 2..].as_mut_ptr() as usize,
                    (&raw mut length) as usize,
                    0,
                ],
            );
            if result < 0 {
                length = 0;
            }
            both[at..at + 2].copy_from_slice(&(length as u16).to_le_bytes());
            at += 2 + length as usize;
        }
        self.answer(b'I', 0, &both[..at]);
    }

    fn stop(&mut self) {
        const SHUT_WR: usize = 1;
        if let Some(data) = self.data {
            call3(system::SHUTDOWN, data, SHUT_WR, 0);
        } else if let Some(child) = self.child {
            call3(system::KILL, child, 9, 0);
        }
    }

    /// Sends echo requests: nanoseconds between them, bytes of each.
    fn ping(&mut self, rest: &[u8]) {
        const RAW: usize = 3;
        let socket = call3(system::SOCKET, AF_INET, RAW, IPPROTO_ICMP);
        if socket < 0 {
            return self.answer(b'P', error_of(socket), &[]);
        }
        let (pause, length) = (number(rest, 0), number(rest, 8) as usize);
        if self.is_child() {
            let to = address([10, 0, 0, RECEIVING], 0);
            let mut due = now();
            let mut sequence = 0u16;
            loop {
                let mut echo = [0u8; LONGEST];
                let echo = &mut echo[..length.clamp(8, LONGEST)];
                echo[0] = 8;
                echo[6..8].copy_from_slice(&sequence.to_be_bytes());
                let sum = 0x0800u32 + u32::from(sequence);
                let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
                echo[2..4].copy_from_slice(&sum.to_be_bytes());
                call(
                    system::SENDTO,
                    [
                        socket as usize,
                        echo.as_ptr() as usize,
                        echo.len(),
                        0,
                        to.as_ptr() as usize,
                        16,
                    ],
                );
                sequence = sequence.wrapping_add(1);
                due += pause.max(1000);
                sleep_until(due);
            }
        }
    }

    /// Goes on in a process of its own too, which is told so.
    fn is_child(&mut self) -> bool {
        let child = call3(system::FORK, 0, 0, 0);
        if child > 0 {
            self.child = Some(child as usize);
        }
        child == 0
    }
}

fn send(data: usize, bytes: u64, rate: u64, chunk: u64) {
    let mut left = if bytes == 0 { u64::MAX } else { bytes };
    let mut due = now();
    while left > 0 {
        let most = if rate == 0 { BUFFER as u64 } else { chunk };
        let payload = (&raw const PAYLOAD) as usize;
        let sent =
            call(system::SENDTO, [data, payload, most.min(left) as usize, MSG_NOSIGNAL, 0, 0]);
        if sent <= 0 {
            return;
        }
        left -= sent as u64;
        if rate > 0 {
            due += (sent as u64 * 8).saturating_mul(1_000_000_000) / rate;
            sleep_until(due);
        }
    }
    call3(system::SHUTDOWN, data, 1, 0);
}

/// A TCP socket: the congestion control's name in 16 bytes, then the sizes of its buffers, where 0 leaves them.
fn open(rest: &[u8]) -> Result<usize, u32> {
    const TCP_CONGESTION: usize = 13;
    const SO_REUSEADDR: usize = 2;
    // As `SO_SNDBUF` and `SO_RCVBUF`, without the limits of the system.
    const SO_SNDBUFFORCE: usize = 32;
    const SO_RCVBUFFORCE: usize = 33;
    let name = rest.get(..16).ok_or(22u32)?;
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(16);
    let socket = call3(system::SOCKET, AF_INET, STREAM, 0);
    if socket < 0 {
        return Err(error_of(socket));
    }
    let socket = socket as usize;
    let set = |level, option, value: *const u8, length| {
        error_of(call(system::SETSOCKOPT, [socket, level, option, value as usize, length, 0]))
    };
    let one = 1u32.to_le_bytes();
    set(SOL_SOCKET, SO_REUSEADDR, one.as_ptr(), 4);
    if length > 0 {
        let error = set(IPPROTO_TCP, TCP_CONGESTION, name.as_ptr(), length);
        if error != 0 {
            return Err(error);
        }
    }
    for (option, at) in [(SO_SNDBUFFORCE, 16), (SO_RCVBUFFORCE, 20)] {
        let size = rest.get(at..at + 4).ok_or(22u32)?;
        if size != [0; 4] {
            set(SOL_SOCKET, option, size.as_ptr(), 4);
        }
    }
    Ok(socket)
}

/// Gives the card its address, which its hardware address ends with, and makes the others' known.
fn bring_up(socket: usize) {
    const SET_ADDRESS: usize = 0x8916;
    const SET_MASK: usize = 0x891c;
    const SET_FLAGS: usize = 0x8914;
    const SET_NEIGHBOUR: usize = 0x8955;
    const GET_HARDWARE: usize = 0x8927;
    let mut request = [0u8; 40];
    request[..4].copy_from_slice(b"eth0");
    call3(system::IOCTL, socket, GET_HARDWARE, request.as_mut_ptr() as usize);
    let own = request[23];
    let mut set = |what, value: &[u8]| {
        request[16..].fill(0);
        request[16..16 + value.len()].copy_from_slice(value);
        call3(system::IOCTL, socket, what, request.as_ptr() as usize);
    };
    set(SET_ADDRESS, &address([10, 0, 0, own], 0));
    set(SET_MASK, &address([255, 255, 255, 0], 0));
    const UP_AND_RUNNING: u16 = 0x41;
    set(SET_FLAGS, &UP_AND_RUNNING.to_le_bytes());
    for other in [SENDING, RECEIVING, OUTSIDE[3]] {
        if other == own {
            continue;
        }
        let mut neighbour = [0u8; 68];
        neighbour[..16].copy_from_slice(&address([10, 0, 0, other], 0));
        neighbour[16] = 1;
        neighbour[18..24].copy_from_slice(&[2, 0, 0, 0, 0, other]);
        const COMPLETE_AND_PERMANENT: u32 = 6;
        neighbour[32..36].copy_from_slice(&COMPLETE_AND_PERMANENT.to_le_bytes());
        neighbour[52..56].copy_from_slice(b"eth0");
        call3(system::IOCTL, socket, SET_NEIGHBOUR, neighbour.as_ptr() as usize);
    }
}

/// Writes to a file: its path and the text, with a zero byte between and after them.
fn set(rest: &[u8]) -> u32 {
    let Some(end) = rest.iter().position(|byte| *byte == 0) else { return 22 };
    let value = &rest[end + 1..rest.len().max(end + 2) - 1];
    const WRITE_ONLY: usize = 1;
    let file = call3(system::OPEN, rest.as_ptr() as usize, WRITE_ONLY, 0);
    if file < 0 {
        return error_of(file);
    }
    let written = call3(system::WRITE, file as usize, value.as_ptr() as usize, value.len());
    call3(system::CLOSE, file as usize, 0, 0);
    error_of(written)
}

fn mount(kind: &'static [u8], place: &'static [u8]) {
    let kind = Text::of(kind).0 as usize;
    call(system::MOUNT, [kind, Text::of(place).0 as usize, kind, 0, 0, 0]);
}

fn bind(socket: usize, port: u16) {
    let own = address([0; 4], port);
    call3(system::BIND, socket, own.as_ptr() as usize, 16);
}

fn address(ip: [u8; 4], port: u16) -> [u8; 16] {
    let mut address = [0u8; 16];
    address[0] = AF_INET as u8;
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&ip);
    address
}

/// Nanoseconds of the monotonic clock.
fn now() -> u64 {
    let mut time = [0u64; 2];
    call3(system::CLOCK_GETTIME, 1, time.as_mut_ptr() as usize, 0);
    time[0] * 1_000_000_000 + time[1]
}

fn sleep_until(nanoseconds: u64) {
    const ABSOLUTE: usize = 1;
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    call(system::CLOCK_NANOSLEEP, [1, ABSOLUTE, time.as_ptr() as usize, 0, 0, 0]);
}

fn number(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()) {
        Some(eight) => u64::from_le_bytes(eight),
        None => 0,
    }
}

fn error_of(result: isize) -> u32 {
    if result < 0 { result.unsigned_abs() as u32 } else { 0 }
}
