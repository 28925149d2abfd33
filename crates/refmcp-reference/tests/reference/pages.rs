//! Lists in pages.

use refmcp_reference::Options;

use crate::client::{Client, SESSION, STATELESS, server};

#[tokio::test]
async fn pages_of_any_size_make_the_same_list() {
    let whole = server();
    for size in [1, 3, 7] {
        let paged = refmcp_reference::server(Options { page_size: size, ..Options::default() }).unwrap();
        for revision in [SESSION, STATELESS] {
            let (mut one, mut other) =
                (Client::new(&whole, revision).await, Client::new(&paged, revision).await);
            for list in ["tools", "resources", "templates", "prompts"] {
                assert_eq!(one.list(list).await, other.list(list).await, "{list} by {size}");
            }
        }
    }
}
