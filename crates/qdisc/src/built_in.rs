//! What the folder of a discipline tells the registry.

use sojourn_core::{Param, Params, Rate, SpecError, Words};

/// A discipline's name with the parameters that follow it, as they are written. They become the
/// discipline's `Config` by `TryFrom`.
pub(crate) trait Written: Sized {
    const NAME: &'static str;
    const DOC: &'static str;
    const PARAMS: &'static [Param];

    /// Reads the parameters up to the end of `words`.
    ///
    /// # Errors
    /// An unknown parameter, or a value missing or out of bounds.
    fn read(words: &mut Words<'_>) -> Result<Self, SpecError>;
}

impl<P: Params> Written for P {
    const NAME: &'static str = <P as Params>::NAME;
    const DOC: &'static str = <P as Params>::DOC;
    const PARAMS: &'static [Param] = <P as Params>::PARAMS;

    fn read(words: &mut Words<'_>) -> Result<Self, SpecError> {
        Params::parse(words)
    }
}

/// What is asked of a discipline's complete parameters.
pub(crate) trait BuiltIn {
    /// The name that stands before them.
    fn name(&self) -> &'static str;

    /// The rate that it holds packets back to, if it shapes.
    fn shaped_rate(&self) -> Option<Rate> {
        None
    }
}
