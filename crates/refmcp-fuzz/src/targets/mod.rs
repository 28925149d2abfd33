//! The targets, one file each: what is parsed or driven, and what must hold.
//!
//! | target | what it feeds |
//! |---|---|
//! | [`app`] | metadata and pages of apps, and the policies for them |
//! | [`challenge`] | `WWW-Authenticate` challenges |
//! | [`client_engine`] | the client engine: calls, messages of the server, the host's responses, time |
//! | [`decode`] | the JSON-RPC decoder and encoder |
//! | [`http_endpoint`] | the HTTP endpoint: headers that mirror the body, `Accept`, versions, event ids, cursors |
//! | [`json`] | the JSON scanner, beside `serde_json` |
//! | [`jwks`] | JWK Sets |
//! | [`jws`] | signed tokens |
//! | [`lines`] | the line decoder |
//! | [`metadata`] | OAuth metadata documents and token responses |
//! | [`oauth_flow`] | the authorization flow of a client |
//! | [`post_headers`] | the routing of a POST by its headers and its message |
//! | [`prompt_file`] | prompt files of the reference server |
//! | [`replay`] | recordings that are used again: as a client, as a server, and compared |
//! | [`report`] | recordings, and the reports on them |
//! | [`seal`] | sealed request states and cursors |
//! | [`server_engine`] | the server engine: messages of the client, handlers, cancellation, time |
//! | [`skill`] | `SKILL.md`, entries of skills, and what is verified by them |
//! | [`sse`] | the decoder of Server-Sent Events |
//! | [`uri_template`] | URI templates |
//! | [`websocket`] | WebSocket frames |

pub mod app;
pub mod challenge;
pub mod client_engine;
pub mod decode;
pub mod http_endpoint;
pub mod json;
pub mod jwks;
pub mod jws;
pub mod lines;
pub mod metadata;
pub mod oauth_flow;
pub mod post_headers;
pub mod prompt_file;
pub mod replay;
pub mod report;
pub mod seal;
pub mod server_engine;
pub mod skill;
pub mod sse;
pub mod uri_template;
pub mod websocket;
