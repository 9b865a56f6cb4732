//! Whole renders in worker processes: what they make, and what is remembered of them.

use super::{options, ours, workers};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tempfile::TempDir;
use tiphys_repo::{
    ClusterFacts, ManifestRequest, Manifests, RefSource, RepoAccess, RepoError, Repos,
};
use tiphys_testkit::{
    Repo,
    charts::{FileServer, index, plain_chart},
    git_server::{Server, Setup},
};

fn cm(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  text: {text}\n")
}

const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour | quote }}\n  text: {{ .Files.Get \"files/text\" | quote }}\n";

fn request(repo: &Repo, source: Value) -> ManifestRequest {
    ManifestRequest {
        access: RepoAccess::public(repo.url()),
        source: serde_json::from_value(source).expect("a source"),
        sha: repo.head(),
        app_name: "shop".to_owned(),
        namespace: "there".to_owned(),
        project: "shop".to_owned(),
        cluster_facts: ClusterFacts {
            kustomize_build_options: "--enable-helm".to_owned(),
            ..ClusterFacts::default()
        },
        ..ManifestRequest::default()
    }
}

/// All that is known of a render.
fn shown(outcome: Result<Arc<Manifests>, RepoError>) -> String {
    let manifests = match outcome {
        Ok(manifests) => manifests,
        Err(error) => return error.to_string(),
    };
    let objects: Vec<String> = manifests
        .objects
        .iter()
        .map(|object| object.json())
        .collect();
    format!(
        "{} {} {:?} {:?}\n{}",
        manifests.source_type,
        // Of all that was read, too.
        manifests.digest,
        manifests.errors,
        manifests.warnings,
        objects.join("\n")
    )
}

/// A repository with sources of every type, and the servers of what they need besides.
struct Ground {
    own: Repo,
    _git: Server,
    _web: FileServer,
    dir: TempDir,
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let git = Server::start(dir.path(), Setup::default());
        let web = FileServer::start();
        let base = cm("base", "remote");
        let files = [
            ("base/kustomization.yaml", "resources: [a.yaml]\n"),
            ("base/a.yaml", base.as_str()),
        ];
        Repos::init_example(&dir.path().join("base.git"), files).expect("a base");
        web.serve("/pk/demo-1.0.0.tgz", plain_chart("demo", "1.0.0", &[]));
        let demo = index(&[("demo", "1.0.0", "demo-1.0.0.tgz", "")]);
        web.serve("/pk/index.yaml", demo.as_str());
        let own = Repo::new();
        own.link(&[
            ("plain/linked.yaml", "../shared/cm.yaml"),
            ("plain/gone.yaml", "../shared/none.yaml"),
            ("chart/files/text", "../../shared/text"),
            ("out/a.yaml", "../../outside.yaml"),
            ("behind", "linked"),
        ]);
        plain(&own);
        charts(&own, &web.url());
        let base = git.url("/base.git//base?ref=main");
        kustomizations(&own, &base, &web.url());
        Self {
            own,
            _git: git,
            _web: web,
            dir,
        }
    }

    fn repos(&self, folder: &str, memory: Option<u64>) -> Repos {
        let program = env!("CARGO_BIN_EXE_tiphys");
        let options = memory.map(|memory| options(program, memory, 2));
        Repos::with_options(self.dir.path().join(folder), options.unwrap_or_default())
    }

    fn requests(&self) -> Vec<ManifestRequest> {
        let mut requests: Vec<ManifestRequest> = [
            json!({"path": "plain", "directory": {"recurse": true}}),
            json!({"path": "plain", "directory": {"recurse": true, "exclude": "broken.yaml"}}),
            json!({"path": "out"}),
            json!({"path": "chart"}),
            json!({"path": "chart", "helm": {"valueFiles": ["more-*.yaml"], "values": "colour: blue"}}),
            json!({"path": "chart", "helm": {"valueFiles": ["absent.yaml"]}}),
            json!({"path": "wrong"}),
            json!({"path": "lacking"}),
            json!({"path": "kustomized", "kustomize": {"namePrefix": "p-", "images": ["a=b:1"]}}),
            json!({"path": "unkustomized"}),
            json!({"path": "pointed"}),
            json!({"path": "over"}),
            json!({"path": "over", "kustomize": {"nameSuffix": "-s"}}),
            json!({"path": "astray"}),
        ]
        .map(|source| request(&self.own, source))
        .into();
        let values = RefSource {
            access: RepoAccess::public(self.own.url()),
            sha: self.own.head(),
        };
        let helm = json!({"valueFiles": ["$values/shared/values.yaml"]});
        requests.push(ManifestRequest {
            refs: BTreeMap::from([("values".to_owned(), values)]),
            several: true,
            ..request(&self.own, json!({"path": "chart", "helm": helm}))
        });
        requests
    }
}

fn plain(own: &Repo) {
    let big = cm("big", &"x".repeat(100_000));
    let shared = cm("shared", "linked");
    let object = "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: (import '../shared/name.libsonnet')}}";
    let json = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "json"}});
    own.commit(
        &[
            ("plain/big.yaml", big.as_str()),
            (
                "plain/broken.yaml",
                "apiVersion: v1\nkind: A\nmetadata: [\n",
            ),
            ("plain/deep/er/x.json", json.to_string().as_str()),
            ("plain/main.jsonnet", object),
            ("plain/wrong.jsonnet", "error 'on purpose'"),
            ("plain/README.md", "# No manifest"),
            ("shared/cm.yaml", shared.as_str()),
            ("shared/name.libsonnet", "'imported'"),
            ("shared/text", "of a link"),
            ("shared/values.yaml", "colour: green\n"),
        ],
        &[],
    );
    // More than are sent ahead at once.
    let many: Vec<(String, String)> = (0..300)
        .map(|n| (format!("plain/many/{n}.yaml"), cm(&format!("n{n}"), "x")))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    own.commit(&many, &[]);
}

fn charts(own: &Repo, web: &str) {
    let chart = format!(
        "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n\
         - {{name: demo, version: 1.x, repository: {web}/pk}}\n\
         - {{name: local, version: 0.1.0, repository: 'file://../local'}}\n"
    );
    own.commit(
        &[
            ("chart/Chart.yaml", chart.as_str()),
            ("chart/values.yaml", "colour: red\n"),
            ("chart/more-1.yaml", "colour: grey\n"),
            ("chart/templates/cm.yaml", TEMPLATE),
            ("local/Chart.yaml", "apiVersion: v2\nname: local\nversion: 0.1.0\n"),
            ("local/templates/a.yaml", cm("local", "beside").as_str()),
            ("wrong/Chart.yaml", "apiVersion: v2\nname: wrong\nversion: 0.1.0\n"),
            ("wrong/templates/a.yaml", "{{ fail \"on purpose\" }}\n"),
            (
                "lacking/Chart.yaml",
                "apiVersion: v2\nname: lacking\nversion: 0.1.0\ndependencies:\n- {name: a, version: 1.0.0}\n",
            ),
        ],
        &[],
    );
}

fn kustomizations(own: &Repo, base: &str, web: &str) {
    let kustomization = format!(
        "resources:\n- a.yaml\n- {base}\n\
         configMapGenerator:\n- name: made\n  files: [text]\n\
         helmCharts:\n- {{name: demo, repo: {web}/pk, version: 1.0.0, releaseName: far}}\n\
         - {{name: near, releaseName: near, valuesInline: {{colour: pink}}}}\n"
    );
    // What stands for a file of Git LFS must not be taken for it, nor be sent ahead.
    let pointer = format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n",
        "ab".repeat(32)
    );
    let pointed = "resources: [a.yaml]\nconfigMapGenerator:\n- name: b\n  files: [pointer]\n";
    own.commit(
        &[
            // With a base beside it, one behind a link, and one that is not there.
            (
                "over/kustomization.yaml",
                "resources: [../under, ../behind]\npatches: [{path: a.yaml}]\n",
            ),
            ("over/a.yaml", cm("a", "patched").as_str()),
            (
                "under/kustomization.yaml",
                "resources: [a.yaml, big.yaml]\n",
            ),
            ("linked/kustomization.yaml", "resources: [b.yaml]\n"),
            ("linked/b.yaml", cm("b", "behind a link").as_str()),
            ("under/a.yaml", cm("a", "own").as_str()),
            ("under/big.yaml", cm("big", &"y".repeat(100_000)).as_str()),
            (
                "astray/kustomization.yaml",
                "resources: [../under, ../gone]\n",
            ),
            ("pointed/kustomization.yaml", pointed),
            ("pointed/a.yaml", cm("a", "own").as_str()),
            ("pointed/pointer", pointer.as_str()),
            ("kustomized/kustomization.yaml", kustomization.as_str()),
            ("kustomized/a.yaml", cm("a", "own").as_str()),
            ("kustomized/text", "a text"),
            (
                "kustomized/charts/near/Chart.yaml",
                "apiVersion: v2\nname: near\nversion: 0.1.0\n",
            ),
            ("kustomized/charts/near/values.yaml", "colour: red\n"),
            ("kustomized/charts/near/templates/cm.yaml", TEMPLATE),
            (
                "unkustomized/kustomization.yaml",
                "resources: [none.yaml]\n",
            ),
        ],
        &[],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_make_what_this_process_makes() {
    let ground = Ground::new();
    let here = ground.repos("here", None);
    let there = ground.repos("there", Some(801));
    let mut objects = 0;
    for request in ground.requests() {
        let path = request.source.path.clone();
        let rendered = here.manifests(request.clone()).await;
        objects += rendered.as_ref().map_or(0, |made| made.objects.len());
        let want = shown(rendered);
        // Then with a worker that has the charts, and then with what is remembered.
        for no_cache in [false, true, false] {
            let request = ManifestRequest {
                no_cache,
                ..request.clone()
            };
            assert_eq!(shown(there.manifests(request).await), want, "{path}");
        }
        let details = |details: Result<tiphys_repo::Details, RepoError>| {
            details.map_err(|error| error.to_string())
        };
        let want = details(here.details(request.clone()).await);
        assert_eq!(details(there.details(request).await), want, "{path}");
    }
    assert!(objects > 600, "most of them have objects: {objects}");
    assert!(!workers(801).is_empty(), "they were not rendered here");
}

fn text(manifests: &Manifests, name: &str) -> String {
    let first = manifests.objects.first().expect("an object");
    first.object().str_at(&format!("/data/{name}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_a_worker_has_parsed_keeps_its_record() {
    let own = Repo::new();
    own.link(&[("web/files/text", "../../shared/text")]);
    let chart = "apiVersion: v2\nname: web\nversion: 0.1.0\n";
    own.commit(
        &[
            ("web/Chart.yaml", chart),
            ("web/values.yaml", "colour: red\n"),
            ("web/templates/cm.yaml", TEMPLATE),
            ("shared/text", "first"),
        ],
        &[],
    );
    let repos = ours(802, 1);
    let render = async |colour: &str| {
        let source = json!({"path": "web", "helm": {"values": format!("colour: {colour}")}});
        let made = repos.manifests(request(&own, source)).await;
        let made = made.expect("manifests");
        (text(&made, "colour"), text(&made, "text"))
    };
    let pair = |colour: &str, text: &str| (colour.to_owned(), text.to_owned());
    assert_eq!(render("blue").await, pair("blue", "first"));
    // The second render uses the chart of the first, which read the file behind the link.
    assert_eq!(render("green").await, pair("green", "first"));
    own.commit(&[("shared/text", "second")], &[]);
    assert_eq!(render("green").await, pair("green", "second"));
    own.commit(&[("web/values.yaml", "unused: 1\n")], &[]);
    assert_eq!(render("green").await, pair("green", "second"));
    own.commit(&[("shared/text", "first")], &[]);
    assert_eq!(render("blue").await, pair("blue", "first"));
    assert_eq!(workers(802).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_template_is_stopped_and_its_worker_goes_on() {
    let own = Repo::new();
    let (each, end) = ("{{ range $list }}".repeat(3), "{{ end }}".repeat(3));
    let endless = format!("{{{{ $list := until 10000 }}}}{each}{end}");
    own.commit(
        &[
            (
                "web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 0.1.0\n",
            ),
            ("web/templates/a.yaml", endless.as_str()),
            ("plain/a.yaml", cm("a", "x").as_str()),
        ],
        &[],
    );
    let repos = super::in_seconds(10, 803, 1);
    let plain = || repos.manifests(request(&own, json!({"path": "plain"})));
    assert_eq!(plain().await.expect("manifests").objects.len(), 1);
    let before = workers(803);
    let late = repos.manifests(request(&own, json!({"path": "web"}))).await;
    let late = late.expect_err("it does not end").to_string();
    // Ten seconds, or as many steps as a render may take.
    assert!(late.contains("rendering takes more than 10"), "{late}");
    let again = ManifestRequest {
        no_cache: true,
        ..request(&own, json!({"path": "plain"}))
    };
    assert_eq!(
        repos
            .manifests(again)
            .await
            .expect("manifests")
            .objects
            .len(),
        1
    );
    assert_eq!(workers(803), before);
}

/// JSON can be nested only so deeply between two processes. The next attempt would not be
/// different, and the worker is not to blame.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_nested_too_deeply_is_refused_and_its_worker_goes_on() {
    let own = Repo::new();
    let (open, close) = ("[".repeat(150), "]".repeat(150));
    let deep = format!("{}list: {open}{close}\n", cm("deep", "x"));
    own.commit(
        &[
            (
                "web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 0.1.0\n",
            ),
            ("deep/a.yaml", deep.as_str()),
            ("plain/a.yaml", cm("a", "x").as_str()),
        ],
        &[],
    );
    let repos = ours(808, 1);
    let plain = async || {
        let request = ManifestRequest {
            no_cache: true,
            ..request(&own, json!({"path": "plain"}))
        };
        let made = repos.manifests(request).await.expect("manifests");
        assert_eq!(made.objects.len(), 1);
        workers(808)
    };
    let before = plain().await;
    let nested = request(&own, json!({"path": "deep"}));
    let made = repos.manifests(nested).await;
    let made = made.expect_err("it cannot be handed over");
    assert_eq!(
        made.to_string(),
        "the nesting of ConfigMap \"deep\" exceeds the limit of 127"
    );
    assert!(!made.retryable());
    let values = (0..124).fold(json!([]), |inner, _| json!([inner]));
    let source = json!({"path": "web", "helm": {"valuesObject": {"values": values}}});
    let details = repos.details(request(&own, source)).await;
    let details = details.expect_err("it cannot be handed over");
    assert_eq!(
        details.to_string(),
        "the nesting of the source's options exceeds the limit of 127"
    );
    assert!(!details.retryable());
    assert_eq!(plain().await, before);
}
