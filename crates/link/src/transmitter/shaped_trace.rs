use alloc::sync::Arc;

use sojourn_core::{Bytes, Framing, Queued, Rate, Time};

use super::course::Course;
use super::medium::Medium;
use super::{Departure, TokenBucket};
use crate::trace::{OnEnd, Trace};

/// A class of Linux's `htb` in front of a fast wire; a script changes the class's rate. A packet
/// leaves at once and the next one waits. A debt is kept as time, so a change of rate does not
/// alter it, as in Linux. Linux refuses a rate of zero; here nothing leaves until capacity returns.
#[derive(Clone, Debug)]
pub struct ShapedTrace {
    course: Course,
    bucket: TokenBucket,
    medium: Medium,
    /// Nothing leaves before this; the course was followed up to here.
    from: u64,
}

impl ShapedTrace {
    /// `framing` determines the length of packets on the medium. The burst is the one that `tc`
    /// derives.
    pub fn new(trace: Arc<Trace>, on_end: OnEnd, framing: Framing) -> Self {
        let mut course = Course::new(trace, on_end);
        let from = course.seek_capacity(0);
        let rate = course.rate();
        let bucket = TokenBucket::new(rate, default_burst(rate), 0);
        let medium = Medium::new(framing);
        Self { course, bucket, medium, from }
    }

    #[inline]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let out = self.ready_at(now);
        if out.is_never() {
            return Departure { out, ready: out };
        }
        let rate = self.course.rate();
        if rate != self.bucket.rate() {
            self.bucket.change(rate, default_burst(rate));
        }
        let ready = self.bucket.charge(out, self.medium.take(packet));
        Departure { out, ready: self.ready_at(ready) }
    }

    #[inline]
    pub fn ready_at(&mut self, now: Time) -> Time {
        let paid = self.bucket.ready_at(now).as_nanos();
        self.from = self.course.seek_capacity(paid.max(self.from));
        Time::from_nanos(self.from)
    }

    pub fn capacity(&self, now: Time) -> Rate {
        self.course.capacity(now)
    }

    pub fn capacity_until(&self, now: Time) -> f64 {
        self.course.bytes_until(now)
    }

    pub(super) fn medium(&self) -> &Medium {
        &self.medium
    }
}

fn default_burst(rate: Rate) -> Bytes {
    TokenBucket::default_burst(rate, TokenBucket::DEFAULT_MTU)
}
