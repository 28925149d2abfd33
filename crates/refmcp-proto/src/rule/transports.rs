//! Rules about transports: stdio, streamable HTTP, HTTP+SSE.

rules! {
    TRANSPORTS "Transports"
    STDIO_01 "STDIO-01" Must Both ABCDE "basic/transports/stdio#sending-messages"
        "Each line is one message without line breaks inside.";
    STDIO_02 "STDIO-02" Must Server ABCDE "basic/transports/stdio#sending-messages"
        "Standard output carries messages only; logs go to standard error.";
    STDIO_03 "STDIO-03" Must Client ABCDE "basic/transports/stdio#sending-messages"
        "Standard input of the server carries messages only.";
    STDIO_04 "STDIO-04" Should Client DE "basic/transports/stdio#receiving-messages"
        "Output on standard error is no sign of failure.";
    STDIO_05 "STDIO-05" Should Client ABCD "basic/transports#stdio"
        "Clients support stdio where they can.";
    STDIO_06 "STDIO-06" Must Server E "basic/transports/stdio#receiving-messages"
        "The server writes no requests, and the client no responses.";
    STDIO_07 "STDIO-07" Must Client E "basic/transports/stdio#cancellation"
        "Requests are cancelled by notification, after which the server says no more of them.";
    STDIO_08 "STDIO-08" Must Client E "basic/transports/stdio#receiving-messages"
        "Messages of subscriptions are told apart by subscriptionId, and subscribed to again after a restart.";
    STDIO_09 "STDIO-09" Should Server E "basic/transports/stdio#shutdown"
        "The server exits soon after its input ends.";
    STDIO_10 "STDIO-10" Should Client E "basic/transports/stdio#unexpected-termination"
        "A server that died is started again; what was in flight is lost.";
    STDIO_11 "STDIO-11" Should Client E "basic/transports/stdio#backward-compatibility"
        "A client for both lifecycles probes with server/discover first.";
    STDIO_12 "STDIO-12" Must Client E "basic/transports/stdio#backward-compatibility"
        "Any unknown error, or silence, makes the client open a session.";
    STDIO_13 "STDIO-13" Should Both E "basic/transports#custom-transports"
        "Other byte streams use the same framing.";
    STDIO_14 "STDIO-14" Must Both B "basic/transports#stdio"
        "A line may hold a batch.";

    HTTP_01 "HTTP-01" Must Server BCD "basic/transports#streamable-http"
        "One path serves POST and GET.";
    HTTP_02 "HTTP-02" Must Server ABCDE "basic/transports/streamable-http"
        "The Origin header is validated, and an invalid one refused.";
    HTTP_03 "HTTP-03" Must Client BCD "basic/transports#sending-messages-to-the-server"
        "Each message is a POST that accepts JSON and SSE.";
    HTTP_04 "HTTP-04" Must Client CD "basic/transports#sending-messages-to-the-server"
        "The body of a POST is one message.";
    HTTP_05 "HTTP-05" Must Server BCD "basic/transports#sending-messages-to-the-server"
        "A POST without requests is answered with 202 and no body, or with an error status.";
    HTTP_06 "HTTP-06" Must Server BCD "basic/transports#sending-messages-to-the-server"
        "A request is answered with JSON or an SSE stream.";
    HTTP_07 "HTTP-07" Should Server BCD "basic/transports#sending-messages-to-the-server"
        "A stream ends after its response, and what precedes it belongs to the request.";
    HTTP_08 "HTTP-08" Should Server BC "basic/transports#sending-messages-to-the-server"
        "A stream stays open until its response is sent.";
    HTTP_09 "HTTP-09" Should Server D "basic/transports#sending-messages-to-the-server"
        "A stream begins with an event that has an id and no data.";
    HTTP_10 "HTTP-10" May Server D "basic/transports#sending-messages-to-the-server"
        "A server may close a connection whose stream can be resumed, after a retry delay.";
    HTTP_11 "HTTP-11" Must Client D "basic/transports#sending-messages-to-the-server"
        "The client waits for the retry delay before it reconnects.";
    HTTP_12 "HTTP-12" Should Server BCD "basic/transports#sending-messages-to-the-server"
        "A lost connection cancels nothing; clients send a notification for that.";
    HTTP_13 "HTTP-13" May Client BCD "basic/transports#listening-for-messages-from-the-server"
        "A client may open a GET stream, which the server may refuse with 405.";
    HTTP_14 "HTTP-14" Must Server BCD "basic/transports#listening-for-messages-from-the-server"
        "A GET stream carries responses only when it resumes the stream of a request.";
    HTTP_15 "HTTP-15" Must Server BCD "basic/transports#multiple-connections"
        "A message is sent on one stream alone.";
    HTTP_16 "HTTP-16" Must Server BCD "basic/transports#resumability-and-redelivery"
        "Event ids are unique among the streams of a session.";
    HTTP_17 "HTTP-17" Must Server BCD "basic/transports#resumability-and-redelivery"
        "Resuming repeats messages of the broken stream alone.";
    HTTP_18 "HTTP-18" May Server BCD "basic/transports#session-management"
        "A server may assign a session id of visible ASCII characters with its answer to initialize.";
    HTTP_19 "HTTP-19" Must Client BCD "basic/transports#session-management"
        "Later requests repeat the session id.";
    HTTP_20 "HTTP-20" Should Server BCD "basic/transports#session-management"
        "A request without a needed session id is refused with 400.";
    HTTP_21 "HTTP-21" Must Server BCD "basic/transports#session-management"
        "A request for an ended session is refused with 404.";
    HTTP_22 "HTTP-22" Must Client BCD "basic/transports#session-management"
        "After 404 the client opens a new session.";
    HTTP_23 "HTTP-23" Should Client BCD "basic/transports#session-management"
        "A client deletes a session that it no longer needs.";
    HTTP_24 "HTTP-24" Should Server CD "basic/transports#protocol-version-header"
        "Without a header and any other sign, the revision is the one before that header.";
    HTTP_25 "HTTP-25" Must Server CD "basic/transports#protocol-version-header"
        "An invalid MCP-Protocol-Version is refused with 400.";
    HTTP_26 "HTTP-26" Must Server BCD "basic/transports#session-management"
        "A session id authenticates no client.";

    MHTTP_01 "MHTTP-01" Must Server E "basic/transports/streamable-http"
        "One path accepts POST; session and event ids mean nothing.";
    MHTTP_02 "MHTTP-02" Must Client E "basic/transports/streamable-http#sending-messages"
        "Each POST holds one message, accepts JSON and SSE, and has the headers of the request's metadata.";
    MHTTP_03 "MHTTP-03" Must Server E "basic/transports/streamable-http#receiving-messages"
        "A notification is answered with 202 and no body, or with an error status.";
    MHTTP_04 "MHTTP-04" Must Server E "basic/transports/streamable-http#receiving-messages"
        "A stream carries what belongs to its request, and no request of the server.";
    MHTTP_05 "MHTTP-05" Should Server E "basic/transports/streamable-http#receiving-messages"
        "The response ends the stream, proxies are told not to buffer it, and comments keep it alive.";
    MHTTP_06 "MHTTP-06" Must Server E "basic/transports/streamable-http#cancellation"
        "Closing the response stream cancels the request.";
    MHTTP_07 "MHTTP-07" Must Client E "basic/transports/streamable-http#receiving-messages"
        "A broken stream loses its request, which is sent again under a new id.";
    MHTTP_08 "MHTTP-08" Must Both E "basic/transports/streamable-http#protocol-version-header"
        "MCP-Protocol-Version is the revision of the body.";
    MHTTP_09 "MHTTP-09" Must Client E "basic/transports/streamable-http#standard-request-headers"
        "Mcp-Method repeats the method, and Mcp-Name the name or URI.";
    MHTTP_10 "MHTTP-10" Must Server E "basic/transports/streamable-http#server-validation"
        "Headers that are missing or differ from the body are refused with -32020.";
    MHTTP_11 "MHTTP-11" Must Server E "basic/transports/streamable-http#receiving-messages"
        "An unknown method is answered with 404 and -32601.";
    MHTTP_12 "MHTTP-12" May Server E "basic/transports/streamable-http#backward-compatibility"
        "A server of older clients may take a request without headers for theirs.";
    MHTTP_13 "MHTTP-13" Must Client E "basic/transports/streamable-http#custom-headers-from-tool-parameters"
        "Arguments that a tool marks with x-mcp-header are repeated in Mcp-Param headers.";
    MHTTP_14 "MHTTP-14" Must Server E "basic/transports/streamable-http#schema-extension"
        "x-mcp-header is a unique token on a string, an integer or a boolean among plain properties.";
    MHTTP_15 "MHTTP-15" Must Client E "basic/transports/streamable-http#client-behavior"
        "Over HTTP, tools with an invalid x-mcp-header are left out.";
    MHTTP_16 "MHTTP-16" Must Client E "basic/transports/streamable-http#value-encoding"
        "Header values that are no plain text are sent in base64 between markers.";
    MHTTP_17 "MHTTP-17" Must Both E "basic/transports/streamable-http#server-behavior-for-custom-headers"
        "An absent argument has no header, and a present one must have it.";
    MHTTP_18 "MHTTP-18" Should Server E "basic/transports/streamable-http#server-behavior-for-custom-headers"
        "Integers in headers are compared as numbers.";
    MHTTP_19 "MHTTP-19" Should Client E "basic/transports/streamable-http#client-behavior"
        "After -32020 about arguments the client lists the tools again before it retries.";
    MHTTP_20 "MHTTP-20" Must Proxy E "basic/transports/streamable-http#custom-headers-from-tool-parameters"
        "Proxies pass on Mcp-Param headers that they do not know.";
    MHTTP_21 "MHTTP-21" Should Server E "basic/transports/streamable-http#schema-extension"
        "Secrets and personal data are not marked with x-mcp-header.";

    SSE_01 "SSE-01" Must Server A "basic/transports#http-with-sse"
        "There is an endpoint for the stream and one for POST.";
    SSE_02 "SSE-02" Must Server A "basic/transports#http-with-sse"
        "The first event, endpoint, says where to post.";
    SSE_03 "SSE-03" Must Client A "basic/transports#http-with-sse"
        "The client posts all messages there.";
    SSE_04 "SSE-04" Must Server A "basic/transports#http-with-sse"
        "Messages of the server are message events of the stream.";
    SSE_05 "SSE-05" Must Server A "basic/transports#security-warning"
        "The Origin header is validated.";
    SSE_06 "SSE-06" Note Client A "basic/transports#http-with-sse"
        "An endpoint event of another origin is refused.";
}
