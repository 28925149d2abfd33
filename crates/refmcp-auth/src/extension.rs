//! Identifiers of MCP's authorization extensions, as `capabilities.extensions` lists them. None has settings.

/// The client credentials grant.
pub const CLIENT_CREDENTIALS: &str = "io.modelcontextprotocol/oauth-client-credentials";

/// Enterprise-managed authorization: the enterprise's identity provider issues an ID-JAG, which is the grant.
pub const ENTERPRISE: &str = "io.modelcontextprotocol/enterprise-managed-authorization";

/// The grant profile by which an authorization server's metadata announces ID-JAG support.
pub const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
