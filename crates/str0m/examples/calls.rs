//! Prints the table of str0m's measured calls: measured, simulated, difference, bounds. Arguments: parts of
//! situation names.

use std::sync::Arc;

use sojourn_core::{Params, Words};
use sojourn_fidelity::webrtc::{Call, print_table, situations_of_str0m};
use sojourn_host::AppModel;
use sojourn_str0m::Str0m;

const SEEDS: u64 = 9;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    print_table(&situations_of_str0m(), &wanted, SEEDS, &ends_of);
}

fn ends_of(call: &Call) -> Arc<dyn AppModel> {
    let words = call.str0m_words();
    Arc::new(Str0m::parse(&mut Words::new(&words)).expect("well written"))
}
