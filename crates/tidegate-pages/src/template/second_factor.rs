//! The pages on which a person sets up and enters a second factor.

use std::fmt::Write as _;

use maud::{Markup, html};
use qrcode::{Color, QrCode};
use tidegate_identity::{Enrolment, Secret};

use super::form::{FormField, PageForm};

/// The field for a code of an authenticator app.
pub(super) fn code_field<'a>(name: &'static str, label: &'a str) -> FormField<'a> {
    FormField {
        autocomplete: "one-time-code",
        ..FormField::text(name, label)
    }
}

/// The form that asks for a code of the second factor.
pub(crate) fn second_factor(form: &PageForm<'_>) -> Markup {
    let fields = html! {
        (form.field(&FormField {
            hint: Some("Six digits, or one of your recovery codes"),
            focus: true,
            ..code_field("code", "Code")
        }))
        button.primary type="submit" { "Continue" }
    };
    html! {
        h1 { "Two-step sign-in" }
        p.lead { "Enter the code that your authenticator shows." }
        (form.around("second_factor", &fields))
    }
}

/// Shows the TOTP secret as a QR code and asks for the first code.
pub(crate) fn enrol(form: &PageForm<'_>, enrolment: &Enrolment) -> Markup {
    let fields = html! {
        input type="hidden" name="sealed" value=(enrolment.sealed);
        (form.field(&FormField {
            // Only digits are allowed, because there are no recovery codes yet.
            inputmode: Some("numeric"),
            focus: true,
            ..code_field("code", "Code from the app")
        }))
        button.primary type="submit" { "Turn on" }
    };
    let secret = enrolment.secret.expose().as_bytes().chunks(4);
    let groups: Vec<_> = secret.map(String::from_utf8_lossy).collect();
    html! {
        h1 { "Set up two-step sign-in" }
        p.lead { "Scan this picture with an authenticator app, then enter the code that it shows." }
        (picture(enrolment.uri.expose()))
        details {
            summary { "Cannot scan?" }
            p { "Enter this key in the app:" }
            p.secret { (groups.join(" ")) }
        }
        (form.around("enrol", &fields))
    }
}

/// The QR code of a text (ISO/IEC 18004), dark on light in every colour scheme.
fn picture(text: &str) -> Markup {
    let Ok(code) = QrCode::new(text.as_bytes()) else {
        return html! {};
    };
    let (width, colors) = (code.width(), code.to_colors());
    let mut path = String::new();
    for (index, _) in colors
        .iter()
        .enumerate()
        .filter(|(_, c)| **c == Color::Dark)
    {
        let (x, y) = (index % width + 4, index / width + 4);
        // Writing to a string succeeds.
        let _ = write!(path, "M{x} {y}h1v1h-1z");
    }
    let side = width + 8;
    html! {
        svg.qr viewBox={ "0 0 " (side) " " (side) } role="img"
            aria-label="QR code of the key for your authenticator" shape-rendering="crispEdges" {
            rect width=(side) height=(side) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    }
}

/// Shows the recovery codes. They cannot be shown again.
pub(crate) fn recovery_codes(codes: &[Secret], next: &str) -> Markup {
    html! {
        h1 { "Keep your recovery codes" }
        p.lead { "Each signs you in once when your authenticator is lost. They are not shown again." }
        p.hint { "One click selects them all, to be copied or printed." }
        ul.codes { @for code in codes { li { code { (code.expose()) } } } }
        p { a.primary href=(next) { "I have kept them" } }
    }
}
