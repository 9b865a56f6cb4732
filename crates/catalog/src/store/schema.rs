//! The tables. kubeapps' three are as kubeapps makes them; ours have names of their own, and no
//! reference to the others, which kubeapps must be able to drop.

use super::sql::{Dialect, Sql};
use crate::CatalogError;

/// kubeapps' tables, with its column types.
const OF_KUBEAPPS: &str = "
CREATE TABLE IF NOT EXISTS repos (
    id {serial},
    namespace varchar NOT NULL,
    name varchar NOT NULL,
    checksum varchar,
    last_update varchar,
    UNIQUE(namespace, name)
);
CREATE TABLE IF NOT EXISTS charts (
    id {serial},
    repo_name varchar NOT NULL,
    repo_namespace varchar NOT NULL,
    chart_id varchar,
    info {json} NOT NULL,
    UNIQUE(repo_name, repo_namespace, chart_id),
    FOREIGN KEY (repo_name, repo_namespace) REFERENCES repos (name, namespace) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS files (
    id {serial},
    chart_id varchar NOT NULL,
    repo_name varchar NOT NULL,
    repo_namespace varchar NOT NULL,
    chart_files_id varchar NOT NULL,
    info {json} NOT NULL,
    UNIQUE(repo_namespace, chart_files_id),
    FOREIGN KEY (repo_name, repo_namespace) REFERENCES repos (name, namespace) ON DELETE CASCADE,
    FOREIGN KEY (repo_name, repo_namespace, chart_id)
        REFERENCES charts (repo_name, repo_namespace, chart_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS tiphys_files ON files (repo_name, repo_namespace, chart_id);
";

/// Ours, by version of the schema. A step is never changed once it was released.
const STEPS: &[&str] = &[
    "
CREATE TABLE tiphys_repos (
    namespace varchar NOT NULL,
    name varchar NOT NULL,
    spec varchar NOT NULL DEFAULT '',
    url varchar NOT NULL DEFAULT '',
    config_sha varchar NOT NULL DEFAULT '',
    checksum varchar NOT NULL DEFAULT '',
    etag varchar NOT NULL DEFAULT '',
    modified varchar NOT NULL DEFAULT '',
    attempted_at bigint,
    succeeded_at bigint,
    error varchar,
    skipped bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
);
CREATE TABLE tiphys_charts (
    repo_namespace varchar NOT NULL,
    repo_name varchar NOT NULL,
    chart_id varchar NOT NULL,
    entry_key varchar NOT NULL,
    entry_sha varchar NOT NULL,
    files_sha varchar NOT NULL DEFAULT '',
    skipped bigint NOT NULL DEFAULT 0,
    name varchar NOT NULL,
    folded_name varchar NOT NULL,
    folded_keywords varchar NOT NULL,
    folded_text varchar NOT NULL,
    category varchar NOT NULL,
    keywords varchar NOT NULL,
    deprecated bigint NOT NULL DEFAULT 0,
    version varchar NOT NULL,
    app_version varchar NOT NULL,
    description varchar NOT NULL,
    versions bigint NOT NULL,
    icon_url varchar NOT NULL,
    icon_etag varchar NOT NULL DEFAULT '',
    icon_modified varchar NOT NULL DEFAULT '',
    icon_at bigint,
    PRIMARY KEY (repo_namespace, repo_name, chart_id)
);
CREATE TABLE tiphys_problems (
    repo_namespace varchar NOT NULL,
    repo_name varchar NOT NULL,
    chart_id varchar NOT NULL,
    version varchar NOT NULL,
    kind varchar NOT NULL,
    reason varchar NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    at bigint NOT NULL,
    PRIMARY KEY (repo_namespace, repo_name, chart_id, version, kind)
);
CREATE TABLE tiphys_tags (
    repo_namespace varchar NOT NULL,
    repo_name varchar NOT NULL,
    chart_id varchar NOT NULL,
    tag varchar NOT NULL,
    version varchar NOT NULL,
    PRIMARY KEY (repo_namespace, repo_name, chart_id, tag)
);
",
    "
CREATE TABLE tiphys_leases (
    namespace varchar NOT NULL,
    name varchar NOT NULL,
    holder varchar NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);
",
    "
CREATE TABLE tiphys_kept (
    address varchar NOT NULL,
    version varchar NOT NULL,
    digest varchar NOT NULL,
    defaults varchar NOT NULL,
    PRIMARY KEY (address, version)
);
",
    "
ALTER TABLE tiphys_tags ADD COLUMN digest varchar NOT NULL DEFAULT '';
ALTER TABLE tiphys_tags ADD COLUMN looked_at bigint NOT NULL DEFAULT 0;
",
    "
CREATE TABLE tiphys_archives (
    repo_namespace varchar NOT NULL,
    repo_name varchar NOT NULL,
    chart_id varchar NOT NULL,
    version varchar NOT NULL,
    sha varchar NOT NULL,
    etag varchar NOT NULL,
    modified varchar NOT NULL,
    looked_at bigint NOT NULL,
    PRIMARY KEY (repo_namespace, repo_name, chart_id, version)
);
",
];

/// What must be there besides our own tables: kubeapps drops and makes its own.
const NEEDED: [&str; 5] = ["repos", "charts", "files", "tiphys_files", "tiphys_schema"];

/// Whether [`migrate`] would change nothing.
pub fn is_current(sql: &mut dyn Sql) -> Result<bool, CatalogError> {
    let names = NEEDED.map(|name| format!("('{name}')")).join(", ");
    let count = match sql.dialect() {
        Dialect::Sqlite => {
            format!("SELECT count(*) FROM sqlite_master WHERE (name) IN (VALUES {names})")
        }
        Dialect::Postgres => format!(
            "SELECT count(*) FROM (VALUES {names}) needed (name) WHERE to_regclass(name) IS NOT NULL"
        ),
    };
    let found = sql.query(&count, &[])?;
    if found.first().map_or(0, |row| row.int(0)) != NEEDED.len() as i64 {
        return Ok(false);
    }
    let rows = sql.query("SELECT version FROM tiphys_schema", &[])?;
    let version = rows.first().map(|row| row.int(0));
    Ok(version == Some(STEPS.len() as i64))
}

/// Creates what is missing.
pub fn migrate(sql: &mut dyn Sql) -> Result<(), CatalogError> {
    let (serial, json) = match sql.dialect() {
        Dialect::Sqlite => ("integer PRIMARY KEY AUTOINCREMENT", "text"),
        Dialect::Postgres => {
            // Two that start at the same time must not create the same table; the number is ours.
            sql.script("SELECT pg_advisory_xact_lock(8446746)")?;
            ("serial NOT NULL PRIMARY KEY", "jsonb")
        }
    };
    sql.script(
        &OF_KUBEAPPS
            .replace("{serial}", serial)
            .replace("{json}", json),
    )?;
    sql.script("CREATE TABLE IF NOT EXISTS tiphys_schema (version bigint NOT NULL)")?;
    let rows = sql.query("SELECT version FROM tiphys_schema", &[])?;
    let done = rows.first().map_or(0, |row| row.int(0));
    let known = STEPS.len() as i64;
    if done > known {
        return Err(CatalogError::Database(format!(
            "its schema has version {done}, and this program knows {known}"
        )));
    }
    for step in STEPS.iter().skip(usize::try_from(done).unwrap_or_default()) {
        sql.script(step)?;
    }
    if done < known {
        sql.script("DELETE FROM tiphys_schema")?;
        sql.execute(
            "INSERT INTO tiphys_schema (version) VALUES ($1)",
            &[known.into()],
        )?;
    }
    Ok(())
}

/// Removes all that was read; what users entered stays.
pub fn invalidate(sql: &mut dyn Sql) -> Result<(), CatalogError> {
    sql.script(
        "DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS charts; DROP TABLE IF EXISTS repos;
        DELETE FROM tiphys_charts; DELETE FROM tiphys_problems; DELETE FROM tiphys_tags;
        DELETE FROM tiphys_archives;
        UPDATE tiphys_repos SET config_sha = '', checksum = '', etag = '', modified = '';",
    )?;
    migrate(sql)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    const OURS: [&str; 7] = [
        "repos", "charts", "problems", "tags", "leases", "kept", "archives",
    ];

    /// A database as a program left it that knew only the first steps, with one row.
    fn left_at(sql: &mut dyn Sql, steps: usize) -> Result<(), CatalogError> {
        for table in OURS {
            sql.script(&format!("DROP TABLE tiphys_{table}"))?;
        }
        STEPS[..steps]
            .iter()
            .try_for_each(|step| sql.script(step))?;
        sql.script(&format!("UPDATE tiphys_schema SET version = {steps}"))?;
        if steps > 0 {
            sql.script(
                "INSERT INTO tiphys_tags (repo_namespace, repo_name, chart_id, tag, version)
                VALUES ('n', 'r', 'r/web', 'v1', '1')",
            )?;
        }
        Ok(())
    }

    #[test]
    fn databases_of_older_programs_are_used_on() {
        for steps in 0..=STEPS.len() {
            let store = Store::in_memory().expect("a database");
            let done = store.transaction(|sql| {
                left_at(sql, steps)?;
                assert_eq!(
                    is_current(sql)?,
                    steps == STEPS.len(),
                    "after {steps} steps"
                );
                migrate(sql)?;
                assert!(is_current(sql)?);
                // Once more: nothing is left to do.
                migrate(sql)?;
                let version = sql.query("SELECT version FROM tiphys_schema", &[])?;
                assert_eq!(version.len(), 1);
                assert_eq!(version[0].int(0), STEPS.len() as i64);
                let tags = sql.query("SELECT digest, looked_at FROM tiphys_tags", &[])?;
                assert_eq!(tags.len(), usize::from(steps > 0), "after {steps} steps");
                for table in OURS {
                    sql.query(&format!("SELECT count(*) FROM tiphys_{table}"), &[])?;
                }
                Ok(())
            });
            done.expect("it is used");
        }
    }

    /// kubeapps drops its tables, and with them our index.
    #[test]
    fn what_others_removed_is_made_again() {
        let store = Store::in_memory().expect("a database");
        for gone in ["INDEX tiphys_files", "TABLE files", "TABLE tiphys_schema"] {
            let done = store.transaction(|sql| {
                assert!(is_current(sql)?);
                sql.script(&format!("DROP {gone}"))?;
                assert!(!is_current(sql)?, "{gone}");
                if gone.ends_with("schema") {
                    left_at_nothing(sql)?;
                }
                migrate(sql)
            });
            done.expect(gone);
        }
        assert!(store.read(|sql| is_current(sql)).expect("a database"));
    }

    /// Else the first step would meet its own tables.
    fn left_at_nothing(sql: &mut dyn Sql) -> Result<(), CatalogError> {
        let drop = |table: &&str| sql.script(&format!("DROP TABLE tiphys_{table}"));
        OURS.iter().try_for_each(drop)
    }

    #[test]
    fn a_database_of_a_newer_program_is_left_alone() {
        let store = Store::in_memory().expect("a database");
        let newer = STEPS.len() + 1;
        let refused = store.transaction(|sql| {
            sql.script(&format!("UPDATE tiphys_schema SET version = {newer}"))?;
            migrate(sql)
        });
        let why = refused.expect_err("it is newer").to_string();
        assert!(why.contains(&format!("version {newer}")), "{why}");
    }
}
