//! Logs in at a server that wants to know who asks, and says what tools it has:
//! `cargo run --example authorized -- https://mcp.example/mcp`

use std::error::Error;

use refmcp_client::Client;
use refmcp_client::auth::{Authorization, Browser, BrowserError, is_redirect_for};
use refmcp_client::http::StreamableHttp;
use refmcp_client::transport::BoxFuture;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use url::Url;

/// Asks for the login on the terminal, and waits on this machine for the browser to come back.
#[derive(Debug)]
struct Terminal {
    listener: TcpListener,
}

impl Terminal {
    async fn come_back(&self, visited: &Url) -> Result<Url, Box<dyn Error + Send + Sync>> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let mut stream = BufReader::new(stream);
            let mut first = String::new();
            stream.read_line(&mut first).await?;
            let path = first.split(' ').nth(1).unwrap_or("/");
            let url = Url::parse(&format!("http://{}", self.listener.local_addr()?))?.join(path)?;
            let ours = is_redirect_for(visited, &url);
            let (status, text) = if ours { ("200 OK", "You may close this.") } else { ("404 Not Found", "") };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
            stream.write_all(response.as_bytes()).await?;
            if ours {
                return Ok(url);
            }
        }
    }
}

impl Browser for Terminal {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async {
            let at = self.listener.local_addr().map_err(|error| BrowserError::Failed(error.to_string()))?;
            Url::parse(&format!("http://{at}/callback"))
                .map_err(|error| BrowserError::Failed(error.to_string()))
        })
    }

    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async move {
            eprintln!("Open this in a browser:\n{url}");
            self.come_back(&url).await.map_err(|error| BrowserError::Failed(error.to_string()))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("the URL of a server is missing")?;
    let browser = Terminal { listener: TcpListener::bind("127.0.0.1:0").await? };
    let authorization = Authorization::new(browser).on_step(|step| eprintln!("{step}"));
    let server = StreamableHttp::new(&url)?.authorization(authorization);
    let client = Client::builder("example", "1.0").connect(server).await?;
    for tool in client.list_tools().await? {
        eprintln!("{}", tool.name);
    }
    client.close().await;
    Ok(())
}
