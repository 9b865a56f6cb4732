//! The Applications of a fleet: one of each kind of source and of each way to sync that people use,
//! over and over. Main type: [`Fleet`].

use super::git::GitHost;
use serde_json::{Value, json};
use tiphys_testkit::{
    Repo,
    charts::{FileServer, index, plain_chart},
    registry,
};

/// Applications of one repository; their names and places carry the mark of the fleet.
pub struct Fleet {
    pub mark: &'static str,
    pub host: GitHost,
    /// Serves the chart `web` in two versions.
    charts: FileServer,
    pub apps: Vec<App>,
    /// In the order of their commits.
    pub revisions: Vec<String>,
}

pub struct App {
    pub name: String,
    kind: &'static Kind,
}

/// A kind of Application.
struct Kind {
    name: &'static str,
    /// The files of a version: path below the Application's folder, and text, in which `@` is the
    /// number of the version.
    files: &'static [(&'static str, &'static str)],
    /// What the specification has beside project and destination; `$url`, `$path` and `$charts`
    /// are filled in.
    spec: fn() -> Value,
}

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {version: 'v@'}}
    spec: {containers: [{name: web, image: 'example.test/web:1.@'}]}
";
const MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {version: 'v@', plain: 'yes'}
";
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";
const SECRET: &str = "apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: 'secret-@'}
";
const HOOK: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: 'example.test/a:1', command: ['true']}]}
";
const WAVE: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: second, annotations: {argocd.argoproj.io/sync-wave: '2'}}
data: {version: 'v@'}
";
const CHART: &str = "apiVersion: v2\nname: own\nversion: 0.1.@\nappVersion: '@'\n";
const TEMPLATE: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-own
  labels: {chart: '{{ .Chart.Name }}-{{ .Chart.Version }}'}
data:
  given: {{ .Values.given | quote }}
  kube: {{ .Capabilities.KubeVersion.Major | quote }}
{{- range $name, $value := .Values.more }}
  {{ $name }}: {{ $value | toString | quote }}
{{- end }}
";
const JSONNET: &str = "function(name='n', count=1) [{
  apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: name + '-%d' % i},
  data: {version: 'v@', who: std.extVar('who')},
} for i in std.range(1, count)]
";

const KINDS: &[Kind] = &[
    Kind {
        name: "directory",
        files: &[
            ("web.yaml", DEPLOYMENT),
            ("map.yaml", MAP),
            ("service.yaml", SERVICE),
        ],
        spec: || json!({"source": {"repoURL": "$url", "path": "$path"}}),
    },
    Kind {
        name: "recursive",
        files: &[
            ("a/map.yaml", MAP),
            ("b/secret.yaml", SECRET),
            ("b/no.yaml", WAVE),
        ],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path", "targetRevision": "main",
                "directory": {"recurse": true, "exclude": "b/no.yaml"}}})
        },
    },
    Kind {
        name: "jsonnet",
        files: &[("maps.jsonnet", JSONNET)],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path", "directory": {"jsonnet": {
                "extVars": [{"name": "who", "value": "me"}],
                "tlas": [{"name": "name", "value": "made"}, {"name": "count", "value": "3", "code": true}],
            }}}})
        },
    },
    Kind {
        name: "kustomize",
        files: &[
            (
                "base/kustomization.yaml",
                "resources: [web.yaml, map.yaml]\n",
            ),
            ("base/web.yaml", DEPLOYMENT),
            ("base/map.yaml", MAP),
            (
                "kustomization.yaml",
                "resources: [base]\nconfigMapGenerator: [{name: made, literals: ['version=v@']}]\n",
            ),
        ],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path", "kustomize": {
                "namePrefix": "k-", "images": ["example.test/web:2"], "commonLabels": {"team": "a"},
                "replicas": [{"name": "web", "count": 2}],
                "patches": [{"target": {"kind": "ConfigMap", "name": "settings"},
                    "patch": "- {op: add, path: /data/added, value: by-patch}\n"}],
            }}})
        },
    },
    Kind {
        name: "helm",
        files: &[
            ("Chart.yaml", CHART),
            ("values.yaml", "given: default\nmore: {a: 1}\n"),
            ("values-more.yaml", "more: {b: true, version: v@}\n"),
            ("templates/map.yaml", TEMPLATE),
        ],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path", "helm": {
                "valueFiles": ["values-more.yaml"],
                "parameters": [{"name": "given", "value": "by-parameter"},
                    {"name": "more.c", "value": "1", "forceString": true}],
            }}})
        },
    },
    Kind {
        name: "values",
        files: &[
            ("Chart.yaml", CHART),
            ("values.yaml", "given: default@\nmore: {}\n"),
            ("templates/map.yaml", TEMPLATE),
            ("templates/web.yaml", DEPLOYMENT),
        ],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path", "helm": {
                "releaseName": "release", "valuesObject": {"more": {"x": "y", "n": 12345678}},
            }}})
        },
    },
    Kind {
        name: "several",
        files: &[
            ("map.yaml", MAP),
            ("values/web.yaml", "colour: from-values-@\n"),
        ],
        spec: || {
            json!({"sources": [
                {"repoURL": "$charts", "chart": "web", "targetRevision": "1.0.0",
                    "helm": {"valueFiles": ["$values/$path/values/web.yaml"]}},
                {"repoURL": "$url", "targetRevision": "main", "ref": "values"},
                {"repoURL": "$url", "path": "$path"},
            ]})
        },
    },
    Kind {
        name: "chart",
        files: &[("readme", "@")],
        spec: || {
            json!({"source": {"repoURL": "$charts", "chart": "web", "targetRevision": "^1.0.0",
                "helm": {"values": "colour: inline\n"}}})
        },
    },
    Kind {
        name: "hooks",
        files: &[
            ("map.yaml", MAP),
            ("before.yaml", HOOK),
            ("second.yaml", WAVE),
        ],
        spec: || json!({"source": {"repoURL": "$url", "path": "$path"}}),
    },
    Kind {
        name: "server-side",
        files: &[("web.yaml", DEPLOYMENT), ("map.yaml", MAP)],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path"},
                "syncPolicy": {"syncOptions": ["ServerSideApply=true", "CreateNamespace=true"],
                    "managedNamespaceMetadata": {"labels": {"team": "a"}}}})
        },
    },
    Kind {
        name: "ignored",
        files: &[("web.yaml", DEPLOYMENT), ("secret.yaml", SECRET)],
        spec: || {
            json!({"source": {"repoURL": "$url", "path": "$path"},
                "ignoreDifferences": [{"group": "apps", "kind": "Deployment",
                    "jsonPointers": ["/spec/replicas"]}],
                "syncPolicy": {"syncOptions": ["RespectIgnoreDifferences=true"]}})
        },
    },
    Kind {
        name: "broken",
        files: &[(
            "map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a@\n",
        )],
        spec: || json!({"source": {"repoURL": "$url", "path": "$path"}}),
    },
];

impl Fleet {
    /// A fleet whose repository has its first version.
    ///
    /// # Errors
    /// If no port is free.
    pub fn new(mark: &'static str, number: usize) -> anyhow::Result<Self> {
        let charts = FileServer::start();
        let mut listed = Vec::new();
        for version in ["1.0.0", "1.1.0"] {
            let package = plain_chart("web", version, &[]);
            let file = format!("web-{version}.tgz");
            let digest = registry::digest(&package);
            let digest = digest.trim_start_matches("sha256:").to_owned();
            listed.push((version, file.clone(), digest));
            charts.serve(&format!("/{file}"), package);
        }
        let entries: Vec<_> = listed
            .iter()
            .map(|(version, file, digest)| ("web", *version, file.as_str(), digest.as_str()))
            .collect();
        charts.serve("/index.yaml", index(&entries).into_bytes());
        let apps = (0..number)
            .map(|n| {
                let kind = &KINDS[n % KINDS.len()];
                let name = format!("{}-{n:02}{mark}", kind.name);
                App { name, kind }
            })
            .collect();
        let mut fleet = Self {
            mark,
            host: GitHost::start(Repo::new())?,
            charts,
            apps,
            revisions: Vec::new(),
        };
        fleet.commit();
        Ok(fleet)
    }

    /// Commits the next version of everything.
    pub fn commit(&mut self) {
        let version = (self.revisions.len() + 1).to_string();
        let mut files = Vec::new();
        for app in &self.apps {
            for (path, text) in app.kind.files {
                files.push((format!("{}/{path}", app.name), text.replace('@', &version)));
            }
        }
        let files: Vec<_> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let revision = self.host.repo.commit(&files, &[]);
        self.revisions.push(revision);
    }

    /// The Application as it is created.
    pub fn application(&self, app: &App) -> Value {
        let text = (app.kind.spec)()
            .to_string()
            .replace("$url", &self.host.url)
            .replace("$charts", &self.charts.url())
            .replace("$path", &app.name);
        let mut spec: Value = serde_json::from_str(&text).expect("it was JSON before");
        spec["project"] = json!("default");
        spec["destination"] =
            json!({"server": "https://kubernetes.default.svc", "namespace": app.name});
        spec["syncPolicy"]["automated"] = json!({"prune": true, "selfHeal": true});
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": app.name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": spec,
        })
    }

    /// Whether its namespace is there before it is.
    pub fn has_namespace(app: &App) -> bool {
        app.kind.name != "server-side"
    }

    /// Whether it can be Synced at all.
    pub fn is_sound(app: &App) -> bool {
        app.kind.name != "broken"
    }

    /// A text without what two fleets do not share: mark, addresses, commits.
    pub fn without_marks(&self, text: &str) -> String {
        let mut text = text
            .replace(&self.host.url, "URL")
            .replace(&self.charts.url(), "CHARTS")
            .replace(self.mark, "-MARK");
        for (n, revision) in self.revisions.iter().enumerate() {
            text = text
                .replace(revision, &format!("REVISION-{n}"))
                .replace(&revision[..7], &format!("SHORT-{n}"));
        }
        text
    }
}
