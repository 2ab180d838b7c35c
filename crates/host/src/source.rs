//! What an application gives its TCP connection to send.

use sojourn_core::{Span, Stream, Time};

/// When and how much an application writes.
#[derive(Clone, Debug)]
#[repr(u8)] // Told apart by a byte of its own: it is asked before every burst.
pub enum Source {
    /// As much as fits until `stop`, or so many bytes.
    Bulk { bytes: Option<u64>, stop: Time },
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
    /// Nothing now.
    Paused,
}

impl Source {
    pub fn on_off(on: Span, off: Span, random: Option<Stream>, start: Time, stop: Time) -> Self {
        Self::OnOff { on, off, random, is_on: false, until: start, stop }
    }

    /// What there is to send at `now`; `sent` bytes have left already.
    #[inline]
    pub fn state(&self, now: Time) -> SourceState {
        match self {
            Self::Bulk { bytes: Some(bytes), .. } => SourceState::Until(*bytes),
            Self::Bulk { bytes: None, stop } if now >= *stop => SourceState::Paused,
            Self::Bulk { bytes: None, .. } => SourceState::Endless,
            Self::OnOff { is_on: true, .. } => SourceState::Endless,
            Self::OnOff { is_on: false, .. } => SourceState::Paused,
        }
    }

    /// When the state changes of itself.
    pub fn next_wake(&self) -> Time {
        match self {
            Self::Bulk { .. } => Time::NEVER,
            Self::OnOff { until, .. } => *until,
        }
    }

    pub fn on_wake(&mut self, now: Time) {
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
            // A length of zero would stand still.
            *until = (*until + length.max(Span::from_micros(1))).min((*stop).max(*until));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                (20, SourceState::Paused),
            ]
        );
    }
}
