//! `apply edit-last-applied`: what was applied last, in an editor. Main type: [`Edit`].

use super::{
    HintedError,
    editor::{self, Edited},
    last_applied,
    live::{self, Live, Wanted},
    print::print_name,
    read::{self, Found, Rules},
    source::{FileArgs, Text},
};
use crate::{
    kubectl::{
        failure::Trouble,
        kube::{KubeArgs, Target},
    },
    output,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tiphys_cluster::apply::{CLIENT_SIDE_MANAGER, DryRun, Item, last_applied_text};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

const HEADER: &str = "# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
";
/// Why an empty file is invalid.
const EMPTY: &str = "The edited file failed validation: invalid object to validate";
const NOTHING_TO_EDIT: &str = "no last-applied-configuration annotation found on resources, to create the annotation, use command \
                               `kubectl apply set-last-applied --create-annotation`";

/// Edit what was applied last
///
/// The editor is that of $KUBE_EDITOR or $EDITOR, or vi. Only the annotation changes; the next
/// apply compares with it.
#[derive(clap::Args)]
pub struct Edit {
    /// TYPE NAME..., or TYPE/NAME...
    words: Vec<String>,
    #[command(flatten)]
    files: FileArgs,
    /// Edit as yaml or json, and print the result so [default: edit yaml, print names]
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<String>,
    /// Name under which the annotation is written
    #[arg(long, value_name = "NAME", default_value = CLIENT_SIDE_MANAGER)]
    field_manager: String,
}

impl Edit {
    pub async fn run(self, kube: &KubeArgs) -> Result<(), HintedError> {
        if let Some(format) = self
            .output
            .as_deref()
            .filter(|format| !matches!(*format, "yaml" | "json"))
        {
            let text = format!(
                "unable to match a printer suitable for the output format {format:?}, allowed formats are: json,yaml"
            );
            return Err(Trouble::text(text).into());
        }
        let target = kube.connect().await?;
        let wanted = Wanted {
            words: &self.words,
            files: &self.files,
            all: false,
            selector: "",
        };
        let live = live::live(&wanted, &target).await?;
        let before = remembered(&live)?;
        let mut session = Session {
            before: shown(&before),
            json: self.is_json(),
            file: None,
            problem: String::new(),
            last: None,
        };
        let outcome = match session.edited(&target, &live[0]).await {
            Ok(Some(items)) => self.save(&target, &before, items).await,
            Ok(None) => Ok(()),
            Err(told) => Err(told),
        };
        session.end(outcome.is_err());
        outcome
    }

    async fn save(
        &self,
        target: &Target,
        before: &[Value],
        items: Vec<Item>,
    ) -> Result<(), HintedError> {
        for item in items {
            let same = before
                .iter()
                .any(|value| *value == Value::Object(item.object.0.clone()));
            if !same {
                last_applied::remember(target, &item, &self.field_manager, DryRun::None).await?;
            }
            output::print(&match self.output {
                Some(_) => written(&item.object.into_value(), self.is_json()),
                None => format!(
                    "{} {}\n",
                    print_name(&item.object),
                    if same { "skipped" } else { "edited" }
                ),
            });
        }
        Ok(())
    }

    fn is_json(&self) -> bool {
        self.output.as_deref() == Some("json")
    }
}

/// The content of the annotations; objects without one are left out.
fn remembered(live: &[Live]) -> Result<Vec<Value>, Trouble> {
    let mut found = Vec::new();
    for Live { object, .. } in live {
        let Some(text) = last_applied_text(object) else {
            continue;
        };
        let value = yaml::parse_document(text, &Limits::default(), Duplicates::LastWins);
        found.push(value.map_err(|e| {
            Trouble::text(format!(
                "the annotation of {} is not JSON: {e}",
                print_name(object)
            ))
        })?);
    }
    if found.is_empty() {
        Err(Trouble::text(NOTHING_TO_EDIT))
    } else {
        Ok(found)
    }
}

/// A single object as it is, several as a list.
fn shown(objects: &[Value]) -> Value {
    match objects {
        [one] => one.clone(),
        several => json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": several}),
    }
}

/// The editor is opened until its text is valid or nothing more is changed.
struct Session {
    before: Value,
    json: bool,
    /// The last edited file, kept if it was invalid.
    file: Option<PathBuf>,
    /// Why it was invalid.
    problem: String,
    last: Option<String>,
}

impl Session {
    /// The edited objects; `None` if nothing is to be changed.
    async fn edited(
        &mut self,
        target: &Target,
        first: &Live,
    ) -> Result<Option<Vec<Item>>, HintedError> {
        loop {
            let Edited { text, file } =
                editor::edit(&self.text(), if self.json { ".json" } else { ".yaml" })
                    .map_err(Trouble::text)?;
            let again = self.last.as_deref().is_some_and(|last| same(last, &text));
            if let Some(old) = self.file.replace(file).filter(|_| !again) {
                drop(fs::remove_file(old));
            }
            if again {
                return Err(Trouble::text("Edit cancelled, no valid changes were saved.").into());
            }
            // As in kubectl, an empty file is an invalid one: the editor opens again, and a second
            // empty file ends it.
            if without_comments(&text).trim().is_empty() {
                eprintln!("{}", invalid(first));
                self.problem = Trouble::text(EMPTY).report();
                self.last = Some(text);
                continue;
            }
            if parsed(&text).is_some_and(|value| value == self.before) {
                eprintln!("Edit cancelled, no changes made.");
                return Ok(None);
            }
            let rules = Rules {
                validate: true,
                selector: String::new(),
            };
            let edited = Text {
                source: "edited-file".into(),
                data: Ok(text.clone().into_bytes()),
            };
            let Found { items, trouble, .. } =
                read::read_texts(vec![edited], target, &rules).await?;
            let Some(trouble) = trouble else {
                return Ok(Some(items));
            };
            eprintln!("{}", invalid(first));
            self.problem = trouble.report();
            self.last = Some(text);
        }
    }

    /// The text for the editor: the objects, or the edited text with its error.
    fn text(&self) -> String {
        let body = match &self.last {
            Some(last) => without_comments(last),
            None => written(&self.before, self.json),
        };
        // JSON has no comments.
        if self.json {
            return body;
        }
        let problem: String = self
            .problem
            .lines()
            .map(|line| format!("# {line}\n"))
            .collect();
        format!(
            "{HEADER}{problem}{}{body}",
            if problem.is_empty() { "" } else { "#\n" }
        )
    }

    /// The file is removed, unless it contains changes that could not be saved.
    fn end(self, failed: bool) {
        match self.file {
            Some(file) if failed => eprintln!(
                "A copy of your changes has been stored to {:?}",
                file.display().to_string()
            ),
            Some(file) => drop(fs::remove_file(file)),
            None => {}
        }
    }
}

fn invalid(first: &Live) -> String {
    format!(
        "error: {} {:?} is invalid",
        first.kind.resource,
        first.object.name()
    )
}

fn written(value: &Value, as_json: bool) -> String {
    if as_json {
        tiphys_gocompat::json::to_string_pretty(value, "    ") + "\n"
    } else {
        yaml::to_string(value)
    }
}

fn parsed(text: &str) -> Option<Value> {
    yaml::parse_document(text, &Limits::default(), Duplicates::LastWins).ok()
}

fn same(a: &str, b: &str) -> bool {
    match (parsed(a), parsed(b)) {
        (Some(a), Some(b)) => a == b,
        _ => without_comments(a) == without_comments(b),
    }
}

fn without_comments(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_do_not_count() {
        assert!(same("# a\nk: 1\n", "k: 1 # b\n"));
        assert!(same("# a\nk: {\n", "k: {\n# b\n"));
        assert!(!same("k: 1\n", "k: 2\n"));
    }

    #[test]
    fn what_is_wrong_stands_above_what_was_edited() {
        let mut session = Session {
            before: json!({"k": 1}),
            json: false,
            file: None,
            problem: String::new(),
            last: None,
        };
        assert_eq!(session.text(), format!("{HEADER}k: 1\n"));
        (session.problem, session.last) =
            ("error: no\nkind\n".into(), Some("# old\nk: 2\n".into()));
        assert_eq!(
            session.text(),
            format!("{HEADER}# error: no\n# kind\n#\nk: 2\n")
        );
    }
}
