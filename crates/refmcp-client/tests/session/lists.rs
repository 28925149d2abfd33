//! Lists: all pages, one page, one thing; and pages that never end.

use refmcp_client::model::Tool;
use refmcp_client::{Error, Revision};
use serde_json::{Value, json};

use crate::fixture::{client_of, client_of_script, server};

#[tokio::test(start_paused = true)]
async fn a_list_is_read_whole_by_page_or_one_by_one() {
    let server = server();
    for revision in Revision::ALL {
        let (client, _) = client_of(&server, revision).await;
        let all = client.list_tools().await.unwrap();
        assert_eq!(all.len(), 9, "{revision}");
        let mut pages = client.pages::<Tool>();
        let mut sizes = Vec::new();
        while let Some(page) = pages.next_page().await.unwrap() {
            sizes.push(page.len());
        }
        assert_eq!(sizes, [3, 3, 3]);
        let mut one_by_one = client.pages::<Tool>();
        for tool in &all {
            assert_eq!(one_by_one.next().await.unwrap().as_ref(), Some(tool));
        }
        assert_eq!(one_by_one.next().await.unwrap(), None);
        assert_eq!(client.list_resources().await.unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_go_in_circles_are_left() {
    let (client, mut script, _) = client_of_script().await;
    let page = |next: &str| -> Value { json!({ "tools": [], "nextCursor": next }) };
    let serving = async {
        for next in ["a", "", "a"] {
            script.answer("tools/list", page(next)).await;
        }
    };
    let (listed, ()) = tokio::join!(client.list_tools(), serving);
    assert!(matches!(listed, Err(Error::EndlessList(_))), "{listed:?}");
}

#[tokio::test(start_paused = true)]
async fn unknown_members_are_kept() {
    let (client, mut script, _) = client_of_script().await;
    let schema = json!({ "type": "object", "$defs": { "a": true }, "x-odd": [1, null] });
    let tools =
        json!({ "tools": [{ "name": "t", "inputSchema": schema, "odd": { "deep": 1.5 } }], "more": 1 });
    let (listed, _) = tokio::join!(client.list_tools(), script.answer("tools/list", tools.clone()));
    assert_eq!(serde_json::to_value(&listed.unwrap()[0]).unwrap(), tools["tools"][0]);
}
