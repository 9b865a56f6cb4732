//! What is rendered. Main type: [`Tree`].

use anyhow::Context;
use std::{fmt::Write as _, fs, path::Path};

/// Versions of every chart of the [`index`].
pub const VERSIONS: usize = 20;
/// Resources of each part of the [`large`] kustomization.
const PART: usize = 100;

/// Files with their relative paths.
pub struct Tree(pub Vec<(String, String)>);

impl Tree {
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for (path, text) in &self.0 {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
            fs::write(path, text)?;
        }
        Ok(())
    }

    fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self(files.iter().map(file).collect())
    }
}

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: example/web:1.0
        ports:
        - containerPort: 8080
        envFrom:
        - configMapRef: {name: settings}
";

const SERVICE: &str = "apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports:
  - port: 80
    targetPort: 8080
";

/// A base with an overlay in `prod`.
pub fn overlay() -> Tree {
    Tree::of(&[
        (
            "base/kustomization.yaml",
            "resources: [web.yaml, service.yaml]\nconfigMapGenerator:\n- name: settings\n  literals: [color=blue, size=2]\n",
        ),
        ("base/web.yaml", DEPLOYMENT),
        ("base/service.yaml", SERVICE),
        (
            "prod/kustomization.yaml",
            "resources: [../base]\nnamePrefix: prod-\nnamespace: prod\nlabels:\n- pairs: {team: a}\n  includeSelectors: true\nimages:\n- name: example/web\n  newTag: '2.0'\nreplicas:\n- name: web\n  count: 3\npatches:\n- path: memory.yaml\n",
        ),
        (
            "prod/memory.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        resources:\n          limits: {memory: 64Mi}\n",
        ),
    ])
}

/// A kustomization of so many resources in folders of [`PART`], all of which get a prefix and a
/// label: half of them are Deployments, each of which names one of the ConfigMaps.
pub fn large(resources: usize) -> Tree {
    let mut files = Vec::new();
    let mut top = "namePrefix: x-\nlabels:\n- pairs: {team: a}\nresources:\n".to_owned();
    let mut left = resources;
    for part in 0.. {
        if left == 0 {
            break;
        }
        let here = left.min(PART);
        left -= here;
        let mut text = String::new();
        for number in 0..here {
            let name = format!("p{part}-{}", number / 2);
            if number % 2 == 0 {
                let _ = write!(
                    text,
                    "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  color: blue\n"
                );
            } else {
                let deployment = DEPLOYMENT.replace("web", &name);
                let _ = write!(text, "---\n{}", deployment.replace("settings", &name));
            }
        }
        let _ = writeln!(top, "- part-{part}");
        files.push((format!("part-{part}/all.yaml"), text));
        files.push((
            format!("part-{part}/kustomization.yaml"),
            "resources: [all.yaml]\n".to_owned(),
        ));
    }
    files.push(("kustomization.yaml".to_owned(), top));
    Tree(files)
}

/// A chart as people begin one.
pub fn chart() -> Tree {
    Tree::of(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: '2'\n",
        ),
        (
            "values.yaml",
            "replicas: 2\nimage: {repository: example/web, tag: ''}\nresources: {limits: {memory: 64Mi}}\nservice: {port: 80}\n",
        ),
        (
            "templates/_helpers.tpl",
            "{{- define \"web.name\" -}}\n{{- printf \"%s-%s\" .Release.Name .Chart.Name | trunc 63 | trimSuffix \"-\" }}\n{{- end }}\n{{- define \"web.labels\" -}}\napp.kubernetes.io/name: {{ .Chart.Name }}\napp.kubernetes.io/instance: {{ .Release.Name }}\n{{- end }}\n",
        ),
        (
            "templates/deployment.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"web.name\" . }}\n  labels:\n    {{- include \"web.labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.replicas }}\n  selector:\n    matchLabels:\n      {{- include \"web.labels\" . | nindent 6 }}\n  template:\n    metadata:\n      labels:\n        {{- include \"web.labels\" . | nindent 8 }}\n    spec:\n      containers:\n        - name: web\n          image: \"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}\"\n          resources:\n            {{- toYaml .Values.resources | nindent 12 }}\n",
        ),
        (
            "templates/service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ include \"web.name\" . }}\nspec:\n  selector:\n    {{- include \"web.labels\" . | nindent 4 }}\n  ports:\n    - port: {{ .Values.service.port }}\n",
        ),
    ])
}

/// The index of a repository of at least so many bytes, as Helm writes it.
pub fn index(bytes: usize) -> String {
    let mut text = "apiVersion: v1\nentries:\n".to_owned();
    for chart in 0.. {
        if text.len() >= bytes {
            break;
        }
        let _ = writeln!(text, "  chart-{chart}:");
        for version in 0..VERSIONS {
            let digest = format!("{chart:032x}{version:032x}");
            let _ = write!(
                text,
                "  - annotations:\n      category: Infrastructure\n      images: |\n        - name: web\n          image: docker.io/example/web:{version}.0.0\n    apiVersion: v2\n    appVersion: {version}.0.0\n    created: \"2026-01-01T00:00:00.000000000Z\"\n    dependencies:\n    - name: common\n      repository: oci://registry.example.org/charts\n      version: 2.x.x\n    description: A web server with everything that one needs to run it.\n    digest: {digest}\n    home: https://example.org\n    keywords:\n    - web\n    - http\n    maintainers:\n    - name: Example\n      url: https://example.org/charts\n    name: chart-{chart}\n    urls:\n    - https://charts.example.org/chart-{chart}-{version}.0.0.tgz\n    version: {version}.0.0\n"
            );
        }
    }
    text.push_str("generated: \"2026-01-01T00:00:00.000000000Z\"\n");
    text
}
