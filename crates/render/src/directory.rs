//! stub
use crate::*;
pub(crate) fn render(_: &dyn SourceFiles, _: &str, _: &DirectoryOptions, _: &Budget) -> Result<Rendered, RenderError> {
    Err(RenderError::Unsupported("directories are".to_owned()))
}
