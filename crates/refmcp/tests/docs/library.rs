//! The examples of the library in the guide to the client, as a compiler sees them. Those that need nothing from
//! outside are run as well.

#![allow(clippy::print_stdout, reason = "so do the examples")]

use refmcp_client::Client;
use refmcp_client::memory::Memory;
use serde_json::json;

pub(super) type Done = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_guide_says_the_same() {
    stands_in("docs/client.md", include_str!("library.rs"), 5);
}

/// Every Rust example of a document, of which there are at least so many, stands in this source.
pub(super) fn stands_in(document: &str, source: &str, at_least: usize) {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let (document, source) = (super::read(document), lines(source));
    let blocks: Vec<&str> =
        document.split("```rust\n").skip(1).filter_map(|after| after.split("```").next()).collect();
    assert!(blocks.len() >= at_least, "the document has lost its examples");
    for block in blocks {
        assert!(source.contains(lines(block).trim_end()), "this is not what is compiled:\n{block}");
    }
}

mod whole {
    #![allow(dead_code, reason = "it would call a server that is not there")]

    use refmcp_client::{Client, http::StreamableHttp};
    use serde_json::json;

    #[tokio::main]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = StreamableHttp::new("http://127.0.0.1:3000/mcp")?;
        let client = Client::builder("my-app", "1.0").connect(server).await?;
        let sum = client.call_tool("sum", json!({ "a": 1, "b": 2 })).await?;
        println!("{:?}", sum.structured_content);
        client.close().await;
        Ok(())
    }
}

/// The reference server, in this process.
pub(super) fn reference() -> Memory {
    Memory::new(refmcp_reference::server(refmcp_reference::Options::default()).unwrap().in_memory())
}

#[tokio::test]
async fn a_host() -> Done {
    let server = reference();

    use refmcp_client::model::{CreateMessageResult, Root};
    use refmcp_client::{Client, Event, Host};

    let host = Host::new()
        .elicitation_defaults()
        .sampling(|_request| async { Ok(CreateMessageResult::text("my-model", "Good morning")) })
        .roots([Root::new("file:///home/me/project")])
        .on_event(|event| {
            if let Event::Notification(notification) = event {
                eprintln!("{notification:?}");
            }
        });
    let client = Client::builder("my-app", "1.0").host(host).connect(server).await?;

    let asked = client.call_tool("ask_model", json!({ "prompt": "Hello" })).await?;
    assert_eq!(asked.content[0].as_text(), Some("my-model answered: Good morning"));
    let asked = client.call_tool("ask_user", json!({ "form": "confirm" })).await?;
    assert_eq!(asked.content[0].as_text(), Some("The user accepted and answered {\"confirm\":false}"));
    Ok(())
}

#[tokio::test]
async fn deadlines() -> Done {
    let client = Client::builder("my-app", "1.0").connect(reference()).await?;
    let given_up = std::future::pending();

    use std::time::Duration;

    let request = client
        .call_tool("long_task", json!({ "steps": 3 }))
        .timeout(Duration::from_secs(10))
        .total_timeout(Duration::from_secs(60))
        .on_progress(|progress| eprintln!("{} of {:?}", progress.progress, progress.total));
    tokio::select! {
        result = request.into_future() => println!("{:?}", result?.content),
        () = given_up => println!("the server has been told"),
    }
    Ok(())
}

#[allow(dead_code, reason = "it would start and call servers")]
async fn several_servers() -> Done {
    use std::sync::Arc;

    use refmcp_client::child::ChildProcess;
    use refmcp_client::http::StreamableHttp;
    use refmcp_client::model::Tool;
    use refmcp_client::transport::Connector;
    use refmcp_client::{Client, Clients};

    let servers: [(String, Arc<dyn Connector>); 2] = [
        ("here".to_owned(), Arc::new(ChildProcess::new("refmcp").args(["stdio"]))),
        ("there".to_owned(), Arc::new(StreamableHttp::new("http://127.0.0.1:3000/mcp")?)),
    ];
    let clients = Clients::connect(servers, |_| Client::builder("my-app", "1.0")).await;
    for (name, error) in clients.failed() {
        eprintln!("{name}: {error}");
    }
    for tool in clients.list::<Tool>().await.items {
        println!("{}", tool.prefixed(&tool.item.name));
    }
    let result = clients.call_tool("here.echo", json!({ "message": "hello" }))?.await?;

    println!("{:?}", result.content);
    Ok(())
}

#[tokio::test]
async fn in_memory() -> Done {
    use refmcp_client::{Client, memory::Memory};
    use refmcp_server::{Call, NoArguments, Server, Tool};

    let tool = Tool::new("throw", "Throws a die", |_: Call, _: NoArguments| async { Ok("4") });
    let server = Server::builder("die", "1.0").tool(tool).build()?;

    let client = Client::builder("test", "1.0").connect(Memory::new(server.in_memory())).await?;
    let thrown = client.call_tool("throw", json!({})).await?;
    assert_eq!(thrown.content[0].as_text(), Some("4"));
    Ok(())
}
