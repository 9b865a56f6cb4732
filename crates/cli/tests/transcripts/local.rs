//! Manifests of local folders, rendered by the command line: with what the server says of its
//! settings and of the cluster, and with what has to be fetched.

use super::{Up, write};
use std::path::Path;
use tiphys_testkit::charts::{FileServer, index, plain_chart};

const CREATE: &str = "--repo $REPO --path guestbook --dest-server https://kubernetes.default.svc --dest-namespace here --sync-option CreateNamespace=true --validate=false";

/// Tells what templates see of the cluster. The kind is not among those that Helm knows by itself.
const FACTS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: facts}
data:
  kube: {{ .Capabilities.KubeVersion.Version | quote }}
  sets: {{ .Capabilities.APIVersions.Has \"argoproj.io/v1alpha1/ApplicationSet\" | quote }}
";

const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data:
  kustomize.buildOptions: --enable-helm
  kustomize.path.v4.5.7: /usr/bin/kustomize
";

const SEVERAL: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: $NAME, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: several}
  sources:
  - {repoURL: $VALUES, ref: values}
  - {repoURL: $REPO, path: chart, helm: {valueFiles: [$values/colours.yaml]}}
  - {repoURL: $REPO, path: guestbook}
";

/// Writes files below `$LOCAL`.
fn files(up: &Up, files: &[(&str, &str)]) {
    for (path, text) in files {
        write(&up.folder.join("local").join(path), text);
    }
}

/// Runs the steps, and looks for texts in what each of them prints.
fn check(up: &Up, steps: &[(&str, &[&str])]) {
    let ours = Path::new(env!("CARGO_BIN_EXE_tiphys"));
    let lines: Vec<String> = steps
        .iter()
        .map(|(line, _)| line.replace("$CREATE", CREATE))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let all = up.transcript(ours, &lines);
    let said: Vec<&str> = all.split("$ argocd ").skip(1).collect();
    assert_eq!(said.len(), steps.len(), "{all}");
    for (said, (_, texts)) in said.iter().zip(steps) {
        for text in *texts {
            assert!(said.contains(text), "{text}: {said}");
        }
    }
}

fn chart(name: &str) -> String {
    format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n")
}

#[test]
fn local_kustomizations_are_built_with_the_servers_options() {
    let up = Up::start();
    let kustomization =
        "namePrefix: pre-\nresources: [one.yaml]\nhelmCharts:\n- name: web\n  releaseName: web\n";
    let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";
    files(
        &up,
        &[
            ("settings.yaml", SETTINGS),
            ("kust/kustomization.yaml", kustomization),
            ("kust/one.yaml", one),
            ("kust/charts/web/Chart.yaml", &chart("web")),
            ("kust/charts/web/values.yaml", "{}\n"),
            ("kust/charts/web/templates/facts.yaml", FACTS),
        ],
    );
    let render = "app manifests kust --local $LOCAL/kust --local-repo-root $LOCAL";
    check(
        &up,
        &[
            ("app create kust $CREATE", &["exit 0"]),
            // Until then nothing is known of the cluster.
            ("app get kust --refresh", &["exit 0"]),
            (render, &["must specify --enable-helm", "exit 20"]),
            ("apply -f $LOCAL/settings.yaml", &["exit 0"]),
            (
                render,
                &[
                    "name: pre-one",
                    "name: pre-facts",
                    "kube: v1.36.3",
                    "sets: \"true\"",
                    "exit 0",
                ],
            ),
            (
                "app set kust --kustomize-version v4.5.7 --validate=false",
                &["exit 0"],
            ),
            (
                render,
                &[
                    "kustomize version v4.5.7 is asked for",
                    "pre-facts",
                    "exit 0",
                ],
            ),
            (
                "app set kust --kustomize-version v1.2.3 --validate=false",
                &["exit 0"],
            ),
            (
                render,
                &["kustomize version v1.2.3 is not registered", "exit 20"],
            ),
        ],
    );
}

#[test]
fn local_charts_jsonnet_and_one_of_several_sources_are_rendered() {
    let up = Up::start();
    let repository = format!("file://{}", up.folder.join("examples.git").display());
    let several = |name: &str, values: &str| {
        let app = SEVERAL.replace("$NAME", name).replace("$VALUES", values);
        app.replace("$REPO", &repository)
    };
    let painted = "{ config(colour):: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'painted' }, data: { colour: colour } } }\n";
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint}\ndata: {colour: {{ .Values.colour }}}\n";
    files(
        &up,
        &[
            ("facts/Chart.yaml", &chart("facts")),
            ("facts/templates/facts.yaml", FACTS),
            (
                "jsonnet/app/main.jsonnet",
                "(import 'paint.libsonnet').config(std.extVar('colour'))\n",
            ),
            ("jsonnet/lib/paint.libsonnet", painted),
            ("several/chart/Chart.yaml", &chart("chart")),
            ("several/chart/templates/paint.yaml", template),
            ("several/colours.yaml", "colour: green\n"),
            ("several.yaml", &several("several", &repository)),
            ("strange.yaml", &several("strange", "file:///nowhere.git")),
        ],
    );
    let jsonnet = "app diff sonnet --local $LOCAL/jsonnet/app --local-repo-root $LOCAL/jsonnet";
    check(
        &up,
        &[
            ("app create facts $CREATE", &["exit 0"]),
            ("app get facts --refresh", &["exit 0"]),
            (
                "app manifests facts --local $LOCAL/facts --local-repo-root $LOCAL",
                &["kube: v1.36.3", "sets: \"true\"", "exit 0"],
            ),
            (
                "app create sonnet $CREATE --jsonnet-ext-var-str colour=red --jsonnet-libs lib",
                &["exit 0"],
            ),
            (
                jsonnet,
                &["/ConfigMap here/painted", "colour: red", "exit 1"],
            ),
            (
                "app sync sonnet --local $LOCAL/jsonnet/app --local-repo-root $LOCAL/jsonnet --timeout 60",
                &["painted", "exit 0"],
            ),
            (jsonnet, &["$LOCAL/jsonnet\nexit 0"]),
            (
                "app create several --file $LOCAL/several.yaml --validate=false",
                &["exit 0"],
            ),
            (
                "app manifests several --local $LOCAL/several/chart --local-repo-root $LOCAL/several",
                &["colour: green", "sources left out: 1", "exit 0"],
            ),
            (
                "app create strange --file $LOCAL/strange.yaml --validate=false",
                &["exit 0"],
            ),
            (
                "app manifests strange --local $LOCAL/several/chart --local-repo-root $LOCAL/several",
                &[
                    "only https, http and ssh repositories can be fetched for a render",
                    "exit 20",
                ],
            ),
        ],
    );
}

#[test]
fn what_local_folders_need_from_elsewhere_is_fetched() {
    let up = Up::start();
    let server = FileServer::start();
    server.serve("/charts/part-1.2.0.tgz", plain_chart("part", "1.2.0", &[]));
    let charts = index(&[("part", "1.2.0", "part-1.2.0.tgz", "")]);
    server.serve("/charts/index.yaml", charts.as_str());
    server.serve(
        "/more.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-web}\n",
    );
    let url = server.url();
    let umbrella = format!(
        "{}dependencies:\n- name: part\n  version: 1.x\n  repository: {url}/charts\n",
        chart("umbrella")
    );
    files(
        &up,
        &[
            ("umbrella/Chart.yaml", &umbrella),
            (
                "far/kustomization.yaml",
                &format!("resources:\n- {url}/more.yaml\n"),
            ),
        ],
    );
    let far = "app manifests far --local $LOCAL/far --local-repo-root $LOCAL";
    check(
        &up,
        &[
            ("app create umbrella $CREATE", &["exit 0"]),
            (
                "app manifests umbrella --local $LOCAL/umbrella --local-repo-root $LOCAL",
                &["name: umbrella-part", "colour: red", "exit 0"],
            ),
            ("app create far $CREATE", &["exit 0"]),
            (far, &["name: of-the-web", "exit 0"]),
        ],
    );
    server.remove("/more.yaml");
    check(&up, &[(far, &["/more.yaml: 404 Not Found", "exit 20"])]);
}
