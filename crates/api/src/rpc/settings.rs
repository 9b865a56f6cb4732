//! Messages of cluster.SettingsService.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsQuery {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub url: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dex_config: Option<DexConfig>,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config: Option<OIDCConfig>,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_label_key: String,
    #[prost(btree_map = "string, message", tag = "5")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resource_overrides: BTreeMap<String, crate::resource::ResourceOverride>,
    #[prost(bool, tag = "6")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub status_badge_enabled: bool,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub google_analytics: Option<GoogleAnalyticsConfig>,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize_options: Option<crate::repository::KustomizeOptions>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<Help>,
    #[prost(message, repeated, tag = "10")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub plugins: Vec<Plugin>,
    #[prost(bool, tag = "11")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub user_logins_disabled: bool,
    #[prost(message, repeated, tag = "12")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub config_management_plugins: Vec<crate::resource::ConfigManagementPlugin>,
    #[prost(string, repeated, tag = "13")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kustomize_versions: Vec<String>,
    #[prost(string, tag = "14")]
    #[serde(
        rename = "uiCssURL",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ui_css_url: String,
    #[prost(string, tag = "15")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ui_banner_content: String,
    #[prost(string, tag = "16")]
    #[serde(
        rename = "uiBannerURL",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ui_banner_url: String,
    #[prost(string, tag = "17")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub password_pattern: String,
    #[prost(string, tag = "18")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tracking_method: String,
    #[prost(bool, tag = "19")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub ui_banner_permanent: bool,
    #[prost(string, tag = "20")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ui_banner_position: String,
    #[prost(string, tag = "21")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub status_badge_root_url: String,
    #[prost(bool, tag = "22")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub exec_enabled: bool,
    #[prost(string, tag = "23")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub controller_namespace: String,
    #[prost(bool, tag = "24")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub apps_in_any_namespace_enabled: bool,
    #[prost(bool, tag = "25")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub impersonation_enabled: bool,
    #[prost(string, tag = "26")]
    #[serde(
        rename = "installationID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub installation_id: String,
    #[prost(string, repeated, tag = "27")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub additional_urls: Vec<String>,
    #[prost(bool, tag = "28")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub hydrator_enabled: bool,
    #[prost(bool, tag = "29")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub sync_with_replace_allowed: bool,
    #[prost(string, tag = "30")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ui_login_button_text: String,
    #[prost(bool, tag = "31")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub resource_view_enabled: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoogleAnalyticsConfig {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "trackingID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tracking_id: String,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub anonymize_users: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsPluginsResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub plugins: Vec<Plugin>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Help {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub chat_url: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub chat_text: String,
    #[prost(btree_map = "string, string", tag = "3")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub binary_urls: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plugin {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DexConfig {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub connectors: Vec<Connector>,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "dexAuthConnectorID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub dex_auth_connector_id: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Connector {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub id: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OIDCConfig {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub issuer: String,
    #[prost(string, tag = "3")]
    #[serde(
        rename = "clientID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub client_id: String,
    #[prost(string, tag = "4")]
    #[serde(
        rename = "cliClientID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub cli_client_id: String,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub scopes: Vec<String>,
    #[prost(btree_map = "string, message", tag = "6")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub id_token_claims: BTreeMap<String, Claim>,
    #[prost(bool, tag = "7")]
    #[serde(
        rename = "enablePKCEAuthentication",
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub enable_pkce_authentication: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Claim {
    #[prost(bool, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub essential: bool,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub value: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: Vec<String>,
}
