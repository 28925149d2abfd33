//! The built-in prompts.

use refmcp_server::model::{GetPromptResult, PromptMessage};
use refmcp_server::{Prompt, PromptArguments};

const LANGUAGES: &str = "c c++ c# go haskell java javascript kotlin php python ruby rust swift typescript";
/// The language of code that is said to be in none.
const LANGUAGE: &str = "Python";
const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];
const GOALS: [&str; 5] = ["clarity", "fewer dependencies", "performance", "safety", "testability"];

pub(super) fn prompts() -> [Prompt; 3] {
    [code_review(), bug_report(), refactor()]
}

fn code_review() -> Prompt {
    Prompt::new("code_review", |_, given| async move {
        let language = given.get("language").map_or(LANGUAGE, String::as_str);
        let text = format!("Please review this {language} code:\n{}", argument(&given, "code"));
        Ok(GetPromptResult::new(vec![PromptMessage::user(text)])
            .description("A request to look over some code"))
    })
    .title("Request Code Review")
    .description("Asks a model to look over a piece of code and to say what could be better")
    .required("code", "The code to look over")
    .optional("language", "The language it is written in; Python, unless it is given")
    .complete("language", |_, typed| async move { typed.among(LANGUAGES.split(' ')) })
}

fn bug_report() -> Prompt {
    Prompt::new("bug_report", |_, given| async move {
        let mut text = format!(
            "Please write a bug report.\n\nTitle: {}\nSteps to reproduce:\n{}",
            argument(&given, "title"),
            argument(&given, "steps")
        );
        for (label, name) in [("Expected", "expected"), ("Severity", "severity")] {
            if let Some(value) = given.get(name) {
                text.push_str(&format!("\n{label}: {value}"));
            }
        }
        let answer = "I will. First the facts, then what I suspect.";
        let messages = vec![PromptMessage::user(text), PromptMessage::assistant(answer)];
        Ok(GetPromptResult::new(messages).description("Bug report prompt"))
    })
    .title("Report a Bug")
    .description("Asks the LLM to turn observations into a bug report")
    .required("title", "The bug in one line")
    .required("steps", "What to do to see it")
    .optional("expected", "What should have happened instead")
    .optional("severity", "How bad it is")
    .complete("severity", |_, typed| async move { typed.among(SEVERITIES) })
}

fn refactor() -> Prompt {
    Prompt::new("refactor", |_, given| async move {
        let goal = given.get("goal").map(|goal| format!(" for {goal}")).unwrap_or_default();
        let text =
            format!("Please refactor this code{goal} and keep its behaviour:\n{}", argument(&given, "code"));
        Ok(GetPromptResult::new(vec![PromptMessage::user(text)]).description("Refactoring prompt"))
    })
    .title("Refactor Code")
    .description("Asks the LLM to improve code without changing what it does")
    .required("code", "The code to refactor")
    .optional("goal", "What should become better")
    .complete("goal", |_, typed| async move { typed.among(GOALS) })
}

/// An argument that is there because it is required.
fn argument<'a>(given: &'a PromptArguments, name: &str) -> &'a str {
    given.get(name).map(String::as_str).unwrap_or_default()
}
