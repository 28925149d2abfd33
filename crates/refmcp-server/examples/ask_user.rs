//! A tool that asks a person before it acts: two questions at once, a costly step that is done once, and progress.
//!
//! The handler runs from its beginning whenever answers have come, in every revision of the protocol. What it does
//! above its last question happens again each time, unless it stands inside of `once`.

use refmcp_server::model::{Choices, FormSchema, SingleChoiceSchema};
use refmcp_server::{Call, CallError, ElicitOutcome, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Deploy {
    /// What to deploy.
    service: String,
}

async fn deploy(call: Call, Deploy { service }: Deploy) -> Result<String, CallError> {
    call.progress(1.0, Some(3.0), "looking for the latest build").await;
    let build: u32 = call.once("build", latest_build(&service)).await?;

    // Both are asked before the first `?`, so they travel together.
    let environments = SingleChoiceSchema::new(Choices::Plain(vec!["test".to_owned(), "live".to_owned()]));
    let form = FormSchema::new().required("environment", environments);
    let environment = call.elicit("environment", "Where should it run?", form);
    let sure = call.confirm("sure", format!("Deploy build {build} of {service}?"));
    let ElicitOutcome::Accepted(chosen) = environment? else { return Ok("Nothing was deployed.".to_owned()) };
    if !sure? {
        return Ok("Nothing was deployed.".to_owned());
    }

    // Below the last question everything happens once.
    call.progress(2.0, Some(3.0), "deploying").await;
    let environment = chosen["environment"].as_str().unwrap_or("test");
    call.progress(3.0, Some(3.0), "done").await;
    Ok(format!("Build {build} of {service} runs in {environment}."))
}

/// Stands for something that takes its time and must not be done twice.
async fn latest_build(service: &str) -> Result<u32, CallError> {
    u32::try_from(service.len()).map_err(|_| CallError::new("the name is too long"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let deploy = Tool::new("deploy", "Deploys a service after asking", deploy).destructive();
    let server = Server::builder("deployer", "1.0").tool(deploy).build()?;
    server.stdio().await?;
    Ok(())
}
