//! Shrinks a script that shows a difference. Main function: [`shrink`].

use super::script::{Script, Step, Watch, fill};
use serde_json::Value;

/// Removes steps, then fields of bodies, while `still_differs` is true; calls it at most `budget`
/// times.
pub fn shrink(
    script: &Script,
    budget: usize,
    still_differs: &mut dyn FnMut(&Script) -> bool,
) -> Script {
    let mut best = script.clone();
    let mut left = budget;
    let mut ask = |candidate: &Script| {
        left = left.saturating_sub(1);
        left > 0 && still_differs(candidate)
    };
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let candidate = without_steps(&best, at, size);
            if candidate.steps.len() < best.steps.len() && ask(&candidate) {
                best = candidate;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for index in 0..best.steps.len() {
        shrink_body(&mut best, index, &mut ask);
    }
    best
}

fn shrink_body(best: &mut Script, index: usize, ask: &mut dyn FnMut(&Script) -> bool) {
    loop {
        let Some(body) = best.steps[index].body.clone() else {
            return;
        };
        let smaller = paths(&body).into_iter().find_map(|path| {
            let mut candidate = best.clone();
            candidate.steps[index].body = Some(without(&body, &path));
            ask(&candidate).then_some(candidate)
        });
        match smaller {
            Some(candidate) => *best = candidate,
            None => return,
        }
    }
}

/// The script without `count` steps from `at` on; references are renumbered, and those to a removed
/// step find nothing.
fn without_steps(script: &Script, at: usize, count: usize) -> Script {
    let end = (at + count).min(script.steps.len());
    let gone = |n: usize| (at..end).contains(&n);
    let moved = |n: usize| if n >= end { n - (end - at) } else { n };
    let kept = script.steps.iter().enumerate().filter(|(n, step)| {
        let orphan = matches!(step.watch, Some(Watch::Drain(of)) if gone(of));
        !gone(*n) && !orphan
    });
    let renumber = |text: &str| {
        fill(text, &|name| {
            let (number, rest) = name.split_once('.').unwrap_or((name, ""));
            match number.parse::<usize>() {
                Ok(n) if gone(n) => "none".to_owned(),
                Ok(n) => format!("${{{}.{rest}}}", moved(n)),
                Err(_) => format!("${{{name}}}"),
            }
        })
    };
    let steps = kept.map(|(_, step)| {
        let mut step: Step = step.clone();
        for text in [&mut step.path, &mut step.query] {
            *text = renumber(text);
        }
        step.text = step.text.as_deref().map(&renumber);
        step.body = step
            .body
            .map(|b| serde_json::from_str(&renumber(&b.to_string())).unwrap_or(b));
        if let Some(Watch::Drain(of)) = step.watch {
            step.watch = Some(Watch::Drain(moved(of)));
        }
        step
    });
    Script {
        about: script.about.clone(),
        steps: steps.collect(),
    }
}

/// The paths to every part of a tree, outermost first.
fn paths(value: &Value) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    let mut queue = vec![(Vec::new(), value)];
    while let Some((path, value)) = queue.pop() {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), v)).collect(),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(i, v)| (i.to_string(), v))
                .collect(),
            _ => Vec::new(),
        };
        for (key, child) in children {
            let mut inner: Vec<String> = path.clone();
            inner.push(key);
            out.push(inner.clone());
            queue.push((inner, child));
        }
    }
    out.sort_by_key(Vec::len);
    out
}

fn without(value: &Value, path: &[String]) -> Value {
    let mut out = value.clone();
    let Some((last, before)) = path.split_last() else {
        return out;
    };
    let mut at = Some(&mut out);
    for word in before {
        at = at.and_then(|v| match v {
            Value::Object(map) => map.get_mut(word),
            Value::Array(list) => word.parse::<usize>().ok().and_then(|i| list.get_mut(i)),
            _ => None,
        });
    }
    match at {
        Some(Value::Object(map)) => {
            map.remove(last);
        }
        Some(Value::Array(list)) => {
            if let Some(index) = last.parse::<usize>().ok().filter(|i| *i < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_matter_goes_and_references_follow() {
        let step = |n: u8| Step {
            path: format!("/{n}"),
            body: Some(json!({"n": n, "x": {"y": 1}})),
            ..Step::default()
        };
        let mut steps: Vec<Step> = (0..6).map(step).collect();
        steps.push(Step {
            path: "/${4.metadata.uid}".into(),
            ..Step::default()
        });
        let mut matters = |s: &Script| {
            let four = s
                .steps
                .iter()
                .position(|s| s.path == "/4" && s.body.as_ref().is_some_and(|b| b["x"]["y"] == 1));
            four.is_some_and(|n| {
                s.steps
                    .iter()
                    .any(|s| s.path == format!("/${{{n}.metadata.uid}}"))
            })
        };
        let small = shrink(
            &Script {
                about: String::new(),
                steps,
            },
            500,
            &mut matters,
        );
        assert_eq!(small.steps.len(), 2);
        assert_eq!(small.steps[0].body, Some(json!({"x": {"y": 1}})));
        assert_eq!(small.steps[1].path, "/${0.metadata.uid}");
    }
}
