//! The JSON of `OpenNetLab/gym`: under `uplink` or `downlink` a `trace_pattern`, a list of objects
//! with a `capacity` in kbit/s and a `duration` in milliseconds. Their `loss`, `rtt` and `jitter`
//! are skipped.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use sojourn_core::{Rate, Span, SpecError};

use super::text::{Decimal, excerpt, number, place};
use super::{MAX_RATE, MAX_STEP, MAX_STEPS, Step, Trace, too_many};

const SIDES: [&str; 2] = ["uplink", "downlink"];

/// Reads the side that `column` names; otherwise the uplink, or the downlink if the uplink has no
/// pattern.
pub(super) fn parse(text: &str, column: Option<&str>) -> Result<Trace, SpecError> {
    let root = Json::parse(text)?;
    let pattern = |side: &str| root.member(side)?.member("trace_pattern");
    let found = match column {
        Some(side) if !SIDES.contains(&side) => {
            return Err(SpecError::new(format!("there is no column '{}'", excerpt(side)))
                .near(side, SIDES)
                .allow(SIDES));
        }
        Some(side) => pattern(side),
        None => SIDES.into_iter().find_map(pattern),
    };
    let Some(Json { value: Value::List(items), .. }) = found else {
        return Err(SpecError::new("there is no list of steps").allow([
            "{\"uplink\": {\"trace_pattern\": [{\"duration\": 300, \"capacity\": 1000}]}}",
        ]));
    };
    let mut steps = Vec::new();
    for item in items {
        if steps.len() == MAX_STEPS {
            return Err(too_many("steps"));
        }
        steps.push(step(item).map_err(|error| error.within(&place(item.line)))?);
    }
    Trace::new(steps)
}

/// Writes what [`parse`] reads back.
pub(super) fn written(trace: &Trace) -> String {
    let mut text =
        "{\n  \"type\": \"video\",\n  \"downlink\": {},\n  \"uplink\": {\n    \"trace_pattern\": ["
            .to_owned();
    for (index, Step { rate, duration }) in trace.steps().enumerate() {
        let (duration, capacity) = (Decimal(duration.as_nanos(), 6), Decimal(rate.as_bps(), 3));
        let _ = write!(
            text,
            "{}\n      {{\"duration\": {duration}, \"capacity\": {capacity}, \"loss\": 0, \"rtt\": 0, \"jitter\": 0}}",
            if index == 0 { "" } else { "," },
        );
    }
    text.push_str("\n    ]\n  }\n}\n");
    text
}

fn step(item: &Json<'_>) -> Result<Step, SpecError> {
    let field =
        |name: &str, scale: f64, least: u64, most: u64, unit: &str| match item
            .member(name)
            .map(|member| &member.value)
        {
            Some(Value::Number(text)) => number(name, text, scale, least, most, unit),
            Some(_) => Err(SpecError::new(format!("{name} is not a number"))),
            None => Err(SpecError::new(format!("a step has no '{name}'"))
                .allow(["a duration and a capacity"])),
        };
    let rate = field("capacity", 1e3, 0, MAX_RATE.as_bps(), "kbit/s")?;
    let duration = field("duration", 1e6, 1, MAX_STEP.as_nanos(), "milliseconds")?;
    Ok(Step { rate: Rate::from_bps(rate), duration: Span::from_nanos(duration) })
}

/// A value and the line on which it begins.
#[derive(Debug)]
struct Json<'a> {
    line: usize,
    value: Value<'a>,
}

#[derive(Debug)]
enum Value<'a> {
    Object(Vec<(&'a str, Json<'a>)>),
    List(Vec<Json<'a>>),
    Number(&'a str),
    /// A text, `true`, `false` or `null`, whose value is not needed.
    Other,
}

/// No trace is nested deeper; the reader calls itself for each level.
const MAX_DEPTH: usize = 16;

impl<'a> Json<'a> {
    fn parse(text: &'a str) -> Result<Self, SpecError> {
        let mut reader = Reader { rest: text, line: 1 };
        let root = reader.value(0)?;
        match reader.peek() {
            None => Ok(root),
            Some(_) => Err(reader.wrong("the end of the text")),
        }
    }

    fn member(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Object(members) => {
                members.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json<'a>, SpecError> {
        if depth == MAX_DEPTH {
            return Err(SpecError::new("too deep").within(&place(self.line)));
        }
        let start = self.peek();
        let line = self.line;
        let value = match start {
            Some('{') => Value::Object(self.object(depth)?),
            Some('[') => Value::List(self.list(depth)?),
            Some('"') => {
                self.string()?;
                Value::Other
            }
            Some('-' | '0'..='9') => Value::Number(self.word()),
            Some('t' | 'f' | 'n') => match self.word() {
                "true" | "false" | "null" => Value::Other,
                _ => return Err(self.wrong("a value")),
            },
            _ => return Err(self.wrong("a value")),
        };
        Ok(Json { line, value })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(&'a str, Json<'a>)>, SpecError> {
        let mut members = Vec::new();
        self.take('{')?;
        if self.took('}') {
            return Ok(members);
        }
        loop {
            let name = self.string()?;
            self.take(':')?;
            members.push((name, self.value(depth + 1)?));
            if self.took('}') {
                return Ok(members);
            }
            self.take(',')?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Json<'a>>, SpecError> {
        let mut items = Vec::new();
        self.take('[')?;
        if self.took(']') {
            return Ok(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.took(']') {
                return Ok(items);
            }
            self.take(',')?;
        }
    }

    /// The text between quotation marks, with escapes left in; no name here has any.
    fn string(&mut self) -> Result<&'a str, SpecError> {
        self.take('"')?;
        let mut is_escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends || c == '\n'
        });
        let (string, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match self.rest.strip_prefix('"') {
            Some(rest) => self.rest = rest,
            None => return Err(self.wrong("a quotation mark")),
        }
        Ok(string)
    }

    /// The text up to the next punctuation mark or blank.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| c.is_whitespace() || ",:[]{}\"".contains(c));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn take(&mut self, mark: char) -> Result<(), SpecError> {
        match self.took(mark) {
            true => Ok(()),
            false => Err(self.wrong(&format!("'{mark}'"))),
        }
    }

    fn took(&mut self, mark: char) -> bool {
        let is_next = self.peek() == Some(mark);
        if is_next {
            self.rest = &self.rest[mark.len_utf8()..];
        }
        is_next
    }

    /// The next character that is not blank.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest.trim_start();
        let passed = &self.rest[..self.rest.len() - rest.len()];
        self.line += passed.matches('\n').count();
        self.rest = rest;
        rest.chars().next()
    }

    fn wrong(&mut self, wanted: &str) -> SpecError {
        let found = match self.peek() {
            None => "the text ends".to_owned(),
            Some(_) => {
                format!("'{}' is no JSON", excerpt(self.rest.lines().next().unwrap_or_default()))
            }
        };
        SpecError::new(found).allow([format!("{wanted} here")]).within(&place(self.line))
    }
}
