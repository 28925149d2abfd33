//! Rules about tools, resources, prompts, completion, pagination, logging and caching.

rules! {
    SERVER_FEATURES "Server features"
    TOOL_01 "TOOL-01" Must Server ABCDE "server/tools#capabilities"
        "A server with tools declares them and lists them page by page.";
    TOOL_02 "TOOL-02" Should Server ABCDE "server/tools#list-changed-notification"
        "A changed list of tools is announced by notifications/tools/list_changed.";
    TOOL_03 "TOOL-03" Should Server E "server/tools#listing-tools"
        "Tools are listed in a fixed order.";
    TOOL_04 "TOOL-04" Should Server DE "server/tools#tool-names"
        "A tool's name is 1 to 128 letters, digits, underscores, dashes or dots, and unique.";
    TOOL_05 "TOOL-05" Must Server DE "server/tools#tool"
        "inputSchema is an object whose type is \"object\".";
    TOOL_06 "TOOL-06" Must Server CDE "server/tools#output-schema"
        "structuredContent conforms to outputSchema.";
    TOOL_07 "TOOL-07" Should Server CDE "server/tools#structured-content"
        "Structured content is repeated as text.";
    TOOL_08 "TOOL-08" Must Client BCDE "server/tools#tool"
        "Annotations of a tool are trusted only as far as its server is.";
    TOOL_09 "TOOL-09" Note Server ABCDE "server/tools#error-handling"
        "An unknown tool is a JSON-RPC error, and a failed one a result with isError.";
    TOOL_10 "TOOL-10" Note Server DE "server/tools#error-handling"
        "Arguments that do not fit are a tool error, so that a model can correct them.";
    TOOL_11 "TOOL-11" Should Client DE "server/tools#error-handling"
        "Tool errors are shown to the model.";
    TOOL_12 "TOOL-12" Must Server ABCDE "server/tools#security-considerations"
        "Inputs are validated, access and rate limited, outputs cleaned.";
    TOOL_13 "TOOL-13" Should Client ABCDE "server/tools#security-considerations"
        "People see and confirm calls, which have a timeout and a log.";
    TOOL_14 "TOOL-14" Should Server CDE "server/tools#embedded-resources"
        "A server that embeds resources in results has the resources capability.";
    TOOL_15 "TOOL-15" Should Client E "server/tools#tool-names"
        "A client of several servers tells tools of the same name apart, not by the server's name for itself.";
    TOOL_16 "TOOL-16" Must Server ABCDE "server/tools#tool-result"
        "A result has content: blocks that the revision knows, with base64 data and media types.";

    RES_01 "RES-01" Must Server ABCDE "server/resources#capabilities"
        "A server with resources declares them; subscribe and listChanged are optional.";
    RES_02 "RES-02" May Server ABCDE "server/resources#reading-resources"
        "A resource may have several contents, each text or base64.";
    RES_03 "RES-03" Must Server E "server/resources#error-handling"
        "An unknown resource is an error (-32602), never empty contents.";
    RES_04 "RES-04" Note Client ABCD "server/resources#subscriptions"
        "A client subscribes to a URI and is notified of updates at or below it.";
    RES_05 "RES-05" Note Client E "server/resources#subscriptions"
        "Updates of resources are subscribed to by subscriptions/listen.";
    RES_06 "RES-06" Must Server ABCDE "server/resources#security-considerations"
        "URIs are validated, also against paths out of a directory, and binary data is encoded.";
    RES_07 "RES-07" Should Server ABCDE "server/resources#common-uri-schemes"
        "https URIs are for what clients can fetch themselves.";
    RES_08 "RES-08" Note Server ABCDE "server/resources#resource-templates"
        "Templates are those of RFC 6570, and their arguments can be completed.";
    RES_09 "RES-09" Should Server ABCD "server/resources#subscriptions"
        "Updates are notified of resources that the client has subscribed to.";

    PROMPT_01 "PROMPT-01" Must Server ABCDE "server/prompts#capabilities"
        "A server with prompts declares them, lists them by pages and takes arguments that are strings.";
    PROMPT_02 "PROMPT-02" Should Server ABCDE "server/prompts#error-handling"
        "An unknown prompt or a missing argument is refused with -32602.";
    PROMPT_03 "PROMPT-03" Must Server ABCDE "server/prompts#promptmessage"
        "Images and audio are base64 with a media type; embedded resources have URI, type and content.";
    PROMPT_04 "PROMPT-04" Must Both ABCDE "server/prompts#security"
        "Inputs and outputs of prompts are validated.";
    PROMPT_05 "PROMPT-05" Must Client ABCDE "server/prompts#getting-a-prompt"
        "Arguments of a prompt are strings.";

    COMP_01 "COMP-01" Must Server BCDE "server/utilities/completion#capabilities"
        "A server that completes arguments declares completions.";
    COMP_02 "COMP-02" Must Server ABCDE "server/utilities/completion#completion-results"
        "A completion has at most 100 values.";
    COMP_03 "COMP-03" Should Client CDE "server/utilities/completion#implementation-considerations"
        "Known arguments come along in context, and typing is debounced.";
    COMP_04 "COMP-04" Should Server BCDE "server/utilities/completion#error-handling"
        "A wrong reference or argument is refused with -32602, and suggestions reveal no secrets.";

    PAGE_01 "PAGE-01" Must Client ABCDE "server/utilities/pagination#implementation-guidelines"
        "Cursors are opaque, and a list ends where nextCursor is missing.";
    PAGE_02 "PAGE-02" Must Client E "server/utilities/pagination#implementation-guidelines"
        "An empty cursor is a cursor.";
    PAGE_03 "PAGE-03" Should Server ABCDE "server/utilities/pagination#error-handling"
        "Cursors stay valid, and an invalid one is refused with -32602.";
    PAGE_04 "PAGE-04" Note Server ABCDE "server/utilities/pagination#operations-supporting-pagination"
        "Lists of tools, prompts, resources and templates have pages.";

    LOG_01 "LOG-01" Must Server ABCDE "server/utilities/logging#capabilities"
        "A server that sends log messages declares logging.";
    LOG_02 "LOG-02" Note Server ABCD "server/utilities/logging#setting-log-level"
        "logging/setLevel sets the least level for the session.";
    LOG_03 "LOG-03" Must Server E "server/utilities/logging#per-request-log-level"
        "Log messages go to requests that ask for them, at their level or above, on their own stream.";
    LOG_04 "LOG-04" Should Server E "server/utilities/logging#error-handling"
        "An unknown log level is refused with -32602.";
    LOG_05 "LOG-05" Must Server ABCDE "server/utilities/logging#security"
        "Log messages hold no credentials, personal data or hints for attackers.";
    LOG_06 "LOG-06" Must Both ABCDE "server/utilities/logging#log-levels"
        "A log level is one of the eight of syslog.";

    CACHE_01 "CACHE-01" Must Server E "server/utilities/caching#cacheable-results"
        "Lists, contents of resources and discovery say how long and for whom they may be cached.";
    CACHE_02 "CACHE-02" Must Client E "server/utilities/caching#cache-key"
        "A cached result serves the same method with the same parameters alone.";
    CACHE_03 "CACHE-03" Must Client E "server/utilities/caching#cacheable-results"
        "Results of requests with input responses or state are not cached.";
    CACHE_04 "CACHE-04" Should Client E "server/utilities/caching#freshness-calculation"
        "A result is fresh for ttlMs after it came; none or a negative one means 0.";
    CACHE_05 "CACHE-05" Should Client E "server/utilities/caching#cacheable-model"
        "Clients do not poll by ttlMs, or else with jitter and backoff.";
    CACHE_06 "CACHE-06" Must Client E "server/utilities/caching#cache-scope-field"
        "Private results are not shared between authorizations.";
    CACHE_07 "CACHE-07" Must Server E "server/utilities/caching#interaction-with-pagination"
        "The pages of a list have one cacheScope.";
    CACHE_08 "CACHE-08" Note Client E "server/utilities/caching#interaction-with-notifications"
        "A change notification makes cached results stale.";
    CACHE_09 "CACHE-09" Should Client E "server/utilities/caching#interaction-with-pagination"
        "An invalid cursor drops the cached pages of its list.";
    CACHE_10 "CACHE-10" Must Server E "server/utilities/caching#security-considerations"
        "cacheScope protects nothing; access is checked for each request.";
}
