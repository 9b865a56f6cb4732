//! Which subcharts are enabled, under which names, and which of their values their parent imports.
//!
//! Main functions: [`enable`], [`import`] and [`missing_dependencies`].

use super::Values;
use super::tables::{Coalescing, Node, Table, find, printed, put, scalar};
use crate::helm::chart::{Chart, Dependency};
use crate::helm::{HelmError, log};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tiphys_gocompat::semver::{Constraints, Version};

/// A dependency of the chart that is missing in its `charts/` folder. The caller has to add it and
/// load the chart again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingDependency {
    pub name: String,
    /// The version constraint in Chart.yaml.
    pub version: String,
    pub repository: String,
    /// The version that the lock file pins.
    pub locked: Option<String>,
}

/// The missing dependencies of a loaded chart; must be called before [`super::prepare`].
pub fn missing_dependencies(chart: &Chart) -> Vec<MissingDependency> {
    let wanted = chart.metadata.dependencies.iter().flatten();
    let missing = wanted.filter(|wanted| {
        !chart
            .dependencies
            .iter()
            .any(|there| there.name() == wanted.name)
    });
    let found = missing.map(|d| MissingDependency {
        name: d.name.clone(),
        version: d.version.clone(),
        repository: d.repository.clone(),
        locked: chart
            .lock
            .iter()
            .flat_map(|lock| &lock.dependencies)
            .find(|l| l.name == d.name)
            .map(|l| l.version.clone()),
    });
    found.collect()
}

/// Whether a chart's version satisfies a dependency's constraint.
pub(super) fn compatible(constraint: &str, version: &str) -> bool {
    match (Constraints::parse(constraint), Version::parse(version)) {
        (Ok(constraints), Ok(version)) => constraints.check(&version),
        _ => false,
    }
}

/// Helm's processDependencyEnabled.
pub(super) fn enable(
    run: &mut Coalescing<'_>,
    chart: &mut Chart,
    user: &Values,
) -> Result<(), HelmError> {
    enable_at(run, chart, user, "")
}

fn enable_at(
    run: &mut Coalescing<'_>,
    chart: &mut Chart,
    above: &Values,
    path: &str,
) -> Result<(), HelmError> {
    let Some(mut wanted) = chart.metadata.dependencies.take() else {
        return Ok(());
    };
    chart.dependencies = named(std::mem::take(&mut chart.dependencies), &mut wanted);
    let table = run.chart_values(chart, above, false)?;
    for dependency in &mut wanted {
        dependency.enabled = tagged(run, dependency, &table);
        if let Some(enabled) = condition(run, dependency, &table, path) {
            dependency.enabled = enabled;
        }
    }
    let off: BTreeSet<String> = wanted
        .iter()
        .filter(|d| !d.enabled)
        .map(|d| d.name.clone())
        .collect();
    chart
        .dependencies
        .retain(|dependency| !off.contains(dependency.name()));
    wanted.retain(|dependency| !off.contains(&dependency.name));
    if chart
        .dependencies
        .iter()
        .any(|dependency| dependency.metadata.dependencies.is_some())
    {
        let values = run.plain(&table)?;
        for dependency in &mut chart.dependencies {
            let path = format!("{path}{}.", dependency.name());
            enable_at(run, dependency, &values, &path)?;
        }
    }
    chart.metadata.dependencies = (!wanted.is_empty()).then_some(wanted);
    Ok(())
}

/// The subcharts that are not declared as dependencies, then the declared ones, under their
/// aliases.
fn named(there: Vec<Chart>, wanted: &mut [Dependency]) -> Vec<Chart> {
    let fits = |chart: &Chart, d: &Dependency| {
        chart.name() == d.name && compatible(&d.version, &chart.metadata.version)
    };
    let mut charts: Vec<Chart> = there
        .iter()
        .filter(|chart| !wanted.iter().any(|d| fits(chart, d)))
        .cloned()
        .collect();
    for dependency in wanted {
        if let Some(chart) = there.iter().find(|chart| fits(chart, dependency)) {
            let mut chart = chart.clone();
            if !dependency.alias.is_empty() {
                chart.metadata.name.clone_from(&dependency.alias);
            }
            charts.push(chart);
        }
        if !dependency.alias.is_empty() {
            dependency.name.clone_from(&dependency.alias);
        }
    }
    charts
}

/// Disabled if one of its tags is false and none is true.
fn tagged(run: &mut Coalescing<'_>, dependency: &Dependency, values: &Table) -> bool {
    let Ok(tags) = find(values, "tags") else {
        return true;
    };
    let (mut on, mut off) = (false, false);
    for tag in &dependency.tags {
        let Some(node) = tags.borrow().get(tag).cloned() else {
            continue;
        };
        match node {
            Node::Leaf(value) if value.is_boolean() => {
                on |= *value == Value::Bool(true);
                off |= *value == Value::Bool(false);
            }
            _ => run.warnings.push(format!(
                "returned non-bool value tag={} chart={}",
                log::text(tag),
                log::text(&dependency.name)
            )),
        }
    }
    on || !off
}

/// The value of the first path that is a boolean.
fn condition(
    run: &mut Coalescing<'_>,
    dependency: &Dependency,
    values: &Table,
    path: &str,
) -> Option<bool> {
    for condition in dependency
        .condition
        .trim()
        .split(',')
        .filter(|c| !c.is_empty())
    {
        match scalar(values, &format!("{path}{condition}")).as_deref() {
            None => {}
            Some(Value::Bool(on)) => return Some(*on),
            Some(_) => {
                let (condition, name) = (log::text(condition), log::text(&dependency.name));
                run.warnings.push(format!(
                    "returned non-bool value path={condition} chart={name}"
                ));
            }
        }
    }
    None
}

/// Helm's processDependencyImportValues: subcharts first.
pub(super) fn import(run: &mut Coalescing<'_>, chart: &mut Chart) -> Result<(), HelmError> {
    for dependency in &mut chart.dependencies {
        import(run, dependency)?;
    }
    let Some(mut dependencies) = chart.metadata.dependencies.take() else {
        return Ok(());
    };
    let values = run.chart_values(chart, &Values::new(), true)?;
    let imported = Table::default();
    for dependency in &mut dependencies {
        let mut told = Vec::new();
        for wish in std::mem::take(&mut dependency.import_values) {
            let (child, parent, missing) = match &wish {
                Value::Object(map) => {
                    let text = |key: &str| map.get(key).map_or_else(|| "<nil>".to_owned(), printed);
                    (
                        text("child"),
                        text("parent"),
                        format!(
                            "ImportValues missing table from chart chart={}",
                            log::text(&dependency.name)
                        ),
                    )
                }
                Value::String(name) => (
                    format!("exports.{name}"),
                    ".".to_owned(),
                    "ImportValues missing table".to_owned(),
                ),
                _ => continue,
            };
            told.push(json!({"child": child, "parent": parent}));
            match find(&values, &format!("{}.{child}", dependency.name)) {
                Ok(table) => run.tables(&imported, &under(&parent, table), "", true, 0)?,
                Err(why) => run
                    .warnings
                    .push(format!("{missing} error={}", log::text(&why))),
            }
        }
        dependency.import_values = told;
    }
    let own = run.plain(&values)?;
    let own = run.copy(&own)?;
    run.tables(&own, &imported, "", true, 0)?;
    chart.values = Arc::new(run.plain(&own)?);
    chart.metadata.dependencies = Some(dependencies);
    Ok(())
}

/// Nests the table below a path of names; `.` is the top.
fn under(path: &str, table: Table) -> Table {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, name| {
        let outer = Table::default();
        put(&outer, name, Node::Table(inner));
        outer
    })
}
