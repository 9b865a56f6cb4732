//! Security contexts of pods and containers.

use super::super::rules::{At, Check, Rule};
use super::volume::relative;
use super::windows;
use crate::status::Cause;
use regex::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;

const ID: &[Check] = &[Check::Between(0, i32::MAX as i64)];
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

const POD: &[Rule] = &[
    Rule::Field("fsGroup", ID),
    Rule::Field("runAsUser", ID),
    Rule::Field("runAsGroup", ID),
    Rule::By(|at, causes| {
        at.get("supplementalGroups")
            .items()
            .iter()
            .for_each(|group| group.check(ID, causes))
    }),
];
const POD_POLICIES: &[Rule] = &[
    Rule::By(|at, causes| {
        choice(
            &at.get("fsGroupChangePolicy"),
            &["Always", "OnRootMismatch"],
            causes,
        )
    }),
    Rule::By(|at, causes| seccomp(&at.get("seccompProfile"), causes)),
    Rule::By(|at, causes| windows::options(&at.get("windowsOptions"), causes)),
    Rule::By(|at, causes| app_armor(&at.get("appArmorProfile"), causes)),
    Rule::By(|at, causes| {
        choice(
            &at.get("supplementalGroupsPolicy"),
            &["Merge", "Strict"],
            causes,
        )
    }),
    Rule::By(|at, causes| choice(&at.get("seLinuxChangePolicy"), &["Recursive"], causes)),
];

/// A value behind a pointer, so that empty is not absent.
fn choice(at: &At<'_>, allowed: &[&str], causes: &mut Vec<Cause>) {
    if !at.is_null() && !allowed.contains(&at.text()) {
        causes.push(at.not_supported(allowed));
    }
}

/// The pod's own context.
pub fn pod(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let at = spec.get("securityContext");
    at.walk(POD, causes);
    let share = spec.get("shareProcessNamespace");
    if share.is_true() && spec.get("hostPID").is_true() {
        let at = At::new(share.value, format!("{}.shareProcessNamespace", at.path));
        causes.push(at.invalid("ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    sysctls(spec, &at.get("sysctls"), causes);
    at.walk(POD_POLICIES, causes);
}

fn sysctls(spec: &At<'_>, all: &At<'_>, causes: &mut Vec<Cause>) {
    const FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(FORM).expect("the form is a regular expression"));
    let mut seen = HashSet::new();
    for item in all.items() {
        let name = item.get("name");
        if name.is_empty() {
            causes.push(name.required(""));
        } else if name.len() > 253 || !NAME.is_match(name.text()) {
            causes.push(name.invalid(&format!(
                "must have at most 253 characters and match regex {FORM}"
            )));
        } else if seen.contains(name.text()) {
            causes.push(name.duplicate());
        }
        seen.insert(name.text());
        if spec.get("hostNetwork").is_true() && of_network(name.text()) {
            causes.push(name.invalid("may not be specified when 'hostNetwork' is true"));
        } else if spec.get("hostIPC").is_true() && of_ipc(name.text()) {
            causes.push(name.invalid("may not be specified when 'hostIPC' is true"));
        }
    }
}

/// The name with dots, whichever separator it is written with.
fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(i) if name.as_bytes()[i] == b'/' => name
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => name.to_owned(),
    }
}

fn of_network(name: &str) -> bool {
    dotted(name).starts_with("net.")
}

fn of_ipc(name: &str) -> bool {
    let name = dotted(name);
    name == "kernel.sem"
        || ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|start| name.starts_with(start))
}

fn seccomp(at: &At<'_>, causes: &mut Vec<Cause>) {
    if at.is_null() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    kind.check(
        &[
            Check::Required("type is required when seccompProfile is set"),
            Check::OneOf(&PROFILES),
        ],
        causes,
    );
    match (kind.text(), profile.is_null()) {
        ("Localhost", true) => {
            causes.push(profile.required("must be set when seccomp type is Localhost"))
        }
        ("Localhost", false) => relative(&profile, causes),
        (_, false) => {
            let at = At::new(at.value, profile.path);
            causes.push(at.invalid_struct(
                "core/v1.SeccompProfile",
                "can only be set when seccomp type is Localhost",
            ));
        }
        (_, true) => {}
    }
}

/// An AppArmor profile.
pub fn app_armor(at: &At<'_>, causes: &mut Vec<Cause>) {
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    if at.is_null() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    match kind.text() {
        "Localhost" if profile.is_null() => causes.push(profile.required(NEEDED)),
        "Localhost" => {
            if profile.text().trim() != profile.text() {
                causes.push(profile.invalid("must not be padded with whitespace"));
            } else if profile.is_empty() {
                causes.push(profile.required(NEEDED));
            }
            profile.check(&[Check::MaxBytes(4095)], causes);
        }
        "RuntimeDefault" | "Unconfined" => {
            causes.extend(
                (!profile.is_null())
                    .then(|| profile.invalid("can only be set when AppArmor type is Localhost")),
            );
        }
        "" => causes.push(kind.required("type is required when appArmorProfile is set")),
        _ => causes.push(kind.not_supported(&PROFILES)),
    }
}

/// A container's context.
pub fn container(at: &At<'_>, host_users: bool, causes: &mut Vec<Cause>) {
    if at.is_null() {
        return;
    }
    at.get("runAsUser").check(ID, causes);
    at.get("runAsGroup").check(ID, causes);
    let mount = at.get("procMount");
    choice(&mount, &["Default", "Unmasked"], causes);
    if host_users && mount.text() == "Unmasked" {
        causes.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp(&at.get("seccompProfile"), causes);
    if at.get("allowPrivilegeEscalation").value == false {
        const NOT: &str = "cannot set `allowPrivilegeEscalation` to false and ";
        if at.get("privileged").is_true() {
            causes.push(at.invalid_struct(
                "core/v1.SecurityContext",
                &format!("{NOT}`privileged` to true"),
            ));
        }
        for capability in at
            .get("capabilities.add")
            .items()
            .iter()
            .filter(|c| c.text() == "CAP_SYS_ADMIN")
        {
            causes.push(at.invalid_struct(
                "core/v1.SecurityContext",
                &format!("{NOT}`capabilities.Add` {}", capability.text()),
            ));
        }
    }
    windows::options(&at.get("windowsOptions"), causes);
    app_armor(&at.get("appArmorProfile"), causes);
}
