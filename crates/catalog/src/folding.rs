//! What words are searched in, and in which form: what is stored must be folded as a query is.
//!
//! Main functions: [`folded`] and [`searched_text`].

use crate::model::Chart;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// Text without case and accents.
pub(crate) fn folded(text: &str) -> String {
    let letters = text.nfkd().filter(|letter| !is_combining_mark(*letter));
    letters.flat_map(char::to_lowercase).collect()
}

/// Everything but name and keywords that a word may be found in.
pub(crate) fn searched_text(chart: &Chart) -> String {
    let mut text = chart.description.clone();
    for person in chart.maintainers.iter().flatten() {
        text.push('\n');
        text.push_str(&person.name);
    }
    text
}
