//! Rules about messages: JSON-RPC, `_meta` and schemas.

rules! {
    MESSAGES "Messages"
    RPC_01 "RPC-01" Must Both ABCDE "basic#messages"
        "Every message is JSON-RPC 2.0, encoded in UTF-8.";
    RPC_02 "RPC-02" Must Both ABCDE "basic#requests"
        "The id of a request is a string or an integer, never null.";
    RPC_03 "RPC-03" Must Both ABCD "basic#requests"
        "A requestor uses an id once in a session.";
    RPC_04 "RPC-04" Must Client E "basic#requests"
        "An id differs from those of the sender's requests that are still unanswered.";
    RPC_05 "RPC-05" Must Both ABCDE "basic#responses"
        "A response has its request's id; only an error about an unreadable id leaves it out.";
    RPC_06 "RPC-06" Must Both ABCDE "basic#responses"
        "A response has either a result or an error, and an error an integer code and a message.";
    RPC_07 "RPC-07" Must Both ABCDE "basic#notifications"
        "A notification has no id and gets no response.";
    RPC_08 "RPC-08" Must Both B "basic#batching"
        "Batches are accepted; sending them is optional.";
    RPC_09 "RPC-09" Must Client B "basic/lifecycle#initialization"
        "A batch never contains initialize.";
    RPC_10 "RPC-10" Note Both ACDE "basic#messages"
        "A message travels alone: an array is refused with -32600.";
    RPC_11 "RPC-11" Must Server E "basic#result-responses"
        "Every result names its type in resultType.";
    RPC_12 "RPC-12" Must Client E "basic#result-responses"
        "A result without resultType counts as complete; an unknown type makes the response invalid.";
    RPC_13 "RPC-13" Must Both E "basic#result-responses"
        "Result types beyond the core ones belong to extensions that were declared.";
    RPC_14 "RPC-14" Must Both E "basic#error-codes"
        "Retired codes (-32002, -32042) and undefined ones of the reserved range are not sent.";
    RPC_15 "RPC-15" Must Server E "basic#message-patterns"
        "A server sends no requests, and a client no responses.";
    RPC_16 "RPC-16" Must Both CDE "basic#_meta"
        "Keys of _meta are a name behind an optional dotted prefix with a slash.";
    RPC_17 "RPC-17" Must Both E "basic#_meta"
        "The trace keys of _meta have the formats of the W3C.";
    RPC_18 "RPC-18" Must Both DE "basic#schema-dialect"
        "A schema without $schema is of 2020-12; an unsupported dialect is reported.";
    RPC_19 "RPC-19" Must Both E "basic#json-schema-usage"
        "A validator fetches no $ref from the network unless it was told to.";
    RPC_20 "RPC-20" Should Both E "basic#composition-keyword-resource-use"
        "The cost of validating a schema is limited.";
    RPC_21 "RPC-21" Must Client DE "basic#icons"
        "Icons are https or data URIs, fetched without credentials and without leaving the origin.";
    RPC_22 "RPC-22" Must Both ABCDE "basic#responses"
        "Every request gets a response, unless its sender cancels it.";
    RPC_23 "RPC-23" Must Both ABCDE "schema"
        "Params and results have the members that the schema of the revision demands, with their types.";
}
