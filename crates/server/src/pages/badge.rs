//! `/api/badge`: an image with the health and sync status of an Application, or of the worst of a
//! project's. Main function: [`handle`]. Public where argocd-cm has `statusbadge.enabled`, and says
//! nothing of Applications elsewhere.

use super::{is_label, is_subdomain};
use crate::{parameters::Parameters, state::State};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use std::sync::Arc;
use tiphys_api::Application;
use tiphys_engine::spec;
use tiphys_rpc::text;
use tonic::body::Body;

pub const PATH: &str = "/api/badge";
const UNKNOWN: &str = "Unknown";
const NOT_FOUND: &str = "Not Found";
const WIDTH: usize = 131;
const WIDTH_WITH_REVISION: usize = 192;
const WIDTH_WITH_FULL_REVISION: usize = 400;
const HEALTH_WIDTH: usize = 77;
const ROW: usize = 20;
const SHORT_REVISION: usize = 7;
const LOGO: &str = concat!(
    r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 14 14" fill="none" stroke="white">"#,
    r#"<circle cx="7" cy="7" r="3.5"/><path d="M7 0v14M0 7h14M2 2l10 10M12 2L2 12"/></svg>"#,
);

/// What is shown of Applications.
struct Shown {
    health: String,
    sync: String,
    name: String,
    revision: String,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            health: UNKNOWN.to_owned(),
            sync: UNKNOWN.to_owned(),
            name: String::new(),
            revision: String::new(),
        }
    }
}

/// Answers with the image.
pub async fn handle(state: Arc<State>, request: Request<Body>) -> Response<Body> {
    let mut asked = Parameters::of(&request.into_parts().0);
    let settings = state.settings.get().await;
    let is_enabled = settings.is_ok_and(|settings| settings.flag("statusbadge.enabled"));
    if !is_enabled {
        asked.0.clear();
    }
    let Ok(shown) = shown(&state, &asked) else {
        let mut answer = text(StatusCode::BAD_REQUEST, "");
        answer.headers_mut().remove(header::CONTENT_TYPE);
        return answer;
    };
    let mut answer = Response::new(Body::new(Full::from(image(&shown, &asked))));
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "image/svg+xml"),
        // It must not show what has been.
        (header::CACHE_CONTROL, "private, no-store"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// A name that no object can have.
struct BadName;

fn shown(state: &State, asked: &Parameters) -> Result<Shown, BadName> {
    let ours = state.options.namespace.as_str();
    let namespace = asked.first("namespace").unwrap_or(ours);
    let name = asked.first("name");
    if !is_label(namespace) || name.is_some_and(|name| !is_subdomain(name)) {
        return Err(BadName);
    }
    let not_found = || Shown {
        health: NOT_FOUND.to_owned(),
        sync: String::new(),
        ..Shown::default()
    };
    if !state.reach.permits(namespace) {
        return Ok(not_found());
    }
    let mut shown = Shown::default();
    if let Some(name) = name {
        match state.reach.app_for_badge(namespace, name) {
            Some(app) => shown = of_app(&app),
            None => return Ok(not_found()),
        }
    }
    let projects: Vec<&str> = asked.all("project").collect();
    if projects
        .iter()
        .any(|p| !p.is_empty() && !is_label(&p.to_lowercase()))
    {
        return Err(BadName);
    }
    if !projects.is_empty() {
        let apps = state.reach.apps_for_badge(namespace);
        let of_projects = apps
            .iter()
            .filter(|app| projects.contains(&spec::project_name(app)));
        of_many(&mut shown, of_projects);
    }
    Ok(shown)
}

fn of_app(app: &Application) -> Shown {
    let state = app.status.operation_state.as_ref();
    let result = state.and_then(|state| state.sync_result.as_ref());
    let revision = result.map(|result| result.revisions.first().unwrap_or(&result.revision));
    Shown {
        health: app.status.health.status.clone(),
        sync: app.status.sync.status.clone(),
        name: app.metadata.name.clone(),
        revision: revision.cloned().unwrap_or_default(),
    }
}

/// The worst of several.
fn of_many<'a>(shown: &mut Shown, apps: impl Iterator<Item = &'a Arc<Application>>) {
    let mut count = 0_usize;
    for app in apps {
        count += 1;
        if app.status.sync.status != "Synced" {
            "OutOfSync".clone_into(&mut shown.sync);
        }
        if app.status.health.status != "Healthy" {
            "Degraded".clone_into(&mut shown.health);
        }
    }
    if count > 0 && shown.health != "Degraded" {
        "Healthy".clone_into(&mut shown.health);
    }
    if count > 0 && shown.sync != "OutOfSync" {
        "Synced".clone_into(&mut shown.sync);
    }
}

const GREY: &str = "rgb(41, 52, 61)";
const PURPLE: &str = "rgb(115, 31, 77)";
const GREEN: &str = "rgb(11, 97, 42)";

fn health_colour(health: &str) -> &'static str {
    match health {
        "Degraded" => "rgb(167, 46, 38)",
        "Healthy" => GREEN,
        "Progressing" => "rgb(16, 61, 102)",
        "Missing" | UNKNOWN | NOT_FOUND => PURPLE,
        _ => GREY,
    }
}

fn sync_colour(sync: &str) -> &'static str {
    match sync {
        "Synced" => GREEN,
        "OutOfSync" => "rgb(189, 115, 0)",
        UNKNOWN => PURPLE,
        _ => GREY,
    }
}

/// The SVG, in Argo CD's measures: pages that embed badges depend on them.
fn image(shown: &Shown, asked: &Parameters) -> String {
    let not_found = shown.health == NOT_FOUND;
    let with_revision = asked.flag("revision");
    let shows_revision = with_revision && !not_found && !shown.revision.is_empty();
    let is_full = asked.flag("keepFullRevision");
    let revision = match shown.revision.get(..SHORT_REVISION) {
        _ if !shows_revision => "",
        Some(short) if !is_full => short,
        _ => &shown.revision,
    };
    let mut width = match (shows_revision, revision.len()) {
        (false, _) => WIDTH,
        (true, ..=SHORT_REVISION) if !is_full => WIDTH_WITH_REVISION,
        _ => WIDTH_WITH_FULL_REVISION,
    };
    let asked_width = asked.first("width").and_then(|width| width.parse().ok());
    width = asked_width.unwrap_or(width);
    let mut sync_width = 57;
    let mut revision_at = 1560;
    let mut revision_width = 62;
    let is_adjusted = shows_revision || asked_width.is_some();
    if is_adjusted && with_revision {
        revision_at = WIDTH * 10 + (revision.len() + 1) * 62 / 2;
        revision_width = width.saturating_sub(WIDTH);
    } else if is_adjusted {
        sync_width = width.saturating_sub(HEALTH_WIDTH);
    }
    let has_title = asked.flag("showAppName") && !shown.name.is_empty();
    let (mut title_width, mut row, mut text_row, mut logo_row) = (0, 0, 130, 2);
    if has_title {
        title_width = width.max(shown.name.len() * 6);
        width = title_width;
        sync_width = width.saturating_sub(HEALTH_WIDTH);
        (row, text_row, logo_row) = (ROW, 330, 22);
    }
    let height = row + ROW;
    let title = if has_title { &*shown.name } else { "" };
    let (health, sync) = (&shown.health, &shown.sync);
    let left = health_colour(health);
    let right = match not_found {
        true => PURPLE,
        false => sync_colour(sync),
    };
    let (display, revision_colour) = match shows_revision {
        true => ("inline", right),
        false => ("none", "#4c1"),
    };
    let revision = match revision {
        "" => String::new(),
        revision => format!("({revision})"),
    };
    let gap = if is_adjusted || has_title { "  " } else { " " };
    let logo = BASE64_STANDARD.encode(LOGO);
    let (transform, spacing) = (r#"transform="scale(.1)""#, r#"letter-spacing="-2""#);
    format!(
        r##"<svg width="{width}"{gap}height="{height}" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" >

    <clipPath id="roundedCorners">
        <rect width="100%" height="100%" rx="3" opacity="1" />
    </clipPath>

    <g clip-path="url(#roundedCorners)">
        <rect id="titleRect" fill="#29343D" x="0" y="0" width="{title_width}" height="20" />
        <rect id="leftRect" fill="{left}"  x="0" y="{row}" width="76" height="20" />
        <rect id="rightRect" fill="{right}"  x="77" y="{row}" width="{sync_width}" height="20" />
        <rect id="revisionRect" fill="{revision_colour}" x="131" y="{row}" width="{revision_width}" height="20" display="{display}"/>
    </g>

    <g fill="#fff" text-anchor="middle" font-family="DejaVu Sans, sans-serif" font-size="90">
       <image x="5" y="{logo_row}" width="14" height="14" xlink:href="data:image/svg+xml;base64,{logo}"/>
        <text id="titleText" x="100" y="130" {transform} text-anchor="start" {spacing}>{title}</text>
        <text id="leftText" x="475" y="{text_row}" {transform} text-anchor="middle" {spacing}>{health}</text>
        <text id="rightText" x="1035" y="{text_row}" {transform} text-anchor="middle" {spacing}>{sync}</text>
        <text id="revisionText" x="{revision_at}" y="{text_row}" font-family="monospace" {transform} font-size="100" letter-spacing="2" display="{display}">{revision}</text>
    </g>
</svg>
"##
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_found_is_in_the_colours_of_the_unknown() {
        let shown = Shown {
            health: NOT_FOUND.into(),
            ..Shown::default()
        };
        let image = image(&shown, &Parameters(Vec::new()));
        for part in ["leftRect", "rightRect"] {
            let part = format!(r#"id="{part}" fill="{PURPLE}""#);
            assert!(image.contains(&part), "{part}\n{image}");
        }
    }

    #[test]
    fn a_badge_has_the_revision_and_the_name() {
        let shown = Shown {
            health: "Healthy".into(),
            sync: "Synced".into(),
            name: "payments".into(),
            revision: "0123456789".into(),
        };
        let asked = |pairs: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            image(&shown, &Parameters(pairs.iter().map(owned).collect()))
        };
        for (parameters, parts) in [
            (
                &[][..],
                [r#"width="131" height="20""#, r#"display="none"></text>"#],
            ),
            (
                &[("revision", "true")],
                [
                    r#"width="192"  height"#,
                    r#"display="inline">(0123456)</text>"#,
                ],
            ),
            (
                &[("revision", "True"), ("keepFullRevision", "true")],
                [r#"width="400"  height"#, ">(0123456789)<"],
            ),
            (
                &[("showAppName", "true"), ("width", "200")],
                [r#"width="200"  height="40""#, ">payments<"],
            ),
        ] {
            let image = asked(parameters);
            for part in parts {
                assert!(image.contains(part), "{parameters:?} {part}\n{image}");
            }
        }
    }
}
