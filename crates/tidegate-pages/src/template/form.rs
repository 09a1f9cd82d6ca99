//! Forms and their fields.

use maud::{Markup, html};

/// A message of a form, usually an error, which is shown beside a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormMessage {
    /// The name of the field; empty for the form as a whole.
    pub field: &'static str,
    pub text: String,
}

impl FormMessage {
    pub(crate) fn new(field: &'static str, text: impl Into<String>) -> Self {
        Self {
            field,
            text: text.into(),
        }
    }
}

/// The attributes that every form on a page has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageForm<'a> {
    /// The URL to which the form is posted.
    pub action: &'a str,
    /// The CSRF token of the browser.
    pub token: &'a str,
    /// The error of the previous attempt.
    pub message: Option<&'a FormMessage>,
}

/// A field of a form, with its attributes in HTML.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormField<'a> {
    pub name: &'static str,
    pub label: &'a str,
    /// The `type` attribute.
    pub kind: &'static str,
    /// The `value` attribute.
    pub value: Option<&'a str>,
    /// The `autocomplete` attribute.
    pub autocomplete: &'static str,
    /// The `inputmode` attribute, where the `type` does not imply it.
    pub inputmode: Option<&'static str>,
    /// A hint below the field.
    pub hint: Option<&'a str>,
    /// Whether the field has the focus when the page is shown.
    pub focus: bool,
}

impl<'a> FormField<'a> {
    pub(crate) const fn text(name: &'static str, label: &'a str) -> Self {
        Self {
            name,
            label,
            kind: "text",
            value: None,
            autocomplete: "off",
            inputmode: None,
            hint: None,
            focus: false,
        }
    }

    pub(crate) const fn password(name: &'static str, label: &'a str) -> Self {
        Self {
            kind: "password",
            autocomplete: "current-password",
            ..Self::text(name, label)
        }
    }
}

impl PageForm<'_> {
    /// The form without the error of the previous attempt, which belongs to another form of the
    /// page.
    pub(crate) fn without_message(&self) -> Self {
        Self {
            message: None,
            ..*self
        }
    }

    /// Wraps `fields` in a form, whose hidden field `step` names the step.
    pub(crate) fn around(&self, step: &str, fields: &Markup) -> Markup {
        let general = self.message.filter(|message| message.field.is_empty());
        html! {
            form method="post" action=(self.action) {
                input type="hidden" name="form_token" value=(self.token);
                input type="hidden" name="step" value=(step);
                @if let Some(message) = general {
                    p.error role="alert" { (message.text) }
                }
                (fields)
            }
        }
    }

    /// A field with its label and, if the message is for this field, its error.
    pub(crate) fn field(&self, field: &FormField<'_>) -> Markup {
        let FormField { name, .. } = *field;
        let message = self.message.filter(|message| message.field == name);
        let id = format!("{name}-error");
        let hint_id = format!("{name}-hint");
        let described = match (message, field.hint) {
            (Some(_), Some(_)) => Some(format!("{id} {hint_id}")),
            (Some(_), None) => Some(id.clone()),
            (None, Some(_)) => Some(hint_id.clone()),
            (None, None) => None,
        };
        html! {
            div.field {
                label for=(name) { (field.label) }
                input id=(name) name=(name) type=(field.kind) value=[field.value]
                    autocomplete=(field.autocomplete) inputmode=[field.inputmode] autocapitalize="none" spellcheck="false"
                    required autofocus[field.focus || message.is_some()]
                    aria-invalid=[message.map(|_| "true")] aria-describedby=[described];
                @if let Some(hint) = field.hint {
                    p.hint id=(hint_id) { (hint) }
                }
                @if let Some(message) = message {
                    p.error id=(id) role="alert" { (message.text) }
                }
            }
        }
    }
}
