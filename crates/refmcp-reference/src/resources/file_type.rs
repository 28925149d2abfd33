//! Media types of files, by the extension.

/// Media types of text, with their extensions.
const TEXT_TYPES: [(&str, &[&str]); 22] = [
    ("text/plain", &["txt", "log"]),
    ("text/markdown", &["md", "markdown"]),
    ("text/html", &["html", "htm"]),
    ("text/css", &["css"]),
    ("text/csv", &["csv"]),
    ("text/tab-separated-values", &["tsv"]),
    ("text/javascript", &["js", "mjs"]),
    ("text/x-typescript", &["ts"]),
    ("text/x-rust", &["rs"]),
    ("text/x-python", &["py"]),
    ("text/x-go", &["go"]),
    ("text/x-c", &["c", "h"]),
    ("text/x-c++", &["cpp"]),
    ("text/x-java", &["java"]),
    ("text/x-shellscript", &["sh"]),
    ("application/sql", &["sql"]),
    ("application/json", &["json"]),
    ("application/jsonl", &["jsonl"]),
    ("application/xml", &["xml"]),
    ("application/yaml", &["yaml", "yml"]),
    ("application/toml", &["toml"]),
    ("image/svg+xml", &["svg"]),
];

/// Media types of anything else, with their extensions.
const BYTE_TYPES: [(&str, &[&str]); 17] = [
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("audio/wav", &["wav"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/ogg", &["ogg"]),
    ("audio/flac", &["flac"]),
    ("video/mp4", &["mp4"]),
    ("video/webm", &["webm"]),
    ("application/pdf", &["pdf"]),
    ("application/zip", &["zip"]),
    ("application/gzip", &["gz"]),
    ("application/x-tar", &["tar"]),
    ("application/wasm", &["wasm"]),
];

/// The kind of content that a file's name promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileType {
    /// Text of this media type.
    Text(&'static str),
    /// Bytes of this media type.
    Bytes(&'static str),
    /// The name says nothing.
    Unknown,
}

impl FileType {
    pub(crate) fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some((_, extension)) = name.rsplit_once('.') else { return Self::Unknown };
        let is_one = |known: &&[&str]| known.iter().any(|known| extension.eq_ignore_ascii_case(known));
        let of = |types: &[(&'static str, &[&str])]| {
            types.iter().find(|(_, known)| is_one(known)).map(|(mime_type, _)| *mime_type)
        };
        let bytes = || of(&BYTE_TYPES).map(Self::Bytes);
        of(&TEXT_TYPES).map(Self::Text).or_else(bytes).unwrap_or(Self::Unknown)
    }

    /// The media type, as far as the name tells.
    pub(crate) fn mime_type(self) -> Option<&'static str> {
        match self {
            Self::Text(mime_type) | Self::Bytes(mime_type) => Some(mime_type),
            Self::Unknown => None,
        }
    }

    /// The content as text with its media type, or, if it is none, the bytes back with theirs.
    pub(super) fn read(self, bytes: Vec<u8>) -> Result<(String, &'static str), (Vec<u8>, &'static str)> {
        let (mime_type, other) = match self {
            Self::Bytes(mime_type) => return Err((bytes, mime_type)),
            Self::Text(mime_type) => (mime_type, mime_type),
            Self::Unknown => ("text/plain", "application/octet-stream"),
        };
        if self == Self::Unknown && bytes.contains(&0) {
            return Err((bytes, other));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok((text, mime_type)),
            Err(error) => Err((error.into_bytes(), other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_decide() {
        assert_eq!(FileType::from_path("a/b.MD"), FileType::Text("text/markdown"));
        assert_eq!(FileType::from_path("a.b/Makefile"), FileType::Unknown);
        assert_eq!(FileType::from_path("x.png").read(b"text".to_vec()), Err((b"text".to_vec(), "image/png")));
        assert_eq!(
            FileType::from_path("x.txt").read(b"\xFF".to_vec()),
            Err((b"\xFF".to_vec(), "text/plain"))
        );
        assert_eq!(FileType::Unknown.read(b"text".to_vec()), Ok(("text".to_owned(), "text/plain")));
        assert_eq!(FileType::Unknown.read(b"\0".to_vec()), Err((b"\0".to_vec(), "application/octet-stream")));
    }
}
