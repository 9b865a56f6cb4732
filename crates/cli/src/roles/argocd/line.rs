//! Parses a command line and the variables by the table in [`flags`](super::flags). Main function:
//! [`read`].
//!
//! It parses like Argo CD (cobra and pflag), with the same errors: an invalid flag ends the
//! program, an invalid variable is ignored.

use super::flags::{Here, Kind, NAMESPACE, Program, Row};
use std::{collections::BTreeMap, ops::RangeInclusive};
use tiphys_cluster::records::SettingsOverrides;
use tiphys_gocompat::duration;

/// A valid command line.
pub enum Line {
    /// Help was requested.
    Help,
    Run(Said),
}

/// The values that were set, by index in the table.
pub struct Said {
    rows: Vec<&'static Row>,
    values: BTreeMap<usize, String>,
    /// Invalid variables.
    pub broken: Vec<String>,
}

impl Said {
    /// The value of a flag.
    pub fn text(&self, flag: &str) -> Option<String> {
        self.iter()
            .find(|(row, _)| row.flag == flag)
            .map(|(_, value)| value.to_owned())
    }

    fn iter(&self) -> impl Iterator<Item = (&'static Row, &str)> {
        self.values
            .iter()
            .map(|(at, value)| (self.rows[*at], value.as_str()))
    }

    /// The values that override the settings.
    pub fn overrides(&self) -> SettingsOverrides {
        let mut overrides = SettingsOverrides::default();
        for (row, value) in self.iter() {
            match row.here {
                Here::Config(key) => {
                    drop(overrides.config.insert(key.to_owned(), value.to_owned()))
                }
                Here::Param(key) => drop(overrides.params.insert(key.to_owned(), value.to_owned())),
                _ => {}
            }
        }
        overrides
    }

    /// The same as our flags.
    pub fn words(&self) -> Vec<String> {
        let word = |(at, row): (usize, &&Row)| {
            let said = self.values.get(&at).map(String::as_str);
            let (flag, value) = match row.here {
                Here::Flag(flag) => (flag, said?),
                Here::Always(flag) => (flag, said.unwrap_or(row.default)),
                Here::Kube => (row.flag, said?),
                Here::Empty(flag) => return said.map(|value| format!("--{flag}={value}")),
                _ => return None,
            };
            (!value.is_empty()).then(|| format!("--{flag}={value}"))
        };
        self.rows.iter().enumerate().filter_map(word).collect()
    }

    /// The flags and variables that were set but are not applicable here.
    pub fn without_effect(&self) -> Vec<&'static str> {
        self.of(Here::Nothing).collect()
    }

    /// One that is not implemented but matters.
    pub fn refused(&self) -> Option<&'static str> {
        let is_off = |(row, value): &(&Row, &str)| row.kind == Kind::Bool && *value == "false";
        self.iter()
            .filter(|said| said.0.here == Here::NotThere && !is_off(said))
            .map(|(row, _)| name_of(row))
            .next()
    }

    fn of(&self, here: Here) -> impl Iterator<Item = &'static str> {
        self.iter()
            .filter(move |(row, _)| row.here == here)
            .map(|(row, _)| name_of(row))
    }
}

/// The flag, or the variable that has none.
fn name_of(row: &Row) -> &'static str {
    if row.flag.is_empty() {
        row.variable
    } else {
        row.flag
    }
}

/// Parses a command line, and variables for flags that are not given.
///
/// # Errors
/// pflag's error message.
pub fn read(
    program: &Program,
    words: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Line, String> {
    let rows: Vec<&'static Row> = program.rows().collect();
    let mut given: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut words = words.iter();
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let Some((name, value)) = flag(word)? else {
            continue;
        };
        if name == "help" {
            return Ok(Line::Help);
        }
        let at = rows
            .iter()
            .position(|row| row.flag == name)
            .ok_or_else(|| format!("unknown flag: --{name}"))?;
        let value = match value {
            Some(value) => value.to_owned(),
            None if rows[at].kind == Kind::Bool => "true".to_owned(),
            None => words.next().cloned().ok_or_else(|| needs_argument(word))?,
        };
        let checked = checked(rows[at].kind, &value);
        given.entry(at).or_default().push(checked.map_err(|why| {
            let shown = if name == NAMESPACE {
                format!("-n, --{name}")
            } else {
                format!("--{name}")
            };
            format!("invalid argument {value:?} for {shown:?} flag: {why}")
        })?);
    }
    let (mut kept, mut broken) = (BTreeMap::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        if let Some(values) = given.remove(&at) {
            let joined = match row.kind {
                Kind::List | Kind::Each | Kind::Pairs => values.join(","),
                Kind::Globs => values.join(";"),
                _ => values.last().cloned().unwrap_or_default(),
            };
            kept.insert(at, joined);
        } else if let Some(value) =
            variable(row.variable).filter(|value| !row.variable.is_empty() && !value.is_empty())
        {
            match of_variable(row, &value) {
                Some(value) => drop(kept.insert(at, value)),
                None => broken.push(format!(
                    "{} is {value:?}, which cannot be read; the default holds",
                    row.variable
                )),
            }
        }
    }
    Ok(Line::Run(Said {
        rows,
        values: kept,
        broken,
    }))
}

fn needs_argument(word: &str) -> String {
    if word.starts_with("--") {
        format!("flag needs an argument: {word}")
    } else {
        format!("flag needs an argument: 'n' in {word}")
    }
}

/// Name and value of a word that is a flag; this program ignores other words.
fn flag(word: &str) -> Result<Option<(&str, Option<&str>)>, String> {
    if let Some(long) = word.strip_prefix("--") {
        if long.is_empty() || long.starts_with(['-', '=']) {
            return Err(format!("bad flag syntax: {word}"));
        }
        return Ok(Some(
            long.split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value))),
        ));
    }
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return Ok(None);
    };
    match letters.split_at(letters.chars().next().map_or(0, char::len_utf8)) {
        ("h", _) => Ok(Some(("help", None))),
        ("n", value) => Ok(Some((
            NAMESPACE,
            (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value)),
        ))),
        (letter, _) => Err(format!("unknown shorthand flag: '{letter}' in {word}")),
    }
}

/// A flag's value as it is passed on.
fn checked(kind: Kind, value: &str) -> Result<String, String> {
    let syntax = |function: &str| format!("strconv.{function}: parsing {value:?}: invalid syntax");
    let number = || value.parse::<i64>().map_err(|_| syntax("ParseInt"));
    Ok(match kind {
        Kind::Bool => match value {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => "true".to_owned(),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => "false".to_owned(),
            _ => return Err(syntax("ParseBool")),
        },
        Kind::Int => number()?.to_string(),
        Kind::Seconds => format!("{}s", number()?),
        Kind::Float => value
            .parse::<f64>()
            .map(|_| value.to_owned())
            .map_err(|_| syntax("ParseFloat"))?,
        Kind::Duration => duration::parse(value)
            .map(|_| value.to_owned())
            .map_err(|e| e.to_string())?,
        Kind::WholeSeconds => duration::parse(value)
            .map(|nanos| (nanos / 1_000_000_000).to_string())
            .map_err(|e| e.to_string())?,
        Kind::Pairs => match value.split(',').find(|pair| !pair.contains('=')) {
            Some(pair) => return Err(format!("{pair} must be formatted as key=value")),
            None => value.to_owned(),
        },
        Kind::Text | Kind::List | Kind::Each | Kind::Globs => value.to_owned(),
    })
}

/// A variable's value as it is passed on; `None`: it is invalid.
fn of_variable(row: &Row, value: &str) -> Option<String> {
    let seconds = || {
        let days = value
            .strip_suffix('d')
            .and_then(|days| days.parse::<i64>().ok())
            .and_then(|days| days.checked_mul(86_400));
        days.or_else(|| {
            duration::parse(value)
                .ok()
                .map(|nanos| nanos / 1_000_000_000)
        })
        .filter(|seconds| *seconds >= 0)
    };
    match row.kind {
        _ if row.here == Here::Nothing => Some(value.to_owned()),
        Kind::Bool => ["true", "false"]
            .into_iter()
            .find(|word| value.eq_ignore_ascii_case(word))
            .map(str::to_owned),
        // Whole seconds would be another duration.
        Kind::Duration if is_fraction(value) => Some(value.to_owned()),
        Kind::Seconds | Kind::Duration => seconds().map(|seconds| format!("{seconds}s")),
        Kind::WholeSeconds => seconds().map(|seconds| seconds.to_string()),
        Kind::Int => value
            .parse::<i64>()
            .ok()
            .filter(|number| range(row.variable).contains(number))
            .map(|number| number.to_string()),
        Kind::Float => checked(row.kind, value)
            .ok()
            .filter(|number| !number.starts_with('-')),
        Kind::List | Kind::Each => Some(
            value
                .split(',')
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(","),
        ),
        Kind::Text | Kind::Pairs | Kind::Globs => Some(value.to_owned()),
    }
}

/// The numbers that Argo CD takes from a variable.
fn range(variable: &str) -> RangeInclusive<i64> {
    match variable {
        "ARGOCD_APPLICATIONSET_CONTROLLER_CONCURRENT_APPLICATION_UPDATES" => 1..=200,
        "ARGOCD_APPLICATIONSET_CONTROLLER_CONCURRENT_RECONCILIATIONS" => 1..=i64::MAX,
        _ => 0..=i64::MAX,
    }
}

/// Whether a duration is not one of whole seconds.
fn is_fraction(value: &str) -> bool {
    duration::parse(value).is_ok_and(|nanos| nanos > 0 && nanos % 1_000_000_000 != 0)
}

/// The list of flags with their variables.
pub fn usage(program: &Program) -> String {
    let mut text = format!("Usage:\n  {} [flags]\n\nFlags:\n", program.name);
    for row in program.rows().filter(|row| !row.flag.is_empty()) {
        let kind = match row.kind {
            Kind::Bool => "",
            Kind::Int | Kind::Seconds => " int",
            Kind::Float => " float",
            Kind::Text => " string",
            Kind::Duration | Kind::WholeSeconds => " duration",
            Kind::List | Kind::Each | Kind::Pairs | Kind::Globs => " strings",
        };
        let default = if matches!(row.default, "" | "0" | "false") {
            String::new()
        } else {
            format!(" (default {})", row.default)
        };
        let variable = if row.variable.is_empty() {
            String::new()
        } else {
            format!(" [${}]", row.variable)
        };
        let effect = match row.here {
            Here::Nothing => " (no effect)",
            Here::NotThere => " (not there)",
            _ => "",
        };
        let letter = if row.flag == NAMESPACE {
            "  -n, "
        } else {
            "      "
        };
        text.push_str(&format!(
            "{letter}--{}{kind}{default}{variable}{effect}\n",
            row.flag
        ));
    }
    text + "  -h, --help\n"
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
