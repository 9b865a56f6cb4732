//! Charts rendered by the real Helm, by our program and in process: time, CPU and memory in the
//! same run, and the speed-up.
//!
//! Main function: [`run`]. Cold in process includes reading the chart from memory, parsing its
//! templates and rendering; warm only renders again.

use super::{
    HelmArgs, Output,
    timed::{Used, best, program},
};
use crate::parity::read_folder;
use anyhow::Context;
use serde_json::{Value, json};
use std::{
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_render::{
    MemoryFiles,
    helm::{
        Limits, ParsedChart, PrintOptions, RenderOptions, Sources, chart::Chart, values::Values,
    },
};

struct Figures {
    chart: String,
    bytes: usize,
    helm: Used,
    ours: Option<Used>,
    cold: f64,
    warm: f64,
}

pub fn run(root: &Path, args: &HelmArgs) -> anyhow::Result<()> {
    let default = || {
        std::env::home_dir()
            .unwrap_or_default()
            .join(".cache/control-plane/bin/helm")
    };
    let helm = args.helm.clone().unwrap_or_else(default);
    let ours = args
        .program
        .clone()
        .unwrap_or_else(|| root.join("target/release/tiphys"));
    let folder = tempfile::tempdir()?;
    let umbrella = folder.path().join("umbrella");
    write_umbrella(&umbrella, args.subcharts)?;
    let mut figures = Vec::new();
    for chart in args.charts.iter().chain([&umbrella]) {
        figures.push(measure(chart, &helm, &ours, args.rounds, folder.path())?);
    }
    show(&figures, args.output);
    Ok(())
}

fn measure(
    chart: &Path,
    helm: &Path,
    ours: &Path,
    rounds: usize,
    home: &Path,
) -> anyhow::Result<Figures> {
    let files = read_folder(chart)?;
    let cold = best(rounds, || drop(black_box(render(&parse(&files)))));
    let parsed = parse(&files);
    let text =
        render(&parsed).with_context(|| format!("{} cannot be rendered", chart.display()))?;
    let warm = best(rounds.max(20), || drop(black_box(render(&parsed))));
    let there = ours.is_file();
    Ok(Figures {
        chart: chart
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        bytes: text.len(),
        helm: template(helm, &["template"], chart, rounds, home)?,
        ours: if there {
            Some(template(ours, &["helm", "template"], chart, rounds, home)?)
        } else {
            None
        },
        cold,
        warm,
    })
}

/// What a program uses for `template` of a chart.
pub(super) fn template(
    ours: &Path,
    verb: &[&str],
    chart: &Path,
    rounds: usize,
    home: &Path,
) -> anyhow::Result<Used> {
    let chart = chart.to_str().context("the chart's path is not UTF-8")?;
    let arguments: Vec<&str> = verb
        .iter()
        .copied()
        .chain(["release-name", chart])
        .collect();
    program(ours, &arguments, rounds, home)
}

pub(super) fn parse(files: &MemoryFiles) -> Option<ParsedChart> {
    Chart::from_folder(files, "", &Limits::default())
        .ok()
        .map(|loaded| ParsedChart::new(loaded.chart))
}

pub(super) fn render(chart: &Option<ParsedChart>) -> Option<String> {
    let rendered = chart
        .as_ref()?
        .render(
            &Values::new(),
            &RenderOptions::new(Arc::new(sources)),
            &Limits::default(),
        )
        .ok()?;
    rendered.print(&PrintOptions::default()).ok()
}

fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: jiff::Timestamp::now(),
        zone: || jiff::tz::TimeZone::UTC,
    }
}

/// A chart with many typical subcharts.
pub(super) fn write_umbrella(folder: &Path, subcharts: usize) -> anyhow::Result<()> {
    let write = |path: PathBuf, text: &str| -> anyhow::Result<()> {
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        Ok(fs::write(path, text)?)
    };
    write(
        folder.join("Chart.yaml"),
        "apiVersion: v2\nname: umbrella\nversion: 1.0.0\n",
    )?;
    write(folder.join("values.yaml"), "global: {team: a}\n")?;
    for number in 0..subcharts {
        let name = format!("part-{number:03}");
        let sub = folder.join("charts").join(&name);
        write(
            sub.join("Chart.yaml"),
            &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\nappVersion: '2'\n"),
        )?;
        write(
            sub.join("values.yaml"),
            "replicas: 2\nimage: {repository: example/app}\nport: 8080\nenv: {A: b, C: d}\nresources: {limits: {memory: 64Mi}}\n",
        )?;
        write(
            sub.join("templates/_helpers.tpl"),
            &HELPERS.replace("NAME", &name),
        )?;
        write(
            sub.join("templates/deployment.yaml"),
            &DEPLOYMENT.replace("NAME", &name),
        )?;
        write(
            sub.join("templates/service.yaml"),
            &SERVICE.replace("NAME", &name),
        )?;
    }
    Ok(())
}

const HELPERS: &str = r#"{{- define "NAME.fullname" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "NAME.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
team: {{ .Values.global.team }}
{{- end }}
"#;

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "NAME.fullname" . }}
  labels:
    {{- include "NAME.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels:
      {{- include "NAME.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "NAME.labels" . | nindent 8 }}
    spec:
      containers:
        - name: main
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          env:
          {{- range $name, $value := .Values.env }}
            - name: {{ $name }}
              value: {{ $value | quote }}
          {{- end }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
"#;

const SERVICE: &str = r#"apiVersion: v1
kind: Service
metadata:
  name: {{ include "NAME.fullname" . }}
  labels:
    {{- include "NAME.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "NAME.labels" . | nindent 4 }}
  ports:
    - port: {{ .Values.port }}
"#;

fn show(figures: &[Figures], output: Output) {
    if let Output::Json = output {
        let used = |u: Used| json!({"seconds": u.seconds, "cpu": u.cpu, "mebibytes": u.mebibytes});
        let rows = figures.iter().map(|f| {
            json!({"chart": f.chart, "bytes": f.bytes, "helm": used(f.helm), "tiphys": f.ours.map(used), "cold": f.cold, "warm": f.warm})
        });
        println!("{}", Value::Array(rows.collect()));
        return;
    }
    println!(
        "{:<34} {:>8} {:>22} {:>30} {:>17} {:>17}",
        "", "bytes", "helm ms, CPU, MiB", "tiphys ms, CPU, MiB", "cold ms", "warm ms"
    );
    for f in figures {
        let ms = |seconds: f64| seconds * 1e3;
        let used = |u: Used| format!("{:.1} {:.1} {:.0}", ms(u.seconds), ms(u.cpu), u.mebibytes);
        let times = |seconds: f64| format!("{:.2} ({:.0}x)", ms(seconds), f.helm.seconds / seconds);
        let ours = f.ours.map_or_else(
            || "not built".to_owned(),
            |u| format!("{} ({:.1}x)", used(u), f.helm.seconds / u.seconds),
        );
        println!(
            "{:<34} {:>8} {:>22} {ours:>30} {:>17} {:>17}",
            f.chart,
            f.bytes,
            used(f.helm),
            times(f.cold),
            times(f.warm)
        );
    }
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    println!(
        "in process: {build} build; the quickest of the rounds, CPU their mean, memory their most"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umbrella_is_rendered() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        write_umbrella(folder.path(), 3).expect("writable");
        let text =
            render(&parse(&read_folder(folder.path()).expect("readable"))).expect("it renders");
        assert_eq!(text.matches("kind: Deployment").count(), 3);
        assert!(text.contains("name: release-name-part-002"), "{text}");
    }
}
