//! A link's log as Mahimahi's `mm-link --uplink-log` writes it and `mm-throughput-graph` and
//! `mm-delay-graph` read it: `t + bytes` for an arrival, `t # bytes` for an opportunity to deliver,
//! `t - bytes delay` for a departure, `t d packets bytes` for a drop; times in milliseconds.

use std::io::{self, Write};

use sojourn_core::{Direction, Event, Observer, PortId, Queued, Rate, Time, Who};

/// Bytes of one opportunity: a full packet with the header that Mahimahi's device adds.
const OPPORTUNITY: u64 = 1504;

/// Observes one link and writes its log.
pub struct MahimahiLog<W: Write> {
    out: W,
    link: PortId,
    /// Capacity since the last sample, and its bytes that did not fill an opportunity.
    capacity: Option<(Time, Rate)>,
    left: u64,
    failed: Option<io::Error>,
}

impl<W: Write> MahimahiLog<W> {
    /// `link` is the position of the link in the scenario, `queue` its queue as written.
    ///
    /// # Errors
    /// Writing the head of the log fails.
    pub fn new(mut out: W, link: PortId, queue: &str) -> io::Result<Self> {
        let queue: String = queue.chars().filter(|c| !c.is_control()).collect();
        writeln!(out, "# mahimahi mm-link (simulated)")?;
        writeln!(out, "# queue: {queue}")?;
        writeln!(out, "# init timestamp: 0")?;
        writeln!(out, "# base timestamp: 0")?;
        Ok(Self { out, link, capacity: None, left: 0, failed: None })
    }

    /// # Errors
    /// The first error of writing, even an earlier one.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => {
                self.out.flush()?;
                Ok(self.out)
            }
        }
    }

    /// The opportunities between two samples, spread evenly.
    fn opportunities(&mut self, now: Time, capacity: Rate) -> io::Result<()> {
        let before = self.capacity.replace((now, capacity));
        if let Some((since, rate)) = before.filter(|(_, rate)| !rate.is_unlimited()) {
            let bytes = self.left + rate.bytes_in(now.since(since));
            let (count, left) = (bytes / OPPORTUNITY, bytes % OPPORTUNITY);
            self.left = left;
            let span = now.since(since).as_nanos();
            for at in 1..=count {
                let then = since.as_nanos()
                    + (u128::from(span) * u128::from(at) / u128::from(count)) as u64;
                writeln!(self.out, "{} # {OPPORTUNITY}", then / 1_000_000)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, now: Time, event: &Event<'_>) -> io::Result<()> {
        let at = now.as_nanos() / 1_000_000;
        match event {
            Event::Enqueued { packet, .. } if packet.direction == Direction::Forward => {
                writeln!(self.out, "{at} + {}", packet.ip_len())
            }
            Event::Dequeued { packet, sojourn } if packet.direction == Direction::Forward => {
                writeln!(self.out, "{at} - {} {}", packet.ip_len(), sojourn.as_millis())
            }
            Event::Dropped { packet, .. } if packet.direction == Direction::Forward => {
                writeln!(self.out, "{at} d {} {}", packet.segments(), packet.ip_len())
            }
            Event::QueueSample(sample) => self.opportunities(now, sample.capacity),
            _ => Ok(()),
        }
    }
}

impl<W: Write> Observer for MahimahiLog<W> {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        if who == Who::Port(self.link) && self.failed.is_none() {
            self.failed = self.write(now, event).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::QueueSample;

    use super::*;

    #[test]
    fn capacity_becomes_opportunities() {
        let mut log = MahimahiLog::new(Vec::new(), PortId(0), "infinite").unwrap();
        let sample = QueueSample { capacity: Rate::from_bps(12_032_000), ..QueueSample::default() };
        for at in [0, 100] {
            let now = Time::from_nanos(at * 1_000_000);
            log.record(now, Who::Port(PortId(0)), &Event::QueueSample(&sample));
        }
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        let opportunities: Vec<&str> =
            text.lines().filter(|line| line.contains("# 1504")).collect();
        assert_eq!(opportunities.len(), 100, "12.032 Mbit/s is one opportunity each millisecond");
        assert_eq!(opportunities[0], "1 # 1504");
        assert_eq!(opportunities[99], "100 # 1504");
    }
}
