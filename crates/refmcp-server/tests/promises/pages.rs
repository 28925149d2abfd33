//! Lists in pages: complete for any size of page, steady while the list changes, opaque to clients.

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{Call, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool};
use refmcp_testkit::client::{Pair, TestClient};
use serde_json::{Value, json};

use crate::support::{BOTH, SESSION, STATELESS, named, names};

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

fn paged(size: usize) -> Server {
    let mut builder = Server::builder("test", "1").page_size(size);
    for name in NAMES {
        let template =
            ResourceTemplate::new(format!("{name}://{{x}}"), name, |_, uri: String, _| async move {
                Ok(ResourceContents::text(uri, ""))
            });
        let uri = format!("{name}://");
        let resource = Resource::new(uri, name, move |_| async move { Ok(ResourceContents::text(name, "")) });
        let prompt = Prompt::new(name, |_, _| async { Ok(PromptMessage::user("")) });
        builder = builder.tool(named(name)).resource(resource).prompt(prompt).template(template.unwrap());
    }
    let more = Tool::new("more", "Adds to the session", |call: Call, _: NoArguments| async move {
        for name in ["own_1", "own_2", "own_3"] {
            call.session().unwrap().change_lists(|catalog| catalog.add_tool(named(name))).await?;
        }
        Ok("")
    });
    builder.tool(more).build().unwrap()
}

async fn page(client: &mut TestClient, cursor: Option<&Value>) -> (Vec<String>, Option<Value>) {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    let page = client.result("tools/list", params).await;
    (names(page["tools"].as_array().unwrap()), page.get("nextCursor").cloned())
}

#[tokio::test]
async fn all_pages_make_the_whole_list() {
    for size in (1..=5).chain([7, 8, 200]) {
        let server = paged(size);
        for revision in BOTH {
            let mut client = TestClient::open(&server, revision).await;
            for list in ["resources", "prompts", "resourceTemplates"] {
                assert_eq!(names(&client.list(list).await), NAMES, "{list} by {size}");
            }
            assert_eq!(names(&client.list("tools").await), [&NAMES[..], &["more"]].concat(), "by {size}");
            let (first, next) = page(&mut client, None).await;
            assert_eq!(first.len(), size.min(8));
            assert_eq!(next.is_some(), size < 8, "a cursor stands for more");
        }
    }
}

#[tokio::test]
async fn a_sessions_own_items_follow_in_any_size_of_page() {
    for size in 1..=12 {
        let mut client = TestClient::open(&paged(size), SESSION).await;
        client.tool("more", json!({})).await;
        let expected = [&NAMES[..], &["more", "own_1", "own_2", "own_3"]].concat();
        assert_eq!(names(&client.list("tools").await), expected, "by {size}");
    }
}

#[tokio::test]
async fn changes_between_pages_neither_repeat_nor_skip_what_stays() {
    for revision in BOTH {
        let server = paged(2);
        let mut client = TestClient::open(&server, revision).await;
        let (first, cursor) = page(&mut client, None).await;
        assert_eq!(first, ["a", "b"]);
        // What was seen goes, what marks the place goes, what comes next goes, and something new comes.
        for gone in ["a", "b", "c"] {
            server.change_lists(|catalog| catalog.remove_tool(gone));
        }
        server.change_lists(|catalog| catalog.add_tool(named("new"))).unwrap();
        let (mut rest, mut cursor) = (Vec::new(), cursor);
        while let Some(at) = cursor {
            let (more, next) = page(&mut client, Some(&at)).await;
            rest.extend(more);
            cursor = next;
        }
        assert_eq!(rest, ["d", "e", "f", "g", "more", "new"], "{revision}");
    }
}

#[tokio::test]
async fn cursors_are_opaque_and_good_for_one_list_and_one_principal() {
    let server = paged(2);
    let mut alice = Pair::of(&server, "alice").start(STATELESS).await.client;
    let cursor = page(&mut alice, None).await.1.unwrap();
    let text = cursor.as_str().unwrap();
    assert!(text.len() > 30 && !text.contains('.'), "nothing to read in {text}");
    assert_ne!(page(&mut alice, None).await.1.unwrap(), cursor, "no two are alike");

    let mut bob = Pair::of(&server, "bob").start(STATELESS).await.client;
    let bad = |text: &str| json!({ "cursor": text });
    let cut = &text[..text.len() - 1];
    let refused = json!({ "code": -32602, "message": "cursor is not valid for this list" });
    assert_eq!(bob.error("tools/list", bad(text)).await, refused);
    for (method, params) in [
        ("prompts/list", bad(text)),
        ("resources/list", bad(text)),
        ("tools/list", bad(cut)),
        ("tools/list", bad("2")),
        ("tools/list", bad("")),
    ] {
        assert_eq!(alice.error(method, params.clone()).await, refused, "{method} {params}");
    }
    assert_eq!(page(&mut alice, Some(&cursor)).await.0, ["c", "d"], "as often as one likes");
    // No cursor at all, as some clients write it.
    assert_eq!(page(&mut alice, Some(&Value::Null)).await.0, ["a", "b"]);
}
