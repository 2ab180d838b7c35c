//! What a program has left when it has ended: what it printed, and how it ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sojourn_core::{FlowId, Span, Time};

/// Of what a program prints, so many bytes are kept; the rest is thrown away.
pub(crate) const MOST_PRINTED: usize = 64 << 20;
/// Of its complaints the last.
pub(super) const MOST_COMPLAINTS: usize = 4096;
/// What comes within this time has one time, so that a program which prints byte by byte does not fill the memory.
const AT_ONCE: Span = Span::from_millis(1);

/// In which host of its flow a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// What the programs of all flows have left.
pub(crate) type AllLeft = BTreeMap<(FlowId, Side), Left>;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Left {
    /// Which program it was, for who reads.
    pub(crate) what: String,
    /// How it ended.
    pub(crate) how: String,
    /// It ended with an error, and nobody had asked it to end.
    pub(crate) has_failed: bool,
    pub(crate) was_asked: bool,
    pub(crate) printed: Printed,
    pub(crate) complaints: Vec<u8>,
}

/// What a program printed, and when each piece came; before the run begins at its beginning.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Printed {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes there were, and when.
    pub(crate) came: Vec<(usize, Time)>,
}

impl Left {
    pub(super) fn complain(&mut self, bytes: &[u8]) {
        self.complaints.extend(bytes);
        let over = self.complaints.len().saturating_sub(MOST_COMPLAINTS);
        self.complaints.drain(..over);
    }

    /// The end of its complaints, or of what it printed.
    pub(super) fn last_words(&self) -> String {
        let said = if self.complaints.is_empty() { &self.printed.bytes } else { &self.complaints };
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(1000)..]);
        match said.trim() {
            "" => String::new(),
            said => format!(": {said}"),
        }
    }

    /// How it failed, if it did, for who reads.
    pub(super) fn failure(&self) -> Option<String> {
        self.has_failed
            .then(|| format!("{} ended with {}{}", self.what, self.how, self.last_words()))
    }

    /// Its command, how it ended, and what it said last.
    pub(super) fn end_state(&self) -> String {
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(1500)..]);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let lines = &lines[lines.len().saturating_sub(12)..];
            lines.iter().fold(String::new(), |mut out, line| {
                let _ = writeln!(out, "  {}", line.chars().take(160).collect::<String>());
                out
            })
        };
        let Self { what, how, printed, complaints, .. } = self;
        format!(" {what}: {how}\n{}{}", last(&printed.bytes), last(complaints))
    }
}

impl Printed {
    pub(super) fn add(&mut self, bytes: &[u8], now: Time) {
        let room = MOST_PRINTED.saturating_sub(self.bytes.len());
        if room == 0 {
            return;
        }
        self.bytes.extend(&bytes[..bytes.len().min(room)]);
        match self.came.last_mut() {
            Some((until, at)) if now.since(*at) < AT_ONCE => *until = self.bytes.len(),
            _ => self.came.push((self.bytes.len(), now)),
        }
    }

    /// Its whole lines, each with when its end came.
    pub(super) fn lines(&self) -> impl Iterator<Item = (Time, &[u8])> {
        let mut came = self.came.iter().peekable();
        let mut start = 0;
        let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        ends.map_while(move |(at, _)| {
            while came.peek().is_some_and(|(until, _)| *until <= at) {
                came.next();
            }
            let (_, now) = came.peek()?;
            Some((*now, &self.bytes[std::mem::replace(&mut start, at + 1)..at]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_time_at_which_their_end_came() {
        let mut printed = Printed::default();
        let at = |us: u64| Time::ZERO + Span::from_micros(us);
        for (piece, us) in
            [("a\nb", 0), ("c\n", 5_000), ("d\n", 5_400), ("e\n", 6_100), ("rest", 9_000)]
        {
            printed.add(piece.as_bytes(), at(us));
        }
        let lines: Vec<_> = printed.lines().collect();
        let expected = [("a", 0), ("bc", 5_000), ("d", 5_000), ("e", 6_100)];
        assert_eq!(lines, expected.map(|(line, us)| (at(us), line.as_bytes())));
        // Byte by byte for a second.
        (10_000..1_010_000).for_each(|us| printed.add(b"x", at(us)));
        assert!(printed.came.len() < 1_100, "{}", printed.came.len());
    }
}
