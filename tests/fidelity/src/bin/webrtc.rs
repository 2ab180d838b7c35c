//! Prints the table of the calls: measured, simulated, difference, bounds. Arguments: parts of situation
//! names, and `--data FILE` for other situations than those of `data`.

use sojourn_fidelity::asked;
use sojourn_fidelity::webrtc::{model_of, print_table, read, situations};

const SEEDS: u64 = 20;

fn main() {
    let (all, wanted) = asked(situations, read);
    print_table(&all, &wanted, SEEDS, &model_of);
}
