//! `proj windows`: when the Applications of a project may be synced. Main type: [`WindowsCommand`].

use super::{Change, number};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{connect, list_document},
    output::{
        self, log,
        sort::{Field, SortBy},
        table,
    },
};
use jiff::Timestamp;
use serde::Serialize;
use tiphys_api::project::SyncWindow;
use tiphys_engine::sync::window::{self, Windows};
use tiphys_gocompat::{cron, duration};

const UTC: &str = "UTC";

#[derive(clap::Subcommand)]
pub enum WindowsCommand {
    /// List project sync windows
    List {
        /// The project
        project: String,
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Add a sync window to a project
    Add(Box<Add>),
    /// Update a project sync window
    Update(Box<Update>),
    /// Delete a sync window from a project. Requires ID which can be found by running "proj windows
    /// list PROJECT"
    Delete {
        #[command(flatten)]
        of: WindowArgs,
    },
    /// Enable manual sync for a sync window
    EnableManualSync {
        #[command(flatten)]
        of: WindowArgs,
    },
    /// Disable manual sync for a sync window
    DisableManualSync {
        #[command(flatten)]
        of: WindowArgs,
    },
    /// Enable sync overrun for a sync window: a sync that started when it was allowed may continue
    EnableSyncOverrun {
        #[command(flatten)]
        of: WindowArgs,
    },
    /// Disable sync overrun for a sync window
    DisableSyncOverrun {
        #[command(flatten)]
        of: WindowArgs,
    },
}

#[derive(clap::Args)]
pub struct WindowArgs {
    /// The project
    project: String,
    /// The window's number in the list
    id: String,
}

#[derive(clap::Args)]
pub struct Add {
    /// The project
    project: String,
    /// Sync window kind, either allow or deny
    #[arg(long, short, default_value = "", hide_default_value = true)]
    kind: String,
    #[command(flatten)]
    what: Settings,
    /// Allow manual syncs for both deny and allow windows
    #[arg(long)]
    manual_sync: bool,
    /// Allow syncs to continue: for deny windows, syncs that started before the window; for allow
    /// windows, syncs that started during the window
    #[arg(long)]
    sync_overrun: bool,
    /// Use AND operator for matching applications, namespaces and clusters instead of the default
    /// OR operator
    #[arg(long)]
    use_and_operator: bool,
}

#[derive(clap::Args)]
pub struct Update {
    #[command(flatten)]
    of: WindowArgs,
    #[command(flatten)]
    what: Settings,
}

/// What both describe. Empty lists and texts say nothing.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
struct Settings {
    /// Sync window schedule in cron format. (e.g. --schedule "0 22 * * *")
    #[arg(long, default_value = "", hide_default_value = true)]
    schedule: String,
    /// Sync window duration. (e.g. --duration 1h)
    #[arg(long, default_value = "", hide_default_value = true)]
    duration: String,
    /// Applications that the schedule will be applied to. Comma separated, wildcards supported
    /// (e.g. --applications prod-\*,website)
    #[arg(long, value_delimiter = ',')]
    applications: Vec<String>,
    /// Namespaces that the schedule will be applied to. Comma separated, wildcards supported (e.g.
    /// --namespaces default,\*-prod)
    #[arg(long, value_delimiter = ',')]
    namespaces: Vec<String>,
    /// Clusters that the schedule will be applied to. Comma separated, wildcards supported (e.g.
    /// --clusters prod,staging)
    #[arg(long, value_delimiter = ',')]
    clusters: Vec<String>,
    /// Time zone of the sync window. (e.g. --time-zone "America/New_York")
    #[arg(long, default_value = UTC)]
    time_zone: String,
    /// Sync window description
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
}

impl WindowsCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::List {
                project,
                output,
                sort_by,
            } => {
                let project = super::get(&connect(args).await?, project).await?;
                let mut windows = numbered(project.spec.sync_windows, Timestamp::now());
                sort_by.sort(&mut windows, FIELDS)?;
                output::print(&list(&windows, &output)?);
                Ok(())
            }
            Self::Add(add) => {
                let project = add.project.clone();
                super::change(args, project, |p| add.apply(&mut p.spec.sync_windows)).await
            }
            Self::Update(update) => {
                let (project, id) = update.of.read()?;
                let what = update.what;
                super::change(args, project, |p| what.update(&mut p.spec.sync_windows, id)).await
            }
            Self::Delete { of } => {
                let (project, id) = of.read()?;
                super::change(args, project, |p| delete(&mut p.spec.sync_windows, id)).await
            }
            Self::EnableManualSync { of } => toggle(args, of, |w| w.manual_sync = true).await,
            Self::DisableManualSync { of } => toggle(args, of, |w| w.manual_sync = false).await,
            Self::EnableSyncOverrun { of } => toggle(args, of, |w| w.sync_overrun = true).await,
            Self::DisableSyncOverrun { of } => toggle(args, of, |w| w.sync_overrun = false).await,
        }
    }
}

impl WindowArgs {
    fn read(self) -> Result<(String, usize), Failure> {
        Ok((self.project, number(&self.id)?))
    }
}

fn not_found(id: usize) -> Failure {
    Failure::error(format!("window with id '{id}' not found"))
}

async fn toggle(
    args: &ConnectArgs,
    of: WindowArgs,
    set: impl FnOnce(&mut SyncWindow),
) -> Result<(), Failure> {
    let (project, id) = of.read()?;
    super::change(args, project, |p| {
        set(p
            .spec
            .sync_windows
            .get_mut(id)
            .ok_or_else(|| not_found(id))?);
        Ok(Change::silent())
    })
    .await
}

fn delete(windows: &mut Vec<SyncWindow>, id: usize) -> Result<Change, Failure> {
    if id >= windows.len() {
        return Err(not_found(id));
    }
    windows.remove(id);
    Ok(Change::Confirm {
        question: "Are you sure you want to delete sync window? [y/n]".to_owned(),
        done: String::new(),
        cancelled: "The command to delete the sync window was cancelled\n".to_owned(),
    })
}

impl Add {
    fn apply(&self, windows: &mut Vec<SyncWindow>) -> Result<Change, Failure> {
        let what = self.what.clone();
        if self.kind.is_empty() || what.schedule.is_empty() || what.duration.is_empty() {
            return Err(Failure::error(
                "cannot create window: require kind, schedule, duration and one or more of \
                 applications, namespaces and clusters",
            ));
        }
        let new = SyncWindow {
            kind: self.kind.clone(),
            schedule: what.schedule,
            duration: what.duration,
            applications: what.applications,
            namespaces: what.namespaces,
            clusters: what.clusters,
            manual_sync: self.manual_sync,
            time_zone: known_zone(what.time_zone),
            and_operator: self.use_and_operator,
            description: what.description,
            sync_overrun: self.sync_overrun,
        };
        window::check(&new).map_err(Failure::error)?;
        windows.push(new);
        Ok(Change::silent())
    }
}

/// UTC for a zone that is not known, with a warning.
fn known_zone(zone: String) -> String {
    if zone.is_empty() {
        return UTC.to_owned();
    }
    if cron::time_zone(&zone).is_none() {
        log::warn(&format!(
            "Invalid time zone {zone} specified. Using UTC as default time zone"
        ));
        return UTC.to_owned();
    }
    zone
}

impl Settings {
    /// A window that is not there is no error.
    fn update(self, windows: &mut [SyncWindow], id: usize) -> Result<Change, Failure> {
        let Some(window) = windows.get_mut(id) else {
            return Ok(Change::silent());
        };
        let zone = self.time_zone.clone();
        if (Self {
            time_zone: String::new(),
            ..self.clone()
        }) == Self::default()
        {
            return Err(Failure::error(
                "cannot update: require one or more of schedule, duration, application, \
                 namespace, cluster or description",
            ));
        }
        for (field, value) in [
            (&mut window.schedule, self.schedule),
            (&mut window.duration, self.duration),
            (&mut window.description, self.description),
        ] {
            if !value.is_empty() {
                *field = value;
            }
        }
        for (field, value) in [
            (&mut window.applications, self.applications),
            (&mut window.namespaces, self.namespaces),
            (&mut window.clusters, self.clusters),
        ] {
            if !value.is_empty() {
                *field = value;
            }
        }
        window.time_zone = if zone.is_empty() {
            UTC.to_owned()
        } else {
            zone
        };
        Ok(Change::silent())
    }
}

/// A tab ends every column, the last one too.
const HEADER: &str = "ID\tSTATUS\tKIND\tSCHEDULE\tDURATION\tAPPLICATIONS\tNAMESPACES\tCLUSTERS\t\
                      MANUALSYNC\tSYNCOVERRUN\tTIMEZONE\tUSEANDOPERATOR\t\n";

/// A window with its number in the project, which other verbs know it by.
#[derive(Serialize)]
struct Numbered {
    id: usize,
    is_open: bool,
    #[serde(flatten)]
    window: SyncWindow,
}

fn numbered(windows: Vec<SyncWindow>, now: Timestamp) -> Vec<Numbered> {
    let numbered = |(id, window)| {
        let is_open = !Windows(vec![&window]).readable(now).is_empty();
        Numbered {
            id,
            is_open,
            window,
        }
    };
    windows.into_iter().enumerate().map(numbered).collect()
}

fn status(is_open: bool) -> &'static str {
    if is_open { "Active" } else { "Inactive" }
}

const FIELDS: &[Field<Numbered>] = &[
    ("id", |n| n.id.into()),
    ("status", |n| status(n.is_open).into()),
    ("kind", |n| n.window.kind.as_str().into()),
    ("schedule", |n| n.window.schedule.as_str().into()),
    ("duration", |n| {
        let duration = duration::parse(&n.window.duration);
        duration.ok().into()
    }),
    ("applications", |n| n.window.applications.join(",").into()),
    ("namespaces", |n| n.window.namespaces.join(",").into()),
    ("clusters", |n| n.window.clusters.join(",").into()),
    ("manualsync", |n| n.window.manual_sync.into()),
    ("syncoverrun", |n| n.window.sync_overrun.into()),
    ("timezone", |n| n.window.time_zone.as_str().into()),
    ("useandoperator", |n| n.window.and_operator.into()),
];

fn list(windows: &[Numbered], format: &str) -> Result<String, Failure> {
    match format {
        "yaml" | "json" => {
            let windows: Vec<&SyncWindow> = windows.iter().map(|n| &n.window).collect();
            return list_document(&windows, format);
        }
        "wide" | "" => {}
        other => return Err(output::unknown_format(other)),
    }
    let patterns = |list: &[String]| match list {
        [] => "-".to_owned(),
        _ => list.join(","),
    };
    let switch = |on| if on { "Enabled" } else { "Disabled" };
    let mut text = HEADER.to_owned();
    for Numbered {
        id,
        is_open,
        window: w,
    } in windows
    {
        let cells = [
            id.to_string(),
            status(*is_open).to_owned(),
            w.kind.clone(),
            w.schedule.clone(),
            w.duration.clone(),
            patterns(&w.applications),
            patterns(&w.namespaces),
            patterns(&w.clusters),
            switch(w.manual_sync).to_owned(),
            switch(w.sync_overrun).to_owned(),
            w.time_zone.clone(),
            switch(w.and_operator).to_owned(),
        ];
        text.push_str(&(cells.join("\t") + "\t\n"));
    }
    Ok(table::align(&text, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};
    use serde_json::json;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        add: Add,
    }

    fn add(windows: &mut Vec<SyncWindow>, words: &[&str]) -> Result<Change, (u8, String)> {
        let matches = crate::flags::adapt(Program::command())
            .try_get_matches_from([&["add", "p"], words].concat())
            .expect("valid flags");
        let program = Program::from_arg_matches(&matches).expect("valid values");
        program.add.apply(windows).map_err(|e| (e.code, e.message))
    }

    fn values(windows: &[SyncWindow]) -> serde_json::Value {
        serde_json::to_value(windows).expect("a value")
    }

    fn windows(value: serde_json::Value) -> Vec<SyncWindow> {
        serde_json::from_value(value).expect("windows")
    }

    #[test]
    fn windows_are_added() {
        let mut made = Vec::new();
        for words in [
            &[
                "--kind",
                "allow",
                "--schedule",
                "0 22 * * *",
                "--duration",
                "1h",
                "--applications",
                "prod-*,website",
            ][..],
            &[
                "-k",
                "deny",
                "--schedule",
                "30 23 * * *",
                "--duration",
                "30m",
                "--namespaces",
                "a",
                "--namespaces",
                "b",
                "--clusters",
                "in-cluster",
                "--manual-sync",
                "--time-zone",
                "Europe/Berlin",
                "--description",
                "night",
            ],
            &[
                "-k",
                "allow",
                "--schedule",
                "* * * * *",
                "--duration",
                "24h",
                "--applications",
                "*",
                "--use-and-operator",
                "--sync-overrun",
                "--time-zone",
                "Mars/Base",
            ],
        ] {
            assert_eq!(add(&mut made, words), Ok(Change::silent()));
        }
        let expected = json!([
            {"kind": "allow", "schedule": "0 22 * * *", "duration": "1h",
                "applications": ["prod-*", "website"], "timeZone": "UTC"},
            {"kind": "deny", "schedule": "30 23 * * *", "duration": "30m",
                "namespaces": ["a", "b"], "clusters": ["in-cluster"], "manualSync": true,
                "timeZone": "Europe/Berlin", "description": "night"},
            {"kind": "allow", "schedule": "* * * * *", "duration": "24h",
                "applications": ["*"], "timeZone": "UTC", "andOperator": true,
                "syncOverrun": true},
        ]);
        assert_eq!(values(&made), expected);
    }

    #[test]
    fn bad_windows_are_refused() {
        let long = "d".repeat(256);
        for (words, message) in [
            (
                &["--kind", "allow", "--schedule", "* * * * *"][..],
                "cannot create window: require kind, schedule, duration and one or more of \
                 applications, namespaces and clusters",
            ),
            (
                &["-k", "maybe", "--schedule", "* * * * *", "--duration", "1h"],
                "kind 'maybe' mismatch: can only be allow or deny",
            ),
            (
                &["-k", "allow", "--schedule", "bad", "--duration", "1h"],
                "cannot parse schedule 'bad': expected exactly 5 fields, found 1: [bad]",
            ),
            (
                &[
                    "-k",
                    "allow",
                    "--schedule",
                    "* * * * *",
                    "--duration",
                    "bad",
                ],
                "cannot parse duration 'bad': time: invalid duration \"bad\"",
            ),
            (
                &[
                    "-k",
                    "allow",
                    "--schedule",
                    "* * * * *",
                    "--duration",
                    "1h",
                    "--description",
                    &long,
                ],
                "description must not exceed 255 characters",
            ),
        ] {
            let mut made = Vec::new();
            assert_eq!(add(&mut made, words), Err((20, message.to_owned())));
            assert!(made.is_empty());
        }
    }

    #[test]
    fn updates_change_what_they_name() {
        let mut list = windows(json!([{"kind": "deny", "schedule": "0 0 1 1 *",
            "duration": "1m", "namespaces": ["a"], "timeZone": "Europe/Berlin"}]));
        let what = Settings {
            duration: "12h".into(),
            applications: vec!["x".into()],
            time_zone: "UTC".into(),
            ..Default::default()
        };
        let update = |what: &Settings, list: &mut [SyncWindow], id| {
            what.clone()
                .update(list, id)
                .map_err(|e| (e.code, e.message))
        };
        assert_eq!(update(&what, &mut list, 0), Ok(Change::silent()));
        let expected = json!([{"kind": "deny", "schedule": "0 0 1 1 *", "duration": "12h",
            "applications": ["x"], "namespaces": ["a"], "timeZone": "UTC"}]);
        assert_eq!(values(&list), expected);
        assert_eq!(update(&what, &mut list, 5), Ok(Change::silent()));
        let zone_only = Settings {
            time_zone: "Europe/Berlin".into(),
            ..Default::default()
        };
        let message = "cannot update: require one or more of schedule, duration, application, \
                       namespace, cluster or description";
        assert_eq!(
            update(&zone_only, &mut list, 0),
            Err((20, message.to_owned()))
        );
        assert_eq!(values(&list), expected);
    }

    #[test]
    fn windows_are_deleted_by_number() {
        let mut list = windows(json!([{"kind": "deny"}, {"kind": "allow"}]));
        assert!(matches!(delete(&mut list, 0), Ok(Change::Confirm { .. })));
        assert_eq!(values(&list), json!([{"kind": "allow"}]));
        let refused = delete(&mut list, 1).map_err(|e| (e.code, e.message));
        assert_eq!(
            refused,
            Err((20, "window with id '1' not found".to_owned()))
        );
    }

    #[test]
    fn windows_in_a_table() {
        let windows = windows(json!([
            {"kind": "allow", "schedule": "* * * * *", "duration": "24h", "applications": ["*"]},
            {"kind": "deny", "schedule": "0 0 1 1 *", "duration": "1m", "namespaces": ["a", "b"],
                "clusters": ["x"], "manualSync": true, "timeZone": "UTC", "andOperator": true},
        ]));
        let now = Timestamp::from_second(1_780_000_000).expect("a time");
        let expected = "\
ID  STATUS    KIND   SCHEDULE   DURATION  APPLICATIONS  NAMESPACES  CLUSTERS  MANUALSYNC  SYNCOVERRUN  TIMEZONE  USEANDOPERATOR  \n\
0   Active    allow  * * * * *  24h       *             -           -         Disabled    Disabled               Disabled        \n\
1   Inactive  deny   0 0 1 1 *  1m        -             a,b         x         Enabled     Disabled     UTC       Enabled         \n";
        let windows = numbered(windows, now);
        assert_eq!(list(&windows, "wide").ok().as_deref(), Some(expected));
        let empty = list(&[], "wide").expect("a table");
        assert_eq!(empty, HEADER.replace('\t', "  "));
        assert_eq!(list(&windows[1..], "bad").map_err(|e| e.code), Err(20));
        let yaml = list(&windows[..1], "yaml").expect("a document");
        assert!(
            yaml.starts_with("- applications:\n  - '*'\n  duration: 24h\n"),
            "{yaml}"
        );
    }
}
