//! A server whose handlers compute without ever waiting: they have a runtime of their own, so that however many of
//! them are at it, messages are read and answered, and a cancellation is seen.

use std::time::Duration;

use refmcp_server::{Call, CallError, NoArguments, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Primes {
    /// Up to which number to look.
    up_to: u64,
}

async fn primes(call: Call, Primes { up_to }: Primes) -> Result<String, CallError> {
    let mut count = 0;
    for number in 2..=up_to {
        if call.cancelled_at().is_some() {
            return Err(CallError::new("cancelled"));
        }
        count += u64::from(is_prime(number));
    }
    Ok(format!("{count} primes"))
}

fn is_prime(number: u64) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

async fn hello(_: Call, _: NoArguments) -> Result<&'static str, CallError> {
    Ok("Hello!")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let handlers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let messages = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server::builder("computing", "1.0")
        .tool(Tool::new("primes", "Counts primes", primes).read_only())
        // Done at once, so it needs no thread of the handlers.
        .tool(Tool::new("hello", "Greets", hello).read_only().inline())
        // Handlers that run when the client leaves have this long.
        .grace(Duration::from_millis(500))
        .build()?;
    messages.block_on(server.stdio_with_handlers_on(handlers.handle().clone()))?;
    // Handlers that still compute are not waited for.
    handlers.shutdown_background();
    Ok(())
}
