//! Charts that were already parsed by other renders, and what names one: all that it was made from.
//!
//! Main type: [`ReadyCharts`], for renders in this process.

use super::{RENDERER, Renderer, digest, dynamic};
use crate::{
    git::GitFiles,
    isolation::{TIME_HINT, chance},
    traced::{Files, Key},
};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_gocompat::sprig;
use tiphys_render::{
    Charts, SourceFiles, SourceRef, SourceSet,
    helm::{Deadline, HelmError, Limits, ParsedChart, chart::Chart, dependencies},
};

/// Names the chart of a folder in `files`, by all that it is made from except files outside of the
/// folder.
pub(super) fn key(what: &str, folder: &str, files: &Files, limits: &Limits) -> Key {
    // With whose access the files were downloaded that Git LFS pointers stand for.
    let lfs: Vec<_> = files.all().map(GitFiles::lfs_access).collect();
    digest(&[
        what.as_bytes(),
        RENDERER.as_bytes(),
        format!("{:?} {limits:?} {lfs:?}", files.own.look(folder)).as_bytes(),
    ])
}

/// The files that a chart with its dependencies is made from, with records of their own: those of a
/// chart are recorded separately from other files that the render reads.
pub(super) fn with_dependencies(all: &Files, folder: &str) -> Files {
    let of_charts = |(needed, files): (&SourceRef, &GitFiles)| {
        matches!(needed, SourceRef::Chart { .. }).then(|| (needed.clone(), files.beside(None)))
    };
    Files {
        own: all.own.beside(Some(folder)),
        refs: BTreeMap::new(),
        fetched: all.fetched.iter().filter_map(of_charts).collect(),
    }
}

/// What the key of such a chart begins with. What was fetched is part of it, as the charts in it
/// are read as a whole.
pub(super) fn what_is_complete(files: &Files) -> String {
    let roots = files
        .fetched
        .iter()
        .map(|(needed, files)| (needed, files.look("")));
    format!("complete chart {:?}", roots.collect::<Vec<_>>())
}

/// Adds what was recorded of a chart in a folder of these files.
pub(super) fn note_chart(ours: &GitFiles, folder: &str, alone: &Files) {
    // What is in the folder was not recorded one by one.
    ours.look(folder);
    ours.note(alone.own.noted());
}

/// Adds what was recorded of these files to those of the render.
pub(super) fn note(all: &Files, read: &Files) {
    all.own.note(read.own.noted());
    for (needed, read) in &read.fetched {
        if let Some(ours) = all.fetched.get(needed) {
            ours.note(read.noted());
        }
    }
}

/// Provides charts that were already parsed by other renders.
pub(super) struct ReadyCharts<'a> {
    pub renderer: &'a Renderer,
    pub files: &'a Files,
    pub fresh: bool,
    pub limit: Duration,
    pub begun: Instant,
}

impl ReadyCharts<'_> {
    /// Which of our files these are.
    fn ours(&self, files: &dyn SourceFiles) -> Option<&GitFiles> {
        let is_it = |ours: &&GitFiles| std::ptr::addr_eq(*ours, files);
        self.files.all().find(is_it)
    }

    /// Loads a chart, or returns the loaded one.
    fn loaded(
        &self,
        key: Key,
        files: &Files,
        load: impl FnOnce() -> Result<Chart, HelmError>,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let load = || Ok::<_, HelmError>(Arc::new(ParsedChart::new(load()?)));
        let (_, chart) = self.renderer.charts.get(key, files, self.fresh, load)?;
        Ok(chart)
    }
}

impl Charts for ReadyCharts<'_> {
    fn chart(
        &self,
        files: &dyn SourceFiles,
        folder: &str,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let load = |files: &dyn SourceFiles| Ok(Chart::from_folder(files, folder, limits)?.chart);
        let Some(ours) = self.ours(files) else {
            return Ok(Arc::new(ParsedChart::new(load(files)?)));
        };
        let alone = Files::new(ours.beside(Some(folder)));
        let key = key("chart", folder, &alone, limits);
        let chart = self.loaded(key, &alone, || load(&alone.own))?;
        note_chart(ours, folder, &alone);
        Ok(chart)
    }

    fn completed(
        &self,
        _sources: &SourceSet<'_>,
        folder: &str,
        chart: &ParsedChart,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let files = with_dependencies(self.files, folder);
        let complete = || {
            let (own, fetched) = (chart.chart().clone(), dynamic(&files.fetched));
            dependencies::complete(own, &files.own, folder, &fetched, limits)
        };
        let key = key(&what_is_complete(&files), folder, &files, limits);
        let chart = self.loaded(key, &files, complete)?;
        note(self.files, &files);
        Ok(chart)
    }

    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        chance()
    }

    fn deadline(&self) -> Option<Deadline> {
        // Of the whole render, whoever asks: a source may have many charts.
        let (begun, limit) = (self.begun, self.limit);
        Some(Deadline {
            limit,
            hint: TIME_HINT,
            passed: Arc::new(move || begun.elapsed() > limit),
        })
    }
}
