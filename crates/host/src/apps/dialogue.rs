//! Applications of requests and answers, whoever carries the bytes: the simulator's TCP, or a kernel's.
//!
//! A client and a server are one value, as they are with [`BothEnds`](super::BothEnds); data goes forward, from the server to
//! the client. If they are on two machines, each has such a value, of which only its own end is used. What one end must know of
//! the other's then comes over the connection: the first byte of every request and of every piece of an answer is a word.

use sojourn_core::{Direction, FlowSample, Observer, StreamAddress, Time};

/// The most payload that one answer sends before it is another's turn: the least value of HTTP/2's
/// SETTINGS_MAX_FRAME_SIZE, which is its default (RFC 9113 section 6.5.2).
pub const FRAME: u64 = 16_384;
/// A server whose answers take turns writes the next frame when TCP has less than this left to send, unless
/// `notsent_lowat` says how much.
pub const LOW: u64 = 2 * FRAME;

/// One connection between a client and a server. Dropped, it is closed at both ends.
pub trait Talk {
    fn number(&self) -> u32;

    /// The client is an end of this value.
    fn has_client(&self) -> bool {
        true
    }

    /// The server is an end of this value.
    fn has_server(&self) -> bool {
        true
    }

    /// The client writes a request of so many bytes, which begins with `word`.
    fn ask(&mut self, bytes: u64, word: u8);

    /// The server has an end with which it can answer.
    fn is_accepted(&self) -> bool;

    /// The server writes a piece of an answer of so many bytes, which begins with `word`.
    fn answer(&mut self, bytes: u64, word: u8);

    /// Bytes of answers that the server has written and TCP has not sent.
    fn unsent(&self) -> u64;

    /// What `ss` would show of the server's end, if it has one.
    fn sample(&self, now: Time) -> Option<FlowSample>;
}

/// What makes the connections of a flow.
pub trait Dial {
    type Talk: Talk;

    /// The client's request to connect leaves at `now`. The controller of its end draws from `address`.
    fn open(&mut self, number: u32, address: StreamAddress, now: Time) -> Self::Talk;

    /// The server makes its end, because a first request has come.
    fn accept(&mut self, talk: &mut Self::Talk, address: StreamAddress, now: Time);
}

/// Both ends of an application of requests and answers, as whoever carries its bytes uses it.
///
/// After each call the server can have something to write ([`Dialogue::write`]), and what
/// [`Dialogue::next_time`] and [`Dialogue::poll_datagram`] give can have changed. A number is a connection's; one that
/// is closed is nobody's.
pub trait Dialogue {
    type Talk: Talk;

    /// The server keeps less than [`LOW`] in TCP that is not sent, and so writes when TCP has sent.
    const HOLDS_BACK: bool;

    /// The client knows that it is connected.
    fn on_connected<O: Observer>(&mut self, now: Time, number: u32, o: &mut O) {
        let _ = (now, number, o);
    }

    /// So many bytes of requests came to the server.
    fn server_reads<O: Observer>(&mut self, now: Time, number: u32, bytes: u64, o: &mut O);

    /// So many bytes of answers came to the client.
    fn client_reads<O: Observer>(&mut self, now: Time, number: u32, bytes: u64, o: &mut O);

    /// A time of [`Dialogue::next_time`] has come, of the end that sends in this direction.
    fn on_time<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O);

    fn next_time(&self, sends: Direction) -> Time;

    /// The server writes what it holds back and may write now.
    fn write(&mut self) {}

    /// The server holds back something of this connection.
    fn has_more(&self, number: u32) -> bool {
        let _ = number;
        false
    }

    /// A datagram, of so many bytes with its IP header, leaves the end that sends in this direction.
    fn poll_datagram(&mut self, now: Time, sends: Direction) -> Option<u32> {
        let _ = (now, sends);
        None
    }

    /// A datagram that went in this direction came.
    fn on_datagram(&mut self, now: Time, direction: Direction) {
        let _ = (now, direction);
    }

    /// Where the client has a value of its own: it has connected to the server.
    fn hear_of(&mut self, now: Time, number: u32);

    /// Where the client has a value of its own: a request that begins with `word` is coming, of so many bytes. `None` if there is
    /// no such request.
    fn hear_request(&mut self, number: u32, word: u8) -> Option<u64>;

    /// Where the server has a value of its own: a piece of an answer that begins with `word` is coming, of so many bytes. `None`
    /// if nothing like it was asked for.
    fn hear_answer(&mut self, number: u32, word: u8) -> Option<u64>;

    /// Where the client has a value of its own: it has closed a connection.
    fn hear_end(&mut self, now: Time, number: u32);

    /// Calls `with` with every connection that is open.
    fn each_talk<'a>(&'a self, with: &mut impl FnMut(&'a Self::Talk));

    /// The same, to change them.
    fn each_talk_mut(&mut self, with: &mut impl FnMut(&mut Self::Talk));

    /// Of the server's ends: windows and packets of those that are open, totals of all there have been.
    fn sum(&self, now: Time) -> FlowSample;

    /// All its transfers have ended, and none is to come.
    fn is_over(&self) -> bool;
}
