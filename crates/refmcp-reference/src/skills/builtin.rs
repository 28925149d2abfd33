//! The built-in skills. One has another in it, and both have directories.

use refmcp_server::Skill;

/// The path that they are under.
pub(super) const PREFIX: &str = "refmcp";

const MARKDOWN: &str = "text/markdown";

pub(super) fn skills() -> [Skill; 2] {
    let test_client = Skill::new(include_str!("builtin/test-mcp-client/SKILL.md"))
        .file("references/tools.md", MARKDOWN, include_str!("builtin/test-mcp-client/references/tools.md"))
        .file(
            "read-verdict/SKILL.md",
            MARKDOWN,
            include_str!("builtin/test-mcp-client/read-verdict/SKILL.md"),
        );
    let check_server = Skill::new(include_str!("builtin/check-mcp-server/SKILL.md"))
        .file(
            "references/exit-codes.md",
            MARKDOWN,
            include_str!("builtin/check-mcp-server/references/exit-codes.md"),
        )
        .file(
            "scripts/check.sh",
            "text/x-shellscript",
            include_str!("builtin/check-mcp-server/scripts/check.sh"),
        );
    [test_client.under(PREFIX), check_server.under(PREFIX)]
}
