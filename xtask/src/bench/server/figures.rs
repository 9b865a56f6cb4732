//! What one server needed, and how it is shown. Main types: [`Figures`], [`Asked`].

use super::super::subject::times;
use serde_json::{Value, json};

/// As /proc counts CPU time: less cannot be told from nothing.
const TICK: f64 = 0.01;

/// Many requests of one kind.
pub struct Asked {
    pub what: &'static str,
    requests: usize,
    /// Seconds until the last byte of the answer: of half of them, and of 95 in 100.
    median: f64,
    slow: f64,
    /// The server's CPU time for all of them.
    cpu: f64,
    /// Of an answer, on average.
    bytes: f64,
}

impl Asked {
    /// `seconds`: how long each request took. `bytes`: of all answers together.
    pub fn new(what: &'static str, mut seconds: Vec<f64>, cpu: f64, bytes: usize) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self {
            what,
            requests: seconds.len(),
            median: percentile(&seconds, 50),
            slow: percentile(&seconds, 95),
            cpu,
            bytes: bytes as f64 / seconds.len().max(1) as f64,
        }
    }

    fn cpu_each(&self) -> f64 {
        self.cpu.max(TICK) / self.requests.max(1) as f64
    }

    fn json(&self) -> Value {
        json!({"request": self.what, "requests": self.requests, "median_ms": self.median * 1e3,
            "percentile_95_ms": self.slow * 1e3, "per_cpu_s": 1.0 / self.cpu_each(),
            "bytes": self.bytes.round()})
    }
}

/// The smallest of sorted values that so many of 100 do not exceed.
fn percentile(sorted: &[f64], of_hundred: usize) -> f64 {
    let rank = (sorted.len() * of_hundred).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// One server. Memory in MiB.
pub struct Figures {
    pub name: &'static str,
    /// After it had read everything and answered a few requests.
    pub idle: f64,
    pub watchers: usize,
    /// That the watchers added.
    pub watched: f64,
    pub peak: f64,
    pub asked: Vec<Asked>,
}

impl Figures {
    pub fn json(&self, apps: usize) -> Value {
        let asked: Vec<_> = self.asked.iter().map(Asked::json).collect();
        json!({"name": self.name, "apps": apps, "idle_mib": self.idle, "watchers": self.watchers,
            "watchers_mib": self.watched, "peak_mib": self.peak, "requests": asked})
    }

    /// As text, with how many times the first server's it is, if this is not the first.
    pub fn lines(&self, first: Option<&Self>) -> Vec<String> {
        let beside = first.map_or("", |_| "   of ours: time, CPU");
        let mut lines = vec![format!(
            "  {:<24}{:>12}{:>12}{:>14}{:>13}{beside}",
            self.name, "median", "95 in 100", "per CPU-s", "answer"
        )];
        for (number, asked) in self.asked.iter().enumerate() {
            let ours = first.and_then(|first| first.asked.get(number));
            let beside = ours.map(|ours| {
                let time = times(ours.median, asked.median);
                let cpu = times(ours.cpu_each(), asked.cpu_each());
                format!("   {time:>8}{cpu:>9}")
            });
            lines.push(format!(
                "  {:<24}{:>9.2} ms{:>9.2} ms{:>14.1}{:>10.1} kB{}",
                asked.what,
                asked.median * 1e3,
                asked.slow * 1e3,
                1.0 / asked.cpu_each(),
                asked.bytes / 1e3,
                beside.unwrap_or_default()
            ));
        }
        let ratio = |of: fn(&Self) -> f64| {
            let ours = first.map(|first| times(of(first), of(self)));
            ours.filter(|text| !text.is_empty())
                .map(|text| format!(" ({text})"))
                .unwrap_or_default()
        };
        lines.push(format!(
            "  memory: {:.1} MiB at rest{}, {} watchers add {:.1} MiB{}, {:.1} MiB at the peak{}",
            self.idle,
            ratio(|f| f.idle),
            self.watchers,
            self.watched,
            ratio(|f| f.watched),
            self.peak,
            ratio(|f| f.peak)
        ));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &'static str, each: f64, cpu: f64) -> Figures {
        Figures {
            name,
            idle: 40.0 * each,
            watchers: 200,
            watched: 10.0,
            peak: 100.0,
            asked: vec![Asked::new("one", vec![each; 20], cpu, 40_000)],
        }
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 50), 50.0);
        assert_eq!(percentile(&hundred, 95), 95.0);
        assert_eq!(percentile(&[1.0, 2.0, 9.0], 95), 9.0);
        assert_eq!(percentile(&[3.0], 50), 3.0);
        assert_eq!(percentile(&[], 50), 0.0);
    }

    #[test]
    fn requests_are_sorted_and_counted() {
        let asked = Asked::new("one", vec![0.004, 0.001, 0.002], 0.03, 6_000);
        let shown = asked.json();
        assert_eq!(shown["requests"], 3);
        assert_eq!(shown["median_ms"], 2.0);
        assert_eq!(shown["percentile_95_ms"], 4.0);
        assert_eq!(shown["per_cpu_s"], 100.0);
        assert_eq!(shown["bytes"], 2_000.0);
    }

    #[test]
    fn the_second_server_is_shown_beside_the_first() {
        let (ours, theirs) = (figures("ours", 0.001, 0.1), figures("theirs", 0.004, 2.0));
        let alone = ours.lines(None);
        assert_eq!(alone.len(), 3);
        assert!(alone[1].contains("1.00 ms") && alone[1].contains("200.0"));
        assert!(!alone.iter().any(|line| line.contains('x')), "{alone:?}");
        let beside = theirs.lines(Some(&ours));
        assert!(beside[1].ends_with("4.0x    20.0x"), "{}", beside[1]);
        assert!(beside[2].contains("at rest (4.0x)"), "{}", beside[2]);
    }
}
