//! Rules about single messages and about requests with what belongs to them: ids, batches, `_meta`, progress, cancellation.

pub(super) mod batches;
pub(super) mod cancellation;
pub(super) mod ids;
pub(super) mod messages;
pub(super) mod meta;
pub(super) mod progress;
pub(super) mod shapes;
pub(super) mod unanswered;
