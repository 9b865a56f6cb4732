//! As much of a browser as a sign-in needs: cookies, and pages that send it to other pages. Main
//! type: [`Browser`].

use crate::api::{builder, finish};
use reqwest::{
    Url,
    blocking::{Client, RequestBuilder},
    header::{LOCATION, SET_COOKIE},
    redirect::Policy,
};
use std::collections::BTreeMap;

/// As browsers have it.
const MOST_REDIRECTIONS: usize = 20;

/// Keeps the cookies of each host.
pub struct Browser {
    client: Client,
    /// By host and name. Ports share them, as in browsers.
    cookies: BTreeMap<(String, String), String>,
}

/// Where it has come to.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub url: String,
    pub text: String,
}

impl Default for Browser {
    fn default() -> Self {
        Self {
            client: finish(builder().redirect(Policy::none())),
            cookies: BTreeMap::new(),
        }
    }
}

impl Browser {
    /// # Panics
    /// If there is no answer, or too many redirections.
    pub fn get(&mut self, url: &str) -> Page {
        self.open(url, None, None)
    }

    /// Sends a form.
    ///
    /// # Panics
    /// If there is no answer, or too many redirections.
    pub fn post(&mut self, url: &str, form: &[(&str, &str)]) -> Page {
        self.open(url, Some(encoded(form)), None)
    }

    /// Sends a form with a name and a password.
    ///
    /// # Panics
    /// If there is no answer, or too many redirections.
    pub fn post_as(&mut self, sender: (&str, &str), url: &str, form: &[(&str, &str)]) -> Page {
        self.open(url, Some(encoded(form)), Some(sender))
    }

    /// A cookie of a host; none if it is empty.
    pub fn cookie(&self, host: &str, name: &str) -> Option<&str> {
        let key = (host.to_owned(), name.to_owned());
        self.cookies.get(&key).map(String::as_str)
    }

    fn open(
        &mut self,
        url: &str,
        mut form: Option<String>,
        mut sender: Option<(&str, &str)>,
    ) -> Page {
        let mut url = Url::parse(url).expect("a URL");
        for _ in 0..MOST_REDIRECTIONS {
            let request = match form.take() {
                Some(form) => self
                    .client
                    .post(url.clone())
                    .header("Content-Type", "application/x-www-form-urlencoded")
                    .body(form),
                None => self.client.get(url.clone()),
            };
            let request = match sender.take() {
                Some((name, password)) => request.basic_auth(name, Some(password)),
                None => request,
            };
            let answer = self.with_cookies(request, &url).send();
            let answer = answer.unwrap_or_else(|e| panic!("{url}: {e}"));
            for cookie in answer.headers().get_all(SET_COOKIE) {
                self.keep(&url, cookie.to_str().expect("text"));
            }
            let status = answer.status();
            let next = answer.headers().get(LOCATION).cloned();
            if let Some(next) = next.filter(|_| status.is_redirection()) {
                let next = next.to_str().expect("text");
                url = url.join(next).expect("a URL");
                continue;
            }
            return Page {
                status: status.as_u16(),
                url: url.to_string(),
                text: answer.text().expect("text"),
            };
        }
        panic!("{url}: sent around in a circle")
    }

    fn with_cookies(&self, request: RequestBuilder, url: &Url) -> RequestBuilder {
        let request = request.header("Accept", "text/html, application/json");
        let host = url.host_str().unwrap_or_default();
        let own = self.cookies.iter().filter(|((of, _), _)| of == host);
        let own = own.map(|((_, name), value)| format!("{name}={value}"));
        let own: Vec<String> = own.collect();
        match own.is_empty() {
            true => request,
            false => request.header("Cookie", own.join("; ")),
        }
    }

    fn keep(&mut self, url: &Url, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let pair = parts.next().and_then(|pair| pair.split_once('='));
        let (name, value) = pair.expect("a cookie");
        let key = (
            url.host_str().unwrap_or_default().to_owned(),
            name.to_owned(),
        );
        if value.is_empty() || parts.any(|part| part.eq_ignore_ascii_case("max-age=0")) {
            self.cookies.remove(&key);
        } else {
            self.cookies.insert(key, value.to_owned());
        }
    }
}

/// As a form is sent.
fn encoded(form: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form.invalid/").expect("a URL");
    url.query_pairs_mut().extend_pairs(form);
    url.query().unwrap_or_default().to_owned()
}
