//! What a guest is told to do before a run begins and during it, in datagrams from outside, and what it answers.

use crate::fault::Fault;
use crate::frame::{self, Inner, OUTSIDE};
use crate::guest::Guest;

/// Guests begin the run when their own clocks show this, whatever their start took.
pub(crate) const ORIGIN: u64 = 2_000_000_000;

/// How far a guest that is busy goes on without asking for the time. What reaches it in between waits so long, as
/// where a processor is busy.
const AHEAD: u64 = 4_000;

/// Lets a guest do what it asked to do next, if that is due by `at`; false if nothing is.
pub(crate) fn take_turn(guest: &mut Guest, at: u64) -> Result<bool, Fault> {
    match guest.request() {
        Some(next) if next <= at => guest.run(next, next + AHEAD).map(|()| true),
        _ => Ok(false),
    }
}

/// Gives an order to the guest's first card and waits for the answer, before the run begins.
pub(crate) fn ask(guest: &mut Guest, number: u8, order: &[u8]) -> Result<(u32, Vec<u8>), Fault> {
    while guest.take_sent().is_some() {}
    // Not when it next wants to run, which may be a timer that is seconds away.
    let mut at = guest.now();
    if guest.deliver(0, at, &[frame::order(number, order)], at + AHEAD)? == 0 {
        return Err(Fault::Nonsense("its card takes no frames".to_owned()));
    }
    loop {
        while let Some((_, _, bytes)) = guest.take_sent() {
            if let Some((kind, error, more)) = answer(&bytes)
                && order.first() == Some(&kind)
            {
                return Ok((error, more));
            }
        }
        let next = guest.request().filter(|next| *next < ORIGIN);
        let none = || Fault::Nonsense("no answer to an order".to_owned());
        at = next.ok_or_else(none)?;
        guest.run(at, at + AHEAD)?;
    }
}

/// Frames reach a card at `at`. If all the card's buffers are full, they wait until the guest has worked on them.
pub(crate) fn deliver(
    guest: &mut Guest,
    card: usize,
    at: u64,
    mut frames: &[Vec<u8>],
) -> Result<(), Fault> {
    /// A guest that takes none for so long is not busy but broken.
    const LONGEST: u64 = 10_000_000;
    let mut later = at;
    loop {
        let taken = guest.deliver(card, later, frames, later + AHEAD)?;
        frames = &frames[taken..];
        if frames.is_empty() {
            return Ok(());
        }
        let next = guest.request().filter(|next| *next < at + LONGEST);
        if next.is_none() {
            guest.check_memory()?;
        }
        let full = || Fault::Nonsense("its card has no room for a frame".to_owned());
        later = next.ok_or_else(full)?;
        guest.run(later, later + AHEAD)?;
    }
}

/// Lets a guest run until its clock shows `origin`.
pub(crate) fn wait_until(guest: &mut Guest, origin: u64) -> Result<(), Fault> {
    if guest.now() > origin {
        let seconds = guest.now() as f64 / 1e9;
        let problem =
            format!("the guest is ready after {seconds:.3} s of its time, when its run has begun");
        return Err(Fault::Refused(problem));
    }
    while let Some(next) = guest.request()
        && next < origin
    {
        guest.run(next, (next + AHEAD).min(origin))?;
    }
    Ok(())
}

/// The kind of an answer from a guest to the outside, its error and what it says.
pub(crate) fn answer(bytes: &[u8]) -> Option<(u8, u32, Vec<u8>)> {
    let frame = frame::read(bytes)?;
    let Inner::Datagram(payload) = frame.inner else { return None };
    if frame.to != OUTSIDE {
        return None;
    }
    let (kind, rest) = payload.split_first()?;
    let (error, more) = rest.split_first_chunk::<4>()?;
    Some((*kind, u32::from_le_bytes(*error), more.to_vec()))
}
