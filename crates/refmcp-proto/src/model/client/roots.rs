//! Roots: the places a client lets a server work in.

use crate::model::Meta;

json_object! {
    /// Parameters of `roots/list`.
    pub struct ListRootsParams {
        _meta: Meta,
    }

    /// The answer to `roots/list`.
    pub struct ListRootsResult {
        /// The roots.
        roots: Vec<Root>,
        _meta: Meta,
    }

    /// A place to work in.
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
