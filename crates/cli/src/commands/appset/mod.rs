//! `appset`: ApplicationSets through the API.

mod plan;
mod restore;
mod rollout;
mod wait;

use super::{
    apply::source::{read_one, shown},
    connect,
    prompt::{self, Answer},
};
use crate::{
    client::{Client, ConnectArgs, Failure, exit},
    output::{
        self,
        sort::{self, Field, SortBy},
        summary, table, time,
    },
};
use std::io::IsTerminal as _;
use tiphys_api::{
    Application, ApplicationSet,
    application_set::{ApplicationSetCondition, ApplicationSetList},
    constants::API_VERSION,
    rpc::application_set::{
        ApplicationSetCreateRequest, ApplicationSetDeleteRequest, ApplicationSetGenerateRequest,
        ApplicationSetGenerateResponse, ApplicationSetGetQuery, ApplicationSetListQuery,
        ApplicationSetResponse,
    },
    source::ApplicationSource,
};
use tiphys_gocompat::yaml;

const GET: &str = "/applicationset.ApplicationSetService/Get";
const GENERATE: &str = "/applicationset.ApplicationSetService/Generate";
const LIST: &str = "/applicationset.ApplicationSetService/List";
const CREATE: &str = "/applicationset.ApplicationSetService/Create";
const DELETE: &str = "/applicationset.ApplicationSetService/Delete";
const KIND: &str = "ApplicationSet";

#[derive(clap::Subcommand)]
pub enum AppSetCommand {
    /// Get ApplicationSet details
    Get {
        /// The ApplicationSet, by name or namespace/name
        appset: String,
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// Show ApplicationSet parameters and overrides
        #[arg(long)]
        show_params: bool,
        /// Only get ApplicationSet from a namespace
        #[arg(long, short = 'N', value_name = "NAMESPACE")]
        appset_namespace: Option<String>,
    },
    /// List ApplicationSets
    List {
        /// Output format. One of: wide|name|json|yaml
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// List applicationsets by label
        #[arg(long, short = 'l')]
        selector: Option<String>,
        /// Filter by project name
        #[arg(long, short = 'p')]
        project: Vec<String>,
        /// Only list applicationsets in namespace
        #[arg(long, short = 'N', value_name = "NAMESPACE")]
        appset_namespace: Option<String>,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Create one or more ApplicationSets
    Create {
        /// File or URL with YAML or JSON; - reads standard input
        file: String,
        /// Allows to override ApplicationSet with the same name even if supplied ApplicationSet
        /// spec is different from existing spec
        #[arg(long)]
        upsert: bool,
        /// Allows to evaluate the ApplicationSet template on the server to get a preview of the
        /// applications that would be created
        #[arg(long)]
        dry_run: bool,
        /// Wait until the ApplicationSet's resources are up to date. Will block indefinitely if the
        /// ApplicationSet has errors
        #[arg(long)]
        wait: bool,
        /// Approve the deletions that the change leads to, and wait for them
        #[arg(long)]
        allow_deletions: bool,
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// Namespace where the ApplicationSet will be created in
        #[arg(long, short = 'N', value_name = "NAMESPACE")]
        appset_namespace: Option<String>,
    },
    /// Generate apps of ApplicationSet rendered templates
    Generate {
        /// File or URL with YAML or JSON; - reads standard input
        file: String,
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// Namespace used for generating Applications
        #[arg(long, short = 'N', value_name = "NAMESPACE")]
        appset_namespace: Option<String>,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Delete one or more ApplicationSets
    Delete {
        /// The ApplicationSets, by name or namespace/name
        #[arg(required = true)]
        appsets: Vec<String>,
        /// Turn off prompting to confirm cascaded deletion of Application resources
        #[arg(long, short)]
        yes: bool,
        /// Wait until deletion of the applicationset(s) completes
        #[arg(long)]
        wait: bool,
        /// Namespace where the ApplicationSet will be deleted from
        #[arg(long, short = 'N', value_name = "NAMESPACE")]
        appset_namespace: Option<String>,
    },
    /// Show which Applications an ApplicationSet would create, change and delete
    Plan(plan::PlanCommand),
    /// Approve deletions of Applications that wait for a confirmation
    ConfirmDeletion(restore::SetRef),
    /// List the Applications that an ApplicationSet deleted, or restore them
    Restore(restore::RestoreCommand),
}

impl AppSetCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Get {
                appset,
                output,
                show_params,
                appset_namespace,
            } => {
                let client = connect(args).await?;
                let (namespace, name) = split(&appset, appset_namespace);
                let set = get(&client, namespace, name).await?;
                show(&set, &output)?;
                if show_params && output == "wide" {
                    output::print(&parameters(&set));
                }
                Ok(())
            }
            Self::List {
                output,
                selector,
                project,
                appset_namespace,
                sort_by,
            } => {
                let query = ApplicationSetListQuery {
                    projects: project,
                    selector: selector.unwrap_or_default(),
                    appset_namespace: appset_namespace.unwrap_or_default(),
                };
                list(args, query, &sort_by, &output).await
            }
            Self::Create {
                file,
                upsert,
                dry_run,
                wait,
                allow_deletions,
                output,
                appset_namespace,
            } => {
                let client = connect(args).await?;
                let waits = (wait || allow_deletions) && !dry_run;
                let sets = sets(&file, appset_namespace).await?;
                if sets.is_empty() {
                    output::print("No ApplicationSets found while parsing the input file");
                    return Err(Failure::exit(exit::FAILED));
                }
                for mut set in sets {
                    if waits {
                        wait::ask(&mut set);
                    }
                    let request = ApplicationSetCreateRequest {
                        applicationset: Some(set),
                        upsert,
                        dry_run,
                        ..Default::default()
                    };
                    let created = create(&client, request, &output).await?;
                    if waits {
                        wait::up_to_date(&client, &created, allow_deletions).await?;
                        let name = &created.metadata.name;
                        eprintln!("ApplicationSet '{name}' resources are up to date");
                    }
                }
                Ok(())
            }
            Self::Generate {
                file,
                output,
                appset_namespace,
                sort_by,
            } => {
                let mut sets = sets(&file, appset_namespace).await?;
                let (Some(set), true) = (sets.pop(), sets.is_empty()) else {
                    output::print("Input file must contain one ApplicationSet");
                    return Err(Failure::exit(exit::FAILED));
                };
                generate(args, set, &sort_by, &output).await
            }
            Self::Delete {
                appsets,
                yes,
                wait,
                appset_namespace,
            } => delete(args, &appsets, yes, wait, appset_namespace).await,
            Self::Plan(command) => command.run(args).await,
            Self::ConfirmDeletion(set) => set.confirm(args).await,
            Self::Restore(command) => command.run(args).await,
        }
    }
}

/// Namespace and name of `name` or `namespace/name`.
fn split(text: &str, namespace: Option<String>) -> (String, String) {
    match text.split_once('/') {
        Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
        None => (namespace.unwrap_or_default(), text.to_owned()),
    }
}

fn qualified(set: &ApplicationSet) -> String {
    match set.metadata.namespace.as_str() {
        "" => set.metadata.name.clone(),
        namespace => format!("{namespace}/{}", set.metadata.name),
    }
}

async fn get(
    client: &Client,
    appset_namespace: String,
    name: String,
) -> Result<ApplicationSet, Failure> {
    let query = ApplicationSetGetQuery {
        name,
        appset_namespace,
        deleted: false,
    };
    let mut set: ApplicationSet = client.unary(GET, query).await?;
    typed(&mut set);
    Ok(set)
}

fn typed(set: &mut ApplicationSet) {
    (set.api_version, set.kind) = (API_VERSION.to_owned(), KIND.to_owned());
}

/// The sets of a file, of a URL or from standard input.
async fn sets(file: &str, namespace: Option<String>) -> Result<Vec<ApplicationSet>, Failure> {
    let bytes = read_one(file).await;
    let file = shown(file);
    let bytes = bytes.map_err(|why| {
        Failure::error(format!(
            "error reading applicationset from file {file}: error reading file payload: {why}"
        ))
    })?;
    let failed = |why: String| Failure::error(format!("{file}: {why}"));
    let documents = yaml::parse_documents(&bytes, &yaml::Limits::default())
        .map_err(|e| failed(e.to_string()))?;
    let mut sets = Vec::new();
    for document in documents.into_iter().filter(|d| !d.value.is_null()) {
        let line = document.line;
        if document.value["kind"] != KIND {
            return Err(failed(format!("line {line}: it is not an ApplicationSet")));
        }
        let mut set: ApplicationSet = serde_json::from_value(document.value)
            .map_err(|e| failed(format!("line {line}: not a valid ApplicationSet: {e}")))?;
        if set.metadata.name.is_empty() {
            return Err(failed(format!("line {line}: metadata.name is missing")));
        }
        if set.metadata.namespace.is_empty() {
            set.metadata.namespace = namespace.clone().unwrap_or_default();
        }
        sets.push(set);
    }
    Ok(sets)
}

async fn create(
    client: &Client,
    request: ApplicationSetCreateRequest,
    output: &str,
) -> Result<ApplicationSet, Failure> {
    let asked = request.applicationset.clone().unwrap_or_default();
    let (m, upsert, dry_run) = (&asked.metadata, request.upsert, request.dry_run);
    let existing = match get(client, m.namespace.clone(), m.name.clone()).await {
        Ok(existing) => Some(existing),
        Err(e) if e.status == Some(tonic::Code::NotFound) => None,
        Err(e) => return Err(e),
    };
    let mut created: ApplicationSet = client.unary(CREATE, request).await?;
    typed(&mut created);
    let action = match existing {
        None => "created",
        Some(before) if upsert && differs(&before, &created) => "updated",
        Some(_) => "unchanged",
    };
    let how = if dry_run { " (dry-run)" } else { "" };
    eprintln!("ApplicationSet '{}' {action}{how}", created.metadata.name);
    show(&created, output)?;
    Ok(created)
}

fn differs(a: &ApplicationSet, b: &ApplicationSet) -> bool {
    let (am, bm) = (&a.metadata, &b.metadata);
    a.spec != b.spec
        || am.labels != bm.labels
        || am.annotations != bm.annotations
        || am.finalizers != bm.finalizers
}

async fn generate(
    args: &ConnectArgs,
    set: ApplicationSet,
    sort_by: &SortBy,
    output: &str,
) -> Result<(), Failure> {
    let client = connect(args).await?;
    let request = ApplicationSetGenerateRequest {
        application_set: Some(set),
    };
    let answer: ApplicationSetGenerateResponse = client.unary(GENERATE, request).await?;
    let mut apps = answer.applications;
    sort_by.sort(&mut apps, super::app::FIELDS)?;
    let text = match output {
        "yaml" | "json" => {
            for app in &mut apps {
                (app.api_version, app.kind) = (API_VERSION.into(), "Application".into());
            }
            let declared = apps.iter().map(output::declared);
            match declared.collect::<Result<Vec<_>, _>>()?.as_slice() {
                [one] => output::document(one, output)?,
                all => output::document(&all, output)?,
            }
        }
        "wide" | "" => super::app::rows(&apps, output == "wide"),
        other => return Err(output::unknown_format(other)),
    };
    output::print(&text);
    Ok(())
}

const FIELDS: &[Field<ApplicationSet>] = &[
    ("name", |set| qualified(set).into()),
    ("project", |set| {
        set.spec.template.spec.project.as_str().into()
    }),
    ("syncpolicy", |set| policy(set).into()),
    ("health", |set| set.status.health.status.as_str().into()),
    ("conditions", |set| in_force(set).count().into()),
    ("repo", |set| source(set).repo_url.into()),
    ("path", |set| source(set).path.into()),
    ("target", |set| source(set).target_revision.into()),
    ("created", |set| {
        sort::created(set.metadata.creation_timestamp.as_ref())
    }),
    ("age", |set| {
        sort::age(set.metadata.creation_timestamp.as_ref())
    }),
];

async fn list(
    args: &ConnectArgs,
    query: ApplicationSetListQuery,
    sort_by: &SortBy,
    output: &str,
) -> Result<(), Failure> {
    let client = connect(args).await?;
    let list: ApplicationSetList = client.unary(LIST, query).await?;
    let mut sets = list.items;
    sets.iter_mut().for_each(typed);
    sort_by.sort(&mut sets, FIELDS)?;
    output::print(&match output {
        "yaml" | "json" => output::document(&sets, output)?,
        "name" => sets.iter().map(|set| qualified(set) + "\n").collect(),
        "wide" | "" => rows(&sets, output == "wide"),
        other => return Err(output::unknown_format(other)),
    });
    Ok(())
}

fn rows(sets: &[ApplicationSet], wide: bool) -> String {
    let mut header = vec!["NAME", "PROJECT", "SYNCPOLICY", "HEALTH", "CONDITIONS"];
    if wide {
        header.extend(["REPO", "PATH", "TARGET"]);
    }
    let row = |set: &ApplicationSet| {
        let conditions: Vec<String> = in_force(set).map(condition).collect();
        let mut row = vec![
            qualified(set),
            set.spec.template.spec.project.clone(),
            policy(set),
            set.status.health.status.clone(),
            format!("[{}]", conditions.join(" ")),
        ];
        if wide {
            let source = source(set);
            row.extend([source.repo_url, source.path, source.target_revision]);
        }
        row
    };
    table::table(&header, sets.iter().map(row))
}

/// The conditions that hold.
fn in_force(set: &ApplicationSet) -> impl Iterator<Item = &ApplicationSetCondition> {
    let conditions = set.status.conditions.iter();
    conditions.filter(|condition| condition.status == "True")
}

fn source(set: &ApplicationSet) -> ApplicationSource {
    summary::source(&as_application(set))
}

fn condition(condition: &ApplicationSetCondition) -> String {
    format!(
        "{{{} {} {} {} {}}}",
        condition.type_,
        condition.message,
        time::text(condition.last_transition_time.as_ref()),
        condition.status,
        condition.reason
    )
}

fn policy(set: &ApplicationSet) -> String {
    match &set.spec.sync_policy {
        None => "nil".to_owned(),
        Some(policy) => format!(
            "&ApplicationSetSyncPolicy{{PreserveResourcesOnDeletion:{},ApplicationsSync:{},}}",
            policy.preserve_resources_on_deletion,
            policy
                .applications_sync
                .as_deref()
                .map_or("nil".to_owned(), |p| format!("*{p}"))
        ),
    }
}

/// The template as an Application, for what is shown of both.
fn as_application(set: &ApplicationSet) -> Application {
    let mut app = Application::default();
    app.metadata.name.clone_from(&set.metadata.name);
    app.spec = set.spec.template.spec.clone().into();
    app
}

fn show(set: &ApplicationSet, output: &str) -> Result<(), Failure> {
    let text = match output {
        "yaml" | "json" => output::document(set, output)?,
        "wide" | "" => details(set),
        other => return Err(output::unknown_format(other)),
    };
    output::print(&text);
    Ok(())
}

/// The parameters of a chart; an empty line if it is none.
fn parameters(set: &ApplicationSet) -> String {
    match summary::parameters(&source(set)).as_str() {
        "" => "\n".to_owned(),
        some => some.to_owned(),
    }
}

fn details(set: &ApplicationSet) -> String {
    let app = as_application(set);
    let mut out = summary::template(&app, &qualified(set), &set.status.health.status);
    if !set.status.conditions.is_empty() {
        let rows = set.status.conditions.iter().map(|c| {
            vec![
                c.type_.clone(),
                c.status.clone(),
                c.message.clone(),
                time::text(c.last_transition_time.as_ref()),
            ]
        });
        let header = ["CONDITION", "STATUS", "MESSAGE", "LAST TRANSITION"];
        out += &format!("\n{}\n", table::table(&header, rows));
    }
    out
}

async fn delete(
    args: &ConnectArgs,
    names: &[String],
    yes: bool,
    waits: bool,
    namespace: Option<String>,
) -> Result<(), Failure> {
    let client = connect(args).await?;
    let mut ask = !yes && std::io::stdout().is_terminal();
    for set in names {
        if ask {
            match question(set, names.len())? {
                Answer::Yes => {}
                Answer::All => ask = false,
                Answer::No => {
                    output::print(&format!("The command to delete '{set}' was cancelled.\n"));
                    continue;
                }
            }
        }
        let (appset_namespace, name) = split(set, namespace.clone());
        let request = ApplicationSetDeleteRequest {
            name: name.clone(),
            appset_namespace: appset_namespace.clone(),
        };
        let _: ApplicationSetResponse = client.unary(DELETE, request).await?;
        if waits {
            wait::gone(&client, &appset_namespace, &name).await?;
        }
        output::print(&format!("applicationset '{set}' deleted\n"));
    }
    Ok(())
}

fn question(set: &str, count: usize) -> Result<Answer, Failure> {
    let message = format!("Are you sure you want to delete '{set}' and all its Applications?");
    match count {
        1 => Ok(match prompt::proceed(&format!("{message} [y/n] "))? {
            true => Answer::Yes,
            false => Answer::No,
        }),
        _ => prompt::proceed_or_all(&format!(
            "{message} [y/n/a] where 'a' is to delete all specified ApplicationSets and their \
             Applications without prompting "
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_begin_with_an_empty_line() {
        let set = |source: serde_json::Value| -> ApplicationSet {
            serde_json::from_value(json!({
                "metadata": {"name": "s"},
                "spec": {"generators": [], "template": {
                    "metadata": {},
                    "spec": {"project": "", "destination": {}, "source": source},
                }},
            }))
            .expect("a set")
        };
        assert_eq!(parameters(&set(json!({"repoURL": "r"}))), "\n");
        let chart = json!({"repoURL": "r", "helm": {"parameters": [{"name": "a", "value": "1"}]}});
        assert_eq!(parameters(&set(chart)), "\n\nNAME  VALUE\na     1\n");
    }

    #[tokio::test]
    async fn a_file_without_sets_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("empty.yaml");
        std::fs::write(&file, "# nothing\n").expect("written");
        let name = file.to_str().expect("a plain name");
        assert_eq!(sets(name, None).await.expect("it can be read").len(), 0);
        let e = sets(&format!("{name}.not"), None)
            .await
            .expect_err("no file");
        assert!(
            e.message
                .starts_with("error reading applicationset from file "),
            "{e}"
        );
    }
}
