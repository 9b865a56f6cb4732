//! Regression cases: a script and a real server's responses. Main type: [`Case`].

use super::{
    compare::{Difference, differences},
    endings::level,
    normalise::normalise,
    play::{Patience, Reply, Transcript, play},
    rules,
    script::Script,
    server::Server,
};
use serde::{Deserialize, Serialize};
use std::{path::Path, time::Duration};

/// A script that once had a difference, with the correct responses, normalized.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The server that responded.
    pub server: String,
    pub script: Script,
    pub answers: Vec<Reply>,
}

impl Case {
    /// All cases of a folder and its subfolders, by path.
    ///
    /// # Panics
    /// If one of them cannot be parsed.
    pub fn all(folder: &Path) -> Vec<(String, Self)> {
        let mut cases = Vec::new();
        read_all(folder, "", &mut cases);
        cases.sort_by(|a, b| a.0.cmp(&b.0));
        cases
    }

    /// The case in its file format: each step and each response on one line, so that a diff shows
    /// the affected request.
    pub fn text(&self) -> String {
        fn json(value: &impl Serialize) -> String {
            serde_json::to_string(value).expect("it is made of JSON values")
        }
        fn lines(values: &[impl Serialize]) -> String {
            values.iter().map(json).collect::<Vec<_>>().join(",\n")
        }
        format!(
            "{{\"server\":{},\"script\":{{\"about\":{},\"steps\":[\n{}\n]}},\"answers\":[\n{}\n]}}\n",
            json(&self.server),
            json(&self.script.about),
            lines(&self.script.steps),
            lines(&self.answers),
        )
    }

    /// The server's deviations from the correct responses, except explained ones.
    ///
    /// # Errors
    /// If the server does not respond.
    pub fn replay(&self, server: &dyn Server, namespace: &str) -> Result<Vec<Difference>, String> {
        let expected = Transcript {
            namespace: namespace.to_owned(),
            replies: self.answers.clone(),
        };
        let patience = Patience {
            quiet: Duration::from_millis(100),
            ..Patience::default()
        };
        let mut found =
            play(server, &self.script, namespace, Some(&expected), patience).map_err(|e| e.0)?;
        let mut answers = self.answers.clone();
        level(&self.script, &mut answers, &mut found.replies);
        let mut list = differences(
            &self.script,
            &rules::committed(),
            &answers,
            &normalise(&self.script, &found),
        );
        list.retain(|d| !d.explained);
        Ok(list)
    }
}

fn read_all(folder: &Path, prefix: &str, cases: &mut Vec<(String, Case)>) {
    let shown = |e: &dyn std::fmt::Display| -> ! { panic!("{}: {e}", folder.display()) };
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| shown(&e)) {
        let entry = entry.unwrap_or_else(|e| shown(&e));
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_all(&entry.path(), &format!("{name}/"), cases);
        } else if name.ends_with(".json") {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_else(|e| shown(&e));
            let case = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            cases.push((name, case));
        }
    }
}
