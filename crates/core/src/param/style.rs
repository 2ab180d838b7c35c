use super::Param;

/// How parameters are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `name=value`, as the parameters of a congestion control are written.
    Equals,
    /// `name value`, as `tc` writes.
    Blank,
    /// `name=value` for what is not the default: the form that names a run.
    Canonical,
}

impl Style {
    pub const fn sign(self) -> char {
        match self {
            Self::Equals | Self::Canonical => '=',
            Self::Blank => ' ',
        }
    }

    /// Whether this is printed.
    pub fn shows(self, param: &Param, is_default: bool) -> bool {
        !is_default || (self != Self::Canonical && !param.is_quiet)
    }
}
