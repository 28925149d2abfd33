//! Recordings that are used again: any bytes are a recording up to the line that is no event; one compared with itself is the
//! same; and its client comes to an end with the mock of its server, which answers each request once at the most.

use refmcp_audit::recording::{Direction, Event, EventKind};
use refmcp_audit::replay::{
    ClientReplay, Comparison, Mock, MockOutput, ReplayAction, ReplayState, ReplayTransport, comparison_text,
    conversations,
};

/// Steps of a replay that are taken for each pair of messages, before it counts as endless.
const STEPS_EACH: usize = 8;

/// The bytes are a recording.
pub fn run(bytes: &[u8]) {
    let Ok(recorded) = conversations(bytes) else { return };
    let comparison = Comparison::between(&recorded, &recorded, &["/result/*".to_owned()]);
    assert!(comparison.is_same(), "{comparison:?}");
    let mock = Mock::new(&recorded);
    for conversation in &recorded {
        let mut session = mock.session();
        let mut replay = ClientReplay::new(conversation, ReplayTransport::Pipe, "memory");
        let all = recorded.iter().map(|it| it.parts.len()).sum::<usize>() + 1;
        let mut left = STEPS_EACH * all * all;
        while replay.state() != ReplayState::Done {
            left = left.checked_sub(1).expect("a replay comes to its end");
            let action = match replay.state() {
                ReplayState::Ready => replay.take(),
                _ => {
                    replay.give_up();
                    None
                }
            };
            let Some(ReplayAction::Send { stream, text, .. }) = action else { continue };
            observe(&mut replay, Direction::Sent, &text);
            let answers = session.receive(stream, &text);
            let responses =
                answers.iter().filter(|it| matches!(it, MockOutput::Message(it) if it.is_response));
            let requests =
                serde_json::from_str::<Vec<serde_json::Value>>(&text).map_or(1, |batch| batch.len());
            // The response to a request of the mock may let another call go on.
            assert!(responses.count() <= requests, "{answers:?}");
            for answer in &answers {
                if let MockOutput::Message(message) = answer {
                    observe(&mut replay, Direction::Received, &message.text);
                }
            }
        }
        let live = [replay.finish()];
        let text =
            comparison_text(&Comparison::between(&recorded, &live, &[]), "a", "b", |_, text| text.to_owned());
        let controls = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(controls) && !text.contains(['\u{202e}', '\u{2066}']), "{text:?}");
    }
}

fn observe(replay: &mut ClientReplay<'_>, direction: Direction, text: &str) {
    let kind = EventKind::Message { direction, text: text.to_owned(), event_id: None };
    // A replay that holds too much has ended.
    let event = Event { at: 0, connection: 1, revision: None, stream: None, kind };
    if replay.observe(&event).is_err() {
        replay.close();
    }
}
