//! Writes `report.html` into a result folder: `page FOLDER`.

use std::path::PathBuf;

use sojourn_report::{Options, html};
use sojourn_study::results::Folder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("which folder?")?);
    let results = Folder::open(&folder)?;
    let series = |run: u32| results.series(run).map_err(|error| error.to_string());
    std::fs::write(folder.join("report.html"), html(&results, &series, &Options::default()))?;
    Ok(())
}
