//! Prints the table of the radio cells: measured, simulated, difference. Arguments: parts of
//! situation names.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use sojourn_fidelity::wifi::{compare, departure, situations};

const SEEDS: u64 = 6;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let (mut inside, mut outside, mut waiting) = (0, 0, 0);
    for situation in situations() {
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
