//! What the folder of a discipline tells the registry.

use core::fmt;

use sojourn_core::Rate;

/// What the registry asks of a discipline's checked and complete parameters. `TryFrom` makes them from
/// what the user wrote.
pub(crate) trait BuiltIn {
    /// The name that stands before them.
    fn name(&self) -> &'static str;

    /// As `tc` prints them, each after a blank.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The rate that it holds packets back to, if it shapes.
    fn shaped_rate(&self) -> Option<Rate> {
        None
    }
}

/// Of a `Config` that is what is written.
macro_rules! written_as_it_is {
    ($config:ty $(, shapes to $rate:ident)?) => {
        impl crate::built_in::BuiltIn for $config {
            fn name(&self) -> &'static str {
                <Self as sojourn_core::Params>::NAME
            }

            fn write(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                sojourn_core::Params::write(self, sojourn_core::param::Style::Blank, f)
            }

            $(fn shaped_rate(&self) -> Option<sojourn_core::Rate> {
                Some(self.$rate)
            })?
        }
    };
}

pub(crate) use written_as_it_is;
