//! What a condition of a set says, before it has a time. Main type: [`Condition`].

pub(crate) const ERROR: &str = "ErrorOccurred";
pub(crate) const GENERATED: &str = "ParametersGenerated";
pub(crate) const UP_TO_DATE: &str = "ResourcesUpToDate";
pub(crate) const PROGRESSING: &str = "RolloutProgressing";
pub(crate) const INVALID_ROLLOUT: &str = "InvalidRolloutConfig";

/// The reasons of conditions.
pub(crate) mod reasons {
    pub const ERROR: &str = "ErrorOccurred";
    pub const GENERATED: &str = "ParametersGenerated";
    pub const UP_TO_DATE: &str = "ApplicationSetUpToDate";
    pub const VALIDATION: &str = "ApplicationValidationError";
    pub const UPDATE: &str = "UpdateApplicationError";
    pub const CREATE: &str = "CreateApplicationError";
    pub const DELETE: &str = "DeleteApplicationError";
    /// Ours: deletions wait for a confirmation.
    pub const HELD: &str = "DeletionsNotConfirmed";
    pub const ROLLOUT: &str = "ApplicationSetRolloutError";
}

/// A condition without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub type_: &'static str,
    pub status: bool,
    pub reason: String,
    pub message: String,
}

impl Condition {
    pub(crate) fn new(type_: &'static str, status: bool, reason: &str, message: &str) -> Self {
        Self {
            type_,
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    /// An error occurred.
    pub fn error(reason: &str, message: &str) -> Self {
        Self::new(ERROR, true, reason, message)
    }

    pub(crate) fn up_to_date() -> Self {
        let message = "All applications have been generated successfully";
        Self::new(UP_TO_DATE, true, reasons::UP_TO_DATE, message)
    }
}
