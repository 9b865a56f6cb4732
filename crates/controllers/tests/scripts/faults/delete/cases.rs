//! The table of deletions. Main type: [`Case`].

const BEGIN: &str = "commit
  configmap one
  service two wave=1
  deployment three wave=-1
app finalizer
sync
";
const ALL: &[&str] = &["configmap/one", "service/two", "deployment/three"];
const PROJECT: &str = "project\n  description: of this case\n";

pub struct Case {
    pub name: &'static str,
    /// Until the Application is synced, in the notation of scripts.
    pub begin: &'static str,
    /// The end of API groups whose server nobody reaches, after `happens`; refused requests to
    /// them are in `refused`.
    pub stale: Option<&'static str>,
    /// What happens then.
    pub happens: &'static str,
    /// Requests that are refused from then on.
    pub refused: &'static [(&'static str, u16, &'static str)],
    /// The controller is restarted, too.
    pub restarted: bool,
    /// The deletion waits, with a condition that contains this text. Empty: no condition.
    pub waits: Option<&'static str>,
    /// Objects that are not in deletion while it waits.
    pub meanwhile: &'static [&'static str],
    /// What resolves it; nothing is refused any more.
    pub then: &'static str,
    /// Objects that do not exist at the end.
    pub gone: &'static [&'static str],
    /// Objects that exist at the end; those that existed before with the same uids.
    pub kept: &'static [&'static str],
}

const CASE: Case = Case {
    name: "",
    begin: BEGIN,
    happens: "",
    refused: &[],
    stale: None,
    restarted: false,
    waits: None,
    meanwhile: &[],
    then: "",
    gone: ALL,
    kept: &[],
};

/// Tracking metadata written for the ConfigMap `one`.
macro_rules! copied {
    ($object:literal) => {
        concat!(
            "create ",
            $object,
            " annotation:argocd.argoproj.io/tracking-id=$APP:/ConfigMap:$NS/one"
        )
    };
}

pub const CASES: &[Case] = &[
    // What is deleted, and what asks to be kept.
    Case {
        name: "nothing happens",
        ..CASE
    },
    Case {
        name: "in the background",
        begin: "commit\n  configmap one\n  deployment three\napp finalizer=background\nsync",
        ..CASE
    },
    Case {
        name: "in the foreground by name",
        begin: "commit\n  configmap one\napp finalizer=foreground\nsync",
        gone: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "without a finalizer",
        begin: "commit\n  configmap one\napp\nsync",
        gone: &[],
        kept: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "Delete=false on an object",
        begin: "commit\n  configmap one\n  configmap keep options=Delete=false\napp finalizer\nsync",
        gone: &["configmap/one"],
        kept: &["configmap/keep"],
        ..CASE
    },
    Case {
        name: "Delete=false on the Application",
        happens: "app\n  syncPolicy: {syncOptions: [Delete=false]}",
        gone: &[],
        kept: ALL,
        ..CASE
    },
    Case {
        name: "Delete=false on the Application, and not on an object",
        begin: "commit\n  configmap one options=Delete=true\n  configmap keep\napp finalizer\n  syncPolicy: {syncOptions: [Delete=false]}\nsync",
        gone: &["configmap/one"],
        kept: &["configmap/keep"],
        ..CASE
    },
    Case {
        name: "Delete=confirm on the Application, and not on its objects",
        begin: "commit\n  configmap one options=Delete=true\napp finalizer\n  syncPolicy: {syncOptions: [Delete=confirm]}\nsync",
        gone: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "Delete=false is added by hand",
        happens: "edit service/two options=Delete=false",
        gone: &["configmap/one"],
        kept: &["service/two"],
        ..CASE
    },
    Case {
        name: "Prune=false keeps nothing here",
        begin: "commit\n  configmap one options=Prune=false\napp finalizer\nsync",
        gone: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "Helm's keep",
        begin: "commit\n  configmap one annotation:helm.sh/resource-policy=delete\n  configmap keep annotation:helm.sh/resource-policy=keep\napp finalizer\nsync",
        gone: &["configmap/one"],
        kept: &["configmap/keep"],
        ..CASE
    },
    Case {
        name: "a definition stays, its objects go",
        begin: "commit\n  crd widgets\n  Widget one\napp finalizer\n  syncPolicy: {syncOptions: [SkipDryRunOnMissingResource=true]}\nsync",
        happens: "edit crd/widgets.$APP.example.org annotation:argocd.argoproj.io/tracking-id=$APP:apiextensions.k8s.io/CustomResourceDefinition:$NS/widgets.$APP.example.org",
        gone: &["Widget/one"],
        kept: &["crd/widgets.$APP.example.org"],
        ..CASE
    },
    // Confirmation.
    Case {
        name: "Delete=confirm",
        happens: "edit service/two options=Delete=confirm",
        waits: Some(""),
        meanwhile: ALL,
        then: "approve",
        ..CASE
    },
    Case {
        name: "Delete=confirm on the Application",
        happens: "app\n  syncPolicy: {syncOptions: [Delete=confirm]}",
        waits: Some(""),
        meanwhile: ALL,
        then: "approve",
        ..CASE
    },
    Case {
        name: "Prune=confirm",
        happens: "edit configmap/one options=Prune=confirm",
        waits: Some(""),
        meanwhile: ALL,
        then: "approve",
        ..CASE
    },
    Case {
        name: "an approval of before",
        happens: "edit configmap/one options=Delete=confirm\napprove\npass 10s",
        waits: Some(""),
        meanwhile: ALL,
        then: "approve",
        ..CASE
    },
    // Kinds that cannot be read.
    Case {
        name: "a kind that cannot be listed any more",
        refused: &[("GET /api/v1/configmaps", 403, "no")],
        ..CASE
    },
    Case {
        name: "a kind that may not be listed, after a restart",
        refused: &[("GET /api/v1/configmaps", 403, "configmaps is forbidden")],
        restarted: true,
        waits: Some(
            "failed to load state of resource ConfigMap: configmaps is forbidden; the deletion waits",
        ),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "a kind that fails, after a restart",
        refused: &[("GET /apis/apps/v1/deployments", 500, "the store is away")],
        restarted: true,
        waits: Some("failed to load state of resource Deployment.apps: the store is away"),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "a kind that is not found, after a restart",
        refused: &[("GET /api/v1/services", 404, "nobody knows")],
        restarted: true,
        waits: Some("resource Service: nobody knows"),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "a broken conversion, after a restart",
        begin: "commit\n  crd widgets\n  Widget one\napp finalizer\n  syncPolicy: {syncOptions: [SkipDryRunOnMissingResource=true]}\nsync",
        refused: &[("/widgets", 500, "conversion webhook failed")],
        restarted: true,
        waits: Some("conversion webhook failed"),
        gone: &["Widget/one"],
        ..CASE
    },
    Case {
        name: "all groups fail in discovery, after a restart",
        refused: &[("GET /apis$", 503, "nobody answers")],
        restarted: true,
        waits: Some("resource Deployment.apps: nobody answers"),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "nobody reaches the server of one API group, after a restart",
        begin: "commit\n  crd widgets\n  Widget one\n  configmap two\napp finalizer\n  syncPolicy: {syncOptions: [SkipDryRunOnMissingResource=true]}\nsync",
        stale: Some(".example.org"),
        refused: &[("example.org/", 503, "nobody is there")],
        restarted: true,
        waits: Some("resource Widget.$APP.example.org: the aggregated API server does not answer"),
        meanwhile: &["Widget/one"],
        gone: &["Widget/one", "configmap/two"],
        ..CASE
    },
    Case {
        name: "a kind of others cannot be read, after a restart",
        refused: &[
            (
                "GET /apis/batch/v1/cronjobs",
                500,
                "conversion webhook failed",
            ),
            ("GET /api/v1/endpoints", 403, "no"),
        ],
        restarted: true,
        ..CASE
    },
    Case {
        name: "what Git has no more, of a kind that cannot be read",
        happens: "commit\n  configmap one\n  deployment three",
        refused: &[("GET /api/v1/services", 403, "no")],
        restarted: true,
        waits: Some("resource Service: no"),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "a status that was lost, and a kind that cannot be read",
        happens: "edit app status.resources=null status.operationState=null status.sync.status=Unknown status.history=null",
        refused: &[("GET /api/v1/configmaps", 403, "no")],
        restarted: true,
        waits: Some("resource ConfigMap: no"),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "a kind that is gone",
        begin: "commit\n  crd widgets\n  Widget one\n  configmap two\napp finalizer\n  syncPolicy: {syncOptions: [SkipDryRunOnMissingResource=true]}\nsync",
        happens: "delete crd/widgets.$APP.example.org",
        gone: &["configmap/two"],
        ..CASE
    },
    Case {
        name: "deletions are refused",
        refused: &[("DELETE /api/v1", 403, "services is forbidden")],
        waits: Some("services is forbidden"),
        meanwhile: &["configmap/one", "service/two", "deployment/three"],
        ..CASE
    },
    Case {
        name: "deletions are not found, which says nothing of the objects",
        refused: &[("DELETE /api/v1", 404, "nobody knows")],
        waits: Some("nobody knows"),
        meanwhile: ALL,
        ..CASE
    },
    Case {
        name: "the deletion of a hook is not found, which says nothing of it",
        begin: "commit\n  job before hook=PreDelete delete=HookSucceeded\n  configmap one\napp finalizer\nsync",
        refused: &[("DELETE /apis/batch", 404, "nobody knows")],
        waits: Some("nobody knows"),
        meanwhile: &["job/before"],
        gone: &["configmap/one", "job/before"],
        ..CASE
    },
    Case {
        name: "a namespace's deletion is not found, which says nothing of it",
        begin: "commit\n  namespace $APP-own\n  configmap one namespace=$APP-own\napp finalizer\nsync",
        refused: &[("DELETE /api/v1/namespaces", 404, "nobody knows")],
        waits: Some("nobody knows"),
        meanwhile: &["namespace/$APP-own", "configmap/$APP-own/one"],
        gone: &["configmap/$APP-own/one", "namespace/$APP-own"],
        ..CASE
    },
    // Copied tracking metadata.
    Case {
        name: "a mark copied to another name",
        happens: copied!("configmap stranger"),
        kept: &["configmap/stranger"],
        ..CASE
    },
    Case {
        name: "a mark copied to another namespace",
        happens: concat!(
            "create namespace $APP-other\n",
            copied!("configmap one namespace=$APP-other")
        ),
        kept: &["configmap/$APP-other/one"],
        ..CASE
    },
    Case {
        name: "a mark copied to another kind",
        happens: copied!("secret one"),
        kept: &["secret/one"],
        ..CASE
    },
    Case {
        name: "a mark copied to another group",
        happens: copied!("role one"),
        kept: &["role/one"],
        ..CASE
    },
    Case {
        name: "a mark copied to the cluster's scope",
        happens: copied!("clusterrole $APP-copy"),
        kept: &["clusterrole/$APP-copy"],
        ..CASE
    },
    Case {
        name: "both marks copied",
        begin: "settings\n  application.resourceTrackingMethod: annotation+label\ncommit\n  configmap one\napp finalizer\nsync",
        happens: copied!("configmap stranger label:app.kubernetes.io/instance=$APP"),
        gone: &["configmap/one"],
        kept: &["configmap/stranger"],
        ..CASE
    },
    Case {
        name: "labels have no id, as with Argo CD",
        begin: "settings\n  application.resourceTrackingMethod: label\ncommit\n  configmap one\napp finalizer\nsync",
        happens: "create configmap stranger label:app.kubernetes.io/instance=$APP",
        gone: &["configmap/one", "configmap/stranger"],
        ..CASE
    },
    Case {
        name: "a label that is not the mark",
        happens: "create configmap stranger label:app.kubernetes.io/instance=$APP",
        kept: &["configmap/stranger"],
        ..CASE
    },
    Case {
        name: "a mark of when the kind was in another group",
        happens: "edit deployment/three annotation:argocd.argoproj.io/tracking-id=$APP:extensions/Deployment:$NS/three",
        ..CASE
    },
    Case {
        name: "another Application has taken it",
        happens: "edit configmap/one annotation:argocd.argoproj.io/tracking-id=other:/ConfigMap:$NS/one",
        gone: &["service/two", "deployment/three"],
        kept: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "the mark was taken off",
        happens: "edit configmap/one annotation:argocd.argoproj.io/tracking-id=null",
        gone: &["service/two"],
        kept: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "another object of the same name",
        happens: "delete configmap/one\ncreate configmap one",
        gone: &["service/two"],
        kept: &["configmap/one"],
        ..CASE
    },
    // Held by others.
    Case {
        name: "a foreign finalizer",
        happens: "edit configmap/one finalizer=example.org/hold",
        waits: Some("to be deleted, which is held by example.org/hold"),
        meanwhile: &["deployment/three"],
        then: "edit configmap/one finalizer=",
        ..CASE
    },
    Case {
        name: "the highest wave is held",
        happens: "edit service/two finalizer=example.org/hold",
        waits: Some("/Service/"),
        meanwhile: &["configmap/one", "deployment/three"],
        then: "edit service/two finalizer=",
        ..CASE
    },
    Case {
        name: "a namespace that goes",
        begin: "commit\n  namespace $APP-home\n  configmap one namespace=$APP-home\n  configmap two\napp finalizer\nsync",
        happens: "delete namespace/$APP-home",
        gone: &["configmap/$APP-home/one", "configmap/two"],
        ..CASE
    },
    // Clusters.
    Case {
        name: "the cluster is not known any more",
        happens: "app\n  destination: {server: \"https://far.example.org\"}",
        gone: &[],
        kept: ALL,
        ..CASE
    },
    Case {
        name: "the cluster's Secret cannot be read",
        happens: "app\n  destination: {server: \"https://far.example.org\"}\ncreate secret far namespace=$ARGOCD label:argocd.argoproj.io/secret-type=cluster server=https://far.example.org config={",
        waits: Some("the Secret far cannot be read and may be that of the cluster"),
        meanwhile: ALL,
        then: "app\n  destination: {server: \"https://kubernetes.default.svc\"}",
        ..CASE
    },
    Case {
        name: "the Secret of another cluster cannot be read",
        happens: "create secret far namespace=$ARGOCD label:argocd.argoproj.io/secret-type=cluster server=https://other.example.org config={\napp\n  destination: {server: \"https://far.example.org\"}",
        gone: &[],
        kept: ALL,
        ..CASE
    },
    Case {
        name: "the cluster cannot be reached",
        happens: "create secret far namespace=$ARGOCD label:argocd.argoproj.io/secret-type=cluster name=far server=https://127.0.0.1:1 config={}\napp\n  destination: {server: \"https://127.0.0.1:1\"}",
        waits: Some("Failed to load live state: "),
        meanwhile: ALL,
        then: "app\n  destination: {server: \"https://kubernetes.default.svc\"}",
        ..CASE
    },
    Case {
        name: "the cluster is disabled",
        happens: "settings\n  cluster.inClusterEnabled: \"false\"",
        waits: Some("it is disabled by cluster.inClusterEnabled"),
        meanwhile: ALL,
        then: "settings\n  cluster.inClusterEnabled: null",
        ..CASE
    },
    Case {
        name: "a destination that says two things",
        happens: "app\n  destination: {name: in-cluster}",
        waits: Some("can't have both name and server defined"),
        meanwhile: ALL,
        then: "app\n  destination: {name: null}",
        ..CASE
    },
    // Projects and permissions.
    Case {
        name: "the project is gone",
        begin: "project\n  description: of this case\ncommit\n  configmap one\napp finalizer\n  project: $APP\nsync",
        happens: "delete project",
        waits: Some("not found; create the project again, or remove the Application's finalizers"),
        meanwhile: &["configmap/one"],
        then: PROJECT,
        gone: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "the project does not take the Application any more",
        begin: "params\n  application.namespaces: $NS\nproject\n  sourceNamespaces: [$NS]\ncommit\n  configmap one\napp finalizer in=$NS\n  project: $APP\nsync",
        happens: "project\n  sourceNamespaces: []",
        waits: Some("is not permitted to use project '$APP'; permit its namespace in the project"),
        meanwhile: &["configmap/one"],
        then: "project\n  sourceNamespaces: [$NS]",
        gone: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "a kind is not permitted any more",
        begin: "project\n  description: of this case\ncommit\n  configmap one\n  service two\napp finalizer\n  project: $APP\nsync",
        happens: "project\n  namespaceResourceBlacklist: [{group: \"\", kind: Service}]",
        gone: &["configmap/one"],
        kept: &["service/two"],
        ..CASE
    },
    Case {
        name: "a namespace is not permitted any more",
        begin: "project\n  description: of this case\ncreate namespace $APP-far\ncommit\n  configmap one\n  configmap far namespace=$APP-far\napp finalizer\n  project: $APP\nsync",
        happens: "project\n  destinations: [{server: \"*\", namespace: $NS}]",
        gone: &["configmap/one"],
        kept: &["configmap/$APP-far/far"],
        ..CASE
    },
    Case {
        name: "the service account may not delete",
        begin: "settings\n  application.sync.impersonation.enabled: \"true\"\nproject\n  destinationServiceAccounts: [{server: \"*\", namespace: \"ns-*\", defaultServiceAccount: deployer}]\ncreate rolebinding edit\ncommit\n  configmap one\napp finalizer\n  project: $APP\npass 1s\nsync",
        happens: "delete rolebinding/edit\npass 1s",
        waits: Some("is forbidden: User \"system:serviceaccount:"),
        meanwhile: &["configmap/one"],
        then: "create rolebinding edit",
        gone: &["configmap/one"],
        ..CASE
    },
    // Hooks.
    Case {
        name: "a hook before that fails",
        begin: "commit\n  job before hook=PreDelete fails\n  configmap one\napp finalizer\nsync",
        waits: Some("error executing pre-delete hooks: PreDelete hook(s) failed: "),
        meanwhile: &["configmap/one"],
        then: "commit\n  job before hook=PreDelete delete=HookSucceeded\n  configmap one",
        gone: &["configmap/one", "job/before"],
        ..CASE
    },
    Case {
        name: "a hook before has the name of another Application's hook",
        begin: "commit\n  configmap backup hook=PreDelete\n  configmap one\napp finalizer\nsync",
        happens: "create configmap backup hook=PreDelete annotation:argocd.argoproj.io/tracking-id=other:/ConfigMap:$NS/backup",
        waits: Some("exists already, and is not a hook of this Application"),
        meanwhile: &["configmap/one", "configmap/backup"],
        then: "delete configmap/backup",
        gone: &["configmap/one", "configmap/backup"],
        ..CASE
    },
    Case {
        name: "a hook before has the name of a resource of this Application",
        begin: "commit\n  configmap backup hook=PreDelete\n  configmap one\napp finalizer\nsync",
        happens: "create configmap backup annotation:argocd.argoproj.io/tracking-id=$APP:/ConfigMap:$NS/backup",
        waits: Some("exists already, and is not a hook of this Application"),
        meanwhile: &["configmap/one", "configmap/backup"],
        then: "delete configmap/backup",
        gone: &["configmap/one", "configmap/backup"],
        ..CASE
    },
    Case {
        name: "hooks whose kind cannot be read, after a restart",
        begin: "commit\n  job before hook=PreDelete delete=HookSucceeded\n  configmap one\napp finalizer\nsync",
        refused: &[("GET /apis/batch/v1/jobs", 403, "no")],
        restarted: true,
        waits: Some("resource Job.batch: no"),
        meanwhile: &["configmap/one"],
        gone: &["configmap/one", "job/before"],
        ..CASE
    },
    Case {
        name: "hooks after, by their policies",
        begin: "commit\n  job good hook=PostDelete delete=HookSucceeded\n  job plain hook=PostDelete\n  job bad hook=PostDelete delete=HookFailed\n  configmap one\napp finalizer\nsync",
        gone: &["configmap/one", "job/good"],
        kept: &["job/plain", "job/bad"],
        ..CASE
    },
    Case {
        name: "hooks before, by their policies",
        begin: "commit\n  configmap one\n  job good hook=PreDelete delete=HookSucceeded\n  job bad hook=PreDelete delete=HookFailed options=Delete=false\napp finalizer\nsync",
        gone: &["configmap/one", "job/good"],
        kept: &["job/bad"],
        ..CASE
    },
    Case {
        name: "a hook after that is not permitted",
        begin: "project\n  description: of this case\ncommit\n  job after hook=PostDelete\n  configmap one\napp finalizer\n  project: $APP\nsync",
        happens: "project\n  namespaceResourceBlacklist: [{group: batch, kind: Job}]",
        waits: Some("resource batch:Job is not permitted in project"),
        then: "project\n  namespaceResourceBlacklist: []",
        gone: &["configmap/one"],
        kept: &["job/after"],
        ..CASE
    },
    Case {
        name: "a copy of a hook that failed",
        begin: "commit\n  job before hook=PreDelete delete=HookSucceeded\n  configmap one\napp finalizer\nsync",
        happens: "create job copy hook=PreDelete delete=HookSucceeded,HookFailed fails annotation:argocd.argoproj.io/tracking-id=$APP:batch/Job:$NS/before",
        gone: &["configmap/one", "job/before"],
        kept: &["job/copy"],
        ..CASE
    },
    // Applications of Applications.
    Case {
        name: "an Application and what it needs, in one wave",
        begin: "commit\n  namespace $APP-home\n  ---\n  apiVersion: argoproj.io/v1alpha1\n  kind: AppProject\n  metadata: {name: $APP-family, namespace: $ARGOCD}\n  spec: {sourceRepos: [\"*\"], destinations: [{server: \"*\", namespace: \"*\"}]}\n  ---\n  application $APP-child path=child finalizer=resources-finalizer.argocd.argoproj.io spec.project=$APP-family spec.destination.namespace=$APP-home spec.syncPolicy.automated.prune=true\n  /child\n  configmap leaf\napp finalizer\nsync\npass 10s",
        gone: &[
            "application/$APP-child",
            "namespace/$APP-home",
            "configmap/$APP-home/leaf",
        ],
        ..CASE
    },
    Case {
        name: "an Application that has itself",
        begin: "commit\n  application $APP path=app\n  configmap one\napp finalizer\nsync",
        gone: &["configmap/one"],
        ..CASE
    },
    Case {
        name: "a child whose project is gone",
        begin: "project\n  description: of this case\ncommit\n  application $APP-child path=child finalizer=resources-finalizer.argocd.argoproj.io spec.project=$APP spec.syncPolicy.automated.prune=true\n  /child\n  configmap leaf\napp finalizer\nsync\npass 10s",
        happens: "delete project",
        waits: Some(
            "waiting for argoproj.io/Application/$ARGOCD/$APP-child to be deleted: error getting app project",
        ),
        meanwhile: &["configmap/leaf"],
        then: PROJECT,
        gone: &["application/$APP-child", "configmap/leaf"],
        ..CASE
    },
];
