//! Images and sounds from servers: shown where the terminal can, saved on other terminals, left out elsewhere.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::store::private;

/// What to do with what is neither text nor a link.
#[derive(Debug, Clone)]
pub(crate) struct Media {
    /// Where it is saved; nowhere where a program reads the output.
    folder: Option<PathBuf>,
    inline: Option<Inline>,
}

/// How a terminal is sent an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inline {
    /// Kitty's graphics protocol.
    Kitty,
    /// iTerm2's.
    Iterm,
}

impl Inline {
    /// How the terminal that the environment describes is sent images; `None` when it is not known to show any.
    pub(crate) fn detect(env: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, value: &str| env(name).is_some_and(|actual| actual == value);
        // Multiplexers swallow the sequences, or worse.
        if env("TMUX").is_some() || env("STY").is_some() {
            return None;
        }
        if is("TERM", "xterm-kitty") || is("TERM_PROGRAM", "ghostty") || env("KITTY_WINDOW_ID").is_some() {
            return Some(Self::Kitty);
        }
        let iterm = ["iTerm.app", "WezTerm"].iter().any(|program| is("TERM_PROGRAM", program));
        (iterm || is("LC_TERMINAL", "iTerm2")).then_some(Self::Iterm)
    }
}

/// What became of a piece of media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The sequence that makes the terminal show it.
    Inline(String),
    /// It is in this file, and so long.
    Saved(PathBuf, usize),
    /// It is so long, and nowhere.
    LeftOut(usize),
}

/// Bytes of base64 in one piece of Kitty's protocol.
const KITTY_PIECE: usize = 4096;

impl Media {
    /// Saves to the folder, and shows images as the terminal can.
    pub(crate) fn new(folder: impl Into<PathBuf>, inline: Option<Inline>) -> Self {
        Self { folder: Some(folder.into()), inline }
    }

    /// Leaves it out: where no terminal is, a program reads the output and looks for no files.
    pub(crate) fn left_out() -> Self {
        Self { folder: None, inline: None }
    }

    /// Shows, saves or leaves out what the base64 stands for.
    pub(crate) fn show(&self, data: &str, mime_type: &str) -> io::Result<Shown> {
        let bytes = decode(data)?;
        match self.inline.and_then(|inline| sequence(inline, &bytes, mime_type)) {
            Some(sequence) => Ok(Shown::Inline(sequence)),
            None => match &self.folder {
                Some(folder) => save(folder, &bytes, mime_type).map(|path| Shown::Saved(path, bytes.len())),
                None => Ok(Shown::LeftOut(bytes.len())),
            },
        }
    }
}

/// The bytes that base64 stands for, with or without its padding.
pub(crate) fn decode(data: &str) -> io::Result<Vec<u8>> {
    let data: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD
        .decode(&data)
        .or_else(|_| STANDARD_NO_PAD.decode(&data))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("no base64: {error}")))
}

/// The sequence that makes a terminal show an image. The base64 in it is our own: the server's might end the sequence
/// and begin another.
fn sequence(inline: Inline, bytes: &[u8], mime_type: &str) -> Option<String> {
    let image = STANDARD.encode(bytes);
    match inline {
        Inline::Kitty if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => {
            let mut out = String::new();
            let mut rest = image.as_str();
            let mut control = "a=T,f=100,";
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(KITTY_PIECE));
                let more = u8::from(!after.is_empty());
                out.push_str(&format!("\x1b_G{control}m={more};{piece}\x1b\\"));
                (rest, control) = (after, "");
            }
            Some(out)
        }
        Inline::Kitty => None,
        Inline::Iterm => mime_type
            .starts_with("image/")
            .then(|| format!("\x1b]1337;File=inline=1;size={}:{image}\x07", bytes.len())),
    }
}

/// Writes the bytes to a new file with a name of our own; nothing of it is the server's choice but the ending, and
/// that only from a list.
fn save(folder: &Path, bytes: &[u8], mime_type: &str) -> io::Result<PathBuf> {
    let mut random = [0u8; 6];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("refmcp-{name}.{}", ending(mime_type)));
    private(OpenOptions::new().write(true).create_new(true)).open(&path)?.write_all(bytes)?;
    Ok(path)
}

fn ending(mime_type: &str) -> &'static str {
    let kind = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/bmp" => "bmp",
        "image/avif" => "avif",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "audio/mp4" | "audio/aac" => "m4a",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    #[test]
    fn files_have_names_of_our_own() {
        let folder = tempfile::tempdir().unwrap();
        let media = Media::new(folder.path(), None);
        for (mime_type, ending) in
            [("image/png", "png"), ("audio/WAV; x=y", "wav"), ("../../etc/passwd", "bin"), ("", "bin")]
        {
            let Shown::Saved(path, length) = media.show(&STANDARD.encode(PNG), mime_type).unwrap() else {
                panic!("{mime_type} was not saved");
            };
            assert_eq!(path.parent(), Some(folder.path()));
            assert_eq!(path.extension().unwrap(), ending);
            assert_eq!((std::fs::read(&path).unwrap().as_slice(), length), (PNG, PNG.len()));
        }
    }

    #[test]
    fn what_is_left_out_is_in_no_file() {
        assert_eq!(Media::left_out().show("aGk=", "image/png").unwrap(), Shown::LeftOut(2));
        assert!(Media::left_out().show("?", "image/png").is_err());
    }

    #[test]
    fn images_are_shown_where_the_terminal_can() {
        let folder = tempfile::tempdir().unwrap();
        let show = |inline, bytes: &[u8], kind| {
            Media::new(folder.path(), Some(inline)).show(&STANDARD.encode(bytes), kind).unwrap()
        };
        assert!(
            matches!(show(Inline::Kitty, PNG, "image/png"), Shown::Inline(text) if text.starts_with("\x1b_Ga=T,f=100,m=0;"))
        );
        assert!(matches!(show(Inline::Kitty, b"GIF89a", "image/gif"), Shown::Saved(..)));
        assert!(
            matches!(show(Inline::Iterm, b"GIF89a", "image/gif"), Shown::Inline(text) if text.ends_with('\x07'))
        );
        assert!(matches!(show(Inline::Iterm, b"RIFF", "audio/wav"), Shown::Saved(..)));
        let large = [PNG, &[0; 9000]].concat();
        let Shown::Inline(pieces) = show(Inline::Kitty, &large, "image/png") else { panic!("not shown") };
        assert_eq!(pieces.matches("\x1b_G").count(), 3);
        assert_eq!(pieces.matches("m=0;").count(), 1);
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for bad in ["\x1b[2J", "a", "====", "ä"] {
            assert!(
                Media::new(folder.path(), Some(Inline::Iterm)).show(bad, "image/png").is_err(),
                "{bad:?}"
            );
        }
        assert_eq!(decode("aGk").unwrap(), b"hi");
        assert_eq!(decode("aG\nk=").unwrap(), b"hi");
    }

    #[test]
    fn terminals_are_known_by_their_environment() {
        let cases = [
            (&[("TERM", "xterm-kitty")][..], Some(Inline::Kitty)),
            (&[("TERM_PROGRAM", "ghostty")], Some(Inline::Kitty)),
            (&[("TERM_PROGRAM", "iTerm.app")], Some(Inline::Iterm)),
            (&[("LC_TERMINAL", "iTerm2")], Some(Inline::Iterm)),
            (&[("TERM", "xterm-256color")], None),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], None),
        ];
        for (env, expected) in cases {
            let look =
                |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(Inline::detect(look), expected, "{env:?}");
        }
    }
}
