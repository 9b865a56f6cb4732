//! What the trailers of a commit's message say of another commit: an automation that copies a
//! change names its origin with `Argocd-reference-commit-*`.
//!
//! Main functions: [`of_message`] and [`parted`].

mod address;

use tiphys_api::repository::{CommitMetadata, RevisionReference};
use tiphys_gocompat::url::Url;

const PREFIX: &str = "Argocd-reference-commit-";
/// A longer line ends what is read, as it does for Argo CD.
const MOST_LINE: usize = 64 << 10;
/// With one of these lines, other lines may be among the trailers.
const OF_GIT: [&str; 2] = ["Signed-off-by: ", "(cherry picked from commit "];

/// The commit that a message refers to, if it does.
pub(crate) fn of_message(message: &str) -> Vec<RevisionReference> {
    parted(&trailers(message).join("\n")).0
}

/// The commit that lines refer to, and the other lines.
pub(crate) fn parted(text: &str) -> (Vec<RevisionReference>, String) {
    let (mut found, mut others) = (CommitMetadata::default(), String::new());
    let lines = text.split_terminator('\n');
    let lines = lines.map(|line| line.strip_suffix('\r').unwrap_or(line));
    for line in lines.take_while(|line| line.len() < MOST_LINE) {
        if learn(&mut found, line).is_none() {
            others.push_str(line);
            others.push('\n');
        }
    }
    let references = match found == CommitMetadata::default() {
        true => Vec::new(),
        false => vec![RevisionReference {
            commit: Some(found),
        }],
    };
    (references, others)
}

/// Takes over what a line says. `None`: it is no valid reference.
fn learn(found: &mut CommitMetadata, line: &str) -> Option<()> {
    let (key, value) = line.strip_prefix(PREFIX)?.split_once(": ")?;
    match key {
        "repourl" => {
            Url::parse(value.as_bytes()).ok()?;
            value.clone_into(&mut found.repo_url);
        }
        "author" => found.author = address::canonical(value)?,
        "date" => found.date = date(value)?,
        "subject" => value.clone_into(&mut found.subject),
        // A null is an empty text.
        "body" => {
            let body: Option<String> = serde_json::from_str(value).ok()?;
            found.body = body.unwrap_or_default();
        }
        "sha" => {
            let digits = value.bytes();
            let mut digits = digits.map(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            if !(5..=40).contains(&value.len()) || !digits.all(|is_digit| is_digit) {
                return None;
            }
            value.clone_into(&mut found.sha);
        }
        _ => return None,
    }
    Some(())
}

/// A time of RFC 3339 as Go prints it again: without fractions, and with `Z` for UTC.
fn date(text: &str) -> Option<String> {
    let (day, rest) = text.split_once('T')?;
    let day: jiff::civil::Date = strict(day, "dddd-dd-dd").then(|| day.parse().ok())??;
    let (time, rest) = rest.split_at_checked(8)?;
    // Go has no leap seconds.
    let is_time = strict(time, "dd:dd:dd") && !time.ends_with(":60");
    let time: jiff::civil::Time = is_time.then(|| time.parse().ok())??;
    let zone = match rest.strip_prefix(['.', ',']) {
        None => rest,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (zone.len() < fraction.len()).then_some(zone)?
        }
    };
    let zone = match zone {
        "Z" | "+00:00" | "-00:00" => "Z",
        zone => {
            let digits = zone.strip_prefix(['+', '-'])?;
            let (hours, minutes) = digits.split_once(':')?;
            let fits = |part: &str, most: u8| part.parse::<u8>().is_ok_and(|n| n <= most);
            (strict(digits, "dd:dd") && fits(hours, 24) && fits(minutes, 60)).then_some(zone)?
        }
    };
    Some(format!("{day}T{time}{zone}"))
}

/// Whether a text has digits where the pattern has `d`, and the pattern's characters elsewhere.
fn strict(text: &str, pattern: &str) -> bool {
    let mut both = text.bytes().zip(pattern.bytes());
    text.len() == pattern.len()
        && both.all(|(b, wanted)| match wanted {
            b'd' => b.is_ascii_digit(),
            wanted => b == wanted,
        })
}

/// The trailers of a message, each in one line, as `git interpret-trailers --parse` prints them.
fn trailers(message: &str) -> Vec<String> {
    let lines = message.lines().take_while(|line| !is_divider(line));
    let lines: Vec<&str> = lines.collect();
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut continues = false;
    for &line in &lines[beginning(&lines)..] {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = found.last_mut().filter(|_| continues) {
                value.push(' ');
                value.push_str(line.trim_start());
            }
            continue;
        }
        let at = separator(line);
        continues = at.is_some();
        if let Some(at) = at {
            found.push((line[..at].trim(), line[at + 1..].to_owned()));
        }
    }
    let line = |(key, value): (&str, String)| format!("{key}: {}", value.trim());
    found.into_iter().map(line).collect()
}

/// Where a patch begins, which is no part of the message.
fn is_divider(line: &str) -> bool {
    let rest = line.strip_prefix("---");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// The first line of the last paragraph, if that has trailers and is not the first one; else how
/// many lines there are.
fn beginning(lines: &[&str]) -> usize {
    let none = lines.len();
    let subject = lines.iter().position(|line| is_blank(line));
    let Some(subject) = subject else {
        return none;
    };
    let (mut trailers, mut others, mut continued, mut of_git) = (0, 0, 0, false);
    let mut only_blank = true;
    for (at, &line) in lines.iter().enumerate().skip(subject).rev() {
        if line.starts_with('#') {
            others += std::mem::take(&mut continued);
        } else if is_blank(line) {
            if only_blank {
                continue;
            }
            others += continued;
            let is_block = (of_git && trailers * 3 >= others) || (trailers > 0 && others == 0);
            return if is_block { at + 1 } else { none };
        } else if line.starts_with([' ', '\t']) {
            continued += 1;
        } else if OF_GIT.iter().any(|prefix| line.starts_with(prefix)) {
            (of_git, continued) = (true, 0);
            trailers += 1;
        } else if separator(line).is_some() {
            continued = 0;
            trailers += 1;
        } else {
            others += 1 + std::mem::take(&mut continued);
        }
        only_blank &= line.starts_with('#');
    }
    none
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Where the colon after a trailer's key is.
fn separator(line: &str) -> Option<usize> {
    let mut after_space = false;
    for (at, b) in line.bytes().enumerate() {
        match b {
            b':' => return (at > 0).then_some(at),
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' if !after_space => {}
            b' ' | b'\t' if at > 0 => after_space = true,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(message: &str) -> CommitMetadata {
        let found = of_message(message);
        assert!(found.len() < 2, "{message:?}");
        let first = found.into_iter().next();
        first.and_then(|found| found.commit).unwrap_or_default()
    }

    #[test]
    fn a_message_names_the_commit_it_is_made_from() {
        let message = "Bump image\n\nFor production.\n\n\
            Argocd-reference-commit-repourl: https://git.example/code\n\
            Argocd-reference-commit-author: Ann B <ann@example.com>\n\
            Argocd-reference-commit-date: 2025-06-09T15:22:05.5+02:00\n\
            Argocd-reference-commit-subject: Fix: a bug\n\
            Argocd-reference-commit-body: \"Two\\nlines\"\n\
            Argocd-reference-commit-sha: abc1234\n\
            Signed-off-by: Ann B <ann@example.com>";
        let expected = CommitMetadata {
            author: "\"Ann B\" <ann@example.com>".to_owned(),
            date: "2025-06-09T15:22:05+02:00".to_owned(),
            subject: "Fix: a bug".to_owned(),
            body: "Two\nlines".to_owned(),
            sha: "abc1234".to_owned(),
            repo_url: "https://git.example/code".to_owned(),
        };
        assert_eq!(commit(message), expected);
        let rest = "Signed-off-by: Ann B <ann@example.com>\n";
        assert_eq!(parted(&trailers(message).join("\n")).1, rest);
    }

    #[test]
    fn only_trailers_count() {
        const SHA: &str = "Argocd-reference-commit-sha: abcde";
        for (message, expected) in [
            (format!("S\n\n{SHA}"), "abcde"),
            (format!("S\n\nbody\n\n{SHA}\n\n"), "abcde"),
            (format!("S\n\n{SHA}\n---\nA: b"), "abcde"),
            (format!("S\n\n{SHA}\n# comment\n"), "abcde"),
            (format!("S\n\ntext\n{SHA}\nSigned-off-by: a"), "abcde"),
            (
                SHA.replace(": ", " :  ").replace("Argo", "S\n\nArgo"),
                "abcde",
            ),
            (
                SHA.replace(": ", ":\n  ").replace("Argo", "S\n\nArgo"),
                "abcde",
            ),
            (format!("S\n\n{SHA}\n  x"), ""),
            (format!("S\n\n{SHA}\n# c\n  x\nA: b"), ""),
            (format!("S\n\ntext\n{SHA}"), ""),
            (format!("S\n\n{SHA}\n\nmore text"), ""),
            (
                format!("S\n\na\nb\nc\nd\ne\nf\ng\n{SHA}\nSigned-off-by: a"),
                "",
            ),
            (SHA.to_owned(), ""),
            (format!("S\n{SHA}"), ""),
            (format!("S\n\n {SHA}"), ""),
            (format!("S\n\n: {SHA}"), ""),
            (String::new(), ""),
        ] {
            assert_eq!(commit(&message).sha, expected, "{message:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_valid_stays_text() {
        for line in [
            "Argocd-reference-commit-sha: ABCDE",
            "Argocd-reference-commit-sha: abcd",
            "Argocd-reference-commit-sha:abcde",
            "Argocd-reference-commit-repourl: ::bad",
            "Argocd-reference-commit-author: nobody",
            "Argocd-reference-commit-date: yesterday",
            "Argocd-reference-commit-date: 2025-02-30T00:00:00Z",
            "Argocd-reference-commit-date: 2025-02-03T00:00:60Z",
            "Argocd-reference-commit-date: 2025-02-03T00:00:00",
            "Argocd-reference-commit-date: 2025-02-03T00:00:00.Z",
            "Argocd-reference-commit-date: 2025-02-03T00:00:00+1:00",
            "Argocd-reference-commit-body: text",
            "Argocd-reference-commit-other: x",
        ] {
            let (references, text) = parted(line);
            assert_eq!((references.len(), text), (0, format!("{line}\n")));
        }
        let known = "Argocd-reference-commit-date: 2025-02-03T00:00:00+00:00\r\n";
        let (references, text) = parted(&format!("{known}other\r\n"));
        let date = references[0].commit.as_ref().map(|c| c.date.as_str());
        assert_eq!(date, Some("2025-02-03T00:00:00Z"));
        assert_eq!(text, "other\n");
    }
}
