//! A browser without JavaScript: stores its cookie, reads forms, submits them.

use std::fmt::Write as _;

use reqwest::{Client, Method, Response, redirect};

use crate::service::{Service, TIMEOUT};

/// The redirect URI of the demo's client.
pub(crate) const CALLBACK: &str = "http://127.0.0.1:5173/callback";
/// The code verifier of RFC 7636, appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// The path of an authorization request of a client.
pub(crate) fn authorization(client_id: &str) -> String {
    format!(
        "/auth?response_type=code&client_id={client_id}&redirect_uri={}&state=xyz\
         &code_challenge={CHALLENGE}&code_challenge_method=S256",
        encoded(CALLBACK)
    )
}

pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A browser that follows no redirect by itself.
#[derive(Clone)]
pub(crate) struct Browser<'a> {
    /// The address of the service.
    url: &'a str,
    client: Client,
    cookie: String,
    /// The address that a trusted proxy reports.
    address: String,
}

/// A response that has been read.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) location: String,
    pub(crate) text: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(service: &'a Service) -> Self {
        Self::at(&service.url)
    }

    pub(crate) fn at(url: &'a str) -> Self {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .timeout(TIMEOUT);
        Self {
            url,
            client: client.build().unwrap(),
            cookie: String::new(),
            address: String::new(),
        }
    }

    /// A browser at this address, behind a trusted proxy.
    pub(crate) fn behind_proxy(service: &'a Service, address: &str) -> Self {
        Self {
            address: address.to_owned(),
            ..Self::new(service)
        }
    }

    /// Loads an address of the service.
    pub(crate) async fn get(&mut self, address: &str) -> Page {
        self.send(Method::GET, address, String::new()).await
    }

    /// Submits the form of a step in `page` with these fields, which replace hidden ones of their
    /// names. Follows redirects within the service.
    pub(crate) async fn submit(
        &mut self,
        page: &Page,
        step: &str,
        fields: &[(&str, &str)],
    ) -> Page {
        let (action, hidden) = page.form(step);
        let given = |name: &str| fields.iter().any(|(known, _)| *known == name);
        let hidden = hidden.iter().filter(|(name, _)| !given(name));
        let hidden = hidden.map(|(name, value)| (&**name, &**value));
        let mut body = String::new();
        for (name, value) in hidden.chain(fields.iter().copied()) {
            write!(body, "{name}={}&", encoded(value)).unwrap();
        }
        let mut page = self.send(Method::POST, &action, body).await;
        while page.location.starts_with('/') {
            page = self.get(&page.location.clone()).await;
        }
        page
    }

    /// Signs in if the page asks for it.
    pub(crate) async fn sign_in(&mut self, page: &Page, user: &str) -> Page {
        let password = format!("{user}1234");
        let fields = [("username", user), ("password", &*password)];
        self.submit(page, "sign_in", &fields).await
    }

    async fn send(&mut self, method: Method, address: &str, body: String) -> Page {
        let mut request = self
            .client
            .request(method, format!("{}{address}", self.url))
            .header("cookie", &self.cookie)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        if !self.address.is_empty() {
            request = request
                .header("x-forwarded-for", &self.address)
                .header("x-forwarded-proto", "https");
        }
        let response = request.send().await.unwrap();
        self.keep(&response);
        let header = |name: &str| {
            let value = response.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        Page {
            status: response.status().as_u16(),
            location: header("location"),
            text: response.text().await.unwrap(),
        }
    }

    fn keep(&mut self, response: &Response) {
        if let Some(cookie) = response.headers().get("set-cookie") {
            let (pair, _) = cookie.to_str().unwrap().split_once(';').unwrap();
            pair.clone_into(&mut self.cookie);
        }
    }
}

impl Page {
    /// The action of the form of a step, and its hidden fields.
    fn form(&self, step: &str) -> (String, Vec<(String, String)>) {
        let mark = format!("name=\"step\" value=\"{step}\"");
        let form = self.text.split("<form ").find(|form| form.contains(&mark));
        let form =
            form.unwrap_or_else(|| panic!("no form {step} ({}): {}", self.status, self.text));
        let form = form.split("</form>").next().unwrap();
        let (_, action) = form.split_once("action=\"").unwrap();
        let action = action.split('"').next().unwrap().replace("&amp;", "&");
        let mut hidden = Vec::new();
        for input in form
            .split("<input ")
            .filter(|input| input.contains("type=\"hidden\""))
        {
            let attribute = |name: &str| {
                let (_, rest) = input.split_once(&format!("{name}=\"")).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            hidden.push((attribute("name"), attribute("value")));
        }
        (action, hidden)
    }

    /// A parameter of the address in `Location`. It is decoded only as far as codes of the service
    /// need it.
    pub(crate) fn parameter(&self, name: &str) -> String {
        let (_, query) = self.location.split_once('?').unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    }
}
