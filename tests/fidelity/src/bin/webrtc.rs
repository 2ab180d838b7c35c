//! Prints the table of the calls: measured, simulated, difference, bounds. Arguments: parts of situation
//! names.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use sojourn_fidelity::webrtc::{compare, situations};

const SEEDS: u64 = 3;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let (mut inside, mut all) = (0, 0);
    for situation in situations() {
        if !wanted.is_empty() && !wanted.iter().any(|part| situation.id.contains(part.as_str())) {
            continue;
        }
        println!("{}", situation.id);
        for row in compare(&situation, SEEDS) {
            println!("    {row}");
            all += 1;
            inside += u32::from(row.is_inside());
        }
    }
    println!("{inside} of {all} numbers inside their bounds");
}
