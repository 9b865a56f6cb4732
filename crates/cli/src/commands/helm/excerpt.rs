//! The line of a template that a message is about, with a caret below its column. Main function: [`of`].

use tiphys_render::helm::chart::Chart;

/// Below the message, the last place that it names: `chart/templates/x.yaml:3:14`.
pub fn of(chart: &Chart, message: &str) -> Option<String> {
    let places = message.lines().flat_map(|line| line.split([' ', '(', ')', '"']));
    let (name, line, column) = places.filter_map(place).next_back()?;
    let text = template(chart, name)?;
    let shown = text.lines().nth(line.checked_sub(1)?)?;
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let mut out = format!("{margin}--> {name}:{line}\n{number} | {shown}\n");
    if let Some(column) = column.filter(|column| shown.is_char_boundary(*column)) {
        // Tabs stay tabs, so that the caret stands where the eye looks for it.
        let indent: String = shown[..column].chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        out.push_str(&format!("{margin} | {indent}^\n"));
    }
    Some(out)
}

/// `NAME:LINE` or `NAME:LINE:COLUMN`, where the name is that of a template.
fn place(word: &str) -> Option<(&str, usize, Option<usize>)> {
    let word = word.trim_end_matches([':', ',']);
    let (rest, last) = word.rsplit_once(':')?;
    let last: usize = last.parse().ok()?;
    let found = match rest.rsplit_once(':').and_then(|(name, line)| Some((name, line.parse().ok()?))) {
        Some((name, line)) => (name, line, Some(last)),
        None => (rest, last, None),
    };
    found.0.contains('/').then_some(found)
}

/// The text of a template by the name that messages use: `chart/charts/sub/templates/x.yaml`.
fn template(chart: &Chart, name: &str) -> Option<String> {
    let inside = name.strip_prefix(chart.name())?.strip_prefix('/')?;
    if let Some(file) = chart.templates.iter().find(|file| file.name == inside) {
        return Some(String::from_utf8_lossy(&file.data).into_owned());
    }
    let inside = inside.strip_prefix("charts/")?;
    chart.dependencies.iter().find_map(|dependency| template(dependency, inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_render::{MemoryFiles, helm::Limits};

    #[test]
    fn the_line_is_shown_with_a_caret() {
        let about = "apiVersion: v2\nname: a\nversion: 1.0.0\n";
        let files = MemoryFiles::new([
            ("Chart.yaml", about),
            ("charts/b/Chart.yaml", "apiVersion: v2\nname: b\nversion: 1.0.0\n"),
            ("charts/b/templates/x.yaml", "one\n\tb: {{ .Values.x.y }}\n"),
        ]);
        let chart = Chart::from_folder(&files, "", &Limits::default()).expect("a chart").chart;
        let message = "a/charts/b/templates/x.yaml:2:14\n  executing \"a/charts/b/templates/x.yaml\" at <.Values.x.y>:\n    nil pointer";
        let shown = of(&chart, message).expect("the line is there");
        assert_eq!(shown, " --> a/charts/b/templates/x.yaml:2\n2 | \tb: {{ .Values.x.y }}\n  | \t             ^\n");
        assert_eq!(
            of(&chart, "parse error at (a/charts/b/templates/x.yaml:1): unclosed action").as_deref(),
            Some(" --> a/charts/b/templates/x.yaml:1\n1 | one\n")
        );
        assert_eq!(of(&chart, "no place here: 1:2"), None);
    }
}
