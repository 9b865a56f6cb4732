//! Our render of a case, in process, with the output of the command line.
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
    lint::{LintOptions, Severity, lint},
    log,
    values::{Settings, Values, user_values},
};

pub fn answer(case: &Case, flags: &Flags) -> Answer {
    let mut warnings = Vec::new();
    let mut stdout = String::new();
    let run = if flags.lint { linted } else { render };
    let done = catch_unwind(AssertUnwindSafe(|| {
        run(case, flags, &mut stdout, &mut warnings)
    }));
    let result = done.unwrap_or_else(|_| Err("panicked".to_owned()));
    let mut stderr: String = warnings
        .iter()
        .map(|warning| log::line(warning) + "\n")
        .collect();
    if let Err(why) = &result {
        stderr.extend(log::failure(why).map(|line| line + "\n"));
        stderr.push_str(&format!("Error: {why}\n"));
    }
    Answer {
        success: result.is_ok(),
        stdout,
        stderr,
    }
}

/// The values of a case.
fn user(case: &Case, flags: &Flags, limits: &Limits) -> Result<Values, String> {
    let mut named = Vec::new();
    if let Some(name) = &case.values {
        let content = fs::read(case.chart.join(name)).map_err(|e| e.to_string())?;
        named.push((name.to_string_lossy().into_owned(), content));
    }
    let settings = Settings {
        files: named,
        set: flags.set.clone(),
        ..Settings::default()
    };
    user_values(&settings, &|_| Err("no files here".to_owned()), limits).map_err(|e| e.to_string())
}

pub(super) fn kube_version(flags: &Flags) -> Result<Option<KubeVersion>, String> {
    let invalid = |text: &String, why: String| format!("invalid kube version '{text}': {why}");
    flags
        .kube_version
        .as_ref()
        .map(|text| KubeVersion::parse(text).map_err(|why| invalid(text, why)))
        .transpose()
}

/// The output of `helm lint` for one chart.
fn linted(
    case: &Case,
    flags: &Flags,
    out: &mut String,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let limits = Limits::default();
    let files = read_folder(&case.chart).map_err(|e| e.to_string())?;
    let options = LintOptions {
        namespace: flags.namespace.clone(),
        kube_version: kube_version(flags)?,
        skip_schema_validation: false,
        shown: fs::canonicalize(&case.chart)
            .map_err(|e| e.to_string())?
            .display()
            .to_string(),
        sources: Arc::new(sources),
    };
    let linted = lint(&files, "", &user(case, flags, &limits)?, &options, &limits)
        .map_err(|e| e.to_string())?;
    warnings.extend(linted.warnings);
    out.push_str("==> Linting .\n");
    linted
        .findings
        .iter()
        .for_each(|finding| out.push_str(&format!("{finding}\n")));
    out.push('\n');
    if linted
        .findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
    {
        return Err("1 chart(s) linted, 1 chart(s) failed".to_owned());
    }
    out.push_str("1 chart(s) linted, 0 chart(s) failed\n");
    Ok(())
}

fn render(
    case: &Case,
    flags: &Flags,
    out: &mut String,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    // An invalid version is refused before anything is read.
    let version = kube_version(flags)?;
    let limits = Limits::default();
    let files = read_folder(&case.chart).map_err(|e| e.to_string())?;
    let plain = |e: HelmError| e.to_string();
    let user = user(case, flags, &limits)?;
    let loaded = Chart::from_folder(&files, "", &limits).map_err(plain)?;
    warnings.extend(loaded.warnings);
    let mut options = RenderOptions::new(Arc::new(sources));
    options.release.namespace.clone_from(&flags.namespace);
    options.release.is_upgrade = flags.is_upgrade;
    if let Some(version) = version {
        options.capabilities.kube_version = version;
    }
    options
        .capabilities
        .api_versions
        .extend(flags.api_versions.iter().cloned());
    let rendered = ParsedChart::new(loaded.chart)
        .render_telling(&user, &options, &limits, warnings)
        .map_err(|e| failure(&e))?;
    out.push_str(
        &rendered
            .print(&PrintOptions {
                include_crds: flags.include_crds,
                ..PrintOptions::default()
            })
            .map_err(plain)?,
    );
    Ok(())
}

/// Helm adds a hint to errors during rendering.
fn failure(e: &HelmError) -> String {
    let hint = if e.while_rendering() {
        "\n\nUse --debug flag to render out invalid YAML"
    } else {
        ""
    };
    format!("{e}{hint}")
}

/// Randomness and time of this machine.
fn sources() -> Sources {
    let mut state = jiff::Timestamp::now().as_nanosecond() as u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 33) as u8;
        }
    };
    Sources {
        random: Box::new(random),
        now: jiff::Timestamp::now(),
        zone: || jiff::tz::TimeZone::UTC,
    }
}
