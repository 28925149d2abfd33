//! What an authorization server tells its host about credentials that it has refused.

/// Why credentials that a client has offered were refused, without anything of them: an extension of the response, so that
/// the program that serves it can log it with the address of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedClientCredentials(pub String);
