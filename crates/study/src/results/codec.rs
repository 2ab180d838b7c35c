//! Results of one run as bytes, for the journal.

use super::{Bucket, Delays, Kind, Row, Series, SeriesColumn};

/// Everything that a run leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunResult {
    /// Position in the plan.
    pub(crate) run: u32,
    pub(crate) rows: Vec<Row>,
    pub(crate) series: Vec<Series>,
    pub(crate) delays: Vec<Delays>,
}

impl RunResult {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u32(self.run);
        out.u32(self.rows.len() as u32);
        for row in &self.rows {
            out.u32(row.scenario);
            out.u64(row.seed);
            out.kind(row.kind);
            out.text(&row.name);
            out.text(&row.digest);
            out.text(&row.end_state);
            out.u32(row.values.len() as u32);
            row.values.iter().for_each(|value| out.number(*value));
        }
        out.u32(self.series.len() as u32);
        for series in &self.series {
            out.kind(series.kind);
            out.text(&series.name);
            out.u32(series.t_s.len() as u32);
            series.t_s.iter().for_each(|t| out.f64(*t));
            out.u32(series.columns.len() as u32);
            for column in &series.columns {
                out.text(&column.name);
                column.values.iter().for_each(|value| out.short(*value));
            }
            out.phases(&series.phase);
        }
        out.u32(self.delays.len() as u32);
        for delays in &self.delays {
            out.kind(delays.kind);
            out.text(&delays.name);
            out.text(&delays.metric);
            out.u32(delays.buckets.len() as u32);
            for Bucket { low_ns, high_ns, samples } in &delays.buckets {
                [low_ns, high_ns, samples].into_iter().for_each(|number| out.u64(*number));
            }
        }
        out.bytes
    }

    /// `None` when the bytes are no result.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Decoder { bytes };
        let run = input.u32()?;
        let rows = (0..input.u32()?).map(|_| input.row(run)).collect::<Option<_>>()?;
        let series = (0..input.u32()?).map(|_| input.series(run)).collect::<Option<_>>()?;
        let delays = (0..input.u32()?).map(|_| input.delays(run)).collect::<Option<_>>()?;
        input.bytes.is_empty().then_some(Self { run, rows, series, delays })
    }

    /// Only which run it is.
    pub(crate) fn decode_run(bytes: &[u8]) -> Option<u32> {
        Decoder { bytes }.u32()
    }

    /// Only the rows.
    pub(crate) fn decode_rows(bytes: &[u8]) -> Option<Vec<Row>> {
        let mut input = Decoder { bytes };
        let run = input.u32()?;
        (0..input.u32()?).map(|_| input.row(run)).collect()
    }
}

#[derive(Default)]
struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn f64(&mut self, number: f64) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// What is not there is not-a-number; what is there never is.
    fn number(&mut self, number: Option<f64>) {
        self.f64(number.unwrap_or(f64::NAN));
    }

    /// Series were measured in single precision.
    fn short(&mut self, number: Option<f64>) {
        self.bytes.extend(number.map_or(f32::NAN, |number| number as f32).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.bytes.extend(text.as_bytes());
    }

    fn kind(&mut self, kind: Kind) {
        self.bytes.push(kind as u8);
    }

    /// Lengths of stretches of the same phase.
    fn phases(&mut self, phases: &[String]) {
        let stretches: Vec<&[String]> = phases.chunk_by(|a, b| a == b).collect();
        self.u32(stretches.len() as u32);
        for stretch in stretches {
            self.u32(stretch.len() as u32);
            self.text(&stretch[0]);
        }
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
}

impl Decoder<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    fn number(&mut self) -> Option<Option<f64>> {
        self.f64().map(|number| Some(number).filter(|number| !number.is_nan()))
    }

    fn short(&mut self) -> Option<Option<f64>> {
        let number = self.take().map(f32::from_le_bytes)?;
        Some(Some(f64::from(number)).filter(|number| !number.is_nan()))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn kind(&mut self) -> Option<Kind> {
        let [kind] = self.take()?;
        Kind::ALL.into_iter().find(|known| *known as u8 == kind)
    }

    fn row(&mut self, run: u32) -> Option<Row> {
        Some(Row {
            run,
            scenario: self.u32()?,
            seed: self.u64()?,
            kind: self.kind()?,
            name: self.text()?,
            digest: self.text()?,
            end_state: self.text()?,
            values: (0..self.u32()?).map(|_| self.number()).collect::<Option<_>>()?,
        })
    }

    fn delays(&mut self, run: u32) -> Option<Delays> {
        let (kind, name, metric) = (self.kind()?, self.text()?, self.text()?);
        let bucket = |input: &mut Self| {
            Some(Bucket { low_ns: input.u64()?, high_ns: input.u64()?, samples: input.u64()? })
        };
        let buckets = (0..self.u32()?).map(|_| bucket(self)).collect::<Option<_>>()?;
        Some(Delays { run, kind, name, metric, buckets })
    }

    fn series(&mut self, run: u32) -> Option<Series> {
        let kind = self.kind()?;
        let name = self.text()?;
        let steps = self.u32()?;
        let t_s = (0..steps).map(|_| self.f64()).collect::<Option<_>>()?;
        let columns = (0..self.u32()?)
            .map(|_| {
                Some(SeriesColumn {
                    name: self.text()?,
                    values: (0..steps).map(|_| self.short()).collect::<Option<_>>()?,
                })
            })
            .collect::<Option<_>>()?;
        let mut phase = Vec::new();
        for _ in 0..self.u32()? {
            let length = self.u32()? as usize;
            let name = self.text()?;
            // A stretch cannot be longer than the series.
            if length > steps as usize {
                return None;
            }
            phase.extend(std::iter::repeat_n(name, length));
        }
        Some(Series { run, kind, name, t_s, columns, phase })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn example(run: u32) -> RunResult {
        let row = |kind, name: &str, values: &[Option<f64>]| Row {
            run,
            scenario: run / 2,
            seed: 1 + u64::from(run % 2),
            kind,
            name: name.into(),
            digest: format!("{:016x}", 0xabc + run),
            end_state: format!("cwnd:{run}"),
            values: values.to_vec(),
        };
        let x = f64::from(run);
        RunResult {
            run,
            rows: vec![
                row(Kind::Run, "", &[None, Some(0.5 + x)]),
                row(Kind::Flow, "cubic", &[Some(1.25 + x), None]),
                row(Kind::Queue, "queue", &[None, None]),
            ],
            series: vec![Series {
                run,
                kind: Kind::Flow,
                name: "cubic".into(),
                t_s: vec![0.1, 0.2, 0.3],
                columns: vec![SeriesColumn {
                    name: "goodput_mbps".into(),
                    values: vec![None, Some(1.5 + x), Some(2.25)],
                }],
                phase: vec!["Startup".into(), "Startup".into(), "Drain".into()],
            }],
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
        let bytes = result.encode();
        assert_eq!(RunResult::decode_run(&bytes), Some(3));
        assert_eq!(RunResult::decode_rows(&bytes), Some(result.rows.clone()));
        assert_eq!(RunResult::decode(&bytes), Some(result));
    }

    #[test]
    fn a_part_of_a_result_is_none() {
        let bytes = example(3).encode();
        for end in 0..bytes.len() {
            assert_eq!(RunResult::decode(&bytes[..end]), None, "{end} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = RunResult::decode(&bytes);
        }
    }
}
