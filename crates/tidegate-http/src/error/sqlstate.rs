//! Maps SQLSTATEs to HTTP status codes (PostgreSQL, "PostgreSQL Error Codes").

use http::StatusCode;

/// The classes of SQLSTATE that PostgreSQL itself uses. Codes of other classes come from `RAISE` in
/// functions of users.
const CLASSES: [&str; 43] = [
    "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "22",
    "23", "24", "25", "26", "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40",
    "42", "44", "53", "54", "55", "57", "58", "72", "F0", "HV", "XX",
];

/// The HTTP status for an error that PostgreSQL reports. If `anonymous` is true, the caller has no
/// token, and a missing privilege is reported as 401.
pub(crate) fn status(sqlstate: &str, anonymous: bool) -> StatusCode {
    match sqlstate {
        "42P01" | "42883" => StatusCode::NOT_FOUND,
        "42501" if anonymous => StatusCode::UNAUTHORIZED,
        "42501" => StatusCode::FORBIDDEN,
        "23502" | "23514" => StatusCode::BAD_REQUEST,
        "40001" | "40P01" | "55006" | "55P03" => StatusCode::CONFLICT,
        "25006" => StatusCode::METHOD_NOT_ALLOWED,
        // The causes are, in this order: `idle_in_transaction_session_timeout`,
        // `transaction_timeout`, and `statement_timeout` or a CancelRequest.
        "25P03" | "25P04" | "57014" => StatusCode::GATEWAY_TIMEOUT,
        _ => of_class(sqlstate),
    }
}

fn of_class(sqlstate: &str) -> StatusCode {
    match sqlstate.get(..2).unwrap_or_default() {
        // These errors are caused by the statement, or by a function that it calls.
        "02" | "03" | "09" | "0A" | "0B" | "0F" | "0L" | "0P" | "0Z" | "20" | "21" | "22"
        | "24" | "25" | "26" | "27" | "2D" | "2F" | "34" | "38" | "39" | "3B" | "3F" | "42"
        | "44" | "54" | "55" | "P0" => StatusCode::BAD_REQUEST,
        "23" | "2B" => StatusCode::CONFLICT,
        "28" => StatusCode::FORBIDDEN,
        "08" | "53" => StatusCode::SERVICE_UNAVAILABLE,
        "57" if sqlstate.starts_with("57P0") => StatusCode::SERVICE_UNAVAILABLE,
        class if CLASSES.contains(&class) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_contract_holds() {
        let cases = [
            ("22012", 400),
            ("23502", 400),
            ("23514", 400),
            ("0A000", 400),
            ("21000", 400),
            ("25001", 400),
            ("3F000", 400),
            ("42601", 400),
            ("42703", 400),
            ("44000", 400),
            ("54001", 400),
            ("P0001", 400),
            ("MY001", 400),
            ("42P01", 404),
            ("42883", 404),
            ("42501", 403),
            ("23503", 409),
            ("23505", 409),
            ("23P01", 409),
            ("2BP01", 409),
            ("25006", 405),
            ("28000", 403),
            ("40001", 409),
            ("40P01", 409),
            ("53300", 503),
            ("08006", 503),
            ("57P01", 503),
            ("57P03", 503),
            ("57014", 504),
            ("55P03", 409),
            ("XX000", 500),
            ("58030", 500),
            ("HV000", 500),
            ("24000", 400),
            ("25P01", 400),
            ("25P02", 400),
            ("25P03", 504),
            ("25P04", 504),
            ("26000", 400),
            ("27000", 400),
            ("2D000", 400),
            ("34000", 400),
            ("38000", 400),
            ("39P01", 400),
            ("55000", 400),
            ("55006", 409),
            ("23000", 409),
            ("23001", 409),
        ];
        for (sqlstate, expected) in cases {
            assert_eq!(status(sqlstate, false).as_u16(), expected, "{sqlstate}");
        }
        assert_eq!(status("42501", true).as_u16(), 401);
    }
}
