//! How large transfers are: named distributions, and measured ones as points of their cumulative
//! distribution.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Display};

use sojourn_core::param::Form;
use sojourn_core::{Bytes, Param, ParamKind, SpecError, Stream, Words};

/// No transfer is larger; a distribution without an end of its own is cut here.
pub const LARGEST: u64 = 100_000_000_000;

/// A distribution of sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    Fixed(u64),
    /// Sizes above `most` are cut to `most`.
    Lognormal {
        mean: u64,
        sigma: f64,
        most: u64,
    },
    /// Bounded: the part of a Pareto distribution between `least` and `most`.
    Pareto {
        shape: f64,
        least: u64,
        most: u64,
    },
    /// Straight lines between points of the cumulative distribution, ending at 1.
    Empirical(Arc<[Point]>),
}

/// This share of the transfers has at most this many bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub bytes: u64,
    pub share: f64,
}

/// A distribution as the user wrote it. If it names a file of measured sizes,
/// [`SizesSpec::complete`] needs the file's text.
#[derive(Clone, Debug, PartialEq)]
pub enum SizesSpec {
    Known(Sizes),
    File(String),
}

/// A distribution as `sojourn list` and the reference show it.
#[derive(Clone, Copy, Debug)]
pub struct SizeModel {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: &'static [Param],
}

const MAX: Param =
    Param::new("max", ParamKind::Size, "100GB", "Whatever would be larger has this size");

const LOGNORMAL_PARAMS: &[Param] = &[
    Param::new("mean", ParamKind::Size, "", "Mean, before the cut at max"),
    Param::new(
        "sigma",
        ParamKind::Number,
        "",
        "Standard deviation of the logarithm, above 0 and up to 5",
    ),
    MAX,
];

const PARETO_PARAMS: &[Param] = &[
    Param::new(
        "shape",
        ParamKind::Number,
        "",
        "The smaller, the heavier the tail; above 0 and up to 10",
    ),
    Param::new("min", ParamKind::Size, "", "Smallest size"),
    Param::new("max", ParamKind::Size, "", "Largest size"),
];

const MODELS: &[SizeModel] = &[
    SizeModel {
        name: "fixed",
        doc: "All alike: a size such as 100kB, alone or after this word",
        params: &[],
    },
    SizeModel {
        name: "lognormal",
        doc: "The logarithm is normally distributed, as that of web objects is taken to be",
        params: LOGNORMAL_PARAMS,
    },
    SizeModel {
        name: "pareto",
        doc: "Pareto between two bounds: few large transfers carry most of the bytes",
        params: PARETO_PARAMS,
    },
    SizeModel {
        name: "cdf",
        doc: "Measured: pairs of a size and the share of transfers up to it (cdf 1kB 20% 50kB 90% \
              1MB 100%), or a file with such lines (cdf FILE); in between by straight lines",
        params: &[],
    },
];

/// Every distribution.
pub const fn sizes() -> &'static [SizeModel] {
    MODELS
}

impl SizesSpec {
    /// Reads a distribution as users write it. A path with blanks stands in double quotes.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut words = Words::new(rest);
        let sizes = match name {
            "" => return Err(SpecError::new("no distribution is given").allow(names())),
            "fixed" => Sizes::Fixed(words.parse("fixed", bytes)?),
            "lognormal" => return lognormal(&mut words).map(Self::Known),
            "pareto" => return pareto(&mut words).map(Self::Known),
            "cdf" => return cdf(rest),
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => Sizes::Fixed(bytes(name)?),
            _ => {
                return Err(SpecError::new(format!("unknown distribution '{name}'"))
                    .near(name, MODELS.iter().map(|model| model.name))
                    .allow(names()));
            }
        };
        match words.next() {
            None => Ok(Self::Known(sizes)),
            Some(surplus) => Err(sojourn_core::param::unknown_param("a fixed size", surplus, &[])),
        }
    }

    /// The file that [`SizesSpec::complete`] needs the text of.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::File(path) => Some(path),
        }
    }

    /// `text` is the content of the file of [`SizesSpec::path`].
    ///
    /// # Errors
    /// The text is missing, or holds no distribution; names its line.
    pub fn complete(&self, text: Option<&str>) -> Result<Sizes, SpecError> {
        match (self, text) {
            (Self::Known(sizes), _) => Ok(sizes.clone()),
            (Self::File(_), Some(text)) => Sizes::read(text),
            (Self::File(_), None) => Err(SpecError::new("the file has not been read")),
        }
    }
}

/// Nothing is transferred: no distribution that can be written.
impl Default for SizesSpec {
    fn default() -> Self {
        Self::Known(Sizes::Fixed(0))
    }
}

impl Form for SizesSpec {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;
    const EXAMPLES: &'static [&'static str] = &[
        "100kB",
        "lognormal mean 60kB sigma 1.5",
        "pareto shape 1.2 min 4kB max 10MB",
        "cdf sizes.txt",
    ];

    fn read(text: &str, _param: &Param) -> Result<Self, SpecError> {
        Self::parse(text)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match value {
            Self::Known(sizes) => sizes.fmt(f),
            Self::File(path) => write!(f, "cdf \"{path}\""),
        }
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    ["100kB"].into_iter().chain(MODELS.iter().map(|model| model.name))
}

fn bytes(text: &str) -> Result<u64, SpecError> {
    // Files of measured sizes count bytes without a unit.
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    let size = if is_bare { format!("{text}B").parse() } else { text.parse::<Bytes>() }?.as_u64();
    if (1..=LARGEST).contains(&size) {
        return Ok(size);
    }
    Err(SpecError::new(format!("'{text}' is out of range")).allow(["1B to 100GB"]))
}

fn lognormal(words: &mut Words<'_>) -> Result<Sizes, SpecError> {
    let (mut mean, mut sigma, mut most) = (None, None, LARGEST);
    while let Some(word) = words.next() {
        match word {
            "mean" => mean = Some(words.parse("mean", bytes)?),
            "sigma" => sigma = Some(words.number("sigma", 0.001, 5.0)?),
            "max" => most = words.parse("max", bytes)?,
            _ => {
                return Err(sojourn_core::param::unknown_param(
                    "lognormal",
                    word,
                    LOGNORMAL_PARAMS,
                ));
            }
        }
    }
    let (Some(mean), Some(sigma)) = (mean, sigma) else {
        return Err(SpecError::new("lognormal needs a mean and a sigma")
            .allow(["lognormal mean 60kB sigma 1.5"]));
    };
    if most < mean {
        return Err(SpecError::new(format!(
            "lognormal: max {} is below the mean {}",
            Bytes::new(most),
            Bytes::new(mean)
        )));
    }
    Ok(Sizes::Lognormal { mean, sigma, most })
}

fn pareto(words: &mut Words<'_>) -> Result<Sizes, SpecError> {
    let (mut shape, mut least, mut most) = (None, None, None);
    while let Some(word) = words.next() {
        match word {
            "shape" => shape = Some(words.number("shape", 0.001, 10.0)?),
            "min" => least = Some(words.parse("min", bytes)?),
            "max" => most = Some(words.parse("max", bytes)?),
            _ => return Err(sojourn_core::param::unknown_param("pareto", word, PARETO_PARAMS)),
        }
    }
    let (Some(shape), Some(least), Some(most)) = (shape, least, most) else {
        return Err(SpecError::new("pareto needs a shape, a min and a max")
            .allow(["pareto shape 1.2 min 4kB max 10MB"]));
    };
    if most <= least {
        return Err(SpecError::new(format!(
            "pareto: max {} is not above min {}",
            Bytes::new(most),
            Bytes::new(least)
        ))
        .allow(["a max above the min"]));
    }
    Ok(Sizes::Pareto { shape, least, most })
}

/// Points if the first word is a size, otherwise a path.
fn cdf(rest: &str) -> Result<SizesSpec, SpecError> {
    let rest = rest.trim();
    let needs = || {
        SpecError::new("'cdf' needs points, or the path of a file")
            .allow(["cdf 1kB 20% 50kB 90% 1MB 100%", "cdf FILE"])
    };
    if let Some(quoted) = rest.strip_prefix('"') {
        return match quoted.split_once('"') {
            Some((path, "")) if !path.is_empty() => Ok(SizesSpec::File(path.to_owned())),
            Some((_, after)) if !after.is_empty() => {
                Err(SpecError::new(format!("nothing follows a path, but '{}' does", after.trim())))
            }
            Some(_) => Err(needs()),
            None => Err(SpecError::new("the quotation mark before the path is not closed")),
        };
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    match parts[..] {
        [] => Err(needs()),
        [path] => Ok(SizesSpec::File(path.to_owned())),
        _ => {
            let pairs = parts.chunks(2).map(|pair| match pair {
                [size, share] => Ok((bytes(size)?, number(share)?)),
                [size] => Err(SpecError::new(format!("'{size}' has no share beside it"))),
                _ => unreachable!("chunks of two"),
            });
            let pairs: Vec<(u64, f64)> = pairs.collect::<Result<_, _>>()?;
            Sizes::from_points(&pairs).map(SizesSpec::Known)
        }
    }
}

/// A share, or a number of per cent without its sign; only the last number of a list shows which.
fn number(text: &str) -> Result<f64, SpecError> {
    let (text, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 0.01),
        None => (text, 1.0),
    };
    match text.parse::<f64>() {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number * scale),
        _ => Err(SpecError::new(format!("'{text}' is no share"))
            .allow(["a share from 0 to 1, or per cent from 0 to 100"])),
    }
}

impl Sizes {
    /// Reads lines of a size and the share of transfers up to it, separated by blanks or a comma;
    /// skips what follows a `#`.
    ///
    /// # Errors
    /// A line that has no such pair, or points that are no distribution; names the line.
    pub fn read(text: &str) -> Result<Self, SpecError> {
        let mut pairs = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            let fields: Vec<&str> = content
                .split(|c: char| c.is_whitespace() || c == ',')
                .filter(|field| !field.is_empty())
                .collect();
            let within = |error: SpecError| error.within(&format!("line {}", index + 1));
            match fields[..] {
                [] => {}
                [size, share] => {
                    pairs.push((bytes(size).map_err(within)?, number(share).map_err(within)?))
                }
                _ => {
                    let problem = format!("{} fields", fields.len());
                    return Err(within(SpecError::new(problem).allow(["a size and a share"])));
                }
            }
        }
        Self::from_points(&pairs)
    }

    fn from_points(pairs: &[(u64, f64)]) -> Result<Self, SpecError> {
        let Some((_, last)) = pairs.last() else {
            return Err(SpecError::new("there is no point").allow(["a size and a share, and more"]));
        };
        // A list that ends at 100 counts per cent.
        let whole = if *last == 100.0 { 100.0 } else { 1.0 };
        if *last != whole {
            return Err(SpecError::new(format!("the last share is {last}, not all"))
                .allow(["a last share of 100%, 1 or 100"]));
        }
        for pair in pairs.windows(2) {
            if pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1 {
                let of = |(bytes, share): (u64, f64)| format!("{} {share}", Bytes::new(bytes));
                return Err(SpecError::new(format!(
                    "'{}' does not follow '{}'",
                    of(pair[1]),
                    of(pair[0])
                ))
                .allow(["sizes that grow, with shares that do not fall"]));
            }
        }
        let points =
            pairs.iter().map(|(bytes, share)| Point { bytes: *bytes, share: *share / whole });
        Ok(Self::Empirical(points.collect()))
    }

    /// A size, at least one byte. Every draw takes the same number of values from the stream,
    /// except that a log-normal one takes as many as its normal number needs.
    pub fn draw(&self, random: &mut Stream) -> u64 {
        let (size, most) = match self {
            Self::Fixed(bytes) => return *bytes,
            Self::Lognormal { mean, sigma, most } => {
                (libm::exp(random.normal(mu(*mean, *sigma), *sigma)), *most)
            }
            Self::Pareto { shape, least, most } => {
                let (low, high) = (*least as f64, *most as f64);
                let beyond = libm::pow(low / high, *shape);
                let size = low / libm::pow(1.0 - random.unit() * (1.0 - beyond), 1.0 / shape);
                (size, *most)
            }
            Self::Empirical(points) => (at_share(points, random.unit()), LARGEST),
        };
        (size as u64).clamp(1, most)
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Lognormal { mean, sigma, most } => {
                // E[min(X, m)]: the part below m, and m for the rest.
                let below = |at: f64| 0.5 * libm::erfc(-at / core::f64::consts::SQRT_2);
                let at = (libm::log(*most as f64) - mu(*mean, *sigma)) / sigma;
                *mean as f64 * below(at - sigma) + *most as f64 * (1.0 - below(at))
            }
            Self::Pareto { shape, least, most } => {
                let (low, high, a) = (*least as f64, *most as f64, *shape);
                let whole = 1.0 - libm::pow(low / high, a);
                if (a - 1.0).abs() < 1e-9 {
                    return low / whole * libm::log(high / low);
                }
                a / (a - 1.0) * (low - high * libm::pow(low / high, a)) / whole
            }
            Self::Empirical(points) => {
                let first = points[0].bytes as f64 * points[0].share;
                let between = points.windows(2).map(|pair| {
                    let mean = 0.5 * (pair[0].bytes as f64 + pair[1].bytes as f64);
                    (pair[1].share - pair[0].share) * mean
                });
                first + between.sum::<f64>()
            }
        }
    }
}

/// The mean of the logarithm.
fn mu(mean: u64, sigma: f64) -> f64 {
    libm::log(mean as f64) - 0.5 * sigma * sigma
}

/// The size that this share of the transfers does not exceed.
fn at_share(points: &[Point], share: f64) -> f64 {
    let after = points.partition_point(|point| point.share < share);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some(low), Some(high)) => {
            let part = (share - low.share) / (high.share - low.share);
            low.bytes as f64 + part * (high.bytes as f64 - low.bytes as f64)
        }
        (None, Some(point)) | (Some(point), None) => point.bytes as f64,
        (None, None) => 1.0,
    }
}

/// Reads back with [`SizesSpec::parse`].
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: &u64| Bytes::new(*bytes);
        match self {
            Self::Fixed(bytes) => write!(f, "{}", size(bytes)),
            Self::Lognormal { mean, sigma, most } => {
                write!(f, "lognormal mean {} sigma {sigma}", size(mean))?;
                if *most == LARGEST { Ok(()) } else { write!(f, " max {}", size(most)) }
            }
            Self::Pareto { shape, least, most } => {
                write!(f, "pareto shape {shape} min {} max {}", size(least), size(most))
            }
            Self::Empirical(points) => {
                f.write_str("cdf")?;
                points
                    .iter()
                    .try_for_each(|point| write!(f, " {} {}", size(&point.bytes), point.share))
            }
        }
    }
}
