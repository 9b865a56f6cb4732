//! Whole builds against the real kustomize (tests/baseline/kustomize.jsonl, made by
//! tests/baseline/generate/kustomize), what a build needs from elsewhere, and where it ends.

use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_gocompat::sprig;
use tiphys_render::{
    Budget, Charts, FileKind, MemoryFiles, RenderError, SourceFiles, SourceRef, SourceSet,
    kustomize::{BuildOptions, build},
};

struct Plain;

impl Charts for Plain {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        let now = jiff::Timestamp::UNIX_EPOCH;
        Arc::new(move || sprig::Sources {
            random: Box::new(|bytes| bytes.fill(4)),
            now,
            zone: || jiff::tz::TimeZone::UTC,
        })
    }
}

pub fn built(files: &dyn SourceFiles, folder: &str, flags: &[&str]) -> Result<String, RenderError> {
    built_with(&SourceSet::new(files), folder, flags)
}

fn built_with(
    sources: &SourceSet<'_>,
    folder: &str,
    flags: &[&str],
) -> Result<String, RenderError> {
    let options = BuildOptions::from_flags(flags.iter().copied()).expect("flags");
    build(sources, folder, &options, &Plain, &Budget::default())?.yaml()
}

/// By ids: parts of errors of the real one, and what is there instead. Errors get into conditions
/// and logs, and the text of patches and the values of charts may contain secrets.
const WITHOUT_SECRETS: [(&str, &str, &str); 3] = [
    (
        "a patch that is neither",
        "patch: |-\n  op: add\n  value: 1\n",
        "patch: …\n",
    ),
    (
        "a patch that is neither",
        "[patch: \"op: add\\nvalue: 1\"]",
        "[patch: …]",
    ),
    (
        "a chart with values must be allowed",
        "valuesInline:\n  a: \"\"\n  b:\n  - 1\n  - \"2\"\n",
        "valuesInline: …\n",
    ),
];

#[test]
fn builds_are_those_of_the_real_kustomize() {
    let lines = include_str!("baseline/kustomize.jsonl").lines();
    let cases = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut number = 0;
    for case in cases.filter(|case| case.get("id").is_some()) {
        number += 1;
        let id = case["id"].as_str().expect("an id");
        let texts = case["files"].as_object().expect("files").iter();
        let texts = texts.map(|(path, text)| (path.as_str(), text.as_str().expect("text")));
        let flags = case["flags"].as_array().into_iter().flatten();
        let flags: Vec<&str> = flags.filter_map(Value::as_str).collect();
        let folder = case["folder"].as_str().expect("a folder").trim_matches('.');
        let got = built(&MemoryFiles::new(texts), folder, &flags);
        match (case["yaml"].as_str(), got) {
            (Some(want), Ok(got)) => assert_eq!(got, want, "{id}"),
            (Some(_), Err(error)) => panic!("{id}: {error}"),
            (None, Ok(got)) => panic!("{id} should fail and gives {got}"),
            // Only the first words of what names folders of the machine.
            (None, Err(error)) => {
                let want = case["error"].as_str().expect("an error");
                let secret = WITHOUT_SECRETS.iter().filter(|(of, ..)| *of == id);
                let want = secret.fold(want.to_owned(), |want, (_, told, hidden)| {
                    assert!(want.contains(told), "{id}: {want}");
                    want.replace(told, hidden)
                });
                let length = if want.contains('/') { 40 } else { usize::MAX };
                let want: String = want.chars().take(length).collect();
                let got: String = error.to_string().trim_end().chars().take(length).collect();
                assert_eq!(got, want, "{id}");
            }
        }
    }
    assert!(number > 30, "{number} cases");
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n";

fn git(url: &str, revision: &str) -> SourceRef {
    SourceRef::Git {
        url: url.into(),
        revision: revision.into(),
        submodules: true,
    }
}

#[test]
fn what_is_elsewhere_is_named_at_once_and_read_when_it_is_there() {
    let own = MemoryFiles::new([
        (
            "app/kustomization.yaml",
            "resources:\n- https://github.com/org/repo//base?ref=v1\n- sub\n\
             - https://example.com/x/y.yaml\npatches:\n- path: https://example.com/p.yaml\n",
        ),
        (
            "app/sub/kustomization.yaml",
            "components: ['git@host.example:org/other.git']\nresources: [a.yaml]\n\
             helmCharts: [{name: c, repo: 'https://charts.example', version: 1.x}]\n",
        ),
        ("app/sub/a.yaml", CONFIG_MAP),
    ]);
    let mut sources = SourceSet::new(&own);
    let needed = built_with(&sources, "app", &["--enable-helm"]);
    let Err(RenderError::Need(needed)) = needed else {
        panic!("{needed:?}");
    };
    let file = |url: &str| SourceRef::File { url: url.into() };
    let chart = SourceRef::Chart {
        repository: "https://charts.example".into(),
        name: "c".into(),
        version: "1.x".into(),
    };
    assert_eq!(
        needed,
        [
            git("git@host.example:org/other.git", ""),
            git("https://github.com/org/repo", "v1"),
            file("https://example.com/p.yaml"),
            file("https://example.com/x/y.yaml"),
            chart.clone(),
        ]
    );
    let repository = MemoryFiles::new([
        ("base/kustomization.yaml", "resources: [../more]\n"),
        (
            "more/kustomization.yaml",
            "namePrefix: m-\nresources: [m.yaml]\n",
        ),
        ("more/m.yaml", CONFIG_MAP),
    ]);
    let other = MemoryFiles::new([(
        "kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n",
    )]);
    let patch = MemoryFiles::new([(
        SourceRef::FILE,
        "kind: X\nmetadata: {name: none}\n$patch: delete\n",
    )]);
    let y = MemoryFiles::new([(SourceRef::FILE, "kind: X\nmetadata: {name: none}\n")]);
    let packed = MemoryFiles::new([
        ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("c/values.yaml", "# none\na: 1\n"),
        (
            "c/templates/t.yaml",
            "kind: T\nmetadata: {name: t, namespace: {{ .Release.Namespace }}}\n",
        ),
    ]);
    let found: [&dyn SourceFiles; 5] = [&other, &repository, &patch, &y, &packed];
    sources.fetched = needed.into_iter().zip(found).collect();
    let yaml = built_with(&sources, "app", &["--enable-helm"]).expect("all is there");
    assert_eq!(
        yaml,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m-x\n---\napiVersion: v1\nkind: ConfigMap\n\
         metadata:\n  name: x-c\n---\nkind: T\nmetadata:\n  name: t-c\n  namespace: default\n"
    );
}

#[test]
fn an_object_without_a_name_is_shown_with_its_labels() {
    let files = MemoryFiles::new([
        ("kustomization.yaml", "resources: [a.yaml]\n"),
        (
            "a.yaml",
            "apiVersion: v1\nkind: A\nmetadata: {namespace: x, labels: {b: c, a: d}}\n",
        ),
    ]);
    let error = built(&files, "", &[]).expect_err("refused").to_string();
    // What the real one says.
    let words = "missing metadata.name in object {{v1 A} {{ x} map[a:d b:c] map[]}}";
    assert!(error.contains(words), "{error}");
}

/// Errors get into conditions, logs and notifications.
#[test]
fn errors_show_no_text_that_may_contain_secrets() {
    let patch = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {p: hunter2}\n";
    let indented = patch.replace('\n', "\n    ");
    let nameless = patch.replace("{name: x}", "{}").replace('\n', "\n    ");
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    let without_name = format!("kind: A\nmetadata: {{annotations: {{{last}: hunter2, b: c}}}}\n");
    for (own, object, shown) in [
        (
            "helmCharts: [{name: c, valuesInline: {p: hunter2}}]".to_owned(),
            CONFIG_MAP,
            "valuesInline: …",
        ),
        (
            format!("patches:\n- path: p.yaml\n  patch: |-\n    {indented}"),
            CONFIG_MAP,
            "patch: …",
        ),
        (
            "patches:\n- patch: |-\n    p: hunter2".to_owned(),
            CONFIG_MAP,
            "from [patch: …]",
        ),
        (
            "patchesJson6902:\n- target: {name: x, kind: A, version: v1}\n  patch: 'p: hunter2'"
                .to_owned(),
            CONFIG_MAP,
            "decoding …",
        ),
        (
            format!("patchesStrategicMerge:\n- |-\n    {nameless}"),
            CONFIG_MAP,
            "missing metadata.name",
        ),
        (
            "replacements: [{sourceValue: hunter2, targets: []}, {path: p, source: {kind: A}}]"
                .to_owned(),
            CONFIG_MAP,
            "sourceValue: …",
        ),
        (String::new(), without_name.as_str(), "map[b:c kubectl"),
    ] {
        let own = format!("resources: [a.yaml]\n{own}\n");
        let files = [("kustomization.yaml", own.as_str()), ("a.yaml", object)];
        let error = built(&MemoryFiles::new(files), "", &[]).expect_err(&own);
        let error = error.to_string();
        assert!(error.contains(shown), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn no_object_is_lost_in_the_file_of_another() {
    let files = |second: &str| {
        let both = format!("{CONFIG_MAP}---\n{}", CONFIG_MAP.replace("name: x", second));
        let files = MemoryFiles::new([
            ("kustomization.yaml", "resources: [a.yaml]\n"),
            ("a.yaml", both.as_str()),
        ]);
        let sources = SourceSet::new(&files);
        let options = BuildOptions::default();
        let built = build(&sources, "", &options, &Plain, &Budget::default());
        let files = built.expect("it is built").files();
        files.map(|files| files.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
    };
    let names = files("name: y").expect("two files");
    assert_eq!(names, ["v1_configmap_x.yaml", "v1_configmap_y.yaml"]);
    let error = files("name: X").expect_err("refused").to_string();
    let words = "two objects would be written to the file \"v1_configmap_x.yaml\"";
    assert!(error.contains(words), "{error}");
}

/// The real one ends here with a panic that says this.
#[test]
fn objects_that_patches_give_the_same_name_are_refused() {
    let patched = |name: &str| {
        let patch = format!("- {{op: replace, path: /metadata/name, value: {name}}}");
        let own = format!(
            "resources: [a.yaml, b.yaml]\npatches:\n- target: {{name: b}}\n  patch: |-\n    {patch}\n"
        );
        let second = CONFIG_MAP.replace("name: x", "name: b");
        let files = MemoryFiles::new([
            ("kustomization.yaml", own.as_str()),
            ("a.yaml", CONFIG_MAP),
            ("b.yaml", second.as_str()),
        ]);
        built(&files, "", &[])
    };
    assert!(patched("other").is_ok());
    let error = patched("x").expect_err("refused").to_string();
    let words = "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/x.[noNs]";
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_repository_keeps_its_bases_inside() {
    let own = MemoryFiles::new([(
        "kustomization.yaml",
        "resources: ['https://github.com/org/repo?ref=v1']\n",
    )]);
    let outside = MemoryFiles::new([("kustomization.yaml", "resources: [../../x]\n")]);
    let back = MemoryFiles::new([(
        "kustomization.yaml",
        "resources: ['https://github.com/org/repo?ref=v1']\n",
    )]);
    for (repository, words) in [
        (&outside, "must be within the repo"),
        (&back, "cycle detected: URI"),
    ] {
        let mut sources = SourceSet::new(&own);
        let reference = git("https://github.com/org/repo", "v1");
        sources.fetched = BTreeMap::from([(reference, repository as &dyn SourceFiles)]);
        let error = built_with(&sources, "", &[])
            .expect_err("refused")
            .to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn what_runs_programs_is_refused() {
    for flags in [
        "--enable-alpha-plugins",
        "--enable-exec",
        "--helm-command x",
        "--mount a=b",
    ] {
        assert!(
            BuildOptions::from_flags(flags.split(' ')).is_err(),
            "{flags}"
        );
    }
    for kind in ["container: {image: x}", "exec: {path: ./x}"] {
        let text = format!(
            "transformers:\n- |-\n  apiVersion: v1\n  kind: F\n  metadata:\n    name: f\n    \
             annotations: {{config.kubernetes.io/function: '{kind}'}}\n"
        );
        let files = MemoryFiles::new([("kustomization.yaml", text.as_str())]);
        let error = built(&files, "", &[]).expect_err("refused").to_string();
        assert!(error.contains("external plugins disabled"), "{error}");
    }
}

/// Many folders, each of which builds two others that are the same.
fn doubling(levels: usize) -> MemoryFiles {
    let mut files = BTreeMap::new();
    for level in 0..levels {
        let next = level + 1;
        let text = format!("resources: [../l{next}a, ../l{next}b]\n");
        for half in ["a", "b"] {
            let path = format!("l{level}{half}/kustomization.yaml");
            files.insert(path, text.clone().into_bytes());
        }
    }
    for half in ["a", "b"] {
        let path = format!("l{levels}{half}/kustomization.yaml");
        files.insert(path, b"namePrefix: x\n".to_vec());
    }
    MemoryFiles(files)
}

#[test]
fn builds_end_within_their_budgets() {
    let error = built(&doubling(40), "l0a", &[]).expect_err("too many files");
    assert!(matches!(error, RenderError::OverBudget { .. }), "{error}");
    let mut deep = String::from("kind: X\nmetadata: {name: x}\na: ");
    deep.push_str(&"[".repeat(5000));
    let files = MemoryFiles::new([
        ("kustomization.yaml", "resources: [a.yaml]\n"),
        ("a.yaml", &deep),
    ]);
    let error = built(&files, "", &[]).expect_err("too deep").to_string();
    assert!(error.contains("depth"), "{error}");
    let mut aliases = String::from("kind: X\nmetadata: {name: x}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = level - 1;
        let list = vec![format!("*a{before}"); 10].join(",");
        aliases.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let files = MemoryFiles::new([
        ("kustomization.yaml", "resources: [a.yaml]\n"),
        ("a.yaml", &aliases),
    ]);
    let error = built(&files, "", &[])
        .expect_err("too many aliases")
        .to_string();
    assert!(
        error.contains("aliasing") || error.contains("limit"),
        "{error}"
    );
}

#[test]
fn ten_thousand_resources_are_built_or_refused_by_name() {
    const MANY: usize = 10_000;
    let mut files = BTreeMap::new();
    let mut list = String::from("resources:\n");
    for number in 0..MANY {
        let object = CONFIG_MAP.replace("name: x", &format!("name: x{number}"));
        files.insert(format!("{number}.yaml"), object.into_bytes());
        list.push_str(&format!("- {number}.yaml\n"));
    }
    files.insert("kustomization.yaml".to_owned(), list.into_bytes());
    let files = MemoryFiles(files);
    let within = |budget: &Budget| {
        let sources = SourceSet::new(&files);
        build(&sources, "", &BuildOptions::default(), &Plain, budget)
    };
    let usual = Budget::default();
    assert_eq!(within(&usual).map(|built| built.objects.len()), Ok(MANY));
    let objects = Budget {
        objects: MANY - 1,
        ..usual
    };
    let error = within(&objects).expect_err("one too many").to_string();
    assert_eq!(error, "the number of objects exceeds the limit of 9999");
    // Each is looked up as a file.
    let files = Budget {
        files: MANY / 2,
        ..usual
    };
    let error = within(&files).expect_err("too many files").to_string();
    assert_eq!(error, "the number of files exceeds the limit of 5000");
}

/// Each level quotes what the one below it says, which doubles its backslashes.
#[test]
fn an_error_deep_in_components_is_not_endless() {
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let mut files = vec![(
        "kustomization.yaml".to_owned(),
        "components: [l0]\n".to_owned(),
    )];
    let mut folder = String::new();
    for level in 0..60 {
        folder = format!("{folder}l{level}/");
        let text = format!("{component}components: [l{}]\n", level + 1);
        files.push((format!("{folder}kustomization.yaml"), text));
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    let files = MemoryFiles::new(files);
    let sources = SourceSet::new(&files);
    let built = build(
        &sources,
        "",
        &BuildOptions::default(),
        &Plain,
        &Budget::default(),
    );
    let error = built.expect_err("the last is not there").to_string();
    assert!(
        error.starts_with("accumulating components: accumulateDirectory: \""),
        "{error}"
    );
    assert!(error.len() < 20 << 10, "{}", error.len());
}

/// What each replacement does doubles what the one before it left.
#[test]
fn replacements_cannot_grow_without_an_end() {
    let text = "source: {kind: X, fieldPath: spec.t}, targets: [{select: {kind: X}, \
                fieldPaths: [spec.t], options: {delimiter: ',', index: 1000}}]";
    let values = "source: {kind: X, fieldPath: spec}, targets: [{select: {kind: X}, \
                  fieldPaths: [spec.a, spec.b], options: {create: true}}]";
    for replacement in [text, values] {
        let mut own = String::from("resources: [x.yaml]\nreplacements:\n");
        for _ in 0..40 {
            own.push_str(&format!("- {{{replacement}}}\n"));
        }
        let files = MemoryFiles::new([
            ("kustomization.yaml", own.as_str()),
            (
                "x.yaml",
                "apiVersion: v1\nkind: X\nmetadata: {name: x}\nspec: {t: x, a: {}, b: {}}\n",
            ),
        ]);
        let budget = Budget {
            kustomize_bytes: 8 << 20,
            ..Budget::default()
        };
        let sources = SourceSet::new(&files);
        let built = build(&sources, "", &BuildOptions::default(), &Plain, &budget);
        let error = built.expect_err("too much").to_string();
        assert!(
            error.contains("the memory of all values exceeds the limit of 8388608"),
            "{error}"
        );
    }
}

/// A document in a text is parsed for each value that is written into it, and not kept.
#[test]
fn many_values_are_written_into_a_large_document_in_a_text() {
    let mut document = String::from("{");
    for n in 0..2000 {
        document.push_str(&format!("\"k{n}\": \"v\", "));
    }
    document.push_str("\"last\": 1}");
    let mut own = String::from("resources: [x.yaml]\nreplacements:\n");
    for n in 0..100 {
        own.push_str(&format!(
            "- {{sourceValue: new, targets: [{{select: {{kind: ConfigMap}}, fieldPaths: [data.d.k{n}]}}]}}\n"
        ));
    }
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n  d: '{document}'\n"
    );
    let files = MemoryFiles::new([
        ("kustomization.yaml", own.as_str()),
        ("x.yaml", map.as_str()),
    ]);
    let budget = Budget {
        kustomize_bytes: 8 << 20,
        ..Budget::default()
    };
    let sources = SourceSet::new(&files);
    let built = build(&sources, "", &BuildOptions::default(), &Plain, &budget);
    let built = built.expect("each needs the document once");
    let text = built.objects[0]["data"]["d"].as_str().expect("a text");
    assert_eq!(text.matches("\"new\"").count(), 100);
}

#[test]
fn replacements_cannot_nest_without_an_end() {
    let path: String = ".a".repeat(150);
    let mut text = String::from("resources: [a.yaml]\nreplacements:\n");
    for _ in 0..200 {
        text.push_str(&format!(
            "- source: {{kind: X, fieldPath: spec}}\n  targets: [{{select: {{kind: X}}, \
             fieldPaths: [spec{path}], options: {{create: true}}}}]\n"
        ));
    }
    let files = MemoryFiles::new([
        ("kustomization.yaml", text.as_str()),
        (
            "a.yaml",
            "kind: X\nmetadata: {name: x}\nspec: {b: {c: d}}\n",
        ),
    ]);
    let error = built(&files, "", &[]).expect_err("too deep");
    assert!(matches!(error, RenderError::OverBudget { .. }), "{error}");
}

/// Files of which one is a link that leads out.
struct Linked(MemoryFiles);

impl SourceFiles for Linked {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, tiphys_render::FileError> {
        if path == "out.yaml" {
            return Err(tiphys_render::FileError::OutsideLink(path.into()));
        }
        self.0.kind(path)
    }
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, tiphys_render::FileError> {
        self.0.read(path)
    }
    fn list(
        &self,
        path: &str,
    ) -> Result<Option<Vec<tiphys_render::FileEntry>>, tiphys_render::FileError> {
        self.0.list(path)
    }
}

#[test]
fn broken_input_is_refused_without_a_panic() {
    let files = Linked(MemoryFiles::new([(
        "kustomization.yaml",
        "resources: [out.yaml]\n",
    )]));
    let error = built(&files, "", &[]).expect_err("a link that leads out");
    assert!(
        error.to_string().contains("illegal filepath in symlink"),
        "{error}"
    );
    for (kustomization, resource) in [
        ("resources: ['a\\0b']\n", ""),
        ("resources: ['']\n", ""),
        ("resources: [/etc/passwd]\n", ""),
        ("resources: [a.yaml]\n", "kind: [\n"),
        ("resources: [a.yaml]\n", "- a\n"),
        ("resources: [a.yaml]\n", "kind: X\nmetadata: []\n"),
        ("resources: [a.yaml]\n", "kind: X\nmetadata: {name: [x]}\n"),
        (
            "resources: [a.yaml]\nnamePrefix: p-\n",
            "kind: X\nmetadata: {name: {a: b}}\n",
        ),
        (
            "resources: [a.yaml]\n",
            "kind: X\nmetadata: {name: x}\n1: {2: 3}\n",
        ),
        (
            "resources: [a.yaml]\nimages: [{name: '('}]\nnamespace: n\n",
            "kind: X\nmetadata: {name: x, namespace: []}\n",
        ),
        (
            "resources: [a.yaml]\nreplacements: [{source: {}, targets: [{select: {name: '('}}]}]\n",
            CONFIG_MAP,
        ),
        (
            "resources: [a.yaml]\npatches: [{patch: '- op: nothing', target: {}}]\n",
            CONFIG_MAP,
        ),
        ("configMapGenerator: [{name: x, files: [a=b=c]}]\n", ""),
        ("commonLabels: {a: 1}\n", ""),
        ("[]", ""),
        ("\u{1}", ""),
    ] {
        let files = MemoryFiles::new([("kustomization.yaml", kustomization), ("a.yaml", resource)]);
        let result = built(&files, "", &[]);
        assert!(
            result.is_err(),
            "{kustomization:?} {resource:?}: {result:?}"
        );
    }
}
