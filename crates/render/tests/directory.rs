//! Plain directories: which files are read, in which order, and what is refused.

use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::source::ApplicationSource;
use tiphys_gocompat::sprig;
use tiphys_render::{
    Budget, Charts, DirectoryOptions, FileEntry, FileError, FileKind, MemoryFiles, Prepared,
    RenderError, RenderParams, Rendered, SourceFiles, SourceKind, SourceSet, Tool, prepare,
};

/// No test here renders a chart.
pub struct NoCharts;

impl Charts for NoCharts {
    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        unreachable!("directories have no templates")
    }
}

fn render(
    files: &dyn SourceFiles,
    params: &RenderParams,
    budget: &Budget,
) -> Result<Rendered, RenderError> {
    let sources = SourceSet::new(files);
    tiphys_render::render(&sources, &prepare(&sources, params)?, &NoCharts, budget)
}

fn params(path: &str) -> RenderParams {
    RenderParams {
        source: ApplicationSource {
            path: path.to_owned(),
            ..Default::default()
        },
        ..Default::default()
    }
}

fn cm(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn files(paths: &[&str]) -> MemoryFiles {
    let named = |path: &str| cm(&path.replace(['/', '.'], "-"));
    MemoryFiles(
        paths
            .iter()
            .map(|p| ((*p).to_owned(), named(p).into_bytes()))
            .collect::<BTreeMap<_, _>>(),
    )
}

fn names(files: &dyn SourceFiles, path: &str, directory: DirectoryOptions) -> Vec<String> {
    let prepared = Prepared {
        folder: prepare(&SourceSet::new(files), &params(path))
            .expect("prepared")
            .folder,
        tool: Tool::Directory(directory),
    };
    let rendered = tiphys_render::render(
        &SourceSet::new(files),
        &prepared,
        &NoCharts,
        &Budget::default(),
    )
    .expect("renders");
    assert_eq!(rendered.errors, [], "no errors");
    rendered
        .objects
        .iter()
        .map(|o| o.name().to_owned())
        .collect()
}

#[test]
fn files_are_chosen_by_extension_recursion_and_globs() {
    let source = files(&[
        "app/b.yaml",
        "app/a.yml",
        "app/c.json.yaml",
        "app/readme.md",
        "app/.hidden.yaml",
        "app/sub/d.yaml",
        "app/sub/deep/e.yaml",
        "app/.git2/f.yaml",
        "other/x.yaml",
    ]);
    let with = |recurse, include: &str, exclude: &str| DirectoryOptions {
        recurse,
        include: include.to_owned(),
        exclude: exclude.to_owned(),
        ..DirectoryOptions::default()
    };
    let flat = [
        "app--hidden-yaml",
        "app-a-yml",
        "app-b-yaml",
        "app-c-json-yaml",
    ];
    assert_eq!(names(&source, "app", with(false, "", "")), flat);
    assert_eq!(names(&source, "./app/", with(false, "", "")), flat);
    assert_eq!(names(&source, "other/../app", with(false, "", "")), flat);
    let all = [
        "app--git2-f-yaml",
        "app--hidden-yaml",
        "app-a-yml",
        "app-b-yaml",
        "app-c-json-yaml",
        "app-sub-d-yaml",
        "app-sub-deep-e-yaml",
    ];
    assert_eq!(names(&source, "app", with(true, "", "")), all);
    assert_eq!(
        names(&source, "app", with(true, "sub/*", "")),
        ["app-sub-d-yaml", "app-sub-deep-e-yaml"]
    );
    assert_eq!(
        names(&source, "app", with(true, "*.yaml", "{sub/*,.*}")),
        ["app-b-yaml", "app-c-json-yaml"]
    );
    assert_eq!(
        names(&source, "app", with(true, "[", "")),
        Vec::<String>::new(),
        "a broken include matches nothing"
    );
    assert_eq!(
        names(&source, "app", with(false, "", "[")),
        flat,
        "a broken exclude matches nothing"
    );
    let every = DirectoryOptions {
        disable_extension_filter: true,
        include: "*.md".to_owned(),
        ..DirectoryOptions::default()
    };
    assert_eq!(names(&source, "app", every), ["app-readme-md"]);
}

#[test]
fn paths_are_refused_as_argo_cd_words_it() {
    let source = files(&["app/a.yaml"]);
    let cases = [
        ("nope", "nope: app path does not exist"),
        ("app/nope/x", "app/nope/x: app path does not exist"),
        ("/app", "/app: app path is absolute"),
        ("../app", "../app: app path outside root"),
        ("app/../../etc", "app/../../etc: app path outside root"),
        ("app/a.yaml", "app/a.yaml: app path is not a directory"),
        ("%2e%2e/app", "%2e%2e/app: app path does not exist"),
        ("app\\..\\x", "app\\..\\x: app path does not exist"),
    ];
    for (path, want) in cases {
        let error = render(&source, &params(path), &Budget::default()).expect_err(path);
        assert_eq!(error.to_string(), want);
    }
    assert_eq!(
        names(
            &source,
            "",
            DirectoryOptions {
                recurse: true,
                ..Default::default()
            }
        ),
        ["app-a-yaml"]
    );
}

#[test]
fn other_tools_are_refused_and_never_rendered_as_nothing() {
    let plain = ApplicationSource {
        path: "app".to_owned(),
        ..Default::default()
    };
    let plugin = ApplicationSource {
        plugin: Some(Box::default()),
        ..plain.clone()
    };
    let two = ApplicationSource {
        helm: Some(Box::default()),
        kustomize: Some(Box::default()),
        ..plain.clone()
    };
    let cases = [
        // What is in the file is no kustomization.
        (
            "kustomization.yaml",
            &plain,
            "`kustomize build app` failed exit status 1: Error: Failed to read kustomization file under /app:\nkind should be Kustomization or Component\napiVersion for ConfigMap should be kustomize.config.k8s.io/v1beta1",
        ),
        (
            "a.yaml",
            &plugin,
            "app: Plugin sources are rendered by servers of plugins, which are not asked here",
        ),
        (
            "a.yaml",
            &two,
            "multiple application sources defined: Kustomize,Helm",
        ),
    ];
    for (file, source, want) in cases {
        let files = files(&[&format!("app/{file}")]);
        let params = RenderParams {
            source: source.clone(),
            ..Default::default()
        };
        assert_eq!(
            render(&files, &params, &Budget::default())
                .expect_err(file)
                .to_string(),
            want
        );
    }
    let files = files(&["app/Chart.yaml"]);
    let source = ApplicationSource {
        directory: Some(Box::default()),
        ..plain
    };
    let params = RenderParams {
        source,
        ..Default::default()
    };
    let rendered = render(&files, &params, &Budget::default())
        .expect("a directory because the Application says so");
    assert_eq!(
        (rendered.kind, rendered.objects.len()),
        (SourceKind::Directory, 1)
    );
}

#[test]
fn broken_files_are_listed_beside_the_good_ones() {
    let mut source = files(&["app/a.yaml", "app/z.yaml"]);
    source.0.insert(
        "app/m.yaml".to_owned(),
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n bad\n".to_vec(),
    );
    source.0.insert(
        "app/skipped.yaml".to_owned(),
        b"# +argocd:skip-file-rendering\n{{ not yaml".to_vec(),
    );
    source.0.insert(
        "app/utf16.yaml".to_owned(),
        "\u{FEFF}apiVersion: v1\nkind: A\nmetadata: {name: u}"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect(),
    );
    let rendered = render(&source, &params("app"), &Budget::default()).expect("renders");
    let names: Vec<&str> = rendered.objects.iter().map(|o| o.name()).collect();
    assert_eq!(names, ["app-a-yaml", "u", "app-z-yaml"]);
    assert_eq!(rendered.errors.len(), 1);
    assert_eq!(
        (rendered.errors[0].file.as_str(), rendered.errors[0].line),
        ("m.yaml", 5)
    );
}

#[test]
fn size_and_number_are_limited() {
    let source = files(&["a.yaml", "b.yaml", "c.yaml"]);
    let params = RenderParams::default();
    let small = Budget {
        combined_bytes: 120,
        ..Budget::default()
    };
    let error = render(&source, &params, &small).expect_err("too large");
    assert!(
        error
            .to_string()
            .starts_with("exceeded max combined manifest file size"),
        "{error}"
    );
    assert!(matches!(
        render(
            &source,
            &params,
            &Budget {
                files: 2,
                ..Budget::default()
            }
        ),
        Err(RenderError::OverBudget { .. })
    ));
    assert!(matches!(
        render(
            &source,
            &params,
            &Budget {
                objects: 2,
                ..Budget::default()
            }
        ),
        Err(RenderError::OverBudget { .. })
    ));
    assert!(
        render(
            &source,
            &params,
            &Budget {
                combined_bytes: 0,
                ..Budget::default()
            }
        )
        .is_ok()
    );
}

/// Every hostile text must end with an error in `errors`, next to the valid file. Without its limit
/// each would take minutes or all memory.
#[test]
fn hostile_yaml_is_contained() {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n";
    let mut laughs = format!("{manifest}  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for i in 1..10 {
        let prev = i - 1;
        laughs.push_str(&format!(
            "  a{i}: &a{i} [*a{prev},*a{prev},*a{prev},*a{prev},*a{prev},*a{prev},*a{prev},*a{prev},*a{prev},*a{prev}]\n"
        ));
    }
    let mut merges = format!("{manifest}  m0: &m0 {{k0: v}}\n");
    for i in 1..40 {
        let prev = i - 1;
        merges.push_str(&format!(
            "  m{i}: &m{i} {{a: {{<<: *m{prev}}}, b: {{<<: *m{prev}}}}}\n"
        ));
    }
    let cases = [
        ("billion laughs", laughs),
        ("merge bomb", merges),
        ("alias cycle", format!("{manifest}  a: &a [*a]\n")),
        (
            "flow depth",
            format!("{manifest}  a: {}\n", "[".repeat(100_000)),
        ),
        (
            "block depth",
            format!(
                "{manifest}{}",
                (1..2000)
                    .map(|i| format!("{}a:\n", " ".repeat(i + 1)))
                    .collect::<String>()
            ),
        ),
        (
            "list depth",
            format!("{manifest}  a:\n  {}x\n", "- ".repeat(100_000)),
        ),
        (
            "documents",
            format!("{manifest}{}", "---\na: 1\n".repeat(100_000)),
        ),
        ("control characters", format!("{manifest}  a: \x01\n")),
        ("infinity", format!("{manifest}  a: .inf\n")),
        ("list as key", format!("{manifest}  [a]: 1\n")),
    ];
    for (what, text) in cases {
        let mut source = files(&["good.yaml"]);
        source.0.insert("bad.yaml".to_owned(), text.into_bytes());
        let rendered = render(&source, &RenderParams::default(), &Budget::default()).expect(what);
        assert!(!rendered.errors.is_empty(), "{what}: no error");
        assert!(
            rendered.objects.iter().any(|o| o.name() == "good-yaml"),
            "{what}: the sibling is there"
        );
    }
}

/// Links as in a git tree: `out` leaves the source, `gone` is broken, `dir` links to a folder, `in`
/// to a file.
struct Linked;

impl SourceFiles for Linked {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        match path {
            "" | "bad" => Ok(Some(FileKind::Dir)),
            "gone.yaml" => Ok(None),
            "dir.yaml" => Ok(Some(FileKind::Dir)),
            "in.yaml" => Ok(Some(FileKind::File { size: 1 })),
            _ => Err(FileError::OutsideLink(path.to_owned())),
        }
    }
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        Ok((path == "in.yaml").then(|| cm("in").into_bytes()))
    }
    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        let names: &[&str] = if path == "bad" {
            &["out.yaml"]
        } else {
            &["dir.yaml", "gone.yaml", "in.yaml", "out.txt"]
        };
        Ok(Some(
            names
                .iter()
                .map(|n| FileEntry {
                    name: (*n).to_owned(),
                    kind: FileKind::Symlink,
                })
                .collect(),
        ))
    }
}

#[test]
fn links_are_followed_inside_and_refused_outside() {
    let rendered = render(&Linked, &RenderParams::default(), &Budget::default()).expect("renders");
    assert_eq!(
        rendered
            .objects
            .iter()
            .map(|o| o.name())
            .collect::<Vec<_>>(),
        ["in"]
    );
    assert_eq!(rendered.warnings.len(), 2, "{:?}", rendered.warnings);
    let error = render(&Linked, &params("bad"), &Budget::default()).expect_err("outside");
    assert_eq!(
        error.to_string(),
        "illegal filepath in symlink at \"bad/out.yaml\""
    );
}

#[test]
fn tools_that_are_switched_off_leave_plain_manifests() {
    let source = files(&[
        "app/x.yaml",
        "app/Chart.yaml",
        "app/kustomization.yaml",
        "app/y.jsonnet",
    ]);
    let render_without = |off: &[SourceKind], helm: bool| {
        let mut params = params("app");
        params.source.helm = helm.then(Box::default);
        params.cluster_facts.switched_off = off.to_vec();
        render(&source, &params, &Budget::default()).map(|r| (r.kind, r.objects.len()))
    };
    assert!(render_without(&[], false).is_err_and(|e| e.to_string().contains("kustomize build")));
    let params_without = {
        let mut params = params("app");
        params.cluster_facts.switched_off = vec![SourceKind::Kustomize];
        params
    };
    let rendered = render(&source, &params_without, &Budget::default()).expect("plain");
    assert!(
        rendered.errors[0]
            .to_string()
            .contains("evaluate jsonnet \"y.jsonnet\"")
    );
    for helm in [false, true] {
        let off = SourceKind::switched_off(|_| false);
        assert_eq!(
            render_without(&off, helm).expect("plain"),
            (SourceKind::Directory, 3)
        );
    }
    assert_eq!(
        SourceKind::switched_off(|kind| kind != "Helm"),
        [SourceKind::Helm]
    );
}
