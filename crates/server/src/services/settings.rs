//! cluster.SettingsService.

use crate::{ApiError, auth::Caller, state::State};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    constants::INSTANCE_LABEL,
    repository::KustomizeOptions,
    rpc::settings::{
        GoogleAnalyticsConfig, Help, Plugin, Settings, SettingsPluginsResponse, SettingsQuery,
    },
};
use tiphys_gocompat::yaml;

/// The login page needs some of the settings before login.
pub async fn get(
    state: Arc<State>,
    caller: Caller,
    _: SettingsQuery,
) -> Result<Settings, ApiError> {
    // Who has just changed a setting expects to see it; strangers must not cause reads at will.
    let settings = if caller.logged_in() {
        state.settings.fresh().await?
    } else {
        state.settings.get().await?
    };
    let or = |value: &str, default: &str| {
        if value.is_empty() {
            default.to_owned()
        } else {
            value.to_owned()
        }
    };
    let text = |key: &str| settings.value(key).to_owned();
    let binaries: BTreeMap<String, String> = settings
        .config
        .iter()
        .filter_map(|(key, url)| {
            key.strip_prefix("help.download.")
                .map(|platform| (platform.to_owned(), url.clone()))
        })
        .collect();
    let mut reply = Settings {
        url: text("url"),
        app_label_key: or(
            settings.value("application.instanceLabelKey"),
            INSTANCE_LABEL,
        ),
        tracking_method: or(
            settings.value("application.resourceTrackingMethod"),
            "annotation",
        ),
        installation_id: text("installationID"),
        status_badge_enabled: settings.flag("statusbadge.enabled"),
        status_badge_root_url: text("statusbadge.url"),
        additional_urls: additional_urls(settings.value("additionalUrls")),
        kustomize_options: Some(KustomizeOptions {
            build_options: Some(text("kustomize.buildOptions")),
            binary_path: Some(String::new()),
            ..Default::default()
        }),
        kustomize_versions: kustomize_versions(&settings.config),
        google_analytics: Some(GoogleAnalyticsConfig {
            tracking_id: text("ga.trackingid"),
            anonymize_users: settings
                .config
                .get("ga.anonymizeusers")
                .is_none_or(|v| v != "false"),
        }),
        help: Some(Help {
            chat_url: text("help.chatUrl"),
            chat_text: or(settings.value("help.chatText"), ""),
            binary_urls: binaries,
        }),
        user_logins_disabled: !settings
            .accounts
            .values()
            .any(|account| account.enabled && account.can("login")),
        ui_css_url: text("ui.cssurl"),
        ui_login_button_text: text("ui.loginButtonText"),
        exec_enabled: settings.flag("exec.enabled"),
        hydrator_enabled: state.options.hydrator_enabled,
        sync_with_replace_allowed: settings.replace_allowed && state.options.replace_allowed,
        apps_in_any_namespace_enabled: state.reach.permits_others(),
        impersonation_enabled: settings.flag("application.sync.impersonation.enabled"),
        resource_view_enabled: true,
        ..Default::default()
    };
    if let Ok(Some(config)) = &settings.sso {
        (reply.oidc_config, reply.dex_config) = config.shown();
    }
    if caller.logged_in() || state.options.auth_disabled {
        reply.resource_overrides = settings.overrides().clone();
        reply.ui_banner_content = text("ui.bannercontent");
        reply.ui_banner_url = text("ui.bannerurl");
        reply.ui_banner_permanent = settings.flag("ui.bannerpermanent");
        reply.ui_banner_position = text("ui.bannerposition");
        reply
            .controller_namespace
            .clone_from(&state.options.namespace);
        reply.password_pattern = or(
            settings.value("passwordPattern"),
            crate::auth::PASSWORD_PATTERN,
        );
    }
    Ok(reply)
}

/// Argo CD leaves out a list that cannot be read.
fn additional_urls(text: &str) -> Vec<String> {
    let limits = yaml::Limits::default();
    let parsed = yaml::parse_document(text, &limits, yaml::Duplicates::LastWins);
    let urls = parsed
        .ok()
        .and_then(|urls| serde_json::from_value(urls).ok());
    urls.unwrap_or_default()
}

/// The names of further versions of kustomize, by which Applications may choose one.
fn kustomize_versions(config: &BTreeMap<String, String>) -> Vec<String> {
    let names = config.keys().filter_map(|key| {
        let of_path = key.strip_prefix("kustomize.path.");
        of_path.or_else(|| key.strip_prefix("kustomize.version."))
    });
    names.map(str::to_owned).collect()
}

pub async fn plugins(
    state: Arc<State>,
    _: Caller,
    _: SettingsQuery,
) -> Result<SettingsPluginsResponse, ApiError> {
    let names = state
        .reach
        .plugins()
        .await
        .map_err(|e| e.context("failed to list sidecar plugins from reposerver"))?;
    let plugins = names.into_iter().map(|name| Plugin { name });
    Ok(SettingsPluginsResponse {
        plugins: plugins.collect(),
    })
}
