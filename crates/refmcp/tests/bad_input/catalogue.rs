//! The catalogue of bad inputs, and where each is tested: by rows of the table in this folder, which go over every
//! transport, or by the named tests, which hold what one transport, the client or a command alone can be given.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::GROUPS;

/// A bad input: its number, what it is, and the tests of it beside the table, as `crate/path.rs function`.
struct Input(u8, &'static str, &'static [&'static str]);

#[rustfmt::skip]
const INPUTS: [Input; 110] = [
    // JSON and JSON-RPC.
    Input(1, "an empty message", &[]),
    Input(2, "a message of white space", &[]),
    Input(3, "a message cut short at every byte", &[]),
    Input(4, "bytes that are no UTF-8, lone surrogates", &[]),
    Input(5, "a byte order mark", &[]),
    Input(6, "UTF-16 and UTF-32", &[]),
    Input(7, "NUL bytes", &[]),
    Input(8, "arrays and objects in each other, up to a million", &[]),
    Input(9, "numbers beyond all measure", &[]),
    Input(10, "keys that come twice", &[]),
    Input(11, "keys in another case", &[]),
    Input(12, "another version of JSON-RPC, or none", &[]),
    Input(13, "ids of every kind", &[]),
    Input(14, "the id 0", &[]),
    Input(15, "a result and an error, or neither", &[]),
    Input(16, "methods that are none", &[]),
    Input(17, "parameters that are no object", &[]),
    Input(18, "batches", &["refmcp/tests/bad_input/batches.rs each_message_of_a_batch_is_judged_by_itself"]),
    Input(19, "responses without a request", &["refmcp/tests/bad_input/asking.rs answers_in_a_session"]),
    Input(20, "notifications with an id, requests without", &[]),
    Input(21, "more than one message, or something behind it", &[]),
    Input(22, "_meta and progress tokens that are none", &[]),
    Input(23, "keys that mean something elsewhere", &[]),
    Input(24, "an id that is in flight", &[
        "refmcp/tests/bad_input/in_flight.rs a_second_request_of_the_same_id_is_refused",
        "refmcp-http/tests/http/resumption.rs a_duplicate_request_id_is_refused",
        "refmcp-http/tests/http/isolation.rs every_client_receives_only_its_own_messages",
    ]),
    // MCP.
    Input(25, "calls before initialize", &[
        "refmcp/tests/bad_input/handshake.rs calls_before_initialize",
        "refmcp/tests/bad_input/handshake.rs calls_before_initialized",
    ]),
    Input(26, "initialize twice, or incomplete", &[
        "refmcp/tests/bad_input/handshake.rs initialize_twice",
        "refmcp/tests/bad_input/handshake.rs incomplete_initialize_requests",
    ]),
    Input(27, "protocol versions of every kind", &["refmcp/tests/bad_input/handshake.rs versions_of_every_kind"]),
    Input(28, "requests that do not describe their client", &[]),
    Input(29, "headers that differ from the body", &[
        "refmcp-http/tests/http/stateless.rs headers_must_repeat_the_body",
        "refmcp-http/tests/http/stateless.rs arguments_are_repeated_where_the_schema_says_so",
    ]),
    Input(30, "headers that are missing, twice, or in another case", &[
        "refmcp-http/tests/http/stateless.rs headers_must_repeat_the_body",
        "refmcp-http/tests/http/sessions.rs the_version_header_is_required_by_its_revision",
    ]),
    Input(31, "headers in broken base64", &[
        "refmcp-http/src/request/headers.rs base64_is_decoded_only_between_both_marks",
        "refmcp-http/src/request/headers.rs mirrored_values_are_trimmed_and_decoded",
    ]),
    Input(32, "methods of the other lifecycle", &[]),
    Input(33, "names that do not exist", &[]),
    Input(34, "arguments that do not fit", &[]),
    Input(35, "schemas of a hostile server", &[
        "refmcp/tests/client/hostile_schemas.rs a_tool_whose_schema_is_too_much_work_is_called_unchecked",
        "refmcp-proto/src/schema.rs hostile_schemas_are_bounded",
        "refmcp-proto/src/schema.rs references_are_never_fetched",
    ]),
    Input(36, "cursors that were not given out", &["refmcp/tests/bad_input/cursors.rs forged_cursors"]),
    Input(37, "URIs that lead elsewhere", &["refmcp/tests/bad_input/files.rs only_files_inside_the_directory_are_read"]),
    Input(38, "URI templates with long values", &["refmcp-proto/src/uri_template.rs matching_long_uris_is_linear"]),
    Input(39, "progress of what is unknown, backwards, NaN", &[]),
    Input(40, "cancelling what is not there", &["refmcp-http/tests/http/isolation.rs every_client_receives_only_its_own_messages"]),
    Input(41, "states that were changed, expired, used, or given to another", &[
        "refmcp/tests/bad_input/asking.rs tampered_request_states",
        "refmcp-http/tests/http/replicas.rs a_request_state_is_good_once_at_all_replicas",
        "refmcp-server/tests/promises/states.rs a_state_is_good_for_its_own_call_only",
        "refmcp-server/tests/promises/states.rs a_state_does_not_last_for_ever",
    ]),
    Input(42, "answers that do not fit the question, tasks of others, tasks that are cancelled twice or over", &[
        "refmcp/tests/bad_input/asking.rs answers_that_do_not_fit_the_question",
        "refmcp-http/tests/http/replica_tasks.rs a_task_of_another_principal_is_unknown_at_every_endpoint",
        "refmcp-server/tests/promises/task_attacks.rs cancelling_at_every_moment_ends_in_one_state",
        "refmcp-server/tests/promises/task_attacks.rs wrong_lifetimes_are_refused",
    ]),
    // HTTP.
    Input(43, "methods that a path does not have", &["refmcp-http/tests/http/guard.rs a_wrong_method_is_answered_with_allow"]),
    Input(44, "bodies that are not declared as JSON", &["refmcp-http/tests/http/malformed_http.rs a_body_must_be_declared_as_json"]),
    Input(45, "Accept that does not allow the response", &["refmcp-http/tests/http/malformed_http.rs accept_must_allow_json_and_events"]),
    Input(46, "foreign hosts", &[
        "refmcp-http/tests/http/guard.rs foreign_hosts_and_origins_are_refused_on_every_route",
        "refmcp-http/tests/http/http2.rs host_and_authority_are_both_checked",
    ]),
    Input(47, "foreign origins", &["refmcp-http/tests/http/guard.rs foreign_hosts_and_origins_are_refused_on_every_route"]),
    Input(48, "bodies over the limit, without end, of two lengths", &[
        "refmcp-http/tests/http/size_and_time_limits.rs the_size_of_a_body_is_limited",
        "refmcp-http/tests/http/size_and_time_limits.rs an_endless_body_is_cut",
        "refmcp-http/tests/http/malformed_http.rs ambiguous_body_lengths_are_refused",
        "refmcp-http/tests/http/malformed_http.rs a_wrong_content_length_harms_only_its_connection",
    ]),
    Input(49, "compressed bodies", &["refmcp-http/tests/http/malformed_http.rs a_connection_goes_on_after_an_error"]),
    Input(50, "heads and bodies by the byte", &[
        "refmcp-http/tests/http/size_and_time_limits.rs the_time_of_a_body_is_limited",
        "refmcp-http/tests/http/size_and_time_limits.rs the_time_of_a_head_is_limited",
    ]),
    Input(51, "long heads, line breaks in ids", &[
        "refmcp-http/tests/http/size_and_time_limits.rs the_size_of_a_head_is_limited",
        "refmcp-http/tests/http/session_and_event_ids.rs a_session_id_is_sent_once_and_exists",
    ]),
    Input(52, "session ids that are none", &["refmcp-http/tests/http/session_and_event_ids.rs a_session_id_is_sent_once_and_exists"]),
    Input(53, "the session of another principal", &["refmcp-http/tests/http/authorization/principals.rs a_session_of_another_principal_is_unknown"]),
    Input(54, "event ids that are none", &[
        "refmcp-http/tests/http/session_and_event_ids.rs a_last_event_id_is_well_formed",
        "refmcp-http/tests/http/resumption.rs an_unknown_last_event_id_is_refused",
        "refmcp-http/tests/http/resumption.rs events_that_are_gone_are_an_error",
    ]),
    Input(55, "a hundred GET streams", &["refmcp-http/tests/http/session_and_event_ids.rs only_the_latest_of_many_readers_reads"]),
    Input(56, "connections cut at every byte", &[
        "refmcp-http/tests/http/disconnects.rs stateless_requests_leave_nothing",
        "refmcp-http/tests/http/disconnects.rs sessions_survive_their_connections",
        "refmcp-http/tests/http/disconnects.rs http_sse_leaves_nothing",
        "refmcp-http/tests/http/disconnects.rs websockets_leave_nothing",
    ]),
    Input(57, "floods of HTTP/2", &[
        "refmcp-http/tests/http/http2.rs rapid_resets_harm_no_other",
        "refmcp-http/tests/http/http2.rs floods_of_frames_harm_no_other",
        "refmcp-http/tests/http/http2.rs a_client_that_reads_nothing_delays_no_other",
    ]),
    Input(58, "pipelined requests, requests after an error", &[
        "refmcp-http/tests/http/malformed_http.rs pipelined_requests_are_answered_in_order",
        "refmcp-http/tests/http/malformed_http.rs a_connection_goes_on_after_an_error",
    ]),
    Input(59, "upgrades to something else", &["refmcp-http/tests/http/malformed_http.rs upgrade_and_override_headers_change_nothing"]),
    Input(60, "targets in another form", &["refmcp-http/tests/http/guard.rs only_exact_paths_are_served"]),
    Input(61, "forwarding headers of untrusted peers", &["refmcp-http/tests/http/forwarded.rs forwarding_headers_of_untrusted_peers_are_ignored"]),
    Input(62, "DELETE twice, or during a call", &["refmcp-http/tests/http/session_and_event_ids.rs ending_a_session_ends_its_streams_and_calls"]),
    // SSE, as our client reads it.
    Input(63, "line ends of every kind, split at every byte", &["refmcp-client/tests/http/bad_streams.rs line_ends_of_every_kind_cut_at_every_byte"]),
    Input(64, "lines and events without end", &[
        "refmcp-client/tests/http/bad_streams.rs a_line_without_end_is_cut_off",
        "refmcp-client/tests/http/bad_streams.rs an_event_without_end_is_cut_off",
    ]),
    Input(65, "event ids with NUL, or that change", &["refmcp-client/tests/http/bad_streams.rs ids_with_nul_are_none_and_ids_may_change"]),
    Input(66, "times to wait beyond reason", &["refmcp-client/tests/http/bad_streams.rs times_to_wait_are_kept_within_reason"]),
    Input(67, "comments for ever", &["refmcp-client/tests/http/bad_streams.rs endless_comments_do_no_harm_and_end_with_the_request"]),
    Input(68, "a page instead of a stream", &[
        "refmcp-client/tests/http/refusals.rs a_page_is_no_answer",
        "refmcp-client/tests/http/get_stream.rs a_page_is_no_stream",
    ]),
    Input(69, "responses to something else, two of them, data behind", &[
        "refmcp-client/tests/http/bad_streams.rs answers_to_something_else_are_handed_on_and_waited_past",
        "refmcp-client/tests/http/bad_streams.rs data_after_the_answer_is_ignored_input",
    ]),
    Input(70, "a stream that closes at once, again and again", &[
        "refmcp-client/tests/http/bad_streams.rs a_server_that_closes_at_once_is_left_after_a_while",
        "refmcp-client/tests/http/get_stream.rs one_that_closes_at_once_is_asked_less_and_less",
    ]),
    // Pipes.
    Input(71, "lines over the limit, or without end", &[
        "refmcp/tests/stdio/lines.rs a_line_over_the_limit_is_answered_and_skipped",
        "refmcp/tests/stdio/lines.rs input_without_an_end_takes_no_memory",
        "refmcp-client/tests/child/pipes.rs a_line_without_end_takes_no_memory",
    ]),
    Input(72, "lines that are no messages", &[
        "refmcp-client/tests/child/pipes.rs lines_that_are_no_messages_are_ignored_input",
        "refmcp/tests/client/invalid_messages.rs a_server_that_prints_and_then_works_is_used_with_a_warning",
    ]),
    Input(73, "a flood of standard error", &["refmcp-client/tests/child/stderr.rs a_flood_of_stderr_is_limited"]),
    Input(74, "a peer that never reads", &[
        "refmcp/tests/stdio/load.rs a_peer_that_never_reads_costs_bounded_memory",
        "refmcp-client/tests/child/pipes.rs a_server_that_never_reads_is_heard_and_closed_all_the_same",
    ]),
    Input(75, "a peer that never writes", &[
        "refmcp/tests/client/timeouts.rs a_server_that_never_answers_is_left_over_every_transport",
        "refmcp/tests/stdio/options.rs a_client_that_answers_no_ping_is_left",
    ]),
    Input(76, "a server that ends during a call", &["refmcp-client/tests/child/endings.rs a_server_that_ends_says_how"]),
    Input(77, "a server that leaves processes behind, or ignores SIGTERM", &[
        "refmcp-client/tests/child/endings.rs a_grandchild_that_holds_the_pipes_does_not_delay_the_end",
        "refmcp-client/tests/child/endings.rs a_server_that_ignores_sigterm_is_killed",
    ]),
    Input(78, "a server that closes one of its pipes", &[
        "refmcp-client/tests/child/pipes.rs a_server_that_closes_its_input_is_of_no_more_use",
        "refmcp-client/tests/child/pipes.rs a_server_that_closes_its_output_is_of_no_more_use",
    ]),
    Input(79, "commands that cannot be started", &["refmcp-client/tests/child/bad_starts.rs what_cannot_be_started_says_why"]),
    Input(80, "line ends of Windows, blank lines", &["refmcp/tests/stdio/lines.rs line_ends_and_blank_lines"]),
    // WebSocket.
    Input(81, "foreign origins of a handshake", &["refmcp-http/tests/http/websocket_violations.rs incomplete_handshakes_are_refused"]),
    Input(82, "text that is none, binary frames", &["refmcp-http/tests/http/websocket_violations.rs a_violation_closes_with_its_code"]),
    Input(83, "fragments without end, long control frames", &[
        "refmcp-http/tests/http/websocket_violations.rs a_message_may_be_fragmented",
        "refmcp-http/tests/http/websocket_violations.rs a_violation_closes_with_its_code",
    ]),
    Input(84, "frames over the limit, compressed frames", &["refmcp-http/tests/http/websocket_violations.rs a_violation_closes_with_its_code"]),
    Input(85, "frames without a mask, wrong close codes", &[
        "refmcp-http/tests/http/websocket_violations.rs a_violation_closes_with_its_code",
        "refmcp-http/tests/http/websocket_violations.rs a_close_frame_is_answered",
    ]),
    Input(86, "pings that are not answered, or never end", &[
        "refmcp-http/tests/http/websocket_violations.rs an_absent_client_is_closed",
        "refmcp-transport/src/websocket.rs pings_of_a_peer_that_reads_nothing_are_not_answered_without_end",
    ]),
    // OAuth.
    Input(87, "no token, a malformed one, two of them, one in a query", &[
        "refmcp-http/tests/http/authorization/challenges.rs every_route_requires_a_token_or_is_listed_as_open",
        "refmcp-http/tests/http/authorization/challenges.rs malformed_credentials_are_refused",
    ]),
    Input(88, "algorithms and keys that a token chooses", &[
        "refmcp-http/tests/http/authorization/tokens.rs tokens_do_not_choose_their_verification",
        "refmcp-auth/tests/jose/headers.rs a_header_cannot_choose_its_algorithm",
    ]),
    Input(89, "wrong claims", &["refmcp-http/tests/http/authorization/tokens.rs every_claim_is_checked"]),
    Input(90, "scopes that are not enough", &["refmcp-http/tests/http/authorization/scopes.rs insufficient_scope_names_all_needed_scopes"]),
    Input(91, "a token that is revoked while a stream is open", &["refmcp-http/tests/http/authorization/token_expiry.rs a_revoked_token_ends_its_streams_and_sockets"]),
    Input(92, "another user's token in a session", &["refmcp-http/tests/http/authorization/principals.rs a_session_belongs_to_its_principal"]),
    Input(93, "challenges that are long or broken", &[
        "refmcp-auth/src/client/tests/hostile.rs oversized_challenges_are_ignored",
        "refmcp-auth/src/challenge.rs parsing_stops_at_a_syntax_error",
    ]),
    Input(94, "metadata that lead inside, elsewhere, or have no end", &[
        "refmcp-client/tests/http/fetch.rs names_do_not_lead_inside",
        "refmcp-client/tests/http/fetch.rs long_answers_are_cut_off",
        "refmcp-auth/src/client/tests/discovery.rs metadata_of_another_issuer_is_not_used",
        "refmcp-auth/src/client/tests/discovery.rs metadata_redirects_are_followed_once_on_the_same_origin",
    ]),
    Input(95, "addresses of login pages that run something", &[
        "refmcp/tests/auth/hostile.rs only_web_pages_are_opened_each_as_one_argument",
        "refmcp/src/ui/browser.rs an_address_is_one_argument_that_no_shell_has_seen_or_is_not_opened",
    ]),
    Input(96, "redirects of another issuer, state or code", &[
        "refmcp-auth/src/client/tests/authorize.rs the_redirect_issuer_is_checked_first",
        "refmcp-auth/src/client/tests/authorize.rs state_and_redirect_uri_are_compared_exactly",
        "refmcp-issuer/src/tests/code.rs a_reused_code_revokes_its_tokens",
    ]),
    Input(97, "verifiers that are missing, plain, wrong or of another login", &[
        "refmcp-issuer/src/tests/authorize.rs a_request_without_pkce_is_refused",
        "refmcp-issuer/src/tests/code.rs a_code_needs_its_verifier",
        "refmcp-auth/src/client/tests/authorize.rs concurrent_logins_do_not_mix",
    ]),
    Input(98, "redirect URIs that nearly fit", &[
        "refmcp-issuer/src/clients/redirect.rs redirect_uris_are_compared_byte_for_byte",
        "refmcp-issuer/src/clients/redirect.rs harmful_redirect_uris_are_invalid",
    ]),
    Input(99, "registrations that are many, harmful or huge", &[
        "refmcp-issuer/src/tests/register.rs a_flood_of_registrations_evicts_no_active_client",
        "refmcp-issuer/src/tests/register.rs harmful_redirect_uris_are_refused",
        "refmcp-issuer/src/tests/register.rs huge_registrations_are_refused",
    ]),
    Input(100, "documents of clients that lead inside, are of others, or huge", &[
        "refmcp-issuer/src/tests/documents.rs invalid_client_documents_are_refused",
        "refmcp-issuer/src/tests/documents.rs only_secure_document_urls_are_fetched",
    ]),
    Input(101, "refresh tokens that come twice or at once", &[
        "refmcp-issuer/src/tests/refresh.rs a_reused_refresh_token_revokes_its_family",
        "refmcp-client/tests/http/auth/refreshes.rs a_refused_token_is_renewed_once_for_all",
    ]),
    Input(102, "token endpoints that answer with pages, errors or not at all", &[
        "refmcp-client/tests/http/auth/faults.rs a_broken_token_endpoint",
        "refmcp-auth/src/client/tests/token.rs invalid_token_responses_are_refused",
    ]),
    Input(103, "keys that cannot be fetched, rotate, or are ten thousand", &[
        "refmcp-http/tests/http/authorization/issuer_keys.rs keys_stay_valid_while_their_issuer_is_down",
        "refmcp-http/tests/http/authorization/issuer_keys.rs a_rotated_key_is_fetched",
        "refmcp-http/tests/http/authorization/issuer_keys.rs of_ten_thousand_keys_some_are_kept",
    ]),
    Input(104, "consent in another browser, or within a page", &[
        "refmcp-issuer/src/tests/consent.rs a_consent_form_of_another_browser_is_refused",
        "refmcp-issuer/src/tests/consent.rs the_consent_page_has_security_headers",
    ]),
    // Files and commands.
    Input(105, "paths and links that lead out, files that are swapped", &[
        "refmcp-reference/tests/reference/files.rs nothing_leads_out",
        "refmcp-reference/tests/reference/files.rs links_do_not_lead_out_either",
    ]),
    Input(106, "arguments that begin with a dash", &[
        "refmcp/src/ui/browser.rs an_address_is_one_argument_that_no_shell_has_seen_or_is_not_opened",
        "refmcp/src/args/tests.rs cli_behind_the_command_is_the_servers_own",
    ]),
    Input(107, "configuration files that are wrong", &[
        "refmcp/src/config/tests.rs unknown_members_are_hints",
        "refmcp/src/config/tests.rs every_problem_names_its_place_and_leaves_other_entries_alone",
        "refmcp/src/config/tests.rs a_world_writable_file_is_not_used",
    ]),
    Input(108, "characters that control terminals", &[
        "refmcp-audit/src/visible.rs nothing_dangerous_is_left_of_any_character",
        "refmcp/tests/client/results.rs json_at_a_terminal_has_no_characters_that_control_it",
    ]),
    Input(109, "token files that are damaged, unreadable, or written at once", &[
        "refmcp/tests/auth/token_file.rs a_damaged_file_is_reported_and_left_alone",
        "refmcp/tests/auth/token_file.rs logins_to_several_servers_at_once_are_all_kept",
    ]),
    Input(110, "output that is closed", &[
        "refmcp/tests/stdio/shutdown.rs closed_output_is_no_error",
        "refmcp/tests/client/watch.rs a_watch_that_is_not_read_any_more_ends",
    ]),
];

#[test]
fn every_input_is_tested() {
    let in_table: BTreeSet<u8> = GROUPS.iter().flat_map(|group| group.inputs).copied().collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    for (place, Input(number, what, tests)) in INPUTS.iter().enumerate() {
        assert_eq!(usize::from(*number), place + 1, "{what}: inputs are numbered in order");
        assert!(in_table.contains(number) || !tests.is_empty(), "{number}, {what}: it is tested nowhere");
        for test in *tests {
            let (file, function) = test.split_once(' ').expect("a file and a function");
            let text =
                fs::read_to_string(crates.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(text.contains(&format!("fn {function}()")), "{number}, {what}: {file} has no {function}");
        }
    }
}
