//! A transcript with what really came in place of what was expected.

use refmcp_proto::revision::{Lifecycle, Revision};
use serde_json::Value;

use super::RevisionSet;
use super::parse::{Conversation, File, Step};
use super::run::{Brought, Run};
use super::write;

/// The text of the file in which every step that brought something else expects what it brought.
pub(super) fn updated(file: &File, runs: &[Run]) -> String {
    let mut lines: Vec<Vec<String>> = file.lines.iter().map(|line| vec![line.clone()]).collect();
    for (number, conversation) in file.conversations.iter().enumerate() {
        let mine: Vec<&Run> = runs.iter().filter(|run| run.conversation == number).collect();
        for (at, step) in conversation.steps.iter().enumerate() {
            let brought: Vec<(Revision, &Brought)> =
                mine.iter().filter_map(|run| Some((run.revision, run.steps.get(at)?))).collect();
            if brought.iter().any(|(_, brought)| brought.difference.is_some()) {
                rewrite(&mut lines, conversation, step, &brought);
            }
        }
    }
    let mut text = lines.concat().join("\n");
    text.push('\n');
    text
}

fn rewrite(
    lines: &mut [Vec<String>],
    conversation: &Conversation,
    step: &Step,
    brought: &[(Revision, &Brought)],
) {
    for expected in &step.expected {
        for line in expected.lines.clone() {
            lines[line].clear();
        }
    }
    let at = step.expected.first().map_or(step.lines.end - 1, |expected| expected.lines.start);
    let mut among = conversation.revisions.revisions();
    among.retain(|revision| step.only.contains(*revision));
    for (revisions, messages) in groups(brought) {
        let head =
            RevisionSet::name(&revisions, &among).map_or_else(String::new, |name| format!("[{name}] "));
        if messages.is_empty() {
            lines[at].push(format!("<- {head}nothing"));
        }
        for message in messages {
            lines[at].extend(write::message(&format!("<- {head}"), message));
        }
    }
}

/// The revisions that brought the same, with what they brought.
fn groups<'a>(brought: &[(Revision, &'a Brought)]) -> Vec<(Vec<Revision>, &'a [Value])> {
    let mut groups: Vec<(Vec<Revision>, &[Value])> = Vec::new();
    for (revision, brought) in brought.iter().filter(|(_, brought)| brought.done) {
        let alike = groups.iter_mut().find(|(_, messages)| same(messages, &brought.messages));
        match alike {
            Some((revisions, messages)) => {
                revisions.push(*revision);
                // Only here are cache hints to be seen.
                if revision.lifecycle() == Lifecycle::PerRequest {
                    *messages = &brought.messages;
                }
            }
            None => groups.push((vec![*revision], &brought.messages)),
        }
    }
    groups
}

/// Whether messages are alike but for cache hints, which stand for nothing in a session.
fn same(left: &[Value], right: &[Value]) -> bool {
    let plain =
        |messages: &[Value]| Value::from(messages.to_vec()).to_string().replace("\"$CACHED\"", "\"$DONE\"");
    plain(left) == plain(right)
}
