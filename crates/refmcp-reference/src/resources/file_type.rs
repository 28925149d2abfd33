//! Media types of files, by the extension.

/// Extensions and their media types; the flag says whether it is text.
const FILE_TYPES: [(&str, &str, bool); 46] = [
    ("txt", "text/plain", true),
    ("log", "text/plain", true),
    ("md", "text/markdown", true),
    ("markdown", "text/markdown", true),
    ("html", "text/html", true),
    ("htm", "text/html", true),
    ("css", "text/css", true),
    ("csv", "text/csv", true),
    ("tsv", "text/tab-separated-values", true),
    ("js", "text/javascript", true),
    ("mjs", "text/javascript", true),
    ("ts", "text/x-typescript", true),
    ("rs", "text/x-rust", true),
    ("py", "text/x-python", true),
    ("go", "text/x-go", true),
    ("c", "text/x-c", true),
    ("h", "text/x-c", true),
    ("cpp", "text/x-c++", true),
    ("java", "text/x-java", true),
    ("sh", "text/x-shellscript", true),
    ("sql", "application/sql", true),
    ("json", "application/json", true),
    ("jsonl", "application/jsonl", true),
    ("xml", "application/xml", true),
    ("yaml", "application/yaml", true),
    ("yml", "application/yaml", true),
    ("toml", "application/toml", true),
    ("svg", "image/svg+xml", true),
    ("png", "image/png", false),
    ("jpg", "image/jpeg", false),
    ("jpeg", "image/jpeg", false),
    ("gif", "image/gif", false),
    ("webp", "image/webp", false),
    ("avif", "image/avif", false),
    ("ico", "image/vnd.microsoft.icon", false),
    ("wav", "audio/wav", false),
    ("mp3", "audio/mpeg", false),
    ("ogg", "audio/ogg", false),
    ("flac", "audio/flac", false),
    ("mp4", "video/mp4", false),
    ("webm", "video/webm", false),
    ("pdf", "application/pdf", false),
    ("zip", "application/zip", false),
    ("gz", "application/gzip", false),
    ("tar", "application/x-tar", false),
    ("wasm", "application/wasm", false),
];

/// The kind of content that a file's name promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileType {
    /// Text of this media type.
    Text(&'static str),
    /// Bytes of this media type.
    Bytes(&'static str),
    /// The name says nothing.
    Unknown,
}

impl FileType {
    pub(super) fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some((_, extension)) = name.rsplit_once('.') else { return Self::Unknown };
        let known = FILE_TYPES.iter().find(|(known, ..)| extension.eq_ignore_ascii_case(known));
        match known {
            Some((_, mime_type, true)) => Self::Text(mime_type),
            Some((_, mime_type, false)) => Self::Bytes(mime_type),
            None => Self::Unknown,
        }
    }

    /// The media type, as far as the name tells.
    pub(super) fn mime_type(self) -> Option<&'static str> {
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
            Err(fault) => Err((fault.into_bytes(), other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_decide() {
        assert_eq!(FileType::of("a/b.MD"), FileType::Text("text/markdown"));
        assert_eq!(FileType::of("a.b/Makefile"), FileType::Unknown);
        assert_eq!(FileType::of("x.png").read(b"text".to_vec()), Err((b"text".to_vec(), "image/png")));
        assert_eq!(FileType::of("x.txt").read(b"\xFF".to_vec()), Err((b"\xFF".to_vec(), "text/plain")));
        assert_eq!(FileType::Unknown.read(b"text".to_vec()), Ok(("text".to_owned(), "text/plain")));
        assert_eq!(FileType::Unknown.read(b"\0".to_vec()), Err((b"\0".to_vec(), "application/octet-stream")));
    }
}
