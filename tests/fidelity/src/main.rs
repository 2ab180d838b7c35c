//! Prints the table: measured, simulated, difference. Arguments: parts of situation names.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use sojourn_fidelity::{compare, simulate, situations};

const SEEDS: u64 = 9;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let (mut inside, mut outside, mut waiting) = (0, 0, 0);
    for situation in situations() {
        if !wanted.is_empty() && !wanted.iter().any(|part| situation.id.contains(part.as_str())) {
            continue;
        }
        match simulate(&situation, SEEDS) {
            Ok(simulated) => {
                let comparison = compare(&situation, &simulated);
                println!("{}", comparison.id);
                for row in &comparison.rows {
                    println!("    {row}");
                }
                if comparison.is_inside() {
                    inside += 1;
                } else {
                    outside += 1;
                }
            }
            Err(needs) => {
                println!("{}\n    waits for {}", situation.id, needs.0);
                waiting += 1;
            }
        }
    }
    println!("{inside} situations inside, {outside} outside, {waiting} waiting");
}
