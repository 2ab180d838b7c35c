//! The built-in disciplines by the names that `tc` gives them, a line each, and those from other
//! crates.

#[cfg(test)]
mod tests;

/// Makes the enumerations of configurations and disciplines, and the choice between them, from one
/// line for each module.
macro_rules! built_in {
    (($d:tt) $($variant:ident($module:ident: $($written:ident),+),)+) => {
        /// Every built-in kind, in the order of the documentation.
        pub fn disciplines() -> &'static [Kind<Config>] {
            const ALL: &[Kind<Config>] = &[$($(Kind::of::<$module::$written>(|words| {
                let written = <$module::$written as Params>::parse(words)?;
                let config = $module::Config::try_from(written)?;
                Ok(Config::$variant(config))
            }),)+)+];
            ALL
        }

        /// A discipline's checked and complete parameters. Printed as `tc qdisc show` prints them.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Config {
            $($variant($module::Config),)+
            External(External),
        }

        impl Config {
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(config) => BuiltIn::name(config),)+
                    Self::External(config) => config.name(),
                }
            }

            /// The rate that the discipline holds packets back to, if it shapes.
            pub fn shaped_rate(&self) -> Option<Rate> {
                let rate = match self {
                    $(Self::$variant(config) => BuiltIn::shaped_rate(config),)+
                    Self::External(config) => config.shaped_rate(),
                };
                rate.filter(|rate| !rate.is_unlimited())
            }

            /// An empty queue. `random` perturbs hashes and is what the discipline draws from.
            pub fn build<P: Reshape + Send>(&self, random: Stream) -> AnyQdisc<P> {
                self.build_on(None, random)
            }

            /// The same in front of a line whose packets, with their Ethernet headers, leave at `rate`; `None` if that varies,
            /// has no limit or is not known.
            pub fn build_on<P: Reshape + Send>(
                &self,
                rate: Option<Rate>,
                random: Stream,
            ) -> AnyQdisc<P> {
                match self {
                    $(Self::$variant(config) => {
                        AnyQdisc::$variant($module::$variant::new(config, random))
                    })+
                    Self::External(config) => AnyQdisc::External(config.build(rate, random)),
                }
            }
        }

        impl fmt::Display for Config {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())?;
                match self {
                    $(Self::$variant(config) => BuiltIn::write(config, f),)+
                    Self::External(config) => config.fmt(f),
                }
            }
        }

        /// A discipline: a built-in one, called directly, or any other behind a box.
        ///
        /// Only a FIFO is inlined into the choice; otherwise it would pay for the stack space of
        /// the others.
        pub enum AnyQdisc<P: Queued> {
            $($variant($module::$variant<P>),)+
            External(Foreign<P>),
        }

        macro_rules! each {
            ($d qdisc:expr, $d inner:ident => $d call:expr) => {
                match $d qdisc {
                    $(AnyQdisc::$variant($d inner) => $d call,)+
                    AnyQdisc::External($d inner) => $d call,
                }
            };
        }
    };
}

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Kind, Kinds, Params, Queued, Rate, SpecError, Stream, Time, Words};

use crate::built_in::BuiltIn;
use crate::external::{Discipline, External, Foreign};
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Reshape, Sink};
use crate::{cake, codel, dualpi2, fifo, fq, fq_codel, fq_pie, pie, red, tbf};

// In the order of the documentation. The named type of each module has name, description and
// parameters.
built_in! {
    ($)
    Fifo(fifo: Pfifo, Bfifo),
    Codel(codel: Config),
    FqCodel(fq_codel: Config),
    Cake(cake: Config),
    Pie(pie: Config),
    FqPie(fq_pie: Config),
    DualPi2(dualpi2: Written),
    Red(red: Written),
    Fq(fq: Config),
    Tbf(tbf: Written),
}

/// The built-in kinds, to which others can be added.
pub fn kinds() -> Kinds<Config> {
    Kinds::new("queue discipline", disciplines().iter().copied())
}

/// A kind from outside this crate, for [`Kinds::add`].
pub const fn external<D: Discipline>() -> Kind<Config> {
    Kind::of::<D>(|words| Ok(Config::External(External::new(D::parse(words)?))))
}

impl Config {
    /// Reads the name of a built-in kind and its parameters: `fq_codel limit 1000 target 5ms noecn`.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        Self::parse_of(&kinds(), text)
    }

    /// The same, for the kinds in `kinds`.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse_of(kinds: &Kinds<Self>, text: &str) -> Result<Self, SpecError> {
        if let Some(name) = Words::new(text).next()
            && kinds.named(name).is_none()
        {
            refuse_what_links_do(name)?;
        }
        kinds.parse(text)
    }

    /// Refuses values out of bounds, which code may have set; otherwise the printed text would not
    /// read back.
    ///
    /// # Errors
    /// Names the parameter, its value and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        if let Self::External(config) = self {
            return config.check();
        }
        let read = Self::parse(&self.to_string())?;
        if read == *self {
            return Ok(());
        }
        Err(SpecError::new(format!("a queue '{self}' can't be built"))
            .allow([format!("what can be written, such as '{read}'")]))
    }
}

impl Config {
    /// Refuses a queue that can't stand in front of a line of this rate, which is as for [`Config::build_on`].
    ///
    /// # Errors
    /// As [`Discipline::check_on`].
    pub fn check_on(&self, rate: Option<Rate>) -> Result<(), SpecError> {
        match self {
            Self::External(config) => config.check_on(rate),
            _ => Ok(()),
        }
    }
}

/// For names that `tc` knows and that are no queue here, says where to find them.
fn refuse_what_links_do(name: &str) -> Result<(), SpecError> {
    let instead = match name {
        "netem" => "loss, delay, jitter and rate are the link's",
        "htb" => "shaping by classes is the link's; write its rate as 'htb rate 10mbit'",
        _ => return Ok(()),
    };
    Err(SpecError::new(format!("'{name}' is no queue discipline here: {instead}")))
}

impl<P: Reshape + Send> AnyQdisc<P> {
    /// For a packet that can leave at once: does what [`Qdisc::enqueue`] and then [`Qdisc::dequeue`] would, without
    /// storing it. False, and nothing has happened, if the discipline must be asked in that way.
    #[inline(always)]
    pub fn pass(&mut self, packet: &impl Queued) -> bool {
        match self {
            Self::FqCodel(queue) => queue.pass(packet),
            _ => false,
        }
    }

    /// [`Qdisc::enqueue`] of a `packet` that is as large as `like` and of the same flow, without a copy for the call.
    /// False, and nothing has happened, if the discipline must be asked in that way.
    #[inline(always)]
    pub fn keep(&mut self, now: Time, like: &impl Queued, packet: impl FnOnce() -> P) -> bool {
        match self {
            Self::FqCodel(queue) => queue.keep(now, like, packet),
            _ => false,
        }
    }
}

impl<P: Reshape + Send> Qdisc<P> for AnyQdisc<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        each!(self, inner => inner.enqueue(now, packet, sink))
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        each!(self, inner => inner.dequeue(now, sink))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, inner => inner.backlog())
    }

    fn oldest(&self) -> Option<Time> {
        each!(self, inner => inner.oldest())
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        each!(self, inner => inner.details())
    }

    fn check(&self) -> Result<(), String> {
        each!(self, inner => inner.check())
    }
}
