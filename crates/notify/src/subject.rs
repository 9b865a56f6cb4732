//! What a notification is about, and what expressions and templates see of it.
//!
//! Main types: [`Subject`] and [`Lookup`].

use crate::{Config, urls};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value as Json};
use std::{collections::BTreeMap, rc::Rc};
use tiphys_gocompat::{
    expr::{Clock, ExprError, Func, Param, Struct, Value},
    sprig::Moment,
    template::Str,
};

/// Why a commit or the details of an Application can not be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// What is known about a commit.
#[derive(Clone, Debug)]
pub struct CommitMetadata {
    pub message: String,
    pub author: String,
    pub date: Timestamp,
    pub tags: Vec<String>,
}

/// Asks the repositories, for the functions of `repo`.
pub trait Lookup {
    /// # Errors
    /// If the commit does not exist, or the repository does not answer.
    fn commit(
        &self,
        repo_url: &str,
        sha: &str,
        project: &str,
    ) -> Result<CommitMetadata, Unavailable>;

    /// The details of the Application's source as the repo-server gives them, as JSON: `Type`,
    /// `Helm`, `Kustomize`, `Directory`.
    ///
    /// # Errors
    /// If the repository does not answer.
    fn details(&self, app: &Json) -> Result<Json, Unavailable>;
}

/// An Application with what its notifications can mention.
pub struct Subject<'c> {
    pub config: &'c Config,
    pub app: &'c Json,
    /// The AppProject; `None` if it was not found.
    pub project: Option<&'c Json>,
    pub lookup: Rc<dyn Lookup>,
    pub clock: Clock,
}

impl Subject<'_> {
    /// The variables for a service; none in triggers.
    pub(crate) fn variables(&self, service: &str) -> Value {
        Value::map(self.entries(service))
    }

    /// The same for a template, which also knows where it is sent.
    pub(crate) fn template_variables(&self, service: &str, recipient: &str) -> Value {
        let mut entries = self.entries(service);
        entries.push(("serviceType", service.into()));
        entries.push(("recipient", recipient.into()));
        Value::map(entries)
    }

    fn entries(&self, service: &str) -> Vec<(&'static str, Value)> {
        let mut context = BTreeMap::from([("notificationType".to_owned(), service.to_owned())]);
        context.extend(self.config.context.clone());
        let context = context.into_iter().map(|(k, v)| (k, Value::from(v)));
        let empty = Json::Object(Map::new());
        let mut entries = vec![
            ("app", Value::from_data(self.app)),
            ("context", Value::map(context)),
            (
                "appProject",
                Value::from_data(self.project.unwrap_or(&empty)),
            ),
            ("time", times(&self.clock)),
            ("strings", strings()),
            ("repo", self.repo()),
        ];
        if let Some(secrets) = &self.config.secrets {
            let secrets = secrets.iter();
            let values = secrets
                .map(|(name, value)| (name.as_str(), Value::Bytes(Str::from(value.as_slice()))));
            entries.push(("secrets", Value::map(values)));
        }
        entries
    }

    fn repo(&self) -> Value {
        let told = |answer: Result<String, String>| answer.map(Value::from).map_err(ExprError::run);
        let app = Rc::new(self.app.clone());
        let (commits, details) = (self.lookup.clone(), self.lookup.clone());
        let (of_app, zone) = (app.clone(), self.clock.zone.clone());
        Value::map([
            (
                "RepoURLToHTTPS",
                Value::func(&[Param::Str], move |args| {
                    told(urls::to_https(&args[0].as_text()?))
                }),
            ),
            (
                "FullNameByRepoURL",
                Value::func(&[Param::Str], move |args| {
                    told(urls::full_name(&args[0].as_text()?))
                }),
            ),
            (
                "QueryEscape",
                Value::func(&[Param::Str], |args| {
                    Ok(crate::urls::query_escape(&args[0].as_text()?).into())
                }),
            ),
            (
                "GetCommitMetadata",
                Value::func(&[Param::Str], move |args| {
                    let metadata = commit(commits.as_ref(), &app, &args[0].as_text()?)?;
                    Ok(shown(metadata, &zone))
                }),
            ),
            (
                "GetAppDetails",
                Value::func(&[], move |_| {
                    let details = details.details(&of_app);
                    let details = details.map_err(|error| ExprError::run(error.to_string()))?;
                    Ok(app_details(&details))
                }),
            ),
        ])
    }
}

fn commit(lookup: &dyn Lookup, app: &Json, sha: &str) -> Result<CommitMetadata, ExprError> {
    let text = |paths: &[&str], what: &str| {
        let missing = || ExprError::run(format!("failed to get application {what}"));
        let mut found = paths.iter().filter_map(|path| app.pointer(path)?.as_str());
        found.next().ok_or_else(missing)
    };
    // What is hydrated is in the repository that it is made of.
    let sources = [
        "/spec/source/repoURL",
        "/spec/sourceHydrator/drySource/repoURL",
    ];
    let repo_url = text(&sources, "source repo URL")?;
    let project = text(&["/spec/project"], "project")?;
    lookup
        .commit(repo_url, sha, project)
        .map_err(|error| ExprError::run(error.to_string()))
}

fn shown(metadata: CommitMetadata, zone: &TimeZone) -> Value {
    let date = Moment::new(metadata.date, TimeZone::UTC).with_local(zone.clone());
    Value::Struct(Rc::new(Struct {
        go_type: "shared.CommitMetadata",
        fields: vec![
            ("Message", metadata.message.into()),
            ("Author", metadata.author.into()),
            ("Date", Value::Time(date)),
            ("Tags", Value::strings(metadata.tags)),
        ],
        methods: Vec::new(),
    }))
}

/// The details with the names that Go's structs have.
fn app_details(details: &Json) -> Value {
    let part = |name: &str| details.get(name).map_or(Value::Nil, capitalised);
    let helm = details.get("Helm").map_or(Value::Nil, helm_details);
    Value::Struct(Rc::new(Struct {
        go_type: "shared.AppDetail",
        fields: vec![
            ("Type", part("Type")),
            ("Helm", helm),
            ("Kustomize", part("Kustomize")),
            ("Directory", part("Directory")),
        ],
        methods: Vec::new(),
    }))
}

fn helm_details(helm: &Json) -> Value {
    let named = |list: &str, wanted: &'static str| {
        let entries = helm.get(list).and_then(Json::as_array).cloned();
        let entries = entries.unwrap_or_default();
        let found = move |args: &[Value]| {
            let name = args[0].as_text()?;
            let entry = entries.iter().find(|entry| entry["name"] == name.as_str());
            let value = entry.and_then(|entry| entry[wanted].as_str());
            Ok(value.unwrap_or_default().into())
        };
        Func {
            params: &[Param::Str],
            variadic: false,
            body: Box::new(found),
        }
    };
    Value::Struct(Rc::new(Struct {
        go_type: "*shared.CustomHelmAppSpec",
        fields: vec![
            ("HelmAppSpec", capitalised(helm)),
            ("HelmParameterOverrides", Value::list(Vec::new())),
        ],
        methods: vec![
            ("GetParameterValueByName", named("parameters", "value")),
            (
                "GetFileParameterPathByName",
                named("fileParameters", "path"),
            ),
        ],
    }))
}

/// A value whose members begin with a capital letter.
fn capitalised(value: &Json) -> Value {
    match value {
        Json::Object(members) => Value::map(members.iter().map(|(key, value)| {
            let mut chars = key.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase());
            let key: String = first.into_iter().chain(chars).collect();
            (key, capitalised(value))
        })),
        Json::Array(items) => Value::list(items.iter().map(capitalised).collect()),
        other => Value::from_data(other),
    }
}

fn times(clock: &Clock) -> Value {
    let now = Moment::new(clock.now, clock.zone.clone());
    let local = clock.zone.clone();
    let mut entries = vec![
        (
            "Parse",
            Value::func(&[Param::Str], move |args| {
                let text = args[0].as_text()?;
                Moment::parse("2006-01-02T15:04:05Z07:00", &text, &TimeZone::UTC)
                    .map(|at| Value::Time(at.with_local(local.clone())))
                    .map_err(ExprError::run)
            }),
        ),
        (
            "Now",
            Value::func(&[], move |_| Ok(Value::Time(now.clone()))),
        ),
    ];
    let units = [
        ("Nanosecond", 1),
        ("Microsecond", 1_000),
        ("Millisecond", 1_000_000),
        ("Second", 1_000_000_000),
        ("Minute", 60_000_000_000),
        ("Hour", 3_600_000_000_000),
    ];
    entries.extend(units.map(|(name, nanos)| (name, Value::Duration(nanos))));
    entries.extend(LAYOUTS.map(|(name, layout)| (name, layout.into())));
    Value::map(entries)
}

/// The layouts of Go's package time.
const LAYOUTS: [(&str, &str); 16] = [
    ("Layout", "01/02 03:04:05PM '06 -0700"),
    ("ANSIC", "Mon Jan _2 15:04:05 2006"),
    ("UnixDate", "Mon Jan _2 15:04:05 MST 2006"),
    ("RubyDate", "Mon Jan 02 15:04:05 -0700 2006"),
    ("RFC822", "02 Jan 06 15:04 MST"),
    ("RFC822Z", "02 Jan 06 15:04 -0700"),
    ("RFC850", "Monday, 02-Jan-06 15:04:05 MST"),
    ("RFC1123", "Mon, 02 Jan 2006 15:04:05 MST"),
    ("RFC1123Z", "Mon, 02 Jan 2006 15:04:05 -0700"),
    ("RFC3339", "2006-01-02T15:04:05Z07:00"),
    ("RFC3339Nano", "2006-01-02T15:04:05.999999999Z07:00"),
    ("Kitchen", "3:04PM"),
    ("Stamp", "Jan _2 15:04:05"),
    ("StampMilli", "Jan _2 15:04:05.000"),
    ("StampMicro", "Jan _2 15:04:05.000000"),
    ("StampNano", "Jan _2 15:04:05.000000000"),
];

fn strings() -> Value {
    Value::map([
        (
            "ReplaceAll",
            Value::func(&[Param::Str, Param::Str, Param::Str], |args| {
                let (text, old, new) = (args[0].as_text()?, args[1].as_text()?, args[2].as_text()?);
                if text.len().saturating_mul(new.len() + 1) > MOST_REPLACED {
                    return Err(ExprError::run("the text becomes too long"));
                }
                Ok(text.replace(&old, &new).into())
            }),
        ),
        (
            "ToUpper",
            Value::func(&[Param::Str], |args| {
                Ok(args[0].as_text()?.to_uppercase().into())
            }),
        ),
        (
            "ToLower",
            Value::func(&[Param::Str], |args| {
                Ok(args[0].as_text()?.to_lowercase().into())
            }),
        ),
    ])
}

/// Longest result of a replacement, at worst.
const MOST_REPLACED: usize = 64 << 20;
