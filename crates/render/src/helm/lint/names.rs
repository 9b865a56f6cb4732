//! Validates object names by Kubernetes' rules, URLs and mail addresses.
//!
//! Main function: [`object`].

use tiphys_gocompat::text::quote;

struct Form {
    longest: usize,
    what: &'static str,
    examples: &'static [&'static str],
    pattern: &'static str,
    matches: fn(&str) -> bool,
}

const SUBDOMAIN: Form = Form {
    longest: 253,
    what: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
    examples: &["example.com"],
    pattern: r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    matches: |name| name.split('.').all(label),
};

const LABEL: Form = Form {
    longest: 63,
    what: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
    examples: &["my-name", "123-abc"],
    pattern: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    matches: label,
};

const OLD_LABEL: Form = Form {
    longest: 63,
    what: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
    examples: &["my-name", "abc-123"],
    pattern: "[a-z]([-a-z0-9]*[a-z0-9])?",
    matches: |name| label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()),
};

fn label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

impl Form {
    fn check(&self, name: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        if name.len() > self.longest {
            wrong.push(format!("must be no more than {} characters", self.longest));
        }
        if !(self.matches)(name) {
            let examples: Vec<String> = self
                .examples
                .iter()
                .map(|example| format!("'{example}'"))
                .collect();
            wrong.push(format!(
                "{} (e.g. {}, regex used for validation is '{}')",
                self.what,
                examples.join(",  or "),
                self.pattern
            ));
        }
        wrong
    }
}

/// Validates the name of an object of this kind, with Helm's messages.
pub fn object(kind: &str, name: &str) -> Result<(), String> {
    let wrong = match kind.to_lowercase().as_str() {
        "certificatesigningrequest" => Vec::new(),
        "service" => OLD_LABEL.check(name),
        "namespace" => LABEL.check(name),
        "role" | "clusterrole" | "rolebinding" | "clusterrolebinding" => segment(name),
        _ => SUBDOMAIN.check(name),
    };
    let told: Vec<String> = wrong
        .iter()
        .map(|why| format!("metadata.name: Invalid value: {}: {why}", quote(name)))
        .collect();
    let told = match told.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        more => format!("[{}]", more.join(", ")),
    };
    Err(format!(
        "object name does not conform to Kubernetes naming requirements: {}: {told}",
        quote(name)
    ))
}

/// Validates a path segment.
fn segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| name.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// A URL with a scheme, as required for icons and sources.
pub fn is_request_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        || !scheme.chars().all(plain)
        || text.chars().any(char::is_control)
    {
        return false;
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return true;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port_is_number = host
        .rsplit_once(':')
        .is_none_or(|(_, port)| host.ends_with(']') || port.bytes().all(|b| b.is_ascii_digit()));
    port_is_number && !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
}

/// A URL, with or without a scheme.
pub fn is_url(text: &str) -> bool {
    if text.len() <= 3
        || text.len() >= 2083
        || text.starts_with('.')
        || text.contains(char::is_whitespace)
    {
        return false;
    }
    let schemes = [
        "ftp://", "tcp://", "udp://", "ws://", "wss://", "http://", "https://",
    ];
    let rest = schemes
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .unwrap_or(text);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(host, |(host, _)| host);
    let inner = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    !host.is_empty() && !host.starts_with('.') && host.chars().all(inner)
}

/// A mail address: a name and a domain.
pub fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let in_name = |c: char| c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c);
    let labels: Vec<&str> = domain.split('.').collect();
    let label = |label: &&str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
            && !label.starts_with('-')
    };
    !name.is_empty()
        && name.chars().all(in_name)
        && !name.starts_with('.')
        && !name.ends_with('.')
        && labels.len() > 1
        && labels.iter().all(label)
}
