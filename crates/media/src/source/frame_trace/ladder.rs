//! The rates at which a sequence was encoded, and the frame at any rate between and beside them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::Form;
use sojourn_core::random::mix;
use sojourn_core::{Param, ParamKind, Rate, SpecError};

use super::{Config, sizes};

/// Rates in rising order, each with a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ladder(Vec<Rung>);

#[derive(Clone, Debug, PartialEq)]
struct Rung {
    rate: Rate,
    file: String,
    /// Empty until the file is read.
    sizes: Arc<[u32]>,
}

const MOST_RUNGS: usize = 1000;

impl Ladder {
    pub(in crate::source) fn files(&self) -> Vec<&str> {
        self.0.iter().map(|rung| rung.file.as_str()).collect()
    }

    /// Takes in the sizes of `file`. All files must have the same number of sizes, and more than `skip`.
    pub(in crate::source) fn read(
        &mut self,
        file: &str,
        text: &str,
        skip: u32,
    ) -> Result<(), SpecError> {
        let sizes: Arc<[u32]> = sizes::parse(text)?.into();
        if sizes.len() <= skip as usize {
            return Err(SpecError::new(format!("{} frames are too few", sizes.len()))
                .allow([format!("more than the {skip} that 'skip' leaves out")]));
        }
        let other = self.0.iter().find(|rung| !rung.sizes.is_empty() && rung.file != file);
        if let Some(other) = other.filter(|other| other.sizes.len() != sizes.len()) {
            return Err(SpecError::new(format!("{} frames", sizes.len())).allow([format!(
                "{}, as '{}' has",
                other.sizes.len(),
                other.file
            )]));
        }
        for rung in self.0.iter_mut().filter(|rung| rung.file == file) {
            rung.sizes = Arc::clone(&sizes);
        }
        Ok(())
    }

    /// A hash of the sizes; the files' names do not count.
    pub(in crate::source) fn fingerprint(&self) -> u64 {
        let all = self.0.iter().flat_map(|rung| rung.sizes.iter());
        all.fold(self.0.len() as u64, |hash, size| mix(hash ^ u64::from(*size)))
    }
}

/// `RATE:FILE,RATE:FILE,…`
#[derive(Clone, Copy, Debug)]
pub(crate) struct LadderForm;

impl Form for LadderForm {
    type Value = Ladder;
    const KIND: ParamKind = ParamKind::Text;
    const EXAMPLES: &'static [&'static str] = &["400kbit:news-400.txt,800kbit:news-800.txt"];

    fn read(text: &str, _param: &Param) -> Result<Ladder, SpecError> {
        let mut rungs: Vec<Rung> = Vec::new();
        for word in text.split(',') {
            let Some((rate, file)) = word.split_once(':').filter(|(_, file)| !file.is_empty())
            else {
                return Err(SpecError::new(format!("files: '{word}' is no rate with a file"))
                    .allow(["RATE:FILE such as 400kbit:news-400.txt"]));
            };
            let rate: Rate = rate.parse().map_err(|error: SpecError| error.within("files"))?;
            if rate == Rate::ZERO || rate.is_unlimited() {
                return Err(SpecError::new(format!("files: the rate of '{file}' is {rate}"))
                    .allow(["a rate above 0"]));
            }
            if let Some(last) = rungs.last().filter(|last| last.rate >= rate) {
                return Err(SpecError::new(format!("files: {rate} comes after {}", last.rate))
                    .allow(["rates in rising order, each once"]));
            }
            if rungs.len() == MOST_RUNGS {
                return Err(SpecError::new("files: the ladder is too long")
                    .allow([format!("up to {MOST_RUNGS} rates")]));
            }
            rungs.push(Rung { rate, file: file.to_owned(), sizes: Arc::from([]) });
        }
        Ok(Ladder(rungs))
    }

    fn by_default(_param: &Param) -> Ladder {
        Ladder::default()
    }

    fn show(value: &Ladder, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Rung { rate, file, .. }) in value.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{rate}:{file}")?;
        }
        Ok(())
    }
}

/// Plays the frames of a ladder.
#[derive(Clone, Debug)]
pub(in crate::source) struct Player {
    ladder: Ladder,
    skip: usize,
    least: f64,
    most: f64,
    /// Frame rate of the files divided by that of the call: with fewer frames a second, frames are larger.
    stretch: f64,
    place: usize,
}

impl Player {
    pub(in crate::source) fn new(config: &Config, frames_per_second: f64) -> Self {
        Self {
            ladder: config.files.clone(),
            skip: config.skip as usize,
            least: config.least.as_u64() as f64,
            most: config.most.as_u64() as f64,
            stretch: config.fps / frames_per_second,
            place: 0,
        }
    }

    /// The next frame's size at `rate`, and whether it is a key frame; `key` asks for one.
    pub(in crate::source) fn frame(&mut self, rate: Rate, key: bool) -> (u32, bool) {
        if key {
            self.place = 0;
        }
        let place = self.place;
        self.place += 1;
        if self.place == self.ladder.0[0].sizes.len() {
            self.place = self.skip;
        }
        let size = self.size(rate.as_bps() as f64, place) * self.stretch;
        // If the least exceeds the most, the most wins.
        ((size + 0.5).max(self.least).min(self.most) as u32, place == 0)
    }

    fn size(&self, rate: f64, place: usize) -> f64 {
        let rungs = &self.ladder.0;
        let size = |rung: &Rung| f64::from(rung.sizes[place]);
        let above = rungs.partition_point(|rung| (rung.rate.as_bps() as f64) < rate);
        let (Some(low), Some(high)) =
            (above.checked_sub(1).map(|low| &rungs[low]), rungs.get(above))
        else {
            let nearest = &rungs[above.min(rungs.len() - 1)];
            return size(nearest) * rate / nearest.rate.as_bps() as f64;
        };
        let (low_rate, high_rate) = (low.rate.as_bps() as f64, high.rate.as_bps() as f64);
        let share = (rate - low_rate) / (high_rate - low_rate);
        size(low) + share * (size(high) - size(low))
    }
}
