//! The forms that `ask_user` shows.

use refmcp_server::model::{
    BooleanSchema, Choices, ElicitFormParams, FormSchema, MultiChoiceSchema, NumberSchema,
    SingleChoiceSchema, StringFormat, StringSchema,
};
use refmcp_server::peer::Peer;
use refmcp_server::revision::Elicitation;

const COLOURS: [&str; 3] = ["red", "green", "blue"];
const SIZES: [(&str, &str); 3] = [("s", "Small"), ("m", "Medium"), ("l", "Large")];
const DAYS: [(&str, &str); 3] = [("sat", "Saturday"), ("sun", "Sunday"), ("mon", "Monday")];

/// Every field that this client's revision knows.
pub(crate) fn all(peer: &Peer) -> ElicitFormParams {
    let formatted = |format: StringFormat, title: &str| StringSchema::new().format(format).title(title);
    let mut form = FormSchema::new()
        .required(
            "name",
            StringSchema::new()
                .title("Name")
                .description("What you are called")
                .min_length(1u64)
                .max_length(50u64),
        )
        .optional("nickname", StringSchema::new().title("Nickname").with_default("Max"))
        .optional("email", formatted(StringFormat::Email, "Mail address"))
        .optional("website", formatted(StringFormat::Uri, "Web site"))
        .optional("birthday", formatted(StringFormat::Date, "Birthday"))
        .optional("appointment", formatted(StringFormat::DateTime, "Next appointment"))
        .optional("age", NumberSchema::integer().title("Age").minimum(0).maximum(150).with_default(30))
        .optional("share", NumberSchema::number().title("Share").minimum(0).maximum(1).with_default(0.5))
        .optional(
            "subscribe",
            BooleanSchema::new().title("Subscribe").description("Hear from us").with_default(true),
        )
        .optional("colour", colour())
        .optional("size", size());
    // Several choices at once came later than forms.
    if peer.rules().elicitation == Elicitation::Forms {
        let colours = MultiChoiceSchema::new(COLOURS.into_iter().collect()).title("Colours you like");
        let days = MultiChoiceSchema::new(Choices::titled(DAYS)).title("Days that suit you");
        form = form
            .optional("colours", colours.min_items(1u64).max_items(2u64).with_default(["red".to_owned()]))
            .optional("days", days.with_default(["sat".to_owned(), "sun".to_owned()]));
    }
    ElicitFormParams::new("One field of every kind.", form)
}

/// Two choices: one of plain values, one of values with titles.
pub(super) fn choice() -> ElicitFormParams {
    let form = FormSchema::new().required("colour", colour()).required("size", size());
    ElicitFormParams::new("Choose a colour and a size.", form)
}

/// Yes or no.
pub(super) fn confirm() -> ElicitFormParams {
    let yes = BooleanSchema::new().title("Go ahead").with_default(false);
    ElicitFormParams::new("Shall I go ahead?", FormSchema::new().required("confirm", yes))
}

fn colour() -> SingleChoiceSchema {
    SingleChoiceSchema::new(COLOURS.into_iter().collect()).title("Colour").with_default("green")
}

fn size() -> SingleChoiceSchema {
    SingleChoiceSchema::new(Choices::titled(SIZES)).title("Size").with_default("m")
}
