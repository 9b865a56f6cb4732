//! The values of a chart and its subcharts: which subcharts are on, what each of them gets, and
//! whether its schema agrees.
//!
//! Main functions: [`prepare`] decides on the subcharts, [`coalesce`] puts the values together,
//! [`check_schemas`] looks at them; [`Settings`] are the user's files and `--set` lines. It must
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

/// Takes away the subcharts that conditions and tags turn off, copies those with an alias and
/// imports their values, as Helm does before it looks at templates. Returns what Helm warns of.
pub fn prepare(
    chart: &mut Chart,
    user: &Values,
    limits: &Limits,
) -> Result<Vec<String>, HelmError> {
    let mut run = Coalescing::new(limits);
    dependencies::enable(&mut run, chart, user)?;
    dependencies::import(&mut run, chart)?;
    Ok(run.warnings)
}

/// The values of a prepared chart with those of every subchart under its name, and what Helm warns
/// of.
pub fn coalesce(
    chart: &Chart,
    user: &Values,
    limits: &Limits,
) -> Result<(Values, Vec<String>), HelmError> {
    let mut run = Coalescing::new(limits);
    let table = run.chart_values(chart, user, false)?;
    Ok((run.plain(&table)?, run.warnings))
}

/// The user's values over the defaults of one chart, its subcharts left aside, and what Helm warns
/// of.
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
