//! Roots: the places a client lets a server work in.

use crate::model::Meta;

json_object! {
    /// Parameters of `roots/list`.
    #[derive(Default)]
    pub struct ListRootsParams {
        _meta: Meta,
    }
}

json_object! {
    /// The answer to `roots/list`.
    #[derive(Default)]
    pub struct ListRootsResult {
        /// The roots.
        roots: Vec<Root>,
        _meta: Meta,
    }
}

json_object! {
    /// A place to work in.
    #[derive(Default)]
    pub struct Root {
        /// Its address, a `file:` URI so far.
        uri: String,
        /// Its name, for people.
        name?: String,
        _meta: Meta,
        /// A root at an address.
        fn new,
    }
}
