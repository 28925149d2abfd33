//! The protocol's revisions as their dates, oldest first.

/// All of them: what dates tidy looks for, and what the foreign clients are asked to speak.
pub const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
