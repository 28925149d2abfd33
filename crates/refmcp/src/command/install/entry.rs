//! A server's entry as each host wants it.

use anyhow::{Context, Result};
use jsonc_parser::cst::CstInputValue;
use std::path::Path;

use super::edit::Entry;
use crate::args::{InstallOptions, Target, UrlTransport, UsageError, usage};
use crate::config::ConfigHost;

/// What an entry of refmcp itself is called.
const OWN_NAME: &str = "refmcp";

/// The entry that the options ask for, and its name. `own` is the path of this program.
pub(super) fn wanted(options: &InstallOptions, own: &Path) -> Result<(String, Entry)> {
    let target = options.target()?;
    let name = match (&options.name, &target) {
        (Some(name), _) if name.trim().is_empty() => return Err(UsageError::new("--name is empty").into()),
        (Some(name), _) => name.clone(),
        (None, None) => OWN_NAME.to_owned(),
        (None, Some(_)) => return Err(UsageError::new("say what to call the server: --name NAME").into()),
    };
    if let Some((key, _)) = options.env.iter().find(|(key, _)| key.contains('\0')) {
        return Err(usage!("{key:?} cannot be the name of a variable").into());
    }
    let host = options.host;
    let entry = match &target {
        None => started(host, vec![program(own)?, "stdio".to_owned()], options)?,
        Some(Target::Command(words)) => started(host, absolute(words)?, options)?,
        Some(Target::Url { url, transport }) => at(host, url.as_str(), *transport, own, options)?,
        Some(other) => return Err(usage!("{other} is no URL").into()),
    };
    Ok((name, entry))
}

fn program(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .with_context(|| format!("{} cannot be written in JSON: it is not UTF-8", path.display()))
}

/// Hosts start servers from folders of their own, so a path must not be relative.
fn absolute(words: &[String]) -> Result<Vec<String>> {
    let (first, rest) = words.split_first().context("there is no command after `--`")?;
    if first.trim().is_empty() {
        return Err(UsageError::new("the command after `--` is empty").into());
    }
    let first = match Path::new(first) {
        path if path.components().count() > 1 => program(&std::path::absolute(path)?)?,
        _ => first.clone(),
    };
    Ok(std::iter::once(first).chain(rest.iter().cloned()).collect())
}

fn started(host: ConfigHost, words: Vec<String>, options: &InstallOptions) -> Result<Entry> {
    if !options.headers.is_empty() {
        return Err(UsageError::new("--header is for servers at an address; this one is started").into());
    }
    Ok(command(host, words, options))
}

fn command(host: ConfigHost, mut words: Vec<String>, options: &InstallOptions) -> Entry {
    let args = words.split_off(1);
    let mut entry = Entry::default();
    if matches!(host, ConfigHost::VsCode | ConfigHost::ClaudeCode) {
        entry.add("type", "stdio");
    }
    entry.add("command", words.concat());
    entry.add("args", args);
    if !options.env.is_empty() {
        entry.add("env", unique(&options.env));
    }
    entry
}

/// A server at an address; by way of a bridge where the host cannot talk to it.
fn at(
    host: ConfigHost,
    url: &str,
    transport: UrlTransport,
    own: &Path,
    options: &InstallOptions,
) -> Result<Entry> {
    let kind = match (host, transport) {
        (ConfigHost::ClaudeDesktop, _) | (_, UrlTransport::WebSocket) => None,
        (_, UrlTransport::Sse) => Some("sse"),
        _ => Some("http"),
    };
    let Some(kind) = kind else {
        let prefix = if transport == UrlTransport::Sse { "sse+" } else { "" };
        let mut words = vec![program(own)?];
        words.extend(["bridge", "--from", "stdio", "--to"].map(str::to_owned));
        words.push(format!("{prefix}{url}"));
        for header in &options.headers {
            words.extend(["--header".to_owned(), format!("{}: {}", header.name, header.value)]);
        }
        return Ok(command(host, words, options));
    };
    if !options.env.is_empty() {
        return Err(
            UsageError::new("--env is for servers that are started; this one is at an address").into()
        );
    }
    let mut entry = Entry::default();
    // Cursor finds out by itself.
    if host != ConfigHost::Cursor {
        entry.add("type", kind);
    }
    entry.add("url", url);
    let headers: Vec<_> =
        options.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    if !headers.is_empty() {
        entry.add("headers", unique(&headers));
    }
    Ok(entry)
}

/// Pairs with each name once; the last one counts.
fn unique(pairs: &[(String, String)]) -> CstInputValue {
    let mut unique: Vec<(String, CstInputValue)> = Vec::new();
    for (name, value) in pairs {
        match unique.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value.as_str().into(),
            None => unique.push((name.clone(), value.as_str().into())),
        }
    }
    unique.into()
}
