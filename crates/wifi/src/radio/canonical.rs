//! One written form of a cell, which decides whether two cells are the same.

use alloc::string::String;
use core::fmt::{self, Write};

use sojourn_core::param::Style;
use sojourn_core::{Params, Span};

use crate::mac::aggregation::Limits;
use crate::mac::edca::{AccessCategory, Parameters};
use crate::medium::{Config, LostBlockAck, Radio, Station};
use crate::queueing::{
    Airtime, DriverConfig, FqConfig, Hardware, Order, QueueConfig, QueueKind, Schedule,
};
use crate::rate::{Control, Place, Presence, Rates, Step};

/// Destructured by name, so that a new field can't be forgotten here.
pub(super) fn write_cell(f: &mut String, cell: &Config) -> fmt::Result {
    let Config {
        slot,
        sifs,
        is_qos,
        access_point,
        station,
        limits,
        retry_limit,
        rts_threshold,
        protection,
        lost_block_ack,
        cf_end,
        collisions_are_detected,
        ofdma,
        rates,
        queue,
        stations: _,
    } = cell;
    write!(f, "slot={slot} sifs={sifs} qos={is_qos} retry_limit=")?;
    match retry_limit {
        Some(limit) => write!(f, "{limit}")?,
        None => f.write_str("never")?,
    }
    if *rts_threshold < u32::MAX {
        write!(f, " rts_threshold={rts_threshold}")?;
    }
    if let Some(mode) = protection {
        write!(f, " protection=[{mode}]")?;
    }
    let lost = match lost_block_ack {
        LostBlockAck::Repeat => "repeat",
        LostBlockAck::Request => "request",
    };
    write!(f, " lost_block_ack={lost} cf_end={cf_end} eifs={collisions_are_detected}")?;
    if let Some(ofdma) = ofdma {
        write!(f, " [{}]", ofdma.written(Style::Canonical))?;
    }
    for rates in rates {
        write_rates(f, rates)?;
    }
    write_edca(f, "ap_edca", access_point)?;
    write_edca(f, "station_edca", station)?;
    let Limits { ampdu_octets, window, mpdus, amsdu_octets, ppdu_time } = limits;
    write!(f, " ampdu={ampdu_octets} window={window} mpdus={mpdus} amsdu={amsdu_octets}")?;
    write!(f, " ppdu_time={ppdu_time} queue=[")?;
    write_queue(f, queue)?;
    f.write_char(']')
}

pub(super) fn write_station(f: &mut String, station: &Station) -> fmt::Result {
    let Station { down, up, queue, weight } = station;
    for (name, radio) in [("down", down), ("up", up)] {
        let Radio { mode, error, fallback } = radio;
        // The preamble tells which training fields a mode has.
        write!(f, "{name}=[{mode} preamble {} error {error}", mode.preamble())?;
        if let Some(mode) = fallback {
            write!(f, " fallback {mode} preamble {}", mode.preamble())?;
        }
        f.write_str("] ")?;
    }
    f.write_str("queue=[")?;
    write_driver(f, queue)?;
    f.write_char(']')?;
    match *weight {
        Station::WEIGHT => Ok(()),
        weight => write!(f, " weight {weight}"),
    }
}

fn write_rates(f: &mut String, rates: &Rates) -> fmt::Result {
    let Rates { station, signal, places, fading, present, control } = rates;
    write!(f, " rates=[{station} {}", signal.written(Style::Canonical))?;
    for Place { at, metres } in places {
        write!(f, " at {at} {metres}")?;
    }
    if let Some(fading) = fading {
        write!(f, " {}", fading.written(Style::Canonical))?;
    }
    for Presence { from, to } in present {
        write!(f, " there {from} ")?;
        match *to {
            Span::MAX => f.write_str("end")?,
            to => write!(f, "{to}")?,
        }
    }
    match control {
        Control::Fixed => f.write_str(" fixed")?,
        Control::Ideal => f.write_str(" ideal")?,
        Control::Minstrel(minstrel) => write!(f, " {}", minstrel.written(Style::Canonical))?,
        Control::Trace(steps) => {
            for Step { from, to, mode } in steps {
                write!(f, " step {from} {to} [{mode} preamble {}]", mode.preamble())?;
            }
        }
    }
    f.write_char(']')
}

fn write_edca(
    f: &mut String,
    name: &str,
    all: &[Parameters; AccessCategory::COUNT],
) -> fmt::Result {
    write!(f, " {name}=[")?;
    for (ac, parameters) in AccessCategory::ALL.into_iter().zip(all) {
        let Parameters { cw_min, cw_max, aifsn, txop_limit } = parameters;
        let gap = if ac == AccessCategory::Bk { "" } else { " " };
        write!(f, "{gap}{} {cw_min} {cw_max} {aifsn} {txop_limit}", ac.name())?;
    }
    f.write_char(']')
}

fn write_queue(f: &mut String, queue: &QueueConfig) -> fmt::Result {
    let QueueConfig { kind, hardware } = queue;
    match kind {
        QueueKind::Driver(driver) => write_driver(f, driver)?,
        QueueKind::Managed(fq) => write_fq(f, fq)?,
    }
    match hardware {
        Hardware::None => Ok(()),
        Hardware::Aggregates(most) => write!(f, " hardware {most}"),
        Hardware::Airtime { low, high, total } => write!(f, " aql {low} {high} {total}"),
    }
}

fn write_driver(f: &mut String, driver: &DriverConfig) -> fmt::Result {
    let DriverConfig { limit, order, upper } = driver;
    let order = match order {
        Order::RoundRobin => "in turn",
        Order::OldestFirst => "oldest first",
        Order::LosesTurns => "losing turns",
    };
    write!(f, "driver limit {limit} {order}")?;
    match upper {
        Some(upper) => write!(f, " below [{upper}]"),
        None => Ok(()),
    }
}

fn write_fq(f: &mut String, fq: &FqConfig) -> fmt::Result {
    let FqConfig { flows, limit, quantum, target, interval, ecn, schedule } = fq;
    write!(f, "mac flows {flows} limit {limit} quantum {quantum}")?;
    write!(f, " target {target} interval {interval} ecn {ecn}")?;
    match schedule {
        Schedule::RoundRobin => f.write_str(" in turn"),
        Schedule::Airtime(airtime) => {
            let Airtime { quantum, sparse_first, passes_through_old, refills_at_zero } = airtime;
            write!(f, " airtime quantum {quantum} sparse_first {sparse_first}")?;
            write!(f, " through_old {passes_through_old} at_zero {refills_at_zero}")
        }
    }
}
