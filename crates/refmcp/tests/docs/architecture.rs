//! The examples of ARCHITECTURE.md, as a compiler sees them, and run: one for each seam.

#![allow(clippy::print_stdout, reason = "so do the examples")]

use serde_json::json;

use super::library::{Done, reference, stands_in};

#[test]
fn the_architecture_says_the_same() {
    stands_in("ARCHITECTURE.md", include_str!("architecture.rs"), 5);
}

#[tokio::test]
async fn an_observer() -> Done {
    let server = reference();

    use std::sync::Arc;

    use refmcp_client::Client;
    use refmcp_client::observer::{EventContext, MessageEvent, Observer};

    struct Print;
    impl Observer for Print {
        fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
            println!("{:?} {:?} {}", context.connection, message.direction, message.bytes.len());
        }
    }
    let client = Client::builder("my-app", "1.0").observer(Arc::new(Print)).connect(server).await?;

    client.close().await;
    Ok(())
}

#[tokio::test]
async fn a_transport() -> Done {
    use refmcp_client::{Client, memory::Memory};
    use refmcp_server::{Connection, Server};
    use refmcp_transport::pipe::{LineReader, LineWriter};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::sync::CancellationToken;

    let server = Server::builder("tcp", "1.0").build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();

    let serving = async {
        let (read, write) = listener.accept().await?.0.into_split();
        let pipe = (LineReader::new(read, 4 << 20), LineWriter::new(write));
        let connection = Connection { transport: "tcp", ..Connection::default() };
        server.serve(pipe, connection, stop).await
    };
    let calling = async {
        let (read, write) = TcpStream::connect(address).await?.into_split();
        let pipe = Memory::new((LineReader::new(read, 4 << 20), LineWriter::new(write)));
        let client = Client::builder("my-app", "1.0").connect(pipe).await?;
        client.ping().await?;
        client.close().await;
        Ok::<_, Box<dyn std::error::Error>>(())
    };

    let (served, called) = tokio::join!(serving, calling);
    served?;
    called
}

#[tokio::test]
async fn a_method() -> Done {
    use refmcp_client::model::JsonObject;
    use refmcp_client::{Client, memory::Memory};
    use refmcp_server::{Call, CallError, Server};

    async fn count(_: Call, params: JsonObject) -> Result<JsonObject, CallError> {
        Ok(JsonObject::from_iter([("members".to_owned(), params.len().into())]))
    }
    let server = Server::builder("counting", "1.0").method("example/count", count).build()?;

    let client = Client::builder("my-app", "1.0").connect(Memory::new(server.in_memory())).await?;
    let params = JsonObject::from_iter([("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))]);
    assert_eq!(client.raw("example/count", params).await?["members"], 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_backplane() -> Done {
    use std::sync::Arc;
    use std::time::Duration;

    use refmcp_http::Endpoint;
    use refmcp_server::Server;
    use refmcp_server::backplane::MemoryBackplane;
    use refmcp_testkit::backplane::{BackplaneFixture, CASES, Replicas};

    let fixture = BackplaneFixture::new(Duration::from_secs(1), |settings| async {
        let yours = Arc::new(MemoryBackplane::new(settings));
        Replicas { one: yours.clone(), other: yours }
    });
    for case in CASES {
        (case.run)(&fixture).await;
    }
    let yours = Arc::new(MemoryBackplane::default());
    let replica = Endpoint::builder(Server::builder("shared", "1.0").build()?).backplane(yours).build();

    drop(replica);
    Ok(())
}

#[test]
fn a_revision() {
    use refmcp_client::Revision;
    use refmcp_proto::revision::{BatchRule, Rules};

    const RULES: Rules = Rules {
        batches: BatchRule::Accepted, // what differs from the revision before
        ..*Revision::LATEST.rules()
    };

    assert_ne!(RULES.batches, Revision::LATEST.rules().batches);
}
