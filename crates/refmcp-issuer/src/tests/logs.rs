//! What is logged. Every test watches that nothing secret is; here, that this would be seen.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[test]
fn logged_secrets_fail_the_test() {
    let world = world();
    let token = world.log_in();
    let refused = world.redeem("an-unknown-code", &[]);
    assert_eq!(refused.error(), "invalid_grant");
    assert!(world.watch.log().contains("a client gets no token"), "the server logs where it is looked for");
    // What is known from the start, and of a login: a cookie, a form's token, a code and two tokens.
    assert!(world.watch.with(|secrets| secrets.len()) >= 7);
    let token = token["refresh_token"].as_str().unwrap();
    tracing::trace!("they got {token}");
    let ended = catch_unwind(AssertUnwindSafe(|| drop(world)));
    let told = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(told.contains(&format!("they got »{token}")), "{told}");
}
