//! Writes `report.html` into a result folder: `page FOLDER`.

use std::path::PathBuf;

use sojourn_report::{Options, html};
use sojourn_study::results::Folder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("which folder?")?);
    let results = Folder::open(&folder)?;
    let page = html(&results, &mut results.reader()?, &Options::default());
    std::fs::write(folder.join("report.html"), page)?;
    Ok(())
}
