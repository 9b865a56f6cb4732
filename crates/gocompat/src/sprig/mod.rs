//! The functions of Masterminds/sprig that Helm offers to templates.
//!
//! Main function: [`functions`]; main type: [`Sources`], which provides randomness, the time and
//! the local zone. Each file has the table for its topic. Where Go iterates over a map in random
//! order, the order here is that of the keys.

mod args;
mod cast;
mod certificates;
mod dates;
mod decimal;
mod dicts;
mod documents;
mod encodings;
mod json;
pub(crate) mod json_read;
mod json_value;
mod lists;
mod numbers;
mod paths;
mod random;
pub(crate) mod regexp;
mod secrets;
mod strings;
mod urls;
mod values;
mod versions;
mod words;

pub(crate) use cast::parse_float;
pub use dates::Moment;
pub(crate) use dates::{DAYS, MONTHS, zone, zone_name};
pub use documents::to_document;
pub use json_value::to_json_value;
pub(crate) use strings::{lower, upper};

use crate::template::{Budget, Error, Function, Type, Value};
use jiff::{Timestamp, tz::TimeZone};

/// Parses JSON as encoding/json does for an empty interface, with its error texts.
pub fn read_json(text: &[u8], budget: &Budget) -> Result<Value, Error> {
    json_read::read(text, budget)
}

/// What Go's `time.Parse` says against a text.
pub fn check_time(layout: &str, text: &str) -> Result<(), String> {
    dates::check(layout, text)
}

/// What Go's `regexp.Compile` says against a pattern.
pub fn check_regexp(pattern: &str) -> Result<(), String> {
    regexp::check(pattern)
}

/// Fills bytes by chance.
pub type Random = Box<dyn FnMut(&mut [u8])>;

/// The external inputs of a render, replaceable so that a render can be repeated.
pub struct Sources {
    pub random: Random,
    pub now: Timestamp,
    /// The local zone, determined only when a template uses it, because a system's zone database
    /// consists of hundreds of files.
    pub zone: fn() -> TimeZone,
}

impl Sources {
    fn fill(&mut self, bytes: &mut [u8]) {
        (self.random)(bytes);
    }
}

/// The host passed to the executor; it provides the sources.
pub trait Host: 'static {
    fn sources(&mut self) -> &mut Sources;
}

impl Host for Sources {
    fn sources(&mut self) -> &mut Sources {
        self
    }
}

/// All functions with their names, for executions with a host `H`.
pub fn functions<H: Host>() -> Vec<(&'static str, Function)> {
    let fixed = [
        dicts::TABLE,
        encodings::TABLE,
        lists::TABLE,
        numbers::TABLE,
        paths::TABLE,
        regexp::TABLE,
        strings::TABLE,
        urls::TABLE,
        values::TABLE,
        versions::TABLE,
    ];
    // Unless DNS lookups are enabled, Helm returns an empty address for every host.
    let host_by_name = (
        "getHostByName",
        Function::new(&[Type::String], |_| Ok("".into())),
    );
    let mut all = fixed.concat();
    all.extend(dates::table::<H>());
    all.extend(random::table::<H>());
    all.extend(secrets::table::<H>());
    all.extend(certificates::table::<H>());
    all.push(host_by_name);
    all
}
