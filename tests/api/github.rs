//! Tests signing in with GitHub, against a fake that implements its protocol ("Authorizing OAuth
//! apps", "REST API endpoints for emails") as strictly as GitHub does.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::pages::{Browser, CALLBACK, Page, authorization, encoded};
use crate::service::{Service, demo_folder};

const SECRET: &str = "a secret of GitHub's";

/// A fake GitHub. Its authorization codes are the names of the people who sign in.
#[derive(Clone)]
struct GitHub {
    url: String,
    /// The bodies that the token endpoint received.
    redeemed: Arc<Mutex<Vec<String>>>,
}

struct ProviderRequest {
    line: String,
    headers: String,
    body: String,
}

impl GitHub {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let github = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            redeemed: Arc::default(),
        };
        let own = github.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let github = own.clone();
                tokio::spawn(async move { github.serve(socket).await });
            }
        });
        github
    }

    async fn serve(&self, mut socket: TcpStream) {
        let asked = read(&mut socket).await;
        let (status, body) = self.response(&asked);
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(reply.as_bytes()).await.unwrap();
    }

    fn response(&self, asked: &ProviderRequest) -> (&'static str, String) {
        // GitHub requires the header `User-Agent`.
        if asked.header("user-agent").is_empty() {
            return ("403 Forbidden", String::new());
        }
        let bearer = asked.header("authorization");
        let person = bearer.strip_prefix("Bearer gho_").unwrap_or_default();
        let reported = match asked.line.as_str() {
            "POST /login/oauth/access_token HTTP/1.1" => self.token(asked),
            "GET /api/v3/user HTTP/1.1" => account(person),
            "GET /api/v3/user/emails HTTP/1.1" => emails(person),
            _ => Value::Null,
        };
        match reported {
            Value::Null => ("404 Not Found", r#"{"message":"Not Found"}"#.to_owned()),
            reported => ("200 OK", reported.to_string()),
        }
    }

    /// The response of the token endpoint. GitHub reports errors with status 200, and uses JSON
    /// only if the client accepts it.
    fn token(&self, asked: &ProviderRequest) -> Value {
        self.redeemed.lock().unwrap().push(asked.body.clone());
        let credentials = format!("tidegate:{}", encoded(SECRET).replace("%20", "+"));
        let basic = format!("Basic {}", STANDARD.encode(credentials));
        if asked.header("authorization") != basic {
            return json!({"error": "incorrect_client_credentials"});
        }
        if !asked.header("accept").contains("application/json") {
            return Value::Null;
        }
        let code = field(&asked.body, "code");
        if code == "spent" {
            return json!({"error": "bad_verification_code", "error_description": "expired"});
        }
        let scope = "read:user,user:email";
        json!({"access_token": format!("gho_{code}"), "scope": scope, "token_type": "bearer"})
    }
}

fn account(person: &str) -> Value {
    match person {
        "nora" => json!({"id": 1, "login": "nora"}),
        "renamed" => json!({"id": 1, "login": "eleonora"}),
        "namesake" => json!({"id": 2, "login": "nora"}),
        "unverified" => json!({"id": 3, "login": "otto"}),
        "nowhere" => json!({"id": 4, "login": "paul"}),
        _ => Value::Null,
    }
}

fn emails(person: &str) -> Value {
    let email = |address: &str, primary: bool, verified: bool| json!({"email": address, "primary": primary, "verified": verified, "visibility": null});
    match person {
        "nora" => json!([
            email("second@example.com", false, true),
            email("third@example.com", false, false),
            email("nora@example.com", true, true),
        ]),
        "renamed" => json!([email("new@example.com", true, false)]),
        "namesake" => json!([email("nora@example.com", true, true)]),
        "unverified" => json!([
            email("otto@example.com", true, false),
            email("second-otto@example.com", false, true),
        ]),
        _ => json!([]),
    }
}

impl ProviderRequest {
    fn header(&self, name: &str) -> &str {
        let mut lines = self
            .headers
            .lines()
            .filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value).unwrap_or_default()
    }
}

async fn read(socket: &mut TcpStream) -> ProviderRequest {
    let mut stream = BufReader::new(socket);
    let (mut line, mut headers) = (String::new(), String::new());
    stream.read_line(&mut line).await.unwrap();
    while !headers.ends_with("\r\n\r\n") && stream.read_line(&mut headers).await.unwrap() > 2 {}
    let mut asked = ProviderRequest {
        line: line.trim_end().to_owned(),
        headers,
        body: String::new(),
    };
    let length = asked.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    asked.body = String::from_utf8(body).unwrap();
    asked
}

fn field(form: &str, name: &str) -> String {
    let pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(known, _)| *known == name);
    found
        .next()
        .map(|(_, value)| value.to_owned())
        .unwrap_or_default()
}

/// Starts a demo that uses the fake, with a client that allows sign-up through it.
async fn start(github: &GitHub, folder: &str) -> Service {
    let api = format!("{}/api/v3", github.url);
    let settings = [
        ("TIDEGATE_GITHUB_URL", github.url.as_str()),
        ("TIDEGATE_GITHUB_API_URL", &api),
        ("TIDEGATE_GITHUB_CLIENT_ID", "tidegate"),
        ("TIDEGATE_GITHUB_CLIENT_SECRET", SECRET),
        ("TIDEGATE_OPEN_SIGNUP", "true"),
    ];
    let service = Service::start_with(folder, &[], &settings);
    let client = json!({
        "id": "social", "name": "Social", "redirect_uri": [CALLBACK], "public": true,
        "confirm": false, "allow_signup": true, "social_signup": true,
    });
    let made = service.rest(Some("demo"), ("POST", "/api/v4/clients"), &client);
    assert_eq!(made.await.status, 201);
    service
}

/// Goes to GitHub and returns with the code of a person.
async fn come_back(browser: &mut Browser<'_>, person: &str) -> (Page, Page) {
    let sign_in = authorization("social").replace("/auth?", "/signin/github?");
    let sent = browser.get(&sign_in).await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let state = sent.parameter("state");
    let back = format!("/signin/github/callback?code={person}&state={state}");
    let back = browser.get(&back).await;
    (sent, back)
}

async fn account_page(browser: &mut Browser<'_>) -> String {
    browser.get("/account").await.text
}

#[tokio::test]
async fn people_sign_in_with_a_verified_primary_address_at_github() {
    let github = GitHub::start().await;
    let folder = demo_folder();
    let service = start(&github, folder.path().to_str().unwrap()).await;
    let mut browser = Browser::new(&service);
    let page = browser.get(&authorization("social")).await;
    assert!(page.text.contains("Sign in with GitHub"), "{}", page.text);

    let (sent, back) = come_back(&mut browser, "nora").await;
    let authorize = format!("{}/login/oauth/authorize?", github.url);
    assert!(sent.location.starts_with(&authorize), "{}", sent.location);
    assert_eq!(sent.parameter("client_id"), "tidegate");
    assert_eq!(sent.parameter("response_type"), "code");
    assert_eq!(sent.parameter("scope"), "read%3Auser+user%3Aemail");
    assert_eq!(sent.parameter("code_challenge_method"), "S256");
    let callback = format!("{}/signin/github/callback", service.url);
    let callback = callback.replace(':', "%3A").replace('/', "%2F");
    assert_eq!(sent.parameter("redirect_uri"), callback);
    // The code was redeemed with the verifier of this flow, for the same redirect URI.
    let redeemed = github.redeemed.lock().unwrap().last().unwrap().clone();
    let verifier = field(&redeemed, "code_verifier");
    let challenge = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    assert_eq!(
        URL_SAFE_NO_PAD.encode(challenge),
        sent.parameter("code_challenge")
    );
    assert_eq!(field(&redeemed, "redirect_uri"), callback);

    // The pending authorization request continues by itself.
    assert_eq!(back.status, 303, "{}", back.text);
    let done = browser.get(&back.location).await;
    assert!(!done.parameter("code").is_empty(), "{}", done.text);
    let user = service.rest(Some("demo"), ("GET", "/api/v4/users/nora"), &Value::Null);
    assert_eq!(
        user.await.body["email"],
        "nora@example.com",
        "the primary one"
    );

    // GitHub's number identifies the person: with another name and email at GitHub it is still the
    // same user …
    let mut renamed = Browser::new(&service);
    assert_eq!(come_back(&mut renamed, "renamed").await.1.status, 303);
    let page = account_page(&mut renamed).await;
    assert!(
        page.contains("nora") && !page.contains("eleonora"),
        "{page}"
    );
    // … and another number with the same name and email is another user.
    let mut namesake = Browser::new(&service);
    assert_eq!(come_back(&mut namesake, "namesake").await.1.status, 303);
    assert!(account_page(&mut namesake).await.contains("nora-2"));
}

#[tokio::test]
async fn an_account_needs_a_verified_primary_address_at_github() {
    let github = GitHub::start().await;
    let folder = demo_folder();
    let service = start(&github, folder.path().to_str().unwrap()).await;
    for (person, status, word) in [
        ("unverified", 400, "verified"),
        ("nowhere", 400, "verified"),
        ("spent", 503, "Try again"),
        ("unknown-to-the-api", 503, "Try again"),
    ] {
        let mut browser = Browser::new(&service);
        let (_, refused) = come_back(&mut browser, person).await;
        assert_eq!(refused.status, status, "{person}: {}", refused.text);
        assert!(refused.text.contains(word), "{person}: {}", refused.text);
        let page = account_page(&mut browser).await;
        assert!(page.contains("name=\"password\""), "{person}: {page}");
    }
    for name in ["otto", "paul"] {
        let path = format!("/api/v4/users/{name}");
        let user = service.rest(Some("demo"), ("GET", &path), &Value::Null);
        assert_eq!(user.await.status, 404, "{name}");
    }
    // A callback fails in another browser, and without a login state.
    let mut other = Browser::new(&service);
    let mut browser = Browser::new(&service);
    let sign_in = authorization("social").replace("/auth?", "/signin/github?");
    let state = other.get(&sign_in).await.parameter("state");
    browser.get(&sign_in).await;
    for state in [state.as_str(), "made-up"] {
        let path = format!("/signin/github/callback?code=nora&state={state}");
        assert_eq!(browser.get(&path).await.status, 400);
    }
    let redeemed = github.redeemed.lock().unwrap().len();
    assert_eq!(redeemed, 4, "GitHub was not even asked");
}

#[tokio::test]
async fn a_user_links_github_and_signs_in_without_a_password() {
    let github = GitHub::start().await;
    let folder = demo_folder();
    let service = start(&github, folder.path().to_str().unwrap()).await;
    let mut browser = Browser::new(&service);
    let page = browser.get("/account").await;
    let fields = [
        ("username", "alice"),
        ("password", "alice1234"),
        ("database", "demo"),
    ];
    let page = browser.submit(&page, "sign_in", &fields).await;
    let away = browser
        .submit(&page, "link", &[("provider", "github")])
        .await;
    let (_, state) = away.text.split_once("state=").unwrap();
    let state = state.split(['&', '"']).next().unwrap();
    let back = format!("/signin/github/callback?code=unverified&state={state}");
    // A person who is signed in to both services needs no verified email.
    let linked = browser.get(&back).await;
    assert_eq!(linked.location, "/account?done=linked", "{}", linked.text);
    let page = browser.get(&linked.location).await;
    assert!(page.text.contains("otto"), "{}", page.text);

    let mut other = Browser::new(&service);
    assert_eq!(come_back(&mut other, "unverified").await.1.status, 303);
    let own = account_page(&mut other).await;
    assert!(own.contains("<strong>alice</strong>"), "{own}");
    // The linked account has GitHub's number, and the address of this GitHub as its issuer.
    let kept = format!("name=\"issuer\" value=\"{}\"", github.url);
    assert!(page.text.contains(&kept), "{}", page.text);
    assert!(page.text.contains("name=\"subject\" value=\"3\""));
    let gone = browser.submit(&page, "unlink", &[]).await;
    assert!(
        gone.text.contains("The account is unlinked."),
        "{}",
        gone.text
    );
    let mut closed = Browser::new(&service);
    assert_eq!(come_back(&mut closed, "unverified").await.1.status, 400);
    // The audit log names the provider.
    let log = service.rest(
        Some("demo"),
        ("GET", "/api/v4/audit?limit=1000"),
        &Value::Null,
    );
    let log = log.await.body;
    let reported = log["events"].as_array().unwrap().iter();
    let reported = reported.filter(|event| event["detail"] == github.url.as_str());
    let reported: Vec<_> = reported.map(|e| (&e["event"], &e["user"])).collect();
    let alice = json!("alice");
    assert_eq!(
        reported,
        [
            (&json!("identity_linked"), &alice),
            (&json!("signed_in"), &alice),
            (&json!("identity_unlinked"), &alice),
        ]
    );
}

#[tokio::test]
async fn each_provider_of_the_settings_is_offered_on_the_sign_in_page() {
    let folder = demo_folder();
    let names = ["GITHUB", "GOOGLE", "GITLAB", "OPENID"];
    let mut settings: Vec<_> = names
        .iter()
        .flat_map(|name| {
            let id = (format!("TIDEGATE_{name}_CLIENT_ID"), "id".to_owned());
            let secret = (
                format!("TIDEGATE_{name}_CLIENT_SECRET"),
                "secret".to_owned(),
            );
            [id, secret]
        })
        .collect();
    let own = |name: &str, value: &str| (format!("TIDEGATE_OPENID_{name}"), value.to_owned());
    settings.push(own("ISSUER", "https://id.example"));
    settings.push(own("LABEL", "Example <ID>"));
    let settings: Vec<_> = settings.iter().map(|(n, v)| (&**n, &**v)).collect();
    let service = Service::start_with(folder.path().to_str().unwrap(), &[], &settings);
    let mut browser = Browser::new(&service);
    let page = browser.get(&authorization("demo-app")).await;
    for (id, label) in [
        ("github", "GitHub"),
        ("google", "Google"),
        ("gitlab", "GitLab"),
        ("openid", "Example &lt;ID&gt;"),
    ] {
        let way = format!("/signin/{id}?response_type=code");
        assert!(page.text.contains(&way), "{way}: {}", page.text);
        assert!(page.text.contains(label), "{label}: {}", page.text);
    }
    // The sign-in page of a demo without providers offers none.
    let plain = Browser::new(crate::service::demo())
        .get(&authorization("demo-app"))
        .await;
    assert!(!plain.text.contains("/signin/"), "{}", plain.text);
}
