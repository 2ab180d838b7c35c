//! What is generated from the code and committed is current. `UPDATE=1 cargo test -p sojourn-study`
//! renews it.

use std::path::{Path, PathBuf};

use sojourn_study::{Overrides, Study};

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
    check("schema/study.schema.json", &sojourn_file::schema::json());
}

#[test]
fn the_reference_page_is_current() {
    let page = std::fs::read_to_string(repository("docs/study.md")).expect("the page is there");
    let renewed = sojourn_study::reference::renewed(&page).expect("the page has both marks");
    check("docs/study.md", &renewed);
}

#[test]
fn the_tables_of_parameters_are_current() {
    let pages = std::fs::read_dir(repository("docs/models")).expect("the folder is there");
    let mut all = String::new();
    for page in pages {
        let path = page.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("a page is text");
        let renewed = sojourn_study::reference::with_parameters(&text)
            .unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        check(&format!("docs/models/{name}"), &renewed);
        all += &renewed;
    }
    let mark = |name: &str| format!("<!-- parameters of {name} -->");
    let mut names = sojourn_study::reference::parametrised();
    names.retain(|name| !all.contains(&mark(name)));
    assert_eq!(names, Vec::<String>::new(), "these have no table");
}

#[test]
fn the_changelog_names_every_congestion_control_and_every_queue() {
    let page = std::fs::read_to_string(repository("CHANGELOG.md")).expect("it is there");
    let ccas = sojourn_cca::algorithms().iter().map(|algorithm| algorithm.name);
    let queues = sojourn_qdisc::disciplines().iter().map(|discipline| discipline.name);
    let unsaid: Vec<&str> =
        ccas.chain(queues).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert_eq!(unsaid, [""; 0]);
}

/// The blocks of a language on the reference page.
fn blocks(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(repository("docs/study.md")).expect("the page is there");
    let mark = format!("```{language}\n");
    let starts = page.split(&mark).skip(1);
    starts.map(|rest| rest.split("```").next().expect("a block ends").to_owned()).collect()
}

#[test]
fn the_examples_of_the_reference_page_are_read_as_they_stand() {
    let toml = blocks("toml");
    let find = |start: &str| toml.iter().find(|block| block.starts_with(start)).expect(start);
    let example = find("schema = 1");
    let read = |text: &str| Study::parse("study.md", text, Path::new(""), &Overrides::default());
    let study = read(example).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.scenarios.len(), 3);

    // Every claim that is shown, over a study that has what they speak of.
    let claims = blocks("text").into_iter().find(|block| block.contains("goodput(cubic) in"));
    let claims = claims.expect("claims are shown");
    let more: String = claims
        .lines()
        .enumerate()
        .map(|(n, line)| format!("[[claim]]\nid = \"X{n}\"\ntext = \"x\"\nexpect = \"{line}\"\n"))
        .collect();
    let group = "[[scenario.flow]]\nname = \"bulk\"\napp = \"bulk\"\ncount = 3\n";
    let study =
        read(&format!("{example}\n{group}{more}")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.claims.len(), 1 + claims.lines().count());

    // The page says itself that the factors it shows vary something twice.
    let (base, _) = example.split_once("[factors]").expect("it has factors");
    let (crossed, zipped) =
        find("[factors]").split_once("[[factors.zip]]").expect("some change together");
    read(&format!("{base}{group}{crossed}")).unwrap_or_else(|error| panic!("{error}"));
    let (zip, except) = zipped.split_once("[[factors.except]]").expect("some are left out");
    read(&format!("{base}[[factors.zip]]{zip}")).unwrap_or_else(|error| panic!("{error}"));
    read(&format!("{base}{group}{crossed}[[factors.except]]{except}"))
        .unwrap_or_else(|error| panic!("{error}"));
}
