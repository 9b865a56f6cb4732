//! Every part of `.Capabilities.KubeVersion`, for every form of version.

use serde_json::Map;
use std::sync::Arc;
use tiphys_render::MemoryFiles;
use tiphys_render::helm::chart::Chart;
use tiphys_render::helm::{
    Capabilities, KubeVersion, Limits, RenderOptions, Sources, render_chart,
};

fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: || jiff::tz::TimeZone::UTC,
    }
}

/// What a template prints for a version.
fn parts(version: &str) -> Result<String, String> {
    let kube_version = KubeVersion::parse(version)?;
    let template = "parts: {{ with .Capabilities.KubeVersion }}{{ .Major }} {{ .Minor }} {{ .Version }} {{ .GitVersion }} {{ . }}{{ end }} \
                    {{ semverCompare \">=1.32-0\" .Capabilities.KubeVersion.Version }} {{ lt (int .Capabilities.KubeVersion.Minor) 25 }}";
    let files = MemoryFiles::new([
        ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
        ("templates/t.yaml", template),
    ]);
    let limits = Limits::default();
    let chart = Chart::from_folder(&files, "", &limits)
        .map_err(|e| e.to_string())?
        .chart;
    let capabilities = Capabilities {
        kube_version,
        ..Capabilities::default()
    };
    let options = RenderOptions {
        capabilities,
        ..RenderOptions::new(Arc::new(sources))
    };
    let rendered =
        render_chart(chart, &Map::new(), &options, &limits).map_err(|e| e.to_string())?;
    let text = rendered
        .manifests
        .iter()
        .find_map(|m| m.text.lines().find_map(|line| line.strip_prefix("parts: ")));
    Ok(text
        .unwrap_or_else(|| panic!("no parts in {:?}", rendered.manifests))
        .to_owned())
}

#[test]
fn each_part_of_each_form() {
    for (version, wanted) in [
        ("1.32.3", "1 32 v1.32.3 v1.32.3 v1.32.3 true false"),
        ("v1.32.3", "1 32 v1.32.3 v1.32.3 v1.32.3 true false"),
        ("1.32", "1 32 v1.32 v1.32 v1.32 true false"),
        ("v1.32.0", "1 32 v1.32.0 v1.32.0 v1.32.0 true false"),
        ("v1.24.17", "1 24 v1.24.17 v1.24.17 v1.24.17 false true"),
        (
            "1.32.3-gke.1",
            "1 32 v1.32.3-gke.1 v1.32.3-gke.1 v1.32.3 true false",
        ),
        (
            "v1.32.3-eks-a1b2c3d",
            "1 32 v1.32.3-eks-a1b2c3d v1.32.3-eks-a1b2c3d v1.32.3 true false",
        ),
        (
            "v1.32.3+k3s1",
            "1 32 v1.32.3+k3s1 v1.32.3+k3s1 v1.32.3 true false",
        ),
        (
            "v1.32.3-rc.1+k3s1",
            "1 32 v1.32.3-rc.1+k3s1 v1.32.3-rc.1+k3s1 v1.32.3 true false",
        ),
        ("1.32.3.4", "1 32 v1.32.3.4 v1.32.3.4 v1.32.3.4"),
        ("1.032.3", "1 32 v1.032.3 v1.032.3 v1.32.3 true false"),
        ("2.0.1", "2 0 v2.0.1 v2.0.1 v2.0.1 true true"),
    ] {
        match parts(version) {
            Ok(text) => assert_eq!(text, wanted, "{version}"),
            // If it is not a semantic version, only the parts are compared.
            Err(e) => assert!(
                wanted.split(' ').count() == 5 && e.contains("semverCompare"),
                "{version}: {e}"
            ),
        }
    }
    for (version, numbers) in [
        ("1.32+", ("1", "32", "v1.32+", "v1.32")),
        ("1.32.3.4", ("1", "32", "v1.32.3.4", "v1.32.3.4")),
        ("1.032.3", ("1", "32", "v1.032.3", "v1.32.3")),
    ] {
        let KubeVersion {
            version: text,
            normalized,
            major,
            minor,
        } = KubeVersion::parse(version).expect("a version");
        assert_eq!(
            (
                major.as_str(),
                minor.as_str(),
                text.as_str(),
                normalized.as_str()
            ),
            numbers,
            "{version}"
        );
    }
}

#[test]
fn what_is_no_version_is_refused() {
    for (version, wanted) in [
        ("1", r#"illegal version string "1""#),
        ("", r#"could not parse "" as version"#),
        ("x", r#"could not parse "x" as version"#),
        (
            "01.32.0",
            r#"illegal zero-prefixed version component "01" in "01.32.0""#,
        ),
    ] {
        assert_eq!(KubeVersion::parse(version).expect_err(version), wanted);
    }
}

/// A missing key of Chart.yaml is a nil map in Go: null as JSON, empty as text.
#[test]
fn annotations_that_are_not_there_are_null() {
    let shown = |chart: &str| {
        let template = "parts: |-\n  P {{ .Chart.Annotations | toJson }} {{ .Chart.Annotations }} {{ .Chart.Annotations | toYaml }} {{ .Chart.Annotations | toYamlPretty }} \
                        {{ empty .Chart.Annotations }} {{ typeOf .Chart.Annotations }} {{ .Chart.Annotations.nothing }} {{ len .Chart.Annotations }}";
        let files = MemoryFiles::new([("Chart.yaml", chart), ("templates/t.yaml", template)]);
        let chart = Chart::from_folder(&files, "", &Limits::default())
            .expect("a chart")
            .chart;
        let rendered = render_chart(
            chart,
            &Map::new(),
            &RenderOptions::new(Arc::new(sources)),
            &Limits::default(),
        )
        .expect("it renders");
        let line = rendered.manifests.iter().find_map(|m| {
            m.text
                .lines()
                .find_map(|line| line.strip_prefix("  P ").map(str::to_owned))
        });
        line.expect("the parts")
    };
    let without = "apiVersion: v2\nname: a\nversion: 1.0.0\n";
    assert_eq!(
        shown(without),
        "null map[] null {} true map[string]string  0"
    );
    assert_eq!(
        shown(&format!("{without}annotations: {{a: b}}\n")),
        r#"{"a":"b"} map[a:b] a: b a: b false map[string]string  1"#
    );
}
