//! Results of one run as bytes, for the journal: postcard's wire format, in which a struct is its
//! fields one after another, so that what comes first can be read alone. A long run's time series comes
//! in pieces before its result.

use std::io;

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

use super::series_rows::SeriesRows;
use super::{Delays, Row, Series};

/// Everything that a run leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Position in the plan.
    pub run: u32,
    /// Pieces of its time series that came before; none of a result that travels.
    pub(crate) pieces: u32,
    /// Of the run as a whole, then of every flow, then of every queue.
    pub rows: Vec<Row>,
    /// Of every flow, then of every queue: what follows the pieces.
    pub(crate) series: Vec<SeriesRows>,
    pub delays: Vec<Delays>,
}

/// A part of the time series of a run that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// [`Piece::MARK`].
    mark: u32,
    run: u32,
    /// Counted from 0 for each attempt at the run.
    number: u32,
    series: Vec<SeriesRows>,
}

/// What bytes of the journal begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    Result { run: u32, pieces: u32 },
    Piece { run: u32, number: u32 },
}

impl Beginning {
    /// `None` if the bytes are neither.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let ((first, second, third), _): ((u32, u32, u32), _) =
            postcard::take_from_bytes(bytes).ok()?;
        Some(match first {
            Piece::MARK => Self::Piece { run: second, number: third },
            run => Self::Result { run, pieces: second },
        })
    }
}

impl Piece {
    /// No run has this position, so a piece is not taken for a result.
    const MARK: u32 = u32::MAX;

    pub(crate) fn new(run: u32, number: u32, series: Vec<SeriesRows>) -> Self {
        Self { mark: Self::MARK, run, number, series }
    }

    /// Appends its bytes to others.
    pub(crate) fn write(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        appended(self, bytes)
    }

    /// Reads its series; `None` if the bytes are no piece.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<SeriesRows>> {
        let (piece, rest): (Self, _) = postcard::take_from_bytes(bytes).ok()?;
        (piece.mark == Self::MARK && rest.is_empty()).then_some(piece.series)
    }
}

impl RunResult {
    /// The bytes that the journal keeps, and that travel from where a run is computed.
    ///
    /// # Errors
    /// A result that has no such form; none is known.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        self.write(Vec::new())
    }

    /// Appends these bytes to others.
    pub(crate) fn write(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        appended(self, bytes)
    }

    /// The time series of every flow, then of every queue.
    pub fn series(&self) -> Vec<Series> {
        self.series.iter().map(Series::from).collect()
    }

    /// Reads a result; `None` if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (result, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(result)
    }

    /// Reads only the rows.
    pub(crate) fn decode_rows(bytes: &[u8]) -> Option<Vec<Row>> {
        let ((_, _, rows), _): ((u32, u32, _), _) = postcard::take_from_bytes(bytes).ok()?;
        Some(rows)
    }
}

fn appended(value: &impl Serialize, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    postcard::serialize_with_flavor(value, Appending(bytes)).map_err(io::Error::other)
}

/// Bytes behind which others are written.
struct Appending(Vec<u8>);

impl Flavor for Appending {
    type Output = Vec<u8>;

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::results::{
        Bucket, CompletingPacket, Freeze, Kind, LostPacket, RepairStep, SeriesColumn, StepValues,
    };

    fn freezes(kind: Kind, from_s: f64) -> Vec<Freeze> {
        let lost = LostPacket {
            sequence: 812,
            frame: 97,
            is_repair: false,
            sent_s: from_s + 0.02,
            lost_s: from_s + 0.021,
            queue: "queue".into(),
            why: "full".into(),
        };
        let freeze = Freeze {
            from_s,
            to_s: from_s + 0.5,
            after_frame: 96,
            frame: 97,
            captured_s: from_s + 0.01,
            sent_s: Some(from_s + 0.02),
            received_s: None,
            last: Some(CompletingPacket {
                sequence: 812,
                is_repair: true,
                sent_s: from_s + 0.3,
                arrived_s: from_s + 0.4,
            }),
            never_shown: 0,
            lost: vec![lost],
            lost_packets: 1,
            repairs: vec![RepairStep { sequence: 812, at_s: from_s + 0.1, is_copy: false }],
        };
        if kind == Kind::Flow { vec![freeze] } else { Vec::new() }
    }

    pub(crate) fn example(run: u32) -> RunResult {
        let x = f64::from(run);
        let row = |kind, name: &str, values: &[Option<f64>]| Row {
            run,
            scenario: run / 2,
            seed: 1 + u64::from(run % 2),
            kind,
            name: name.into(),
            digest: format!("{:016x}", 0xabc + run),
            end_state: format!("cwnd:{run}"),
            freezes: freezes(kind, x),
            values: values.iter().copied().collect(),
        };
        RunResult {
            run,
            pieces: 0,
            rows: vec![
                row(Kind::Run, "", &[None, Some(0.5 + x)]),
                row(Kind::Flow, "cubic", &[Some(1.25 + x), None]),
                row(Kind::Queue, "queue", &[None, None]),
            ],
            series: vec![SeriesRows::from(&Series {
                run,
                kind: Kind::Flow,
                name: "cubic".into(),
                t_s: vec![0.1, 0.2, 0.3],
                columns: vec![SeriesColumn {
                    name: "goodput_mbps".into(),
                    values: [None, Some(1.5 + x), Some(2.25)].into_iter().collect(),
                }],
                phase: vec!["Startup".into(), "Startup".into(), "Drain".into()],
            })],
            delays: vec![Delays {
                run,
                kind: Kind::Flow,
                name: "cubic".into(),
                metric: "rtt".into(),
                buckets: vec![
                    Bucket { low_ns: 20_000_000, high_ns: 20_050_000, samples: 7 },
                    Bucket { low_ns: 31_000_000, high_ns: 31_000_000, samples: 1 + u64::from(run) },
                ],
            }],
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let result = example(3);
        let bytes = result.encode().unwrap();
        assert_eq!(Beginning::read(&bytes), Some(Beginning::Result { run: 3, pieces: 0 }));
        assert_eq!(RunResult::decode_rows(&bytes), Some(result.rows.clone()));
        assert_eq!(RunResult::decode(&bytes), Some(result));
    }

    #[test]
    fn a_piece_is_told_from_a_result() {
        let series = example(3).series;
        let bytes = Piece::new(3, 7, series.clone()).write(Vec::new()).unwrap();
        assert_eq!(Beginning::read(&bytes), Some(Beginning::Piece { run: 3, number: 7 }));
        assert_eq!(Piece::decode(&bytes), Some(series));
        assert_eq!(Piece::decode(&example(3).encode().unwrap()), None);
    }

    #[test]
    fn a_part_of_a_result_is_none() {
        let bytes = example(3).encode().unwrap();
        for end in 0..bytes.len() {
            assert_eq!(RunResult::decode(&bytes[..end]), None, "{end} bytes");
        }
    }

    proptest! {
        /// In any order and however large.
        #[test]
        fn buckets_are_read_as_they_were_written(
            buckets in prop::collection::vec((any::<u64>(), 0u64..1 << 20, any::<u64>()), 0..20),
            cut in 1usize..10,
        ) {
            let bucket = |(low_ns, width, samples): (u64, u64, u64)| {
                Bucket { low_ns, high_ns: low_ns.wrapping_add(width), samples }
            };
            let buckets = buckets.into_iter().map(bucket).collect();
            let (name, metric) = ("a".to_owned(), "rtt".to_owned());
            let delays = Delays { run: 1, kind: Kind::Flow, name, metric, buckets };
            let bytes = postcard::to_stdvec(&delays).unwrap();
            let read = |bytes: &[u8]| postcard::from_bytes::<Delays>(bytes).ok();
            prop_assert_eq!(read(&bytes[..bytes.len().saturating_sub(cut)]), None);
            prop_assert_eq!(read(&bytes), Some(delays));
        }

        #[test]
        fn series_are_read_as_they_were_written(
            values in prop::collection::vec(prop::option::of(any::<f32>()), 1..20),
            phases in prop::collection::vec(0u8..3, 20),
            cut in 1usize..10,
        ) {
            let there = |value: Option<f32>| value.filter(|value| !value.is_nan()).map(f64::from);
            let values: StepValues = values.into_iter().map(there).collect();
            let phase = |phase: &u8| Arc::from(["", "Startup", "Drain"][usize::from(*phase)]);
            let phase: Vec<Arc<str>> = phases.iter().take(values.len()).map(phase).collect();
            let has_phases = phase.iter().any(|phase| !phase.is_empty());
            let series = Series {
                run: 7,
                kind: Kind::Flow,
                name: "a".into(),
                t_s: (0..values.len()).map(|row| row as f64).collect(),
                columns: vec![SeriesColumn { name: "cwnd_pkts".into(), values }],
                phase: if has_phases { phase } else { Vec::new() },
            };
            let bytes = postcard::to_stdvec(&SeriesRows::from(&series)).unwrap();
            let read = |bytes: &[u8]| postcard::from_bytes::<SeriesRows>(bytes).ok();
            prop_assert_eq!(read(&bytes[..bytes.len().saturating_sub(cut)]), None);
            prop_assert_eq!(read(&bytes).map(|rows| Series::from(&rows)), Some(series));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = RunResult::decode(&bytes);
        }
    }
}
