//! What is right where kubeapps is not, and no right rows could be recorded: from the sentence
//! `right` of each case.
//!
//! Main function: [`of`].

use serde_json::Value;

/// What must come out of the last step.
pub struct Right {
    is_error: bool,
    /// Chart id and versions, in their order.
    charts: &'static [(&'static str, &'static [&'static str])],
    /// Ids of files; the second id of a pair of versions that share one is ours.
    files: &'static [&'static str],
    /// Text that must be in the rows.
    text: &'static str,
}

const NOTHING: Right = Right {
    is_error: false,
    charts: &[],
    files: &[],
    text: "",
};

/// Where we differ on purpose although nothing is called wrong, and why.
pub fn intended(id: &str) -> Option<&'static str> {
    Some(match id {
        "url-userinfo" => "user and password in the URL count for icons at the same place, too",
        "auth-file-redirect" => "credentials do not follow a redirect to another port",
        "filter-keyword" => "there is one pass: a chart is stored with all of its versions",
        "db-url-scheme" => "a URL of PostgreSQL names the database as well",
        "oci-duplicate-in-list" => "a repository that is listed twice is read once",
        "index-url-absolute" => "an address without a scheme has that of the repository",
        _ => return None,
    })
}

/// The right outcome of a case.
pub fn of(id: &str) -> Option<Right> {
    Some(match id {
        "update-version-removed" => Right {
            charts: &[
                ("r/alpha", &["1.1.0"]),
                ("r/beta", &["0.2.0-rc.1", "0.1.0", "0.1.0-alpha"]),
                ("r/gamma", &["3.0.0"]),
            ],
            files: &[
                "r/alpha-1.1.0",
                "r/beta-0.1.0",
                "r/beta-0.1.0-alpha",
                "r/beta-0.2.0-rc.1",
                "r/gamma-3.0.0",
            ],
            ..NOTHING
        },
        "file-id-collision" => Right {
            charts: &[("r/foo", &["1.0.0-2.0.0"]), ("r/foo-1.0.0", &["2.0.0"])],
            files: &["r/foo-1.0.0-2.0.0", "r/foo-1.0.0@2.0.0"],
            ..NOTHING
        },
        "index-url-empty-list" => Right {
            charts: &[("r/bad", &["1.0.0"]), ("r/good", &["1.0.0"])],
            files: &["r/good-1.0.0"],
            ..NOTHING
        },
        "index-url-leading-slash" => Right {
            charts: &[("r/plain", &["1.0.0"]), ("r/slash", &["1.0.0"])],
            files: &["r/plain-1.0.0", "r/slash-1.0.0"],
            ..NOTHING
        },
        "digest-bad" => Right {
            charts: &[
                ("r/missing", &["1.0.0"]),
                ("r/prefixed", &["1.0.0"]),
                ("r/short", &["1.0.0"]),
                ("r/wrong", &["1.0.0"]),
            ],
            files: &["r/missing-1.0.0", "r/prefixed-1.0.0"],
            ..NOTHING
        },
        "file-500-once" => Right {
            charts: &[("r/flaky", &["1.0.0", "0.9.0"]), ("r/good", &["1.0.0"])],
            files: &["r/flaky-0.9.0", "r/flaky-1.0.0", "r/good-1.0.0"],
            ..NOTHING
        },
        "readme-nul" => Right {
            charts: &[("r/good", &["1.0.0"]), ("r/nul", &["1.0.0"])],
            files: &["r/good-1.0.0", "r/nul-1.0.0"],
            ..NOTHING
        },
        "icon-bomb" => Right {
            charts: &[("r/bomb", &["1.0.0"])],
            files: &["r/bomb-1.0.0"],
            ..NOTHING
        },
        "version-duplicate" => Right {
            charts: &[("r/dup", &["1.0.0"])],
            files: &["r/dup-1.0.0"],
            ..NOTHING
        },
        "created-bad" | "deprecated-string" | "index-maintainer-strings" | "index-null-version" => {
            Right {
                charts: &[("r/good", &["1.0.0"])],
                files: &["r/good-1.0.0"],
                ..NOTHING
            }
        }
        "index-nul-escape" => Right {
            charts: &[
                ("r/agood", &["1.0.0"]),
                ("r/nul", &["1.0.0"]),
                ("r/zgood", &["1.0.0"]),
            ],
            files: &["r/agood-1.0.0", "r/nul-1.0.0", "r/zgood-1.0.0"],
            text: "a\u{fffd}b",
            ..NOTHING
        },
        _ => return in_registries(id),
    })
}

/// The same for charts of registries.
fn in_registries(id: &str) -> Option<Right> {
    Some(match id {
        "oci-eight-versions" => Right {
            charts: &[(
                "r/eight",
                &[
                    "0.7.0", "0.6.0", "0.5.0", "0.4.0", "0.3.0", "0.2.0", "0.1.0", "0.0.0",
                ],
            )],
            files: &[
                "r/eight-0.0.0",
                "r/eight-0.1.0",
                "r/eight-0.2.0",
                "r/eight-0.3.0",
                "r/eight-0.4.0",
                "r/eight-0.5.0",
                "r/eight-0.6.0",
                "r/eight-0.7.0",
            ],
            ..NOTHING
        },
        "oci-plus-tag" => Right {
            charts: &[("r/webmeta", &["5.1.0+meta.1", "5.0.0"])],
            files: &["r/webmeta-5.0.0", "r/webmeta-5.1.0+meta.1"],
            ..NOTHING
        },
        "oci-only-latest" | "oci-not-a-chart" | "oci-corrupt-layer" => NOTHING,
        "oci-v-mixed" => Right {
            charts: &[("r/vmixed", &["1.1.0", "1.0.0"])],
            files: &["r/vmixed-1.0.0", "r/vmixed-1.1.0"],
            ..NOTHING
        },
        "oci-short-tags" => Right {
            charts: &[("r/twopart", &["1.1.0", "1.0.0"])],
            files: &["r/twopart-1.0.0", "r/twopart-1.1.0"],
            ..NOTHING
        },
        "oci-renamed" => Right {
            charts: &[("r/renamed", &["0.1.0"])],
            files: &["r/renamed-0.1.0"],
            ..NOTHING
        },
        "oci-auth-vac-index" => Right {
            charts: &[
                ("r/demo", &["2.0.0", "1.1.0", "1.0.0"]),
                ("r/tool", &["0.3.0-rc.1", "0.2.0", "0.1.0"]),
            ],
            files: &[
                "r/demo-1.0.0",
                "r/demo-1.1.0",
                "r/demo-2.0.0",
                "r/tool-0.1.0",
                "r/tool-0.2.0",
                "r/tool-0.3.0-rc.1",
            ],
            ..NOTHING
        },
        _ => return None,
    })
}

impl Right {
    pub fn check(&self, exit: &Result<String, String>, rows: &Value) -> Result<(), String> {
        if exit.is_err() != self.is_error {
            return Err(format!("ended with {exit:?}"));
        }
        let list = |table: &str| rows[table].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut charts: Vec<(String, Vec<String>)> = list("charts")
            .iter()
            .map(|row| {
                let versions = row["info"]["chartVersions"]
                    .as_array()
                    .into_iter()
                    .flatten();
                let versions = versions.map(|version| text(&version["version"])).collect();
                (text(&row["chart_id"]), versions)
            })
            .collect();
        charts.sort();
        let wanted: Vec<(String, Vec<String>)> = self
            .charts
            .iter()
            .map(|(id, versions)| {
                (
                    (*id).to_owned(),
                    versions.iter().map(|v| (*v).to_owned()).collect(),
                )
            })
            .collect();
        if charts != wanted {
            return Err(format!("charts: right is {wanted:?}, got {charts:?}"));
        }
        let mut files: Vec<String> = list("files")
            .iter()
            .map(|row| text(&row["chart_files_id"]))
            .collect();
        files.sort();
        if files != self.files {
            return Err(format!("files: right is {:?}, got {files:?}", self.files));
        }
        if !rows.to_string().contains(self.text) {
            return Err(format!("{:?} is in no row", self.text));
        }
        Ok(())
    }
}
