//! Tests of what people get to read.

use refmcp_client::ServerFacts;
use refmcp_proto::model::{
    CallToolResult, Completion, ContentBlock, GetPromptResult, Implementation, LogLevel, LogParams, Prompt,
    PromptArgument, PromptMessage, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ServerCapabilities, Tool, ToolAnnotations,
};
use serde_json::json;

use super::*;

/// An escape that clears the screen, and a character that turns the text around.
const HOSTILE: &str = "\x1b[2J\u{202e}";

impl View {
    fn plain(folder: &std::path::Path) -> Self {
        Self { paint: Paint::PLAIN, width: None, media: Media::new(folder, None), is_piped: false }
    }

    fn piped() -> Self {
        Self { paint: Paint::PLAIN, width: None, media: Media::left_out(), is_piped: true }
    }
}

fn shown<T: Into<Rendered>>(render: impl Fn(&View) -> T) -> String {
    let folder = tempfile::tempdir().unwrap();
    let Rendered { text, notes } = render(&View::plain(folder.path())).into();
    assert_eq!(notes, "", "on a terminal, everything is in its place");
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
    text.replace(&folder.path().display().to_string(), "FOLDER")
}

fn block_shown(block: &ContentBlock, view: &View) -> Rendered {
    let mut out = Rendered::default();
    content::content(&mut out, block, ".content[0]", view);
    out
}

fn schema(value: &serde_json::Value) -> refmcp_proto::model::JsonObject {
    value.as_object().unwrap().clone()
}

#[test]
fn tools_have_their_arguments_and_hints() {
    let echo = Tool::new("echo", "Says it again.\nAnd more.")
        .title("Echo")
        .input_schema(schema(&json!({
            "type": "object",
            "properties": {"loud": {"type": "boolean"}, "message": {"type": "string"}},
            "required": ["message"],
        })))
        .annotations(ToolAnnotations::new().read_only(true).destructive(true));
    let wipe = Tool::new("wipe", "").annotations(ToolAnnotations::new().destructive(true).open_world(true));
    let text = shown(|view| tools(&[echo.clone(), wipe.clone()], view));
    assert_eq!(
        text,
        "echo  Echo\n    Says it again. …\n    message: a text; loud?: true or false\n    says it is read-only\n\
         wipe\n    says it may destroy things, reaches out to the world\n"
    );
    assert_eq!(shown(|view| tools(&[], view)), "no tools\n");
}

#[test]
fn lines_are_broken_at_the_end_of_the_terminal() {
    let view = View { width: Some(20), ..View::plain(std::path::Path::new("/nowhere")) };
    let text = tools(&[Tool::new("a", "A description that is longer than the line")], &view);
    assert_eq!(text, "a\n    A description\n    that is longer\n    than the line\n");
}

#[test]
fn resources_templates_and_prompts_are_listed() {
    let readme = Resource::new("file:///readme", "readme").mime_type("text/plain").size(2048u64);
    let text = shown(|view| resources(std::slice::from_ref(&readme), view));
    assert_eq!(
        text,
        "URI             NAME    TYPE        SIZE\nfile:///readme  readme  text/plain  2.0 KiB\n"
    );
    let template = ResourceTemplate::new("file:///{path}", "files").description("Any file");
    let text = shown(|view| templates(std::slice::from_ref(&template), view));
    assert_eq!(text, "URI TEMPLATE    NAME   ABOUT\nfile:///{path}  files  Any file\n");
    let review = Prompt::new("review")
        .argument(PromptArgument::new("code").required(true).description("What to look at"))
        .argument(PromptArgument::new("language"));
    let text = shown(|view| prompts(std::slice::from_ref(&review), view));
    assert_eq!(text, "review\n    code  What to look at\n    language?\n");
}

#[test]
fn every_kind_of_block_is_shown() {
    for (block, expected) in [
        (ContentBlock::text("one\ntwo"), "one\ntwo\n"),
        (ContentBlock::text(format!("{HOSTILE}x")), "␛[2J<U+202E>x\n"),
        (ContentBlock::link(Resource::new("file:///a", "a").size(10u64)), "[link] file:///a  a, 10 B\n"),
        (
            ContentBlock::embedded(ResourceContents::text("file:///b", "text").mime_type("text/plain")),
            "file:///b  text/plain\ntext\n",
        ),
        (ContentBlock::image("\x1b[2J", "image/png"), "[image image/png] cannot be shown: no base64: "),
    ] {
        let text = shown(|view| block_shown(&block, view));
        assert!(text.starts_with(expected), "{text}");
    }
    for (block, expected) in [
        (ContentBlock::image("aGk=", "image/png"), "[image image/png, 2 B] saved to FOLDER/refmcp-"),
        (ContentBlock::audio("aGk=", "audio/wav"), "[audio audio/wav, 2 B] saved to FOLDER/refmcp-"),
        (
            ContentBlock::embedded(ResourceContents::blob("x:y", "aGk=")),
            "x:y\n[data, 2 B] saved to FOLDER/refmcp-",
        ),
        (
            serde_json::from_value(json!({"type": "hologram", "x": HOSTILE})).unwrap(),
            "[content of an unknown kind]\n  {\n",
        ),
    ] {
        let text = shown(|view| block_shown(&block, view));
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn a_program_gets_the_text_alone() {
    let blob = ResourceContents::blob("x:y", "aGk=").mime_type("a/b");
    for (block, text, note) in [
        (ContentBlock::text("one\ntwo"), "one\ntwo\n", ""),
        (ContentBlock::text(format!("{HOSTILE}\r\n")), "\x1b[2J\u{202e}\r\n", ""),
        (
            ContentBlock::link(Resource::new("file:///a", "a").size(10u64)),
            "file:///a\n",
            "[link] file:///a  a, 10 B\n",
        ),
        (
            ContentBlock::embedded(ResourceContents::text("file:///b", "text").mime_type("text/plain")),
            "text\n",
            "[resource] file:///b  text/plain\n",
        ),
        (
            ContentBlock::embedded(blob.clone()),
            "",
            "[resource] x:y  a/b\n[data a/b, 2 B] is no text and is left out; to save it, add \
             -o json | jq -r '.content[0].resource.blob' | base64 -d > FILE\n",
        ),
        (
            ContentBlock::image("aGk=", "image/png"),
            "",
            "[image image/png, 2 B] is no text and is left out; to save it, add \
             -o json | jq -r '.content[0].data' | base64 -d > FILE\n",
        ),
        (
            ContentBlock::audio("aGk=", "audio/wav"),
            "",
            "[audio audio/wav, 2 B] is no text and is left out; to save it, add \
             -o json | jq -r '.content[0].data' | base64 -d > FILE\n",
        ),
        (
            serde_json::from_value(json!({"type": "hologram"})).unwrap(),
            "{\n  \"type\": \"hologram\"\n}\n",
            "[content of an unknown kind]\n",
        ),
    ] {
        let shown = block_shown(&block, &View::piped());
        assert_eq!((shown.text.as_str(), shown.notes.as_str()), (text, note));
    }
    let bad = block_shown(&ContentBlock::image("!", "image/png"), &View::piped());
    assert!(bad.text.is_empty() && bad.notes.contains("cannot be shown: no base64"), "{bad:?}");
    let result =
        GetPromptResult::new(vec![PromptMessage::user("Look:\nhere"), PromptMessage::assistant("Yes")]);
    let shown = prompt(&result.description("A review"), &View::piped());
    assert_eq!(shown.text, "Look:\nhere\nYes\n");
    assert_eq!(shown.notes, "A review\n[messages] user, assistant; -o json has each with its role\n");
    let mut read = ReadResourceResult::text("file:///a", "alpha");
    read.contents.push(blob);
    let shown = resource(&read, &View::piped());
    assert_eq!(shown.text, "alpha\n");
    assert!(shown.notes.contains("jq -r '.contents[1].blob'"), "{shown:?}");
}

#[test]
fn structured_content_is_shown_once() {
    let same = CallToolResult::structured(json!({"total": 3}));
    assert_eq!(shown(|view| tool_result(&same, view)), "{\"total\":3}\n");
    let other = CallToolResult::text("three").structured_content(json!({"total": 3}));
    assert_eq!(shown(|view| tool_result(&other, view)), "three\n{\n  \"total\": 3\n}\n");
    assert_eq!(shown(|view| tool_result(&CallToolResult::default(), view)), "");
}

#[test]
fn failures_are_harmless() {
    let failed = CallToolResult::error(format!("disk full{HOSTILE}"));
    let text = shown(|view| tool_result(&failed, view));
    assert_eq!(text, "disk full␛[2J<U+202E>\n");
}

#[test]
fn prompts_resources_and_proposals_are_shown() {
    let result =
        GetPromptResult::new(vec![PromptMessage::user("Look:\nhere"), PromptMessage::assistant("Yes")])
            .description("A review");
    let text = shown(|view| prompt(&result, view));
    assert_eq!(text, "A review\n\nuser:\n  Look:\n  here\nassistant:\n  Yes\n");
    let read = ReadResourceResult::text("file:///a", "alpha");
    assert_eq!(shown(|view| resource(&read, view)), "file:///a\nalpha\n");
    let many = Completion { values: vec!["a".to_owned()], total: Some(5), ..Completion::default() };
    assert_eq!(shown(|view| completion(&many, view)), "a\n(4 more)\n");
    assert_eq!(shown(|view| completion(&Completion::default(), view)), "(no proposals)\n");
    let log = LogParams::new(LogLevel::Warning, json!({"a": HOSTILE})).logger("db");
    assert_eq!(
        shown(|view| log_message(&log, view)),
        "[server db] warning: {\"a\":\"\\u001b[2J<U+202E>\"}\n"
    );
}

#[test]
fn bytes_for_a_pipe_are_exact() {
    let text = ReadResourceResult::text("a:b", format!("{HOSTILE}\r\n"));
    assert_eq!(exact_bytes(&text).unwrap(), format!("{HOSTILE}\r\n").into_bytes());
    let blob = ReadResourceResult::from(ResourceContents::blob("a:b", "AAEC"));
    assert_eq!(exact_bytes(&blob).unwrap(), [0, 1, 2]);
    assert_eq!(exact_bytes(&ReadResourceResult::default()), None);
    let bad = ReadResourceResult::from(ResourceContents::blob("a:b", "!"));
    assert_eq!(exact_bytes(&bad), None);
}

#[test]
fn a_server_is_described() {
    let server = Implementation::new("everything", format!("1.0{HOSTILE}")).title("Everything");
    let capabilities: ServerCapabilities =
        serde_json::from_value(json!({"tools": {"listChanged": true}, "logging": {}, "models": {}})).unwrap();
    let facts = ServerFacts {
        revision: "2025-06-18".parse().unwrap(),
        info: Some(server),
        capabilities,
        instructions: Some("Be kind.\nBe brief.".to_owned()),
        versions: ["2025-06-18", "2024-11-05"].map(str::to_owned).to_vec(),
        result: "{}".into(),
    };
    assert_eq!(
        shown(|view| server_info(&facts, "stdio", view)),
        "server       everything 1.0␛[2J<U+202E>  Everything\n\
         revision     2025-06-18\n\
         also speaks  2024-11-05\n\
         transport    stdio\n\
         offers       tools (tells of changes), logging, models\n\
         instructions\n  Be kind.\n  Be brief.\n"
    );
}
