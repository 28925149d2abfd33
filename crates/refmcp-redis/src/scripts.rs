//! The scripts: one for each method, made of the modules that it needs, with the prefix of all keys and the settings.
//!
//! A script runs as a whole, so each method is one step and one round trip. Redis keeps scripts by their digests until it
//! is restarted; one that it does not know is sent whole.

use std::fmt::Write as _;
use std::time::Duration;

use refmcp_server::backplane::BackplaneSettings;
use ring::digest;

const BASE: &str = include_str!("lua/base.lua");
const SESSION: &str = concat!(
    include_str!("lua/session.lua"),
    include_str!("lua/log.lua"),
    include_str!("lua/slots.lua"),
    include_str!("lua/room.lua")
);
const TASKS: &str = include_str!("lua/tasks.lua");
const TOPICS: &str = include_str!("lua/topics.lua");

/// The scripts that keep something new. Redis runs all others when its memory is full, too: they look something up, note
/// how far it was read, or make room.
const NEEDING_ROOM: [&str; 12] = [
    "create_session",
    "update_session",
    "open_stream",
    "append",
    "post",
    "expect_response",
    "deliver_response",
    "park",
    "create_task",
    "update_task",
    "bump",
    "once",
];

/// What a script is made of besides the method itself.
#[derive(Debug, Clone, Copy)]
enum Needs {
    Session,
    Tasks,
    Topics,
    Base,
    SessionsAndTasks,
}

/// A method: what its script is called, needs and does.
struct Method(&'static str, Needs, &'static str);

/// A script that Redis can run.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// What Redis knows it by.
    pub(crate) digest: String,
}

macro_rules! methods {
    ($($field:ident: $needs:ident,)*) => {
        /// All scripts.
        #[derive(Debug)]
        pub(crate) struct Scripts {
            $(pub(crate) $field: Script,)*
        }

        impl Scripts {
            /// The scripts for this prefix of keys, and these settings.
            /// Where the time is given, it is their last argument.
            pub(crate) fn new(prefix: &str, settings: &BackplaneSettings, is_time_given: bool) -> Self {
                let head = head(prefix, settings, is_time_given);
                Self {
                    $($field: script(&head, &Method(
                        stringify!($field),
                        Needs::$needs,
                        include_str!(concat!("lua/methods/", stringify!($field), ".lua")),
                    )),)*
                }
            }

            /// Each of them.
            pub(crate) fn all(&self) -> impl Iterator<Item = &Script> {
                [$(&self.$field),*].into_iter()
            }
        }
    };
}

methods! {
    create_session: Session,
    session: Session,
    update_session: Session,
    close_session: Session,
    open_stream: Session,
    append: Session,
    post: Session,
    forget: Session,
    writer_stopped: Session,
    cancel: Session,
    attach: Session,
    read: Session,
    readable: Session,
    detach: Session,
    expect_response: Session,
    deliver_response: Session,
    wait_response: Session,
    park: Session,
    claim: Session,
    parked_keys: Session,
    create_task: Tasks,
    task: Tasks,
    task_call: Tasks,
    update_task: Tasks,
    task_changed: Tasks,
    tasks: Tasks,
    renew_replica: Base,
    is_replica_there: Base,
    bump: Topics,
    latest: Topics,
    changes: Topics,
    once: Base,
    sweep: SessionsAndTasks,
}

fn script(head: &str, Method(name, needs, body): &Method) -> Script {
    let modules: &[&str] = match needs {
        Needs::Session => &[SESSION],
        Needs::Tasks => &[TASKS],
        Needs::Topics => &[TOPICS],
        Needs::Base => &[],
        Needs::SessionsAndTasks => &[SESSION, TASKS],
    };
    let flags = if NEEDING_ROOM.contains(name) { "" } else { "#!lua flags=allow-oom\n" };
    let mut text = format!("{flags}{head}{BASE}");
    modules.iter().for_each(|module| text.push_str(module));
    let commit = if matches!(needs, Needs::Session | Needs::SessionsAndTasks) { "commit()\n" } else { "" };
    // Infallible: it is written to memory.
    let _ = write!(text, "local function run()\n{body}end\nlocal reply = run()\n{commit}return reply\n");
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let digest = digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Script { name, text, digest }
}

/// The lines before each script.
fn head(prefix: &str, settings: &BackplaneSettings, is_time_given: bool) -> String {
    let listed = settings_list(settings);
    let settings: Vec<String> = listed.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("local P = '{prefix}'\nlocal S = {{{}}}\nlocal GIVEN = {is_time_given}\n", settings.join(", "))
}

/// The settings by name. Lua counts to 2^53.
pub(crate) fn settings_list(settings: &BackplaneSettings) -> [(&'static str, u64); 17] {
    let BackplaneSettings {
        sessions,
        facts_bytes,
        streams,
        stream_bytes,
        session_bytes,
        total_bytes,
        retention,
        tombstones,
        pending_requests,
        late,
        parked_calls,
        tasks,
        owner_tasks,
        owner_task_bytes,
        total_task_bytes,
        topics,
        keys,
    } = settings;
    let count = |count: &usize| u64::try_from(*count).unwrap_or(u64::MAX).min(1 << 53);
    [
        ("sessions", count(sessions)),
        ("facts_bytes", count(facts_bytes)),
        ("streams", count(streams)),
        ("stream_bytes", count(stream_bytes)),
        ("session_bytes", count(session_bytes)),
        ("total_bytes", count(total_bytes)),
        ("retention", millis(*retention)),
        ("tombstones", count(tombstones)),
        ("pending_requests", count(pending_requests)),
        ("late", millis(*late)),
        ("parked_calls", count(parked_calls)),
        ("tasks", count(tasks)),
        ("owner_tasks", count(owner_tasks)),
        ("owner_task_bytes", count(owner_task_bytes)),
        ("total_task_bytes", count(total_task_bytes)),
        ("topics", count(topics)),
        ("keys", count(keys)),
    ]
}

/// A duration in milliseconds, rounded up; at most a year, which makes no difference to for ever.
pub(crate) fn millis(duration: Duration) -> u64 {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let micros = duration.min(YEAR).as_micros();
    u64::try_from(micros.div_ceil(1000)).unwrap_or(u64::MAX)
}
