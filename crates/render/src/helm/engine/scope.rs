//! What each template can see: `.Values`, `.Chart`, `.Files` and the rest, for every chart.
//!
//! Main types: [`Scopes`] and [`Renderable`]. As in Helm, the templates of one chart share their
//! dot, and a subchart's values are part of its parent's values: what one template changes, the
//! next one sees.

use super::LooseTemplate;
use super::table::Table;
use super::{capabilities, files::Files};
use crate::helm::RenderOptions;
use crate::helm::chart::{Chart, File};
use crate::helm::values;
use std::sync::Arc;
use tiphys_gocompat::template::{MAP, Map, Str, Type, Value};

/// A template and the scope in which it is executed.
pub struct Renderable<'c> {
    /// Path, beginning with the chart's name.
    pub name: String,
    pub file: &'c File,
    /// `.Template.BasePath`: the `templates` folder of its chart.
    base_path: Arc<str>,
    dot: Map,
}

impl<'c> Renderable<'c> {
    pub fn loose(template: &LooseTemplate, file: &'c File) -> Self {
        let entries = template
            .dot
            .iter()
            .map(|(key, value)| (Str::from(key.as_str()), Value::from_data(value)));
        Self {
            name: template.name.clone(),
            file,
            base_path: template.base_path.as_str().into(),
            dot: Map::of(MAP, entries),
        }
    }

    pub fn is_partial(&self) -> bool {
        self.name
            .rsplit('/')
            .next()
            .is_some_and(|base| base.starts_with('_'))
    }

    /// The dot, with `.Template` set to this template.
    pub fn dot(&self) -> Value {
        let template = Map::of(
            MAP,
            [
                (Str::from("Name"), self.name.as_str().into()),
                (Str::from("BasePath"), (&*self.base_path).into()),
            ],
        );
        put(&self.dot, "Template", Table::value(template));
        Table::value(self.dot.clone())
    }
}

/// What all charts of a render share.
pub struct Scopes {
    release: Value,
    capabilities: Value,
}

impl Scopes {
    pub fn new(options: &RenderOptions) -> Self {
        let release = &options.release;
        let fields = [
            ("Name", Value::from(release.name.as_str())),
            ("Namespace", release.namespace.as_str().into()),
            ("IsUpgrade", release.is_upgrade.into()),
            ("IsInstall", (!release.is_upgrade).into()),
            ("Revision", Value::int(release.revision)),
            ("Service", "Helm".into()),
        ];
        Self {
            release: map(fields),
            capabilities: capabilities::value(&options.capabilities),
        }
    }

    /// The templates of a chart and its subcharts, in no particular order.
    pub fn collect<'c>(&self, chart: &'c Chart, values: &values::Values) -> Vec<Renderable<'c>> {
        let mut templates = Vec::new();
        let values = values
            .iter()
            .map(|(key, value)| (Str::from(key.as_str()), Value::from_data(value)));
        self.chart(chart, Map::of(MAP, values), None, &mut templates);
        templates
    }

    /// The dot of a chart; `above` is the path of its parent.
    fn chart<'c>(
        &self,
        chart: &'c Chart,
        values: Map,
        above: Option<&str>,
        templates: &mut Vec<Renderable<'c>>,
    ) -> Value {
        let path = above.map_or_else(
            || chart.name().to_owned(),
            |above| format!("{above}/charts/{}", chart.name()),
        );
        let subcharts = Map::new();
        let dot = Map::new();
        put(&dot, "Chart", about(chart, above.is_none()));
        put(&dot, "Files", Files::value(&chart.files));
        put(&dot, "Release", self.release.clone());
        put(&dot, "Capabilities", self.capabilities.clone());
        put(&dot, "Values", Table::value(values.clone()));
        put(&dot, "Subcharts", Value::Map(subcharts.clone()));
        for child in &chart.dependencies {
            let own = match values.get(child.name()) {
                Some(Value::Map(own)) => own,
                _ => Map::new(),
            };
            let inner = self.chart(child, own, Some(&path), templates);
            put(&subcharts, child.name(), inner);
        }
        let base_path: Arc<str> = format!("{path}/templates").into();
        for file in &chart.templates {
            let template = Renderable {
                name: format!("{path}/{}", file.name),
                file,
                base_path: base_path.clone(),
                dot: dot.clone(),
            };
            if !chart.is_library() || template.is_partial() {
                templates.push(template);
            }
        }
        Value::Map(dot)
    }
}

/// `.Chart`: Chart.yaml by the names of Go's fields.
fn about(chart: &Chart, root: bool) -> Value {
    let about = Value::from_data(&chart.metadata.to_value());
    if let Value::Map(fields) = &about {
        put(fields, "IsRoot", root.into());
        const TYPE: Type = Type::Map(&Type::String);
        let annotations = chart
            .metadata
            .annotations
            .iter()
            .map(|(k, v)| (Str::from(k.as_str()), Value::from(v.as_str())));
        // In Go the map for a missing key is nil, which is null in JSON.
        let none = chart.metadata.annotations.is_empty();
        put(
            fields,
            "Annotations",
            Value::Map(if none {
                Map::nil(TYPE)
            } else {
                Map::of(TYPE, annotations)
            }),
        );
    }
    about
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(Map::of(
        MAP,
        fields.map(|(name, value)| (Str::from(name), value)),
    ))
}

fn put(map: &Map, key: &str, value: Value) {
    // None of these maps is nil.
    let _ = map.insert(key, value);
}
