//! Groups similar differences, prints and saves them. Main type: [`Report`].

use super::Outcome;
use std::{collections::BTreeMap, path::Path, time::Duration};
use tiphys_testkit::differential::Case;

/// The results of all scripts.
#[derive(Default)]
pub struct Report {
    scripts: u64,
    steps: usize,
    /// By signature: the number, and the shortest script that shows it.
    groups: BTreeMap<String, Group>,
    explained: BTreeMap<String, u64>,
    failures: Vec<String>,
}

struct Group {
    count: u64,
    at: usize,
    example: Outcome,
}

impl Report {
    pub fn add(&mut self, outcome: anyhow::Result<Outcome>) {
        self.scripts += 1;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.failures.push(error.to_string()),
        };
        self.steps += outcome.script.steps.len();
        for (at, difference) in outcome.differences.iter().enumerate() {
            if difference.explained {
                let rule = difference.signature.split(':').next().unwrap_or_default();
                *self
                    .explained
                    .entry(format!("{rule} {}", difference.at))
                    .or_default() += 1;
                continue;
            }
            let copy = || {
                let differences = outcome.differences[at..].to_vec();
                Outcome {
                    script: outcome.script.clone(),
                    differences,
                    expected: outcome.expected.clone(),
                }
            };
            let group = self
                .groups
                .entry(difference.signature.clone())
                .or_insert_with(|| Group {
                    count: 0,
                    at: usize::MAX,
                    example: copy(),
                });
            group.count += 1;
            if difference.step < group.at {
                *group = Group {
                    count: group.count,
                    at: difference.step,
                    example: copy(),
                };
            }
        }
    }

    pub fn unexplained(&self) -> u64 {
        self.groups.values().map(|g| g.count).sum::<u64>() + self.failures.len() as u64
    }

    /// The shortest script of each cause, for any kind.
    pub fn examples(&self) -> Vec<&Outcome> {
        let mut shortest: BTreeMap<&str, &Group> = BTreeMap::new();
        for group in self.groups.values() {
            let word = group
                .example
                .differences
                .first()
                .map_or("", |d| d.word.as_str());
            let known = shortest.entry(word).or_insert(group);
            if group.at < known.at {
                *known = group;
            }
        }
        shortest.values().map(|g| &g.example).collect()
    }

    /// `each`: every kind and verb separately.
    pub fn print(&self, show: usize, each: bool, took: Duration) {
        let mut words: BTreeMap<(&str, &str), Vec<&Group>> = BTreeMap::new();
        for (signature, group) in &self.groups {
            let word = group
                .example
                .differences
                .first()
                .map_or("", |d| d.word.as_str());
            words
                .entry((word, if each { signature } else { "" }))
                .or_default()
                .push(group);
        }
        let count = |groups: &[&Group]| groups.iter().map(|g| g.count).sum::<u64>();
        let mut words: Vec<((&str, &str), Vec<&Group>)> = words.into_iter().collect();
        words.sort_by_key(|(_, groups)| std::cmp::Reverse(count(groups)));
        for ((word, _), groups) in words.iter().take(show) {
            let Some(example) = groups.iter().min_by_key(|g| g.at).map(|g| &g.example) else {
                continue;
            };
            let Some(difference) = example.differences.first() else {
                continue;
            };
            let who = groups
                .iter()
                .filter_map(|g| g.example.differences.first())
                .map(|d| format!("{} {}", d.kind, d.verb));
            println!("{:5}x {word}", count(groups));
            println!(
                "       of {}",
                short(&who.collect::<Vec<_>>().join(", "), 300)
            );
            let step = &example.script.steps[difference.step];
            println!(
                "       {}, step {}: {} {}",
                example.script.about,
                difference.step,
                step.title(),
                step.content_type
            );
            if let Some(body) = step.payload() {
                println!("       sent     {}", short(&body, 700));
            }
            println!(
                "       real     {} {}",
                difference.at,
                short(&difference.expected, 600)
            );
            println!(
                "       embedded {} {}",
                difference.at,
                short(&difference.found, 600)
            );
        }
        for failure in self.failures.iter().take(10) {
            println!("  failed {failure}");
        }
        for (rule, count) in &self.explained {
            println!("{count:5}x explained: {rule}");
        }
        let rate = self.scripts as f64 / took.as_secs_f64().max(0.001);
        println!(
            "{} scripts, {} steps, {rate:.1} scripts/s; {} unexplained differences in {} groups, {} explained, {} failed",
            self.scripts,
            self.steps,
            self.unexplained(),
            self.groups.len(),
            self.explained.values().sum::<u64>(),
            self.failures.len()
        );
    }
}

/// Prints shrunk scripts.
pub fn print_examples(examples: &[Outcome]) {
    for example in examples {
        let Some(difference) = example.differences.first() else {
            continue;
        };
        println!("\n== {}", difference.signature);
        for (index, step) in example.script.steps.iter().enumerate() {
            println!(
                "   {index}: {} {} {}",
                step.title(),
                step.content_type,
                step.payload().unwrap_or_default()
            );
        }
        println!(
            "   step {}, {}\n   real     {}\n   embedded {}",
            difference.step, difference.at, difference.expected, difference.found
        );
    }
}

/// Saves each as a case that can be replayed without a real server.
pub fn save(folder: &Path, examples: &[Outcome]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    for example in examples {
        let Some(difference) = example.differences.first() else {
            continue;
        };
        let word = |text: &str| {
            text.chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect::<String>()
        };
        let mut name = format!("{}-{}", word(difference.verb), word(&difference.at));
        name.truncate(80);
        let folder = folder.join(word(&difference.kind));
        std::fs::create_dir_all(&folder)?;
        let mut path = folder.join(format!("{name}.json"));
        for n in 2.. {
            if !path.exists() {
                break;
            }
            path = folder.join(format!("{name}-{n}.json"));
        }
        let mut script = example.script.clone();
        script.about = difference.signature.clone();
        let case = Case {
            server: "kube-apiserver 1.36".to_owned(),
            script,
            answers: example.expected.clone(),
        };
        std::fs::write(&path, case.text())?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Saves the script of a file with the real server's responses, whether there are differences or
/// not.
pub fn keep(folder: &Path, file: &Path, outcome: Outcome) -> anyhow::Result<()> {
    let case = Case {
        server: "kube-apiserver 1.36".to_owned(),
        script: outcome.script,
        answers: outcome.expected,
    };
    let path = folder.join(file.file_name().unwrap_or_default());
    std::fs::write(&path, case.text())?;
    println!("wrote {}", path.display());
    Ok(())
}

fn short(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
