//! `app history`.

use super::AppRef;
use crate::{
    client::{ConnectArgs, Failure},
    output::{
        self,
        sort::{self, Field, SortBy},
        table, time,
    },
};
use tiphys_api::{source::ApplicationSource, status::RevisionHistory};

#[derive(clap::Args)]
pub struct History {
    /// The application
    app: String,
    /// Only show application deployment history in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Output format. One of: wide|id
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    #[command(flatten)]
    sort_by: SortBy,
}

const FIELDS: &[Field<RevisionHistory>] = &[
    ("id", |entry| entry.id.into()),
    ("date", |entry| sort::created(entry.deployed_at.as_ref())),
    ("created", |entry| sort::created(entry.deployed_at.as_ref())),
    ("age", |entry| sort::age(entry.deployed_at.as_ref())),
    ("revision", |entry| {
        first(entry).target_revision.as_str().into()
    }),
    ("source", |entry| first(entry).repo_url.as_str().into()),
];

/// The only source, or the first of several.
fn first(entry: &RevisionHistory) -> &ApplicationSource {
    entry.sources.first().unwrap_or(&entry.source)
}

impl History {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        let app = super::get(
            &client,
            &AppRef::new(&self.app, self.app_namespace.as_deref()),
            None,
        )
        .await?;
        let mut history = app.status.history.clone();
        self.sort_by.sort(&mut history, FIELDS)?;
        output::print(&match self.output.as_str() {
            "id" => history.iter().map(|h| format!("{}\n", h.id)).collect(),
            _ => rows(&history),
        });
        Ok(())
    }
}

/// The target revision and, shortened, the resolved one.
fn revision(source: &ApplicationSource, revision: Option<&str>) -> String {
    match revision.and_then(|r| r.get(..7)) {
        Some(short) => format!("{} ({short})", source.target_revision),
        None => source.target_revision.clone(),
    }
}

/// One table for each repository.
fn rows(history: &[RevisionHistory]) -> String {
    let mut tables: Vec<(&str, String)> = Vec::new();
    for entry in history {
        let several = !entry.sources.is_empty();
        let sources = if several {
            entry.sources.as_slice()
        } else {
            std::slice::from_ref(&entry.source)
        };
        let known = entry.revisions.len() == entry.sources.len();
        for (n, source) in sources.iter().enumerate() {
            let was = match several {
                true => entry.revisions.get(n).filter(|_| known).map(String::as_str),
                false => Some(entry.revision.as_str()),
            };
            let row = format!(
                "{}\t{}\t{}\n",
                entry.id,
                time::text(entry.deployed_at.as_ref()),
                revision(source, was)
            );
            match tables.iter_mut().find(|(url, _)| *url == source.repo_url) {
                Some((_, rows)) => rows.push_str(&row),
                None => tables.push((&source.repo_url, row)),
            }
        }
    }
    let tables: Vec<String> = tables
        .iter()
        .map(|(url, rows)| format!("SOURCE\t{url}\nID\tDATE\tREVISION\n{rows}"))
        .collect();
    table::align(&tables.join("\n"), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_for_each_repository() {
        let history: Vec<RevisionHistory> = serde_json::from_value(json!([
            {"id": 0, "revision": "0123456789", "source": {"repoURL": "https://example.com/a", "targetRevision": "HEAD"}},
            {"id": 1, "sources": [{"repoURL": "https://example.com/a", "targetRevision": "main"}, {"repoURL": "b", "targetRevision": "v1"}],
             "revisions": ["abcdefghij", "x"]},
        ]))
        .expect("a history");
        let expected = "\
SOURCE  https://example.com/a
ID      DATE   REVISION
0       <nil>  HEAD (0123456)
1       <nil>  main (abcdefg)

SOURCE  b
ID      DATE   REVISION
1       <nil>  v1
";
        assert_eq!(rows(&history), expected);
        assert_eq!(rows(&[]), "");
    }
}
