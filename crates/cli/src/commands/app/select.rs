//! `--resource` flags: select resources of an Application. Main function: [`parse`].

use crate::client::Failure;
use tiphys_api::{Application, operation::SyncOperationResource};

/// One `GROUP:KIND:NAME` or `GROUP:KIND:NAMESPACE/NAME`; a leading `!` excludes. `*` matches
/// anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    exclude: bool,
}

pub fn parse(flags: &[String]) -> Result<Vec<Selected>, Failure> {
    flags.iter().map(|flag| parse_one(flag)).collect()
}

fn parse_one(flag: &str) -> Result<Selected, Failure> {
    let (text, exclude) = flag
        .strip_prefix('!')
        .map_or((flag, false), |rest| (rest, true));
    let [group, kind, name] = text.split(':').collect::<Vec<_>>()[..] else {
        return Err(Failure::error(format!(
            "resource should have GROUP:KIND:NAME, but instead got: {text}"
        )));
    };
    let (namespace, name) = match name.split('/').collect::<Vec<_>>()[..] {
        [name] => ("", name),
        [namespace, name] => (namespace, name),
        _ => {
            let message = format!(
                "resource with namespace should have GROUP:KIND:NAMESPACE/NAME, but instead got: {text}"
            );
            return Err(Failure::error(message));
        }
    };
    let owned = str::to_owned;
    Ok(Selected {
        group: owned(group),
        kind: owned(kind),
        namespace: owned(namespace),
        name: owned(name),
        exclude,
    })
}

impl Selected {
    fn matches(&self, [group, kind, namespace, name]: [&str; 4]) -> bool {
        let is = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        is(&self.group, group)
            && is(&self.kind, kind)
            && is(&self.name, name)
            && (self.namespace.is_empty() || is(&self.namespace, namespace))
    }
}

/// Whether a resource (group, kind, namespace, name) is selected. Without flags all are; excluded
/// ones never are.
pub fn includes(selected: &[Selected], resource: [&str; 4]) -> bool {
    let mut wanted = selected.iter().filter(|s| !s.exclude).peekable();
    let wanted = wanted.peek().is_none() || wanted.any(|s| s.matches(resource));
    wanted && !selected.iter().any(|s| s.exclude && s.matches(resource))
}

/// The selected resources of the Application; empty without flags, which the server treats as all.
pub fn of(app: &Application, selected: &[Selected]) -> Vec<SyncOperationResource> {
    if selected.is_empty() {
        return Vec::new();
    }
    let resources = app
        .status
        .resources
        .iter()
        .filter(|r| includes(selected, [&r.group, &r.kind, &r.namespace, &r.name]));
    resources
        .map(|r| SyncOperationResource {
            group: r.group.clone(),
            kind: r.kind.clone(),
            name: r.name.clone(),
            namespace: r.namespace.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flags: &[&str], resource: [&str; 4]) -> bool {
        let flags: Vec<String> = flags.iter().map(|f| (*f).to_owned()).collect();
        includes(&parse(&flags).expect("valid flags"), resource)
    }

    #[test]
    fn which_resources_are_meant() {
        let deployment = ["apps", "Deployment", "demo", "web"];
        for (flags, expected) in [
            (&[][..], true),
            (&["apps:Deployment:web"], true),
            (&["apps:Deployment:demo/web"], true),
            (&["apps:Deployment:other/web"], false),
            (&[":Service:web"], false),
            (&["*:*:*"], true),
            (&["!*:Service:*"], true),
            (&["!apps:Deployment:web"], false),
            (&["apps:*:*", "!*:Deployment:*"], false),
        ] {
            assert_eq!(check(flags, deployment), expected, "{flags:?}");
        }
    }

    #[test]
    fn flags_that_cannot_be_read() {
        let message = |flag: &str| {
            parse(&[flag.to_owned()])
                .err()
                .map(|e| e.message)
                .unwrap_or_default()
        };
        assert_eq!(
            message("!a:b"),
            "resource should have GROUP:KIND:NAME, but instead got: a:b"
        );
        assert_eq!(
            message("a:b:c/d/e"),
            "resource with namespace should have GROUP:KIND:NAMESPACE/NAME, but instead got: a:b:c/d/e"
        );
    }
}
