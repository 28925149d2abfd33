//! Parameters of requests that have none of their own.

use crate::model::RequestMeta;

json_object! {
    /// Parameters of a request that needs nothing but `_meta`: `ping`, `server/discover`.
    pub struct RequestParams {
        _meta: RequestMeta,
    }

    /// Parameters of the four list requests.
    pub struct PaginatedParams {
        /// Where the page starts; absent for the first.
        cursor?: String,
        _meta: RequestMeta,
    }
}
