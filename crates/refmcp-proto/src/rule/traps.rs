//! Rules about mistakes that implementations make where revisions differ: advice of this project.

rules! {
    TRAPS "Traps"
    T_01 "T-01" Note Server ABCDE "basic/versioning#backward-compatibility-with-initialization-based-versions"
        "initialize never agrees on a revision without sessions.";
    T_02 "T-02" Note Client E "basic/versioning#backward-compatibility-with-initialization-based-versions"
        "-32602 says nothing about the lifecycle of a server.";
    T_03 "T-03" Note Client BCDE "basic/transports/streamable-http#receiving-messages"
        "404 means a lost session or an unknown method, by revision.";
    T_04 "T-04" Note Server BCDE "basic/transports/streamable-http#cancellation"
        "A lost connection cancels a request without a session, and no other.";
    T_05 "T-05" Note Server ABCDE "server/resources#error-handling"
        "The code for a missing resource depends on the revision.";
    T_06 "T-06" Note Server ABCDE "server/tools#error-handling"
        "Bad arguments are a protocol error or a tool error, by revision.";
    T_07 "T-07" Note Both D "basic/transports#resumability-and-redelivery"
        "An event without data is no message.";
    T_08 "T-08" Note Both E "basic/transports/streamable-http#receiving-messages"
        "Streams have no event ids and are not resumed.";
    T_09 "T-09" Note Both E "basic#error-codes"
        "Proposals have other error codes than the specification.";
    T_10 "T-10" Note Server E "basic#_meta"
        "clientInfo is optional.";
    T_11 "T-11" Note Both E "basic/versioning#protocol-version-negotiation"
        "A revision with sessions is not spoken by _meta.";
    T_12 "T-12" Note Both E "basic/patterns/subscriptions#cancellation"
        "A subscription ends by a result, a notification or both.";
    T_13 "T-13" Note Server BCDE "basic#requests"
        "Request ids are unique for their sender alone.";
    T_14 "T-14" Note Both ABCDE "basic#requests"
        "1 and \"1\" are different ids.";
    T_15 "T-15" Note Client E "basic#requests"
        "params cannot be left out, since _meta is required.";
    T_16 "T-16" Note Server E "server/utilities/caching#cacheable-results"
        "Exactly six methods have cache hints.";
    T_17 "T-17" Note Server E "server/utilities/caching#choosing-a-cache-scope"
        "A list that depends on the caller is private.";
    T_18 "T-18" Note Both E "basic/transports/streamable-http#value-encoding"
        "Header values are decoded before they are compared.";
    T_19 "T-19" Note Server E "basic/transports/streamable-http#schema-extension"
        "x-mcp-header on a number, in items or behind $ref is invalid.";
    T_20 "T-20" Note Both BCD "basic/transports#session-management"
        "The session header is one header in any case.";
    T_21 "T-21" Note Server BCD "basic/transports#protocol-version-header"
        "A session's own revision comes before the assumed one.";
    T_22 "T-22" Note Server ABCDE "basic#messages"
        "Batches are of one revision alone.";
    T_23 "T-23" Note Both CDE "basic#_meta"
        "Reserved prefixes of _meta differ between revisions.";
    T_24 "T-24" Note Server E "basic#statelessness"
        "Capabilities of a request hold for it alone.";
    T_25 "T-25" Note Server BCD "basic/transports#listening-for-messages-from-the-server"
        "Requests to the client go on the stream of the call that needs them.";
    T_26 "T-26" Note Client ABCDE "server/utilities/pagination#response-format"
        "An empty cursor does not end a list.";
    T_27 "T-27" Note Both DE "client/sampling#messages"
        "Sampled content may be an array.";
    T_28 "T-28" Note Server CD "server/tools#structured-content"
        "Structured content is an object.";
    T_29 "T-29" Note Both DE "extensions/tasks/overview"
        "Two kinds of tasks share method names.";
    T_30 "T-30" Note Server DE "extensions/tasks/overview"
        "isError fails one kind of task and completes the other.";
    T_31 "T-31" Note Server ABCDE "server/utilities/logging#log-message-notifications"
        "Log messages need a request's wish where there is no session.";
    T_32 "T-32" Note Client ABCDE "tutorials/security/security_best_practices"
        "URLs of servers are checked before use.";
    T_33 "T-33" Note Client E "basic/authorization#authorization-response-validation"
        "iss is compared byte by byte, and first.";
    T_34 "T-34" Note Client CDE "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements"
        "Metadata of another resource ends the login.";
    T_35 "T-35" Note Server E "server/tools#listing-tools"
        "Calls do not unlock tools.";
    T_36 "T-36" Note Client A "server/utilities/completion#requesting-completions"
        "Completion has no capability.";
    T_37 "T-37" Note Server E "basic#_meta"
        "serverInfo is among the keys of _meta in results.";
    T_38 "T-38" Note Both E "changelog"
        "Proposals name this revision by an earlier date.";
    T_39 "T-39" Note Server ABCD "basic#responses"
        "Members of newer revisions are left out.";
    T_40 "T-40" Note Both DE "basic/patterns/cancellation#cancellation-flow"
        "notifications/cancelled does not cancel tasks.";
}
