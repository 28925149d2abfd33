//! The scenario for the servers on the SDKs: they all offer the same, so the same output is expected.

use super::step::Check::{At, Complains, Hides, Is, Lines, Names, Prints, Says};
use super::step::{Feature, Step};

/// The place of the revision that brought elicitation.
pub(super) const ASKING: usize = 2;
/// The place of the revision that brought tasks.
pub(super) const TASKS: usize = 3;
/// The place of the revision that has no sessions.
pub(super) const MODERN: usize = 4;

const TOOLS: &str = "echo sum count ask think roots fail talk";

/// The scenario through a server of `interop/servers`.
pub(super) fn scenario() -> Vec<Feature> {
    vec![
        Feature::new(
            "info",
            [Step::json(
                &["info"],
                &[
                    At("/serverInfo", r#"{"name":"scenario","version":"1.0.0"}"#),
                    At("/instructions", r#""For interoperability tests.""#),
                    At("/capabilities/logging", "{}"),
                ],
            )],
        ),
        Feature::new(
            "lists",
            [Step::json(
                &["list"],
                &[
                    Names("/tools", TOOLS),
                    Names("/resources", "note tick"),
                    Names("/prompts", "greet"),
                    At("/resourceTemplates/0/uriTemplate", r#""scenario://greeting/{name}""#),
                    At("/prompts/0/arguments", r#"[{"name":"name","required":true}]"#),
                ],
            )],
        ),
        Feature::new(
            "text",
            [Step::json(
                &["call", "echo", "message=hi there"],
                &[Is(r#"{"content":[{"type":"text","text":"hi there"}]}"#)],
            )],
        ),
        Feature::new(
            "structured_output",
            [Step::json(
                &["call", "sum", "a=2", "b=3"],
                &[At("/content/0/text", r#""{\"sum\":5}""#), At("/structuredContent", r#"{"sum":5}"#)],
            )],
        )
        .since(ASKING),
        Feature::new(
            "invalid_arguments",
            [Step::text(
                &["call", "sum", "a=x", "b=3"],
                &[Complains("nothing was sent"), Complains(r#"a: expected a number, not "x""#)],
            )
            .exits(1)],
        ),
        Feature::new(
            "tool_error",
            [Step::json(
                &["call", "fail"],
                &[Is(r#"{"content":[{"type":"text","text":"it failed"}],"isError":true}"#)],
            )
            .exits(5)],
        ),
        Feature::new(
            "unknown_method",
            [Step::json(&["raw", "scenario/nothing"], &[Complains("(-326")]).exits(1)],
        ),
        Feature::new(
            "progress",
            [Step::messages(
                &["call", "count"],
                &[Lines(3, "\"notifications/progress\""), Lines(1, "counted to 3"), Hides("broke the rules")],
            )],
        ),
        Feature::new(
            "logging",
            [Step::text(
                &["call", "talk", "--log-level", "info"],
                &[
                    Prints("talked\n"),
                    Complains("[server scenario] warning: a loud word"),
                    Hides("a quiet word"),
                ],
            )],
        ),
        Feature::new(
            "elicitation",
            [Step::json(
                &["call", "ask"],
                &[Is(r#"{"content":[{"type":"text","text":"accept: Ada, 36, true"}]}"#)],
            )],
        )
        .since(ASKING),
        Feature::new(
            "sampling",
            [Step::json(
                &["call", "think", "--sampler", "printf 42"],
                &[Is(r#"{"content":[{"type":"text","text":"the model says 42"}]}"#)],
            )],
        ),
        Feature::new(
            "roots",
            [Step::json(
                &["call", "roots", "--root", "/tmp"],
                &[Is(r#"{"content":[{"type":"text","text":"file:///tmp"}]}"#)],
            )],
        ),
        Feature::new(
            "resources",
            [
                Step::json(
                    &["read", "scenario://note"],
                    &[Is(
                        r#"{"contents":[{"uri":"scenario://note","mimeType":"text/plain","text":"a note"}]}"#,
                    )],
                ),
                Step::text(&["read", "scenario://greeting/Bob"], &[Prints("Hello, Bob!")]),
            ],
        ),
        Feature::new(
            "resource_not_found",
            [Step::text(&["read", "scenario://nothing"], &[Complains(r#"{"uri":"scenario://nothing"}"#)])
                .exits(1)],
        ),
        Feature::new(
            "prompts",
            [Step::json(
                &["prompt", "greet", "name=Bob"],
                &[Is(
                    r#"{"messages":[{"role":"user","content":{"type":"text","text":"Say hello to Bob."}}]}"#,
                )],
            )],
        ),
        Feature::new(
            "completion",
            [
                Step::json(
                    &["complete", "--prompt", "greet", "name=A"],
                    &[Is(r#"{"completion":{"values":["Ada","Alan"],"total":2,"hasMore":false}}"#)],
                ),
                Step::text(
                    &["complete", "--template", "scenario://greeting/{name}", "name=G"],
                    &[Says("Grace")],
                ),
            ],
        ),
        Feature::new(
            "watch",
            [Step::json(&["watch", "scenario://tick"], &[Says("\"scenario://tick\"")])
                .watched_for(&["notifications/resources/updated"])],
        ),
        Feature::new("ping", [Step::json(&["raw", "ping"], &[Is("{}")])]).until(MODERN),
    ]
}
