//! Rules about tasks of both kinds, skills and apps.

pub(super) mod apps;
pub(super) mod skills;
mod task_record;
pub(super) mod tasks;
pub(super) mod tasks_extension;
