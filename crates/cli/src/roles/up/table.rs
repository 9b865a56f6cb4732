//! The live table: one line an Application, redrawn in place on a terminal, printed on change elsewhere.

use std::io::{IsTerminal, Write};
use tiphys_api::Application;

/// One Application, as the table shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub sync: String,
    pub health: String,
    pub operation: String,
    /// What it waits for, or what is wrong.
    pub message: String,
}

impl Row {
    pub fn of(app: &Application) -> Self {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let state = app.status.operation_state.as_ref();
        let condition = app.status.conditions.iter().find(|c| c.type_.ends_with("Error"));
        let waiting = state.filter(|s| s.phase != "Succeeded").map(|s| s.message.clone());
        Self {
            name: app.metadata.name.clone(),
            sync: or(&app.status.sync.status, "-"),
            health: or(&app.status.health.status, "-"),
            operation: state.map_or_else(|| "-".to_owned(), |s| s.phase.clone()),
            message: condition.map(|c| format!("{}: {}", c.type_, c.message)).or(waiting).unwrap_or_default(),
        }
    }

    /// Synced and Healthy, and no operation runs.
    pub fn is_well(&self) -> bool {
        self.sync == "Synced" && self.health == "Healthy" && !matches!(self.operation.as_str(), "Running" | "Terminating")
    }

    fn cells(&self) -> [&str; 5] {
        [&self.name, &self.sync, &self.health, &self.operation, &self.message]
    }
}

const HEADER: [&str; 5] = ["NAME", "SYNC", "HEALTH", "OPERATION", "MESSAGE"];

/// Draws rows; remembers how many lines it drew last.
pub struct Table {
    terminal: bool,
    drawn: usize,
    last: Vec<Row>,
}

impl Default for Table {
    fn default() -> Self {
        Self { terminal: std::io::stdout().is_terminal(), drawn: 0, last: Vec::new() }
    }
}

impl Table {
    /// Shows the rows if they differ from those shown before.
    pub fn show(&mut self, rows: &[Row]) -> std::io::Result<()> {
        if rows == self.last {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        if self.terminal {
            if self.drawn > 0 {
                write!(out, "\x1b[{}A\x1b[J", self.drawn)?;
            }
            let lines = render(rows);
            for line in &lines {
                writeln!(out, "{line}")?;
            }
            self.drawn = lines.len();
        } else {
            for row in rows.iter().filter(|r| !self.last.contains(r)) {
                let cells = row.cells();
                writeln!(out, "{}: {} {} {} {}", cells[0], cells[1], cells[2], cells[3], cells[4])?;
            }
        }
        out.flush()?;
        self.last = rows.to_vec();
        Ok(())
    }
}

fn render(rows: &[Row]) -> Vec<String> {
    let mut widths = HEADER.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; 5]| {
        let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().chars().take(160).collect::<String>()
    };
    std::iter::once(line(HEADER)).chain(rows.iter().map(|r| line(r.cells()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_a_running_operation_is_not_well() {
        let row = |operation: &str| Row {
            name: "a".into(),
            sync: "Synced".into(),
            health: "Healthy".into(),
            operation: operation.into(),
            message: String::new(),
        };
        assert!(row("Succeeded").is_well() && !row("Running").is_well());
        assert_eq!(render(&[row("Running")]), ["NAME  SYNC    HEALTH   OPERATION  MESSAGE", "a     Synced  Healthy  Running"]);
    }
}
