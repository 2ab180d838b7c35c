//! What is generated from the code and committed is current. `UPDATE=1 cargo test -p sojourn-study`
//! renews it.

use std::path::PathBuf;

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn check(path: &str, current: &str) {
    let file = repository(path);
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    if committed == current {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, current).unwrap();
        return;
    }
    panic!("{path} is stale: run UPDATE=1 cargo test -p sojourn-study --test generated");
}

#[test]
fn the_committed_schema_is_current() {
    check("schema/study.schema.json", &sojourn_study::schema::json());
}

#[test]
fn the_reference_page_is_current() {
    let page = std::fs::read_to_string(repository("docs/study.md")).expect("the page is there");
    let renewed = sojourn_study::reference::renewed(&page).expect("the page has both marks");
    check("docs/study.md", &renewed);
}
