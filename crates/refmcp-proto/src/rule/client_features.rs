//! Rules about roots, sampling and elicitation.

rules! {
    CLIENT_FEATURES "Client features"
    ROOT_01 "ROOT-01" Must Client ABCDE "client/roots#capabilities"
        "A client that lists roots declares them.";
    ROOT_02 "ROOT-02" Must Client ABCD "client/roots#root-list-changes"
        "A client with listChanged announces changed roots by notifications/roots/list_changed.";
    ROOT_03 "ROOT-03" Must Client ABCDE "client/roots#root"
        "Roots are file URIs that the user has permitted.";
    ROOT_04 "ROOT-04" Should Client ABCD "client/roots#error-handling"
        "A client without roots answers -32601.";
    ROOT_05 "ROOT-05" Note Client E "client/roots#error-handling"
        "A client that cannot list roots need not repeat its request.";
    ROOT_06 "ROOT-06" Should Server ABCDE "client/roots#security-considerations"
        "Servers stay within the roots, which are guidance and no access control.";

    SAMP_01 "SAMP-01" Must Client ABCDE "client/sampling#capabilities"
        "A client that samples declares sampling.";
    SAMP_02 "SAMP-02" Must Client E "client/sampling#sampling-parameters"
        "A sample has at most maxTokens; other wishes of the server may be changed.";
    SAMP_03 "SAMP-03" Must Client ABCDE "client/sampling#model-hints"
        "Model hints are tried in order; priorities are advice.";
    SAMP_04 "SAMP-04" Must Server DE "client/sampling#capabilities"
        "Tools in sampling go only to clients that declare sampling.tools.";
    SAMP_05 "SAMP-05" Must Both DE "client/sampling#message-content-constraints"
        "Each tool use is answered by a tool result in the next user message, which holds nothing else.";
    SAMP_06 "SAMP-06" Should Server DE "client/sampling#capabilities"
        "includeContext is none, or goes to clients that declare sampling.context.";
    SAMP_07 "SAMP-07" Should Both DE "client/sampling#multi-turn-tool-loop"
        "Loops of tool calls are limited.";
    SAMP_08 "SAMP-08" Should Client ABCD "client/sampling#error-handling"
        "A user's refusal is a JSON-RPC error.";
    SAMP_09 "SAMP-09" Note Both DE "client/sampling#messages"
        "Content is one block or several.";
    SAMP_10 "SAMP-10" Should Client ABCDE "client/sampling#user-interaction-model"
        "People can review prompts and samples, and rates are limited.";
    SAMP_11 "SAMP-11" Must Both ABC "client/sampling#messages"
        "Content is one block of a kind that the revision knows.";

    ELIC_01 "ELIC-01" Must Client CDE "client/elicitation#capabilities"
        "A client that asks its user declares elicitation with its modes; an empty one means forms.";
    ELIC_02 "ELIC-02" Must Server DE "client/elicitation#capabilities"
        "Only declared modes of elicitation are used.";
    ELIC_03 "ELIC-03" Must Client DE "client/elicitation#elicitation-requests"
        "Elicitation without a mode is a form.";
    ELIC_04 "ELIC-04" Must Server CDE "client/elicitation#requested-schema"
        "A form is a flat object of strings, numbers, booleans and choices.";
    ELIC_05 "ELIC-05" Note Server C "client/elicitation#supported-schema-types"
        "A choice is an enum with optional enumNames, and only booleans have defaults.";
    ELIC_06 "ELIC-06" Note Server DE "client/elicitation#requested-schema"
        "Choices are enum, titled oneOf, or arrays of either for several.";
    ELIC_07 "ELIC-07" Should Client DE "client/elicitation#requested-schema"
        "Forms are filled with their defaults.";
    ELIC_08 "ELIC-08" Must Client CDE "client/elicitation#response-actions"
        "The action is accept, decline or cancel; only an accepted form has content.";
    ELIC_09 "ELIC-09" Must Server CDE "client/elicitation#form-mode-security"
        "Forms ask for no secrets.";
    ELIC_10 "ELIC-10" Must Client DE "client/elicitation#safe-url-handling"
        "The user sees which server asks and the whole URL, may refuse, and opens it outside of the client.";
    ELIC_11 "ELIC-11" Must Server DE "client/elicitation#safe-url-handling"
        "The URL has no personal data and grants no access by itself.";
    ELIC_12 "ELIC-12" Must Server DE "client/elicitation#identifying-the-user"
        "Elicitation belongs to a verified user, who must be the one that finishes it.";
    ELIC_13 "ELIC-13" Note Server D "client/elicitation#completion-notifications-for-url-mode-elicitation"
        "URL elicitation has an id, and its completion may be notified to its client.";
    ELIC_14 "ELIC-14" May Server D "client/elicitation#url-elicitation-required-error"
        "A request may be refused with -32042 and the URLs that must be visited first.";
    ELIC_15 "ELIC-15" Note Both E "client/elicitation#url-mode-flow"
        "Accepting a URL is consent, not completion.";
    ELIC_16 "ELIC-16" Should Both CDE "client/elicitation#form-mode-security"
        "Both sides check content against the requested schema.";
    ELIC_17 "ELIC-17" Must Server E "client/elicitation#response-actions"
        "Servers handle refusal, cancellation and silence.";
}
