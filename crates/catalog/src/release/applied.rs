//! The values that the user of a source gave. Main function: [`applied`].

use super::{merge::Values, parse_values};
use crate::CatalogError;
use serde_json::Value;
use tiphys_api::source::{ApplicationSource, HelmParameter};
use tiphys_render::{
    helm::{
        Limits,
        values::{Settings, user_values},
    },
    set_lines,
};

/// What a source itself says: its values, and its parameters over them. Files of values are not
/// read.
///
/// # Errors
/// The values are no table, or a parameter does not fit them. Parameters may be secrets: their
/// values are not told.
pub fn applied(source: &ApplicationSource) -> Result<Values, CatalogError> {
    let (values, _) = entered(source)?;
    let parameters = source.helm.as_ref().map(|helm| helm.parameters.as_slice());
    let parameters = parameters.unwrap_or_default();
    if parameters.is_empty() {
        return Ok(values);
    }
    let text = Value::Object(values).to_string();
    let files = vec![("values".to_owned(), text.into_bytes())];
    given(files, parameters)
}

/// The values that parameters alone give.
pub(super) fn of_parameters(parameters: &[HelmParameter]) -> Result<Values, CatalogError> {
    given(Vec::new(), parameters)
}

/// The values of files with parameters over them.
fn given(
    files: Vec<(String, Vec<u8>)>,
    parameters: &[HelmParameter],
) -> Result<Values, CatalogError> {
    let read = |files: Vec<(String, Vec<u8>)>, parameters: &[HelmParameter]| {
        let of = |is_text: bool| set_lines(parameters, is_text, str::to_owned);
        let settings = Settings {
            files,
            set: of(false),
            set_string: of(true),
            ..Settings::default()
        };
        let none = |_: &str| Err(String::new());
        user_values(&settings, &none, &Limits::default()).ok()
    };
    read(files, parameters).ok_or_else(|| {
        // Why quotes a part of the value, which may be a secret.
        let is_wrong = |p: &&HelmParameter| read(Vec::new(), std::slice::from_ref(*p)).is_none();
        CatalogError::Invalid(match parameters.iter().find(is_wrong) {
            Some(p) => format!("the parameter {} cannot be read", p.name),
            None => "the parameters do not fit the values".to_owned(),
        })
    })
}

/// The values that the user of a source entered, and whether they are a text of the user's own.
pub(super) fn entered(source: &ApplicationSource) -> Result<(Values, bool), CatalogError> {
    let Some(helm) = &source.helm else {
        return Ok((Values::new(), false));
    };
    // As the control plane decides: the object hides the text.
    if let Some(object) = &helm.values_object {
        return match object.value() {
            Value::Object(values) => Ok((values, false)),
            Value::Null => Ok((Values::new(), false)),
            _ => Err(CatalogError::Invalid("valuesObject is no table".to_owned())),
        };
    }
    let values = parse_values(&helm.values, "the values of the Application")?;
    Ok((values, !helm.values.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_laid_over_values() {
        for (helm, want) in [
            (Value::Null, json!({})),
            (json!({"values": "a: b\n"}), json!({"a": "b"})),
            (
                json!({"values": "a: b\n", "valuesObject": {"c": ["d"]}}),
                json!({"c": ["d"]}),
            ),
            (
                json!({
                    "valuesObject": {"a": {"b": "c", "d": "e"}, "list": ["f", "g"]},
                    "parameters": [
                        {"name": "a.b", "value": "x,z"},
                        {"name": "list[1]", "value": "3", "forceString": true},
                    ],
                }),
                json!({"a": {"b": "x,z", "d": "e"}, "list": ["f", "3"]}),
            ),
            // As when it is rendered: a list in braces, and what is escaped already.
            (
                json!({"parameters": [
                    {"name": "list", "value": "{a,b}"},
                    {"name": "text", "value": "x\\,y"},
                    {"name": "twice", "value": "1", "forceString": true},
                    {"name": "twice", "value": "2", "forceString": true},
                ]}),
                json!({"list": ["a", "b"], "text": "x,y", "twice": "2"}),
            ),
        ] {
            let source = json!({"repoURL": "r", "chart": "c", "helm": helm});
            let source = serde_json::from_value(source).expect("a source");
            let found = applied(&source).expect("values");
            assert_eq!(Value::Object(found), want, "{helm}");
        }
        let broken = json!({"repoURL": "r", "chart": "c", "helm": {"values": "- a"}});
        let broken = serde_json::from_value(broken).expect("a source");
        assert!(applied(&broken).is_err());
        let broken = json!({"repoURL": "r", "chart": "c", "helm": {"parameters": [
            {"name": "a", "value": "b"}, {"name": "key", "value": "{hunter2"},
        ]}});
        let broken = serde_json::from_value(broken).expect("a source");
        let error = applied(&broken).expect_err("no list").to_string();
        assert!(error.contains("key"), "{error}");
        assert!(!error.contains("hunter"), "{error}");
    }
}
