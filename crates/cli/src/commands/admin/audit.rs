//! `admin audit`: checks and shows an audit log, without a server. Main type: [`AuditCommand`].

use crate::{
    client::Failure,
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use clap::ValueEnum;
use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};
use tiphys_server::audit::{
    Asked, Record, Verdict,
    chain::{self, Head, VerifyError},
};

#[derive(clap::Subcommand)]
pub enum AuditCommand {
    /// Check that no record was changed, removed or moved
    Verify(Verify),
    /// List the records, after checking them
    List(List),
}

#[derive(clap::Args)]
pub struct Verify {
    /// The log, or `-` for standard input
    file: PathBuf,
    /// Where the log must have come to, as an Event or the server's log says: a log cannot tell
    /// that its last records are missing
    #[arg(long, value_name = "SEQ:HASH", value_parser = head)]
    reaches: Option<Head>,
}

#[derive(clap::Args)]
pub struct List {
    /// The log, or `-` for standard input
    file: PathBuf,
    /// Only records of this user
    #[arg(long)]
    user: Option<String>,
    /// Only records whose call or object contains this text
    #[arg(long, value_name = "TEXT")]
    about: Option<String>,
    /// Only refusals
    #[arg(long)]
    denied: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Format::Wide)]
    output: Format,
    #[command(flatten)]
    sort_by: SortBy,
}

const FIELDS: &[Field<Record>] = &[
    ("seq", |record| record.seq.into()),
    ("time", |record| record.time.as_str().into()),
    ("user", |record| record.who.user.as_str().into()),
    ("how", |record| record.who.how.as_str().into()),
    ("from", |record| record.who.from.as_str().into()),
    ("verdict", |record| verdict(record).into()),
    ("call", |record| record.call.as_str().into()),
    ("object", |record| object(record).into()),
    ("rule", |record| rule(record).into()),
];

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Wide,
    Json,
}

fn head(text: &str) -> Result<Head, String> {
    let (seq, hash) = text
        .split_once(':')
        .ok_or("it has no colon between number and hash")?;
    let seq = seq.parse().map_err(|e| format!("its number: {e}"))?;
    let hash = hash.to_owned();
    Ok(Head { seq, hash })
}

impl AuditCommand {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Verify(verify) => verify.run(),
            Self::List(list) => list.run(),
        }
    }
}

impl Verify {
    fn run(self) -> Result<(), Failure> {
        let mut is_reached = self.reaches.is_none();
        let end = read(&self.file, |record, hash| {
            let is_it = |wanted: &Head| wanted.seq == record.seq && wanted.hash == hash;
            is_reached |= self.reaches.as_ref().is_some_and(is_it);
        })?;
        if let Some(Head { seq, hash }) = self.reaches.filter(|_| !is_reached) {
            return Err(Failure::error(format!(
                "{}: record {seq} with hash {hash} is not in the log, which ends at record {}: \
                 records are missing, or the log was written again",
                self.file.display(),
                end.seq
            )));
        }
        let Head { seq, hash } = end;
        output::print(&format!(
            "{seq} records are unchanged, up to {seq}:{hash}\n"
        ));
        Ok(())
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let mut records = Vec::new();
        read(&self.file, |record, _| {
            if self.selects(&record) {
                records.push(record);
            }
        })?;
        self.sort_by.sort(&mut records, FIELDS)?;
        let header = [
            "SEQ", "TIME", "USER", "HOW", "FROM", "VERDICT", "CALL", "OBJECT", "RULE",
        ];
        output::print(&match self.output {
            Format::Wide => table::table(&header, records.iter().map(row)),
            Format::Json => {
                let line = |record: &Record| {
                    let line = serde_json::to_string(record).unwrap_or_default();
                    line + "\n"
                };
                records.iter().map(line).collect()
            }
        });
        Ok(())
    }

    fn selects(&self, record: &Record) -> bool {
        let is_about = |text: &String| {
            record.call.contains(text.as_str())
                || record
                    .asked
                    .iter()
                    .any(|a| a.object.contains(text.as_str()))
                || record
                    .changes
                    .iter()
                    .any(|c| c.name.contains(text.as_str()))
        };
        (!self.denied || record.verdict == Verdict::Denied)
            && self
                .user
                .as_ref()
                .is_none_or(|user| *user == record.who.user)
            && self.about.as_ref().is_none_or(is_about)
    }
}

/// What was refused, or else what was asked first.
fn asked(record: &Record) -> Option<&Asked> {
    let refused = record.asked.iter().find(|a| !a.permitted);
    refused.or(record.asked.first())
}

fn verdict(record: &Record) -> String {
    format!("{:?}", record.verdict).to_lowercase()
}

fn object(record: &Record) -> String {
    match (asked(record), record.changes.first()) {
        (Some(asked), _) => format!("{}, {}, {}", asked.resource, asked.action, asked.object),
        (None, Some(change)) => format!("{} {}", change.kind, change.name),
        (None, None) => String::new(),
    }
}

fn rule(record: &Record) -> String {
    let asked = asked(record);
    asked.and_then(|a| a.rule.clone()).unwrap_or_default()
}

fn row(record: &Record) -> Vec<String> {
    vec![
        record.seq.to_string(),
        record.time.clone(),
        record.who.user.clone(),
        record.who.how.clone(),
        record.who.from.clone(),
        verdict(record),
        record.call.clone(),
        object(record),
        rule(record),
    ]
}

/// Reads and checks a whole log.
fn read(path: &Path, each: impl FnMut(Record, &str)) -> Result<Head, Failure> {
    let shown = path.display();
    let opened: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        let file = File::open(path).map_err(|e| Failure::error(format!("{shown}: {e}")))?;
        Box::new(file)
    };
    chain::verify(BufReader::new(opened), each)
        .map_err(|e: VerifyError| Failure::error(format!("{shown}: {e}")))
}
