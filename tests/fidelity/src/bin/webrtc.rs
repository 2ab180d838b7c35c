//! Prints the table of the calls: measured, simulated, difference, bounds. Arguments: parts of situation
//! names, and `--data FILE` for other situations than those of `data`.

use sojourn_fidelity::data_of;
use sojourn_fidelity::webrtc::{model_of, print_table, read, situations};

const SEEDS: u64 = 20;

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let all = match data_of(&mut wanted) {
        Ok(None) => situations(),
        Ok(Some(text)) => read(&text),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    print_table(&all, &wanted, SEEDS, &model_of);
}
