//! A script as text: its steps, and the transcript expected after each. Main type: [`Script`].
//!
//! A line that starts in the first column is a step, indented lines below it are its body, lines
//! that start with `|` are the expected transcript, `#` and empty lines are comments.

use std::path::{Path, PathBuf};

/// One file.
#[derive(Clone, Debug)]
pub struct Script {
    pub name: String,
    path: PathBuf,
    pub steps: Vec<Step>,
    /// The text after the last step.
    rest: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// `verb word…`
    pub text: String,
    pub body: Vec<String>,
    /// Without the `|`.
    pub expected: Vec<String>,
    /// The script's folder, which `from` is relative to.
    pub folder: PathBuf,
    /// The lines of the step in the file, without the expected ones.
    source: Vec<String>,
}

impl Step {
    /// The other Application that it refers to (`other: sync`), and the action.
    pub fn of(&self) -> (Option<&str>, &str) {
        match self.text.split_once(": ") {
            Some((other, text)) if !other.contains(' ') => (Some(other), text),
            _ => (None, &self.text),
        }
    }

    /// The body without its common indentation.
    pub fn body_text(&self) -> String {
        let depth = |l: &String| l.len() - l.trim_start().len();
        let indent = self
            .body
            .iter()
            .filter(|l| !l.trim().is_empty())
            .map(depth)
            .min()
            .unwrap_or(0);
        self.body
            .iter()
            .map(|l| l.get(indent..).unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Script {
    /// The file's name without its ending.
    pub fn name_of(path: &Path) -> String {
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// # Panics
    /// If the file cannot be read, or does not begin with a step.
    pub fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::of(path, &text)
    }

    /// # Panics
    /// If the text does not begin with a step.
    pub fn of(path: &Path, text: &str) -> Self {
        let mut script = Self {
            name: Self::name_of(path),
            path: path.to_owned(),
            steps: Vec::new(),
            rest: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            script
                .line(line)
                .unwrap_or_else(|problem| panic!("{}:{}: {problem}", path.display(), number + 1));
        }
        script
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let step = self.steps.last_mut();
        if let Some(expected) = line.strip_prefix('|') {
            let step = step.ok_or("what is expected needs a step before it")?;
            step.expected
                .push(expected.strip_prefix(' ').unwrap_or(expected).to_owned());
        } else if line.is_empty() || line.starts_with('#') {
            self.rest.push(line.to_owned());
        } else if line.starts_with(' ') {
            let step = step.filter(|s| s.expected.is_empty() && self.rest.is_empty());
            let step = step.ok_or("an indented line belongs to the step right above it")?;
            step.body.push(line.to_owned());
            step.source.push(line.to_owned());
        } else {
            let mut source = std::mem::take(&mut self.rest);
            source.push(line.to_owned());
            let folder = self.path.parent().unwrap_or(Path::new("")).to_owned();
            self.steps.push(Step {
                text: line.to_owned(),
                folder,
                source,
                ..Step::default()
            });
        }
        Ok(())
    }

    /// As a file.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for step in &self.steps {
            lines.extend(step.source.iter().cloned());
            lines.extend(
                step.expected
                    .iter()
                    .map(|l| format!("| {l}").trim_end().to_owned()),
            );
        }
        lines.extend(self.rest.iter().cloned());
        lines.join("\n") + "\n"
    }

    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self) {
        std::fs::write(&self.path, self.text())
            .unwrap_or_else(|e| panic!("{}: {e}", self.path.display()));
    }

    /// The file next to it with another extension.
    pub fn beside(&self, ending: &str) -> PathBuf {
        self.path.with_extension(ending)
    }

    /// Whether it affects the controller, at a specific moment, in a way that concurrent scripts
    /// would notice.
    pub fn is_for_embedded_only(&self) -> bool {
        self.steps.iter().any(|s| s.text == "sync panic")
    }

    /// Whether its repository is unavailable for a while.
    pub fn loses_git(&self) -> bool {
        self.steps.iter().any(|s| s.text == "git away")
    }

    /// Whether it kills the controller, which all scripts on a real control plane share.
    pub fn kills(&self) -> bool {
        self.steps.iter().any(|s| s.text == "restart")
    }

    /// Whether it creates or changes a project.
    pub fn changes_projects(&self) -> bool {
        self.steps.iter().any(|s| s.text.starts_with("project"))
    }

    /// Whether it changes settings or clusters, which affect all Applications, or has a plugin, which
    /// is asked about all of them, so that no other script may run concurrently.
    pub fn changes_settings(&self) -> bool {
        let of_all = ["settings", "params", "plugin"];
        let affects_all = |text: &str| of_all.iter().any(|verb| text.starts_with(verb));
        let is_cluster = |body: &str| body.contains("argocd.argoproj.io/secret-type");
        self.steps
            .iter()
            .any(|s| affects_all(&s.text) || s.body.iter().any(|line| is_cluster(line)))
    }
}
