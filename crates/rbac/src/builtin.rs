//! The roles that every installation has.

/// Resources whose objects belong to a project: their names are `project/name`.
const IN_PROJECTS: [&str; 4] = ["applications", "applicationsets", "logs", "exec"];

const READONLY: [(&str, &[&str]); 10] = [
    ("applications", &["get"]),
    ("applicationsets", &["get"]),
    ("certificates", &["get"]),
    ("clusters", &["get"]),
    ("repositories", &["get"]),
    ("write-repositories", &["get"]),
    ("projects", &["get"]),
    ("accounts", &["get"]),
    ("gpgkeys", &["get"]),
    ("logs", &["get"]),
];

/// Besides what `role:readonly` has.
const ADMIN: [(&str, &[&str]); 10] = [
    (
        "applications",
        &[
            "create", "update", "update/*", "delete", "delete/*", "sync", "rollback", "override",
            "action/*",
        ],
    ),
    ("applicationsets", &["get", "create", "update", "delete"]),
    ("certificates", &["create", "update", "delete"]),
    ("clusters", &["create", "update", "delete"]),
    ("repositories", &["create", "update", "delete"]),
    ("write-repositories", &["create", "update", "delete"]),
    ("projects", &["create", "update", "delete"]),
    ("accounts", &["update"]),
    ("gpgkeys", &["create", "delete"]),
    ("exec", &["create"]),
];

/// As policy text.
pub fn text() -> String {
    let mut text = String::new();
    for (role, rows) in [("role:readonly", READONLY), ("role:admin", ADMIN)] {
        for (resource, actions) in rows {
            let object = if IN_PROJECTS.contains(&resource) {
                "*/*"
            } else {
                "*"
            };
            for action in actions {
                text.push_str(&format!(
                    "p, {role}, {resource}, {action}, {object}, allow\n"
                ));
            }
        }
    }
    text + "g, role:admin, role:readonly\ng, admin, role:admin\n"
}
