//! The files of a chart archive: gzip and tar, with Helm's rules for names.
//!
//! Main function: [`files`]. Links are refused; Helm would read them as empty files.

use super::{File, Meter, without_mark};
use crate::{
    helm::{HelmError, Limits},
    tar::{Allowance, Kind, Tar, TarFault},
};
use flate2::bufread::MultiGzDecoder;
use tiphys_gocompat::text::quote;

const GZIP_HEADER: usize = 10;

/// What remains of the limits of a chart.
struct Allowed<'a> {
    meter: &'a mut Meter,
    limits: &'a Limits,
}

impl Allowance for Allowed<'_> {
    type Error = HelmError;

    fn entry(&mut self) -> Result<(), HelmError> {
        self.meter.file(self.limits)
    }

    fn bytes(&mut self, bytes: u64) -> Result<(), HelmError> {
        self.meter.data(bytes, self.limits)
    }
}

impl From<TarFault> for HelmError {
    fn from(fault: TarFault) -> Self {
        Self::chart(fault.to_string())
    }
}

pub(super) fn files(
    bytes: &[u8],
    limits: &Limits,
    meter: &mut Meter,
) -> Result<Vec<File>, HelmError> {
    match bytes {
        [] => return Err(HelmError::chart("EOF")),
        [0x1f, 0x8b, ..] if bytes.len() >= GZIP_HEADER => {}
        _ if bytes.len() < GZIP_HEADER => return Err(HelmError::chart("unexpected EOF")),
        _ => return Err(HelmError::chart("gzip: invalid header")),
    }
    let mut tar = Tar::new(MultiGzDecoder::new(bytes), Allowed { meter, limits });
    let mut files = Vec::new();
    while let Some(entry) = tar.next()? {
        if entry.kind == Kind::Folder {
            tar.skip(entry.size)?;
            continue;
        }
        let name = file_name(&entry.name)?;
        if entry.kind != Kind::File {
            return Err(HelmError::chart(format!(
                "chart contains {}, which is a link or no regular file",
                quote(&entry.name)
            )));
        }
        if entry.size > tar.allowance().meter.bytes {
            return Err(HelmError::chart(format!(
                "decompressed chart is larger than the maximum size {}",
                limits.bytes
            )));
        }
        if entry.size > limits.file_bytes {
            let (name, limit) = (quote(&entry.name), limits.file_bytes);
            return Err(HelmError::chart(format!(
                "decompressed chart file {name} is larger than the maximum file size {limit}"
            )));
        }
        let data = tar.data(entry.size)?;
        files.push(File {
            name,
            data: without_mark(&data).into(),
        });
    }
    if files.is_empty() {
        return Err(HelmError::chart("no files in chart archive"));
    }
    Ok(files)
}

/// The path inside the chart: without the first folder, which is the chart itself.
fn file_name(full: &str) -> Result<String, HelmError> {
    let delimiter = if full.contains('\\') { '\\' } else { '/' };
    let (top, rest) = full.split_once(delimiter).unwrap_or((full, ""));
    let path = rest.replace(delimiter, "/");
    if path.starts_with('/') {
        return Err(HelmError::chart("chart illegally contains absolute paths"));
    }
    let name = clean(&path);
    if name == "." {
        return Err(HelmError::chart(format!(
            "chart illegally contains content outside the base directory: {}",
            quote(full)
        )));
    }
    if name.starts_with("..") {
        return Err(HelmError::chart(
            "chart illegally references parent directory",
        ));
    }
    if matches!(name.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()) {
        return Err(HelmError::chart("chart contains illegally named files"));
    }
    if top == "Chart.yaml" {
        return Err(HelmError::chart("chart yaml not in base directory"));
    }
    Ok(name)
}

/// Go's `path.Clean` for a relative path.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}
