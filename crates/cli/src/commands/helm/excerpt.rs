//! Shows the line that an error refers to, in a file or a template's output, with a caret below its
//! column. Main function: [`of`].

use std::path::Path;
use tiphys_render::helm::{HelmError, Limits, Place, chart::Chart};

/// Lines before the invalid one, because the cause is often there.
const BEFORE: usize = 2;

pub fn of(chart: &Chart, error: &HelmError) -> Option<String> {
    match error {
        HelmError::Manifest { place, .. } => made(place),
        error => named(chart, &error.to_string()),
    }
}

/// The location in the file of a chart that could not be loaded: `cannot load values.yaml: why`.
pub fn of_file(chart: &Path, message: &str, limits: &Limits) -> Option<String> {
    let name = message.strip_prefix("cannot load ")?.split(':').next()?;
    let text = std::fs::read(chart.join(name)).ok()?;
    made(&*Place::broken(name, &text, false, limits)?)
}

/// The last location in a message: `chart/templates/x.yaml:3:14`.
pub fn named(chart: &Chart, message: &str) -> Option<String> {
    let places = message
        .lines()
        .flat_map(|line| line.split([' ', '(', ')', '"']));
    let (name, line, column) = places.filter_map(place).next_back()?;
    let text = template(chart, name)?;
    let shown = text.lines().nth(line.checked_sub(1)?)?;
    let column = column
        .filter(|column| shown.is_char_boundary(*column))
        .map(|column| shown[..column].chars().count());
    excerpt(&format!("{name}:{line}"), &text, line, column, 0)
}

/// The location in a file or in a template's output.
pub fn made(place: &Place) -> Option<String> {
    let title = if place.made {
        format!("made by {}", place.source)
    } else {
        format!("{}:{}", place.source, place.line)
    };
    excerpt(
        &title,
        &place.text,
        place.line,
        place.column.checked_sub(1),
        BEFORE,
    )
}

/// A line with its number, this many lines before it, and a caret below a column, which counts
/// characters from 0.
fn excerpt(
    title: &str,
    text: &str,
    line: usize,
    column: Option<usize>,
    before: usize,
) -> Option<String> {
    let shown = text.lines().nth(line.checked_sub(1)?)?;
    let width = line.to_string().len();
    let margin = " ".repeat(width);
    let mut out = format!("{margin}--> {title}\n");
    let first = line.saturating_sub(before).max(1);
    for (number, content) in (first..=line).zip(text.lines().skip(first - 1)) {
        out.push_str(&format!("{number:width$} | {content}\n"));
    }
    if let Some(column) = column {
        // Tabs stay tabs, so that the caret is in the right place.
        let indent: String = shown
            .chars()
            .take(column)
            .map(|c| if c == '\t' { c } else { ' ' })
            .collect();
        out.push_str(&format!("{margin} | {indent}^\n"));
    }
    Some(out)
}

/// `NAME:LINE` or `NAME:LINE:COLUMN`, where the name is that of a template.
fn place(word: &str) -> Option<(&str, usize, Option<usize>)> {
    let word = word.trim_end_matches([':', ',']);
    let (rest, last) = word.rsplit_once(':')?;
    let last: usize = last.parse().ok()?;
    let found = match rest
        .rsplit_once(':')
        .and_then(|(name, line)| Some((name, line.parse().ok()?)))
    {
        Some((name, line)) => (name, line, Some(last)),
        None => (rest, last, None),
    };
    found.0.contains('/').then_some(found)
}

/// The text of a template by its name in messages: `chart/charts/sub/templates/x.yaml`.
fn template(chart: &Chart, name: &str) -> Option<String> {
    let inside = name.strip_prefix(chart.name())?.strip_prefix('/')?;
    if let Some(file) = chart.templates.iter().find(|file| file.name == inside) {
        return Some(String::from_utf8_lossy(&file.data).into_owned());
    }
    let inside = inside.strip_prefix("charts/")?;
    chart
        .dependencies
        .iter()
        .find_map(|dependency| template(dependency, inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_render::MemoryFiles;

    #[test]
    fn the_line_is_shown_with_a_caret() {
        let about = "apiVersion: v2\nname: a\nversion: 1.0.0\n";
        let files = MemoryFiles::new([
            ("Chart.yaml", about),
            (
                "charts/b/Chart.yaml",
                "apiVersion: v2\nname: b\nversion: 1.0.0\n",
            ),
            ("charts/b/templates/x.yaml", "one\n\tb: {{ .Values.x.y }}\n"),
        ]);
        let chart = Chart::from_folder(&files, "", &Limits::default())
            .expect("a chart")
            .chart;
        let message = "a/charts/b/templates/x.yaml:2:14\n  executing \"a/charts/b/templates/x.yaml\" at <.Values.x.y>:\n    nil pointer";
        let shown = named(&chart, message).expect("the line is there");
        assert_eq!(
            shown,
            " --> a/charts/b/templates/x.yaml:2\n2 | \tb: {{ .Values.x.y }}\n  | \t             ^\n"
        );
        assert_eq!(
            named(
                &chart,
                "parse error at (a/charts/b/templates/x.yaml:1): unclosed action"
            )
            .as_deref(),
            Some(" --> a/charts/b/templates/x.yaml:1\n1 | one\n")
        );
        assert_eq!(named(&chart, "no place here: 1:2"), None);
    }

    #[test]
    fn what_a_template_made_is_shown_where_it_cannot_be_read() {
        let place = |line, column| Place {
            source: "a/templates/x.yaml".into(),
            text: "a: 1\nb:\n\tc: é\nd: e: f\n".into(),
            made: true,
            line,
            column,
        };
        let shown = " --> made by a/templates/x.yaml\n2 | b:\n3 | \tc: é\n4 | d: e: f\n  |     ^\n";
        assert_eq!(made(&place(4, 5)).as_deref(), Some(shown));
        assert_eq!(
            made(&place(1, 0)).as_deref(),
            Some(" --> made by a/templates/x.yaml\n1 | a: 1\n")
        );
        assert_eq!(made(&place(9, 1)), None);
    }
}
