//! Facts about Kustomize 5.8.1 that no build of the real one in tests/baseline shows. The names of
//! the tests begin with their numbers in docs/behaviours/sources.md.

use crate::kustomize::built;
use tiphys_render::MemoryFiles;

const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: b\n";

/// A kustomization of one object.
fn build_of(kustomization: &str, object: &str) -> Result<String, String> {
    let files = [
        ("app/kustomization.yaml", kustomization),
        ("app/a.yaml", object),
    ];
    built(&MemoryFiles::new(files), "app", &[]).map_err(|e| e.to_string())
}

#[track_caller]
fn fails(kustomization: &str, object: &str, why: &str) {
    let error = build_of(kustomization, object).expect_err("it fails");
    assert!(error.contains(why), "{error}");
}

/// With a chart in the charts folder, whose object says for which Kubernetes it was rendered.
fn with_chart(kustomization: &str, flags: &[&str]) -> String {
    let files = [
        ("app/kustomization.yaml", kustomization),
        ("app/a.yaml", OBJECT),
        (
            "app/charts/c/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        ("app/charts/c/values.yaml", "a: 1\n"),
        (
            "app/charts/c/templates/t.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: t}\n\
             stringData: {v: '{{ .Capabilities.KubeVersion.Version }}'}\n",
        ),
    ];
    let flags: Vec<&str> = ["--enable-helm"].iter().chain(flags).copied().collect();
    built(&MemoryFiles::new(files), "app", &flags).expect("it is built")
}

#[test]
fn k6_a_generator_without_a_namespace_merges_into_one_that_has_one() {
    let merging = |namespace: &str| {
        let top = format!(
            "resources: [base]\nconfigMapGenerator:\n- name: c\n  behavior: merge\n  \
             literals: [more=2]\n{namespace}"
        );
        let files = [
            ("app/kustomization.yaml", top.as_str()),
            (
                "app/base/kustomization.yaml",
                "namespace: n1\nconfigMapGenerator:\n- name: c\n  literals: [less=1]\n",
            ),
        ];
        built(&MemoryFiles::new(files), "app", &[]).map_err(|e| e.to_string())
    };
    let merged = merging("").expect("it is merged");
    assert_eq!(merged.matches("kind: ConfigMap").count(), 1, "{merged}");
    for part in ["less: \"1\"", "more: \"2\"", "namespace: n1"] {
        assert!(merged.contains(part), "{merged}");
    }
    let error = merging("  namespace: n2\n").expect_err("there is none");
    let why = "does not exist; cannot merge or replace";
    assert!(error.contains(why), "{error}");
}

#[test]
fn k14_unknown_kinds_of_the_cluster_get_a_namespace() {
    let issuer = "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata:\n  name: x\n";
    let role =
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: x\n";
    for (object, gets_one) in [(issuer, true), (role, false)] {
        let yaml = build_of("namespace: ns\nresources: [a.yaml]\n", object);
        let yaml = yaml.expect("it is built");
        assert_eq!(yaml.contains("  namespace: ns\n"), gets_one, "{yaml}");
    }
}

#[test]
fn k16_objects_of_charts_do_not_get_the_namespace() {
    let kustomization = "namespace: ns\nresources: [a.yaml]\nhelmCharts: [{name: c}]\n";
    let yaml = with_chart(kustomization, &[]);
    assert!(yaml.contains("kind: Secret"), "{yaml}");
    assert_eq!(yaml.matches("namespace: ns\n").count(), 1, "{yaml}");
}

#[test]
fn k17_a_namespace_must_not_make_two_objects_one() {
    let named = |namespace: &str| {
        OBJECT.replace(
            "  name: x\n",
            &format!("  name: x\n  namespace: {namespace}\n"),
        )
    };
    let both = format!("{}---\n{}", named("one"), named("other"));
    build_of("resources: [a.yaml]\n", &both).expect("they are two");
    fails(
        "namespace: ns\nresources: [a.yaml]\n",
        &both,
        "namespace transformation produces ID conflict: ",
    );
}

#[test]
fn k19_an_object_needs_its_name() {
    fails(
        "resources: [a.yaml]\n",
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: x-\n",
        "missing metadata.name in object ",
    );
}

#[test]
fn k25_operations_on_what_is_not_there_fail() {
    for (operation, why) in [
        (
            "{op: remove, path: /data/no}",
            "Unable to remove nonexistent key",
        ),
        (
            "{op: test, path: /data/a, value: c}",
            "testing value /data/a failed: test failed",
        ),
    ] {
        let kustomization = format!(
            "resources: [a.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n    - \
             {operation}\n"
        );
        fails(&kustomization, OBJECT, why);
    }
}

#[test]
fn k27_a_target_is_for_one_patch() {
    let patch = "    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: x\n    data:\n      \
                 c: d\n";
    let patches = |target: &str, text: &str| {
        format!("resources: [a.yaml]\npatches:\n- {target}patch: |-\n{text}")
    };
    let both = format!("{patch}    ---\n{patch}");
    let target = "target: {kind: ConfigMap}\n  ";
    build_of(&patches(target, patch), OBJECT).expect("one is fine");
    build_of(&patches("", &both), OBJECT).expect("so are two that name it themselves");
    fails(
        &patches(target, &both),
        OBJECT,
        "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set \
         `patches.target` field",
    );
}

#[test]
fn k31_replicas_are_of_something() {
    fails(
        "resources: [a.yaml]\nreplicas: [{name: none, count: 2}]\n",
        OBJECT,
        "resource with name none does not match a config with the following GVK [",
    );
}

#[test]
fn k42_the_version_in_the_file_counts_before_the_flag() {
    let flags = ["--helm-kube-version", "1.29.0"];
    let of_flag = with_chart("helmCharts: [{name: c}]\n", &flags);
    assert!(of_flag.contains("v: v1.29.0\n"), "{of_flag}");
    let of_file = with_chart("helmCharts: [{name: c, kubeVersion: 1.30.0}]\n", &flags);
    assert!(of_file.contains("v: v1.30.0\n"), "{of_file}");
}
