//! Questions to the user: calls to approve, elicitations, arguments that were not typed.

mod approval;
mod arguments;
mod form;
mod url;

pub(crate) use approval::{Approval, approve, is_asked_about};
pub(crate) use arguments::ask_missing;
pub(crate) use form::fill_form;
pub(crate) use url::ask_to_visit;
