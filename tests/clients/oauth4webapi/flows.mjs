// Every flow that npm's oauth4webapi knows and Tidegate serves, by the library's own functions.
import assert from 'node:assert/strict';
import * as oauth from 'oauth4webapi';
import { Person } from './browser.mjs';

const home = process.env.TIDEGATE_URL;
const callback = 'http://127.0.0.1:5173/callback';
// The demo speaks plain HTTP on a loopback address.
const plain = { [oauth.allowInsecureRequests]: true };

const issuer = new URL(home);
const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...plain });
const as = await oauth.processDiscoveryResponse(issuer, found);

const clients = [
  [{ client_id: 'demo-app' }, oauth.None()],
  [{ client_id: 'demo-server' }, oauth.ClientSecretPost('demo-server-secret')],
  [{ client_id: 'demo-server' }, oauth.ClientSecretBasic('demo-server-secret')],
];

function request(client, verifier, state, challenge) {
  const url = new URL(as.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: 'code', client_id: client.client_id, redirect_uri: callback, scope: 'sql',
    state, code_challenge: challenge, code_challenge_method: 'S256',
  });
  return url;
}

const alice = () => new Person({ username: 'alice', password: 'alice1234' });

async function code(client, authentication) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const challenge = await oauth.calculatePKCECodeChallenge(verifier);
  const { url } = await alice().walk(request(client, verifier, state, challenge), home);
  assert.throws(() => oauth.validateAuthResponse(as, client, url, 'another state'));
  const parameters = oauth.validateAuthResponse(as, client, url, state);
  const redeem = () => oauth.authorizationCodeGrantRequest(
    as, client, authentication, parameters, callback, verifier, plain);
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await redeem());
  assert.equal(tokens.token_type, 'bearer');
  assert.equal(tokens.expires_in, 3600);
  return { tokens, redeem };
}

async function ask(access_token) {
  const answer = await oauth.protectedResourceRequest(
    access_token, 'POST', new URL('/api/v4/sql', home),
    new Headers({ 'content-type': 'application/json' }),
    JSON.stringify({ q: 'select current_user::text as role' }), plain);
  return (await answer.json()).data;
}

for (const [client, authentication] of clients) {
  const { tokens } = await code(client, authentication);
  assert.deepEqual(await ask(tokens.access_token), [{ role: 'demo/alice' }]);

  const refreshed = await oauth.refreshTokenGrantRequest(
    as, client, authentication, tokens.refresh_token, plain);
  const next = await oauth.processRefreshTokenResponse(as, client, refreshed);
  assert.notEqual(next.refresh_token, tokens.refresh_token);

  if (client.client_id === 'demo-server') {
    const asked = await oauth.introspectionRequest(as, client, authentication, next.access_token, plain);
    const told = await oauth.processIntrospectionResponse(as, client, asked);
    assert.equal(told.active, true);
    assert.equal(told.username, 'alice');
  }
  const revoked = await oauth.revocationRequest(as, client, authentication, next.refresh_token, plain);
  await oauth.processRevocationResponse(revoked);
  const dead = await oauth.refreshTokenGrantRequest(
    as, client, authentication, next.refresh_token, plain);
  await assert.rejects(
    oauth.processRefreshTokenResponse(as, client, dead), { error: 'invalid_grant' });
}

// A code is good once, and its second use ends what the first gave.
{
  const [client, authentication] = clients[0];
  const { tokens, redeem } = await code(client, authentication);
  await assert.rejects(
    oauth.processAuthorizationCodeResponse(as, client, await redeem()), { error: 'invalid_grant' });
  const dead = await oauth.refreshTokenGrantRequest(
    as, client, authentication, tokens.refresh_token, plain);
  await assert.rejects(
    oauth.processRefreshTokenResponse(as, client, dead), { error: 'invalid_grant' });
}

// Who says no sends an error that the library understands.
{
  const [client] = clients[0];
  const challenge = await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier());
  const person = new Person({ username: 'alice', password: 'alice1234', decision: 'deny' });
  const { url } = await person.walk(request(client, '', 'state', challenge), home);
  assert.throws(
    () => oauth.validateAuthResponse(as, client, url, 'state'),
    (error) => error.error === 'access_denied');
}

// The device grant: pending, too fast, allowed, denied.
for (const decision of ['allow', 'deny']) {
  const [client, authentication] = clients[0];
  const asked = await oauth.deviceAuthorizationRequest(as, client, authentication, {}, plain);
  const device = await oauth.processDeviceAuthorizationResponse(as, client, asked);
  const poll = async () => oauth.processDeviceCodeResponse(as, client, await oauth.deviceCodeGrantRequest(
    as, client, authentication, device.device_code, plain));
  await assert.rejects(poll(), { error: 'authorization_pending' });
  await assert.rejects(poll(), { error: 'slow_down' });
  const person = new Person({ username: 'alice', password: 'alice1234', decision });
  const end = await person.walk(device.verification_uri_complete, home);
  assert.equal(end.status, 200, end.text);
  if (decision === 'allow') {
    const tokens = await poll();
    assert.deepEqual(await ask(tokens.access_token), [{ role: 'demo/alice' }]);
    await assert.rejects(poll(), { error: 'invalid_grant' });
  } else {
    await assert.rejects(poll(), { error: 'access_denied' });
  }
}

// The password grant, as a grant that the library does not know.
{
  const [client, authentication] = clients[0];
  const parameters = { username: 'alice', password: 'alice1234', database: 'demo' };
  const answer = await oauth.genericTokenEndpointRequest(
    as, client, authentication, 'password', parameters, plain);
  const tokens = await oauth.processGenericTokenEndpointResponse(as, client, answer);
  assert.deepEqual(await ask(tokens.access_token), [{ role: 'demo/alice' }]);
}

// The access token as a resource server checks it (RFC 9068).
{
  const [client, authentication] = clients[0];
  const { tokens } = await code(client, authentication);
  const claims = await oauth.validateJwtAccessToken(
    as, new Request(home, { headers: { authorization: `Bearer ${tokens.access_token}` } }), home, plain);
  assert.equal(claims.sub, 'demo/alice');
}
console.log('oauth4webapi: code, refresh, device, password, introspection, revocation, access tokens');
