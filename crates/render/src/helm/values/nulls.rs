//! Finds nulls in a chart's values that should remove a default of its subchart but do not.
//!
//! Main function: [`forgotten_nulls`]. Since 4.2 Helm drops the nulls of a chart before its
//! subcharts see them, unless the user's values also mention the subchart. In Helm 3, and according
//! to its documentation, they remove the subchart's default. We render what Helm 4.2 does and add
//! this warning, because Helm itself does not report it.

use super::Values;
use crate::helm::chart::Chart;
use crate::helm::log;
use serde_json::Value;

/// One warning for each such null.
pub fn forgotten_nulls(chart: &Chart, user: &Values) -> Vec<String> {
    let mut warnings = Vec::new();
    look(chart, &[user], "", &mut warnings);
    warnings
}

/// `given` are the values from above the chart, in order of precedence.
fn look(chart: &Chart, given: &[&Values], prefix: &str, warnings: &mut Vec<String>) {
    for dependency in &chart.dependencies {
        let name = dependency.name();
        if !given.iter().any(|values| values.contains_key(name)) {
            let own = chart.values.get(name).and_then(Value::as_object);
            for path in own.map_or_else(Vec::new, |own| nulls(own, &mut Vec::new())) {
                if has_default(dependency, &path) {
                    let shown = format!("{prefix}{name}.{}", path.join("."));
                    warnings.push(format!(
                        "{} path={} chart={}",
                        log::FORGOTTEN_NULL,
                        log::text(&shown),
                        log::text(chart.name())
                    ));
                }
            }
        }
        let inner: Vec<&Values> = given
            .iter()
            .copied()
            .chain([&*chart.values])
            .filter_map(|values| values.get(name)?.as_object())
            .collect();
        look(dependency, &inner, &format!("{prefix}{name}."), warnings);
    }
}

/// The paths of all nulls in a table.
fn nulls<'v>(table: &'v Values, path: &mut Vec<&'v str>) -> Vec<Vec<&'v str>> {
    let mut found = Vec::new();
    for (key, value) in table {
        path.push(key);
        match value {
            Value::Null => found.push(path.clone()),
            Value::Object(inner) => found.extend(nulls(inner, path)),
            _ => {}
        }
        path.pop();
    }
    found
}

/// Whether the chart, or one of its subcharts, has a default at this path.
fn has_default(chart: &Chart, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    let own = rest
        .iter()
        .try_fold(chart.values.get(*first), |value, key| {
            value.map(|value| value.get(*key))
        });
    let inner = || {
        chart
            .dependencies
            .iter()
            .any(|dependency| dependency.name() == *first && has_default(dependency, rest))
    };
    own.flatten().is_some_and(|value| !value.is_null()) || inner()
}
