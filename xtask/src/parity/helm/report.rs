//! The results of a comparison, line by line and in total. Main type: [`Report`].

use super::{Answer, Case, compare::Verdict};
use anyhow::bail;
use similar::TextDiff;
use std::{collections::BTreeMap, fs, path::PathBuf};

pub struct Report {
    out: Option<PathBuf>,
    /// Print the differences.
    show: bool,
    counts: BTreeMap<Verdict, usize>,
    /// The worst result of each chart.
    charts: BTreeMap<PathBuf, Verdict>,
    not_comparable: usize,
    /// Renders that agree but have different warnings.
    warnings: Vec<String>,
}

impl Report {
    pub fn new(out: Option<PathBuf>, show: bool) -> anyhow::Result<Self> {
        if let Some(out) = &out {
            fs::create_dir_all(out)?;
        }
        let (counts, charts) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self {
            out,
            show,
            counts,
            charts,
            not_comparable: 0,
            warnings: Vec::new(),
        })
    }

    pub fn not_comparable(&mut self, name: &str, missing: &[String]) {
        println!("not comparable: {name} needs {}", missing.join(", "));
        self.not_comparable += 1;
    }

    pub fn render(
        &mut self,
        case: &Case,
        runs: &[Answer],
        ours: &Answer,
        verdict: &Verdict,
    ) -> anyhow::Result<()> {
        *self.counts.entry(*verdict).or_default() += 1;
        let worst = self
            .charts
            .entry(case.chart.clone())
            .or_insert(Verdict::Identical);
        *worst = (*worst).max(*verdict);
        let real = &runs[0];
        if verdict.is_good() {
            let mut told = runs.iter().map(Answer::warnings);
            if !told.any(|warnings| warnings == ours.warnings()) {
                self.warnings.push(format!(
                    "{}\n  Helm: {:?}\n  ours: {:?}",
                    case.name,
                    real.warnings(),
                    ours.warnings()
                ));
            }
            return Ok(());
        }
        println!("{}: {}", verdict.words(), case.name);
        match verdict {
            Verdict::OursFails => println!("  {}", indented(ours.error())),
            Verdict::OnlyRealFails => println!("  {}", indented(real.error())),
            Verdict::OtherFailure => println!(
                "  Helm: {}\n  ours: {}",
                indented(real.error()),
                indented(ours.error())
            ),
            _ => {}
        }
        let difference = TextDiff::from_lines(&real.stdout, &ours.stdout)
            .unified_diff()
            .context_radius(3)
            .header("Helm", "ours")
            .to_string();
        if self.show {
            println!("{difference}");
        }
        if let Some(out) = &self.out {
            let name = case.name.replace(['/', ' '], "-");
            fs::write(out.join(format!("{name}.diff")), difference)?;
            fs::write(
                out.join(format!("{name}.helm")),
                format!("{}{}", real.stdout, real.stderr),
            )?;
            fs::write(
                out.join(format!("{name}.ours")),
                format!("{}{}", ours.stdout, ours.stderr),
            )?;
        }
        Ok(())
    }

    pub fn finish(self) -> anyhow::Result<()> {
        for text in &self.warnings {
            println!("other warnings: {text}");
        }
        let good = self
            .charts
            .values()
            .filter(|verdict| verdict.is_good())
            .count();
        let renders: usize = self.counts.values().sum();
        println!(
            "{} charts, {good} of them the same in all their renders; {} not comparable",
            self.charts.len(),
            self.not_comparable
        );
        let told = Verdict::ALL.into_iter().filter_map(|verdict| {
            Some(format!(
                "{} {}",
                self.counts.get(&verdict)?,
                verdict.words()
            ))
        });
        println!(
            "{renders} renders: {}; other warnings in {}",
            told.collect::<Vec<_>>().join(", "),
            self.warnings.len()
        );
        let bad: usize = self
            .counts
            .iter()
            .filter(|(verdict, _)| !verdict.is_good())
            .map(|(_, count)| count)
            .sum();
        if bad > 0 {
            bail!("{bad} of {renders} renders are not the same");
        }
        Ok(())
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
