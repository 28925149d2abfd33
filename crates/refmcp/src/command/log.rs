//! `refmcp log`: the calls that were made.

use anyhow::Result;
use refmcp_client::redact;

use crate::args::{ExitReason, LogQuery};
use crate::store::StateFolder;
use crate::store::calls::{CallEntry, read};
use crate::ui::output::show_list;
use crate::ui::render::View;
use crate::ui::render::table::Table;

pub(crate) fn run(query: &LogQuery) -> Result<ExitReason> {
    let calls = read(&StateFolder::from_env()?)?;
    if calls.damaged > 0 {
        tracing::warn!(lines = calls.damaged, "lines of the log of calls could not be read");
    }
    let entries = wanted(calls.entries, query);
    show_list(query.format(), &entries, || table(&entries, &View::for_stdout(false)))?;
    Ok(ExitReason::Done)
}

fn wanted(mut entries: Vec<CallEntry>, query: &LogQuery) -> Vec<CallEntry> {
    // A whole target is given with its secrets, which are not in the log.
    let target = query.target.as_ref().map(|text| (text, redact::word(text)));
    entries.retain(|entry| {
        target
            .as_ref()
            .is_none_or(|(text, shown)| entry.target.contains(*text) || entry.target.contains(shown))
            && query.tool.as_ref().is_none_or(|name| entry.tool == *name)
    });
    let surplus = query.last.map_or(0, |last| entries.len().saturating_sub(last));
    entries.split_off(surplus)
}

fn table(entries: &[CallEntry], view: &View) -> String {
    let mut table = Table::new(&["TIME", "SERVER", "TOOL", "OUTCOME", "TOOK", "ARGUMENTS", "DETAIL"]);
    for entry in entries {
        table.row([
            &entry.time,
            &entry.target,
            &entry.tool,
            entry.outcome.as_str(),
            &format!("{} ms", entry.duration_ms),
            &entry.arguments.to_string(),
            entry.detail.as_deref().unwrap_or_default(),
        ]);
    }
    table.render_or("no calls", view.paint, view.width)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use refmcp_proto::model::JsonObject;

    use super::*;
    use crate::args::OutputFormat;
    use crate::store::calls::Outcome;

    fn entries() -> Vec<CallEntry> {
        let entry = |target, tool| {
            CallEntry::new(UNIX_EPOCH, target, tool, &JsonObject::new(), false, Outcome::Ok, Duration::ZERO)
        };
        vec![entry("http://a/?k=***", "one"), entry("npx b", "two"), entry("http://a/", "two")]
    }

    #[test]
    fn calls_are_picked_by_server_tool_and_age() {
        let query = |target: Option<&str>, tool: Option<&str>, last| LogQuery {
            target: target.map(str::to_owned),
            tool: tool.map(str::to_owned),
            last,
            output: OutputFormat::Text,
            json: false,
        };
        for (query, expected) in [
            (query(None, None, None), 3),
            (query(Some("http"), None, None), 2),
            (query(None, Some("two"), None), 2),
            (query(Some("http"), Some("two"), None), 1),
            (query(None, None, Some(2)), 2),
            (query(None, None, Some(9)), 3),
            (query(Some("nowhere"), None, None), 0),
            (query(Some("http://a/?k=hush"), None, None), 1),
        ] {
            assert_eq!(wanted(entries(), &query).len(), expected, "{query:?}");
        }
        let latest = wanted(entries(), &query(None, None, Some(1)));
        assert_eq!((latest[0].target.as_str(), latest[0].tool.as_str()), ("http://a/", "two"));
    }
}
