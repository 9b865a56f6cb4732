//! In which order RollingSync would sync the Applications of a set. Main type: [`Rollout`].

use crate::output::table;
use serde::Serialize;
use tiphys_api::{Application, application_set::ApplicationSet};
use tiphys_appset::rolling::{Steps, at_once, is_reversed, is_rolling, steps_of};

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rollout {
    steps: Vec<Step>,
    /// Applications that no step selects.
    without_step: Vec<String>,
    /// Whether Applications are deleted in the reverse order.
    deletion_reversed: bool,
    /// Why it would not work as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    /// How many are synced at a time; all if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_once: Option<i64>,
    applications: Vec<String>,
}

impl Rollout {
    /// `None`: the set has another strategy.
    pub fn of(set: &ApplicationSet, apps: &[Application]) -> Option<Self> {
        if !is_rolling(set) {
            return None;
        }
        let sorted = Steps::of(set, apps);
        let names = apps.iter().map(|app| &app.metadata.name);
        let without = names.filter(|name| !sorted.step_of.contains_key(*name));
        let without_step: Vec<String> = without.cloned().collect();
        let mut issues = sorted.issues;
        let mut steps = Vec::new();
        for (index, (step, names)) in steps_of(set).iter().zip(sorted.names).enumerate() {
            // Applications that an earlier step has are synced with that.
            let own = |name: &String| sorted.step_of.get(name) == Some(&index);
            let applications: Vec<String> = names.into_iter().filter(own).collect();
            // As the controller counts: Applications in no step are in the total of the first.
            let others = if index == 0 { without_step.len() } else { 0 };
            let total = i64::try_from(applications.len() + others).unwrap_or(i64::MAX);
            steps.push(Step {
                at_once: at_once(step, total, index, &mut issues),
                applications,
            });
        }
        Some(Self {
            steps,
            without_step,
            deletion_reversed: is_reversed(set),
            problem: issues.message(),
        })
    }

    pub fn text(&self) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let at_once = match (step.at_once, step.applications.len()) {
                (Some(..=0), _) => "none: by hand".to_owned(),
                (Some(most), total) if usize::try_from(most).is_ok_and(|most| most < total) => {
                    format!("{most} of {total}")
                }
                _ => "all".to_owned(),
            };
            let names = step.applications.join(", ");
            rows.push(vec![(index + 1).to_string(), at_once, names]);
        }
        if !self.without_step.is_empty() {
            let names = self.without_step.join(", ");
            rows.push(vec!["none".to_owned(), "never".to_owned(), names]);
        }
        let mut text = "\nRollingSync, where applicationsetcontroller.enable.progressive.syncs is \
                        true:\n"
            .to_owned();
        text += &table::table(&["STEP", "AT ONCE", "APPLICATIONS"], rows);
        if self.deletion_reversed {
            text += "Applications are deleted from the last step to the first.\n";
        }
        if let Some(problem) = &self.problem {
            text += &format!("{problem}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn app(name: &str, env: &str) -> Application {
        let app = json!({"metadata": {"name": name, "labels": {"env": env}}});
        serde_json::from_value(app).expect("an Application")
    }

    fn set(strategy: &Value) -> ApplicationSet {
        serde_json::from_value(json!({"spec": {"strategy": strategy}})).expect("a set")
    }

    fn step(env: &[&str], max: &Value) -> Value {
        let expressions = [json!({"key": "env", "operator": "In", "values": env})];
        match max.is_null() {
            true => json!({"matchExpressions": expressions}),
            false => json!({"matchExpressions": expressions, "maxUpdate": max}),
        }
    }

    #[test]
    fn applications_are_shown_by_their_steps() {
        let steps = [
            step(&["dev"], &Value::Null),
            step(&["qa", "dev"], &json!("50%")),
            step(&["prod"], &json!(0)),
        ];
        let strategy = json!({
            "type": "RollingSync", "deletionOrder": "Reverse", "rollingSync": {"steps": steps},
        });
        let apps = [
            app("a", "dev"),
            app("b", "qa"),
            app("c", "qa"),
            app("d", "prod"),
            app("e", "other"),
        ];
        let rollout = Rollout::of(&set(&strategy), &apps).expect("a rollout");
        let told = serde_json::to_value(&rollout).expect("JSON");
        assert_eq!(
            told["steps"],
            json!([
                {"applications": ["a"]}, {"atOnce": 1, "applications": ["b", "c"]},
                {"atOnce": 0, "applications": ["d"]},
            ])
        );
        assert_eq!(told["withoutStep"], json!(["e"]));
        assert_eq!(
            rollout.text(),
            "\nRollingSync, where applicationsetcontroller.enable.progressive.syncs is true:\n\
             STEP  AT ONCE        APPLICATIONS\n\
             1     all            a\n\
             2     1 of 2         b, c\n\
             3     none: by hand  d\n\
             none  never          e\n\
             Applications are deleted from the last step to the first.\n\
             Application 'a' is selected by multiple steps: (1-2)\n"
        );
    }

    #[test]
    fn applications_in_no_step_count_with_the_first() {
        let steps = [step(&["dev"], &json!("50%")), step(&["qa"], &json!("50%"))];
        let strategy = json!({"type": "RollingSync", "rollingSync": {"steps": steps}});
        let apps = [
            ("a", "dev"),
            ("b", "dev"),
            ("c", "qa"),
            ("d", "qa"),
            ("e", "x"),
            ("f", "x"),
        ];
        let apps = apps.map(|(name, env)| app(name, env));
        let rollout = Rollout::of(&set(&strategy), &apps).expect("a rollout");
        let told = rollout.steps.iter().map(|step| step.at_once);
        assert_eq!(told.collect::<Vec<_>>(), [Some(2), Some(1)]);
    }

    #[test]
    fn what_is_wrong_with_steps_is_told_and_other_strategies_have_none() {
        assert_eq!(Rollout::of(&set(&json!({"type": "AllAtOnce"})), &[]), None);
        let steps = [step(&["dev"], &json!("some"))];
        let strategy = json!({"type": "RollingSync", "rollingSync": {"steps": steps}});
        let rollout = Rollout::of(&set(&strategy), &[app("a", "dev"), app("b", "dev")]);
        let text = rollout.expect("a rollout").text();
        assert!(text.contains("1     1 of 2   a, b\n"), "{text}");
        assert!(
            text.ends_with("Step 1 has an invalid maxUpdate value: some\n"),
            "{text}"
        );
    }
}
