//! The values of a chart and its subcharts: which subcharts are enabled, which values each one
//! gets, and whether they match its schema.
//!
//! Main functions: [`prepare`] selects the subcharts, [`coalesce`] merges the values,
//! [`check_schemas`] validates them; [`Settings`] are the user's files and `--set` lines. It must
//! not know what templates do with values.

mod cost;
mod dependencies;
mod formats;
mod nulls;
mod report;
mod schema;
mod settings;
mod tables;
mod words;

pub use dependencies::{MissingDependency, missing_dependencies};
pub use nulls::forgotten_nulls;
pub use schema::check as check_schemas;
pub(super) use schema::one as single_schema;
pub use settings::{Settings, user_values};

use super::chart::Chart;
use super::{HelmError, Limits};
use serde_json::{Map, Value};
use tables::Coalescing;

pub type Values = Map<String, Value>;

/// Removes the subcharts that conditions and tags disable, copies those with an alias and imports
/// their values, as Helm does before it parses templates. Adds Helm's warnings, which are told even
/// if it fails.
pub fn prepare(
    chart: &mut Chart,
    user: &Values,
    limits: &Limits,
    warnings: &mut Vec<String>,
) -> Result<(), HelmError> {
    let mut run = Coalescing::new(limits);
    let done = dependencies::enable(&mut run, chart, user)
        .and_then(|()| dependencies::import(&mut run, chart));
    warnings.append(&mut run.warnings);
    done
}

/// The values of a prepared chart, with each subchart's values under its name, and Helm's warnings.
pub fn coalesce(
    chart: &Chart,
    user: &Values,
    limits: &Limits,
) -> Result<(Values, Vec<String>), HelmError> {
    let mut run = Coalescing::new(limits);
    let table = run.chart_values(chart, user, false)?;
    Ok((run.plain(&table)?, run.warnings))
}

/// The user's values merged over the defaults of one chart, without its subcharts, and Helm's
/// warnings.
pub(super) fn over_defaults(
    user: &Values,
    defaults: &Values,
    limits: &Limits,
) -> Result<(Values, Vec<String>), HelmError> {
    let mut run = Coalescing::new(limits);
    let (user, defaults) = (run.copy(user)?, run.copy(defaults)?);
    run.tables(&user, &defaults, "", false, 0)?;
    Ok((run.plain(&user)?, run.warnings))
}
