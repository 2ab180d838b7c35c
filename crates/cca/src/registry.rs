//! The built-in controllers by the names users give them.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use sojourn_core::{Param, SpecError, Words};

use crate::pass_on::pass_on;
use crate::{
    Ack, Controller, EcnRequest, Outputs, Setup, bbr, bbr2, bbr3, bbr3_linux, cubic, dctcp, prague,
    reno,
};

/// A name under which a controller can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: &'static [Param],
}

/// Every name, in the order of the documentation.
pub fn algorithms() -> &'static [Algorithm] {
    &[
        Algorithm {
            name: "reno",
            doc: "NewReno (RFC 5681), counting as Linux does",
            params: reno::PARAMS,
        },
        Algorithm {
            name: "cubic",
            doc: "CUBIC (RFC 9438) with HyStart++ (RFC 9406)",
            params: cubic::PARAMS,
        },
        Algorithm {
            name: "cubic-linux",
            doc: "CUBIC with the kernel's integer arithmetic and its own HyStart",
            params: cubic::LINUX_PARAMS,
        },
        Algorithm { name: "bbr", doc: "BBR version 1, as Linux has it", params: bbr::PARAMS },
        Algorithm {
            name: "bbr2",
            doc: "BBR version 2, as the kernel branch v2alpha has it",
            params: bbr2::PARAMS,
        },
        Algorithm {
            name: "bbr3",
            doc: "BBR version 3, draft-ietf-ccwg-bbr-06",
            params: bbr3::PARAMS,
        },
        Algorithm {
            name: "bbr3-linux",
            doc: "BBR version 3, as the kernel branch has it",
            params: bbr3_linux::PARAMS,
        },
        Algorithm {
            name: "dctcp",
            doc: "Data Center TCP (RFC 8257), with the kernel's integer arithmetic",
            params: dctcp::PARAMS,
        },
        Algorithm {
            name: "prague",
            doc: "Prague, draft-briscoe-iccrg-prague-congestion-control-04",
            params: prague::PARAMS,
        },
        Algorithm {
            name: "prague-linux",
            doc: "Prague, as the kernel module tcp_prague 0.6 has it",
            params: prague::linux::PARAMS,
        },
        Algorithm {
            name: "prague-udp",
            doc: "Prague, as the library udp_prague has it",
            params: prague::udp::PARAMS,
        },
    ]
}

/// A controller's checked and complete parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    Reno(reno::Config),
    Cubic(cubic::Config),
    CubicLinux(cubic::LinuxConfig),
    Bbr(bbr::Config),
    Bbr2(bbr2::Config),
    Bbr3(bbr3::Config),
    Bbr3Linux(bbr3_linux::Config),
    Dctcp(dctcp::Config),
    Prague(prague::Config),
    PragueLinux(prague::linux::Config),
    PragueUdp(prague::udp::Config),
}

impl Config {
    /// Reads a name and its parameters: `bbr3 probe_rtt_interval=10s`.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut words = Words::new(text);
        let names = || algorithms().iter().map(|algorithm| algorithm.name);
        let name = words
            .next()
            .ok_or_else(|| SpecError::new("no congestion control is named").allow(names()))?;
        Ok(match name {
            "reno" => Self::Reno(reno::Config::parse(&mut words)?),
            "cubic" => Self::Cubic(cubic::Config::parse(&mut words)?),
            "cubic-linux" => Self::CubicLinux(cubic::LinuxConfig::parse(&mut words)?),
            "bbr" => Self::Bbr(bbr::Config::parse(&mut words)?),
            "bbr2" => Self::Bbr2(bbr2::Config::parse(&mut words)?),
            "bbr3" => Self::Bbr3(bbr3::Config::parse(&mut words)?),
            "bbr3-linux" => Self::Bbr3Linux(bbr3_linux::Config::parse(&mut words)?),
            "dctcp" => Self::Dctcp(dctcp::Config::parse(&mut words)?),
            "prague" => Self::Prague(prague::Config::parse(&mut words)?),
            "prague-linux" => Self::PragueLinux(prague::linux::Config::parse(&mut words)?),
            "prague-udp" => Self::PragueUdp(prague::udp::Config::parse(&mut words)?),
            _ => {
                return Err(SpecError::new(format!("unknown congestion control '{name}'"))
                    .near(name, names())
                    .allow(names()));
            }
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Reno(_) => "reno",
            Self::Cubic(_) => "cubic",
            Self::CubicLinux(_) => "cubic-linux",
            Self::Bbr(_) => "bbr",
            Self::Bbr2(_) => "bbr2",
            Self::Bbr3(_) => "bbr3",
            Self::Bbr3Linux(_) => "bbr3-linux",
            Self::Dctcp(_) => "dctcp",
            Self::Prague(_) => "prague",
            Self::PragueLinux(_) => "prague-linux",
            Self::PragueUdp(_) => "prague-udp",
        }
    }

    /// What the host should ask for in the handshake, and send afterwards.
    pub fn ecn_request(&self) -> EcnRequest {
        match self {
            Self::Bbr2(config) => config.ecn_request(),
            Self::Bbr3Linux(config) => config.ecn_request(),
            Self::Dctcp(_) => EcnRequest::MarkByMark,
            Self::Prague(_) | Self::PragueLinux(_) | Self::PragueUdp(_) => EcnRequest::L4s,
            Self::Reno(_) | Self::Cubic(_) | Self::CubicLinux(_) | Self::Bbr(_) | Self::Bbr3(_) => {
                EcnRequest::Host
            }
        }
    }

    pub fn build(&self, setup: Setup) -> Cca {
        match self.clone() {
            Self::Reno(config) => Cca::Reno(reno::Reno::new(config, setup)),
            Self::Cubic(config) => Cca::Cubic(cubic::Cubic::new(config, setup)),
            Self::CubicLinux(config) => Cca::CubicLinux(cubic::CubicLinux::new(config, setup)),
            Self::Bbr(config) => Cca::Bbr(bbr::Bbr::new(config, setup)),
            Self::Bbr3(config) => Cca::Bbr3(bbr3::Bbr3::new(config, setup)),
            Self::Bbr2(config) => Cca::Bbr2(config.build(setup)),
            Self::Bbr3Linux(config) => Cca::Bbr3Linux(bbr3_linux::Bbr3Linux::new(config, setup)),
            Self::Dctcp(config) => Cca::Dctcp(config.build(setup)),
            Self::Prague(config) => Cca::Prague(config.build(setup)),
            Self::PragueLinux(config) => Cca::PragueLinux(config.build(setup)),
            Self::PragueUdp(config) => Cca::PragueUdp(config.build(setup)),
        }
    }
}

impl fmt::Display for Config {
    /// As [`Config::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reno(config) => config.fmt(f),
            Self::Cubic(config) => config.fmt(f),
            Self::CubicLinux(config) => config.fmt(f),
            Self::Bbr(config) => config.fmt(f),
            Self::Bbr2(config) => config.fmt(f),
            Self::Bbr3(config) => config.fmt(f),
            Self::Bbr3Linux(config) => config.fmt(f),
            Self::Dctcp(config) => config.fmt(f),
            Self::Prague(config) => config.fmt(f),
            Self::PragueLinux(config) => config.fmt(f),
            Self::PragueUdp(config) => config.fmt(f),
        }
    }
}

/// A controller: a built-in one, called directly, or any other behind a box.
pub enum Cca {
    Reno(reno::Reno),
    Cubic(cubic::Cubic),
    CubicLinux(cubic::CubicLinux),
    Bbr(bbr::Bbr),
    Bbr2(bbr3_linux::Bbr3Linux),
    Bbr3(bbr3::Bbr3),
    Bbr3Linux(bbr3_linux::Bbr3Linux),
    Dctcp(dctcp::OrReno<dctcp::Dctcp>),
    Prague(dctcp::OrReno<prague::Prague>),
    PragueLinux(dctcp::OrReno<prague::linux::PragueLinux>),
    PragueUdp(dctcp::OrReno<prague::udp::PragueUdp>),
    External(Box<dyn Controller>),
}

macro_rules! each {
    ($cca:expr, $inner:ident => $call:expr) => {
        match $cca {
            Cca::Reno($inner) => $call,
            Cca::Cubic($inner) => $call,
            Cca::CubicLinux($inner) => $call,
            Cca::Bbr($inner) => $call,
            Cca::Bbr2($inner) => $call,
            Cca::Bbr3($inner) => $call,
            Cca::Bbr3Linux($inner) => $call,
            Cca::Dctcp($inner) => $call,
            Cca::Prague($inner) => $call,
            Cca::PragueLinux($inner) => $call,
            Cca::PragueUdp($inner) => $call,
            Cca::External($inner) => $call,
        }
    };
}

impl Cca {
    /// [`Controller::on_ack`]; then `says` is what the controller says, which is wanted after every
    /// acknowledgement.
    #[inline]
    pub fn answer(&mut self, ack: &Ack, says: &mut Outputs) {
        each!(self, inner => {
            inner.on_ack(ack);
            *says = inner.outputs();
        });
    }
}

impl Controller for Cca {
    pass_on!(each);
}
