//! Every conversation in `transcripts/` with a real server goes as it is written there, under every revision it names,
//! and every message of the server fits the official schema. `UPDATE=1 cargo test` rewrites what is expected.

use std::path::Path;
use std::time::Duration;

use refmcp_server::model::{FormSchema, ResourceContents, StringSchema};
use refmcp_server::{
    BuildError, Call, CallError, ElicitOutcome, Json, NoArguments, Resource, Revision, Server, Tool,
};
use refmcp_testkit::schema::{Checked, load_all};
use refmcp_testkit::server_endpoint::ServerEndpoint;
use refmcp_testkit::transcript::{Endpoint, Settings, run_folder};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    total: i64,
}

async fn add(_: Call, Add { a, b }: Add) -> Result<Json<Sum>, CallError> {
    Ok(Json(Sum { total: a + b }))
}

async fn greet(call: Call, _: NoArguments) -> Result<String, CallError> {
    let form = FormSchema::new().required("name", StringSchema::new());
    match call.elicit("who", "Who are you?", form)? {
        ElicitOutcome::Accepted(values) => Ok(format!("Hello, {}!", values["name"])),
        _ => Ok("Hello, stranger!".to_owned()),
    }
}

/// Tells every second how far it has come.
async fn sleep(call: Call, _: NoArguments) -> Result<String, CallError> {
    for second in 1..=3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        call.progress(f64::from(second), Some(3.0), "sleeping").await;
    }
    Ok("awake".to_owned())
}

fn server() -> Result<Server, BuildError> {
    Server::builder("transcribed", "1")
        .tool(Tool::new("add", "Adds two numbers", add).read_only())
        .tool(Tool::new("greet", "Greets the user by name", greet))
        .tool(Tool::new("sleep", "Sleeps for three seconds", sleep))
        .resource(Resource::new("news://today", "news", |_| async {
            Ok(ResourceContents::text("news://today", "none"))
        }))
        .build()
}

#[test]
fn conversations_go_as_they_are_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let schemas = load_all();
    let mut start = |_: &Settings, revision: Revision| {
        let served = ServerEndpoint::new(server)?;
        Ok(Box::new(Checked::new(served, revision, schemas.clone())) as Box<dyn Endpoint>)
    };
    match run_folder(&folder, &json!({ "name": "transcribed", "version": "1" }), &mut start) {
        Ok(held) => assert!(held > 0, "no transcripts in {}", folder.display()),
        Err(problems) => panic!("{problems}"),
    }
}
