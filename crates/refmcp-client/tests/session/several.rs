//! Several servers at once: one that fails stops no other.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::Clients;
use refmcp_client::memory::Memory;
use refmcp_client::model::{ContentBlock, Resource, Tool};
use refmcp_client::transport::Connector;
use serde_json::json;

use crate::fixture::{Script, builder, server};

fn text(content: &[ContentBlock]) -> &str {
    match content {
        [ContentBlock::Text(text)] => &text.text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_prefixed_and_one_that_fails_stops_no_other() {
    let (mut silent, memory) = Script::new();
    let serve_nothing = tokio::spawn(async move { while silent.next().await.is_some() {} });
    let servers: Vec<(String, Arc<dyn Connector>)> = vec![
        ("one".to_owned(), Arc::new(Memory::new(server().in_memory()))),
        ("one.two".to_owned(), Arc::new(Memory::new(server().in_memory()))),
        ("silent".to_owned(), Arc::new(memory)),
    ];
    let clients = Clients::connect(servers, |_| builder().0.open_timeout(Duration::from_secs(9))).await;
    assert_eq!(clients.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["one", "one.two"]);
    let failed: Vec<_> = clients.failed().map(|(name, error)| (name, error.to_string())).collect();
    assert!(matches!(&failed[..], [("silent", why)] if why.contains("within 9 s")), "{failed:?}");
    let tools = clients.list::<Tool>().await;
    assert_eq!((tools.items.len(), tools.failed.len()), (18, 0));
    let names: Vec<String> = tools.items.iter().map(|tool| tool.prefixed(&tool.item.name)).collect();
    assert!(
        names.contains(&"one.echo".to_owned()) && names.contains(&"one.two.echo".to_owned()),
        "{names:?}"
    );
    assert_eq!(clients.list::<Resource>().await.items.len(), 2);
    for name in names.iter().filter(|name| name.ends_with(".echo")) {
        let result = clients.call_tool(name, json!({ "message": name })).unwrap().await.unwrap();
        assert_eq!(text(&result.content), name);
    }
    for unknown in ["echo", "three.echo", ".echo", ""] {
        assert!(clients.call_tool(unknown, json!({})).is_err(), "{unknown}");
    }
    clients.close().await;
    serve_nothing.await.unwrap();
}
