use super::Param;

/// How parameters are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `name=value`, as the parameters of a congestion control are written.
    Equals,
    /// `name value`, as `tc` writes.
    Blank,
    /// Values alone, one after the other, as `netem` writes a loss.
    InOrder,
    /// `name=value` for parameters that differ from their default: this form names a run.
    Canonical,
}

impl Style {
    pub const fn sign(self) -> char {
        match self {
            Self::Equals | Self::Canonical => '=',
            Self::Blank | Self::InOrder => ' ',
        }
    }

    /// Whether this style prints the parameter.
    pub fn shows(self, param: &Param, is_default: bool) -> bool {
        !is_default || (self != Self::Canonical && !param.is_quiet)
    }
}
