//! Rules about the lifecycle: sessions, stateless requests, finding the common revision.

rules! {
    LIFECYCLE "Lifecycle"
    LIFE_01 "LIFE-01" Must Client ABCD "basic/lifecycle#initialization"
        "A session opens with initialize, which has protocolVersion, capabilities and clientInfo.";
    LIFE_02 "LIFE-02" Must Client ABCD "basic/lifecycle#initialization"
        "The client confirms the opened session with notifications/initialized.";
    LIFE_03 "LIFE-03" Should Client ABCD "basic/lifecycle#initialization"
        "Until initialize is answered the client sends nothing but ping.";
    LIFE_04 "LIFE-04" Should Server ABCD "basic/lifecycle#initialization"
        "Until the client has confirmed, the server sends only ping and log messages.";
    LIFE_05 "LIFE-05" Must Client ABCD "basic/lifecycle#version-negotiation"
        "The client requests a revision that it supports, preferably its newest.";
    LIFE_06 "LIFE-06" Must Server ABCD "basic/lifecycle#version-negotiation"
        "The server answers with the requested revision if it has it, else with another of its own.";
    LIFE_07 "LIFE-07" Should Client ABCD "basic/lifecycle#version-negotiation"
        "A client that cannot use the answered revision disconnects.";
    LIFE_08 "LIFE-08" Must Both CD "basic/lifecycle#operation"
        "Both keep to the agreed revision and use only declared capabilities.";
    LIFE_09 "LIFE-09" Must Client CD "basic/transports#protocol-version-header"
        "Over HTTP, requests after initialize name the revision in MCP-Protocol-Version.";
    LIFE_10 "LIFE-10" Should Both BCD "basic/lifecycle#timeouts"
        "Requests have timeouts; one that expires is cancelled, and progress extends it only up to a limit.";
    LIFE_11 "LIFE-11" Must Client ABCD "basic/utilities/cancellation#behavior-requirements"
        "initialize is not cancelled.";
    LIFE_12 "LIFE-12" Should Client ABCD "basic/lifecycle#shutdown"
        "A client ends a session by closing the pipe, then by signals; over HTTP it deletes the session.";
    LIFE_13 "LIFE-13" Must Server ABCD "basic/lifecycle#initialization"
        "The answer to initialize has protocolVersion, capabilities and serverInfo.";
    LIFE_14 "LIFE-14" Should Both AB "basic/lifecycle#operation"
        "Parties speak the agreed revision and use what was declared.";
    LIFE_15 "LIFE-15" Should Client CD "basic/transports#protocol-version-header"
        "The revision that MCP-Protocol-Version names is the one that was agreed on.";

    STATE_01 "STATE-01" Must Server E "basic#statelessness"
        "Nothing about a client is inferred from its earlier requests.";
    STATE_02 "STATE-02" Should Server E "basic#statelessness"
        "Related requests may come over different connections and to different processes.";
    STATE_03 "STATE-03" Must Both E "basic#statelessness"
        "State across requests has an explicit identifier that each request repeats.";
    STATE_04 "STATE-04" Must Client E "basic#_meta"
        "Every request names protocolVersion and clientCapabilities in _meta.";
    STATE_05 "STATE-05" Must Server E "basic#_meta"
        "A request without a required member of _meta is refused with -32602.";
    STATE_06 "STATE-06" Should Server E "basic#_meta"
        "Results name the server in _meta; its name decides nothing.";
    STATE_07 "STATE-07" Must Server E "basic/versioning#protocol-version-negotiation"
        "A revision that the server does not serve is refused with -32022 and the supported ones.";
    STATE_08 "STATE-08" Should Client E "basic/versioning#protocol-version-negotiation"
        "After -32022 the client retries with a common revision or gives up.";
    STATE_09 "STATE-09" Must Server E "server/discover#response"
        "Servers implement server/discover.";
    STATE_10 "STATE-10" May Client E "server/discover#when-to-call"
        "A client may discover first or send any request at once.";
    STATE_11 "STATE-11" Must Server E "basic#error-codes"
        "A request that needs an undeclared client capability is refused with -32021, which names it.";
    STATE_12 "STATE-12" Must Server E "server/tools#listing-tools"
        "Lists do not depend on the connection or on earlier calls.";
    STATE_13 "STATE-13" Must Both E "basic/versioning#extension-negotiation"
        "An extension of one side alone leads to core behaviour or to a fitting error.";
    STATE_14 "STATE-14" Should Client E "basic/versioning#backward-compatibility-with-initialization-based-versions"
        "What a server speaks is remembered for its process or origin, and probed again when it fails.";
    STATE_15 "STATE-15" Should Server E "basic/versioning#backward-compatibility-with-initialization-based-versions"
        "A server without sessions names its revisions when it refuses initialize.";
    STATE_16 "STATE-16" Note Server E "basic#error-codes"
        "A method whose capability the server does not declare does not exist: -32601.";
    STATE_17 "STATE-17" Note Both E "basic/versioning#protocol-version-negotiation"
        "Requests and notifications are those that the named revision has, from the side that sends them.";

    PROBE_01 "PROBE-01" Should Client BCD "basic/transports#backwards-compatibility"
        "Where initialize is refused over HTTP, the client looks for an HTTP+SSE endpoint.";
    PROBE_02 "PROBE-02" Should Client E "basic/transports/streamable-http#backward-compatibility"
        "A refusal without an error of this revision leads to initialize.";
    PROBE_03 "PROBE-03" Should Server BCDE "basic/transports/streamable-http#backward-compatibility"
        "Servers for old clients keep the endpoints of HTTP+SSE beside the new one.";
    PROBE_04 "PROBE-04" Should Both E "deprecated#deprecated"
        "New implementations leave HTTP+SSE out.";
}
