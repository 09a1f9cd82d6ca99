"""OpenID Connect by Authlib in a Flask application: discovery, ID token with nonce, userinfo."""

from authlib.integrations.flask_client import OAuth
from flask import Flask, jsonify, session, url_for

from person import HOME, walk

app = Flask(__name__)
app.secret_key = "a secret of the application, for its cookies"
oauth = OAuth(app)
oauth.register(
    "tidegate",
    client_id="demo-server",
    client_secret="demo-server-secret",
    server_metadata_url=f"{HOME}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile", "code_challenge_method": "S256"},
)


@app.get("/login")
def login():
    return oauth.tidegate.authorize_redirect(url_for("callback", _external=True))


@app.get("/callback")
def callback():
    token = oauth.tidegate.authorize_access_token()
    told = oauth.tidegate.userinfo(token=token)
    session["user"] = token["userinfo"]
    return jsonify(claims=token["userinfo"], told=told)


with app.test_client() as browser:
    start = browser.get("/login", base_url="http://127.0.0.1:5173")
    landed = walk(start.headers["location"])
    page = browser.get(landed, base_url="http://127.0.0.1:5173")
    assert page.status_code == 200, page.text
    claims, told = page.json["claims"], page.json["told"]
    assert claims["sub"] == told["sub"] == "demo/alice", page.json
    assert claims["nonce"] and claims["aud"] == "demo-server", page.json
    assert claims["preferred_username"] == told["preferred_username"] == "alice", page.json
print("Authlib: OpenID Connect with Flask, ID token, userinfo")
