//! The live table: one line per Application, redrawn in place on a terminal, printed on change
//! elsewhere.

use std::io::{IsTerminal, Write};
use tiphys_api::{Application, constants};

/// One Application, as the table shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub sync: String,
    pub health: String,
    pub operation: String,
    /// What it waits for, or its error.
    pub message: String,
    /// It cannot recover by waiting.
    pub lasting: bool,
    /// It was compared, and has no resources.
    pub empty: bool,
    /// A requested comparison has not been made yet.
    stale: bool,
}

impl Row {
    /// `reasons`: why resources are not Healthy; `lasting`: whether missing manifests need a change
    /// by the user.
    pub fn of(app: &Application, reasons: &[String], lasting: bool) -> Self {
        let or = |text: &str, other: &str| {
            if text.is_empty() {
                other.to_owned()
            } else {
                text.to_owned()
            }
        };
        let status = &app.status;
        let state = status.operation_state.as_ref();
        let error = status
            .conditions
            .iter()
            .find(|c| c.type_.ends_with("Error"));
        let waiting = state
            .filter(|s| s.phase != "Succeeded")
            .map(|s| s.message.clone());
        let empty =
            status.sync.status == "Synced" && status.resources.is_empty() && error.is_none();
        let nothing = empty.then(|| "nothing was rendered: the source has no resources".to_owned());
        let reasons = (matches!(status.health.status.as_str(), "Progressing" | "Degraded")
            && !reasons.is_empty())
        .then(|| reasons.join("; "));
        let error_text = error.map(|c| format!("{}: {}", c.type_, c.message));
        let has = |kind: &str| status.conditions.iter().any(|c| c.type_ == kind);
        Self {
            name: app.metadata.name.clone(),
            sync: or(&status.sync.status, "-"),
            health: or(&status.health.status, "-"),
            operation: state.map_or_else(|| "-".to_owned(), |s| s.phase.clone()),
            message: error_text
                .or(reasons)
                .or(waiting)
                .or(nothing)
                .unwrap_or_default(),
            lasting: has("InvalidSpecError") || (lasting && has("ComparisonError")),
            empty,
            stale: app.metadata.annotations.contains_key(constants::REFRESH),
        }
    }

    fn without_status(name: &str, sync: &str, message: &str) -> Self {
        let dash = || "-".to_owned();
        let (name, sync, message) = (name.to_owned(), sync.to_owned(), message.to_owned());
        Self {
            name,
            sync,
            health: dash(),
            operation: dash(),
            message,
            lasting: false,
            empty: false,
            stale: false,
        }
    }

    /// An Application that was requested, or that is part of another one, but does not exist.
    pub fn missing(name: &str) -> Self {
        Self::without_status(name, "-", "not created yet")
    }

    /// An Application that cannot be parsed.
    pub fn unreadable(name: &str, problem: &str) -> Self {
        Self {
            lasting: true,
            ..Self::without_status(name, "Unknown", &format!("cannot be read: {problem}"))
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.operation.as_str(), "Running" | "Terminating")
    }

    /// Synced and Healthy, and no operation runs.
    pub fn is_well(&self) -> bool {
        self.sync == "Synced" && self.health == "Healthy" && !self.is_running() && !self.stale
    }

    fn cells(&self) -> [&str; 5] {
        [
            &self.name,
            &self.sync,
            &self.health,
            &self.operation,
            &self.message,
        ]
    }

    /// For output without a table.
    pub fn line(&self) -> String {
        let [name, sync, health, operation, message] = self.cells();
        let message = message.lines().collect::<Vec<_>>().join(" ");
        format!("{name}: {sync} {health} {operation} {message}")
            .trim_end()
            .to_owned()
    }
}

const HEADER: [&str; 5] = ["NAME", "SYNC", "HEALTH", "OPERATION", "MESSAGE"];

/// Columns and lines of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    width: usize,
    height: usize,
}

/// `None`: not a terminal.
fn size() -> Option<Size> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let known = terminal_size::terminal_size().map(|(w, h)| Size {
        width: w.0.into(),
        height: h.0.into(),
    });
    // A terminal that does not report its size is assumed to have the smallest usual one.
    Some(
        known
            .filter(|s| s.width > 0 && s.height > 0)
            .unwrap_or(Size {
                width: 80,
                height: 24,
            }),
    )
}

/// Draws rows; remembers how many lines it drew last.
#[derive(Default)]
pub struct Table {
    drawn: usize,
    last: Vec<Row>,
    size: Option<Size>,
}

impl Table {
    /// Shows the rows if they, or the size of the terminal, have changed.
    pub fn show(&mut self, rows: &[Row]) -> std::io::Result<()> {
        self.draw(rows, size(), &mut std::io::stdout().lock())
    }

    fn draw(
        &mut self,
        rows: &[Row],
        size: Option<Size>,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        if rows == self.last && size == self.size {
            return Ok(());
        }
        if let Some(size) = size {
            self.erase(out)?;
            let lines = render(rows, size);
            for line in &lines {
                writeln!(out, "{line}")?;
            }
            self.drawn = lines.len();
        } else {
            for row in rows.iter().filter(|r| !self.last.contains(r)) {
                writeln!(out, "{}", row.line())?;
            }
        }
        out.flush()?;
        (self.last, self.size) = (rows.to_vec(), size);
        Ok(())
    }

    /// Prints a line above the table.
    pub fn say(&mut self, text: &str) -> std::io::Result<()> {
        let rows = std::mem::take(&mut self.last);
        let mut out = std::io::stdout().lock();
        self.erase(&mut out)?;
        writeln!(out, "{text}")?;
        drop(out);
        if self.size.is_some() {
            return self.show(&rows);
        }
        self.last = rows;
        Ok(())
    }

    fn erase(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        if self.drawn > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.drawn)?;
        }
        self.drawn = 0;
        Ok(())
    }
}

/// Lines that the terminal does not wrap, and no more than fit: a table that has scrolled cannot be
/// redrawn in place.
fn render(rows: &[Row], size: Size) -> Vec<String> {
    let room = size.height.saturating_sub(2).max(2);
    // If there is not enough room, rows that need attention are shown first.
    let (mut shown, mut hidden): (Vec<&Row>, Vec<&Row>) = (rows.iter().collect(), Vec::new());
    if rows.len() + 1 > room {
        shown.sort_by_key(|r| r.is_well());
        hidden = shown.split_off(room - 2);
    }
    let mut widths = HEADER.map(str::len);
    for row in &shown {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // A long name must leave room for the message.
    widths[0] = widths[0].min((size.width / 3).max(8));
    let line = |cells: [&str; 5]| {
        let cut = |text: &str, width: usize| {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if text.chars().count() <= width {
                text
            } else {
                text.chars()
                    .take(width.saturating_sub(1))
                    .chain(['…'])
                    .collect()
            }
        };
        let padded: Vec<_> = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{:width$}", cut(cell, width)))
            .collect();
        cut_line(padded.join("  ").trim_end(), size.width)
    };
    let more = (!hidden.is_empty()).then(|| {
        let well = hidden.iter().filter(|r| r.is_well()).count();
        cut_line(
            &format!(
                "… and {} more, {well} of them Synced and Healthy",
                hidden.len()
            ),
            size.width,
        )
    });
    std::iter::once(line(HEADER))
        .chain(shown.iter().map(|r| line(r.cells())))
        .chain(more)
        .collect()
}

fn cut_line(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        text.to_owned()
    } else {
        text.chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WIDE: Size = Size {
        width: 120,
        height: 24,
    };

    fn row(name: &str, health: &str, operation: &str, message: &str) -> Row {
        let (health, operation) = (health.into(), operation.into());
        Row {
            health,
            operation,
            ..Row::without_status(name, "Synced", message)
        }
    }

    #[test]
    fn columns_align_and_a_running_operation_is_not_well() {
        assert!(
            row("a", "Healthy", "Succeeded", "").is_well()
                && !row("a", "Healthy", "Running", "").is_well()
        );
        let lines = render(&[row("a", "Healthy", "Running", "")], WIDE);
        assert_eq!(
            lines,
            [
                "NAME  SYNC    HEALTH   OPERATION  MESSAGE",
                "a     Synced  Healthy  Running"
            ]
        );
    }

    #[test]
    fn no_line_is_wider_and_no_table_higher_than_the_terminal() {
        let message = "Deployment web 0/1: pod web-5d4b8c7f9-abcde ImagePullBackOff\nand more";
        let rows: Vec<Row> = (0..40)
            .map(|n| {
                row(
                    &format!("application-with-a-long-name-{n}"),
                    if n == 39 { "Degraded" } else { "Healthy" },
                    "Succeeded",
                    message,
                )
            })
            .collect();
        for (width, height) in [(40, 10), (80, 24), (200, 60)] {
            let lines = render(&rows, Size { width, height });
            assert!(
                lines
                    .iter()
                    .all(|l| l.chars().count() <= width && !l.contains('\n')),
                "{lines:#?}"
            );
            assert!(lines.len() < height, "{} of {height}", lines.len());
            assert!(
                lines.iter().any(|l| l.contains("Degra")),
                "what is not well is shown: {lines:#?}"
            );
        }
        let lines = render(
            &rows,
            Size {
                width: 80,
                height: 10,
            },
        );
        assert_eq!(
            lines.last().map(String::as_str),
            Some("… and 34 more, 34 of them Synced and Healthy")
        );
    }

    /// The lines on a terminal after this output, which moves only up to what it erases.
    fn screen(output: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(output).expect("text");
        let mut lines: Vec<String> = Vec::new();
        let mut parts = text.split("\x1b[");
        let mut shown = parts.next();
        while let Some(text) = shown {
            lines.extend(text.lines().map(str::to_owned));
            let up = parts.next().map(|part| part.strip_suffix('A').expect("up"));
            let up = up.map_or(0, |up| up.parse().expect("a number"));
            lines.truncate(lines.len() - up);
            shown = parts
                .next()
                .map(|part| part.strip_prefix('J').expect("erased"));
        }
        lines
    }

    #[test]
    fn what_has_changed_is_drawn_in_place() {
        let (mut table, mut out) = (Table::default(), Vec::new());
        let rows = |health: &str| [row("a", "Healthy", "-", ""), row("b", health, "-", "")];
        let mut show = |rows: &[Row], size| {
            let before = out.len();
            table.draw(rows, Some(size), &mut out).expect("written");
            (out.len() > before, screen(&out))
        };
        for health in ["Progressing", "Degraded", "Healthy"] {
            let (drawn, screen) = show(&rows(health), WIDE);
            assert!(drawn);
            assert_eq!(screen, render(&rows(health), WIDE), "nothing else is left");
            assert!(!show(&rows(health), WIDE).0, "nothing has changed");
        }
        let fewer = &rows("Healthy")[..1];
        assert_eq!(show(fewer, WIDE).1, render(fewer, WIDE));
        let narrow = Size { width: 20, ..WIDE };
        assert_eq!(show(fewer, narrow).1, render(fewer, narrow));
    }

    #[test]
    fn without_a_terminal_only_what_has_changed_is_printed() {
        let (mut table, mut out) = (Table::default(), Vec::new());
        let mut rows = [
            row("a", "Healthy", "-", ""),
            row("b", "Progressing", "-", ""),
        ];
        table.draw(&rows, None, &mut out).expect("written");
        table.draw(&rows, None, &mut out).expect("written");
        rows[1] = row("b", "Healthy", "Succeeded", "");
        table.draw(&rows, None, &mut out).expect("written");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "a: Synced Healthy -\nb: Synced Progressing -\nb: Synced Healthy Succeeded\n"
        );
    }

    #[test]
    fn a_row_says_why() {
        let app = |status: serde_json::Value| -> Application {
            serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status}))
                .expect("an Application")
        };
        let of = |status: serde_json::Value| {
            Row::of(
                &app(status),
                &["Deployment web 0/1: pod w ImagePullBackOff".to_owned()],
                true,
            )
        };
        let resources = json!([{"kind": "ConfigMap", "name": "a"}]);
        let progressing = of(
            json!({"sync": {"status": "Synced"}, "health": {"status": "Progressing"}, "resources": resources}),
        );
        assert_eq!(
            progressing.message,
            "Deployment web 0/1: pod w ImagePullBackOff"
        );
        let nothing = of(json!({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}));
        assert!(
            nothing.empty
                && nothing.is_well()
                && nothing.message.starts_with("nothing was rendered"),
            "{nothing:?}"
        );
        let broken = of(
            json!({"conditions": [{"type": "ComparisonError", "message": "repository not found: x"}]}),
        );
        assert!(broken.lasting && broken.message == "ComparisonError: repository not found: x");
        let passing = Row::of(
            &app(json!({"conditions": [{"type": "ComparisonError", "message": "x"}]})),
            &[],
            false,
        );
        assert!(!passing.lasting);
    }
}
