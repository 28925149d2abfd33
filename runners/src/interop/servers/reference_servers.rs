//! What the servers are asked that were not made for this: the reference server of the SDKs' makers, and ours.

use super::scenario::{ASKING, MODERN, TASKS};
use super::step::Check::{At, Complains, Hides, Is, Lines, Names, Prints, Says};
use super::step::{Feature, PRINTED, Step};

/// The scenario through `@modelcontextprotocol/server-everything`, where everything comes in order. Of what level the first
/// message is that it logs, the server leaves to chance.
pub(super) fn everything() -> Vec<Feature> {
    everything_with(Step::text(LOGGING, &[Says(BEGUN), Complains("[server] "), Complains("message")]))
}

/// The same over streamable HTTP, where what it logs beside the answer is for a stream that may not be open yet.
pub(super) fn everything_over_http() -> Vec<Feature> {
    everything_with(Step::text(LOGGING, &[Says(BEGUN)]))
}

const LOGGING: &[&str] = &["call", "toggle-simulated-logging", "--log-level", "debug"];
const BEGUN: &str = "Started simulated, random-leveled logging";

fn everything_with(logging: Step) -> Vec<Feature> {
    vec![
        Feature::new(
            "info",
            [Step::json(
                &["info"],
                &[
                    At("/serverInfo/name", r#""mcp-servers/everything""#),
                    At("/capabilities/resources", r#"{"listChanged":true,"subscribe":true}"#),
                ],
            )],
        ),
        Feature::new(
            "lists",
            [Step::json(
                &["list"],
                &[
                    At("/tools/0/name", r#""echo""#),
                    Names("/prompts", "simple-prompt args-prompt completable-prompt resource-prompt"),
                    At("/resourceTemplates/0/uriTemplate", r#""demo://resource/dynamic/text/{resourceId}""#),
                ],
            )],
        ),
        Feature::new(
            "text",
            [Step::json(
                &["call", "echo", "message=hi there"],
                &[Is(r#"{"content":[{"type":"text","text":"Echo: hi there"}]}"#)],
            )],
        ),
        Feature::new(
            "structured_output",
            [Step::json(
                &["call", "get-structured-content", "location=New York"],
                &[At("/structuredContent", r#"{"temperature":33,"conditions":"Cloudy","humidity":82}"#)],
            )],
        )
        .since(ASKING),
        Feature::new(
            "invalid_arguments",
            [Step::text(
                &["call", "get-sum", "a=x", "b=3"],
                &[Complains("nothing was sent"), Complains(r#"a: expected a number, not "x""#)],
            )
            .exits(1)],
        ),
        Feature::new(
            "tool_error",
            [Step::json(
                &["call", "gzip-file-as-resource", "name=x", "data=ftp://nowhere/x", "outputType=resource"],
                &[At("/isError", "true"), Says("Unsupported URL protocol for ftp://nowhere/x")],
            )
            .exits(5)],
        ),
        Feature::new(
            "unknown_method",
            [Step::json(&["raw", "scenario/nothing"], &[Complains("Method not found (-32601)")]).exits(1)],
        ),
        Feature::new(
            "progress",
            [Step::messages(
                &["call", "trigger-long-running-operation", "duration=0.1", "steps=3"],
                &[Lines(3, "\"notifications/progress\""), Lines(1, "Long running operation completed")],
            )],
        ),
        Feature::new("logging", [logging]),
        // Some fields have no default, and there is no user to fill them in.
        Feature::new(
            "elicitation",
            [Step::json(
                &["call", "trigger-elicitation-request"],
                &[Says("User declined to provide the requested information")],
            )],
        )
        .since(ASKING),
        Feature::new(
            "sampling",
            [Step::json(
                &["call", "trigger-sampling-request", "prompt=hi", "maxTokens=5", "--sampler", "printf 42"],
                &[Says("LLM sampling result"), Says(r#"\"text\": \"42\""#)],
            )],
        ),
        Feature::new(
            "roots",
            [Step::json(
                &["call", "get-roots-list", "--root", "/tmp"],
                &[Says("Current MCP Roots (1 total)"), Says("file:///tmp")],
            )],
        ),
        Feature::new(
            "resources",
            [Step::json(
                &["read", "demo://resource/dynamic/text/1"],
                &[
                    At("/contents/0/mimeType", r#""text/plain""#),
                    Says("Resource 1: This is a plaintext resource"),
                ],
            )],
        ),
        Feature::new(
            "resource_not_found",
            [Step::text(
                &["read", "demo://resource/nothing"],
                &[Complains("Resource demo://resource/nothing not found (-32602)")],
            )
            .exits(1)],
        ),
        Feature::new(
            "prompts",
            [Step::json(
                &["prompt", "args-prompt", "city=Paris"],
                &[At("/messages/0/content/text", r#""What's weather in Paris?""#)],
            )],
        ),
        Feature::new(
            "completion",
            [
                Step::json(
                    &["complete", "--prompt", "completable-prompt", "department=E"],
                    &[Is(r#"{"completion":{"values":["Engineering"],"total":1,"hasMore":false}}"#)],
                ),
                Step::text(
                    &["complete", "--template", "demo://resource/dynamic/text/{resourceId}", "resourceId=1"],
                    &[Says("1")],
                ),
            ],
        ),
        // Updates begin with a tool, called in the same session; the check is that it agreed to send them.
        Feature::new(
            "watch",
            [Step::messages(&["watch", "demo://resource/dynamic/text/1"], &[])
                .watched_for(&["\"result\":{}"])],
        ),
        // Its tool runs as a task only. There is no user to answer what it asks.
        Feature::new(
            "tasks",
            [
                Step::json(
                    &["call", "simulate-research-query", "topic=tides", "ambiguous=true"],
                    &[Says("# Research Report: tides"), Says("User declined")],
                ),
                Step::text(
                    &["call", "simulate-research-query", "topic=tides", "--task"],
                    &[Says("# Research Report: tides"), Complains("task ")],
                ),
            ],
        )
        .since(TASKS),
        // Tools that are there for clients alone that run tasks.
        Feature::new(
            "tasks_of_clients",
            [
                Step::json(
                    &["call", "trigger-sampling-request-async", "prompt=hi", "--sampler", "printf 42"],
                    &[Says("[COMPLETED]"), Says("Task created: "), Says(r#"\"text\": \"42\""#)],
                ),
                Step::json(
                    &["call", "trigger-elicitation-request-async"],
                    &[Says("[DECLINED]"), Says("Task created: ")],
                ),
            ],
        )
        .since(TASKS)
        .until(MODERN),
        Feature::new("ping", [Step::json(&["raw", "ping"], &[Is("{}")])]).until(MODERN),
    ]
}

/// The scenario through our own server, where others than the one who watches can change a resource.
pub(super) fn shared() -> Vec<Feature> {
    let watch = Step::json(&["watch", WATCHED], &[Says("\"test://watched-resource\"")])
        .watched_for(&["notifications/resources/updated"])
        .while_doing(&["call", "touch_resource", "uri=test://watched-resource"]);
    let mut features = ours(watch);
    features.push(
        Feature::new(
            "tasks_of_others",
            [
                // Without tasks there is a result at once, and no id to ask for.
                Step::text(&["call", "slow_compute", "seconds=1", "--detach"], &[]),
                Step::json(&["task", "get", PRINTED], &[At("/status", r#""working""#)]),
                Step::text(&["task", "watch", PRINTED], &[Prints("working\ncompleted\n")]),
                Step::text(&["task", "result", PRINTED], &[Prints(" computed in 1 s\n")]),
            ],
        )
        .since(TASKS),
    );
    features
}

/// The same for a server with one connection: the check is that it agreed to send notifications of changes.
pub(super) fn alone() -> Vec<Feature> {
    let agreed = &["\"result\":{}", "\"notifications/subscriptions/acknowledged\""];
    ours(Step::messages(&["watch", WATCHED], &[Says(WATCHED)]).watched_for(agreed))
}

const WATCHED: &str = "test://watched-resource";

fn ours(watch: Step) -> Vec<Feature> {
    vec![
        Feature::new(
            "tasks",
            [
                Step::json(&["call", "failing_job"], &[At("/isError", "true"), Says("on purpose")]).exits(5),
                Step::json(&["call", "confirm_delete", "filename=x"], &[Says("x stays")]),
            ],
        )
        .since(ASKING),
        Feature::new(
            "tasks_of_clients",
            [
                Step::json(
                    &["call", "ask_model", "prompt=hi", "task=true", "--sampler", "printf 42"],
                    &[Says("answered: 42")],
                ),
                Step::json(&["call", "ask_user", "form=confirm", "task=true"], &[Says("The user accepted")]),
            ],
        )
        .since(TASKS)
        .until(MODERN),
        Feature::new(
            "info",
            [Step::json(
                &["info"],
                &[At("/serverInfo/name", r#""RefMCP-TestServer""#), At("/capabilities/logging", "{}")],
            )],
        ),
        Feature::new(
            "lists",
            [Step::json(
                &["list"],
                &[
                    At("/tools/1/name", r#""echo""#),
                    At("/prompts/0/name", r#""code_review""#),
                    At("/resourceTemplates/0/uriTemplate", r#""memo://{shelf}/{name}""#),
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
                &[Is(
                    r#"{"content":[{"type":"text","text":"{\"total\":5}"}],"structuredContent":{"total":5}}"#,
                )],
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
                &["call", "fail", "message=no"],
                &[Is(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#)],
            )
            .exits(5)],
        ),
        Feature::new(
            "unknown_method",
            [Step::json(
                &["raw", "scenario/nothing"],
                &[Complains("method not found: scenario/nothing (-32601)")],
            )
            .exits(1)],
        ),
        Feature::new(
            "progress",
            [Step::messages(
                &["call", "long_task", "steps=3", "step_ms=5"],
                &[Lines(3, "\"notifications/progress\""), Lines(1, "done: 3 of 3 steps")],
            )],
        ),
        Feature::new(
            "logging",
            [Step::text(
                &["call", "log_all", "text=hello", "--log-level", "critical"],
                &[
                    Prints("logged at 8 levels; those below the level you set were not sent\n"),
                    Complains("[server refmcp-reference] critical:"),
                    Complains("[server refmcp-reference] emergency:"),
                    Hides("[server refmcp-reference] error:"),
                ],
            )],
        ),
        Feature::new(
            "elicitation",
            [Step::json(
                &["call", "test_elicitation_sep1034_defaults"],
                &[Says("action=accept, content={"), Says("verified")],
            )],
        )
        .since(ASKING),
        Feature::new(
            "sampling",
            [Step::json(
                &["call", "ask_model", "prompt=hi", "--sampler", "printf 42"],
                &[At("/content/0/text", r#""printf answered: 42""#)],
            )],
        ),
        Feature::new(
            "roots",
            [Step::json(
                &["call", "list_roots", "--root", "/tmp"],
                &[Says("The client has one root:"), Says("file:///tmp")],
            )],
        ),
        Feature::new(
            "resources",
            [
                Step::json(
                    &["read", "test://static-text"],
                    &[At("/contents/0/text", r#""This is the content of the static text resource.""#)],
                ),
                Step::json(&["read", "test://template/7/data"], &[Says("7")]),
            ],
        ),
        Feature::new(
            "resource_not_found",
            [Step::text(&["read", "test://nothing"], &[Complains(r#"{"uri":"test://nothing"}"#)]).exits(1)],
        ),
        Feature::new(
            "prompts",
            [Step::json(
                &["prompt", "test_prompt_with_arguments", "arg1=a", "arg2=b"],
                &[At("/messages/0/content/text", r#""Prompt with arguments: arg1='a', arg2='b'""#)],
            )],
        ),
        Feature::new(
            "completion",
            [
                Step::json(
                    &["complete", "--prompt", "code_review", "language=ru"],
                    &[Is(r#"{"completion":{"values":["ruby","rust"],"total":2,"hasMore":false}}"#)],
                ),
                Step::text(
                    &["complete", "--template", "memo://{shelf}/{name}", "shelf=o"],
                    &[Says("office")],
                ),
            ],
        ),
        Feature::new("watch", [watch]),
        Feature::new("ping", [Step::json(&["raw", "ping"], &[Is("{}")])]).until(MODERN),
    ]
}
