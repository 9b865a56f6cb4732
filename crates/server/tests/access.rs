//! Permissions: each row of the table checks the permissions it names, and refused calls have no
//! effect.

use crate::common;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use common::{SHA, World, app};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tiphys_api::rpc::{
    application::{
        ApplicationManifestQueryWithFiles, ApplicationManifestQueryWithFilesWrapper, FileChunk,
    },
    repository::ManifestResponse,
};
use tiphys_rpc::{ApiError, Call, Code, table::Kind};
use tiphys_server::{
    State,
    access::{Access, Action, Ask, Enforcer, Question},
    auth::Claims,
    ports::Store as _,
    table::table,
};
use tiphys_testkit::signed;

const REPO: &str = "https://example.org/r.git";
const REPO_PATH: &str = "/api/v1/repositories/https%3A%2F%2Fexample.org%2Fr.git";
const CLUSTER: &str = "https://c.example";
const TEMPLATE: &str = "https://example.org/team";
const TEMPLATE_PATH: &str = "https%3A%2F%2Fexample.org%2Fteam";
const APP: &str = "/api/v1/applications/a";
const SETS: &str = "/api/v1/applicationsets";
const DEPLOYMENT: &str = "namespace=n&resourceName=web&version=v1&group=apps&kind=Deployment";

/// Records the questions and answers them by a rule; permits everything until the world is set up.
struct Recorder {
    asked: Mutex<Vec<(Ask, String)>>,
    begun: AtomicBool,
    permits: fn(&str) -> bool,
}

impl Recorder {
    fn new(permits: fn(&str) -> bool) -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            begun: AtomicBool::new(false),
            permits,
        })
    }

    fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.asked.lock().expect("not poisoned").clear();
    }

    fn asks(&self) -> BTreeSet<Ask> {
        let asked = self.asked.lock().expect("not poisoned");
        asked.iter().map(|(ask, _)| *ask).collect()
    }

    fn texts(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("not poisoned");
        asked.iter().map(|(_, text)| text.clone()).collect()
    }
}

impl Enforcer for Recorder {
    fn permits(&self, claims: Option<&Claims>, question: Question<'_>) -> bool {
        assert!(claims.is_some_and(|c| c.account() == "admin"));
        // Actions followed by a path are cut after the first slash here.
        let word = match question.action.split_once('/') {
            Some(("action", _)) => "action".to_owned(),
            Some((word, _)) => format!("{word}/"),
            None => question.action.to_owned(),
        };
        let is = |action: &&Action| action.word() == word;
        let action = Action::ALL.iter().find(is).expect("a known action");
        let Question {
            resource,
            action: text,
            object,
        } = question;
        let text = format!("{}, {text}, {object}", resource.word());
        let permitted = !self.begun.load(Ordering::SeqCst) || (self.permits)(&text);
        let ask = (Ask(resource, *action), text);
        self.asked.lock().expect("not poisoned").push(ask);
        permitted
    }
}

/// A world with one of everything: Applications `a` of project `default` and `b` of project `p`.
async fn world(enforcer: Arc<Recorder>) -> World {
    let world = World::start_under(enforcer.clone()).await;
    fill(&world).await;
    enforcer.begin();
    world
}

/// Stores one of everything.
pub async fn fill(world: &World) {
    let project = json!({"metadata": {"name": "p", "namespace": "argocd"}, "spec": {
        "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}});
    let project = serde_json::from_value(project).expect("a project");
    world.store.create_project(&project).await.expect("stored");
    for (name, project) in [("a", "default"), ("b", "p")] {
        let mut app = app(name);
        app["spec"]["project"] = project.into();
        app["status"]["history"] =
            json!([{"id": 1, "revision": SHA, "source": app["spec"]["source"]}]);
        let app = serde_json::from_value(app).expect("an Application");
        world.store.create_app(&app).await.expect("stored");
    }
    for (name, kind, url) in [
        ("repo-1", "repository", REPO),
        ("repo-write-1", "repository-write", REPO),
        ("creds-1", "repo-creds", TEMPLATE),
        ("creds-write-1", "repo-write-creds", TEMPLATE),
    ] {
        world.store_secret(name, kind, &[("url", url)]).await;
    }
    let cluster = [("server", CLUSTER), ("config", r#"{"bearerToken":"t"}"#)];
    world.store_secret("cluster-1", "cluster", &cluster).await;
    let node = json!({"group": "apps", "kind": "Deployment", "version": "v1", "name": "web", "namespace": "n", "uid": "1"});
    let pod = json!({"kind": "Pod", "version": "v1", "name": "web-1", "namespace": "n", "uid": "2", "parentRefs": [node]});
    let tree = json!({"nodes": [node, pod]});
    *world.live.tree.lock().expect("not poisoned") =
        Some(Arc::new(serde_json::from_value(tree).expect("a tree")));
    *world.live.managed.lock().expect("not poisoned") = Some(Arc::default());
    let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"}, "spec": {"replicas": 1}});
    world
        .live
        .objects
        .lock()
        .expect("not poisoned")
        .insert("web".into(), live);
    let made = world.rest(Method::POST, SETS, Some(set("s"))).await;
    assert_eq!(made.0, 200, "{}", made.1);
    seen(world).await;
}

/// Returns once the server has seen the Applications.
async fn seen(world: &World) {
    for _ in 0..1000 {
        let (_, list) = world.rest(Method::GET, "/api/v1/applications", None).await;
        if list["items"]
            .as_array()
            .is_some_and(|items| items.len() == 2)
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the Applications are not seen");
}

/// The status and the body of a row's answer, over REST if there it can be.
pub async fn answer(world: &World, call: &Call<State>) -> (u16, String) {
    let rpc = call.rpc.trim_start_matches('/');
    if call.kind != Kind::ClientStream {
        return send(world, request(rpc)).await;
    }
    match sent(world, "a", b"files", FILES).await {
        Ok(_) => (200, String::new()),
        Err(e) => {
            let error = ApiError::new(code(e.code()), e.message());
            (error.code.http().as_u16(), error.json().to_string())
        }
    }
}

fn code(code: tonic::Code) -> Code {
    match code {
        tonic::Code::PermissionDenied => Code::PermissionDenied,
        _ => Code::Unknown,
    }
}

/// The SHA-256 of `files`.
const FILES: &str = "3d7db37d08f9140fd09f12b9621cd0954b6d56a9d2f357fb2c7f5d62636d2fd1";

/// What GetManifestsWithFiles answers for an archive, which the fake of the sources does not unpack.
async fn sent(
    world: &World,
    app: &str,
    archive: &[u8],
    checksum: &str,
) -> Result<ManifestResponse, tonic::Status> {
    let query = ApplicationManifestQueryWithFiles {
        name: app.to_owned(),
        checksum: checksum.to_owned(),
        ..Default::default()
    };
    let first = ApplicationManifestQueryWithFilesWrapper {
        query: Some(query),
        chunk: None,
    };
    let chunk = |bytes: &[u8]| ApplicationManifestQueryWithFilesWrapper {
        query: None,
        chunk: Some(FileChunk {
            chunk: bytes.to_vec(),
        }),
    };
    let mut messages = vec![first];
    messages.extend(archive.chunks(2).map(chunk));
    let rpc = "/application.ApplicationService/GetManifestsWithFiles";
    world.grpc_send(rpc, messages).await
}

#[tokio::test]
async fn files_are_rendered_as_the_applications() {
    let world = world(Recorder::new(|_| true)).await;
    let found = sent(&world, "a", b"files", FILES).await.expect("manifests");
    assert_eq!(
        (found.revision.as_str(), found.namespace.as_str()),
        ("streamed", "n")
    );
    let object: Value = serde_json::from_str(&found.manifests[0]).expect("JSON");
    let data = json!({"text": "files", "checksum": FILES, "path": "p"});
    assert_eq!(object["data"], data);
    let tracked = &object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"];
    assert_eq!(tracked, "a:/ConfigMap:n/c");
    let refused = async |app, checksum| {
        let refused = sent(&world, app, b"files", checksum).await;
        refused.expect_err("refused").message().to_owned()
    };
    let wrong = refused("a", "0000").await;
    assert!(
        wrong.starts_with("error sending chunk: file checksum validation error"),
        "{wrong}"
    );
    assert_eq!(
        refused("", FILES).await,
        "invalid request: application name is missing"
    );
    assert_eq!(refused("none", FILES).await, "permission denied");
    let path = "/api/v1/applications/manifestsWithFiles";
    let (status, body) = world.rest(Method::POST, path, Some(json!({}))).await;
    assert_eq!(status, 500, "{body}");
    let why = "error getting query: error getting stream query: query is nil";
    assert_eq!(body["message"], why);
}

/// A request for each row that has a handler: method, path, body.
fn request(rpc: &str) -> (Method, String, Value) {
    let (service, method) = rpc.split_once('/').expect("a service and a method");
    let found = match service {
        "application.ApplicationService" => of_application(method),
        "project.ProjectService" => of_project(method),
        "repository.RepositoryService" => of_repository(method),
        "repocreds.RepoCredsService" => of_credentials(method),
        "certificate.CertificateService" => of_certificate(method),
        "gpgkey.GPGKeyService" => of_gpgkey(method),
        "cluster.ClusterService" => of_cluster(method),
        "account.AccountService" => of_account(method),
        "applicationset.ApplicationSetService" => of_set(method),
        "catalog.CatalogService" => of_catalog(method),
        service if service.starts_with("kubeappsapis.") => of_kubeapps(method),
        _ => None,
    };
    let (request, body) = found.unwrap_or_else(|| panic!("this test has no request for {rpc}"));
    let (method, path) = request.split_once(' ').expect("a method and a path");
    (method.parse().expect("a method"), path.to_owned(), body)
}

fn of_application(method: &str) -> Option<(String, Value)> {
    let none = Value::Null;
    let spec = || app("a")["spec"].clone();
    let v2 = json!({"namespace": "n", "resourceName": "web", "version": "v1", "group": "apps", "kind": "Deployment", "action": "restart"});
    Some(match method {
        "List" => ("GET /api/v1/applications".into(), none),
        "Watch" => ("GET /api/v1/stream/applications".into(), none),
        "Create" => ("POST /api/v1/applications".into(), app("new")),
        "Get" => (format!("GET {APP}?refresh="), none),
        "ListResourceEvents" => (format!("GET {APP}/events"), none),
        "GetApplicationSyncWindows" => (format!("GET {APP}/syncwindows"), none),
        "RevisionMetadata" => (format!("GET {APP}/revisions/{SHA}/metadata"), none),
        "GetOCIMetadata" => (format!("GET {APP}/revisions/1.0.0/ocimetadata"), none),
        "RevisionChartDetails" => (format!("GET {APP}/revisions/1.0.0/chartdetails"), none),
        "GetManifests" => (format!("GET {APP}/manifests"), none),
        "Update" => (format!("PUT {APP}"), app("a")),
        "UpdateSpec" => (format!("PUT {APP}/spec"), spec()),
        "Patch" => (
            format!("PATCH {APP}"),
            json!({"patch": "{\"metadata\": {\"labels\": {\"x\": \"y\"}}}", "patchType": "merge"}),
        ),
        "Delete" => (format!("DELETE {APP}"), none),
        "Sync" => (format!("POST {APP}/sync"), json!({})),
        "ServerSideDiff" => (format!("GET {APP}/server-side-diff"), none),
        "ManagedResources" => (format!("GET {APP}/managed-resources"), none),
        "ResourceTree" => (format!("GET {APP}/resource-tree"), none),
        "WatchResourceTree" => (
            "GET /api/v1/stream/applications/a/resource-tree".into(),
            none,
        ),
        "Rollback" => (format!("POST {APP}/rollback"), json!({"id": 1})),
        "TerminateOperation" => (format!("DELETE {APP}/operation"), none),
        "GetResource" => (format!("GET {APP}/resource?{DEPLOYMENT}"), none),
        "PatchResource" => (
            format!("POST {APP}/resource?{DEPLOYMENT}&patchType=application/merge-patch%2Bjson"),
            json!("{\"spec\": {\"replicas\": 2}}"),
        ),
        "ListResourceActions" => (format!("GET {APP}/resource/actions?{DEPLOYMENT}"), none),
        "RunResourceAction" => (
            format!("POST {APP}/resource/actions?{DEPLOYMENT}"),
            json!("restart"),
        ),
        "RunResourceActionV2" => (format!("POST {APP}/resource/actions/v2"), v2),
        "DeleteResource" => (format!("DELETE {APP}/resource?{DEPLOYMENT}"), none),
        "PodLogs" => (format!("GET {APP}/pods/web-1/logs?namespace=n"), none),
        "ListLinks" => (format!("GET {APP}/links"), none),
        "ListResourceLinks" => (format!("GET {APP}/resource/links?{DEPLOYMENT}"), none),
        _ => return None,
    })
}

fn of_kubeapps(method: &str) -> Option<(String, Value)> {
    const PLACE: &str = "plugin/helm.packages/v1alpha1/c/default/ns/team";
    const INSTALLED: &str =
        "packages/v1alpha1/installedpackages/plugin/helm.packages/v1alpha1/c/default/ns/n/a";
    let path = match method {
        "GetAvailablePackageSummaries" => "packages/v1alpha1/availablepackages".to_owned(),
        "GetAvailablePackageVersions" => {
            format!("packages/v1alpha1/availablepackages/{PLACE}/r%2Fweb/versions")
        }
        "GetAvailablePackageDetail" => {
            format!("packages/v1alpha1/availablepackages/{PLACE}/r%2Fweb")
        }
        "GetInstalledPackageSummaries" => "packages/v1alpha1/installedpackages".to_owned(),
        "GetInstalledPackageResourceRefs" => format!("{INSTALLED}/resourcerefs"),
        "GetInstalledPackageDetail" => INSTALLED.to_owned(),
        "GetPackageRepositorySummaries" => "packages/v1alpha1/repositories".to_owned(),
        "GetPackageRepositoryDetail" => format!("packages/v1alpha1/repositories/{PLACE}/r"),
        "GetConfiguredPlugins" => "plugins/v1alpha1/configured-plugins".to_owned(),
        _ => return None,
    };
    Some((format!("GET /core/{path}"), Value::Null))
}

fn of_catalog(method: &str) -> Option<(String, Value)> {
    const CATALOG: &str = "/api/v1/catalog";
    let chart = json!({"namespace": "team", "repository": "r", "path": "web"});
    Some(match method {
        "Search" => (format!("GET {CATALOG}/charts"), Value::Null),
        "Get" => (format!("GET {CATALOG}/charts/team/r/web"), Value::Null),
        "ListRepositories" => (format!("GET {CATALOG}/repositories"), Value::Null),
        "SyncRepository" => (
            format!("POST {CATALOG}/repositories/team/r/sync"),
            json!({}),
        ),
        "AddRepository" => (
            format!("POST {CATALOG}/repositories"),
            json!({"name": "new", "url": "https://charts.example.com"}),
        ),
        "RemoveRepository" => (format!("DELETE {CATALOG}/repositories/team/r"), Value::Null),
        "PreviewInstall" => (format!("POST {CATALOG}/install"), json!({"chart": chart})),
        "ListUpdates" => (format!("GET {CATALOG}/updates"), Value::Null),
        "PreviewUpgrade" => (format!("POST {CATALOG}/upgrade"), json!({"name": "a"})),
        "PreviewRollback" => (format!("POST {CATALOG}/rollback"), json!({"name": "a"})),
        _ => return None,
    })
}

fn set(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "generators": [{"list": {"elements": []}}],
        "template": {"metadata": {"name": "x"}, "spec": app("x")["spec"]},
    }})
}

fn of_set(method: &str) -> Option<(String, Value)> {
    let none = Value::Null;
    Some(match method {
        "Get" => (format!("GET {SETS}/s"), none),
        "Generate" => (
            format!("POST {SETS}/generate"),
            json!({"applicationSet": set("new")}),
        ),
        "List" => (format!("GET {SETS}"), none),
        // It exists and differs, so that it is updated.
        "Create" => {
            let mut other = set("s");
            other["spec"]["goTemplate"] = json!(true);
            (format!("POST {SETS}?upsert=true"), other)
        }
        "Delete" => (format!("DELETE {SETS}/s"), none),
        "ResourceTree" => (format!("GET {SETS}/s/resource-tree"), none),
        "ListResourceEvents" => (format!("GET {SETS}/s/events"), none),
        "Watch" => ("GET /api/v1/stream/applicationsets?name=s".into(), none),
        _ => return None,
    })
}

fn of_project(method: &str) -> Option<(String, Value)> {
    const PROJECTS: &str = "/api/v1/projects";
    let project = |name: &str| json!({"project": {"metadata": {"name": name, "namespace": "argocd"}, "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}}});
    Some(match method {
        "Create" => (format!("POST {PROJECTS}"), project("new")),
        "List" => (format!("GET {PROJECTS}"), Value::Null),
        "Update" => (format!("PUT {PROJECTS}/p"), project("p")),
        // Without Applications.
        "Delete" => (format!("DELETE {PROJECTS}/empty"), Value::Null),
        "Get" => (format!("GET {PROJECTS}/p"), Value::Null),
        "GetDetailedProject" => (format!("GET {PROJECTS}/p/detailed"), Value::Null),
        "GetGlobalProjects" => (format!("GET {PROJECTS}/p/globalprojects"), Value::Null),
        "ListEvents" => (format!("GET {PROJECTS}/p/events"), Value::Null),
        "GetSyncWindowsState" => (format!("GET {PROJECTS}/p/syncwindows"), Value::Null),
        "ListLinks" => (format!("GET {PROJECTS}/p/links"), Value::Null),
        "CreateToken" => (format!("POST {PROJECTS}/p/roles/r/token"), json!({})),
        "DeleteToken" => (format!("DELETE {PROJECTS}/p/roles/r/token/1"), Value::Null),
        _ => return None,
    })
}

fn of_repository(method: &str) -> Option<(String, Value)> {
    let new = json!({"repo": "https://example.org/new.git"});
    let details =
        json!({"source": {"repoURL": REPO, "path": "p"}, "appName": "a", "appProject": "default"});
    Some(match method {
        method if method.contains("Write") => return of_write_repository(method),
        "List" | "ListRepositories" => ("GET /api/v1/repositories".into(), Value::Null),
        "Get" => (format!("GET {REPO_PATH}"), Value::Null),
        "ListRefs" => (format!("GET {REPO_PATH}/refs"), Value::Null),
        "ListOCITags" => (format!("GET {REPO_PATH}/oci-tags"), Value::Null),
        "GetHelmCharts" => (format!("GET {REPO_PATH}/helmcharts"), Value::Null),
        "ListApps" => (
            format!("GET {REPO_PATH}/apps?appName=a&appProject=default"),
            Value::Null,
        ),
        "GetAppDetails" => (format!("POST {REPO_PATH}/appdetails"), details),
        "Create" | "CreateRepository" => ("POST /api/v1/repositories".into(), new),
        "Update" | "UpdateRepository" => (
            format!("PUT {REPO_PATH}"),
            json!({"repo": REPO, "username": "u"}),
        ),
        "Delete" | "DeleteRepository" => (format!("DELETE {REPO_PATH}"), Value::Null),
        "ValidateAccess" => (format!("POST {REPO_PATH}/validate"), json!(REPO)),
        _ => return None,
    })
}

fn of_write_repository(method: &str) -> Option<(String, Value)> {
    let all = "/api/v1/write-repositories";
    let one = REPO_PATH.replace("/repositories", "/write-repositories");
    let own = |url: &str| json!({"repo": url, "username": "u", "password": "p"});
    Some(match method {
        "ListWriteRepositories" => (format!("GET {all}"), Value::Null),
        "GetWrite" => (format!("GET {one}"), Value::Null),
        "CreateWriteRepository" => (format!("POST {all}"), own("https://example.org/new.git")),
        "UpdateWriteRepository" => (format!("PUT {one}"), own(REPO)),
        "DeleteWriteRepository" => (format!("DELETE {one}"), Value::Null),
        "ValidateWriteAccess" => (format!("POST {one}/validate"), json!(REPO)),
        _ => return None,
    })
}

fn of_credentials(method: &str) -> Option<(String, Value)> {
    // One of each use is stored.
    let (path, kind) = if method.contains("Write") {
        ("/api/v1/write-repocreds", "Write")
    } else {
        ("/api/v1/repocreds", "")
    };
    let creds = |url: &str| json!({"url": url, "username": "u"});
    let stored = format!("{path}/{TEMPLATE_PATH}");
    Some(match method.replacen(kind, "", 1).as_str() {
        "ListRepositoryCredentials" => (format!("GET {path}"), Value::Null),
        "CreateRepositoryCredentials" => (format!("POST {path}"), creds("https://new.example.org")),
        "UpdateRepositoryCredentials" => (format!("PUT {stored}"), creds(TEMPLATE)),
        "DeleteRepositoryCredentials" => (format!("DELETE {stored}"), Value::Null),
        _ => return None,
    })
}

fn of_certificate(method: &str) -> Option<(String, Value)> {
    const PATH: &str = "/api/v1/certificates";
    let key = STANDARD.encode(common::HOST_KEY);
    let new = json!({"items": [{"serverName": "new.example.org", "certType": "ssh", "certSubType": "ssh-ed25519", "certData": key}]});
    Some(match method {
        "ListCertificates" => (format!("GET {PATH}"), Value::Null),
        "CreateCertificate" => (format!("POST {PATH}"), new),
        "DeleteCertificate" => (format!("DELETE {PATH}"), Value::Null),
        _ => return None,
    })
}

fn of_gpgkey(method: &str) -> Option<(String, Value)> {
    const PATH: &str = "/api/v1/gpgkeys";
    let id = signed::KEY_ID;
    Some(match method {
        "List" => (format!("GET {PATH}"), Value::Null),
        "Get" => (format!("GET {PATH}/{id}"), Value::Null),
        "Create" => (format!("POST {PATH}"), json!({"keyData": signed::KEY})),
        "Delete" => (format!("DELETE {PATH}?keyID={id}"), Value::Null),
        _ => return None,
    })
}

fn of_cluster(method: &str) -> Option<(String, Value)> {
    let server = "https%3A%2F%2Fkubernetes.default.svc";
    let stored = "https%3A%2F%2Fc.example";
    Some(match method {
        "List" => ("GET /api/v1/clusters".into(), Value::Null),
        "Get" => (format!("GET /api/v1/clusters/{server}"), Value::Null),
        "Create" => (
            "POST /api/v1/clusters?upsert=true".into(),
            json!({"server": CLUSTER, "name": "other", "config": {}}),
        ),
        "Update" => (
            format!("PUT /api/v1/clusters/{stored}?updatedFields=name"),
            json!({"name": "other"}),
        ),
        "Delete" => (format!("DELETE /api/v1/clusters/{stored}"), Value::Null),
        "RotateAuth" => (
            format!("POST /api/v1/clusters/{stored}/rotate-auth"),
            json!({}),
        ),
        "InvalidateCache" => (
            format!("POST /api/v1/clusters/{stored}/invalidate-cache"),
            json!({}),
        ),
        _ => return None,
    })
}

/// A request for an account other than the caller's.
fn of_account(method: &str) -> Option<(String, Value)> {
    let password =
        json!({"name": "other", "currentPassword": common::PASSWORD, "newPassword": "long enough"});
    Some(match method {
        "ListAccounts" => ("GET /api/v1/account".into(), Value::Null),
        "GetAccount" => ("GET /api/v1/account/other".into(), Value::Null),
        "UpdatePassword" => ("PUT /api/v1/account/password".into(), password),
        "CreateToken" => ("POST /api/v1/account/other/token".into(), json!({})),
        "DeleteToken" => ("DELETE /api/v1/account/other/token/t".into(), Value::Null),
        _ => return None,
    })
}

/// The status and the body; for a stream, the part that arrives immediately.
async fn send(world: &World, (method, path, body): (Method, String, Value)) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("token", &world.token);
    let body = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let response = world.send(request.body(Full::new(body)).expect("a request"));
    // A stream sends nothing at all before its first message.
    let wait = Duration::from_millis(500);
    let Ok(response) = tokio::time::timeout(10 * wait, response).await else {
        return (200, String::new());
    };
    let (status, mut body) = (response.status().as_u16(), response.into_body());
    let mut text = String::new();
    while let Ok(Some(frame)) = tokio::time::timeout(wait, body.frame()).await {
        let data = frame.expect("a body").into_data().unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&data));
    }
    (status, text)
}

/// Sets up what a row needs for a successful reply.
pub async fn prepare(world: &World, rpc: &str) {
    match rpc {
        "application.ApplicationService/TerminateOperation" => {
            let running = json!({"operation": {"sync": {}}, "status": {"operationState": {"phase": "Running", "operation": {}, "startedAt": "2024-01-01T00:00:00Z"}}});
            world.store.control("a", &running);
        }
        "repository.RepositoryService/GetAppDetails" => {
            // Only its own source is told about.
            let own = json!({"spec": {"source": {
                "repoURL": REPO, "path": "p", "chart": null, "targetRevision": null,
            }}});
            world.store.control("a", &own);
        }
        "application.ApplicationService/RevisionChartDetails" => {
            let chart = json!({"spec": {"source": {"chart": "web", "targetRevision": "1.0.0"}}});
            world.store.control("a", &chart);
        }
        "application.ApplicationService/GetOCIMetadata" => {
            let oci = json!({"spec": {"source": {"repoURL": "oci://example.org/r"}}});
            world.store.control("a", &oci);
        }
        "project.ProjectService/CreateToken" => {
            let mut project = world.store.get_project("p").await.expect("it is there");
            let roles = json!([{"name": "r"}]);
            project.spec.roles = serde_json::from_value(roles).expect("a role");
            world.store.update_project(&project).await.expect("stored");
        }
        "project.ProjectService/Delete" => {
            let empty = json!({"metadata": {"name": "empty", "namespace": "argocd"}, "spec": {}});
            let empty = serde_json::from_value(empty).expect("a project");
            world.store.create_project(&empty).await.expect("stored");
        }
        rpc if rpc.starts_with("catalog.") || rpc.starts_with("kubeappsapis.") => {
            let url = world.catalog.fill().await;
            let before = json!({"repoURL": url, "chart": "web", "targetRevision": "1.1.0"});
            let chart = json!({
                "spec": {"source": {
                    "repoURL": url, "chart": "web", "targetRevision": "1.0.0", "path": null,
                }},
                "status": {"history": [{"revision": "1.1.0", "source": before}]},
            });
            world.store.control("a", &chart);
        }
        "gpgkey.GPGKeyService/Get" | "gpgkey.GPGKeyService/Delete" => {
            let keys = BTreeMap::from([(signed::KEY_ID.to_owned(), Some(signed::KEY.to_owned()))]);
            let set = world
                .store
                .set_in_config_map("argocd-gpg-keys-cm", "", &keys);
            set.await.expect("stored");
        }
        _ => {}
    }
}

/// Whether a 404 reply means that the permission check passed: there is only one account.
pub fn is_of_another_account(rpc: &str) -> bool {
    rpc.starts_with("account.") && !rpc.ends_with("/ListAccounts")
}

#[tokio::test]
async fn each_row_asks_for_what_it_names() {
    let mut signed_in = Vec::new();
    let mut walked = 0;
    for call in table().calls().iter().filter(|c| c.handler.is_some()) {
        let rpc = call.rpc.trim_start_matches('/');
        let (always, may) = match call.access {
            Access::Public => continue,
            Access::SignedIn => {
                signed_in.push(rpc.to_owned());
                continue;
            }
            Access::Asks { always, sometimes } => (always.to_vec(), sometimes.to_vec()),
            // No permission is checked for the caller's own account, the only one.
            Access::Lists(one) if rpc == "account.AccountService/ListAccounts" => {
                (Vec::new(), vec![one])
            }
            Access::Lists(one) => (vec![one], Vec::new()),
        };
        let recorder = Recorder::new(|_| true);
        let world = world(recorder.clone()).await;
        prepare(&world, rpc).await;
        let (status, body) = answer(&world, call).await;
        let want = if is_of_another_account(rpc) { 404 } else { 200 };
        assert_eq!(status, want, "{rpc}: {body}");
        let asked = recorder.asks();
        for ask in &always {
            assert!(asked.contains(ask), "{rpc} does not ask for {ask}");
        }
        for ask in &asked {
            assert!(
                always.contains(ask) || may.contains(ask),
                "{rpc} asks for {ask}"
            );
        }
        walked += 1;
    }
    assert_eq!(
        signed_in,
        [
            "cluster.SettingsService/GetPlugins",
            "account.AccountService/CanI",
            // Names only, which Argo CD shows to everybody as well.
            "notification.NotificationService/ListTriggers",
            "notification.NotificationService/ListServices",
            "notification.NotificationService/ListTemplates",
            "kubeappsapis.core.plugins.v1alpha1.PluginsService/GetConfiguredPlugins",
        ]
    );
    assert!(walked > 55, "{walked}");
}

#[tokio::test]
async fn the_refused_get_nothing_and_do_nothing() {
    let world = world(Recorder::new(|_| false)).await;
    prepare(&world, "application.ApplicationService/TerminateOperation").await;
    prepare(&world, "project.ProjectService/Delete").await;
    prepare(&world, "catalog.CatalogService/PreviewUpgrade").await;
    let effects = || {
        let deleted = format!("{:?}", world.live.deleted.lock().expect("not poisoned"));
        let written = format!("{:?}", world.live.written.lock().expect("not poisoned"));
        (world.store.everything(), deleted, written)
    };
    let before = effects();
    for call in table().calls().iter().filter(|c| c.handler.is_some()) {
        let rpc = call.rpc.trim_start_matches('/');
        let lists = match call.access {
            Access::Public | Access::SignedIn => continue,
            Access::Lists(_) => true,
            Access::Asks { .. } => false,
        };
        let (status, body) = answer(&world, call).await;
        if lists && call.kind == Kind::ServerStream {
            assert_eq!(body, "", "{rpc}");
        } else if rpc == "account.AccountService/ListAccounts" {
            assert_eq!(status, 200, "{rpc}: one's own account is always shown");
        } else if lists {
            let list: Value = serde_json::from_str(&body).expect("JSON");
            let items = list["items"].as_array().map_or(0, Vec::len);
            assert_eq!((status, items), (200, 0), "{rpc}: {body}");
        } else {
            assert_eq!(status, 403, "{rpc}: {body}");
            let body: Value = serde_json::from_str(&body).expect("JSON");
            // Streams have an error of their own form.
            let of_stream = body["error"]["message"].as_str();
            let words = of_stream.or(body["error"].as_str()).expect("text");
            assert!(words.contains("permission denied"), "{rpc}: {words}");
        }
        assert_eq!(effects(), before, "{rpc} has done something");
    }
}

/// Who may only create an Application is not told what is in its cluster.
#[tokio::test]
async fn an_install_is_compared_for_those_who_may_see_it() {
    let world = world(Recorder::new(|q| q != "applications, get, default/shop")).await;
    prepare(&world, "catalog.CatalogService/PreviewInstall").await;
    let chart = json!({"namespace": "team", "repository": "r", "path": "web"});
    for (compare, wanted) in [(false, 200), (true, 403)] {
        let request = json!({"chart": chart, "name": "shop", "compare": compare});
        let path = "/api/v1/catalog/install";
        let (status, body) = world.rest(Method::POST, path, Some(request)).await;
        assert_eq!(status, wanted, "{body}");
    }
}

#[tokio::test]
async fn what_one_may_not_see_looks_as_what_is_not_there() {
    // Only Applications of project `default` are visible.
    let world = world(Recorder::new(|q| {
        q.starts_with("applications, get, default/")
    }))
    .await;
    let get = async |path: &str| {
        let path = format!("/api/v1/applications/{path}");
        let (status, body) = world.rest(Method::GET, &path, None).await;
        let error = body["error"].as_str().unwrap_or_default().to_owned();
        (status, error)
    };
    assert_eq!(get("a").await.0, 200);
    let denied = (403, "permission denied".to_owned());
    for path in ["b", "none", "b?project=p", "none?project=p"] {
        assert_eq!(get(path).await, denied, "{path}");
    }
    for path in ["b", "none"] {
        let absent = format!("applications.argoproj.io {path:?} not found");
        let path = format!("{path}?project=default");
        assert_eq!(get(&path).await, (404, absent), "{path}");
    }
    let (_, list) = world.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    let stream = "/api/v1/stream/applications".to_owned();
    let (_, events) = send(&world, (Method::GET, stream, Value::Null)).await;
    assert_eq!(events.lines().count(), 1, "{events}");
    // For a visible Application, a refusal names the missing permission.
    let (_, sync) = world
        .rest(Method::POST, &format!("{APP}/sync"), Some(json!({})))
        .await;
    let words = sync["error"].as_str().expect("text");
    let told = "permission denied: applications, sync, default/a, sub: admin, iat: ";
    assert!(words.starts_with(told), "{words}");
}

#[tokio::test]
async fn questions_name_the_object_as_argo_cds_do() {
    let recorder = Recorder::new(|_| true);
    let world = world(recorder.clone()).await;
    for rpc in [
        "DeleteResource",
        "PatchResource",
        "RunResourceAction",
        "PodLogs",
    ] {
        let rpc = format!("application.ApplicationService/{rpc}");
        send(&world, request(&rpc)).await;
    }
    let asked = recorder.texts();
    for want in [
        "applications, delete/apps/Deployment/n/web, default/a",
        "applications, update/apps/Deployment/n/web, default/a",
        "applications, action/apps/Deployment/restart, default/a",
        "applications, get, default/a",
        "logs, get, default/a",
    ] {
        assert!(asked.iter().any(|text| text == want), "{want}: {asked:?}");
    }
}

#[tokio::test]
async fn an_application_moves_only_to_where_it_may_be_created() {
    let world = world(Recorder::new(|q| q != "applications, create, p/a")).await;
    let mut moved = app("a");
    moved["spec"]["project"] = "p".into();
    let before = world.store.everything();
    let (status, body) = world.rest(Method::PUT, APP, Some(moved)).await;
    assert_eq!(status, 403, "{body}");
    assert_eq!(world.store.everything(), before);
}

#[tokio::test]
async fn some_requests_ask_for_more() {
    let world = world(Recorder::new(|q| {
        let refused = [
            "applications, override, default/a",
            "applications, update, default/a",
            "clusters, update, https://c",
        ];
        !refused.contains(&q)
    }))
    .await;
    let local = json!({"manifests": ["{}"], "dryRun": true});
    let sync = format!("{APP}/sync");
    let (status, body) = world.rest(Method::POST, &sync, Some(local)).await;
    assert_eq!(status, 403, "manifests of one's own: {body}");
    let mut other = app("a");
    other["spec"]["source"]["path"] = "q".into();
    let upsert = "/api/v1/applications?upsert=true";
    let (status, body) = world.rest(Method::POST, upsert, Some(other)).await;
    assert_eq!(status, 403, "an upsert that updates: {body}");
    let project = json!({"project": {"metadata": {"name": "p", "namespace": "argocd"}, "spec": {
        "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}, {"server": "https://c", "namespace": "n"}]}}});
    let (status, body) = world
        .rest(Method::PUT, "/api/v1/projects/p", Some(project))
        .await;
    assert_eq!(status, 403, "a destination that is new: {body}");
}

#[tokio::test]
async fn what_is_replaced_must_be_permitted_to_change() {
    let world = world(Recorder::new(|q| !q.contains(", update, "))).await;
    let key = |key: &str| {
        let data = STANDARD.encode(key);
        json!({"items": [{"serverName": "h.example.org", "certType": "ssh", "certSubType": "ssh-ed25519", "certData": data}]})
    };
    let certificates = "/api/v1/certificates?upsert=true";
    let creds = json!({"url": "https://Example.org/team/", "username": "u"});
    let upsert = async |path: &str, body: Value| world.rest(Method::POST, path, Some(body)).await;
    assert_eq!(upsert(certificates, key(common::HOST_KEY)).await.0, 200);
    let before = world.store.everything();
    let other = key(common::OTHER_HOST_KEY);
    for (path, body, asked) in [
        (certificates, other, "certificates, update, ,"),
        (
            "/api/v1/repocreds?upsert=true",
            creds.clone(),
            "repositories, update, https://example.org/team,",
        ),
        (
            "/api/v1/write-repocreds?upsert=true",
            creds,
            "write-repositories, update, https://example.org/team,",
        ),
    ] {
        let (status, refused) = upsert(path, body).await;
        assert_eq!(status, 403, "{path}: {refused}");
        let told = refused["message"].as_str().expect("text");
        assert!(told.contains(asked), "{told}");
    }
    assert_eq!(world.store.everything(), before);
}
