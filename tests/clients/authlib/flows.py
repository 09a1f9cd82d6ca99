"""Every flow that Authlib knows and Tidegate serves, by the library's own session."""

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from person import HOME, walk

CALLBACK = "http://127.0.0.1:5173/callback"
META = requests.get(f"{HOME}/.well-known/oauth-authorization-server").json()
TOKEN = META["token_endpoint"]
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


def session(client_id, secret=None, method="none"):
    return OAuth2Session(
        client_id,
        secret,
        token_endpoint_auth_method=method,
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        revocation_endpoint_auth_method=method,
    )


def role(client):
    answer = client.post(f"{HOME}/api/v4/sql", json={"q": "select current_user::text as role"})
    return answer.json()["data"][0]["role"]


def refused(error, work):
    try:
        work()
    except OAuthError as caught:
        assert caught.error == error, caught
    else:
        raise AssertionError(f"expected {error}")


CLIENTS = [
    ("demo-app", None, "none"),
    ("demo-server", "demo-server-secret", "client_secret_post"),
    ("demo-server", "demo-server-secret", "client_secret_basic"),
]

for known in CLIENTS:
    client = session(*known)
    verifier = generate_token(48)
    url, state = client.create_authorization_url(
        META["authorization_endpoint"], code_verifier=verifier
    )
    landed = walk(url)
    tokens = client.fetch_token(TOKEN, authorization_response=landed, code_verifier=verifier)
    assert tokens["token_type"] == "Bearer" and tokens["expires_in"] == 3600
    assert role(client) == "demo/alice"
    following = client.refresh_token(TOKEN)
    assert following["refresh_token"] != tokens["refresh_token"]
    assert role(client) == "demo/alice"
    if known[1]:
        told = client.introspect_token(META["introspection_endpoint"], following["access_token"])
        assert told.json()["username"] == "alice", told.text
    gone = client.revoke_token(META["revocation_endpoint"], token=following["refresh_token"])
    assert gone.status_code == 200, gone.text
    refused("invalid_grant", lambda: client.refresh_token(TOKEN, following["refresh_token"]))

client = session("demo-app")
url, state = client.create_authorization_url(
    META["authorization_endpoint"], code_verifier=generate_token(48)
)
denied = walk(url, decision="deny")
# The library leaves this to its caller.
assert "error=access_denied" in denied and f"state={state}" in denied, denied

client = session("demo-app")
client.fetch_token(TOKEN, username="alice", password="alice1234", database="demo")
assert role(client) == "demo/alice"

device = requests.post(META["device_authorization_endpoint"], data={"client_id": "demo-app"}).json()
client = session("demo-app")


def poll():
    return client.fetch_token(TOKEN, grant_type=DEVICE, device_code=device["device_code"])


refused("authorization_pending", poll)
refused("slow_down", poll)
assert walk(device["verification_uri_complete"]).status_code == 200
poll()
assert role(client) == "demo/alice"
refused("invalid_grant", poll)
print("Authlib: code, refresh, device, password, introspection, revocation")
