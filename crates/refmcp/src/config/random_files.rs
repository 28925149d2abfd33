//! Any text as a configuration file: it is read or has problems, and no secret of it is shown.

use std::collections::BTreeSet;
use std::path::Path;

use super::read::parse;
use super::{Launch, Servers, env_file};

#[test]
fn any_text_is_read_or_has_problems() {
    refmcp_fuzz::property::run("config", refmcp_fuzz::property::MANY, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let servers = parse(&text, Path::new("/home/me/project/mcp.json"));
        check(&servers);
        env_file::parse(&text);
    });
}

fn check(servers: &Servers) {
    let mut names = BTreeSet::new();
    for entry in &servers.servers {
        assert!(
            !entry.name.trim().is_empty() && names.insert(&entry.name),
            "{:?} is there twice",
            entry.name
        );
        let (Launch::Command { env: pairs, .. } | Launch::Remote { headers: pairs, .. }) = &entry.launch;
        let shown = format!("{entry:?}");
        for (_, value) in pairs.iter().filter(|(_, value)| value.reveal().contains("hush-")) {
            assert!(!shown.contains(&format!("Secret({:?}", value.reveal())), "{shown}");
        }
        let asked = servers.resolve(entry, &|_| Ok("answer".to_owned()), &|_| Some("value".to_owned()));
        if let Ok(resolved) = asked {
            assert_eq!(resolved.name, entry.name);
        }
    }
    for problem in &servers.problems {
        let shown = problem.to_string();
        assert!(!shown.chars().any(char::is_control), "a problem steers the terminal: {shown:?}");
    }
    assert!(!servers.problems.is_empty() || !servers.servers.is_empty() || servers.inputs.len() < 1000);
}
