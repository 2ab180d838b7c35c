//! Compares instructions per delivered segment with their ceilings. Callgrind counts over two
//! lengths of simulated time, so that start-up drops out of the difference.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::Yardstick;

/// The content of `instructions.toml`, by the name of the yardstick.
pub type Ceilings = BTreeMap<String, Ceiling>;

/// The goal and the ceiling of one yardstick.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The shorter and the longer simulated time.
    seconds: [f64; 2],
    ceiling: u64,
    goal: u64,
}

/// Reads `instructions.toml`.
///
/// # Errors
/// The text is no TOML, has other keys, or does not have the same yardsticks as the code.
pub fn read_ceilings(text: &str) -> Result<Ceilings, String> {
    let ceilings: Ceilings = toml::from_str(text).map_err(|error| error.to_string())?;
    if let Some(name) = ceilings.keys().find(|name| Yardstick::find(name).is_none()) {
        return Err(format!("there is no yardstick '{name}'"));
    }
    let has_none = |yardstick: &&Yardstick| !ceilings.contains_key(yardstick.name);
    if let Some(yardstick) = crate::YARDSTICKS.iter().find(has_none) {
        return Err(format!("there is no ceiling for '{}'", yardstick.name));
    }
    Ok(ceilings)
}

/// What was counted for a yardstick, and its goal and ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// Per delivered segment, rounded.
    pub instructions: u64,
    pub ceiling: u64,
    pub goal: u64,
}

impl Guarded {
    /// Lets callgrind count the instructions of `program` over both times.
    ///
    /// # Errors
    /// Valgrind does not start or its output is not as expected.
    pub fn count(program: &Path, name: &str, held: &Ceiling) -> io::Result<Self> {
        let [shorter, longer] = held.seconds.map(|seconds| counted(program, name, seconds));
        let (shorter, longer) = (shorter?, longer?);
        Ok(Self {
            instructions: per_segment(shorter, longer),
            ceiling: held.ceiling,
            goal: held.goal,
        })
    }

    pub fn is_too_many(&self) -> bool {
        self.instructions > self.ceiling
    }

    /// A message, if the count needs one.
    pub fn verdict(&self) -> String {
        let mut said = Vec::new();
        if self.is_too_many() {
            said.push("too many".to_owned());
        } else if self.instructions * 103 < self.ceiling * 100 {
            said.push(format!("the ceiling can come down to {}", self.instructions * 203 / 200));
        }
        if self.instructions > self.goal {
            said.push("the goal is not reached".to_owned());
        }
        said.join("; ")
    }
}

/// Instructions and segments of the two lengths.
fn per_segment(shorter: (u64, u64), longer: (u64, u64)) -> u64 {
    let segments = longer.1.saturating_sub(shorter.1).max(1);
    (longer.0.saturating_sub(shorter.0) as f64 / segments as f64).round() as u64
}

/// Instructions that callgrind counts, and segments that were delivered.
fn counted(program: &Path, name: &str, seconds: f64) -> io::Result<(u64, u64)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--count", "--seconds", &seconds.to_string(), name])
        .output()?;
    let wrong = |what: &str| io::Error::other(format!("{name}: valgrind prints no {what}"));
    let (out, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last_word = |line: &str| line.split_whitespace().last().and_then(|w| w.parse().ok());
    let instructions = log.lines().find(|line| line.contains("Collected")).and_then(last_word);
    let segments = out.lines().next().and_then(last_word);
    Ok((instructions.ok_or_else(|| wrong("count"))?, segments.ok_or_else(|| wrong("segments"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_ceilings_are_those_of_the_yardsticks() {
        let ceilings = read_ceilings(include_str!("../instructions.toml")).unwrap();
        for (name, held) in &ceilings {
            assert!(held.seconds[0] < held.seconds[1], "{name}");
            // The ceilings above their goals, by name, so that the test notices another one.
            let is_above = ["1-10M-fifo", "2-10M-cake", "7c-call-busy"].contains(&name.as_str())
                || ["5c-", "5d-", "5e-"].iter().any(|family| name.starts_with(family))
                || name.contains("-10000-");
            assert_eq!(held.ceiling > held.goal, is_above, "{name}");
        }
        assert!(read_ceilings("[none]\nseconds = [1, 2]\nceiling = 1\ngoal = 1\n").is_err());
        assert!(read_ceilings("").unwrap_err().contains("1-10M-fifo"));
    }

    #[test]
    fn what_a_run_costs_once_drops_out() {
        assert_eq!(per_segment((5_000, 10), (25_000, 20)), 2_000);
    }

    #[test]
    fn a_figure_is_too_many_from_one_above_its_ceiling_on() {
        let of = |instructions| Guarded { instructions, ceiling: 1_000, goal: 1_200 };
        assert_eq!((of(1_000).is_too_many(), of(1_000).verdict()), (false, String::new()));
        assert_eq!((of(1_001).is_too_many(), of(1_001).verdict()), (true, "too many".to_owned()));
        assert_eq!(of(900).verdict(), "the ceiling can come down to 913");
        assert_eq!(of(1_300).verdict(), "too many; the goal is not reached");
    }
}
