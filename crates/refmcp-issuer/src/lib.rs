//! An authorization server to test MCP clients against, which breaks on request.
