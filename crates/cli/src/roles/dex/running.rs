//! `rundex`: Dex runs with what the settings say. Main function: [`run`].

use super::{
    CERTIFICATE, KEY, RunArgs,
    installation::Installation,
    process::{Dex, pause},
    warn_of,
};
use crate::{private, roles::controller::terminated};
use anyhow::Context as _;
use std::{fs, io, path::Path, sync::Arc, time::Duration};
use tiphys_rpc::{Tls, TlsRules, self_signed};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Where the Secret argocd-dex-server-tls is mounted.
const MOUNTED: &str = "/tls";
/// One change often comes as several events.
const SETTLE: Duration = Duration::from_millis(200);

/// Runs until stopped.
pub async fn run(args: RunArgs) -> anyhow::Result<()> {
    let mut dex = Dex::new(args.config_dir.join("dex.yaml"))?;
    let options = args.common.options(&args.config_dir);
    if options.certificate.is_some() {
        let folder = args.config_dir.clone();
        let written =
            tokio::task::spawn_blocking(move || write_certificate(Path::new(MOUNTED), &folder));
        written.await??;
    }
    let installation = Installation::connect(&args.common.kube, options).await?;
    let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
    installation.follow(&changed, &stop);
    tracing::info!(
        namespace = installation.namespace,
        "ArgoCD Dex Server begins"
    );
    let result = tokio::select! {
        // Signals are heard before there is a process that would be left behind.
        biased;
        result = terminated() => result,
        () = keep(&installation, &changed, &mut dex) => Ok(()),
    };
    stop.cancel();
    dex.stop().await;
    result
}

/// Keeps Dex running with the current configuration, for ever.
async fn keep(installation: &Installation, changed: &Notify, dex: &mut Dex) {
    let (mut wait, mut failures) = (Some(Duration::ZERO), 0);
    loop {
        tokio::select! {
            () = changed.notified() => tokio::time::sleep(SETTLE).await,
            ended = dex.ended() => {
                let status = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
                let pause = dex.pause();
                tracing::warn!(status, seconds = pause.as_secs(), "dex ended; it is started again");
                wait = Some(pause);
                continue;
            }
            () = after(wait) => {}
        }
        wait = match update(installation, dex).await {
            Ok(()) => {
                failures = 0;
                // An event does not end the pause after Dex has ended by itself.
                dex.rest()
            }
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "dex stays as it is; trying again"
                );
                failures += 1;
                let pause = pause(failures);
                Some(dex.rest().map_or(pause, |rest| rest.min(pause)))
            }
        };
    }
}

async fn after(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Reads the settings, and runs what they say. If they cannot be used, Dex goes on as before.
async fn update(installation: &Installation, dex: &mut Dex) -> anyhow::Result<()> {
    let configuration = match installation.configuration().await {
        Ok(configuration) => configuration,
        Err(e) => {
            let goes_on = dex.go_on().await;
            return Err(both(e, goes_on));
        }
    };
    let text = configuration.as_ref().map(|found| found.text());
    if text.is_none() {
        tracing::info!("dex is not configured");
    } else if dex.has(text.as_deref()) {
        tracing::info!("dex config unmodified");
    } else {
        tracing::info!("dex config modified. (re)starting dex");
        configuration.iter().for_each(warn_of);
    }
    dex.take(text).await;
    dex.go_on().await
}

/// Why the settings cannot be used, and why Dex does not go on either.
fn both(settings: anyhow::Error, goes_on: anyhow::Result<()>) -> anyhow::Error {
    match goes_on {
        Ok(()) => settings,
        Err(dex) => settings.context(format!("dex does not run either ({dex:#})")),
    }
}

/// Writes the certificate that is mounted, or a new one.
fn write_certificate(mounted: &Path, folder: &Path) -> anyhow::Result<()> {
    let (certificate, key) = match given(mounted)? {
        Some(given) => given,
        None => self_signed(["localhost", "dexserver"].map(str::to_owned).to_vec())?,
    };
    for (name, text) in [(CERTIFICATE, certificate), (KEY, key)] {
        let path = folder.join(name);
        private::replace(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn given(folder: &Path) -> anyhow::Result<Option<(String, String)>> {
    let read = |name: &str| {
        let path = folder.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    };
    let (Some(chain), Some(key)) = (read(CERTIFICATE)?, read(KEY)?) else {
        return Ok(None);
    };
    let tls = Tls::Pem {
        chain: chain.clone(),
        key: key.clone(),
    };
    let usable = tls.with(&TlsRules::default());
    usable.with_context(|| format!("the certificate in {} is of no use", folder.display()))?;
    Ok(Some((chain, key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn no_error_hides_the_other() {
        let settings = || anyhow::anyhow!("connectors must be a list");
        let said = |goes_on| format!("{:#}", both(settings(), goes_on));
        assert_eq!(said(Ok(())), "connectors must be a list");
        let said = said(Err(anyhow::anyhow!("cannot start dex")));
        let expected = "dex does not run either (cannot start dex): connectors must be a list";
        assert_eq!(said, expected);
    }

    #[test]
    fn the_mounted_certificate_is_used_else_a_new_one() {
        let scratch = tempfile::tempdir().expect("a folder");
        let (mounted, folder) = (scratch.path().join("tls"), scratch.path().join("out"));
        fs::create_dir(&folder).expect("made");
        let written = || {
            let read = |name| fs::read_to_string(folder.join(name)).expect(name);
            (read(CERTIFICATE), read(KEY))
        };
        write_certificate(&mounted, &folder).expect("a new one");
        let first = written();
        assert!(first.0.starts_with("-----BEGIN CERTIFICATE-----"));
        let mode = fs::metadata(folder.join(KEY)).expect("it is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);

        fs::create_dir(&mounted).expect("made");
        let (certificate, key) = self_signed(vec!["dex.example.com".into()]).expect("made");
        fs::write(mounted.join(CERTIFICATE), &certificate).expect("written");
        // Without its key it is none.
        write_certificate(&mounted, &folder).expect("a new one");
        assert_ne!(written().0, certificate);
        fs::write(mounted.join(KEY), &key).expect("written");
        write_certificate(&mounted, &folder).expect("the mounted one");
        assert_eq!(written(), (certificate, key));

        fs::write(mounted.join(KEY), &first.1).expect("written");
        let refused = write_certificate(&mounted, &folder).expect_err("another key");
        assert!(refused.to_string().contains("is of no use"), "{refused:#}");
    }
}
