//! Prints the table of the calls: measured, simulated, difference, bounds. Arguments: parts of situation
//! names.

use sojourn_fidelity::webrtc::{model_of, print_table, situations};

const SEEDS: u64 = 10;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    print_table(&situations(), &wanted, SEEDS, &model_of);
}
