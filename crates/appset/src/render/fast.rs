//! valyala/fasttemplate with `{{` and `}}`. Main function: [`replace`].

use crate::error::GenerateError;

/// Replaces `{{name}}` by its value. A name without a value stays as it is written. A text without
/// a tag on one line is no template.
pub fn replace<'v>(
    text: &str,
    value: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, GenerateError> {
    if !has_tag(text) {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((tag, after)) = after.split_once("}}") else {
            return Err(GenerateError::Template(format!(
                "invalid template: Cannot find end tag=\"}}}}\" in the template={text:?} starting from {after:?}"
            )));
        };
        let name = tag.trim();
        match value(name).filter(|_| !name.is_empty()) {
            Some(value) => out.push_str(value),
            None => {
                out.push_str("{{");
                out.push_str(tag);
                out.push_str("}}");
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn has_tag(text: &str) -> bool {
    text.split('\n').any(|line| {
        line.split_once("{{")
            .is_some_and(|(_, after)| after.contains("}}"))
    })
}
