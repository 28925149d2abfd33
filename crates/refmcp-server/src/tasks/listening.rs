//! Notifies a `subscriptions/listen` stream of changes of the tasks that it names.

use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::TaskListener;
use refmcp_proto::model::TaskNotificationParams;
use refmcp_transport::EngineHandle;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::store::TaskStore;
use crate::server::Server;

/// How often it is looked after whether the stream is still open.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Notifies a stream in the background, until its tasks are over or it has ended. Tasks of others are as unknown as none.
pub(crate) fn listen(
    server: &Server,
    principal: Option<Arc<str>>,
    listener: TaskListener,
    handle: EngineHandle,
) {
    let server = server.clone();
    tokio::spawn(async move {
        let listener = Arc::new(listener);
        let mut watched = JoinSet::new();
        for id in &listener.ids {
            let watch =
                watch(server.clone(), principal.clone(), id.clone(), listener.clone(), handle.clone());
            watched.spawn(watch);
        }
        let mut look = interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = watched.join_next() => match ended {
                    Some(_) => {}
                    None => return,
                },
                _ = look.tick() => {
                    if handle.inspect(|engine| engine.is_listening(&listener)) != Some(true) {
                        return;
                    }
                }
            }
        }
    });
}

/// Notifies a stream of one task, also of what it looks like at first: it may have changed before the stream was there.
async fn watch(
    server: Server,
    principal: Option<Arc<str>>,
    id: String,
    listener: Arc<TaskListener>,
    handle: EngineHandle,
) {
    let store = TaskStore::of(&server);
    let mut told = None;
    while let Ok(task) = store.find(&id, principal.as_deref()).await {
        if told.replace(task.version) != Some(task.version) {
            handle.task_changed(listener.clone(), TaskNotificationParams::of(task.state.task())).await;
        }
        if task.state.is_over() || store.changed(&task).await.is_err() {
            return;
        }
    }
}
