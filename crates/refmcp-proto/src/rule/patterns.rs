//! Rules about ping, progress, cancellation, multi round-trip requests and subscriptions.

rules! {
    PATTERNS "Patterns"
    PING_01 "PING-01" Must Both ABCD "basic/utilities/ping#behavior-requirements"
        "ping is answered at once with an empty result.";
    PING_02 "PING-02" Note Server E "deprecated#removed"
        "ping is an unknown method.";

    PROG_01 "PROG-01" Must Both ABCDE "basic/patterns/progress#progress-flow"
        "Progress refers to the unique token of a request that is running.";
    PROG_02 "PROG-02" Must Both ABCDE "basic/patterns/progress#behavior-requirements"
        "Progress grows with each notification and ends with the request.";
    PROG_03 "PROG-03" Must Receiver D "basic/utilities/tasks#task-progress-notifications"
        "The token of a task is valid until the task ends.";
    PROG_04 "PROG-04" Must Server E "basic/patterns/progress#behavior-requirements"
        "Only servers send progress, and none on subscriptions.";

    CANC_01 "CANC-01" Must Both ABCD "basic/utilities/cancellation#behavior-requirements"
        "A party cancels requests of its own that are in progress.";
    CANC_02 "CANC-02" Should Receiver ABCDE "basic/patterns/cancellation#behavior-requirements"
        "A cancelled request is stopped and not answered; late or unknown ids are ignored.";
    CANC_03 "CANC-03" Must Both DE "basic/patterns/cancellation#cancellation-flow"
        "Tasks are cancelled by tasks/cancel.";
    CANC_04 "CANC-04" Must Client E "basic/patterns/cancellation#transport-specific-cancellation"
        "Over HTTP the closed stream cancels, over stdio the notification.";
    CANC_05 "CANC-05" Must Server E "basic/patterns/cancellation#cancellation-flow"
        "A server cancels nothing but subscriptions.";

    MRTR_01 "MRTR-01" Must Server E "basic/patterns/mrtr#supported-requests"
        "Input is required only by tools/call, prompts/get and resources/read.";
    MRTR_02 "MRTR-02" Must Server E "basic/patterns/mrtr#inputrequiredresult"
        "A result that requires input has input requests, a state or both.";
    MRTR_03 "MRTR-03" Must Server E "basic/patterns/mrtr#inputrequests"
        "Input requests have unique keys and are elicitation, sampling or roots without an envelope.";
    MRTR_04 "MRTR-04" Must Server E "basic/patterns/mrtr#basic-workflow"
        "Input is required only of the kinds that the request declares.";
    MRTR_05 "MRTR-05" Must Client E "basic/patterns/mrtr#basic-workflow"
        "The client has all input before it repeats the request.";
    MRTR_06 "MRTR-06" Must Client E "basic/patterns/mrtr#basic-workflow"
        "The repeated request has the same parameters, the responses, the state as it was, and a new id.";
    MRTR_07 "MRTR-07" Must Client E "basic/patterns/mrtr#basic-workflow"
        "requestState is neither read nor changed nor used for another request.";
    MRTR_08 "MRTR-08" Must Server E "basic/patterns/mrtr#security-considerations"
        "requestState is untrusted input, and protected where it decides anything.";
    MRTR_09 "MRTR-09" Should Server E "basic/patterns/mrtr#security-considerations"
        "requestState is bound to principal, time and request.";
    MRTR_10 "MRTR-10" Must Server E "basic/patterns/mrtr#error-handling"
        "A server does not count on an answer.";
    MRTR_11 "MRTR-11" Should Server E "basic/patterns/mrtr#error-handling"
        "Unknown responses are ignored, missing ones asked for again, malformed ones errors.";
    MRTR_12 "MRTR-12" Must Server E "basic/patterns/mrtr#inputrequiredresult"
        "Nothing follows a result that requires input, and it is not cached.";
    MRTR_13 "MRTR-13" Note Server E "basic/patterns/mrtr#inputrequiredresult"
        "A result with a state alone asks the client to come again.";

    SUB_01 "SUB-01" Must Client E "basic/patterns/subscriptions#notification-filter"
        "subscriptions/listen names the wanted notifications.";
    SUB_02 "SUB-02" Must Server E "basic/patterns/subscriptions#notification-filter"
        "Only wanted notifications are sent.";
    SUB_03 "SUB-03" Must Server E "basic/patterns/subscriptions#acknowledgment"
        "The first message acknowledges the part of the filter that is served.";
    SUB_04 "SUB-04" Must Server E "basic/patterns/subscriptions#receiving-notifications"
        "Every message of a subscription has its subscriptionId, of the type of the request's id.";
    SUB_05 "SUB-05" May Client E "basic/patterns/subscriptions#multiple-concurrent-subscriptions"
        "A client may have several subscriptions.";
    SUB_06 "SUB-06" Should Server E "basic/patterns/subscriptions#graceful-closure"
        "A server ends a subscription with a result.";
    SUB_07 "SUB-07" Must Server E "basic/patterns/subscriptions#receiving-notifications"
        "Subscriptions carry no progress and no log messages.";
    SUB_08 "SUB-08" Note Server E "basic/patterns/subscriptions#cancellation"
        "A new subscription repeats nothing: clients read again what they need.";
}
