use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn parse(text: &str) -> Document {
    Document::parse("t.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

fn place(document: &Document, key: &str) -> String {
    document.place(document.locate(key)).to_string()
}

/// Writes a file that is removed when the test ends.
fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("the temporary folder can be written to");
    path
}

#[test]
fn keys_and_values_know_their_lines_and_columns() {
    let document = parse("a = 1\n[b]\n  c = \"x\"\n[[d]]\ne = [1, 2]\n[[d]]\ne = [3,\n  4]\n");
    assert_eq!(place(&document, "a"), "t.toml:1:5");
    assert_eq!(place(&document, "b.c"), "t.toml:3:7");
    assert_eq!(place(&document, "d.0.e.1"), "t.toml:5:9");
    assert_eq!(place(&document, "d.1.e.1"), "t.toml:8:3");
    // A missing file is reported under the path where it was looked for.
    assert_eq!(place(&document, "b.nothing"), "t.toml:2:2");
    assert_eq!(place(&document, "nothing"), "t.toml:1:1");
}

#[test]
fn a_file_counts_above_the_one_that_it_extends() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "base.toml", "a = 1\nb = 2\n[t]\nx = 1\ny = 2\nlist = [1, 2]\n");
    let path =
        write(&folder, "top.toml", "extends = \"base.toml\"\nb = 3\n[t]\ny = 4\nlist = [9]\n");
    let document = Document::read(&path).unwrap();
    assert_eq!(document.to_toml(), "a = 1\nb = 3\n\n[t]\nx = 1\ny = 4\nlist = [9]\n");
    assert!(place(&document, "t.x").ends_with("base.toml:4:5"));
    assert!(place(&document, "t.y").ends_with("top.toml:4:5"));
    assert_eq!(document.verbatim(), None);
}

#[test]
fn files_that_extend_one_another_in_a_circle_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "a.toml", "extends = \"b.toml\"\n");
    write(&folder, "b.toml", "extends = \"a.toml\"\n");
    let error = Document::read(&path).unwrap_err().to_string();
    assert!(error.contains("is it a circle?"), "{error}");
}

#[test]
fn a_missing_base_is_blamed_on_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "a.toml", "extends = \"none.toml\"\n");
    let error = Document::read(&path).unwrap_err().to_string();
    assert!(error.contains("none.toml: cannot be read"), "{error}");
}

/// A folder of its name, as a file that may not be read is no misspelt one.
#[test]
fn a_file_that_cannot_be_read_is_not_suggested_in_its_own_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("study.toml")).unwrap();
    let error = Document::read(&folder.path().join("study.toml")).unwrap_err().to_string();
    assert!(error.contains("cannot be read") && !error.contains("did you mean"), "{error}");
}

#[test]
fn options_are_read_as_toml_or_else_as_text() {
    let mut document = parse("");
    let mut value = |value: &str| {
        let assignment = Assignment { address: "a".into(), value: value.into() };
        document.assigned(&assignment).value
    };
    assert!(matches!(value("40mbps"), Value::String(text) if text == "40mbps"));
    assert!(matches!(value("\"x\""), Value::String(text) if text == "x"));
    assert!(matches!(value("7"), Value::Integer(7)));
    assert!(matches!(value("true"), Value::Boolean(true)));
    assert!(matches!(value("[\"a\", \"b\"]"), Value::Array(items) if items.len() == 2));
    assert!(matches!(value("trace 2020-01-01"), Value::String(_)));
    assert!(matches!(value("2020-01-01"), Value::String(_)));
}

#[test]
fn nesting_without_end_is_an_error_and_no_overflow() {
    let text = format!("a = {}", "[".repeat(100_000));
    assert!(Document::parse("t", &text, Path::new("")).is_err());
    let text = format!("a.{} = 1", vec!["b"; 5_000].join("."));
    assert!(Document::parse("t", &text, Path::new("")).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,80}") {
        let _ = Document::parse("t", &text, Path::new(""));
    }

    #[test]
    fn no_mixture_of_toml_makes_the_reader_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "[", "]", "[[", "]]", "a", "b", "=", ".", "\"x\"", "1", "\n", "{", "}", ",", "'",
                "extends", "0x", "1979-05-27", "+inf", " ", "é", "\"\"\"",
            ]),
            0..40,
        )
    ) {
        let text = words.concat();
        if let Ok(document) = Document::parse("t", &text, Path::new("")) {
            let _ = document.place(document.locate("a.b.0.c"));
            prop_assert!(Document::parse("t", &document.to_toml(), Path::new("")).is_ok());
        }
    }
}

#[test]
fn errors_in_values_name_keys_and_no_lines() {
    let values = Document::parse("t", "a = 1\n\n[t]\nx = 2\n", Path::new("")).unwrap().root;
    let document = Document::of_values("made", &values, Path::new("")).unwrap();
    assert_eq!(document.to_toml(), values.to_toml());
    let error = document.error_at_key("t.x", SpecError::new("is wrong"));
    assert_eq!(error.to_string(), "made: t.x: is wrong");
}

#[test]
fn what_is_printed_keeps_the_order_of_the_keys() {
    let text = "[factors]\na = [1]\nzip = [{ \"x.y\" = [1, 2], z = [3, 4] }]\n\"b c\" = [2]\n\n[factors.t]\nc = 1\n";
    let document = Document::parse("t", text, Path::new("")).unwrap();
    let printed = document.to_toml();
    let again = Document::parse("t", &printed, Path::new("")).unwrap();
    assert_eq!(keys(&again.root), keys(&document.root), "{printed}");
    assert_eq!(keys(&again.root), ["factors", "a", "zip", "b c", "t", "c"]);
}

/// All keys in their order.
fn keys(table: &Table) -> Vec<&str> {
    let mut all = Vec::new();
    for entry in &table.entries {
        all.push(&entry.key[..]);
        if let Value::Table(inner) = &entry.node.value {
            all.extend(keys(inner));
        }
    }
    all
}
