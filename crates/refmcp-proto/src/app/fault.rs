//! What can be wrong with an app.

/// Something that is wrong with an app or its metadata. The text says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The URI is none of a page.
    #[error("the URI {uri:?} {why}; a page is at \"ui://\" and a path, such as \"ui://shop/cart\"")]
    Uri {
        /// The URI.
        uri: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A list of origins has something else in it.
    #[error("csp.{list} has {origin:?}, which {why}; write an origin such as \"https://api.example.com\"")]
    Origin {
        /// The list, by its name.
        list: &'static str,
        /// What it has.
        origin: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The page is no HTML document.
    #[error("the page {0}; it is an HTML document and begins with \"<!doctype html>\"")]
    Page(&'static str),
    /// The media type is another one.
    #[error("the media type is {0:?}; a page has \"text/html;profile=mcp-app\"")]
    MimeType(String),
    /// The visibility has other values than those of the extension.
    #[error("visibility {0}; it is a list of \"model\", \"app\" or both")]
    Visibility(String),
    /// The metadata cannot be read.
    #[error("_meta.ui cannot be read: {0}")]
    Unreadable(String),
    /// The tool names its page by the old key.
    #[error(
        "the page is named by _meta[\"ui/resourceUri\"], which is deprecated; write _meta.ui.resourceUri"
    )]
    OldKey,
    /// There is no page in what was read.
    #[error("reading {uri:?} gave {why}")]
    NoPage {
        /// The URI that was read.
        uri: String,
        /// What was there.
        why: &'static str,
    },
    /// The page is not listed, or differently.
    #[error("the metadata of the list and of what was read differ; the latter holds")]
    MetaDiffers,
}
