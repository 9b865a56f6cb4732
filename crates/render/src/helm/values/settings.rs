//! The user's values: files, then `--set-json`, `--set`, `--set-string`, `--set-file` and
//! `--set-literal`, in Helm's order.
//!
//! Main function: [`user_values`].

use super::Values;
use crate::helm::chart::{floats, merge_maps, parse_values};
use crate::helm::{HelmError, Limits};
use serde_json::Value;
use tiphys_gocompat::strvals::{self, Form, ReadFile};

/// The options of one render.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Name and content of each values file.
    pub files: Vec<(String, Vec<u8>)>,
    pub set_json: Vec<String>,
    pub set: Vec<String>,
    pub set_string: Vec<String>,
    pub set_file: Vec<String>,
    pub set_literal: Vec<String>,
}

/// The user's values; `read` returns the content for `--set-file`.
pub fn user_values(
    settings: &Settings,
    read: ReadFile<'_>,
    limits: &Limits,
) -> Result<Values, HelmError> {
    let mut values = Values::new();
    for (name, content) in &settings.files {
        let file = parse_values(content, limits)
            .map_err(|e| e.within(&format!("failed to parse {name}")))?;
        merge_maps(&mut values, file);
    }
    for text in &settings.set_json {
        set_json(text, &mut values)?;
    }
    let lists = [
        (&settings.set, Form::Set, "--set"),
        (&settings.set_string, Form::Text, "--set-string"),
        (&settings.set_file, Form::File(read), "--set-file"),
        (&settings.set_literal, Form::Literal, "--set-literal"),
    ];
    for (lines, form, option) in lists {
        for line in lines {
            let failed = |e| HelmError::chart(format!("failed parsing {option} data: {e}"));
            strvals::apply(form, line, &mut values, &strvals::Limits::default()).map_err(failed)?;
        }
    }
    Ok(values)
}

/// A JSON object is merged; anything else is parsed as `key=json`.
fn set_json(text: &str, values: &mut Values) -> Result<(), HelmError> {
    if !text.trim().starts_with('{') {
        let failed = |_| HelmError::chart(format!("failed parsing --set-json data {text}"));
        return strvals::apply(Form::Json, text, values, &strvals::Limits::default())
            .map_err(failed);
    }
    match serde_json::from_str(text.trim()).map(floats) {
        Ok(Value::Object(map)) => {
            merge_maps(values, map);
            Ok(())
        }
        _ => Err(HelmError::chart(format!(
            "failed parsing --set-json data JSON: {text}"
        ))),
    }
}
