//! Renders as they are kept on disk: a line that tells about them, and a line for each object.
//!
//! Not kept are renders with errors, since the next attempt may succeed, and what plugins made:
//! some of them put secrets into manifests that are on no disk.

use super::{Remembered, remember};
use crate::{disk_cache::DiskCache, traced::OnDisk};
use serde::{Deserialize, Serialize};
use tiphys_apimachinery::Object;
use tiphys_render::{Rendered, SourceKind};

/// The kinds of sources whose renders are kept.
const KINDS: [SourceKind; 3] = [
    SourceKind::Directory,
    SourceKind::Helm,
    SourceKind::Kustomize,
];

#[derive(Serialize, Deserialize)]
struct About {
    kind: String,
    warnings: Vec<String>,
    objects: usize,
}

/// `basis`: what every render depends on besides its key.
pub(super) fn renders(cache: DiskCache, basis: String) -> OnDisk<Remembered> {
    OnDisk {
        cache,
        basis,
        write,
        read,
    }
}

fn write(render: &Remembered) -> Option<Vec<u8>> {
    let is_kept = KINDS.iter().any(|kind| kind.as_str() == render.kind);
    if !is_kept || !render.errors.is_empty() {
        return None;
    }
    let about = About {
        kind: render.kind.to_owned(),
        warnings: render.warnings.to_vec(),
        objects: render.objects.len(),
    };
    let mut text = serde_json::to_string(&about).ok()?;
    for object in render.objects.iter() {
        // No line break is left in JSON.
        text.push('\n');
        text.push_str(&object.json());
    }
    Some(text.into_bytes())
}

fn read(text: &[u8]) -> Option<Remembered> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let about: About = serde_json::from_slice(lines.next()?).ok()?;
    let objects: Vec<Object> = lines
        .map(|line| serde_json::from_slice(line).ok())
        .collect::<Option<_>>()?;
    if objects.len() != about.objects {
        return None;
    }
    Some(remember(Rendered {
        objects,
        errors: Vec::new(),
        warnings: about.warnings,
        kind: KINDS.into_iter().find(|kind| kind.as_str() == about.kind)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_render::{Failed, ManifestError};

    fn rendered(kind: SourceKind) -> Rendered {
        let object = |text: &str| {
            let value = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                "data": {"text": text}, "numbers": [0.1, -0.0, 1e300, u64::MAX, i64::MIN, null, true],
            });
            Object::from_value(value).expect("a map")
        };
        Rendered {
            objects: vec![object("one\ntwo\r\u{2028}"), object("")],
            errors: Vec::new(),
            warnings: vec!["a file\nwas left out".to_owned()],
            kind,
        }
    }

    #[test]
    fn renders_come_back_as_they_were() {
        for kind in KINDS {
            let before = remember(rendered(kind));
            let text = write(&before).expect("it is kept");
            let after = read(&text).expect("it is read");
            assert_eq!(after.objects, before.objects);
            assert_eq!(after.warnings, before.warnings);
            assert_eq!((after.kind, after.weight), (before.kind, before.weight));
            assert!(after.errors.is_empty());
        }
        let none = Rendered::default();
        let text = write(&remember(none)).expect("it is kept");
        assert_eq!(read(&text).map(|render| render.objects.len()), Some(0));
    }

    #[test]
    fn what_is_not_whole_is_not_read() {
        let text = write(&remember(rendered(SourceKind::Helm))).expect("it is kept");
        let last = text.iter().rposition(|byte| *byte == b'\n').expect("lines");
        for text in [&b""[..], b"{}", &text[..last], &text[..text.len() - 1]] {
            assert!(read(text).is_none());
        }
        let plugin = String::from_utf8(text).expect("text");
        let plugin = plugin.replacen("Helm", "Plugin", 1);
        assert!(read(plugin.as_bytes()).is_none());
    }

    #[test]
    fn errors_and_what_plugins_made_are_not_kept() {
        assert!(write(&remember(rendered(SourceKind::Plugin))).is_none());
        let error = ManifestError {
            failed: Failed::Unmarshal,
            file: "a.yaml".to_owned(),
            line: 1,
            message: "no map".to_owned(),
        };
        let broken = Rendered {
            errors: vec![error],
            ..rendered(SourceKind::Directory)
        };
        assert!(write(&remember(broken)).is_none());
    }
}
