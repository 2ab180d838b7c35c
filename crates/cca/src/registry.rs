//! The built-in controllers by the names that users write, a line each, and those from other
//! crates.

#[cfg(test)]
mod tests;

/// Makes the enumerations of configurations and controllers, and the choice between them, from one
/// line for each module.
macro_rules! built_in {
    (($d:tt) $($variant:ident($($module:ident)::+),)+) => {
        /// Every built-in kind, in the order of the documentation.
        pub fn algorithms() -> &'static [Kind<Config>] {
            const ALL: &[Kind<Config>] = &[$(Kind::of::<$($module)::+::Config>(|words| {
                Params::parse(words).map(Config::$variant)
            }),)+];
            ALL
        }

        /// A controller's checked and complete parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Config {
            $($variant($($module)::+::Config),)+
            External(External),
        }

        impl Config {
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$($module)::+::Config as Params>::NAME,)+
                    Self::External(config) => config.0.name(),
                }
            }

            /// Refuses values out of bounds, which code may have set.
            ///
            /// # Errors
            /// Names the parameter, its value and what is allowed.
            pub fn check(&self) -> Result<(), SpecError> {
                match self {
                    $(Self::$variant(config) => Params::check(config),)+
                    Self::External(config) => config.0.check(),
                }
            }

            fn write(&self, style: Style, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(config) => Params::write(config, style, f),)+
                    Self::External(config) => config.0.write(style, f),
                }
            }

            /// What the host should ask for in the handshake, and send afterwards.
            pub fn ecn_request(&self) -> EcnRequest {
                match self {
                    $(Self::$variant(config) => Algorithm::ecn_request(config),)+
                    Self::External(config) => config.0.ecn_request(),
                }
            }

            /// Every phase that the controller can be in; none if it does not say.
            pub fn phases(&self) -> Vec<&'static str> {
                match self {
                    $(Self::$variant(config) => Algorithm::phases(config),)+
                    Self::External(config) => config.0.phases(),
                }
            }

            pub fn build(&self, setup: Setup) -> Cca {
                match self {
                    $(Self::$variant(config) => Cca::$variant(Algorithm::build(config, setup)),)+
                    Self::External(config) => Cca::External(config.0.build(setup)),
                }
            }
        }

        /// A controller: a built-in one, called directly, or any other behind a box.
        pub enum Cca {
            $($variant(<$($module)::+::Config as Algorithm>::Controller),)+
            External(Box<dyn Controller>),
        }

        macro_rules! each {
            ($d cca:expr, $d inner:ident => $d call:expr) => {
                match $d cca {
                    $(Cca::$variant($d inner) => $d call,)+
                    Cca::External($d inner) => $d call,
                }
            };
        }
    };
}

use alloc::boxed::Box;
use alloc::string::String;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{Kind, Kinds, Params, SpecError};

use crate::pass_on::pass_on;
use crate::{
    Algorithm, Controller, EcnRequest, Setup, bbr, bbr_n_plus, bbr2, bbr3, bbr3_linux, cubic,
    dctcp, prague, reno,
};

// In the order of the documentation. Each module's `Config` has name, description and parameters.
built_in! {
    ($)
    Reno(reno),
    Cubic(cubic),
    CubicLinux(cubic::linux),
    Bbr(bbr),
    Bbr2(bbr2),
    Bbr3(bbr3),
    Bbr3Linux(bbr3_linux),
    BbrNPlus(bbr_n_plus),
    Dctcp(dctcp),
    Prague(prague),
    PragueLinux(prague::linux),
    PragueUdp(prague::udp),
}

/// The built-in kinds, to which others can be added.
pub fn kinds() -> Kinds<Config> {
    Kinds::new("congestion control", algorithms().iter().copied())
}

/// A kind from outside this crate, for [`Kinds::add`].
pub const fn external<A: Algorithm>() -> Kind<Config> {
    Kind::of::<A>(|words| Ok(Config::External(External(Arc::new(A::parse(words)?)))))
}

impl Config {
    /// Reads the name of a built-in kind and its parameters: `bbr3 probe_rtt_interval=10s`.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        kinds().parse(text)
    }

    /// The text that represents it in a run's identity: the name, and the parameters that differ
    /// from their defaults.
    pub fn canonical(&self) -> String {
        Shown(self, Style::Canonical).to_string()
    }
}

impl fmt::Display for Config {
    /// As [`Config::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, Style::Equals).fmt(f)
    }
}

struct Shown<'a>(&'a Config, Style);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())?;
        self.0.write(self.1, f)
    }
}

/// An algorithm of another crate.
#[derive(Clone, Debug)]
pub struct External(Arc<dyn AnyAlgorithm>);

impl PartialEq for External {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_any())
    }
}

/// An [`Algorithm`] whose type is not known here.
trait AnyAlgorithm: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn check(&self) -> Result<(), SpecError>;
    fn write(&self, style: Style, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn ecn_request(&self) -> EcnRequest;
    fn phases(&self) -> Vec<&'static str>;
    fn build(&self, setup: Setup) -> Box<dyn Controller>;
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<A: Algorithm> AnyAlgorithm for A {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn check(&self) -> Result<(), SpecError> {
        Params::check(self)
    }

    fn write(&self, style: Style, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Params::write(self, style, f)
    }

    fn ecn_request(&self) -> EcnRequest {
        Algorithm::ecn_request(self)
    }

    fn phases(&self) -> Vec<&'static str> {
        Algorithm::phases(self)
    }

    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        Box::new(Algorithm::build(self, setup))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<A>() == Some(self)
    }
}

impl Controller for Cca {
    pass_on!(each);
}
