//! A file of rates over time: `trace mobility.csv playback witest-2020`.

use alloc::string::String;
use core::fmt;

use sojourn_core::param::{Bounds, Form, Maybe, Style, time, words};
use sojourn_core::{Param, ParamKind, Params, Span, SpecError, Words};

use super::path::{self, Quoted};
use super::serving::{END, FRAMING_AS_THERE, OnLink, SHAPER, Serving, Shaper};
use crate::trace::{Format, WITEST_STEP_OVERHEAD};
use crate::{OnEnd, Playback, Trace};

sojourn_core::params! {
    /// What may follow the path.
    pub(super) struct Written: "trace",
        "A file of rates over time, in any format of 'sojourn trace': trace FILE; of opportunities it is played as by mahimahi FILE"
    {
        format: Option<Format> as Maybe<FormatOfRates> = "",
            "'steps' (lines of a rate in Mbit/s and how many seconds it lasts), 'samples' (of a time in seconds and the rate from then on), 'csv' or 'gym'; seen from the first lines if left out: two numbers with a comma between them are steps, and lines with blanks whose first numbers rise from 0 are samples";
        column: Option<String> as Maybe<String> = "",
            "What to take as the rate: a column of csv, 'uplink' or 'downlink' of gym";
        playback: Script = "nominal", "'nominal', or 'witest-2020' as that testbed's script played it";
        step_overhead: Option<Span> as Maybe<Span> = "16ms", time(Span::ZERO, Span::from_secs(10)),
            "With witest-2020: added to every step";
        end: Option<OnEnd> as Maybe<OnEnd> =
            END.saying("As for blockage; 'hold' is the default of witest-2020");
        shaper: Option<Shaper> as Maybe<Shaper> =
            SHAPER.saying("As for blockage; 'htb' is the default of witest-2020");
        framing: OnLink = FRAMING_AS_THERE;
    }
}

/// How a trace is played, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Nominal,
    Witest2020,
}

sojourn_core::choice!(Script { "nominal" = Script::Nominal, "witest-2020" = Script::Witest2020 });

/// A format of a file of rates.
#[derive(Clone, Copy, Debug)]
struct FormatOfRates;

impl Form for FormatOfRates {
    type Value = Format;
    const KIND: ParamKind = ParamKind::Choice;
    const BOUNDS: Bounds = words(&["steps", "samples", "csv", "gym"]);

    fn read(text: &str, param: &Param) -> Result<Format, SpecError> {
        match Format::parse(text).map_err(|error| error.within(param.name))? {
            Format::Mahimahi => {
                Err(SpecError::new("opportunities are no rates").allow(["'mahimahi FILE' instead"]))
            }
            format => Ok(format),
        }
    }

    fn show(value: &Format, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

/// A file of rates, and how to play it.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpec {
    pub path: String,
    pub reading: Reading,
    pub playback: Playback,
    pub serving: Serving,
}

/// How to read the file of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// With `None` the format is detected.
    pub format: Option<Format>,
    /// The name of the rate, in a format where rates have names.
    pub column: Option<String>,
}

impl Reading {
    /// # Errors
    /// What [`Trace::parse_as`] refuses.
    pub fn read(&self, text: &str) -> Result<Trace, SpecError> {
        let format = self.format.unwrap_or_else(|| Format::detect(text));
        Trace::parse_as(format, self.column.as_deref(), text)
    }
}

impl TraceSpec {
    /// Reads what follows the word `trace`.
    pub(super) fn parse(rest: &str) -> Result<Self, SpecError> {
        let (path, rest) = path::split(Written::NAME, rest)?;
        let Written { format, column, playback, step_overhead, end, shaper, framing } =
            Written::parse(&mut Words::new(rest))?;
        let (playback, usual) = match (playback, step_overhead) {
            (Script::Witest2020, span) => {
                let step_overhead = span.unwrap_or(WITEST_STEP_OVERHEAD);
                (Playback::Witest2020 { step_overhead }, (OnEnd::Hold, Shaper::Htb))
            }
            (Script::Nominal, None) => (Playback::Nominal, (OnEnd::Wrap, Shaper::None)),
            (Script::Nominal, Some(_)) => {
                return Err(SpecError::new(
                    "trace: 'step_overhead' belongs to playback witest-2020",
                ));
            }
        };
        let serving = Serving {
            on_end: end.unwrap_or(usual.0),
            shaper: shaper.unwrap_or(usual.1),
            framing: framing.framing()?,
        };
        Ok(Self { path, reading: Reading { format, column }, playback, serving })
    }

    /// The trace in the file's text, as it is played.
    pub(super) fn trace(&self, text: &str) -> Result<Trace, SpecError> {
        self.playback.apply(&self.reading.read(text)?)
    }

    /// Whether the file may hold opportunities: no parameter is given that only a file of rates can have.
    pub(super) fn may_be_opportunities(&self) -> bool {
        self.reading == Reading::default()
            && self.serving == Serving::default()
            && self.playback == Playback::Nominal
    }
}

impl fmt::Display for TraceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, reading: Reading { format, column }, playback, serving } = self;
        let (playback, step_overhead) = match playback {
            Playback::Nominal => (Script::Nominal, None),
            Playback::Witest2020 { step_overhead } => (Script::Witest2020, Some(*step_overhead)),
        };
        let written = Written {
            format: *format,
            column: column.clone(),
            playback,
            step_overhead,
            end: Some(serving.on_end),
            shaper: Some(serving.shaper),
            framing: serving.framing.into(),
        };
        write!(f, "{} {}", Written::NAME, Quoted(path))?;
        written.write(Style::Blank, f)
    }
}
