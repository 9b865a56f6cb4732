//! The formats of releases before 1.0: `config.yaml` of the ConfigMap and `notifiers.yaml` of the
//! Secret.
//!
//! Main function: [`apply`].

use super::{Config, ConfigSource, Service};
use crate::notification::Template;
use crate::triggers::{Condition, Trigger};
use crate::typed::{self, TypeError, Typed};
use serde_json::{Map, Value as Json};

pub(super) fn apply(config: &mut Config, source: ConfigSource<'_>) {
    if let Some(text) = source
        .secret
        .get("notifiers.yaml")
        .filter(|t| !t.is_empty())
    {
        let text = String::from_utf8_lossy(text);
        if let Err(TypeError(message)) = services(config, &text) {
            config.problem("notifiers.yaml", message);
        }
    }
    if let Some(text) = source
        .config_map
        .get("config.yaml")
        .filter(|t| !t.is_empty())
        && let Err(TypeError(message)) = entries(config, text)
    {
        config.problem("config.yaml", message);
    }
}

fn services(config: &mut Config, text: &str) -> Typed<()> {
    let map = typed::map(&typed::document(text)?)?;
    for kind in ["email", "slack", "opsgenie", "grafana"] {
        if let Some(options) = typed::field(&map, kind).filter(|options| !options.is_null()) {
            let service = Service::from_json(kind, options);
            config.services.insert(kind.to_owned(), service);
        }
    }
    let webhooks = typed::field(&map, "webhook").map_or(Ok(Vec::new()), typed::list)?;
    for options in webhooks {
        let name = typed::text_field(&typed::map(&options)?, "name")?;
        let service = Service::from_json("webhook", &options);
        config.services.insert(name, service);
    }
    Ok(())
}

fn entries(config: &mut Config, text: &str) -> Typed<()> {
    let map = typed::map(&typed::document(text)?)?;
    let of = |name: &str| typed::field(&map, name).unwrap_or(&Json::Null);
    if !of("subscriptions").is_null() {
        return Err(TypeError(
            "subscriptions of config.yaml do not work; write them as the key subscriptions".into(),
        ));
    }
    config
        .context
        .extend(typed::text_map(of("context"))?.unwrap_or_default());
    for template in typed::list(of("templates"))? {
        self::template(config, &typed::map(&template)?)?;
    }
    for trigger in typed::list(of("triggers"))? {
        self::trigger(config, &typed::map(&trigger)?)?;
    }
    Ok(())
}

fn template(config: &mut Config, map: &Map<String, Json>) -> Typed<()> {
    let name = typed::text_field(map, "name")?;
    let (subject, body) = (
        typed::text_field(map, "subject")?,
        typed::text_field(map, "body")?,
    );
    let mut map = map.clone();
    if !subject.is_empty() {
        let mut email = typed::field(&map, "email").map_or(Ok(Map::new()), typed::map)?;
        email.insert("subject".into(), subject.into());
        map.insert("email".into(), email.into());
    }
    if !body.is_empty() {
        map.insert("message".into(), body.into());
    }
    let entry = Template::from_json(&name, &map);
    let done = entry.as_ref().map(drop).map_err(Clone::clone);
    config.templates.insert(name, entry);
    done
}

fn trigger(config: &mut Config, map: &Map<String, Json>) -> Typed<()> {
    let text = |name: &str| typed::text_field(map, name);
    let name = text("name")?;
    if typed::field(map, "enabled").map_or(Ok(false), typed::boolean)? {
        config.default_triggers.push(name.clone());
    }
    let mut conditions = match config.triggers.remove(&name) {
        Some(Ok(trigger)) => trigger.conditions,
        _ => Vec::new(),
    };
    let first = (!conditions.is_empty()).then(|| conditions.remove(0));
    let given = |value: String, old: Option<&String>| {
        if value.is_empty() {
            old.cloned().unwrap_or_default()
        } else {
            value
        }
    };
    let first = first.as_ref();
    let template = text("template")?;
    let send = if template.is_empty() {
        first.and_then(|first| first.send.clone())
    } else {
        Some(vec![template])
    };
    let condition = Condition::new(
        given(text("condition")?, first.map(|first| &first.when)),
        first
            .map(|first| first.once_per.clone())
            .unwrap_or_default(),
        given(text("description")?, first.map(|first| &first.description)),
        send,
    );
    let entry = condition.map(|condition| {
        conditions.insert(0, condition);
        Trigger { conditions }
    });
    let done = entry.as_ref().map(drop).map_err(Clone::clone);
    config.triggers.insert(name, entry);
    done
}
