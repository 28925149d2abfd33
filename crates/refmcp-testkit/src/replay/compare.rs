//! Whether runs came to the same.

use serde_json::{Value, json};

use super::ReplayRun;

/// Compares runs: of one revision in everything that was seen, of different ones in what they have in common.
pub(super) fn compare(all: &[ReplayRun]) -> Result<(), String> {
    for (at, seen) in all.iter().enumerate() {
        grows(seen)?;
        let earlier = all.get(..at).unwrap_or_default();
        if let Some(first) = earlier.iter().find(|first| first.revision == seen.revision) {
            same(first, seen, &whole(first), &whole(seen))?;
        }
    }
    // Older revisions cannot ask all_capabilities; those that asked as much as the newest must have come to the same.
    let Some(newest) = all.iter().filter(|seen| !seen.questions.is_empty()).max_by_key(|seen| seen.revision)
    else {
        return Ok(());
    };
    let peers = all.iter().filter(|seen| seen.questions.len() == newest.questions.len());
    peers.into_iter().try_for_each(|seen| same(newest, seen, &essence(newest), &essence(seen)))
}

/// Progress that repeats itself is progress that was told twice.
fn grows(seen: &ReplayRun) -> Result<(), String> {
    let values: Vec<f64> = seen.progress.iter().filter_map(Value::as_f64).collect();
    if values.is_sorted_by(|before, after| before < after) {
        return Ok(());
    }
    Err(format!("{}: progress does not grow: {values:?}", name(seen)))
}

fn same(left: &ReplayRun, right: &ReplayRun, left_part: &Value, right_part: &Value) -> Result<(), String> {
    if left_part == right_part {
        return Ok(());
    }
    let differing =
        left_part.as_object().into_iter().flatten().filter(|(key, value)| right_part.get(key) != Some(value));
    let told: Vec<String> = differing
        .map(|(key, value)| {
            format!("  {key}: {value}\n  {key}: {}", right_part.get(key).unwrap_or(&Value::Null))
        })
        .collect();
    Err(format!("{} and {} differ:\n{}", name(left), name(right), told.join("\n")))
}

fn name(seen: &ReplayRun) -> String {
    format!("{} {:?}", seen.revision, seen.order)
}

fn whole(seen: &ReplayRun) -> Value {
    json!({ "answer": seen.answer, "progress": seen.progress, "logs": seen.logs })
}

/// What is the same in every revision: the texts, and whether they tell of an error.
fn essence(seen: &ReplayRun) -> Value {
    let result = &seen.answer["result"];
    let texts = |list: &str, place: &str| -> Vec<Value> {
        let items = result[list].as_array().into_iter().flatten();
        items.filter_map(|item| item.pointer(place).cloned()).collect()
    };
    json!({
        "failed": seen.answer.get("error").is_some() || result["isError"] == true,
        "content": texts("content", "/text"),
        "messages": texts("messages", "/content/text"),
        "contents": texts("contents", "/text"),
        "progress": seen.progress,
        "logs": seen.logs,
    })
}

#[cfg(test)]
mod tests {
    use refmcp_proto::revision::Revision;

    use super::*;
    use crate::replay::AnswerOrder;

    fn seen(order: AnswerOrder, text: &str, progress: &[u64]) -> ReplayRun {
        ReplayRun {
            revision: Revision::LATEST,
            order,
            rounds: 1,
            questions: vec![json!({})],
            answer: json!({ "result": { "content": [{ "text": text }] } }),
            progress: progress.iter().map(|value| json!(value)).collect(),
            logs: Vec::new(),
        }
    }

    #[test]
    fn differences_are_told_with_their_runs() {
        assert_eq!(
            compare(&[seen(AnswerOrder::InOrder, "a", &[1]), seen(AnswerOrder::FirstOnly, "a", &[1])]),
            Ok(())
        );
        let told = compare(&[seen(AnswerOrder::InOrder, "a", &[1]), seen(AnswerOrder::FirstOnly, "b", &[1])])
            .unwrap_err();
        assert!(told.contains("InOrder") && told.contains("FirstOnly") && told.contains("answer"), "{told}");
        let told =
            compare(&[seen(AnswerOrder::InOrder, "a", &[1]), seen(AnswerOrder::FirstOnly, "a", &[1, 2])])
                .unwrap_err();
        assert!(told.contains("progress"), "{told}");
    }

    #[test]
    fn progress_must_grow() {
        assert!(compare(&[seen(AnswerOrder::InOrder, "a", &[1, 1])]).unwrap_err().contains("does not grow"));
    }

    #[test]
    fn revisions_are_compared_by_what_they_share() {
        let older =
            |text| ReplayRun { revision: Revision::V2025_06_18, ..seen(AnswerOrder::InOrder, text, &[]) };
        assert_eq!(compare(&[older("a"), seen(AnswerOrder::InOrder, "a", &[])]), Ok(()));
        assert!(compare(&[older("b"), seen(AnswerOrder::InOrder, "a", &[])]).is_err());
    }
}
