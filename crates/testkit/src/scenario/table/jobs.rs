//! Jobs and CronJobs: success, failure, back-off, indexes, policies, suspension.

use super::*;

const J: &str = "jobs/w";

fn job(words: &[&str], spec: Value) -> Value {
    let base = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE, "command": words}]}}}});
    with(base, json!({"spec": spec}))
}

fn condition(index: usize) -> &'static str {
    ["/status/conditions/0/type", "/status/conditions/1/type"][index]
}

pub fn all() -> Vec<Scenario> {
    [ends(), changes(), policies(), crons()].concat()
}

fn ends() -> Vec<Scenario> {
    let run = |words: &[&str], spec: Value, end: &str| {
        vec![
            create(job(words, spec)),
            until(J, condition(1), end),
            rest(),
        ]
    };
    vec![
        scenario("job-succeeds", run(&["true"], json!({}), "Complete")),
        scenario("job-without-command", run(&[], json!({}), "Complete")),
        scenario(
            "job-several",
            run(
                &["sleep", "1"],
                json!({"completions": 3, "parallelism": 2}),
                "Complete",
            ),
        ),
        scenario(
            "job-fails",
            run(&["false"], json!({"backoffLimit": 0}), "Failed"),
        ),
        scenario(
            "job-backs-off",
            run(&["false"], json!({"backoffLimit": 1}), "Failed"),
        ),
        scenario(
            "job-deadline",
            run(
                &["sleep", "60"],
                json!({"activeDeadlineSeconds": 2}),
                "Failed",
            ),
        ),
        scenario(
            "job-indexed",
            run(
                &["true"],
                json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3}),
                "Complete",
            ),
        ),
        scenario(
            "job-indexed-fails",
            run(
                &["false"],
                json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0}),
                "Failed",
            ),
        ),
        scenario(
            "job-work-queue",
            run(&["true"], json!({"parallelism": 2}), "Complete"),
        ),
        scenario(
            "job-bad-image",
            vec![
                create(job(
                    &["true"],
                    json!({"template": {"spec": {"containers": [{"name": "c", "image": BAD}]}}}),
                )),
                until(J, "/status/active", 1),
                rest(),
            ],
        ),
        scenario(
            "job-ttl",
            vec![
                create(job(&["true"], json!({"ttlSecondsAfterFinished": 2}))),
                until(J, condition(1), "Complete"),
                gone(J),
                rest(),
            ],
        ),
    ]
}

fn changes() -> Vec<Scenario> {
    vec![
        scenario(
            "job-suspended",
            vec![
                create(job(&["true"], json!({"suspend": true}))),
                until(J, condition(0), "Suspended"),
                Step::Note("suspended"),
                patch(J, json!({"spec": {"suspend": false}})),
                until(J, "/status/succeeded", 1),
                until(J, "/status/ready", 0),
                rest(),
            ],
        ),
        scenario(
            "job-suspended-while-running",
            vec![
                create(job(
                    &["sleep", "60"],
                    json!({"parallelism": 2, "completions": 2}),
                )),
                until(J, "/status/ready", 2),
                patch(J, json!({"spec": {"suspend": true}})),
                until(J, "/status/active", Value::Null),
                rest(),
            ],
        ),
        scenario(
            "job-parallelism-lowered",
            vec![
                create(job(
                    &["sleep", "60"],
                    json!({"parallelism": 3, "completions": 3}),
                )),
                until(J, "/status/ready", 3),
                patch(J, json!({"spec": {"parallelism": 1}})),
                until(J, "/status/active", 1),
                rest(),
            ],
        ),
        scenario(
            "job-managed-by-another",
            vec![
                create(job(&["true"], json!({"managedBy": "example.com/mine"}))),
                Step::Pass(1),
                rest(),
            ],
        ),
        scenario(
            "job-deleted-foreground",
            vec![
                create(job(&["sleep", "60"], json!({}))),
                until(J, "/status/ready", 1),
                delete(J, "Foreground"),
                gone(J),
                rest(),
            ],
        ),
        scenario(
            "job-orphaned",
            vec![
                create(job(&["sleep", "60"], json!({}))),
                until(J, "/status/ready", 1),
                delete(J, "Orphan"),
                gone(J),
                rest(),
            ],
        ),
    ]
}

fn policies() -> Vec<Scenario> {
    let success = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "successPolicy": {"rules": [{"succeededCount": 1}]}});
    let rules = |action: &str| json!({"backoffLimit": 3, "podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}});
    let index = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0});
    vec![
        scenario(
            "job-restarting-fails",
            vec![
                create(job(
                    &["false"],
                    json!({"backoffLimit": 0, "template": {"spec": {"restartPolicy": "OnFailure"}}}),
                )),
                until(J, condition(1), "Failed"),
                rest(),
            ],
        ),
        scenario(
            "job-indexed-grows",
            vec![
                create(job(
                    &["sleep", "60"],
                    json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}),
                )),
                until(J, "/status/ready", 2),
                patch(J, json!({"spec": {"completions": 3, "parallelism": 3}})),
                until(J, "/status/ready", 3),
                rest(),
            ],
        ),
        scenario(
            "job-success-policy",
            vec![
                create(job(&["true"], success)),
                until(J, condition(1), "Complete"),
                rest(),
            ],
        ),
        scenario(
            "job-failure-policy-fails",
            vec![
                create(job(&["false"], rules("FailJob"))),
                until(J, condition(1), "Failed"),
                rest(),
            ],
        ),
        scenario(
            "job-max-failed-indexes",
            vec![
                create(job(&["false"], index)),
                until(J, condition(1), "Failed"),
                rest(),
            ],
        ),
    ]
}

fn crons() -> Vec<Scenario> {
    let cron = |spec: Value| {
        let base = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "w"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE, "command": ["true"]}]}}}}}});
        create(with(base, json!({"spec": spec})))
    };
    let sleeper = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": IMAGE, "command": ["sleep", "600"]}]}}}});
    let long =
        |policy: &str| cron(json!({"concurrencyPolicy": policy, "jobTemplate": sleeper.clone()}));
    // The next minute may have just passed: wait for two at most.
    let ran = || until("cronjobs/w", "/status/active", Value::Null);
    vec![
        scenario(
            "cronjob-runs",
            vec![
                cron(json!({})),
                Step::Pass(61),
                ran(),
                patch("cronjobs/w", json!({"spec": {"suspend": true}})),
                rest(),
            ],
        ),
        scenario(
            "cronjob-forbids",
            vec![
                long("Forbid"),
                Step::Pass(125),
                patch("cronjobs/w", json!({"spec": {"suspend": true}})),
                rest(),
            ],
        ),
        scenario(
            "cronjob-replaces",
            vec![
                long("Replace"),
                Step::Pass(125),
                patch("cronjobs/w", json!({"spec": {"suspend": true}})),
                rest(),
            ],
        ),
        scenario(
            "cronjob-suspended",
            vec![cron(json!({"suspend": true})), Step::Pass(1), rest()],
        ),
        scenario(
            "cronjob-not-yet",
            vec![
                cron(json!({"schedule": "0 0 1 1 *", "timeZone": "Asia/Tokyo"})),
                Step::Pass(1),
                rest(),
            ],
        ),
    ]
}
