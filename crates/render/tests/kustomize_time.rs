//! The time of a build. What is counted are the looks at the deadline, so that no test depends on
//! how fast the machine is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_gocompat::sprig;
use tiphys_render::{
    Budget, Charts, MemoryFiles, RenderError, SourceSet,
    helm::Deadline,
    kustomize::{BuildOptions, build},
};

const LATE: &str = "rendering takes more than 7 seconds (so)";

/// The time is over after so many looks.
struct Timed {
    allowed: usize,
    looks: Arc<AtomicUsize>,
    /// How often a deadline was asked for.
    asked: AtomicUsize,
}

impl Charts for Timed {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        Arc::new(|| sprig::Sources {
            random: Box::new(|bytes| bytes.fill(4)),
            now: jiff::Timestamp::UNIX_EPOCH,
            zone: || jiff::tz::TimeZone::UTC,
        })
    }

    fn deadline(&self) -> Option<Deadline> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (looks, allowed) = (Arc::clone(&self.looks), self.allowed);
        Some(Deadline {
            limit: Duration::from_secs(7),
            hint: " (so)",
            passed: Arc::new(move || looks.fetch_add(1, Ordering::Relaxed) >= allowed),
        })
    }
}

/// The result of a build, and how often it looked.
fn built(files: &MemoryFiles, allowed: usize) -> (Result<usize, RenderError>, usize) {
    let charts = Timed {
        allowed,
        looks: Arc::default(),
        asked: AtomicUsize::new(0),
    };
    let options = BuildOptions::from_flags(["--enable-helm"]).expect("flags");
    let sources = SourceSet::new(files);
    let built = build(&sources, "", &options, &charts, &Budget::default());
    let asked = charts.asked.load(Ordering::Relaxed);
    assert_eq!(asked, 1, "the whole build has one deadline");
    let looks = charts.looks.load(Ordering::Relaxed);
    (built.map(|built| built.objects.len()), looks)
}

/// Wherever the time is over, the build ends at once and says so; returns how often it looks if it
/// may end.
fn ends_everywhere(files: &MemoryFiles, objects: usize) -> usize {
    let (whole, looks) = built(files, usize::MAX);
    assert_eq!(whole, Ok(objects));
    for allowed in (0..looks).step_by(1 + looks / 30) {
        let (late, looked) = built(files, allowed);
        match late {
            Err(RenderError::Source(text)) if text.contains(LATE) => {}
            other => panic!("after {allowed} looks: {other:?}"),
        }
        assert_eq!(looked, allowed + 1, "it went on");
    }
    looks
}

fn config_maps(count: usize) -> String {
    let one = |n| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m-{n}\n  labels: {{n: \"{n}\"}}\ndata: {{a: b}}\n"
        )
    };
    (0..count).map(one).collect::<Vec<_>>().join("---\n")
}

#[test]
fn a_plain_kustomization_ends_when_its_time_is_over() {
    let few = config_maps(2);
    let files = MemoryFiles::new([
        (
            "kustomization.yaml",
            "resources: [few.yaml, base]\nnamePrefix: p-\nnamespace: ns\ncommonLabels: {l: v}\n\
             images: [{name: i, newTag: t}]\nconfigMapGenerator: [{name: g, literals: [a=b]}]\n",
        ),
        ("few.yaml", &*few),
        ("base/kustomization.yaml", "resources: [one.yaml]\n"),
        (
            "base/one.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n",
        ),
    ]);
    let looks = ends_everywhere(&files, 4);
    assert!(looks > 10, "{looks}");
}

const MANY: usize = 20;

/// Each of many changes looks at each of many objects.
#[test]
fn patches_and_replacements_end_when_their_time_is_over() {
    let many = config_maps(MANY);
    let operations = r#"
- target: {kind: "Conf.*", name: "m-.*", labelSelector: "n"}
  patch: '[{"op": "add", "path": "/data/KEY", "value": "v"}]'"#;
    let strategic = r#"
- target: {kind: ConfigMap, namespace: ".*"}
  patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: any}, data: {KEY: v}}'"#;
    let replacement = r#"
- sourceValue: v
  targets: [{select: {name: "m-.*"}, reject: [{name: none}], fieldPaths: [data.a]}]"#;
    for (field, entry) in [
        ("patches", operations),
        ("patches", strategic),
        ("replacements", replacement),
    ] {
        let entries: String = (0..MANY)
            .map(|n| entry.replace("KEY", &format!("k{n}")))
            .collect();
        let text = format!("resources: [many.yaml]\n{field}:{entries}\n");
        let files = MemoryFiles::new([("kustomization.yaml", &*text), ("many.yaml", &*many)]);
        let looks = ends_everywhere(&files, MANY);
        assert!(looks >= MANY * MANY, "{entry}: {looks}");
    }
}

#[test]
fn charts_of_a_kustomization_have_its_time() {
    let chart = [
        (
            "charts/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        ),
        ("charts/web/values.yaml", "a: b\n"),
        (
            "charts/web/templates/t.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n",
        ),
    ];
    let own = "helmCharts:\n- {name: web, releaseName: a}\n- {name: web, releaseName: b}\n";
    let files = MemoryFiles::new(chart.into_iter().chain([("kustomization.yaml", own)]));
    ends_everywhere(&files, 2);
}

/// 40 definitions that each refer to the next one twice: a million million paths.
#[test]
fn definitions_with_very_many_paths_end_when_their_time_is_over() {
    let mut definitions = serde_json::Map::new();
    let mut define = |name: &str, fields: serde_json::Value| {
        let schema = serde_json::json!({"Schema": {"properties": fields}});
        definitions.insert(name.to_owned(), schema);
    };
    let next = |n: usize| serde_json::json!({"$ref": format!("d{n}")});
    define(
        "example.Thing",
        serde_json::json!({"kind": {}, "apiVersion": {}, "metadata": {}, "spec": next(0)}),
    );
    for n in 0..40 {
        define(
            &format!("d{n}"),
            serde_json::json!({"a": next(n + 1), "b": next(n + 1)}),
        );
    }
    let text = serde_json::Value::Object(definitions).to_string();
    let few = config_maps(1);
    let files = MemoryFiles::new([
        (
            "kustomization.yaml",
            "resources: [few.yaml]\ncrds: [crds.json]\n",
        ),
        ("few.yaml", &*few),
        ("crds.json", &*text),
    ]);
    let (late, looks) = built(&files, 1000);
    assert_eq!(late, Err(RenderError::Source(LATE.to_owned())));
    assert_eq!(looks, 1001);
}
