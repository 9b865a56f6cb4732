//! Mails. Main function: [`send`].

use tiphys_notify::send::Mail;

/// # Errors
/// Always: there is no client for SMTP yet.
pub(super) fn send(mail: &Mail) -> Result<(), String> {
    Err(format!(
        "mails can not be sent yet; {} was not asked",
        mail.host
    ))
}
