//! The GET stream: messages that belong to no request.

use refmcp_proto::engine::Change;

use crate::support::{Client, LATEST_SESSION, Site};

#[tokio::test]
async fn changes_are_sent_once() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut stream = client.get(None).await;
    assert_eq!((stream.status, stream.is_sse()), (200, true));
    site.server.changed(&Change::Tools);
    let (id, told) = stream.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    drop(stream);
    // A new reader does not get messages that were read before.
    let mut anew = client.get(None).await;
    site.server.changed(&Change::Resources);
    let (_, told) = anew.event().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/list_changed");
    // A reader with `Last-Event-ID` gets what follows.
    let mut back = client.get(id.as_deref()).await;
    let (_, told) = back.event().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/list_changed");
    assert!(anew.event().await.is_none(), "only the last reader reads");
}
