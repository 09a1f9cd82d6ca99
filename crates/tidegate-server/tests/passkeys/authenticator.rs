//! An authenticator in software: one key pair, whose answers are those of a browser as JSON.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The flag of an authenticator that found a person present.
pub(super) const UP: u8 = 0x01;
/// The flag of an authenticator that verified the person.
pub(super) const UV: u8 = 0x04;
/// The flag of data with a new key.
const AT: u8 = 0x40;

/// The first value of the counter. An authenticator that counts does not start at 0.
pub(super) const FIRST: u32 = 5;

#[derive(Clone)]
pub(super) struct Authenticator {
    pub(super) origin: String,
    pub(super) counter: u32,
    /// The member `crossOrigin` of the client data: whether a frame of another site asked.
    pub(super) cross_origin: bool,
    /// By how much the counter grows with each answer.
    step: u32,
    key: Arc<KeyPair>,
    pub(super) user: String,
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A byte string in CBOR.
fn bytes(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[0x59], &length[..], content].concat()
}

impl Authenticator {
    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            counter: FIRST,
            cross_origin: false,
            step: 1,
            key: Arc::new(KeyPair::generate().unwrap()),
            user: String::new(),
        }
    }

    /// One that does not count, as those that copy their keys between devices.
    pub(super) fn without_counter(origin: &str) -> Self {
        Self {
            counter: 0,
            step: 0,
            ..Self::new(origin)
        }
    }

    fn raw_id(&self) -> [u8; 32] {
        Sha256::digest(self.key.public_key_raw()).into()
    }

    pub(super) fn id(&self) -> String {
        base64(self.raw_id())
    }

    fn client_data(&self, kind: &str, question: &Value) -> Vec<u8> {
        let data = json!({
            "type": kind, "challenge": question["challenge"], "origin": self.origin,
            "crossOrigin": self.cross_origin,
        });
        data.to_string().into_bytes()
    }

    fn header(&mut self, host: &Value, flags: u8) -> Vec<u8> {
        let host = Sha256::digest(host.as_str().unwrap());
        let data = [&host[..], &[flags], &self.counter.to_be_bytes()].concat();
        self.counter += self.step;
        data
    }

    /// The answer to a question for a new passkey.
    pub(super) fn create(&mut self, question: &Value, flags: u8) -> Value {
        question["user"]["id"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.user);
        let client = self.client_data("webauthn.create", question);
        let (point, id) = (self.key.public_key_raw(), self.raw_id());
        // A COSE key: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
        let key = [
            &[0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21][..],
            &bytes(&point[1..33]),
            &[0x22],
            &bytes(&point[33..]),
        ]
        .concat();
        let aaguid = [0; 16];
        let length = u16::try_from(id.len()).unwrap().to_be_bytes();
        let data = [
            &self.header(&question["rp"]["id"], flags | AT)[..],
            &aaguid,
            &length,
            &id,
            &key,
        ]
        .concat();
        // {"fmt": "none", "attStmt": {}, "authData": data}
        let object = [
            &b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData"[..],
            &bytes(&data),
        ]
        .concat();
        json!({
            "id": self.id(), "rawId": self.id(), "type": "public-key",
            "response": {
                "clientDataJSON": base64(client), "attestationObject": base64(object),
                "transports": ["internal"],
            },
            "clientExtensionResults": {},
        })
    }

    /// The answer to a question for a sign-in.
    pub(super) fn get(&mut self, question: &Value, flags: u8) -> Value {
        let client = self.client_data("webauthn.get", question);
        let data = self.header(&question["rpId"], flags);
        let signed = [&data[..], &Sha256::digest(&client)].concat();
        json!({
            "id": self.id(), "rawId": self.id(), "type": "public-key",
            "response": {
                "clientDataJSON": base64(client), "authenticatorData": base64(data),
                "signature": base64(self.key.sign(&signed).unwrap()), "userHandle": self.user,
            },
            "clientExtensionResults": {},
        })
    }
}
