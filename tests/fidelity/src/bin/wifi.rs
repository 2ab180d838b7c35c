//! Prints the table of the radio cells: measured, simulated, difference. Arguments: parts of
//! situation names, and `--data FILE` for other situations than those of `data`.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use sojourn_fidelity::asked;
use sojourn_fidelity::wifi::{compare, departure, read, situations};

const SEEDS: u64 = 24;

fn main() {
    let (all, wanted) = asked(situations, read);
    let (mut inside, mut outside, mut waiting) = (0, 0, 0);
    for situation in all {
        if !wanted.is_empty() && !wanted.iter().any(|part| situation.id.contains(part.as_str())) {
            continue;
        }
        println!("{}", situation.id);
        match compare(&situation, SEEDS) {
            Ok(rows) => {
                for row in &rows {
                    println!("    {row}");
                }
                if let Some(departure) = departure(&situation) {
                    println!("    standard: {departure}");
                }
                if rows.iter().all(|row| row.is_inside()) {
                    inside += 1;
                } else {
                    outside += 1;
                }
            }
            Err(needs) => {
                println!("    waits for {}", needs.0);
                waiting += 1;
            }
        }
    }
    println!("{inside} situations inside, {outside} outside, {waiting} waiting");
}
