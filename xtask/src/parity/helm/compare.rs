//! Compares two results of the real program with one of ours.
//!
//! Main function: [`judge`]. Lines that differ between the real results are ignored, and no others.

use super::Answer;
use serde_json::Value;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};
use std::collections::BTreeSet;
use tiphys_gocompat::yaml;

/// The result of comparing one render.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Identical,
    /// The same documents in the same order, formatted differently.
    Equal,
    Different,
    /// Both fail, with the same message.
    SameFailure,
    OtherFailure,
    OursFails,
    OnlyRealFails,
}

impl Verdict {
    pub const ALL: [Self; 7] = [
        Self::Identical,
        Self::SameFailure,
        Self::Equal,
        Self::Different,
        Self::OtherFailure,
        Self::OursFails,
        Self::OnlyRealFails,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Equal => "structurally equal",
            Self::Different => "different",
            Self::SameFailure => "same failure",
            Self::OtherFailure => "other failure",
            Self::OursFails => "only ours fails",
            Self::OnlyRealFails => "only Helm fails",
        }
    }
}

pub fn judge(runs: &[Answer], ours: &Answer) -> Verdict {
    let real = &runs[0];
    match (real.success, ours.success) {
        (true, false) => Verdict::OursFails,
        (false, true) => Verdict::OnlyRealFails,
        (false, false) => {
            let texts: Vec<&str> = runs.iter().map(Answer::error).collect();
            let printed: Vec<&str> = runs.iter().map(|run| run.stdout.as_str()).collect();
            let alike = same(&texts, ours.error()) && same(&printed, &ours.stdout);
            if alike {
                Verdict::SameFailure
            } else {
                Verdict::OtherFailure
            }
        }
        (true, true) => {
            let texts: Vec<&str> = runs.iter().map(|run| run.stdout.as_str()).collect();
            match () {
                () if same(&texts, &ours.stdout) => Verdict::Identical,
                () if documents(&real.stdout)
                    .is_some_and(|real| Some(real) == documents(&ours.stdout)) =>
                {
                    Verdict::Equal
                }
                () => Verdict::Different,
            }
        }
    }
}

/// Whether our text equals one of theirs, or differs from the first only where the others do.
fn same(real: &[&str], ours: &str) -> bool {
    if real.contains(&ours) {
        return true;
    }
    let lines = |text: &'_ str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    let (first, mine) = (lines(real[0]), lines(ours));
    let others: Vec<Vec<String>> = real[1..].iter().map(|text| lines(text)).collect();
    if others
        .iter()
        .chain([&mine])
        .all(|other| other.len() == first.len())
    {
        return (0..first.len())
            .all(|i| mine[i] == first[i] || others.iter().any(|other| other[i] != first[i]));
    }
    // Positions: 2i is before line i, 2i + 1 is line i itself.
    let places = |ops: &[DiffOp]| -> BTreeSet<usize> {
        let changed = ops
            .iter()
            .filter(|op| op.tag() != DiffTag::Equal)
            .map(DiffOp::old_range);
        changed
            .flat_map(|old| 2 * old.start..=2 * old.end)
            .collect()
    };
    let vary: BTreeSet<usize> = others
        .iter()
        .flat_map(|other| places(&capture_diff_slices(Algorithm::Myers, &first, other)))
        .collect();
    !vary.is_empty()
        && places(&capture_diff_slices(Algorithm::Myers, &first, &mine)).is_subset(&vary)
}

/// The documents, with numbers compared by value; None if they cannot be parsed.
fn documents(text: &str) -> Option<Vec<Value>> {
    let limits = yaml::Limits {
        bytes: 256 << 20,
        nodes: 50_000_000,
        ..yaml::Limits::default()
    };
    let found = yaml::parse_documents(text.as_bytes(), &limits).ok()?;
    Some(
        found
            .into_iter()
            .map(|document| document.value)
            .filter(|value| !value.is_null())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(stdout: &str) -> Answer {
        Answer {
            success: true,
            stdout: stdout.into(),
            stderr: String::new(),
        }
    }

    fn failure(stderr: &str) -> Answer {
        Answer {
            success: false,
            stdout: String::new(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn only_what_varies_is_left_out() {
        let runs = [
            answer("a: 1\npassword: x\nb: 2\n"),
            answer("a: 1\npassword: y\nb: 2\n"),
        ];
        assert_eq!(
            judge(&runs, &answer("a: 1\npassword: z\nb: 2\n")),
            Verdict::Identical
        );
        assert_eq!(
            judge(&runs, &answer("a: 1\npassword: z\nb: 3\n")),
            Verdict::Different
        );
        let runs = [
            answer("a: 1\nkey:\n- x\n- y\nb: 2\n"),
            answer("a: 1\nkey:\n- z\nb: 2\n"),
        ];
        assert_eq!(
            judge(&runs, &answer("a: 1\nkey:\n- p\n- q\n- r\nb: 2\n")),
            Verdict::Identical
        );
        assert_eq!(
            judge(&runs, &answer("a: 1\nextra: 1\nkey:\n- x\n- y\nb: 2\n")),
            Verdict::Different
        );
    }

    #[test]
    fn the_same_documents_may_be_written_otherwise() {
        let runs = [answer("a: 1\nb: {c: x}\n"), answer("a: 1\nb: {c: x}\n")];
        assert_eq!(
            judge(&runs, &answer("b:\n  c: \"x\"\na: 1\n")),
            Verdict::Equal
        );
        assert_eq!(
            judge(&runs, &answer("a: 1\nb: {c: y}\n")),
            Verdict::Different
        );
    }

    #[test]
    fn failures_are_compared_without_warnings() {
        let runs = [
            failure("level=WARN msg=x\nError: no\n\nUse --debug\n"),
            failure("Error: no\n\nUse --debug\n"),
        ];
        assert_eq!(runs[0].warnings(), ["level=WARN msg=x"]);
        assert_eq!(
            judge(&runs, &failure("Error: no\n\nUse --debug\n")),
            Verdict::SameFailure
        );
        assert_eq!(
            judge(&runs, &failure("Error: yes\n")),
            Verdict::OtherFailure
        );
        assert_eq!(judge(&runs, &answer("")), Verdict::OnlyRealFails);
        assert_eq!(
            judge(&[answer("")], &failure("Error: no")),
            Verdict::OursFails
        );
    }
}
