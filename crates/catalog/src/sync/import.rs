//! From an index to the charts in the store.

use crate::{
    CatalogError, Repository, Store,
    filter::Compiled,
    index::{Index, IndexFault, Note, Parsed, Section},
    repository::Form,
    store::StoredSection,
};
use jiff::Timestamp;
use std::{
    collections::HashSet,
    io::{Read, Seek},
};
use tiphys_repo::Seekable;

/// Sections, and versions of charts, that are stored in one transaction.
const SECTIONS: usize = 64;
const VERSIONS: usize = 2_000;

/// What an index became.
#[derive(Debug, Default)]
pub(super) struct Imported {
    /// Charts whose files are to be read.
    pub work: Vec<String>,
    pub charts: usize,
    pub changed: usize,
    pub removed: usize,
    pub skipped: i64,
}

/// `use_marks`: what is stored of unchanged charts is what would be stored now.
pub(super) fn run(
    store: &Store,
    repository: &Repository,
    content: &mut dyn Seekable,
    use_marks: bool,
) -> Result<Imported, CatalogError> {
    let unreadable = |fault: IndexFault| match fault {
        IndexFault::Content(reason) | IndexFault::Undivided(reason) => CatalogError::Index {
            url: super::shown(&repository.url),
            reason,
        },
        IndexFault::Unread(e) => CatalogError::Internal(format!("the index was lost: {e}")),
    };
    let mut import = Import {
        store,
        repository,
        filter: repository.filter.compile()?,
        use_marks,
        now: Timestamp::now().as_second(),
        kept: HashSet::new(),
        noted: HashSet::new(),
        usable: 0,
        waiting: Vec::new(),
        versions: 0,
        imported: Imported::default(),
    };
    let index = Index::read(&mut *content, repository.form).map_err(unreadable)?;
    let mut ended = import.sections(index);
    if let Err(Stopped::Unreadable(IndexFault::Undivided(reason))) = ended {
        tracing::debug!(reason, "an index is read as a whole");
        let index = Index::read_whole(content, repository.form).map_err(unreadable)?;
        import.begin_again();
        ended = import.sections(index);
    }
    ended.map_err(|stopped| match stopped {
        Stopped::Unreadable(fault) => unreadable(fault),
        Stopped::Failed(e) => e,
    })?;
    import.finish()
}

/// Why the sections were not imported.
enum Stopped {
    Unreadable(IndexFault),
    Failed(CatalogError),
}

impl From<CatalogError> for Stopped {
    fn from(e: CatalogError) -> Self {
        Self::Failed(e)
    }
}

impl From<IndexFault> for Stopped {
    fn from(fault: IndexFault) -> Self {
        Self::Unreadable(fault)
    }
}

struct Import<'a> {
    store: &'a Store,
    repository: &'a Repository,
    filter: Option<Compiled>,
    use_marks: bool,
    now: i64,
    /// Ids of the charts that stay.
    kept: HashSet<String>,
    /// Of those without a usable entry.
    noted: HashSet<String>,
    /// Charts of the index, whatever the filter says.
    usable: usize,
    /// What is stored next, and how many versions that has.
    waiting: Vec<StoredSection>,
    versions: usize,
    imported: Imported,
}

impl Import<'_> {
    fn begin_again(&mut self) {
        self.kept.clear();
        self.noted.clear();
        self.usable = 0;
        self.waiting.clear();
        self.versions = 0;
        self.imported = Imported::default();
    }

    fn sections(&mut self, index: Index<impl Read + Seek>) -> Result<(), Stopped> {
        let marks = self.store.marks(&self.repository.id)?;
        for section in index {
            let section = section?;
            let mark = marks.get(&section.key).filter(|_| self.use_marks);
            match mark.filter(|mark| mark.sha == section.sha) {
                Some(mark) => {
                    self.usable += 1;
                    self.imported.skipped += mark.skipped;
                    self.kept.insert(mark.chart_id.clone());
                    if !mark.files_done {
                        self.imported.work.push(mark.chart_id.clone());
                    }
                }
                None => {
                    let parsed = section.parse(self.repository)?;
                    self.section(&section, parsed)?;
                }
            }
        }
        Ok(self.flush()?)
    }

    fn section(&mut self, section: &Section, parsed: Parsed) -> Result<(), CatalogError> {
        let skipped = parsed.notes.iter().filter(|note| !note.is_shown).count();
        self.imported.skipped += i64::try_from(skipped).unwrap_or(i64::MAX);
        let Some(chart) = parsed.chart else {
            return self.note(section, parsed.notes);
        };
        if parsed.deprecated && self.repository.form == Form::Kubeapps {
            return Ok(());
        }
        self.usable += 1;
        if let Some(filter) = &self.filter
            && !filter.keeps(&chart)?
        {
            return Ok(());
        }
        if !self.kept.insert(chart.id.clone()) {
            self.imported.skipped += 1;
            let reason = format!("another key of the index has a chart {:?}, too", chart.name);
            let note = Note {
                version: String::new(),
                reason,
                is_shown: false,
            };
            return self.note(section, vec![note]);
        }
        self.imported.changed += 1;
        self.imported.work.push(chart.id.clone());
        self.put(StoredSection {
            chart: Some(chart),
            key: section.key.clone(),
            sha: section.sha.clone(),
            deprecated: parsed.deprecated,
            notes: parsed.notes,
        })
    }

    fn note(&mut self, section: &Section, notes: Vec<Note>) -> Result<(), CatalogError> {
        if notes.is_empty() {
            return Ok(());
        }
        let stored = StoredSection {
            chart: None,
            key: section.key.clone(),
            sha: section.sha.clone(),
            deprecated: false,
            notes,
        };
        self.noted.insert(stored.chart_id(&self.repository.id));
        self.put(stored)
    }

    fn put(&mut self, stored: StoredSection) -> Result<(), CatalogError> {
        let versions = stored.chart.as_ref().map(|chart| chart.versions.len());
        self.versions += versions.unwrap_or_default();
        self.waiting.push(stored);
        if self.waiting.len() < SECTIONS && self.versions < VERSIONS {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), CatalogError> {
        self.versions = 0;
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.store
            .put_sections(&self.repository.id, &waiting, self.now)
    }

    fn finish(mut self) -> Result<Imported, CatalogError> {
        // An index without any chart is more often a mistake than a decision.
        if self.usable > 0 {
            self.imported.removed =
                self.store
                    .remove_others(&self.repository.id, &self.kept, &self.noted)?;
        }
        self.imported.charts = self.kept.len();
        if self.imported.skipped > 0 {
            let (name, skipped) = (&self.repository.id.name, self.imported.skipped);
            tracing::warn!(
                repository = name,
                skipped,
                "entries of the index are skipped"
            );
        }
        Ok(self.imported)
    }
}
