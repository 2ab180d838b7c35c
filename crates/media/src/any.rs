//! Tables of parameters of any type behind one trait.

use alloc::string::String;
use core::any::Any;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{Params, SpecError};

/// What every table of parameters can do.
pub(crate) trait AnyParams: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn check(&self) -> Result<(), SpecError>;
    fn written(&self, style: Style) -> String;
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<P: Params + Send + Sync + 'static> AnyParams for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn check(&self) -> Result<(), SpecError> {
        Params::check(self)
    }

    fn written(&self, style: Style) -> String {
        Params::written(self, style)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<P>() == Some(self)
    }
}
