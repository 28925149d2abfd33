//! Rules about tasks, those of 2025-11-25 and those of the extension, about skills and apps.

pub(super) mod apps;
pub(super) mod skills;
mod task_record;
pub(super) mod tasks;
pub(super) mod tasks_extension;
