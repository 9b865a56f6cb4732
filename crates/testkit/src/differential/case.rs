//! Regression cases: a script and what a real server answered. Main type: [`Case`].

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

/// A script that once differed, with the answers that are right, normalised.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Who answered.
    pub server: String,
    pub script: Script,
    pub answers: Vec<Reply>,
}

impl Case {
    /// All cases of a folder and the folders in it, by path.
    ///
    /// # Panics
    /// When one of them cannot be read.
    pub fn all(folder: &Path) -> Vec<(String, Self)> {
        let mut cases = Vec::new();
        read_all(folder, "", &mut cases);
        cases.sort_by(|a, b| a.0.cmp(&b.0));
        cases
    }

    /// The case as its file has it: each step and each answer on a line, so that a change shows as
    /// the request that it concerns.
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

    /// What a server answers otherwise than is right, apart from what is explained.
    ///
    /// # Errors
    /// When the server does not answer.
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
