//! The stream of what belongs to no request.

use refmcp_proto::engine::Change;

use crate::support::{Client, LATEST_SESSION, Site};

#[tokio::test]
async fn changes_are_told_once() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut stream = client.get(None).await;
    assert_eq!((stream.status, stream.is_sse()), (200, true));
    site.server.changed(&Change::Tools);
    let (id, told) = stream.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    drop(stream);
    // Whoever comes anew is not told again what was told before.
    let mut anew = client.get(None).await;
    site.server.changed(&Change::Resources);
    let (_, told) = anew.event().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/list_changed");
    // Whoever says what came last gets what follows.
    let mut back = client.get(id.as_deref()).await;
    let (_, told) = back.event().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/list_changed");
    assert!(anew.event().await.is_none(), "only the last reader reads");
}
