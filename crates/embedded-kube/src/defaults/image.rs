//! The default pull policy of an image: images with the tag `latest` or no tag are always pulled.
//! Main function: [`pull_policy`]. Names that are not valid image references are treated as if they
//! had a tag.

use regex::Regex;
use std::sync::LazyLock;

/// Not counting the host.
const MAX_PATH: usize = 255;

/// `[host[:port]/]path[:tag][@digest]`, after adding a host.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let host = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    let form = format!(
        r"\A{host}(?:\.{host})*(?::[0-9]+)?/{part}(?:/{part})*(?::(?<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?<digest>@{digest})?\z"
    );
    Regex::new(&form).expect("the form is a regular expression")
});

/// `Always` or `IfNotPresent`.
pub fn pull_policy(image: &str) -> &'static str {
    let is_id = image.len() == 64
        && image
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_id {
        return "IfNotPresent";
    }
    let names_host = |first: &str| {
        first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first
    };
    let full = match image.split_once('/') {
        Some((first, _)) if names_host(first) => image.to_owned(),
        _ => format!("docker.io/{image}"),
    };
    let Some(found) = REFERENCE.captures(&full) else {
        return "IfNotPresent";
    };
    let path = full
        .split_once('/')
        .map_or("", |(_, rest)| rest)
        .split(['@', ':'])
        .next()
        .unwrap_or("");
    if path.len() > MAX_PATH {
        return "IfNotPresent";
    }
    match (found.name("tag"), found.name("digest")) {
        (Some(tag), _) if tag.as_str() == "latest" => "Always",
        (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_latest_is_pulled_every_time() {
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for always in [
            "nginx",
            "a/b/c",
            "nginx:latest",
            "REG.io/x",
            "localhost:5000/x",
            "docker.io/library/nginx:latest",
        ] {
            assert_eq!(pull_policy(always), "Always", "{always}");
        }
        for once in [
            "nginx:1",
            "Nginx",
            &digest,
            "a//b",
            "host:port/x",
            "x_y/z:v1",
            "-bad",
            "",
            &"a".repeat(64),
        ] {
            assert_eq!(pull_policy(once), "IfNotPresent", "{once}");
        }
    }
}
