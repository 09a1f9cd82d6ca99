//! The addresses of NATS servers in the setting `bus_url`.

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;

use crate::error::{BusError, BusResult};

/// Parses the setting. Returns the addresses, and the list of their hosts and ports for error
/// messages.
pub(super) fn parse(url: &str) -> BusResult<(Vec<ServerAddr>, String)> {
    let parse = |(index, text): (usize, &str)| {
        let address = text.trim().parse::<ServerAddr>().ok();
        // A user name without a password is refused, because it may be a token. The service hides
        // only passwords when it shows its settings.
        let has_login = |it: &ServerAddr| it.username().is_none() || it.password().is_some();
        let usable =
            address.filter(|it| !it.host().is_empty() && !it.is_websocket() && has_login(it));
        usable.ok_or(BusError::Address { number: index + 1 })
    };
    let addresses = url.split(',').enumerate().map(parse);
    let addresses = addresses.collect::<BusResult<Vec<_>>>()?;
    let host = |address: &ServerAddr| format!("{}:{}", address.host(), address.port());
    let servers = addresses.iter().map(host).collect::<Vec<_>>().join(", ");
    Ok((addresses, servers))
}

/// The options with the login that the addresses contain.
pub(super) fn login(addresses: &[ServerAddr]) -> BusResult<ConnectOptions> {
    let login = |address: &ServerAddr| {
        let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let password = address.password().unwrap_or_default();
        Some((decode(address.username()?), decode(password)))
    };
    let mut logins: Vec<_> = addresses.iter().map(login).collect();
    logins.dedup();
    let options = ConnectOptions::new();
    match (logins.pop().flatten(), logins.as_slice()) {
        (_, [_, ..]) => Err(BusError::Logins),
        (None, _) => Ok(options),
        (Some((name, password)), _) => Ok(options.user_and_password(name, password)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_address_and_never_the_password() {
        let parsed = parse("nats://a:secret@one:4222, tls://a:secret@two").unwrap();
        assert_eq!(parsed.1, "one:4222, two:4222");
        assert!(login(&parsed.0).is_ok());
        for (url, number) in [
            ("nats://a:secret@one,nats://a:secret@", 2),
            ("ws://a:secret@one", 1),
            ("nats://one,nats://secret@two", 2),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(&format!("address {number} ")), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let (different, _) = parse("nats://a:secret@one,nats://b:secret@two").unwrap();
        let error = login(&different).unwrap_err();
        assert!(matches!(error, BusError::Logins), "{error}");
    }
}
