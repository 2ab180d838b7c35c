//! Shipped studies with words deleted, doubled, exchanged and altered: reading them never panics, and
//! what is refused has lines and keys.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;
use sojourn_study::{Overrides, Study};

/// Files that are read quickly.
const STUDIES: [&str; 5] = [
    "studies/mmwave-web/study.toml",
    "studies/mmwave-moving-bottleneck/study.toml",
    "studies/mmwave/offload.toml",
    "studies/l4s-coexistence/study.toml",
    "studies/wifi6-aqm/both-ways.toml",
];

/// Words that are hard for parsers.
const ODD: [&str; 24] = [
    "",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"\"",
    "[]",
    "{}",
    "-1",
    "0",
    "1e999",
    "nan",
    "true",
    "99999999999999999999",
    "\"-5ms\"",
    "\"1e30Mbps\"",
    "\"é\"",
    "\u{0}",
    "\n",
];

#[derive(Clone, Debug)]
enum Change {
    Delete(Index),
    Double(Index),
    Exchange(Index, Index),
    Alter(Index, Index, char),
    Put(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Change::Delete),
        index().prop_map(Change::Double),
        (index(), index()).prop_map(|(one, other)| Change::Exchange(one, other)),
        (index(), index(), "[ -~]").prop_map(|(word, place, with)| {
            Change::Alter(word, place, with.chars().next().unwrap_or('x'))
        }),
        (index(), index()).prop_map(|(word, odd)| Change::Put(word, odd)),
    ]
}

/// Texts in quotes, words, blanks, and every other character alone.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    for c in text.chars() {
        let continues = words
            .last()
            .and_then(|word| word.chars().last())
            .is_some_and(|last| is_of_word(last) && is_of_word(c) || last == ' ' && c == ' ');
        if c == '"' {
            is_open = !is_open;
        }
        match words.last_mut() {
            Some(word) if continues || (is_open && c != '"' && word.starts_with('"')) => {
                word.push(c)
            }
            _ => words.push(c.to_string()),
        }
    }
    words
}

fn mutant(text: &str, changes: &[Change]) -> String {
    let mut words = words(text);
    assert_eq!(words.concat(), text);
    for change in changes {
        let count = words.len();
        match change {
            Change::Delete(at) => drop(words.remove(at.index(count))),
            Change::Double(at) => {
                let word = words[at.index(count)].clone();
                words.insert(at.index(count), word);
            }
            Change::Exchange(one, other) => words.swap(one.index(count), other.index(count)),
            Change::Alter(at, place, with) => {
                let word = &mut words[at.index(count)];
                let mut chars: Vec<char> = word.chars().collect();
                if !chars.is_empty() {
                    let place = place.index(chars.len());
                    chars[place] = *with;
                }
                *word = chars.into_iter().collect();
            }
            Change::Put(at, odd) => words[at.index(count)] = odd.get(&ODD).to_string(),
        }
    }
    words.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn a_mutant_is_read_or_refused_with_lines_and_keys(
        study in prop::sample::select(&STUDIES[..]),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join(study);
        let text = std::fs::read_to_string(&path).expect("it is shipped");
        let text = mutant(&text, &changes);
        let folder = path.parent().unwrap_or(Path::new(""));
        let Err(error) = Study::parse("m.toml", &text, folder, &Overrides::default()) else {
            return Ok(());
        };
        let lines = text.matches('\n').count() as u32 + 1;
        let mut last = None;
        for mistake in error.mistakes() {
            let problem = mistake.problem().problem();
            prop_assert!(!problem.is_empty() && !problem.contains('\n'), "{}", mistake);
            let is_of_toml = problem.starts_with("not TOML") || problem.contains("nested too deeply");
            prop_assert!(is_of_toml || !mistake.key().is_empty(), "no key: {}", mistake);
            match mistake.place().position {
                Some((line, column)) => {
                    prop_assert!((1..=lines).contains(&line) && column > 0, "{}", mistake);
                    prop_assert!(Some((line, column)) >= last, "not in order: {}", error);
                    last = Some((line, column));
                }
                None => prop_assert!(problem.contains("nested too deeply"), "{}", mistake),
            }
        }
    }
}
