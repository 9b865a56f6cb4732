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
        is_partial(&self.name)
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
        let path = path_of(chart, above);
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
        for (name, file) in own_templates(chart, &path) {
            templates.push(Renderable {
                name,
                file,
                base_path: base_path.clone(),
                dot: dot.clone(),
            });
        }
        Value::Map(dot)
    }
}

fn is_partial(name: &str) -> bool {
    name.rsplit('/')
        .next()
        .is_some_and(|base| base.starts_with('_'))
}

fn path_of(chart: &Chart, above: Option<&str>) -> String {
    above.map_or_else(
        || chart.name().to_owned(),
        |above| format!("{above}/charts/{}", chart.name()),
    )
}

/// Those of one chart, with their names. Of a library only the partials count.
fn own_templates<'c>(chart: &'c Chart, path: &str) -> impl Iterator<Item = (String, &'c File)> {
    let named = move |file: &'c File| ([path, "/", file.name.as_str()].concat(), file);
    let is_library = chart.is_library();
    chart
        .templates
        .iter()
        .map(named)
        .filter(move |(name, _)| !is_library || is_partial(name))
}

/// The templates of a chart and its subcharts with their names, in no particular order.
pub fn templates(chart: &Chart) -> Vec<(String, &File)> {
    let mut found = Vec::new();
    let mut charts = vec![(chart, path_of(chart, None))];
    while let Some((chart, path)) = charts.pop() {
        found.extend(own_templates(chart, &path));
        let children = chart.dependencies.iter();
        charts.extend(children.map(|child| (child, path_of(child, Some(&path)))));
    }
    found
}

/// `.Chart`: Chart.yaml by the names of Go's fields.
fn about(chart: &Chart, root: bool) -> Value {
    const TYPE: Type = Type::Map(&Type::String);
    let metadata = &chart.metadata;
    // In Go the map for a missing key is nil, which is null in JSON.
    let annotations = if metadata.annotations.is_empty() {
        Map::nil(TYPE)
    } else {
        let annotations = metadata.annotations.iter();
        Map::of(
            TYPE,
            annotations.map(|(k, v)| (Str::from(k.as_str()), Value::from(v.as_str()))),
        )
    };
    let texts = metadata
        .texts()
        .map(|(name, text)| (name, Value::from(text)));
    let lists = metadata
        .lists()
        .map(|(name, list)| (name, Value::from_data(&list)));
    let others = [
        ("Annotations", Value::Map(annotations)),
        ("Deprecated", metadata.deprecated.into()),
        ("IsRoot", root.into()),
    ];
    let fields = texts.into_iter().chain(lists).chain(others);
    Value::Map(Map::of(
        MAP,
        fields.map(|(name, value)| (Str::from(name), value)),
    ))
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
