//! The parts of templates, service by service.
//!
//! Main table: [`PARTS`].

use crate::template::{Renderer, Text};
use crate::typed::{self, TypeError, Typed};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// What a field of a part holds.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// A template; an empty result keeps what an earlier template gave.
    Kept,
    /// A template whose result always replaces an earlier one.
    Replaced,
    /// The same, with a template where none is given.
    Default(&'static str),
    /// The same, where the template's own text is kept beside it: the result has `$` before its
    /// name, and is not part of the document.
    Path(&'static str),
    /// Templates by name.
    Texts,
    /// Templates by name, of which at least one is needed; the name of the whole template is added
    /// as `alertname`.
    Labels,
    /// A list of templates.
    List,
    /// A list of maps of templates with these fields.
    Maps(&'static [&'static str]),
    /// A text that is not a template.
    Plain,
    Flag,
    /// A flag that is this where it is not given.
    FlagOr(bool),
    Strings,
    /// `Post`, `PostAndUpdate` or `Update`.
    Policy,
    /// A part within the part.
    Part(&'static [(&'static str, Field)]),
    /// Parts by name.
    Parts(&'static [(&'static str, Field)]),
}

pub(super) struct PartSpec {
    pub service: &'static str,
    pub fields: &'static [(&'static str, Field)],
}

use Field::{
    Default, Flag, FlagOr, Kept, Labels, List, Maps, Part, Parts, Path, Plain, Policy, Replaced,
    Strings, Texts,
};

const TEAMS: &[(&str, Field)] = &[
    ("template", Kept),
    ("title", Kept),
    ("summary", Kept),
    ("text", Kept),
    ("themeColor", Kept),
    ("facts", Kept),
    ("sections", Kept),
    ("potentialAction", Kept),
    // Of teams-workflows only; nothing reads it in the other one.
    ("adaptiveCard", Kept),
];

/// The repository and revision that GitHub and New Relic are told by default.
const REPO_URL: &str = "{{.app.spec.source.repoURL}}";
const REVISION: &str = "{{.app.status.operationState.syncResult.revision}}";
const COMMIT_MESSAGE: &str = "{{(call .repo.GetCommitMetadata .app.status.sync.revision).Message}}";
const COMMIT_AUTHOR: &str = "{{(call .repo.GetCommitMetadata .app.status.sync.revision).Author}}";

const GITHUB: &[(&str, Field)] = &[
    ("repoURLPath", Path(REPO_URL)),
    ("revisionPath", Path(REVISION)),
    (
        "status",
        Part(&[
            ("state", Replaced),
            ("label", Replaced),
            ("targetURL", Replaced),
        ]),
    ),
    (
        "deployment",
        Part(&[
            ("state", Replaced),
            ("environment", Replaced),
            ("environmentURL", Replaced),
            ("logURL", Replaced),
            ("requiredContexts", Strings),
            ("autoMerge", FlagOr(true)),
            ("transientEnvironment", FlagOr(false)),
            ("reference", Replaced),
        ]),
    ),
    (
        "pullRequestComment",
        Part(&[("content", Replaced), ("commentTag", Plain)]),
    ),
    (
        "checkRun",
        Part(&[
            ("name", Replaced),
            ("details_url", Replaced),
            ("status", Replaced),
            ("conclusion", Replaced),
            ("started_at", Replaced),
            ("completed_at", Replaced),
            (
                "output",
                Part(&[
                    ("title", Replaced),
                    ("summary", Replaced),
                    ("text", Replaced),
                ]),
            ),
        ]),
    ),
    (
        "repositoryDispatch",
        Part(&[("event_type", Replaced), ("client_payload", Replaced)]),
    ),
];

/// All parts, in the order in which they are rendered.
pub(super) const PARTS: &[PartSpec] = &[
    PartSpec {
        service: "awssqs",
        fields: &[("messageAttributes", Texts), ("messageGroupId", Kept)],
    },
    PartSpec {
        service: "gcppubsub",
        fields: &[("attributes", Texts)],
    },
    PartSpec {
        service: "slack",
        fields: &[
            ("username", Replaced),
            ("icon", Replaced),
            ("attachments", Replaced),
            ("blocks", Replaced),
            ("groupingKey", Replaced),
            ("notifyBroadcast", Flag),
            ("deliveryPolicy", Policy),
        ],
    },
    PartSpec {
        service: "mattermost",
        fields: &[("attachments", Replaced)],
    },
    PartSpec {
        service: "rocketchat",
        fields: &[("attachments", Replaced)],
    },
    PartSpec {
        service: "email",
        fields: &[("subject", Kept), ("body", Kept)],
    },
    PartSpec {
        service: "webhook",
        fields: &[(
            "*",
            Parts(&[("method", Plain), ("body", Replaced), ("path", Replaced)]),
        )],
    },
    PartSpec {
        service: "opsgenie",
        fields: &[
            ("description", Replaced),
            ("priority", Replaced),
            ("alias", Replaced),
            ("note", Replaced),
            ("actions", List),
            ("tags", List),
            ("details", Texts),
            ("entity", Replaced),
            ("visibleTo", Maps(&["type", "name", "id", "username"])),
            ("user", Replaced),
        ],
    },
    PartSpec {
        service: "github",
        fields: GITHUB,
    },
    PartSpec {
        service: "teams",
        fields: TEAMS,
    },
    PartSpec {
        service: "teams-workflows",
        fields: TEAMS,
    },
    PartSpec {
        service: "alertmanager",
        fields: &[
            ("labels", Labels),
            ("annotations", Texts),
            ("generatorURL", Default(REPO_URL)),
        ],
    },
    PartSpec {
        service: "googlechat",
        fields: &[("cards", Kept), ("cardsV2", Kept), ("threadKey", Kept)],
    },
    PartSpec {
        service: "pagerduty",
        fields: &[
            ("title", Replaced),
            ("body", Replaced),
            ("urgency", Replaced),
            ("priorityId", Replaced),
        ],
    },
    PartSpec {
        service: "pagerdutyv2",
        fields: &[
            ("summary", Replaced),
            ("severity", Replaced),
            ("source", Replaced),
            ("component", Replaced),
            ("group", Replaced),
            ("class", Replaced),
            ("url", Replaced),
            ("dedupKey", Replaced),
        ],
    },
    PartSpec {
        service: "newrelic",
        fields: &[
            ("revision", Default(REVISION)),
            ("changelog", Default(COMMIT_MESSAGE)),
            ("description", Replaced),
            ("user", Default(COMMIT_AUTHOR)),
        ],
    },
];

/// A part whose texts are parsed.
pub(super) struct Compiled(Vec<(String, Value)>);

enum Value {
    Text { text: Text, kept: bool },
    Path(Text, String),
    Texts(BTreeMap<String, Text>),
    Labels(BTreeMap<String, Text>, String),
    List(Vec<Text>),
    Maps(Vec<BTreeMap<&'static str, Text>>),
    Fixed(Json),
    Part(Compiled),
    Parts(BTreeMap<String, Compiled>),
}

impl Compiled {
    pub fn parse(spec: &PartSpec, name: &str, value: &Json) -> Typed<Self> {
        Self::fields(spec.fields, name, value)
            .map_err(|TypeError(message)| TypeError(format!("{}: {message}", spec.service)))
    }

    fn fields(fields: &[(&str, Field)], name: &str, value: &Json) -> Typed<Self> {
        let map = typed::map(value)?;
        let mut compiled = Vec::new();
        for (own, field) in fields {
            if let Parts(inner) = field {
                compiled.push(((*own).to_owned(), Value::parts(inner, name, &map)?));
                continue;
            }
            let given = typed::field(&map, own).unwrap_or(&Json::Null);
            let value = Value::parse(*field, name, given)
                .map_err(|TypeError(message)| TypeError(format!("{own}: {message}")))?;
            compiled.extend(value.map(|value| ((*own).to_owned(), value)));
        }
        Ok(Self(compiled))
    }

    /// Renders the fields onto those of an earlier template.
    pub fn apply(&self, renderer: &mut Renderer, onto: &mut Map<String, Json>) -> Typed<()> {
        for (name, value) in &self.0 {
            value.apply(renderer, name, onto)?;
        }
        Ok(())
    }
}

impl Value {
    fn parse(field: Field, name: &str, given: &Json) -> Typed<Option<Self>> {
        let text = |text: &str| Text::parse(name, text);
        Ok(Some(match field {
            Kept | Replaced => Value::Text {
                text: text(&typed::text(given)?)?,
                kept: matches!(field, Kept),
            },
            Default(default) => {
                let given = typed::text(given)?;
                Value::Text {
                    text: text(if given.is_empty() { default } else { &given })?,
                    kept: false,
                }
            }
            Path(default) => {
                let given = typed::text(given)?;
                let source = if given.is_empty() {
                    default.to_owned()
                } else {
                    given
                };
                Value::Path(text(&source)?, source)
            }
            Texts | Labels => {
                let texts = typed::text_map(given)?.unwrap_or_default();
                let texts = texts
                    .into_iter()
                    .map(|(key, value)| Ok((key, text(&value)?)))
                    .collect::<Typed<BTreeMap<_, _>>>()?;
                match field {
                    Labels => Value::Labels(texts, name.to_owned()),
                    _ if texts.is_empty() => return Ok(None),
                    _ => Value::Texts(texts),
                }
            }
            List => match typed::texts(given)? {
                None => return Ok(None),
                Some(texts) => {
                    Value::List(texts.iter().map(|one| text(one)).collect::<Typed<_>>()?)
                }
            },
            Maps(fields) => {
                let items = typed::list(given)?;
                if items.is_empty() {
                    return Ok(None);
                }
                Value::Maps(
                    items
                        .iter()
                        .map(|i| maps(fields, name, i))
                        .collect::<Typed<_>>()?,
                )
            }
            Plain => Value::Fixed(typed::text(given)?.into()),
            Flag => Value::Fixed(typed::boolean(given)?.into()),
            FlagOr(default) if given.is_null() => Value::Fixed(default.into()),
            FlagOr(_) => Value::Fixed(typed::boolean(given)?.into()),
            Strings => Value::Fixed(typed::texts(given)?.map_or(Json::Null, Json::from)),
            Policy => Value::Fixed(policy(given)?.into()),
            Part(_) if given.is_null() => return Ok(None),
            Part(inner) => Value::Part(Compiled::fields(inner, name, given)?),
            Parts(_) => return Ok(None),
        }))
    }

    fn parts(inner: &[(&str, Field)], name: &str, map: &Map<String, Json>) -> Typed<Self> {
        map.iter()
            .map(|(own, value)| Ok((own.clone(), Compiled::fields(inner, name, value)?)))
            .collect::<Typed<_>>()
            .map(Value::Parts)
    }

    fn apply(
        &self,
        renderer: &mut Renderer,
        name: &str,
        onto: &mut Map<String, Json>,
    ) -> Typed<()> {
        let value = match self {
            Value::Text { text, kept } => {
                let rendered = renderer.render(text)?;
                if *kept && rendered.is_empty() {
                    return Ok(());
                }
                rendered.into()
            }
            Value::Path(text, source) => {
                onto.insert(format!("${name}"), renderer.render(text)?.into());
                source.clone().into()
            }
            Value::Texts(texts) => {
                let mut all = Map::new();
                for (key, text) in texts {
                    all.insert(key.clone(), renderer.render(text)?.into());
                }
                all.into()
            }
            Value::Labels(texts, _) if texts.is_empty() => {
                return Err(TypeError("at least one label pair required".into()));
            }
            Value::Labels(texts, template) => {
                let mut all = Map::new();
                for (key, text) in texts {
                    all.insert(key.clone(), renderer.render(text)?.into());
                }
                all.entry("alertname")
                    .or_insert_with(|| template.as_str().into());
                all.into()
            }
            Value::List(texts) => {
                let rendered = texts.iter().map(|text| renderer.render(text));
                rendered.collect::<Typed<Vec<String>>>()?.into()
            }
            Value::Maps(items) => {
                let mut all = Vec::new();
                for item in items {
                    let mut map = Map::new();
                    for (key, text) in item {
                        map.insert((*key).to_owned(), renderer.render(text)?.into());
                    }
                    all.push(Json::Object(map));
                }
                all.into()
            }
            Value::Fixed(value) => value.clone(),
            Value::Part(compiled) => {
                let mut inner = inner(onto, name);
                compiled.apply(renderer, &mut inner)?;
                inner.into()
            }
            Value::Parts(parts) => {
                for (own, compiled) in parts {
                    let mut map = Map::new();
                    compiled.apply(renderer, &mut map)?;
                    onto.insert(own.clone(), map.into());
                }
                return Ok(());
            }
        };
        onto.insert(name.to_owned(), value);
        Ok(())
    }
}

fn inner(onto: &Map<String, Json>, name: &str) -> Map<String, Json> {
    onto.get(name)
        .and_then(Json::as_object)
        .cloned()
        .unwrap_or_default()
}

fn maps(fields: &[&'static str], name: &str, item: &Json) -> Typed<BTreeMap<&'static str, Text>> {
    let map = typed::map(item)?;
    fields
        .iter()
        .map(|field| Ok((*field, Text::parse(name, &typed::text_field(&map, field)?)?)))
        .collect()
}

/// How often Slack is written to; what is unknown counts as `Post`.
fn policy(given: &Json) -> Typed<&'static str> {
    Ok(match typed::text(given)?.as_str() {
        "PostAndUpdate" => "PostAndUpdate",
        "Update" => "Update",
        _ => "Post",
    })
}
