//! Tools that send `list_changed` notifications without changing a list.

use refmcp_server::{Call, CallError, Change, NoArguments, Tool};

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        Tool::new("test_trigger_tool_change", "Tells that the list of tools has changed", tool_change)
            .title("Trigger a change of tools"),
        Tool::new("test_trigger_prompt_change", "Tells that the list of prompts has changed", prompt_change)
            .title("Trigger a change of prompts"),
    ];
    tools.into_iter().map(|tool| tool.read_only().inline()).collect()
}

async fn tool_change(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    call.server().changed(&Change::Tools);
    Ok("Told that the list of tools has changed")
}

async fn prompt_change(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    call.server().changed(&Change::Prompts);
    Ok("Told that the list of prompts has changed")
}
