//! Input requests in the shape of a revision.

use crate::engine::CallFailure;
use crate::jsonrpc::RequestId;
use crate::model::{
    ClientCapabilities, CreateMessageParams, ElicitFormParams, ElicitParams, FieldSchema, IncludeContext,
    InputRequest, OneOrMany,
};
use crate::revision::{Elicitation, InputMode, Rules, UrlElicitation};

/// An input request in the shape of a revision, or why it has none.
pub fn input_request(rules: &Rules, request: InputRequest) -> Result<InputRequest, CallFailure> {
    Ok(match request {
        InputRequest::Roots => InputRequest::Roots,
        InputRequest::Sample(mut params) => {
            sampling(rules, &mut params)?;
            InputRequest::Sample(params)
        }
        InputRequest::Elicit(ElicitParams::Form(mut params)) => {
            form(rules, &mut params)?;
            InputRequest::Elicit(ElicitParams::Form(params))
        }
        InputRequest::Elicit(ElicitParams::Url(mut params)) => {
            match rules.url_elicitation {
                UrlElicitation::Unknown => return Err(unsupported("URL elicitation")),
                UrlElicitation::WithId => {}
                UrlElicitation::Plain => params.elicitation_id = None,
            }
            InputRequest::Elicit(ElicitParams::Url(params))
        }
    })
}

/// Gives a URL elicitation an id, which the notification of its completion refers to; the request's own id will do.
pub fn set_elicitation_id(request: &mut InputRequest, id: &RequestId) {
    if let InputRequest::Elicit(ElicitParams::Url(params)) = request {
        params.elicitation_id.get_or_insert_with(|| format!("elicitation-{id}"));
    }
}

/// Removes `includeContext` where the client has not declared that it supports it.
pub fn remove_context(capabilities: &ClientCapabilities, request: &mut InputRequest) {
    let gives = capabilities.sampling.as_ref().is_some_and(|sampling| sampling.context.is_some());
    if let InputRequest::Sample(params) = request
        && !gives
    {
        params.include_context.take_if(|context| *context != IncludeContext::None);
    }
}

fn form(rules: &Rules, params: &mut ElicitFormParams) -> Result<(), CallFailure> {
    match rules.elicitation {
        Elicitation::Unknown => return Err(unsupported("elicitation")),
        Elicitation::Forms => return Ok(()),
        Elicitation::PlainForms => {}
    }
    params.mode = None;
    params.requested_schema.schema = None;
    for (_, field) in &mut params.requested_schema.properties {
        match field {
            // Only booleans have a default in the schema of this revision, but it forbids none elsewhere.
            FieldSchema::Text(_) | FieldSchema::Number(_) | FieldSchema::Boolean(_) => {}
            FieldSchema::SingleChoice(choice) => choice.choices = choice.choices.to_named(),
            FieldSchema::MultiChoice(_) => return Err(unsupported("questions with several choices")),
        }
    }
    Ok(())
}

fn sampling(rules: &Rules, params: &mut CreateMessageParams) -> Result<(), CallFailure> {
    if rules.input_mode == InputMode::InputRequired {
        params.meta = None;
    }
    for message in &mut params.messages {
        if rules.sampling_tools {
            continue;
        }
        message.meta = None;
        let blocks = std::mem::replace(&mut message.content, OneOrMany::Many(Vec::new())).into_vec();
        let Ok([mut block]) = <[_; 1]>::try_from(blocks) else {
            return Err(unsupported("sampling messages of several blocks"));
        };
        super::content(rules, &mut block);
        message.content = OneOrMany::One(block);
    }
    Ok(())
}

fn unsupported(what: &str) -> CallFailure {
    CallFailure::MissingCapability { needs: Box::new(ClientCapabilities::default()), what: what.to_owned() }
}
