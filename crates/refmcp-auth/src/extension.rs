//! The extensions of MCP that are about authorization, by the names under which capabilities list them. None has settings.

/// Clients speak for themselves: the grant of client credentials.
pub const CLIENT_CREDENTIALS: &str = "io.modelcontextprotocol/oauth-client-credentials";

/// An enterprise's identity provider decides who is let in: its word is the grant (ID-JAG).
pub const ENTERPRISE: &str = "io.modelcontextprotocol/enterprise-managed-authorization";

/// How an authorization server says in its metadata that it takes that word.
pub const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
