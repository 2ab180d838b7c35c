//! What this program and its copies on other hosts say to each other: frames with their length, each one message as JSON.

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sojourn_core::{Confidence, EcnMode, FlowSample, Rate, Responsiveness, Span};

use crate::traffic::What;

/// What comes from a host before the first frame. Both must have the same number.
pub(super) const GREETING: &[u8; 16] = b"sojourn-agent 5\n";

/// How often a host hears of this machine; one that hears nothing for six times as long takes it for dead, and ends.
pub(super) const ALIVE: Duration = Duration::from_secs(5);

/// Longer frames are nobody's.
const LONGEST: usize = 8 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToAgent {
    /// Somebody is there.
    Alive,
    Prepare(Order),
    /// Send something over your interface, so that it is seen where that leads.
    Speak,
    /// What does your clock show?
    Clock,
    /// The run begins when your clock shows this.
    Begin(u64),
    /// It is over. Programs have the time that they may take to end, unless it is urgent, because senders' programs have ended on
    /// all hosts or nobody wants to hear of them any more.
    End {
        is_urgent: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromAgent {
    /// With the release of its kernel.
    Ready(String),
    /// It could not do what it was told. What its programs left has come before.
    Failed(String),
    /// The same, of an end of a flow, which may have lost its other end: that one's host hears of the end of a run when it does.
    FlowFailed(String),
    /// Nanoseconds since it began.
    Clock(u64),
    Notices(Vec<Told>),
    /// All transfers that begin there have ended, if the run waits for such.
    TransfersDone,
    /// The senders' programs there have ended, or had their time to.
    SendersDone,
    /// It has come to the end of the run, and only its programs may go on.
    Ended,
    Left(Part),
    Done,
}

/// What a host has to do in a run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Its number in the scenario, and its interface to the bottleneck.
    pub(super) host: u16,
    pub(super) interface: String,
    pub(super) offloads: bool,
    pub(super) ecn: u8,
    pub(super) most_receive_buffer: Option<u64>,
    pub(super) most_send_buffer: Option<u64>,
    /// In nanoseconds, as all times.
    pub(super) duration: u64,
    pub(super) until_transfers_done: bool,
    pub(super) step: u64,
    pub(super) seed: u64,
    pub(super) run: u64,
    /// Only to see whether the host has all that the run needs: no program is started.
    pub(super) is_trial: bool,
    /// All flows, also those that have no end there.
    pub(super) flows: Vec<FlowOrder>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FlowOrder {
    pub(super) name: String,
    pub(super) src: u16,
    pub(super) dst: u16,
    pub(super) start: u64,
    pub(super) start_jitter: u64,
    pub(super) stop: Option<u64>,
    pub(super) dscp: u8,
    pub(super) app: AppOrder,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum AppOrder {
    Bulk {
        tcp: TcpOrder,
        rate: Option<u64>,
        bytes: Option<u64>,
    },
    OnOff {
        tcp: TcpOrder,
        on: u64,
        off: u64,
        random: bool,
    },
    Udp {
        interval: u64,
        frame: u32,
        datagrams: u32,
        header: u32,
    },
    Ping {
        interval: u64,
        size: u64,
    },
    /// How many a second is an `f64` by its bits, which as a decimal number might come as another.
    Arrivals {
        tcp: TcpOrder,
        per_second: u64,
        sizes: String,
        most: u32,
        transfers: Option<u64>,
    },
    /// What asks and answers, as users write its parameters.
    Page {
        tcp: TcpOrder,
        values: String,
    },
    Requests {
        tcp: TcpOrder,
        values: String,
    },
    Rpm {
        tcp: TcpOrder,
        values: String,
    },
    Exec {
        sender: Option<String>,
        receiver: Option<String>,
        grace: u64,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TcpOrder {
    pub(super) cca: String,
    pub(super) mss: u32,
    pub(super) receive_buffer: Option<u64>,
    pub(super) most_unsent: Option<u64>,
    pub(super) blocking: bool,
}

/// What an end of a flow says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) at: u64,
    pub(super) flow: u32,
    what: Said,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Said {
    /// Of a sender.
    Sample {
        numbers: Vec<Option<u64>>,
        phase: String,
    },
    Opened(u64),
    Refused(u64),
    Completed(u64, u64),
    /// Numbers with fractions by their bits.
    Responsiveness {
        rates: [u64; 3],
        connections: u32,
        confidence: u8,
    },
}

/// A part of what a program left. Bytes are characters of those numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) flow: u32,
    pub(super) is_receiver: bool,
    /// Of the first part only.
    pub(super) what: String,
    pub(super) how: String,
    pub(super) has_failed: bool,
    pub(super) was_asked: bool,
    pub(super) complaints: String,
    pub(super) printed: String,
    /// How many bytes there were in all, and when.
    pub(super) came: Vec<(u64, u64)>,
}

/// Phases of which a kernel tells.
const PHASES: [&str; 13] = [
    "slow_start",
    "avoidance",
    "recovery",
    "STARTUP",
    "DRAIN",
    "PROBE_RTT",
    "PROBE_BW:1.25",
    "PROBE_BW:0.75",
    "PROBE_BW:1",
    "PROBE_BW:DOWN",
    "PROBE_BW:CRUISE",
    "PROBE_BW:REFILL",
    "PROBE_BW:UP",
];

impl Told {
    /// `None` for what is not told.
    pub(super) fn new(at: u64, flow: u32, what: &What) -> Option<Self> {
        let what = match what {
            What::Sample(sample) => sample_said(sample),
            What::Opened(bytes) => Said::Opened(*bytes),
            What::Refused(bytes) => Said::Refused(*bytes),
            What::Completed(bytes, took) => Said::Completed(*bytes, took.as_nanos()),
            What::Responsiveness(own) => Said::Responsiveness {
                rates: [own.rpm, own.foreign, own.loaded].map(f64::to_bits),
                connections: own.connections,
                confidence: match own.confidence {
                    Confidence::Low => 0,
                    Confidence::Medium => 1,
                    Confidence::High => 2,
                },
            },
            // Applications that say these do not run elsewhere.
            What::Delivered(_)
            | What::Frame(_)
            | What::Nack(_)
            | What::KeyRequest
            | What::Voice(_)
            | What::RateControl(_) => return None,
        };
        Some(Self { at, flow, what })
    }

    /// `None` if it can't be.
    pub(super) fn what(&self) -> Option<What> {
        Some(match &self.what {
            Said::Sample { numbers, phase } => What::Sample(sample_of(numbers, phase)?),
            Said::Opened(bytes) => What::Opened(*bytes),
            Said::Refused(bytes) => What::Refused(*bytes),
            Said::Completed(bytes, took) => What::Completed(*bytes, Span::from_nanos(*took)),
            Said::Responsiveness { rates, connections, confidence } => {
                let [rpm, foreign, loaded] = rates.map(f64::from_bits);
                let is_good = |own: f64| own.is_finite() && own >= 0.0;
                [rpm, foreign, loaded].into_iter().all(is_good).then_some(())?;
                What::Responsiveness(Responsiveness {
                    rpm,
                    foreign,
                    loaded,
                    connections: *connections,
                    confidence: match confidence {
                        0 => Confidence::Low,
                        1 => Confidence::Medium,
                        _ => Confidence::High,
                    },
                })
            }
        })
    }
}

fn sample_said(s: &FlowSample) -> Said {
    let rate = |rate: Rate| rate.as_bps();
    let span = |span: Span| span.as_nanos();
    let ecn = match s.ecn {
        EcnMode::Disabled => 0,
        EcnMode::Rfc3168 => 1,
        EcnMode::AccEcn => 2,
    };
    let numbers = vec![
        Some(s.cwnd.into()),
        s.ssthresh.map(u64::from),
        s.pacing_rate.map(rate),
        Some(rate(s.delivery_rate)),
        Some(s.delivery_rate_app_limited.into()),
        Some(span(s.srtt)),
        Some(span(s.rttvar)),
        s.min_rtt.map(span),
        Some(span(s.rto)),
        Some(s.unacked.into()),
        Some(s.sacked.into()),
        Some(s.lost.into()),
        Some(s.retrans.into()),
        Some(s.retrans_total),
        Some(s.timeouts_total),
        Some(s.delivered),
        Some(s.delivered_ce),
        Some(s.bytes_sent),
        Some(s.bytes_retrans),
        Some(s.bytes_acked),
        Some(s.not_sent),
        Some(s.rwnd),
        Some(span(s.busy)),
        Some(span(s.rwnd_limited)),
        Some(span(s.sndbuf_limited)),
        Some(ecn),
        Some(s.ecn_seen.into()),
        s.bw.map(rate),
        s.model_min_rtt.map(span),
        s.extra_acked.map(u64::from),
        s.inflight_longterm.map(u64::from),
        s.rounds,
    ];
    Said::Sample { numbers, phase: s.phase.to_owned() }
}

/// `None` if it is no sample.
fn sample_of(numbers: &[Option<u64>], phase: &str) -> Option<FlowSample> {
    let numbers: [Option<u64>; 32] = numbers.try_into().ok()?;
    let word = |at: usize| numbers[at].and_then(|own| u32::try_from(own).ok());
    let rate = |at: usize| numbers[at].map(Rate::from_bps);
    let span = |at: usize| numbers[at].map(Span::from_nanos);
    let phase = PHASES.into_iter().find(|own| *own == phase);
    Some(FlowSample {
        cwnd: word(0)?,
        ssthresh: word(1),
        pacing_rate: rate(2),
        delivery_rate: rate(3)?,
        delivery_rate_app_limited: numbers[4]? != 0,
        srtt: span(5)?,
        rttvar: span(6)?,
        min_rtt: span(7),
        rto: span(8)?,
        unacked: word(9)?,
        sacked: word(10)?,
        lost: word(11)?,
        retrans: word(12)?,
        retrans_total: numbers[13]?,
        timeouts_total: numbers[14]?,
        delivered: numbers[15]?,
        delivered_ce: numbers[16]?,
        bytes_sent: numbers[17]?,
        bytes_retrans: numbers[18]?,
        bytes_acked: numbers[19]?,
        not_sent: numbers[20]?,
        rwnd: numbers[21]?,
        busy: span(22)?,
        rwnd_limited: span(23)?,
        sndbuf_limited: span(24)?,
        ecn: match numbers[25]? {
            0 => EcnMode::Disabled,
            1 => EcnMode::Rfc3168,
            _ => EcnMode::AccEcn,
        },
        ecn_seen: numbers[26]? != 0,
        phase: phase.unwrap_or_default(),
        bw: rate(27),
        model_min_rtt: span(28),
        extra_acked: word(29),
        inflight_longterm: word(30),
        rounds: numbers[31],
        ..FlowSample::default()
    })
}

pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length as usize <= LONGEST);
    let length = length.ok_or_else(|| wrong("a message is too long"))?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(&body)?;
    to.flush()
}

/// The next message; `None` at the end.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        return Err(wrong("a message is too long"));
    }
    // What is not there takes no memory.
    let mut body = Vec::new();
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Ok(None);
    }
    serde_json::from_slice(&body).map(Some).map_err(|error| wrong(&error.to_string()))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn order() -> Order {
        let tcp = || TcpOrder {
            cca: "cubic".to_owned(),
            mss: 1448,
            receive_buffer: None,
            most_unsent: None,
            blocking: true,
        };
        let flow = |name: &str, app| FlowOrder {
            name: name.to_owned(),
            src: 0,
            dst: 1,
            start: 5,
            start_jitter: 0,
            stop: Some(7),
            dscp: 46,
            app,
        };
        Order {
            host: 1,
            interface: "eth1".to_owned(),
            offloads: false,
            ecn: 2,
            most_receive_buffer: None,
            most_send_buffer: Some(1 << 20),
            duration: 1_000_000_000,
            until_transfers_done: true,
            step: 100_000_000,
            seed: 1,
            run: 2,
            is_trial: true,
            flows: vec![
                flow("a", AppOrder::Bulk { tcp: tcp(), rate: None, bytes: Some(3) }),
                flow("b", AppOrder::OnOff { tcp: tcp(), on: 1, off: 2, random: true }),
                flow("c", AppOrder::Udp { interval: 1_000, frame: 1448, datagrams: 1, header: 28 }),
                flow("d", AppOrder::Ping { interval: 1_000_000, size: 56 }),
                flow(
                    "e",
                    AppOrder::Arrivals {
                        tcp: tcp(),
                        per_second: 0.1_f64.to_bits(),
                        sizes: "cdf 1kB 0.2 50kB 1".to_owned(),
                        most: 5,
                        transfers: None,
                    },
                ),
                flow(
                    "f",
                    AppOrder::Page { tcp: tcp(), values: "bytes=500000 requests=20".to_owned() },
                ),
                flow("g", AppOrder::Requests { tcp: tcp(), values: "bytes=50000".to_owned() }),
                flow("h", AppOrder::Rpm { tcp: tcp(), values: "kept=0.9".to_owned() }),
                flow(
                    "i",
                    AppOrder::Exec {
                        sender: Some("echo {receiver}".to_owned()),
                        receiver: None,
                        grace: 1_000_000,
                    },
                ),
            ],
        }
    }

    /// What follows the end of a run.
    fn said_by_a_host() -> [FromAgent; 4] {
        let part = Part {
            flow: 8,
            is_receiver: true,
            what: "a".to_owned(),
            how: "b".to_owned(),
            has_failed: true,
            was_asked: false,
            complaints: "\u{ff}".to_owned(),
            printed: "c\n".to_owned(),
            came: vec![(2, 3)],
        };
        let problem = || "it is no more".to_owned();
        [
            FromAgent::Ended,
            FromAgent::Left(part),
            FromAgent::Failed(problem()),
            FromAgent::FlowFailed(problem()),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        let sample = FlowSample {
            cwnd: 10,
            min_rtt: Some(Span::from_millis(3)),
            phase: "PROBE_BW:CRUISE",
            bw: Some(Rate::from_bps(7)),
            extra_acked: Some(0),
            inflight_longterm: Some(31),
            rounds: Some(77),
            ..FlowSample::default()
        };
        write(&mut bytes, &ToAgent::Prepare(order())).expect("it fits");
        let Ok(Some(ToAgent::Prepare(read_order))) = read(&mut &bytes[..]) else { panic!() };
        assert_eq!(read_order, order());
        for message in said_by_a_host() {
            bytes.clear();
            write(&mut bytes, &message).expect("it fits");
            let again: FromAgent = read(&mut &bytes[..]).expect("it is good").expect("it is whole");
            assert_eq!(format!("{again:?}"), format!("{message:?}"));
        }
        bytes.truncate(9);
        assert!(matches!(read::<FromAgent>(&mut &bytes[..]), Ok(None)), "the rest never came");
        let result = Responsiveness {
            rpm: 0.1,
            foreign: 2.0,
            loaded: 3.5,
            connections: 4,
            confidence: Confidence::Medium,
        };
        for what in [
            What::Sample(sample),
            What::Opened(1),
            What::Refused(2),
            What::Completed(3, Span::from_millis(4)),
            What::Responsiveness(result),
        ] {
            let told = Told::new(5, 1, &what).expect("it is told").what().expect("it can be");
            assert_eq!(format!("{told:?}"), format!("{what:?}"));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            numbers in prop::collection::vec(any::<Option<u64>>(), 30..34),
        ) {
            let _ = read::<ToAgent>(&mut &bytes[..]);
            let _ = read::<FromAgent>(&mut &bytes[..]);
            bytes.clear();
            write(&mut bytes, &ToAgent::Prepare(order())).expect("it fits");
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = read::<ToAgent>(&mut &bytes[..]);
            for message in said_by_a_host() {
                bytes.clear();
                write(&mut bytes, &message).expect("it fits");
                for (at, byte) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
                let _ = read::<FromAgent>(&mut &bytes[..]);
            }
            let rates = [0, 1, 2].map(|at: usize| numbers[at].unwrap_or(0));
            let sample = Said::Sample { numbers, phase: "x".to_owned() };
            let result = Said::Responsiveness { rates, connections: 1, confidence: 9 };
            for what in [sample, result] {
                let _ = Told { at: 0, flow: 0, what }.what();
            }
        }
    }
}
