//! Rates that change: how strong a signal is, what part of the frames it lets through, and which
//! mode a transmitter chooses.

mod control;
mod minstrel;
mod notation;
mod signal;
#[cfg(test)]
mod tests;

pub(crate) use control::PortRate;
pub use minstrel::MinstrelConfig;
pub use notation::ControlSpec;
pub use signal::{Fading, Place, Presence, SignalConfig, error_rate, snr_at};

use alloc::format;
use alloc::vec::Vec;

use sojourn_core::{Params, Span, SpecError};

use crate::phy::Mode;

/// How the modes of a station's link change, in both directions alike. The modes that the station
/// is configured with are the best that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    pub station: u16,
    pub signal: SignalConfig,
    /// Where the station is, piecewise linear. If it is nowhere, its signal loses nothing.
    pub places: Vec<Place>,
    pub fading: Option<Fading>,
    /// When it is there; always if empty.
    pub present: Vec<Presence>,
    pub control: Control,
}

/// Who chooses the mode.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Nobody: the station keeps its mode.
    Fixed,
    /// One who knows the signal takes the mode that carries most.
    Ideal,
    Minstrel(MinstrelConfig),
    /// A list: each mode for a time.
    Trace(Vec<Step>),
}

/// A mode for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub from: Span,
    pub to: Span,
    pub mode: Mode,
}

impl Rates {
    /// A station that stays at a distance.
    pub fn at(station: u16, metres: f64, control: Control) -> Self {
        Self {
            station,
            signal: SignalConfig::default(),
            places: alloc::vec![Place { at: Span::ZERO, metres }],
            fading: None,
            present: Vec::new(),
            control,
        }
    }

    /// # Errors
    /// Places or times out of order, a trace with gaps, modes that a station which has `own` does not have, a rate that
    /// follows a signal that there is not, or a parameter out of bounds.
    pub fn check(&self, own: [Mode; 2]) -> Result<(), SpecError> {
        self.signal.check()?;
        signal::check_places(&self.places)?;
        signal::check_presence(&self.present)?;
        let mut follows = None;
        if let Some(fading) = &self.fading {
            fading.check()?;
            follows = Some("a signal that fades");
        }
        match &self.control {
            Control::Fixed => {}
            Control::Ideal => follows = Some("rate control 'ideal'"),
            Control::Minstrel(minstrel) => {
                minstrel.check()?;
                follows = Some("rate control 'minstrel'");
            }
            Control::Trace(steps) => {
                check_steps(steps)?;
                check_modes(steps, own)?;
            }
        }
        match follows {
            Some(what) if self.places.is_empty() => {
                Err(SpecError::new(format!("{what} without a distance"))
                    .allow(["a distance, such as 10m"]))
            }
            _ => Ok(()),
        }
    }
}

/// A trace changes neither the format nor the width, which both ends have agreed on.
fn check_modes(steps: &[Step], own: [Mode; 2]) -> Result<(), SpecError> {
    for (number, Step { mode, .. }) in (1..).zip(steps) {
        for own in own {
            if (mode.format(), mode.width()) != (own.format(), own.width()) {
                return Err(SpecError::new(format!(
                    "step {number} of the trace is '{mode}', and the station's mode '{own}'"
                ))
                .allow(["modes of the format and width of the station's"]));
            }
        }
    }
    Ok(())
}

fn check_steps(steps: &[Step]) -> Result<(), SpecError> {
    let mut end = Span::ZERO;
    for (number, step) in steps.iter().enumerate() {
        let number = number + 1;
        if step.from > end {
            return Err(SpecError::new(format!(
                "a gap from {end} to {} before step {number} of the trace",
                step.from
            ))
            .allow(["steps that begin at 0s and follow one another"]));
        }
        if step.from < end {
            return Err(SpecError::new(format!(
                "step {number} of the trace begins at {}, before the one before it ends at {end}",
                step.from
            ))
            .allow(["steps that follow one another"]));
        }
        if step.to <= step.from {
            return Err(SpecError::new(format!("step {number} of the trace ends when it begins"))
                .allow(["a later end"]));
        }
        end = step.to;
    }
    if steps.is_empty() {
        return Err(SpecError::new("a trace without steps").allow(["one step or more"]));
    }
    Ok(())
}
