//! The `data` of the protocol's own errors.

use crate::model::{ClientCapabilities, ElicitUrlParams};

json_object! {
    /// Which revisions a server speaks, when it was asked in another.
    pub struct UnsupportedVersionData {
        /// The revisions the server speaks.
        supported: Vec<String>,
        /// The revision that was asked for; some older servers leave it out.
        requested?: String,
    }

    /// Which capabilities a client would have to declare.
    pub struct MissingCapabilityData {
        /// The capabilities that are missing, as the client would declare them.
        required_capabilities: ClientCapabilities,
    }

    /// Which URLs a user has to visit before a request can be done (one older revision only).
    pub struct UrlElicitationRequiredData {
        /// The visits.
        elicitations: Vec<ElicitUrlParams>,
    }
}
