//! Directories as resources: what is listed, what is read, what is kept in.

use std::fs;
use std::path::Path;
use std::time::Duration;

use refmcp_reference::{Options, ReferenceError};
use refmcp_server::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, SESSION, SESSIONS, STATELESS};

fn serve(directory: &Path) -> Server {
    refmcp_reference::server(Options { resources_dir: Some(directory.to_owned()), ..Options::default() })
        .unwrap()
}

async fn listed(client: &mut Client) -> Vec<Value> {
    let resources = client.list("resources").await;
    let inside =
        |resource: &Value| resource["uri"].as_str().is_some_and(|uri| uri.starts_with("file:///dir/"));
    resources.into_iter().filter(inside).collect()
}

async fn uris(client: &mut Client) -> Vec<String> {
    let mut uris: Vec<_> = listed(client)
        .await
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap()["file:///dir/".len()..].to_owned())
        .collect();
    uris.sort();
    uris
}

async fn is_missing(client: &mut Client, uri: &str) -> bool {
    let answer = client.request("resources/read", json!({ "uri": uri })).await;
    answer["error"]["code"] == -32602 && answer["error"]["data"]["uri"] == uri
}

#[tokio::test]
async fn files_are_listed_and_read() {
    let root = TempDir::new().unwrap();
    fs::create_dir_all(root.path().join("deep/er")).unwrap();
    fs::write(root.path().join("a b.txt"), "text").unwrap();
    fs::write(root.path().join("deep/er/data.json"), "{}").unwrap();
    fs::write(root.path().join("deep/picture.png"), [0x89, b'P']).unwrap();
    fs::write(root.path().join("deep/unknown"), [1, 0, 2]).unwrap();
    fs::write(root.path().join("README"), "plain").unwrap();
    fs::write(root.path().join(".secret"), "no").unwrap();
    let server = serve(root.path());
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        assert_eq!(
            uris(&mut client).await,
            ["README", "a%20b.txt", "deep/er/data.json", "deep/picture.png", "deep/unknown"]
        );
        for resource in listed(&mut client).await {
            assert!(resource["size"].is_u64() && resource["annotations"]["lastModified"].is_string());
        }
        let mut read = async |path: &str| {
            let result =
                client.result("resources/read", json!({ "uri": format!("file:///dir/{path}") })).await;
            result["contents"][0].clone()
        };
        assert_eq!(read("a%20b.txt").await["text"], "text");
        assert_eq!(read("a b.txt").await["text"], "text", "also when it is not escaped");
        assert_eq!(read("deep/er/data.json").await["mimeType"], "application/json");
        assert_eq!(read("deep/picture.png").await["blob"], "iVA=");
        assert_eq!(read("deep/unknown").await["mimeType"], "application/octet-stream");
        assert_eq!(read("README").await["mimeType"], "text/plain");
        let completed = client.result("completion/complete", json!({
            "ref": { "type": "ref/resource", "uri": "file:///dir/{+path}" }, "argument": { "name": "path", "value": "deep/e" },
        })).await;
        assert_eq!(completed["completion"]["values"], json!(["deep/er/data.json"]));
    }
}

#[tokio::test]
async fn nothing_leads_out() {
    let parent = TempDir::new().unwrap();
    let root = parent.path().join("root");
    let evil = parent.path().join("rootevil");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir_all(&evil).unwrap();
    fs::write(evil.join("secret.txt"), "secret").unwrap();
    fs::write(parent.path().join("secret.txt"), "secret").unwrap();
    fs::write(root.join("inside.txt"), "inside").unwrap();
    fs::write(root.join(".hidden"), "secret").unwrap();
    let server = serve(&root);
    let mut client = Client::new(&server, STATELESS).await;
    let absolute = parent.path().join("secret.txt").display().to_string();
    for path in [
        "../secret.txt",
        "%2e%2e/secret.txt",
        "%2e%2e%2fsecret.txt",
        "%2E%2E%2Fsecret.txt",
        "..%2fsecret.txt",
        "sub/../../secret.txt",
        "sub/..%2f..%2fsecret.txt",
        "..\\secret.txt",
        "..%5csecret.txt",
        "sub\\..\\..\\secret.txt",
        "../rootevil/secret.txt",
        "./inside.txt",
        "sub/../inside.txt",
        "/inside.txt",
        "//inside.txt",
        "%2finside.txt",
        ".hidden",
        "sub",
        "sub/",
        "",
        ".",
        "..",
        "%00",
        "inside.txt%00",
        "%252e%252e%252fsecret.txt",
        "%ff",
        "none.txt",
        absolute.as_str(),
        &format!("/{absolute}"),
        "inside.txt/x",
        "C:/x",
        "~/x",
    ] {
        let uri = format!("file:///dir/{path}");
        assert!(is_missing(&mut client, &uri).await, "{uri}");
    }
    for uri in
        ["file:///dir", "file:///dirinside.txt", "file:///rootevil/secret.txt", "file://dir/inside.txt"]
    {
        assert!(is_missing(&mut client, uri).await, "{uri}");
    }
    let inside = client.result("resources/read", json!({ "uri": "file:///dir/inside.txt" })).await;
    assert_eq!(inside["contents"][0]["text"], "inside");
}

#[cfg(unix)]
#[tokio::test]
async fn links_do_not_lead_out_either() {
    use std::os::unix::fs::symlink;

    let parent = TempDir::new().unwrap();
    let root = parent.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir_all(parent.path().join("outside")).unwrap();
    fs::write(parent.path().join("outside/secret.txt"), "secret").unwrap();
    fs::write(root.join("inside.txt"), "inside").unwrap();
    fs::write(root.join("swapped.txt"), "before").unwrap();
    symlink(parent.path().join("outside/secret.txt"), root.join("absolute.txt")).unwrap();
    symlink("../outside/secret.txt", root.join("relative.txt")).unwrap();
    symlink("../../outside/secret.txt", root.join("sub/relative.txt")).unwrap();
    symlink(parent.path().join("outside"), root.join("directory")).unwrap();
    symlink("..", root.join("parent")).unwrap();
    symlink("/", root.join("slash")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("inside.txt", root.join("good.txt")).unwrap();
    let server = serve(&root);
    let mut client = Client::new(&server, STATELESS).await;
    assert_eq!(uris(&mut client).await, ["inside.txt", "swapped.txt"]);
    let secret = parent.path().join("outside/secret.txt");
    let by_slash = format!("slash{}", secret.display());
    for path in [
        "absolute.txt",
        "relative.txt",
        "sub/relative.txt",
        "directory/secret.txt",
        "parent/outside/secret.txt",
        by_slash.as_str(),
        "loop",
    ] {
        assert!(is_missing(&mut client, &format!("file:///dir/{path}")).await, "{path}");
    }
    let good = client.result("resources/read", json!({ "uri": "file:///dir/good.txt" })).await;
    assert_eq!(good["contents"][0]["text"], "inside");

    // A file that was listed as such may be a link by the time it is read, and so may a directory above it.
    fs::remove_file(root.join("swapped.txt")).unwrap();
    symlink(&secret, root.join("swapped.txt")).unwrap();
    assert!(is_missing(&mut client, "file:///dir/swapped.txt").await);
    fs::remove_dir_all(root.join("sub")).unwrap();
    symlink(parent.path().join("outside"), root.join("sub")).unwrap();
    assert!(is_missing(&mut client, "file:///dir/sub/secret.txt").await);
}

#[tokio::test]
async fn large_files_are_refused() {
    let root = TempDir::new().unwrap();
    fs::File::create(root.path().join("large.bin")).unwrap().set_len((8 << 20) + 1).unwrap();
    fs::File::create(root.path().join("fits.png")).unwrap().set_len(1 << 20).unwrap();
    let server = serve(root.path());
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut client = Client::new(&server, revision).await;
        let error = client.error("resources/read", json!({ "uri": "file:///dir/large.bin" })).await;
        assert!(error["message"].as_str().unwrap().contains("8 MiB"), "{error}");
        assert!(!error.to_string().contains(root.path().to_str().unwrap()));
        client.result("resources/read", json!({ "uri": "file:///dir/fits.png" })).await;
    }
}

#[tokio::test]
async fn changes_are_noticed() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("one.txt"), "1").unwrap();
    let server = serve(root.path());
    let mut client = Client::new(&server, SESSION).await;
    client.result("resources/subscribe", json!({ "uri": "file:///dir/one.txt" })).await;

    fs::create_dir(root.path().join("new")).unwrap();
    fs::write(root.path().join("new/two.txt"), "2").unwrap();
    client.hear("notifications/resources/list_changed").await;
    let mut tries = 0;
    while uris(&mut client).await != ["new/two.txt", "one.txt"] {
        tries += 1;
        assert!(tries < 100, "the new file is never listed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    client.heard.clear();
    fs::write(root.path().join("one.txt"), "one").unwrap();
    let updated = client.hear("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "file:///dir/one.txt");
    assert_eq!(client.count("notifications/resources/list_changed"), 0, "nothing came or went");
    let size =
        listed(&mut client).await.iter().find(|file| file["name"] == "one.txt").unwrap()["size"].clone();
    assert_eq!(size, 3);

    fs::remove_file(root.path().join("one.txt")).unwrap();
    client.hear("notifications/resources/list_changed").await;
    assert_eq!(uris(&mut client).await, ["new/two.txt"]);
    assert_eq!(client.error("resources/read", json!({ "uri": "file:///dir/one.txt" })).await["code"], -32002);
}

#[tokio::test]
async fn a_file_that_is_replaced_has_changed() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("one.txt"), "1").unwrap();
    let server = serve(root.path());
    let mut client = Client::new(&server, SESSION).await;
    client.result("resources/subscribe", json!({ "uri": "file:///dir/one.txt" })).await;
    fs::write(root.path().join(".one.txt.new"), "one").unwrap();
    fs::rename(root.path().join(".one.txt.new"), root.path().join("one.txt")).unwrap();
    client.hear("notifications/resources/updated").await;
    assert_eq!(client.count("notifications/resources/list_changed"), 0);
    fs::remove_file(root.path().join("one.txt")).unwrap();
    client.hear("notifications/resources/updated").await;
    fs::write(root.path().join("one.txt"), "back").unwrap();
    client.hear("notifications/resources/updated").await;
}

#[tokio::test]
async fn watching_keeps_no_server_alive() {
    let root = TempDir::new().unwrap();
    let options = Options {
        resources_dir: Some(root.path().to_owned()),
        prompts_dir: Some(root.path().to_owned()),
        ..Options::default()
    };
    let server = refmcp_reference::server(options).unwrap();
    let weak = server.downgrade();
    fs::write(root.path().join("one.txt"), "1").unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(server);
    let mut tries = 0;
    while weak.upgrade().is_some() {
        tries += 1;
        assert!(tries < 100, "it is still open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn reading_is_no_change() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("one.txt"), "1").unwrap();
    let server = serve(root.path());
    let mut client = Client::new(&server, SESSION).await;
    client.result("resources/subscribe", json!({ "uri": "file:///dir/one.txt" })).await;
    for _ in 0..5 {
        client.result("resources/read", json!({ "uri": "file:///dir/one.txt" })).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    client.result("ping", json!({})).await;
    assert!(client.heard.is_empty(), "{:?}", client.heard);
}

#[test]
fn a_directory_that_is_none_is_named() {
    let root = TempDir::new().unwrap();
    let missing = root.path().join("none");
    let options = Options { resources_dir: Some(missing.clone()), ..Options::default() };
    let error = refmcp_reference::server(options).unwrap_err();
    assert!(matches!(error, ReferenceError::Directory { .. }));
    assert!(error.to_string().contains(&missing.display().to_string()));
    fs::write(&missing, "a file").unwrap();
    let options = Options { prompts_dir: Some(missing), ..Options::default() };
    assert!(matches!(refmcp_reference::server(options), Err(ReferenceError::Directory { .. })));
}
