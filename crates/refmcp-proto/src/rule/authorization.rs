//! Rules about authorization and security.

rules! {
    AUTHORIZATION "Authorization"
    AUTH_01 "AUTH-01" Should Both BCDE "basic/authorization#protocol-requirements"
        "Authorization is for HTTP; over stdio credentials come from the environment.";
    AUTH_02 "AUTH-02" Must Server BCDE "basic/authorization#error-handling"
        "A missing or invalid token is 401, a scope that is missing 403, a malformed request 400.";
    AUTH_03 "AUTH-03" Must Server CDE "basic/authorization/authorization-server-discovery#authorization-server-location"
        "The resource metadata names an authorization server.";
    AUTH_04 "AUTH-04" Must Server C "basic/authorization#authorization-server-location"
        "401 names the resource metadata in WWW-Authenticate.";
    AUTH_05 "AUTH-05" Must Server DE "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements"
        "Resource metadata is found by the challenge or at a well-known URL.";
    AUTH_06 "AUTH-06" Must Client DE "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements"
        "Clients look at the URL of the challenge, then at the well-known ones.";
    AUTH_07 "AUTH-07" Must Client DE "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery"
        "Metadata of an issuer is looked for by OAuth and OpenID rules, in a fixed order.";
    AUTH_08 "AUTH-08" Must Client E "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery"
        "Metadata of another issuer is refused.";
    AUTH_09 "AUTH-09" Must Client B "basic/authorization#authorization-base-url"
        "The origin of the server is its authorization server, with default paths where it has no metadata.";
    AUTH_10 "AUTH-10" Must Client CDE "basic/authorization#resource-parameter-implementation"
        "Requests for codes and tokens name the server as their resource.";
    AUTH_11 "AUTH-11" Must Client BCDE "basic/authorization/security-considerations#authorization-code-protection"
        "PKCE is used, with S256, and demanded of the authorization server.";
    AUTH_12 "AUTH-12" Must Server CDE "basic/authorization#token-handling"
        "Tokens are validated and must be for this server.";
    AUTH_13 "AUTH-13" Must Server CDE "basic/authorization/security-considerations#access-token-privilege-restriction"
        "A client's token is not passed on.";
    AUTH_14 "AUTH-14" Must Client CDE "basic/authorization#token-handling"
        "A server gets only tokens of its own authorization server.";
    AUTH_15 "AUTH-15" Must Client BCDE "basic/authorization#token-requirements"
        "The token is in the Authorization header of every request, never in the URL.";
    AUTH_16 "AUTH-16" Should Client DE "basic/authorization#scope-selection-strategy"
        "Scopes are those of the challenge, else all of the metadata, else none.";
    AUTH_17 "AUTH-17" Should Client DE "basic/authorization#step-up-authorization-flow"
        "A missing scope is requested in addition, a limited number of times.";
    AUTH_18 "AUTH-18" Should Server E "basic/authorization#runtime-insufficient-scope-errors"
        "A challenge names all scopes that the operation needs.";
    AUTH_19 "AUTH-19" Must Client E "basic/authorization#authorization-response-validation"
        "The issuer is kept before the redirect, and iss of the response compared with it.";
    AUTH_20 "AUTH-20" Must Client E "basic/authorization/client-registration#authorization-server-binding"
        "Registrations belong to their issuer and are not used with another.";
    AUTH_21 "AUTH-21" Must Client DE "basic/authorization/client-registration#client-id-metadata-documents"
        "A client id that is a URL leads to a document with the same id, a name and redirect URIs.";
    AUTH_22 "AUTH-22" Must AuthorizationServer DE "basic/authorization/client-registration#implementation-requirements"
        "Client documents are fetched with care, and their id and redirect URIs checked.";
    AUTH_23 "AUTH-23" Must Client E "basic/authorization/client-registration#application-type-and-redirect-uri-constraints"
        "Registration names the application type.";
    AUTH_24 "AUTH-24" Must Both BCDE "basic/authorization/security-considerations#communication-security"
        "Endpoints use HTTPS, redirect URIs HTTPS or loopback, and match exactly.";
    AUTH_25 "AUTH-25" Must Both CDE "basic/authorization/security-considerations#token-theft"
        "Tokens are stored safely, and refresh tokens of public clients rotate.";
    AUTH_26 "AUTH-26" Must Client E "basic/authorization#refresh-tokens"
        "Clients do not count on refresh tokens.";
    AUTH_27 "AUTH-27" Must Server B "basic/authorization#third-party-authorization-flow"
        "A server in front of a third party keeps and checks both tokens.";
    AUTH_28 "AUTH-28" Must Proxy CDE "basic/authorization/security-considerations#confused-deputy-problem"
        "A proxy with one client id upstream asks for consent for each client.";

    SEC_01 "SEC-01" Must Proxy ABCDE "tutorials/security/security_best_practices"
        "Consent is kept by user and client, and asked for on a page that cannot be framed.";
    SEC_02 "SEC-02" Must Proxy ABCDE "tutorials/security/security_best_practices"
        "Cookies of consent are secure, signed and bound to the client.";
    SEC_03 "SEC-03" Must Proxy ABCDE "tutorials/security/security_best_practices"
        "state is random, used once, short-lived and compared exactly.";
    SEC_04 "SEC-04" Must Server ABCDE "tutorials/security/security_best_practices"
        "Tokens for other servers are refused.";
    SEC_05 "SEC-05" Must Client ABCDE "tutorials/security/security_best_practices"
        "URLs from strangers lead to no private addresses.";
    SEC_06 "SEC-06" Must Client ABCDE "tutorials/security/security_best_practices"
        "Only web URLs are opened, and never by a shell.";
    SEC_07 "SEC-07" Must Server ABCDE "tutorials/security/security_best_practices"
        "Sessions and handles are random, belong to a user, and authenticate no client.";
    SEC_08 "SEC-08" Must Server ABCDE "tutorials/security/security_best_practices"
        "Every request is authorized.";
    SEC_09 "SEC-09" Must Client ABCDE "tutorials/security/security_best_practices"
        "An installation shows the whole command and needs approval.";
    SEC_10 "SEC-10" Should Server ABCDE "tutorials/security/security_best_practices"
        "Local servers use stdio, or demand a token.";
    SEC_11 "SEC-11" Should Proxy ABCDE "tutorials/security/security_best_practices"
        "Proxies that start programs confine, log and authorize them.";
    SEC_12 "SEC-12" Should Both ABCDE "tutorials/security/security_best_practices"
        "Scopes are few and precise.";
    SEC_13 "SEC-13" Must Client ABCDE "tutorials/security/security_best_practices"
        "Issuers are compared against mix-up attacks.";
}
