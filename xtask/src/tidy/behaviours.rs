//! Behaviours and the tests that prove them: every id that a page in `docs/behaviours` defines is
//! named by a test, and every id that a test names is defined there.
//!
//! A test names ids at the beginning of its name (`c48_c49_self_heal…`), a scenario script in its
//! first comment (`C-48, C-49.`). Letters that no page uses are not ids.

use super::sources::walk;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

/// The folder that describes the behaviours.
const PAGES: &str = "docs/behaviours/";
/// The folder of scenario scripts.
const SCRIPTS: &str = "crates/controllers/tests/scripts/";

/// The letter of a page, and a number: `C-59`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    letter: char,
    number: u32,
}

impl Id {
    fn new(letter: &str, number: &str) -> Option<Self> {
        let mut letters = letter.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else {
            return None;
        };
        (letter.is_ascii_alphabetic() && number.bytes().all(|b| b.is_ascii_digit())).then_some(
            Self {
                letter: letter.to_ascii_uppercase(),
                number: number.parse().ok()?,
            },
        )
    }

    /// Of `C-59`.
    fn of_text(text: &str) -> Option<Self> {
        let (letter, number) = text.split_once('-')?;
        Self::new(letter, number)
    }

    /// Of `c59`.
    fn of_part(part: &str) -> Option<Self> {
        let (letter, number) = part.split_at_checked(1)?;
        Self::new(letter, number)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.letter, self.number)
    }
}

/// The ids that pages define and tests name, with their locations.
#[derive(Default)]
struct Behaviours {
    defined: BTreeMap<Id, String>,
    named: Vec<(Id, String)>,
    findings: Vec<String>,
}

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut behaviours = Behaviours::default();
    for top in [PAGES, "crates", "xtask"] {
        walk(&root.join(top), &mut |path| {
            let name = path
                .strip_prefix(root)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned();
            let Some(read) = reader(&name) else {
                return;
            };
            match fs::read_to_string(path) {
                Ok(text) => read(&mut behaviours, &name, &text),
                Err(e) => behaviours.findings.push(format!("{name}: {e}")),
            }
        })?;
    }
    Ok(behaviours.findings())
}

/// The function that reads a file with this name, if it is relevant.
fn reader(name: &str) -> Option<fn(&mut Behaviours, &str, &str)> {
    let lies_in = |folder: &str| {
        name.strip_prefix(folder)
            .is_some_and(|rest| !rest.contains('/'))
    };
    if name.ends_with(".md") && lies_in(PAGES) {
        Some(Behaviours::read_page)
    } else if name.ends_with(".txt") && lies_in(SCRIPTS) {
        Some(Behaviours::read_script)
    } else if name.ends_with(".rs") {
        Some(Behaviours::read_code)
    } else {
        None
    }
}

impl Behaviours {
    /// List items that begin with an id in bold.
    fn read_page(&mut self, name: &str, text: &str) {
        for (number, line) in text.lines().enumerate() {
            let bold = line
                .strip_prefix("- **")
                .and_then(|rest| rest.split_once("**"));
            let Some(id) = bold.and_then(|(id, _)| Id::of_text(id)) else {
                continue;
            };
            let place = format!("{name}:{}", number + 1);
            if let Some(first) = self.defined.get(&id) {
                self.findings.push(format!(
                    "{place}: {id} is defined in {first} already; give one of them a new number"
                ));
            } else {
                self.defined.insert(id, place);
            }
        }
    }

    /// The ids in the first comment.
    fn read_script(&mut self, name: &str, text: &str) {
        let header = text.lines().take_while(|line| line.starts_with('#'));
        for (number, line) in header.enumerate() {
            let place = format!("{name}:{}", number + 1);
            let words: Vec<&str> = line
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .filter(|word| !word.is_empty())
                .collect();
            let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
            if words
                .windows(2)
                .any(|pair| ["Fact", "Facts"].contains(&pair[0]) && is_number(pair[1]))
            {
                self.findings.push(format!(
                    "{place}: it names a fact by a bare number; write the id, as in C-59"
                ));
            }
            let ids = words.into_iter().filter_map(Id::of_text);
            self.named.extend(ids.map(|id| (id, place.clone())));
        }
    }

    /// The ids that names of tests begin with.
    fn read_code(&mut self, name: &str, text: &str) {
        let mut is_test = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[") || line.starts_with("//") {
                is_test |= is_test_attribute(line);
                continue;
            }
            let Some(test) = function(line).filter(|_| is_test) else {
                is_test = false;
                continue;
            };
            is_test = false;
            let place = format!("{name}:{}", number + 1);
            if test.starts_with("fact_") || test.starts_with("facts_") {
                self.findings.push(format!(
                    "{place}: `{test}` names a fact by a bare number; begin with the id, as in `c59_`"
                ));
            }
            let ids = test.split('_').map_while(Id::of_part);
            self.named.extend(ids.map(|id| (id, place.clone())));
        }
    }

    fn findings(self) -> Vec<String> {
        let Self {
            defined,
            named,
            mut findings,
        } = self;
        let letters: BTreeSet<char> = defined.keys().map(|id| id.letter).collect();
        for (id, place) in &named {
            if letters.contains(&id.letter) && !defined.contains_key(id) {
                findings.push(format!(
                    "{place}: no page of {PAGES} defines {id}; correct the id, or describe the behaviour"
                ));
            }
        }
        let proved: BTreeSet<Id> = named.into_iter().map(|(id, _)| id).collect();
        for (id, place) in defined {
            if !proved.contains(&id) {
                findings.push(format!(
                    "{place}: no test names {id}; name it in the test that proves it, or remove the entry"
                ));
            }
        }
        findings
    }
}

/// `#[test]`, `#[tokio::test(…)]`.
fn is_test_attribute(line: &str) -> bool {
    let path = line
        .strip_prefix("#[")
        .and_then(|rest| rest.split(['(', ']']).next());
    path.is_some_and(|path| path == "test" || path.ends_with("::test"))
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

#[cfg(test)]
mod tests {
    use super::{Behaviours, reader};

    const CODE: &str = "crates/engine/src/a.rs";
    const SCRIPT: &str = "crates/controllers/tests/scripts/a.txt";

    /// The findings in these files, next to a page that defines C-1 and C-2.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let page =
            "# A page\n\n- **C-1** One,\n  and more.\n- **C-2** Two, see C-1.\n- **C** none\n";
        let mut behaviours = Behaviours::default();
        for (name, text) in [("docs/behaviours/controller.md", page)]
            .iter()
            .chain(files)
        {
            let read = reader(name).expect("it is read");
            read(&mut behaviours, name, text);
        }
        behaviours.findings()
    }

    #[test]
    fn behaviours_and_tests_name_each_other() {
        for (name, text) in [
            (CODE, "#[test]\nfn c1_c2_both() {}\n"),
            (
                CODE,
                "#[tokio::test(start_paused = true)]\n#[ignore]\n/// Both.\nasync fn c2_c1_both() {}\n",
            ),
            (
                CODE,
                "#[test]\nfn c1_one() {}\n\n    #[test]\n    fn c2() {}\n",
            ),
            (SCRIPT, "# Both, like v1.\n# C-1, C-2.\n\ncommit\n# C-3.\n"),
            // A letter that no page uses, and a function that is not a test.
            (
                CODE,
                "#[test]\nfn c1_c2_both() {}\n#[test]\nfn v3_is_new() {}\nfn c3_help() {}\n",
            ),
        ] {
            assert_eq!(found(&[(name, text)]), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn each_fault_is_found_with_its_place() {
        let both = (CODE, "#[test]\nfn c1_c2_both() {}\n");
        for (name, text, expected) in [
            (
                CODE,
                "\n#[test]\nfn c2_c30_two() {}\n",
                "crates/engine/src/a.rs:3: no page of docs/behaviours/ defines C-30;",
            ),
            (
                SCRIPT,
                "# Two.\n# C-2, C-30.\n",
                "crates/controllers/tests/scripts/a.txt:2: no page of docs/behaviours/ defines C-30;",
            ),
            (
                "docs/behaviours/sync.md",
                "- **S-1** Other.\n",
                "docs/behaviours/sync.md:1: no test names S-1;",
            ),
            (
                "docs/behaviours/sync.md",
                "- **C-2** Again.\n",
                "docs/behaviours/sync.md:1: C-2 is defined in docs/behaviours/controller.md:5 already;",
            ),
            (
                CODE,
                "#[test]\nfn fact_01_old() {}\n",
                "crates/engine/src/a.rs:2: `fact_01_old` names a fact by a bare number;",
            ),
            (
                CODE,
                "#[test]\nfn facts_1_2_old() {}\n",
                "crates/engine/src/a.rs:2: `facts_1_2_old` names a fact by a bare number;",
            ),
            (
                SCRIPT,
                "# Old. Facts 1 and 2.\n",
                "crates/controllers/tests/scripts/a.txt:1: it names a fact by a bare number;",
            ),
        ] {
            let found = found(&[both, (name, text)]);
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "{text}: {found:?}"
            );
        }
        let unproved = found(&[(CODE, "#[test]\nfn c1_one() {}\nfn c2_two() {}\n")]);
        assert_eq!(unproved.len(), 1, "{unproved:?}");
    }

    #[test]
    fn only_pages_scripts_and_code_are_read() {
        for (name, is_read) in [
            ("docs/behaviours/README.md", true),
            ("docs/guide/helm.md", false),
            (SCRIPT, true),
            ("crates/controllers/tests/scripts/a.argocd", false),
            ("crates/controllers/tests/sharding/argocd.txt", false),
            (CODE, true),
        ] {
            assert_eq!(reader(name).is_some(), is_read, "{name}");
        }
    }
}
