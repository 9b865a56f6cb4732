//! The real Helm: run in an empty environment, with results cached by the content of the chart, the
//! values and its version.
//!
//! Main type: [`Helm`].

use super::{Answer, Case, Flags, collection::read_folder};
use anyhow::Context;
use sha2::{Digest, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

pub struct Helm {
    program: PathBuf,
    version: String,
    home: PathBuf,
    answers: PathBuf,
    packed: PathBuf,
}

impl Helm {
    pub fn new(program: Option<PathBuf>, scratch: &Path) -> anyhow::Result<Self> {
        let default = || {
            std::env::home_dir()
                .unwrap_or_default()
                .join(".cache/control-plane/bin/helm")
        };
        let program = program.unwrap_or_else(default);
        let [home, answers, packed] = ["home", "answers", "packed"].map(|name| scratch.join(name));
        for folder in [&home, &answers, &packed] {
            fs::create_dir_all(folder)?;
        }
        let mut helm = Self {
            program,
            version: String::new(),
            home,
            answers,
            packed,
        };
        let output = helm.run(&helm.home, &["version".to_owned(), "--short".to_owned()])?;
        helm.version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        println!("Helm {}", helm.version);
        Ok(helm)
    }

    fn run(&self, folder: &Path, args: &[String]) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", "/usr/bin:/bin");
        command
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))
    }

    /// At least this many results of one render.
    pub fn answers(
        &self,
        case: &Case,
        flags: &Flags,
        wanted: usize,
    ) -> anyhow::Result<Vec<Answer>> {
        let arguments = arguments(case, flags);
        let mut parts = arguments.clone();
        if let Some(values) = &case.values {
            parts.push(fs::read_to_string(case.chart.join(values))?);
        }
        let file = self
            .answers
            .join(format!("{}.json", self.key(&case.chart, &parts)?));
        let mut known: Vec<Answer> = fs::read(&file)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        if known.len() >= wanted {
            return Ok(known);
        }
        while known.len() < wanted {
            let output = self.run(&case.chart, &arguments)?;
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            known.push(Answer {
                success: output.status.success(),
                stdout: text(output.stdout),
                stderr: text(output.stderr),
            });
        }
        fs::write(&file, serde_json::to_vec(&known)?)?;
        Ok(known)
    }

    /// A chart as an archive; None if Helm cannot pack it.
    pub fn package(&self, chart: &Path) -> anyhow::Result<Option<PathBuf>> {
        let folder = self.packed.join(self.key(chart, &[])?);
        let packed = || {
            fs::read_dir(&folder)
                .ok()?
                .flatten()
                .map(|entry| entry.path())
                .next()
        };
        if packed().is_none() {
            let folder = folder
                .to_str()
                .context("the scratch folder has a plain name")?;
            let output = self.run(
                chart,
                &["package".into(), ".".into(), "-d".into(), folder.to_owned()],
            )?;
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr);
                println!("{} cannot be packed: {}", chart.display(), message.trim());
            }
        }
        Ok(packed())
    }

    /// A key for the chart's content, Helm's version and its arguments.
    fn key(&self, chart: &Path, arguments: &[String]) -> anyhow::Result<String> {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(self.version.as_bytes());
        arguments
            .iter()
            .for_each(|argument| add(argument.as_bytes()));
        for (name, content) in read_folder(chart)?.0 {
            add(name.as_bytes());
            add(&content);
        }
        Ok(hash.finalize()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

pub(super) fn arguments(case: &Case, flags: &Flags) -> Vec<String> {
    let command: &[&str] = if flags.lint {
        &["lint", "."]
    } else {
        &["template", "release-name", "."]
    };
    let mut arguments: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    arguments.extend(["--namespace".to_owned(), flags.namespace.clone()]);
    arguments.extend(
        case.values
            .iter()
            .flat_map(|file| ["-f".to_owned(), file.to_string_lossy().into_owned()]),
    );
    arguments.extend(
        flags
            .set
            .iter()
            .flat_map(|line| ["--set".to_owned(), line.clone()]),
    );
    arguments.extend(
        flags
            .kube_version
            .iter()
            .flat_map(|version| ["--kube-version".to_owned(), version.clone()]),
    );
    arguments.extend(
        flags
            .api_versions
            .iter()
            .flat_map(|version| ["--api-versions".to_owned(), version.clone()]),
    );
    let switches = [
        (flags.include_crds, "--include-crds"),
        (flags.is_upgrade, "--is-upgrade"),
    ];
    arguments.extend(
        switches
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, flag)| (*flag).to_owned()),
    );
    arguments
}
