//! Who speaks: names and versions of clients and servers, and the icons shown for anything that has one.

json_object! {
    /// A client or server, by name and version.
    pub struct Implementation {
        /// The name for programs.
        name: String,
        /// The version, in any notation.
        version: String,
        /// The name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// Where to read more about it.
        website_url?: String,
        /// Pictures of it.
        icons?: Vec<Icon>,
        /// An implementation with a name and a version.
        fn new,
    }

    /// A picture, in one or more sizes.
    pub struct Icon {
        /// Where it is: a URL or a `data:` URI.
        src: String,
        /// Its media type, when the source does not tell or tells wrongly.
        mime_type?: String,
        /// The sizes it is good for, such as `48x48` or `any`.
        sizes?: Vec<String>,
        /// The background it was drawn for.
        theme?: IconTheme,
        /// An icon at a URL or in a `data:` URI.
        fn new,
    }
}

impl Icon {
    /// Adds a size, such as `48x48` or `any`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.get_or_insert_default().push(size.into());
        self
    }
}

open_enum! {
    /// The background an icon was drawn for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
