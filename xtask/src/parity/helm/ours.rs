//! Our render of a case, in process, told as the command line tells it.
//!
//! Main function: [`answer`].

use super::{Answer, Case, Flags, collection::read_folder};
use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tiphys_render::helm::{
    HelmError, KubeVersion, Limits, ParsedChart, PrintOptions, RenderOptions, Sources,
    chart::Chart,
    log,
    values::{Settings, user_values},
};

pub fn answer(case: &Case, flags: &Flags) -> Answer {
    let mut warnings = Vec::new();
    let rendered = catch_unwind(AssertUnwindSafe(|| render(case, flags, &mut warnings)));
    let result = rendered.unwrap_or_else(|_| Err("panicked".to_owned()));
    let mut stderr: String = warnings.iter().map(|warning| log::line(warning) + "\n").collect();
    let (success, stdout) = match result {
        Ok(text) => (true, text),
        Err(why) => {
            stderr.extend(log::failure(&why).map(|line| line + "\n"));
            stderr.push_str(&format!("Error: {why}\n"));
            (false, String::new())
        }
    };
    Answer { success, stdout, stderr }
}

fn render(case: &Case, flags: &Flags, warnings: &mut Vec<String>) -> Result<String, String> {
    let limits = Limits::default();
    let files = read_folder(&case.chart).map_err(|e| e.to_string())?;
    let plain = |e: HelmError| e.to_string();
    let mut named = Vec::new();
    if let Some(name) = &case.values {
        let content = fs::read(case.chart.join(name)).map_err(|e| e.to_string())?;
        named.push((name.to_string_lossy().into_owned(), content));
    }
    let settings = Settings { files: named, set: flags.set.clone(), ..Settings::default() };
    let user = user_values(&settings, &|_| Err("no files here".to_owned()), &limits).map_err(plain)?;
    let loaded = Chart::from_folder(&files, "", &limits).map_err(plain)?;
    warnings.extend(loaded.warnings);
    let mut options = RenderOptions::new(Arc::new(sources));
    options.release.namespace.clone_from(&flags.namespace);
    options.release.is_upgrade = flags.is_upgrade;
    if let Some(version) = &flags.kube_version {
        options.capabilities.kube_version = KubeVersion::parse(version)?;
    }
    let rendered = ParsedChart::new(loaded.chart).render_telling(&user, &options, &limits, warnings).map_err(|e| failure(&e))?;
    rendered.print(&PrintOptions { include_crds: flags.include_crds, ..PrintOptions::default() }).map_err(plain)
}

/// Helm adds a hint to what fails while it renders.
fn failure(e: &HelmError) -> String {
    let hint = if e.while_rendering() { "\n\nUse --debug flag to render out invalid YAML" } else { "" };
    format!("{e}{hint}")
}

/// Chance and time of this machine.
fn sources() -> Sources {
    let mut state = jiff::Timestamp::now().as_nanosecond() as u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 33) as u8;
        }
    };
    Sources { random: Box::new(random), now: jiff::Timestamp::now(), zone: || jiff::tz::TimeZone::UTC }
}
