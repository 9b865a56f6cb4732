//! What a token says about itself. Main type: [`Claims`]. Nothing is verified here: the server does.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

/// The claims of a JSON Web Token.
pub struct Claims(Value);

impl Claims {
    /// None if the text is no such token.
    pub fn read(token: &str) -> Option<Self> {
        let part = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&part).ok()?;
        claims.is_object().then_some(Self(claims))
    }

    /// A text; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    /// A time in Unix seconds.
    pub fn second(&self, name: &str) -> Option<i64> {
        let value = &self.0[name];
        // Other issuers write fractions.
        #[expect(clippy::cast_possible_truncation, reason = "seconds of this age fit")]
        value.as_i64().or_else(|| value.as_f64().map(|s| s as i64))
    }

    /// Whether the token has expired by this machine's clock.
    pub fn is_over(&self) -> bool {
        let now = jiff::Timestamp::now().as_second();
        self.second("exp").is_some_and(|exp| exp <= now)
    }

    /// The user: who an identity provider says it is, or the subject.
    pub fn user(&self) -> &str {
        let federated = self.0["federated_claims"]["user_id"].as_str();
        let federated = federated.filter(|user| !user.is_empty());
        federated.unwrap_or_else(|| self.text("sub"))
    }

    /// The name to show: e-mail, name or user.
    pub fn display_name(&self) -> &str {
        let given = [self.text("email"), self.text("name")];
        let given = given.into_iter().find(|text| !text.is_empty());
        given.unwrap_or_else(|| self.user())
    }
}

/// A token with these claims, for tests.
#[cfg(test)]
pub fn token(claims: &str) -> String {
    format!("x.{}.y", URL_SAFE_NO_PAD.encode(claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_a_token_is_for() {
        for (claims, name) in [
            (r#"{"sub":"admin:login"}"#, "admin:login"),
            (r#"{"sub":"x","email":"a@example.com"}"#, "a@example.com"),
            (r#"{"sub":"x","name":"A","email":""}"#, "A"),
            (r#"{"sub":"x","federated_claims":{"user_id":"u"}}"#, "u"),
            ("{}", ""),
        ] {
            let claims = Claims::read(&token(claims)).expect("a token");
            assert_eq!(claims.display_name(), name);
        }
        for text in ["", "x", "a.b.c", &token("[]"), &token("no JSON")] {
            assert!(Claims::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn times_may_be_fractions() {
        let claims = Claims::read(&token(r#"{"iat":1700000000,"exp":1700000001.5,"nbf":"x"}"#));
        let claims = claims.expect("a token");
        let seconds = ["iat", "exp", "nbf", "jti"].map(|name| claims.second(name));
        assert_eq!(
            seconds,
            [Some(1_700_000_000), Some(1_700_000_001), None, None]
        );
    }
}
