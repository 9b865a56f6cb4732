//! Steps about the Git repository, and files next to a script that steps use.

use crate::scripts::{
    play::Play,
    steps::{Said, objects_of},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Files next to a script: paths and contents.
type Beside = Vec<(PathBuf, String)>;

/// The files of a revision, by path.
pub type Files = BTreeMap<String, String>;

impl Play<'_> {
    /// The words before `from`, and the files that it names: `from PATH OLD=NEW…`, where PATH is a
    /// file or a folder next to the script. The remaining words are replacements in their texts.
    pub fn given(
        &self,
        folder: &Path,
        words: &[String],
    ) -> Result<(Vec<String>, Option<Beside>), String> {
        let Some(at) = words.iter().position(|w| w == "from") else {
            return Ok((words.to_vec(), None));
        };
        let (own, rest) = (words[..at].to_vec(), &words[at + 1..]);
        let (path, replaced) = rest.split_first().ok_or("from which file or folder?")?;
        let from = folder.join(path);
        let mut files = Vec::new();
        read(&from, Path::new(""), &mut files)?;
        for (_, text) in &mut files {
            for word in replaced {
                let (old, new) = word
                    .split_once('=')
                    .ok_or_else(|| format!("`{word}`: what is replaced is OLD=NEW"))?;
                *text = text.replace(old, new);
            }
            *text = self.filled(text);
        }
        Ok((own, Some(files)))
    }

    /// Adds the files of `from PATH OLD=NEW…` to a revision.
    pub fn add_given(
        &mut self,
        beside: &Path,
        words: &[String],
        folder: &str,
        files: &mut Files,
    ) -> Result<(), String> {
        let (own, given) = self.given(beside, words)?;
        let given = given
            .filter(|_| own.is_empty())
            .ok_or("a commit has no words but `from PATH OLD=NEW…`")?;
        for (path, text) in given {
            if path
                .extension()
                .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known))
            {
                // A file that cannot be parsed may be the point of the script.
                objects_of(&text)
                    .into_iter()
                    .flatten()
                    .for_each(|object| self.note(&object));
            }
            files.insert(format!("{folder}{}", path.display()), text);
        }
        Ok(())
    }

    /// Whether the repository is available, and its refs.
    pub async fn git(&mut self, words: &[String]) -> Said {
        let at = |number: Option<&&str>| {
            number.map_or_else(|| Ok(self.repo.head()), |number| self.commit_named(number))
        };
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [word @ ("away" | "back")] => {
                self.repo.set_away(*word == "away");
                return Ok(Vec::new());
            }
            ["branch", name, rest @ ..] => self.repo.set_reference(&format!("refs/heads/{name}"), &at(rest.first())?),
            ["tag", name, rest @ ..] => self.repo.set_reference(&format!("refs/tags/{name}"), &at(rest.first())?),
            ["ref", name, rest @ ..] => self.repo.set_reference(name, &at(rest.first())?),
            ["delete", reference] => self.repo.delete_reference(reference),
            ["head", branch] => self.repo.set_head(branch),
            _ => return Err("git: away, back, branch NAME [N], tag NAME [N], ref NAME [N], delete REF or head BRANCH".to_owned()),
        }
        self.refresh_all().await
    }
}

/// The files of a folder, or one file, by relative path.
fn read(from: &Path, within: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<(), String> {
    let problem = |e: std::io::Error| format!("{}: {e}", from.display());
    if from.is_dir() {
        let mut entries = std::fs::read_dir(from)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(problem)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        return entries
            .iter()
            .try_for_each(|entry| read(&entry.path(), &within.join(entry.file_name()), files));
    }
    let text = std::fs::read_to_string(from).map_err(problem)?;
    let name = if within.as_os_str().is_empty() {
        Path::new(from.file_name().unwrap_or_default())
    } else {
        within
    };
    files.push((name.to_owned(), text));
    Ok(())
}
