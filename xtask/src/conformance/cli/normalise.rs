//! Replaces what differs from run to run by the placeholders of the recorded outputs. Main type:
//! [`Normaliser`].

use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// Times that fixtures name.
const FIXED: [&str; 5] = [
    "2026-01-01T00:00:00Z",
    "2026-01-02T00:00:00Z",
    "2026-01-01T00:00:00.000000000Z",
    "2026-01-01 00:00:00 +0000 UTC",
    "2026-01-02 00:00:00 +0000 UTC",
];

pub struct Normaliser {
    /// Texts of this run with their placeholders, the longer ones first.
    pub known: Vec<(String, String)>,
    time: Regex,
    rules: Vec<(Regex, &'static str)>,
    usage: Regex,
    kube_version: Regex,
    age: Regex,
    stream: Regex,
    hunk: Regex,
    spaces: Regex,
    count: Regex,
}

impl Normaliser {
    pub fn new() -> anyhow::Result<Self> {
        let rules = [
            (r"\bgo1\.\d+(?:\.\d+)?\b", "<GO>"),
            (
                r#"((?:Kustomize|Helm|Kubectl|Jsonnet) ?Version"?: "?)[^\s"][^\n"]*"#,
                "${1}<TOOL>",
            ),
            (
                r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
                "<TOKEN>",
            ),
            (r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}", "<BCRYPT>"),
            (
                r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
                "<UID>",
            ),
            (r#"(": )1[78]\d{8}\b"#, r#"${1}"<UNIXTIME>""#),
            (r"(^|[^-\w.])1[78]\d{8}\b", "${1}<UNIXTIME>"),
            (r#"(resourceVersion"?: ?"?)\d+"#, "${1}<RV>"),
            (
                r#"(\b(?:generation|observedGeneration)": )\d+"#,
                r#"${1}"<GENERATION>""#,
            ),
            (
                r#"(\b(?:generation|observedGeneration)"?: ?)\d+"#,
                "${1}<GENERATION>",
            ),
            (
                r"\((?:now|(?:\d+|an?) (?:second|minute|hour|day|week)s? (?:ago|from now))\)",
                "(<AGE>)",
            ),
            (r"(at )\d{1,2}:\d\d[AP]M", "${1}<TIME>"),
            (r"(metadata\.resourceVersion +)\d+", "${1}<RV>"),
            (
                r#"(\b(?:resourcesCount|applicationsCount|apisCount)": )\d+"#,
                r#"${1}"<COUNT>""#,
            ),
            (
                r"(\b(?:resourcesCount|applicationsCount|apisCount): )\d+",
                "${1}<COUNT>",
            ),
            (
                r"(?:rpc error: code = Unknown desc = )?Manifest generation error \(cached\): (rpc error: )?",
                "${1}",
            ),
            (
                r"((?:Duration|duration):\s+)[\d.]+[a-zµ0-9.]*",
                "${1}<DURATION>",
            ),
            (
                r"(-[0-9a-f]{6,10}|\b(?:presync|postsync|failing|nightly[a-z0-9-]*))-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
                "${1}-<RAND>",
            ),
            (
                r#"lookup (\S+?)(?: on [0-9.:]+)?: (?:dial udp|read udp|no such host|server misbehaving|failed to lookup address information)[^"\n]*"#,
                "lookup $1: <DNSERROR>",
            ),
            (r"127\.0\.0\.1:[345]\d{4}\b", "127.0.0.1:<PORT>"),
            (
                r#"/(?:tmp|dev/shm)/(?:[A-Za-z0-9_.-]*\d{5,}|<UID>|tiphys-[a-z]+-)[^\s"':,]*"#,
                "<TEMP>",
            ),
        ];
        let rules = rules.map(|(pattern, to)| Ok((Regex::new(pattern)?, to)));
        Ok(Self {
            known: Vec::new(),
            time: Regex::new(
                r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d| [+-]\d{4} UTC| [+-]\d{4} [A-Z]{3,4})?(?: m=[+-][\d.]+)?|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d [A-Z]{3}|(?m:^20\d\d/\d\d/\d\d \d\d:\d\d:\d\d\b)",
            )?,
            rules: rules.into_iter().collect::<anyhow::Result<_>>()?,
            usage: Regex::new(r"(?s)Usage:\s+(?:argocd|tiphys)\b.*\z")?,
            kube_version: Regex::new(r"\bv?1\.36(?:\.\d+)?\b")?,
            age: Regex::new(r"(\s)\d+[smhd](?:\d+[smhd])*(\s|$)")?,
            stream: Regex::new(
                r"(?m)(TIMESTAMP +GROUP +KIND[^\n]*\n)(?:(?:<TIME>|\d{4}-|<STREAM>)[^\n]*\n)+",
            )?,
            hunk: Regex::new(r"(?m)^\d+(?:,\d+)?[acd]\d+(?:,\d+)?$")?,
            spaces: Regex::new(r"  +")?,
            count: Regex::new(r"\b\d{2,3}\b%?")?,
        })
    }

    /// The normal form of an output.
    pub fn text(&self, text: &str) -> String {
        let mut text = hunks(&self.hunk, managed(text));
        if let Some(found) = self.usage.find(&text) {
            // What the program says before belongs to it, unless it is an error.
            let before = &text[..found.start()];
            let lines: Vec<&str> = before.lines().collect();
            let is_error = |line: &&str| line.starts_with("Error:") || line.starts_with('{');
            let kept = lines.iter().rposition(is_error).map_or(0, |at| at + 1);
            let kept = &lines[..kept];
            text = kept
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
                + "<USAGE>\n";
        }
        for (known, placeholder) in &self.known {
            text = text.replace(known, placeholder);
        }
        let of_time = |found: &Captures<'_>| {
            let found = &found[0];
            if FIXED.contains(&found) || found.starts_with("2006-01-02") {
                found.to_owned()
            } else {
                "<TIME>".to_owned()
            }
        };
        text = self.time.replace_all(&text, of_time).into_owned();
        for (rule, to) in &self.rules {
            text = rule.replace_all(&text, *to).into_owned();
        }
        text = self
            .kube_version
            .replace_all(&text, "<KUBEVERSION>")
            .into_owned();
        let has_age = |line: &str| {
            let is_header = line
                .chars()
                .all(|c| c.is_ascii_uppercase() || " /-".contains(c));
            is_header && line.split_whitespace().any(|word| word == "AGE")
        };
        if text.lines().any(has_age) {
            // Twice, because matches share their white space.
            for _ in 0..2 {
                text = self.age.replace_all(&text, "${1}<AGE>${2}").into_owned();
            }
        }
        self.without_stream(&text)
    }

    /// Without the rows of a live table, whose number hangs on the speed.
    pub fn without_stream(&self, text: &str) -> String {
        self.stream.replace_all(text, "${1}").into_owned()
    }

    /// For tables with counts, and those whose widths are not defined.
    pub fn counts(&self, text: &str) -> String {
        let text = self.count.replace_all(text, "<COUNT>");
        self.spaces.replace_all(&text, "  ").into_owned()
    }

    /// A line in the form in which it is compared: without the order of the fields of a log line,
    /// and without the widths of a table where there is a placeholder.
    pub fn line(&self, line: &str) -> String {
        if line.starts_with('{')
            && let Ok(fields) = serde_json::from_str::<Map<String, Value>>(line)
        {
            return Value::Object(fields).to_string();
        }
        let is_header = |line: &str| {
            let is_name = |c: char| c.is_ascii_uppercase() || " /-%".contains(c);
            line.contains("  ") && line.chars().all(is_name)
        };
        if line.contains('<') || is_header(line) {
            return self.spaces.replace_all(line.trim_end(), "  ").into_owned();
        }
        line.to_owned()
    }
}

/// Managed fields are an account of who wrote which field: one placeholder.
fn managed(text: &str) -> String {
    if !text.contains("managedFields") {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(line) = lines.get(at) {
        at += 1;
        let indent = line.len() - line.trim_start_matches(['<', '>', ' ']).len();
        let (before, rest) = line.split_at(indent);
        let is_json = rest == "\"managedFields\": [";
        if !is_json && rest != "managedFields:" {
            out.push((*line).to_owned());
            continue;
        }
        let inside = [format!("{before}- "), format!("{before}  ")];
        let end = format!("{before}]");
        let goes_on = |line: &&str| match is_json {
            true => line.trim_end_matches(',') != end,
            false => inside.iter().any(|inside| line.starts_with(inside)),
        };
        while lines.get(at).is_some_and(goes_on) {
            at += 1;
        }
        if is_json {
            let comma = match lines.get(at) {
                Some(line) if line.ends_with(',') => ",",
                _ => "",
            };
            out.push(format!("{before}\"managedFields\": \"<MANAGED>\"{comma}"));
            at += 1;
        } else {
            out.push(format!("{before}managedFields: <MANAGED>"));
        }
    }
    out.join("\n")
}

/// Line numbers of a difference count the lines of managed fields too.
fn hunks(hunk: &Regex, text: String) -> String {
    let is_of_managed = |line: &str| {
        let rest = line.strip_prefix(['<', '>']).unwrap_or_default();
        rest.trim_start() == "managedFields: <MANAGED>"
    };
    if text.contains("===== ") && text.lines().any(is_of_managed) {
        return hunk.replace_all(&text, "<HUNK>").into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_replaced() {
        let mut normaliser = Normaliser::new().expect("valid patterns");
        normaliser.known = vec![("127.0.0.1:8080".to_owned(), "<SERVER>".to_owned())];
        for (text, expected) in [
            ("at 2026-11-28T10:00:00Z\n", "at <TIME>\n"),
            ("at 2026-01-01T00:00:00Z\n", "at 2026-01-01T00:00:00Z\n"),
            (
                "http://127.0.0.1:8080/x 127.0.0.1:34567\n",
                "http://<SERVER>/x 127.0.0.1:<PORT>\n",
            ),
            (
                "{\n  \"managedFields\": [\n    1\n  ],\n  \"a\": 1\n}",
                "{\n  \"managedFields\": \"<MANAGED>\",\n  \"a\": 1\n}",
            ),
            (
                "  managedFields:\n  - a: 1\n    b: 2\n  name: x\n",
                "  managedFields: <MANAGED>\n  name: x\n",
            ),
            (
                "error: an argument\n\nUsage: argocd app get [OPTIONS]\n\nMore\n",
                "<USAGE>\n",
            ),
            (
                "Error: unknown flag\nUsage:\n  argocd app get\n",
                "Error: unknown flag\n<USAGE>\n",
            ),
            (
                "TIMESTAMP  GROUP  KIND\n2026-11-28T10:00:00+00:00  Pod\n\nName: x\n",
                "TIMESTAMP  GROUP  KIND\n\nName: x\n",
            ),
            ("NAME  AGE\nx     5m10s\n", "NAME  AGE\nx     <AGE>\n"),
        ] {
            assert_eq!(normaliser.text(text), expected);
        }
        assert_eq!(normaliser.line("{\"b\":1,\"a\":2}"), "{\"a\":2,\"b\":1}");
    }
}
