//! A browser without JavaScript that signs up.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use crate::Result;
use crate::connection::{Connection, HttpResponse};

/// The address of the application, to which browsers return.
pub(crate) const CALLBACK: &str = "http://127.0.0.1/callback";
/// The code verifier in RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// The code challenge of [`VERIFIER`].
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A person with a browser that uses one connection.
pub(crate) struct SignUpBrowser<'a> {
    connection: &'a mut Connection,
    address: SocketAddr,
    number: u32,
    cookie: String,
}

impl<'a> SignUpBrowser<'a> {
    /// A person whose requests have a client address that no other person uses.
    pub(crate) fn new(connection: &'a mut Connection, address: SocketAddr, number: u32) -> Self {
        Self {
            connection,
            address,
            number,
            cookie: String::new(),
        }
    }

    /// Signs the person up for a client, and returns the access token.
    pub(crate) async fn sign_up(mut self, client: &str) -> Result<String> {
        let callback = encoded(CALLBACK);
        let page = format!("/signup/?client_id={client}&parentdb=demo&redirect_uri={callback}");
        let page = self.send("GET", &page, "").await?;
        let (action, mut form) = form(&page.body, "sign_up")?;
        let number = self.number;
        write!(
            form,
            "&username=person-{number}&email=n{number}%40example.org&password=long-enough"
        )?;
        let mut page = self.send("POST", &action, &form).await?;
        while page.header("location").starts_with('/') {
            let next = page.header("location").to_owned();
            page = self.send("GET", &next, "").await?;
        }
        if page.header("location") != CALLBACK {
            return Err(format!("the sign-up says {}: {}", page.status, page.body).into());
        }
        let request = format!(
            "/auth?response_type=code&client_id={client}&redirect_uri={callback}&state=x\
             &code_challenge={CHALLENGE}&code_challenge_method=S256"
        );
        let page = self.send("GET", &request, "").await?;
        let location = page.header("location").to_owned();
        let code = location
            .split(['?', '&'])
            .find_map(|pair| pair.strip_prefix("code="));
        let code = code.ok_or_else(|| format!("no code: {location} {}", page.body))?;
        let redeem = format!(
            "grant_type=authorization_code&client_id={client}&code={code}\
             &redirect_uri={callback}&code_verifier={VERIFIER}"
        );
        let response = self.send("POST", "/api/v4/oauth", &redeem).await?;
        let tokens: serde_json::Value = serde_json::from_str(&response.body)?;
        let token = tokens["access_token"].as_str().map(str::to_owned);
        token.ok_or_else(|| response.body.into())
    }

    /// Sends a request; repeats it while the service is busy.
    async fn send(&mut self, method: &str, target: &str, body: &str) -> Result<HttpResponse> {
        let [_, b, c, d] = self.number.to_be_bytes();
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: 11.{b}.{c}.{d}\r\n\
             X-Forwarded-Proto: https\r\nCookie: {}\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.cookie,
            body.len()
        );
        loop {
            let response = self.connection.ask(request.as_bytes()).await?;
            if let 429 | 503 = response.status {
                let wait = response.retry_after.unwrap_or(1);
                tokio::time::sleep(Duration::from_secs(wait)).await;
                continue;
            }
            let cookie = response.header("set-cookie").split(';').next();
            if let Some(cookie) = cookie.filter(|cookie| !cookie.is_empty()) {
                cookie.clone_into(&mut self.cookie);
            }
            return Ok(response);
        }
    }
}

/// Finds the form of a step in a page. Returns the form's action and its hidden fields.
fn form(page: &str, step: &str) -> Result<(String, String)> {
    let mark = format!("name=\"step\" value=\"{step}\"");
    let form = page.split("<form ").find(|form| form.contains(&mark));
    let form = form.and_then(|form| form.split("</form>").next());
    let form = form.ok_or_else(|| format!("no form {step}: {page}"))?;
    let action = attribute(form, "action").replace("&amp;", "&");
    let inputs = form.split("<input ");
    let hidden: Vec<String> = inputs
        .filter(|input| input.contains("type=\"hidden\""))
        .map(|input| {
            let value = encoded(attribute(input, "value"));
            format!("{}={value}", attribute(input, "name"))
        })
        .collect();
    Ok((action, hidden.join("&")))
}

fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let found = element.split_once(&format!("{name}=\""));
    let (_, rest) = found.unwrap_or_default();
    rest.split('"').next().unwrap_or_default()
}

pub(super) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
