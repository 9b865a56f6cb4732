//! A chart: metadata, values, templates and subcharts, read from the files of a folder or an
//! archive.
//!
//! Main type: [`Chart`], created by [`Chart::from_folder`] and [`Chart::from_archive`].

mod archive;
mod decode;
mod folder;
mod ignore;
mod load;
mod metadata;

pub(super) use decode::Decoder;
pub(super) use load::floats;
pub use load::{merge_maps, parse_values};
pub use metadata::{Dependency, Lock, Maintainer, Metadata};

use crate::helm::{HelmError, Limits};
use crate::{MemoryFiles, SourceFiles};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A file of a chart. Copies share the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path inside its chart.
    pub name: String,
    pub data: Arc<[u8]>,
}

/// A chart and the charts in its `charts/` folder, sorted by the name of their folder or archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    pub metadata: Metadata,
    /// Chart.lock or requirements.lock.
    pub lock: Option<Lock>,
    pub templates: Vec<File>,
    /// The default values; numbers are floats, as Helm reads them.
    pub values: Arc<Map<String, Value>>,
    pub schema: Option<Arc<[u8]>>,
    /// All other files, crds/ included.
    pub files: Vec<File>,
    pub dependencies: Vec<Chart>,
}

/// A chart and the warnings that Helm would print to standard error about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub chart: Chart,
    pub warnings: Vec<String>,
}

/// What remains of the limits of one chart and its subcharts.
struct Meter {
    bytes: u64,
    files: usize,
}

impl Meter {
    fn new(limits: &Limits) -> Self {
        Self {
            bytes: limits.bytes,
            files: limits.files,
        }
    }

    fn file(&mut self, limits: &Limits) -> Result<(), HelmError> {
        self.files = self
            .files
            .checked_sub(1)
            .ok_or_else(|| HelmError::over("the number of files of the chart", limits.files))?;
        Ok(())
    }

    fn data(&mut self, bytes: u64, limits: &Limits) -> Result<(), HelmError> {
        let too_large = || {
            HelmError::chart(format!(
                "decompressed chart is larger than the maximum size {}",
                limits.bytes
            ))
        };
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

/// Strips the byte order mark that some editors put before UTF-8.
fn without_mark(data: &[u8]) -> &[u8] {
    data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data)
}

/// The files of a chart archive as a folder, without the top-level folder.
pub fn archive_files(bytes: &[u8], limits: &Limits) -> Result<MemoryFiles, HelmError> {
    let files = archive::files(bytes, limits, &mut Meter::new(limits))?;
    Ok(MemoryFiles(
        files
            .into_iter()
            .map(|file| (file.name, file.data.to_vec()))
            .collect(),
    ))
}

impl Chart {
    /// Loads a folder, honouring its `.helmignore`. Links are followed if the source allows it.
    pub fn from_folder(
        files: &dyn SourceFiles,
        path: &str,
        limits: &Limits,
    ) -> Result<Loaded, HelmError> {
        let mut meter = Meter::new(limits);
        let (files, links) = folder::files(files, path, limits, &mut meter)?;
        let mut loaded = load::chart(files, limits, meter)?;
        loaded.warnings.splice(0..0, links);
        Ok(loaded)
    }

    /// Loads the folder that an archive was unpacked to, as [`Chart::from_archive`] loads the
    /// archive: a `.helmignore` in it has no effect.
    pub fn from_unpacked(files: &dyn SourceFiles, limits: &Limits) -> Result<Loaded, HelmError> {
        let mut meter = Meter::new(limits);
        let files = folder::all_files(files, limits, &mut meter)?;
        load::chart(files, limits, meter)
    }

    /// Loads the bytes of a `.tgz`.
    pub fn from_archive(bytes: &[u8], limits: &Limits) -> Result<Loaded, HelmError> {
        let mut meter = Meter::new(limits);
        let files = archive::files(bytes, limits, &mut meter)?;
        load::chart(files, limits, meter)
    }

    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// A library chart: it renders nothing, its templates are included by others.
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }

    /// The manifests in `crds/` of this chart and its subcharts, with the path that Helm prints as
    /// their source.
    pub fn crds(&self) -> Vec<(String, &File)> {
        let mut found = Vec::new();
        self.collect_crds("", &mut found);
        found
    }

    fn collect_crds<'a>(&'a self, parent: &str, found: &mut Vec<(String, &'a File)>) {
        let path = if parent.is_empty() {
            self.name().to_owned()
        } else {
            format!("{parent}/charts/{}", self.name())
        };
        let manifest = |name: &str| {
            name.rsplit_once('.').is_some_and(|(_, ext)| {
                ["yaml", "yml", "json"]
                    .iter()
                    .any(|e| ext.eq_ignore_ascii_case(e))
            })
        };
        let crds = self
            .files
            .iter()
            .filter(|f| f.name.starts_with("crds/") && manifest(&f.name));
        found.extend(crds.map(|f| (format!("{path}/{}", f.name), f)));
        self.dependencies
            .iter()
            .for_each(|dependency| dependency.collect_crds(&path, found));
    }
}
