//! Results of any revision, read into the model, which has the newest shape.

use crate::model::ServerResult;
use crate::revision::Method;

/// Reads the text of a result of this method. Older shapes lack members of the newest, and all of those are optional.
///
/// # Errors
/// When the text is no result of the method.
pub fn result(method: &Method, text: &str) -> serde_json::Result<ServerResult> {
    use serde_json::from_str as read;
    Ok(match method {
        Method::CallTool => ServerResult::CallTool(read(text)?),
        Method::ListTools => ServerResult::ListTools(read(text)?),
        Method::ListResources => ServerResult::ListResources(read(text)?),
        Method::ListResourceTemplates => ServerResult::ListResourceTemplates(read(text)?),
        Method::ReadResource => ServerResult::ReadResource(read(text)?),
        Method::ListPrompts => ServerResult::ListPrompts(read(text)?),
        Method::GetPrompt => ServerResult::GetPrompt(read(text)?),
        Method::Complete => ServerResult::Complete(read(text)?),
        Method::Subscribe | Method::Unsubscribe | Method::SetLevel => ServerResult::Empty(read(text)?),
        _ => ServerResult::Custom(read(text)?),
    })
}
