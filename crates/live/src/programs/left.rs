//! What a program has left when it has ended: what it printed, and how it ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sojourn_core::{FlowId, Time};

/// Of what a program prints, so many bytes are kept; the rest is thrown away.
pub(crate) const MOST_PRINTED: usize = 64 << 20;
/// Of its complaints the last.
pub(super) const MOST_COMPLAINTS: usize = 4096;

/// In which host of its flow a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
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
        if room > 0 {
            self.bytes.extend(&bytes[..bytes.len().min(room)]);
            self.came.push((self.bytes.len(), now));
        }
    }

    /// Its whole lines, each with when its end came.
    pub(super) fn lines(&self) -> Vec<(Time, &[u8])> {
        let mut came = self.came.iter().peekable();
        let (mut lines, mut start) = (Vec::new(), 0);
        for (at, _) in self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            while came.peek().is_some_and(|(until, _)| *until <= at) {
                came.next();
            }
            let Some((_, now)) = came.peek() else { break };
            lines.push((*now, &self.bytes[start..at]));
            start = at + 1;
        }
        lines
    }
}
