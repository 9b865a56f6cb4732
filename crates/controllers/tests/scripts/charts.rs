//! The step `charts`: a chart repository of the script's own.

use crate::scripts::{play::Play, steps::Said};
use std::sync::atomic::Ordering;
use tiphys_testkit::charts::{FileServer, index, plain_chart};

/// Serves what the script published, as an index and archives.
pub struct ChartRepository {
    server: FileServer,
    /// Name, version and file.
    published: Vec<(String, String, String)>,
}

impl ChartRepository {
    pub fn new() -> Self {
        Self {
            server: FileServer::start(),
            published: Vec::new(),
        }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    fn publish(&mut self, name: &str, version: &str, files: &[(&str, &str)]) {
        let file = format!("{name}-{version}.tgz");
        self.server
            .serve(&format!("/{file}"), plain_chart(name, version, files));
        let entry = (name.to_owned(), version.to_owned(), file);
        self.published.push(entry);
        let entries: Vec<_> = self
            .published
            .iter()
            .map(|(name, version, file)| (name.as_str(), version.as_str(), file.as_str(), ""))
            .collect();
        self.server.serve("/index.yaml", index(&entries).as_str());
    }
}

impl Play<'_> {
    /// `charts NAME VERSION [COLOUR]` publishes a chart of one ConfigMap, `depends NAME VERSION`
    /// after it makes it depend on another one of this repository. `charts away` takes the index
    /// away.
    pub fn charts(&mut self, words: &[String]) -> Said {
        let repository = self.charts.get_or_insert_with(ChartRepository::new);
        let url = repository.url();
        match words
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            ["away"] => repository.server.remove("/index.yaml"),
            [name, version] => repository.publish(name, version, &[]),
            [name, version, colour] => {
                let values = format!("colour: {colour}\n");
                repository.publish(name, version, &[("values.yaml", &values)]);
            }
            [name, version, "depends", other, range] => {
                let chart = format!(
                    "apiVersion: v2\nname: {name}\nversion: {version}\ndependencies:\n- {{name: {other}, version: '{range}', repository: '{url}'}}\n"
                );
                repository.publish(name, version, &[("Chart.yaml", &chart)]);
            }
            _ => return Err("charts NAME VERSION [COLOUR | depends NAME VERSION]".into()),
        }
        self.ground.network.store(true, Ordering::Relaxed);
        self.name("$CHARTS", url);
        Ok(Vec::new())
    }
}
