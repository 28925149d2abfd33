//! A whole server: one tool, over standard input and output.

use refmcp_server::{Call, CallError, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

async fn greet(_: Call, Greet { name }: Greet) -> Result<String, CallError> {
    Ok(format!("Hello, {name}!"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::builder("greeter", "1.0").tool(Tool::new("greet", "Greets a person", greet)).build()?;
    server.stdio().await?;
    Ok(())
}
