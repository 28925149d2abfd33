//! Rules about tasks: the experimental feature and the extension.

rules! {
    TASKS "Tasks"
    TASK_01 "TASK-01" Must Both D "basic/utilities/tasks#capabilities"
        "Tasks are declared with the requests that support them.";
    TASK_02 "TASK-02" Must Client D "basic/utilities/tasks#tool-level-negotiation"
        "A tool is called as a task as its taskSupport says.";
    TASK_03 "TASK-03" Must Receiver D "basic/utilities/tasks#task-support-and-handling"
        "A task for a request that does not support it is ignored.";
    TASK_04 "TASK-04" Must Receiver D "basic/utilities/tasks#creating-tasks"
        "An accepted task is answered at once with its id, status, times and lifetime.";
    TASK_05 "TASK-05" Must Receiver D "basic/utilities/tasks#task-status-lifecycle"
        "A task that has ended stays as it is.";
    TASK_06 "TASK-06" Must Receiver D "basic/utilities/tasks#result-retrieval"
        "tasks/result waits for the end and returns what the request would have.";
    TASK_07 "TASK-07" Should Requestor D "basic/utilities/tasks#input-required-status"
        "A task that requires input is asked for its result, and polled meanwhile.";
    TASK_08 "TASK-08" Must Both D "basic/utilities/tasks#associating-task-related-messages"
        "Messages of a task name it in _meta.";
    TASK_09 "TASK-09" Must Receiver D "basic/utilities/tasks#task-cancellation"
        "A running task is cancelled at once, an ended one refused with -32602.";
    TASK_10 "TASK-10" Must Receiver D "basic/utilities/tasks#protocol-errors"
        "An unknown task or cursor is refused with -32602.";
    TASK_11 "TASK-11" Must Receiver D "basic/utilities/tasks#task-isolation-and-access-control"
        "A task belongs to its authorization, or has an id that cannot be guessed.";
    TASK_12 "TASK-12" Must Requestor D "basic/utilities/tasks#task-notifications"
        "No requestor depends on status notifications.";
    TASK_13 "TASK-13" Note Receiver D "basic/utilities/tasks#task-execution-errors"
        "A result with isError fails the task.";
    TASK_14 "TASK-14" Must Receiver D "basic/utilities/tasks#task-listing"
        "tasks/list has every task that tasks/get finds.";

    XTASK_01 "XTASK-01" Must Server E "extensions/tasks/overview"
        "A task is returned only to a request that declares the extension.";
    XTASK_02 "XTASK-02" Must Client E "extensions/tasks/overview"
        "A client that declares it takes a task as the result of tools/call.";
    XTASK_03 "XTASK-03" Must Server E "extensions/tasks/overview"
        "resultType is task for a created task alone.";
    XTASK_04 "XTASK-04" Must Server E "extensions/tasks/overview"
        "A task can be got as soon as its id is known.";
    XTASK_05 "XTASK-05" Must Server E "extensions/tasks/overview"
        "tasks/get has the state with its input requests, result or error.";
    XTASK_06 "XTASK-06" Must Server E "extensions/tasks/overview"
        "A task fails by a JSON-RPC error; a result with isError completes it.";
    XTASK_07 "XTASK-07" Must Server E "extensions/tasks/overview"
        "Keys of input requests are used once in a task.";
    XTASK_08 "XTASK-08" Must Server E "extensions/tasks/overview"
        "tasks/update is acknowledged; unknown keys are ignored.";
    XTASK_09 "XTASK-09" Must Server E "extensions/tasks/overview"
        "tasks/cancel is acknowledged and a wish.";
    XTASK_10 "XTASK-10" Must Server E "extensions/tasks/overview"
        "An unknown task is refused with -32602, a client without the extension with -32021.";
    XTASK_11 "XTASK-11" Must Client E "extensions/tasks/overview"
        "Over HTTP, Mcp-Name is the id of the task.";
    XTASK_12 "XTASK-12" Should Client E "extensions/tasks/overview"
        "Clients poll as often as told, keep ids and answer each input request once.";
    XTASK_13 "XTASK-13" May Server E "extensions/tasks/overview"
        "Tasks may be announced to subscribers.";
    XTASK_14 "XTASK-14" Should Server E "extensions/tasks/overview"
        "Input is asked for before a task is created.";
    XTASK_15 "XTASK-15" Must Server E "extensions/tasks/overview"
        "Ids cannot be guessed, and every request for a task is authorized.";
    XTASK_16 "XTASK-16" Must Server E "extensions/tasks/overview"
        "What older tasks had is unknown here.";
    XTASK_17 "XTASK-17" Must Server D "basic/utilities/tasks#capabilities"
        "The extension has no effect in this revision.";
}
