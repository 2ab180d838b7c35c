//! Switches of the model: σ with the authors' two slopes, and its hard form.

/// The slopes of σ. Its argument has no fixed unit: packets, milliseconds or shares.
const SHARP: f64 = 500.0;
const SMOOTH: f64 = 5.0;

/// σ: nearly a step.
pub(crate) fn sharp(value: f64) -> f64 {
    sigmoid(SHARP * value)
}

/// σ: as wide as a packet or a millisecond.
pub(crate) fn smooth(value: f64) -> f64 {
    sigmoid(SMOOTH * value)
}

/// Γ: the value where it is positive.
pub(super) fn positive(value: f64) -> f64 {
    value * sharp(value)
}

/// One from zero on.
pub(super) fn since(value: f64) -> f64 {
    if value >= 0.0 { 1.0 } else { 0.0 }
}

fn sigmoid(value: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-value))
}
