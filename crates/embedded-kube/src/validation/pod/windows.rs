//! Pods for Windows nodes: their options, and the fields that only Linux supports.

use super::super::rules::At;
use super::Pod;
use crate::status::Cause;
use regex::Regex;
use std::sync::LazyLock;
use tiphys_kube_schema::formats::dns_subdomain;

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

/// Fields of a pod that only Linux has.
const POD_FIELDS: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
const CONTAINER_FIELDS: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The operating system, and what it excludes.
pub fn system(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let os = pod.spec.get("os");
    if os.is_null() {
        return;
    }
    let name = os.get("name");
    match name.text() {
        "" => causes.push(name.required("")),
        "linux" => linux(pod, causes),
        "windows" => windows(pod, causes),
        other => causes.push(Cause::not_supported(
            &os.path,
            &other.into(),
            &["linux", "windows"],
        )),
    }
}

fn linux(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    for context in std::iter::once(pod.spec.get("securityContext"))
        .chain(pod.visited().iter().map(|c| c.get("securityContext")))
    {
        let options = context.get("windowsOptions");
        causes.extend(
            (!options.is_null())
                .then(|| options.forbidden("windows options cannot be set for a linux pod")),
        );
    }
}

fn windows(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    for field in POD_FIELDS {
        let part = pod.spec.get(field);
        let plain = matches!(*field, "hostPID" | "hostIPC");
        let given = if plain {
            part.is_true()
        } else {
            !part.is_null()
        };
        causes.extend(given.then(|| part.forbidden(NOT_ON_WINDOWS)));
    }
    for container in pod.visited() {
        for field in CONTAINER_FIELDS {
            let part = container.get("securityContext").get(field);
            causes.extend((!part.is_null()).then(|| part.forbidden(NOT_ON_WINDOWS)));
        }
    }
}

/// Containers that run as processes of the host: all or none.
pub fn host_processes(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let field = "securityContext.windowsOptions.hostProcess";
    let (own, containers) = (pod.spec.get(field), pod.visited());
    let mut of_host = 0;
    for container in &containers {
        let part = container.get(field);
        if let (Some(pod), Some(here)) = (own.value.as_bool(), part.value.as_bool())
            && pod != here
        {
            causes.push(part.invalid(&format!(
                "pod hostProcess value must be identical if both are specified, was {pod}"
            )));
        }
        of_host += usize::from(part.is_true() || (part.is_null() && own.is_true()));
    }
    if of_host == 0 {
        return;
    }
    if of_host != containers.len() {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        causes.push(pod.spec.invalid_as("", detail));
    }
    let network = pod.spec.get("hostNetwork");
    if !network.is_true() {
        causes.push(network.invalid_as(
            false,
            "hostNetwork must be true if pod contains any hostProcess containers",
        ));
    }
}

/// `windowsOptions` of a context.
pub fn options(at: &At<'_>, causes: &mut Vec<Cause>) {
    if at.is_null() {
        return;
    }
    let (name, spec, user) = (
        at.get("gmsaCredentialSpecName"),
        at.get("gmsaCredentialSpec"),
        at.get("runAsUserName"),
    );
    if !name.is_null() {
        name.form(dns_subdomain, causes);
    }
    if !spec.is_null() {
        if spec.is_empty() {
            causes.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
        } else if spec.len() > 64 * 1024 {
            causes.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    if !user.is_null() {
        causes.extend(
            user_name(user.text())
                .iter()
                .map(|p| user.invalid(&format!("runAsUserName{p}"))),
        );
    }
}

/// What is wrong with `DOMAIN\user`.
fn user_name(name: &str) -> Vec<&'static str> {
    static NET_BIOS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$"#)
            .expect("the form is a regular expression")
    });
    static DNS: LazyLock<Regex> = LazyLock::new(|| {
        let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
        Regex::new(&format!(r"^{label}(?:\.{label})*$")).expect("the form is a regular expression")
    });
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts[..] {
        _ if name.is_empty() => return vec![" cannot be an empty string"],
        _ if name.chars().any(|c| c.is_ascii_control()) => {
            return vec![" cannot contain control characters"];
        }
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let odd = |c: char| "\"/\\:;|=,+*?<>@[]".contains(c);
    let rules: [(bool, &str); 6] = [
        (
            domain.is_some_and(|d| d.len() >= 256),
            "'s Domain length must be under 256 characters",
        ),
        (
            domain.is_some_and(|d| !NET_BIOS.is_match(d) && !DNS.is_match(d)),
            "'s Domain doesn't match the NetBios nor the DNS format",
        ),
        (user.is_empty(), "'s User cannot be empty"),
        (
            user.len() > 104,
            "'s User length must not be longer than 104 characters",
        ),
        (
            !user.is_empty() && user.chars().all(|c| c == '.' || c == ' '),
            "'s User cannot contain only periods or spaces",
        ),
        (
            user.contains(odd),
            "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    ];
    rules
        .into_iter()
        .filter(|(broken, _)| *broken)
        .map(|(_, says)| says)
        .collect()
}
