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
    /// All cases of a folder, by file name.
    ///
    /// # Panics
    /// When one of them cannot be read.
    pub fn all(folder: &Path) -> Vec<(String, Self)> {
        let files =
            std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut paths: Vec<_> = files
            .filter_map(Result::ok)
            .map(|f| f.path())
            .filter(|p| p.extension().is_some_and(|e| e == "json"))
            .collect();
        paths.sort();
        let read = |path: &Path| {
            let text =
                std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        paths
            .iter()
            .map(|p| {
                (
                    p.file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned(),
                    read(p),
                )
            })
            .collect()
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
