//! Lists that change while clients look at them, for all clients or for one session.

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{
    Call, CallError, Catalog, Change, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool,
};
use refmcp_testkit::client::{TestClient, text};
use serde_json::json;

use crate::support::{BOTH, SESSION, STATELESS, named, names};

fn prompt(name: &'static str) -> Prompt {
    Prompt::new(name, move |_, _| async move { Ok(PromptMessage::user(name)) })
}

fn resource(uri: &'static str) -> Resource {
    Resource::new(uri, uri, move |_| async move { Ok(ResourceContents::text(uri, uri)) })
}

fn family(pattern: &str) -> ResourceTemplate {
    let read = |_, uri: String, _| async move { Ok(ResourceContents::text(uri, "member")) };
    let family = ResourceTemplate::new(pattern, "family", read).unwrap();
    family.complete("member", |_, _| async { vec!["first".to_owned()] })
}

/// Changes the session's own lists.
async fn mine(call: Call, _: NoArguments) -> Result<String, CallError> {
    let session = call.session().ok_or_else(|| CallError::new("no session"))?;
    let change = |lists: &mut Catalog| {
        lists.add_prompt(prompt("my_prompt"));
        lists.add_resource(resource("my://resource"));
        lists.add_template(family(FAMILY));
        lists.add_tool(named("my_tool"))
    };
    session.change_lists(change).await?;
    Ok("added".to_owned())
}

/// Replaces an item of the server by one of the session.
async fn replace(call: Call, _: NoArguments) -> Result<String, CallError> {
    let own = Tool::new("shared", "The session's own", |_: Call, _: NoArguments| async { Ok("own") });
    call.session().unwrap().change_lists(|catalog| catalog.add_tool(own)).await?;
    Ok("replaced".to_owned())
}

async fn restore(call: Call, _: NoArguments) -> Result<String, CallError> {
    call.session().unwrap().change_lists(|catalog| catalog.remove_tool("shared")).await;
    Ok("restored".to_owned())
}

fn changing() -> Server {
    Server::builder("test", "1")
        .tool(Tool::new("mine", "Adds to the session", mine))
        .tool(Tool::new("replace", "Replaces for the session", replace))
        .tool(Tool::new("withdraw", "Removes the session's family", withdraw))
        .tool(Tool::new("restore", "Undoes that", restore))
        .tool(named("shared"))
        .resource(resource("shared://resource"))
        // A server says when it is built whether it completes anything.
        .prompt(
            prompt("shared").optional("about", "What about").complete("about", |_, _| async { Vec::new() }),
        )
        .build()
        .unwrap()
}

const FAMILY: &str = "my://family/{member}";
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

#[tokio::test]
async fn items_of_the_server_are_listed_for_all_clients() {
    let server = changing();
    let mut clients = Vec::new();
    for revision in BOTH {
        clients.push(TestClient::open(&server, revision).await);
        clients.last_mut().unwrap().catch_up().await;
    }
    let change = |lists: &mut Catalog| {
        lists.add_prompt(prompt("new"));
        lists.add_resource(resource("new://"));
        lists.add_tool(named("new"))
    };
    server.change_lists(change).unwrap();
    for list in LISTS {
        clients[0].notification(&format!("notifications/{list}/list_changed")).await;
    }
    for client in &mut clients {
        assert_eq!(client.tool_text("new", json!({})).await, "new");
        assert!(names(&client.list("prompts").await).contains(&"new".to_owned()));
        let read = client.result("resources/read", json!({ "uri": "new://" })).await;
        assert_eq!(read["contents"][0]["text"], "new://");
    }
    server.change_lists(|catalog| catalog.remove_tool("new"));
    clients[0].notification("notifications/tools/list_changed").await;
    for client in &mut clients {
        assert_eq!(client.tool_error("new", json!({})).await["code"], -32602);
        client.catch_up().await;
    }
    assert!(clients[1].notifications.is_empty(), "no subscription there: {:?}", clients[1].notifications);
}

#[tokio::test]
async fn changes_that_change_nothing_are_not_told() {
    let server = changing();
    let mut client = TestClient::open(&server, SESSION).await;
    client.catch_up().await;
    assert!(!server.change_lists(|catalog| catalog.remove_tool("nothing")));
    assert!(!server.change_lists(|catalog| catalog.remove_template("nothing://{more}")));
    // Its size tells of the content.
    server.change_lists(|catalog| catalog.add_resource(resource("shared://resource").size(7)));
    server.change_lists(|_| ());
    server.changed(&Change::Prompts);
    client.notification("notifications/prompts/list_changed").await;
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[tokio::test]
async fn what_is_added_for_one_session_is_its_own() {
    let server = changing();
    let mut client = TestClient::open(&server, SESSION).await;
    let mut other = TestClient::open(&server, SESSION).await;
    let mut stateless = TestClient::open(&server, STATELESS).await;
    client.tool("mine", json!({})).await;
    for list in LISTS {
        client.notification(&format!("notifications/{list}/list_changed")).await;
    }
    assert_eq!(client.tool_text("my_tool", json!({})).await, "my_tool");
    for (list, own) in [("tools", "my_tool"), ("prompts", "my_prompt"), ("resources", "my://resource")] {
        assert!(names(&client.list(list).await).contains(&own.to_owned()), "{list}");
        for client in [&mut other, &mut stateless] {
            assert!(!names(&client.list(list).await).contains(&own.to_owned()), "{list}");
        }
    }
    for client in [&mut other, &mut stateless] {
        assert_eq!(client.tool_error("my_tool", json!({})).await["code"], -32602);
        client.error("resources/read", json!({ "uri": "my://resource" })).await;
        assert!(client.notifications.is_empty(), "{:?}", client.notifications);
    }
    // A request without a session sees none of it, even over the connection of the session.
    client.meta("io.modelcontextprotocol/protocolVersion", json!(STATELESS.as_str()));
    client.meta("io.modelcontextprotocol/clientCapabilities", json!({}));
    assert!(!names(&client.list("tools").await).contains(&"my_tool".to_owned()));
}

#[tokio::test]
async fn a_sessions_own_family_of_resources_is_read_and_completed() {
    let server = changing();
    let mut client = TestClient::open(&server, SESSION).await;
    client.tool("mine", json!({})).await;
    assert_eq!(client.list("resourceTemplates").await.len(), 1);
    let read = client.result("resources/read", json!({ "uri": "my://family/7" })).await;
    assert_eq!(read["contents"][0]["text"], "member");
    let reference = json!({ "type": "ref/resource", "uri": "my://family/{member}" });
    let params = json!({ "ref": reference, "argument": { "name": "member", "value": "" } });
    let told = client.result("completion/complete", params.clone()).await;
    assert_eq!(told["completion"]["values"], json!(["first"]));
    let mut other = TestClient::open(&server, SESSION).await;
    assert_eq!(other.list("resourceTemplates").await.len(), 0);
    other.error("resources/read", json!({ "uri": "my://family/7" })).await;
    other.error("completion/complete", params).await;
}

/// Withdraws the session's family of resources.
async fn withdraw(call: Call, _: NoArguments) -> Result<String, CallError> {
    let session = call.session().ok_or_else(|| CallError::new("no session"))?;
    Ok(session.change_lists(|lists| lists.remove_template(FAMILY)).await.to_string())
}

#[tokio::test]
async fn templates_are_removed_from_the_lists_of_a_server_and_of_a_session() {
    let server = changing();
    let mut client = TestClient::open(&server, SESSION).await;
    client.tool("mine", json!({})).await;
    client.notification("notifications/resources/list_changed").await;
    assert_eq!(client.tool_text("withdraw", json!({})).await, "true");
    client.notification("notifications/resources/list_changed").await;
    assert_eq!(client.list("resourceTemplates").await.len(), 0);
    client.error("resources/read", json!({ "uri": "my://family/7" })).await;
    assert_eq!(client.tool_text("withdraw", json!({})).await, "false");

    server.change_lists(|lists| lists.add_template(family("all://{member}")));
    client.notification("notifications/resources/list_changed").await;
    assert_eq!(client.list("resourceTemplates").await.len(), 1);
    assert!(server.change_lists(|lists| lists.remove_template("all://{member}")));
    client.notification("notifications/resources/list_changed").await;
    assert_eq!(client.list("resourceTemplates").await.len(), 0);
}

#[tokio::test]
async fn a_resource_that_is_described_anew_is_announced() {
    let server = changing();
    let mut client = TestClient::open(&server, SESSION).await;
    client.catch_up().await;
    server.change_lists(|lists| lists.add_resource(resource("shared://resource").title("Another")));
    client.notification("notifications/resources/list_changed").await;
}

#[tokio::test]
async fn a_sessions_own_tool_takes_the_place_of_the_servers() {
    let server = changing();
    let mut client = TestClient::open(&server, SESSION).await;
    client.tool("replace", json!({})).await;
    assert_eq!(client.tool_text("shared", json!({})).await, "own");
    let tools = client.list("tools").await;
    let shared: Vec<_> = tools.iter().filter(|tool| tool["name"] == "shared").collect();
    assert_eq!(shared.len(), 1, "two tools of one name: {shared:?}");
    assert_eq!(shared[0]["description"], "The session's own");
    let mut other = TestClient::open(&server, SESSION).await;
    assert_eq!(other.tool_text("shared", json!({})).await, "shared");
    client.tool("restore", json!({})).await;
    assert_eq!(client.tool_text("shared", json!({})).await, "shared");
}

#[tokio::test]
async fn a_replaced_tool_keeps_its_place() {
    let server = changing();
    let mut client = TestClient::open(&server, STATELESS).await;
    let before = names(&client.list("tools").await);
    let better = Tool::new("mine", "Better", |_: Call, _: NoArguments| async { Ok("better") });
    server.change_lists(|catalog| catalog.add_tool(better)).unwrap();
    assert_eq!(names(&client.list("tools").await), before);
    assert_eq!(text(&client.tool("mine", json!({})).await), "better");
}

#[tokio::test]
async fn a_call_in_flight_outlives_its_tool() {
    let gate = crate::support::Gate::new();
    let server = Server::builder("test", "1").tool(gate.tool()).build().unwrap();
    let mut client = TestClient::open(&server, STATELESS).await;
    let id = client.start_tool("gate", json!({})).await;
    client.catch_up().await;
    server.change_lists(|catalog| catalog.remove_tool("gate"));
    gate.let_through(1);
    assert_eq!(text(&client.answer(id).await["result"]), "through");
}
