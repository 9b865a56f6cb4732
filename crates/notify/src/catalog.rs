//! The triggers and templates that an installation begins with.
//!
//! Main functions: [`triggers`] and [`templates`]. Their names are those that Argo CD's catalogue
//! has, so that annotations written for it work.

/// A trigger of the catalogue.
struct Ready {
    trigger: &'static str,
    description: &'static str,
    when: &'static str,
    once_per: &'static str,
    template: &'static str,
    /// What the message says about the Application.
    message: &'static str,
    /// For cards of chats.
    color: &'static str,
}

const REVISION: &str = "app.status.operationState?.syncResult?.revision";

const ALL: [Ready; 8] = [
    Ready {
        trigger: "on-created",
        description: "An Application appears.",
        when: "true",
        once_per: "app.metadata.name",
        template: "app-created",
        message: "has been created.",
        color: "#0DADEA",
    },
    Ready {
        trigger: "on-deleted",
        description: "An Application is being deleted.",
        when: "app.metadata.deletionTimestamp != nil",
        once_per: "app.metadata.name",
        template: "app-deleted",
        message: "is being deleted.",
        color: "#909090",
    },
    Ready {
        trigger: "on-deployed",
        description: "A revision is synced and healthy. Once per revision.",
        when: "app.status.operationState?.phase == 'Succeeded' and \
               app.status.health.status == 'Healthy' and \
               (not time.Parse(app.status.health.lastTransitionTime)\
               .Add(1 * time.Minute).Before(time.Parse(app.status.operationState.finishedAt)) or \
               time.Parse(app.status.health.lastTransitionTime)\
               .Before(time.Parse(app.status.operationState.startedAt)))",
        once_per: REVISION,
        template: "app-deployed",
        message: "runs revision {{.app.status.sync.revision}}.",
        color: "#18BE52",
    },
    Ready {
        trigger: "on-health-degraded",
        description: "The health becomes Degraded. Once per revision.",
        when: "app.status.health.status == 'Degraded'",
        once_per: REVISION,
        template: "app-health-degraded",
        message: "is degraded.",
        color: "#F4C030",
    },
    Ready {
        trigger: "on-sync-failed",
        description: "A sync fails. Once per revision.",
        when: "app.status.operationState?.phase in ['Error', 'Failed']",
        once_per: REVISION,
        template: "app-sync-failed",
        message: "could not be synced: {{.app.status.operationState.message}}",
        color: "#E96D76",
    },
    Ready {
        trigger: "on-sync-running",
        description: "A sync begins. Once per revision.",
        when: "app.status.operationState?.phase == 'Running'",
        once_per: REVISION,
        template: "app-sync-running",
        message: "is being synced since {{.app.status.operationState.startedAt}}.",
        color: "#0DADEA",
    },
    Ready {
        trigger: "on-sync-status-unknown",
        description: "The sync status can not be determined. Once per revision.",
        when: "app.status.sync.status == 'Unknown'",
        once_per: REVISION,
        template: "app-sync-status-unknown",
        message: "has an unknown sync status.\
                  {{range .app.status.conditions}} {{.message}}{{end}}",
        color: "#E96D76",
    },
    Ready {
        trigger: "on-sync-succeeded",
        description: "A sync succeeds. Once per revision.",
        when: "app.status.operationState?.phase == 'Succeeded'",
        once_per: REVISION,
        template: "app-sync-succeeded",
        message: "was synced at {{.app.status.operationState.finishedAt}}.",
        color: "#18BE52",
    },
];

/// The keys and values of the ConfigMap for the triggers.
pub fn triggers() -> Vec<(String, String)> {
    let entry = |ready: &Ready| {
        let quoted = |text: &str| tiphys_gocompat::json::quote(text);
        let value = format!(
            "- description: {}\n  oncePer: {}\n  send:\n  - {}\n  when: {}\n",
            quoted(ready.description),
            quoted(ready.once_per),
            ready.template,
            quoted(ready.when),
        );
        (format!("trigger.{}", ready.trigger), value)
    };
    ALL.iter().map(entry).collect()
}

/// The keys and values of the ConfigMap for the templates.
pub fn templates() -> Vec<(String, String)> {
    let entry = |ready: &Ready| {
        let Ready { message, color, .. } = ready;
        let name = "{{.app.metadata.name}}";
        let link = "{{.context.argocdUrl}}/applications/{{.app.metadata.name}}";
        let value = format!(
            "message: |\n  Application {name} {message}\n  {link}\n\
             email:\n  subject: Application {name} {{{{.app.status.sync.status}}}}\n\
             slack:\n  attachments: |\n    [{{\"title\": {{{{.app.metadata.name | toJson}}}}, \
             \"title_link\": \"{link}\", \"color\": \"{color}\", \"fields\": [\
             {{\"title\": \"Sync\", \"value\": \"{{{{.app.status.sync.status}}}}\", \
             \"short\": true}}, \
             {{\"title\": \"Health\", \"value\": \"{{{{.app.status.health.status}}}}\", \
             \"short\": true}}]}}]\n\
             teams:\n  themeColor: \"{color}\"\n  title: Application {name}\n  facts: |\n    \
             [{{\"name\": \"Sync\", \"value\": \"{{{{.app.status.sync.status}}}}\"}}, \
             {{\"name\": \"Health\", \"value\": \"{{{{.app.status.health.status}}}}\"}}]\n  \
             potentialAction: |\n    [{{\"@type\": \"OpenUri\", \"name\": \"Open\", \"targets\": \
             [{{\"os\": \"default\", \"uri\": \"{link}\"}}]}}]\n"
        );
        (format!("template.{}", ready.template), value)
    };
    ALL.iter().map(entry).collect()
}
