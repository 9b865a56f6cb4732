//! The files of a chart folder, in the order in which Helm walks it.
//!
//! Main function: [`files`].

use super::ignore::Rules;
use super::{File, Meter, without_mark};
use crate::files::join;
use crate::helm::{HelmError, Limits, log};
use crate::{FileKind, SourceFiles};
use tiphys_gocompat::text::quote;

/// The files, and warnings about links among them.
pub(super) fn files(
    source: &dyn SourceFiles,
    top: &str,
    limits: &Limits,
    meter: &mut Meter,
) -> Result<(Vec<File>, Vec<String>), HelmError> {
    let rules = source.read(&join(top, ".helmignore"))?.unwrap_or_default();
    let rules =
        Rules::parse(&String::from_utf8_lossy(without_mark(&rules))).map_err(HelmError::Chart)?;
    let mut walk = Walk::new(source, top, rules, limits, meter);
    walk.link(top);
    walk.folder("", 0)?;
    Ok((walk.files, walk.links))
}

/// All files, whatever `.helmignore` says.
pub(super) fn all_files(
    source: &dyn SourceFiles,
    limits: &Limits,
    meter: &mut Meter,
) -> Result<Vec<File>, HelmError> {
    let mut walk = Walk::new(source, "", Rules::none(), limits, meter);
    walk.folder("", 0)?;
    Ok(walk.files)
}

struct Walk<'a> {
    source: &'a dyn SourceFiles,
    top: &'a str,
    rules: Rules,
    limits: &'a Limits,
    meter: &'a mut Meter,
    files: Vec<File>,
    links: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(
        source: &'a dyn SourceFiles,
        top: &'a str,
        rules: Rules,
        limits: &'a Limits,
        meter: &'a mut Meter,
    ) -> Self {
        Self {
            source,
            top,
            rules,
            limits,
            meter,
            files: Vec::new(),
            links: Vec::new(),
        }
    }

    fn folder(&mut self, path: &str, depth: usize) -> Result<(), HelmError> {
        if depth > self.limits.depth {
            return Err(HelmError::over(
                format!("the folder depth at {}", quote(path)),
                self.limits.depth,
            ));
        }
        let full = if path.is_empty() {
            self.top.to_owned()
        } else {
            join(self.top, path)
        };
        for entry in self.source.list(&full)?.unwrap_or_default() {
            let (path, full) = (join(path, &entry.name), join(&full, &entry.name));
            self.meter.file(self.limits)?;
            let kind = match entry.kind {
                FileKind::Symlink => {
                    self.link(&full);
                    self.source.kind(&full)?
                }
                kind => Some(kind),
            };
            match kind {
                Some(FileKind::Dir) if self.rules.ignore(&path, true) => {}
                Some(FileKind::Dir) => self.folder(&path, depth + 1)?,
                kind if kind.is_some() && self.rules.ignore(&path, false) => {}
                Some(FileKind::File { size }) => self.file(&path, &full, size)?,
                None => {
                    return Err(HelmError::chart(format!(
                        "error evaluating symlink {full}: no such file or directory"
                    )));
                }
                Some(_) => {
                    return Err(HelmError::chart(format!(
                        "cannot load irregular file {full} as it has file mode type bits set"
                    )));
                }
            }
        }
        Ok(())
    }

    fn link(&mut self, full: &str) {
        let told = |(path, to): (String, String)| {
            format!(
                "{} path={} resolved={}",
                log::LINKED,
                log::text(&path),
                log::text(&to)
            )
        };
        self.links.extend(self.source.link(full).map(told));
    }

    fn file(&mut self, path: &str, full: &str, size: u64) -> Result<(), HelmError> {
        if size > self.limits.file_bytes {
            let name = quote(path.rsplit('/').next().unwrap_or(path));
            return Err(HelmError::chart(format!(
                "chart file {name} is larger than the maximum file size {}",
                self.limits.file_bytes
            )));
        }
        let data = self.source.read_found(full, size)?.unwrap_or_default();
        self.meter.data(data.len() as u64, self.limits)?;
        self.files.push(File {
            name: path.to_owned(),
            data: without_mark(&data).into(),
        });
        Ok(())
    }
}
