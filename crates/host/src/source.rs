//! What an application gives its TCP connection to send.

use sojourn_core::{Rate, Span, Stream, Time};

/// When and how much an application writes.
#[derive(Clone, Debug)]
#[repr(u8)] // Told apart by a byte of its own: it is asked before every burst.
pub enum Source {
    /// As much as fits until `stop`, at most this many bytes.
    Bulk { bytes: Option<u64>, stop: Time },
    /// `write` bytes in every interval `every`, at most `bytes` in all: an application with a rate
    /// of its own (`iperf3 -b`).
    Paced { write: u64, every: Span, bytes: Option<u64>, written: u64, next: Time, stop: Time },
    /// As much as fits while on.
    OnOff { on: Span, off: Span, random: Option<Stream>, is_on: bool, until: Time, stop: Time },
}

/// What there is to send at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// Any amount.
    Endless,
    /// Up to this byte position, and nothing more will come.
    Until(u64),
    /// Up to this byte position for now.
    SoFar(u64),
    /// What is left of the call in which it writes, and then nothing for now.
    Paused,
    /// Nothing more will come.
    Stopped,
}

/// How often an application with a rate writes.
const WRITES: Span = Span::from_millis(10);

impl Source {
    pub fn on_off(on: Span, off: Span, random: Option<Stream>, start: Time, stop: Time) -> Self {
        Self::OnOff { on, off, random, is_on: false, until: start, stop }
    }

    /// Writes at `rate` from `start` on: whole segments of `mss` bytes every 10 ms, or one segment
    /// at a time if a segment takes longer.
    pub fn paced(rate: Rate, mss: u32, bytes: Option<u64>, start: Time, stop: Time) -> Self {
        let mss = u64::from(mss);
        let write = (rate.bytes_in(WRITES) / mss * mss).max(mss);
        Self::Paced { write, every: rate.time_for(write), bytes, written: 0, next: start, stop }
    }

    /// Writes when it is told ([`Source::write`]), and never ends.
    pub fn when_told() -> Self {
        let (next, stop) = (Time::NEVER, Time::NEVER);
        Self::Paced { write: 0, every: Span::ZERO, bytes: None, written: 0, next, stop }
    }

    /// The application writes so many bytes more, if it has no plan of its own.
    pub fn write(&mut self, more: u64) {
        if let Self::Paced { write: 0, written, .. } = self {
            *written += more;
        }
    }

    /// The application offers nothing more from `now` on.
    pub fn stop(&mut self, now: Time) {
        match self {
            Self::Bulk { stop, .. } => *stop = now.min(*stop),
            Self::Paced { next, stop, .. } => (*next, *stop) = (Time::NEVER, now.min(*stop)),
            Self::OnOff { is_on, until, stop, .. } => {
                (*is_on, *until, *stop) = (false, Time::NEVER, now.min(*stop));
            }
        }
    }

    /// A bulk application without an end writes nothing for `length`.
    pub fn pause(&mut self, now: Time, length: Span) {
        match self {
            Self::Paced { next, .. } if !next.is_never() => *next = (*next).max(now + length),
            _ => {
                if let Some(stop) = self.stop_of_endless(now) {
                    *self = Self::from_then_on(now + length, stop);
                }
            }
        }
    }

    /// A bulk application without an end, which has written `before` bytes, writes at `rate` from `now`
    /// on; if that is unlimited, as much as fits.
    pub fn set_rate(&mut self, now: Time, rate: Rate, mss: u32, before: u64) {
        let Some(stop) = self.stop_of_endless(now) else { return };
        if rate.is_unlimited() {
            *self = Self::from_then_on(now, stop);
            return;
        }
        *self = Self::paced(rate, mss, None, now, stop);
        if let Self::Paced { written, .. } = self {
            *written = before;
        }
    }

    /// When a bulk application stops that has no other end, and goes on at `now`.
    fn stop_of_endless(&self, now: Time) -> Option<Time> {
        let stop = match self {
            Self::Bulk { bytes: None, stop } | Self::Paced { bytes: None, stop, .. } => *stop,
            // As `from_then_on` makes it; an application that is on and off is never off for no time.
            Self::OnOff { off: Span::ZERO, stop, .. } => *stop,
            _ => return None,
        };
        (now < stop).then_some(stop)
    }

    /// As much as fits from `start` on.
    fn from_then_on(start: Time, stop: Time) -> Self {
        let (on, off) = (Span::from_nanos(stop.as_nanos()), Span::ZERO);
        Self::OnOff { on, off, random: None, is_on: false, until: start, stop }
    }

    /// How many bytes there are to write in all, if that is limited.
    pub fn transfer(&self) -> Option<u64> {
        match self {
            Self::Bulk { bytes, .. } | Self::Paced { bytes, .. } => *bytes,
            Self::OnOff { .. } => None,
        }
    }

    /// What there is to send at `now`.
    #[inline]
    pub fn state(&self, now: Time) -> SourceState {
        match self {
            Self::Bulk { stop, .. } | Self::OnOff { stop, .. } if now >= *stop => {
                SourceState::Stopped
            }
            Self::Bulk { bytes: Some(bytes), .. } => SourceState::Until(*bytes),
            Self::Bulk { bytes: None, .. } => SourceState::Endless,
            Self::Paced { bytes: Some(bytes), written, .. } if written >= bytes => {
                SourceState::Until(*bytes)
            }
            Self::Paced { written, .. } => SourceState::SoFar(*written),
            // At the end of a phase an acknowledgement may come before the wake that ends it.
            Self::OnOff { is_on: true, until, .. } if now < *until => SourceState::Endless,
            Self::OnOff { .. } => SourceState::Paused,
        }
    }

    /// When the state changes without a call.
    pub fn next_wake(&self) -> Time {
        match self {
            Self::Bulk { .. } => Time::NEVER,
            Self::Paced { next, .. } => *next,
            Self::OnOff { until, .. } => *until,
        }
    }

    pub fn on_wake(&mut self, now: Time) {
        if let Self::Paced { write, every, bytes, written, next, stop } = self {
            while now >= *next {
                *written = bytes.map_or(*written + *write, |bytes| bytes.min(*written + *write));
                let is_last =
                    bytes.is_some_and(|bytes| *written >= bytes) || *next + *every >= *stop;
                *next = if is_last { Time::NEVER } else { *next + *every };
            }
            return;
        }
        let Self::OnOff { on, off, random, is_on, until, stop } = self else {
            return;
        };
        while now >= *until {
            if *until >= *stop {
                *is_on = false;
                *until = Time::NEVER;
                return;
            }
            *is_on = !*is_on;
            let mean = if *is_on { *on } else { *off };
            let length = match random {
                Some(stream) => Span::from_secs_f64(stream.exponential(mean.as_secs_f64())),
                None => mean,
            };
            // A length of zero would never end.
            *until = (*until + length.max(Span::from_micros(1))).min((*stop).max(*until));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_source_writes_until_it_has_written_all_or_must_stop() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let written = |bytes, stop| {
            let rate = Rate::from_bps(80_000);
            let mut source = Source::paced(rate, 100, bytes, at(5), at(stop));
            let mut states = vec![source.state(at(0))];
            while !source.next_wake().is_never() {
                let now = source.next_wake();
                source.on_wake(now);
                states.push(source.state(now));
            }
            states
        };
        let so_far =
            |bytes: &[u64]| bytes.iter().copied().map(SourceState::SoFar).collect::<Vec<_>>();
        assert_eq!(written(None, 30), so_far(&[0, 100, 200, 300]));
        let mut all = so_far(&[0, 100, 200]);
        all.push(SourceState::Until(250));
        assert_eq!(written(Some(250), 1000), all);
    }

    #[test]
    fn on_and_off_alternate_until_the_stop() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut source =
            Source::on_off(Span::from_millis(10), Span::from_millis(5), None, at(0), at(20));
        let mut changes = Vec::new();
        while !source.next_wake().is_never() {
            let now = source.next_wake();
            source.on_wake(now);
            changes.push((now.as_nanos() / 1_000_000, source.state(now)));
        }
        assert_eq!(
            changes,
            [
                (0, SourceState::Endless),
                (10, SourceState::Paused),
                (15, SourceState::Endless),
                (20, SourceState::Stopped),
            ]
        );
    }
}
