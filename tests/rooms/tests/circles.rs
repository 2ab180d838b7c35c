//! Files depend on each other in one direction only.
//!
//! The test compares the entries of one folder, files and folders alike, by the paths that are
//! written in them. A folder's `mod.rs` stands for the folder itself: what is in the folder may use
//! it, and it may use what is in the folder. A name that it only re-exports counts for the file
//! that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module by its names from the root of its crate.
type Module = Vec<String>;

/// The files of a crate, without code that is compiled for tests only.
#[derive(Default)]
struct House {
    texts: BTreeMap<Module, String>,
}

#[test]
fn files_do_not_know_each_other_in_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut circles = Vec::new();
    let mut arrows = 0;
    for room in entries(&crates) {
        let house = House::read(&crates.join(&room).join("src"));
        let graph = house.graph();
        arrows += graph.values().map(BTreeMap::len).sum::<usize>();
        for (folder, arrows) in &graph {
            let place = [std::slice::from_ref(&room), &folder[..]].concat().join("/");
            circles.extend(circle(arrows).map(|names| format!("{place}: {}", names.join(" → "))));
        }
    }
    assert!(arrows > 100, "only {arrows} files use others: are they read at all?");
    assert!(circles.is_empty(), "files know each other in circles:\n{}", circles.join("\n"));
}

#[test]
fn a_circle_is_found_and_one_through_a_name_that_is_passed_on() {
    let house = |files: &[(&str, &str)]| {
        let module = |path: &str| path.split_terminator('/').map(str::to_owned).collect();
        let texts = files.iter().map(|(path, text)| (module(path), (*text).to_owned()));
        House { texts: texts.collect() }
    };
    let found = |house: &House| house.graph().values().filter_map(circle).count();
    let lib = ("", "mod a;\nmod b;\npub use b::{Thing, other as Other};\n");
    assert_eq!(found(&house(&[lib, ("a", "use crate::b::Thing;"), ("b", "struct Thing;")])), 0);
    for back in ["use crate::a::X;", "fn f() { crate::a::f() }", "use super::{a::X, c};"] {
        let files = [lib, ("a", "use crate::b::Thing;"), ("b", back)];
        assert_eq!(found(&house(&files)), 1, "{files:?}");
        let files = [lib, ("a", "use crate::{Y, Thing};"), ("b", back)];
        assert_eq!(found(&house(&files)), 1, "{files:?}");
        // For folders, wherever in the folder it is written.
        let files = [lib, ("a", ""), ("a/in", "use crate::Other;"), ("b", back)];
        assert_eq!(found(&house(&files)), 1, "{files:?}");
    }
    // Files in a folder may use the folder itself.
    let files = [("", "mod a;\nuse a::X;\nstruct Y;"), ("a", "use crate::Y; use super::Y;")];
    assert_eq!(found(&house(&files)), 0);
}

impl House {
    fn read(folder: &Path) -> Self {
        let mut house = Self::default();
        house.read_folder(folder, &Vec::new());
        let tests: Vec<Module> = house.texts.iter().flat_map(|(m, t)| test_modules(m, t)).collect();
        house.texts.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        house.texts.values_mut().for_each(|text| *text = without_tests(text));
        house
    }

    fn read_folder(&mut self, folder: &Path, module: &Module) {
        for name in entries(folder) {
            let path = folder.join(&name);
            let Some(stem) = name.strip_suffix(".rs") else {
                if path.is_dir() {
                    self.read_folder(&path, &[&module[..], &[name]].concat());
                }
                continue;
            };
            let text = std::fs::read_to_string(&path).expect("sources are text");
            match stem {
                "mod" | "lib" | "main" => self.texts.insert(module.clone(), code(&text)),
                _ => self.texts.insert([&module[..], &[stem.into()]].concat(), code(&text)),
            };
        }
    }

    /// For each folder, which of its entries use which others.
    fn graph(&self) -> BTreeMap<Module, BTreeMap<&str, BTreeSet<String>>> {
        let mut graph: BTreeMap<Module, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
        for (module, text) in &self.texts {
            for path in paths(text) {
                let Some(used) = self.home(module, &path, 0) else { continue };
                let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if let (Some(user), Some(used)) = (module.get(common), used.get(common)) {
                    let folder = graph.entry(module[..common].to_vec()).or_default();
                    folder.entry(user).or_default().insert(used.clone());
                }
            }
        }
        graph
    }

    /// The module that defines what `path` names in `from`; `None` for other crates.
    fn home(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut path = path;
        let mut module = from.clone();
        match path.first()?.as_str() {
            "crate" => module.clear(),
            "super" => {
                module.pop();
            }
            "self" => {}
            // A name without a prefix is a child module, unless it is a crate.
            name if self.texts.contains_key(&[&from[..], &[name.to_owned()]].concat()) => {
                module.push(name.to_owned());
            }
            _ => return None,
        }
        path = &path[1..];
        while let Some(name) = path.first() {
            let child = [&module[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                module.pop();
            } else if self.texts.contains_key(&child) {
                module = child;
            } else {
                break;
            }
            path = &path[1..];
        }
        // What the module only re-exports is defined elsewhere.
        let passed_on = path.first().filter(|_| depth < 8).and_then(|name| {
            let (_, original) =
                imports(self.texts.get(&module)?).into_iter().find(|(n, _)| n == name)?;
            self.home(&module, &original, depth + 1)
        });
        Some(passed_on.unwrap_or(module))
    }
}

/// Names in a folder, sorted.
fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A text without its comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).fold(
        String::new(),
        |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        },
    )
}

const FOR_TESTS: &str = "#[cfg(test)]";

/// Modules in files of their own that are compiled for tests only.
fn test_modules(module: &Module, text: &str) -> Vec<Module> {
    let after = text.split(FOR_TESTS).skip(1).map(str::trim_start);
    let named = after.filter_map(|rest| {
        let line = rest.lines().next()?.trim_end().strip_suffix(';')?;
        let (_, name) = line.split_once("mod ")?;
        Some([&module[..], &[name.to_owned()]].concat())
    });
    named.collect()
}

/// Modules for tests that are written inside a file stand at its end.
fn without_tests(text: &str) -> String {
    let end = text.match_indices(FOR_TESTS).find(|(at, _)| {
        let rest = text[at + FOR_TESTS.len()..].trim_start();
        rest.starts_with("mod ") && rest.lines().next().is_some_and(|line| line.ends_with('{'))
    });
    end.map_or(text, |(at, _)| &text[..at]).to_owned()
}

/// All paths of a file that may lead to another one of its crate.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut all: Vec<_> = imports(text).into_iter().map(|(_, path)| path).collect();
    let outside: String = text
        .split_inclusive(';')
        .map(|part| match use_at(part) {
            Some(at) => &part[..at],
            None => part,
        })
        .collect();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in outside.match_indices(start) {
            let inside_a_word = outside[..at].chars().next_back().is_some_and(is_of_path);
            if !inside_a_word {
                let end = outside[at..].find(|c| !is_of_path(c)).map_or(outside.len(), |n| at + n);
                all.push(segments(&outside[at..end]));
            }
        }
    }
    all
}

/// Names that `use` brings into a file, and the path of each.
fn imports(text: &str) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for part in text.split_inclusive(';') {
        if let Some(tree) = use_at(part).map(|at| part[at + 4..].trim_end_matches(';')) {
            leaves(&[], tree.trim(), &mut all);
        }
    }
    all
}

/// Where the statement at the end of `part` begins with `use`.
fn use_at(part: &str) -> Option<usize> {
    let at = part.rfind("use ")?;
    let before = part[..at].chars().next_back();
    let begins = before.is_none_or(char::is_whitespace);
    let is_path = |c: char| is_of_path(c) || " \n{},*;".contains(c);
    (begins && part[at + 4..].chars().all(is_path)).then_some(at)
}

/// The names in a tree such as `a::{b, c::{self, d as e}}`.
fn leaves(before: &[String], tree: &str, into: &mut Vec<(String, Vec<String>)>) {
    let Some(open) = tree.find('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = [before, &segments(path)].concat();
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let last = path.last().cloned().unwrap_or_default();
        into.push((if name.is_empty() { last } else { name.trim().to_owned() }, path));
        return;
    };
    let before = [before, &segments(&tree[..open])].concat();
    let inner = tree[open + 1..].trim_end().trim_end_matches('}');
    let inner = if tree.matches('{').count() == tree.matches('}').count() {
        &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())]
    } else {
        inner
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    leaves(&before, part, into);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

/// A circle among the entries of a folder, with its first entry at both ends.
fn circle(arrows: &BTreeMap<&str, BTreeSet<String>>) -> Option<Vec<String>> {
    let reached = |from: &str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(name) = next.pop() {
            for used in arrows.get(&name[..]).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
        seen
    };
    let start = arrows.keys().find(|name| reached(name).contains(**name))?;
    let mut names = vec![(*start).to_owned()];
    loop {
        let last = names.last().cloned().unwrap_or_default();
        let back = |used: &&String| *used == start || reached(used).contains(*start);
        let next = arrows.get(&last[..])?.iter().filter(back);
        let fresh = next.clone().find(|used| *used == start || !names.contains(used));
        names.push(fresh?.clone());
        if names.len() > 1 && names.last().is_some_and(|name| name == start) {
            return Some(names);
        }
    }
}
