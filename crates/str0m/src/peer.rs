//! One str0m peer, driven by simulated time.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use sojourn_core::{Body, Packet, Span, Time};
use sojourn_host::{Around, Endpoints};
use str0m::bwe::Bitrate;
use str0m::media::{Direction, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc};

use crate::Str0m;

/// Bytes of IPv4 and UDP headers.
const HEADERS: u32 = 28;
/// How often str0m may ask to be called again at the same moment; beyond that it is called a little later.
const MOST_TURNS: u32 = 64;
const A_LITTLE: Span = Span::from_micros(10);

/// Where str0m's time begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(pub(crate) Instant);

impl Clock {
    pub(crate) fn at(self, now: Time) -> Instant {
        self.0 + Duration::from_nanos(now.as_nanos())
    }

    fn time(self, at: Instant) -> Time {
        let since = at.saturating_duration_since(self.0);
        Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A peer, what it wants to send, and when it must be called.
pub(crate) struct Peer {
    pub(crate) rtc: Rtc,
    pub(crate) mid: Mid,
    pub(crate) clock: Clock,
    own: SocketAddr,
    other: SocketAddr,
    waiting: VecDeque<Vec<u8>>,
    wake: Time,
    sent: u32,
    /// The first thing that went wrong.
    problem: Option<String>,
}

/// Both peers of a call after their offer and answer, which do not cross the path.
pub(crate) fn pair(clock: Clock, spec: &Str0m) -> (Peer, Peer) {
    let [a, b] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 5000)));
    let builder = || Rtc::builder().clear_codecs().enable_vp8(true);
    let bits = |rate: sojourn_core::Rate| Bitrate::from(rate.as_bps());
    let start = clock.at(Time::ZERO);
    let mut left = builder().enable_bwe(Some(bits(spec.start_rate))).build(start);
    let mut right = builder().build(start);
    for (rtc, address) in [(&mut left, a), (&mut right, b)] {
        let candidate = Candidate::host(address, "udp").expect("an IPv4 address");
        rtc.add_local_candidate(candidate);
    }
    let mut change = left.sdp_api();
    let mid = change.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
    let (offer, pending) = change.apply().expect("a medium was added");
    let answer = right.sdp_api().accept_offer(offer).expect("the other end is the same program");
    left.sdp_api().accept_answer(pending, answer).expect("the answer is to this offer");
    left.bwe().set_desired_bitrate(bits(spec.max_rate));
    let peer = |rtc, own, other| Peer {
        rtc,
        mid,
        clock,
        own,
        other,
        waiting: VecDeque::new(),
        wake: Time::ZERO,
        sent: 0,
        problem: None,
    };
    (peer(left, a, b), peer(right, b, a))
}

impl Peer {
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        packet: &Packet,
        around: &mut Around<'_>,
    ) -> Vec<Event> {
        let Body::Opaque { content, .. } = packet.body else { return Vec::new() };
        let bytes = around.contents.bytes(content);
        match Receive::new(Protocol::Udp, self.other, self.own, bytes) {
            Ok(receive) => {
                let input = Input::Receive(self.clock.at(now), receive);
                let result = self.rtc.handle_input(input);
                self.note(result);
            }
            Err(error) => self.fail(error.to_string()),
        }
        self.settle(now)
    }

    /// Lets time pass.
    pub(crate) fn on_wake(&mut self, now: Time) -> Vec<Event> {
        if now < self.wake {
            return Vec::new();
        }
        self.pass(now);
        self.settle(now)
    }

    /// Takes over everything that str0m has to say until it waits for a later moment.
    pub(crate) fn settle(&mut self, now: Time) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..MOST_TURNS {
            let at = loop {
                match self.rtc.poll_output() {
                    Ok(Output::Timeout(at)) => break at,
                    Ok(Output::Transmit(transmit)) => {
                        self.waiting.push_back(transmit.contents.to_vec())
                    }
                    Ok(Output::Event(event)) => events.push(event),
                    Err(error) => {
                        self.fail(error.to_string());
                        self.wake = Time::NEVER;
                        return events;
                    }
                }
            };
            self.wake = self.clock.time(at);
            if self.wake > now {
                return events;
            }
            self.pass(now);
        }
        self.wake = now + A_LITTLE;
        events
    }

    pub(crate) fn poll_transmit(
        &mut self,
        now: Time,
        around: &mut Around<'_>,
        packet: impl Fn(Time, u32, Body) -> Packet,
    ) -> Option<Packet> {
        let bytes = self.waiting.pop_front()?;
        let length = HEADERS + bytes.len() as u32;
        let number = self.sent;
        self.sent += 1;
        let content = around.contents.put(bytes, 1);
        Some(packet(now, length, Body::Opaque { number, content }))
    }

    pub(crate) fn next_wake(&self) -> Time {
        self.wake
    }

    pub(crate) fn note<E: ToString>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.fail(error.to_string());
        }
    }

    pub(crate) fn check(&self, ends: &Endpoints) -> Result<(), String> {
        let said = |problem: &String| format!("str0m of flow {}: {problem}", ends.flow.0);
        self.problem.as_ref().map_or(Ok(()), |problem| Err(said(problem)))
    }

    fn pass(&mut self, now: Time) {
        let result = self.rtc.handle_input(Input::Timeout(self.clock.at(now)));
        self.note(result);
    }

    fn fail(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}
