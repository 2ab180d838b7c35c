//! A queue whose limit may depend on the line behind it.

use sojourn_core::{Bytes, Kinds, ParamKind, Rate, Span, SpecError, Words};
use sojourn_qdisc::Config;

/// A queue as `tc` writes it; after `limit` a time at the line's rate or a share of its
/// bandwidth-delay product may stand as well: `pfifo limit 0.5bdp`, `bfifo limit 50ms`. Which disciplines
/// there are, the registry knows that a file is read with.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    text: String,
    /// A limit that follows from the line.
    limit: Option<Buffer>,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// What the line sends in this time.
    Time(Span),
    /// A share of the line's bandwidth-delay product: its mean rate times its round-trip time.
    Bdp(f64),
    Size(Bytes),
    Packets(u32),
}

/// A full packet on Ethernet, in which a limit in packets is counted.
const PACKET: u64 = 1514;
const MOST_BDP: f64 = 1e6;
const MOST_TIME: Span = Span::from_secs(3600);
const LIMIT: &str = "limit";

impl QueueSpec {
    /// # Errors
    /// A time or product after `limit` that is none.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut words = text.split_whitespace().skip_while(|word| *word != LIMIT).skip(1);
        let limit = words.next().map_or(Ok(None), Buffer::following)?;
        Ok(Self { text: text.to_owned(), limit })
    }

    /// The queue, one of `kinds`, in front of a line of `rate`, `None` if that is drawn for each
    /// run, and of round-trip time `rtt`. `buffer` takes the place of a limit that is written.
    ///
    /// # Errors
    /// What [`Config::parse_of`] refuses; a size that follows from a rate or a round-trip time that
    /// there is not, or is out of range.
    pub fn complete(
        &self,
        kinds: &Kinds<Config>,
        buffer: Option<Buffer>,
        rate: Option<Rate>,
        rtt: Span,
    ) -> Result<Config, SpecError> {
        let Some(buffer) = buffer.or(self.limit) else {
            return Config::parse_of(kinds, &self.text);
        };
        let mut words = self.text.split_whitespace();
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            match word {
                LIMIT => drop(words.next()),
                _ => kept.push(word),
            }
        }
        let written = kept.join(" ");
        let Some(unit) = Unit::of(kinds, &written)? else {
            // There is no such queue, and reading it says so.
            return Config::parse_of(kinds, &written);
        };
        let limit = match (buffer, unit) {
            (Buffer::Packets(packets), Unit::Packets) => u64::from(packets),
            (Buffer::Packets(packets), Unit::Bytes) => u64::from(packets) * PACKET,
            (buffer, unit) => unit.of_bytes(buffer.bytes(rate, rtt)?),
        };
        Config::parse_of(kinds, &format!("{written} {LIMIT} {limit}"))
    }
}

impl Buffer {
    /// # Errors
    /// It is none of the four, or out of range.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        if let Some(buffer) = Self::following(text)? {
            return Ok(buffer);
        }
        match (text.parse::<u32>(), text.parse::<Bytes>()) {
            (Ok(packets), _) if packets > 0 => Ok(Self::Packets(packets)),
            (_, Ok(size)) if size.as_u64() > 0 => Ok(Self::Size(size)),
            _ => Err(SpecError::new(format!("'{text}' is no size of a queue")).allow([
                "50ms",
                "0.5bdp",
                "64kB",
                "100 (packets)",
            ])),
        }
    }

    /// A size that depends on the line, if `text` is one.
    fn following(text: &str) -> Result<Option<Self>, SpecError> {
        let out_of_range = |allowed: String| {
            Err(SpecError::new(format!("a queue of {text} is out of range")).allow([allowed]))
        };
        if let Some(number) = text.strip_suffix("bdp") {
            return match number.trim().parse::<f64>() {
                Ok(share) if share > 0.0 && share <= MOST_BDP => Ok(Some(Self::Bdp(share))),
                _ => out_of_range(format!("more than 0bdp, at most {MOST_BDP}bdp")),
            };
        }
        // A number without a unit counts packets or bytes, as in tc.
        if text.ends_with('s')
            && !text.ends_with("bps")
            && let Ok(span) = text.parse::<Span>()
        {
            return match span {
                span if span.is_zero() || span > MOST_TIME => {
                    out_of_range(format!("more than 0s, at most {MOST_TIME}"))
                }
                span => Ok(Some(Self::Time(span))),
            };
        }
        Ok(None)
    }

    fn bytes(self, rate: Option<Rate>, rtt: Span) -> Result<f64, SpecError> {
        let per_second = || match rate {
            Some(rate) if !rate.is_unlimited() => Ok(rate.as_bps() as f64 / 8.0),
            _ => Err(SpecError::new(
                "the size follows from a rate that is unlimited, or drawn for each run",
            )
            .allow(["a size such as 64kB, or packets"])),
        };
        match self {
            Self::Time(time) => Ok(per_second()? * time.as_secs_f64()),
            Self::Bdp(_) if rtt.is_zero() => {
                Err(SpecError::new("a bandwidth-delay product of a line without delay")
                    .allow(["a time such as 50ms, a size such as 64kB, or packets"]))
            }
            Self::Bdp(share) => Ok(per_second()? * rtt.as_secs_f64() * share),
            Self::Size(bytes) => Ok(bytes.as_u64() as f64),
            Self::Packets(packets) => Ok((u64::from(packets) * PACKET) as f64),
        }
    }
}

/// What a discipline's limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    /// As the parameter says; `None` if there is no such discipline.
    fn of(kinds: &Kinds<Config>, written: &str) -> Result<Option<Self>, SpecError> {
        let Some(kind) = Words::new(written).next().and_then(|name| kinds.named(name)) else {
            return Ok(None);
        };
        let limit = kind.params.iter().find(|param| param.is_meant_by(LIMIT));
        match limit.map(|param| param.kind) {
            Some(ParamKind::Size) => Ok(Some(Self::Bytes)),
            Some(ParamKind::Count) => Ok(Some(Self::Packets)),
            _ => {
                let sizes = kind.params.iter().filter(|param| param.kind == ParamKind::Size);
                let problem = format!("{} has no limit in packets or bytes of a queue", kind.name);
                Err(SpecError::new(problem)
                    .allow(sizes.map(|param| format!("{}, as tc writes it", param.name))))
            }
        }
    }

    /// Whole packets, at least one.
    fn of_bytes(self, bytes: f64) -> u64 {
        match self {
            Self::Packets => ((bytes / PACKET as f64 + 0.5) as u64).max(1),
            Self::Bytes => ((bytes + 0.5) as u64).max(PACKET),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str, buffer: Option<&str>) -> String {
        let spec = QueueSpec::parse(text).expect("a queue");
        let kinds = sojourn_qdisc::kinds();
        let buffer = buffer.map(|text| Buffer::parse(text).expect("a size"));
        let rate = Some(Rate::from_bps(12_112_000));
        match spec.complete(&kinds, buffer, rate, Span::from_millis(100)) {
            Ok(config) => config.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_limit_in_time_or_products_becomes_one_in_what_the_discipline_counts() {
        // 12.112 Mbit/s are 1 000 full packets a second.
        assert_eq!(complete("pfifo limit 50ms", None), "pfifo limit 50p");
        assert_eq!(complete("pfifo limit 0.5bdp", None), "pfifo limit 50p");
        assert_eq!(complete("bfifo limit 2bdp", None), "bfifo limit 302800b");
        assert_eq!(complete("pfifo limit 1us", None), "pfifo limit 1p", "one at least");
        assert!(complete("red limit 50ms avpkt 1000", None).starts_with("red limit 75700b"));
        assert!(complete("fq_codel limit 1s target 7ms", None).starts_with("fq_codel limit 1000p"));
    }

    #[test]
    fn a_buffer_replaces_the_limit() {
        assert_eq!(complete("pfifo limit 7", Some("100ms")), "pfifo limit 100p");
        assert_eq!(complete("pfifo limit 7ms", Some("12")), "pfifo limit 12p");
        assert_eq!(complete("bfifo limit 9000", Some("12")), "bfifo limit 18168b");
        assert_eq!(complete("pfifo", Some("15140B")), "pfifo limit 10p");
    }

    #[test]
    fn what_has_no_size_says_so() {
        for text in ["pfifo limit 0bdp", "pfifo limit -1bdp", "pfifo limit 0s"] {
            assert!(QueueSpec::parse(text).is_err(), "{text}");
        }
        for text in ["pfifo limit 9h bdp", "", "limit 5ms", "pfofo limit 5ms"] {
            assert!(complete(text, None).contains("allowed"), "{text}");
        }
        let error = complete("cake limit 1bdp", None);
        assert!(error.contains("cake has no limit") && error.contains("memlimit"), "{error}");
        for text in ["", "0", "x", "10Mbps", "nanbdp", "infbdp"] {
            assert!(Buffer::parse(text).is_err(), "{text}");
        }
        let spec = QueueSpec::parse("pfifo limit 1bdp").expect("a queue");
        let complete = |rate, rtt| spec.complete(&sojourn_qdisc::kinds(), None, rate, rtt);
        assert!(complete(None, Span::from_millis(1)).is_err(), "no rate");
        assert!(complete(Some(Rate::from_bps(1)), Span::ZERO).is_err(), "no delay");
    }
}
