//! What `-w` prints: a row, a name or a document for each change. Main types: [`Table`], [`Names`]
//! and [`Documents`] of Applications, [`Resources`] of one Application.

use super::{
    follow::Viewer,
    list,
    states::{ResourceState, distinct, waiting_header},
};
use crate::{
    client::Failure,
    output::{self, summary, table, time},
};
use jiff::Timestamp;
use std::collections::BTreeMap;
use tiphys_api::{Application, constants::API_VERSION};

/// The rows of `app list`. What one does not see in them is no change.
pub struct Table {
    is_wide: bool,
    columns: table::Growing,
    /// By the name of the Application.
    rows: BTreeMap<String, Vec<String>>,
}

impl Table {
    pub fn new(is_wide: bool) -> Self {
        Self {
            is_wide,
            columns: table::Growing::default(),
            rows: BTreeMap::new(),
        }
    }

    /// The row of an Application; `None`: it is there already.
    fn row(&mut self, app: &Application) -> Option<Vec<String>> {
        let row = list::row(app, self.is_wide);
        let known = self.rows.insert(summary::qualified_name(app), row.clone());
        (known.as_ref() != Some(&row)).then_some(row)
    }
}

impl Viewer for Table {
    fn first(&mut self, apps: &[Application]) -> Result<bool, Failure> {
        let header = list::header(self.is_wide);
        let mut rows: Vec<Vec<String>> = vec![header.into_iter().map(str::to_owned).collect()];
        rows.extend(apps.iter().filter_map(|app| self.row(app)));
        Ok(output::try_print(&self.columns.rows(&rows)))
    }

    fn is(&mut self, app: &Application) -> Result<bool, Failure> {
        let Some(row) = self.row(app) else {
            return Ok(true);
        };
        Ok(output::try_print(&self.columns.rows(&[row])))
    }

    fn gone(&mut self, last: &Application) -> Result<bool, Failure> {
        self.rows.remove(&summary::qualified_name(last));
        let row = list::row_of_deleted(last, self.is_wide);
        Ok(output::try_print(&self.columns.rows(&[row])))
    }
}

/// The name of each Application that changes, for scripts that look at it themselves.
pub struct Names;

impl Viewer for Names {
    fn is(&mut self, app: &Application) -> Result<bool, Failure> {
        let name = summary::qualified_name(app);
        Ok(output::try_print(&format!("{name}\n")))
    }

    fn gone(&mut self, last: &Application) -> Result<bool, Failure> {
        self.is(last)
    }
}

/// A document for each state, in the format of `-o`.
pub struct Documents<'a> {
    format: &'a str,
    is_first: bool,
}

impl<'a> Documents<'a> {
    pub fn new(format: &'a str) -> Self {
        Self {
            format,
            is_first: true,
        }
    }
}

impl Viewer for Documents<'_> {
    fn is(&mut self, app: &Application) -> Result<bool, Failure> {
        // Items of a list do not say what they are; a document by itself must.
        let mut app = app.clone();
        (app.api_version, app.kind) = (API_VERSION.to_owned(), "Application".to_owned());
        let text = output::document(&app, self.format)?;
        let is_first = std::mem::take(&mut self.is_first);
        let mark = match self.format {
            "yaml" if !is_first => "---\n",
            _ => "",
        };
        Ok(output::try_print(&format!("{mark}{text}")))
    }

    /// Its last document says that it is one: without finalizers nothing else would.
    fn gone(&mut self, last: &Application) -> Result<bool, Failure> {
        let mut last = last.clone();
        if last.metadata.deletion_timestamp.is_none() {
            last.metadata.deletion_timestamp = Some(Timestamp::now().into());
        }
        self.is(&last)
    }
}

/// Below what `app get` prints: rows of the Application and of its resources that change, as `app
/// wait` has them.
#[derive(Default)]
pub struct Resources {
    seen: BTreeMap<String, ResourceState>,
    has_header: bool,
}

/// The states of an Application and of its resources.
fn present(app: &Application) -> Vec<ResourceState> {
    let operation = app.status.operation_state.as_ref();
    let message = operation.map_or("", |state| match state.message.as_str() {
        "" => &state.phase,
        message => message,
    });
    let own = ResourceState {
        group: "argoproj.io".to_owned(),
        kind: "Application".to_owned(),
        namespace: app.metadata.namespace.clone(),
        name: app.metadata.name.clone(),
        status: app.status.sync.status.clone(),
        health: app.status.health.status.clone(),
        message: message.to_owned(),
        ..ResourceState::default()
    };
    std::iter::once(own).chain(distinct(app, &[])).collect()
}

impl Resources {
    /// The rows that are new, and the header before the first of them.
    fn changes(&mut self, app: &Application, now: &str) -> String {
        let mut rows = String::new();
        let states = present(app);
        for state in &states {
            if self.seen.get(&state.key()) != Some(state) {
                rows += &state.waiting_row(now);
            }
        }
        self.remember(states);
        if !rows.is_empty() && !std::mem::replace(&mut self.has_header, true) {
            rows.insert_str(0, &waiting_header());
        }
        rows
    }

    fn remember(&mut self, states: Vec<ResourceState>) {
        self.seen = states
            .into_iter()
            .map(|state| (state.key(), state))
            .collect();
    }
}

impl Viewer for Resources {
    /// It is above.
    fn first(&mut self, apps: &[Application]) -> Result<bool, Failure> {
        self.remember(apps.iter().flat_map(present).collect());
        Ok(true)
    }

    fn is(&mut self, app: &Application) -> Result<bool, Failure> {
        let rows = self.changes(app, &time::stamp(Timestamp::now()));
        // Nothing to print does not show whether somebody reads.
        Ok(rows.is_empty() || output::try_print(&table::align(&rows, 5)))
    }

    fn gone(&mut self, last: &Application) -> Result<bool, Failure> {
        let name = summary::qualified_name(last);
        Ok(output::try_print(&format!(
            "Application '{name}' deleted\n"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(value: serde_json::Value) -> Application {
        serde_json::from_value(value).expect("an Application")
    }

    #[test]
    fn only_what_one_sees_is_a_new_row() {
        let of = |status: &str, version: &str| {
            app(json!({
                "metadata": {"name": "web", "resourceVersion": version},
                "status": {"sync": {"status": status}},
            }))
        };
        let mut table = Table::new(false);
        assert!(table.row(&of("OutOfSync", "1")).is_some());
        assert!(table.row(&of("OutOfSync", "2")).is_none());
        assert!(table.row(&of("Synced", "3")).is_some());
        assert!(table.row(&of("OutOfSync", "4")).is_some());
    }

    #[test]
    fn resources_that_change() {
        let of = |status: &str, phase: &str, health: &str| {
            app(json!({
                "metadata": {"name": "web", "namespace": "argocd"},
                "status": {
                    "sync": {"status": status}, "health": {"status": health},
                    "operationState": {"phase": phase},
                    "resources": [
                        {"kind": "Service", "namespace": "n", "name": "a", "status": "Synced"},
                        {"kind": "ConfigMap", "namespace": "n", "name": "b", "status": status},
                    ],
                },
            }))
        };
        let mut view = Resources::default();
        let before = of("OutOfSync", "Running", "Missing");
        assert!(
            view.first(std::slice::from_ref(&before))
                .expect("no failure")
        );
        assert_eq!(view.changes(&before, "now"), "");
        let after = of("Synced", "Succeeded", "Healthy");
        let rows = view.changes(&after, "now");
        let words: Vec<Vec<&str>> = rows
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words.len(), 3, "{rows}");
        assert_eq!(words[0][0], "TIMESTAMP");
        let own = [
            "now",
            "argoproj.io",
            "Application",
            "argocd",
            "web",
            "Synced",
            "Healthy",
            "Succeeded",
        ];
        assert_eq!(words[1], own);
        assert_eq!(words[2], ["now", "ConfigMap", "n", "b", "Synced"]);
        let rows = view.changes(&before, "then");
        assert!(!rows.contains("TIMESTAMP"), "{rows}");
    }
}
