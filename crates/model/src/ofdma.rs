//! Throughput of trigger-based uplink OFDMA: "TCP BBR Performance over Wi-Fi 6", section 3.1,
//! equations 1 to 8.
//!
//! | equation | as printed | here |
//! |---|---|---|
//! | 2 | Θ_T = s_A + r_A: every random-access unit counts as a success | Θ_T = s_A (1 − p_phy) + n_ra β (1 − f) |
//! | 2, 7 | t_s begins with the Trigger frame; how the channel is won is defined and not used | the cycle is t_s + AIFS + mean backoff |
//! | 3 | packets without their padding, T_r and t_d not defined | octets padded to four, T_r the rate of one station on its unit, t_d what is left of the TXOP |
//! | 4 | γ in the backoff | f, since backoff answers every failure |
//! | 7 | P_s = (1 − β_ap)\[1 − Π(1 − β_j)^n_j (1 − p_phy)\]: all success at p_phy = 1 | exactly one sender whose frame arrives |
//! | T_c | t_s − d_mb + DIFS, which keeps a SIFS; a collision on a unit shortens nothing | the longest frame that collided, and DIFS |
//! | 8 | Θ_i = β_i (1 − f_i) Θ counts successes twice, and scheduled stations get nothing | s_p p_agg times a station's own successes over the cycle; the sum is Θ |
//!
//! [`Form::Printed`] evaluates the left column as far as it can be evaluated.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{number, time, whole};
use sojourn_core::{Span, SpecError};

use crate::formula::{Formula, Output, output};
use crate::uora::{RandomAccess, Solution, Uora};

/// Durations in microseconds, rates in Mbit/s, so that their product is bits.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// d_tfr: the Trigger that asks for buffer status and offers random access.
    pub trigger_random: f64,
    /// d_bsr: the buffer status reports.
    pub buffer_status: f64,
    /// d_tf: the Basic Trigger.
    pub trigger: f64,
    /// d_ppdu: the data.
    pub ppdu: f64,
    /// d_mb: the Multi-STA BlockAck.
    pub multi_block_ack: f64,
    pub sifs: f64,
    /// AIFS and mean backoff of the access point, which wins the channel for each cycle.
    pub access: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Corrected,
    Printed,
}

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub cycle: Cycle,
    /// s_A: stations scheduled in a cycle.
    pub scheduled: u32,
    /// Stations among which they are chosen in turn.
    pub schedulable: u32,
    /// Random access; its error is the p_phy of scheduled frames too.
    pub uora: Uora,
    /// s_p: payload of a packet in bits.
    pub payload: f64,
    /// p_agg: packets in a PPDU.
    pub packets: f64,
}

/// Equation 1.
pub fn cycle_time(cycle: &Cycle) -> f64 {
    cycle.trigger_random
        + cycle.buffer_status
        + cycle.trigger
        + cycle.ppdu
        + cycle.multi_block_ack
        + 4.0 * cycle.sifs
}

/// Equation 3: packets that fit, of `octets` each on the air with all framing, at `rate` Mbit/s in
/// `time` µs, of which `preamble` carries no data. Packets are padded to four octets, except in the
/// printed form.
pub fn aggregation_limit(
    form: Form,
    most: u32,
    rate: f64,
    time: f64,
    preamble: f64,
    octets: u32,
) -> u32 {
    let octets = match form {
        Form::Corrected => octets.next_multiple_of(4),
        Form::Printed => octets,
    };
    let fit = libm::floor(rate * (time - preamble) / (8.0 * f64::from(octets)));
    (fit.max(0.0) as u32).min(most)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Θ in Mbit/s.
    pub total: f64,
    /// Θ_i of a scheduled station.
    pub scheduled: f64,
    /// Θ_i of a station that contends.
    pub random: f64,
    pub solution: Solution,
}

impl Cell {
    /// Equations 2 and 8.
    pub fn throughput(&self, form: Form) -> Throughput {
        let solution = self.uora.solve();
        let bits = self.packets * self.payload;
        let each_random = solution.beta * (1.0 - solution.failure);
        match form {
            Form::Corrected => {
                let time = cycle_time(&self.cycle) + self.cycle.access;
                let arrives = 1.0 - self.uora.error;
                let successes =
                    f64::from(self.scheduled) * arrives + solution.successes(self.uora.stations);
                let turns = match self.schedulable {
                    0 => 0.0,
                    stations => f64::from(self.scheduled) / f64::from(stations) * arrives,
                };
                Throughput {
                    total: bits * successes / time,
                    scheduled: bits * turns / time,
                    random: bits * each_random / time,
                    solution,
                }
            }
            Form::Printed => {
                let successes = f64::from(self.scheduled + self.uora.units);
                let total = bits * successes / cycle_time(&self.cycle);
                Throughput { total, scheduled: 0.0, random: each_random * total, solution }
            }
        }
    }
}

/// A class of stations that contend by EDCA.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// n_j.
    pub stations: u32,
    /// β_j.
    pub attempt: f64,
}

/// P_0, P_s and P_f of equation 7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotChances {
    pub idle: f64,
    pub success: f64,
    pub failure: f64,
}

/// The chances of a slot among `classes` and an access point that sends with `access_point`.
pub fn slot_chances(form: Form, classes: &[Class], access_point: f64, error: f64) -> SlotChances {
    let silent = |class: &Class| libm::pow(1.0 - class.attempt, f64::from(class.stations));
    let stations_silent: f64 = classes.iter().map(silent).product();
    let idle = (1.0 - access_point) * stations_silent;
    let success = match form {
        Form::Corrected => {
            let alone: f64 = classes
                .iter()
                .map(|class| {
                    f64::from(class.stations) * class.attempt / (1.0 - class.attempt)
                        * stations_silent
                })
                .sum();
            (1.0 - error) * (alone * (1.0 - access_point) + access_point * stations_silent)
        }
        Form::Printed => (1.0 - access_point) * (1.0 - stations_silent * (1.0 - error)),
    };
    SlotChances { idle, success, failure: 1.0 - idle - success }
}

/// Equation 7: the mean slot, of chances and lengths σ, T_s and T_c.
pub fn mean_slot(chances: SlotChances, idle: f64, success: f64, collision: f64) -> f64 {
    chances.idle * idle + chances.success * success + chances.failure * collision
}

const LONGEST: sojourn_core::param::Bounds = time(Span::ZERO, Span::from_secs(1));

sojourn_core::params! {
    /// A cell by name.
    pub struct Uplink: "ofdma", "Throughput of trigger-based uplink OFDMA (BBR over Wi-Fi 6, equations 1 to 8)" {
        pub form: self::Form = "corrected", "equations: corrected, or as printed";
        pub scheduled: u32 = "4", whole(0, 148), "s_A: stations scheduled in a cycle";
        pub schedulable: u32 = "4", whole(0, 10_000), "stations among which they are chosen in turn";
        pub stations: u32 = "5", whole(1, 10_000), "n_ra: stations that contend";
        pub units: u32 = "1", whole(1, 148), "r_A: units for random access in a Trigger frame";
        pub error: f64 = "0", number(0.0, 1.0), "p_phy: probability that a frame alone on its unit is lost";
        pub payload: u32 = "1500", whole(1, 65_535), "s_p: octets of a packet";
        pub packets: u32 = "7", whole(1, 1024), "p_agg: packets in a PPDU";
        pub trigger_random: Span = "96us", LONGEST, "d_tfr: the Trigger that offers random access";
        pub buffer_status: Span = "76.8us", LONGEST, "d_bsr: the buffer status reports";
        pub trigger: Span = "96us", LONGEST, "d_tf: the Basic Trigger";
        pub ppdu: Span = "5484us", LONGEST, "d_ppdu: the data";
        pub multi_block_ack: Span = "80us", LONGEST, "d_mb: the Multi-STA BlockAck";
        pub sifs: Span = "16us", LONGEST, "the short space between frames";
        pub access: Span = "110.5us", LONGEST, "AIFS and mean backoff of the access point";
    }
}

sojourn_core::choice! { Form { "corrected" = Form::Corrected, "printed" = Form::Printed } }

impl Formula for Uplink {
    const OUTPUTS: &'static [Output] = &[
        output("total", "Mbit/s", "Θ: payload a second of all stations"),
        output("scheduled", "Mbit/s", "of a station that is scheduled; the printed form has none"),
        output("contending", "Mbit/s", "of a station that contends"),
        output("cycle", "ms", "how long a cycle takes"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let micros = |span: Span| span.as_nanos() as f64 / 1000.0;
        if self.scheduled > self.schedulable {
            let problem = alloc::format!(
                "{} of {} stations can't be scheduled",
                self.scheduled,
                self.schedulable
            );
            return Err(SpecError::new(problem).allow(["scheduled up to schedulable"]));
        }
        let access = RandomAccess {
            stations: self.stations,
            units: self.units,
            error: self.error,
            ..RandomAccess::default()
        };
        let cycle = Cycle {
            trigger_random: micros(self.trigger_random),
            buffer_status: micros(self.buffer_status),
            trigger: micros(self.trigger),
            ppdu: micros(self.ppdu),
            multi_block_ack: micros(self.multi_block_ack),
            sifs: micros(self.sifs),
            access: micros(self.access),
        };
        let cell = Cell {
            cycle,
            scheduled: self.scheduled,
            schedulable: self.schedulable,
            uora: access.uora()?,
            payload: 8.0 * f64::from(self.payload),
            packets: f64::from(self.packets),
        };
        let throughput = cell.throughput(self.form);
        let access = if self.form == Form::Corrected { cycle.access } else { 0.0 };
        let time = (cycle_time(&cycle) + access) / 1000.0;
        Ok(vec![throughput.total, throughput.scheduled, throughput.random, time])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bianchi;

    /// Four scheduled stations, MCS 7 with a guard interval of 1.6 µs, Trigger frames at 6 Mbit/s.
    fn cycle(bsr: f64, ppdu: f64) -> Cycle {
        Cycle {
            trigger_random: 96.0,
            buffer_status: bsr,
            trigger: 96.0,
            ppdu,
            multi_block_ack: 80.0,
            sifs: 16.0,
            access: 0.0,
        }
    }

    fn cell(cycle: Cycle, packets: f64, random_stations: u32, units: u32) -> Cell {
        let uora = Uora {
            stations: random_stations,
            units,
            ocw_min: 7,
            doublings: 2,
            retries_at_most: 0,
            error: 0.0,
        };
        Cell { cycle, scheduled: 4, schedulable: 4, uora, payload: 12_000.0, packets }
    }

    #[test]
    fn the_cycle_of_four_stations_on_80_mhz() {
        // 242 tones: 234 · 6 · 5/6 bits in 14.4 µs. The data part is what remains of a cap of 5484
        // µs after the Triggers, reports and the acknowledgement.
        let rate = 1170.0 / 14.4;
        let octets = 4 + 26 + 4 + 8 + 4 + 1500;
        let packets = aggregation_limit(Form::Corrected, 256, rate, 5484.0, 48.0, octets);
        assert_eq!(packets, 35);
        let time = cycle_time(&cycle(62.4, 5376.0));
        assert!((time - 5774.4).abs() < 1e-9, "{time}");
        let scheduled = cell(cycle(62.4, 5376.0), f64::from(packets), 1, 1);
        let throughput = 4.0 * scheduled.throughput(Form::Corrected).scheduled;
        assert!((throughput - 291.0).abs() < 0.5, "{throughput}");
        assert_eq!(aggregation_limit(Form::Corrected, 256, rate, 2528.0, 48.0, octets), 16);
    }

    #[test]
    fn stations_sum_to_the_total_and_the_printed_form_does_not() {
        let cell = cell(cycle(76.8, 2000.0), 7.0, 5, 2);
        let sum = |throughput: Throughput| 4.0 * throughput.scheduled + 5.0 * throughput.random;
        let corrected = cell.throughput(Form::Corrected);
        assert!((sum(corrected) / corrected.total - 1.0).abs() < 1e-12);
        let printed = cell.throughput(Form::Printed);
        assert!(sum(printed) < 0.8 * printed.total);
        // Two units count as two successes, where random access reaches 0.776.
        assert!((printed.total / corrected.total - 6.0 / 4.776).abs() < 1e-3);
    }

    #[test]
    fn chances_of_one_class_are_bianchis() {
        let point = bianchi::fixed_point(10, bianchi::DCF);
        let class = Class { stations: 10, attempt: point.tau };
        let chances = slot_chances(Form::Corrected, &[class], 0.0, 0.0);
        let busy = 1.0 - libm::pow(1.0 - point.tau, 10.0);
        assert!((1.0 - chances.idle - busy).abs() < 1e-12);
        let success = 10.0 * point.tau * libm::pow(1.0 - point.tau, 9.0);
        assert!((chances.success - success).abs() < 1e-12);
    }

    #[test]
    fn errors_lower_success_and_the_printed_form_has_it_the_other_way() {
        let class = Class { stations: 5, attempt: 0.1 };
        let success = |form, error| slot_chances(form, &[class], 0.05, error).success;
        assert!(success(Form::Corrected, 0.5) < success(Form::Corrected, 0.0));
        assert!(success(Form::Corrected, 1.0).abs() < 1e-12);
        assert!((success(Form::Printed, 1.0) - 0.95).abs() < 1e-12);
    }

    #[test]
    fn a_slot_is_the_mean_of_its_kinds() {
        let chances = SlotChances { idle: 0.5, success: 0.3, failure: 0.2 };
        assert!((mean_slot(chances, 9.0, 300.0, 200.0) - 134.5).abs() < 1e-12);
    }
}
