//! Opening a page in the user's browser. The address comes from elsewhere, so no shell sees it, it is the only argument
//! of a program, and it can be nothing but an address of http or https: such a text begins no option and holds no line
//! break.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, Command, Stdio};

use url::Url;

/// Bytes of the longest address that is opened: no system hands more to a program.
const MAX_URL_BYTES: usize = 16 << 10;

/// Opens a page in the user's browser: by the program in `BROWSER`, or else by what the system has for it.
pub(crate) fn open_url(page: &Url) -> io::Result<()> {
    let mut opener = start(&opener(std::env::var_os("BROWSER")), page)?;
    // It may stay for as long as the browser does; a thread waits for its end.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || match opener.wait() {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!(%status, "the page was not opened"),
        Err(error) => tracing::warn!(%error, "it is not known whether the page was opened"),
    })?;
    Ok(())
}

/// The program that opens pages, with what stands before the address. What `BROWSER` says is a program's name and
/// nothing else.
fn opener(browser: Option<OsString>) -> Vec<OsString> {
    match browser.filter(|program| !program.is_empty()) {
        Some(program) => vec![program],
        None if cfg!(target_os = "macos") => vec!["open".into()],
        // The usual `start` is a word of the shell.
        None if cfg!(windows) => vec!["rundll32".into(), "url.dll,FileProtocolHandler".into()],
        None => vec!["xdg-open".into()],
    }
}

fn start(opener: &[OsString], page: &Url) -> io::Result<Child> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    if !matches!(page.scheme(), "http" | "https") {
        return Err(refused("only http and https are opened"));
    }
    if page.as_str().len() > MAX_URL_BYTES {
        return Err(refused("the address is too long to be opened"));
    }
    let (program, before) = opener
        .split_first()
        .map_or((OsStr::new("xdg-open"), &[][..]), |(first, rest)| (first.as_os_str(), rest));
    Command::new(program)
        .args(before)
        .arg(page.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_a_program_and_no_line_for_a_shell() {
        assert_eq!(opener(Some("my browser; ls".into())), ["my browser; ls"]);
        assert_eq!(opener(Some(OsString::new())), opener(None));
    }

    #[cfg(unix)]
    #[test]
    fn an_address_is_one_argument_that_no_shell_has_seen_or_is_not_opened() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let (script, seen) = (folder.path().join("opener"), folder.path().join("seen"));
        let text = format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > '{}'\n", seen.display());
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let spy = [script.into_os_string()];
        let long = format!("https://h/{}", "a".repeat(100 << 10));
        for (address, opened) in [
            ("https://h/?a=$(touch%20x)&b=`id`;ls", true),
            ("http://x/$(calc)", true),
            ("https://h/\r\nX: y", true),
            ("https://h/\0--flag", true),
            ("https://--flag/", true),
            ("https://h/ --flag", true),
            ("https://h/'\"|&", true),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("cmd:calc", false),
            ("--flag", false),
            ("", false),
            (&long, false),
        ] {
            // What is gone before is no answer to the next.
            let _ = std::fs::remove_file(&seen);
            let started = Url::parse(address).map_err(io::Error::other).and_then(|page| start(&spy, &page));
            match started {
                Ok(mut child) => {
                    assert!(opened, "{address:?} was opened");
                    assert!(child.wait().unwrap().success());
                    let argv = std::fs::read_to_string(&seen).unwrap();
                    let lines: Vec<&str> = argv.lines().collect();
                    assert_eq!((lines.len(), lines[0]), (2, "1"), "{address:?}: {argv}");
                    let page = lines[1];
                    assert!(page.starts_with("http://") || page.starts_with("https://"), "{argv}");
                    assert!(page.bytes().all(|byte| matches!(byte, b'!'..=b'~')), "{argv}");
                }
                Err(_) => assert!(!opened && !seen.exists(), "{address:?} was not opened"),
            }
        }
    }
}
