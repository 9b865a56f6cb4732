//! Intended differences, each with its cause. Main type: [`Rule`]; the data is in
//! `differences.json`.

use serde::{Deserialize, Serialize};

/// One explained difference: all of its fields must match exactly. Those in a Table's columns are
/// recognized by their form (a sentence there, the column's name here), and a broken connection by
/// the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub kind: String,
    pub verb: String,
    /// As [`Difference::at`].
    pub at: String,
    /// The real server's value (for a Table's columns: for readers).
    pub real: String,
    /// The embedded server's value (for a Table's columns: for readers).
    pub embedded: String,
    pub cause: String,
}

/// More than these are not explanations but excuses.
pub const MOST: usize = 25;

/// The committed rules.
///
/// # Panics
/// If the committed file is invalid.
pub fn committed() -> Vec<Rule> {
    serde_json::from_str(include_str!("differences.json")).expect("the committed rules are JSON")
}

impl Rule {
    /// Whether this is exactly the explained difference. A trailing `*` stands for any text.
    pub fn explains(&self, kind: &str, verb: &str, at: &str, real: &str, embedded: &str) -> bool {
        let fits = |rule: &str, text: &str| {
            rule.strip_suffix('*')
                .map_or(rule == text, |start| text.starts_with(start))
        };
        self.kind == kind
            && self.verb == verb
            && self.at == at
            && fits(&self.real, real)
            && fits(&self.embedded, embedded)
    }
}

/// The page of the guide about them, generated from the data.
pub fn page(rules: &[Rule]) -> String {
    let mut out = String::from(HEAD);
    for rule in rules {
        out.push_str(&format!(
            "| {} | {} | `{}` | {} | {} | {} |\n",
            rule.kind, rule.verb, rule.at, rule.real, rule.embedded, rule.cause
        ));
    }
    out.push_str(TAIL);
    out
}

const HEAD: &str = "# Where the embedded API server differs from a real one

Random scripts of requests are played on kube-apiserver 1.36 and on the embedded API server, both without controllers, and their
answers compared: `cargo xtask differential --kubeconfig FILE`. These differences are meant. Each is exact: a kind, a verb, a field and both values.
This page is made from `crates/testkit/src/differential/differences.json`; a test keeps the two the same.

| Kind | Verb | Field | Real | Embedded | Cause |
| --- | --- | --- | --- | --- | --- |
";

const TAIL: &str = "
What a server makes up is compared as *where it was seen first* (uids, revisions of objects, allocated addresses and ports, generated
names), or as one word (times, revisions of lists, continue tokens, ages, signed tokens). Lists whose order depends on a Go map or
on the second are compared as sets: the resources of a discovery document, the causes of one refusal, managedFields, what is wrong with a typed object, the volumes of a StatefulSet's claims, the rules of a SelfSubjectRulesReview, and which of several undeclared fields a refusal names. Not compared at all: the order of members in JSON
objects, white space, bookmarks that come with time, and HTTP headers other than `Content-Type`, `Warning`, `Allow`, `Retry-After`, `Location` and `WWW-Authenticate`.
A watch of a custom kind whose definition changes meanwhile is compared as far as both servers gave it: the real one ends it a second later, or when it comes to it.

Scripts are about every built-in kind that can be created. Of APIServices and FlowSchemas there are only dry runs: what follows from a
real write happens at no known time.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_data_says() {
        let rules = committed();
        assert!(rules.len() <= MOST);
        let exact = |text: &str| !text.is_empty() && text != "*";
        assert!(
            rules
                .iter()
                .all(|r| exact(&r.kind) && exact(&r.verb) && exact(&r.at) && exact(&r.cause))
        );
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/guide/differences.md"
        );
        let page = page(&rules);
        if std::env::var_os("WRITE").is_some() {
            std::fs::write(file, &page).expect("the guide's folder is there");
        }
        assert_eq!(
            std::fs::read_to_string(file).expect("the page is committed"),
            page,
            "run again with WRITE=1"
        );
    }
}
