//! Rules about tasks in detail: what refines the rules of `tasks`, for the experimental feature and the extension.

rules! {
    TASK_DETAILS "Tasks in detail"
    TSK_01 "TSK-01" Must Receiver D "basic/utilities/tasks#capabilities"
        "A receiver makes tasks only of requests that ask for one, of types that it listed in initialize.";
    TSK_02 "TSK-02" Should Requestor D "basic/utilities/tasks#task-support-and-handling"
        "task goes only to a peer that lists the request type; for tools/call that is an obligation.";
    TSK_03 "TSK-03" Must Client D "basic/utilities/tasks#tool-level-negotiation"
        "A tool whose taskSupport is forbidden or missing is called without task.";
    TSK_04 "TSK-04" Must Client D "basic/utilities/tasks#tool-level-negotiation"
        "A tool whose taskSupport is required is called with task.";
    TSK_05 "TSK-05" Must Server D "basic/utilities/tasks#tool-level-negotiation"
        "A tool that requires a task and is called without one answers -32601.";
    TSK_06 "TSK-06" Should Server D "basic/utilities/tasks#tool-level-negotiation"
        "A tool that forbids tasks and is called with one answers -32601.";
    TSK_07 "TSK-07" Must Receiver D "basic/utilities/tasks#task-support-and-handling"
        "A request type that is not listed ignores task and gets its usual result.";
    TSK_08 "TSK-08" May Receiver D "basic/utilities/tasks#task-support-and-handling"
        "A listed request type may be refused with -32600 where it comes without task.";
    TSK_09 "TSK-09" Must Receiver D "basic/utilities/tasks#creating-tasks"
        "An accepted task is answered with the task alone, never with the result of the work.";
    TSK_10 "TSK-10" Must Receiver DE "ext-tasks/specification/draft/tasks.md#tasks-1"
        "taskId is a string of the executing side and names one task.";
    TSK_11 "TSK-11" Must Receiver D "basic/utilities/tasks#task-status-lifecycle"
        "The first status of a task is working.";
    TSK_12 "TSK-12" Must Receiver DE "ext-tasks/specification/draft/tasks.md#task-status"
        "Statuses follow the lifecycle, and none follows completed, failed or cancelled.";
    TSK_13 "TSK-13" Must Receiver DE "ext-tasks/specification/draft/tasks.md#tasks-1"
        "A task has createdAt, lastUpdatedAt and its lifetime, which may be null.";
    TSK_14 "TSK-14" Must Receiver D "basic/utilities/tasks#creating-tasks"
        "ttl is the lifetime that is granted, also where another was asked for.";
    TSK_15 "TSK-15" Should Requestor DE "ext-tasks/specification/draft/tasks.md#task-polling"
        "A task is polled no more often than its newest poll interval says.";
    TSK_16 "TSK-16" Should Requestor DE "ext-tasks/specification/draft/tasks.md#task-polling"
        "A task is polled until it ends, needs input or is given up.";
    TSK_17 "TSK-17" Must Receiver D "basic/utilities/tasks#result-retrieval"
        "tasks/result is answered once the task has ended.";
    TSK_18 "TSK-18" Must Receiver D "basic/utilities/tasks#result-retrieval"
        "tasks/result has the outcome of the request as it is: its result, or its error as an error.";
    TSK_19 "TSK-19" Must Receiver D "basic/utilities/tasks#associating-task-related-messages"
        "The result of tasks/result names the task in _meta.";
    TSK_20 "TSK-20" Should Requestor D "basic/utilities/tasks#input-required-status"
        "tasks/result is asked for as soon as a task needs input.";
    TSK_21 "TSK-21" Must Receiver D "basic/utilities/tasks#associating-task-related-messages"
        "A request that a task causes names that task in _meta.";
    TSK_22 "TSK-22" Must Both D "basic/utilities/tasks#associating-task-related-messages"
        "Responses and notifications that belong to a task name it in _meta.";
    TSK_23 "TSK-23" Should Both D "basic/utilities/tasks#associating-task-related-messages"
        "Messages whose parameters name the task already do not name it in _meta.";
    TSK_24 "TSK-24" Must Receiver D "basic/utilities/tasks#associating-task-related-messages"
        "params.taskId decides, whatever _meta says.";
    TSK_25 "TSK-25" Should Server D "basic/utilities/tasks#getting-tasks"
        "tasks/get is answered without an SSE stream.";
    TSK_26 "TSK-26" Should Client D "basic/utilities/tasks#input-required-status"
        "Messages of a task are taken from any SSE stream.";
    TSK_27 "TSK-27" Must Receiver D "basic/utilities/tasks#task-cancellation"
        "tasks/cancel of an ended task is refused with -32602.";
    TSK_28 "TSK-28" Must Receiver D "basic/utilities/tasks#task-cancellation"
        "A cancelled task is cancelled before the response leaves and for good.";
    TSK_29 "TSK-29" Must Requestor DE "basic/patterns/cancellation#cancellation-flow"
        "notifications/cancelled cancels no task.";
    TSK_30 "TSK-30" Must Requestor D "basic/utilities/tasks#task-notifications"
        "A requestor works without notifications/tasks/status.";
    TSK_31 "TSK-31" Must Receiver D "basic/utilities/tasks#task-listing"
        "tasks/list has nextCursor while there is more, and refuses an unknown cursor with -32602.";
    TSK_32 "TSK-32" Must Receiver D "basic/utilities/tasks#task-listing"
        "A requestor finds by tasks/list what it finds by tasks/get.";
    TSK_33 "TSK-33" Must Receiver D "basic/utilities/tasks#task-progress-notifications"
        "Progress of a task has the token of its request and ends with the task.";
    TSK_34 "TSK-34" Must Receiver D "basic/utilities/tasks#task-isolation-and-access-control"
        "A task is hidden from every authorization but its own.";
    TSK_35 "TSK-35" Must Receiver DE "ext-tasks/specification/draft/tasks.md#security-considerations"
        "Ids of tasks cannot be guessed, at least where nothing else protects them.";
    TSK_36 "TSK-36" Should Receiver D "basic/utilities/tasks#task-isolation-and-access-control"
        "tasks.list is not declared where requestors cannot be told apart.";
    TSK_37 "TSK-37" Must Receiver DE "ext-tasks/specification/draft/tasks.md#protocol-errors"
        "The id of no task is refused with -32602.";
    TSK_38 "TSK-38" Should Receiver DE "ext-tasks/specification/draft/tasks.md#task-execution-errors"
        "statusMessage says why a task failed.";
    TSK_39 "TSK-39" Must Server E "ext-tasks/specification/draft/tasks.md#capability-negotiation"
        "Only a request that declares the extension itself is answered with a task.";
    TSK_40 "TSK-40" Must Server E "ext-tasks/specification/draft/tasks.md#capability-negotiation"
        "What needs a task and is called without the extension answers -32021 and names it.";
    TSK_41 "TSK-41" Must Client E "ext-tasks/specification/draft/tasks.md#polymorphic-results"
        "A client that declares the extension takes a result or a task from tools/call.";
    TSK_42 "TSK-42" Must Client E "ext-tasks/specification/draft/tasks.md#supported-methods"
        "A task as the result of any other method is an invalid response.";
    TSK_43 "TSK-43" Must Server E "ext-tasks/specification/draft/tasks.md#polymorphic-results"
        "resultType is task on a new task, and complete on what tasks/get, update and cancel return.";
    TSK_44 "TSK-44" Must Server E "ext-tasks/specification/draft/tasks.md#task-creation"
        "tasks/get finds a task before its id is given away.";
    TSK_45 "TSK-45" Should Server E "ext-tasks/specification/draft/tasks.md#task-creation"
        "Input that a call requires is asked for before it becomes a task.";
    TSK_46 "TSK-46" Must Server E "ext-tasks/specification/draft/tasks.md#task-polling"
        "tasks/get has what belongs to the status: inputRequests, result or error.";
    TSK_47 "TSK-47" Must Server E "ext-tasks/specification/draft/tasks.md#task-execution-errors"
        "A task fails by a JSON-RPC error alone; isError completes it.";
    TSK_48 "TSK-48" Must Server E "ext-tasks/specification/draft/tasks.md#task-update-requests"
        "A key of inputRequests stands for one request as long as the task lives.";
    TSK_49 "TSK-49" Should Client E "ext-tasks/specification/draft/tasks.md#task-update-requests"
        "Each input request is answered once, and the task is watched on.";
    TSK_50 "TSK-50" Must Client E "ext-tasks/specification/draft/tasks.md#task-update-requests"
        "inputResponses have keys that are open and results of the requested methods.";
    TSK_51 "TSK-51" Must Server E "ext-tasks/specification/draft/tasks.md#task-update-requests"
        "tasks/update and tasks/cancel are acknowledged with an empty result.";
    TSK_52 "TSK-52" Should Server E "ext-tasks/specification/draft/tasks.md#task-update-requests"
        "Responses to keys that are not open are ignored, and the others count.";
    TSK_53 "TSK-53" May Server E "ext-tasks/specification/draft/tasks.md#task-update-requests"
        "A part of the responses may be taken; the task waits for the rest.";
    TSK_54 "TSK-54" Must Server E "ext-tasks/specification/draft/tasks.md#protocol-errors"
        "Requests for tasks that do not declare the extension answer -32021.";
    TSK_55 "TSK-55" Must Client E "ext-tasks/specification/draft/tasks.md#streamable-http-routing-headers"
        "Requests for a task over HTTP have its id in Mcp-Name.";
    TSK_56 "TSK-56" May Server E "ext-tasks/specification/draft/tasks.md#task-status-notifications"
        "notifications/tasks are sent only for acknowledged ids, each with the whole task.";
    TSK_57 "TSK-57" Must Server E "ext-tasks/specification/draft/tasks.md#task-status-notifications"
        "A subscription carries no progress and no log messages of tasks.";
    TSK_58 "TSK-58" Must Server E "ext-tasks/specification/draft/tasks.md#security-considerations"
        "Each request for a task is authenticated and authorized.";
    TSK_59 "TSK-59" Must Client E "ext-tasks/specification/draft/tasks.md#security-considerations"
        "Input requests of a task are trusted and shown as if they came alone.";
    TSK_60 "TSK-60" Should Client E "ext-tasks/specification/draft/tasks.md#task-creation"
        "Ids of tasks survive a restart of the client.";
    TSK_61 "TSK-61" Must Server E "ext-tasks/specification/draft/tasks.md#backwards-compatibility"
        "What the experimental feature had is not served: task is ignored and tasks/result unknown.";
    TSK_62 "TSK-62" Must Server D "basic/utilities/tasks#capabilities"
        "The extension enables no tasks where the experimental feature is the rule.";
    TSK_63 "TSK-63" Should Server DE "ext-tasks/specification/draft/tasks.md#backwards-compatibility"
        "A server of both kinds lets clients get and cancel what they created by the older one.";
}
