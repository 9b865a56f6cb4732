//! `app actions list` and `app actions run`.

use super::AppRef;
use crate::{
    client::{Client, ConnectArgs, Failure, exit},
    output::{
        self, log,
        sort::{Field, SortBy},
        table,
    },
};
use serde::Serialize;
use serde_json::Value;
use tiphys_api::{
    Application,
    constants::API_VERSION,
    rpc::application::{
        ApplicationResourceRequest, ApplicationResponse, ManagedResourcesResponse,
        ResourceActionRunRequestV2, ResourceActionsListResponse, ResourcesQuery,
    },
};
use tiphys_apimachinery::Object;

#[derive(clap::Subcommand)]
pub enum ActionsCommand {
    /// Lists available actions on a resource
    List(List),
    /// Runs an available action on resource(s) matching the specified filters.
    ///
    /// All filters except --kind are optional. Use --all to run the action on all matching
    /// resources if more than one resource matches the filters. Actions may only be run on
    /// resources that are represented in git and cannot be run on child resources.
    Run(Run),
}

/// Which of an Application's resources.
#[derive(clap::Args)]
pub struct Filter {
    /// Name of resource
    #[arg(long)]
    resource_name: Option<String>,
    /// Group
    #[arg(long)]
    group: Option<String>,
    /// Namespace
    #[arg(long)]
    namespace: Option<String>,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

#[derive(clap::Args)]
pub struct List {
    /// The application
    app: String,
    /// Kind
    #[arg(long)]
    kind: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Output format. One of: yaml, json
    #[arg(
        long,
        short = 'o',
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    out: String,
    #[command(flatten)]
    sort_by: SortBy,
}

#[derive(clap::Args)]
pub struct Run {
    /// The application
    app: String,
    /// The action
    action: String,
    /// Kind of the resource on which the action should be run
    #[arg(long)]
    kind: String,
    #[command(flatten)]
    filter: Filter,
    /// Indicates whether to run the action on multiple matching resources
    #[arg(long)]
    all: bool,
}

/// An action in the output; the names are Go's.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Shown {
    group: String,
    kind: String,
    name: String,
    action: String,
    disabled: bool,
}

const FIELDS: &[Field<Shown>] = &[
    ("group", |action| action.group.as_str().into()),
    ("kind", |action| action.kind.as_str().into()),
    ("name", |action| action.name.as_str().into()),
    ("action", |action| action.action.as_str().into()),
    ("disabled", |action| action.disabled.into()),
];

impl ActionsCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        match self {
            Self::List(list) => list.run(&client).await,
            Self::Run(run) => run.run(&client).await,
        }
    }
}

impl List {
    async fn run(self, client: &Client) -> Result<(), Failure> {
        let app = AppRef::new(&self.app, self.filter.app_namespace.as_deref());
        let mut actions = Vec::new();
        for object in self
            .filter
            .select(client, &app, self.kind.as_deref(), true)
            .await?
        {
            let request = ApplicationResourceRequest {
                name: app.name.clone(),
                app_namespace: app.namespace(),
                namespace: Some(object.namespace().to_owned()),
                resource_name: object.name().to_owned(),
                version: object.gvk().version,
                group: Some(object.group().to_owned()),
                kind: object.kind().to_owned(),
                project: None,
            };
            let found: ResourceActionsListResponse = client
                .unary(
                    "/application.ApplicationService/ListResourceActions",
                    request,
                )
                .await?;
            actions.extend(found.actions.into_iter().map(|action| Shown {
                group: object.group().to_owned(),
                kind: object.kind().to_owned(),
                name: object.name().to_owned(),
                action: action.name,
                disabled: action.disabled,
            }));
        }
        self.sort_by.sort(&mut actions, FIELDS)?;
        let text = match self.out.as_str() {
            "" => shown(actions),
            // It ends with an empty line.
            "yaml" => output::yaml(&actions)? + "\n",
            format => output::document(&actions, format)?,
        };
        output::print(&text);
        Ok(())
    }
}

fn shown(actions: Vec<Shown>) -> String {
    let rows = actions
        .into_iter()
        .map(|a| vec![a.group, a.kind, a.name, a.action, a.disabled.to_string()]);
    table::table(&["GROUP", "KIND", "NAME", "ACTION", "DISABLED"], rows)
}

impl Run {
    async fn run(self, client: &Client) -> Result<(), Failure> {
        let app = AppRef::new(&self.app, self.filter.app_namespace.as_deref());
        let objects = self
            .filter
            .select(client, &app, Some(&self.kind), self.all)
            .await?;
        if objects.iter().any(|o| o.group() != objects[0].group()) {
            log::fatal(
                "Ambiguous resource group. Use flag --group to specify resource group explicitly.",
                "",
            );
            return Err(Failure::exit(exit::FAILED));
        }
        for object in objects {
            let request = ResourceActionRunRequestV2 {
                name: app.name.clone(),
                app_namespace: app.namespace(),
                namespace: Some(object.namespace().to_owned()),
                resource_name: object.name().to_owned(),
                version: object.gvk().version,
                group: Some(object.group().to_owned()),
                kind: object.kind().to_owned(),
                action: self.action.clone(),
                project: None,
                resource_action_parameters: Vec::new(),
            };
            let _: ApplicationResponse = client
                .unary(
                    "/application.ApplicationService/RunResourceActionV2",
                    request,
                )
                .await?;
        }
        Ok(())
    }
}

impl Filter {
    pub(super) fn app_namespace(&self) -> Option<&str> {
        self.app_namespace.as_deref()
    }

    /// The selected live objects that the Application manages.
    pub(super) async fn managed(
        &self,
        client: &Client,
        app: &AppRef,
        kind: &str,
        all: bool,
    ) -> Result<Vec<Object>, Failure> {
        let live = live(client, app).await?;
        self.pick(live.into_iter(), Some(kind), all)
    }

    /// The same, and possibly the Application itself.
    async fn select(
        &self,
        client: &Client,
        app: &AppRef,
        kind: Option<&str>,
        all: bool,
    ) -> Result<Vec<Object>, Failure> {
        let live = live(client, app).await?;
        let itself: Application = client
            .unary("/application.ApplicationService/Get", app.query())
            .await?;
        let mut itself =
            serde_json::to_value(&itself).map_err(|e| Failure::error(e.to_string()))?;
        (itself["apiVersion"], itself["kind"]) = (API_VERSION.into(), "Application".into());
        self.pick(live.into_iter().chain([itself]), kind, all)
    }

    fn pick(
        &self,
        live: impl Iterator<Item = Value>,
        kind: Option<&str>,
        all: bool,
    ) -> Result<Vec<Object>, Failure> {
        let objects = live.filter_map(|value| Object::from_value(value).ok());
        let wanted =
            |asked: Option<&str>, have: &str| asked.is_none_or(|a| a.is_empty() || a == have);
        let found: Vec<Object> = objects
            .filter(|o| {
                self.group.as_deref().is_none_or(|group| group == o.group())
                    && wanted(self.namespace.as_deref(), o.namespace())
                    && wanted(self.resource_name.as_deref(), o.name())
                    && wanted(kind, o.kind())
            })
            .collect();
        match found.len() {
            0 => Err(Failure::error("no matching resource found")),
            2.. if !all => Err(Failure::error(
                "multiple resources match inputs, use the --all flag to patch multiple resources",
            )),
            _ => Ok(found),
        }
    }
}

async fn live(client: &Client, app: &AppRef) -> Result<Vec<Value>, Failure> {
    let query = ResourcesQuery {
        application_name: app.name.clone(),
        app_namespace: app.namespace(),
        ..Default::default()
    };
    let managed: ManagedResourcesResponse = client
        .unary("/application.ApplicationService/ManagedResources", query)
        .await?;
    let states = managed.items.iter();
    Ok(states
        .filter_map(|r| serde_json::from_str(&r.live_state).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_shown_as_argo_cd_shows_them() {
        let action = |name: &str, disabled| Shown {
            group: "apps".into(),
            kind: "Deployment".into(),
            name: "web".into(),
            action: name.into(),
            disabled,
        };
        let expected = "\
GROUP  KIND        NAME  ACTION   DISABLED
apps   Deployment  web   restart  false
apps   Deployment  web   resume   true
";
        assert_eq!(
            shown(vec![action("restart", false), action("resume", true)]),
            expected
        );
        let json =
            output::document(&[action("restart", false)], "json").expect("it can be written");
        assert!(json.contains("\"Action\": \"restart\""), "{json}");
    }

    #[test]
    fn objects_are_picked_by_what_is_asked() {
        let of = |kind: &str, name: &str| {
            serde_json::json!({"apiVersion": "v1", "kind": kind,
                "metadata": {"name": name, "namespace": "n"}})
        };
        // An object that is not there has no live state.
        let live = [of("ConfigMap", "one"), of("ConfigMap", "two"), Value::Null];
        let pick = |name: Option<&str>, kind, all| {
            let filter = Filter {
                resource_name: name.map(str::to_owned),
                group: None,
                namespace: None,
                app_namespace: None,
            };
            let found = filter.pick(live.clone().into_iter(), Some(kind), all);
            found
                .map(|found| found.len())
                .map_err(|e| (e.code, e.message))
        };
        assert_eq!(pick(Some("one"), "ConfigMap", false), Ok(1));
        assert_eq!(pick(None, "ConfigMap", true), Ok(2));
        let none = "no matching resource found".to_owned();
        assert_eq!(pick(Some("one"), "Secret", true), Err((20, none)));
        let many =
            "multiple resources match inputs, use the --all flag to patch multiple resources";
        assert_eq!(pick(None, "ConfigMap", false), Err((20, many.to_owned())));
    }
}
