//! A plain directory of manifests, walked with Argo CD's rules.

use crate::files::join;
use crate::jsonnet::{EvaluateJsonnet, JsonnetError, JsonnetFile};
use crate::manifest::{Failed, ManifestError, objects_of_jsonnet, objects_of_text};
use crate::{Budget, DirectoryOptions, FileKind, RenderError, Rendered, SourceFiles, SourceKind};
use tiphys_apimachinery::Object;
use tiphys_gocompat::glob::Glob;

/// A file that contains this text is not rendered.
const SKIP_MARKER: &[u8] = b"+argocd:skip-file-rendering";
/// Deepest folder below the Application's path.
const MAX_FOLDERS: usize = 100;

pub(crate) fn render(
    files: &dyn SourceFiles,
    path: &str,
    options: &DirectoryOptions,
    budget: &Budget,
    jsonnet: &dyn EvaluateJsonnet,
) -> Result<Rendered, RenderError> {
    let mut walk = Walk {
        files,
        path,
        options,
        budget,
        jsonnet,
        include: pattern(&options.include),
        exclude: pattern(&options.exclude),
        seen: 0,
        bytes: 0,
        rendered: Rendered {
            kind: SourceKind::Directory,
            ..Rendered::default()
        },
    };
    walk.folder(path, "", 0)?;
    Ok(walk.rendered)
}

/// `None`: no pattern set. An invalid pattern matches nothing, as in Argo CD.
fn pattern(text: &str) -> Option<Option<Glob>> {
    (!text.is_empty()).then(|| Glob::new(text, &[]).ok())
}

fn matches(pattern: Option<&Option<Glob>>, path: &str) -> Option<bool> {
    pattern.map(|glob| glob.as_ref().is_some_and(|g| g.matches(path)))
}

struct Walk<'a> {
    files: &'a dyn SourceFiles,
    /// The Application's folder.
    path: &'a str,
    options: &'a DirectoryOptions,
    budget: &'a Budget,
    jsonnet: &'a dyn EvaluateJsonnet,
    include: Option<Option<Glob>>,
    exclude: Option<Option<Glob>>,
    seen: usize,
    bytes: u64,
    rendered: Rendered,
}

impl Walk<'_> {
    /// `full` is the path in the source, `relative` the path below the Application's folder. Names
    /// are walked in byte order, as Go does.
    fn folder(&mut self, full: &str, relative: &str, depth: usize) -> Result<(), RenderError> {
        if depth > MAX_FOLDERS {
            return Err(RenderError::OverBudget {
                what: format!("the folder depth at {full:?}"),
                limit: MAX_FOLDERS as u64,
            });
        }
        for entry in self.files.list(full)?.unwrap_or_default() {
            self.seen += 1;
            if self.seen > self.budget.files {
                return Err(RenderError::OverBudget {
                    what: "the number of files".to_owned(),
                    limit: self.budget.files as u64,
                });
            }
            let (full, relative) = (join(full, &entry.name), join(relative, &entry.name));
            match entry.kind {
                FileKind::Dir if self.options.recurse => {
                    self.folder(&full, &relative, depth + 1)?
                }
                FileKind::Dir | FileKind::Other => {}
                FileKind::File { .. } | FileKind::Symlink => {
                    self.file(&full, &relative, &entry.name)?
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, full: &str, relative: &str, name: &str) -> Result<(), RenderError> {
        let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
        if !self.options.disable_extension_filter
            && !matches!(extension, "yaml" | "yml" | "json" | "jsonnet")
        {
            return Ok(());
        }
        // Links are checked before the globs: one that leaves the source is an error even if it is
        // excluded.
        match self.files.kind(full)? {
            Some(FileKind::File { .. }) => {}
            None => {
                return self.skipped(format!("destination of symlink \"{relative}\" is missing"));
            }
            Some(_) => {
                return self.skipped(format!(
                    "ignoring symlink at \"{relative}\" to non-regular file"
                ));
            }
        }
        if matches(self.exclude.as_ref(), relative) == Some(true)
            || matches(self.include.as_ref(), relative) == Some(false)
        {
            return Ok(());
        }
        let Some(content) = self.files.read(full)? else {
            return self.skipped(format!("\"{relative}\" is gone"));
        };
        if content.windows(SKIP_MARKER.len()).any(|w| w == SKIP_MARKER) {
            return Ok(());
        }
        if extension == "jsonnet" {
            if self.options.skip_jsonnet {
                return Ok(());
            }
            return self.program(full, relative, &content);
        }
        self.bytes += content.len() as u64;
        let limit = self.budget.combined_bytes;
        if limit > 0 && self.bytes > limit {
            return Err(RenderError::OverBudget {
                what: "exceeded max combined manifest file size: the directory".to_owned(),
                limit,
            });
        }
        self.found(objects_of_text(relative, &content, self.budget))
    }

    /// A Jsonnet file. Its size does not count among that of the manifests, as in Argo CD.
    fn program(&mut self, full: &str, relative: &str, content: &[u8]) -> Result<(), RenderError> {
        let file = JsonnetFile {
            folder: self.path,
            path: full,
            content,
            options: &self.options.jsonnet,
            limits: &self.budget.jsonnet,
        };
        match self.jsonnet.evaluate(self.files, file) {
            Ok(value) => self.found(objects_of_jsonnet(relative, value)),
            Err(JsonnetError::Render(error)) => Err(error),
            Err(JsonnetError::Program(message)) => {
                self.rendered.errors.push(ManifestError {
                    failed: Failed::Evaluate,
                    file: relative.to_owned(),
                    line: 0,
                    message,
                });
                Ok(())
            }
        }
    }

    fn found(
        &mut self,
        (objects, errors): (Vec<Object>, Vec<ManifestError>),
    ) -> Result<(), RenderError> {
        self.rendered.objects.extend(objects);
        self.rendered.errors.extend(errors);
        if self.rendered.objects.len() > self.budget.objects {
            return Err(RenderError::OverBudget {
                what: "the number of objects".to_owned(),
                limit: self.budget.objects as u64,
            });
        }
        Ok(())
    }

    fn skipped(&mut self, why: String) -> Result<(), RenderError> {
        self.rendered.warnings.push(why);
        Ok(())
    }
}
