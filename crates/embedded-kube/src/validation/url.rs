//! Validates the URL of a webhook. Main function: [`webhook_problems`].

use tiphys_gocompat::url::Url;

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong: with the part that is told, or, without one, because nothing could be read.
pub struct Problem {
    pub value: Option<String>,
    pub detail: String,
}

pub fn webhook_problems(text: &str) -> Vec<Problem> {
    let url = match Url::parse(text.as_bytes()) {
        Ok(url) => url,
        Err(why) => {
            return vec![Problem {
                value: None,
                detail: format!("url must be a valid URL: {why}{FORM}"),
            }];
        }
    };
    let user = url.userinfo();
    let refused = [
        (
            url.scheme != b"https",
            &url.scheme,
            format!("'https' is the only allowed URL scheme{FORM}"),
        ),
        (
            url.host.is_empty(),
            &url.host,
            format!("host must be specified{FORM}"),
        ),
        (
            url.user.is_some(),
            &user,
            "user information is not permitted in the URL".to_owned(),
        ),
        (
            !url.fragment.is_empty(),
            &url.fragment,
            "fragments are not permitted in the URL".to_owned(),
        ),
        (
            !url.query.is_empty(),
            &url.query,
            "query parameters are not permitted in the URL".to_owned(),
        ),
    ];
    let there = refused.into_iter().filter(|(refused, ..)| *refused);
    there
        .map(|(_, value, detail)| Problem {
            value: Some(String::from_utf8_lossy(value).into_owned()),
            detail,
        })
        .collect()
}
