//! Airtime and throughput of stations that send aggregates at unequal rates: T. Høiland-Jørgensen
//! et al., "Ending the Anomaly", USENIX ATC 2017, section 2.2.1, equations 1 to 5.
//!
//! The text leaves three things open, and Table 1 decides them. The aggregate of L octets includes
//! what equation 1 adds to each packet, 44 octets for a packet of 1500. The time on the air
//! includes a preamble of 32 µs. The rest of T_oh is 136.5 µs for the fast and 197.5 µs for the
//! slow station. [`Overhead::TABLE_1_FAST`] and its neighbour have these numbers; an [`Overhead`]
//! can have any others.

use alloc::vec::Vec;

/// One station that a queue of the access point serves. Times are microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    /// L: octets of an aggregate, overhead of each packet included.
    pub aggregate: f64,
    /// r: rate of the data in Mbit/s.
    pub rate: f64,
    pub overhead: Overhead,
}

/// What an aggregate costs beside its bits.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// On the air before the data.
    pub preamble: f64,
    /// The rest of T_oh: interframe spaces, mean backoff, block acknowledgement.
    pub access: f64,
    /// Octets of a packet that count as throughput.
    pub packet: f64,
    /// Octets that equation 1 adds to each.
    pub framing: f64,
}

impl Overhead {
    pub const TABLE_1_FAST: Self =
        Self { preamble: 32.0, access: 136.5, packet: 1500.0, framing: 44.0 };
    pub const TABLE_1_SLOW: Self = Self { access: 197.5, ..Self::TABLE_1_FAST };
}

/// Equation 1: octets of an aggregate of `packets` packets of `length` octets, with delimiter,
/// MAC header, frame check sequence and padding.
pub fn aggregate_size(
    packets: u32,
    length: f64,
    delimiter: f64,
    header: f64,
    fcs: f64,
    padding: f64,
) -> f64 {
    f64::from(packets) * (length + delimiter + header + fcs + padding)
}

impl Station {
    /// Equation 2 with the preamble: microseconds on the air.
    pub fn data_time(&self) -> f64 {
        self.overhead.preamble + 8.0 * self.aggregate / self.rate
    }

    /// Equation 3: Mbit/s if it were alone.
    pub fn base_rate(&self) -> f64 {
        let Overhead { packet, framing, access, .. } = self.overhead;
        let payload = self.aggregate * packet / (packet + framing);
        8.0 * payload / (self.data_time() + access)
    }
}

/// What the model predicts of a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// T: share of the air.
    pub airtime: f64,
    /// R0: Mbit/s if it were alone.
    pub base: f64,
    /// R: Mbit/s among the others.
    pub rate: f64,
}

/// Equations 4 and 5 for stations that always have traffic.
pub fn predict(stations: &[Station], is_fair: bool) -> Vec<Prediction> {
    let round: f64 = stations.iter().map(Station::data_time).sum();
    stations
        .iter()
        .map(|station| {
            let airtime = match is_fair {
                true => 1.0 / stations.len() as f64,
                false => station.data_time() / round,
            };
            let base = station.base_rate();
            Prediction { airtime, base, rate: airtime * base }
        })
        .collect()
}

/// Mbit/s of each station when all send an aggregate in turn, computed from the whole round.
/// Equation 5 with equation 4 gives less: it divides the time on the air into shares and then
/// subtracts access from each share as if the other stations needed none. With short aggregates
/// that is a quarter less.
pub fn rates_in_turn(stations: &[Station]) -> Vec<f64> {
    let round: f64 =
        stations.iter().map(|station| station.data_time() + station.overhead.access).sum();
    stations
        .iter()
        .map(|station| {
            let Overhead { packet, framing, .. } = station.overhead;
            8.0 * station.aggregate * packet / (packet + framing) / round
        })
        .collect()
}

/// Stations below a FIFO that is always full and to which all are offered packets alike: every packet
/// that leaves lets one in, of whichever station, so all get packets at one rate, whoever sends how
/// many at a time. Equation 4, in which all send aggregates at one rate, gives those with longer
/// aggregates more packets than come in for them.
pub fn predict_in_fifo(stations: &[Station]) -> Vec<Prediction> {
    let per_octet = |time: f64, station: &Station| time / station.aggregate;
    let on_air: f64 = stations.iter().map(|s| per_octet(s.data_time(), s)).sum();
    let whole: f64 = stations.iter().map(|s| per_octet(s.data_time() + s.overhead.access, s)).sum();
    stations
        .iter()
        .map(|station| {
            let Overhead { packet, framing, .. } = station.overhead;
            Prediction {
                airtime: per_octet(station.data_time(), station) / on_air,
                base: station.base_rate(),
                rate: 8.0 * packet / (packet + framing) / whole,
            }
        })
        .collect()
}

/// The stations of Table 1: two fast ones and a slow one, with the aggregates that were measured
/// under a FIFO or under fair airtime.
pub fn table_1(is_fair: bool) -> [Station; 3] {
    let aggregates = if is_fair { [28_434.0, 28_557.0] } else { [6892.0, 7833.0] };
    let fast = |aggregate| Station { aggregate, rate: 144.4, overhead: Overhead::TABLE_1_FAST };
    let slow = Station { aggregate: 2914.0, rate: 7.2, overhead: Overhead::TABLE_1_SLOW };
    [fast(aggregates[0]), fast(aggregates[1]), slow]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn agrees(is_fair: bool, printed: [[f64; 3]; 3]) {
        let predictions = predict(&table_1(is_fair), is_fair);
        for (prediction, [airtime, base, rate]) in predictions.iter().zip(printed) {
            assert!((100.0 * prediction.airtime - airtime).abs() < 0.5, "{prediction:?}");
            assert!((prediction.base - base).abs() < 0.06, "{prediction:?}");
            assert!((prediction.rate - rate).abs() < 0.06, "{prediction:?}");
        }
    }

    #[test]
    fn all_eighteen_cells_of_table_1() {
        agrees(false, [[10.0, 97.3, 9.7], [11.0, 101.1, 11.4], [79.0, 6.5, 5.1]]);
        agrees(true, [[33.0, 126.7, 42.2], [33.0, 126.8, 42.3], [33.0, 6.5, 2.2]]);
    }

    #[test]
    fn the_totals_are_the_sums_of_the_rows_and_not_those_printed() {
        let total = |is_fair| -> f64 {
            predict(&table_1(is_fair), is_fair).iter().map(|station| station.rate).sum()
        };
        assert!((total(false) - 26.20).abs() < 0.02, "26.4 is printed: {}", total(false));
        assert!((total(true) - 86.68).abs() < 0.02, "86.8 is printed: {}", total(true));
    }

    #[test]
    fn rates_in_turn_agree_with_equation_5_when_all_send_alike() {
        let stations = [table_1(true)[0]; 4];
        let rates = rates_in_turn(&stations);
        for (rate, prediction) in rates.iter().zip(predict(&stations, false)) {
            assert!((rate / prediction.rate - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_fifo_gives_all_one_rate_and_is_a_turn_each_when_aggregates_are_alike() {
        let rates: Vec<f64> =
            predict_in_fifo(&table_1(false)).iter().map(|station| station.rate).collect();
        assert!((rates[0] / rates[2] - 1.0).abs() < 1e-9, "{rates:?}");
        // The mean of the measured 7.1, 6.3 and 5.3.
        assert!((rates[0] / 6.23 - 1.0).abs() < 0.1, "{rates:?}");
        let alike = [table_1(true)[0]; 3];
        let in_turn = rates_in_turn(&alike);
        for (station, rate) in predict_in_fifo(&alike).iter().zip(in_turn) {
            assert!((station.rate / rate - 1.0).abs() < 1e-9);
            assert!((station.airtime - 1.0 / 3.0).abs() < 1e-9);
        }
    }

    #[test]
    fn equation_1_adds_44_octets_to_a_packet() {
        assert_eq!(aggregate_size(2, 1500.0, 4.0, 34.0, 4.0, 2.0), 3088.0);
    }
}
